//! A session whose switch is paced by a profile: what waits, what does not, and when an app is told.

use super::*;
use crate::pacer::{CommandRate, PriorityOrder};
use crate::reply_watch::ReplyDelay;
use crate::switch_pace::SwitchPace;
use abi::command::{self, StatsRequest};
use abi::prepared::{PreparedRule, RULE_LEN};
use flow::canonical::{write_instructions, write_match};
use flow::{Action, Field, Instruction, MacAddr, Match};
use std::sync::Arc;

const V13: Version = Version::V1_3;
const OTHER: ZoneId = ZoneId(4);

fn pace(programmed_after_ms: u64) -> SwitchPace {
    SwitchPace {
        profile: "hp".into(),
        rate: Some(CommandRate { milli_per_s: 8_000, burst: 1 }),
        order: PriorityOrder::AsTheyCome,
        programmed_after_ms,
        entries: None,
        replies: None,
    }
}

fn paced_by(pace: SwitchPace) -> Bench {
    let mut bench = Bench::up(V13);
    bench.session.set_pace(Some(Arc::new(pace)), 0);
    bench
}

fn paced() -> Bench {
    paced_by(pace(0))
}

fn flow_mod(priority: u16) -> What<'static> {
    What::FlowMod(command::FlowMod { priority, ..command::FlowMod::ADD })
}

/// What goes to the switch up to this time, in words: priorities of flow mods, and types of other messages.
fn gone_until(bench: &mut Bench, until_ms: u64) -> Vec<String> {
    while let Some(due_ms) = bench.session.due_ms().filter(|due_ms| *due_ms <= until_ms) {
        bench.now_ms = bench.now_ms.max(due_ms);
        bench.turn(|session, turn| session.on_time(0, turn));
    }
    bench.now_ms = until_ms;
    bench.end_turn();
    gone(bench)
}

fn gone(bench: &mut Bench) -> Vec<String> {
    let words = |body: Body| match body {
        Body::FlowMod(it) => it.priority.to_string(),
        Body::BarrierRequest => "barrier".into(),
        Body::PacketOut(it) => format!("packet-out {}", it.data.len()),
        Body::MultipartRequest(_) => "statistics".into(),
        Body::BundleControl(it) => format!("bundle {}", it.control),
        Body::BundleAdd(it) => format!("in bundle {}", it.message.xid),
        other => format!("{other:?}"),
    };
    bench.said().into_iter().map(words).collect()
}

fn send_for(bench: &mut Bench, zone: ZoneId, what: What<'_>, ticket: u64) -> Result<(), Refused> {
    let command = Command { datapath: DATAPATH, ticket, wants_receipt: true, what };
    bench.turn(|session, turn| {
        session.send(&command, zone.stamp(ticket), Tag { zone, generation: 0, ticket }, 0, turn)
    })
}

/// Ticket and outcome of all receipts.
fn receipts(bench: &Bench) -> Vec<(u64, Outcome)> {
    let read = |frame: &Vec<u8>| match Event::read(&Frame::read(frame).unwrap()).unwrap() {
        Event::Receipt(_, receipt) => (receipt.ticket, receipt.outcome),
        other => panic!("{other:?}"),
    };
    bench.to_zones.iter().map(|(_, frame)| read(frame)).collect()
}

#[test]
fn flow_mods_go_at_the_rate_and_what_is_no_change_of_rules_goes_at_once() {
    let mut bench = paced();
    for priority in 1..=4 {
        assert_eq!(bench.send(flow_mod(priority), priority.into(), false), Ok(()));
    }
    let out = command::PacketOut { buffer_id: None, in_port: PortNo(1), actions: &[], data: &[7; 60] };
    bench.send(What::PacketOut(out), 5, false).unwrap();
    bench.send(What::StatsRequest(StatsRequest { multipart: 0, body: &[] }), 6, false).unwrap();
    assert_eq!(gone(&mut bench), ["1", "packet-out 60", "statistics"]);
    assert!(bench.session.holds_commands());
    assert_eq!(gone_until(&mut bench, 124), [""; 0]);
    assert_eq!(gone_until(&mut bench, 125), ["2"]);
    assert_eq!(gone_until(&mut bench, 375), ["3", "4"]);
    assert_eq!((bench.session.holds_commands(), bench.session.due_ms()), (false, None));
    assert_eq!(bench.session.counters().flow_mods, 4);
}

