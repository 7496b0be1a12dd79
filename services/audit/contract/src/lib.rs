//! The contract of the service `audit`: records, and the messages by which it keeps them.
//!
//! ```text
//!   monitor ──Batch──> service ──one line of the log for each record──> disk
//!           <──Kept───
//!   northbound ──Question──> service ──Page──> northbound
//! ```
//!
//! In and out: values, and their JSON. It decides nothing, and opens no file.

mod declaration;
mod grant;
mod question;

pub use declaration::{DECLARATION, READ};
pub use grant::Grant;
pub use question::{Entry, Filter, PAGE_DEFAULT, PAGE_MAX, Page, Question};

use serde::{Deserialize, Serialize};

/// The name of the service.
pub const SERVICE: &str = "audit";

/// The maximum length of a text in bytes. A longer text is cut.
pub const TEXT_BYTES_MAX: usize = 2_048;

/// To the service: records that follow each other. The monitor repeats them until they are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The number of the first record. A node counts from 1.
    pub first: u64,
    /// The records, as many as fit into a message.
    pub records: Vec<Record>,
}

/// From the service: it has records on disk. The first message of each start requests the records that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The number of the last record on disk.
    pub up_to: u64,
}

/// An action that was done or refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The time, in milliseconds since the Unix epoch. If the record counts several actions, the time of the first.
    pub unix_ms: u64,
    /// The kind of action: one word of `docs/reference/audit.md`.
    pub what: String,
    /// The actor: `app`, `switch`, `operator`, `monitor`, `kernel` or `audit`.
    pub who: String,
    /// The app that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// The switch that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// The capability or quota that was needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// How often it happened, within about a second.
    pub count: u64,
    /// A text for people.
    pub text: String,
}

impl Record {
    /// A record of one action, without an app.
    #[must_use]
    pub fn new(unix_ms: u64, what: &str, who: &str, text: impl Into<String>) -> Record {
        let (what, who, text) = (what.to_owned(), who.to_owned(), text.into());
        Record { unix_ms, what, who, count: 1, text, ..Record::default() }
    }

    /// Sets the app.
    #[must_use]
    pub fn of_app(self, app: &str) -> Record {
        Record { app: Some(app.to_owned()), ..self }
    }

    /// Cuts each text to [`TEXT_BYTES_MAX`].
    #[must_use]
    pub fn cut(mut self) -> Record {
        for text in [&mut self.text, &mut self.what, &mut self.who] {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        }
        for text in [&mut self.app, &mut self.switch, &mut self.capability].into_iter().flatten() {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        }
        self
    }

    /// Whether it differs from another record only in its time and count.
    #[must_use]
    pub fn says_the_same_as(&self, other: &Record) -> bool {
        self.what == other.what
            && self.who == other.who
            && self.app == other.app
            && self.switch == other.switch
            && self.capability == other.capability
            && self.text == other.text
    }
}

/// The statuses of answers, in addition to those common to all services. The payload of a refusal is a sentence.
pub mod status {
    /// Success.
    pub const DONE: u16 = 0;
    /// The log cannot be read.
    pub const NOT_READ: u16 = 1;
    /// The app has no grant for this question (`abi::event::NOT_GRANTED`).
    pub const NOT_GRANTED: u16 = 0xff80;
    /// The question is wrong (`abi::event::BAD_QUESTION`).
    pub const BAD_QUESTION: u16 = 0xff82;
}
