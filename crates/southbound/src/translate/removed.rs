//! A flow removed as an event.

use flow::canonical::write_match;
use flow::{BadInput, DatapathId};
use openflow::error::BAD_TYPE;
use openflow::message::FlowRemoved;
use openflow::{Body, Message};

/// A flow removed that was read and found sound.
pub struct Removed {
    removed: FlowRemoved,
    matching: Vec<u8>,
}

pub fn read(message: &[u8]) -> Result<Removed, BadInput> {
    let Body::FlowRemoved(removed) = Message::decode(message)?.body else {
        let message = "it is no flow removed".into();
        return Err(BadInput { offset: 1, field: "type", error: BAD_TYPE, message });
    };
    let mut matching = Vec::new();
    write_match(&removed.matching, &mut matching);
    Ok(Removed { removed, matching })
}

impl Removed {
    /// Appends the event.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u64, datapath: DatapathId) -> bool {
        let Removed { removed, matching } = self;
        let event = abi::event::FlowRemoved {
            datapath,
            cookie: removed.cookie,
            duration_s: removed.duration_s,
            duration_ns: removed.duration_ns,
            packet_count: removed.packet_count,
            byte_count: removed.byte_count,
            priority: removed.priority,
            idle_timeout_s: removed.idle_timeout_s,
            hard_timeout_s: removed.hard_timeout_s,
            reason: removed.reason,
            table_id: removed.table_id,
            matching,
        };
        abi::event::write::flow_removed(out, sequence, &event)
    }
}
