//! What a host may send to each other host, and what it received from each: the shaper and the meter of its server.
//!
//! In: ceilings by address, frames. Out: the rate of each flow's line, bytes by sender. It sends nothing, and decides on no rate.

use flow::MacAddr;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The most senders whose bytes a host counts. Bytes of further ones are in the host's counters alone.
const SENDERS_MAX: usize = 4_096;

/// The most other hosts with a ceiling. For further ones, the link's rate holds.
const CEILINGS_MAX: usize = 4_096;

/// The bytes of frames for this host, by the address that sent them.
#[derive(Clone, Debug, Default)]
pub(super) struct Received(BTreeMap<MacAddr, u64>);

impl Received {
    /// A frame for the host arrived.
    pub(super) fn on_frame(&mut self, frame: &[u8]) {
        let Some(sender) = frame.get(6..).and_then(|rest| rest.first_chunk()).map(|octets| MacAddr(*octets))
        else {
            return;
        };
        if self.0.len() < SENDERS_MAX || self.0.contains_key(&sender) {
            *self.0.entry(sender).or_default() += frame.len() as u64;
        }
    }

    /// The bytes of each sender since the host was made.
    pub(super) fn bytes(&self) -> impl Iterator<Item = (MacAddr, u64)> {
        self.0.iter().map(|(sender, bytes)| (*sender, *bytes))
    }
}

/// How fast flows may go to other hosts, in bit/s.
#[derive(Clone, Debug, Default)]
pub(super) struct Ceilings(BTreeMap<IpAddr, u64>);

impl Ceilings {
    /// All flows to an address together send no faster. `None`: as fast as the link.
    pub(super) fn set(&mut self, to: IpAddr, bits_per_s: Option<u64>) {
        match bits_per_s {
            None => drop(self.0.remove(&to)),
            Some(rate) if self.0.len() < CEILINGS_MAX || self.0.contains_key(&to) => {
                self.0.insert(to, rate);
            }
            Some(_) => {}
        }
    }

    /// Whether no host has a ceiling.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rate of one of so many flows to an address, over a link of this rate.
    pub(super) fn rate(&self, to: IpAddr, flows: u64, line_bits_per_s: u64) -> u64 {
        let ceiling = self.0.get(&to).map_or(u64::MAX, |ceiling| (ceiling / flows.max(1)).max(1));
        ceiling.min(line_bits_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_to_one_host_share_its_ceiling_and_none_exceeds_the_link() {
        let [one, two] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let mut ceilings = Ceilings::default();
        ceilings.set(one, Some(6_000));
        let rate = |ceilings: &Ceilings, to, flows| ceilings.rate(to, flows, 5_000);
        assert_eq!([1, 2, 3].map(|flows| rate(&ceilings, one, flows)), [5_000, 3_000, 2_000]);
        assert_eq!(rate(&ceilings, two, 3), 5_000);
        assert_eq!(ceilings.rate(one, 10_000, 5_000), 1, "a flow is never stopped");
        ceilings.set(one, None);
        assert_eq!(rate(&ceilings, one, 3), 5_000);
    }

    #[test]
    fn bytes_are_counted_by_sender() {
        let frame = |sender: u8, length: usize| {
            [&[0; 6][..], &[2, 0, 0, 0, 0, sender], &vec![0; length - 12]].concat()
        };
        let mut received = Received::default();
        for (sender, length) in [(1, 100), (2, 60), (1, 50)] {
            received.on_frame(&frame(sender, length));
        }
        received.on_frame(&[0; 7]);
        let bytes: Vec<_> = received.bytes().map(|(sender, bytes)| (sender.0[5], bytes)).collect();
        assert_eq!(bytes, [(1, 150), (2, 60)]);
    }
}
