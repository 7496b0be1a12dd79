//! Bundles: what a switch is told, and what its answers mean for the app. The last test is a switch that answers anything in any order.

use super::*;
use crate::bundles::FIRST_ANSWER_MS;
use abi::command;
use flow::ErrorCode;

const V13: Version = Version::V1_3;
const OTHER: ZoneId = ZoneId(4);
const ATOMIC: u16 = BUNDLE_ATOMIC | BUNDLE_ORDERED;

fn flow_mod(priority: u16) -> What<'static> {
    What::FlowMod(command::FlowMod { priority, cookie: ZONE.stamp(priority.into()), ..command::FlowMod::ADD })
}

/// A bundle of flow mods with the priorities from 1 on.
fn send_for(bench: &mut Bench, zone: ZoneId, ticket: u64, count: u16) -> Result<(), Refused> {
    let command = |what| Command { datapath: DATAPATH, ticket: 0, wants_receipt: false, what };
    let flow_mods: Vec<Command<'_>> = (1..=count).map(|priority| command(flow_mod(priority))).collect();
    let tag = Tag { zone, generation: 0, ticket };
    bench.turn(|session, turn| session.send_bundle(&flow_mods, tag, true, 0, turn))
}

fn send(bench: &mut Bench, ticket: u64, count: u16) {
    assert_eq!(send_for(bench, ZONE, ticket, count), Ok(()));
}

/// The messages to the switch as words: what about which bundle, with the transaction ids.
fn said(bench: &mut Bench) -> (Vec<String>, Vec<u32>) {
    let messages = bench.said_whole();
    let words = |message: &Message| match &message.body {
        Body::BundleControl(it) => {
            assert_eq!((it.flags, &it.properties[..]), (ATOMIC, &[][..]));
            let names = ["open", "?", "close", "?", "commit", "?", "discard", "?"];
            format!("{} {}", names[usize::from(it.control)], it.bundle_id)
        }
        Body::BundleAdd(it) => {
            let Body::FlowMod(flow_mod) = &it.message.body else { panic!("{it:?}") };
            assert_eq!((it.flags, flow_mod.cookie), (ATOMIC, ZONE.stamp(flow_mod.priority.into())));
            format!("add {} {}", it.bundle_id, flow_mod.priority)
        }
        other => panic!("{other:?}"),
    };
    (messages.iter().map(words).collect(), messages.iter().map(|message| message.xid).collect())
}

fn reply(bench: &mut Bench, control: u16, bundle_id: u32) {
    let reply = BundleControl { bundle_id, control, flags: ATOMIC, properties: vec![] };
    bench.hear_as(V13, 1, Body::BundleControl(reply)).unwrap();
}

fn refuse(bench: &mut Bench, xid: u32, error: ErrorCode) {
    let experimenter = openflow::error::experimenter_of(error);
    let error = ErrorMessage { kind: error.kind, code: error.code, experimenter, data: vec![] };
    bench.hear_as(V13, xid, Body::Error(error)).unwrap();
}

const TABLE_FULL: ErrorCode = ErrorCode { kind: 5, code: 1 };
const BAD_EXPERIMENTER: ErrorCode = ErrorCode { kind: 1, code: 3 };
const FAILED: ErrorCode = openflow::error::bundle_failed(13);

/// What the only receipt says, and how many bundles are over.
fn outcome(bench: &mut Bench) -> (u64, Outcome, ErrorCode, String, usize) {
    assert_eq!(bench.to_zones.len(), 1, "{:?}", bench.to_zones);
    let told = bench.told(0, |event| match event {
        Event::Receipt(_, it) => (it.ticket, it.outcome, it.error, it.reason.to_owned()),
        other => panic!("{other:?}"),
    });
    bench.to_zones.clear();
    (told.0, told.1, told.2, told.3, std::mem::take(&mut bench.bundles_over))
}

/// A session whose switch has opened a bundle already.
fn known() -> Bench {
    let mut bench = Bench::up(V13);
    send(&mut bench, 1, 1);
    reply(&mut bench, BUNDLE_OPEN_REPLY, 1);
    reply(&mut bench, BUNDLE_CLOSE_REPLY, 1);
    reply(&mut bench, BUNDLE_COMMIT_REPLY, 1);
    assert_eq!(
        outcome(&mut bench),
        (1, Outcome::Programmed, ErrorCode { kind: 0, code: 0 }, String::new(), 1)
    );
    bench.said();
    bench
}

