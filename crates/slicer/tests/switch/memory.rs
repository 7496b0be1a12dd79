//! Restarts of a slice's process that keeps a journal: the tenant's rules, groups, meters and closed ports are as they were. Counters of groups
//! and meters are the switch's.

use crate::world::{DATAPATH, TAG, World, add, delete, errors, plan, with_tag};
use flow::{MacAddr, PortNo};
use openflow::message::*;
use openflow::{Body, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use slicer::{Command, Event, Isolation, Outcome, Slicer};

/// The first number of the second process.
const SECOND: u64 = 1 << 20;
const HOST: &str = "dl_dst=02:00:00:00:00:09";

fn world(on: Version) -> World {
    let mut world = World::new(Isolation::Vlan(TAG), on);
    world.keep_journal();
    world.join(0, Version::V1_3);
    world
}

fn again(world: &mut World) {
    world.restart_with_memory(&plan(Isolation::Vlan(TAG)), SECOND);
    world.join(0, Version::V1_3);
}

fn ask(world: &mut World, body: RequestBody) -> ReplyBody {
    let answers = world.say(Body::MultipartRequest(MultipartRequest { flags: 0, body }));
    match &answers[..] {
        [Body::MultipartReply(reply)] => reply.body.clone(),
        other => panic!("{other:?}"),
    }
}

/// The tenant's rules, as statistics say.
fn rules(world: &mut World) -> Vec<FlowStats> {
    let wanted = FlowStatsRequest::default();
    match ask(world, RequestBody::Flow(wanted)) {
        ReplyBody::Flow(entries) => entries,
        other => panic!("{other:?}"),
    }
}

fn say(world: &mut World, flow_mod: FlowMod) {
    assert_eq!(errors(&world.say(Body::FlowMod(flow_mod.clone()))), [], "{flow_mod:?}");
}

fn bucket(to: u32) -> Bucket {
    let actions = vec![flow::Action::output(PortNo(to))];
    Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions }
}

fn group(command: u16, group_id: u32, to: u32) -> Body {
    Body::GroupMod(GroupMod { command, group_type: GROUP_TYPE_ALL, group_id, buckets: vec![bucket(to)] })
}

fn meter(command: u16, meter_id: u32, rate: u32) -> Body {
    let bands = vec![MeterBand { rate, burst_size: 0, kind: MeterBandKind::Drop }];
    Body::MeterMod(MeterMod { command, flags: 1, meter_id, bands })
}

fn port_mod(shown: u32, config: u32) -> Body {
    let hw_addr = MacAddr([2, 0, 0, 0, 0, crate::world::physical(shown) as u8]);
    Body::PortMod(PortMod { port_no: PortNo(shown), hw_addr, config, mask: 1, advertise: 0 })
}

fn removed(bodies: &[Body]) -> Vec<(u64, u8)> {
    let removed = |body: &Body| match body {
        Body::FlowRemoved(it) => Some((it.cookie, it.reason)),
        _ => None,
    };
    bodies.iter().filter_map(removed).collect()
}

#[test]
fn a_damaged_journal_changes_nothing() {
    let mut world = world(Version::V1_3);
    say(&mut world, add(5, "", "output:1"));
    let mut file = world.journal.take().unwrap();
    let last = file.len() - 1;
    file[last] ^= 1;
    world.slicer = Slicer::new(&plan(Isolation::Vlan(TAG))).unwrap();
    assert_eq!(world.slicer.recall(DATAPATH, &file), Err("its checksum is wrong"));
    assert!(world.slicer.may_take_for(DATAPATH), "nothing is to be compared");
    assert_eq!(world.slicer.rules(DATAPATH), Some((0, 0)));
}

