//! The rules of flows: one in each switch of a path.
//!
//! In: flows, paths, and the places of their ends. Out: rules, and deletes of those that are not on the new path. Rules are sent from the end of a path to
//! its beginning, so that a packet that gets a new rule finds the others. Each matches its input port, so a packet cannot go in circles.

use crate::FlowId;
use crate::vnics::MultipathSettings;
use burnet_sdk::view::{ConnectPoint, LinkId};
use burnet_sdk::{Commands, DatapathId, Field, FlowBuilder, PortNo};

/// OFPVID_PRESENT (OpenFlow 1.3.5, 7.2.3.7).
const VLAN_PRESENT: u16 = 0x1000;

/// A switch of a path: where packets come in, and where they go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    entry: ConnectPoint,
    out_port: PortNo,
}

impl Hop {
    /// Its switch.
    pub(crate) fn switch(self) -> DatapathId {
        self.entry.switch
    }
}

/// The switches of a path between two places.
pub(crate) fn hops(from: ConnectPoint, path: &[LinkId], to: ConnectPoint) -> Vec<Hop> {
    let entries = std::iter::once(from).chain(path.iter().map(|link| link.to));
    let exits = path.iter().map(|link| link.from.port).chain([to.port]);
    entries.zip(exits).map(|(entry, out_port)| Hop { entry, out_port }).collect()
}

/// Gives a flow the rules of these hops, and removes those of its hops before. The first switch tells when its rule is gone.
pub(crate) fn install(
    (id, number): (FlowId, u64),
    hops: &[Hop],
    before: &[Hop],
    settings: &MultipathSettings,
    out: &mut Commands,
) {
    for (at, hop) in hops.iter().enumerate().rev() {
        let rule = rule(id, *hop, settings, out).cookie(number).idle_timeout_s(settings.idle_timeout_s);
        let rule = if at == 0 { rule.tell_when_removed() } else { rule };
        rule.output(hop.out_port).send();
    }
    for hop in before.iter().filter(|hop| !hops.iter().any(|new| new.entry == hop.entry)) {
        rule(id, *hop, settings, out).delete().send();
    }
}

fn rule<'c>(id: FlowId, hop: Hop, settings: &MultipathSettings, out: &'c mut Commands) -> FlowBuilder<'c> {
    out.rule(hop.entry.switch).priority(settings.priority).matching(|m| {
        m.field(Field::InPort, hop.entry.port)
            .field(Field::EthSrc, id.src.mac)
            .field(Field::EthDst, id.dst.mac);
        if let Some(vlan) = id.dst.vlan {
            m.field(Field::VlanVid, vlan | VLAN_PRESENT);
        }
    })
}
