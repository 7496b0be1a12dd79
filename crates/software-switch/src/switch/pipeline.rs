//! Takes a packet through the tables and out of the ports.
//!
//! In: a packet. Out: frames, packet-ins, counters. It changes only the counters of rules and groups.

use flow::{Action, Field, Instruction, PortNo};
use std::ops::ControlFlow;
use std::time::Duration;

use super::packet_in::{Origin, PacketInCause};
use super::{Effects, Switch};
use crate::action_set::ActionSet;
use crate::flow_key::FlowKey;
use crate::frame::actions;
use crate::instructions::{FieldChange, Instructions};
use crate::meter::MeterResult;
use crate::packet::Packet;
use crate::path_cache::{Path, Step};

/// The parts of a matching rule.
struct Hit {
    instructions: Instructions,
    origin: Origin,
}

impl Switch {
    /// Takes a packet through the tables, from the first one on (1.3.5, 5.1).
    pub(super) fn forward(&mut self, packet: Packet, now: Duration, effects: &mut Effects) {
        // The set's memory is reused for each packet. A packet that TABLE sends here finds none and gets its own.
        let mut set = std::mem::take(&mut self.spare_set);
        set.clear();
        let key = packet.key();
        let known = if key.is_whole() { self.plane().known_path(&key) } else { None };
        match known {
            Some(path) => self.follow_path(&path, packet, &mut set, now, effects),
            None => self.find_path(0, key, packet, &mut set, now, effects),
        }
        self.spare_set = set;
    }

    /// Takes a packet along a cached path.
    fn follow_path(
        &mut self,
        path: &Path,
        mut packet: Packet,
        set: &mut ActionSet,
        now: Duration,
        effects: &mut Effects,
    ) {
        let mut origin = Origin::NO_RULE;
        for step in path.steps() {
            if self.waits_in_software(*step, &mut packet, set, now, effects) {
                return;
            }
            let Some(hit) = self.hit(*step, &packet, now) else { return };
            origin = hit.origin;
            if self.follow(&hit, &mut packet, set, now, effects).is_break() {
                return;
            }
        }
        match path.missed_in {
            Some(table_id) => self.miss(table_id, &packet, now, effects),
            None => self.carry_out_last(set.in_order(), packet, origin, now, effects),
        }
    }

    /// Takes a packet on from a table.
    pub(super) fn go_through(
        &mut self,
        table_id: u8,
        packet: Packet,
        set: &mut ActionSet,
        now: Duration,
        effects: &mut Effects,
    ) {
        self.find_path(table_id, packet.key(), packet, set, now, effects);
    }

    /// Takes a packet from table to table, and caches the path.
    fn find_path(
        &mut self,
        first: u8,
        key: FlowKey,
        mut packet: Packet,
        set: &mut ActionSet,
        now: Duration,
        effects: &mut Effects,
    ) {
        let (mut path, mut is_whole) = (Path::default(), key.is_whole() && first == 0);
        let mut seen = key;
        let mut origin = Origin::NO_RULE;
        let mut next = Some(first);
        while let Some(table_id) = next {
            let Some(step) = self.plane().find(table_id, &seen) else {
                path.missed_in = Some(table_id);
                break;
            };
            is_whole &= path.push(step);
            if self.waits_in_software(step, &mut packet, set, now, effects) {
                return;
            }
            let Some(hit) = self.hit(step, &packet, now) else { return };
            origin = hit.origin;
            match self.follow(&hit, &mut packet, set, now, effects) {
                ControlFlow::Continue(goto) => next = goto,
                // The next packet of the flow may get further: a time-to-live can end here only for this packet.
                ControlFlow::Break(()) => return,
            }
            let change = hit.instructions.field_change();
            if next.is_some() && change != FieldChange::Unchanged {
                seen = packet.key();
                // Revealed fields are not in the key by which the path would be found.
                is_whole &= change != FieldChange::Revealed;
            }
        }
        if is_whole {
            self.plane().keep_path(&key, path);
        }
        match path.missed_in {
            Some(table_id) => self.miss(table_id, &packet, now, effects),
            None => self.carry_out_last(set.in_order(), packet, origin, now, effects),
        }
    }

    /// Counts a packet that matched a rule.
    fn hit(&mut self, step: Step, packet: &Packet, now: Duration) -> Option<Hit> {
        let entry = self.plane().hit(step, packet.frame.len(), now)?;
        let (table_id, cookie, is_table_miss) = (step.table_id, entry.cookie, entry.is_table_miss());
        let origin = Origin { table_id, cookie, is_table_miss, from_packet_out: false };
        Some(Hit { instructions: entry.instructions.clone(), origin })
    }

    /// No rule matches the packet: 1.0 sends it to the controller (1.0, 3.4), 1.3 drops it (1.3.5, 5.4).
    fn miss(&mut self, table_id: u8, packet: &Packet, now: Duration, effects: &mut Effects) {
        self.plane().miss(table_id);
        self.packet_in(packet, PacketInCause::NoRule, Origin::NO_RULE, now, effects);
    }

    /// Carries out a rule's instructions, which are in order. Returns the table of a goto instruction, if there is
    /// one.
    fn follow(
        &mut self,
        hit: &Hit,
        packet: &mut Packet,
        set: &mut ActionSet,
        now: Duration,
        effects: &mut Effects,
    ) -> ControlFlow<(), Option<u8>> {
        let mut next = None;
        for (index, instruction) in hit.instructions.iter().enumerate() {
            match instruction {
                Instruction::ApplyActions(list) if index + 1 == hit.instructions.len() && set.is_empty() => {
                    // Nothing follows, so the packet is not needed any more.
                    self.carry_out_last(list, packet.take(), hit.origin, now, effects);
                }
                Instruction::ApplyActions(list) => self.carry_out(list, packet, hit.origin, now, effects)?,
                Instruction::ClearActions => set.clear(),
                Instruction::WriteActions(list) => set.write(list),
                Instruction::WriteMetadata { metadata, mask } => {
                    packet.metadata = packet.metadata & !mask | metadata & mask;
                }
                Instruction::GotoTable(table_id) => next = Some(*table_id),
                Instruction::Meter(id) => self.measure(*id, packet, now)?,
                // Such a rule was refused when it was added.
                Instruction::Experimenter { .. } => {}
            }
        }
        ControlFlow::Continue(next)
    }