#[test]
fn the_tenants_rules_are_as_they_were_and_nothing_is_sent_for_them() {
    for on in [Version::V1_3, Version::V1_0] {
        let mut world = world(on);
        say(&mut world, FlowMod { cookie: u64::MAX - 1, ..add(5, "", "output:1") });
        say(&mut world, FlowMod { cookie: 7, flags: 1, hard_timeout_s: 90, ..add(9, HOST, "output:2") });
        world.arrive_shown(2, &[7; 60]);
        world.pass(10);
        let (before, entries) = (rules(&mut world), world.entries());
        world.commands.clear();
        again(&mut world);
        let is_change = |it: &slicer::Command| match it {
            slicer::Command::FlowMod(it) => it.priority > 1,
            _ => false,
        };
        assert!(!world.commands.iter().any(is_change), "{:?}", world.commands);
        assert_eq!((rules(&mut world), world.entries()), (before, entries));
    }
}

#[test]
fn a_strict_delete_and_a_modify_of_one_rule_reach_all_of_its_pieces() {
    let mut world = world(Version::V1_3);
    let without = world.entries();
    say(&mut world, add(5, "", "output:1"));
    let with_one = world.entries();
    say(&mut world, FlowMod { flags: 1, cookie: 9, ..add(9, HOST, "output:2") });
    again(&mut world);
    let modify = FlowMod { command: FLOW_MODIFY_STRICT, ..add(5, "", "output:3") };
    say(&mut world, modify);
    assert_eq!(world.entries().len(), 8 + without.len());
    assert_ne!(world.entries(), with_one);
    let strict = FlowMod { command: FLOW_DELETE_STRICT, ..add(9, HOST, "") };
    let answers = world.say(Body::FlowMod(strict));
    assert_eq!(removed(&answers), [(9, 2)], "flow removed is sent");
    assert_eq!(world.entries().len(), 4 + without.len());
    say(&mut world, delete(""));
    assert_eq!(world.entries(), without);
}

#[test]
fn a_rule_of_the_earlier_process_times_out_and_is_told() {
    let mut world = world(Version::V1_3);
    let ends = FlowMod { flags: 1, cookie: 3, hard_timeout_s: 20, ..add(5, "", "output:1") };
    say(&mut world, ends);
    world.pass(15);
    again(&mut world);
    world.pass(4);
    assert_eq!(rules(&mut world).len(), 1, "its time is that of before");
    world.told.clear();
    world.pass(2);
    let told: Vec<Body> = world.told.iter().map(|(_, message)| message.body.clone()).collect();
    assert_eq!(removed(&told), [(3, 1)]);
    assert!(rules(&mut world).is_empty());
}

#[test]
fn a_rule_that_ended_while_no_process_ran_is_gone_without_a_word() {
    let mut world = world(Version::V1_3);
    let without = world.entries();
    say(&mut world, FlowMod { flags: 1, hard_timeout_s: 20, ..add(5, "", "output:1") });
    let file = world.journal.take();
    world.pass(30);
    world.journal = file;
    world.told.clear();
    again(&mut world);
    assert!(rules(&mut world).is_empty() && world.entries() == without);
    let all: Vec<Body> = world.told.iter().map(|(_, message)| message.body.clone()).collect();
    assert_eq!(removed(&all), []);
}

#[test]
fn a_piece_that_ended_alone_is_put_back() {
    let mut world = world(Version::V1_3);
    let without = world.entries().len();
    say(&mut world, FlowMod { idle_timeout_s: 5, ..add(5, "", "output:1") });
    world.pass(3);
    world.arrive_shown(2, &[7; 60]);
    let file = world.journal.take();
    let old = std::mem::replace(&mut world.slicer, Slicer::new(&plan(Isolation::Vlan(TAG))).unwrap());
    world.pass(3);
    drop(old);
    assert_eq!(world.entries().len(), 1 + without, "three of four pieces had no packets");
    world.journal = file;
    again(&mut world);
    assert_eq!(world.entries().len(), 4 + without);
}

