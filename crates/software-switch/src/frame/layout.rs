//! Where the headers of a frame begin.
//!
//! In: a frame's bytes. Out: offsets, each within the frame. A header is present if a match can read a field of it,
//! as `flow::frame` does. In a truncated frame that can be less than a whole header.
//! Never reads a field's value beyond what it needs to find the next header.

use super::{ETHERNET_HEADER_BYTES, ether_type, protocol, u16_at, u32_at};

/// The most labels of an MPLS stack that are read.
const MPLS_LABELS_MAX: usize = 16;

/// The headers of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The number of VLAN tags. The outer one is at byte 12, its tag control information at 14.
    pub(crate) vlan_tags: usize,
    /// The offset of the EtherType that names the header after the tags.
    pub(crate) ether_type_at: usize,
    /// That EtherType.
    pub(crate) ether_type: u16,
    /// The number of MPLS labels.
    pub(crate) mpls_labels: usize,
    /// The header after Ethernet and its tags. Under MPLS there is none, because MPLS does not name it.
    pub(crate) network: Option<Network>,
    /// The header after that one. A later fragment has none.
    pub(crate) transport: Option<Transport>,
}

/// The network-layer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// ARP or reverse ARP for IPv4 on Ethernet, with at least the first six bytes.
    Arp { at: usize },
    /// IPv4, with at least the first 20 bytes.
    Ipv4 { at: usize, header_bytes: usize },
    /// IPv6 with its fixed header.
    Ipv6 { at: usize },
}

/// The transport-layer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transport {
    /// The IP protocol number.
    pub(crate) protocol: u8,
    /// The offset of its first byte.
    pub(crate) at: usize,
    /// Where the IP packet ends, or the frame if that is shorter. The header may be incomplete before it.
    pub(crate) end: usize,
    /// Whether an IPv6 routing header names further destinations. A checksum covers the last of them and not the one
    /// in the IPv6 header (RFC 8200, 8.1).
    pub(crate) is_routed: bool,
}

impl Layout {
    /// Finds the headers of a frame. `None` if it is too short for Ethernet.
    pub(crate) fn of(frame: &[u8]) -> Option<Layout> {
        if frame.len() < ETHERNET_HEADER_BYTES {
            return None;
        }
        let mut layout = Layout {
            vlan_tags: 0,
            ether_type_at: 12,
            ether_type: u16_at(frame, 12)?,
            mpls_labels: 0,
            network: None,
            transport: None,
        };
        layout.look_through_tags(frame);
        if ether_type::is_mpls(layout.ether_type) {
            layout.mpls_labels = labels(frame, layout.after_tags());
        }
        layout.network = network(frame, layout.ether_type, layout.after_tags());
        layout.transport = layout.network.and_then(|network| transport(frame, network));
        Some(layout)
    }

    fn look_through_tags(&mut self, frame: &[u8]) {
        while ether_type::is_vlan(self.ether_type) {
            let Some(inner) = u16_at(frame, self.ether_type_at + 4) else { return };
            self.vlan_tags += 1;
            self.ether_type_at += 4;
            self.ether_type = inner;
        }
        // A value below this is the length of an 802.3 frame, whose type may be in a SNAP header.
        const SMALLEST: u16 = 0x0600;
        const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];
        let snap = frame.get(self.after_tags()..).and_then(|rest| rest.first_chunk::<8>());
        if self.ether_type < SMALLEST
            && let Some([organisation @ .., high, low]) = snap
            && *organisation == SNAP
            && u16::from_be_bytes([*high, *low]) >= SMALLEST
        {
            self.ether_type_at += 8;
            self.ether_type = u16::from_be_bytes([*high, *low]);
        }
    }

    /// The offset of the bytes after Ethernet and its tags.
    pub(crate) const fn after_tags(&self) -> usize {
        self.ether_type_at + 2
    }

    /// The offset of the bytes after the MPLS labels.
    pub(crate) const fn after_labels(&self) -> usize {
        self.after_tags() + 4 * self.mpls_labels
    }
}

fn labels(frame: &[u8], at: usize) -> usize {
    let mut count = 0;
    while let Some(entry) = u32_at(frame, at + 4 * count) {
        count += 1;
        let bottom_of_stack = entry & 0x100 != 0;
        if bottom_of_stack || count == MPLS_LABELS_MAX {
            break;
        }
    }
    count
}

/// The network-layer header at `at`, if the EtherType names one.
pub(crate) fn network(frame: &[u8], kind: u16, at: usize) -> Option<Network> {
    const ARP_FOR_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
    let bytes = frame.get(at..)?;
    let first = *bytes.first()?;
    match kind {
        ether_type::ARP | ether_type::REVERSE_ARP if bytes.starts_with(&ARP_FOR_IPV4) => {
            Some(Network::Arp { at })
        }
        ether_type::IPV4 => {
            let header_bytes = usize::from(first & 0x0f) * 4;
            let there = first >> 4 == 4 && header_bytes >= 20 && bytes.len() >= 20;
            there.then_some(Network::Ipv4 { at, header_bytes })
        }
        ether_type::IPV6 if first >> 4 == 6 && bytes.len() >= 40 => Some(Network::Ipv6 { at }),
        _ => None,
    }
}

fn transport(frame: &[u8], network: Network) -> Option<Transport> {
    let found = match network {
        Network::Arp { .. } => return None,
        Network::Ipv4 { at, header_bytes } => {
            let later_fragment = u16_at(frame, at + 6)? & 0x1fff != 0;
            if later_fragment {
                return None;
            }
            let end = frame.len().min(at + usize::from(u16_at(frame, at + 2)?));
            Transport { protocol: *frame.get(at + 9)?, at: at + header_bytes, end, is_routed: false }
        }
        Network::Ipv6 { at } => upper_layer(frame, at)?,
    };
    let is_ipv6 = matches!(network, Network::Ipv6 { .. });
    let is_known = match found.protocol {
        protocol::TCP | protocol::UDP | protocol::SCTP => true,
        protocol::ICMP => !is_ipv6,
        protocol::ICMPV6 => is_ipv6,
        _ => false,
    };
    (is_known && found.at <= found.end).then_some(found)
}

/// The header after IPv6's extension headers (RFC 8200, 4). `None` in a later fragment.
fn upper_layer(frame: &[u8], at: usize) -> Option<Transport> {
    let end = match u16_at(frame, at + 4)? {
        // A jumbogram's.
        0 => frame.len(),
        payload_bytes => frame.len().min(at + 40 + usize::from(payload_bytes)),
    };
    let packet = frame.get(..end)?;
    let mut next = *frame.get(at + 6)?;
    let mut here = at + 40;
    let mut is_routed = false;
    loop {
        let units = packet.get(here + 1).copied().map(usize::from);
        is_routed |= next == 43 && packet.get(here + 3).is_some_and(|segments_left| *segments_left > 0);
        let length = match next {
            0 | 43 | 60 => 8 * (units? + 1),
            // Authentication counts in words of four bytes (RFC 4302, 2.2).
            51 => 4 * (units? + 2),
            44 if u16_at(packet, here + 2)? & 0xfff8 == 0 => 8,
            44 => return None,
            _ => return Some(Transport { protocol: next, at: here, end, is_routed }),
        };
        next = *packet.get(here)?;
        here += length;
        if here > end {
            return None;
        }
    }
}
