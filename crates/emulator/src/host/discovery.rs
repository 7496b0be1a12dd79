//! Address resolution of a host: ARP (RFC 826) for IPv4, neighbour discovery (RFC 4861) for IPv6.
//!
//! In: the requests and answers of others. Out: those of this host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::packet::{self, Envelope, HOP_LIMIT_OF_NEIGHBOURS, Incoming, multicast_mac};
use super::{ECHO_V6, Host, HostEffects};
use ::flow::MacAddr;
use software_switch::frame::{ether_type, protocol, u16_at};

const ARP_REQUEST: u16 = 1;
const ARP_REPLY: u16 = 2;
/// Ethernet and IPv4, with addresses of six and of four bytes.
const ARP_KIND: [u8; 6] = [0, 1, 0x08, 0, 6, 4];
/// ICMPv6 types (RFC 4861, 4.3 and 4.4).
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Options: the sender's Ethernet address, the target's Ethernet address.
const SOURCE_OPTION: u8 = 1;
const TARGET_OPTION: u8 = 2;
/// Flags of an advertisement: solicited, override.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// IPv4 hosts are in 10.0.0.0/8, so the last three bytes of an address are enough.
const NETWORK_V4: u8 = 10;

/// The link-local address, made from the Ethernet address (RFC 4291, appendix A).
pub(super) fn link_local(mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// The global address, with the same number as the IPv4 address.
pub(super) fn global(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets();
    let first = if a == NETWORK_V4 { 0 } else { a };
    Ipv6Addr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, first, b, c, d])
}

/// The solicited-node multicast address: the group of all hosts with such an address (RFC 4291, 2.7.1).
fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

impl Host {
    /// Requests the Ethernet address of an address.
    pub(super) fn ask_for(&mut self, address: IpAddr, effects: &mut HostEffects) {
        match address {
            IpAddr::V4(address) => {
                self.send_arp(ARP_REQUEST, MacAddr::BROADCAST, MacAddr::default(), address, effects)
            }
            IpAddr::V6(address) => {
                let source = self.source_for(address.into());
                let group = solicited_node(address);
                self.send_discovery(
                    SOLICITATION,
                    0,
                    address,
                    source,
                    group.into(),
                    multicast_mac(group),
                    effects,
                );
            }
        }
    }

    /// Announces its place, as a virtual machine does after a migration: an ARP request for its own address, and an
    /// unsolicited advertisement.
    pub fn announce(&mut self, effects: &mut HostEffects) {
        self.send_arp(ARP_REQUEST, MacAddr::BROADCAST, MacAddr::default(), self.address, effects);
        let (own, to) = (self.global, multicast_mac(ALL_NODES));
        self.send_discovery(ADVERTISEMENT, OVERRIDE, own, own.into(), ALL_NODES.into(), to, effects);
    }

    fn send_arp(
        &mut self,
        operation: u16,
        to: MacAddr,
        target: MacAddr,
        address: Ipv4Addr,
        effects: &mut HostEffects,
    ) {
        let mut frame = effects.blank();
        frame.extend_from_slice(&to.0);
        frame.extend_from_slice(&self.mac.0);
        frame.extend_from_slice(&ether_type::ARP.to_be_bytes());
        frame.extend_from_slice(&ARP_KIND);
        frame.extend_from_slice(&operation.to_be_bytes());
        frame.extend_from_slice(&self.mac.0);
        frame.extend_from_slice(&self.address.octets());
        frame.extend_from_slice(&target.0);
        frame.extend_from_slice(&address.octets());
        self.transmit(frame, effects);
    }

