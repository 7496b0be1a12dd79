//! A tenant's controller that does what `apps/multipath` decides, in OpenFlow messages of its own.
//!
//! ```text
//!   packet-in between VNICs ──> rehearsal::Tenant ──path──> a rule in each switch; the packet goes out at its end
//!   label of a port ──────────> rehearsal::Tenant ──> flows that get too little move
//!   broadcast, unknown host ──> out of all ports of VNICs
//! ```
//!
//! In: messages of the switches of a slice, labels, time. Out: rules and packet-outs. It finds the links of its slice by LLDP. Where its VNICs are, it
//! knows; the app reads both from its network view. What path a flow takes, and when it moves, is decided by the same code as in the app.

use crate::probe::{self, Place};
use crate::tenant::{Controller, HeardLabel, Outgoing};
use flow::frame::FrameFields;
use flow::{Action, DatapathId, Field, Instruction, MacAddr, Match, PortNo};
use openflow::message::{
    FLOW_DELETE_STRICT, FLOW_MOD_SEND_FLOW_REMOVED, FlowModFields, FlowRemoved, MultipartReply,
    MultipartRequest, NO_BUFFER, PacketIn, PacketOut, Port, ReplyBody, RequestBody, SwitchConfig,
};
use openflow::{Body, Message, Version};
use rehearsal::{Fabric, LinkNo, Pair, SliceNo, Tenant, VnicNo};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The priority and the time-out of its rules: those of the app.
const PRIORITY: u16 = 10_000;
const IDLE_TIMEOUT_S: u16 = 10;

/// Bytes of a packet in a packet-in: all (OFPCML_NO_BUFFER).
const WHOLE_PACKETS: u16 = 0xffff;

/// How long after the ports of a switch became known it looks for links: by then, the switches that connect at the same time are there.
const LOOK_MS: u64 = 100;

/// What the controller knows of its network.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The links and servers, by number.
    pub fabric: Arc<Fabric>,
    /// The number of its slice.
    pub slice: SliceNo,
    /// Its VNICs, by number: name, address and place.
    pub vnics: Vec<(String, MacAddr, Place)>,
    /// The links of its slice between switches: where each begins and ends.
    pub links: BTreeMap<LinkNo, [Place; 2]>,
}

/// A rule of a flow: by which port its packets come to a switch, and by which they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hop {
    datapath: DatapathId,
    in_port: PortNo,
    out_port: PortNo,
}

/// The controller.
pub struct Multipath {
    around: Surroundings,
    tenant: Tenant,
    by_address: BTreeMap<MacAddr, VnicNo>,
    by_beginning: BTreeMap<Place, LinkNo>,
    installed: BTreeMap<Pair, Vec<Hop>>,
    /// When flows that have moved may move again.
    again_ms: BTreeSet<u64>,
    /// The ports of its switches.
    ports: BTreeSet<Place>,
    /// When it looks for links.
    look_ms: Option<u64>,
    moves: usize,
}

impl Multipath {
    /// A controller without flows.
    pub fn new(around: Surroundings, tenant: Tenant) -> Multipath {
        let by_address = around.vnics.iter().zip(0..).map(|((_, mac, _), number)| (*mac, VnicNo(number)));
        let by_beginning = around.links.iter().map(|(link, [from, _])| (*from, *link));
        Multipath {
            by_address: by_address.collect(),
            by_beginning: by_beginning.collect(),
            around,
            tenant,
            installed: BTreeMap::new(),
            again_ms: BTreeSet::new(),
            ports: BTreeSet::new(),
            look_ms: None,
            moves: 0,
        }
    }

    fn place(&self, vnic: VnicNo) -> Option<Place> {
        self.around.vnics.get(vnic.index()).map(|(_, _, place)| *place)
    }

    /// What decides among equal paths: the same number as in a rehearsal without packets.
    fn number(&self, pair: Pair) -> u64 {
        let name = |vnic: VnicNo| self.around.vnics.get(vnic.index()).map_or("", |(name, ..)| name.as_str());
        rehearsal::number_of(&format!("{}-{}", name(pair.source), name(pair.destination)))
    }

    fn on_packet_in(&mut self, datapath: DatapathId, packet: &PacketIn, out: &mut Vec<Outgoing>) {
        let Some((in_port, _)) = packet.matching.get(Field::InPort) else { return };
        // A port of 1.3 has 32 bits.
        let here = (datapath, PortNo(in_port as u32));
        let fields = FrameFields::read(&packet.data);
        let address = |field| fields.get(field).and_then(|it| u64::try_from(it).ok()).map(MacAddr::from_u64);
        let (Some(from), Some(to)) = (address(Field::EthSrc), address(Field::EthDst)) else { return };
        if let Some(from) = probe::read(&packet.data) {
            return self.on_link(from, here);
        }
        match (self.by_address.get(&from).copied(), self.by_address.get(&to).copied()) {
            (Some(source), Some(destination)) => {
                let pair = Pair { slice: self.around.slice, source, destination };
                self.forward(pair, here, packet, out);
            }
            _ => self.flood(here, packet, out),
        }
    }

