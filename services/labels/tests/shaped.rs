//! The order of a new flow: its meter sees it, its shaper is confirmed, and then labels of others change.
//!
//! Red sends over a link that blue sees. The agent of the receiver meters, and that of the sender shapes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use hose::Bandwidth;
use labels::{Engine, Word};
use labels_contract::{Entry, Hose, Report, Vnic};

/// The agents, and the numbers of red's VNICs among agents.
const SHAPER: u32 = 1;
const METER: u32 = 2;
const SENDER: u32 = 11;
const RECEIVER: u32 = 12;

const LIVES: Word = Word::Lives(SENDER, RECEIVER);
const SILENT: Word = Word::Silent(SENDER, RECEIVER);
const SHAPED: Word = Word::Shaped(SENDER, RECEIVER);

/// In kbit/s: the link, and what others leave while red sends.
const FREE: u64 = 10_000;
const TAKEN: u64 = 2_000;

/// How long a flow waits for its shaper.
const HOLD_MS: u64 = 200;

struct Scene {
    engine: Engine,
    now_ms: u64,
}

impl Scene {
    fn new() -> Scene {
        let mut scene = Scene { engine: Engine::default(), now_ms: 1_000 };
        let vnic = |number, agent| Vnic { rate_bps: 8_000_000, number: Some(number), agent: Some(agent) };
        let vnics = [("A".to_owned(), vnic(SENDER, SHAPER)), ("B".to_owned(), vnic(RECEIVER, METER))];
        let red = Hose { vnics: vnics.into(), ..Hose::default() };
        let link: view::LinkId = "1/1-2/1".parse().unwrap();
        let mut out = Vec::new();
        scene.engine.put("red", &red, 0, &mut out).unwrap();
        scene.engine.put("blue", &Hose::default(), 0, &mut out).unwrap();
        scene.engine.on_link(link, Some(Bandwidth::from_kbps(FREE)), 0, &mut out);
        scene.agent(METER, true);
        scene.agent(SHAPER, true);
        let path = Entry::Path { from: "A".to_owned(), to: "B".to_owned(), links: vec![link], rules: 2 };
        for (slice, entry) in [("red", path), ("blue", Entry::Link { link })] {
            let (slice, entries) = (slice.to_owned(), vec![entry]);
            let report = Report { slice, session: 1, number: 1, reset: true, more: false, entries };
            scene.engine.on_report(&report, 0, &mut out).unwrap();
        }
        scene
    }

    fn agent(&mut self, agent: u32, is_there: bool) {
        self.engine.on_agent(agent, is_there, self.now_ms, &mut Vec::new());
    }

    fn says(&mut self, agent: u32, word: Word) {
        assert_eq!(self.engine.on_words(agent, &[word], self.now_ms, &mut Vec::new()), [], "{word:?}");
    }

    /// The label of blue is this so long after the last word.
    fn check(&mut self, after_ms: u64, label_kbps: u64, why: &str) {
        self.now_ms += after_ms;
        self.engine.on_time(self.now_ms, &mut Vec::new());
        let labels = self.engine.labels("blue").unwrap();
        assert_eq!(labels.iter().map(|label| label.label_kbps).collect::<Vec<_>>(), [label_kbps], "{why}");
    }
}

#[test]
fn a_label_changes_when_the_shaper_is_confirmed_and_not_before() {
    let mut scene = Scene::new();
    scene.check(0, FREE, "no meter has seen a packet");
    scene.says(METER, LIVES);
    scene.check(0, FREE, "the sender is not shaped yet");
    scene.check(HOLD_MS - 1, FREE, "there is time for the shaper");
    scene.says(SHAPER, SHAPED);
    scene.check(0, TAKEN, "it is shaped");
}

#[test]
fn a_label_changes_without_a_shaper_when_its_time_is_over() {
    let mut scene = Scene::new();
    scene.says(METER, LIVES);
    assert!(scene.engine.next_due_ms().is_some_and(|due_ms| due_ms <= scene.now_ms + HOLD_MS));
    scene.check(HOLD_MS - 1, FREE, "the time is not over");
    // What the meter says again begins no new time.
    scene.says(METER, LIVES);
    scene.check(0, FREE, "the time is not over");
    scene.check(1, TAKEN, "the shaper says nothing");
}

#[test]
fn a_flow_waits_for_its_shaper_once() {
    let mut scene = Scene::new();
    scene.says(METER, LIVES);
    scene.says(SHAPER, SHAPED);
    scene.check(0, TAKEN, "it is shaped");
    scene.says(METER, SILENT);
    scene.check(0, FREE, "the flow is over");
    scene.says(METER, LIVES);
    scene.check(0, TAKEN, "the shaper has had a class for it");
    // A flow that went on without its shaper does not wait while it lives.
    let mut scene = Scene::new();
    scene.says(METER, LIVES);
    scene.check(HOLD_MS, TAKEN, "the time is over");
    scene.says(METER, LIVES);
    scene.check(0, TAKEN, "it counts already");
}

#[test]
fn a_flow_waits_for_no_agent_that_is_away_and_its_end_ends_the_wait() {
    let mut scene = Scene::new();
    scene.agent(SHAPER, false);
    scene.says(METER, LIVES);
    scene.check(0, TAKEN, "nobody shapes the sender");
    let mut scene = Scene::new();
    scene.says(METER, LIVES);
    scene.says(METER, SILENT);
    scene.check(2 * HOLD_MS, FREE, "it was over before its time was");
    scene.says(METER, LIVES);
    scene.says(METER, Word::Reset);
    scene.check(2 * HOLD_MS, FREE, "the meter took it back");
}
