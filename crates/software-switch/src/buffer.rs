//! The packets that a switch buffers while the controller decides.
//!
//! It never exceeds `n_buffers`. When all are used and none is old enough to reuse, the packet is not buffered,
//! and the controller gets the whole packet.

use flow::PortNo;
use profile::model::{self, Buffers, slot_of};
use std::time::Duration;

use super::profiled::nanoseconds;
use super::refusal::Refusal;

/// How long a buffered packet is safe from being replaced, as in Open vSwitch.
const KEPT_AT_LEAST: Duration = Duration::from_secs(5);

/// A packet that waits for the controller.
#[derive(Clone, Debug)]
pub(crate) struct Buffered {
    pub(crate) frame: Vec<u8>,
    pub(crate) in_port: PortNo,
}

/// A switch's packet buffers.
#[derive(Clone, Debug)]
pub(crate) struct PacketBuffers {
    numbers: Buffers,
    /// By the slot of the number. Grows as needed: a switch with a quick controller reuses a few.
    packets: Vec<Option<Buffered>>,
}

impl PacketBuffers {
    /// Makes `count` buffers, but not more than a buffer id can name.
    pub(crate) fn new(count: u32) -> Self {
        let numbers = Buffers::new(count, nanoseconds(KEPT_AT_LEAST)).without_expiry();
        PacketBuffers { numbers, packets: Vec::new() }
    }

    /// The same, but each packet is kept for this time and then lost.
    pub(crate) fn with_life(self, kept: Duration) -> Self {
        PacketBuffers { numbers: Buffers::new(self.count(), nanoseconds(kept)), ..self }
    }

    /// The number of buffers.
    pub(crate) fn count(&self) -> u32 {
        self.numbers.count()
    }

    /// Buffers a packet and returns its id, if there is room.
    pub(crate) fn keep(&mut self, frame: &[u8], in_port: PortNo, now: Duration) -> Option<u32> {
        let id = self.numbers.keep(nanoseconds(now))?;
        let slot = slot_of(id);
        if self.packets.len() <= slot {
            self.packets.resize(slot + 1, None);
        }
        self.packets[slot] = Some(Buffered { frame: frame.to_vec(), in_port });
        Some(id)
    }

    /// Returns a buffered packet. Each id works only once.
    pub(crate) fn take(&mut self, id: u32, now: Duration) -> Result<Buffered, Refusal> {
        self.numbers.take(id, nanoseconds(now)).map_err(|refusal| match refusal {
            model::Refusal::BufferEmpty => Refusal::BufferEmpty,
            model::Refusal::BufferUnknown | model::Refusal::TableFull => Refusal::BufferUnknown,
        })?;
        self.packets.get_mut(slot_of(id)).and_then(Option::take).ok_or(Refusal::BufferEmpty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn an_id_that_was_never_given_is_unknown() {
        let mut none = PacketBuffers::new(0);
        assert_eq!(none.keep(b"a", PortNo(1), NOW), None);
        assert_eq!(none.take(0, NOW).unwrap_err(), Refusal::BufferUnknown);
        assert_eq!(PacketBuffers::new(1).take(7 << 16, NOW).unwrap_err(), Refusal::BufferUnknown);
    }

    #[test]
    fn a_packet_is_given_back_once() {
        let mut buffers = PacketBuffers::new(2);
        let id = buffers.keep(b"a", PortNo(1), NOW).unwrap();
        assert_eq!(buffers.take(id, NOW).unwrap().frame, b"a");
        assert_eq!(buffers.take(id, NOW).unwrap_err(), Refusal::BufferEmpty);
    }

    #[test]
    fn a_full_switch_gives_up_only_what_is_old() {
        let mut buffers = PacketBuffers::new(1);
        let first = buffers.keep(b"a", PortNo(1), NOW).unwrap();
        assert_eq!(buffers.keep(b"b", PortNo(1), NOW + Duration::from_secs(4)), None);
        assert!(buffers.keep(b"c", PortNo(1), NOW + KEPT_AT_LEAST).is_some());
        assert_eq!(buffers.take(first, NOW).unwrap_err(), Refusal::BufferUnknown);
    }
}
