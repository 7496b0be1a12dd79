//! Limits how many log lines one address, or one datapath id, may cause.
//!
//! It writes no line itself. The next line that passes has the number of suppressed lines. That number is lost if too
//! many addresses arrive in between and all are forgotten.

use crate::origin::Origin;
use std::collections::HashMap;
use std::hash::Hash;

/// Lines of one address in [`SPAN_MS`]. A test bed of a hundred switches can connect and disconnect, but endless
/// garbage cannot fill a disk.
const LINES: u32 = 256;

/// Lines about connections that were refused at once. All have the same text.
const LINES_OF_REFUSALS: u32 = 8;
const SPAN_MS: u64 = 10_000;

/// Lines about a peer that is refused and tries again and again. The first line says why. A later line says how
/// often.
const LINES_OF_TURNED_AWAY: u32 = 1;
const SPAN_OF_TURNED_AWAY_MS: u64 = 300_000;

/// Addresses or ids that are counted at the same time. At one more, all counts are deleted, which lets a few more
/// lines pass.
const MAX_COUNTED: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Counted {
    began_ms: u64,
    lines: u32,
}

/// The recent lines of each address, or of each datapath id.
#[derive(Debug)]
pub struct LineLimit<K = Origin> {
    lines: u32,
    span_ms: u64,
    counted: HashMap<K, Counted>,
}

impl Default for LineLimit {
    fn default() -> Self {
        LineLimit { lines: LINES, span_ms: SPAN_MS, counted: HashMap::new() }
    }
}

impl LineLimit {
    /// For connections that are refused at once.
    pub fn of_refusals() -> Self {
        LineLimit { lines: LINES_OF_REFUSALS, ..LineLimit::default() }
    }
}

impl<K: Copy + Eq + Hash> LineLimit<K> {
    /// For peers that are refused for another reason than lack of room: switches that may not use their id, and those
    /// without TLS.
    pub fn of_turned_away() -> Self {
        LineLimit { lines: LINES_OF_TURNED_AWAY, span_ms: SPAN_OF_TURNED_AWAY_MS, counted: HashMap::new() }
    }

    /// Whether a line about this address or id may be written. `Some` has the number of lines that were suppressed
    /// before it.
    pub fn pass(&mut self, key: K, now_ms: u64) -> Option<u32> {
        if self.counted.len() >= MAX_COUNTED && !self.counted.contains_key(&key) {
            self.counted.clear();
        }
        let counted = self.counted.entry(key).or_insert(Counted { began_ms: now_ms, lines: 0 });
        let mut kept_back = 0;
        if now_ms.saturating_sub(counted.began_ms) >= self.span_ms {
            kept_back = counted.lines.saturating_sub(self.lines);
            *counted = Counted { began_ms: now_ms, lines: 0 };
        }
        counted.lines = counted.lines.saturating_add(1);
        (counted.lines <= self.lines).then_some(kept_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::DatapathId;

    fn origin(number: u32) -> Origin {
        Origin::of((0x0a00_0000 + number).to_be_bytes().into())
    }

    #[test]
    fn a_peer_that_causes_too_many_lines_is_kept_back_and_counted() {
        let (mut limit, loud, quiet) = (LineLimit::default(), origin(1), origin(2));
        for _ in 0..LINES {
            assert_eq!(limit.pass(loud, 0), Some(0));
        }
        assert_eq!(limit.pass(loud, 1), None);
        assert_eq!(limit.pass(loud, SPAN_MS - 1), None);
        assert_eq!(limit.pass(quiet, 1), Some(0));
        assert_eq!(limit.pass(loud, SPAN_MS), Some(2));
    }

    #[test]
    fn a_second_switch_of_an_id_is_told_of_once_and_then_counted() {
        let mut limit = LineLimit::<DatapathId>::of_turned_away();
        assert_eq!(limit.pass(DatapathId(1), 0), Some(0));
        assert!((1..100).all(|second| limit.pass(DatapathId(1), second * 1_000).is_none()));
        assert_eq!(limit.pass(DatapathId(2), 1), Some(0));
        assert_eq!(limit.pass(DatapathId(1), SPAN_OF_TURNED_AWAY_MS), Some(99));
    }

    #[test]
    fn connections_that_are_refused_at_once_leave_few_lines() {
        let (mut limit, peer) = (LineLimit::of_refusals(), origin(1));
        let lines = (0..1_000).filter(|now_ms| limit.pass(peer, *now_ms).is_some()).count();
        assert_eq!(lines, 8);
        assert_eq!(limit.pass(peer, SPAN_MS), Some(992));
    }

    #[test]
    fn the_list_of_peers_is_bounded() {
        let mut limit = LineLimit::default();
        for number in 0..3 * MAX_COUNTED as u32 {
            limit.pass(origin(number), 0);
            assert!(limit.counted.len() <= MAX_COUNTED);
        }
    }
}
