//! Bundles (1.4.0, 7.3.9; in 1.3 the ONF's extension 230): what the controller says about them, their bounds, and
//! that a commit does all or nothing. The oracle is a switch that gets the same messages one by one.

use super::dsl::*;
use flow::{Action, Field, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use software_switch::{Effects, SwitchOptions};
use std::time::Duration;

const BAD_ID: (u16, u16) = (0xffff, 2302);
const CLOSED: (u16, u16) = (0xffff, 2304);
const OUT_OF_BUNDLES: (u16, u16) = (0xffff, 2305);
const BAD_TYPE: (u16, u16) = (0xffff, 2306);
const BAD_FLAGS: (u16, u16) = (0xffff, 2307);
const UNSUPPORTED: (u16, u16) = (0xffff, 2310);
const TOO_MANY: (u16, u16) = (0xffff, 2312);
const FAILED: (u16, u16) = (0xffff, 2313);
const TIMEOUT: (u16, u16) = (0xffff, 2314);

const ATOMIC: u16 = BUNDLE_ATOMIC | BUNDLE_ORDERED;

fn control(control: u16, bundle_id: u32) -> Body {
    Body::BundleControl(BundleControl { bundle_id, control, flags: ATOMIC, properties: vec![] })
}

/// A message that adds another to a bundle, for a transaction id.
fn adding(xid: u32, bundle_id: u32, body: Body) -> Body {
    let message = Box::new(Message { version: Version::V1_3, xid, body });
    Body::BundleAdd(BundleAdd { bundle_id, flags: ATOMIC, message, properties: vec![] })
}

fn with_flags(body: Body, flags: u16) -> Body {
    match body {
        Body::BundleControl(control) => Body::BundleControl(BundleControl { flags, ..control }),
        Body::BundleAdd(add) => Body::BundleAdd(BundleAdd { flags, ..add }),
        other => other,
    }
}

/// The whole messages that the switch sends its only controller for this one.
fn tell(bench: &mut Bench, xid: u32, body: Body) -> Vec<Message> {
    let mut effects = Effects::default();
    let message = Message { version: Version::V1_3, xid, body };
    bench.switch.on_message(C0, &message, bench.now, &mut effects);
    effects.messages.into_iter().map(|(_, message)| message).collect()
}

/// Adds messages to bundle 1 with the transaction ids from 100 on. Each must be accepted.
fn fill(bench: &mut Bench, bodies: &[Body]) {
    for (xid, body) in (100..).zip(bodies) {
        assert_eq!(tell(bench, xid, adding(xid, 1, body.clone())), [], "{body:?}");
    }
}

/// The type and the code of an error, its transaction id, and the transaction id of the message in it.
fn named(message: &Message) -> ((u16, u16), u32, u32) {
    let Body::Error(error) = &message.body else { panic!("{message:?}") };
    let xid = u32::from_be_bytes(*error.data[4..].first_chunk().unwrap());
    ((error.kind, error.code), message.xid, xid)
}

fn refused(bench: &mut Bench, body: Body, expected: (u16, u16)) {
    assert_eq!(bench.refusal(body.clone()), Some(expected), "{body:?}");
}

#[test]
fn a_switch_without_bundles_knows_no_experimenter() {
    let mut bench = Bench::with(SwitchOptions { versions: V13, bundles: false, ..SwitchOptions::default() });
    refused(&mut bench, control(BUNDLE_OPEN_REQUEST, 1), (1, 3));
    refused(&mut bench, adding(42, 1, rule(1).body()), (1, 3));
}

#[test]
fn what_is_said_about_a_bundle_that_is_not_there_is_refused() {
    let mut bench = Bench::new(V13);
    for request in [BUNDLE_CLOSE_REQUEST, BUNDLE_COMMIT_REQUEST, BUNDLE_DISCARD_REQUEST] {
        refused(&mut bench, control(request, 1), BAD_ID);
    }
    for unknown in [BUNDLE_OPEN_REPLY, BUNDLE_DISCARD_REPLY, 8, u16::MAX] {
        refused(&mut bench, control(unknown, 1), BAD_TYPE);
    }
}

#[test]
fn a_wrong_request_discards_the_bundle() {
    let check = |wrong: Body, expected| {
        let mut bench = Bench::new(V13);
        bench.say(control(BUNDLE_OPEN_REQUEST, 1));
        fill(&mut bench, &[rule(1).body()]);
        if expected == CLOSED {
            bench.say(control(BUNDLE_CLOSE_REQUEST, 1));
        }
        refused(&mut bench, wrong, expected);
        refused(&mut bench, control(BUNDLE_COMMIT_REQUEST, 1), BAD_ID);
        assert_eq!(bench.switch.flow_count(), 0);
    };
    check(control(BUNDLE_OPEN_REQUEST, 1), BAD_ID);
    check(control(BUNDLE_CLOSE_REQUEST, 1), CLOSED);
    check(adding(42, 1, rule(2).body()), CLOSED);
    check(with_flags(control(BUNDLE_CLOSE_REQUEST, 1), 0), BAD_FLAGS);
    check(with_flags(control(BUNDLE_COMMIT_REQUEST, 1), BUNDLE_ORDERED), BAD_FLAGS);
    check(with_flags(adding(42, 1, rule(2).body()), BUNDLE_ATOMIC), BAD_FLAGS);
}

#[test]
fn flags_that_do_not_exist_and_messages_that_change_no_rule_are_refused() {
    let mut bench = Bench::new(V13);
    refused(&mut bench, with_flags(control(BUNDLE_OPEN_REQUEST, 1), 4), BAD_FLAGS);
    let others = [Body::BarrierRequest, Body::EchoRequest(vec![]), Body::FeaturesRequest];
    for body in others.into_iter().chain([packet_out(PortNo::CONTROLLER, &[], ping())]) {
        refused(&mut bench, adding(42, 1, body), UNSUPPORTED);
    }
    refused(&mut bench, control(BUNDLE_COMMIT_REQUEST, 1), BAD_ID);
}

#[test]
fn there_are_so_many_bundles_and_so_many_messages_in_one() {
    let mut bench = Bench::new(V13);
    for bundle_id in 0..16 {
        assert!(matches!(&bench.say(control(BUNDLE_OPEN_REQUEST, bundle_id))[..], [Body::BundleControl(_)]));
    }
    refused(&mut bench, control(BUNDLE_OPEN_REQUEST, 16), OUT_OF_BUNDLES);
    refused(&mut bench, adding(42, 17, rule(1).body()), OUT_OF_BUNDLES);
    bench.say(control(BUNDLE_DISCARD_REQUEST, 3));
    assert_eq!(bench.refusal(control(BUNDLE_OPEN_REQUEST, 16)), None);
    for priority in 0..4096 {
        assert_eq!(bench.say(adding(42, 1, rule(priority).body())), []);
    }
    refused(&mut bench, adding(42, 1, rule(5000).body()), TOO_MANY);
    assert_eq!(bench.refusal(control(BUNDLE_COMMIT_REQUEST, 1)), None);
    assert_eq!(bench.switch.flow_count(), 4096);
}

#[test]
fn a_forgotten_bundle_is_discarded_and_its_opening_is_named() {
    let mut bench = Bench::new(V13);
    tell(&mut bench, 7, control(BUNDLE_OPEN_REQUEST, 1));
    bench.now += Duration::from_secs(6);
    fill(&mut bench, &[rule(1).body()]);
    assert_eq!(bench.switch.next_due(), Some(bench.now + Duration::from_secs(10)));
    assert_eq!(bench.pass(9), []);
    bench.now += Duration::from_secs(1);
    let mut effects = Effects::default();
    bench.switch.on_tick(bench.now, &mut effects);
    let told: Vec<_> = effects.messages.iter().map(|(_, message)| named(message)).collect();
    assert_eq!(told, [(TIMEOUT, 7, 7)]);
    assert_eq!(bench.switch.next_due(), None);
    refused(&mut bench, control(BUNDLE_COMMIT_REQUEST, 1), BAD_ID);
}

#[test]
fn a_bundle_is_of_its_connection() {
    let mut bench = Bench::new(V13);
    bench.join(1, Version::V1_3);
    bench.say(control(BUNDLE_OPEN_REQUEST, 1));
    fill(&mut bench, &[rule(1).body()]);
    let told = bench.say_as(1, control(BUNDLE_COMMIT_REQUEST, 1));
    assert!(matches!(&told[..], [(1, Body::Error(error))] if (error.kind, error.code) == BAD_ID), "{told:?}");
    bench.switch.on_disconnected(C0);
    bench.join(0, Version::V1_3);
    refused(&mut bench, control(BUNDLE_COMMIT_REQUEST, 1), BAD_ID);
}

#[test]
fn a_slave_has_no_bundles() {
    let mut bench = Bench::new(V13);
    bench.say(Body::RoleRequest(Role { role: ROLE_SLAVE, generation_id: 1 }));
    refused(&mut bench, control(BUNDLE_OPEN_REQUEST, 1), (1, 10));
    refused(&mut bench, adding(42, 1, rule(1).body()), (1, 10));
}

#[test]
fn each_request_is_answered_and_nothing_is_done_before_the_commit() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).output("2")]);
    let step = |bench: &mut Bench, request: u16, left_by: &str| {
        let expected = Message { version: Version::V1_3, xid: 9, body: control(request + 1, 1) };
        assert_eq!(tell(bench, 9, control(request, 1)), [expected]);
        assert_eq!(bench.arrive(1, &ping()).0, left_by);
    };
    step(&mut bench, BUNDLE_OPEN_REQUEST, "2");
    fill(&mut bench, &[rule(1).output("3").body(), rule(5).output("4").body()]);
    step(&mut bench, BUNDLE_CLOSE_REQUEST, "2");
    step(&mut bench, BUNDLE_COMMIT_REQUEST, "4");
    assert_eq!(bench.switch.flow_count(), 2);
    step(&mut bench, BUNDLE_OPEN_REQUEST, "4");
    fill(&mut bench, &[rule(9).output("1").body()]);
    step(&mut bench, BUNDLE_DISCARD_REQUEST, "4");
}

