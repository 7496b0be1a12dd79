//! The flows that have rules: which path each has, and which flows use a port or belong to a host.
//!
//! In: paths for flows. Out: rules, and deletes of those that are not on the new path. New rules are sent from the end of the path to its
//! beginning, so that a packet that gets a new rule finds the others. Each rule matches its input port, so a packet cannot go in circles.

use burnet_sdk::view::{ConnectPoint, HostId};
use burnet_sdk::{Commands, DatapathId, Field, FlowBuilder, PortNo};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What the operator may set under `[app.forwarding.settings]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ForwardingSettings {
    /// The priority of its rules.
    priority: u16,
    /// Seconds without a packet until a switch removes a rule.
    idle_timeout_s: u16,
    /// The table of its rules in switches that have several.
    pub(crate) table: u8,
}

impl Default for ForwardingSettings {
    fn default() -> Self {
        ForwardingSettings { priority: 10_000, idle_timeout_s: 30, table: 0 }
    }
}

/// How many flows have rules at most. For a further one, the oldest flow loses its rules. If it is still used, its next packet brings it back.
pub(crate) const FLOWS_MAX: usize = 65_536;

/// From one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FlowId {
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
}

/// A switch of a path: where packets come in, and where they go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    entry: ConnectPoint,
    out_port: PortNo,
}

impl Hop {
    pub(crate) fn new(entry: ConnectPoint, out_port: PortNo) -> Hop {
        Hop { entry, out_port }
    }

    /// Where packets come in.
    pub(crate) fn from(self) -> ConnectPoint {
        self.entry
    }

    /// Where they go out.
    fn to(self) -> ConnectPoint {
        ConnectPoint { switch: self.entry.switch, port: self.out_port }
    }
}

#[derive(Debug)]
struct Flow {
    id: FlowId,
    hops: Vec<Hop>,
}

/// The flows, by number and by what concerns them.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    last_number: u64,
    flows: BTreeMap<u64, Flow>,
    numbers: HashMap<FlowId, u64>,
    by_exit: BTreeSet<(ConnectPoint, u64)>,
    by_host: BTreeSet<(HostId, u64)>,
    /// The switches that have one table: those with OpenFlow 1.0.
    one_table: BTreeSet<DatapathId>,
}

/// The app's part of a cookie: the number of the flow.
pub(crate) fn number_of(cookie: u64) -> u64 {
    cookie & COOKIE_MASK
}

/// An app has the lower 48 bits of a cookie.
const COOKIE_MASK: u64 = (1 << 48) - 1;

impl Flows {
    /// Whether a switch has one table.
    pub(crate) fn note_tables(&mut self, switch: DatapathId, has_one: bool) {
        match has_one {
            true => self.one_table.insert(switch),
            false => self.one_table.remove(&switch),
        };
    }

    pub(crate) fn id(&self, number: u64) -> Option<FlowId> {
        self.flows.get(&number).map(|flow| flow.id)
    }

    /// The flows that leave a switch by this port.
    pub(crate) fn through(&self, exit: ConnectPoint) -> impl Iterator<Item = u64> {
        self.by_exit.range((exit, 0)..=(exit, u64::MAX)).map(|(_, number)| *number)
    }

    /// The flows from or to this host.
    pub(crate) fn of(&self, host: HostId) -> impl Iterator<Item = u64> {
        self.by_host.range((host, 0)..=(host, u64::MAX)).map(|(_, number)| *number)
    }

    /// Gives a flow the rules of this path, and removes those of its path before.
    pub(crate) fn install(
        &mut self,
        id: FlowId,
        hops: Vec<Hop>,
        settings: ForwardingSettings,
        out: &mut Commands,
    ) {
        let number = self.numbers.get(&id).copied().unwrap_or_else(|| self.next(settings, out));
        for (at, hop) in hops.iter().enumerate().rev() {
            let rule =
                self.rule(id, *hop, settings, out).cookie(number).idle_timeout_s(settings.idle_timeout_s);
            // One report is enough to forget the flow.
            let rule = if at == 0 { rule.tell_when_removed() } else { rule };
            rule.output(hop.out_port).send();
        }
        let before = self.take(number).map_or_else(Vec::new, |flow| flow.hops);
        let is_replaced = |hop: &Hop| hops.iter().any(|new| new.from() == hop.from());
        for hop in before.into_iter().filter(|hop| !is_replaced(hop)) {
            self.rule(id, hop, settings, out).delete().send();
        }
        self.by_exit.extend(hops.iter().map(|hop| (hop.to(), number)));
        self.by_host.extend([(id.src, number), (id.dst, number)]);
        self.numbers.insert(id, number);
        self.flows.insert(number, Flow { id, hops });
    }

    /// Removes the rules of a flow.
    pub(crate) fn withdraw(&mut self, number: u64, settings: ForwardingSettings, out: &mut Commands) {
        let Some(flow) = self.take(number) else { return };
        for hop in flow.hops {
            self.rule(flow.id, hop, settings, out).delete().send();
        }
    }

    /// Forgets a flow. Its rules end by their time-outs.
    pub(crate) fn forget(&mut self, number: u64) {
        self.take(number);
    }

    fn take(&mut self, number: u64) -> Option<Flow> {
        let flow = self.flows.remove(&number)?;
        self.numbers.remove(&flow.id);
        for hop in &flow.hops {
            self.by_exit.remove(&(hop.to(), number));
        }
        self.by_host.remove(&(flow.id.src, number));
        self.by_host.remove(&(flow.id.dst, number));
        Some(flow)
    }

    fn rule<'c>(
        &self,
        id: FlowId,
        hop: Hop,
        settings: ForwardingSettings,
        out: &'c mut Commands,
    ) -> FlowBuilder<'c> {
        let Hop { entry, .. } = hop;
        let table = if self.one_table.contains(&entry.switch) { 0 } else { settings.table };
        out.rule(entry.switch).table(table).priority(settings.priority).matching(|m| {
            m.field(Field::InPort, entry.port)
                .field(Field::EthSrc, id.src.mac)
                .field(Field::EthDst, id.dst.mac);
            if let Some(vlan) = id.dst.vlan {
                m.field(Field::VlanVid, vlan | VLAN_PRESENT);
            }
        })
    }

    fn next(&mut self, settings: ForwardingSettings, out: &mut Commands) -> u64 {
        if self.flows.len() >= FLOWS_MAX
            && let Some((oldest, _)) = self.flows.first_key_value()
        {
            self.withdraw(*oldest, settings, out);
        }
        self.last_number = (self.last_number + 1) & COOKIE_MASK;
        self.last_number
    }
}

/// OFPVID_PRESENT (OpenFlow 1.3.5, 7.2.3.7).
const VLAN_PRESENT: u16 = 0x1000;
