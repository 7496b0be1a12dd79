//! A service that runs without one of its addresses. Pure.
//!
//! In: which address is missing, and the time. Out: a note for the operator, tries, and a restart when there is a new socket. A missing address is no failure
//! of the service, so it never counts towards safe mode.

use super::{AfterStop, AppLife, Situation};
use crate::retry::Retry;
use crate::supervisor::{Reaction, Severity, StopSignal};

impl AppLife {
    /// It has started, or tried again. `missing`: why one of its addresses cannot be opened.
    pub(crate) fn listens(
        &mut self,
        is_new: bool,
        missing: Option<&str>,
        at: Situation,
        out: &mut Vec<Reaction>,
    ) {
        if missing.is_some() || self.retry.is_some() {
            let note = missing.map(|why| format!("{why}; it runs on without this address, and tries again"));
            self.noted(note.as_deref(), Severity::Error, out);
        }
        self.retry = match (missing, self.retry) {
            (None, _) => None,
            (Some(_), None) => Some(Retry::begin(at.now_ms)),
            (Some(_), Some(retry)) => Some(retry.next(at.now_ms)),
        };
        if is_new && self.has_process() {
            self.end(
                AfterStop::Again,
                StopSignal::Term,
                "it can listen on another of its addresses",
                at,
                out,
            );
        }
    }

    /// Tries again, if it is time.
    pub(super) fn try_to_listen(&mut self, at: Situation, out: &mut Vec<Reaction>) {
        let is_due = self.retry.is_some_and(|retry| retry.at_ms <= at.now_ms);
        if is_due && self.phase.is_up() && self.has_process() {
            // The answer comes at once, and sets the next time. Until then, a second one is not wanted.
            self.retry = self.retry.map(Retry::asked);
            out.push(Reaction::Listen { zone: self.zone, generation: self.generation });
        }
    }
}
