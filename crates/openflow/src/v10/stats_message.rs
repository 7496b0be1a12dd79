//! Statistics requests and replies of 1.0 (5.3.5): the body for each type.

use flow::{BadInput, PortNo};

use super::{matching, port_number, read_port_number, statistics};
use crate::description;
use crate::error::{BAD_MULTIPART, Unwritable, bad};
use crate::message::{
    ExperimenterStats, FlowStatsRequest, GROUP_ANY, MultipartReply, MultipartRequest, ReplyBody, RequestBody,
};
use crate::wire::{Reader, Writer};

/// `ofp_stats_types`.
mod kind {
    pub const DESC: u16 = 0;
    pub const FLOW: u16 = 1;
    pub const AGGREGATE: u16 = 2;
    pub const TABLE: u16 = 3;
    pub const PORT: u16 = 4;
    pub const QUEUE: u16 = 5;
    pub const VENDOR: u16 = 0xffff;
}

fn unknown(offset: usize, kind: u16) -> BadInput {
    bad(offset, "type", BAD_MULTIPART, format!("OpenFlow 1.0 has no statistics of type {kind}"))
}

fn only_in_1_3(what: &'static str) -> Unwritable {
    Unwritable::new(what, "OpenFlow 1.0 has no such statistics")
}

pub(super) fn read_request(mut body: Reader<'_>) -> Result<MultipartRequest, BadInput> {
    let start = body.offset();
    let kind = body.u16("type")?;
    let flags = body.u16("flags")?;
    let what = match kind {
        kind::DESC => RequestBody::Desc,
        kind::FLOW => RequestBody::Flow(read_flow_request(&mut body)?),
        kind::AGGREGATE => RequestBody::Aggregate(read_flow_request(&mut body)?),
        kind::TABLE => RequestBody::Table,
        kind::PORT => {
            let port = read_port_number(&mut body, "port_no")?;
            body.skip(6)?;
            RequestBody::PortStats(port)
        }
        kind::QUEUE => {
            let port = any_for_all(read_port_number(&mut body, "port_no")?);
            body.skip(2)?;
            RequestBody::Queue { port, queue_id: body.u32("queue_id")? }
        }
        kind::VENDOR => RequestBody::Experimenter(read_vendor(&mut body)?),
        kind => return Err(unknown(start, kind)),
    };
    body.end()?;
    Ok(MultipartRequest { flags, body: what })
}

/// 1.0 requests the queues of every port with OFPP_ALL, 1.3 with ANY.
fn any_for_all(port: PortNo) -> PortNo {
    if port == PortNo::ALL { PortNo::ANY } else { port }
}

fn all_for_any(port: PortNo) -> PortNo {
    if port == PortNo::ANY { PortNo::ALL } else { port }
}

pub(super) fn write_request(request: &MultipartRequest, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let kind = match &request.body {
        RequestBody::Desc => kind::DESC,
        RequestBody::Flow(_) => kind::FLOW,
        RequestBody::Aggregate(_) => kind::AGGREGATE,
        RequestBody::Table => kind::TABLE,
        RequestBody::PortStats(_) => kind::PORT,
        RequestBody::Queue { .. } => kind::QUEUE,
        RequestBody::Experimenter(_) => kind::VENDOR,
        RequestBody::Group(_) => return Err(only_in_1_3("OFPMP_GROUP")),
        RequestBody::GroupDesc => return Err(only_in_1_3("OFPMP_GROUP_DESC")),
        RequestBody::GroupFeatures => return Err(only_in_1_3("OFPMP_GROUP_FEATURES")),
        RequestBody::Meter(_) => return Err(only_in_1_3("OFPMP_METER")),
        RequestBody::MeterConfig(_) => return Err(only_in_1_3("OFPMP_METER_CONFIG")),
        RequestBody::MeterFeatures => return Err(only_in_1_3("OFPMP_METER_FEATURES")),
        RequestBody::TableFeatures(_) => return Err(only_in_1_3("OFPMP_TABLE_FEATURES")),
        RequestBody::PortDesc => return Err(only_in_1_3("OFPMP_PORT_DESC")),
    };
    out.u16(kind).u16(request.flags);
    match &request.body {
        RequestBody::Flow(wanted) | RequestBody::Aggregate(wanted) => write_flow_request(wanted, out)?,
        RequestBody::PortStats(port) => {
            out.u16(port_number(*port, "port_no")?).zeros(6);
        }
        RequestBody::Queue { port, queue_id } => {
            out.u16(port_number(all_for_any(*port), "port_no")?).zeros(2).u32(*queue_id);
        }
        RequestBody::Experimenter(wanted) => write_vendor(wanted, out)?,
        _ => {}
    }
    Ok(())
}

