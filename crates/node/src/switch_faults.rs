//! Refused and disconnected switches and connections. The first fault of an address and switch gives a record at once.
//! Further faults give one record per minute.
//!
//! In: ends of sessions, connections that were refused, and the time. Out: records. A peer that connects endlessly can
//! neither fill the log nor displace older records: the number of counted addresses and switches is bounded. It never
//! ends a session, and reads no clock.

use audit_contract::Record;
use flow::DatapathId;
use southbound::{Fault, SessionEnd};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The interval between two records of one address and switch. Faults in between are counted, and recorded at its end.
const INTERVAL_MS: u64 = 60_000;

/// Pairs of address and switch that are counted separately. All others share two more entries.
const KNOWN_MAX: usize = 256;

/// The maximum number of switches that are counted separately for one address, because a peer can claim any datapath
/// id. What comes of others is counted as the address's.
const OF_ONE_ADDRESS_MAX: usize = 16;

/// A refused connection or session, without a protocol violation.
const REFUSED: &str = "switch_refused";

/// A session or handshake that ended by the peer's fault.
const CUT_OFF: &str = "switch_cut_off";

/// The address and switch of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Of {
    what: &'static str,
    /// `None`: all others.
    address: Option<IpAddr>,
    datapath: Option<DatapathId>,
}

/// The number of faults, and the text of the first one.
#[derive(Debug)]
struct Count {
    first_ms: u64,
    datapath: Option<DatapathId>,
    count: u64,
    text: String,
}

#[derive(Debug, Default)]
struct Told {
    /// The earliest time of the next record.
    next_ms: u64,
    waiting: Option<Count>,
}

/// The faults of one worker's switches.
#[derive(Debug, Default)]
pub struct SwitchFaults(BTreeMap<Of, Told>);

impl SwitchFaults {
    /// A session or handshake has ended. It counts no network failure, and no end that this node wanted.
    pub fn on_end(&mut self, peer: SocketAddr, datapath: Option<DatapathId>, end: &SessionEnd, now_ms: u64) {
        let what = match end.fault {
            _ if end.is_refusal => REFUSED,
            Fault::Switch => CUT_OFF,
            Fault::Network | Fault::Operator | Fault::Ours => return,
        };
        self.count(what, peer, datapath, end, now_ms);
    }

    /// A connection was closed as soon as it was accepted.
    pub fn on_refused(&mut self, peer: SocketAddr, why: &dyn fmt::Display, now_ms: u64) {
        self.count(REFUSED, peer, None, why, now_ms);
    }

    fn count(
        &mut self,
        what: &'static str,
        peer: SocketAddr,
        datapath: Option<DatapathId>,
        why: &dyn fmt::Display,
        now_ms: u64,
    ) {
        let of = self.of(Of { what, address: Some(peer.ip()), datapath });
        let told = self.0.entry(of).or_default();
        match &mut told.waiting {
            Some(count) => count.count += 1,
            None => {
                let text = format!("{peer}: {why}");
                told.waiting = Some(Count { first_ms: now_ms, datapath, count: 1, text });
            }
        }
    }

    /// The address and switch that it counts for.
    fn of(&self, exactly: Of) -> Of {
        let of_address = Of { datapath: None, ..exactly };
        let same_address = self.0.keys().filter(|of| of.address == exactly.address).count();
        let has_room = self.0.len() < KNOWN_MAX;
        if self.0.contains_key(&exactly) || has_room && same_address < OF_ONE_ADDRESS_MAX {
            exactly
        } else if self.0.contains_key(&of_address) || has_room {
            of_address
        } else {
            Of { address: None, ..of_address }
        }
    }

    /// The records to write now, with this wall-clock time. Entries without a fault since the last record are removed.
    pub fn take(&mut self, now_ms: u64, now_unix_ms: u64) -> Vec<Record> {
        let mut records = Vec::new();
        self.0.retain(|of, told| {
            if now_ms < told.next_ms {
                return true;
            }
            let Some(count) = told.waiting.take() else { return false };
            told.next_ms = now_ms + INTERVAL_MS;
            records.push(count.record(of.what, now_ms, now_unix_ms));
            true
        });
        records
    }

    /// All unrecorded faults; resets the counts.
    pub fn take_all(&mut self, now_ms: u64, now_unix_ms: u64) -> Vec<Record> {
        self.0.values_mut().for_each(|told| told.next_ms = now_ms);
        let records = self.take(now_ms, now_unix_ms);
        self.0.clear();
        records
    }
}