#[test]
fn a_switch_of_1_0_gets_no_bundle() {
    let mut bench = Bench::up(Version::V1_0);
    let refused = send_for(&mut bench, ZONE, 1, 1).unwrap_err();
    assert!(matches!(&refused, Refused::NoBundles(_)), "{refused:?}");
    assert_eq!((refused.as_error(), bench.said()), (Some(BAD_EXPERIMENTER), vec![]));
}

#[test]
fn a_switch_is_not_asked_before_an_app_wants_a_bundle_and_gets_one_unknown_message() {
    let mut bench = Bench::up(V13);
    bench.tick(1_000).unwrap();
    assert_eq!(bench.said(), []);
    send(&mut bench, 7, 3);
    let (words, xids) = said(&mut bench);
    assert_eq!(words, ["open 1"]);
    refuse(&mut bench, xids[0], BAD_EXPERIMENTER);
    let (ticket, result, error, reason, over) = outcome(&mut bench);
    assert_eq!((ticket, result, error, over), (7, Outcome::Refused, BAD_EXPERIMENTER, 1));
    assert!(reason.contains("OFPBRC_BAD_EXPERIMENTER"), "{reason}");
    assert!(matches!(send_for(&mut bench, ZONE, 8, 3), Err(Refused::NoBundles(_))));
    assert_eq!(bench.said(), []);
}

#[test]
fn a_switch_that_cannot_be_atomic_has_no_bundles() {
    let mut bench = Bench::up(V13);
    send(&mut bench, 7, 3);
    let (_, xids) = said(&mut bench);
    refuse(&mut bench, xids[0], openflow::error::bundle_failed(7));
    assert_eq!(outcome(&mut bench).1, Outcome::Refused);
    assert!(matches!(send_for(&mut bench, ZONE, 8, 3), Err(Refused::NoBundles(_))));
}

#[test]
fn another_error_for_the_first_bundle_says_nothing_of_the_next() {
    let mut bench = Bench::up(V13);
    send(&mut bench, 7, 3);
    let (_, xids) = said(&mut bench);
    // OFPBFC_OUT_OF_BUNDLES.
    refuse(&mut bench, xids[0], openflow::error::bundle_failed(5));
    assert_eq!(outcome(&mut bench).1, Outcome::Failed);
    send(&mut bench, 8, 3);
    assert_eq!(said(&mut bench).0, ["open 2"]);
}

#[test]
fn a_switch_that_says_nothing_has_no_bundles() {
    let mut bench = Bench::up(V13);
    send(&mut bench, 7, 3);
    bench.tick(FIRST_ANSWER_MS - 1).unwrap();
    assert!(bench.to_zones.is_empty());
    bench.tick(FIRST_ANSWER_MS).unwrap();
    let (ticket, result, error, _, over) = outcome(&mut bench);
    assert_eq!((ticket, result, error, over), (7, Outcome::Refused, BAD_EXPERIMENTER, 1));
    // Its answer comes after all.
    bench.said();
    reply(&mut bench, BUNDLE_OPEN_REPLY, 1);
    assert_eq!((bench.said(), bench.to_zones.len()), (vec![], 0));
}

#[test]
fn the_first_bundle_waits_until_the_switch_has_opened_it_and_the_next_does_not() {
    let mut bench = Bench::up(V13);
    send(&mut bench, 1, 2);
    let (words, first) = said(&mut bench);
    assert_eq!(words, ["open 1"]);
    reply(&mut bench, BUNDLE_OPEN_REPLY, 1);
    let (words, xids) = said(&mut bench);
    assert_eq!(words, ["add 1 1", "add 1 2", "close 1"]);
    assert_eq!(xids, [first[0] + 1, first[0] + 2, first[0] + 3]);
    reply(&mut bench, BUNDLE_CLOSE_REPLY, 1);
    assert_eq!(said(&mut bench).0, ["commit 1"]);
    assert!(bench.to_zones.is_empty(), "nothing is told before the switch has applied it");
    reply(&mut bench, BUNDLE_COMMIT_REPLY, 1);
    assert_eq!(outcome(&mut bench).1, Outcome::Programmed);
    send(&mut bench, 2, 2);
    assert_eq!(said(&mut bench).0, ["open 2", "add 2 1", "add 2 2", "close 2"]);
    reply(&mut bench, BUNDLE_OPEN_REPLY, 2);
    reply(&mut bench, BUNDLE_CLOSE_REPLY, 2);
    assert_eq!(said(&mut bench).0, ["commit 2"]);
    assert_eq!(bench.session.counters().flow_mods, 4);
}

