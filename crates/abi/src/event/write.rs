//! Writes events. Each function appends one frame to `out`. It returns `false` and appends nothing if the frame is longer than
//! [`crate::header::MAX_FRAME_LEN`].

use super::layout::*;
use super::{
    Experimenter, FlowRemoved, PacketIn, PortStatus, SoftLimit, StatsReply, SwitchError, SwitchUp, Topic,
    kind,
};
use crate::frame;
use crate::header::Header;
use crate::receipt::Receipt;
use crate::service::{Credit, Query, QueryOver, QueryReply, TicketFixed};
use flow::DatapathId;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

#[inline]
fn header(kind: u16, datapath: DatapathId, sequence: u64) -> Header {
    Header {
        kind: kind.into(),
        flags: 0.into(),
        length: 0.into(),
        datapath: datapath.0.into(),
        sequence: sequence.into(),
    }
}

const NO_SWITCH: DatapathId = DatapathId(0);

/// [`super::Event::SwitchUp`]. Ports beyond 65,535 are left out.
pub fn switch_up(out: &mut Vec<u8>, sequence: u64, up: &SwitchUp<'_>) -> bool {
    let ports = &up.ports[..up.ports.len().min(usize::from(u16::MAX))];
    let fixed = SwitchUpFixed {
        n_buffers: up.n_buffers.into(),
        port_count: (ports.len() as u16).into(),
        n_tables: up.n_tables,
        openflow: up.openflow as u8,
    };
    frame::write(out, header(kind::SWITCH_UP, up.datapath, sequence), &fixed, &[ports.as_bytes()])
}

/// [`super::Event::SwitchDown`].
pub fn switch_down(out: &mut Vec<u8>, sequence: u64, datapath: DatapathId) -> bool {
    frame::write(out, header(kind::SWITCH_DOWN, datapath, sequence), &[0u8; 0], &[])
}

/// [`super::Event::PacketIn`].
#[inline]
pub fn packet_in(out: &mut Vec<u8>, sequence: u64, packet: &PacketIn<'_>) -> bool {
    packet_in_of_length(out, sequence, packet).is_some()
}

/// The same, and the length of the frame in bytes.
#[inline(always)]
pub fn packet_in_of_length(out: &mut Vec<u8>, sequence: u64, packet: &PacketIn<'_>) -> Option<usize> {
    let metadata_len = u16::try_from(packet.metadata.len()).ok()?;
    let fixed = PacketInFixed {
        cookie: packet.cookie.into(),
        buffer_id: packet.buffer_id.unwrap_or(NO_BUFFER).into(),
        in_port: packet.in_port.0.into(),
        total_len: packet.total_len.into(),
        metadata_len: metadata_len.into(),
        reason: packet.reason,
        table_id: packet.table_id,
        reserved: [0; 2],
    };
    let header = header(kind::PACKET_IN, packet.datapath, sequence);
    match packet.metadata.try_into() {
        // Only the port, which is the common case.
        Ok(port) => frame::write_with_eight(out, header, &fixed, port, packet.data),
        Err(_) => {
            let before = out.len();
            frame::write(out, header, &fixed, &[packet.metadata, packet.data]).then(|| out.len() - before)
        }
    }
}

/// [`super::Event::PortStatus`].
pub fn port_status(out: &mut Vec<u8>, sequence: u64, status: &PortStatus<'_>) -> bool {
    let fixed = PortStatusFixed { reason: status.reason, reserved: [0; 3], port: *status.port };
    frame::write(out, header(kind::PORT_STATUS, status.datapath, sequence), &fixed, &[])
}

/// [`super::Event::FlowRemoved`].
pub fn flow_removed(out: &mut Vec<u8>, sequence: u64, removed: &FlowRemoved<'_>) -> bool {
    let fixed = FlowRemovedFixed {
        cookie: removed.cookie.into(),
        packet_count: removed.packet_count.into(),
        byte_count: removed.byte_count.into(),
        duration_s: removed.duration_s.into(),
        duration_ns: removed.duration_ns.into(),
        priority: removed.priority.into(),
        idle_timeout_s: removed.idle_timeout_s.into(),
        hard_timeout_s: removed.hard_timeout_s.into(),
        reason: removed.reason,
        table_id: removed.table_id,
    };
    frame::write(out, header(kind::FLOW_REMOVED, removed.datapath, sequence), &fixed, &[removed.matching])
}

/// [`super::Event::SwitchError`].
pub fn switch_error(out: &mut Vec<u8>, sequence: u64, error: &SwitchError<'_>) -> bool {
    let fixed = answer(error.ticket, error.error, 0);
    frame::write(
        out,
        header(kind::SWITCH_ERROR, error.datapath, sequence),
        &fixed,
        &[error.reason.as_bytes()],
    )
}

