//! What a switch with a profile keeps, which cannot be seen from outside.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use super::*;
use crate::options::{Profiles, SwitchOptions};
use flow::{Action, DatapathId, Field, Instruction, Match};
use profile::{Capacity, Hardware, ModifyKind, Profile};

const C0: ControllerId = ControllerId(0);

/// A switch with two entries that answers at once, and a controller.
fn switch(version: Version) -> Switch {
    let hardware = Hardware { capacities: vec![Capacity::any(2)], ..Hardware::default() };
    playing(Profile { hardware: Some(hardware), ..Profile::null() }, version)
}

/// A switch that plays a profile, and a controller.
fn playing(profile: Profile, version: Version) -> Switch {
    let options = SwitchOptions { profiles: Profiles::for_all(profile), ..SwitchOptions::default() };
    let mut switch = Switch::new(DatapathId(1), "s1", options);
    let mut effects = Effects::default();
    (1..=2).for_each(|port| switch.add_port(PortNo(port), Duration::ZERO, &mut effects));
    switch.on_connected(C0, &mut effects);
    say(&mut switch, version, Body::Hello(Hello::default()));
    switch
}

fn say(switch: &mut Switch, version: Version, body: Body) -> usize {
    let mut effects = Effects::default();
    switch.on_message(C0, &Message { version, xid: 1, body }, Duration::ZERO, &mut effects);
    effects.messages.iter().filter(|(_, message)| matches!(message.body, Body::Error(_))).count()
}

fn add(number: u32) -> FlowMod {
    let matching = Match::any().with(Field::EthType, 0x800u16).with(Field::Ipv4Dst, number);
    let instructions = vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])];
    FlowModFields { priority: 5, ..FlowModFields::default() }.with(matching, instructions)
}

fn arrive(switch: &mut Switch, number: u32) {
    let mut frame = vec![0; 100];
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[30..34].copy_from_slice(&number.to_be_bytes());
    switch.on_frame(PortNo(1), frame, Duration::ZERO, &mut Effects::default());
}

#[test]
fn a_refused_flow_mod_leaves_nothing_behind() {
    let v10 = Version::V1_0;
    let mut switch = switch(v10);
    (0..2).for_each(|number| assert_eq!(say(&mut switch, v10, Body::FlowMod(add(number))), 0));
    let flags = FLOW_MOD_CHECK_OVERLAP;
    let (full, overlaps) = (add(7), FlowMod { matching: Match::any(), flags, ..add(0) });
    for wanted in [full, overlaps] {
        for command in [FLOW_ADD, FLOW_MODIFY, FLOW_MODIFY_STRICT] {
            let wanted = FlowMod { command, ..wanted.clone() };
            let is_known = command == FLOW_MODIFY && wanted.matching.is_any();
            assert_eq!(say(&mut switch, v10, Body::FlowMod(wanted)), usize::from(!is_known));
            let profiled = switch.profiled.as_ref().unwrap();
            let load = profiled.model.load();
            assert_eq!((profiled.rules().count(), load.in_hardware), (2, 2), "{command}");
            assert!(profiled.placed.is_empty() && profiled.carried_out.is_none());
        }
    }
    assert_eq!(switch.flow_count(), 2);
}

#[test]
fn modifies_and_deletes_read_no_counters_of_other_rules() {
    let v13 = Version::V1_3;
    let mut switch = switch(v13);
    (0..2).for_each(|number| assert_eq!(say(&mut switch, v13, Body::FlowMod(add(number))), 0));
    (0..5).for_each(|_| arrive(&mut switch, 0));
    for command in [FLOW_MODIFY, FLOW_DELETE] {
        say(&mut switch, v13, Body::FlowMod(FlowMod { command, out_port: PortNo::ANY, ..add(1) }));
        let other = switch.claims(0, 5, &add(0).matching).unwrap();
        assert_eq!(other.packet_count, 0, "a delete of another rule need not know it");
    }
    let matching = Match::any();
    let (out_port, out_group) = (PortNo::ANY, GROUP_ANY);
    let wanted = FlowStatsRequest { table_id: 0, out_port, out_group, cookie: 0, cookie_mask: 0, matching };
    let body = RequestBody::Flow(wanted);
    say(&mut switch, v13, Body::MultipartRequest(MultipartRequest { flags: 0, body }));
    assert_eq!(switch.claims(0, 5, &add(0).matching).unwrap().packet_count, 5);
}

#[test]
fn reading_counters_keeps_the_cached_paths() {
    let mut tables = FlowTables::new(1);
    let key = Packet::new(vec![0; 60], PortNo(1)).key();
    assert!(tables.known_path(&key).is_none());
    tables.keep_path(&key, crate::path_cache::Path::default());
    tables.recount(0).unwrap().lookup_count += 1;
    assert!(tables.known_path(&key).is_some());
    tables.change(0);
    assert!(tables.known_path(&key).is_none());
}

#[test]
fn what_is_held_is_counted_and_is_empty_in_the_end() {
    let v10 = Version::V1_0;
    let mut switch = switch(v10);
    (0..20).for_each(|number| arrive(&mut switch, number));
    (0..4).for_each(|number| _ = say(&mut switch, v10, Body::FlowMod(add(number))));
    let profiled = switch.profiled.as_ref().unwrap();
    assert!(profiled.takes_messages() && profiled.holds_nothing());
}

#[test]
fn a_rule_that_is_replaced_goes_on_counting() {
    let v13 = Version::V1_3;
    let (capacities, modify_kind) = (vec![Capacity::any(2)], ModifyKind::DeleteAndAdd);
    let hardware = Hardware { capacities, modify_kind, ..Hardware::default() };
    let mut switch = playing(Profile { hardware: Some(hardware), ..Profile::null() }, v13);
    say(&mut switch, v13, Body::FlowMod(add(0)));
    (0..5).for_each(|_| arrive(&mut switch, 0));
    say(&mut switch, v13, Body::FlowMod(FlowMod { command: FLOW_MODIFY_STRICT, ..add(0) }));
    assert_eq!(switch.claims(0, 5, &add(0).matching).unwrap().packet_count, 5);
}
