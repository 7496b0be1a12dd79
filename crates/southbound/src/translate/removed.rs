//! A flow removed as an event.

use flow::{BadInput, DatapathId};
use openflow::view::FlowRemovedView;

/// Reads one flow removed; its match is put into `match_tlvs` as canonical bytes, in place of what was there.
pub fn read<'a>(message: &'a [u8], match_tlvs: &mut Vec<u8>) -> Result<FlowRemovedView<'a>, BadInput> {
    let view = FlowRemovedView::read(message)?;
    match_tlvs.clear();
    view.write_match_tlvs(match_tlvs);
    Ok(view)
}

/// Appends the event.
pub fn write(
    out: &mut Vec<u8>,
    sequence: u64,
    datapath: DatapathId,
    view: &FlowRemovedView<'_>,
    match_tlvs: &[u8],
) -> bool {
    let removed = &view.removed;
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
        matching: match_tlvs,
    };
    abi::event::write::flow_removed(out, sequence, &event)
}
