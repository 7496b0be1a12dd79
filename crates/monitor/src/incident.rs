//! An incident: what went wrong, the probable cause, and the evidence.
//!
//! In: facts about an end or a fault. Out: a value that is stored as JSON and shown to the operator. Nothing here decides,
//! reads or writes.

use serde::{Deserialize, Serialize};
use zone::Sample;

use crate::app::{REASON_BYTES_MAX, legible};
use crate::protocol::{FaultCause, ReplyDelay};
use crate::supervisor::ProcessEnd;

/// The largest number of output lines in an incident: a panic with a short backtrace.
pub const LAST_LINES_MAX: usize = 40;

/// The largest number of earlier facts in an incident; older ones are dropped.
pub const FACTS_MAX: usize = 64;

/// The longest fact, in bytes; longer ones are cut.
pub(crate) const FACT_BYTES_MAX: usize = 400;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentKind {
    /// The process of an app ended unexpectedly.
    AppEnded,
    /// The zone was ended for a fault of its app: it stopped reading, broke the protocol of its port, sent a malformed command or exceeded a
    /// limit. The reason says which.
    ZoneFault,
    /// A trusted app failed, and lost its trust.
    Demoted,
    /// An app is stopped until the operator restarts it.
    Quarantined,
    /// The verification of an app's package failed: the app was not started, or was stopped.
    Refused,
    /// The kernel process ended unexpectedly.
    KernelEnded,
    /// The whole node restarted.
    NodeRestarted,
    /// The node runs only services and essential apps.
    SafeMode,
    /// The node ended unexpectedly.
    ProcessError,
    /// A switch answers otherwise than its profile says.
    SwitchLeftProfile,
}

impl IncidentKind {
    /// The kind as text.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            IncidentKind::AppEnded => "ended",
            IncidentKind::ZoneFault => "ended for a fault",
            IncidentKind::Demoted => "demoted",
            IncidentKind::Quarantined => "quarantined",
            IncidentKind::Refused => "package refused",
            IncidentKind::KernelEnded => "ended",
            IncidentKind::NodeRestarted => "restarted",
            IncidentKind::SafeMode => "safe mode",
            IncidentKind::ProcessError => "gave up",
            IncidentKind::SwitchLeftProfile => "switch left its profile",
        }
    }
}

/// The probable cause, and the reason for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The app that caused it, if one is known.
    pub culprit: Option<String>,
    /// A sentence.
    pub sentence: String,
}

impl Finding {
    /// Whose doing a fault of an app's zone is, and how the node knows it.
    pub(crate) fn of_fault(app: &str, cause: FaultCause) -> Finding {
        let known = match cause {
            FaultCause::StoppedReading => {
                "the kernel waits for it to read its events, and must not drop them"
            }
            FaultCause::BrokePort => "the kernel checked what it wrote into its port",
            FaultCause::SentGarbage => "the kernel checked the commands that it sent",
            FaultCause::WrongMessage => "the monitor checked the messages that it sent",
            FaultCause::PassedLimit => "the monitor measured what its process uses",
            FaultCause::NotAttached => {
                let sentence = "the kernel process could not connect the app; no app is the cause".to_owned();
                return Finding { culprit: None, sentence };
            }
        };
        Finding { culprit: Some(app.to_owned()), sentence: format!("{app} itself: {known}") }
    }
}

/// An earlier log line of the monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// When, in milliseconds since the Unix epoch.
    pub unix_ms: u64,
    /// The text, as in the log.
    pub line: String,
}

/// The evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// The code with which the process exited.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// It left a core dump.
    pub core_dumped: bool,
    /// The trusted apps that the kernel process was calling when it ended.
    pub called: Vec<String>,
    /// The last lines that the process printed; at most [`LAST_LINES_MAX`].
    pub last_lines: Vec<String>,
    /// The events on the node before, oldest first; at most [`FACTS_MAX`].
    pub facts: Vec<Fact>,
    /// The app's usage before, oldest first; at most [`zone::usage::HISTORY_SAMPLES_MAX`].
    pub samples: Vec<Sample>,
    /// The delays of a switch beside those of its profile, by quantile; at most [`REPLY_DELAYS_MAX`](crate::protocol::REPLY_DELAYS_MAX).
    pub delays: Vec<ReplyDelay>,
}

