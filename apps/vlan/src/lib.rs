//! The app `vlan`: static networks of layer 2. A frame leaves only through ports of the network that it came in by.
//!
//! ```text
//!   settings ──> networks ──> rules: drop at each port, flood groups within a network, bring up the rest
//!   packet-in ──> learned ──> a rule between two addresses of a network, or a flood within it
//! ```
//!
//! In: settings, switches, packet-ins. Out: rules and packet-outs. Ports that no network names are left to other apps. It breaks no
//! loops: the ports of a network must form a tree.

mod learned;
mod networks;

use crate::learned::Learned;
use crate::networks::{Members, Networks, Tag, Written};
use burnet_sdk::flow::frame::FrameFields;
use burnet_sdk::{
    ActionWriter, App, AppTable, Commands, DatapathId, Field, Interests, Level, MacAddr, MatchWriter,
    OpenFlowVersion, Outcome, PacketIn, PortNo, PortStatus, Receipt, Settings, SwitchUp,
};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// What the operator may set under `[app.vlan.settings]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct VlanSettings {
    networks: Vec<Written>,
    /// The table of its rules in switches that have several.
    table: u8,
}

/// The priorities of its rules: what is in no network is dropped; frames of a network go up; groups are flooded; learned pairs; frames for
/// the neighbour alone are dropped.
mod priority {
    pub const DROP: u16 = 20_000;
    pub const UP: u16 = 20_050;
    pub const GROUP: u16 = 20_100;
    pub const PAIR: u16 = 20_200;
    pub const NEIGHBOUR: u16 = 20_300;
}

/// The idle time-out of a learned rule in seconds, as of the learning switch.
const IDLE_S: u16 = 60;

/// The whole packet (`OFPCML_NO_BUFFER`).
const WHOLE_PACKET: u16 = 0xffff;

/// The bit of a VLAN field that marks a tag (OpenFlow 1.3.5, 7.2.3.7).
const PRESENT: u16 = 0x1000;

/// The EtherType of a tag.
const TAG: u16 = 0x8100;

/// The addresses 01:80:c2:00:00:00 to 0f, which no bridge forwards (IEEE 802.1Q, table 8-1).
const NEIGHBOUR: (u64, u64) = (0x0180_c200_0000, 0xffff_ffff_fff0);

/// The bit of an address that makes it that of a group.
const GROUP_BIT: u64 = 0x0100_0000_0000;

/// The highest table that the app may have rules in, by its manifest.
const TABLE_MAX: u8 = 9;

/// A switch, and the table of the app's rules there.
#[derive(Clone, Copy, Debug)]
struct Here {
    switch: DatapathId,
    table: u8,
    is_v10: bool,
}

/// The static networks.
pub struct Vlan {
    networks: Networks,
    table: u8,
    /// The switches that have one table: those with OpenFlow 1.0.
    one_table: BTreeSet<DatapathId>,
    learned: Learned,
    now_ms: u64,
}

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<Vlan>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Vlan>()
}

impl App for Vlan {
    fn new(settings: &Settings) -> Result<Self, String> {
        let VlanSettings { networks, table } = settings.read()?;
        if table > TABLE_MAX {
            return Err(format!("table = {table}: write 0 to {TABLE_MAX}"));
        }
        let (networks, one_table) = (Networks::read(networks)?, BTreeSet::new());
        Ok(Vlan { networks, table, one_table, learned: Learned::default(), now_ms: 0 })
    }

    fn serves_switches_apart(_: &Settings) -> bool {
        true
    }