    /// Frames go from one port to another: the link is there.
    fn on_link(&mut self, from: Place, to: Place) {
        let link = self.by_beginning.get(&from).copied();
        let link = link.filter(|link| self.around.links.get(link) == Some(&[from, to]));
        link.into_iter().for_each(|link| self.tenant.find(link));
    }

    /// Sends a frame by each port, to see where it comes up.
    fn look_for_links(&self, out: &mut Vec<Outgoing>) {
        for place in &self.ports {
            let (actions, data) = (vec![Action::output(place.1)], probe::write(*place));
            let in_port = PortNo::CONTROLLER;
            out.push((place.0, Body::PacketOut(PacketOut { buffer_id: NO_BUFFER, in_port, actions, data })));
        }
    }

    fn on_ports(&mut self, datapath: DatapathId, ports: &[Port], now_ms: u64) {
        self.ports.extend(ports.iter().map(|port| (datapath, port.port_no)));
        self.look_ms = Some(now_ms + LOOK_MS);
    }

    /// A packet to a VNIC. If it comes from its place, the flow gets rules.
    fn forward(&mut self, pair: Pair, here: Place, packet: &PacketIn, out: &mut Vec<Outgoing>) {
        if self.place(pair.source) == Some(here) && !self.installed.contains_key(&pair) {
            let path = self.tenant.begin(pair, self.number(pair), &self.around.fabric);
            let hops = self.hops(pair, &path);
            self.install(pair, hops, out);
        }
        if let Some((datapath, port)) = self.place(pair.destination) {
            out.push((datapath, packet_out(PortNo::CONTROLLER, port, packet)));
        }
    }

    /// A packet from the edge goes out of all other ports of VNICs. In the middle of the network, it is the copy of one.
    fn flood(&self, here: Place, packet: &PacketIn, out: &mut Vec<Outgoing>) {
        let places: BTreeSet<Place> = self.around.vnics.iter().map(|(_, _, place)| *place).collect();
        if !places.contains(&here) {
            return;
        }
        for (datapath, port) in places.into_iter().filter(|place| *place != here) {
            out.push((datapath, packet_out(PortNo::CONTROLLER, port, packet)));
        }
    }

    /// The switches of a path. Its first and last links are those of the servers.
    fn hops(&self, pair: Pair, path: &[LinkNo]) -> Vec<Hop> {
        let (Some(mut at), Some(end)) = (self.place(pair.source), self.place(pair.destination)) else {
            return Vec::new();
        };
        if path.is_empty() {
            return Vec::new();
        }
        let mut hops = Vec::new();
        for [from, to] in path.iter().filter_map(|link| self.around.links.get(link)) {
            hops.push(Hop { datapath: at.0, in_port: at.1, out_port: from.1 });
            at = *to;
        }
        hops.push(Hop { datapath: at.0, in_port: at.1, out_port: end.1 });
        hops
    }

    /// Gives a flow these rules in place of those that it has: first at the end of its path, so that a packet finds the next ones.
    fn install(&mut self, pair: Pair, hops: Vec<Hop>, out: &mut Vec<Outgoing>) {
        let before = self.installed.remove(&pair).unwrap_or_default();
        for (at, hop) in hops.iter().enumerate().rev() {
            let flags = if at == 0 { FLOW_MOD_SEND_FLOW_REMOVED } else { 0 };
            let fields = FlowModFields { idle_timeout_s: IDLE_TIMEOUT_S, flags, ..FlowModFields::default() };
            let actions = vec![Action::output(hop.out_port)];
            out.extend(self.rule(pair, *hop, fields, actions));
        }
        let is_left =
            |old: &&Hop| !hops.iter().any(|new| (new.datapath, new.in_port) == (old.datapath, old.in_port));
        for hop in before.iter().filter(is_left) {
            let fields = FlowModFields { command: FLOW_DELETE_STRICT, ..FlowModFields::default() };
            out.extend(self.rule(pair, *hop, fields, Vec::new()));
        }
        if !hops.is_empty() {
            self.installed.insert(pair, hops);
        }
    }

