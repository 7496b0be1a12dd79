//! A packet-in as an event: the hot path, which copies the packet once and allocates nothing.

use flow::{BadInput, DatapathId};
use openflow::Version;
use openflow::message::NO_BUFFER;
use openflow::view::PacketInView;

/// Reads one packet-in in place.
#[inline]
pub fn read(message: &[u8]) -> Result<PacketInView<'_>, BadInput> {
    PacketInView::read(message)
}

/// Reads one as most are in place.
#[inline(always)]
pub fn read_usual(version: Version, message: &[u8]) -> Option<PacketInView<'_>> {
    PacketInView::read_usual(version, message)
}

/// Writes the event into the empty `out`, and returns its bytes.
///
/// Their number is not read from `out`. Otherwise the compiler reads the address and the length of `out` together, and the
/// processor waits until the length, which was just written, has left its store buffer.
#[inline(always)]
pub fn write<'a>(
    out: &'a mut Vec<u8>,
    sequence: u64,
    datapath: DatapathId,
    packet: &PacketInView<'_>,
) -> Option<&'a [u8]> {
    let event = abi::event::PacketIn {
        datapath,
        in_port: packet.in_port,
        buffer_id: Some(packet.buffer_id).filter(|id| *id != NO_BUFFER),
        total_len: packet.total_len,
        reason: packet.reason,
        table_id: packet.table_id,
        cookie: packet.cookie,
        metadata: packet.match_tlvs(),
        data: packet.data,
    };
    let length = abi::event::write::packet_in_of_length(out, sequence, &event)?;
    out.get(..length)
}
