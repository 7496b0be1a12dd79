//! Packet-ins: packets that the switch sends to its controllers.
//!
//! In: a packet and the reason. Out: a packet-in for each controller that wants it, in the controller's version.

use flow::{Field, Match};
use openflow::message::{NO_BUFFER, PacketIn};
use openflow::{Body, Message, Version};
use std::time::Duration;

use super::{Effects, Switch};
use crate::meter::{CONTROLLER_METER, MeterResult};
use crate::packet::Packet;
use crate::session::{ControllerId, Session};

/// OFPR_NO_MATCH.
const REASON_NO_MATCH: u8 = 0;
/// OFPR_ACTION.
const REASON_ACTION: u8 = 1;
/// OFPR_INVALID_TTL.
const REASON_INVALID_TTL: u8 = 2;
/// The cookie in 1.0, whose packet-in has none, and of packet-ins that no rule caused, as in Open vSwitch.
const NO_COOKIE: u64 = u64::MAX;
/// OFPCML_NO_BUFFER: send the whole packet, and do not buffer it.
const WHOLE_PACKET: u16 = 0xffff;

/// Why a packet is sent to the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketInCause {
    /// No rule matches it.
    NoRule,
    /// An action sends it, with at most `max_len` bytes of it.
    Action { max_len: u16 },
    /// Its time-to-live has ended.
    InvalidTtl,
}

/// Where the current actions come from, for a packet-in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) table_id: u8,
    pub(crate) cookie: u64,
    pub(crate) is_table_miss: bool,
    /// Whether they came in a packet-out. Only a packet-out may send to TABLE.
    pub(crate) from_packet_out: bool,
}

impl Origin {
    /// The actions of a packet-out.
    pub(crate) const PACKET_OUT: Origin =
        Origin { table_id: 0, cookie: NO_COOKIE, is_table_miss: false, from_packet_out: true };
    /// A packet that no rule matches.
    pub(crate) const NO_RULE: Origin = Origin { from_packet_out: false, ..Origin::PACKET_OUT };
}

/// What one controller receives of a packet.
struct Share {
    version: Version,
    reason: u8,
    max_len: u16,
}

impl Session {
    /// What this controller receives of a packet, if it wants the packet.
    fn share(&self, cause: PacketInCause, origin: Origin) -> Option<Share> {
        let version = self.version()?;
        let v10 = version == Version::V1_0;
        let (reason, max_len) = match cause {
            // 1.0 sends it to the controller (1.0, 3.4); 1.3 drops it (1.3.5, 5.4).
            PacketInCause::NoRule if v10 => (REASON_NO_MATCH, self.miss_send_len),
            PacketInCause::NoRule => return None,
            // In 1.3, a packet that only the table-miss entry matches has its own reason (1.3.5, 7.4.1).
            PacketInCause::Action { max_len } if origin.is_table_miss && !v10 => (REASON_NO_MATCH, max_len),
            PacketInCause::Action { max_len } => (REASON_ACTION, max_len),
            PacketInCause::InvalidTtl => (REASON_INVALID_TTL, self.miss_send_len),
        };
        self.hears_packet_in(reason).then_some(Share { version, reason, max_len })
    }
}

impl Switch {
    /// Sends a packet to the controllers. If the switch can buffer it, each gets as many bytes as it asked for;
    /// otherwise each gets the whole packet. All controllers get the same buffer id, and the first one that uses it
    /// gets the packet.
    pub(super) fn packet_in(
        &mut self,
        packet: &Packet,
        cause: PacketInCause,
        origin: Origin,
        now: Duration,
        effects: &mut Effects,
    ) {
        let silenced = self.ports.get(&packet.in_port).is_some_and(|port| !port.makes_packet_ins())
            || self.meters.meter(CONTROLLER_METER, packet.frame.len(), now) == MeterResult::Drop;
        let mut heard = false;
        let mut waiting = Vec::new();
        let mut kept = None;
        for index in 0..self.sessions.len() {
            let Some(share) = self.sessions[index].share(cause, origin).filter(|_| !silenced) else {
                continue;
            };
            let buffer_id = if share.max_len == WHOLE_PACKET {
                None
            } else {
                *kept.get_or_insert_with(|| self.buffers.keep(&packet.frame, packet.in_port, now))
            };
            let body = Body::PacketIn(describe(packet, &share, origin, buffer_id));
            let message = Message { version: share.version, xid: 0, body };
            heard = true;
            if self.profiled.is_some() {
                waiting.push((ControllerId(index), message));
            } else {
                effects.messages.push((ControllerId(index), message));
                self.counters.packet_ins += 1;
            }
        }
        if !waiting.is_empty() {
            self.hold_packet_in(waiting, kept.flatten(), packet.frame.len(), now, effects);
        }
        if !heard && cause != PacketInCause::NoRule {
            self.counters.packet_ins_unheard += 1;
        }
    }
}

fn describe(packet: &Packet, share: &Share, origin: Origin, buffer_id: Option<u32>) -> PacketIn {
    let whole = packet.frame.len();
    let shown = if buffer_id.is_some() { whole.min(share.max_len.into()) } else { whole };
    let v10 = share.version == Version::V1_0;
    PacketIn {
        buffer_id: buffer_id.unwrap_or(NO_BUFFER),
        total_len: u16::try_from(whole).unwrap_or(u16::MAX),
        reason: share.reason,
        table_id: if v10 { 0 } else { origin.table_id },
        cookie: if v10 { NO_COOKIE } else { origin.cookie },
        matching: context(packet, share.version),
        data: packet.frame[..shown].to_vec(),
    }
}

/// What a packet-in says about a packet beside its bytes (1.3.5, 7.4.1).
fn context(packet: &Packet, version: Version) -> Match {
    let mut context = Match::any().with(Field::InPort, packet.in_port);
    if version != Version::V1_0 && packet.metadata != 0 {
        context.set(Field::Metadata, packet.metadata.into());
    }
    context
}