impl Count {
    fn record(self, what: &str, now_ms: u64, now_unix_ms: u64) -> Record {
        let Count { first_ms, datapath, count, text } = self;
        let unix_ms = now_unix_ms.saturating_sub(now_ms.saturating_sub(first_ms));
        let switch = datapath.map(|datapath| datapath.to_string());
        Record { switch, count, ..Record::new(unix_ms, what, "switch", text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u32, port: u16) -> SocketAddr {
        (IpAddr::from((0x0a00_0000 + number).to_be_bytes()), port).into()
    }

    fn end(fault: Fault, is_refusal: bool) -> SessionEnd {
        SessionEnd { fault, reason: "it was so".into(), place: None, is_refusal }
    }

    fn said(records: &[Record]) -> Vec<(&str, Option<&str>, u64, &str)> {
        let said = records.iter().map(|Record { what, switch, count, text, .. }| {
            (what.as_str(), switch.as_deref(), *count, text.as_str())
        });
        said.collect()
    }

    #[test]
    fn only_what_somebody_did_wrong_or_was_refused_is_told() {
        let check = |end: &SessionEnd, expected: Option<&str>| {
            let mut faults = SwitchFaults::default();
            faults.on_end(peer(1, 5), None, end, 0);
            let records = faults.take(0, 0);
            assert_eq!(records.first().map(|record| record.what.as_str()), expected, "{end:?}");
        };
        check(&end(Fault::Network, false), None);
        check(&end(Fault::Operator, false), None);
        check(&end(Fault::Ours, false), None);
        check(&end(Fault::Operator, true), Some("switch_refused"));
        check(&end(Fault::Switch, false), Some("switch_cut_off"));
    }

    #[test]
    fn who_tries_without_end_is_told_at_once_and_then_once_a_minute() {
        let mut faults = SwitchFaults::default();
        let wrong = end(Fault::Switch, false);
        faults.on_end(peer(1, 5), Some(DatapathId(7)), &wrong, 1_000);
        let first = faults.take(1_500, 90_500);
        assert_eq!(
            said(&first),
            [("switch_cut_off", Some("of:0000000000000007"), 1, "10.0.0.1:5: it was so")]
        );
        assert_eq!((first[0].unix_ms, first[0].who.as_str()), (90_000, "switch"));
        for port in 10..1_000 {
            faults.on_end(peer(1, port), Some(DatapathId(7)), &wrong, 2_000);
            assert!(faults.take(61_499, 0).is_empty());
        }
        faults.on_refused(peer(1, 9), &"there is no room", 2_000);
        let of_refusal = [("switch_refused", None, 1, "10.0.0.1:9: there is no room")];
        assert_eq!(said(&faults.take(2_000, 0)), of_refusal);
        let second = faults.take(61_500, 90_500);
        assert_eq!(
            said(&second),
            [("switch_cut_off", Some("of:0000000000000007"), 990, "10.0.0.1:10: it was so")]
        );
        assert_eq!(second[0].unix_ms, 31_000);
        assert!(faults.take(200_000, 0).is_empty() && faults.0.is_empty(), "it is forgotten");
    }

    #[test]
    fn neither_datapath_ids_nor_addresses_without_end_make_records_without_end() {
        let mut faults = SwitchFaults::default();
        let wrong = end(Fault::Operator, true);
        for id in 0..1_000 {
            faults.on_end(peer(1, 5), Some(DatapathId(id)), &wrong, 0);
        }
        let records = faults.take(0, 0);
        assert_eq!(records.len(), OF_ONE_ADDRESS_MAX + 1);
        assert_eq!(records.iter().map(|record| record.count).sum::<u64>(), 1_000);
        for number in 0..10_000 {
            faults.on_end(peer(number, 5), None, &wrong, 0);
            faults.on_end(peer(number, 5), None, &end(Fault::Switch, false), 0);
        }
        assert!(faults.0.len() <= KNOWN_MAX + 2, "{}", faults.0.len());
        let records = faults.take_all(0, 0);
        assert_eq!(records.iter().map(|record| record.count).sum::<u64>(), 20_000);
        assert!(records.len() <= KNOWN_MAX + 2 && faults.0.is_empty());
    }
}
