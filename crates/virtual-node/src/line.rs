//! The session with one switch, and the bytes that wait for the switch.
//!
//! In: messages of the switch, commands. Out: events for the node, messages for the switch. It decides nothing: the session does.

use abi::ZoneId;
use openflow::{HEADER_LEN, Header, Message};
use southbound::session::{Session, Step};
use southbound::{SessionOutput, SouthboundConfig, SouthboundEvent, Turn};
use std::collections::VecDeque;

/// An event of a session: a frame of the ABI.
#[derive(Debug)]
pub(crate) enum Heard {
    /// For all subscribers.
    All(Vec<u8>),
    /// The answer to a command of one zone.
    Zone(ZoneId, Vec<u8>),
}

/// A session in virtual time.
#[derive(Debug)]
pub(crate) struct Line {
    session: Session,
    out: Vec<u8>,
    /// Why the session ended. Nothing is sent or heard then.
    end: Option<String>,
}

impl Line {
    /// A connection that has just opened.
    pub(crate) fn new(config: &SouthboundConfig, now_ms: u64, events: &mut VecDeque<Heard>) -> Line {
        let mut line = Line { session: Session::new(config, now_ms), out: Vec::new(), end: None };
        line.turn(now_ms, events, |session, turn| session.open(turn));
        line
    }

    /// The session does something.
    pub(crate) fn turn<T>(
        &mut self,
        now_ms: u64,
        events: &mut VecDeque<Heard>,
        act: impl FnOnce(&mut Session, &mut Turn<'_>) -> T,
    ) -> T {
        let mut sink = |output: SessionOutput<'_>| {
            if let SessionOutput::Out(event) = output {
                events.extend(heard(event));
            }
        };
        act(
            &mut self.session,
            &mut Turn { now_ms, out: &mut self.out, frame: &mut Vec::new(), sink: &mut sink },
        )
    }

    /// The switch has sent a message.
    pub(crate) fn hear(&mut self, message: &Message, now_ms: u64, events: &mut VecDeque<Heard>) {
        let mut bytes = Vec::new();
        // A message that cannot be encoded is not sent.
        if self.end.is_some() || message.encode(&mut bytes).is_err() {
            return;
        }
        self.session.heard(bytes.len(), now_ms);
        match self.turn(now_ms, events, |session, turn| session.on_message(&bytes, turn)) {
            Ok(Step::On) => {}
            Ok(Step::Identified) => self.turn(now_ms, events, |session, turn| session.admit(turn)),
            Err(end) => self.finish(end.reason.into_owned(), now_ms, events),
        }
    }

    /// Time has passed.
    pub(crate) fn on_tick(&mut self, now_ms: u64, events: &mut VecDeque<Heard>) {
        if self.end.is_none()
            && let Err(end) = self.turn(now_ms, events, |session, turn| session.on_tick(turn))
        {
            self.finish(end.reason.into_owned(), now_ms, events);
        }
    }

    fn finish(&mut self, why: String, now_ms: u64, events: &mut VecDeque<Heard>) {
        self.turn(now_ms, events, |session, turn| session.on_end(&why, turn));
        self.end = Some(why);
    }

    /// Why the session has ended, if it has.
    pub(crate) fn end(&self) -> Option<&str> {
        self.end.as_deref()
    }

    /// The messages for the switch.
    pub(crate) fn take(&mut self, now_ms: u64, events: &mut VecDeque<Heard>) -> Vec<Message> {
        self.turn(now_ms, events, |session, turn| session.on_turn_end(turn));
        let out = std::mem::take(&mut self.out);
        let (mut rest, mut messages) = (out.as_slice(), Vec::new());
        while let Some(bytes) = first(rest) {
            // A session writes whole messages.
            messages.extend(Message::decode(bytes).ok());
            rest = rest.get(bytes.len()..).unwrap_or_default();
        }
        messages
    }
}

/// The first message of some bytes.
fn first(bytes: &[u8]) -> Option<&[u8]> {
    let header = Header::read(bytes.get(..HEADER_LEN)?).ok()?;
    bytes.get(..usize::from(header.length).max(HEADER_LEN))
}

fn heard(event: SouthboundEvent<'_>) -> Option<Heard> {
    match event {
        SouthboundEvent::Event(frame) => Some(Heard::All(frame.to_vec())),
        SouthboundEvent::ToZone { zone, frame, .. } => Some(Heard::Zone(zone, frame.to_vec())),
        // Bundles and profiles of switches are not rehearsed, and `end` tells of the rest.
        _ => None,
    }
}
