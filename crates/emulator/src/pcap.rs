//! Writes frames to a file for Wireshark: classic pcap with nanoseconds. Control channels are written as TCP that was
//! never on a wire.
//!
//! ```text
//!   frame, its time ──> PcapWriter ──> bytes of a file
//!   bytes of a control channel ──> Conversation ──> Ethernet frames with IP and TCP: handshake, sequence numbers, end
//! ```
//!
//! It never opens a file or a socket: the caller provides a writer.

use etherparse::PacketBuilder;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The start of a file: nanosecond timestamps, version 2.4, whole frames up to this length, Ethernet.
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const SNAPLEN: u32 = 262_144;
const LINKTYPE_ETHERNET: u32 = 1;

/// The most bytes of one segment. A longer message takes several segments, as on Ethernet.
const SEGMENT_BYTES: usize = 1448;
/// The receive window of each side. It has no effect.
const WINDOW: u16 = 65_535;
const TIME_TO_LIVE: u8 = 64;
/// Used for a controller that is reached over IPv6.
const CONTROLLER: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 254);
/// The first port of the switches' ends. It counts up, so that each connection has its own conversation.
const FIRST_PORT: u16 = 32_768;

/// A writer of a pcap file.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    to: W,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file's header.
    ///
    /// # Errors
    ///
    /// The writer's error.
    pub fn new(mut to: W) -> io::Result<Self> {
        let mut header = Vec::with_capacity(24);
        header.extend(MAGIC_NANOSECONDS.to_le_bytes());
        header.extend(2u16.to_le_bytes());
        header.extend(4u16.to_le_bytes());
        // Time zone and accuracy, which are always 0.
        header.extend([0; 8]);
        header.extend(SNAPLEN.to_le_bytes());
        header.extend(LINKTYPE_ETHERNET.to_le_bytes());
        to.write_all(&header)?;
        Ok(PcapWriter { to })
    }

    /// Writes a frame with the time at which it was seen, since the start of 1970.
    ///
    /// # Errors
    ///
    /// The writer's error.
    pub fn write(&mut self, at: Duration, frame: &[u8]) -> io::Result<()> {
        let kept = frame.get(..SNAPLEN as usize).unwrap_or(frame);
        // The format can hold seconds until 2106.
        let seconds = u32::try_from(at.as_secs()).unwrap_or(u32::MAX);
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        for word in [seconds, at.subsec_nanos(), kept.len() as u32, length] {
            self.to.write_all(&word.to_le_bytes())?;
        }
        self.to.write_all(kept)
    }

    /// Flushes the writer's buffer.
    ///
    /// # Errors
    ///
    /// The writer's error.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// One connection between a switch and a controller, as frames.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    switch: Side,
    controller: Side,
}

#[derive(Clone, Copy, Debug)]
struct Side {
    mac: [u8; 6],
    address: Ipv4Addr,
    port: u16,
    /// The sequence number of the next byte that it sends.
    next: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    Syn,
    Push,
    Fin,
    Ack,
}

impl Conversation {
    /// A connection of a switch; `connections` counts the earlier ones. The switch's address is made from its index:
    /// 10.254.0.0/15.
    pub(crate) fn new(switch: usize, controller: SocketAddr, connection: u16) -> Self {
        let number = u32::try_from(switch).unwrap_or(u32::MAX) & 0xffff;
        let [high, low] = [(number >> 8) as u8, number as u8];
        let address = match controller.ip() {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => CONTROLLER,
        };
        Conversation {
            switch: Side {
                mac: [2, 0xfe, 0, 0, high, low],
                address: Ipv4Addr::new(10, 254, high, low),
                port: FIRST_PORT | connection,
                next: 1,
            },
            controller: Side { mac: [2, 0xff, 0, 0, 0, 1], address, port: controller.port(), next: 1 },
        }
    }

    /// The three frames of the TCP handshake.
    pub(crate) fn open(&mut self) -> Vec<Vec<u8>> {
        let frames = [(true, Flag::Syn), (false, Flag::Syn), (true, Flag::Ack)];
        frames.into_iter().map(|(of_switch, flag)| self.frame(of_switch, flag, &[])).collect()
    }

    /// The frames for bytes that one side sends.
    pub(crate) fn send(&mut self, of_switch: bool, bytes: &[u8]) -> Vec<Vec<u8>> {
        bytes.chunks(SEGMENT_BYTES).map(|part| self.frame(of_switch, Flag::Push, part)).collect()
    }

