//! The app `forwarding`: connects hosts along shortest paths of the network view.
//!
//! ```text
//!   packet-in between known hosts ──> rules in each switch of the shortest path; the packet goes out at its end
//!   question for an address ────────> to the known hosts that have it
//!   other broadcast, unknown host ──> out of all ports at the edge, and of no link
//!   link fails, host moves ─────────> the flows concerned get another path
//! ```
//!
//! In: packet-ins, and changes of switches, ports, links and hosts. Out: rules and packet-outs. It learns no host itself, and never sends
//! a broadcast into a link, so a network with loops needs no spanning tree.

mod flood;
mod flows;
mod routes;

use burnet_sdk::flow::frame::FrameFields;
use burnet_sdk::view::{
    Batch, ConnectPoint, Host, HostId, Kind, Link, LinkState, Notice, Object, Snapshot, SwitchState,
};
use burnet_sdk::{
    App, AppTable, Commands, DatapathId, Field, FlowRemoved, Interests, MacAddr, PacketIn, PortNo, Settings,
};
use flood::Flood;
use flows::{FlowId, Flows, ForwardingSettings, Hop};
use routes::Routes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;

/// Frames between neighbours, which no switch forwards: 01:80:c2:00:00:00 to 0f (IEEE 802.1Q, 8.6.3).
const RESERVED: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];

/// The EtherTypes of probes for links: LLDP, and the broadcast probe of controllers.
const PROBES: [u16; 2] = [0x88cc, 0x8942];

/// The app.
pub struct Forwarding {
    settings: ForwardingSettings,
    routes: Routes,
    flows: Flows,
    flood: Flood,
}

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<Forwarding>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Forwarding>()
}

/// What the app needs of a frame.
struct Frame {
    src: HostId,
    dst: HostId,
    eth_type: u16,
    /// The address that an ARP request or a neighbour solicitation asks for.
    asked: Option<IpAddr>,
}

impl Frame {
    /// `None` if the frame is too short.
    fn read(packet: &PacketIn<'_>) -> Option<Frame> {
        let fields = FrameFields::read(packet.data);
        let mac =
            |field| fields.get(field).and_then(|value| u64::try_from(value).ok()).map(MacAddr::from_u64);
        // The lower 12 bits are the VLAN; the bit above marks a tagged frame (OpenFlow 1.3.5, 7.2.3.7).
        let tag = fields.get(Field::VlanVid).and_then(|tag| u16::try_from(tag & 0x0fff).ok());
        let vlan = tag.filter(|vlan| *vlan != 0);
        let host = |field| mac(field).map(|mac| HostId { mac, vlan });
        let eth_type = fields.get(Field::EthType).and_then(|it| u16::try_from(it).ok()).unwrap_or_default();
        Some(Frame { src: host(Field::EthSrc)?, dst: host(Field::EthDst)?, eth_type, asked: asked(&fields) })
    }

    fn is_between_neighbours(&self) -> bool {
        PROBES.contains(&self.eth_type) || self.dst.mac.0.starts_with(&RESERVED) && self.dst.mac.0[5] <= 0x0f
    }
}

fn asked(fields: &FrameFields) -> Option<IpAddr> {
    let target = || u32::try_from(fields.get(Field::ArpTpa)?).ok();
    match (fields.get(Field::ArpOp), fields.get(Field::Icmpv6Type)) {
        (Some(ARP_REQUEST), _) => Some(Ipv4Addr::from(target()?).into()),
        (_, Some(NEIGHBOUR_SOLICITATION)) => Some(Ipv6Addr::from(fields.get(Field::Ipv6NdTarget)?).into()),
        _ => None,
    }
}

const ARP_REQUEST: u128 = 1;
const NEIGHBOUR_SOLICITATION: u128 = 135;

impl App for Forwarding {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: ForwardingSettings = settings.read()?;
        if settings.table > 254 {
            return Err(format!("table = {}: write 0 to 254", settings.table));
        }
        let (routes, flows, flood) = (Routes::default(), Flows::default(), Flood::default());
        Ok(Forwarding { settings, routes, flows, flood })
    }

    fn interests(&self) -> Interests {
        Interests::none().packets().flow_removed().ticks().view(&[Kind::Link, Kind::Host])
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        let Some(frame) = Frame::read(packet).filter(|frame| !frame.is_between_neighbours()) else { return };
        let view = out.view();
        if !frame.dst.mac.is_multicast()
            && let Some(dst) = view.host(frame.dst)
        {
            self.forward(packet, frame.src, dst, &view, out);
        } else if !ask(packet, &frame, &view, out) {
            self.flood.send(packet, &view, out);
        }
    }

    fn on_flow_removed(&mut self, removed: &FlowRemoved, _: &mut Commands) {
        // 0 idle time-out, 1 hard time-out: nobody uses the path any more.
        if removed.reason <= 1 {
            self.flows.forget(flows::number_of(removed.cookie));
        }
    }

    fn on_tick(&mut self, now_ms: u64, _: &mut Commands) {
        self.flood.on_tick(now_ms);
    }

    fn on_view(&mut self, changes: &Batch, view: &Snapshot, out: &mut Commands) {
        let is_topology = |notice: &Notice| notice.kind() != Kind::Host;
        if changes.iter().any(is_topology) {
            self.routes.forget();
            self.flood.forget_edge();
        }
        let mut concerned = Vec::new();
        for change in changes.iter() {
            match (change.before(), change.now()) {
                (before, Some(Object::Switch(switch)))
                    if switch.state == SwitchState::Up && !is_up(before) =>
                {
                    // Rules of an earlier run, or of an earlier session, would lead along old paths.
                    out.rule(switch.id).delete_within().send();
                    self.flows.note_tables(switch.id, switch.openflow == "1.0");
                }
                (Some(Object::Link(link)), now) if carries(link) && !now.is_some_and(is_carrying) => {
                    concerned.extend(self.flows.through(link.id.from));
                }
                (Some(Object::Host(before)), now) if place(now) != Some(before.at) => {
                    concerned.extend(self.flows.of(before.id));
                }
                _ => {}
            }
        }
        concerned.sort_unstable();
        concerned.dedup();
        concerned.into_iter().for_each(|number| self.renew(number, view, out));
    }
}

