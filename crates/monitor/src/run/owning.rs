//! Stores the owners of groups and meters, for the next kernel process and the next start of the node.
//!
//! In: changes from the kernel process. Out: messages to the next kernel process, and a text for the record writer. It
//! decides no ownership.

use crate::owners::{IN_A_MESSAGE_MAX, Owned};
use crate::protocol::ToKernel;

use super::Monitor;

/// The shortest interval between two writes of the owners: each writes all of them, and there may be many.
const WRITE_INTERVAL_MS: u64 = 1_000;

impl Monitor {
    pub(super) fn on_owned(&mut self, changes: &[Owned], now_ms: u64) {
        let left_out = changes.iter().filter(|change| !self.owners.note(**change)).count();
        if left_out > 0 {
            tracing::error!(
                "{left_out} groups and meters of apps exceed the limit and are not stored: after a restart of the node, no app can change them"
            );
        }
        self.next_owners_ms.get_or_insert(now_ms.saturating_add(WRITE_INTERVAL_MS));
    }

    /// How many messages [`Self::tell_owners`] makes.
    pub(super) fn owners_messages(&self) -> u32 {
        u32::try_from(self.owners.all().len().div_ceil(IN_A_MESSAGE_MAX)).unwrap_or(u32::MAX)
    }

    /// Sends the owners to a new kernel process.
    pub(super) fn tell_owners(&mut self) {
        for owners in self.owners.all().chunks(IN_A_MESSAGE_MAX) {
            self.tell_kernel(&ToKernel::Owned { owners: owners.to_vec() }, Vec::new());
        }
    }

    /// Passes the owners to the writer, if it is time.
    pub(super) fn keep_owners(&mut self, now_ms: u64) {
        let is_last = self.outcome.is_some();
        if self.next_owners_ms.is_some_and(|at_ms| is_last || at_ms <= now_ms) {
            self.next_owners_ms = None;
            self.writer.owners(self.owners.to_text());
        }
    }
}
