//! Meters at ports of VNICs: they drop what is beyond the rate, take the place of the tenant's meters, and go without the rules.

use crate::world::{DATAPATH, TAG, World, add, errors, plan};
use flow::{Instruction, PortNo};
use openflow::message::*;
use openflow::{Body, Version};
use slicer::{Command, End, Event, Isolation, Shaping, Slicer};

/// The port with the meter, its rate, and the number that the meter has.
const PORT: u32 = 1;
const RATE_KBPS: u32 = 1_000;
const METER: u32 = 203;
/// As many frames as are sent at a time, each of 200 bytes: 320 kbit. The burst of the meter has 120.
const FRAMES: usize = 200;

fn at(port: u32) -> End {
    End { datapath: DATAPATH, port: PortNo(port) }
}

fn slicer() -> Slicer {
    Slicer::new(&plan(Isolation::Vlan(TAG))).unwrap().shaping_ports([(at(PORT), RATE_KBPS)])
}

fn world(on: Version) -> World {
    let mut world = World::new(Isolation::Vlan(TAG), on);
    world.slicer = slicer();
    world.switch_up();
    world.join(0, Version::V1_3);
    world
}

fn shape(world: &mut World, is_wanted: bool) {
    world.event(Event::Shape { at: at(PORT), is_wanted });
}

/// How many of the frames that enter by a port leave again.
fn passed(world: &mut World, port: u32) -> usize {
    world.pass(1);
    world.frames.clear();
    let frame = [&[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2][..], &[8, 0], &[9; 186]].concat();
    (0..FRAMES).for_each(|_| world.arrive_shown(port, &frame));
    world.frames.len()
}

fn deletes_rules(world: &World) -> bool {
    let is_delete = |command: &Command| matches!(command, Command::FlowMod(it) if matches!(it.command, FLOW_DELETE | FLOW_DELETE_STRICT));
    world.commands.iter().any(is_delete)
}

#[test]
fn what_enters_beyond_the_rate_is_dropped_while_the_port_is_shaped() {
    let mut world = world(Version::V1_3);
    world.say(Body::FlowMod(add(5, "", "output:3")));
    assert_eq!(passed(&mut world, PORT), FRAMES);
    shape(&mut world, true);
    assert_eq!(world.slicer.shaping(at(PORT)), Some(Shaping::Meter(METER)));
    let left = passed(&mut world, PORT);
    assert!((60..=80).contains(&left), "{left}");
    assert_eq!(passed(&mut world, 2), FRAMES, "other ports have no meter");
    // A rule that comes now has it too.
    world.say(Body::FlowMod(add(6, "in_port=1", "output:4")));
    assert!(passed(&mut world, PORT) < FRAMES);
    shape(&mut world, false);
    assert_eq!(passed(&mut world, PORT), FRAMES);
    assert!(!deletes_rules(&world));
    let is_gone =
        |it: &Command| matches!(it, Command::MeterMod(it) if it.command == 2 && it.meter_id == METER);
    assert!(world.commands.iter().any(is_gone));
    shape(&mut world, true);
    assert!(passed(&mut world, PORT) < FRAMES, "and again");
}

#[test]
fn a_meter_of_the_tenant_counts_at_other_ports_only() {
    let mut world = world(Version::V1_3);
    let bands = vec![MeterBand { rate: 1, burst_size: 1, kind: MeterBandKind::Drop }];
    let own = |meter_id| Body::MeterMod(MeterMod { command: 0, flags: 5, meter_id, bands: bands.clone() });
    assert!(errors(&world.say(own(9))).is_empty());
    let mut rule = add(5, "", "output:3");
    rule.instructions.insert(0, Instruction::Meter(9));
    assert!(errors(&world.say(Body::FlowMod(rule))).is_empty());
    assert!(passed(&mut world, PORT) < 3 && passed(&mut world, 2) < 3);
    shape(&mut world, true);
    assert!(passed(&mut world, PORT) > 50 && passed(&mut world, 2) < 3);
    shape(&mut world, false);
    assert!(passed(&mut world, PORT) < 3);
    // One of the four numbers is the port's.
    let refused: Vec<_> = [1, 2, 3].into_iter().flat_map(|id| errors(&world.say(own(id)))).collect();
    assert_eq!(refused, [(12, 10)]);
}

#[test]
fn a_switch_without_meters_says_so_and_forwards() {
    let mut world = world(Version::V1_0);
    world.say(Body::FlowMod(add(5, "", "output:3")));
    shape(&mut world, true);
    assert_eq!(world.slicer.shaping(at(PORT)), Some(Shaping::NoMeters));
    assert_eq!(passed(&mut world, PORT), FRAMES);
    shape(&mut world, false);
    assert_eq!(world.slicer.shaping(at(PORT)), Some(Shaping::Off));
    assert_eq!(world.slicer.shaping(at(2)), None);
}

#[test]
fn after_a_restart_of_the_slice_or_a_connection_rules_that_forward_keep_the_meter() {
    let mut world = world(Version::V1_3);
    world.say(Body::FlowMod(add(5, "", "output:3")));
    shape(&mut world, true);
    world.event(Event::SwitchDown(DATAPATH));
    assert_eq!(world.slicer.shaping(at(PORT)), Some(Shaping::Waits));
    world.switch_up();
    assert_eq!(world.slicer.shaping(at(PORT)), Some(Shaping::Meter(METER)));
    assert!(passed(&mut world, PORT) < FRAMES);
    world.slicer = slicer();
    world.slicer.number_rules_from(1 << 20);
    world.switch_up();
    shape(&mut world, true);
    assert_eq!(world.slicer.shaping(at(PORT)), Some(Shaping::Meter(METER)));
    let left = passed(&mut world, PORT);
    assert!((60..=80).contains(&left), "{left}");
    assert!(!deletes_rules(&world));
}

#[test]
fn half_of_the_numbers_of_meters_are_the_tenants() {
    let ports = (1..=4).map(|port| (at(port), RATE_KBPS));
    let slicer = Slicer::new(&plan(Isolation::Vlan(TAG))).unwrap().shaping_ports(ports);
    let shaped: Vec<bool> = (1..=4).map(|port| slicer.shaping(at(port)).is_some()).collect();
    assert_eq!(shaped, [true, true, false, false]);
}
