//! Packets for the controllers.
//!
//! In: a packet and why it is theirs. Out: a packet-in for each controller that hears of it, in its own version.

use flow::{Field, Match};
use openflow::message::{NO_BUFFER, PacketIn};
use openflow::{Body, Message, Version};
use std::time::Duration;

use super::meter::{CONTROLLER_METER, Verdict};
use super::packet::Packet;
use super::pipeline::Origin;
use super::session::{ControllerId, Session};
use super::{Effects, Switch};

/// OFPR_NO_MATCH.
const REASON_NO_MATCH: u8 = 0;
/// OFPR_ACTION.
const REASON_ACTION: u8 = 1;
/// OFPR_INVALID_TTL.
const REASON_INVALID_TTL: u8 = 2;
/// What 1.0 has no room to say.
const NO_COOKIE: u64 = u64::MAX;
/// OFPCML_NO_BUFFER: all of the packet, and no copy is kept.
const WHOLE_PACKET: u16 = 0xffff;

/// Why a packet is for the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// No rule speaks of it.
    NoRule,
    /// An action sends it there, with so much of it.
    Action { max_len: u16 },
    /// Its time-to-live is over.
    InvalidTtl,
}

/// What one controller is to hear of a packet.
struct Share {
    version: Version,
    reason: u8,
    max_len: u16,
}

impl Session {
    /// What this controller hears of a packet, if anything.
    fn share(&self, cause: Cause, origin: Origin) -> Option<Share> {
        let version = self.version()?;
        let v10 = version == Version::V1_0;
        let (reason, max_len) = match cause {
            // 1.0 asks the controller (1.0, 3.4); 1.3 drops it (1.3.5, 5.4).
            Cause::NoRule if v10 => (REASON_NO_MATCH, self.miss_send_len),
            Cause::NoRule => return None,
            // 1.3 tells a packet that no rule spoke of by the table-miss entry (1.3.5, 7.4.1).
            Cause::Action { max_len } if origin.is_table_miss && !v10 => (REASON_NO_MATCH, max_len),
            Cause::Action { max_len } => (REASON_ACTION, max_len),
            Cause::InvalidTtl => (REASON_INVALID_TTL, self.miss_send_len),
        };
        self.hears_packet_in(reason).then_some(Share { version, reason, max_len })
    }
}

impl Switch {
    /// Sends a packet to the controllers: as much of it as each asks for if the switch can keep the rest, all of it
    /// otherwise. All of them hear of the same kept packet, and the first who says what becomes of it has it.
    pub(super) fn packet_in(
        &mut self,
        packet: &Packet,
        cause: Cause,
        origin: Origin,
        now: Duration,
        effects: &mut Effects,
    ) {
        let silenced = self.ports.get(&packet.in_port).is_some_and(|port| !port.makes_packet_ins())
            || self.meters.meter(CONTROLLER_METER, packet.frame.len(), now) == Verdict::Drop;
        let mut heard = false;
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
            effects.messages.push((ControllerId(index), message));
            self.counters.packet_ins += 1;
            heard = true;
        }
        if !heard && cause != Cause::NoRule {
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

/// What a packet-in tells of a packet beside its bytes (1.3.5, 7.4.1).
fn context(packet: &Packet, version: Version) -> Match {
    let mut context = Match::any().with(Field::InPort, packet.in_port);
    if version != Version::V1_0 && packet.metadata != 0 {
        context.set(Field::Metadata, packet.metadata.into());
    }
    context
}
