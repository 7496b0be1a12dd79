//! What a session gets for one turn, and what it produces.
//!
//! It takes no action: the worker's [`crate::Southbound`] alone acts.

use crate::fault::SessionEnd;
use crate::receipts::Tag;
use crate::reply_watch::Departure;
use abi::ZoneId;
use flow::DatapathId;
use openflow::Version;
use std::net::SocketAddr;

/// What the worker passes to the kernel. The bytes are whole frames of the `abi`, valid only during the call.
#[derive(Clone, Copy, Debug)]
pub enum SouthboundEvent<'a> {
    /// Switch up or down, packet-in, port status, flow removed: for all subscribers.
    Event(&'a [u8]),
    /// Receipt, switch error, statistics: for one zone.
    ToZone {
        /// The zone. [`ZoneId::KERNEL`] for the node's own requests.
        zone: ZoneId,
        /// Which start of its app sent the command, in 16 bits.
        generation: u16,
        /// The frame.
        frame: &'a [u8],
    },
    /// A bundle of an app is under way to this switch no more. The end of the session ends all of them without this.
    BundleOver {
        /// The switch.
        datapath: DatapathId,
    },
    /// How many rules the hardware table of this switch has by its profile. `None`: what the switch says.
    Entries {
        /// The switch.
        datapath: DatapathId,
        /// The number.
        entries: Option<u32>,
    },
    /// The switch answers otherwise than its profile says.
    LeftProfile {
        /// The switch.
        datapath: DatapathId,
        /// The name of the profile.
        profile: &'a str,
        /// How.
        departure: &'a Departure,
    },
    /// A session, or an attempt at one, has ended: for the node's records. A separate event reports that the switch
    /// is down.
    Ended {
        /// The peer's address.
        peer: SocketAddr,
        /// The datapath id, if the peer sent it.
        datapath: Option<DatapathId>,
        /// Why it ended.
        end: &'a SessionEnd,
    },
}

/// What a session requests.
#[derive(Clone, Copy, Debug)]
pub enum SessionOutput<'a> {
    /// Pass this to the kernel.
    Out(SouthboundEvent<'a>),
    /// Write this into the log.
    Line(Line<'a>),
}

/// A line for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The message in question, by its name in the specification.
    pub message: &'static str,
    /// The field, and its offset from the start of the message in bytes.
    pub place: Option<(&'static str, usize)>,
    /// The text, in one sentence.
    pub text: &'a str,
}

/// What a session gets for one turn.
pub struct Turn<'a> {
    /// Milliseconds of a monotonic clock.
    pub now_ms: u64,
    /// The buffer to append messages for the switch to.
    pub out: &'a mut Vec<u8>,
    /// A buffer for the frame under construction. Its old content has no meaning.
    pub frame: &'a mut Vec<u8>,
    /// Receives the session's requests.
    pub sink: &'a mut dyn FnMut(SessionOutput<'_>),
}

impl Turn<'_> {
    /// Builds one event and passes it on. A frame that does not fit the `abi` is dropped.
    #[inline(always)]
    pub(crate) fn event(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        self.frame.clear();
        if write(self.frame) {
            (self.sink)(SessionOutput::Out(SouthboundEvent::Event(self.frame)));
        }
    }

    /// The same for one zone.
    pub(crate) fn tell(&mut self, tag: Tag, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        self.frame.clear();
        if write(self.frame) {
            (self.sink)(SessionOutput::Out(SouthboundEvent::ToZone {
                zone: tag.zone,
                generation: tag.generation,
                frame: self.frame,
            }));
        }
    }

    /// Writes a line into the log.
    pub(crate) fn line(&mut self, message: &'static str, text: &str) {
        (self.sink)(SessionOutput::Line(Line { message, place: None, text }));
    }

    /// Writes a line about something in a message.
    pub(crate) fn line_at(&mut self, message: &'static str, bad: &flow::BadInput) {
        let line = Line { message, place: Some((bad.field, bad.offset)), text: &bad.message };
        (self.sink)(SessionOutput::Line(line));
    }
}

/// A message's name in the specification, for people.
pub(crate) fn message_name(version: Version, kind: u8) -> &'static str {
    openflow::names::message_type_name(version, kind).unwrap_or("a message of an unknown type")
}