    fn interests(&self) -> Interests {
        Interests::none().packets().switches().ports().ticks()
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        let switch = up.datapath;
        self.learned.forget_switch(switch);
        match up.openflow {
            OpenFlowVersion::V1_0 => self.one_table.insert(switch),
            OpenFlowVersion::V1_3 => self.one_table.remove(&switch),
        };
        let here = self.here(switch);
        // What earlier settings have left.
        out.rule(switch).delete_within().send();
        for port in self.networks.ports_of(switch) {
            let at_port = |m: &mut MatchWriter<'_>| {
                m.field(Field::InPort, port);
            };
            add(here, priority::DROP, out, at_port, |_| ());
        }
        for (vlan, members) in self.networks.of_switch(switch) {
            members.iter().for_each(|(port, tag)| add_member(here, vlan, members, (*port, *tag), out));
        }
    }

    fn on_switch_down(&mut self, switch: DatapathId, _: &mut Commands) {
        self.learned.forget_switch(switch);
    }

    fn on_port_status(&mut self, status: &PortStatus, _: &mut Commands) {
        if status.is_gone() || !status.port.facts().live {
            self.learned.forget_port(status.datapath, status.port.port_no());
        }
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        let (switch, port) = (packet.datapath, packet.in_port);
        let fields = FrameFields::read(packet.data);
        let (Some(source), Some(destination)) =
            (address(&fields, Field::EthSrc), address(&fields, Field::EthDst))
        else {
            return;
        };
        let tag =
            fields.get(Field::VlanVid).and_then(|vid| u16::try_from(vid).ok()).map(|vid| vid & !PRESENT);
        let tag = tag.filter(|vlan| *vlan != 0);
        let is_for_neighbour = destination.to_u64() & NEIGHBOUR.1 == NEIGHBOUR.0;
        let Some((vlan, members)) = self.networks.network_of(switch, port, tag).filter(|_| !is_for_neighbour)
        else {
            return;
        };
        let from = if tag.is_some() { Tag::Tagged } else { Tag::Untagged };
        let here = self.here(switch);
        if self.learned.see(switch, vlan, source, port, self.now_ms) {
            forget_pairs(switch, source, out);
        }
        match self.learned.port_of(switch, vlan, destination) {
            // It is on the segment that the frame came from.
            Some(to) if to == port => {}
            Some(to) => {
                let only: Members = members.get(&to).map(|tag| (to, *tag)).into_iter().collect();
                add_pair(here, vlan, (port, from), (source, destination), &only, out);
                send_packet(here, packet, (vlan, from), &only, out);
            }
            None => {
                send_packet(here, packet, (vlan, from), members, out);
            }
        }
    }

    fn on_receipt(&mut self, switch: DatapathId, receipt: &Receipt, out: &mut Commands) {
        if receipt.outcome != Outcome::Programmed {
            let text = format!("{switch} does not keep its networks apart: {}", receipt.reason);
            out.log(Level::Error, &text);
        }
    }

    fn on_tick(&mut self, now_ms: u64, _: &mut Commands) {
        self.now_ms = now_ms;
        self.learned.age(now_ms);
    }
}

impl Vlan {
    fn here(&self, switch: DatapathId) -> Here {
        let is_v10 = self.one_table.contains(&switch);
        Here { switch, table: if is_v10 { 0 } else { self.table }, is_v10 }
    }
}

fn address(fields: &FrameFields, field: Field) -> Option<MacAddr> {
    fields.get(field).and_then(|value| u64::try_from(value).ok()).map(MacAddr::from_u64)
}

/// Adds a rule, with a receipt.
fn add(
    here: Here,
    priority: u16,
    out: &mut Commands,
    matching: impl FnOnce(&mut MatchWriter<'_>),
    actions: impl FnOnce(&mut ActionWriter<'_>),
) {
    let rule = out.rule(here.switch).table(here.table).priority(priority).matching(matching);
    rule.apply(actions).send_with_receipt();
}

/// Matches the frames of a network at a port.
fn frames_of(vlan: u16, (port, tag): (PortNo, Tag), matching: &mut MatchWriter<'_>) {
    let vid = match tag {
        Tag::Tagged => vlan | PRESENT,
        Tag::Untagged => 0,
    };
    matching.field(Field::InPort, port).field(Field::VlanVid, vid);
}

/// The rules for the frames of one network at one port.
fn add_member(here: Here, vlan: u16, members: &Members, at: (PortNo, Tag), out: &mut Commands) {
    let neighbour = |m: &mut MatchWriter<'_>| {
        frames_of(vlan, at, m);
        m.masked(Field::EthDst, MacAddr::from_u64(NEIGHBOUR.0), MacAddr::from_u64(NEIGHBOUR.1));
    };
    if !here.is_v10 {
        add(here, priority::NEIGHBOUR, out, neighbour, |_| ());
    }
    let group = |m: &mut MatchWriter<'_>| {
        frames_of(vlan, at, m);
        let group = MacAddr::from_u64(GROUP_BIT);
        // OpenFlow 1.0 has no masks of Ethernet addresses. There the app itself sends on frames for other groups, and drops those for neighbours.
        match here.is_v10 {
            true => m.field(Field::EthDst, MacAddr([0xff; 6])),
            false => m.masked(Field::EthDst, group, group),
        };
    };
    add(here, priority::GROUP, out, group, |actions| send_within(vlan, at.1, members, at.0, actions));
    let up = |actions: &mut ActionWriter<'_>| {
        actions.output(PortNo::CONTROLLER, WHOLE_PACKET);
    };
    add(here, priority::UP, out, |m| frames_of(vlan, at, m), up);
}

