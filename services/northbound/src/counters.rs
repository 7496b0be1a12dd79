//! The counters of ports, and the rates between the last two answers of a switch.
//!
//! ```text
//!   body of OFPMP_PORT_STATS ──read──> PortCounters ──Counters::take──> rates, totals
//! ```
//!
//! In: answers of switches (OpenFlow 1.3.5, 7.3.5.6), and the time. Out: totals and rates of each port. It asks no switch. A malformed answer changes
//! nothing.

use burnet_sdk::view::ConnectPoint;
use burnet_sdk::{DatapathId, PortNo};
use serde::Serialize;
use std::collections::BTreeMap;

/// The number of the request (`OFPMP_PORT_STATS`).
pub const OFPMP_PORT_STATS: u16 = 4;

/// The body of the request: all ports.
pub const ALL_PORTS: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The length of one port's entry.
const ENTRY_BYTES: usize = 112;

/// The most ports whose counters are kept. Those of further ports are left out.
const PORTS_MAX: usize = 262_144;

/// The counters of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PortCounters {
    /// The port.
    pub id: ConnectPoint,
    /// When the switch reported them, in milliseconds since 1970.
    pub at_ms: u64,
    /// Received packets.
    pub rx_packets: u64,
    /// Sent packets.
    pub tx_packets: u64,
    /// Received bytes.
    pub rx_bytes: u64,
    /// Sent bytes.
    pub tx_bytes: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Packets to send that were dropped.
    pub tx_dropped: u64,
    /// Damaged packets.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Received bits per second, between the last two reports.
    pub rx_bps: u64,
    /// Sent bits per second, between the last two reports.
    pub tx_bps: u64,
}

/// The counters of all ports, by port.
#[derive(Debug, Default)]
pub struct Counters {
    ports: BTreeMap<ConnectPoint, PortCounters>,
    version: u64,
}

impl Counters {
    /// Takes a part of a switch's answer. Returns the ports in it.
    pub fn take(&mut self, switch: DatapathId, body: &[u8], now_ms: u64) -> Vec<PortCounters> {
        if !body.len().is_multiple_of(ENTRY_BYTES) {
            return Vec::new();
        }
        self.version += 1;
        let mut taken = Vec::new();
        for entry in body.chunks_exact(ENTRY_BYTES) {
            let Some(mut new) = read(switch, entry, now_ms) else { continue };
            match self.ports.get(&new.id) {
                Some(old) => rate(old, &mut new),
                None if self.ports.len() >= PORTS_MAX => continue,
                None => {}
            }
            self.ports.insert(new.id, new);
            taken.push(new);
        }
        taken
    }

    /// The switch is gone: its counters begin again when it returns.
    pub fn forget(&mut self, switch: DatapathId) {
        self.version += 1;
        self.ports.retain(|at, _| at.switch != switch);
    }

    /// Counts the answers.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The counters of one port.
    pub fn get(&self, at: ConnectPoint) -> Option<&PortCounters> {
        self.ports.get(&at)
    }

    /// All, in the order of their ports.
    pub fn iter(&self) -> impl Iterator<Item = &PortCounters> {
        self.ports.values()
    }
}

fn read(switch: DatapathId, entry: &[u8], at_ms: u64) -> Option<PortCounters> {
    let port = PortNo(u32::from_be_bytes(*entry.first_chunk()?));
    let number = |at: usize| {
        let bytes = entry.get(8 + 8 * at..16 + 8 * at).and_then(|it| <[u8; 8]>::try_from(it).ok());
        // A switch that does not count this says all ones (7.3.5.6).
        bytes.map(u64::from_be_bytes).filter(|it| *it != u64::MAX).unwrap_or_default()
    };
    Some(PortCounters {
        id: ConnectPoint { switch, port },
        at_ms,
        rx_packets: number(0),
        tx_packets: number(1),
        rx_bytes: number(2),
        tx_bytes: number(3),
        rx_dropped: number(4),
        tx_dropped: number(5),
        rx_errors: number(6),
        tx_errors: number(7),
        rx_bps: 0,
        tx_bps: 0,
    })
}

fn rate(old: &PortCounters, new: &mut PortCounters) {
    let elapsed_ms = new.at_ms.saturating_sub(old.at_ms);
    let bits_per_s = |old: u64, new: u64| {
        // A switch that restarted counts from 0.
        let bytes = u128::from(new.saturating_sub(old));
        u64::try_from((bytes * 8_000).checked_div(u128::from(elapsed_ms)).unwrap_or_default())
            .unwrap_or(u64::MAX)
    };
    new.rx_bps = bits_per_s(old.rx_bytes, new.rx_bytes);
    new.tx_bps = bits_per_s(old.tx_bytes, new.tx_bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(port: u32, rx_bytes: u64) -> Vec<u8> {
        let mut bytes = vec![0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&port.to_be_bytes());
        bytes[24..32].copy_from_slice(&rx_bytes.to_be_bytes());
        bytes
    }

    #[test]
    fn a_malformed_answer_changes_nothing() {
        let mut counters = Counters::default();
        for length in [1, ENTRY_BYTES - 1, ENTRY_BYTES + 1] {
            assert!(counters.take(DatapathId(1), &vec![0; length], 0).is_empty());
        }
        assert_eq!((counters.version(), counters.iter().count()), (0, 0));
    }

    #[test]
    fn a_rate_is_that_of_the_last_two_answers() {
        let mut counters = Counters::default();
        let mut check = |rx_bytes: u64, now_ms: u64, expected: u64| {
            let taken = counters.take(DatapathId(1), &entry(3, rx_bytes), now_ms);
            assert_eq!(
                taken.iter().map(|it| it.rx_bps).collect::<Vec<_>>(),
                [expected],
                "{rx_bytes} {now_ms}"
            );
        };
        check(1_000, 5_000, 0);
        check(2_000, 6_000, 8_000);
        check(2_000, 6_000, 0);
        check(500, 7_000, 0);
        check(u64::MAX, 8_000, 0);
        check(u64::MAX - 1, 8_001, u64::MAX);
    }
}