pub(super) fn read_reply(mut body: Reader<'_>) -> Result<MultipartReply, BadInput> {
    let start = body.offset();
    let kind = body.u16("type")?;
    let flags = body.u16("flags")?;
    let what = match kind {
        kind::DESC => ReplyBody::Desc(description::read(&mut body)?),
        kind::FLOW => ReplyBody::Flow(body.list(statistics::read_flow)?),
        kind::AGGREGATE => ReplyBody::Aggregate(statistics::read_aggregate(&mut body)?),
        kind::TABLE => ReplyBody::Table(body.list(statistics::read_table)?),
        kind::PORT => ReplyBody::PortStats(body.list(statistics::read_port)?),
        kind::QUEUE => ReplyBody::Queue(body.list(statistics::read_queue)?),
        kind::VENDOR => ReplyBody::Experimenter(read_vendor(&mut body)?),
        kind => return Err(unknown(start, kind)),
    };
    body.end()?;
    Ok(MultipartReply { flags, body: what })
}

pub(super) fn write_reply(reply: &MultipartReply, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let kind = match &reply.body {
        ReplyBody::Desc(_) => kind::DESC,
        ReplyBody::Flow(_) => kind::FLOW,
        ReplyBody::Aggregate(_) => kind::AGGREGATE,
        ReplyBody::Table(_) => kind::TABLE,
        ReplyBody::PortStats(_) => kind::PORT,
        ReplyBody::Queue(_) => kind::QUEUE,
        ReplyBody::Experimenter(_) => kind::VENDOR,
        ReplyBody::Group(_) => return Err(only_in_1_3("OFPMP_GROUP")),
        ReplyBody::GroupDesc(_) => return Err(only_in_1_3("OFPMP_GROUP_DESC")),
        ReplyBody::GroupFeatures(_) => return Err(only_in_1_3("OFPMP_GROUP_FEATURES")),
        ReplyBody::Meter(_) => return Err(only_in_1_3("OFPMP_METER")),
        ReplyBody::MeterConfig(_) => return Err(only_in_1_3("OFPMP_METER_CONFIG")),
        ReplyBody::MeterFeatures(_) => return Err(only_in_1_3("OFPMP_METER_FEATURES")),
        ReplyBody::TableFeatures(_) => return Err(only_in_1_3("OFPMP_TABLE_FEATURES")),
        ReplyBody::PortDesc(_) => return Err(only_in_1_3("OFPMP_PORT_DESC")),
    };
    out.u16(kind).u16(reply.flags);
    match &reply.body {
        ReplyBody::Desc(desc) => description::write(desc, out),
        ReplyBody::Flow(flows) => flows.iter().try_for_each(|flow| statistics::write_flow(flow, out)),
        ReplyBody::Table(tables) => tables.iter().try_for_each(|table| statistics::write_table(table, out)),
        ReplyBody::PortStats(ports) => ports.iter().try_for_each(|port| statistics::write_port(port, out)),
        ReplyBody::Queue(queues) => queues.iter().try_for_each(|queue| statistics::write_queue(queue, out)),
        ReplyBody::Experimenter(reply) => write_vendor(reply, out),
        ReplyBody::Aggregate(sum) => {
            statistics::write_aggregate(sum, out);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn read_flow_request(body: &mut Reader<'_>) -> Result<FlowStatsRequest, BadInput> {
    let matching = matching::read(body)?;
    let table_id = body.u8("table_id")?;
    body.skip(1)?;
    let out_port = read_port_number(body, "out_port")?;
    Ok(FlowStatsRequest { table_id, out_port, out_group: GROUP_ANY, cookie: 0, cookie_mask: 0, matching })
}

fn write_flow_request(wanted: &FlowStatsRequest, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if wanted.out_group != GROUP_ANY {
        return Err(Unwritable::new("out_group", "OpenFlow 1.0 has no groups"));
    }
    if wanted.cookie_mask != 0 {
        return Err(Unwritable::new("cookie_mask", "OpenFlow 1.0 cannot choose rules by their cookie"));
    }
    matching::write(&wanted.matching, out)?;
    out.u8(wanted.table_id).zeros(1).u16(port_number(wanted.out_port, "out_port")?);
    Ok(())
}

fn read_vendor(body: &mut Reader<'_>) -> Result<ExperimenterStats, BadInput> {
    Ok(ExperimenterStats { experimenter: body.u32("vendor")?, exp_type: None, data: body.rest().to_vec() })
}

fn write_vendor(message: &ExperimenterStats, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if message.exp_type.is_some() {
        return Err(Unwritable::new(
            "exp_type",
            "vendor statistics of OpenFlow 1.0 have none: put it into the data",
        ));
    }
    out.u32(message.experimenter).bytes(&message.data);
    Ok(())
}
