//! Limits the lines that an app may write to the node's log: printable text, of bounded length and rate.
//!
//! In: lines of zones, and the time. Out: the line to write, or nothing, and the number of dropped lines. The rate is the
//! same as for the app's own output in the monitor. Each worker counts separately. A longer line is cut. It writes nothing.

use abi::ZoneId;
use kernel::quota::Bucket;
use monitor_channel::{LINE_BYTES_MAX, LINES_PER_S_MAX};
use std::collections::BTreeMap;

/// The counts of zones: one entry for each zone id that has written a line, so at most one for each zone.
#[derive(Debug, Default)]
pub struct LogLines {
    of_zones: BTreeMap<ZoneId, Lines>,
}

#[derive(Debug)]
struct Lines {
    bucket: Bucket,
    left_out: u64,
}

impl LogLines {
    /// A line of a zone, safe to write; `None` if the zone has reached its limit for this second.
    pub fn line(&mut self, zone: ZoneId, text: &str, now_ms: u64) -> Option<String> {
        let full = || Lines { bucket: Bucket::full(LINES_PER_S_MAX, now_ms), left_out: 0 };
        let lines = self.of_zones.entry(zone).or_insert_with(full);
        if lines.bucket.take(LINES_PER_S_MAX, now_ms) {
            return Some(monitor_channel::legible(text, LINE_BYTES_MAX));
        }
        lines.left_out += 1;
        None
    }

    /// The zones with dropped lines since the last call, and how many.
    pub fn take_left_out(&mut self) -> impl Iterator<Item = (ZoneId, u64)> + '_ {
        let counted =
            self.of_zones.iter_mut().map(|(zone, lines)| (*zone, std::mem::take(&mut lines.left_out)));
        counted.filter(|(_, left_out)| *left_out > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ZoneId = ZoneId(1);
    const OTHER: ZoneId = ZoneId(2);

    #[test]
    fn no_app_writes_lines_that_look_like_somebody_elses() {
        let check = |text: &str, expected: &str| {
            assert_eq!(LogLines::default().line(ONE, text, 0).as_deref(), Some(expected));
        };
        check("a\nERROR kernel: all is lost", "a\\nERROR kernel: all is lost");
        check("\u{1b}[31mred", "\\u{1b}[31mred");
        check(&"x".repeat(5_000), &"x".repeat(LINE_BYTES_MAX));
    }

    #[test]
    fn a_flood_of_lines_is_counted_and_silences_nobody_else() {
        let mut lines = LogLines::default();
        let written = (0..1_000).filter(|_| lines.line(ONE, "x", 0).is_some()).count();
        assert_eq!(written, LINES_PER_S_MAX as usize);
        assert!(lines.line(OTHER, "x", 0).is_some());
        assert_eq!(lines.take_left_out().collect::<Vec<_>>(), [(ONE, 900)]);
        assert_eq!(lines.take_left_out().count(), 0);
        assert!(lines.line(ONE, "x", 1_000).is_some());
    }
}