#[test]
fn a_flow_mod_that_the_switch_refuses_before_the_commit_is_named_and_nothing_is_committed() {
    let mut bench = known();
    send(&mut bench, 9, 3);
    let (_, xids) = said(&mut bench);
    refuse(&mut bench, xids[2], TABLE_FULL);
    refuse(&mut bench, xids[3], BAD_EXPERIMENTER);
    assert!(bench.to_zones.is_empty(), "the switch may say more about it");
    reply(&mut bench, BUNDLE_CLOSE_REPLY, 2);
    assert_eq!(said(&mut bench).0, ["discard 2"]);
    let (ticket, result, error, reason, over) = outcome(&mut bench);
    assert_eq!((ticket, result, error, over), (9, Outcome::Failed, TABLE_FULL, 1));
    assert_eq!(reason, "flow mod 2 of 3 in the bundle: OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL");
    reply(&mut bench, BUNDLE_DISCARD_REPLY, 2);
    assert_eq!((bench.said(), bench.to_zones.len()), (vec![], 0));
}

#[test]
fn a_flow_mod_that_fails_in_the_commit_is_named() {
    let mut bench = known();
    send(&mut bench, 9, 3);
    let (_, xids) = said(&mut bench);
    reply(&mut bench, BUNDLE_CLOSE_REPLY, 2);
    let (_, commit) = said(&mut bench);
    refuse(&mut bench, xids[3], TABLE_FULL);
    assert!(bench.to_zones.is_empty());
    refuse(&mut bench, commit[0], FAILED);
    let (ticket, result, error, reason, over) = outcome(&mut bench);
    assert_eq!((ticket, result, error, over), (9, Outcome::Failed, TABLE_FULL, 1));
    assert!(reason.starts_with("flow mod 3 of 3"), "{reason}");
    assert_eq!(bench.said(), []);
}

#[test]
fn a_request_about_the_bundle_that_fails_ends_it() {
    let mut bench = known();
    send(&mut bench, 9, 1);
    let (_, xids) = said(&mut bench);
    refuse(&mut bench, *xids.last().unwrap(), openflow::error::bundle_failed(4));
    let (_, result, _, reason, over) = outcome(&mut bench);
    assert_eq!((result, over), (Outcome::Failed, 1));
    assert_eq!(reason, "OFPET_BUNDLE_FAILED, OFPBFC_BUNDLE_CLOSED");
    assert_eq!(said(&mut bench).0, ["discard 2"]);
}

#[test]
fn an_app_has_one_bundle_under_way_and_a_switch_has_few() {
    let mut bench = known();
    for zone in 3..7 {
        let tag = ZoneId(zone);
        let result = bench.turn(|session, turn| {
            let flow_mod = Command { datapath: DATAPATH, ticket: 0, wants_receipt: false, what: flow_mod(1) };
            session.send_bundle(&[flow_mod], Tag { zone: tag, generation: 0, ticket: 1 }, true, 0, turn)
        });
        assert_eq!(result, Ok(()));
        assert_eq!(send_for(&mut bench, tag, 2, 1), Err(Refused::TooManyBundles));
    }
    assert_eq!(send_for(&mut bench, ZoneId(9), 1, 1), Err(Refused::TooManyBundles));
    let mut unknown = Bench::up(V13);
    send(&mut unknown, 1, 1);
    assert_eq!(send_for(&mut unknown, OTHER, 1, 1), Err(Refused::TooManyBundles));
}

#[test]
fn a_bundle_that_does_not_fit_the_output_is_refused_whole() {
    let mut bench = known();
    let for_apps = SouthboundConfig::default().max_output_bytes / 4 * 3;
    let flow_mods = [Command { datapath: DATAPATH, ticket: 0, wants_receipt: false, what: flow_mod(1) }];
    // To open and to close it take 24 bytes each, and to add an empty rule 80.
    for (waiting, expected) in [(for_apps - 127, Err(Refused::SlowReader)), (for_apps - 128, Ok(()))] {
        let tag = Tag { zone: ZONE, generation: 0, ticket: 1 };
        let sent = bench.turn(|session, turn| session.send_bundle(&flow_mods, tag, true, waiting, turn));
        assert_eq!(sent, expected);
        assert_eq!(bench.said().len(), if expected.is_ok() { 3 } else { 0 });
    }
}

