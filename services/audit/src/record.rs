//! One record: who did what, with which capability.
//!
//! In and out: a JSON object, as the node's processes tell it and as it stands in a line of the log. It never decides what is worth a
//! record.

use serde::{Deserialize, Serialize};

/// Longest text of a record, in bytes; what is longer is cut.
pub const TEXT_BYTES_MAX: usize = 2_048;

/// One thing that was done, or refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// When, in milliseconds since the Unix epoch. Of a record that stands for several, when the first was.
    pub unix_ms: u64,
    /// What: one word of `docs/reference/audit.md`.
    pub what: String,
    /// Who did it: `app`, `switch`, `operator`, `monitor`, `kernel` or `audit`.
    pub who: String,
    /// Which app it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Which switch it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// The capability or quota that it needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// How often, within about a second.
    pub count: u64,
    /// In words.
    pub text: String,
}

impl From<burnet_sdk::NodeRecord> for Record {
    fn from(record: burnet_sdk::NodeRecord) -> Record {
        let burnet_sdk::NodeRecord { unix_ms, what, who, app, switch, capability, count, text } = record;
        Record { unix_ms, what, who, app, switch, capability, count, text }
    }
}

impl Record {
    /// One of the operator's deeds, or of the log itself, about nothing in particular.
    pub fn new(unix_ms: u64, what: &str, who: &str, text: impl Into<String>) -> Record {
        let (what, who, text) = (what.to_owned(), who.to_owned(), text.into());
        Record { unix_ms, what, who, count: 1, text, ..Record::default() }
    }

    /// The same, about this app.
    #[must_use]
    pub fn of_app(self, app: &str) -> Record {
        Record { app: Some(app.to_owned()), ..self }
    }

    /// With a text that is no longer than [`TEXT_BYTES_MAX`].
    #[must_use]
    pub(crate) fn cut(mut self) -> Record {
        for text in [&mut self.text, &mut self.what, &mut self.who] {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        }
        for text in [&mut self.app, &mut self.switch, &mut self.capability].into_iter().flatten() {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        }
        self
    }
}
