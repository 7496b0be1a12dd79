//! The frames in the generator's packet-ins: source, destination and ingress port.
//!
//! ```text
//!   Hosts::Ring            h1 -> h2 -> h3 … -> h1: every host sends and is sent to; neighbours are behind different ports
//!   Hosts::OneDestination  h1 -> d, h2 -> d …: cbench's
//! ```
//!
//! A learning switch that has learned all hosts thus answers each packet-in with a flow mod. It never holds a packet:
//! a host is a number.

/// The most hosts of a switch: the host's number is the lower half of its Ethernet address.
pub const HOSTS_MAX: u32 = 1 << 24;

/// The hosts of a load switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// This many hosts (at least two), each of which sends to the next one. No two switches share an address.
    Ring(u32),
    /// As in cbench: this many sources, and one destination at another port. The last octet of each address is the
    /// switch's number.
    OneDestination(u32),
}

/// The traffic of one switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrafficPlan {
    hosts: Hosts,
    /// The switch's number, from 0.
    switch: u16,
}

/// The parts that differ between packet-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketFields {
    pub(crate) xid: u32,
    pub(crate) buffer_id: u32,
    pub(crate) in_port: u16,
    pub(crate) destination: [u8; 6],
    pub(crate) source: [u8; 6],
    /// The cookie of the rule that sends the packet up. OpenFlow 1.0 has none.
    pub(crate) cookie: u64,
}

/// The announcement of a host: a gratuitous ARP reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub(crate) in_port: u16,
    pub(crate) host: [u8; 6],
    pub(crate) ip: [u8; 4],
    /// Whether the switch reports that it has buffered the packet. Otherwise the controller must return the whole
    /// packet.
    pub(crate) buffered: bool,
}

/// How many ports a load switch reports.
pub(crate) const PORTS: u16 = 4;

impl Hosts {
    /// How many addresses are sources.
    pub const fn sources(self) -> u32 {
        match self {
            Hosts::Ring(count) | Hosts::OneDestination(count) => count,
        }
    }
}

impl TrafficPlan {
    pub(crate) const fn new(hosts: Hosts, switch: u16) -> Self {
        TrafficPlan { hosts, switch }
    }

    /// How many announcements the controller needs to learn all destinations.
    pub(crate) const fn announcements(&self) -> u32 {
        match self.hosts {
            Hosts::Ring(count) => count,
            Hosts::OneDestination(_) => 1,
        }
    }

    /// The announcement of a destination.
    pub(crate) fn announcement(&self, number: u32) -> Announcement {
        match self.hosts {
            Hosts::Ring(_) => {
                let [_, a, b, c] = number.to_be_bytes();
                Announcement {
                    in_port: self.port(number),
                    host: self.address(number),
                    ip: [10, a, b, c],
                    buffered: true,
                }
            }
            Hosts::OneDestination(_) => Announcement {
                in_port: 2,
                host: self.destination(),
                ip: [192, 168, self.octet(), 40],
                buffered: false,
            },
        }
    }

    /// The packet from `host` to its destination.
    #[inline]
    pub(crate) fn packet(&self, host: u32, xid: u32, buffer_id: u32) -> PacketFields {
        match self.hosts {
            Hosts::Ring(count) => {
                let next = if host + 1 == count { 0 } else { host + 1 };
                let (source, destination) = (self.address(host), self.address(next));
                PacketFields { xid, buffer_id, in_port: self.port(host), source, destination, cookie: 0 }
            }
            Hosts::OneDestination(_) => {
                let [a, b, c, d] = host.to_le_bytes();
                let (source, destination) = ([0, a, b, c, d, self.octet()], self.destination());
                PacketFields { xid, buffer_id, in_port: 1, source, destination, cookie: 0 }
            }
        }
    }

    /// The port of a host of the ring. It is never the port of the next host, because then the packet would not need
    /// the switch.
    const fn port(&self, host: u32) -> u16 {
        let last = host + 1 == self.hosts.sources();
        // The neighbours of the last host are the first one and the one before it. They may be at any of the other
        // three ports.
        if last { PORTS } else { 1 + (host % 3) as u16 }
    }

    /// A locally administered address with the switch's number and the host's number.
    const fn address(&self, host: u32) -> [u8; 6] {
        let [high, low] = self.switch.to_be_bytes();
        let [_, a, b, c] = host.to_be_bytes();
        [0x02, high, low, a, b, c]
    }

    const fn destination(&self) -> [u8; 6] {
        [0x80, 0, 0, 0, 0, self.octet()]
    }

    /// cbench's number of the switch: counted from 1, as far as an octet allows.
    const fn octet(&self) -> u8 {
        self.switch.wrapping_add(1).to_be_bytes()[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn whoever_is_sent_to_was_announced_behind_another_port() {
        let rings = [2, 3, 4, 5, 6, 7, 100, 1000].map(Hosts::Ring);
        for hosts in rings.into_iter().chain([Hosts::OneDestination(1), Hosts::OneDestination(300)]) {
            let plan = TrafficPlan::new(hosts, 3);
            let known: HashMap<[u8; 6], u16> = (0..plan.announcements())
                .map(|number| plan.announcement(number))
                .map(|announcement| (announcement.host, announcement.in_port))
                .collect();
            let mut sources = HashSet::new();
            for host in 0..hosts.sources() {
                let packet = plan.packet(host, 0, 0);
                assert_ne!(known[&packet.destination], packet.in_port, "{hosts:?}: {host}");
                assert!((1..=PORTS).contains(&packet.in_port));
                assert_eq!(packet.source[0] & 1, 0, "a sender is no group");
                if let Some(port) = known.get(&packet.source) {
                    assert_eq!(*port, packet.in_port, "{hosts:?}: {host} has not moved");
                }
                sources.insert(packet.source);
            }
            assert_eq!(sources.len(), hosts.sources() as usize, "{hosts:?}");
        }
    }

    #[test]
    fn no_two_switches_of_rings_have_an_address_in_common() {
        let sources = |switch: u16| -> HashSet<[u8; 6]> {
            let plan = TrafficPlan::new(Hosts::Ring(300), switch);
            (0..300).map(|host| plan.packet(host, 0, 0).source).collect()
        };
        assert!(sources(1).is_disjoint(&sources(256)));
        assert!(sources(0).is_disjoint(&sources(1)));
    }
}
