//! The frames that answer a question for an address.
//!
//! ```text
//!   ARP request (RFC 826), neighbour solicitation (RFC 4861, 4.3) ──> the answer, in the name of the host that has the address
//! ```
//!
//! In: the frame of a question, and the Ethernet address of the host. Out: the frame of the answer. It trusts no length in the frame, and
//! decides nothing about who may ask.

use burnet_sdk::MacAddr;

const ARP_REPLY: u16 = 2;

/// Where the addresses of an ARP packet are: the sender's, then the target's (RFC 826).
const ARP_LEN: usize = 28;

/// The answer to an ARP request for IPv4 over Ethernet. `header` is the length of the Ethernet header with its tag. `None` if the frame is
/// too short.
pub(crate) fn arp(question: &[u8], header: usize, mac: MacAddr) -> Option<Vec<u8>> {
    let packet = question.get(header..header + ARP_LEN)?;
    let (asker_mac, asker, target) = (&packet[8..14], &packet[14..18], &packet[24..28]);
    let mut answer = ethernet(question, header, asker_mac, mac)?;
    answer.extend_from_slice(&packet[..6]);
    answer.extend_from_slice(&ARP_REPLY.to_be_bytes());
    for part in [&mac.0[..], target, asker_mac, asker] {
        answer.extend_from_slice(part);
    }
    Some(answer)
}

const IPV6_LEN: usize = 40;
const ICMPV6: u8 = 58;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// Solicited and override (RFC 4861, 4.4).
const FLAGS: u8 = 0x60;
/// The option that holds the target's Ethernet address, and its length in units of 8 bytes (RFC 4861, 4.6.1).
const TARGET_LINK_ADDRESS: [u8; 2] = [2, 1];
/// A frame with a smaller hop limit has passed a router, and is no question of a neighbour (RFC 4861, 7.1.1).
const HOP_LIMIT: u8 = 255;

/// The answer to a neighbour solicitation. `None` if the frame is too short or has passed a router. Also `None` if the sender has no address
/// yet and asks whether this one is in use (RFC 4862, 5.4): no answer could reach it.
pub(crate) fn neighbour(question: &[u8], header: usize, mac: MacAddr) -> Option<Vec<u8>> {
    let packet = question.get(header..header + IPV6_LEN + 24)?;
    let (hop_limit, asker, target) = (packet[7], &packet[8..24], &packet[IPV6_LEN + 8..IPV6_LEN + 24]);
    if hop_limit != HOP_LIMIT || asker == [0; 16] {
        return None;
    }
    let mut message = vec![NEIGHBOUR_ADVERTISEMENT, 0, 0, 0, FLAGS, 0, 0, 0];
    message.extend_from_slice(target);
    message.extend_from_slice(&TARGET_LINK_ADDRESS);
    message.extend_from_slice(&mac.0);
    let sum = checksum(target, asker, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut answer = ethernet(question, header, question.get(6..12)?, mac)?;
    answer.extend_from_slice(&[0x60, 0, 0, 0, 0, 32, ICMPV6, HOP_LIMIT]);
    for part in [target, asker, &message] {
        answer.extend_from_slice(part);
    }
    Some(answer)
}

/// The Ethernet header of an answer: what follows the addresses is that of the question, tag included.
fn ethernet(question: &[u8], header: usize, to: &[u8], from: MacAddr) -> Option<Vec<u8>> {
    Some([to, &from.0, question.get(12..header)?].concat())
}

/// The checksum of an ICMPv6 message (RFC 4443, 2.3). The message is 32 bytes long.
fn checksum(from: &[u8], to: &[u8], message: &[u8]) -> u16 {
    let pseudo_header = [0, 0, 0, 32, 0, 0, 0, ICMPV6];
    let all = [from, to, &pseudo_header, message].concat();
    let words = all.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
