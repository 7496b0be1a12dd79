//! The two rings by which events come to an app, as one: control events, and packet-ins behind them. No file descriptors here.
//!
//! In: what a producer wrote into either. Out: one event at a time, in an order in which no control event comes later than a packet-in that
//! was pushed after it. Never knows what an event says.

use crate::fault::PeerFault;
use crate::reader::Reader;

/// By which of the two rings an event came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Control events.
    Control,
    /// Packet-ins.
    Packets,
}

/// Control events that are taken one after the other while packet-ins wait that may be taken. A switch that floods with port statuses would
/// else keep every packet-in waiting.
const CONTROL_IN_A_ROW: u32 = 8;

/// The consumer of both rings.
pub(crate) struct Lanes {
    packets: Reader,
    control: Reader,
    /// Control events taken since the last packet-in.
    in_a_row: u32,
    /// Packet-ins up to here may be taken: each control event that is older than one of them was.
    cleared: u64,
    /// Packet-ins up to the first may be taken when control events up to the second were.
    pending: Option<(u64, u64)>,
}

impl Lanes {
    /// The consumer of two rings that nobody has consumed from yet.
    pub(crate) fn new(packets: Reader, control: Reader) -> Lanes {
        Lanes { packets, control, in_a_row: 0, cleared: 0, pending: None }
    }

    /// As [`Reader::pop_into`], of whichever ring is next.
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

    /// Takes a control event, or finds that there is none.
    fn pop_control(&mut self, buffer: &mut Vec<u8>) -> Result<bool, PeerFault> {
        // Looked at first: the producer shows control events before the packet-ins that were pushed after them, so whatever is older than
        // a packet-in that is seen here is seen in the lines below.
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

    /// Says that the consumer is awake and needs no wake-up.
    pub(crate) fn awake(&mut self) {
        self.control.awake();
        self.packets.awake();
    }

    /// Whether the producer must be woken, since last asked.
    #[must_use]
    pub(crate) fn take_wake_due(&mut self) -> bool {
        let control = self.control.take_wake_due();
        self.packets.take_wake_due() || control
    }
}