#[test]
fn messages_wait_until_the_switch_has_said_its_rules() {
    let mut world = world(Version::V1_3);
    let without = world.entries().len();
    say(&mut world, add(5, "", "output:1"));
    world.holds_statistics = true;
    again(&mut world);
    assert!(!world.slicer.may_take_for(DATAPATH));
    world.say(Body::FlowMod(delete("")));
    assert_eq!(world.entries().len(), 4 + without);
    world.answer_statistics();
    assert!(world.slicer.may_take_for(DATAPATH));
    assert_eq!(world.entries().len(), without);
}

#[test]
fn a_switch_that_goes_away_in_between_is_asked_again() {
    let mut world = world(Version::V1_3);
    say(&mut world, add(5, "", "output:1"));
    let before = rules(&mut world);
    world.holds_statistics = true;
    again(&mut world);
    world.event(Event::SwitchDown(DATAPATH));
    world.holds_statistics = false;
    world.switch_up();
    world.join(0, Version::V1_3);
    assert_eq!(rules(&mut world), before);
}

#[test]
fn a_switch_that_does_not_say_its_rules_gets_all_again() {
    let mut world = world(Version::V1_3);
    say(&mut world, add(5, "", "output:1"));
    let before = world.entries().len();
    let emptied = FlowMod { command: FLOW_DELETE, table_id: TABLE_ALL, ..add(0, "", "") };
    world.no_statistics = Some(Outcome::Unknown);
    world.lose(Body::FlowMod(emptied));
    again(&mut world);
    // The kernel's rule for misses is gone.
    assert_eq!(world.entries().len(), before - 1);
}

#[test]
fn groups_and_meters_are_known_and_a_lost_one_takes_its_rules_along() {
    let mut world = world(Version::V1_3);
    for body in [group(0, 7, 1), group(0, 8, 2), meter(0, 3, 100), meter(0, 4, 200)] {
        assert_eq!(errors(&world.say(body)), []);
    }
    say(&mut world, add(5, "", "group:7"));
    say(&mut world, add(6, "", "group:8"));
    say(&mut world, add(7, "", "meter:3,output:1"));
    let (entries, described) = (world.entries(), ask(&mut world, RequestBody::GroupDesc));
    let meters = ask(&mut world, RequestBody::MeterConfig(METER_ALL));
    again(&mut world);
    assert_eq!(world.entries(), entries);
    assert_eq!(ask(&mut world, RequestBody::GroupDesc), described);
    assert_eq!(ask(&mut world, RequestBody::MeterConfig(METER_ALL)), meters);
    assert_eq!(errors(&world.say(group(0, 7, 1))), [(6, 0)], "group 7 exists");
    assert_eq!(errors(&world.say(meter(0, 3, 100))), [(12, 1)], "meter 3 exists");
    say(&mut world, add(9, HOST, "group:8"));
    // The switch loses group 8, whose number there is 101.
    world.lose(Body::GroupMod(GroupMod { command: 2, group_type: 0, group_id: 101, buckets: Vec::new() }));
    again(&mut world);
    assert_eq!(rules(&mut world).iter().map(|rule| rule.priority).collect::<Vec<_>>(), [7, 5]);
    assert_eq!(errors(&world.say(group(0, 8, 2))), [], "its number is free again");
}

