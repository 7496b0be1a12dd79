//! Messages of the switch: packet-ins go to the model, answers to own messages stay here, and some replies are changed.
//!
//! In: whole messages. Out: inputs of the model, replies of the target. Everything else passes unchanged.

use openflow::message::*;
use openflow::view::PacketInView;
use openflow::{Body, Header, Message};
use profile::model::Miss;

use super::packets::WHOLE_PACKET;
use super::{Proxy, end};
use crate::commands::{Commands, Passage, Rubbish, Side};
use crate::held::Held;
use crate::own::Own;
use crate::wire::{self, Numbered, kind};

impl Proxy {
    pub(super) fn on_switch_message(
        &mut self,
        now_ns: u64,
        header: Header,
        message: &[u8],
        out: &mut Commands,
    ) -> Passage {
        if header.kind == kind::HELLO {
            wire::hello(message, &mut out.to_controller);
            return Passage::Taken;
        }
        if self.model.is_none() {
            return Passage::Unchanged;
        }
        if header.kind == kind::PACKET_IN {
            return self.on_packet_in(now_ns, message, out);
        }
        if !self.is_full() {
            return Passage::Unchanged;
        }
        match header.kind {
            kind::ERROR => {
                let at_ns = self.settle(now_ns, out);
                let passage = self.on_switch_error(header, message, at_ns, out);
                self.settle(now_ns, out);
                passage
            }
            kind::FEATURES_REPLY => {
                wire::with_buffers(
                    message,
                    self.settings.profile.packet_in.buffers_packets.unwrap_or(0),
                    &mut out.to_controller,
                );
                Passage::Taken
            }
            kind::GET_CONFIG_REPLY => {
                let own = self.settings.profile.packet_in.miss_send_bytes;
                wire::with_miss_send_len(
                    message,
                    self.lengths.miss_send_len.unwrap_or(own),
                    &mut out.to_controller,
                );
                Passage::Taken
            }
            kind::FLOW_REMOVED => self.read(message, out, |proxy, decoded, out| {
                let Body::FlowRemoved(removed) = decoded.body else { return };
                let at_ns = proxy.settle(now_ns, out);
                proxy.on_flow_removed(decoded.xid, removed, at_ns, out);
                proxy.settle(now_ns, out);
            }),
            _ => self.on_reply(now_ns, header, message, out),
        }
    }

    fn on_reply(&mut self, now_ns: u64, header: Header, message: &[u8], out: &mut Commands) -> Passage {
        let own = self.own.answered(header.xid);
        match (wire::numbered(header.version, header.kind), own) {
            (Some(Numbered::BarrierReply), Some(Own::Barrier(behind))) => {
                self.own.forget(header.xid);
                self.on_confirmed(behind, out);
                self.settle(now_ns, out);
                Passage::Taken
            }
            (Some(Numbered::StatisticsReply), Some(Own::Poll)) => {
                self.read(message, out, |proxy, decoded, out| {
                    let Body::MultipartReply(reply) = decoded.body else { return };
                    let ReplyBody::Flow(rules) = reply.body else { return };
                    let is_last = reply.flags & MULTIPART_MORE == 0;
                    if is_last {
                        proxy.own.forget(decoded.xid);
                    }
                    let at_ns = proxy.settle(now_ns, out);
                    proxy.on_counters(&rules, is_last, at_ns, out);
                    proxy.settle(now_ns, out);
                })
            }
            (Some(Numbered::StatisticsReply), _) if self.changes_reply(message) => {
                self.read(message, out, |proxy, decoded, out| {
                    if let Body::MultipartReply(reply) = decoded.body {
                        proxy.send_reply(decoded.version, decoded.xid, reply, out);
                    }
                })
            }
            _ => Passage::Unchanged,
        }
    }

    /// Decodes a message that the proxy must understand, and acts on it.
    fn read(
        &mut self,
        message: &[u8],
        out: &mut Commands,
        act: impl FnOnce(&mut Self, Message, &mut Commands),
    ) -> Passage {
        match Message::decode(message) {
            Ok(decoded) => {
                act(self, decoded, out);
                Passage::Taken
            }
            Err(bad) => end(Rubbish { from: Side::Switch, what: bad.to_string() }, out),
        }
    }

    fn on_packet_in(&mut self, now_ns: u64, message: &[u8], out: &mut Commands) -> Passage {
        let view = match PacketInView::read(message) {
            Ok(view) => view,
            Err(bad) => return end(Rubbish { from: Side::Switch, what: bad.to_string() }, out),
        };
        self.settle(now_ns, out);
        if !self.held.has_room_for_packet_in(message.len()) || !self.late.has_room() {
            self.counters.packet_ins_no_room += 1;
            return Passage::Taken;
        }
        let seen_ns = self.seen.take(view.in_port, view.data, now_ns);
        // A switch that has too much to confirm gets nothing more.
        let may_go_back = !self.waits_for_switch() && seen_ns.is_some_and(|ns| self.is_stale(&view, ns));
        if may_go_back && self.send_back(&view, out) {
            return Passage::Taken;
        }
        let arrived_ns = seen_ns.unwrap_or_else(|| self.drawn_arrival(now_ns));
        let wanted_bytes = self.lengths.wanted(view.version, view.reason, view.cookie);
        let length_bytes = u32::from(view.total_len).max(u32::try_from(view.data.len()).unwrap_or(u32::MAX));
        // A switch with buffers of its own has given this packet one.
        let may_be_buffered = wanted_bytes != Some(WHOLE_PACKET) && view.buffer_id == NO_BUFFER;
        let bytes = self.held.copy_of(message);
        let held = Held {
            bytes,
            since_ns: arrived_ns,
            came_ns: now_ns,
            is_packet_in: true,
            is_seen: seen_ns.is_some(),
            ..Held::default()
        };
        let id = self.held.hold(held);
        // The model learns of it in its turn, at this time, also if it stands still now.
        self.late.add(now_ns, Miss { id, arrived_ns, length_bytes, wanted_bytes, may_be_buffered });
        self.settle(now_ns, out);
        Passage::Taken
    }

    /// Whether the target would have forwarded the packet of this packet-in. The paper's model has no tables.
    fn is_stale(&mut self, view: &PacketInView<'_>, arrived_ns: u64) -> bool {
        self.is_full() && self.new_rules.has_one_for(view, arrived_ns, &self.shadow)
    }

    /// Sends the packet through the tables of the switch, which has its rule by now. Returns whether it fits in a message.
    fn send_back(&mut self, view: &PacketInView<'_>, out: &mut Commands) -> bool {
        // A switch with buffers of its own shows a part of the packet only.
        let Some(version) = self.version.filter(|_| view.buffer_id == NO_BUFFER) else { return false };
        let xid = self.own.next();
        let through_tables = wire::to_tables(version);
        let fits =
            wire::packet_out(version, xid, view.in_port, through_tables, view.data, &mut out.to_switch);
        if fits {
            self.counters.packet_ins_stale += 1;
            self.barriers.on_sent();
        }
        fits
    }

    /// No tap has seen the packet. The switch's own delay is drawn from what it was before.
    fn drawn_arrival(&mut self, now_ns: u64) -> u64 {
        self.counters.packet_ins_unseen += 1;
        let delay_us = self.base.at(self.random.unit());
        // Delays are at most a day, so that nanoseconds fit.
        now_ns.saturating_sub((delay_us * 1e3) as u64)
    }
}
