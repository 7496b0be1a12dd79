//! What is kept of a run of Figure 3: the times of its claims and counts of frames, without each frame.
//!
//! In: what the part has seen. Out: milliseconds and counts, small enough for a report. It judges nothing.

use super::part::{Begun, Seen};
use serde::{Deserialize, Serialize};

/// Arrivals are counted in windows of this length, in seconds, from this number of windows before the first frame.
pub(super) const WINDOW_S: f64 = 0.05;
pub(super) const BEFORE: usize = 2;
const WINDOWS: usize = 11;
/// Times are kept to a thousandth of a millisecond.
const DIGITS: f64 = 1e3;

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// For each change of a rule: from the flow mod until each of the other controllers was told.
    pub rules_ms: Vec<Vec<f64>>,
    /// For each wake-up of processes that only pass it on: until it came to each of their sockets.
    #[serde(default)]
    pub bare_ms: Vec<Vec<f64>>,
    /// The first flow of each round, alone, and then the second.
    pub rounds: Vec<[Flow; 2]>,
}

/// The beginning of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Flow {
    /// From the first frame to each step. None: a step was not seen.
    pub steps_ms: Option<[f64; 5]>,
    /// From the first frame until the service of labels had computed the first label of another slice. None: it was not seen.
    #[serde(default)]
    pub label_ms: Option<f64>,
    /// From the word that makes the flow count until each of the others was told. That word is the last of the meter's and the shaper's.
    pub notices_ms: Vec<f64>,
    /// The frames of both flows that arrive in each window. None: the first frame was not seen.
    pub arrivals: Option<[Vec<u32>; 2]>,
}

impl Kept {
    pub fn of(seen: &Seen) -> Kept {
        let in_ms = |rounds: &[Vec<f64>]| {
            rounds.iter().map(|told| told.iter().map(|it| short(it * 1e3)).collect()).collect()
        };
        let rounds = seen.rounds.iter().map(|[first, second]| [Flow::of(first), Flow::of(second)]);
        Kept { rules_ms: in_ms(&seen.rules_s), bare_ms: in_ms(&seen.bare_s), rounds: rounds.collect() }
    }
}

impl Flow {
    fn of(begun: &Begun) -> Flow {
        Flow {
            steps_ms: steps_ms(begun).map(|steps| steps.map(short)),
            label_ms: label_ms(begun).map(short),
            notices_ms: after_word_ms(begun).into_iter().map(short).collect(),
            arrivals: time_of(begun, "leaves", 0.0).map(|first| {
                [0, 1].map(|flow| (0..WINDOWS).map(|it| arrived(begun, flow, first, it)).collect())
            }),
        }
    }

    /// How many frames of a flow arrive from this window on, in so many. None: that was not watched.
    pub fn arrived(&self, flow: usize, from: usize, windows: usize) -> Option<u32> {
        let counts = self.arrivals.as_ref()?[flow].get(from..from + windows)?;
        Some(counts.iter().sum())
    }
}

fn short(time_ms: f64) -> f64 {
    (time_ms * DIGITS).round() / DIGITS
}

fn arrived(begun: &Begun, flow: usize, first: f64, window: usize) -> u32 {
    let edge = |window: usize| first + (window as f64 - BEFORE as f64) * WINDOW_S;
    let within = |at: f64| at >= edge(window) && at < edge(window + 1);
    let frames = begun.events.iter().filter(|(at, what, of)| what == "arrives" && *of == flow && within(*at));
    u32::try_from(frames.count()).unwrap_or(u32::MAX)
}

fn steps_ms(begun: &Begun) -> Option<[f64; 5]> {
    let first = time_of(begun, "leaves", 0.0)?;
    let began = time_of(begun, "began", first)?;
    let rate = time_of(begun, "rate", first)?;
    let shaped = time_of(begun, "shaped", first)?;
    let told = |pick: fn(f64, f64) -> f64| begun.told_s.iter().copied().reduce(pick);
    let (first_told, last_told) = (told(f64::min)?, told(f64::max)?);
    Some([began, rate, shaped, first_told, last_told].map(|at| (at - first) * 1e3))
}

/// Labels of an earlier change are none of this flow.
fn label_ms(begun: &Begun) -> Option<f64> {
    let first = time_of(begun, "leaves", 0.0)?;
    let labels = begun.labels_s.iter().copied().filter(|at| *at >= first);
    labels.reduce(f64::min).map(|at| (at - first) * 1e3)
}

fn after_word_ms(begun: &Begun) -> Vec<f64> {
    let words = ["began", "shaped"].map(|what| time_of(begun, what, 0.0));
    let [Some(began), Some(shaped)] = words else { return Vec::new() };
    begun.told_s.iter().map(|told| (told - began.max(shaped)) * 1e3).collect()
}

/// When something was first seen of the flow that begins.
fn time_of(begun: &Begun, what: &str, from: f64) -> Option<f64> {
    let flow = begun.flow?;
    begun.events.iter().find(|(at, it, of)| it == what && *of == flow && *at >= from).map(|it| it.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> Begun {
        let event = |at: f64, what: &str, flow: usize| (at, what.to_owned(), flow);
        let mut events = vec![
            event(9.95, "arrives", 0),
            event(10.0, "leaves", 1),
            event(10.01, "began", 1),
            event(10.011, "rate", 1),
            event(10.02, "shaped", 1),
        ];
        events.extend((0..100).map(|it| event(10.2005 + f64::from(it) * 0.001, "arrives", 1)));
        let labels_s = vec![9.0, 10.0205, 10.0206];
        Begun { flow: Some(1), events, told_s: vec![10.021, 10.0250004], labels_s }
    }

    #[test]
    fn steps_count_from_the_first_frame() {
        let flow = Flow::of(&begun());
        assert_eq!(flow.steps_ms, Some([10.0, 11.0, 20.0, 21.0, 25.0]));
        assert_eq!(flow.notices_ms, [1.0, 5.0]);
        assert_eq!(flow.label_ms, Some(20.5), "the first one behind the first frame");
        assert_eq!(Flow::of(&Begun { labels_s: vec![9.0], ..begun() }).label_ms, None);
        assert_eq!(Flow::of(&Begun { told_s: Vec::new(), ..begun() }).steps_ms, None);
        assert_eq!(Flow::of(&Begun::default()), Flow::default());
    }

    #[test]
    fn frames_are_counted_in_windows() {
        let flow = Flow::of(&begun());
        assert_eq!([0, 1, 2].map(|from| flow.arrived(0, from, 1)), [Some(0), Some(1), Some(0)]);
        assert_eq!((flow.arrived(1, BEFORE + 4, 2), flow.arrived(1, BEFORE + 4, 1)), (Some(100), Some(50)));
        assert_eq!((flow.arrived(1, WINDOWS - 1, 2), Flow::default().arrived(1, 0, 1)), (None, None));
    }

    #[test]
    fn a_report_stays_small() {
        let flow = Flow::of(&Begun { told_s: vec![10.123_456_7; 99], ..begun() });
        let kept = Kept {
            rules_ms: vec![vec![12.345; 99]; 100],
            bare_ms: vec![vec![1.234; 99]; 20],
            rounds: vec![[flow.clone(), flow]; 10],
        };
        let text = serde_json::to_string_pretty(&kept).unwrap();
        assert!(text.len() < 250_000, "{}", text.len());
        assert_eq!(serde_json::from_str::<Kept>(&text).unwrap(), kept);
    }
}
