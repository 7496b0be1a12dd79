//! The counters of a set of nftables, by netlink.
//!
//! In: the name of a table and a set, and the kernel's answer. Out: the bytes of a request, and the [`Counter`] of each element. It opens no
//! socket: [`Reader`] has one. Bytes of the kernel are checked like those of anybody.
//!
//! One request for each set and interval is cheaper than one run of `nft`, which takes some milliseconds. The numbers of messages and
//! attributes are those of Linux's `nf_tables.h` and `netlink.h`; they are in the byte order of the machine, values of attributes are
//! big-endian.

use super::program::{Trouble, io_trouble};
use crate::meter::FLOWS_MAX;
use flow::MacAddr;
use rustix::fd::OwnedFd;
use rustix::io::retry_on_intr;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;

/// `NLMSG_ERROR` and `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// `NFNL_SUBSYS_NFTABLES` with `NFT_MSG_NEWSETELEM` and `NFT_MSG_GETSETELEM`.
const NEW_ELEMENTS: u16 = 10 << 8 | 12;
const GET_ELEMENTS: u16 = 10 << 8 | 13;

/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;

/// `NFPROTO_NETDEV`.
const FAMILY: u8 = 5;

/// The bytes of a message's header and of that of netfilter behind it.
const HEADER_BYTES: usize = 16;
const FAMILY_BYTES: usize = 4;

/// `NLA_TYPE_MASK`: the other bits are flags.
const TYPE_MASK: u16 = 0x3fff;

/// Attributes: of a list of elements, of an element, of an expression, of a counter.
const LIST_TABLE: u16 = 1;
const LIST_SET: u16 = 2;
const LIST_ELEMENTS: u16 = 3;
const ELEMENT_KEY: u16 = 1;
const ELEMENT_EXPRESSION: u16 = 7;
const ELEMENT_EXPRESSIONS: u16 = 11;
const DATA_VALUE: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const COUNTER_BYTES: u16 = 1;
const COUNTER_PACKETS: u16 = 2;

/// What one read takes. The kernel sends at most 32 KiB at once.
const BUFFER_BYTES: usize = 65_536;

/// The most reads of one answer: more than [`FLOWS_MAX`] elements need.
const READS_MAX: usize = 1024;

/// The bytes of an Ethernet header, which the hook does not count, and of a VLAN tag.
const ETHERNET_BYTES: u64 = 14;
const TAG_BYTES: u64 = 4;

/// The bytes of IPv4 and TCP headers with time stamps, in each segment.
const SEGMENT_HEADER_BYTES: u64 = 52;

/// The largest packet in an Ethernet frame.
const MTU_BYTES: u64 = 1500;

/// What was counted for two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The VLAN id of tagged frames.
    pub vlan: Option<u16>,
    /// Where the frames are from.
    pub source: MacAddr,
    /// Where they go.
    pub destination: MacAddr,
    /// Bytes without Ethernet headers, as the kernel counts.
    pub bytes: u64,
    /// Packets. The kernel merges the segments of a TCP connection to one.
    pub packets: u64,
}

impl Counter {
    /// The bytes of the frames, as they were on the wire. It is an estimate for an interval, and need not grow with the counter.
    ///
    /// The kernel counts a merged packet as one, with one header. If packets are on average larger than a frame, the headers that were left
    /// out are estimated.
    pub fn frame_bytes(&self) -> u64 {
        let header = ETHERNET_BYTES + if self.vlan.is_some() { TAG_BYTES } else { 0 };
        let payload = self.bytes.saturating_sub(self.packets.saturating_mul(SEGMENT_HEADER_BYTES));
        let segments = payload.div_ceil(MTU_BYTES - SEGMENT_HEADER_BYTES);
        let merged = self.bytes > self.packets.saturating_mul(MTU_BYTES);
        let missing = if merged { segments.saturating_sub(self.packets) } else { 0 };
        self.bytes
            .saturating_add(missing.saturating_mul(SEGMENT_HEADER_BYTES))
            .saturating_add((self.packets.saturating_add(missing)).saturating_mul(header))
    }
}

/// What a part of an answer said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more.
    More,
    /// It was the end.
    Done,
    /// The kernel refused, with this number (`errno`).
    Refused(i32),
    /// Bytes that are no messages of netlink.
    Malformed,
}