    /// The frames that close the connection, in the same form for both sides.
    pub(crate) fn close(&mut self) -> Vec<Vec<u8>> {
        let frames = [(true, Flag::Fin), (false, Flag::Fin), (true, Flag::Ack)];
        frames.into_iter().map(|(of_switch, flag)| self.frame(of_switch, flag, &[])).collect()
    }

    fn frame(&mut self, of_switch: bool, flag: Flag, payload: &[u8]) -> Vec<u8> {
        let (from, to) = match of_switch {
            true => (&mut self.switch, self.controller),
            false => (&mut self.controller, self.switch),
        };
        // A SYN counts as the byte before the first one.
        let sequence = if flag == Flag::Syn { from.next.wrapping_sub(1) } else { from.next };
        let packet = PacketBuilder::ethernet2(from.mac, to.mac)
            .ipv4(from.address.octets(), to.address.octets(), TIME_TO_LIVE)
            .tcp(from.port, to.port, sequence, WINDOW);
        let packet = match flag {
            // The very first segment has nothing to acknowledge.
            Flag::Syn if of_switch => packet.syn(),
            Flag::Syn => packet.syn().ack(to.next),
            Flag::Push => packet.psh().ack(to.next),
            Flag::Fin => packet.fin().ack(to.next),
            Flag::Ack => packet.ack(to.next),
        };
        let sent = payload.len() as u32 + u32::from(flag == Flag::Fin);
        from.next = from.next.wrapping_add(sent);
        let mut frame = Vec::with_capacity(packet.size(payload.len()));
        // This fails only if the payload is too long for IP, and a segment is not.
        let _ = packet.write(&mut frame, payload);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketHeaders, TransportHeader};

    /// Ports, flags, sequence numbers and payload of a frame whose checksums are right.
    fn tcp(frame: &[u8]) -> (u16, &'static str, u32, u32, usize) {
        let headers = PacketHeaders::from_ethernet_slice(frame).unwrap();
        let Some(TransportHeader::Tcp(tcp)) = headers.transport else { panic!("no TCP") };
        let flags = match (tcp.syn, tcp.fin, tcp.psh, tcp.ack) {
            (true, _, _, false) => "SYN",
            (true, _, _, true) => "SYN ACK",
            (_, true, ..) => "FIN",
            (_, _, true, _) => "PSH",
            _ => "ACK",
        };
        (
            tcp.source_port,
            flags,
            tcp.sequence_number,
            tcp.acknowledgment_number,
            headers.payload.slice().len(),
        )
    }

    #[test]
    fn a_conversation_counts_what_each_side_has_sent() {
        let mut conversation = Conversation::new(258, "127.0.0.1:6653".parse().unwrap(), 2);
        let mut frames = conversation.open();
        frames.extend(conversation.send(true, &[0; 8]));
        frames.extend(conversation.send(false, &[0; 3000]));
        frames.extend(conversation.send(true, &[0; 8]));
        frames.extend(conversation.close());
        let (switch, controller) = (32_770, 6653);
        let expected = [
            (switch, "SYN", 0, 0, 0),
            (controller, "SYN ACK", 0, 1, 0),
            (switch, "ACK", 1, 1, 0),
            (switch, "PSH", 1, 1, 8),
            (controller, "PSH", 1, 9, 1448),
            (controller, "PSH", 1449, 9, 1448),
            (controller, "PSH", 2897, 9, 104),
            (switch, "PSH", 9, 3001, 8),
            (switch, "FIN", 17, 3001, 0),
            (controller, "FIN", 3001, 18, 0),
            (switch, "ACK", 18, 3002, 0),
        ];
        assert_eq!(frames.iter().map(|frame| tcp(frame)).collect::<Vec<_>>(), expected);
        assert_eq!(&frames[0][26..34], [10, 254, 1, 2, 127, 0, 0, 1]);
    }

    #[test]
    fn a_file_has_its_header_and_a_stamp_to_the_nanosecond_before_each_frame() {
        let mut bytes = Vec::new();
        let mut writer = PcapWriter::new(&mut bytes).unwrap();
        writer.write(Duration::new(5, 7), &[1, 2, 3]).unwrap();
        writer.flush().unwrap();
        assert_eq!(bytes[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(bytes[24..], [5, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3]);
    }
}
