//! Messages that are built once and patched in place: the generator's packet-ins and the sink's flow mods.
//!
//! ```text
//!   Template ──repeated──> Batch [ packet-in | packet-in | packet-in … ] ──fill──> the bytes of one large write
//! ```
//!
//! Only the parts that differ between messages are written again: transaction id, buffer id, port, addresses. It
//! never sends anything.

use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::{FlowMod, FlowModFields, NO_BUFFER, PacketIn};
use openflow::{Body, Message, Unwritable, Version};

use crate::punts::Punts;
use crate::traffic::{Announcement, PacketFields, TrafficPlan};

/// How many bytes are written at once: many messages, but few enough bytes to stay in a core's own cache.
const BATCH_BYTES: usize = 64 << 10;

/// Buffer ids count up and start again at 0 after this many. All bits set would mean "no buffer".
pub(crate) const BUFFER_IDS: u32 = 1 << 31;

/// The length of a frame: Ethernet's minimum with its checksum, as in cbench.
const FRAME_BYTES: usize = 64;

/// A packet-in, and the offsets of the parts that differ.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    /// The offset of the lower sixteen bits of the port.
    port_at: usize,
    frame_at: usize,
    /// The offset of the cookie. OpenFlow 1.0 has none.
    cookie_at: Option<usize>,
}

impl Template {
    /// A packet-in with an IPv4 packet of 64 bytes.
    pub(crate) fn packet(version: Version) -> Result<Self, Unwritable> {
        Template::of(version, &ipv4_frame())
    }

    fn of(version: Version, frame: &[u8]) -> Result<Self, Unwritable> {
        let packet_in = PacketIn {
            buffer_id: 0,
            total_len: frame.len() as u16,
            reason: 0,
            table_id: 0,
            // 1.0 has no cookie in a packet-in. In 1.3 it is the cookie of the table-miss rule.
            cookie: if version == Version::V1_0 { u64::MAX } else { 0 },
            matching: Match::default().with(Field::InPort, PortNo(1)),
            data: frame.to_vec(),
        };
        let mut bytes = Vec::new();
        Message { version, xid: 0, body: Body::PacketIn(packet_in) }.encode(&mut bytes)?;
        // 1.0, 5.4.1: the port is 16 bits at 14. 1.3.5, 7.4.1: 32 bits, the payload of the match's only field, at 32.
        let port_at = if version == Version::V1_0 { 14 } else { 34 };
        let frame_at = bytes.len() - frame.len();
        // 1.3.5, 7.4.1: before the match.
        let cookie_at = (version != Version::V1_0).then_some(16);
        Ok(Template { bytes, port_at, frame_at, cookie_at })
    }

    /// The length of the message in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Writes the parts that differ into a copy of this message.
    #[inline]
    fn patch(&self, message: &mut [u8], fields: &PacketFields) {
        let (port, frame) = (self.port_at, self.frame_at);
        message[4..8].copy_from_slice(&fields.xid.to_be_bytes());
        message[8..12].copy_from_slice(&fields.buffer_id.to_be_bytes());
        message[port..port + 2].copy_from_slice(&fields.in_port.to_be_bytes());
        message[frame..frame + 6].copy_from_slice(&fields.destination);
        message[frame + 6..frame + 12].copy_from_slice(&fields.source);
        if let Some(at) = self.cookie_at {
            message[at..at + 8].copy_from_slice(&fields.cookie.to_be_bytes());
        }
    }

    /// Appends the packet-in that announces a host.
    pub(crate) fn announce(
        version: Version,
        announcement: &Announcement,
        (number, punts): (u32, &Punts),
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable> {
        let template = Template::of(version, &arp_frame(announcement))?;
        let begin = out.len();
        out.extend_from_slice(&template.bytes);
        let fields = PacketFields {
            xid: number,
            buffer_id: if announcement.buffered { number % BUFFER_IDS } else { NO_BUFFER },
            in_port: announcement.in_port,
            destination: [0xff; 6],
            source: announcement.host,
            cookie: punts.of(announcement.in_port),
        };
        template.patch(&mut out[begin..], &fields);
        Ok(())
    }
}

/// Many packet-ins in a row.
#[derive(Debug)]
pub(crate) struct Batch {
    template: Template,
    bytes: Vec<u8>,
}

impl Batch {
    /// A batch of at most this many bytes, but at least one message.
    pub(crate) fn new(template: Template, bytes: usize) -> Self {
        let count = (bytes.min(BATCH_BYTES) / template.len()).max(1);
        Batch { bytes: template.bytes.repeat(count), template }
    }

    /// How many messages it holds.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len() / self.template.len()
    }

    /// The length of one message in bytes.
    pub(crate) fn message_len(&self) -> usize {
        self.template.len()
    }

