//! The owners of groups and meters: transfers changes between the workers' record and the monitor, which outlives this process.
//!
//! In: the stored owners, once, before any worker runs; then changes. Out: the workers' record, and messages to the
//! monitor. It decides no ownership.

use super::{Control, Fatal, TO_MONITOR_MAX};
use abi::ZoneId;
use flow::DatapathId;
use kernel::{Claims, OwnerChange};
use monitor_channel::channel::Channel;
use monitor_channel::owners::{IN_A_MESSAGE_MAX, Owned, Thing};
use monitor_channel::protocol::{FromKernel, ToKernel};

/// What the monitor says of them, in so many messages, right behind the configuration.
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

impl Control {
    /// What does not fit into this turn's messages is there in the next.
    pub(super) fn tell_owners(&mut self) {
        while self.claims.has_changes() && self.to_monitor.len() < TO_MONITOR_MAX {
            let changes = self.claims.take_changes(IN_A_MESSAGE_MAX).into_iter().map(to_monitor).collect();
            self.to_monitor.push(FromKernel::Owned { changes });
        }
    }
}

fn to_kernel(thing: Thing) -> kernel::Thing {
    match thing {
        Thing::Group(id) => kernel::Thing::Group(id),
        Thing::Meter(id) => kernel::Thing::Meter(id),
    }
}

fn to_monitor(change: OwnerChange) -> Owned {
    let thing = match change.thing {
        kernel::Thing::Group(id) => Thing::Group(id),
        kernel::Thing::Meter(id) => Thing::Meter(id),
    };
    Owned { datapath: change.datapath.0, thing, zone: change.zone.map(|zone| zone.0) }
}
