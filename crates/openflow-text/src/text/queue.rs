//! Prints queues.

use std::fmt::{self, Write};

use flow::PortNo;

use super::{counter, duration};
use openflow::message::*;
use openflow::version::Version;

/// OFPQ_ALL.
const QUEUE_ALL: u32 = 0xffff_ffff;

pub(super) fn id(out: &mut String, queue_id: u32) -> fmt::Result {
    if queue_id == QUEUE_ALL { out.write_str("ALL") } else { write!(out, "{queue_id}") }
}

pub(super) fn config(out: &mut String, reply: &QueueGetConfigReply) -> fmt::Result {
    let mut queues: Vec<&PacketQueue> = reply.queues.iter().collect();
    queues.sort_by_key(|queue| queue.queue_id);
    out.push(' ');
    if !queues.is_empty() && reply.port != PortNo(0) {
        writeln!(out, "port={}", reply.port)?;
    }
    for queue in queues {
        write!(out, "queue {}:", queue.queue_id)?;
        queue.properties.iter().try_for_each(|property| rate(out, property))?;
        out.push('\n');
    }
    Ok(())
}

fn rate(out: &mut String, property: &QueueProperty) -> fmt::Result {
    let (name, rate) = match property {
        QueueProperty::MinRate(rate) => ("min_rate", *rate),
        QueueProperty::MaxRate(rate) => ("max_rate", *rate),
        QueueProperty::Experimenter { .. } | QueueProperty::Unknown { .. } => return Ok(()),
    };
    match rate {
        0..=1000 => write!(out, " {name}:{}.{}%", rate / 10, rate % 10),
        u16::MAX => Ok(()),
        _ => write!(out, " {name}:(disabled)"),
    }
}

pub(super) fn stats(out: &mut String, version: Version, queues: &[QueueStats]) -> fmt::Result {
    writeln!(out, " {} queues", queues.len())?;
    queues.iter().try_for_each(|queue| stats_of_one(out, version, queue))
}

fn stats_of_one(out: &mut String, version: Version, queue: &QueueStats) -> fmt::Result {
    write!(out, "  port {} queue ", queue.port_no)?;
    id(out, queue.queue_id)?;
    write!(out, ": bytes={}, pkts={}, ", counter(queue.tx_bytes), counter(queue.tx_packets))?;
    write!(out, "errors={}, duration=", counter(queue.tx_errors))?;
    if version == Version::V1_0 || queue.duration_s == u32::MAX {
        out.push('?');
    } else {
        duration(out, queue.duration_s, queue.duration_ns)?;
    }
    out.push('\n');
    Ok(())
}
