//! An end station: it answers ARP and pings, and pings others.
//!
//! ```text
//!   frame, the time, "ping that address" ──> Host ──> frames, "this reply, after so long"
//! ```
//!
//! All hosts of a network are on one subnet: there is no router and no gateway. Never waits: a ping that nobody answers is
//! given up by whoever asked for it.

use etherparse::{
    ArpEthIpv4Packet, ArpOperation, Icmpv4Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice,
};
use flow::MacAddr;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::frame::checksum;

/// How many addresses a host remembers; at the bound the one that was heard from longest ago is forgotten.
const ARP_CACHE_MAX: usize = 65_536;
/// How many pings may wait for an address or a reply; more are not sent, and so are lost.
const PINGS_MAX: usize = 65_536;
/// How long a host waits for an ARP reply before it asks again, and how often it asks: as Linux does (`retrans_time_ms`,
/// `mcast_solicit`).
const ARP_INTERVAL: Duration = Duration::from_secs(1);
const ARP_ATTEMPTS: u32 = 3;
/// How many used frames are kept for their room, and how much room one may have: a little over a frame of full length.
const SPARE_MAX: usize = 4096;
const SPARE_BYTES_MAX: usize = 2048;
/// Payload of a ping, as the ping program sends it.
const PING_PAYLOAD_BYTES: usize = 56;
/// Time-to-live of what a host sends, as Linux has it.
const TIME_TO_LIVE: u8 = 64;

/// What is to be done after something happened to a host. Collected by the caller, who may use it many times over.
#[derive(Debug, Default)]
pub struct HostEffects {
    /// Onto the wire, in order.
    pub frames: Vec<Vec<u8>>,
    /// Replies that have come to this host's pings.
    pub replies: Vec<PingReply>,
    /// Room for frames to come, so that a flow needs no new memory.
    spare: Vec<Vec<u8>>,
}

impl HostEffects {
    /// Takes a frame that nobody needs any more for the room that it has.
    pub fn recycle(&mut self, mut frame: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && frame.capacity() <= SPARE_BYTES_MAX {
            frame.clear();
            self.spare.push(frame);
        }
    }
}

/// A reply to a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingReply {
    /// Who answered.
    pub from: Ipv4Addr,
    /// The ping's number.
    pub sequence: u16,
    /// From the call of [`Host::ping`] on, finding the address included.
    pub round_trip: Duration,
}

/// An end station.
#[derive(Debug)]
pub struct Host {
    name: String,
    mac: MacAddr,
    address: Ipv4Addr,
    arp_cache: BTreeMap<Ipv4Addr, Neighbour>,
    wanted: BTreeMap<Ipv4Addr, Search>,
    /// When each ping was asked for, by address and number.
    outstanding: BTreeMap<(Ipv4Addr, u16), Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    mac: MacAddr,
    heard_at: Duration,
}

/// An address that is being asked for, and the pings that wait for it.
#[derive(Debug)]
struct Search {
    asked_at: Duration,
    attempts: u32,
    sequences: Vec<u16>,
}