#[test]
fn counters_of_groups_and_meters_are_what_a_modify_leaves_of_them() {
    let mut world = world(Version::V1_3);
    for body in [group(0, 7, 1), meter(0, 3, 1_000_000)] {
        assert_eq!(errors(&world.say(body)), []);
    }
    say(&mut world, add(5, "", "meter:3,group:7"));
    world.arrive_shown(2, &[7; 60]);
    let counted = |world: &mut World| {
        let groups = ask(world, RequestBody::Group(7));
        let meters = ask(world, RequestBody::Meter(3));
        match (groups, meters) {
            (ReplyBody::Group(groups), ReplyBody::Meter(meters)) => {
                (groups[0].packet_count, meters[0].packet_in_count)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(counted(&mut world), (1, 1));
    again(&mut world);
    // The switch of the tests begins again with a group, and goes on with a meter.
    assert_eq!(counted(&mut world), (0, 1));
}

/// How many commands for groups and meters delete one.
fn deletes(world: &World) -> usize {
    let is_delete = |it: &&Command| match it {
        Command::GroupMod(it) => it.command == 2,
        Command::MeterMod(it) => it.command == 2,
        _ => false,
    };
    world.commands.iter().filter(is_delete).count()
}

/// Priorities of the tenant's rules.
fn priorities(world: &mut World) -> Vec<u16> {
    rules(world).iter().map(|rule| rule.priority).collect()
}

#[test]
fn a_lost_meter_takes_its_rules_along() {
    let mut world = world(Version::V1_3);
    for body in [meter(0, 3, 100), meter(0, 4, 200)] {
        assert_eq!(errors(&world.say(body)), []);
    }
    say(&mut world, add(5, "", "meter:3,output:1"));
    say(&mut world, add(6, "", "meter:4,output:1"));
    say(&mut world, add(7, "", "output:1"));
    let before = world.entries().len();
    // The switch loses meter 4, whose number there is in the last command for a meter.
    let number = |it: &Command| match it {
        Command::MeterMod(it) => Some(it.meter_id),
        _ => None,
    };
    let meter_id = world.commands.iter().rev().find_map(number).unwrap();
    world.lose(Body::MeterMod(MeterMod { command: 2, flags: 0, meter_id, bands: Vec::new() }));
    let after = world.entries().len();
    again(&mut world);
    assert_eq!(priorities(&mut world), [7, 5]);
    assert!(before > after && world.entries().len() == after, "nothing is put back without its meter");
    assert_eq!(errors(&world.say(meter(1, 4, 100))), [(12, 3)], "meter 4 is unknown");
    assert_eq!(errors(&world.say(meter(0, 4, 200))), [], "its number is free again");
    again(&mut world);
    assert_eq!(priorities(&mut world), [7, 5], "the journal has it too");
    assert_eq!(errors(&world.say(meter(0, 4, 200))), [(12, 1)], "meter 4 exists");
}

/// A slice whose second process waits for receipts: of the meters 3 and 4, and then of the groups 7 and 8.
fn waiting() -> World {
    let mut world = world(Version::V1_3);
    for body in [group(0, 7, 1), group(0, 8, 2), meter(0, 3, 100), meter(0, 4, 200)] {
        assert_eq!(errors(&world.say(body)), []);
    }
    for (priority, actions) in
        [(5, "group:7"), (6, "group:8"), (7, "meter:3,output:1"), (8, "meter:4,output:1")]
    {
        say(&mut world, add(priority, "", actions));
    }
    world.commands.clear();
    world.holds_claims = true;
    again(&mut world);
    world
}

#[test]
fn what_the_kernel_refuses_again_goes_with_its_rules() {
    const NO_RIGHT: Outcome = Outcome::Refused(flow::ErrorCode { kind: 6, code: 14 });
    let mut world = waiting();
    world.answer_claims(1, NO_RIGHT);
    world.answer_claims(1, Outcome::Done);
    world.answer_claims(1, NO_RIGHT);
    assert!(!world.slicer.may_take_for(DATAPATH), "group 8 is not confirmed");
    world.answer_claims(1, Outcome::Done);
    assert!(world.slicer.may_take_for(DATAPATH));
    assert_eq!(priorities(&mut world), [8, 6]);
    assert_eq!(deletes(&world), 0, "the numbers are not the slice's");
    let entries = world.entries();
    world.holds_claims = false;
    again(&mut world);
    assert_eq!((priorities(&mut world), world.entries()), (vec![8, 6], entries), "the journal has it too");
    let numbers =
        match (ask(&mut world, RequestBody::GroupDesc), ask(&mut world, RequestBody::MeterConfig(METER_ALL)))
        {
            (ReplyBody::GroupDesc(groups), ReplyBody::MeterConfig(meters)) => {
                let groups = groups.iter().map(|it| it.group_id).collect::<Vec<_>>();
                (groups, meters.iter().map(|it| it.meter_id).collect::<Vec<_>>())
            }
            other => panic!("{other:?}"),
        };
    assert_eq!(numbers, (vec![8], vec![4]), "what was refused is not recalled again");
}

#[test]
fn what_the_switch_refuses_again_is_deleted_once() {
    const UNKNOWN: Outcome = Outcome::Failed(flow::ErrorCode { kind: 6, code: 8 });
    let mut world = waiting();
    world.answer_claims(4, UNKNOWN);
    assert_eq!((priorities(&mut world), deletes(&world)), (vec![], 4));
    world.holds_claims = false;
    for body in [group(0, 7, 1), group(0, 8, 2), meter(0, 3, 100), meter(0, 4, 200)] {
        assert_eq!(errors(&world.say(body)), [], "its number is free again");
    }
}

#[test]
fn messages_wait_for_groups_and_meters_too_and_see_what_became_of_them() {
    let mut world = waiting();
    let add_to = |group: u32| Body::FlowMod(add(20 + group as u16, "", &format!("group:{group}")));
    for body in [add_to(7), add_to(8), group(0, 8, 3), Body::BarrierRequest] {
        assert_eq!(world.say(body.clone()), [], "{body:?}");
    }
    world.answer_claims(3, Outcome::Done);
    assert!(world.told.is_empty(), "group 8 is not confirmed: {:?}", world.told);
    world.holds_claims = false;
    world.answer_claims(1, Outcome::Failed(flow::ErrorCode { kind: 6, code: 8 }));
    let told: Vec<Body> = std::mem::take(&mut world.told).into_iter().map(|(_, it)| it.body).collect();
    assert_eq!(errors(&told), [(2, 9)], "the switch has lost group 8: {told:?}");
    assert!(matches!(told.last(), Some(Body::BarrierReply)), "{told:?}");
    assert_eq!(priorities(&mut world), [27, 8, 7, 5]);
}

#[test]
fn too_many_messages_that_wait_are_an_error() {
    let mut world = waiting();
    (0..1_024).for_each(|_| assert_eq!(world.say(Body::FlowMod(add(9, "", "output:1"))), []));
    assert_eq!(errors(&world.say(Body::FlowMod(add(10, "", "output:1")))), [(1, 5)]);
    world.answer_claims(4, Outcome::Done);
    assert_eq!(priorities(&mut world), [9, 8, 7, 6, 5], "those that waited are carried out");
    say(&mut world, add(10, "", "output:1"));
}

#[test]
fn a_switch_that_goes_away_before_a_receipt_is_asked_for_groups_and_meters_again() {
    let mut world = waiting();
    world.say(Body::FlowMod(add(9, "", "output:1")));
    world.answer_claims(2, Outcome::Done);
    world.event(Event::SwitchDown(DATAPATH));
    world.holds_claims = false;
    world.switch_up();
    world.join(0, Version::V1_3);
    assert!(world.slicer.may_take_for(DATAPATH));
    assert_eq!(priorities(&mut world), [8, 7, 6, 5], "the message went with its session");
    // Receipts of the session that ended change nothing.
    world.answer_claims(2, Outcome::Failed(flow::ErrorCode { kind: 6, code: 8 }));
    assert_eq!(priorities(&mut world), [8, 7, 6, 5]);
}

#[test]
fn a_closed_port_stays_closed_and_opens_with_its_rules() {
    let mut world = world(Version::V1_3);
    say(&mut world, add(5, "", "flood"));
    let open = world.entries();
    assert_eq!(errors(&world.say(port_mod(2, 1))), []);
    let closed = world.entries();
    again(&mut world);
    assert_eq!(world.entries(), closed);
    let ReplyBody::PortDesc(ports) = ask(&mut world, RequestBody::PortDesc) else { panic!() };
    assert_eq!(ports.iter().map(|port| port.config).collect::<Vec<_>>(), [0, 1, 0, 0]);
    assert_eq!(errors(&world.say(port_mod(2, 0))), []);
    assert_eq!(world.entries().len(), open.len());
}

#[test]
fn the_latest_generation_id_is_remembered() {
    let mut world = world(Version::V1_3);
    let master = |generation_id| Body::RoleRequest(Role { role: ROLE_MASTER, generation_id });
    assert_eq!(errors(&world.say(master(9))), []);
    again(&mut world);
    assert_eq!(errors(&world.say(master(8))), [(11, 0)]);
    assert_eq!(errors(&world.say(master(9))), []);
}

#[test]
fn rules_are_laid_at_a_new_port_and_leave_one_that_went() {
    let mut world = world(Version::V1_3);
    let without = world.entries().len();
    say(&mut world, add(5, "", "output:1"));
    say(&mut world, add(6, "in_port=4", "output:1"));
    let mut other = plan(Isolation::Vlan(TAG));
    other.switches[0].ports.retain(|port| port.shown_as != PortNo(4));
    world.restart_with_memory(&other, SECOND);
    world.join(0, Version::V1_3);
    assert_eq!(rules(&mut world).iter().map(|rule| rule.priority).collect::<Vec<_>>(), [5]);
    // The rule of port 4 cannot be laid. It is a leftover, as is the floor there.
    assert_eq!(world.entries().len(), 3 + 1 + without);
    world.restart_with_memory(&plan(Isolation::Vlan(TAG)), 2 * SECOND);
    world.join(0, Version::V1_3);
    assert_eq!(world.entries().len(), 4 + 1 + without);
    say(&mut world, delete(""));
    assert_eq!(world.entries().len(), without);
}

#[test]
fn a_packet_of_another_slice_is_no_packet_of_a_recalled_rule() {
    let mut world = world(Version::V1_3);
    say(&mut world, add(5, "", "output:1"));
    again(&mut world);
    world.frames.clear();
    world.arrive(5, &with_tag(&[7; 60], TAG + 1));
    assert!(world.frames.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Rule { command: u8, priority: u16, matching: usize, actions: usize, ends: u16, cookie: u64 },
    Group { command: u16, id: u32, to: u32 },
    Meter { command: u16, id: u32, rate: u32 },
    Port { shown: u32, is_closed: bool },
    Frame { shown: u32 },
    Role(u64),
    Pass(u64),
}

/// A rule with an idle time-out has one port. When one of several pieces ends depends on when each was put back, which no journal has.
const MATCHES: [&str; 6] =
    ["in_port=1", "in_port=3,dl_type=0x0800", HOST, "", "tcp,tp_dst=80", "in_port=4,dl_vlan=0xffff"];
const ACTIONS: [&str; 7] = [
    "output:1",
    "flood",
    "group:1",
    "meter:1,output:2",
    "set_field:02:00:00:00:00:07->eth_dst,all",
    "",
    "in_port",
];

fn step() -> impl Strategy<Value = Step> {
    let rule = (0..5u8, 4..7u16, 0..MATCHES.len(), 0..ACTIONS.len(), 0..9u16, 0..4u64);
    prop_oneof![
        8 => rule.prop_map(|(command, priority, matching, actions, ends, cookie)| Step::Rule {
            command,
            priority,
            matching,
            actions,
            ends,
            cookie
        }),
        2 => (0..3u16, 1..3u32, 1..5u32).prop_map(|(command, id, to)| Step::Group { command, id, to }),
        1 => (0..3u16, 1..3u32, 1..9u32).prop_map(|(command, id, rate)| Step::Meter { command, id, rate }),
        1 => (1..5u32, any::<bool>()).prop_map(|(shown, is_closed)| Step::Port { shown, is_closed }),
        2 => (1..5u32).prop_map(|shown| Step::Frame { shown }),
        1 => (0..9u64).prop_map(Step::Role),
        2 => (0..4u64).prop_map(Step::Pass),
    ]
}

fn act(world: &mut World, step: &Step) {
    match step {
        Step::Rule { command, priority, matching, actions, ends, cookie } => {
            let has_one_port = MATCHES[*matching].starts_with("in_port");
            let flow_mod = FlowMod {
                command: *command,
                cookie: *cookie,
                cookie_mask: cookie & 1,
                flags: 1,
                idle_timeout_s: if has_one_port { *ends } else { 0 },
                hard_timeout_s: ends / 2 * 3,
                ..add(*priority, MATCHES[*matching], ACTIONS[*actions])
            };
            world.say(Body::FlowMod(flow_mod));
        }
        Step::Group { command, id, to } => drop(world.say(group(*command, *id, *to))),
        Step::Meter { command, id, rate } => drop(world.say(meter(*command, *id, *rate))),
        Step::Port { shown, is_closed } => drop(world.say(port_mod(*shown, u32::from(*is_closed)))),
        Step::Frame { shown } => world.arrive_shown(*shown, &[7; 60]),
        Step::Role(generation_id) => {
            let role = Role { role: ROLE_MASTER, generation_id: *generation_id };
            world.say(Body::RoleRequest(role));
        }
        Step::Pass(seconds) => world.pass(*seconds),
    }
}

/// All that the tenant can ask.
fn state(world: &mut World) -> (Vec<FlowStats>, Vec<FlowStats>, Vec<ReplyBody>) {
    let all = [RequestBody::GroupDesc, RequestBody::MeterConfig(METER_ALL), RequestBody::PortDesc];
    let lists = all.into_iter().map(|request| ask(world, request)).collect();
    (world.entries(), rules(world), lists)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// A slice that stops at any time and recalls its journal goes on as one that has only lost the connection of its controller.
    #[test]
    fn a_slice_that_recalls_its_journal_goes_on_as_one_that_never_stopped(
        before in vec(step(), 0..40),
        after in vec(step(), 0..20),
    ) {
        let (mut one, mut other) = (world(Version::V1_3), world(Version::V1_3));
        for step in &before {
            act(&mut one, step);
            act(&mut other, step);
        }
        one.leave(0);
        one.join(0, Version::V1_3);
        again(&mut other);
        prop_assert_eq!(state(&mut one), state(&mut other));
        one.told.clear();
        other.told.clear();
        for step in &after {
            act(&mut one, step);
            act(&mut other, step);
            prop_assert_eq!(&one.told, &other.told, "{:?}", step);
            prop_assert_eq!(one.entries(), other.entries(), "{:?}", step);
        }
        prop_assert_eq!(state(&mut one), state(&mut other));
        again(&mut other);
        one.leave(0);
        one.join(0, Version::V1_3);
        prop_assert_eq!(state(&mut one), state(&mut other));
    }
}

#[test]
fn no_rule_ends_by_its_time_before_the_switch_has_said_what_it_has() {
    let mut world = world(Version::V1_3);
    say(&mut world, FlowMod { idle_timeout_s: 5, ..add(5, "in_port=1", "output:3") });
    let mut slicer = Slicer::new(&plan(Isolation::Vlan(TAG))).unwrap();
    slicer.recall(DATAPATH, world.journal.as_ref().unwrap()).unwrap();
    let later_ms = world.now.as_millis() as u64 + 60_000;
    slicer.on_event(later_ms, Event::Time, &mut Vec::new());
    assert_eq!(slicer.rules(DATAPATH), Some((1, 0)));
}
