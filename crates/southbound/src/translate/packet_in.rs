//! A packet-in as an event.

use flow::canonical::write_match;
use flow::{BadInput, DatapathId, Field, PortNo};
use openflow::error::BAD_MATCH_VALUE;
use openflow::message::{NO_BUFFER, PacketIn};
use openflow::{Body, Message};

/// A packet-in that was read and found sound.
pub struct Packet {
    packet: PacketIn,
    in_port: PortNo,
    metadata: Vec<u8>,
}

pub fn read(message: &[u8]) -> Result<Packet, BadInput> {
    let Body::PacketIn(packet) = Message::decode(message)?.body else { return Err(no_port()) };
    let in_port = packet.matching.get(Field::InPort).and_then(|(port, _)| u32::try_from(port).ok());
    let mut metadata = Vec::new();
    write_match(&packet.matching, &mut metadata);
    Ok(Packet { packet, in_port: PortNo(in_port.ok_or_else(no_port)?), metadata })
}

fn no_port() -> BadInput {
    BadInput {
        offset: 24,
        field: "match",
        error: BAD_MATCH_VALUE,
        message: "a packet-in says by which port the packet came in, and this one does not".into(),
    }
}

impl Packet {
    /// Appends the event.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u64, datapath: DatapathId) -> bool {
        let Packet { packet, in_port, metadata } = self;
        let event = abi::event::PacketIn {
            datapath,
            in_port: *in_port,
            buffer_id: Some(packet.buffer_id).filter(|id| *id != NO_BUFFER),
            total_len: packet.total_len,
            reason: packet.reason,
            table_id: packet.table_id,
            cookie: packet.cookie,
            metadata,
            data: &packet.data,
        };
        abi::event::write::packet_in(out, sequence, &event)
    }
}
