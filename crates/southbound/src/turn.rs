//! What a session is given for one turn, and what comes out of it.
//!
//! Never does anything with it: the worker's [`crate::Southbound`] is the one place that acts.

use crate::fault::SessionEnd;
use abi::ZoneId;
use flow::DatapathId;
use openflow::Version;
use std::net::SocketAddr;

/// What the worker hands to the kernel. The bytes are whole frames of the `abi`, and are gone when the call returns.
#[derive(Clone, Copy, Debug)]
pub enum SouthboundEvent<'a> {
    /// Switch up or down, packet-in, port status, flow removed: for whoever subscribed.
    Event(&'a [u8]),
    /// Receipt, switch error, statistics: for one zone.
    ToZone {
        /// Which; [`ZoneId::KERNEL`] for what the node itself asked.
        zone: ZoneId,
        /// The frame.
        frame: &'a [u8],
    },
    /// A session, or what was to be one, has ended: for the node's records. The switch that is down by it comes as an event.
    Ended {
        /// Who had connected.
        peer: SocketAddr,
        /// As which switch, if it came so far to say.
        datapath: Option<DatapathId>,
        /// Why.
        end: &'a SessionEnd,
    },
}

/// What a session wants done.
#[derive(Clone, Copy, Debug)]
pub enum Effect<'a> {
    /// Hand this to the kernel.
    Out(SouthboundEvent<'a>),
    /// Write this into the log.
    Line(Line<'a>),
}

/// A line for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The message that it is about, by its name in the specification.
    pub message: &'static str,
    /// The field and its offset from the message's beginning.
    pub place: Option<(&'static str, usize)>,
    /// One sentence.
    pub text: &'a str,
}

/// What a session is given for one turn.
pub struct Turn<'a> {
    /// Milliseconds of a clock that only goes forward.
    pub now_ms: u64,
    /// Where messages for the switch are appended.
    pub out: &'a mut Vec<u8>,
    /// A buffer for the frame that is being put together. Its contents mean nothing.
    pub frame: &'a mut Vec<u8>,
    /// Where effects go.
    pub sink: &'a mut dyn FnMut(Effect<'_>),
}

impl Turn<'_> {
    /// Puts one event together and hands it over. A frame that does not fit the `abi` is dropped.
    #[inline(always)]
    pub(crate) fn event(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        self.frame.clear();
        if write(self.frame) {
            (self.sink)(Effect::Out(SouthboundEvent::Event(self.frame)));
        }
    }

    /// The same for one zone.
    pub(crate) fn tell(&mut self, zone: ZoneId, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        self.frame.clear();
        if write(self.frame) {
            (self.sink)(Effect::Out(SouthboundEvent::ToZone { zone, frame: self.frame }));
        }
    }

    /// Writes a line into the log.
    pub(crate) fn line(&mut self, message: &'static str, text: &str) {
        (self.sink)(Effect::Line(Line { message, place: None, text }));
    }

    /// Writes a line about something in a message.
    pub(crate) fn line_at(&mut self, message: &'static str, bad: &flow::BadInput) {
        let line = Line { message, place: Some((bad.field, bad.offset)), text: &bad.message };
        (self.sink)(Effect::Line(line));
    }
}

/// A message's name in the specification, for people.
pub(crate) fn message_name(version: Version, kind: u8) -> &'static str {
    openflow::names::message_type_name(version, kind).unwrap_or("a message of an unknown type")
}