#[test]
fn a_barrier_and_a_packet_out_of_a_buffer_keep_their_place_in_their_zone() {
    let mut bench = paced();
    let buffered = command::PacketOut { buffer_id: Some(9), in_port: PortNo(1), actions: &[], data: &[] };
    bench.send(flow_mod(1), 1, false).unwrap();
    bench.send(flow_mod(2), 2, false).unwrap();
    bench.send(What::Barrier, 3, true).unwrap();
    bench.send(What::PacketOut(buffered), 4, false).unwrap();
    bench.send(flow_mod(5), 5, false).unwrap();
    // The other zone does not wait.
    send_for(&mut bench, OTHER, What::Barrier, 6).unwrap();
    assert_eq!(gone(&mut bench), ["1", "barrier"]);
    assert_eq!(gone_until(&mut bench, 125), ["2", "barrier", "packet-out 0"]);
    assert_eq!(gone_until(&mut bench, 250), ["5"]);
}

#[test]
fn receipts_and_errors_find_commands_that_waited() {
    let mut bench = paced();
    for priority in 1..=3 {
        bench.send(flow_mod(priority), priority.into(), true).unwrap();
    }
    bench.end_turn();
    let mut sent = bench.said_whole();
    gone_until(&mut bench, 124);
    for at_ms in [125, 250] {
        bench.now_ms = at_ms;
        bench.turn(|session, turn| session.on_time(0, turn));
        bench.end_turn();
        sent.extend(bench.said_whole());
    }
    let xids: Vec<u32> = sent.iter().map(|message| message.xid).collect();
    assert_eq!(sent.len(), 6, "three flow mods, and a barrier after each");
    bench.hear_as(V13, xids[1], Body::BarrierReply).unwrap();
    bench.hear_as(V13, xids[2], error(5, 1)).unwrap();
    bench.hear_as(V13, xids[5], Body::BarrierReply).unwrap();
    let expected = [(1, Outcome::Programmed), (2, Outcome::Failed), (3, Outcome::Programmed)];
    assert_eq!(receipts(&bench), expected);
}

#[test]
fn programmed_waits_until_the_data_plane_has_the_rule_and_a_late_error_counts() {
    let mut bench = paced_by(SwitchPace { rate: None, ..pace(400) });
    for ticket in 1..=3 {
        bench.send(flow_mod(1), ticket, true).unwrap();
    }
    bench.end_turn();
    let sent = bench.said_whole();
    assert_eq!(sent.len(), 4, "a profile without a pace lets all go");
    bench.now_ms = 1_000;
    bench.hear_as(V13, sent[3].xid, Body::BarrierReply).unwrap();
    assert_eq!((receipts(&bench).len(), bench.session.due_ms()), (0, Some(1_400)));
    bench.hear_as(V13, sent[1].xid, error(5, 1)).unwrap();
    gone_until(&mut bench, 1_399);
    assert_eq!(receipts(&bench), [(2, Outcome::Failed)]);
    assert_eq!(bench.session.outstanding(), 2);
    gone_until(&mut bench, 1_400);
    assert_eq!(receipts(&bench)[1..], [(1, Outcome::Programmed), (3, Outcome::Programmed)]);
    assert_eq!((bench.session.outstanding(), bench.session.due_ms()), (0, None));
}

#[test]
fn the_end_of_the_session_leaves_no_command_without_its_receipt() {
    let mut bench = paced_by(pace(400));
    for ticket in 1..=5 {
        bench.send(flow_mod(1), ticket, ticket != 4).unwrap();
    }
    bench.end_turn();
    let barrier = bench.said_whole()[1].xid;
    bench.hear_as(V13, barrier, Body::BarrierReply).unwrap();
    bench.turn(|session, turn| session.on_end("gone", turn));
    assert_eq!(receipts(&bench), [1, 2, 3, 5].map(|ticket| (ticket, Outcome::Unknown)));
    assert_eq!(bench.session.due_ms(), None);
}