#[test]
fn what_the_switch_does_not_answer_is_unknown_and_discarded_if_it_is_not_too_late() {
    let timeout_ms = SouthboundConfig::default().receipt_timeout_ms;
    let mut bench = known();
    send(&mut bench, 2, 1);
    bench.said();
    bench.session.heard(1, timeout_ms);
    bench.tick(timeout_ms).unwrap();
    assert_eq!(said(&mut bench).0, ["discard 2"]);
    assert!(matches!(outcome(&mut bench), (2, Outcome::Unknown, .., 1)));
    send(&mut bench, 3, 1);
    reply(&mut bench, BUNDLE_CLOSE_REPLY, 3);
    bench.said();
    bench.session.heard(1, 2 * timeout_ms);
    bench.tick(2 * timeout_ms).unwrap();
    assert_eq!(bench.said(), []);
    // The switch may still apply it, so it is not over for the kernel.
    assert!(matches!(outcome(&mut bench), (3, Outcome::Unknown, .., 0)));
    // As soon as the switch answers, it is.
    reply(&mut bench, BUNDLE_COMMIT_REPLY, 3);
    assert_eq!(std::mem::take(&mut bench.bundles_over), 1);
}

#[test]
fn the_end_of_the_session_leaves_the_outcome_unknown() {
    let mut bench = known();
    send(&mut bench, 5, 2);
    bench.turn(|session, turn| session.on_end("it ends", turn));
    assert!(matches!(outcome(&mut bench), (5, Outcome::Unknown, .., 0)));
}

#[test]
fn a_malformed_message_about_a_bundle_is_answered_and_those_of_other_experimenters_are_not() {
    let mut bench = known();
    let [e, x] = [ONF_EXPERIMENTER.to_be_bytes(), ONF_BUNDLE_CONTROL.to_be_bytes()];
    bench.hear_bytes(&[&header(4, 4, 20, 1)[..], &e, &x, &[0; 4]].concat()).unwrap();
    assert_eq!(bench.complained(), (1, 6));
    bench.hear_bytes(&[&header(4, 4, 16, 1)[..], &[0, 0, 0x23, 0x20], &x].concat()).unwrap();
    bench.hear_bytes(&header(4, 4, 8, 1)).unwrap();
    assert_eq!(bench.said(), []);
}

/// Whatever the switch answers, each bundle has one outcome, and is committed only if the switch has refused no part of it.
#[test]
fn a_bundle_has_one_outcome_whatever_the_switch_answers() {
    let mut state = 1_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for round in 0..2_000 {
        let mut bench = if below(2) == 0 { known() } else { Bench::up(V13) };
        let id = if bench.session.counters().flow_mods == 0 { 1 } else { 2 };
        let count = 1 + below(4) as u16;
        send(&mut bench, 9, count);
        let first_xid = said(&mut bench).1[0];
        let (mut refused, mut commits) = (false, 0);
        for _ in 0..12 {
            match below(4) {
                0 => {
                    let xid = first_xid + below(u64::from(count) + 4) as u32;
                    refused |= xid <= first_xid + u32::from(count) + 1;
                    let error = [TABLE_FULL, BAD_EXPERIMENTER, FAILED][below(3) as usize];
                    refuse(&mut bench, xid, error);
                }
                _ => reply(&mut bench, below(9) as u16, id),
            }
            let (words, _) = said(&mut bench);
            let is_committed = words.iter().any(|word| word.starts_with("commit"));
            assert!(!(is_committed && refused), "round {round}");
            commits += usize::from(is_committed);
        }
        bench.turn(|session, turn| session.on_end("it ends", turn));
        assert!(commits <= 1, "round {round}");
        let outcomes = outcomes(&mut bench);
        assert_eq!(outcomes.len(), 1, "round {round}: {outcomes:?}");
        if outcomes[0].1 == Outcome::Programmed {
            assert_eq!(commits, 1, "round {round}");
        }
    }
}
