//! The app `dhcp`: a DHCPv4 server that answers at the switches, without a machine of its own.
//!
//! ```text
//!   client ──DISCOVER, REQUEST──> switch ──packet-in──> [ message ──> leases ] ──packet-out──> switch ──OFFER, ACK──> client
//!                                                              └──each lease──> store, before the client learns of it
//! ```
//!
//! In: packet-ins of clients, settings, the store's answers. Out: answers to the client's own port, rules that bring such packets to the
//! app, log lines. It answers no relay, and floods nothing.

mod kept;
mod leases;
mod message;
mod ports;
mod settings;

use crate::kept::{Loaded, Loading};
use crate::leases::{DECLINED_MS, Lease, Leases, OFFER_MS};
use crate::message::{Answer, Asks, Request};
use crate::ports::{Place, Ports};
use crate::settings::DhcpSettings;
use burnet_sdk::flow::canonical::write_match;
use burnet_sdk::flow::text::parse_match;
use burnet_sdk::{
    App, AppTable, Commands, DatapathId, Interests, Level, MacAddr, Outcome, PacketIn, PortNo, QueryReply,
    Receipt, Settings, SwitchUp, Ticket,
};
use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The packets of clients.
const REQUESTS: &str = "udp,tp_src=68,tp_dst=67";

/// The priority of its rules: above that of the service `hosts`, below those of apps that block.
const PRIORITY: u16 = 41_000;

/// The whole packet (`OFPCML_NO_BUFFER`).
const WHOLE_PACKET: u16 = 0xffff;

/// Answers that wait for the store. A request beyond it is not answered: its client asks again.
const WAITING_MAX: usize = 1_024;

/// How often the operator is told that a pool is exhausted or a port is full.
const TELL_INTERVAL_MS: u64 = 60_000;

/// An answer that is sent when the lease is in the store.
#[derive(Debug)]
struct Waiting {
    place: Place,
    frame: Vec<u8>,
    vlan: Option<u16>,
    address: Ipv4Addr,
    mac: MacAddr,
}

/// The DHCP server.
pub struct Dhcp {
    settings: DhcpSettings,
    pools: BTreeMap<Option<u16>, Leases>,
    ports: Ports,
    loading: Loading,
    /// Leases are kept in memory only.
    is_volatile: bool,
    waiting: HashMap<Ticket, Waiting>,
    /// When the operator was last told, and of how many requests since then.
    told: Told,
    /// The time in milliseconds since 1970, from the system's clock: leases in the store outlive this process.
    clock: fn() -> u64,
}

#[derive(Debug, Default)]
struct Told {
    at_ms: u64,
    untold: u64,
}

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<Dhcp>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Dhcp>()
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl App for Dhcp {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings = DhcpSettings::read(settings)?;
        let pools = settings.pools.iter().map(|(vlan, pool)| (*vlan, Leases::new(pool.clone())));
        Ok(Dhcp {
            pools: pools.collect(),
            settings,
            ports: Ports::default(),
            loading: Loading::default(),
            is_volatile: false,
            waiting: HashMap::new(),
            told: Told::default(),
            clock: unix_ms,
        })
    }

    fn interests(&self) -> Interests {
        let matches = [REQUESTS.to_owned(), self.arp()];
        let matches = matches.iter().filter_map(|text| parse_match(text).ok());
        matches.fold(Interests::none().switches().ticks(), Interests::packets_within)
    }

    fn on_start(&mut self, out: &mut Commands) {
        self.loading.start(out);
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        self.loading.on_tick(out);
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        for text in [REQUESTS, &self.arp()] {
            let Ok(matching) = parse_match(text) else { continue };
            let mut bytes = Vec::new();
            write_match(&matching, &mut bytes);
            let rule = out.rule(up.datapath).priority(PRIORITY).matching_bytes(&bytes);
            let to_controller = rule.apply(|actions| {
                actions.output(PortNo::CONTROLLER, WHOLE_PACKET);
            });
            to_controller.send_with_receipt();
        }
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        let place = (packet.datapath, packet.in_port);
        if let Some(reply) = message::answer_arp(packet.data, &self.settings) {
            send(place, &reply, out);
        } else if let Some(request) = message::read(packet.data).filter(|_| self.loading.has_ended()) {
            self.on_request(place, &request, out);
        }
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        match self.loading.hear(reply, out) {
            Loaded::NotMine => self.on_written(reply, out),
            other => self.on_loaded(other, out),
        }
    }

    fn on_receipt(&mut self, datapath: DatapathId, receipt: &Receipt, out: &mut Commands) {
        match self.loading.refused(Ticket(receipt.ticket), receipt.reason) {
            Loaded::NotMine if receipt.outcome == Outcome::Programmed => {}
            Loaded::NotMine => {
                self.waiting.remove(&Ticket(receipt.ticket));
                let text = format!("{datapath}: a request of a client may get no answer: {}", receipt.reason);
                out.log(Level::Warning, &text);
            }
            other => self.on_loaded(other, out),
        }
    }
}

impl Dhcp {
    fn arp(&self) -> String {
        format!("arp,arp_op=1,arp_tpa={}", self.settings.server)
    }

    fn on_loaded(&mut self, loaded: Loaded, out: &mut Commands) {
        match loaded {
            Loaded::Lease(address, lease) => {
                let pool = self.pools.values_mut().find(|leases| leases.pool().contains(address));
                pool.into_iter().for_each(|leases| leases.set(address, lease));
            }
            Loaded::NoStore(why) => {
                self.is_volatile = true;
                out.log(Level::Warning, &format!("leases are lost when the app ends: {why}"));
            }
            Loaded::Nothing | Loaded::NotMine => {}
        }
    }

