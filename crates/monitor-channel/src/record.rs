//! One record of the audit log, as the node sends it to the service `audit`.
//!
//! Each text in it has a maximum length. Nothing is decided or stored here.

use serde::{Deserialize, Serialize};

use crate::app::legible;

/// Longest text of a record, in bytes; what is longer is cut.
pub const TEXT_BYTES_MAX: usize = 512;

/// Longest of the other words.
const WORD_BYTES_MAX: usize = 64;

/// One thing that was done, or refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// When, in milliseconds since the Unix epoch; of several, when the first was.
    pub unix_ms: u64,
    /// What, in one word.
    pub what: String,
    /// Who: `app`, `switch`, `operator`, `monitor` or `kernel`.
    pub who: String,
    /// Which app it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Which switch it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// The capability or quota that it needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// How often.
    pub count: u64,
    /// In words.
    pub text: String,
}

impl Record {
    /// Once, about nothing in particular.
    #[must_use]
    pub fn new(unix_ms: u64, what: &str, who: &str, text: impl Into<String>) -> Record {
        let (what, who, text) = (what.to_owned(), who.to_owned(), text.into());
        Record { unix_ms, what, who, count: 1, text, ..Record::default() }
    }

    /// About this app.
    #[must_use]
    pub fn of_app(self, app: &str) -> Record {
        Record { app: Some(app.to_owned()), ..self }
    }

    /// The record with terminal control characters escaped and each text cut to its bound.
    #[must_use]
    pub fn legible(mut self) -> Record {
        self.text = legible(&self.text, TEXT_BYTES_MAX);
        for word in [&mut self.what, &mut self.who] {
            *word = legible(word, WORD_BYTES_MAX);
        }
        for word in [&mut self.app, &mut self.switch, &mut self.capability].into_iter().flatten() {
            *word = legible(word, WORD_BYTES_MAX);
        }
        self
    }

    /// Whether it differs from another in nothing but when and how often.
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
