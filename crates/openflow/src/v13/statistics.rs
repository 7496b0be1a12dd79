//! Statistics of 1.3: flow entries, tables, ports, queues, groups, meters (1.3.5, 7.3.5).

use flow::canonical::write_instructions;
use flow::{BadInput, PortNo};

use super::{matching, rule};
use crate::error::Unwritable;
use crate::message::{AggregateStats, FlowStats, GroupStats, MeterStats, PortStats, QueueStats, TableStats};
use crate::wire::{Reader, Writer};

/// The length of a flow entry without match and instructions.
const FLOW_LEN: usize = 48;
/// The length of a group without its buckets.
const GROUP_LEN: usize = 40;
/// The length of a meter without its bands.
const METER_LEN: usize = 40;

pub(super) fn read_flow(body: &mut Reader<'_>) -> Result<FlowStats, BadInput> {
    let mut flow = body.item(0, FLOW_LEN)?;
    flow.skip(2)?;
    let table_id = flow.u8("table_id")?;
    flow.skip(1)?;
    let duration_s = flow.u32("duration_sec")?;
    let duration_ns = flow.u32("duration_nsec")?;
    let priority = flow.u16("priority")?;
    let idle_timeout_s = flow.u16("idle_timeout")?;
    let hard_timeout_s = flow.u16("hard_timeout")?;
    let flags = flow.u16("flags")?;
    flow.skip(4)?;
    Ok(FlowStats {
        table_id,
        duration_s,
        duration_ns,
        priority,
        idle_timeout_s,
        hard_timeout_s,
        flags,
        cookie: flow.u64("cookie")?,
        packet_count: flow.u64("packet_count")?,
        byte_count: flow.u64("byte_count")?,
        matching: matching::read(&mut flow)?,
        instructions: rule::instructions(flow)?,
    })
}

pub(super) fn write_flow(flow: &FlowStats, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let length = out.length_after(0);
    out.zeros(2).u8(flow.table_id).zeros(1).u32(flow.duration_s).u32(flow.duration_ns);
    out.u16(flow.priority).u16(flow.idle_timeout_s).u16(flow.hard_timeout_s).u16(flow.flags).zeros(4);
    out.u64(flow.cookie).u64(flow.packet_count).u64(flow.byte_count);
    matching::write(&flow.matching, out)?;
    write_instructions(&flow.instructions, out.out)?;
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
        name: String::new(),
        wildcards: 0,
        max_entries: 0,
        active_count: body.u32("active_count")?,
        lookup_count: body.u64("lookup_count")?,
        matched_count: body.u64("matched_count")?,
    })
}

/// Leaves out name, wildcards and size of a table, which 1.3 has in its table features.
pub(super) fn write_table(table: &TableStats, out: &mut Writer<'_>) {
    out.u8(table.table_id).zeros(3).u32(table.active_count);
    out.u64(table.lookup_count).u64(table.matched_count);
}

pub(super) fn read_port(body: &mut Reader<'_>) -> Result<PortStats, BadInput> {
    let port_no = PortNo(body.u32("port_no")?);
    body.skip(4)?;
    let counters = PortStats::read_counters(port_no, body)?;
    let (duration_s, duration_ns) = (body.u32("duration_sec")?, body.u32("duration_nsec")?);
    Ok(PortStats { duration_s, duration_ns, ..counters })
}

pub(super) fn write_port(port: &PortStats, out: &mut Writer<'_>) {
    out.u32(port.port_no.0).zeros(4);
    port.write_counters(out);
    out.u32(port.duration_s).u32(port.duration_ns);
}

pub(super) fn read_queue(body: &mut Reader<'_>) -> Result<QueueStats, BadInput> {
    Ok(QueueStats {
        port_no: PortNo(body.u32("port_no")?),
        queue_id: body.u32("queue_id")?,
        tx_bytes: body.u64("tx_bytes")?,
        tx_packets: body.u64("tx_packets")?,
        tx_errors: body.u64("tx_errors")?,
        duration_s: body.u32("duration_sec")?,
        duration_ns: body.u32("duration_nsec")?,
    })
}

pub(super) fn write_queue(queue: &QueueStats, out: &mut Writer<'_>) {
    out.u32(queue.port_no.0).u32(queue.queue_id);
    out.u64(queue.tx_bytes).u64(queue.tx_packets).u64(queue.tx_errors);
    out.u32(queue.duration_s).u32(queue.duration_ns);
}

pub(super) fn read_group(body: &mut Reader<'_>) -> Result<GroupStats, BadInput> {
    let mut group = body.item(0, GROUP_LEN)?;
    group.skip(4)?;
    let group_id = group.u32("group_id")?;
    let ref_count = group.u32("ref_count")?;
    group.skip(4)?;
    Ok(GroupStats {
        group_id,
        ref_count,
        packet_count: group.u64("packet_count")?,
        byte_count: group.u64("byte_count")?,
        duration_s: group.u32("duration_sec")?,
        duration_ns: group.u32("duration_nsec")?,
        buckets: group.list(read_pair)?,
    })
}

pub(super) fn write_group(group: &GroupStats, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let length = out.length_after(0);
    out.zeros(4).u32(group.group_id).u32(group.ref_count).zeros(4);
    out.u64(group.packet_count).u64(group.byte_count).u32(group.duration_s).u32(group.duration_ns);
    write_pairs(&group.buckets, out);
    out.fill_length(length)
}

pub(super) fn read_meter(body: &mut Reader<'_>) -> Result<MeterStats, BadInput> {
    let mut meter = body.item(4, METER_LEN)?;
    let meter_id = meter.u32("meter_id")?;
    meter.skip(8)?;
    Ok(MeterStats {
        meter_id,
        flow_count: meter.u32("flow_count")?,
        packet_in_count: meter.u64("packet_in_count")?,
        byte_in_count: meter.u64("byte_in_count")?,
        duration_s: meter.u32("duration_sec")?,
        duration_ns: meter.u32("duration_nsec")?,
        bands: meter.list(read_pair)?,
    })
}

pub(super) fn write_meter(meter: &MeterStats, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let length = out.length_after(4);
    out.u32(meter.meter_id).zeros(8).u32(meter.flow_count);
    out.u64(meter.packet_in_count).u64(meter.byte_in_count).u32(meter.duration_s).u32(meter.duration_ns);
    write_pairs(&meter.bands, out);
    out.fill_length(length)
}

/// Reads packets and bytes of one bucket or band.
fn read_pair(body: &mut Reader<'_>) -> Result<(u64, u64), BadInput> {
    Ok((body.u64("packet_count")?, body.u64("byte_count")?))
}

fn write_pairs(pairs: &[(u64, u64)], out: &mut Writer<'_>) {
    for (packets, bytes) in pairs {
        out.u64(*packets).u64(*bytes);
    }
}
