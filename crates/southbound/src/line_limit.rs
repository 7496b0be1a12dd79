//! How many lines one peer may cause in the log.
//!
//! Never writes a line itself. How many it kept back is in the next line that goes through, unless so many addresses came meanwhile
//! that all were forgotten.

use std::collections::HashMap;
use std::net::IpAddr;

/// Lines of one address in [`SPAN_MS`]: a test bed of a hundred switches can come and go; rubbish without end cannot fill a disk.
const LINES: u32 = 256;

/// Lines about connections that were refused at once: each says the same.
const LINES_OF_REFUSALS: u32 = 8;
const SPAN_MS: u64 = 10_000;

/// Addresses that are counted at once. At one more, all are forgotten and counted anew, which lets a few more lines through.
const MAX_ADDRESSES: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Counted {
    began_ms: u64,
    lines: u32,
}

/// The lines that each address has caused of late.
#[derive(Debug)]
pub struct LineLimit {
    lines: u32,
    addresses: HashMap<IpAddr, Counted>,
}

impl Default for LineLimit {
    fn default() -> Self {
        LineLimit { lines: LINES, addresses: HashMap::new() }
    }
}

impl LineLimit {
    /// For connections that are refused at once.
    pub fn of_refusals() -> Self {
        LineLimit { lines: LINES_OF_REFUSALS, ..LineLimit::default() }
    }

    /// Whether a line about this address may be written: `Some`, with how many were kept back before it.
    pub fn pass(&mut self, address: IpAddr, now_ms: u64) -> Option<u32> {
        if self.addresses.len() >= MAX_ADDRESSES && !self.addresses.contains_key(&address) {
            self.addresses.clear();
        }
        let counted = self.addresses.entry(address).or_insert(Counted { began_ms: now_ms, lines: 0 });
        let mut kept_back = 0;
        if now_ms.saturating_sub(counted.began_ms) >= SPAN_MS {
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

    #[test]
    fn a_peer_that_causes_too_many_lines_is_kept_back_and_counted() {
        let (mut limit, loud, quiet) =
            (LineLimit::default(), IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..LINES {
            assert_eq!(limit.pass(loud, 0), Some(0));
        }
        assert_eq!(limit.pass(loud, 1), None);
        assert_eq!(limit.pass(loud, SPAN_MS - 1), None);
        assert_eq!(limit.pass(quiet, 1), Some(0));
        assert_eq!(limit.pass(loud, SPAN_MS), Some(2));
    }

    #[test]
    fn connections_that_are_refused_at_once_leave_few_lines() {
        let (mut limit, peer) = (LineLimit::of_refusals(), IpAddr::from([10, 0, 0, 1]));
        let lines = (0..1_000).filter(|now_ms| limit.pass(peer, *now_ms).is_some()).count();
        assert_eq!(lines, 8);
        assert_eq!(limit.pass(peer, SPAN_MS), Some(992));
    }

    #[test]
    fn the_list_of_peers_is_bounded() {
        let mut limit = LineLimit::default();
        for number in 0..3 * MAX_ADDRESSES as u32 {
            limit.pass(IpAddr::from(number.to_be_bytes()), 0);
            assert!(limit.addresses.len() <= MAX_ADDRESSES);
        }
    }
}