    /// The next `count` packet-ins of a switch (at most the capacity), starting with its packet-in number `from`.
    pub(crate) fn fill(
        &mut self,
        (plan, punts): (&TrafficPlan, &Punts),
        sources: u32,
        from: u64,
        count: usize,
    ) -> &[u8] {
        let mut host = (from % u64::from(sources)) as u32;
        let mut number = from as u32;
        let template = &self.template;
        let end = count.min(self.bytes.len() / template.len()) * template.len();
        for message in self.bytes[..end].chunks_exact_mut(template.len()) {
            let fields = plan.packet(host, number, number % BUFFER_IDS);
            template.patch(message, &PacketFields { cookie: punts.of(fields.in_port), ..fields });
            number = number.wrapping_add(1);
            host = if host + 1 == sources { 0 } else { host + 1 };
        }
        &self.bytes[..end]
    }
}

/// Many flow mods in a row. Each still needs the id of the buffer that it is for.
#[derive(Debug)]
pub(crate) struct FlowModBatch {
    bytes: Vec<u8>,
    message_len: usize,
    buffer_at: usize,
    filled: usize,
}

impl FlowModBatch {
    /// The flow mod of a learning switch: a match of port and addresses, one output, an idle time-out of a minute.
    pub(crate) fn new(version: Version) -> Result<Self, Unwritable> {
        let matching = Match::default()
            .with(Field::InPort, PortNo(1))
            .with(Field::EthDst, flow::MacAddr([2, 0, 0, 0, 0, 2]))
            .with(Field::EthSrc, flow::MacAddr([2, 0, 0, 0, 0, 1]));
        let output = Action::Output { port: PortNo(2), max_len: 0 };
        let fields =
            FlowModFields { idle_timeout_s: 60, priority: 100, buffer_id: 0, ..FlowModFields::default() };
        let flow_mod: FlowMod = fields.with(matching, vec![Instruction::ApplyActions(vec![output])]);
        let mut one = Vec::new();
        Message { version, xid: 0, body: Body::FlowMod(flow_mod) }.encode(&mut one)?;
        let count = BATCH_BYTES / one.len();
        // 1.0, 5.3.3: after match, cookie and priority. 1.3.5, 7.3.4.1: after the priority.
        let buffer_at = if version == Version::V1_0 { 64 } else { 32 };
        Ok(FlowModBatch { bytes: one.repeat(count), message_len: one.len(), buffer_at, filled: 0 })
    }

    /// Adds a flow mod for the packet in this buffer. Returns whether the batch is full now.
    #[inline]
    pub(crate) fn push(&mut self, buffer_id: [u8; 4]) -> bool {
        let at = self.filled * self.message_len + self.buffer_at;
        self.bytes[at..at + 4].copy_from_slice(&buffer_id);
        self.filled += 1;
        (self.filled + 1) * self.message_len > self.bytes.len()
    }

    /// The bytes of the added flow mods. The batch is empty afterwards.
    pub(crate) fn take(&mut self) -> &[u8] {
        let end = std::mem::take(&mut self.filled) * self.message_len;
        &self.bytes[..end]
    }
}

/// An IPv4 packet of an experimental protocol, from 192.168.0.40 to 192.168.1.40. Its length and IP addresses are
/// cbench's. Its payload does not matter. The Ethernet addresses are patched in.
fn ipv4_frame() -> [u8; FRAME_BYTES] {
    /// Version 4, five words, 50 bytes in all, time-to-live 64, protocol 255 (RFC 3692: for experiments).
    const HEADER: [u8; 20] = [0x45, 0, 0, 50, 0, 0, 0, 0, 64, 255, 0, 0, 192, 168, 0, 40, 192, 168, 1, 40];
    let mut frame = [0; FRAME_BYTES];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14..34].copy_from_slice(&HEADER);
    frame[24..26].copy_from_slice(&internet_checksum(&HEADER).to_be_bytes());
    for (octet, number) in frame[34..].iter_mut().zip(0u8..) {
        *octet = number;
    }
    frame
}

/// A gratuitous ARP reply to everybody: "this address is mine".
fn arp_frame(announcement: &Announcement) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&announcement.host);
    // EtherType ARP; Ethernet and IPv4, addresses of 6 and 4 octets, a reply (RFC 826).
    frame[12..22].copy_from_slice(&[0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 2]);
    for at in [22, 32] {
        frame[at..at + 6].copy_from_slice(&announcement.host);
        frame[at + 6..at + 10].copy_from_slice(&announcement.ip);
    }
    frame
}