    /// Takes a packet through a meter. Breaks if the meter drops it.
    fn measure(&mut self, meter: u32, packet: &mut Packet, now: Duration) -> ControlFlow<()> {
        match self.meters.meter(meter, packet.frame.len(), now) {
            MeterResult::Pass => ControlFlow::Continue(()),
            MeterResult::Drop => ControlFlow::Break(()),
            MeterResult::Remark(steps) => {
                packet.raise_drop_precedence(steps);
                ControlFlow::Continue(())
            }
        }
    }

    /// Carries out actions in order. Breaks if the packet is dropped.
    pub(super) fn carry_out(
        &mut self,
        list: &[Action],
        packet: &mut Packet,
        origin: Origin,
        now: Duration,
        effects: &mut Effects,
    ) -> ControlFlow<()> {
        for action in list {
            match action {
                Action::Output { port, max_len } => {
                    self.output(*port, *max_len, packet, origin, now, effects)
                }
                Action::Enqueue { port, .. } => self.output(*port, 0, packet, origin, now, effects),
                Action::Group(id) => self.hand_to_group(*id, packet, origin, now, effects),
                change => {
                    if actions::apply(change, &mut packet.frame).is_err() {
                        self.packet_in(packet, PacketInCause::InvalidTtl, origin, now, effects);
                        return ControlFlow::Break(());
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Carries out a packet's last actions. An output at their end takes the frame instead of a copy.
    pub(super) fn carry_out_last(
        &mut self,
        list: &[Action],
        mut packet: Packet,
        origin: Origin,
        now: Duration,
        effects: &mut Effects,
    ) {
        let before = match list.split_last() {
            Some((Action::Output { port, .. }, before)) if port.0 <= PortNo::MAX.0 => before,
            _ => list,
        };
        if self.carry_out(before, &mut packet, origin, now, effects).is_continue()
            && let Some(Action::Output { port, .. }) = list.get(before.len())
            && *port != packet.in_port
            && self.sends(*port, &packet)
        {
            effects.frames.push((*port, packet.frame));
        }
    }

    /// Sends a packet to a group. Each chosen bucket gets its own copy (1.3.5, 5.6.1).
    fn hand_to_group(
        &mut self,
        id: u32,
        packet: &Packet,
        origin: Origin,
        now: Duration,
        effects: &mut Effects,
    ) {
        let ports = &self.ports;
        let is_live = |port| ports.get(&port).is_some_and(|port| port.is_live());
        let chosen = self.groups.choose(id, flow_hash(packet), packet.frame.len(), is_live);
        for actions in chosen {
            let Some(left) = self.copies_left.checked_sub(1) else { return };
            self.copies_left = left;
            self.carry_out_last(&actions, packet.clone(), origin, now, effects);
        }
    }

    fn output(
        &mut self,
        port: PortNo,
        max_len: u16,
        packet: &Packet,
        origin: Origin,
        now: Duration,
        effects: &mut Effects,
    ) {
        match port {
            PortNo::IN_PORT => self.send(packet.in_port, packet, effects),
            PortNo::ALL => self.send_to_all(packet, |_| true, effects),
            PortNo::FLOOD => self.send_to_all(packet, |port| port.floods(), effects),
            PortNo::NORMAL => self.switch_by_address(packet.in_port, packet.frame.clone(), now, effects),
            PortNo::CONTROLLER => {
                self.packet_in(packet, PacketInCause::Action { max_len }, origin, now, effects)
            }
            PortNo::TABLE if origin.from_packet_out => self.forward(packet.clone(), now, effects),
            // A packet leaves by its ingress port only if a rule says IN_PORT.
            port if port != packet.in_port => self.send(port, packet, effects),
            _ => {}
        }
    }

    fn send(&mut self, number: PortNo, packet: &Packet, effects: &mut Effects) {
        if self.sends(number, packet) {
            effects.frames.push((number, packet.frame.clone()));
        }
    }

    /// Counts a packet that should leave by a port. Returns whether the port sends it.
    fn sends(&mut self, number: PortNo, packet: &Packet) -> bool {
        self.ports.get_mut(&number).is_some_and(|port| port.send(packet.frame.len()))
    }

    fn send_to_all(
        &mut self,
        packet: &Packet,
        wanted: impl Fn(&crate::port::SwitchPort) -> bool,
        effects: &mut Effects,
    ) {
        for (number, port) in &mut self.ports {
            if *number != packet.in_port && wanted(port) && port.send(packet.frame.len()) {
                effects.frames.push((*number, packet.frame.clone()));
            }
        }
    }
}

/// A number that all packets of one connection share, for select groups (FNV-1a over addresses and ports).
fn flow_hash(packet: &Packet) -> u64 {
    use Field::*;
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let fields = packet.fields();
    let conversation = [
        EthSrc, EthDst, EthType, VlanVid, IpProto, Ipv4Src, Ipv4Dst, Ipv6Src, Ipv6Dst, TcpSrc, TcpDst,
        UdpSrc, UdpDst, SctpSrc, SctpDst,
    ];
    conversation
        .into_iter()
        .filter_map(|field| fields.get(field))
        .flat_map(u128::to_be_bytes)
        .fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
