//! The messages of a switch that is up.
//!
//! It never looks into a packet.

use super::{Session, TYPE_ERROR, TYPE_HELLO};
use crate::fault::SessionEnd;
use crate::receipts::Tag;
use crate::requests::Part;
use crate::translate::error::{canonical_code, describe};
use crate::translate::statistics::ReplyPart;
use crate::translate::{packet_in, removed, statistics};
use crate::turn::{SessionOutput, SouthboundEvent, Turn, message_name};
use abi::command::QUEUE_CONFIG;
use abi::event::write;
use abi::{Outcome, Receipt};
use flow::{BadInput, ErrorCode};
use openflow::error::BAD_TYPE;
use openflow::message::ErrorMessage;
use openflow::view::PacketInView;
use openflow::{Body, Header, Message, Version};

/// The configuration of queues comes in one message.
const ONLY_QUEUES: ReplyPart = ReplyPart { multipart: QUEUE_CONFIG, more: false };

/// The code of a receipt without an error.
const NO_ERROR: ErrorCode = ErrorCode { kind: 0, code: 0 };

/// The kind of a message from a connected switch, in any version.
enum Live {
    PacketIn,
    FlowRemoved,
    PortStatus,
    StatsReply,
    BarrierReply,
    RoleReply,
    QueueConfig,
    EchoRequest,
    Experimenter,
    Error,
    /// A reply without a request, or an unused message: valid, and without effect.
    Unasked,
    /// A message that a switch may not send.
    NotASwitchs,
}

const fn live(version: Version, kind: u8) -> Live {
    match (kind, version) {
        (10, _) => Live::PacketIn,
        (11, _) => Live::FlowRemoved,
        (12, _) => Live::PortStatus,
        (17, Version::V1_0) | (19, Version::V1_3) => Live::StatsReply,
        (19, Version::V1_0) | (21, Version::V1_3) => Live::BarrierReply,
        (25, Version::V1_3) => Live::RoleReply,
        (2, _) => Live::EchoRequest,
        (TYPE_ERROR, _) => Live::Error,
        (4, _) => Live::Experimenter,
        (TYPE_HELLO | 3 | 6 | 8, _) => Live::Unasked,
        (21, Version::V1_0) | (23, Version::V1_3) => Live::QueueConfig,
        (27, Version::V1_3) => Live::Unasked,
        _ => Live::NotASwitchs,
    }
}

impl Session {
    pub(super) fn on_live_message(
        &mut self,
        header: &Header,
        message: &[u8],
        turn: &mut Turn<'_>,
    ) -> Result<(), SessionEnd> {
        let done = match live(self.version, header.kind) {
            Live::PacketIn => self.on_packet_in(message, turn),
            Live::FlowRemoved => self.on_flow_removed(message, turn),
            Live::PortStatus => self.on_port_status(message, turn),
            Live::StatsReply => self.on_stats_reply(header, message, turn),
            Live::BarrierReply => self.on_barrier_reply(header, turn),
            Live::RoleReply => self.on_role_reply(header, message, turn),
            Live::QueueConfig => self.on_part(header, message, ONLY_QUEUES, turn),
            Live::EchoRequest => {
                self.echo(header, message, turn);
                Ok(())
            }
            Live::Experimenter => self.on_experimenter(message, turn),
            Live::Error => self.on_error(message, turn),
            Live::Unasked => {
                self.counters.unasked += 1;
                Ok(())
            }
            Live::NotASwitchs => Err(self.not_a_switchs(header)),
        };
        done.or_else(|bad| self.damaged(message, bad, turn))
    }

    /// Takes a message if it is a typical packet-in: nearly every message takes this path, so it checks only what it
    /// needs.
    #[inline(always)]
    pub(super) fn take_usual_packet_in(&mut self, message: &[u8], turn: &mut Turn<'_>) -> bool {
        if self.is_closing {
            return false;
        }
        // One version after the other, so that the data is written from where it was read.
        if self.version == Version::V1_0 {
            let Some(packet) = packet_in::read_usual(Version::V1_0, message) else { return false };
            self.hand_up(&packet, turn);
        } else {
            let Some(packet) = packet_in::read_usual(Version::V1_3, message) else { return false };
            self.hand_up(&packet, turn);
        }
        true
    }

    #[inline(always)]
    fn hand_up(&mut self, packet: &PacketInView<'_>, turn: &mut Turn<'_>) {
        self.counters.packet_ins += 1;
        let (datapath, sequence) = (self.identity.datapath, self.next_sequence());
        turn.frame.clear();
        if let Some(event) = packet_in::write(turn.frame, sequence, datapath, packet) {
            (turn.sink)(SessionOutput::Out(SouthboundEvent::Event(event)));
        }
    }