    /// RFC 826: a host that asks for us is learned. A host that is already known is updated.
    pub(super) fn on_arp(&mut self, arp: &[u8], now: Duration, effects: &mut HostEffects) -> Option<()> {
        let operation = u16_at(arp, 6).filter(|_| arp.starts_with(&ARP_KIND))?;
        let mac = MacAddr(*arp.get(8..)?.first_chunk()?);
        let address_at = |at: usize| arp.get(at..)?.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets));
        let (sender, target) = (address_at(14)?, address_at(24)?);
        let for_us = target == self.address && sender != self.address;
        if for_us || self.neighbours.mac(sender.into()).is_some() {
            self.learn(sender.into(), mac, now, effects);
        }
        if for_us && operation == ARP_REQUEST {
            self.send_arp(ARP_REPLY, mac, mac, sender, effects);
        }
        Some(())
    }

    /// Sends a solicitation or an advertisement for an address, with its own Ethernet address.
    #[allow(clippy::too_many_arguments, reason = "the fields of the message, each once")]
    fn send_discovery(
        &mut self,
        kind: u8,
        flags: u8,
        target: Ipv6Addr,
        source: IpAddr,
        destination: IpAddr,
        to: MacAddr,
        effects: &mut HostEffects,
    ) {
        let option = if kind == SOLICITATION { SOURCE_OPTION } else { TARGET_OPTION };
        let mac = self.mac;
        let hop_limit = HOP_LIMIT_OF_NEIGHBOURS;
        let envelope = Envelope { mac, source, destination, protocol: protocol::ICMPV6, hop_limit };
        let mut frame = effects.blank();
        packet::write(&mut frame, &envelope, |frame| {
            frame.extend_from_slice(&[kind, 0, 0, 0, flags, 0, 0, 0]);
            frame.extend_from_slice(&target.octets());
            frame.extend_from_slice(&[option, 1]);
            frame.extend_from_slice(&mac.0);
        });
        packet::address(&mut frame, to);
        self.transmit(frame, effects);
    }

    /// Whether packets to an address are for it: its own addresses, their groups, or all nodes.
    pub(super) fn is_for_all_or_us(&self, to: IpAddr) -> bool {
        let IpAddr::V6(to) = to else { return false };
        let groups = [ALL_NODES, solicited_node(self.global), solicited_node(self.link_local)];
        self.owns(to.into()) || groups.contains(&to)
    }

    pub(super) fn on_icmp_v6(
        &mut self,
        packet: &Incoming,
        now: Duration,
        effects: &mut HostEffects,
    ) -> Option<()> {
        let kind = *packet.body.first()?;
        if kind != SOLICITATION && kind != ADVERTISEMENT {
            // It answers only packets to its own address.
            return self.owns(packet.destination).then(|| self.on_echo(packet, ECHO_V6, now, effects))?;
        }
        if packet.hop_limit != HOP_LIMIT_OF_NEIGHBOURS || packet.body.get(1) != Some(&0) {
            return None;
        }
        let target = packet.body.get(8..)?.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets))?;
        if kind == SOLICITATION {
            return self.on_solicitation(packet, target, now, effects);
        }
        let mac = option(packet.body, TARGET_OPTION)?;
        // An address that was not requested is not learned, but a known one is updated.
        if self.neighbours.is_wanted(target.into()) {
            self.learn(target.into(), mac, now, effects);
        }
        Some(())
    }

    fn on_solicitation(
        &mut self,
        packet: &Incoming,
        target: Ipv6Addr,
        now: Duration,
        effects: &mut HostEffects,
    ) -> Option<()> {
        if !self.owns(target.into()) {
            return None;
        }
        let source = IpAddr::V6(target);
        match option(packet.body, SOURCE_OPTION) {
            Some(mac) if !packet.source.is_unspecified() => {
                self.learn(packet.source, mac, now, effects);
                let flags = SOLICITED | OVERRIDE;
                self.send_discovery(ADVERTISEMENT, flags, target, source, packet.source, mac, effects);
            }
            // A host checks whether the address is free.
            _ => {
                let to = multicast_mac(ALL_NODES);
                self.send_discovery(ADVERTISEMENT, OVERRIDE, target, source, ALL_NODES.into(), to, effects);
            }
        }
        Some(())
    }
}

