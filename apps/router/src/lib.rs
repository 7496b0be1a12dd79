//! The app `router`: routes between subnets, with a gateway address in each.
//!
//! ```text
//!   question for a gateway, ping of it ──> an answer
//!   packet to a known next hop ─────────> rules in all switches; they route without the app
//!   packet to an unknown next hop ──────> waits; the app asks for the hop, and the service hosts learns where it is
//!   no route, no hop left, no answer ───> an ICMP error
//! ```
//!
//! In: settings, packet-ins, and the switches, links and hosts of the network view. Out: sets of rules in the service `flows`, packet-outs. It learns
//! no host itself. Its rules stay in the switches while it is down, and follow hosts that move and links that fail.

mod answer;
mod frame;
mod prefix;
mod rules;
mod settings;
mod waiting;
mod way;

use crate::answer::{MAC, Recipient, Trouble};
use crate::frame::{Content, Frame, Packet};
use crate::settings::{Interface, NextHop, RouterSettings};
use crate::waiting::{Waiting, WaitingPackets};
use crate::way::{Edge, Ways};
use burnet_sdk::flow::Match;
use burnet_sdk::stream::Update;
use burnet_sdk::view::{Batch, ConnectPoint, Host, Kind, Object, Snapshot};
use burnet_sdk::{
    App, AppTable, Commands, DatapathId, Field, Interests, Level, PacketIn, QueryReply, Receipt, Settings,
    Ticket,
};
use burnet_sdk_rules::{FailureKind, Told};
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The most answers a second, and among them errors. Further ones are not sent: who asks repeats the question (RFC 1812, 4.3.2.8).
const ANSWERS_PER_S: u32 = 1_000;
const ERRORS_PER_S: u32 = 100;

/// The most lines of the log a second. Further ones are left out.
const LINES_PER_S: usize = 10;

/// `OFPR_INVALID_TTL`.
const INVALID_TTL: u8 = 2;

/// The router.
pub struct Router {
    settings: RouterSettings,
    ways: Ways,
    waiting: WaitingPackets,
    /// What may still be sent until the next tick.
    answers_left: u32,
    errors_left: u32,
}

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<Router>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Router>()
}

impl App for Router {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings = RouterSettings::read(settings)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Ok(Router {
            settings,
            ways: Ways::new(started_ms),
            waiting: WaitingPackets::default(),
            answers_left: ANSWERS_PER_S,
            errors_left: ERRORS_PER_S,
        })
    }

    fn interests(&self) -> Interests {
        let arp = Match::any().with(Field::EthType, frame::ARP).with(Field::ArpOp, 1_u16);
        let solicitation = Match::any().with(Field::EthType, frame::IPV6).with(Field::IpProto, frame::ICMPV6);
        let solicitation = solicitation.with(Field::Icmpv6Type, 135_u8);
        let to_router = Match::any().with(Field::EthDst, MAC);
        let packets = [arp, solicitation, to_router].into_iter();
        packets.fold(Interests::none(), Interests::packets_within).ticks().view(&[Kind::Link, Kind::Host])
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        // A switch may send the beginning only, and keep the rest. The app's own rules bring whole packets.
        if packet.data.len() < usize::from(packet.total_len) {
            return;
        }
        let Some(frame) = Frame::read(packet.data) else { return };
        let at = ConnectPoint { switch: packet.datapath, port: packet.in_port };
        match frame.content {
            Content::Question { asker, target } => self.answer(at, &frame, asker, target, out),
            Content::Packet(ip) if frame.to == MAC => {
                let is_over = packet.reason == INVALID_TTL || ip.hops_left <= 1;
                self.route(at, packet.data, &frame, &ip, is_over, out);
            }
            Content::Packet(_) => {}
        }
    }

    fn on_view(&mut self, changes: &Batch, view: &Snapshot, out: &mut Commands) {
        self.ways.on_view(changes, view, &self.settings, out);
        for host in changes.of(Kind::Host).filter_map(|notice| host_of(notice.now())) {
            for address in &host.addresses {
                self.release(*address, host, view, out);
            }
        }
    }

    fn on_tick(&mut self, now_ms: u64, out: &mut Commands) {
        (self.answers_left, self.errors_left) = (ANSWERS_PER_S, ERRORS_PER_S);
        self.ways.sets.on_tick_with_view(now_ms, out);
        let (again, given_up) = self.waiting.on_tick();
        if !again.is_empty() {
            let edge = way::edge(&out.view());
            again.into_iter().for_each(|next| self.ask_for(next, &edge, out));
        }
        for waiting in given_up {
            self.refuse_waiting(&waiting, out);
        }
        self.tell(out);
    }

    fn on_stream(&mut self, stream: Ticket, update: &Update, out: &mut Commands) {
        self.ways.sets.on_stream(stream, update, out);
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        self.ways.sets.on_reply(reply, out);
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, _: &mut Commands) {
        self.ways.sets.on_refusal(Ticket(receipt.ticket), receipt.reason);
    }
}

pub(crate) fn host_of(object: Option<&Object>) -> Option<&Host> {
    match object {
        Some(Object::Host(host)) => Some(host),
        _ => None,
    }
}

