//! Test flows: the match, the rule and the frames of the n-th of them, and what a frame that comes back says.
//!
//! In: a number and a kind of match. Out: matches and frames. A frame carries the number of its flow and its own sequence number behind
//! a mark, so that each arrival is known. It never stores a flow: everything follows from its number.

use flow::{Field, Match};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The largest number of a flow and one more: numbers have 24 bits, since they are part of the addresses.
pub const FLOWS_MAX: u32 = 1 << 24;
/// What test frames carry in front of their numbers.
const MARK: [u8; 8] = *b"bnprobe1";
/// The Ethernet header.
const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
/// Mark, flow, sequence.
const PAYLOAD_BYTES: usize = 16;
const UDP: u8 = 17;
const SOURCE_PORT: u16 = 20_001;
const SINK_PORT: u16 = 20_002;
/// The source of all test frames: a locally administered address.
const SOURCE_MAC: [u8; 6] = [0x02, 0x62, 0x6e, 0, 0, 1];

/// What a rule's match looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// The Ethernet destination.
    Ethernet,
    /// Addresses, protocol and ports of UDP over IPv4.
    Ipv4,
    /// The same over IPv6.
    Ipv6,
}

impl Width {
    /// All of them.
    pub const ALL: [Width; 3] = [Width::Ethernet, Width::Ipv4, Width::Ipv6];

    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Width::Ethernet => "Ethernet",
            Width::Ipv4 => "IPv4",
            Width::Ipv6 => "IPv6",
        }
    }

    /// The fields of its matches.
    pub fn fields(self) -> &'static [Field] {
        match self {
            Width::Ethernet => &[Field::EthDst],
            Width::Ipv4 => &[
                Field::EthType,
                Field::IpProto,
                Field::Ipv4Src,
                Field::Ipv4Dst,
                Field::UdpSrc,
                Field::UdpDst,
            ],
            Width::Ipv6 => &[
                Field::EthType,
                Field::IpProto,
                Field::Ipv6Src,
                Field::Ipv6Dst,
                Field::UdpSrc,
                Field::UdpDst,
            ],
        }
    }
}

/// One test flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TestFlow {
    /// What its rule looks at.
    pub width: Width,
    /// Its number, below [`FLOWS_MAX`].
    pub number: u32,
}

/// What a test frame says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of its flow.
    pub flow: u32,
    /// Which frame of the probe it is.
    pub sequence: u32,
}

impl TestFlow {
    /// The match of its rule.
    pub fn matching(self) -> Match {
        let exact = |ether_type: u16| Match::any().with(Field::EthType, ether_type).with(Field::IpProto, UDP);
        let ports = |rule: Match| rule.with(Field::UdpSrc, SOURCE_PORT).with(Field::UdpDst, SINK_PORT);
        match self.width {
            Width::Ethernet => {
                let [_, _, a, b, c, d] = self.sink_mac();
                let value = u64::from_be_bytes([0, 0, self.sink_mac()[0], self.sink_mac()[1], a, b, c, d]);
                Match::any().with(Field::EthDst, value)
            }
            Width::Ipv4 => {
                let rule = exact(0x0800).with(Field::Ipv4Src, source_v4());
                ports(rule.with(Field::Ipv4Dst, self.sink_v4()))
            }
            Width::Ipv6 => {
                let rule = exact(0x86dd).with(Field::Ipv6Src, source_v6());
                ports(rule.with(Field::Ipv6Dst, self.sink_v6()))
            }
        }
    }

    /// A frame of this flow, at least `length` bytes long.
    pub fn frame(self, sequence: u32, length: usize) -> Vec<u8> {
        let is_v6 = self.width == Width::Ipv6;
        let headers = ETHERNET_BYTES + UDP_BYTES + if is_v6 { IPV6_BYTES } else { IPV4_BYTES };
        let length = length.max(headers + PAYLOAD_BYTES);
        let mut frame = Vec::with_capacity(length);
        frame.extend(self.sink_mac());
        frame.extend(SOURCE_MAC);
        let below_ethernet = length - ETHERNET_BYTES;
        if is_v6 {
            self.put_ipv6(&mut frame, below_ethernet)
        } else {
            self.put_ipv4(&mut frame, below_ethernet)
        }
        frame.extend(SOURCE_PORT.to_be_bytes());
        frame.extend(SINK_PORT.to_be_bytes());
        frame.extend(short(length + UDP_BYTES - headers));
        // UDP over IPv4 needs no checksum. Over IPv6, switches that check it would drop the frame; none is known that does.
        frame.extend([0, 0]);
        frame.extend(MARK);
        frame.extend(self.number.to_be_bytes());
        frame.extend(sequence.to_be_bytes());
        frame.resize(length, 0);
        frame
    }

