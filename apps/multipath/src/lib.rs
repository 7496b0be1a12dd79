//! The app `multipath`: connects the hosts of a tenant over several paths, chosen by the labels of the links.
//!
//! ```text
//!   packet-in between known hosts ──> paths of the view ──> [ Balancer ] ──> rules in each switch; the packet goes out at its end
//!   speed of a port changes ────────> [ Balancer ] ──> flows that get too little move
//!   broadcast, unknown host ────────> out of all ports at the edge, and of no link
//! ```
//!
//! A tenant's slice with `labels = "speed"` says the label of a link as the current speed of the port where the link begins. So this app needs no message
//! of its own: it reads the speeds of ports in the network view. The [`Balancer`] is pure, and rehearsals use it too.
//!
//! In: packet-ins, changes of the view, time. Out: rules and packet-outs. It learns no host itself, and never sends a broadcast into a link.

mod choice;
mod paths;
mod rules;
mod vnics;

pub use choice::{Balancer, Choose, STAY_MS};

use burnet_sdk::flow::frame::FrameFields;
use burnet_sdk::view::{
    Batch, ConnectPoint, Host, HostId, Kind, LinkId, LinkState, Notice, Object, Snapshot, SwitchState,
};
use burnet_sdk::{
    App, AppTable, Commands, DatapathId, Field, FlowRemoved, Interests, MacAddr, PacketIn, PortNo, Settings,
};
use choice::FLOWS_MAX;
use rules::Hop;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::ExitCode;
use vnics::{MultipathSettings, Rates};

/// The EtherTypes of probes for links: LLDP, and the broadcast probe of controllers.
const PROBES: [u16; 2] = [0x88cc, 0x8942];

/// An app has the lower 48 bits of a cookie.
const COOKIE_MASK: u64 = (1 << 48) - 1;

/// The app's table, for the kernel process of a node that has it built in.
pub static TABLE: AppTable = burnet_sdk::table::<Multipath>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Multipath>()
}

/// From one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FlowId {
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
}

/// A flow that has rules.
#[derive(Debug)]
struct Installed {
    number: u64,
    path: Vec<LinkId>,
    hops: Vec<Hop>,
}

/// The app.
pub struct Multipath {
    settings: MultipathSettings,
    rates: Rates,
    balancer: Balancer<FlowId, LinkId>,
    /// At most [`FLOWS_MAX`]. A further flow gets no rules; its packets go out at their end.
    flows: BTreeMap<FlowId, Installed>,
    by_number: BTreeMap<u64, FlowId>,
    last_number: u64,
    now_ms: u64,
}

/// The label of a link in bit/s: the speed of the port where it begins.
fn label_bps(view: &Snapshot, link: &LinkId) -> u64 {
    view.port(link.from).map_or(0, |port| port.speed_kbps.saturating_mul(1_000))
}

/// What decides among equal paths, and alone without labels.
fn number(flow: FlowId) -> u64 {
    let mut hasher = DefaultHasher::new();
    flow.hash(&mut hasher);
    hasher.finish()
}

impl App for Multipath {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: MultipathSettings = settings.read()?;
        Ok(Multipath {
            balancer: Balancer::new(settings.choose()?),
            rates: Rates::new(&settings.vnics),
            settings,
            flows: BTreeMap::new(),
            by_number: BTreeMap::new(),
            last_number: 0,
            now_ms: 0,
        })
    }

    fn interests(&self) -> Interests {
        Interests::none().packets().flow_removed().ticks().view(&[Kind::Port, Kind::Link, Kind::Host])
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        let Some((src, dst, eth_type)) = ends(packet.data) else { return };
        if PROBES.contains(&eth_type) {
            return;
        }
        let view = out.view();
        match view.host(dst).filter(|_| !dst.mac.is_multicast()) {
            Some(dst) => self.forward(packet, src, dst, &view, out),
            None => flood(packet, &view, out),
        }
    }

    fn on_flow_removed(&mut self, removed: &FlowRemoved, out: &mut Commands) {
        // 0 idle time-out, 1 hard time-out: nobody uses the path any more.
        if removed.reason <= 1
            && let Some(flow) = self.by_number.get(&(removed.cookie & COOKIE_MASK)).copied()
        {
            self.forget(flow);
            self.share(&out.view());
        }
    }

    fn on_tick(&mut self, now_ms: u64, out: &mut Commands) {
        self.now_ms = now_ms;
        let view = out.view();
        self.balance(&view, out);
    }

    fn on_view(&mut self, changes: &Batch, view: &Snapshot, out: &mut Commands) {
        let mut restarted = Vec::new();
        for change in changes.iter() {
            if let (before, Some(Object::Switch(switch))) = (change.before(), change.now())
                && switch.state == SwitchState::Up
                && !matches!(before, Some(Object::Switch(before)) if before.state == SwitchState::Up)
            {
                // Rules of an earlier run, or of an earlier session, would lead along old paths.
                out.rule(switch.id).delete_within().send();
                restarted.push(switch.id);
            }
        }
        let is_topology = |notice: &Notice| notice.kind() != Kind::Port;
        if changes.iter().any(is_topology) {
            self.renew(&restarted, view, out);
        }
        self.balance(view, out);
    }
}

