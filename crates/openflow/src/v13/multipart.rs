//! Multipart requests and replies of 1.3 (1.3.5, 7.3.5): the body for each type.

use flow::{BadInput, PortNo};

use super::{group, matching, meter, port, statistics, table_features};
use crate::description;
use crate::error::{BAD_MULTIPART, Unwritable, bad};
use crate::message::{
    ExperimenterStats, FlowStatsRequest, MultipartReply, MultipartRequest, ReplyBody, RequestBody,
};
use crate::wire::{Reader, Writer};

/// `ofp_multipart_type`.
mod kind {
    pub const DESC: u16 = 0;
    pub const FLOW: u16 = 1;
    pub const AGGREGATE: u16 = 2;
    pub const TABLE: u16 = 3;
    pub const PORT_STATS: u16 = 4;
    pub const QUEUE: u16 = 5;
    pub const GROUP: u16 = 6;
    pub const GROUP_DESC: u16 = 7;
    pub const GROUP_FEATURES: u16 = 8;
    pub const METER: u16 = 9;
    pub const METER_CONFIG: u16 = 10;
    pub const METER_FEATURES: u16 = 11;
    pub const TABLE_FEATURES: u16 = 12;
    pub const PORT_DESC: u16 = 13;
    pub const EXPERIMENTER: u16 = 0xffff;
}

fn unknown(offset: usize, kind: u16) -> BadInput {
    bad(offset, "type", BAD_MULTIPART, format!("OpenFlow 1.3 has no multipart of type {kind}"))
}

pub(super) fn read_request(mut body: Reader<'_>) -> Result<MultipartRequest, BadInput> {
    let start = body.offset();
    let kind = body.u16("type")?;
    let flags = body.u16("flags")?;
    body.skip(4)?;
    let what = match kind {
        kind::DESC => RequestBody::Desc,
        kind::FLOW => RequestBody::Flow(read_flow_request(&mut body)?),
        kind::AGGREGATE => RequestBody::Aggregate(read_flow_request(&mut body)?),
        kind::TABLE => RequestBody::Table,
        kind::PORT_STATS => RequestBody::PortStats(PortNo(read_number(&mut body, "port_no")?)),
        kind::QUEUE => {
            RequestBody::Queue { port: PortNo(body.u32("port_no")?), queue_id: body.u32("queue_id")? }
        }
        kind::GROUP => RequestBody::Group(read_number(&mut body, "group_id")?),
        kind::GROUP_DESC => RequestBody::GroupDesc,
        kind::GROUP_FEATURES => RequestBody::GroupFeatures,
        kind::METER => RequestBody::Meter(read_number(&mut body, "meter_id")?),
        kind::METER_CONFIG => RequestBody::MeterConfig(read_number(&mut body, "meter_id")?),
        kind::METER_FEATURES => RequestBody::MeterFeatures,
        kind::TABLE_FEATURES => RequestBody::TableFeatures(table_features::read(&mut body)?),
        kind::PORT_DESC => RequestBody::PortDesc,
        kind::EXPERIMENTER => RequestBody::Experimenter(read_experimenter(&mut body)?),
        kind => return Err(unknown(start, kind)),
    };
    body.end()?;
    Ok(MultipartRequest { flags, body: what })
}

const fn request_kind(request: &RequestBody) -> u16 {
    match request {
        RequestBody::Desc => kind::DESC,
        RequestBody::Flow(_) => kind::FLOW,
        RequestBody::Aggregate(_) => kind::AGGREGATE,
        RequestBody::Table => kind::TABLE,
        RequestBody::PortStats(_) => kind::PORT_STATS,
        RequestBody::Queue { .. } => kind::QUEUE,
        RequestBody::Group(_) => kind::GROUP,
        RequestBody::GroupDesc => kind::GROUP_DESC,
        RequestBody::GroupFeatures => kind::GROUP_FEATURES,
        RequestBody::Meter(_) => kind::METER,
        RequestBody::MeterConfig(_) => kind::METER_CONFIG,
        RequestBody::MeterFeatures => kind::METER_FEATURES,
        RequestBody::TableFeatures(_) => kind::TABLE_FEATURES,
        RequestBody::PortDesc => kind::PORT_DESC,
        RequestBody::Experimenter(_) => kind::EXPERIMENTER,
    }
}

