//! Undoes offloads of Linux: the outer VLAN tag is beside the frame, and a checksum may not be computed yet.
//!
//! In: a frame from a packet socket, and the kernel's data about it (packet(7), PACKET_AUXDATA). Out: the frame as it
//! would be on a wire. Frames that were really on a wire do not need it.

use super::layout::{Layout, Network};
use super::{checksum, protocol, u16_at};

/// What the kernel removed from a frame or did not compute yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// EtherType and tag control information of the outer tag.
    pub tag: Option<(u16, u16)>,
    /// Whether the checksum of TCP or UDP covers only the pseudo-header.
    pub checksum_is_partial: bool,
}

impl Offload {
    /// Reads `struct tpacket_auxdata`. If it is too short, the result is the default.
    pub fn read(auxdata: &[u8]) -> Self {
        /// TP_STATUS_CSUMNOTREADY, TP_STATUS_VLAN_VALID and TP_STATUS_VLAN_TPID_VALID.
        const CHECKSUM_NOT_READY: u32 = 1 << 3;
        const TAG_VALID: u32 = 1 << 4;
        const TAG_TYPE_VALID: u32 = 1 << 6;
        let Some((status, rest)) = auxdata.split_first_chunk() else { return Offload::default() };
        let status = u32::from_ne_bytes(*status);
        let short = |at: usize| rest.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes));
        let kind = short(14).filter(|_| status & TAG_TYPE_VALID != 0).unwrap_or(super::ether_type::VLAN);
        let tag = short(12).filter(|_| status & TAG_VALID != 0).map(|rest_of_tag| (kind, rest_of_tag));
        Offload { tag, checksum_is_partial: status & CHECKSUM_NOT_READY != 0 }
    }

    /// Restores a frame.
    pub fn restore(self, frame: &mut Vec<u8>) {
        if self.checksum_is_partial {
            complete_checksum(frame);
        }
        if let Some((kind, rest_of_tag)) = self.tag
            && frame.len() >= super::ETHERNET_HEADER_BYTES
        {
            let ([a, b], [c, d]) = (kind.to_be_bytes(), rest_of_tag.to_be_bytes());
            frame.splice(12..12, [a, b, c, d]);
        }
    }
}

/// Computes the checksum of TCP or UDP over the whole packet.
fn complete_checksum(frame: &mut [u8]) -> Option<()> {
    let layout = Layout::of(frame)?;
    let transport = layout.transport?;
    let (addresses, end) = match layout.network? {
        Network::Ipv4 { at, .. } => (at + 12..at + 20, at + usize::from(u16_at(frame, at + 2)?)),
        Network::Ipv6 { at } => (at + 8..at + 40, at + 40 + usize::from(u16_at(frame, at + 4)?)),
        _ => return None,
    };
    let place = transport.at
        + match transport.protocol {
            protocol::TCP => 16,
            protocol::UDP => 6,
            _ => return None,
        };
    let segment = frame.get(transport.at..end).filter(|_| place + 2 <= end)?;
    let length = u16::try_from(segment.len()).ok()?;
    let mut covered = frame.get(addresses)?.to_vec();
    covered.extend_from_slice(&[0, transport.protocol]);
    covered.extend_from_slice(&length.to_be_bytes());
    let header = covered.len();
    covered.extend_from_slice(segment);
    covered[header + place - transport.at..][..2].fill(0);
    let sum = match checksum::internet(&covered) {
        // A UDP checksum of zero would mean "no checksum" (RFC 768).
        0 if transport.protocol == protocol::UDP => 0xffff,
        sum => sum,
    };
    frame[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn auxdata(status: u32, rest_of_tag: u16, kind: u16) -> Vec<u8> {
        let mut bytes = status.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&[0; 12]);
        bytes.extend_from_slice(&rest_of_tag.to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes
    }

    #[test]
    fn of_auxdata_that_is_cut_short_nothing_is_known() {
        assert_eq!(Offload::read(&[]), Offload::default());
        assert_eq!(Offload::read(&auxdata(1 << 4, 5, 0)[..10]), Offload::default());
    }

    #[test]
    fn a_tag_is_put_back_where_it_was() {
        let expected = |kind: u16| Offload { tag: Some((kind, 0x6005)), checksum_is_partial: false };
        assert_eq!(Offload::read(&auxdata(1 << 4, 0x6005, 0)), expected(0x8100));
        assert_eq!(Offload::read(&auxdata(1 << 4 | 1 << 6, 0x6005, 0x88a8)), expected(0x88a8));
        assert_eq!(Offload::read(&auxdata(0, 0x6005, 0x8100)), Offload::default());
        let mut frame: Vec<u8> = (0..20).collect();
        expected(0x88a8).restore(&mut frame);
        assert_eq!(frame[10..20], [10, 11, 0x88, 0xa8, 0x60, 0x05, 12, 13, 14, 15]);
    }

    /// Checks that an incomplete checksum is completed to the one that a packet builder computes.
    fn check(expected: &[u8], place: usize) {
        let mut frame = expected.to_vec();
        frame[place..place + 2].copy_from_slice(&[0x12, 0x34]);
        let offload = Offload::read(&auxdata(1 << 3, 0, 0));
        offload.restore(&mut frame);
        assert_eq!(frame, expected);
    }

    #[test]
    fn a_checksum_is_completed() {
        let v4 = || PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let v6 = || PacketBuilder::ethernet2([1; 6], [2; 6]).ipv6([1; 16], [2; 16], 64);
        let (mut tcp, mut udp, mut tcp6) = (Vec::new(), Vec::new(), Vec::new());
        v4().tcp(1, 2, 3, 4).write(&mut tcp, b"seven b").unwrap();
        v4().udp(1, 2).write(&mut udp, b"hello").unwrap();
        v6().tcp(1, 2, 3, 4).write(&mut tcp6, b"hello").unwrap();
        check(&tcp, 14 + 20 + 16);
        check(&udp, 14 + 20 + 6);
        check(&tcp6, 14 + 40 + 16);
    }

    #[test]
    fn what_has_no_such_checksum_stays_as_it_is() {
        let mut ping = Vec::new();
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        builder.icmpv4_echo_request(1, 1).write(&mut ping, &[7; 9]).unwrap();
        for frame in [ping.clone(), ping[..20].to_vec(), vec![]] {
            let mut after = frame.clone();
            Offload { tag: None, checksum_is_partial: true }.restore(&mut after);
            assert_eq!(after, frame);
        }
    }
}
