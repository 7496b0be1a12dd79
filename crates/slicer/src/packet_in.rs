//! Packet-ins: from the physical switch to the controllers.
//!
//! The tenant's port replaces the physical one, the slice's tag is stripped, its addresses become the tenant's, and the packet gets a buffer of the virtual switch. A controller
//! of 1.3 receives a packet that hits no rule only by its own table-miss rule; one of 1.0 always. Frames of discovery protocols never pass:
//! a host must not forge a link. A controller that has not read its earlier messages gets none: the packet is counted, and has no buffer
//! unless another controller receives it.
//!
//! In: packet-ins of the kernel. Out: packet-ins for controllers.

use crate::buffers::Frame;
use crate::discovery::is_probe;
use crate::event::{Cause, PacketIn};
use crate::floor::FLOOR_COOKIE;
use crate::output::LimitKind;
use crate::rule_table::Rule;
use crate::tag::{FRAME_MIN, TAG_LEN, outer_tag};
use crate::virtual_switch::{Turn, VirtualSwitch};
use flow::frame::FrameFields;
use flow::{Action, Field, Match, PortNo};
use openflow::message::{self, NO_BUFFER};
use openflow::{Body, Message, Version};
use std::borrow::Cow;

/// OFPR_NO_MATCH.
const NO_MATCH: u8 = 0;
/// OFPR_ACTION.
const BY_ACTION: u8 = 1;
/// OFPR_INVALID_TTL.
const INVALID_TTL: u8 = 2;
/// The cookie of a packet-in without a rule.
const NO_COOKIE: u64 = u64::MAX;
/// OFPCML_NO_BUFFER.
const WHOLE_PACKET: u16 = 0xffff;

/// Why a packet goes to the controllers, in the tenant's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It hit no rule.
    Miss,
    /// A rule or a packet-out sends it.
    Action {
        cookie: u64,
        max_len: u16,
        /// Whether the rule is 1.3's table-miss rule.
        is_table_miss: bool,
    },
    /// Its time-to-live ended.
    InvalidTtl { cookie: u64 },
}

/// A packet for the controllers, as the tenant sees it.
pub(crate) struct Seen<'a> {
    pub(crate) in_port: PortNo,
    /// The whole length; `frame` may be shorter.
    pub(crate) total_len: u16,
    pub(crate) frame: &'a [u8],
    /// The packet's buffer in the physical switch, and whether the packet is dressed there.
    pub(crate) in_switch: Option<(u32, bool)>,
    pub(crate) reason: Reason,
}

impl VirtualSwitch {
    /// The physical switch sent a packet up.
    pub(crate) fn on_packet_in(&mut self, packet: &PacketIn<'_>, turn: &mut Turn<'_>) {
        let Some(in_port) = self.space.shown(packet.in_port) else { return };
        let is_open = self.space.port(in_port).is_some_and(|port| port.makes_packet_ins());
        if !is_open || packet.data.len() < FRAME_MIN {
            return;
        }
        let undressed = self.space.undressed(packet.data);
        let is_dressed = undressed.is_some();
        if self.space.tag.is_some() && !is_dressed && outer_tag(packet.data).is_some() {
            return;
        }
        let is_whole = packet.data.len() >= usize::from(packet.total_len);
        if !self.space.dresses() && is_whole && !self.space.holds(Some(in_port), packet.data) {
            return;
        }
        // A host sends frames that look dressed, which are of no slice. What a rule sends up is dressed or not.
        let is_from_rule = matches!(packet.cause, Cause::Own(_))
            || (packet.cause == Cause::Unknown && packet.reason != NO_MATCH);
        let is_dressed_here = self.space.port(in_port).is_some_and(|port| self.space.is_dressed_at(port));
        if !is_from_rule && is_dressed != is_dressed_here {
            return;
        }
        let bytes = undressed.map_or(Cow::Borrowed(packet.data), Cow::Owned);
        if is_probe(&bytes) {
            self.counters.foreign_probes += 1;
            return;
        }
        if self.space.addresses.is_some() && !is_dressed {
            // A host has sent it, with an address of its own, or of another.
            let is_known = is_from_rule || self.space.holds(Some(in_port), packet.data);
            if !is_known || self.space.dressed(packet.data).is_none() {
                return;
            }
        }
        let tag_len = if self.space.tag.is_some() && is_dressed { TAG_LEN as u16 } else { 0 };
        let seen = Seen {
            in_port,
            total_len: packet.total_len.saturating_sub(tag_len),
            frame: &bytes,
            in_switch: packet.buffer_id.map(|id| (id, is_dressed)),
            reason: self.reason_of(packet, in_port, &bytes),
        };
        self.tell_packet(&seen, turn);
    }