impl Evidence {
    pub(crate) fn of(end: Option<ProcessEnd>) -> Evidence {
        match end {
            Some(ProcessEnd::Code(code)) => Evidence { exit_code: Some(code), ..Evidence::default() },
            Some(ProcessEnd::Signal { number, core_dumped }) => {
                Evidence { signal: Some(number), core_dumped, ..Evidence::default() }
            }
            None => Evidence::default(),
        }
    }

    /// The line with the error: the message of a panic in Rust, the last line of a traceback in Python.
    pub fn exception(&self) -> Option<&str> {
        let mut found = None;
        let mut lines = self.last_lines.iter().map(String::as_str);
        while let Some(line) = lines.next() {
            if line.contains("panicked at ") {
                // The message is on the line after the place.
                found = lines.next().filter(|message| !message.starts_with("note: ")).or(found);
            } else if line.starts_with("Traceback (most recent call last)") {
                found = lines.by_ref().find(|line| !line.starts_with(' ')).or(found);
            }
        }
        found
    }

    /// The last lines that show the place of the failure: a panic, an assertion, an address, a frame of a backtrace.
    pub fn where_it_failed(&self) -> impl Iterator<Item = &str> {
        self.last_lines.iter().map(String::as_str).filter(|line| says_where(line))
    }
}

fn says_where(line: &str) -> bool {
    let line = line.trim_start();
    let frame = line.split_once(": ").is_some_and(|(number, _)| number.parse::<u16>().is_ok());
    let words = ["panicked at", "Assertion", "assertion", "SIGSEGV", "Segmentation", "Traceback", "0x"];
    frame
        || line.starts_with("at ")
        || line.starts_with("File \"")
        || words.iter().any(|word| line.contains(word))
}

/// A failure, with its cause and evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// The operator's number for it: it counts the incidents of a state folder from 1. It is 0 until the incident is
    /// stored.
    #[serde(default)]
    pub number: u64,
    /// When, in milliseconds since the Unix epoch.
    pub unix_ms: u64,
    /// Its kind.
    pub what: IncidentKind,
    /// The affected app; `None` for the kernel process or the node.
    #[serde(default)]
    pub app: Option<String>,
    /// The number of the app's start.
    #[serde(default)]
    pub generation: u64,
    /// The reason, as a phrase.
    pub reason: String,
    /// The monitor's reaction.
    pub then: String,
    /// The probable cause.
    #[serde(default)]
    pub finding: Finding,
    /// The evidence.
    #[serde(default)]
    pub evidence: Evidence,
}

impl Incident {
    /// An incident of an app. `at_ms` is on the monitor's clock; it is converted to the wall clock when the incident is
    /// stored.
    pub(crate) fn of_app(
        what: IncidentKind,
        app: &str,
        generation: u64,
        reason: &str,
        at_ms: u64,
    ) -> Incident {
        Incident {
            app: Some(app.to_owned()),
            generation,
            finding: Finding { culprit: Some(app.to_owned()), sentence: String::new() },
            ..Incident::of_node(what, reason, at_ms)
        }
    }

    /// Marks that no app caused it: `sentence` names the cause, and `then` the reaction.
    pub(crate) fn without_culprit(mut self, sentence: &str, then: String) -> Incident {
        self.finding = Finding { culprit: None, sentence: sentence.to_owned() };
        self.then = then;
        self
    }

