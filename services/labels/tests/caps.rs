//! Caps through the engine: rules of two slices overbook a link, and the agents of the senders are told what each flow may send.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use hose::Bandwidth;
use labels::{Effect, Engine, Word};
use labels_contract::{Entry, Hose, Report, Vnic};

/// The agents of the senders, and those of the receivers.
const AGENTS: [u32; 4] = [1, 2, 3, 4];

/// A slice with one VNIC that sends and one that receives.
fn hose(rate_bps: u64, [sender, receiver]: [(u32, Option<u32>); 2]) -> Hose {
    let vnic = |(number, agent)| Vnic { rate_bps, number: Some(number), agent };
    let vnics = [("from".to_owned(), vnic(sender)), ("to".to_owned(), vnic(receiver))];
    Hose { vnics: vnics.into(), ..Hose::default() }
}

fn report(slice: &str, number: u64, entry: Entry) -> Report {
    let (slice, reset) = (slice.to_owned(), number == 1);
    Report { slice, session: 1, number, reset, more: false, entries: vec![entry] }
}

fn path() -> Entry {
    let links = vec!["1/1-2/1".parse().unwrap()];
    Entry::Path { from: "from".to_owned(), to: "to".to_owned(), links, rules: 2 }
}

/// Red may send 8 Mbit/s, and blue 10, over one link of 10. All agents are there, and the meters see both flows.
fn scene() -> (Engine, Vec<Effect>) {
    let (mut engine, mut out) = (Engine::default(), Vec::new());
    engine.put("red", &hose(8_000_000, [(11, Some(1)), (12, Some(3))]), 0, &mut out).unwrap();
    engine.put("blue", &hose(10_000_000, [(21, Some(2)), (22, Some(4))]), 0, &mut out).unwrap();
    let link = "1/1-2/1".parse().unwrap();
    engine.on_link(link, Some(Bandwidth::from_bps(10_000_000)), 0, &mut out);
    for agent in AGENTS {
        engine.on_agent(agent, true, 0, &mut out);
    }
    for slice in ["red", "blue"] {
        engine.on_report(&report(slice, 1, path()), 5, &mut out).unwrap();
    }
    assert_eq!(caps(&mut out), [], "no meter has seen a packet");
    for (meter, shaper, from, to) in [(3, 1, 11, 12), (4, 2, 21, 22)] {
        assert!(engine.on_words(meter, &[Word::Lives(from, to)], 100, &mut out).is_empty());
        assert!(engine.on_words(shaper, &[Word::Shaped(from, to)], 110, &mut out).is_empty());
    }
    (engine, out)
}

type Told = (u32, u32, u32, Option<u64>);

fn caps(out: &mut Vec<Effect>) -> Vec<Told> {
    let cap = |effect: Effect| match effect {
        Effect::Cap { agent, from, to, rate_bps } => Some((agent, from, to, rate_bps)),
        _ => None,
    };
    let mut caps: Vec<Told> = out.drain(..).filter_map(cap).collect();
    caps.sort_unstable();
    caps
}

const BOTH: [Told; 2] = [(1, 11, 12, Some(4_444_444)), (2, 21, 22, Some(5_555_556))];

#[test]
fn the_agents_of_the_senders_get_the_shares_of_section_two() {
    let (mut engine, mut out) = scene();
    engine.on_time(200, &mut out);
    assert_eq!(caps(&mut out), BOTH);
    engine.on_time(300, &mut out);
    assert_eq!(caps(&mut out), []);
    for now_ms in [1_200, 2_200] {
        engine.on_time(now_ms, &mut out);
        assert_eq!(caps(&mut out), BOTH, "at {now_ms} ms: a cap is repeated");
    }
}

#[test]
fn caps_are_taken_back_when_a_flow_is_silent_or_moves() {
    let (mut engine, mut out) = scene();
    engine.on_time(200, &mut out);
    caps(&mut out);
    engine.on_words(4, &[Word::Silent(21, 22)], 400, &mut out);
    assert_eq!(caps(&mut out), [(1, 11, 12, None), (2, 21, 22, None)]);
    engine.on_words(4, &[Word::Lives(21, 22)], 500, &mut out);
    engine.on_time(800, &mut out);
    assert_eq!(caps(&mut out), BOTH);
    let moved = Entry::NoPath { from: "from".to_owned(), to: "to".to_owned() };
    engine.on_report(&report("red", 2, moved), 900, &mut out).unwrap();
    assert_eq!(caps(&mut out), [(1, 11, 12, None), (2, 21, 22, None)]);
    assert!(engine.next_due_ms().is_none_or(|due_ms| due_ms >= 1_000));
}

