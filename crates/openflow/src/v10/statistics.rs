//! Statistics of 1.0: flow entries, tables, ports, queues (5.3.5).

use flow::BadInput;

use super::matching::{self, WireMatch};
use super::{port_number, read_port_number, rule};
use crate::error::Unwritable;
use crate::message::{AggregateStats, FlowStats, PortStats, QueueStats, TableStats};
use crate::wire::{Reader, Writer};

/// The length of a flow entry without its actions.
const FLOW_LEN: usize = 88;
/// OFP_MAX_TABLE_NAME_LEN.
const TABLE_NAME_LEN: usize = 32;

pub(super) fn read_flow(body: &mut Reader<'_>) -> Result<FlowStats, BadInput> {
    let mut flow = body.item(0, FLOW_LEN)?;
    flow.skip(2)?;
    let table_id = flow.u8("table_id")?;
    flow.skip(1)?;
    let matching = WireMatch::read(&mut flow)?;
    let (duration_s, duration_ns) = (flow.u32("duration_sec")?, flow.u32("duration_nsec")?);
    let priority = matching.rank(flow.u16("priority")?);
    let (idle_timeout_s, hard_timeout_s) = (flow.u16("idle_timeout")?, flow.u16("hard_timeout")?);
    flow.skip(6)?;
    Ok(FlowStats {
        table_id,
        duration_s,
        duration_ns,
        priority,
        idle_timeout_s,
        hard_timeout_s,
        flags: 0,
        cookie: flow.u64("cookie")?,
        packet_count: flow.u64("packet_count")?,
        byte_count: flow.u64("byte_count")?,
        matching: matching.to_match(),
        instructions: rule::read_instructions(flow)?,
    })
}

/// Leaves out the flags, which 1.0 has no place for.
pub(super) fn write_flow(flow: &FlowStats, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let length = out.length_after(0);
    out.zeros(2).u8(flow.table_id).zeros(1);
    matching::write_of_rule(&flow.matching, flow.priority, out)?;
    out.u32(flow.duration_s).u32(flow.duration_ns).u16(flow.priority);
    out.u16(flow.idle_timeout_s).u16(flow.hard_timeout_s).zeros(6);
    out.u64(flow.cookie).u64(flow.packet_count).u64(flow.byte_count);
    rule::write_instructions(&flow.instructions, matching::is_untagged(&flow.matching), out)?;
    out.fill_length(length)
}

pub(super) fn read_aggregate(body: &mut Reader<'_>) -> Result<AggregateStats, BadInput> {
    let sum = AggregateStats {
        packet_count: body.u64("packet_count")?,
        byte_count: body.u64("byte_count")?,
        flow_count: body.u32("flow_count")?,
    };
    body.skip(4)?;
    Ok(sum)
}

pub(super) fn write_aggregate(sum: &AggregateStats, out: &mut Writer<'_>) {
    out.u64(sum.packet_count).u64(sum.byte_count).u32(sum.flow_count).zeros(4);
}

pub(super) fn read_table(body: &mut Reader<'_>) -> Result<TableStats, BadInput> {
    let table_id = body.u8("table_id")?;
    body.skip(3)?;
    Ok(TableStats {
        table_id,
        name: body.text(TABLE_NAME_LEN, "name")?,
        wildcards: body.u32("wildcards")?,
        max_entries: body.u32("max_entries")?,
        active_count: body.u32("active_count")?,
        lookup_count: body.u64("lookup_count")?,
        matched_count: body.u64("matched_count")?,
    })
}

pub(super) fn write_table(table: &TableStats, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u8(table.table_id).zeros(3).text(&table.name, TABLE_NAME_LEN, "name")?;
    out.u32(table.wildcards).u32(table.max_entries).u32(table.active_count);
    out.u64(table.lookup_count).u64(table.matched_count);
    Ok(())
}

pub(super) fn read_port(body: &mut Reader<'_>) -> Result<PortStats, BadInput> {
    let port_no = read_port_number(body, "port_no")?;
    body.skip(6)?;
    PortStats::read_counters(port_no, body)
}

pub(super) fn write_port(port: &PortStats, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u16(port_number(port.port_no, "port_no")?).zeros(6);
    port.write_counters(out);
    Ok(())
}

pub(super) fn read_queue(body: &mut Reader<'_>) -> Result<QueueStats, BadInput> {
    let port_no = read_port_number(body, "port_no")?;
    body.skip(2)?;
    Ok(QueueStats {
        port_no,
        queue_id: body.u32("queue_id")?,
        tx_bytes: body.u64("tx_bytes")?,
        tx_packets: body.u64("tx_packets")?,
        tx_errors: body.u64("tx_errors")?,
        duration_s: 0,
        duration_ns: 0,
    })
}

pub(super) fn write_queue(queue: &QueueStats, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u16(port_number(queue.port_no, "port_no")?).zeros(2).u32(queue.queue_id);
    out.u64(queue.tx_bytes).u64(queue.tx_packets).u64(queue.tx_errors);
    Ok(())
}