/// Reads a part of an answer: whole messages. Elements beyond the meter's bound are left out.
pub fn parse(mut bytes: &[u8], counters: &mut Vec<Counter>) -> Progress {
    while !bytes.is_empty() {
        let Some((kind, body, rest)) = message(bytes) else { return Progress::Malformed };
        bytes = rest;
        match kind {
            DONE => return Progress::Done,
            ERROR => {
                let number = body.first_chunk().map_or(0, |number| i32::from_ne_bytes(*number));
                return Progress::Refused(number.saturating_neg());
            }
            NEW_ELEMENTS => {
                let Some(attributes) = body.get(FAMILY_BYTES..) else { return Progress::Malformed };
                for (kind, list) in Attributes(attributes) {
                    if kind == LIST_ELEMENTS {
                        let found = Attributes(list).filter_map(|(_, element)| counter(element));
                        counters.extend(found.take(FLOWS_MAX.saturating_sub(counters.len())));
                    }
                }
            }
            _ => {}
        }
    }
    Progress::More
}

/// A message: its kind, its body, and what is behind it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let body = bytes.get(HEADER_BYTES..length)?;
    // Messages begin at multiples of four.
    let rest = bytes.get(length.checked_next_multiple_of(4)?..).unwrap_or_default();
    Some((kind, body, rest))
}

/// The attributes of a message or within another attribute. It ends at the first one that is malformed.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16::from_ne_bytes(*self.0.first_chunk()?));
        let kind = u16::from_ne_bytes(*self.0.get(2..)?.first_chunk()?) & TYPE_MASK;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    Attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

fn counter(element: &[u8]) -> Option<Counter> {
    let key = find(find(element, ELEMENT_KEY)?, DATA_VALUE)?;
    let one = find(element, ELEMENT_EXPRESSION);
    let expression =
        one.or_else(|| Attributes(find(element, ELEMENT_EXPRESSIONS)?).next().map(|(_, one)| one))?;
    if find(expression, EXPRESSION_NAME)? != b"counter\0" {
        return None;
    }
    let data = find(expression, EXPRESSION_DATA)?;
    let number = |kind| Some(u64::from_be_bytes(*find(data, kind)?.first_chunk()?));
    let (vlan, addresses) = match key.len() {
        // Parts of a key are filled up to multiples of four.
        16 => (None, key),
        20 => (Some(u16::from_be_bytes(*key.first_chunk()?)), key.get(4..)?),
        _ => return None,
    };
    Some(Counter {
        vlan,
        source: MacAddr(*addresses.first_chunk()?),
        destination: MacAddr(*addresses.get(8..)?.first_chunk()?),
        bytes: number(COUNTER_BYTES)?,
        packets: number(COUNTER_PACKETS)?,
    })
}

