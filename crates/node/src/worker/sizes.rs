//! Waiting for a switch to say how large its tables are, and what the operator hears if it does not.
//!
//! In: what the kernel wants. Out: whether a zone's commands wait, and a line of the log. Never waits itself: what an app commands meanwhile stays
//! where it is.

use super::Worker;
use abi::ZoneId;
use flow::DatapathId;

/// How long an app's commands wait for a switch that has been given more than a small table holds to say how large its tables are.
const SIZES_WAIT_MS: u64 = 10;

/// And how long after that they wait for another: a hundred switches that come up at once and do not answer are not waited for one by one.
const SIZES_WAIT_EVERY_MS: u64 = 1_000;

impl Worker {
    /// From now on a zone's commands wait for a switch to say how large its tables are, unless they have waited for another a moment ago.
    pub(super) fn wait_for_sizes(&mut self, zone: ZoneId, datapath: DatapathId) {
        let until_ms = self.now_ms + SIZES_WAIT_MS;
        let it = self.waiting_for_sizes.entry(zone).or_insert((datapath, until_ms));
        if self.now_ms >= it.1 + SIZES_WAIT_EVERY_MS {
            *it = (datapath, until_ms);
        }
    }

    /// Whether a zone's commands wait for a switch to say how large its tables are. It is over at the latest after [`SIZES_WAIT_MS`].
    pub(super) fn waits_for_sizes(&self, zone: ZoneId) -> bool {
        let waits_for = self.waiting_for_sizes.get(&zone).filter(|(_, until_ms)| self.now_ms < *until_ms);
        waits_for.is_some_and(|(datapath, _)| self.dispatch.kernel.is_asked_for_sizes(*datapath))
    }
}

/// The operator hears once how many entries a switch may have that does not say how many there can be.
pub(super) fn tell_of_unknown_sizes(datapath: DatapathId, entries_if_unknown: Option<u32>) {
    match entries_if_unknown {
        Some(entries) => tracing::warn!(
            %datapath,
            "the switch does not say how large its tables are: each is taken to hold {entries} entries \
             (limits.table_entries_if_unknown)"
        ),
        None => tracing::warn!(
            %datapath,
            "the switch does not say how large its tables are: apps may add as many entries as it takes, unless \
             limits.table_entries_if_unknown says how many it holds"
        ),
    }
}