impl Multipath {
    /// Forwards a packet to a known host. If its source is where the view has it, the flow gets rules.
    fn forward(&mut self, packet: &PacketIn, src: HostId, dst: &Host, view: &Snapshot, out: &mut Commands) {
        let here = ConnectPoint { switch: packet.datapath, port: packet.in_port };
        if dst.at == here {
            // Both hosts are behind this port, and reach each other without the switch.
            return;
        }
        let flow = FlowId { src, dst: dst.id };
        if view.host(src).is_some_and(|src| src.at == here) && !self.flows.contains_key(&flow) {
            self.begin(flow, view, out);
        }
        let path = self.flows.get(&flow).map(|it| it.path.as_slice()).unwrap_or_default();
        if packet.buffer_id.is_none() {
            out.packet_out(dst.at.switch).frame(packet.data).output(dst.at.port).send();
        } else if let Some(port) = next_port(packet, path, dst.at) {
            out.packet_out(packet.datapath).packet(packet).output(port).send();
        }
    }

    /// Gives a flow a path and its rules, in place of those that it has. Without a path, it is forgotten.
    fn begin(&mut self, flow: FlowId, view: &Snapshot, out: &mut Commands) {
        let before = self.forget(flow);
        let had_path = before.is_some();
        let number_before = before.as_ref().map(|it| it.number);
        let ends = view.host(flow.src).zip(view.host(flow.dst)).filter(|_| self.flows.len() < FLOWS_MAX);
        let chosen = ends.and_then(|(src, dst)| {
            let mut paths = paths::paths(view, src.at.switch, dst.at.switch);
            let flows = self.flows.keys().chain([&flow]);
            let rate_bps = self.rates.expected_bps(flows, fastest_bps(view))(&flow);
            let label = |link: &LinkId| label_bps(view, link);
            let index = self.balancer.place(flow, rate_bps, &paths, self.number(flow), label)?;
            let path = paths.swap_remove(index);
            Some((rules::hops(src.at, &path, dst.at), path))
        });
        let (hops, path) = chosen.unwrap_or_default();
        let number = number_before.unwrap_or_else(|| self.next_number());
        let old = before.map(|it| it.hops).unwrap_or_default();
        rules::install((flow, number), &hops, &old, &self.settings, out);
        let has_path = !hops.is_empty();
        if has_path {
            self.by_number.insert(number, flow);
            self.flows.insert(flow, Installed { number, path, hops });
        }
        if has_path != had_path {
            self.share(view);
        }
    }

    /// The topology or a host has changed: flows whose path is gone, whose host has moved, or whose rules were deleted in a restarted
    /// switch begin again.
    fn renew(&mut self, restarted: &[DatapathId], view: &Snapshot, out: &mut Commands) {
        let is_up = |link: &LinkId| view.link(*link).is_some_and(|link| link.state == LinkState::Up);
        let is_valid = |flow: &FlowId, installed: &Installed| {
            view.host(flow.src).zip(view.host(flow.dst)).is_some_and(|(src, dst)| {
                installed.path.iter().all(is_up)
                    && rules::hops(src.at, &installed.path, dst.at) == installed.hops
                    && !installed.hops.iter().any(|hop| restarted.contains(&hop.switch()))
            })
        };
        let stale =
            self.flows.iter().filter(|(flow, installed)| !is_valid(flow, installed)).map(|(flow, _)| *flow);
        let stale: Vec<FlowId> = stale.collect();
        stale.into_iter().for_each(|flow| self.begin(flow, view, out));
    }

