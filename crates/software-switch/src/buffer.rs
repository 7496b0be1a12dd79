//! The packets that a switch buffers while the controller decides.
//!
//! It never exceeds `n_buffers`. When all slots are used and none is old enough to reuse, the packet is not buffered,
//! and the controller gets the whole packet.

use flow::PortNo;
use std::time::Duration;

use super::refusal::Refusal;

/// How long a buffered packet is safe from being replaced, as in Open vSwitch.
const KEPT_AT_LEAST: Duration = Duration::from_secs(5);

/// The bits of a buffer id that name the slot. The other bits count the slot's uses, so that an old id is not taken
/// for a new one.
const SLOT_BITS: u32 = 16;

/// A packet that waits for the controller.
#[derive(Clone, Debug)]
pub(crate) struct Buffered {
    pub(crate) frame: Vec<u8>,
    pub(crate) in_port: PortNo,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    uses: u32,
    taken_at: Duration,
    packet: Option<Buffered>,
}

/// A switch's packet buffers.
#[derive(Clone, Debug)]
pub(crate) struct PacketBuffers {
    count: usize,
    /// How long a packet is safe from being replaced.
    kept: Duration,
    /// Whether a packet is gone after that time, even if its buffer is not needed.
    expires: bool,
    /// Grows as needed, up to `count`. A switch with a quick controller reuses a few slots.
    slots: Vec<Slot>,
    next: usize,
}

impl PacketBuffers {
    /// Makes `count` buffers, but not more than a buffer id can name.
    pub(crate) fn new(count: u32) -> Self {
        let count = count.min(1 << SLOT_BITS) as usize;
        PacketBuffers { count, kept: KEPT_AT_LEAST, expires: false, slots: Vec::new(), next: 0 }
    }

    /// The same, but each packet is kept for this time and then lost.
    pub(crate) fn with_life(self, kept: Duration) -> Self {
        PacketBuffers { kept, expires: true, ..self }
    }

    /// The number of buffers.
    pub(crate) fn count(&self) -> u32 {
        self.count as u32
    }

    /// Buffers a packet and returns its id, if there is room.
    pub(crate) fn keep(&mut self, frame: &[u8], in_port: PortNo, now: Duration) -> Option<u32> {
        let index = self.free_slot(now)?;
        self.next = (index + 1) % self.slots.len();
        let slot = &mut self.slots[index];
        // One bit less than there is room for: an id of all ones means "no buffer".
        slot.uses = (slot.uses + 1) % (1 << (31 - SLOT_BITS));
        slot.taken_at = now;
        slot.packet = Some(Buffered { frame: frame.to_vec(), in_port });
        Some(slot.uses << SLOT_BITS | index as u32)
    }

    /// The next slot that is free or old enough, or a new one.
    fn free_slot(&mut self, now: Duration) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let is_free = |slot: &Slot| slot.packet.is_none() || now.saturating_sub(slot.taken_at) >= self.kept;
        if self.next < self.slots.len() && is_free(&self.slots[self.next]) {
            return Some(self.next);
        }
        if self.slots.len() < self.count {
            self.slots.push(Slot::default());
            return Some(self.slots.len() - 1);
        }
        None
    }

    /// Returns a buffered packet. Each id works only once.
    pub(crate) fn take(&mut self, id: u32, now: Duration) -> Result<Buffered, Refusal> {
        let index = (id & ((1 << SLOT_BITS) - 1)) as usize;
        let slot = self.slots.get_mut(index).ok_or(Refusal::BufferUnknown)?;
        let is_over = self.expires && now.saturating_sub(slot.taken_at) >= self.kept;
        if slot.uses != id >> SLOT_BITS || is_over {
            return Err(Refusal::BufferUnknown);
        }
        slot.packet.take().ok_or(Refusal::BufferEmpty)
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
        assert_eq!(PacketBuffers::new(1).take(7 << SLOT_BITS, NOW).unwrap_err(), Refusal::BufferUnknown);
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