    /// The reason in the tenant's terms.
    fn reason_of(&self, packet: &PacketIn<'_>, in_port: PortNo, frame: &[u8]) -> Reason {
        let is_miss = packet.reason == NO_MATCH
            && !matches!(packet.cause, Cause::Own(number) if number != FLOOR_COOKIE);
        let rule = match packet.cause {
            Cause::Own(number) => self.rules.get(number),
            Cause::Other => None,
            // A switch of 1.0 does not say which rule it was: the tenant's table tells.
            Cause::Unknown if !is_miss && self.on() == Version::V1_0 => self.rule_for(in_port, frame),
            Cause::Unknown => None,
        };
        let is_floor = matches!(packet.cause, Cause::Own(FLOOR_COOKIE) | Cause::Other);
        match (packet.reason, rule) {
            (INVALID_TTL, rule) => Reason::InvalidTtl { cookie: rule.map_or(NO_COOKIE, |rule| rule.cookie) },
            (_, Some(rule)) => reason_of_rule(rule),
            _ if is_miss || is_floor => Reason::Miss,
            // A packet-out of the tenant, or a rule that is gone by now.
            _ => Reason::Action { cookie: NO_COOKIE, max_len: WHOLE_PACKET, is_table_miss: false },
        }
    }

    /// The rule that a frame hits, as the tenant sees it.
    pub(crate) fn rule_for(&self, in_port: PortNo, frame: &[u8]) -> Option<&Rule> {
        self.rules.hit(&FrameFields::read(frame).from_port(in_port))
    }

    /// Sends a packet to the controllers that want it. All get the same buffer, and the first that uses it gets the packet.
    pub(crate) fn tell_packet(&mut self, seen: &Seen<'_>, turn: &mut Turn<'_>) {
        let mut unread = 0;
        let shares: Vec<(usize, Version, u8, u16)> = self
            .open()
            .filter_map(|(number, it, version)| {
                let (reason, max_len) = share(seen.reason, version, it.miss_send_len)?;
                let hears = it.hears_packet_in(reason);
                unread += u64::from(hears && !it.has_room);
                (hears && it.has_room).then_some((number, version, reason, max_len))
            })
            .collect();
        self.counters.packet_ins_unread += unread;
        if shares.is_empty() {
            self.counters.packet_ins_unheard += u64::from(unread == 0);
            return;
        }
        if !self.take(LimitKind::PacketIns, turn) {
            self.counters.packet_ins_dropped += 1;
            return;
        }
        self.counters.packet_ins += 1;
        let wants_buffer = shares.iter().any(|(.., max_len)| *max_len != WHOLE_PACKET);
        let buffer_id = if wants_buffer || seen.in_switch.is_some() { self.keep(seen) } else { None };
        for (controller, version, reason, max_len) in shares {
            let kept = buffer_id.filter(|_| max_len != WHOLE_PACKET || seen.in_switch.is_some());
            let shown = if kept.is_some() { seen.frame.len().min(max_len.into()) } else { seen.frame.len() };
            let is_v10 = version == Version::V1_0;
            let packet = message::PacketIn {
                buffer_id: kept.unwrap_or(NO_BUFFER),
                total_len: seen.total_len,
                reason,
                table_id: 0,
                cookie: if is_v10 { NO_COOKIE } else { cookie_of(seen.reason) },
                matching: Match::any().with(Field::InPort, seen.in_port),
                data: seen.frame[..shown].to_vec(),
            };
            self.tell(controller, &Message { version, xid: 0, body: Body::PacketIn(packet) }, turn);
        }
    }

    fn keep(&mut self, seen: &Seen<'_>) -> Option<u32> {
        let frame = match seen.in_switch {
            Some((buffer_id, is_dressed)) => Frame::InSwitch { buffer_id, is_dressed },
            None => Frame::Whole(seen.frame.to_vec()),
        };
        self.buffers.keep(seen.in_port, frame)
    }
}

/// The reason of a packet that a rule sends.
pub(crate) fn reason_of_rule(rule: &Rule) -> Reason {
    let max_len = rule.actions().find_map(|action| match action {
        Action::Output { port: PortNo::CONTROLLER, max_len } => Some(*max_len),
        _ => None,
    });
    Reason::Action {
        cookie: rule.cookie,
        max_len: max_len.unwrap_or(WHOLE_PACKET),
        is_table_miss: rule.is_table_miss(),
    }
}

fn cookie_of(reason: Reason) -> u64 {
    match reason {
        Reason::Miss => NO_COOKIE,
        Reason::Action { cookie, .. } | Reason::InvalidTtl { cookie } => cookie,
    }
}

/// The reason in the numbers of a version, and how many bytes the controller wants. `None`: it does not get the packet.
fn share(reason: Reason, version: Version, miss_send_len: u16) -> Option<(u8, u16)> {
    let is_v10 = version == Version::V1_0;
    match reason {
        Reason::Miss if is_v10 => Some((NO_MATCH, miss_send_len)),
        Reason::Miss => None,
        Reason::Action { max_len, is_table_miss: true, .. } if !is_v10 => Some((NO_MATCH, max_len)),
        Reason::Action { max_len, .. } => Some((BY_ACTION, max_len)),
        Reason::InvalidTtl { .. } => Some((INVALID_TTL, miss_send_len)),
    }
}