#[test]
fn a_sender_without_an_agent_is_told_nothing_and_counts() {
    let (mut engine, mut out) = (Engine::default(), Vec::new());
    engine.put("red", &hose(8_000_000, [(11, Some(1)), (12, None)]), 0, &mut out).unwrap();
    engine.put("blue", &hose(10_000_000, [(21, None), (22, None)]), 0, &mut out).unwrap();
    engine.on_link("1/1-2/1".parse().unwrap(), Some(Bandwidth::from_bps(10_000_000)), 0, &mut out);
    for slice in ["red", "blue"] {
        engine.on_report(&report(slice, 1, path()), 5, &mut out).unwrap();
    }
    engine.on_time(100, &mut out);
    assert_eq!(caps(&mut out), [BOTH[0]]);
}

/// A service that has begun at 0: red and its agents report at once, and nobody else does.
fn begun() -> (Engine, Vec<Effect>) {
    let (mut engine, mut out) = (Engine::default(), Vec::new());
    engine.begin(0);
    engine.put("red", &hose(8_000_000, [(11, Some(1)), (12, Some(3))]), 0, &mut out).unwrap();
    engine.put("blue", &hose(10_000_000, [(21, Some(2)), (22, Some(4))]), 0, &mut out).unwrap();
    engine.on_link("1/1-2/1".parse().unwrap(), Some(Bandwidth::from_bps(10_000_000)), 0, &mut out);
    begins(&mut engine, "red", (3, 1, 11, 12), 100, &mut out);
    (engine, out)
}

/// A slice reports its path, and its agents what they see and shape.
fn begins(
    engine: &mut Engine,
    slice: &str,
    (meter, shaper, from, to): (u32, u32, u32, u32),
    now_ms: u64,
    out: &mut Vec<Effect>,
) {
    [meter, shaper].into_iter().for_each(|agent| engine.on_agent(agent, true, now_ms, out));
    engine.on_report(&report(slice, 1, path()), now_ms, out).unwrap();
    assert!(engine.on_words(meter, &[Word::Lives(from, to)], now_ms, out).is_empty());
    assert!(engine.on_words(shaper, &[Word::Shaped(from, to)], now_ms, out).is_empty());
}

/// The agents that are told that they have no caps.
fn freed(out: &[Effect]) -> Vec<u32> {
    let freed = |effect: &Effect| match effect {
        Effect::NoCaps { agent } => Some(*agent),
        _ => None,
    };
    out.iter().filter_map(freed).collect()
}

#[test]
fn a_service_that_has_begun_tells_no_caps_until_all_have_reported() {
    let (mut engine, mut out) = begun();
    for now_ms in (200..5_000).step_by(100) {
        engine.on_time(now_ms, &mut out);
        assert!(freed(&out).is_empty(), "agents keep what an earlier process has told: {now_ms} ms");
    }
    begins(&mut engine, "blue", (4, 2, 21, 22), 5_000, &mut out);
    engine.on_time(5_900, &mut out);
    assert!(freed(&out).is_empty() && caps(&mut out).is_empty(), "a word may be on its way");
    assert_eq!(engine.next_due_ms(), Some(6_000));
    engine.on_time(6_000, &mut out);
    assert_eq!(freed(&out), [3, 4], "the receivers send nothing");
    assert_eq!(caps(&mut out), BOTH);
}

#[test]
fn who_does_not_report_is_waited_for_ten_seconds() {
    let (mut engine, mut out) = begun();
    engine.on_time(9_999, &mut out);
    assert!(freed(&out).is_empty());
    engine.on_time(10_000, &mut out);
    assert_eq!((freed(&out), caps(&mut out)), (vec![1, 3], Vec::new()), "red alone overbooks nothing");
    engine.on_time(11_000, &mut out);
    assert_eq!(freed(&out), [1, 3], "it is repeated");
    // Blue is there at last, and has its caps at once.
    begins(&mut engine, "blue", (4, 2, 21, 22), 11_100, &mut out);
    caps(&mut out);
    engine.on_time(11_200, &mut out);
    engine.on_time(12_000, &mut out);
    assert_eq!(caps(&mut out), BOTH);
}

#[test]
fn labels_are_stale_until_the_slice_itself_has_reported_too() {
    let (mut engine, mut out) = (Engine::default(), Vec::new());
    engine.put("red", &hose(8_000_000, [(11, None), (12, None)]), 0, &mut out).unwrap();
    engine.put("blue", &hose(10_000_000, [(21, None), (22, None)]), 0, &mut out).unwrap();
    let stale = |engine: &Engine| ["red", "blue"].map(|slice| engine.state(slice).unwrap().stale);
    engine.on_report(&report("red", 1, path()), 5, &mut out).unwrap();
    assert_eq!(stale(&engine), [true, true], "blue has not reported");
    engine.on_report(&report("blue", 1, path()), 5, &mut out).unwrap();
    assert_eq!(stale(&engine), [false, false]);
}
