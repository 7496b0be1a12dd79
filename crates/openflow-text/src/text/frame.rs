//! A packet's headers on one line, as `ovs-ofctl` shows the packet of a packet-in.
//!
//! Reads the present bytes and takes missing ones as zero. The line of a damaged packet lacks fields but is never an
//! error. Network service headers are not parsed.

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use flow::MacAddr;

use super::bit_names;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_ARP: u16 = 0x0806;
const TYPE_RARP: u16 = 0x8035;
const TYPE_VLAN: u16 = 0x8100;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_MPLS: u16 = 0x8847;
const TYPE_MPLS_MULTICAST: u16 = 0x8848;
const TYPE_VLAN_OUTER: u16 = 0x88a8;
/// A smaller value is a length, not a type (IEEE 802.3).
const TYPE_MIN: u16 = 0x600;
/// Open vSwitch's type for a frame without one.
const TYPE_NONE: u16 = 0x05ff;

/// The number of printed tags. A third is taken as the type of the payload.
const MAX_VLANS: usize = 2;
/// The number of printed MPLS headers.
const MAX_LABELS: usize = 3;

const ICMP: u8 = 1;
const IGMP: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;

/// The rest of the packet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }
}

/// The line, with its end.
pub(super) fn headers(out: &mut String, frame: &[u8]) -> fmt::Result {
    let mut rest = Rest(frame);
    let ethernet = Ethernet::read(&mut rest);
    match ethernet.kind {
        TYPE_IPV4 | TYPE_IPV6 => {
            let ip = Ip::read(&mut rest, ethernet.kind == TYPE_IPV6);
            ip.print(out, &ethernet)?;
            ip.print_checksum(out, rest.0)?;
        }
        TYPE_ARP | TYPE_RARP => Arp::read(&mut rest).unwrap_or_default().print(out, &ethernet)?,
        TYPE_MPLS | TYPE_MPLS_MULTICAST => labels(out, &ethernet, &mut rest)?,
        kind => {
            ethernet.print(out, "")?;
            write!(out, "dl_type=0x{kind:04x}")?;
        }
    }
    out.push('\n');
    Ok(())
}

#[derive(Default)]
struct Ethernet {
    source: [u8; 6],
    destination: [u8; 6],
    /// Each tag has the bit for presence set.
    tags: Vec<u16>,
    kind: u16,
}

impl Ethernet {
    /// All zeros if this header is incomplete.
    fn read(rest: &mut Rest<'_>) -> Self {
        const HEADER_LEN: usize = 14;
        if rest.0.len() < HEADER_LEN {
            return Self::default();
        }
        let destination = rest.take().unwrap_or_default();
        let source = rest.take().unwrap_or_default();
        let mut tags = Vec::new();
        while let [high, low, tag_high, tag_low, _, _, ..] = *rest.0 {
            let is_tag = matches!(u16::from_be_bytes([high, low]), TYPE_VLAN | TYPE_VLAN_OUTER);
            if !is_tag || tags.len() == MAX_VLANS {
                break;
            }
            tags.push(u16::from_be_bytes([tag_high, tag_low]) | 0x1000);
            rest.0 = &rest.0[4..];
        }
        Self { source, destination, tags, kind: kind(rest) }
    }

    /// The line up to the Ethernet addresses, `label` (the name of the type) first.
    fn print(&self, out: &mut String, label: &str) -> fmt::Result {
        out.push_str(label);
        for index in 0..MAX_VLANS {
            let number = if index == 0 { String::new() } else { index.to_string() };
            match self.tags.get(index) {
                Some(tag) => {
                    let (id, priority) = (tag & 0xfff, tag >> 13);
                    write!(out, "dl_vlan{number}={id},dl_vlan_pcp{number}={priority},")?;
                }
                // Prints the absence of a tag, or of a further tag, once.
                None => {
                    write!(out, "vlan_tci{number}=0x0000,")?;
                    break;
                }
            }
        }
        write!(out, "dl_src={},dl_dst={},", MacAddr(self.source), MacAddr(self.destination))
    }
}