    /// Labels or time have changed: flows that get too little move.
    fn balance(&mut self, view: &Snapshot, out: &mut Commands) {
        let label = |link: &LinkId| label_bps(view, link);
        for flow in self.balancer.short(label) {
            let Some((src, dst)) = view.host(flow.src).zip(view.host(flow.dst)) else { continue };
            let mut paths = paths::paths(view, src.at.switch, dst.at.switch);
            let number = self.number(flow);
            let moved = self.balancer.reconsider(&flow, &paths, number, self.now_ms, label);
            if let (Some(index), Some(installed)) = (moved, self.flows.get_mut(&flow)) {
                installed.path = paths.swap_remove(index);
                let hops = rules::hops(src.at, &installed.path, dst.at);
                let before = std::mem::replace(&mut installed.hops, hops);
                rules::install((flow, installed.number), &installed.hops, &before, &self.settings, out);
            }
        }
    }

    /// Flows of one VNIC share its rate.
    fn share(&mut self, view: &Snapshot) {
        let expected_bps = self.rates.expected_bps(self.flows.keys(), fastest_bps(view));
        for flow in self.flows.keys() {
            self.balancer.set_rate(flow, expected_bps(flow));
        }
    }

    fn forget(&mut self, flow: FlowId) -> Option<Installed> {
        self.balancer.end(&flow);
        let installed = self.flows.remove(&flow)?;
        self.by_number.remove(&installed.number);
        Some(installed)
    }

    fn number(&self, flow: FlowId) -> u64 {
        // The same flow has another random number each time that it begins.
        let salt = if self.settings.choose == "random" { self.last_number } else { 0 };
        number(flow) ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn next_number(&mut self) -> u64 {
        self.last_number = (self.last_number + 1) & COOKIE_MASK;
        self.last_number
    }
}

/// The speed of the fastest port: what a VNIC that is not in the settings may want.
fn fastest_bps(view: &Snapshot) -> u64 {
    view.ports().map(|port| port.speed_kbps.saturating_mul(1_000)).max().unwrap_or(0)
}

/// Where a packet that its switch keeps goes on.
fn next_port(packet: &PacketIn, path: &[LinkId], to: ConnectPoint) -> Option<PortNo> {
    let link = path.iter().find(|link| link.from.switch == packet.datapath);
    link.map(|link| link.from.port).or((to.switch == packet.datapath).then_some(to.port))
}

/// Source, destination and EtherType of a frame. `None` if it is too short.
fn ends(data: &[u8]) -> Option<(HostId, HostId, u16)> {
    let fields = FrameFields::read(data);
    let mac = |field| fields.get(field).and_then(|value| u64::try_from(value).ok()).map(MacAddr::from_u64);
    // The lower 12 bits are the VLAN; the bit above marks a tagged frame (OpenFlow 1.3.5, 7.2.3.7).
    let tag = fields.get(Field::VlanVid).and_then(|tag| u16::try_from(tag & 0x0fff).ok());
    let vlan = tag.filter(|vlan| *vlan != 0);
    let host = |field| mac(field).map(|mac| HostId { mac, vlan });
    let eth_type = fields.get(Field::EthType).and_then(|it| u16::try_from(it).ok()).unwrap_or_default();
    Some((host(Field::EthSrc)?, host(Field::EthDst)?, eth_type))
}

/// Sends a packet from the edge out of all other ports at the edge.
fn flood(packet: &PacketIn, view: &Snapshot, out: &mut Commands) {
    let from = ConnectPoint { switch: packet.datapath, port: packet.in_port };
    if view.has_link(from) {
        return;
    }
    let is_up = |at: &ConnectPoint| view.switch(at.switch).is_some_and(|it| it.state == SwitchState::Up);
    let edge = view.ports().filter(|port| port.live && port.id.port < PortNo::MAX).map(|port| port.id);
    for at in edge.filter(|at| *at != from && !view.has_link(*at) && is_up(at)) {
        out.packet_out(at.switch).frame(packet.data).output(at.port).send();
    }
}

#[cfg(test)]
mod tests;
