//! Queue configuration of 1.0 (5.3.4 and 5.2.2).

use flow::{BadInput, PortNo};

use super::{port_number, read_port_number};
use crate::error::Unwritable;
use crate::message::{PacketQueue, QueueGetConfigReply, QueueGetConfigRequest};
use crate::queue_property::{read_property, write_property};
use crate::version::Version;
use crate::wire::{Reader, Writer};

/// The length of a queue without properties.
const QUEUE_LEN: usize = 8;

pub(super) fn read_request(mut body: Reader<'_>) -> Result<QueueGetConfigRequest, BadInput> {
    let port = read_port_number(&mut body, "port")?;
    body.skip(2)?;
    body.end()?;
    Ok(QueueGetConfigRequest { port })
}

pub(super) fn write_request(request: &QueueGetConfigRequest, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u16(port_number(request.port, "port")?).zeros(2);
    Ok(())
}

pub(super) fn read_reply(mut body: Reader<'_>) -> Result<QueueGetConfigReply, BadInput> {
    let port = read_port_number(&mut body, "port")?;
    body.skip(6)?;
    Ok(QueueGetConfigReply { port, queues: body.list(|queue| read_queue(port, queue))? })
}

fn read_queue(port: PortNo, body: &mut Reader<'_>) -> Result<PacketQueue, BadInput> {
    let mut queue = body.item(4, QUEUE_LEN)?;
    let queue_id = queue.u32("queue_id")?;
    queue.skip(4)?;
    Ok(PacketQueue { queue_id, port, properties: queue.list(|body| read_property(body, Version::V1_0))? })
}

pub(super) fn write_reply(reply: &QueueGetConfigReply, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u16(port_number(reply.port, "port")?).zeros(6);
    reply.queues.iter().try_for_each(|queue| {
        if queue.port != reply.port {
            return Err(Unwritable::new("port", "a reply of OpenFlow 1.0 is about the queues of one port"));
        }
        let length = out.length_after(4);
        out.u32(queue.queue_id).zeros(4);
        queue.properties.iter().try_for_each(|property| write_property(property, Version::V1_0, out))?;
        out.fill_length(length)
    })
}