    /// An incident of the kernel process or the node.
    pub(crate) fn of_node(what: IncidentKind, reason: &str, at_ms: u64) -> Incident {
        Incident {
            number: 0,
            unix_ms: at_ms,
            what,
            app: None,
            generation: 0,
            reason: legible(reason, 2 * REASON_BYTES_MAX),
            then: String::new(),
            finding: Finding::default(),
            evidence: Evidence::default(),
        }
    }

    /// An incident of a switch that answers otherwise than its profile says.
    pub(crate) fn of_switch(reason: &str, delays: Vec<ReplyDelay>, at_ms: u64) -> Incident {
        let what = IncidentKind::SwitchLeftProfile;
        let sentence = "the switch has another firmware or another load than the profile was measured with, or the wrong profile";
        let then =
            "the node still uses this profile; to measure the switch again, run `burnet probe`".to_owned();
        let incident = Incident::of_node(what, reason, at_ms).without_culprit(sentence, then);
        Incident { evidence: Evidence { delays, ..Evidence::default() }, ..incident }
    }

    /// The affected app or process, by the operator's name for it.
    #[must_use]
    pub fn subject(&self) -> &str {
        match (&self.app, self.what) {
            (Some(app), _) => app,
            (None, IncidentKind::KernelEnded) => "(kernel)",
            (None, _) => "(node)",
        }
    }

    /// Converts all its times from the monitor's clock to the wall clock.
    pub(crate) fn on_the_wall(&mut self, unix_ms_at_zero: u64) {
        self.unix_ms = self.unix_ms.saturating_add(unix_ms_at_zero);
        for fact in &mut self.evidence.facts {
            fact.unix_ms = fact.unix_ms.saturating_add(unix_ms_at_zero);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_say_where_it_failed_are_found_among_the_others() {
        let check = |line: &str, expected: bool| assert_eq!(says_where(line), expected, "{line}");
        check("", false);
        check("learnt 12 hosts: 3 new", false);
        check("10.0.0.1: hello", false);
        check("thread 'main' panicked at src/main.rs:7:9:", true);
        check("  12: core::panicking::panic", true);
        check("             at ./src/main.rs:7:9", true);
        check("  File \"app.py\", line 3, in on_packet_in", true);
        check("a.out[12]: segfault at 0x10", true);
    }

    #[test]
    fn the_line_that_says_what_went_wrong_is_found() {
        let check = |lines: &[&str], expected: Option<&str>| {
            let last_lines = lines.iter().map(|line| (*line).to_owned()).collect();
            assert_eq!(Evidence { last_lines, ..Evidence::default() }.exception(), expected, "{lines:?}");
        };
        check(&[], None);
        check(&["learnt 12 hosts"], None);
        let place = "thread 'main' (7) panicked at src/main.rs:7:9:";
        let note = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";
        check(&["learnt 3", place, "no room: 3", note], Some("no room: 3"));
        check(&[place], None);
        check(&[place, note], None);
        let traceback = ["Traceback (most recent call last):", "  File \"a.py\", line 3, in f", "    g()"];
        check(&traceback, None);
        check(&[&traceback[..], &["KeyError: 'a'", "bye"]].concat(), Some("KeyError: 'a'"));
        let during = ["", "During handling of the above exception, another exception occurred:", ""];
        let both = [&traceback[..], &["KeyError: 'a'"], &during, &traceback, &["ValueError: b"]].concat();
        check(&both, Some("ValueError: b"));
    }

    #[test]
    fn an_incident_of_an_older_node_can_be_read_and_of_a_newer_one_too() {
        let old = r#"{"unix_ms":5,"what":"kernel_ended","reason":"r","then":"t"}"#;
        let incident: Incident = serde_json::from_str(old).unwrap();
        assert_eq!((incident.subject(), &incident.evidence), ("(kernel)", &Evidence::default()));
        let new = r#"{"unix_ms":5,"what":"safe_mode","reason":"r","then":"t","evidence":{"weather":"bad"}}"#;
        assert_eq!(serde_json::from_str::<Incident>(new).unwrap().subject(), "(node)");
    }
}