    fn put_ipv4(self, frame: &mut Vec<u8>, length: usize) {
        frame.extend([0x08, 0x00]);
        let at = frame.len();
        frame.extend([0x45, 0]);
        frame.extend(short(length));
        frame.extend([0, 0, 0x40, 0, 64, UDP, 0, 0]);
        frame.extend(source_v4().octets());
        frame.extend(self.sink_v4().octets());
        let sum = checksum(&frame[at..]);
        frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    }

    fn put_ipv6(self, frame: &mut Vec<u8>, length: usize) {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(short(length - IPV6_BYTES));
        frame.extend([UDP, 64]);
        frame.extend(source_v6().octets());
        frame.extend(self.sink_v6().octets());
    }

    fn sink_mac(self) -> [u8; 6] {
        let [_, a, b, c] = self.number.to_be_bytes();
        [0x02, 0x62, 0x6f, a, b, c]
    }

    fn sink_v4(self) -> Ipv4Addr {
        let [_, a, b, c] = self.number.to_be_bytes();
        Ipv4Addr::new(10, a, b, c)
    }

    fn sink_v6(self) -> Ipv6Addr {
        let [zero, a, b, c] = self.number.to_be_bytes();
        let low = [u16::from_be_bytes([zero, a]), u16::from_be_bytes([b, c])];
        Ipv6Addr::new(0xfd00, 0x626e, 0, 0, 0, 0, low[0], low[1])
    }
}

/// Reads the mark of a frame, or of its beginning. None: it is no test frame, or too short.
pub fn read(frame: &[u8]) -> Option<Mark> {
    let ip_bytes = match frame.get(12..14)? {
        [0x08, 0x00] => IPV4_BYTES,
        [0x86, 0xdd] => IPV6_BYTES,
        _ => return None,
    };
    let payload = frame.get(ETHERNET_BYTES + ip_bytes + UDP_BYTES..)?;
    let (mark, numbers) = payload.split_first_chunk::<8>()?;
    let (flow, rest) = numbers.split_first_chunk::<4>()?;
    let sequence = rest.first_chunk::<4>()?;
    (*mark == MARK).then(|| Mark { flow: u32::from_be_bytes(*flow), sequence: u32::from_be_bytes(*sequence) })
}

fn source_v4() -> Ipv4Addr {
    Ipv4Addr::new(11, 0, 0, 1)
}

fn source_v6() -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x626e, 0, 1, 0, 0, 0, 1)
}

/// A length in a header. Frames are shorter than 64 KiB.
fn short(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes()
}

/// The checksum of an IPv4 header (RFC 1071) in which it is still zero.
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::frame::FrameFields;

    #[test]
    fn a_frame_meets_the_rule_of_its_flow_and_no_other() {
        for width in Width::ALL {
            for number in [0, 1, 255, 256, FLOWS_MAX - 1] {
                let flow = TestFlow { width, number };
                let frame = flow.frame(7, 128);
                let fields = FrameFields::read(&frame);
                assert!(flow.matching().matches(&fields), "{flow:?}");
                let other = TestFlow { width, number: number ^ 1 };
                assert!(!other.matching().matches(&fields), "{flow:?}");
                assert_eq!(read(&frame), Some(Mark { flow: number, sequence: 7 }));
                assert_eq!(frame.len(), 128);
            }
        }
    }

    #[test]
    fn the_header_of_ipv4_sums_to_zero() {
        let frame = TestFlow { width: Width::Ipv4, number: 12_345 }.frame(1, 64);
        assert_eq!(checksum(&frame[14..34]), 0);
    }

    #[test]
    fn foreign_and_short_frames_have_no_mark() {
        let frame = TestFlow { width: Width::Ethernet, number: 3 }.frame(1, 64);
        assert_eq!(read(&frame[..57]), None);
        assert_eq!(read(&[0; 64]), None);
        assert_eq!(read(&[]), None);
    }
}
