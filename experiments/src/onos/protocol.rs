//! What an experiment and its probe say to each other: one JSON object for each line.
//!
//! ```text
//!   experiment ──Order──> probe (an app of the node)        probe ──Word──> experiment
//! ```
//!
//! In: values. Out: lines. Both ends are this program, so a line that cannot be read is a mistake of ours.

use super::planner::Wish;
use serde::{Deserialize, Serialize};
use view::Kind;

/// The settings of the probe.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSettings {
    /// Where the experiment listens.
    pub line: String,
    /// The kinds of objects that it follows; none if it follows no view.
    pub kinds: Vec<Kind>,
    /// Whether it also receives the events of the kernel about switches and ports.
    pub raw: bool,
}

/// What the probe does next.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Keep these questions for a service. A question is text, or bytes as hexadecimal digits.
    Load {
        /// The service.
        service: String,
        /// The payloads.
        payloads: Vec<Payload>,
    },
    /// Ask all kept questions, at most so many at a time. The answer is [`Word::Asked`].
    Ask {
        /// The most open calls.
        at_once: usize,
    },
    /// Ask the first kept question again and again, until its answer contains a text. The answer to the order is
    /// [`Word::Polled`].
    Poll {
        /// From an answer to the next question.
        interval_us: u64,
        /// The text that ends it.
        until: String,
        /// The most questions.
        most: usize,
    },
    /// Compute these paths in the view, and hand them to the service `flows`. The answer is [`Word::Asked`].
    Install(Wish),
    /// Tell what was seen since the last report: [`Word::Seen`].
    Report,
    /// Tell how much there is: [`Word::Counted`].
    Count,
}

/// The payload of a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// JSON.
    Text(String),
    /// Bytes as hexadecimal digits.
    Hex(String),
}

impl Payload {
    /// Bytes as a payload.
    pub fn of_bytes(bytes: &[u8]) -> Payload {
        Payload::Hex(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Payload::Text(text) => text.clone().into_bytes(),
            Payload::Hex(digits) => {
                let pair =
                    |at: usize| digits.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
                (0..digits.len()).step_by(2).filter_map(pair).collect()
            }
        }
    }
}

/// Something that the probe saw, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sight {
    /// When, by the clock of the machine.
    pub at_ns: u64,
    /// Whether the kernel said it, and not the view.
    pub raw: bool,
    /// The text of the object's key.
    pub key: String,
    /// Whether the object is there and up. An intent is up if it is installed.
    pub up: bool,
}

/// What came of the questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// When the first one was about to be sent.
    pub began_ns: u64,
    /// When the last answer was there.
    pub ended_ns: u64,
    /// How many were answered with success.
    pub done: usize,
    /// The reason why others were not, of the first ones.
    pub failures: Vec<String>,
    /// The last answer, if it is text.
    pub last: String,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Switches that are up.
    pub switches: usize,
    /// Links that are up, each direction for itself.
    pub links: usize,
    /// Hosts.
    pub hosts: usize,
    /// Whether the view is complete.
    pub is_current: bool,
}

/// What the probe says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// It is connected.
    Ready,
    /// What it saw.
    Seen(Vec<Sight>),
    /// What came of its questions.
    Asked(Asked),
    /// When the answer was as it was awaited, and how many questions that took. No time: it never was.
    Polled {
        /// When.
        at_ns: Option<u64>,
        /// How many questions.
        questions: usize,
    },
    /// How much there is.
    Counted(Counted),
}

/// A value as a line.
pub fn to_line(value: &impl Serialize) -> String {
    // Plain data can always be written as JSON.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_survives_its_text() {
        for bytes in [&b""[..], &[0, 1, 0xff]] {
            assert_eq!(Payload::of_bytes(bytes).to_bytes(), bytes);
        }
        assert_eq!(Payload::Text("{}".to_owned()).to_bytes(), b"{}");
    }

    #[test]
    fn an_order_survives_its_line() {
        let order = Order::Poll { interval_us: 5, until: "down".to_owned(), most: 3 };
        let line = to_line(&order);
        assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
        assert_eq!(to_line(&serde_json::from_str::<Order>(&line).unwrap()), line);
    }
}