    fn on_packet_in(&mut self, message: &[u8], turn: &mut Turn<'_>) -> Result<(), BadInput> {
        let packet = packet_in::read(message)?;
        if self.is_closing {
            self.counters.late_packet_ins += 1;
            return Ok(());
        }
        self.hand_up(&packet, turn);
        Ok(())
    }

    fn on_flow_removed(&mut self, message: &[u8], turn: &mut Turn<'_>) -> Result<(), BadInput> {
        let view = removed::read(message, &mut self.match_tlvs)?;
        self.counters.flow_removeds += 1;
        let (datapath, sequence) = (self.identity.datapath, self.next_sequence());
        let match_tlvs = &self.match_tlvs;
        turn.event(|frame| removed::write(frame, sequence, datapath, &view, match_tlvs));
        Ok(())
    }

    fn on_port_status(&mut self, message: &[u8], turn: &mut Turn<'_>) -> Result<(), BadInput> {
        let Body::PortStatus(status) = Message::decode(message)?.body else { return Ok(()) };
        self.counters.port_statuses += 1;
        let record = self.learn_port(&status, turn);
        let (datapath, sequence) = (self.identity.datapath, self.next_sequence());
        let event = abi::event::PortStatus { datapath, reason: status.reason, port: &record };
        turn.event(|frame| write::port_status(frame, sequence, &event));
        Ok(())
    }

    fn on_barrier_reply(&mut self, header: &Header, turn: &mut Turn<'_>) -> Result<(), BadInput> {
        if self.pace().is_some() {
            self.watch_reply(header.xid, turn);
        }
        let later_ms = self.programmed_after_ms();
        if later_ms > 0 {
            let due_ms = turn.now_ms.saturating_add(later_ms);
            let waited_for = self.receipts.hold_reply(header.xid, due_ms);
            self.counters.unasked += u64::from(!waited_for);
            return Ok(());
        }
        let (datapath, mut sequence) = (self.identity.datapath, self.sequence);
        let waited_for = self.receipts.on_barrier_reply(header.xid, |tag| {
            let receipt =
                Receipt { ticket: tag.ticket, outcome: Outcome::Programmed, error: NO_ERROR, reason: "" };
            sequence += 1;
            turn.tell(tag, |frame| write::receipt(frame, sequence, datapath, &receipt));
        });
        self.sequence = sequence;
        self.counters.unasked += u64::from(!waited_for);
        Ok(())
    }

    fn on_error(&mut self, message: &[u8], turn: &mut Turn<'_>) -> Result<(), BadInput> {
        let Message { version, xid, body: Body::Error(error) } = Message::decode(message)? else {
            return Ok(());
        };
        self.counters.errors_in += 1;
        if let Some(asked) = self.roles.on_answer(xid) {
            // A second error with its transaction id must not reach the sender again.
            self.receipts.on_error(xid);
            self.on_role_error(asked, version, &error, turn);
            return Ok(());
        }
        let text = describe(version, &error);
        turn.line(message_name(version, TYPE_ERROR), &text);
        if self.on_bundle_error(xid, &error, turn) {
            return Ok(());
        }
        if let Some(asked) = self.requests.on_error(xid) {
            // A second error with its transaction id must not reach the sender again.
            self.receipts.on_error(xid);
            self.tell_failed(asked.tag, asked.wants_receipt, version, &error, &text, turn);
        } else if let Some(culprit) = self.receipts.on_error(xid) {
            self.tell_failed(culprit.tag, culprit.awaited, version, &error, &text, turn);
        }
        Ok(())
    }

    /// Tells a zone that the switch answered its command with an error: with the pending receipt, or else with an
    /// event.
    pub(super) fn tell_failed(
        &mut self,
        tag: Tag,
        by_receipt: bool,
        version: Version,
        error: &ErrorMessage,
        reason: &str,
        turn: &mut Turn<'_>,
    ) {
        let (datapath, sequence, ticket) = (self.identity.datapath, self.next_sequence(), tag.ticket);
        let error = canonical_code(version, error);
        turn.tell(tag, |frame| {
            if by_receipt {
                let receipt = Receipt { ticket, outcome: Outcome::Failed, error, reason };
                write::receipt(frame, sequence, datapath, &receipt)
            } else {
                let event = abi::event::SwitchError { datapath, error, ticket, reason };
                write::switch_error(frame, sequence, &event)
            }
        });
    }

    pub(super) fn tell_programmed(&mut self, tag: Tag, turn: &mut Turn<'_>) {
        let (datapath, sequence) = (self.identity.datapath, self.next_sequence());
        let receipt =
            Receipt { ticket: tag.ticket, outcome: Outcome::Programmed, error: NO_ERROR, reason: "" };
        turn.tell(tag, |frame| write::receipt(frame, sequence, datapath, &receipt));
    }