    fn rule(&self, pair: Pair, hop: Hop, fields: FlowModFields, actions: Vec<Action>) -> Option<Outgoing> {
        let mac = |vnic: VnicNo| self.around.vnics.get(vnic.index()).map(|(_, mac, _)| mac.to_u64());
        let matching = Match::any()
            .with(Field::InPort, hop.in_port.0)
            .with(Field::EthSrc, mac(pair.source)?)
            .with(Field::EthDst, mac(pair.destination)?);
        let instructions = match actions.is_empty() {
            true => Vec::new(),
            false => vec![Instruction::ApplyActions(actions)],
        };
        let fields = FlowModFields { priority: PRIORITY, ..fields };
        Some((hop.datapath, Body::FlowMod(fields.with(matching, instructions))))
    }

    /// Flows that get too little move.
    fn balance(&mut self, now_ms: u64, out: &mut Vec<Outgoing>) {
        for (pair, path, stay_ms) in self.tenant.moves(now_ms) {
            self.moves += 1;
            // The millisecond in which it ends has begun then.
            self.again_ms.insert(now_ms + stay_ms + 1);
            let hops = self.hops(pair, &path);
            self.install(pair, hops, out);
        }
    }

    /// Nobody has used a flow for long: its rules go, and it counts no more.
    fn on_removed(&mut self, removed: &FlowRemoved) {
        /// OFPRR_HARD_TIMEOUT, the last reason that is a time-out.
        const HARD_TIMEOUT: u8 = 1;
        let mac = |field| removed.matching.get(field).and_then(|(it, _)| u64::try_from(it).ok());
        let vnic = |field| mac(field).and_then(|mac| self.by_address.get(&MacAddr::from_u64(mac)).copied());
        if let (Some(source), Some(destination)) = (vnic(Field::EthSrc), vnic(Field::EthDst))
            && removed.reason <= HARD_TIMEOUT
        {
            let pair = Pair { slice: self.around.slice, source, destination };
            self.installed.remove(&pair);
            self.tenant.end(pair);
        }
    }
}

fn packet_out(in_port: PortNo, port: PortNo, packet: &PacketIn) -> Body {
    let actions = vec![Action::output(port)];
    Body::PacketOut(PacketOut { buffer_id: NO_BUFFER, in_port, actions, data: packet.data.clone() })
}

impl Controller for Multipath {
    fn on_open(&mut self, datapath: DatapathId, version: Version, out: &mut Vec<Outgoing>) {
        let mut say = |body| out.push((datapath, body));
        if version == Version::V1_0 {
            say(Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: WHOLE_PACKETS }));
            say(Body::FeaturesRequest);
        } else {
            let to_controller = Action::Output { port: PortNo::CONTROLLER, max_len: WHOLE_PACKETS };
            let rule = FlowModFields { priority: 0, ..FlowModFields::default() };
            let instructions = vec![Instruction::ApplyActions(vec![to_controller])];
            say(Body::FlowMod(rule.with(Match::any(), instructions)));
            say(Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::PortDesc }));
        }
        // After it, a slice that tells labels in messages of its own tells all.
        say(Body::BarrierRequest);
    }

    fn on_message(&mut self, datapath: DatapathId, message: &Message, now_ms: u64, out: &mut Vec<Outgoing>) {
        match &message.body {
            Body::FeaturesReply(reply) => self.on_ports(datapath, &reply.ports, now_ms),
            Body::MultipartReply(MultipartReply { body: ReplyBody::PortDesc(ports), .. }) => {
                self.on_ports(datapath, ports, now_ms);
            }
            Body::PacketIn(packet) => self.on_packet_in(datapath, packet, out),
            Body::FlowRemoved(removed) => self.on_removed(removed),
            Body::EchoRequest(payload) => out.push((datapath, Body::EchoReply(payload.clone()))),
            _ => {}
        }
    }

    fn on_label(&mut self, label: HeardLabel, now_ms: u64, out: &mut Vec<Outgoing>) {
        let link = self.by_beginning.get(&(label.datapath, label.port)).copied();
        if let (Some(link), Some(kbps)) = (link, label.kbps) {
            self.tenant.hear(link, kbps.saturating_mul(1_000));
            self.balance(now_ms, out);
        }
    }

    fn on_time(&mut self, now_ms: u64, out: &mut Vec<Outgoing>) {
        if self.look_ms.take_if(|due_ms| *due_ms <= now_ms).is_some() {
            self.look_for_links(out);
        }
        self.again_ms = self.again_ms.split_off(&(now_ms + 1));
        self.balance(now_ms, out);
    }

    fn next_ms(&self) -> Option<u64> {
        self.again_ms.first().copied().into_iter().chain(self.look_ms).min()
    }

    fn moves(&self) -> usize {
        self.moves
    }
}