#[test]
fn a_bundle_can_be_opened_by_its_first_message_and_committed_without_being_closed() {
    let mut bench = Bench::new(V13);
    fill(&mut bench, &[rule(1).output("2").body()]);
    assert_eq!(bench.refusal(control(BUNDLE_COMMIT_REQUEST, 1)), None);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
}

#[test]
fn a_message_that_fails_is_named_and_nothing_is_changed() {
    let mut bench = Bench::new(V13);
    let group = |command| {
        Body::GroupMod(GroupMod { command, group_type: GROUP_TYPE_ALL, group_id: 1, buckets: vec![] })
    };
    bench.add(&[rule(1).output("2"), rule(2).table(3).flags(FLOW_MOD_SEND_FLOW_REMOVED)]);
    bench.say(group(0));
    let port = bench.ports()[0].clone();
    let port_mod = PortMod {
        port_no: port.port_no,
        hw_addr: port.hw_addr,
        config: PORT_CONFIG_DOWN,
        mask: PORT_CONFIG_DOWN,
        advertise: 0,
    };
    bench.say(control(BUNDLE_OPEN_REQUEST, 1));
    fill(
        &mut bench,
        &[
            rule(1).output("3").body(),
            rule(0).table(TABLE_ALL).command(FLOW_DELETE).body(),
            group(2),
            Body::PortMod(port_mod),
            rule(1).apply(&[Action::Group(1)]).body(),
            rule(1).output("4").body(),
        ],
    );
    let told: Vec<_> = tell(&mut bench, 9, control(BUNDLE_COMMIT_REQUEST, 1)).iter().map(named).collect();
    // The group is gone by then: OFPBAC_BAD_OUT_GROUP for the fifth message.
    assert_eq!(told, [((2, 9), 104, 104), (FAILED, 9, 9)]);
    assert_eq!((bench.switch.flow_count(), bench.ports()[0].clone()), (2, port));
    assert_eq!(bench.arrive(1, &ping()).0, "2");
    assert_eq!(bench.refusal(group(1)), None, "the group is still there");
    refused(&mut bench, control(BUNDLE_COMMIT_REQUEST, 1), BAD_ID);
}

