//! The messages that the proxy holds until the model says that they leave.
//!
//! In: messages. Out: their numbers, and the messages again. Its memory is bounded: it says when it has no room, and its owner decides
//! what that means.

use flow::ErrorCode;
use openflow::message::FlowMod;
use profile::model::MessageId;

/// Packet-ins are dropped above this many bytes.
const PACKET_INS_MAX_BYTES: usize = 32 << 20;
/// Above this many bytes, the controller is not read. What was read before is still taken.
const MESSAGES_MAX_BYTES: usize = 8 << 20;
/// How many empty byte strings are kept for the next messages, and up to which size.
const SPARE_MAX: usize = 1024;
const SPARE_BYTES_MAX: usize = 4096;

/// A message.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The message as it came.
    pub(crate) bytes: Vec<u8>,
    /// When it came; for a packet-in, when its packet came to the switch.
    pub(crate) since_ns: u64,
    /// When it came to the proxy.
    pub(crate) came_ns: u64,
    /// Whether it is a packet-in.
    pub(crate) is_packet_in: bool,
    /// Whether a tap has seen the packet of a packet-in.
    pub(crate) is_seen: bool,
    /// A flow mod, decoded.
    pub(crate) flow_mod: Option<Box<FlowMod>>,
    /// The proxy refuses the message with this error when its turn comes.
    pub(crate) refusal: Option<ErrorCode>,
}

#[derive(Debug, Default)]
struct Slot {
    uses: u32,
    held: Option<Held>,
}

/// The held messages.
#[derive(Debug, Default)]
pub(crate) struct HeldMessages {
    slots: Vec<Slot>,
    free: Vec<u32>,
    spare: Vec<Vec<u8>>,
    packet_in_bytes: usize,
    message_bytes: usize,
}

fn parts(id: MessageId) -> (usize, u32) {
    ((id.0 & u64::from(u32::MAX)) as usize, (id.0 >> 32) as u32)
}

impl HeldMessages {
    /// Whether there is room for a packet-in of this length.
    pub(crate) fn has_room_for_packet_in(&self, bytes: usize) -> bool {
        self.packet_in_bytes + bytes <= PACKET_INS_MAX_BYTES
    }

    /// Whether the controller may be read.
    pub(crate) fn has_room_for_messages(&self) -> bool {
        self.message_bytes < MESSAGES_MAX_BYTES
    }

    /// A copy of a message's bytes, in memory that was used before.
    pub(crate) fn copy_of(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        copy
    }

    /// Holds a message.
    pub(crate) fn hold(&mut self, held: Held) -> MessageId {
        *self.bytes_of(held.is_packet_in) += held.bytes.len();
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            // Fewer than 2³² messages fit into the bounds.
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.uses = slot.uses.wrapping_add(1);
        slot.held = Some(held);
        MessageId(u64::from(slot.uses) << 32 | u64::from(index))
    }

    /// The message with this number.
    pub(crate) fn get(&self, id: MessageId) -> Option<&Held> {
        let (index, uses) = parts(id);
        self.slots.get(index).filter(|slot| slot.uses == uses)?.held.as_ref()
    }

    /// Gives the message out.
    pub(crate) fn take(&mut self, id: MessageId) -> Option<Held> {
        let (index, uses) = parts(id);
        let held = self.slots.get_mut(index).filter(|slot| slot.uses == uses)?.held.take()?;
        // The index came out of 32 bits.
        self.free.push(index as u32);
        let bytes = self.bytes_of(held.is_packet_in);
        *bytes = bytes.saturating_sub(held.bytes.len());
        Some(held)
    }

    /// Takes back the memory of a message that was given out.
    pub(crate) fn reuse(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && bytes.capacity() <= SPARE_BYTES_MAX {
            self.spare.push(bytes);
        }
    }

    fn bytes_of(&mut self, is_packet_in: bool) -> &mut usize {
        if is_packet_in { &mut self.packet_in_bytes } else { &mut self.message_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(bytes: usize, is_packet_in: bool) -> Held {
        Held { bytes: vec![0; bytes], is_packet_in, ..Held::default() }
    }

    #[test]
    fn a_number_is_good_once() {
        let mut messages = HeldMessages::default();
        let first = messages.hold(held(3, false));
        assert_eq!(messages.take(first).map(|held| held.bytes.len()), Some(3));
        let second = messages.hold(held(4, false));
        assert!(messages.take(first).is_none() && messages.get(first).is_none());
        assert_eq!(messages.take(second).map(|held| held.bytes.len()), Some(4));
    }

    #[test]
    fn packet_ins_and_messages_have_bounds_of_their_own() {
        let mut messages = HeldMessages::default();
        let ids: Vec<_> = (0..512).map(|_| messages.hold(held(65_535, true))).collect();
        assert!(!messages.has_room_for_packet_in(65_535) && messages.has_room_for_messages());
        messages.hold(held(MESSAGES_MAX_BYTES, false));
        assert!(!messages.has_room_for_messages());
        ids.into_iter().for_each(|id| assert!(messages.take(id).is_some()));
        assert!(messages.has_room_for_packet_in(65_535) && !messages.has_room_for_messages());
    }
}
