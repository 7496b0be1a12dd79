//! Waits for a switch's table sizes, and tells the operator if the switch does not report them.
//!
//! In: the kernel's effects. Out: whether a zone's commands wait, and a log line. It never blocks: the app's commands
//! stay in its ring.

use super::Worker;
use abi::ZoneId;
use flow::DatapathId;

/// How long an app's commands wait for the table sizes of a switch that has received more rules than a small table
/// holds.
const SIZES_WAIT_MS: u64 = 10;

/// How long after such a wait the next one may start. So an app does not wait for a hundred silent switches one after
/// the other.
const SIZES_WAIT_EVERY_MS: u64 = 1_000;

impl Worker {
    /// From now on a zone's commands wait for a switch's table sizes, unless they have just waited for another switch.
    pub(super) fn wait_for_sizes(&mut self, zone: ZoneId, datapath: DatapathId) {
        let until_ms = self.now_ms + SIZES_WAIT_MS;
        let it = self.waiting_for_sizes.entry(zone).or_insert((datapath, until_ms));
        if self.now_ms >= it.1 + SIZES_WAIT_EVERY_MS {
            *it = (datapath, until_ms);
        }
    }

    /// Whether a zone's commands wait for a switch's table sizes. The wait ends at the latest after [`SIZES_WAIT_MS`].
    pub(super) fn waits_for_sizes(&self, zone: ZoneId) -> bool {
        let waits_for = self.waiting_for_sizes.get(&zone).filter(|(_, until_ms)| self.now_ms < *until_ms);
        waits_for.is_some_and(|(datapath, _)| self.dispatch.kernel.is_asked_for_sizes(*datapath))
    }
}

/// Tells the operator once the limit of entries for a switch that does not report its table sizes.
pub(super) fn tell_of_unknown_sizes(datapath: DatapathId, entries_if_unknown: Option<u32>) {
    match entries_if_unknown {
        Some(entries) => tracing::warn!(
            %datapath,
            "the switch does not report its table sizes: Burnet assumes {entries} entries for each \
             (limits.table_entries_if_unknown)"
        ),
        None => tracing::warn!(
            %datapath,
            "the switch does not report its table sizes: apps may add entries until the switch refuses; limits.table_entries_if_unknown sets a limit"
        ),
    }
}