/// The checksum of RFC 1071, over a header whose checksum field is zero.
fn internet_checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Hosts;

    const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];

    fn packet_in(bytes: &[u8]) -> (u32, PacketIn) {
        match Message::decode(bytes).unwrap() {
            Message { xid, body: Body::PacketIn(packet_in), .. } => (xid, packet_in),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_patched_is_what_is_read() {
        for version in VERSIONS {
            let mut batch = Batch::new(Template::packet(version).unwrap(), BATCH_BYTES);
            let (length, capacity) = (batch.message_len(), batch.capacity());
            let plan = TrafficPlan::new(Hosts::Ring(5), 7);
            let bytes = batch.fill((&plan, &Punts::default()), 5, 8, capacity + 9);
            assert_eq!(bytes.len(), capacity * length, "no more than it holds");
            for (message, number) in bytes.chunks(length).zip(8u32..) {
                let (xid, packet) = packet_in(message);
                let wanted = plan.packet(number % 5, number, number);
                assert_eq!((xid, packet.buffer_id), (wanted.xid, wanted.buffer_id));
                let port = packet.matching.get(Field::InPort).unwrap().0;
                assert_eq!(port, u128::from(wanted.in_port));
                assert_eq!(packet.data[..6], wanted.destination);
                assert_eq!(packet.data[6..12], wanted.source);
                assert_eq!((packet.total_len, packet.data.len()), (64, 64));
            }
        }
    }

    #[test]
    fn a_packet_in_of_1_3_has_the_cookie_of_the_rule_that_sends_packets_of_its_port() {
        let fields = FlowModFields { cookie: 77, ..FlowModFields::default() };
        let up = Instruction::ApplyActions(vec![Action::to_controller()]);
        let rule = fields.with(Match::any().with(Field::InPort, PortNo(2)), vec![up]);
        let mut bytes = Vec::new();
        Message { version: Version::V1_3, xid: 1, body: Body::FlowMod(rule) }.encode(&mut bytes).unwrap();
        let mut punts = Punts::default();
        punts.on_flow_mod(&bytes);
        let plan = TrafficPlan::new(Hosts::Ring(8), 7);
        for version in VERSIONS {
            let mut batch = Batch::new(Template::packet(version).unwrap(), BATCH_BYTES);
            let length = batch.message_len();
            for message in batch.fill((&plan, &punts), 8, 0, 8).chunks(length) {
                let (_, packet) = packet_in(message);
                let expected = match packet.matching.get(Field::InPort).unwrap().0 {
                    // It has no field for it.
                    _ if version == Version::V1_0 => u64::MAX,
                    2 => 77,
                    _ => 0,
                };
                assert_eq!(packet.cookie, expected, "{version}");
            }
        }
    }

    #[test]
    fn a_packet_in_of_1_0_is_as_long_as_cbenchs() {
        assert_eq!(Template::packet(Version::V1_0).unwrap().len(), 82);
    }

    #[test]
    fn buffer_ids_never_say_that_there_is_no_buffer() {
        let mut batch = Batch::new(Template::packet(Version::V1_0).unwrap(), BATCH_BYTES);
        let plan = TrafficPlan::new(Hosts::Ring(2), 0);
        let length = batch.message_len();
        let from = u64::from(NO_BUFFER) - 3;
        let bytes = batch.fill((&plan, &Punts::default()), 2, from, 8).to_vec();
        assert!(bytes.chunks(length).all(|message| packet_in(message).1.buffer_id < BUFFER_IDS));
    }

    #[test]
    fn frames_are_what_they_claim_to_be() {
        let frame = ipv4_frame();
        let headers = etherparse::SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(etherparse::NetSlice::Ipv4(ip)) = headers.net else { panic!("no IPv4") };
        assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
        let announcement =
            Announcement { in_port: 2, host: [2, 0, 0, 0, 0, 9], ip: [10, 0, 0, 9], buffered: true };
        let frame = arp_frame(&announcement);
        let headers = etherparse::SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(etherparse::NetSlice::Arp(arp)) = headers.net else { panic!("no ARP") };
        assert_eq!(
            (arp.sender_hw_addr(), arp.sender_protocol_addr()),
            (&[2, 0, 0, 0, 0, 9][..], &[10, 0, 0, 9][..])
        );
    }

    #[test]
    fn announcements_are_packet_ins_of_everybodys() {
        for (version, buffered) in [(Version::V1_0, true), (Version::V1_3, false)] {
            let announcement =
                Announcement { in_port: 3, host: [2, 0, 0, 0, 0, 9], ip: [10, 0, 0, 9], buffered };
            let mut out = Vec::new();
            Template::announce(version, &announcement, (77, &Punts::default()), &mut out).unwrap();
            let (_, packet) = packet_in(&out);
            assert_eq!(packet.buffer_id, if buffered { 77 } else { NO_BUFFER });
            assert_eq!(packet.matching.get(Field::InPort).unwrap().0, 3);
            assert_eq!(packet.data[..12], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9]);
        }
    }

    #[test]
    fn flow_mods_are_for_the_buffers_that_were_said() {
        for version in VERSIONS {
            let mut batch = FlowModBatch::new(version).unwrap();
            assert!(batch.take().is_empty());
            let mut count = 1u32;
            while !batch.push(count.to_be_bytes()) {
                count += 1;
            }
            let length = batch.message_len;
            let bytes = batch.take().to_vec();
            assert_eq!(bytes.len(), length * count as usize);
            for (message, buffer_id) in bytes.chunks(length).zip(1..) {
                let Body::FlowMod(flow_mod) = Message::decode(message).unwrap().body else {
                    panic!("no flow mod")
                };
                assert_eq!(flow_mod.buffer_id, buffer_id);
            }
            assert!(batch.take().is_empty(), "it was taken");
        }
    }
}
