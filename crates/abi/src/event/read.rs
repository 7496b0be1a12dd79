//! Reads events in place.
//!
//! In: a frame with a valid header. Out: the event, or the offset and the reason. It never copies and never allocates.

use super::layout::*;
use super::port::PortRecord;
use super::{
    Cause, Event, Experimenter, FlowRemoved, OpenFlowVersion, PacketIn, PortStatus, SoftLimit, StatsReply,
    SwitchError, SwitchUp, Topic, kind,
};
use crate::frame::{Frame, Malformed, Reader};
use crate::receipt::{Outcome, Receipt};
use crate::service::{Credit, Query, QueryOver, QueryReply};
use crate::zone_id::ZoneId;
use flow::{DatapathId, PortNo};
use zerocopy::FromBytes;
use zerocopy::little_endian::U64;

impl<'a> Event<'a> {
    /// Reads a frame as an event.
    #[inline]
    pub fn read(frame: &Frame<'a>) -> Result<Self, Malformed> {
        let datapath = frame.datapath();
        let mut body = Reader::new(frame);
        Ok(match frame.header.kind.get() {
            kind::SWITCH_UP => Event::SwitchUp(switch_up(datapath, body)?),
            kind::SWITCH_DOWN => Event::SwitchDown(datapath),
            kind::PACKET_IN => Event::PacketIn(PacketIn::read(frame)?),
            kind::PORT_STATUS => {
                let fixed: &PortStatusFixed = body.fixed()?;
                Event::PortStatus(PortStatus { datapath, reason: fixed.reason, port: &fixed.port })
            }
            kind::FLOW_REMOVED => Event::FlowRemoved(flow_removed(datapath, body)?),
            kind::SWITCH_ERROR => {
                let fixed: &AnswerFixed = body.fixed()?;
                let (ticket, error) = (fixed.ticket.get(), error_code(fixed));
                Event::SwitchError(SwitchError { datapath, error, ticket, reason: body.rest_as_text()? })
            }
            kind::STATS_REPLY => {
                let fixed: &PartFixed = body.fixed()?;
                let (ticket, multipart, more) = (fixed.ticket.get(), fixed.what.get(), fixed.more != 0);
                Event::StatsReply(StatsReply { datapath, ticket, multipart, more, body: body.rest() })
            }
            kind::RECEIPT => Event::Receipt(datapath, receipt(body)?),
            kind::DROPPED => Event::Dropped(body.fixed::<U64>()?.get()),
            kind::TOPIC => {
                let fixed: &TopicFixed = body.fixed()?;
                Event::Topic(Topic {
                    topic: body.text(fixed.topic_len.get().into())?,
                    publisher: ZoneId(fixed.publisher.get()),
                    run: fixed.run.get(),
                    number: fixed.number.get(),
                    is_retained: fixed.is_retained != 0,
                    payload: body.rest(),
                })
            }
            kind::QUERY => Event::Query(Query::read(body)?),
            kind::QUERY_REPLY => {
                let fixed: &PartFixed = body.fixed()?;
                let (ticket, status, more) = (fixed.ticket.get(), fixed.what.get(), fixed.more != 0);
                Event::QueryReply(QueryReply { ticket, status, more, payload: body.rest() })
            }
            kind::TICK => Event::Tick { now_ms: body.fixed::<U64>()?.get() },
            kind::SHUTDOWN => Event::Shutdown,
            kind::SOFT_LIMIT => Event::SoftLimit(soft_limit(datapath, body.fixed()?)),
            kind::QUERY_CREDIT => Event::QueryCredit(Credit::read(body)?),
            kind::QUERY_OVER => Event::QueryOver(QueryOver::read(body)?),
            kind::EXPERIMENTER => {
                let fixed: &ExperimenterFixed = body.fixed()?;
                let (experimenter, exp_type) = (fixed.experimenter.get(), fixed.exp_type.get());
                Event::Experimenter(Experimenter { datapath, experimenter, exp_type, data: body.rest() })
            }
            newer => Event::Newer(newer),
        })
    }
}

