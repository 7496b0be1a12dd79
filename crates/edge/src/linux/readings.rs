//! What the counters of nftables counted between two readings.
//!
//! In: the counters of each reading, with its time. Out: for each counter, the bytes and packets that it counted since the last reading. It
//! reads nothing itself, and estimates no headers: an estimate of a total can fall, although the counter only grows.

use super::counters::Counter;
use flow::MacAddr;
use std::collections::BTreeMap;

/// The last value of a counter is kept for this long after the last reading that had the counter. A reading may miss a counter while the
/// kernel resizes its table. The kernel removes a counter only after ten seconds of silence, so a counter that is away for longer has begun again.
const KEPT_NS: u64 = 1_000_000_000;

/// VLAN, source and destination.
type Key = (Option<u16>, MacAddr, MacAddr);

/// The last value of each counter. The sets of the kernel bound their number: a set drops an element only after a longer time than
/// [`KEPT_NS`], so that at most twice as many are here.
#[derive(Debug, Default)]
pub(super) struct Readings {
    last: BTreeMap<Key, Last>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    bytes: u64,
    packets: u64,
    read_ns: u64,
}

impl Readings {
    /// What the counters counted since the last reading. Counters that did not grow are left out. A new counter began at 0.
    pub(super) fn grown(&mut self, now_ns: u64, counters: &[Counter]) -> Vec<Counter> {
        let mut grown = Vec::new();
        for counter in counters {
            let last = self.last.entry((counter.vlan, counter.source, counter.destination)).or_default();
            let Counter { bytes, packets, .. } = *counter;
            // A counter that is lower than at the last reading has begun again.
            let has_begun_again = bytes < last.bytes || packets < last.packets;
            let from = if has_begun_again { Last::default() } else { *last };
            *last = Last { bytes, packets, read_ns: now_ns };
            if bytes > from.bytes {
                grown.push(Counter {
                    bytes: bytes - from.bytes,
                    packets: packets - from.packets,
                    ..*counter
                });
            }
        }
        self.last.retain(|_, last| now_ns.saturating_sub(last.read_ns) < KEPT_NS);
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn counter(bytes: u64, packets: u64) -> Counter {
        let (source, destination) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        Counter { vlan: None, source, destination, bytes, packets }
    }

    #[test]
    fn small_packets_after_merged_ones_count_once() {
        let mut readings = Readings::default();
        // A thousand merged packets, and then many small ones, so that an average packet fits into a frame.
        let merged = readings.grown(0, &[counter(30_000_000, 1000)]);
        assert_eq!(merged, [counter(30_000_000, 1000)]);
        let small = readings.grown(40 * MS, &[counter(30_000_000 + 60 * 20_000, 21_000)]);
        assert_eq!(small.iter().map(Counter::frame_bytes).sum::<u64>(), 20_000 * (60 + 14));
        assert_eq!(readings.grown(80 * MS, &[counter(31_200_000, 21_000)]), [], "it did not grow");
    }

    #[test]
    fn a_counter_that_begins_again_counts_from_0() {
        let mut readings = Readings::default();
        let grown = |readings: &mut Readings, ms: u64, counters: &[Counter]| {
            readings.grown(ms * MS, counters).iter().map(|counter| counter.bytes).sum::<u64>()
        };
        assert_eq!(grown(&mut readings, 0, &[counter(1000, 1)]), 1000);
        assert_eq!(grown(&mut readings, 40, &[counter(600, 1)]), 600, "lower than before");
        assert_eq!(grown(&mut readings, 80, &[]), 0);
        assert_eq!(grown(&mut readings, 120, &[counter(700, 2)]), 100, "a reading missed it");
        assert_eq!(grown(&mut readings, 2000, &[]), 0);
        assert_eq!(grown(&mut readings, 2040, &[counter(900, 3)]), 900, "the kernel had removed it");
    }
}