#[test]
fn behind_a_barrier_all_of_its_zone_waits_and_nothing_of_another() {
    let mut bench = paced();
    let out = command::PacketOut { buffer_id: None, in_port: PortNo(1), actions: &[], data: &[7; 60] };
    let question = || What::StatsRequest(StatsRequest { multipart: 3, body: &[] });
    bench.send(flow_mod(1), 1, false).unwrap();
    bench.send(flow_mod(2), 2, false).unwrap();
    bench.send(What::Barrier, 3, false).unwrap();
    bench.send(What::PacketOut(out), 4, false).unwrap();
    bench.send(question(), 5, false).unwrap();
    send_for(&mut bench, OTHER, What::PacketOut(out), 6).unwrap();
    send_for(&mut bench, OTHER, question(), 7).unwrap();
    assert_eq!(gone(&mut bench), ["1", "packet-out 60", "statistics"]);
    assert_eq!(gone_until(&mut bench, 125), ["2", "barrier", "packet-out 60", "statistics"]);
    assert_eq!((bench.session.holds_commands(), bench.session.due_ms()), (false, None));
    assert_eq!((bench.session.counters().packet_outs, bench.session.requests.waiting()), (2, 2));
}

#[test]
fn a_switch_that_made_the_node_its_slave_fails_each_command_and_the_queue_goes_on() {
    const IS_SLAVE: u16 = 10;
    let mut bench = paced();
    for ticket in 1..=3 {
        bench.send(flow_mod(1), ticket, true).unwrap();
    }
    for at_ms in [0, 125, 250] {
        bench.now_ms = at_ms;
        bench.turn(|session, turn| session.on_time(0, turn));
        bench.end_turn();
        let sent = bench.said_whole();
        bench.hear_as(V13, sent[0].xid, error(1, IS_SLAVE)).unwrap();
        bench.hear_as(V13, sent[1].xid, Body::BarrierReply).unwrap();
    }
    assert_eq!(receipts(&bench), [1, 2, 3].map(|ticket| (ticket, Outcome::Failed)));
    assert_eq!((bench.session.holds_commands(), bench.session.due_ms()), (false, None));
}

#[test]
fn the_rules_that_wait_are_known_with_their_zones() {
    let mut bench = paced();
    let rule = |table_id, command| {
        What::FlowMod(command::FlowMod { table_id, command, priority: 5, ..command::FlowMod::ADD })
    };
    bench.send(rule(0, 0), 1, false).unwrap();
    bench.send(rule(1, 0), 2, false).unwrap();
    bench.send(rule(2, 1), 3, false).unwrap();
    bench.send(rule(3, 3), 4, false).unwrap();
    send_for(&mut bench, OTHER, rule(4, 0), 5).unwrap();
    bundle(&mut bench, ZONE, 6, 2).unwrap();
    let waiting: Vec<(ZoneId, Option<u8>)> =
        bench.session.waiting_rules().map(|(zone, rule)| (zone, rule.may_add_to())).collect();
    // One went, and neither a modify nor a delete of 1.3 adds a rule.
    assert_eq!(waiting, [(ZONE, Some(1)), (OTHER, Some(4)), (ZONE, Some(0)), (ZONE, Some(0))]);
}

#[test]
fn a_switch_that_answers_later_than_its_profile_says_has_left_it() {
    let replies = ReplyDelay { earliest_us: [20_000; 5], latest_us: [30_000; 5] };
    let mut bench = paced_by(SwitchPace { replies: Some(replies), ..pace(0) });
    let barriers = |bench: &mut Bench, delay_ms: u64, count: u64| {
        for _ in 0..count {
            bench.now_ms += 200;
            bench.send(flow_mod(1), 1, true).unwrap();
            bench.end_turn();
            let sent = bench.said_whole();
            let [Body::FlowMod(_), Body::BarrierRequest] = [&sent[0].body, &sent[1].body] else {
                panic!("{sent:?}")
            };
            bench.now_ms += delay_ms;
            bench.hear_as(V13, sent[1].xid, Body::BarrierReply).unwrap();
        }
    };
    // The first has more before it than one flow mod: the handshake.
    barriers(&mut bench, 25, 129);
    assert_eq!(bench.departures, []);
    barriers(&mut bench, 90, 128);
    let [left] = bench.departures[..] else { panic!("{:?}", bench.departures) };
    assert_eq!((left.is_later, left.outside, left.observed_us), (true, 128, [90_000; 5]));
    // With another profile, the watch starts again.
    let other = SwitchPace { replies: Some(ReplyDelay { latest_us: [90_000; 5], ..replies }), ..pace(0) };
    bench.session.set_pace(Some(Arc::new(other)), bench.now_ms);
    barriers(&mut bench, 90, 300);
    assert_eq!(bench.departures.len(), 1);
}