#[test]
fn a_packet_that_waits_for_a_rule_goes_when_all_rules_are_there() {
    let options = SwitchOptions { versions: V13, n_buffers: 4, ..SwitchOptions::default() };
    let mut bench = Bench::with(options);
    bench.add(&[rule(0).output("CONTROLLER")]);
    let (_, packet_ins) = bench.arrive(1, &ping());
    let buffer_id = packet_ins[0].buffer_id;
    assert_ne!(buffer_id, NO_BUFFER);
    bench.say(control(BUNDLE_OPEN_REQUEST, 1));
    fill(&mut bench, &[rule(5).output("2").buffer(buffer_id).body(), rule(6).output("3").body()]);
    bench.say(control(BUNDLE_COMMIT_REQUEST, 1));
    assert_eq!(bench.left_by(), "3");
}

/// A small generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let it = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let it = (it ^ it >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (it ^ it >> 31) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A message that changes rules, groups or meters; now and then one that a switch refuses.
fn any_change(random: &mut Random) -> Body {
    match random.below(10) {
        0 => {
            let (command, group_id) = (random.below(3) as u16, random.below(3) as u32);
            let buckets = vec![Bucket {
                weight: 0,
                watch_port: PortNo::ANY,
                watch_group: GROUP_ANY,
                actions: vec![output("2")],
            }];
            let buckets = if command == 2 { vec![] } else { buckets };
            Body::GroupMod(GroupMod { command, group_type: GROUP_TYPE_ALL, group_id, buckets })
        }
        1 => {
            let (command, meter_id) = (random.below(3) as u16, 1 + random.below(3) as u32);
            let band = MeterBand { rate: 1, burst_size: 1, kind: MeterBandKind::Drop };
            let bands = if command == 2 { vec![] } else { vec![band] };
            Body::MeterMod(MeterMod { command, flags: 1, meter_id, bands })
        }
        _ => any_flow_mod(random).body(),
    }
}

