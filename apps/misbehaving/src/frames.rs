//! Frames that the attacker sends, and how to recognise them where they leave a switch: whether a frame is the
//! attacker's, and whether the attacker may send it.
//!
//! The cases of `burnet attack` grant frames with [`OWN_ADDRESS`], and ARP requests. This file never sends a frame.

/// The kind of an attacker's frame that left a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A frame that it may send.
    Granted,
    /// A frame that it may not send, or not by that port.
    NotGranted,
}

/// The attacker's Ethernet address, in frames of [`ETHERTYPE`] and in ARP.
pub const OWN_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 0xef];
const ARP_ADDRESS: [u8; 6] = [2, 0xbb, 0, 0, 0, 1];

/// The EtherType of a local experiment (IEEE 802, 9.2.3.4). No host of a trial answers it.
pub const ETHERTYPE: u16 = 0x88b5;
const ARP: u16 = 0x0806;

/// The byte behind the header that marks a frame whose way was not granted.
const NOT_GRANTED: u8 = b'!';

/// A frame that no host of a trial answers.
pub const FRAME: [u8; 60] = frame_to(0xee, 0);
/// The same frame, for a way that was not granted.
pub const BEYOND: [u8; 60] = frame_to(0xee, NOT_GRANTED);
/// The destination of [`TO_A_RULE`] and of no other frame.
pub const A_RULES_ADDRESS: u64 = 0x0200_0000_00dd;
/// A frame for a rule of the attacker's, which turns it into another host's frame.
pub const TO_A_RULE: [u8; 60] = frame_to(0xdd, 0);

/// An ARP request for 10.0.0.1 from [`ASKING`]. The attacker may send it.
pub const ARP_REQUEST: [u8; 60] = {
    let begin: [u8; 42] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0xbb, 0, 0, 0, 1, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0xbb,
        0, 0, 0, 1, 10, 9, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1,
    ];
    let mut frame = [0; 60];
    let mut at = 0;
    while at < begin.len() {
        frame[at] = begin[at];
        at += 1;
    }
    frame
};
/// 10.9.0.1, which no host has.
pub const ASKING: u32 = 0x0a09_0001;

/// `ar_op` of a request (RFC 826), and its offset in a frame.
const REQUEST: [u8; 2] = [0, 1];
const OPERATION: std::ops::Range<usize> = 20..22;
const SENDER_MAC: std::ops::Range<usize> = 22..28;

const fn frame_to(last: u8, note: u8) -> [u8; 60] {
    let mut frame = [0; 60];
    (frame[0], frame[5], frame[6], frame[11]) = (2, last, OWN_ADDRESS[0], OWN_ADDRESS[5]);
    ([frame[12], frame[13]], frame[14]) = (ETHERTYPE.to_be_bytes(), note);
    frame
}

/// Whether a frame is the attacker's, and of which kind.
pub fn kind_of_frame(frame: &[u8]) -> Option<FrameKind> {
    let ethertype = u16::from_be_bytes([*frame.get(12)?, *frame.get(13)?]);
    let is_within = match ethertype {
        ETHERTYPE => frame.get(6..12)? == OWN_ADDRESS && *frame.get(14)? != NOT_GRANTED,
        // Hosts' ARP frames are not the attacker's.
        ARP if frame.get(SENDER_MAC)? == ARP_ADDRESS => frame.get(OPERATION)? == REQUEST,
        _ => return None,
    };
    Some(if is_within { FrameKind::Granted } else { FrameKind::NotGranted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_whether_the_attacker_may_send_it() {
        let check = |frame: [u8; 60], at: usize, byte: u8, expected| {
            let mut frame = frame;
            frame[at] = byte;
            assert_eq!(kind_of_frame(&frame), expected, "{frame:?}");
        };
        check(FRAME, 0, 2, Some(FrameKind::Granted));
        check(TO_A_RULE, 0, 2, Some(FrameKind::Granted));
        check(BEYOND, 0, 2, Some(FrameKind::NotGranted));
        check(FRAME, 11, 1, Some(FrameKind::NotGranted));
        check(ARP_REQUEST, 0, 0xff, Some(FrameKind::Granted));
        check(ARP_REQUEST, OPERATION.start + 1, 2, Some(FrameKind::NotGranted));
        check(ARP_REQUEST, SENDER_MAC.start, 0, None);
        check(FRAME, 12, 8, None);
        assert_eq!(kind_of_frame(&FRAME[..14]), None);
        assert_eq!(kind_of_frame(&[]), None);
    }
}