#[test]
fn a_full_queue_refuses_with_the_time_to_wait_and_other_zones_have_room() {
    let mut bench = paced();
    let mut sent = 0;
    let refused = loop {
        match bench.send(flow_mod(1), 1, false) {
            Ok(()) => sent += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(sent, 2_045, "one went at once");
    assert_eq!(refused.as_error(), Some(abi::NO_ROOM));
    let words =
        "2044 commands wait for this switch, because its profile limits their rate; try again in 255500 ms";
    assert_eq!(refused.to_string(), words);
    assert_eq!(send_for(&mut bench, OTHER, flow_mod(1), 1), Ok(()));
    assert_eq!(bench.session.counters().refused, 1);
    let pace = bench.session.pace_snapshot().unwrap();
    assert_eq!((pace.profile.as_str(), pace.waiting, pace.wait_ms), ("hp", 2_045, 2_045 * 125));
}

#[test]
fn what_the_version_cannot_say_is_refused_before_it_waits() {
    let mut bench = Bench::up(Version::V1_0);
    bench.session.set_pace(Some(Arc::new(pace(0))), 0);
    bench.send(flow_mod(1), 1, false).unwrap();
    let other_table = command::FlowMod { table_id: 3, ..command::FlowMod::ADD };
    let refused = bench.send(What::FlowMod(other_table), 2, true).unwrap_err();
    assert!(matches!(refused, Refused::Unwritable(_)), "{refused:?}");
    assert!(!bench.session.holds_commands());
}

#[test]
fn without_a_profile_any_more_the_rest_goes_at_once_in_its_order() {
    let mut bench = paced();
    for priority in 1..=4 {
        bench.send(flow_mod(priority), 1, false).unwrap();
    }
    assert_eq!(gone(&mut bench), ["1"]);
    bench.session.set_pace(None, 0);
    assert_eq!(bench.session.pace(), None);
    // It still keeps its place.
    bench.send(flow_mod(5), 1, false).unwrap();
    assert_eq!(gone_until(&mut bench, 0), ["2", "3", "4", "5"]);
    bench.send(flow_mod(6), 1, false).unwrap();
    assert_eq!((gone(&mut bench), bench.session.due_ms()), (vec!["6".to_owned()], None));
}

/// Sends a rule of the shape for which a session keeps its message.
fn send_prepared(bench: &mut Bench, priority: u16) {
    let (mut matching, mut instructions, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let fields = Match::any()
        .with(Field::InPort, PortNo(1))
        .with(Field::EthDst, MacAddr([2, 0, 0, 0, 0, 1]))
        .with(Field::EthSrc, MacAddr([2, 0, 0, 0, 0, 2]));
    write_match(&fields, &mut matching);
    let output = Action::Output { port: PortNo(2), max_len: 0 };
    write_instructions(&[Instruction::ApplyActions(vec![output])], &mut instructions).unwrap();
    let rule = command::FlowMod {
        priority,
        matching: &matching,
        instructions: &instructions,
        ..command::FlowMod::ADD
    };
    let command = Command { datapath: DATAPATH, ticket: 1, wants_receipt: false, what: What::FlowMod(rule) };
    assert!(command::write::command(&mut bytes, &command));
    let bytes: &[u8; RULE_LEN] = bytes[..].try_into().unwrap();
    let rule = PreparedRule::of(bytes, priority.into(), ZONE.stamp(1));
    let sent = bench
        .turn(|session, turn| session.send_rule(rule, Tag { zone: ZONE, generation: 0, ticket: 1 }, 0, turn));
    assert_eq!(sent, Ok(()));
}

#[test]
fn prepared_rules_wait_too() {
    let mut bench = Bench::up(V13);
    send_prepared(&mut bench, 1);
    assert!(bench.session.template.is_some(), "without a pace, the next is a copy");
    bench.session.set_pace(Some(Arc::new(pace(0))), 0);
    (1..=3).for_each(|_| send_prepared(&mut bench, 1));
    assert!(bench.session.template.is_none());
    assert_eq!(gone(&mut bench), ["1", "1"]);
    assert_eq!(gone_until(&mut bench, 250), ["1", "1"]);
}

fn bundle(bench: &mut Bench, zone: ZoneId, ticket: u64, count: u16) -> Result<(), Refused> {
    let command = |what| Command { datapath: DATAPATH, ticket: 0, wants_receipt: false, what };
    let flow_mods: Vec<Command<'_>> = (1..=count).map(|priority| command(flow_mod(priority))).collect();
    let tag = Tag { zone, generation: 0, ticket };
    bench.turn(|session, turn| session.send_bundle(&flow_mods, tag, true, 0, turn))
}

#[test]
fn a_bundle_waits_as_a_whole_and_what_follows_waits_for_it() {
    let mut bench = paced();
    bench.send(flow_mod(9), 1, false).unwrap();
    assert_eq!(bundle(&mut bench, ZONE, 2, 4), Ok(()));
    assert_eq!(bundle(&mut bench, ZONE, 3, 1), Err(Refused::TooManyBundles));
    bench.send(flow_mod(10), 4, false).unwrap();
    assert_eq!(gone(&mut bench), ["9"]);
    // The first bundle of a session only opens, until the switch has said that it has bundles.
    assert_eq!(gone_until(&mut bench, 125), ["bundle 0"]);
    let reply = |control| {
        let flags = BUNDLE_ATOMIC | BUNDLE_ORDERED;
        Body::BundleControl(BundleControl { bundle_id: 1, control, flags, properties: vec![] })
    };
    bench.hear_as(V13, 1, reply(BUNDLE_OPEN_REPLY)).unwrap();
    let sent = gone(&mut bench);
    assert_eq!((sent.len(), sent[4].as_str()), (5, "bundle 2"), "{sent:?}");
    assert_eq!(gone_until(&mut bench, 624), [""; 0]);
    assert_eq!(gone_until(&mut bench, 625), ["10"]);
    bench.hear_as(V13, 1, reply(BUNDLE_CLOSE_REPLY)).unwrap();
    bench.hear_as(V13, 1, reply(BUNDLE_COMMIT_REPLY)).unwrap();
    assert_eq!(receipts(&bench), [(2, Outcome::Programmed)]);
}

#[test]
fn a_bundle_that_waits_while_the_switch_says_that_it_has_none_is_refused() {
    let mut bench = paced();
    bench.send(flow_mod(9), 1, false).unwrap();
    bundle(&mut bench, ZONE, 2, 2).unwrap();
    bundle(&mut bench, ZoneId(ZONE.0 + 1), 3, 2).unwrap();
    assert_eq!(gone(&mut bench), ["9"]);
    gone_until(&mut bench, 124);
    bench.now_ms = 125;
    bench.turn(|session, turn| session.on_time(0, turn));
    bench.end_turn();
    let sent = bench.said_whole();
    let is_open = |message: &&Message| matches!(&message.body, Body::BundleControl(it) if it.control == 0);
    let open = sent.iter().find(is_open).unwrap().xid;
    let error = ErrorMessage { kind: 1, code: 3, experimenter: None, data: vec![] };
    bench.hear_as(V13, open, Body::Error(error)).unwrap();
    assert_eq!(gone_until(&mut bench, 2_000), [""; 0], "the second bundle sends nothing");
    assert_eq!(receipts(&bench), [(2, Outcome::Refused), (3, Outcome::Refused)]);
}

#[test]
fn a_committed_bundle_is_programmed_when_the_data_plane_has_it() {
    let mut bench = paced_by(SwitchPace { rate: None, ..pace(400) });
    bundle(&mut bench, ZONE, 2, 1).unwrap();
    for control in [BUNDLE_OPEN_REPLY, BUNDLE_CLOSE_REPLY, BUNDLE_COMMIT_REPLY] {
        let flags = BUNDLE_ATOMIC | BUNDLE_ORDERED;
        let reply = BundleControl { bundle_id: 1, control, flags, properties: vec![] };
        bench.hear_as(V13, 1, Body::BundleControl(reply)).unwrap();
    }
    assert_eq!((receipts(&bench).len(), bench.bundles_over), (0, 1));
    gone_until(&mut bench, 400);
    assert_eq!(receipts(&bench), [(2, Outcome::Programmed)]);
}