impl Host {
    /// A host that knows nobody.
    pub fn new(name: impl Into<String>, mac: MacAddr, address: Ipv4Addr) -> Self {
        Host {
            name: name.into(),
            mac,
            address,
            arp_cache: BTreeMap::new(),
            wanted: BTreeMap::new(),
            outstanding: BTreeMap::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its Ethernet address.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Its IPv4 address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The Ethernet address that it has heard for an address.
    pub fn neighbour(&self, address: Ipv4Addr) -> Option<MacAddr> {
        self.arp_cache.get(&address).map(|neighbour| neighbour.mac)
    }

    /// Sends a ping, or asks for the address first.
    pub fn ping(&mut self, to: Ipv4Addr, sequence: u16, now: Duration, effects: &mut HostEffects) {
        if self.outstanding.len() >= PINGS_MAX {
            return;
        }
        self.outstanding.insert((to, sequence), now);
        if let Some(mac) = self.neighbour(to) {
            effects.frames.extend(self.echo_request(mac, to, sequence));
            return;
        }
        let mut is_new = false;
        let search = self.wanted.entry(to).or_insert_with(|| {
            is_new = true;
            Search { asked_at: now, attempts: 1, sequences: Vec::new() }
        });
        search.sequences.push(sequence);
        if is_new {
            effects.frames.push(self.arp_request(to));
        }
    }

    /// Waits for this ping no longer. Says whether it was still without a reply.
    pub fn give_up(&mut self, to: Ipv4Addr, sequence: u16) -> bool {
        if let Some(search) = self.wanted.get_mut(&to) {
            search.sequences.retain(|waiting| *waiting != sequence);
        }
        self.outstanding.remove(&(to, sequence)).is_some()
    }

    /// When it has something to do though nothing comes.
    pub fn next_due(&self) -> Option<Duration> {
        self.wanted.values().map(|search| search.asked_at + ARP_INTERVAL).min()
    }

    /// Tells everybody where it is, as a virtual machine does that has been moved: an ARP request for its own address.
    pub fn announce(&self, effects: &mut HostEffects) {
        effects.frames.push(self.arp_request(self.address));
    }

    /// It is switched off: it forgets whom it knew and what it waited for.
    pub fn fail(&mut self) {
        self.arp_cache.clear();
        self.wanted.clear();
        self.outstanding.clear();
    }

    /// Time has passed: asks again for addresses that nobody has told, and stops asking after a while.
    pub fn on_tick(&mut self, now: Duration, effects: &mut HostEffects) {
        self.wanted.retain(|_, search| {
            search.attempts < ARP_ATTEMPTS || now.saturating_sub(search.asked_at) < ARP_INTERVAL
        });
        let mut again = Vec::new();
        for (address, search) in &mut self.wanted {
            if now.saturating_sub(search.asked_at) >= ARP_INTERVAL {
                search.asked_at = now;
                search.attempts += 1;
                again.push(*address);
            }
        }
        effects.frames.extend(again.into_iter().map(|address| self.arp_request(address)));
    }

    /// A frame has come. What is not for this host, or not whole, is left alone.
    pub fn on_frame(&mut self, frame: &[u8], now: Duration, effects: &mut HostEffects) {
        let Some(to) = frame.first_chunk().map(|octets| MacAddr(*octets)) else { return };
        if to != self.mac && !to.is_multicast() {
            return;
        }
        let Ok(packet) = SlicedPacket::from_ethernet(frame) else { return };
        match (&packet.net, &packet.transport) {
            (Some(NetSlice::Arp(arp)), _) => {
                if let Ok(arp) = arp.to_packet().try_eth_ipv4() {
                    self.on_arp(&arp, now, effects);
                }
            }
            (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Icmpv4(icmp))) => {
                let header = ip.header();
                let whole = checksum::internet(header.slice()) == 0 && checksum::internet(icmp.slice()) == 0;
                if whole && header.destination_addr() == self.address {
                    let from = MacAddr([frame[6], frame[7], frame[8], frame[9], frame[10], frame[11]]);
                    self.on_icmp(from, header.source_addr(), icmp.icmp_type(), icmp.payload(), now, effects);
                }
            }
            _ => {}
        }
    }

    /// RFC 826: who asks for us tells us of itself, and whoever we know already is kept up to date.
    fn on_arp(&mut self, arp: &ArpEthIpv4Packet, now: Duration, effects: &mut HostEffects) {
        let (sender, mac) = (arp.sender_ipv4_addr(), MacAddr(arp.sender_mac));
        let for_us = arp.target_ipv4_addr() == self.address;
        if for_us || self.arp_cache.contains_key(&sender) {
            self.learn(sender, mac, now, effects);
        }
        if for_us && arp.operation == ArpOperation::REQUEST {
            effects.frames.push(self.arp(ArpOperation::REPLY, mac, mac, sender));
        }
    }

    fn learn(&mut self, address: Ipv4Addr, mac: MacAddr, now: Duration, effects: &mut HostEffects) {
        if self.arp_cache.len() >= ARP_CACHE_MAX && !self.arp_cache.contains_key(&address) {
            let oldest = self.arp_cache.iter().min_by_key(|(_, neighbour)| neighbour.heard_at);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                self.arp_cache.remove(&oldest);
            }
        }
        self.arp_cache.insert(address, Neighbour { mac, heard_at: now });
        let Some(search) = self.wanted.remove(&address) else { return };
        let requests =
            search.sequences.iter().filter_map(|sequence| self.echo_request(mac, address, *sequence));
        effects.frames.extend(requests);
    }

    fn on_icmp(
        &mut self,
        mac: MacAddr,
        from: Ipv4Addr,
        message: Icmpv4Type,
        payload: &[u8],
        now: Duration,
        effects: &mut HostEffects,
    ) {
        match message {
            Icmpv4Type::EchoRequest(echo) => {
                let reply = self.towards(mac, from).icmpv4_echo_reply(echo.id, echo.seq);
                let mut frame = Vec::with_capacity(reply.size(payload.len()));
                if reply.write(&mut frame, payload).is_ok() {
                    effects.frames.push(frame);
                }
            }
            Icmpv4Type::EchoReply(echo) if echo.id == self.echo_id() => {
                if let Some(asked_at) = self.outstanding.remove(&(from, echo.seq)) {
                    let round_trip = now.saturating_sub(asked_at);
                    effects.replies.push(PingReply { from, sequence: echo.seq, round_trip });
                }
            }
            _ => {}
        }
    }

    /// The identifier in this host's pings, by which it knows the replies as its own.
    fn echo_id(&self) -> u16 {
        let [_, _, high, low] = self.address.octets();
        u16::from_be_bytes([high, low])
    }

