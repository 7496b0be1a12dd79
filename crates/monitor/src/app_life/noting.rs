//! The note of an app: what the operator should know about it. Pure.
//!
//! In: a phrase, or none. Out: the note of its status, and a line for the log when that changes. It changes nothing else.

use super::AppLife;
use crate::app::{NOTE_BYTES_MAX, legible};
use crate::supervisor::{Reaction, Severity};

impl AppLife {
    /// This is its note from now on. The operator gets a line if the note is new, or is over.
    pub(crate) fn noted(&mut self, note: Option<&str>, severity: Severity, out: &mut Vec<Reaction>) {
        let note = note.map(|text| legible(text, NOTE_BYTES_MAX));
        let before = std::mem::replace(&mut self.note, note);
        if before == self.note {
            return;
        }
        match (before, self.note.clone()) {
            (_, Some(note)) => self.say(severity, &note, out),
            (Some(before), None) => self.say(Severity::Info, &format!("no longer: {before}"), out),
            (None, None) => {}
        }
    }
}