/// Sends a question for the address of known hosts to these hosts alone. `false` if it is none.
fn ask(packet: &PacketIn, frame: &Frame, view: &Snapshot, out: &mut Commands) -> bool {
    let Some(address) = frame.asked else { return false };
    let is_other = |host: &&Host| host.id.vlan == frame.src.vlan && host.id.mac != frame.src.mac;
    let places: Vec<_> = view.hosts_with_address(address).filter(is_other).map(|host| host.at).collect();
    let here = ConnectPoint { switch: packet.datapath, port: packet.in_port };
    for at in places.iter().filter(|at| **at != here) {
        out.packet_out(at.switch).frame(packet.data).output(at.port).send();
    }
    !places.is_empty()
}

fn is_up(object: Option<&Object>) -> bool {
    matches!(object, Some(Object::Switch(switch)) if switch.state == SwitchState::Up)
}

fn carries(link: &Link) -> bool {
    link.state == LinkState::Up
}

fn is_carrying(object: &Object) -> bool {
    matches!(object, Object::Link(link) if carries(link))
}

fn place(object: Option<&Object>) -> Option<ConnectPoint> {
    match object {
        Some(Object::Host(host)) => Some(host.at),
        _ => None,
    }
}

impl Forwarding {
    /// Forwards a packet to a known host. If its source is where the view has it, the flow gets rules.
    fn forward(&mut self, packet: &PacketIn, src: HostId, dst: &Host, view: &Snapshot, out: &mut Commands) {
        let here = ConnectPoint { switch: packet.datapath, port: packet.in_port };
        if dst.at == here {
            // Both hosts are behind this port, and reach each other without the switch.
            return;
        }
        if let Some(src) = view.host(src)
            && let Some(hops) = self.hops(src.at, dst.at, view)
            && hops.iter().any(|hop| hop.from() == here)
        {
            self.flows.install(FlowId { src: src.id, dst: dst.id }, hops, self.settings, out);
        }
        self.deliver(packet, dst.at, view, out);
    }

    /// Sends the packet out at its destination. If the switch keeps the packet, it goes one switch further.
    fn deliver(&mut self, packet: &PacketIn, to: ConnectPoint, view: &Snapshot, out: &mut Commands) {
        if packet.buffer_id.is_none() {
            out.packet_out(to.switch).frame(packet.data).output(to.port).send();
        } else if let Some(port) = self.next_port(packet.datapath, to, view) {
            out.packet_out(packet.datapath).packet(packet).output(port).send();
        }
    }

    fn next_port(&mut self, at: DatapathId, to: ConnectPoint, view: &Snapshot) -> Option<PortNo> {
        let way = self.routes.way(view, at, to.switch)?;
        Some(way.first().map_or(to.port, |link| link.from.port))
    }

    /// The switches between two ports, with the ports by which a packet passes each. `None` if there is no path.
    fn hops(&mut self, from: ConnectPoint, to: ConnectPoint, view: &Snapshot) -> Option<Vec<Hop>> {
        let way = self.routes.way(view, from.switch, to.switch)?;
        let entries = std::iter::once(from).chain(way.iter().map(|link| link.to));
        let exits = way.iter().map(|link| link.from.port).chain([to.port]);
        Some(entries.zip(exits).map(|(entry, out_port)| Hop::new(entry, out_port)).collect())
    }

    /// Gives a flow the path that it must have now. Without one, its rules go.
    fn renew(&mut self, number: u64, view: &Snapshot, out: &mut Commands) {
        let Some(id) = self.flows.id(number) else { return };
        let ends = view.host(id.src).zip(view.host(id.dst));
        match ends.and_then(|(src, dst)| self.hops(src.at, dst.at, view)) {
            Some(hops) => self.flows.install(id, hops, self.settings, out),
            None => self.flows.withdraw(number, self.settings, out),
        }
    }
}

#[cfg(test)]
mod tests;