fn any_flow_mod(random: &mut Random) -> Rule {
    let mut it = rule(random.below(3) as u16).cookie(random.below(3)).table(random.below(2) as u8);
    if random.chance(60) {
        it = it.on(Field::InPort, PortNo(1 + random.below(3) as u32));
    }
    if random.chance(40) {
        it = it.on(Field::EthDst, H1);
    }
    let command =
        [FLOW_ADD, FLOW_ADD, FLOW_ADD, FLOW_MODIFY, FLOW_MODIFY_STRICT, FLOW_DELETE, FLOW_DELETE_STRICT]
            [random.below(7) as usize];
    it = it.command(command).flags(if random.chance(50) { FLOW_MOD_SEND_FLOW_REMOVED } else { 0 });
    if random.chance(8) && command >= FLOW_DELETE {
        it = it.table(TABLE_ALL);
    }
    if random.chance(6) {
        it = it.flags(FLOW_MOD_CHECK_OVERLAP);
    }
    match random.below(12) {
        0 => it.apply(&[Action::Group(random.below(3) as u32)]),
        1 => it.then(flow::Instruction::Meter(1 + random.below(3) as u32)),
        2 if random.chance(20) => it.table(99),
        _ => it.output(["1", "2", "3"][random.below(3) as usize]),
    }
}

/// All that a controller can ask: rules with their counters, groups, meters.
fn state(bench: &mut Bench) -> (Vec<FlowStats>, Vec<ReplyBody>) {
    let others = [RequestBody::GroupDesc, RequestBody::Group(GROUP_ALL), RequestBody::MeterConfig(METER_ALL)];
    (bench.flows(every_rule()), others.map(|request| bench.ask(request)).into())
}

#[test]
fn a_bundle_does_what_its_messages_do_one_by_one_or_nothing() {
    let (mut committed, mut failed) = (0, 0);
    for seed in 0..400 {
        let mut random = Random(seed);
        // Few entries, so that tables are full now and then.
        let options =
            || SwitchOptions { versions: V13, n_tables: 2, max_entries: 12, ..SwitchOptions::default() };
        let (mut bundled, mut one_by_one) = (Bench::with(options()), Bench::with(options()));
        for _ in 0..8 {
            for _ in 0..random.below(4) {
                let body = any_change(&mut random);
                assert_eq!(bundled.say(body.clone()), one_by_one.say(body), "seed {seed}");
            }
            for _ in 0..random.below(6) {
                let port = 1 + random.below(3) as u32;
                assert_eq!(bundled.arrive(port, &ping()), one_by_one.arrive(port, &ping()), "seed {seed}");
            }
            let before = state(&mut bundled);
            let mut copy = Bench::with(options());
            (copy.switch, copy.now) = (one_by_one.switch.clone(), one_by_one.now);
            let bodies: Vec<Body> = (0..1 + random.below(6)).map(|_| any_change(&mut random)).collect();
            bundled.say(control(BUNDLE_OPEN_REQUEST, 1));
            fill(&mut bundled, &bodies);
            let told = tell(&mut bundled, 9, control(BUNDLE_COMMIT_REQUEST, 1));
            let mut alone: Vec<Message> = Vec::new();
            for (xid, body) in (100..).zip(&bodies) {
                alone.extend(tell(&mut copy, xid, body.clone()));
                if matches!(alone.last(), Some(Message { body: Body::Error(_), .. })) {
                    break;
                }
            }
            match alone.last() {
                Some(refusal @ Message { body: Body::Error(_), .. }) => {
                    failed += 1;
                    assert_eq!((&told[0], told.len()), (refusal, 2), "seed {seed}: {bodies:?}");
                    assert_eq!(named(&told[1]), (FAILED, 9, 9), "seed {seed}");
                    assert_eq!(state(&mut bundled), before, "seed {seed}: {bodies:?}");
                }
                _ => {
                    committed += 1;
                    let (answer, effects) = told.split_last().unwrap();
                    assert_eq!(effects, alone, "seed {seed}: {bodies:?}");
                    assert_eq!(answer.body, control(BUNDLE_COMMIT_REPLY, 1), "seed {seed}");
                    for (xid, body) in (100..).zip(&bodies) {
                        tell(&mut one_by_one, xid, body.clone());
                    }
                }
            }
            assert_eq!(state(&mut bundled), state(&mut one_by_one), "seed {seed}: {bodies:?}");
            let pause = random.below(3);
            assert_eq!(bundled.pass(pause), one_by_one.pass(pause), "seed {seed}");
        }
    }
    assert!(committed > 500 && failed > 500, "{committed} committed, {failed} failed");
}
