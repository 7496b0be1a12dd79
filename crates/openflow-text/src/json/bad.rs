//! The error for a JSON value that is not a message: the key, and what was expected.

use std::fmt;

/// An object that cannot be read as a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadJson {
    /// The key with its path (`buckets[0].weight`); empty for the whole object.
    pub key: String,
    /// One sentence: what was found and what was expected.
    pub message: String,
}

impl BadJson {
    pub(super) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        BadJson { key: key.into(), message: message.into() }
    }

    /// The same error with a path from the enclosing object.
    pub(super) fn within(mut self, outer: &str) -> Self {
        let separator = if self.key.is_empty() || self.key.starts_with('[') { "" } else { "." };
        self.key = format!("{outer}{separator}{}", self.key);
        self
    }
}

impl fmt::Display for BadJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.key, self.message)
        }
    }
}

impl std::error::Error for BadJson {}