/// [`super::Event::StatsReply`].
pub fn stats_reply(out: &mut Vec<u8>, sequence: u64, reply: &StatsReply<'_>) -> bool {
    let fixed = part(reply.ticket, reply.multipart, reply.more);
    frame::write(out, header(kind::STATS_REPLY, reply.datapath, sequence), &fixed, &[reply.body])
}

/// [`super::Event::Experimenter`].
pub fn experimenter(out: &mut Vec<u8>, sequence: u64, it: &Experimenter<'_>) -> bool {
    let fixed = ExperimenterFixed { experimenter: it.experimenter.into(), exp_type: it.exp_type.into() };
    frame::write(out, header(kind::EXPERIMENTER, it.datapath, sequence), &fixed, &[it.data])
}

/// [`super::Event::Receipt`].
pub fn receipt(out: &mut Vec<u8>, sequence: u64, datapath: DatapathId, receipt: &Receipt<'_>) -> bool {
    let fixed = answer(receipt.ticket, receipt.error, receipt.outcome as u8);
    frame::write(out, header(kind::RECEIPT, datapath, sequence), &fixed, &[receipt.reason.as_bytes()])
}

/// [`super::Event::Dropped`].
pub fn dropped(out: &mut Vec<u8>, sequence: u64, count: u64) -> bool {
    frame::write(out, header(kind::DROPPED, NO_SWITCH, sequence), &U64::new(count), &[])
}

/// [`super::Event::Topic`].
pub fn topic(out: &mut Vec<u8>, sequence: u64, topic: &Topic<'_>) -> bool {
    let Ok(topic_len) = u16::try_from(topic.topic.len()) else { return false };
    let fixed = TopicFixed {
        number: topic.number.into(),
        publisher: topic.publisher.0.into(),
        topic_len: topic_len.into(),
        run: topic.run.into(),
        is_retained: topic.is_retained.into(),
        reserved: [0; 7],
    };
    frame::write(
        out,
        header(kind::TOPIC, NO_SWITCH, sequence),
        &fixed,
        &[topic.topic.as_bytes(), topic.payload],
    )
}

/// [`super::Event::Query`].
pub fn query(out: &mut Vec<u8>, sequence: u64, query: &Query<'_>) -> bool {
    let Some(fixed) = query.fixed() else { return false };
    let Query { caller, service, payload, .. } = query;
    let parts = [caller.name.as_bytes(), service.as_bytes(), caller.grant, payload];
    frame::write(out, header(kind::QUERY, NO_SWITCH, sequence), &fixed, &parts)
}

/// [`super::Event::QueryCredit`].
pub fn query_credit(out: &mut Vec<u8>, sequence: u64, it: Credit) -> bool {
    let fixed = TicketFixed::new(it.ticket, it.bytes);
    frame::write(out, header(kind::QUERY_CREDIT, NO_SWITCH, sequence), &fixed, &[])
}

/// [`super::Event::QueryOver`].
pub fn query_over(out: &mut Vec<u8>, sequence: u64, it: QueryOver) -> bool {
    let fixed = TicketFixed::new(it.ticket, it.status.into());
    frame::write(out, header(kind::QUERY_OVER, NO_SWITCH, sequence), &fixed, &[])
}

/// [`super::Event::QueryReply`].
pub fn query_reply(out: &mut Vec<u8>, sequence: u64, reply: &QueryReply<'_>) -> bool {
    let fixed = part(reply.ticket, reply.status, reply.more);
    frame::write(out, header(kind::QUERY_REPLY, NO_SWITCH, sequence), &fixed, &[reply.payload])
}

/// [`super::Event::Tick`].
pub fn tick(out: &mut Vec<u8>, sequence: u64, now_ms: u64) -> bool {
    frame::write(out, header(kind::TICK, NO_SWITCH, sequence), &U64::new(now_ms), &[])
}

/// [`super::Event::Shutdown`].
pub fn shutdown(out: &mut Vec<u8>, sequence: u64) -> bool {
    frame::write(out, header(kind::SHUTDOWN, NO_SWITCH, sequence), &[0u8; 0], &[])
}

/// [`super::Event::SoftLimit`].
pub fn soft_limit(out: &mut Vec<u8>, sequence: u64, it: &SoftLimit) -> bool {
    let fixed = SoftLimitFixed {
        quota: it.quota.into(),
        reserved: [0; 2],
        used: it.used.into(),
        soft: it.soft.into(),
        hard: it.hard.into(),
    };
    frame::write(out, header(kind::SOFT_LIMIT, it.datapath, sequence), &fixed, &[])
}

fn answer(ticket: u64, error: flow::ErrorCode, outcome: u8) -> AnswerFixed {
    AnswerFixed {
        ticket: ticket.into(),
        error_type: error.kind.into(),
        error_code: error.code.into(),
        outcome,
        reserved: [0; 3],
    }
}

fn part(ticket: u64, what: u16, more: bool) -> PartFixed {
    PartFixed { ticket: ticket.into(), what: what.into(), more: more.into(), reserved: [0; 5] }
}