/// The type of the payload: from the header, or after a length from an LLC/SNAP header.
fn kind(rest: &mut Rest<'_>) -> u16 {
    let kind = rest.u16().unwrap_or(0);
    if kind >= TYPE_MIN {
        return kind;
    }
    match *rest.0 {
        [0xaa, 0xaa, 3, 0, 0, 0, high, low, ..] => {
            rest.0 = &rest.0[8..];
            let within = u16::from_be_bytes([high, low]);
            if within >= TYPE_MIN { within } else { TYPE_NONE }
        }
        _ => TYPE_NONE,
    }
}

#[derive(Default)]
struct Arp {
    operation: u16,
    sender: [u8; 6],
    sender_ip: [u8; 4],
    target: [u8; 6],
    target_ip: [u8; 4],
}

impl Arp {
    fn read(rest: &mut Rest<'_>) -> Option<Self> {
        let ethernet_and_ipv4 = [0, 1, 8, 0, 6, 4];
        if rest.take()? != ethernet_and_ipv4 {
            return None;
        }
        let operation = rest.u16()?;
        Some(Self {
            // Open vSwitch uses eight bits for it.
            operation: if operation > 0xff { 0 } else { operation },
            sender: rest.take()?,
            sender_ip: rest.take()?,
            target: rest.take()?,
            target_ip: rest.take()?,
        })
    }

    fn print(&self, out: &mut String, ethernet: &Ethernet) -> fmt::Result {
        ethernet.print(out, if ethernet.kind == TYPE_ARP { "arp," } else { "rarp," })?;
        write!(
            out,
            "arp_spa={},arp_tpa={},",
            Ipv4Addr::from(self.sender_ip),
            Ipv4Addr::from(self.target_ip)
        )?;
        write!(
            out,
            "arp_op={},arp_sha={},arp_tha={}",
            self.operation,
            MacAddr(self.sender),
            MacAddr(self.target)
        )
    }
}

