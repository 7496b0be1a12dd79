//! One record: an action, its actor, and the used capability.
//!
//! In and out: a JSON object, as the node sends it and as the log has it. It never decides what is worth a
//! record.

use serde::{Deserialize, Serialize};

/// The maximum length of a text in bytes. A longer text is cut.
pub const TEXT_BYTES_MAX: usize = 2_048;

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

impl From<burnet_sdk::NodeRecord> for Record {
    fn from(record: burnet_sdk::NodeRecord) -> Record {
        let burnet_sdk::NodeRecord { unix_ms, what, who, app, switch, capability, count, text } = record;
        Record { unix_ms, what, who, app, switch, capability, count, text }
    }
}

impl Record {
    /// A record of the operator or of the log, without an app.
    pub fn new(unix_ms: u64, what: &str, who: &str, text: impl Into<String>) -> Record {
        let (what, who, text) = (what.to_owned(), who.to_owned(), text.into());
        Record { unix_ms, what, who, count: 1, text, ..Record::default() }
    }

    /// Sets the app.
    #[must_use]
    pub fn of_app(self, app: &str) -> Record {
        Record { app: Some(app.to_owned()), ..self }
    }

    /// Sets the text, cut to [`TEXT_BYTES_MAX`].
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
