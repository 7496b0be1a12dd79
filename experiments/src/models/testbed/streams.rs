//! The control channel, read from TCP segments on the loopback interface.
//!
//! ```text
//!   frames of `lo` ──> Segment ──> streams of both directions ──> OpenFlow messages, each with the time of its last byte
//! ```
//!
//! In: frames and their times. Out: messages. It never guesses what a lost segment had: that direction of its connection ends there.

use openflow::{Message, stream};
use std::collections::HashMap;
use std::time::Duration;

const ETHERNET_BYTES: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TCP: u8 = 6;
const SYN: u8 = 2;

/// A TCP segment to or from the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When.
    pub at: Duration,
    /// Whether the switch sent it.
    pub from_switch: bool,
    /// The switch's port, which tells connections apart.
    pub port: u16,
    /// The sequence number of the first byte. A SYN takes one.
    sequence: u32,
    is_opening: bool,
    payload: Vec<u8>,
}

impl Segment {
    /// The segment of a frame of `lo`. `None`: it is not about this port of the controller.
    pub fn read(frame: &[u8], at: Duration, control_port: u16) -> Option<Segment> {
        let (ethernet, ip) = frame.split_first_chunk::<ETHERNET_BYTES>()?;
        let [version, _, total_high, total_low, _, _, _, _, _, protocol, ..] = *ip.first_chunk::<20>()?;
        if ethernet[12..] != ETHERTYPE_IPV4 || protocol != TCP {
            return None;
        }
        let total = usize::from(u16::from_be_bytes([total_high, total_low]));
        // With segmentation offload, Linux may write 0 for a packet of 64 KiB.
        let ip = if total == 0 { ip } else { ip.get(..total)? };
        let tcp = ip.get(usize::from(version & 0x0f) * 4..)?;
        let [s0, s1, d0, d1, q0, q1, q2, q3, _, _, _, _, offset, flags, ..] = *tcp.first_chunk::<20>()?;
        let (source, destination) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        let from_switch = destination == control_port;
        if !from_switch && source != control_port {
            return None;
        }
        Some(Segment {
            at,
            from_switch,
            port: if from_switch { source } else { destination },
            sequence: u32::from_be_bytes([q0, q1, q2, q3]),
            is_opening: flags & SYN != 0,
            payload: tcp.get(usize::from(offset >> 4) * 4..)?.to_vec(),
        })
    }
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// The sequence number of the next byte.
    next: Option<u32>,
    /// The beginning of a message.
    bytes: Vec<u8>,
    is_broken: bool,
}

/// A message of the control channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// When its last byte passed.
    pub at: Duration,
    /// Whether the switch sent it.
    pub from_switch: bool,
    /// The message.
    pub message: Message,
}

/// All connections.
#[derive(Debug, Default)]
pub struct Streams {
    directions: HashMap<(u16, bool), Direction>,
    /// The messages so far.
    pub heard: Vec<Heard>,
}

impl Streams {
    /// The next segment.
    pub fn on_segment(&mut self, segment: &Segment) {
        let direction = self.directions.entry((segment.port, segment.from_switch)).or_default();
        if segment.is_opening {
            *direction = Direction { next: Some(segment.sequence.wrapping_add(1)), ..Direction::default() };
            return;
        }
        direction.take(segment, &mut self.heard);
    }

    /// Directions in which bytes are missing, or are no OpenFlow.
    pub fn broken(&self) -> usize {
        self.directions.values().filter(|direction| direction.is_broken).count()
    }
}

impl Direction {
    fn take(&mut self, segment: &Segment, out: &mut Vec<Heard>) {
        let next = *self.next.get_or_insert(segment.sequence);
        if self.is_broken || segment.payload.is_empty() {
            return;
        }
        // Of a segment that is sent again, only what is new counts.
        let known = next.wrapping_sub(segment.sequence);
        let is_gap = known > u32::MAX / 2;
        if is_gap {
            self.is_broken = true;
            return;
        }
        let new = usize::try_from(known).ok().and_then(|known| segment.payload.get(known..));
        let Some(new) = new.filter(|new| !new.is_empty()) else { return };
        // A segment of at most 64 KiB.
        self.next = Some(next.wrapping_add(new.len() as u32));
        self.bytes.extend_from_slice(new);
        self.cut(segment, out);
    }

    fn cut(&mut self, segment: &Segment, out: &mut Vec<Heard>) {
        let mut is_read = true;
        let gone = stream::cut(&self.bytes, |bytes| {
            match Message::decode(bytes) {
                Ok(message) => {
                    out.push(Heard { at: segment.at, from_switch: segment.from_switch, message });
                }
                Err(_) => is_read = false,
            }
            is_read
        });
        match gone {
            Ok(gone) => drop(self.bytes.drain(..gone)),
            Err(_) => is_read = false,
        }
        self.is_broken |= !is_read;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::{Body, Version};

    fn echo(payload: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        let body = Body::EchoRequest(vec![payload; 4]);
        Message { version: Version::V1_0, xid: 1, body }.encode(&mut bytes).unwrap();
        bytes
    }

    fn segment(at_ms: u64, sequence: u32, payload: &[u8]) -> Segment {
        let at = Duration::from_millis(at_ms);
        let payload = payload.to_vec();
        Segment { at, from_switch: true, port: 7, sequence, is_opening: false, payload }
    }

    fn heard(segments: &[Segment]) -> (Vec<u128>, usize) {
        let mut streams = Streams::default();
        segments.iter().for_each(|segment| streams.on_segment(segment));
        (streams.heard.iter().map(|heard| heard.at.as_millis()).collect(), streams.broken())
    }

    #[test]
    fn a_gap_ends_the_direction_and_is_counted() {
        let bytes = echo(1);
        assert_eq!(heard(&[segment(1, 100, &bytes), segment(2, 300, &bytes)]), (vec![1], 1));
        assert_eq!(heard(&[segment(1, 100, &[1, 10, 0, 7, 0, 0, 0, 0])]), (vec![], 1), "no OpenFlow");
    }

    #[test]
    fn a_message_counts_when_its_last_byte_passes() {
        let bytes = echo(1);
        let (one, two) = bytes.split_at(5);
        let base = u32::MAX - 2;
        let segments = [segment(1, base, one), segment(2, base, one), segment(3, base.wrapping_add(5), two)];
        assert_eq!(heard(&segments), (vec![3], 0));
        let both = [bytes.clone(), echo(2)].concat();
        assert_eq!(heard(&[segment(4, 0, &both)]), (vec![4, 4], 0));
        assert_eq!(heard(&[segment(4, 0, &bytes), segment(5, 0, &both)]), (vec![4, 5], 0), "sent again");
    }

    #[test]
    fn a_segment_of_another_port_is_none() {
        let mut frame = vec![0; 54];
        frame[12] = 8;
        (frame[14], frame[17], frame[23]) = (0x45, 40, 6);
        (frame[36], frame[37], frame[46]) = (0x19, 0xfd, 0x50);
        let read = |frame: &[u8]| Segment::read(frame, Duration::ZERO, 6653);
        assert!(read(&frame).is_some_and(|segment| segment.from_switch && segment.port == 0));
        frame[37] = 0xfe;
        assert_eq!(read(&frame), None);
        assert_eq!(read(&frame[..53]), None, "cut");
    }
}
