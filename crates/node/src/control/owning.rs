//! The owners of groups and meters: transfers changes between the workers' record and the monitor, which outlives this process.
//!
//! In: the stored owners, once, before any worker runs; then changes. Out: the workers' record, and messages to the
//! monitor. It decides no ownership.

use super::super::fatal::Fatal;
use super::super::monitor_queue::MonitorQueue;
use abi::ZoneId;
use flow::DatapathId;
use kernel::{Claims, OwnerChange};
use monitor_channel::channel::Channel;
use monitor_channel::owners::{GroupOrMeter, IN_A_MESSAGE_MAX, Owned};
use monitor_channel::protocol::{FromKernel, ToKernel};

/// Receives the stored owners from the monitor. They come in this many messages, directly after the configuration.
pub(super) fn receive(channel: &Channel, messages: u32) -> Result<Claims, Fatal> {
    let claims = Claims::default();
    for _ in 0..messages {
        let received = channel.receive::<ToKernel>();
        let message = received.map_err(|error| {
            Fatal(1, format!("the monitor did not send the owners of groups and meters: {error}"))
        })?;
        let ToKernel::Owned { owners } = message.message else {
            return Err(Fatal(
                1,
                "the monitor sent another message than the owners of groups and meters".to_owned(),
            ));
        };
        for Owned { datapath, thing, zone } in owners {
            if let Some(zone) = zone {
                claims.restore(DatapathId(datapath), to_kernel(thing), ZoneId(zone));
            }
        }
    }
    Ok(claims)
}

/// Sends changes to the monitor. Changes that do not fit are sent in the next turn.
pub(super) fn tell(claims: &Claims, queue: &mut MonitorQueue) {
    while claims.has_changes() && queue.has_room() {
        let changes = claims.take_changes(IN_A_MESSAGE_MAX).into_iter().map(to_monitor).collect();
        queue.push(FromKernel::Owned { changes });
    }
}

fn to_kernel(thing: GroupOrMeter) -> kernel::GroupOrMeter {
    match thing {
        GroupOrMeter::Group(id) => kernel::GroupOrMeter::Group(id),
        GroupOrMeter::Meter(id) => kernel::GroupOrMeter::Meter(id),
    }
}

fn to_monitor(change: OwnerChange) -> Owned {
    let thing = match change.target {
        kernel::GroupOrMeter::Group(id) => GroupOrMeter::Group(id),
        kernel::GroupOrMeter::Meter(id) => GroupOrMeter::Meter(id),
    };
    Owned { datapath: change.datapath.0, thing, zone: change.zone.map(|zone| zone.0) }
}
