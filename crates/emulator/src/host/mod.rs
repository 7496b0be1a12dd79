//! A host: it finds its neighbours, answers and sends pings, and sends and receives UDP and TCP flows.
//!
//! ```text
//!   frame, the time, "ping that address", "send this flow" ──> Host ──> frames, "this reply, after so long"
//! ```
//!
//! All hosts of a network are on one IPv4 subnet and one IPv6 subnet, without router or gateway. A host never waits.
//! The code that asked for a ping gives it up; a TCP flow gives up by itself after some time.

mod congestion;
mod discovery;
pub mod flow;
mod flows;
mod neighbours;
mod pace;
mod packet;
mod queries;
pub mod query;
mod query_client;
mod query_server;
mod round_trip;
mod shaping;
mod tcp;
mod tcp_receiver;
mod tcp_sender;
mod udp;

use ::flow::MacAddr;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use flows::{Flows, Outgoing};
use neighbours::{Neighbours, Waits};
use packet::{Envelope, HOP_LIMIT, Incoming};
use queries::Queries;
use shaping::Received;
use software_switch::frame::{ether_type, protocol, u16_at};
use tcp::Segment;

pub(crate) use flows::FlowKey;
pub use pace::LINE_BITS_PER_S;
pub(crate) use queries::{Answers, SeriesPlace};

/// How many pings may wait for an address or a reply. More are not sent, and count as lost.
const PINGS_MAX: usize = 65_536;
/// How many used frames are kept for reuse, and the capacity that one may have: a little over a full frame.
const SPARE_MAX: usize = 4096;
const SPARE_BYTES_MAX: usize = 2048;
/// The payload of a ping, as the program ping sends it.
const PING_PAYLOAD_BYTES: usize = 56;
/// ICMP's and ICMPv6's echo: request, reply (RFC 792, RFC 4443).
const ECHO_V4: [u8; 2] = [8, 0];
const ECHO_V6: [u8; 2] = [128, 129];

/// What the caller must do after an event of a host. The caller owns it and may reuse it.
#[derive(Debug, Default)]
pub struct HostEffects {
    /// Frames to send, in order.
    pub frames: Vec<Vec<u8>>,
    /// Replies to this host's pings.
    pub replies: Vec<PingReply>,
    /// Buffers for new frames, so that a flow needs no new memory.
    spare: Vec<Vec<u8>>,
}

impl HostEffects {
    /// Takes a frame that is no longer needed, in order to reuse its buffer.
    pub fn recycle(&mut self, mut frame: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && frame.capacity() <= SPARE_BYTES_MAX {
            frame.clear();
            self.spare.push(frame);
        }
    }

    /// An empty buffer for a frame.
    fn blank(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }
}

/// A reply to a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingReply {
    /// The host that answered.
    pub from: IpAddr,
    /// The ping's sequence number.
    pub sequence: u16,
    /// The time since the call of [`Host::ping`], including address resolution.
    pub round_trip: Duration,
}

/// What a host has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Frames that it received.
    pub frames_in: u64,
    /// The bytes of these frames.
    pub bytes_in: u64,
    /// Frames that it sent.
    pub frames_out: u64,
    /// The bytes of these frames.
    pub bytes_out: u64,
    /// Received frames for another host, of an unknown kind, or damaged.
    pub frames_ignored: u64,
    /// Packets that were not sent because too many waited for addresses.
    pub packets_dropped: u64,
}

/// A host.
#[derive(Debug)]
pub struct Host {
    name: String,
    mac: MacAddr,
    address: Ipv4Addr,
    link_local: Ipv6Addr,
    global: Ipv6Addr,
    neighbours: Neighbours,
    /// When each ping was requested, by address and sequence number.
    pings: BTreeMap<(IpAddr, u16), Duration>,
    flows: Flows,
    queries: Queries,
    line_bits_per_s: u64,
    counters: HostCounters,
    received: Received,
}