pub(super) fn write_request(request: &MultipartRequest, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u16(request_kind(&request.body)).u16(request.flags).zeros(4);
    match &request.body {
        RequestBody::Desc | RequestBody::Table | RequestBody::PortDesc => {}
        RequestBody::GroupDesc | RequestBody::GroupFeatures | RequestBody::MeterFeatures => {}
        RequestBody::Flow(wanted) | RequestBody::Aggregate(wanted) => write_flow_request(wanted, out)?,
        RequestBody::PortStats(PortNo(number))
        | RequestBody::Group(number)
        | RequestBody::Meter(number)
        | RequestBody::MeterConfig(number) => {
            out.u32(*number).zeros(4);
        }
        RequestBody::Queue { port, queue_id } => {
            out.u32(port.0).u32(*queue_id);
        }
        RequestBody::TableFeatures(tables) => table_features::write(tables, out)?,
        RequestBody::Experimenter(wanted) => write_experimenter(wanted, out)?,
    }
    Ok(())
}

pub(super) fn read_reply(mut body: Reader<'_>) -> Result<MultipartReply, BadInput> {
    let start = body.offset();
    let kind = body.u16("type")?;
    let flags = body.u16("flags")?;
    body.skip(4)?;
    let what = match kind {
        kind::DESC => ReplyBody::Desc(description::read(&mut body)?),
        kind::FLOW => ReplyBody::Flow(body.list(statistics::read_flow)?),
        kind::AGGREGATE => ReplyBody::Aggregate(statistics::read_aggregate(&mut body)?),
        kind::TABLE => ReplyBody::Table(body.list(statistics::read_table)?),
        kind::PORT_STATS => ReplyBody::PortStats(body.list(statistics::read_port)?),
        kind::QUEUE => ReplyBody::Queue(body.list(statistics::read_queue)?),
        kind::GROUP => ReplyBody::Group(body.list(statistics::read_group)?),
        kind::GROUP_DESC => ReplyBody::GroupDesc(body.list(group::read_desc)?),
        kind::GROUP_FEATURES => ReplyBody::GroupFeatures(group::read_features(&mut body)?),
        kind::METER => ReplyBody::Meter(body.list(statistics::read_meter)?),
        kind::METER_CONFIG => ReplyBody::MeterConfig(body.list(meter::read_config)?),
        kind::METER_FEATURES => ReplyBody::MeterFeatures(meter::read_features(&mut body)?),
        kind::TABLE_FEATURES => ReplyBody::TableFeatures(table_features::read(&mut body)?),
        kind::PORT_DESC => ReplyBody::PortDesc(body.list(port::read_port)?),
        kind::EXPERIMENTER => ReplyBody::Experimenter(read_experimenter(&mut body)?),
        kind => return Err(unknown(start, kind)),
    };
    body.end()?;
    Ok(MultipartReply { flags, body: what })
}

const fn reply_kind(reply: &ReplyBody) -> u16 {
    match reply {
        ReplyBody::Desc(_) => kind::DESC,
        ReplyBody::Flow(_) => kind::FLOW,
        ReplyBody::Aggregate(_) => kind::AGGREGATE,
        ReplyBody::Table(_) => kind::TABLE,
        ReplyBody::PortStats(_) => kind::PORT_STATS,
        ReplyBody::Queue(_) => kind::QUEUE,
        ReplyBody::Group(_) => kind::GROUP,
        ReplyBody::GroupDesc(_) => kind::GROUP_DESC,
        ReplyBody::GroupFeatures(_) => kind::GROUP_FEATURES,
        ReplyBody::Meter(_) => kind::METER,
        ReplyBody::MeterConfig(_) => kind::METER_CONFIG,
        ReplyBody::MeterFeatures(_) => kind::METER_FEATURES,
        ReplyBody::TableFeatures(_) => kind::TABLE_FEATURES,
        ReplyBody::PortDesc(_) => kind::PORT_DESC,
        ReplyBody::Experimenter(_) => kind::EXPERIMENTER,
    }
}