impl Router {
    /// Answers a question for a gateway, in the gateway's own VLAN.
    fn answer(
        &mut self,
        at: ConnectPoint,
        frame: &Frame<'_>,
        asker: IpAddr,
        own: IpAddr,
        out: &mut Commands,
    ) {
        let is_here =
            |interface: &&Interface| interface.vlan == frame.vlan && interface.network.contains(asker);
        if self.settings.with_gateway(own).filter(is_here).is_none() || frame.from == MAC {
            return;
        }
        let answer = answer::claim(sender_of(frame), asker, own);
        self.send_answer(at, answer, out);
    }

    fn send_answer(&mut self, at: ConnectPoint, frame: Option<Vec<u8>>, out: &mut Commands) {
        if let Some(frame) = frame.filter(|_| self.answers_left > 0) {
            self.answers_left -= 1;
            out.packet_out(at.switch).frame(&frame).output(at.port).send();
        }
    }

    fn send_error(
        &mut self,
        at: ConnectPoint,
        frame: &Frame<'_>,
        about: &Packet<'_>,
        trouble: Trouble,
        out: &mut Commands,
    ) {
        // The gateway of the sender's subnet says it. Without one, the sender's route to us is not ours.
        let of_sender = |it: &&Interface| it.network.contains(about.from) && it.vlan == frame.vlan;
        let Some(own) = self.settings.interfaces.iter().find(of_sender).map(|it| it.gateway) else { return };
        if self.errors_left > 0 && about.may_cause_error() {
            self.errors_left -= 1;
            self.send_answer(at, answer::error(sender_of(frame), own, about, trouble), out);
        }
    }

    /// A packet for the router: for itself, or to be passed on.
    fn route(
        &mut self,
        at: ConnectPoint,
        bytes: &[u8],
        frame: &Frame<'_>,
        ip: &Packet<'_>,
        is_over: bool,
        out: &mut Commands,
    ) {
        if self.settings.with_gateway(ip.to).is_some() {
            match answer::echo_reply(sender_of(frame), ip) {
                Some(reply) => self.send_answer(at, Some(reply), out),
                None if ip.protocol == frame::UDP => {
                    self.send_error(at, frame, ip, Trouble::PortUnreachable, out);
                }
                None => {}
            }
            return;
        }
        if is_over {
            return self.send_error(at, frame, ip, Trouble::TimeExceeded, out);
        }
        let Some(next) = self.settings.next_hop(ip.to).filter(|_| !ip.to.is_multicast()) else {
            return self.send_error(at, frame, ip, Trouble::NoRoute, out);
        };
        let view = out.view();
        if let Some(host) = self.ways.host(next, &self.settings, &view) {
            return pass_on(ip, host, out);
        }
        let waiting = Waiting { at, frame: bytes.to_vec() };
        if self.waiting.add(next, waiting) {
            self.ask_for(next, &way::edge(&view), out);
        }
    }

    /// Asks for a next hop at all ports of the edge.
    fn ask_for(&self, next: NextHop, edge: &Edge, out: &mut Commands) {
        let Some(interface) = self.settings.interfaces.get(next.interface) else { return };
        let Some(question) = answer::question(interface.vlan, interface.gateway, next.neighbour) else {
            return;
        };
        for (switch, ports) in edge {
            let packet_out = out.packet_out(*switch).frame(&question);
            ports.iter().fold(packet_out, |packet_out, port| packet_out.output(*port)).send();
        }
    }

    /// Passes on what waited for an address that is known now.
    fn release(&mut self, address: IpAddr, host: &Host, view: &Snapshot, out: &mut Commands) {
        for interface in 0..self.settings.interfaces.len() {
            let next = NextHop { interface, neighbour: address };
            if self.ways.host(next, &self.settings, view).is_none_or(|it| it.id != host.id) {
                continue;
            }
            for waiting in self.waiting.take(next) {
                if let Some(Frame { content: Content::Packet(ip), .. }) = Frame::read(&waiting.frame) {
                    pass_on(&ip, host, out);
                }
            }
        }
    }

    fn refuse_waiting(&mut self, waiting: &Waiting, out: &mut Commands) {
        if let Some(frame) = Frame::read(&waiting.frame)
            && let Content::Packet(ip) = frame.content
        {
            self.send_error(waiting.at, &frame, &ip, Trouble::HostUnreachable, out);
        }
    }

    /// Tells the operator what went wrong.
    fn tell(&mut self, out: &mut Commands) {
        let refused = self.ways.take_refused().into_iter();
        let failed = self.ways.sets.take_told().into_iter().filter_map(|told| match told {
            Told::Installed(_) => None,
            Told::Complaint(why) => Some(why),
            Told::Failed(set, failure) => {
                let full = if failure.failure == FailureKind::TableFull { "its table is full: " } else { "" };
                Some(format!("{} does not route to {set}: {full}{}", failure.switch, failure.reason))
            }
        });
        refused.chain(failed).take(LINES_PER_S).for_each(|line| out.log(Level::Error, &line));
    }
}

fn sender_of(frame: &Frame<'_>) -> Recipient {
    Recipient { mac: frame.from, vlan: frame.vlan }
}

fn pass_on(ip: &Packet<'_>, host: &Host, out: &mut Commands) {
    let to = Recipient { mac: host.id.mac, vlan: host.id.vlan };
    let frame = answer::passed_on(to, ip);
    out.packet_out(host.at.switch).frame(&frame).output(host.at.port).send();
}

#[cfg(test)]
mod tests;