/// The Ethernet address in an option of a solicitation or advertisement.
fn option(body: &[u8], wanted: u8) -> Option<MacAddr> {
    let mut rest = body.get(24..)?;
    while let [kind, length, content @ ..] = rest {
        if *kind == wanted && *length == 1 {
            return content.first_chunk().map(|octets| MacAddr(*octets));
        }
        // A length of zero would loop for ever (RFC 4861, 4.6).
        rest = rest.get(usize::from(*length).max(1) * 8..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(5);

    fn host(number: u8) -> Host {
        Host::new(format!("h{number}"), MacAddr([0, 0, 0, 0, 0, number]), Ipv4Addr::new(10, 0, 0, number))
    }

    /// Exchanges frames until neither host has any, and returns the first host's replies.
    fn converse(one: &mut Host, two: &mut Host, mut effects: HostEffects) -> usize {
        while !effects.frames.is_empty() {
            let mut answers = HostEffects::default();
            effects.frames.drain(..).for_each(|frame| two.on_frame(&frame, NOW, &mut answers));
            answers.frames.drain(..).for_each(|frame| one.on_frame(&frame, NOW, &mut effects));
        }
        effects.replies.len()
    }

    #[test]
    fn addresses_are_numbered_as_those_of_ipv4() {
        let host = Host::new("h", MacAddr([0, 0, 0, 0, 1, 2]), Ipv4Addr::new(10, 0, 1, 2));
        assert_eq!(host.global_v6().to_string(), "fd00::102");
        assert_eq!(host.link_local_v6().to_string(), "fe80::200:ff:fe00:102");
        assert_eq!(global(Ipv4Addr::new(192, 168, 1, 2)).to_string(), "fd00::c0a8:102");
    }

    #[test]
    fn a_ping_over_ipv6_finds_the_neighbour_and_comes_back() {
        for of in [Host::global_v6, Host::link_local_v6] {
            let (mut one, mut two) = (host(1), host(2));
            let mut effects = HostEffects::default();
            one.ping(of(&two), 1, NOW, &mut effects);
            assert_eq!(effects.frames[0][..6], [0x33, 0x33, 0xff, 0, 0, 2]);
            assert_eq!(converse(&mut one, &mut two, effects), 1);
            assert_eq!(
                (one.neighbour(of(&two)), two.neighbour(of(&one))),
                (Some(two.mac()), Some(one.mac()))
            );
        }
    }

    #[test]
    fn who_is_not_meant_does_not_answer() {
        let (mut one, mut three) = (host(1), host(3));
        let mut effects = HostEffects::default();
        one.ping(host(2).global_v6(), 1, NOW, &mut effects);
        let mut answers = HostEffects::default();
        three.on_frame(&effects.frames[0], NOW, &mut answers);
        assert!(answers.frames.is_empty() && three.neighbour(one.global_v6()).is_none());
        let mut crossed = effects.frames.remove(0);
        crossed[21] = 64;
        host(2).on_frame(&crossed, NOW, &mut answers);
        assert!(answers.frames.is_empty(), "it has crossed a router, so it is forged");
    }

    #[test]
    fn an_announcement_brings_up_to_date_who_knew_the_host_already() {
        let (mut one, mut two, mut three) = (host(1), host(2), host(3));
        let mut effects = HostEffects::default();
        one.ping(two.global_v6(), 1, NOW, &mut effects);
        one.ping(two.address(), 2, NOW, &mut effects);
        assert_eq!(converse(&mut one, &mut two, effects), 2);
        let moved_to = MacAddr([2, 2, 2, 2, 2, 2]);
        let mut moved = Host::new("h2", moved_to, two.address());
        let mut effects = HostEffects::default();
        moved.announce(&mut effects);
        assert_eq!(effects.frames.len(), 2);
        for frame in &effects.frames {
            one.on_frame(frame, NOW, &mut HostEffects::default());
            three.on_frame(frame, NOW, &mut HostEffects::default());
        }
        let known = |host: &Host| [host.neighbour(two.address()), host.neighbour(two.global_v6())];
        assert_eq!((known(&one), known(&three)), ([Some(moved_to); 2], [None; 2]));
    }

    proptest! {
        #[test]
        fn no_options_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = option(&body, SOURCE_OPTION);
        }
    }
}