/// The request for all elements of a set.
fn request(table: &str, set: &str, sequence: u32) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes.extend_from_slice(&[FAMILY, 0, 0, 0]);
    for (kind, name) in [(LIST_TABLE, table), (LIST_SET, set)] {
        let length = 4 + name.len() + 1;
        bytes.extend_from_slice(&(length as u16).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.resize(bytes.len() + 1, 0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&GET_ELEMENTS.to_ne_bytes());
    bytes[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes
}

/// A socket to nftables.
#[derive(Debug)]
pub(super) struct Reader {
    socket: OwnedFd,
    table: String,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Reader {
    pub(super) fn open(table: String) -> Result<Self, Trouble> {
        let protocol = Some(net::netlink::NETFILTER);
        let socket =
            net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
                .map_err(io_trouble("opening a socket to nftables"))?;
        Ok(Reader { socket, table, sequence: 0, buffer: vec![0; BUFFER_BYTES] })
    }

    /// The counters of a set. They are added to the list.
    pub(super) fn read(&mut self, set: &str, counters: &mut Vec<Counter>) -> Result<(), Trouble> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(&self.table, set, self.sequence);
        // Without an address, a message goes to the kernel.
        net::send(&self.socket, &request, SendFlags::empty())
            .map_err(io_trouble("asking nftables for its counters"))?;
        for _ in 0..READS_MAX {
            let buffer = self.buffer.as_mut_slice();
            let (read, _) = retry_on_intr(|| net::recv(&self.socket, &mut *buffer, RecvFlags::empty()))
                .map_err(io_trouble("reading the counters of nftables"))?;
            match parse(self.buffer.get(..read).unwrap_or_default(), counters) {
                Progress::More => {}
                Progress::Done => return Ok(()),
                Progress::Refused(number) => return Err(refused(io::Error::from_raw_os_error(number))),
                Progress::Malformed => return Err(refused(io::ErrorKind::InvalidData.into())),
            }
        }
        Err(refused(io::ErrorKind::FileTooLarge.into()))
    }
}

fn refused(error: io::Error) -> Trouble {
    Trouble::Io {
        what: "reading the counters of nftables (was the table removed by another program?)",
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn element(key: &[u8], bytes: u64, packets: u64) -> Vec<u8> {
        let data = [
            attribute(COUNTER_BYTES, &bytes.to_be_bytes()),
            attribute(COUNTER_PACKETS, &packets.to_be_bytes()),
        ];
        let expression =
            [attribute(EXPRESSION_NAME, b"counter\0"), attribute(EXPRESSION_DATA | 0x8000, &data.concat())];
        let parts = [
            attribute(ELEMENT_KEY | 0x8000, &attribute(DATA_VALUE, key)),
            attribute(4, &[0; 8]),
            attribute(ELEMENT_EXPRESSION | 0x8000, &expression.concat()),
        ];
        attribute(1 | 0x8000, &parts.concat())
    }

    fn answer(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn elements(list: &[Vec<u8>]) -> Vec<u8> {
        let body = [vec![FAMILY, 0, 0, 0], attribute(LIST_ELEMENTS | 0x8000, &list.concat())];
        answer(NEW_ELEMENTS, &body.concat())
    }

    const UNTAGGED_KEY: [u8; 16] = [2, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0];
    const TAGGED_KEY: [u8; 20] = [0, 7, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0];

    #[test]
    fn what_is_cut_or_refused_is_no_counter() {
        let whole = elements(&[element(&UNTAGGED_KEY, 1, 1)]);
        for length in 1..whole.len() {
            let mut counters = Vec::new();
            let progress = parse(&whole[..length], &mut counters);
            assert_eq!((progress, counters.len()), (Progress::Malformed, 0), "{length} bytes");
        }
        let mut counters = Vec::new();
        assert_eq!(parse(&answer(ERROR, &(-2i32).to_ne_bytes()), &mut counters), Progress::Refused(2));
        assert_eq!(parse(&elements(&[element(&[1, 2, 3], 1, 1)]), &mut counters), Progress::More);
        assert_eq!(parse(&answer(DONE, &[0; 4]), &mut counters), Progress::Done);
        assert_eq!(counters, []);
    }

    #[test]
    fn counters_of_both_sets_are_read() {
        let mut counters = Vec::new();
        let bytes = elements(&[element(&UNTAGGED_KEY, 1000, 2), element(&TAGGED_KEY, 3000, 4)]);
        assert_eq!(parse(&bytes, &mut counters), Progress::More);
        let (source, destination) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        assert_eq!(
            counters,
            [
                Counter { vlan: None, source, destination, bytes: 1000, packets: 2 },
                Counter { vlan: Some(7), source, destination, bytes: 3000, packets: 4 }
            ]
        );
        assert_eq!([counters[0].frame_bytes(), counters[1].frame_bytes()], [1028, 3072]);
    }

    #[test]
    fn headers_of_merged_segments_are_estimated() {
        let (source, destination) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let counter = |bytes, packets| Counter { vlan: None, source, destination, bytes, packets };
        assert_eq!(counter(15_000, 10).frame_bytes(), 15_140, "nothing was merged");
        // Ten segments of 1,448 bytes as two packets.
        assert_eq!(counter(2 * 52 + 14_480, 2).frame_bytes(), 15_140);
        assert!(counter(u64::MAX, u64::MAX).frame_bytes() == u64::MAX);
    }

    #[test]
    fn a_request_names_table_and_set() {
        let bytes = request("t", "set", 9);
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(find(&bytes[HEADER_BYTES + FAMILY_BYTES..], LIST_TABLE), Some(&b"t\0"[..]));
        assert_eq!(find(&bytes[HEADER_BYTES + FAMILY_BYTES..], LIST_SET), Some(&b"set\0"[..]));
    }
}
