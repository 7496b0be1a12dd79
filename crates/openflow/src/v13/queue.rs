//! Queue configuration of 1.3 (1.3.5, 7.3.6 and 7.2.2).

use flow::{BadInput, PortNo};

use crate::error::Unwritable;
use crate::message::{PacketQueue, QueueGetConfigReply, QueueGetConfigRequest};
use crate::queue_property::{read_property, write_property};
use crate::version::Version;
use crate::wire::{Reader, Writer};

/// The length of a queue without properties.
const QUEUE_LEN: usize = 16;

pub(super) fn read_request(mut body: Reader<'_>) -> Result<QueueGetConfigRequest, BadInput> {
    let port = PortNo(body.u32("port")?);
    body.skip(4)?;
    body.end()?;
    Ok(QueueGetConfigRequest { port })
}

pub(super) fn write_request(request: &QueueGetConfigRequest, out: &mut Writer<'_>) {
    out.u32(request.port.0).zeros(4);
}

pub(super) fn read_reply(mut body: Reader<'_>) -> Result<QueueGetConfigReply, BadInput> {
    let port = PortNo(body.u32("port")?);
    body.skip(4)?;
    Ok(QueueGetConfigReply { port, queues: body.list(read_queue)? })
}

fn read_queue(body: &mut Reader<'_>) -> Result<PacketQueue, BadInput> {
    let mut queue = body.item(8, QUEUE_LEN)?;
    let queue_id = queue.u32("queue_id")?;
    let port = PortNo(queue.u32("port")?);
    queue.skip(8)?;
    Ok(PacketQueue { queue_id, port, properties: queue.list(|body| read_property(body, Version::V1_3))? })
}

pub(super) fn write_reply(reply: &QueueGetConfigReply, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u32(reply.port.0).zeros(4);
    reply.queues.iter().try_for_each(|queue| {
        let length = out.length_after(8);
        out.u32(queue.queue_id).u32(queue.port.0).zeros(8);
        queue.properties.iter().try_for_each(|property| write_property(property, Version::V1_3, out))?;
        out.fill_length(length)
    })
}
