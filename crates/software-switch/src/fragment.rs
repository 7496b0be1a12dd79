//! Fragments of IP packets, and what a controller may want done with them (OFPC_FRAG_, 1.3.5, 7.3.2; 1.0, 5.3.2).
//!
//! It never reassembles packets: a switch here can forward or drop fragments.

use etherparse::{NetSlice, SlicedPacket};

/// OFPC_FRAG_NORMAL: fragments are matched as they are. Only the first one has ports.
pub(crate) const NORMAL: u16 = 0;
/// OFPC_FRAG_DROP.
pub(crate) const DROP: u16 = 1;

/// Whether a frame holds a fragment. A frame that is not IP or is malformed holds none.
pub(crate) fn is_one(frame: &[u8]) -> bool {
    match SlicedPacket::from_ethernet(frame).ok().and_then(|sliced| sliced.net) {
        Some(NetSlice::Ipv4(packet)) => packet.header().is_fragmenting_payload(),
        Some(NetSlice::Ipv6(packet)) => packet.is_payload_fragmented(),
        _ => false,
    }
}
