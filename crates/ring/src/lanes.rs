//! Combines the two event rings of an app: control events first, then packet-ins. No file descriptors here.
//!
//! In: what a producer wrote into either ring. Out: one event at a time. No control event comes later than a packet-in
//! that was pushed after it. Never looks into an event.

use crate::fault::PeerFault;
use crate::reader::Reader;

/// The ring of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Control events.
    Control,
    /// Packet-ins.
    Packets,
}

/// The number of control events in a row while packet-ins wait. Without the limit, a switch that floods port statuses
/// would block all packet-ins.
const CONTROL_IN_A_ROW: u32 = 8;

/// The consumer of both rings.
pub(crate) struct Lanes {
    packets: Reader,
    control: Reader,
    /// Control events taken since the last packet-in.
    in_a_row: u32,
    /// Packet-ins up to here may be taken: all older control events have been taken.
    cleared: u64,
    /// Packet-ins up to the first position may be taken after control events up to the second position.
    pending: Option<(u64, u64)>,
}

impl Lanes {
    /// Makes the consumer of two new rings.
    pub(crate) fn new(packets: Reader, control: Reader) -> Lanes {
        Lanes { packets, control, in_a_row: 0, cleared: 0, pending: None }
    }

    /// As [`Reader::pop_into`], from the ring that is next.
    pub(crate) fn pop_into(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Lane>, PeerFault> {
        if (self.in_a_row < CONTROL_IN_A_ROW || !self.may_take_packet()) && self.pop_control(buffer)? {
            return Ok(Some(Lane::Control));
        }
        if !self.may_take_packet() {
            self.packets.release();
            return Ok(None);
        }
        self.in_a_row = 0;
        Ok(self.packets.pop_into(buffer)?.map(|_| Lane::Packets))
    }

    fn may_take_packet(&self) -> bool {
        self.packets.position() < self.cleared
    }

    /// Takes a control event. Returns whether there was one.
    fn pop_control(&mut self, buffer: &mut Vec<u8>) -> Result<bool, PeerFault> {
        // Look at the packet-ins first. The producer publishes control events before later packet-ins. So every control
        // event that is older than a packet-in seen here is seen below.
        let packets = self.packets.known()?;
        if self.control.pop_into(buffer)?.is_none() {
            (self.cleared, self.pending) = (packets, None);
            return Ok(false);
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.in_a_row >= CONTROL_IN_A_ROW && self.pending.is_none() {
            self.pending = Some((packets, self.control.look()?));
        }
        if let Some((packets, control)) = self.pending
            && self.control.position() >= control
        {
            (self.cleared, self.pending) = (packets, None);
        }
        Ok(true)
    }

    /// As [`Reader::about_to_sleep`], for both.
    pub(crate) fn about_to_sleep(&mut self) -> bool {
        let sleep = self.control.about_to_sleep() && self.packets.about_to_sleep();
        if !sleep {
            self.awake();
        }
        sleep
    }

    /// Withdraws the request to be woken.
    pub(crate) fn awake(&mut self) {
        self.control.awake();
        self.packets.awake();
    }

    /// Whether the producer must be woken. Resets the answer.
    #[must_use]
    pub(crate) fn take_wake_due(&mut self) -> bool {
        let control = self.control.take_wake_due();
        self.packets.take_wake_due() || control
    }
}