fn labels(out: &mut String, ethernet: &Ethernet, rest: &mut Rest<'_>) -> fmt::Result {
    ethernet.print(out, if ethernet.kind == TYPE_MPLS { "mpls," } else { "mplsm," })?;
    for index in 0..MAX_LABELS {
        let entry = rest.take().map_or(0, u32::from_be_bytes);
        let is_last = entry >> 8 & 1;
        if index == 0 {
            write!(out, "mpls_label={},mpls_tc={},", entry >> 12, entry >> 9 & 7)?;
            write!(out, "mpls_ttl={},mpls_bos={is_last}", entry & 0xff)?;
        } else {
            write!(out, ",mpls_lse{index}={entry}")?;
        }
        if is_last == 1 {
            break;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Fragment {
    #[default]
    Whole,
    First,
    Later,
}

#[derive(Default)]
struct Ip {
    is_v6: bool,
    source: [u8; 16],
    destination: [u8; 16],
    label: u32,
    protocol: u8,
    tos: u8,
    ttl: u8,
    fragment: Fragment,
    transport: Transport,
}

/// The fields of the header above IP. For ICMP, `source` and `destination` are type and code.
#[derive(Default)]
struct Transport {
    source: u16,
    destination: u16,
    tcp_flags: u32,
    discovery: Discovery,
}

/// IPv6 neighbour discovery.
#[derive(Default)]
struct Discovery {
    target: [u8; 16],
    source_address: [u8; 6],
    target_address: [u8; 6],
}

impl Ip {
    /// Leaves in `rest` the payload of IP, or nothing if the header is damaged.
    fn read(rest: &mut Rest<'_>, is_v6: bool) -> Self {
        let mut ip = Self { is_v6, ..Self::default() };
        let whole = if is_v6 { ip.read_v6(rest) } else { ip.read_v4(rest) };
        match whole {
            Some(()) if ip.fragment != Fragment::Later => {
                ip.transport = Transport::read(ip.protocol, Rest(rest.0)).unwrap_or_default();
            }
            Some(()) => {}
            None => rest.0 = &[],
        }
        ip
    }

    fn read_v4(&mut self, rest: &mut Rest<'_>) -> Option<()> {
        const HEADER_LEN: usize = 20;
        let header: [u8; HEADER_LEN] = *rest.0.first_chunk()?;
        let header_len = usize::from(header[0] & 0xf) * 4;
        let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header_len < HEADER_LEN || header_len > total_len {
            return None;
        }
        // Bytes after the packet are padding of the frame.
        rest.0 = rest.0.get(..total_len)?.get(header_len..)?;
        self.tos = header[1];
        self.ttl = header[8];
        self.protocol = header[9];
        self.source[..4].copy_from_slice(&header[12..16]);
        self.destination[..4].copy_from_slice(&header[16..20]);
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        self.fragment = match (fragment & 0x1fff, fragment & 0x2000) {
            (0, 0) => Fragment::Whole,
            (0, _) => Fragment::First,
            _ => Fragment::Later,
        };
        Some(())
    }

    fn read_v6(&mut self, rest: &mut Rest<'_>) -> Option<()> {
        let header: [u8; 8] = *rest.0.first_chunk()?;
        let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        rest.0.get(..40 + payload_len)?;
        rest.skip(8)?;
        self.source = rest.take()?;
        self.destination = rest.take()?;
        rest.0 = &rest.0[..payload_len];
        let mut next = header[6];
        let mut fragment = Fragment::Whole;
        skip_extensions(rest, &mut next, &mut fragment)?;
        self.label = u32::from_be_bytes([0, header[1] & 0xf, header[2], header[3]]);
        self.tos = header[0] << 4 | header[1] >> 4;
        self.ttl = header[7];
        self.protocol = next;
        self.fragment = fragment;
        Some(())
    }

    fn print(&self, out: &mut String, ethernet: &Ethernet) -> fmt::Result {
        let name = self.name();
        ethernet.print(out, name.unwrap_or(if self.is_v6 { "ipv6," } else { "ip," }))?;
        if self.is_v6 {
            let (source, destination) = (Ipv6Addr::from(self.source), Ipv6Addr::from(self.destination));
            write!(out, "ipv6_src={source},ipv6_dst={destination},ipv6_label=0x{:05x},", self.label)?;
        } else {
            write!(out, "nw_src={},nw_dst={},", v4(self.source), v4(self.destination))?;
        }
        if name.is_none() {
            write!(out, "nw_proto={},", self.protocol)?;
        }
        write!(out, "nw_tos={},nw_ecn={},nw_ttl={},", self.tos & 0xfc, self.tos & 3, self.ttl)?;
        out.push_str(match self.fragment {
            Fragment::Whole => "nw_frag=no",
            Fragment::First => "nw_frag=first",
            Fragment::Later => "nw_frag=later",
        });
        if self.fragment == Fragment::Later { Ok(()) } else { self.print_transport(out) }
    }

    /// The protocol's keyword at the start of the line, if it has one.
    fn name(&self) -> Option<&'static str> {
        Some(match (self.is_v6, self.protocol) {
            (false, ICMP) => "icmp,",
            (false, TCP) => "tcp,",
            (false, UDP) => "udp,",
            (false, SCTP) => "sctp,",
            (true, ICMPV6) => "icmp6,",
            (true, TCP) => "tcp6,",
            (true, UDP) => "udp6,",
            (true, SCTP) => "sctp6,",
            _ => return None,
        })
    }

    fn print_transport(&self, out: &mut String) -> fmt::Result {
        let Transport { source, destination, tcp_flags, discovery } = &self.transport;
        match (self.is_v6, self.protocol) {
            (false, ICMP) => write!(out, ",icmp_type={source},icmp_code={destination}"),
            (true, ICMPV6) => {
                write!(out, ",icmp_type={source},icmp_code={destination}")?;
                if matches!((source, destination), (135 | 136, 0)) { discovery.print(out) } else { Ok(()) }
            }
            (_, TCP) => {
                write!(out, ",tp_src={source},tp_dst={destination},tcp_flags=")?;
                print_tcp_flags(out, *tcp_flags)
            }
            (_, ICMP | IGMP | UDP | ICMPV6 | SCTP) => write!(out, ",tp_src={source},tp_dst={destination}"),
            _ => Ok(()),
        }
    }

    fn print_checksum(&self, out: &mut String, above: &[u8]) -> fmt::Result {
        let (name, header_len, at) = match self.protocol {
            TCP => ("tcp", 20, 16),
            UDP => ("udp", 8, 6),
            ICMP => ("icmp", 8, 2),
            ICMPV6 => ("icmp6", 4, 2),
            SCTP if above.len() >= 12 => {
                let checksum = u32::from_be_bytes([above[8], above[9], above[10], above[11]]);
                return write!(out, " sctp_csum:{checksum:x}");
            }
            _ => return Ok(()),
        };
        if above.len() < header_len {
            return Ok(());
        }
        write!(out, " {name}_csum:{:x}", u16::from_be_bytes([above[at], above[at + 1]]))
    }
}

fn v4(address: [u8; 16]) -> Ipv4Addr {
    let [a, b, c, d, ..] = address;
    Ipv4Addr::new(a, b, c, d)
}

/// Skips IPv6's extension headers. `None` if one of them is incomplete.
fn skip_extensions(rest: &mut Rest<'_>, next: &mut u8, fragment: &mut Fragment) -> Option<()> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;
    loop {
        let this = *next;
        if !matches!(this, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION) {
            return Some(());
        }
        let [following, length, high, low, ..] = *rest.0.first_chunk::<8>()?;
        *next = following;
        match this {
            AUTHENTICATION => rest.skip((usize::from(length) + 2) * 4)?,
            FRAGMENT => rest.skip(8)?,
            _ => rest.skip((usize::from(length) + 1) * 8)?,
        }
        let place = u16::from_be_bytes([high, low]);
        if this == FRAGMENT && place != 0 {
            *fragment = Fragment::First;
            if place & 0xfff8 != 0 {
                *fragment = Fragment::Later;
                *next = FRAGMENT;
                return Some(());
            }
        }
    }
}

impl Transport {
    fn read(protocol: u8, mut rest: Rest<'_>) -> Option<Self> {
        let whole = rest.0;
        match protocol {
            TCP => {
                let header: [u8; 20] = rest.take()?;
                let header_len = usize::from(header[12] >> 4) * 4;
                if header_len < 20 || header_len > whole.len() {
                    return None;
                }
                let tcp_flags = u32::from(header[12] & 0xf) << 8 | u32::from(header[13]);
                Some(Self { tcp_flags, ..Self::of_ports(&header) })
            }
            UDP => rest.take::<8>().map(|header| Self::of_ports(&header)),
            SCTP => rest.take::<12>().map(|header| Self::of_ports(&header)),
            ICMP | IGMP => rest.take::<8>().map(|header| Self::of_type_and_code(&header)),
            ICMPV6 => {
                let header: [u8; 8] = rest.take()?;
                let discovery = match header {
                    [135 | 136, 0, ..] => Discovery::read(&mut rest).unwrap_or_default(),
                    _ => Discovery::default(),
                };
                Some(Self { discovery, ..Self::of_type_and_code(&header) })
            }
            _ => None,
        }
    }

    fn of_ports(header: &[u8]) -> Self {
        let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        Self { source: port(0), destination: port(2), ..Self::default() }
    }

    fn of_type_and_code(header: &[u8]) -> Self {
        Self { source: header[0].into(), destination: header[1].into(), ..Self::default() }
    }
}

impl Discovery {
    /// `None` if there is no target, or an address appears twice.
    fn read(rest: &mut Rest<'_>) -> Option<Self> {
        const SOURCE_ADDRESS: u8 = 1;
        const TARGET_ADDRESS: u8 = 2;
        let mut read = Self { target: rest.take()?, ..Self::default() };
        while let [kind, eighths, a, b, c, d, e, f, ..] = *rest.0 {
            let length = usize::from(eighths) * 8;
            let address = match (kind, length) {
                (SOURCE_ADDRESS, 8) => Some(&mut read.source_address),
                (TARGET_ADDRESS, 8) => Some(&mut read.target_address),
                _ => None,
            };
            if let Some(address) = address {
                if *address != [0; 6] {
                    return None;
                }
                *address = [a, b, c, d, e, f];
            }
            if length == 0 || rest.skip(length).is_none() {
                break;
            }
        }
        Some(read)
    }

    fn print(&self, out: &mut String) -> fmt::Result {
        write!(out, ",nd_target={}", Ipv6Addr::from(self.target))?;
        write!(out, ",nd_sll={},nd_tll={}", MacAddr(self.source_address), MacAddr(self.target_address))
    }
}

fn print_tcp_flags(out: &mut String, flags: u32) -> fmt::Result {
    const NAMES: [(u32, &str); 12] = [
        (1, "fin"),
        (2, "syn"),
        (4, "rst"),
        (8, "psh"),
        (0x10, "ack"),
        (0x20, "urg"),
        (0x40, "ece"),
        (0x80, "cwr"),
        (0x100, "ns"),
        (0x200, "[200]"),
        (0x400, "[400]"),
        (0x800, "[800]"),
    ];
    let mut names = String::new();
    bit_names(&mut names, flags, &NAMES)?;
    out.push_str(&names.replace(' ', "|"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::hex;

    const ETHERNET: &str = "020000000002020000000001";
    const ADDRESSES: &str = "dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02";

    /// `rest` follows the Ethernet addresses. `~` in the expected line means these addresses.
    fn check(rest: &str, expected: &str) {
        let frame = hex::from_text(&format!("{ETHERNET}{}", rest.replace(' ', ""))).unwrap();
        let mut line = String::new();
        headers(&mut line, &frame).unwrap();
        assert_eq!(line, format!("{}\n", expected.replace('~', ADDRESSES)));
    }

    #[test]
    fn what_is_missing_is_zero() {
        let nothing = "vlan_tci=0x0000,dl_src=00:00:00:00:00:00,dl_dst=00:00:00:00:00:00,dl_type=0x0000\n";
        let mut line = String::new();
        headers(&mut line, &[0; 13]).unwrap();
        assert_eq!(line, nothing);
        let no_ip = "nw_src=0.0.0.0,nw_dst=0.0.0.0,nw_proto=0,nw_tos=0,nw_ecn=0,nw_ttl=0,nw_frag=no";
        check("0800", &format!("ip,vlan_tci=0x0000,~,{no_ip}"));
        check("0800 4500003c 00014000 40060000 0a000001 0a000002", &format!("ip,vlan_tci=0x0000,~,{no_ip}"));
        check("8100 0065", "vlan_tci=0x0000,~,dl_type=0x8100");
        check(
            "8847",
            "mpls,vlan_tci=0x0000,~,mpls_label=0,mpls_tc=0,mpls_ttl=0,mpls_bos=0,mpls_lse1=0,mpls_lse2=0",
        );
        check(
            "0806 0002",
            "arp,vlan_tci=0x0000,~,arp_spa=0.0.0.0,arp_tpa=0.0.0.0,arp_op=0,arp_sha=00:00:00:00:00:00,arp_tha=00:00:00:00:00:00",
        );
    }

    #[test]
    fn ipv4_has_its_protocols_word() {
        let ip = "nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=16,nw_ecn=0,nw_ttl=64,nw_frag=no";
        check(
            "0800 4510002800014000400600000a0000010a000002 04d20050000000010000000250120100abcd0000",
            &format!("tcp,vlan_tci=0x0000,~,{ip},tp_src=1234,tp_dst=80,tcp_flags=syn|ack tcp_csum:abcd"),
        );
        check(
            "0800 4510001c00014000400100000a0000010a000002 0800123400010001",
            &format!("icmp,vlan_tci=0x0000,~,{ip},icmp_type=8,icmp_code=0 icmp_csum:1234"),
        );
        check(
            "0800 4500001c00010010401100000a0000010a000002 0035003500081234",
            "udp,vlan_tci=0x0000,~,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=later udp_csum:1234",
        );
    }

    #[test]
    fn tags_are_taken_apart() {
        check(
            "88a8 2064 8100 0065 1234",
            "dl_vlan=100,dl_vlan_pcp=1,dl_vlan1=101,dl_vlan_pcp1=0,~,dl_type=0x1234",
        );
        check("0020 aaaa03 000001 0800", "vlan_tci=0x0000,~,dl_type=0x05ff");
    }

    #[test]
    fn neighbour_discovery_is_opened() {
        check(
            "86dd 60012345 0020 3aff fe800000000000000000000000000001 ff020000000000000000000000000002 \
             8700123400000000 fe800000000000000000000000000002 0101020000000003",
            "icmp6,vlan_tci=0x0000,~,ipv6_src=fe80::1,ipv6_dst=ff02::2,ipv6_label=0x12345,nw_tos=0,nw_ecn=0,nw_ttl=255,\
             nw_frag=no,icmp_type=135,icmp_code=0,nd_target=fe80::2,nd_sll=02:00:00:00:00:03,nd_tll=00:00:00:00:00:00 \
             icmp6_csum:1234",
        );
    }
}