    fn on_request(&mut self, place: Place, request: &Request, out: &mut Commands) {
        let now_ms = (self.clock)();
        match request.asks {
            Asks::Discover => self.offer(place, request, now_ms, out),
            Asks::Request => self.confirm(place, request, now_ms, out),
            Asks::Decline => self.decline(place, request, now_ms, out),
            Asks::Release => self.release(place, request, now_ms, out),
            Asks::Inform => self.answer(place, request, Answer::Ack(None), out),
        }
    }

    fn answer(&self, place: Place, request: &Request, answer: Answer, out: &mut Commands) {
        if let Some(leases) = self.pools.get(&request.vlan) {
            send(place, &message::write(request, answer, leases.pool(), &self.settings), out);
        }
    }

    fn offer(&mut self, place: Place, request: &Request, now_ms: u64, out: &mut Commands) {
        let Some(leases) = self.pools.get_mut(&request.vlan) else { return };
        if !self.ports.has_room(place, request.mac, self.settings.leases_per_port, now_ms) {
            return self.tell(now_ms, &full(place, request.mac), out);
        }
        let Some(address) = leases.offer(request.mac, request.wants, now_ms) else {
            let text = format!(
                "the pool of {} is exhausted: {} gets no address",
                leases.pool().network,
                request.mac
            );
            return self.tell(now_ms, &text, out);
        };
        self.ports.hold(place, request.mac, now_ms + OFFER_MS);
        self.answer(place, request, Answer::Offer(address), out);
    }

    /// Confirms the address that a client was offered, has, or had, or refuses it.
    fn confirm(&mut self, place: Place, request: &Request, now_ms: u64, out: &mut Commands) {
        let Some(leases) = self.pools.get_mut(&request.vlan) else { return };
        if request.server.is_some_and(|server| server != self.settings.server) {
            // It has chosen another server.
            return;
        }
        let Some(address) = request.has.or(request.wants) else { return };
        if !leases.is_for(request.mac, address, now_ms) {
            return self.answer(place, request, Answer::Nak, out);
        }
        if !self.ports.has_room(place, request.mac, self.settings.leases_per_port, now_ms) {
            return self.tell(now_ms, &full(place, request.mac), out);
        }
        if self.waiting.len() >= WAITING_MAX {
            return;
        }
        let lease = leases.lease(request.mac, now_ms);
        leases.set(address, lease);
        self.ports.hold(place, request.mac, lease.until_ms);
        let frame = message::write(request, Answer::Ack(Some(address)), leases.pool(), &self.settings);
        if self.is_volatile {
            return send(place, &frame, out);
        }
        let ticket = out.store_put(&kept::key_of(address), &kept::value_of(&lease));
        self.waiting.insert(ticket, Waiting { place, frame, vlan: request.vlan, address, mac: request.mac });
    }

    /// The store has answered about a lease.
    fn on_written(&mut self, reply: &QueryReply, out: &mut Commands) {
        let Some(waiting) = self.waiting.remove(&Ticket(reply.ticket)) else { return };
        if reply.status == burnet_sdk::store::status::DONE {
            return send(waiting.place, &waiting.frame, out);
        }
        if let Some(leases) = self.pools.get_mut(&waiting.vlan) {
            leases.end(waiting.address);
        }
        self.ports.release(waiting.place, waiting.mac);
        let text = format!(
            "{} gets no address, since its lease cannot be kept: {}",
            waiting.mac,
            burnet_sdk::store_failure(reply)
        );
        self.tell((self.clock)(), &text, out);
    }

    fn decline(&mut self, place: Place, request: &Request, now_ms: u64, out: &mut Commands) {
        let Some(leases) = self.pools.get_mut(&request.vlan) else { return };
        let Some(address) = request.wants.filter(|wanted| leases.held(request.mac, now_ms) == Some(*wanted))
        else {
            return;
        };
        leases.set(address, Lease { mac: None, until_ms: now_ms + DECLINED_MS });
        self.ports.release(place, request.mac);
        self.forget(address, out);
        let text = format!("{} declines {address}: another host has this address", request.mac);
        self.tell(now_ms, &text, out);
    }

    fn release(&mut self, place: Place, request: &Request, now_ms: u64, out: &mut Commands) {
        let Some(leases) = self.pools.get_mut(&request.vlan) else { return };
        if let Some(address) = request.has.filter(|has| leases.held(request.mac, now_ms) == Some(*has)) {
            leases.set(address, Lease { mac: Some(request.mac), until_ms: now_ms });
            self.ports.release(place, request.mac);
            self.forget(address, out);
        }
    }

    fn forget(&self, address: Ipv4Addr, out: &mut Commands) {
        if !self.is_volatile {
            out.store_delete(&kept::key_of(address));
        }
    }

    /// Tells the operator, once in [`TELL_INTERVAL_MS`].
    fn tell(&mut self, now_ms: u64, text: &str, out: &mut Commands) {
        if now_ms.saturating_sub(self.told.at_ms) < TELL_INTERVAL_MS {
            self.told.untold += 1;
            return;
        }
        let untold = std::mem::replace(&mut self.told, Told { at_ms: now_ms, untold: 0 }).untold;
        let more = if untold == 0 {
            String::new()
        } else {
            format!(" ({untold} other requests failed since the last line)")
        };
        out.log(Level::Warning, &format!("{text}{more}"));
    }
}

fn full((switch, port): Place, mac: MacAddr) -> String {
    format!("{switch}/{port} has as many leases as one port can have: {mac} gets no address")
}

/// Sends a frame out of the client's own port.
fn send((switch, port): Place, frame: &[u8], out: &mut Commands) {
    out.packet_out(switch).frame(frame).in_port(PortNo::CONTROLLER).output(port).send();
}

#[cfg(test)]
mod tests;