    pub(super) fn tell_unknown(&mut self, tag: Tag, reason: &str, turn: &mut Turn<'_>) {
        let (datapath, sequence) = (self.identity.datapath, self.next_sequence());
        let receipt = Receipt { ticket: tag.ticket, outcome: Outcome::Unknown, error: NO_ERROR, reason };
        turn.tell(tag, |frame| write::receipt(frame, sequence, datapath, &receipt));
    }

    fn on_stats_reply(
        &mut self,
        header: &Header,
        message: &[u8],
        turn: &mut Turn<'_>,
    ) -> Result<(), BadInput> {
        if header.xid == self.desc_xid {
            return self.on_own_description(message);
        }
        let part = statistics::read_part(message)?;
        self.counters.stats_replies += 1;
        self.on_part(header, message, part, turn)
    }

    /// A part of an answer, or the whole of one that has a message of its own.
    pub(super) fn on_part(
        &mut self,
        header: &Header,
        message: &[u8],
        part: ReplyPart,
        turn: &mut Turn<'_>,
    ) -> Result<(), BadInput> {
        let (more, bytes) = (part.more, message.len());
        match self.requests.on_part(header.xid, part.multipart, more, bytes, turn.now_ms) {
            Part::Unasked => self.counters.unasked += 1,
            Part::WrongType(asked) => {
                self.tell_unknown(asked.tag, "the switch answered with statistics of another type", turn);
            }
            Part::TooMuch(asked) => {
                self.tell_unknown(asked.tag, "the switch's answer is too long; the rest is dropped", turn);
            }
            Part::Wanted(asked) => return self.hand_on(asked, part, message, turn),
        }
        Ok(())
    }

    /// Passes on a part of an answer, in the format of 1.3. A malformed part also ends the request of its sender.
    fn hand_on(
        &mut self,
        asked: crate::requests::Asked,
        part: ReplyPart,
        message: &[u8],
        turn: &mut Turn<'_>,
    ) -> Result<(), BadInput> {
        let (datapath, mut sequence, ticket) = (self.identity.datapath, self.sequence, asked.tag.ticket);
        let handed = statistics::in_words_of_1_3(message, part, asked.multipart, |body, more| {
            let reply = abi::event::StatsReply { datapath, ticket, multipart: asked.multipart, more, body };
            sequence += 1;
            turn.tell(asked.tag, |frame| write::stats_reply(frame, sequence, &reply));
        });
        self.sequence = sequence;
        if let Err(bad) = handed {
            self.requests.forget(asked.tag);
            self.tell_unknown(asked.tag, "a part of the switch's answer could not be read", turn);
            return Err(bad);
        }
        if !part.more && asked.wants_receipt {
            self.tell_programmed(asked.tag, turn);
        }
        Ok(())
    }

    /// Takes the answer to the handshake's question that the handshake did not wait for.
    fn on_own_description(&mut self, message: &[u8]) -> Result<(), BadInput> {
        if let Body::MultipartReply(reply) = Message::decode(message)?.body
            && let openflow::message::ReplyBody::Desc(desc) = reply.body
        {
            self.desc = Some(desc);
            self.facts_changed = true;
        }
        Ok(())
    }

    /// Gives up requests that were not answered in time.
    pub(super) fn give_up_late(&mut self, turn: &mut Turn<'_>) {
        let (now_ms, limits) = (turn.now_ms, self.limits);
        let (mut unconfirmed, mut unanswered, mut roleless) = (Vec::new(), Vec::new(), Vec::new());
        self.receipts.on_tick(now_ms, limits.receipt_timeout_ms, |tag| unconfirmed.push(tag));
        self.requests.on_tick(now_ms, limits.request_timeout_ms, |tag| unanswered.push(tag));
        self.roles.on_tick(now_ms, limits.request_timeout_ms, |asked| roleless.push(asked));
        for tag in unconfirmed {
            self.tell_unknown(tag, "the switch did not answer the barrier in time", turn);
        }
        for tag in unanswered {
            self.tell_unknown(tag, "the switch did not answer the statistics request in time", turn);
        }
        self.give_up_late_bundles(turn);
        for asked in roleless {
            self.role_is_unknown(asked, "the switch did not answer the role request in time", turn);
        }
    }

    fn not_a_switchs(&self, header: &Header) -> BadInput {
        let name = message_name(self.version, header.kind);
        let message = format!("a switch must not send type {} ({name})", header.kind);
        BadInput { offset: 1, field: "type", error: BAD_TYPE, message: message.into() }
    }
}