    fn towards(&self, mac: MacAddr, to: Ipv4Addr) -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
        PacketBuilder::ethernet2(self.mac.0, mac.0).ipv4(self.address.octets(), to.octets(), TIME_TO_LIVE)
    }

    fn echo_request(&self, mac: MacAddr, to: Ipv4Addr, sequence: u16) -> Option<Vec<u8>> {
        let request = self.towards(mac, to).icmpv4_echo_request(self.echo_id(), sequence);
        let payload: [u8; PING_PAYLOAD_BYTES] = std::array::from_fn(|index| index as u8);
        let mut frame = Vec::with_capacity(request.size(payload.len()));
        request.write(&mut frame, &payload).ok()?;
        Some(frame)
    }

    fn arp_request(&self, wanted: Ipv4Addr) -> Vec<u8> {
        self.arp(ArpOperation::REQUEST, MacAddr::BROADCAST, MacAddr::default(), wanted)
    }

    fn arp(&self, operation: ArpOperation, to: MacAddr, target: MacAddr, address: Ipv4Addr) -> Vec<u8> {
        let packet = ArpEthIpv4Packet {
            operation,
            sender_mac: self.mac.0,
            sender_ipv4: self.address.octets(),
            target_mac: target.0,
            target_ipv4: address.octets(),
        };
        [&to.0[..], &self.mac.0, &crate::frame::ether_type::ARP.to_be_bytes(), &packet.to_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const START: Duration = Duration::from_secs(5);

    fn host(number: u8) -> Host {
        Host::new(format!("h{number}"), MacAddr([0, 0, 0, 0, 0, number]), Ipv4Addr::new(10, 0, 0, number))
    }

    fn doing(change: impl FnOnce(&mut HostEffects)) -> HostEffects {
        let mut effects = HostEffects::default();
        change(&mut effects);
        effects
    }

    /// Hands frames to and fro until neither host has anything to say, and gives the replies that `one` got.
    fn converse(one: &mut Host, two: &mut Host, first: Vec<Vec<u8>>, now: Duration) -> Vec<PingReply> {
        let mut replies = Vec::new();
        let mut to_two = first;
        while !to_two.is_empty() {
            let answers = doing(|effects| to_two.iter().for_each(|frame| two.on_frame(frame, now, effects)));
            let next =
                doing(|effects| answers.frames.iter().for_each(|frame| one.on_frame(frame, now, effects)));
            replies.extend(next.replies);
            to_two = next.frames;
        }
        replies
    }

    #[test]
    fn a_ping_finds_the_address_and_comes_back() {
        let (mut a, mut b) = (host(1), host(2));
        let asked = doing(|effects| a.ping(B, 1, START, effects)).frames;
        assert_eq!(&asked[0][..6], [0xff; 6]);
        let later = START + Duration::from_millis(3);
        let replies = converse(&mut a, &mut b, asked, later);
        assert_eq!(replies, [PingReply { from: B, sequence: 1, round_trip: Duration::from_millis(3) }]);
        assert_eq!((a.neighbour(B), b.neighbour(A)), (Some(b.mac()), Some(a.mac())));
        let known = doing(|effects| a.ping(B, 2, later, effects)).frames;
        assert_eq!(&known[0][..6], b.mac().0, "no ARP any more");
        assert_eq!(converse(&mut a, &mut b, known, later).len(), 1);
    }

    #[test]
    fn what_is_for_another_or_damaged_is_left_alone() {
        let (mut a, mut b, mut c) = (host(1), host(2), host(3));
        let asked = doing(|effects| a.ping(B, 1, START, effects)).frames;
        assert!(doing(|effects| c.on_frame(&asked[0], START, effects)).frames.is_empty());
        assert_eq!(c.neighbour(A), None, "it was not asked");
        converse(&mut a, &mut b, asked, START);
        let mut ping = doing(|effects| a.ping(B, 2, START, effects)).frames.remove(0);
        assert!(doing(|effects| c.on_frame(&ping, START, effects)).frames.is_empty());
        ping[50] ^= 1;
        assert!(
            doing(|effects| b.on_frame(&ping, START, effects)).frames.is_empty(),
            "the checksum is wrong"
        );
    }

    #[test]
    fn a_reply_to_nothing_is_no_reply() {
        let (mut a, mut b) = (host(1), host(2));
        let asked = doing(|effects| a.ping(B, 1, START, effects)).frames;
        assert!(a.give_up(B, 1));
        assert!(!a.give_up(B, 1));
        assert!(converse(&mut a, &mut b, asked, START).is_empty());
    }

    #[test]
    fn an_address_is_asked_for_three_times() {
        let mut a = host(1);
        assert_eq!(doing(|effects| a.ping(B, 1, START, effects)).frames.len(), 1);
        assert_eq!(doing(|effects| a.ping(B, 2, START, effects)).frames.len(), 0, "it is being asked for");
        let asked_after = |a: &mut Host, seconds| {
            doing(|effects| a.on_tick(START + Duration::from_secs(seconds), effects)).frames.len()
        };
        assert_eq!([0, 1, 1, 2, 3, 4].map(|seconds| asked_after(&mut a, seconds)), [0, 1, 0, 1, 0, 0]);
    }

    proptest! {
        #[test]
        fn no_frame_harms_a_host(frame in proptest::collection::vec(any::<u8>(), 0..100), for_us in any::<bool>()) {
            let mut frame = frame;
            if for_us && frame.len() > 14 {
                frame[..6].copy_from_slice(&host(1).mac().0);
                (frame[12], frame[13]) = (0x08, frame[13] & 0x06);
            }
            doing(|effects| host(1).on_frame(&frame, START, effects));
        }
    }
}