fn soft_limit(datapath: DatapathId, fixed: &SoftLimitFixed) -> SoftLimit {
    SoftLimit {
        datapath,
        quota: fixed.quota.get(),
        used: fixed.used.get(),
        soft: fixed.soft.get(),
        hard: fixed.hard.get(),
    }
}

fn switch_up<'a>(datapath: DatapathId, mut body: Reader<'a>) -> Result<SwitchUp<'a>, Malformed> {
    let fixed: &SwitchUpFixed = body.fixed()?;
    let records = body.bytes(usize::from(fixed.port_count.get()) * size_of::<PortRecord>())?;
    let ports = <[PortRecord]>::ref_from_bytes(records).map_err(|_| Malformed {
        offset: crate::header::HEADER_LEN,
        reason: "the length of the ports is not a multiple of the record length",
    })?;
    let openflow = OpenFlowVersion::from_byte(fixed.openflow).ok_or(Malformed {
        offset: crate::header::HEADER_LEN + std::mem::offset_of!(SwitchUpFixed, openflow),
        reason: "unknown OpenFlow version",
    })?;
    Ok(SwitchUp { datapath, n_buffers: fixed.n_buffers.get(), n_tables: fixed.n_tables, openflow, ports })
}

impl<'a> PacketIn<'a> {
    /// Reads the cause from a frame of [`kind::PACKET_IN`], and nothing else.
    #[inline]
    pub fn cause(frame: &Frame<'a>) -> Result<Cause, Malformed> {
        let fixed: &PacketInFixed = Reader::new(frame).fixed()?;
        Ok(Cause { cookie: fixed.cookie.get(), reason: fixed.reason })
    }

    /// Reads the body of a frame of [`kind::PACKET_IN`]. For callers that have checked the type: nearly every event is a packet-in.
    #[inline]
    pub fn read(frame: &Frame<'a>) -> Result<Self, Malformed> {
        let mut body = Reader::new(frame);
        let fixed: &PacketInFixed = body.fixed()?;
        Ok(PacketIn {
            datapath: frame.datapath(),
            in_port: PortNo(fixed.in_port.get()),
            buffer_id: Some(fixed.buffer_id.get()).filter(|id| *id != NO_BUFFER),
            total_len: fixed.total_len.get(),
            reason: fixed.reason,
            table_id: fixed.table_id,
            cookie: fixed.cookie.get(),
            metadata: body.bytes(fixed.metadata_len.get().into())?,
            data: body.rest(),
        })
    }
}

fn flow_removed<'a>(datapath: DatapathId, mut body: Reader<'a>) -> Result<FlowRemoved<'a>, Malformed> {
    let fixed: &FlowRemovedFixed = body.fixed()?;
    Ok(FlowRemoved {
        datapath,
        cookie: fixed.cookie.get(),
        duration_s: fixed.duration_s.get(),
        duration_ns: fixed.duration_ns.get(),
        packet_count: fixed.packet_count.get(),
        byte_count: fixed.byte_count.get(),
        priority: fixed.priority.get(),
        idle_timeout_s: fixed.idle_timeout_s.get(),
        hard_timeout_s: fixed.hard_timeout_s.get(),
        reason: fixed.reason,
        table_id: fixed.table_id,
        matching: body.rest(),
    })
}

fn receipt(mut body: Reader<'_>) -> Result<Receipt<'_>, Malformed> {
    let fixed: &AnswerFixed = body.fixed()?;
    let outcome = Outcome::from_number(fixed.outcome)
        .ok_or(Malformed { offset: crate::header::HEADER_LEN + 12, reason: "unknown outcome" })?;
    Ok(Receipt {
        ticket: fixed.ticket.get(),
        outcome,
        error: error_code(fixed),
        reason: body.rest_as_text()?,
    })
}

fn error_code(fixed: &AnswerFixed) -> flow::ErrorCode {
    flow::ErrorCode { kind: fixed.error_type.get(), code: fixed.error_code.get() }
}
