//! TCP segments as they are on the wire (RFC 9293, 3.1), for both ends of a connection.
//!
//! In: a segment, or bytes. Out: bytes, or the segment. With SYN it writes two options in Linux's order: maximum
//! segment size and window scale. It ignores the peer's other options.

use software_switch::frame::{u16_at, u32_at};

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;

/// The window scale of both ends (RFC 7323).
pub(super) const WINDOW_SCALE: u8 = 7;
/// The receive window. It never fills up: delivered bytes are only counted.
pub(super) const WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// The maximum segment size: what fits into a frame over IPv4.
pub(super) const LARGEST_SEGMENT_BYTES: u16 = 1460;
/// Header bytes without options, and with the options of a SYN.
pub(super) const HEADER_BYTES: usize = 20;
const SYN_OPTION_BYTES: usize = 8;

/// A segment, without the ports, which belong to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) sequence: u32,
    /// Valid only with ACK.
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
    /// In bytes. In a SYN it is not scaled.
    pub(super) window_bytes: u32,
    /// The bytes themselves are zero.
    pub(super) payload_bytes: usize,
}

impl Segment {
    /// Whether all of these flags are set.
    pub(super) fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Appends header and payload. The checksum is zero.
    pub(super) fn write(&self, source_port: u16, destination_port: u16, largest: u16, frame: &mut Vec<u8>) {
        let options = if self.has(SYN) { SYN_OPTION_BYTES } else { 0 };
        let shift = if self.has(SYN) { 0 } else { WINDOW_SCALE };
        let window = u16::try_from(self.window_bytes >> shift).unwrap_or(u16::MAX);
        frame.extend_from_slice(&source_port.to_be_bytes());
        frame.extend_from_slice(&destination_port.to_be_bytes());
        frame.extend_from_slice(&self.sequence.to_be_bytes());
        frame.extend_from_slice(&self.acknowledgement.to_be_bytes());
        // The header's length is in words of four bytes.
        frame.extend_from_slice(&[((HEADER_BYTES + options) as u8 / 4) << 4, self.flags]);
        frame.extend_from_slice(&window.to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        if self.has(SYN) {
            let [high, low] = largest.to_be_bytes();
            // Kind 2: maximum segment size. Kind 1: padding. Kind 3: window scale.
            frame.extend_from_slice(&[2, 4, high, low, 1, 3, 3, WINDOW_SCALE]);
        }
        frame.resize(frame.len() + self.payload_bytes, 0);
    }

    /// Reads a segment, with its source and destination ports.
    pub(super) fn read(body: &[u8]) -> Option<(u16, u16, Segment)> {
        let header_bytes = usize::from(body.get(12)? >> 4) * 4;
        let payload_bytes = body.len().checked_sub(header_bytes.max(HEADER_BYTES))?;
        let flags = *body.get(13)?;
        let shift = if flags & SYN != 0 { 0 } else { WINDOW_SCALE };
        let segment = Segment {
            sequence: u32_at(body, 4)?,
            acknowledgement: u32_at(body, 8)?,
            flags,
            window_bytes: u32::from(u16_at(body, 14)?) << shift,
            payload_bytes,
        };
        Some((u16_at(body, 0)?, u16_at(body, 2)?, segment))
    }

    /// The answer to a segment of an unknown connection (RFC 9293, 3.5.2).
    pub(super) fn reset(&self) -> Segment {
        let consumed = self.payload_bytes as u32 + u32::from(self.has(SYN)) + u32::from(self.has(FIN));
        Segment {
            sequence: if self.has(ACK) { self.acknowledgement } else { 0 },
            acknowledgement: self.sequence.wrapping_add(consumed),
            flags: RST | ACK,
            window_bytes: 0,
            payload_bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(sequence: u32, acknowledgement: u32, flags: u8, window: u16, payload_bytes in 0..1460usize) {
            let shift = if flags & SYN != 0 { 0 } else { WINDOW_SCALE };
            let window_bytes = u32::from(window) << shift;
            let segment = Segment { sequence, acknowledgement, flags, window_bytes, payload_bytes };
            let mut bytes = Vec::new();
            segment.write(7, 9, 1460, &mut bytes);
            prop_assert_eq!(Segment::read(&bytes), Some((7, 9, segment)));
            let header = etherparse::TcpHeader::from_slice(&bytes).unwrap().0;
            prop_assert_eq!((header.sequence_number, header.window_size, header.syn), (sequence, window, flags & SYN != 0));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Segment::read(&bytes).map(|(_, _, segment)| segment.reset());
        }
    }
}