fn add_pair(
    here: Here,
    vlan: u16,
    at: (PortNo, Tag),
    (source, destination): (MacAddr, MacAddr),
    to: &Members,
    out: &mut Commands,
) {
    let matching = |m: &mut MatchWriter<'_>| {
        frames_of(vlan, at, m);
        m.field(Field::EthDst, destination).field(Field::EthSrc, source);
    };
    let rule = out.rule(here.switch).table(here.table).priority(priority::PAIR).idle_timeout_s(IDLE_S);
    rule.matching(matching).apply(|actions| send_within(vlan, at.1, to, at.0, actions)).send();
}

/// Sends the packet of a packet-in to these members of its network. OpenFlow 1.0 cannot push a tag in a packet-out, so there the app does it.
fn send_packet(
    here: Here,
    packet: &PacketIn<'_>,
    (vlan, from): (u16, Tag),
    to: &Members,
    out: &mut Commands,
) {
    let in_port = packet.in_port;
    let pushes = from == Tag::Untagged && to.values().any(|tag| *tag == Tag::Tagged);
    if !here.is_v10 || !pushes || packet.buffer_id.is_some() {
        let sent = out.packet_out(here.switch).packet(packet);
        return sent.actions(|actions| send_within(vlan, from, to, in_port, actions)).send();
    }
    let tagged: Vec<PortNo> =
        to.iter().filter(|(_, tag)| **tag == Tag::Tagged).map(|(port, _)| *port).collect();
    let plain: Members =
        to.iter().filter(|(_, tag)| **tag == from).map(|(port, tag)| (*port, *tag)).collect();
    if plain.keys().any(|port| *port != in_port) {
        let sent = out.packet_out(here.switch).packet(packet);
        sent.actions(|actions| send_within(vlan, from, &plain, in_port, actions)).send();
    }
    let Some((addresses, rest)) = packet.data.split_at_checked(ADDRESSES_LEN) else { return };
    let frame = [addresses, &TAG.to_be_bytes(), &vlan.to_be_bytes(), rest].concat();
    let sent = out.packet_out(here.switch).frame(&frame).in_port(in_port);
    tagged.into_iter().fold(sent, |sent, port| sent.output(port)).send();
}

/// The length of the two Ethernet addresses. A tag comes behind them.
const ADDRESSES_LEN: usize = 12;

/// Removes the rules to an address that is elsewhere now.
fn forget_pairs(switch: DatapathId, mac: MacAddr, out: &mut Commands) {
    let to_it = |m: &mut MatchWriter<'_>| {
        m.field(Field::EthDst, mac);
    };
    out.rule(switch).delete_within().matching(to_it).send();
}

/// Sends a frame to these members but the one that it came from: first to those where its tag is as it is, then to the others.
fn send_within(vlan: u16, from: Tag, members: &Members, in_port: PortNo, actions: &mut ActionWriter<'_>) {
    let to = |tag: Tag| {
        members.iter().filter(move |(port, it)| **it == tag && **port != in_port).map(|(port, _)| *port)
    };
    for port in to(from) {
        actions.output(port, 0);
    }
    let other = match from {
        Tag::Tagged => Tag::Untagged,
        Tag::Untagged => Tag::Tagged,
    };
    if to(other).next().is_none() {
        return;
    }
    match from {
        Tag::Tagged => actions.pop_vlan(),
        Tag::Untagged => actions.push_vlan(TAG).set_field(Field::VlanVid, vlan | PRESENT),
    };
    for port in to(other) {
        actions.output(port, 0);
    }
}

#[cfg(test)]
mod tests;