pub(super) fn write_reply(reply: &MultipartReply, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u16(reply_kind(&reply.body)).u16(reply.flags).zeros(4);
    match &reply.body {
        ReplyBody::Desc(desc) => description::write(desc, out)?,
        ReplyBody::Flow(flows) => write_each(flows, statistics::write_flow, out)?,
        ReplyBody::Aggregate(sum) => statistics::write_aggregate(sum, out),
        ReplyBody::Table(tables) => tables.iter().for_each(|table| statistics::write_table(table, out)),
        ReplyBody::PortStats(ports) => ports.iter().for_each(|port| statistics::write_port(port, out)),
        ReplyBody::Queue(queues) => queues.iter().for_each(|queue| statistics::write_queue(queue, out)),
        ReplyBody::Group(groups) => write_each(groups, statistics::write_group, out)?,
        ReplyBody::GroupDesc(groups) => write_each(groups, group::write_desc, out)?,
        ReplyBody::GroupFeatures(features) => group::write_features(features, out),
        ReplyBody::Meter(meters) => write_each(meters, statistics::write_meter, out)?,
        ReplyBody::MeterConfig(meters) => write_each(meters, meter::write_config, out)?,
        ReplyBody::MeterFeatures(features) => meter::write_features(features, out),
        ReplyBody::TableFeatures(tables) => table_features::write(tables, out)?,
        ReplyBody::PortDesc(ports) => write_each(ports, port::write_port, out)?,
        ReplyBody::Experimenter(reply) => write_experimenter(reply, out)?,
    }
    Ok(())
}

fn write_each<T>(
    items: &[T],
    write: fn(&T, &mut Writer<'_>) -> Result<(), Unwritable>,
    out: &mut Writer<'_>,
) -> Result<(), Unwritable> {
    items.iter().try_for_each(|item| write(item, out))
}

/// Reads one number and four bytes of padding: a request for one port, group or meter.
fn read_number(body: &mut Reader<'_>, field: &'static str) -> Result<u32, BadInput> {
    let number = body.u32(field)?;
    body.skip(4)?;
    Ok(number)
}

fn read_flow_request(body: &mut Reader<'_>) -> Result<FlowStatsRequest, BadInput> {
    let table_id = body.u8("table_id")?;
    body.skip(3)?;
    let out_port = PortNo(body.u32("out_port")?);
    let out_group = body.u32("out_group")?;
    body.skip(4)?;
    let (cookie, cookie_mask) = (body.u64("cookie")?, body.u64("cookie_mask")?);
    let matching = matching::read(body)?;
    Ok(FlowStatsRequest { table_id, out_port, out_group, cookie, cookie_mask, matching })
}

fn write_flow_request(wanted: &FlowStatsRequest, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u8(wanted.table_id).zeros(3).u32(wanted.out_port.0).u32(wanted.out_group).zeros(4);
    out.u64(wanted.cookie).u64(wanted.cookie_mask);
    matching::write(&wanted.matching, out)
}

fn read_experimenter(body: &mut Reader<'_>) -> Result<ExperimenterStats, BadInput> {
    Ok(ExperimenterStats {
        experimenter: body.u32("experimenter")?,
        exp_type: Some(body.u32("exp_type")?),
        data: body.rest().to_vec(),
    })
}

fn write_experimenter(message: &ExperimenterStats, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let Some(exp_type) = message.exp_type else {
        return Err(Unwritable::new("exp_type", "OpenFlow 1.3 needs the experimenter's own type"));
    };
    out.u32(message.experimenter).u32(exp_type).bytes(&message.data);
    Ok(())
}