impl Host {
    /// A host that knows no neighbours.
    pub fn new(name: impl Into<String>, mac: MacAddr, address: Ipv4Addr) -> Self {
        Host {
            name: name.into(),
            mac,
            address,
            link_local: discovery::link_local(mac),
            global: discovery::global(address),
            neighbours: Neighbours::default(),
            pings: BTreeMap::new(),
            flows: Flows::default(),
            queries: Queries::default(),
            line_bits_per_s: LINE_BITS_PER_S,
            counters: HostCounters::default(),
            received: Received::default(),
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

    /// Its global IPv6 address: `fd00::5` for 10.0.0.5.
    pub fn global_v6(&self) -> Ipv6Addr {
        self.global
    }

    /// Its link-local IPv6 address, made from its Ethernet address (RFC 4291, appendix A).
    pub fn link_local_v6(&self) -> Ipv6Addr {
        self.link_local
    }

    /// What it has counted.
    pub fn counters(&self) -> HostCounters {
        self.counters
    }

    /// The bytes of frames for its own address, by the address that sent them.
    pub fn received(&self) -> impl Iterator<Item = (MacAddr, u64)> {
        self.received.bytes()
    }

    /// Its addresses of both kinds.
    pub(crate) fn addresses(&self) -> [IpAddr; 3] {
        [self.address.into(), self.global.into(), self.link_local.into()]
    }

    /// All flows to a host with these addresses together send no faster. `None`: as fast as the link.
    pub(crate) fn shape(&mut self, to: &[IpAddr], bits_per_s: Option<u64>) {
        self.flows.shape(to, bits_per_s);
    }

    /// The Ethernet address that it has learned for an address.
    pub fn neighbour(&self, address: impl Into<IpAddr>) -> Option<MacAddr> {
        self.neighbours.mac(address.into())
    }

    /// Whether an address is one of its own.
    fn owns(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => address == self.address,
            IpAddr::V6(address) => address == self.global || address == self.link_local,
        }
    }

    /// Its own address from which it sends to an address.
    fn source_for(&self, to: IpAddr) -> IpAddr {
        match to {
            IpAddr::V4(_) => self.address.into(),
            IpAddr::V6(to) if to.is_unicast_link_local() => self.link_local.into(),
            IpAddr::V6(_) => self.global.into(),
        }
    }

    /// Sends a ping, or first asks for the address.
    pub fn ping(&mut self, to: impl Into<IpAddr>, sequence: u16, now: Duration, effects: &mut HostEffects) {
        let to = to.into();
        if self.pings.len() >= PINGS_MAX {
            self.counters.packets_dropped += 1;
            return;
        }
        self.pings.insert((to, sequence), now);
        let mut echo = [0; 4 + PING_PAYLOAD_BYTES];
        echo[..2].copy_from_slice(&self.echo_id().to_be_bytes());
        echo[2..4].copy_from_slice(&sequence.to_be_bytes());
        for (index, byte) in echo[4..].iter_mut().enumerate() {
            // The low byte of the index.
            *byte = index as u8;
        }
        self.send_echo(0, self.source_for(to), to, &echo, now, effects);
    }

    /// Sends an echo request (0) or reply (1), with the bytes after the checksum.
    fn send_echo(
        &mut self,
        which: usize,
        source: IpAddr,
        to: IpAddr,
        rest: &[u8],
        now: Duration,
        effects: &mut HostEffects,
    ) {
        let (protocol, kind) =
            if to.is_ipv4() { (protocol::ICMP, ECHO_V4[which]) } else { (protocol::ICMPV6, ECHO_V6[which]) };
        let envelope = Envelope { mac: self.mac, source, destination: to, protocol, hop_limit: HOP_LIMIT };
        let mut frame = effects.blank();
        packet::write(&mut frame, &envelope, |frame| {
            frame.extend_from_slice(&[kind, 0, 0, 0]);
            frame.extend_from_slice(rest);
        });
        self.send_to(to, frame, now, effects);
    }

    /// No longer waits for this ping. Returns whether it had no reply yet.
    pub fn give_up(&mut self, to: impl Into<IpAddr>, sequence: u16) -> bool {
        self.pings.remove(&(to.into(), sequence)).is_some()
    }

    /// Sends a frame without a destination address, now or when the address is known.
    fn send_to(&mut self, to: IpAddr, mut frame: Vec<u8>, now: Duration, effects: &mut HostEffects) {
        match self.neighbours.mac(to) {
            Some(mac) => {
                packet::address(&mut frame, mac);
                self.transmit(frame, effects);
            }
            None => match self.neighbours.wait(to, frame, now) {
                Waits::First => self.ask_for(to, effects),
                Waits::WithOthers => {}
                Waits::NoRoom => self.counters.packets_dropped += 1,
            },
        }
    }

    fn transmit(&mut self, frame: Vec<u8>, effects: &mut HostEffects) {
        self.counters.frames_out += 1;
        self.counters.bytes_out += frame.len() as u64;
        effects.frames.push(frame);
    }

    fn learn(&mut self, address: IpAddr, mac: MacAddr, now: Duration, effects: &mut HostEffects) {
        for frame in self.neighbours.learn(address, mac, now) {
            self.transmit(frame, effects);
        }
    }

    /// The host is switched off: it forgets its neighbours and pings, and its flows end.
    pub fn fail(&mut self) {
        self.neighbours.forget();
        self.pings.clear();
        self.flows.fail();
        self.queries.fail();
    }

    /// When it must act although no frame arrives.
    pub fn next_due(&self) -> Option<Duration> {
        let queries = self.queries.next_due();
        self.neighbours.next_due().into_iter().chain(self.flows.next_due()).chain(queries).min()
    }

    /// Time has passed: repeats address requests, gives them up after some time, and sends what flows have to send.
    pub fn on_tick(&mut self, now: Duration, effects: &mut HostEffects) {
        if self.neighbours.next_due().is_some_and(|due| due <= now) {
            for address in self.neighbours.on_tick(now) {
                self.ask_for(address, effects);
            }
        }
        self.flows.on_tick(now);
        self.queries.on_tick(now);
        self.send_outgoing(now, effects);
    }

    /// Processes a frame. Ignores it if it is not for this host or damaged.
    pub fn on_frame(&mut self, frame: &[u8], now: Duration, effects: &mut HostEffects) {
        self.counters.frames_in += 1;
        self.counters.bytes_in += frame.len() as u64;
        if self.take(frame, now, effects).is_none() {
            self.counters.frames_ignored += 1;
        }
    }

    fn take(&mut self, frame: &[u8], now: Duration, effects: &mut HostEffects) -> Option<()> {
        let to = frame.first_chunk().map(|octets| MacAddr(*octets))?;
        if to != self.mac && !to.is_multicast() {
            return None;
        }
        if to == self.mac {
            self.received.on_frame(frame);
        }
        if u16_at(frame, 12)? == ether_type::ARP {
            return self.on_arp(frame.get(14..)?, now, effects);
        }
        let packet = packet::read(frame)?;
        match packet.protocol {
            protocol::ICMPV6 if self.is_for_all_or_us(packet.destination) => {
                self.on_icmp_v6(&packet, now, effects)
            }
            _ if !self.owns(packet.destination) => None,
            protocol::ICMP => self.on_echo(&packet, ECHO_V4, now, effects),
            protocol::TCP => self.on_tcp(&packet, now, effects),
            protocol::UDP => self.on_udp(&packet, now),
            _ => None,
        }
    }

    fn on_echo(
        &mut self,
        packet: &Incoming,
        kinds: [u8; 2],
        now: Duration,
        effects: &mut HostEffects,
    ) -> Option<()> {
        let (kind, rest) = (*packet.body.first()?, packet.body.get(4..)?);
        let (id, sequence) = (u16_at(rest, 0)?, u16_at(rest, 2)?);
        if kind == kinds[0] {
            self.send_echo(1, packet.destination, packet.source, rest, now, effects);
        } else if kind == kinds[1] && id == self.echo_id() {
            let asked_at = self.pings.remove(&(packet.source, sequence))?;
            let round_trip = now.saturating_sub(asked_at);
            effects.replies.push(PingReply { from: packet.source, sequence, round_trip });
        }
        Some(())
    }

    /// The identifier in this host's pings, by which it recognises their replies.
    fn echo_id(&self) -> u16 {
        let [_, _, high, low] = self.address.octets();
        u16::from_be_bytes([high, low])
    }

    fn on_tcp(&mut self, packet: &Incoming, now: Duration, effects: &mut HostEffects) -> Option<()> {
        let (remote_port, local_port, segment) = Segment::read(packet.body)?;
        let key = FlowKey {
            kind: flow::FlowKind::Tcp,
            local: packet.destination,
            remote: packet.source,
            local_port,
            remote_port,
        };
        let is_known =
            self.flows.on_segment(&key, &segment, now) || self.queries.on_segment(&key, &segment, now);
        if !is_known && !segment.has(tcp::RST) {
            self.send_flow_packet(key, Outgoing::Segment(segment.reset()), now, effects);
        }
        self.send_outgoing(now, effects);
        Some(())
    }

    fn on_udp(&mut self, packet: &Incoming, now: Duration) -> Option<()> {
        let key = FlowKey {
            kind: flow::FlowKind::Udp,
            local: packet.destination,
            remote: packet.source,
            local_port: u16_at(packet.body, 2)?,
            remote_port: u16_at(packet.body, 0)?,
        };
        self.flows.on_datagram(&key, packet.body.get(udp::HEADER_BYTES..)?, now);
        Some(())
    }

    fn send_outgoing(&mut self, now: Duration, effects: &mut HostEffects) {
        let outgoing = self.flows.take_outgoing();
        for (key, what) in &outgoing {
            self.send_flow_packet(*key, *what, now, effects);
        }
        self.flows.give_back(outgoing);
        let outgoing = self.queries.take_outgoing();
        for (key, segment) in &outgoing {
            self.send_flow_packet(*key, Outgoing::Segment(*segment), now, effects);
        }
        self.queries.give_back(outgoing);
    }

    fn send_flow_packet(&mut self, key: FlowKey, what: Outgoing, now: Duration, effects: &mut HostEffects) {
        let protocol = match key.kind {
            flow::FlowKind::Tcp => protocol::TCP,
            flow::FlowKind::Udp => protocol::UDP,
        };
        let (source, destination) = (key.local, key.remote);
        let envelope = Envelope { mac: self.mac, source, destination, protocol, hop_limit: HOP_LIMIT };
        let mut frame = effects.blank();
        packet::write(&mut frame, &envelope, |frame| match what {
            Outgoing::Segment(segment) => {
                segment.write(key.local_port, key.remote_port, tcp::LARGEST_SEGMENT_BYTES, frame);
            }
            Outgoing::Datagram { number, payload_bytes } => {
                udp::write([key.local_port, key.remote_port], number, now, payload_bytes, frame);
            }
        });
        self.send_to(destination, frame, now, effects);
    }

    /// Sets the rate of its link. Its flows send no faster.
    pub(crate) fn set_line_rate(&mut self, bits_per_s: Option<u64>) {
        self.line_bits_per_s = bits_per_s.unwrap_or(LINE_BITS_PER_S);
        self.flows.set_line_rate(self.line_bits_per_s);
        self.queries.set_line_rate(self.line_bits_per_s);
    }

    /// Begins a series of queries.
    pub(crate) fn begin_queries(
        &mut self,
        spec: &query::QuerySpec,
        place: SeriesPlace,
        now: Duration,
        effects: &mut HostEffects,
    ) {
        self.queries.begin(spec, place, now);
        self.send_outgoing(now, effects);
    }

    /// From now on, answers queries at a port.
    ///
    /// # Errors
    ///
    /// It answers there already, with other sizes.
    pub(crate) fn answer_queries(
        &mut self,
        port: u16,
        answers: Answers,
        seed: u64,
    ) -> Result<(), query::QueriesRefused> {
        self.queries.answer_at(port, answers, self.line_bits_per_s, seed)
    }

    /// The result of a series of queries so far.
    pub(crate) fn report_queries(&self, id: u64, now: Duration) -> Option<query::QueriesReport> {
        self.queries.report(id, now)
    }

    /// Starts to send a flow.
    pub(crate) fn send_flow(
        &mut self,
        key: FlowKey,
        spec: &flow::FlowSpec,
        isn: u32,
        now: Duration,
        effects: &mut HostEffects,
    ) {
        let plan = tcp_sender::Plan {
            rate: spec.rate,
            payload_bytes: spec.payload_bytes,
            limit_bytes: spec.limit_bytes,
            ends_at: spec.duration.map(|duration| now + duration),
            line_bits_per_s: self.line_bits_per_s,
            isn,
        };
        self.flows.send(key, plan, now);
        self.send_outgoing(now, effects);
    }

    /// Starts to expect a flow.
    pub(crate) fn expect_flow(&mut self, key: FlowKey, isn: u32) {
        self.flows.expect(key, isn);
    }

    /// Stops a flow: it sends no new data.
    pub(crate) fn stop_flow(&mut self, key: &FlowKey, now: Duration, effects: &mut HostEffects) {
        self.flows.stop(key, now);
        self.send_outgoing(now, effects);
    }

    /// Forgets a flow.
    pub(crate) fn forget_flow(&mut self, key: &FlowKey) {
        self.flows.forget(key);
    }

    /// Whether it has a flow with this key.
    pub(crate) fn has_flow(&self, key: &FlowKey) -> bool {
        self.flows.get(key).is_some()
    }

    /// Adds this end's data to a flow's report.
    pub(crate) fn report_flow(&self, key: &FlowKey, report: &mut flow::FlowReport) {
        if let Some(end) = self.flows.get(key) {
            end.report(report);
        }
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

    /// Exchanges frames until neither host has any, and returns the replies to `one`.
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
        assert_eq!(
            replies,
            [PingReply { from: B.into(), sequence: 1, round_trip: Duration::from_millis(3) }]
        );
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
