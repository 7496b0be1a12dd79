//! The decisions of the service: what is learned from a frame, what is believed, what is forgotten.
//!
//! ```text
//!   frames, discovery's records, the time, the operator's changes ──> [ Engine ] ──> Effect: changed, gone, probe, report
//! ```
//!
//! In: events and the time, in milliseconds since 1970. Out: effects, which the service's shell carries out. It never sends,
//! reads a clock, or keeps anything beyond the bounds in `bounds`.

mod changes;
mod expiry;
mod sightings;

pub use changes::{Plan, Refused};

use crate::bounds::{HostsSettings, PROBES_PER_S_MAX};
use crate::claims::Claims;
use crate::edges::{Edges, Lost};
use crate::frame::{self, Told, Unread};
use crate::incidents::Incidents;
use crate::kept::Kept;
use crate::table::{Entry, Table};
use hosts_contract::{Counts, Filter, Incident, IncidentKind};
use std::collections::HashMap;
use std::net::IpAddr;
use view::{ConnectPoint, Host, HostId, Key, Object};

/// What is to be done after an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A host is new, or its place, its addresses or its notes are others.
    Changed(HostId),
    /// A host is gone.
    Gone(HostId),
    /// Ask a host whether it is there.
    Probe {
        /// Where it is.
        at: ConnectPoint,
        /// The host.
        host: HostId,
        /// The address for which it is asked.
        address: IpAddr,
    },
    /// Tell the operator.
    Report(Incident),
}

/// The hosts, and how they become known.
pub struct Engine {
    settings: HostsSettings,
    table: Table,
    edges: Edges,
    claims: Claims,
    incidents: Incidents,
    kept: HashMap<HostId, Kept>,
    counts: Counts,
    /// Probes that may still be sent before `probes_refilled_ms`, and are not about claims.
    probes_left: u32,
    probes_refilled_ms: u64,
}

impl Engine {
    /// No hosts yet.
    pub fn new(settings: HostsSettings) -> Engine {
        Engine {
            settings,
            table: Table::default(),
            edges: Edges::default(),
            claims: Claims::default(),
            incidents: Incidents::default(),
            kept: HashMap::new(),
            counts: Counts::default(),
            probes_left: PROBES_PER_S_MAX,
            probes_refilled_ms: 0,
        }
    }

    /// A frame came in at a port.
    pub fn on_frame(&mut self, at: ConnectPoint, frame: &[u8], now_ms: u64, out: &mut Vec<Effect>) {
        if !self.edges.is_edge(at) {
            self.counts.not_at_edge += 1;
            return;
        }
        match frame::read(frame) {
            Ok(Told::Host { id, address }) => self.sighted(id, at, address, now_ms, out),
            Ok(Told::DhcpServer { id, address, lease }) => {
                self.sighted(id, at, address, now_ms, out);
                self.leased(id, at, lease, now_ms, out);
            }
            Err(Unread::Other) => {}
            Err(Unread::Bad(_)) => self.counts.bad_frames += 1,
        }
    }

    /// A snapshot of discovery's tables begins.
    pub fn on_view_begin(&mut self) {
        self.edges.begin();
    }

    /// The snapshot is complete.
    pub fn on_view_complete(&mut self, now_ms: u64) {
        self.edges.complete(now_ms);
    }

    /// An object of discovery's tables is new or has changed.
    pub fn on_view_put(&mut self, object: &Object, now_ms: u64, out: &mut Vec<Effect>) {
        let lost = self.edges.put(object, now_ms);
        self.remove_learned(lost, out);
    }

    /// An object of discovery's tables is gone.
    pub fn on_view_removed(&mut self, key: Key, out: &mut Vec<Effect>) {
        let lost = self.edges.removed(key);
        self.remove_learned(lost, out);
    }

    /// Removes the learned hosts at ports that can have none.
    fn remove_learned(&mut self, ports: Lost, out: &mut Vec<Effect>) {
        for at in ports {
            let there: Vec<HostId> = self.table.at(at).collect();
            let is_learned = |id: &HostId| self.table.get(*id).is_some_and(|entry| !entry.configured);
            let learned: Vec<HostId> = there.into_iter().filter(is_learned).collect();
            learned.into_iter().for_each(|id| self.forget(id, out));
        }
    }

    fn forget(&mut self, id: HostId, out: &mut Vec<Effect>) {
        if self.table.remove(id).is_some() {
            out.push(Effect::Gone(id));
        }
    }

    /// A host has changed. Several changes by one event are told once.
    fn tell(&self, id: HostId, out: &mut Vec<Effect>) {
        if out.last() != Some(&Effect::Changed(id)) {
            out.push(Effect::Changed(id));
        }
    }

    fn report(&mut self, incident: Incident, out: &mut Vec<Effect>) {
        self.counts.incidents += 1;
        out.extend(self.incidents.add(incident).map(Effect::Report));
    }

    /// A host as others see it.
    pub fn host(&self, id: HostId) -> Option<Host> {
        self.table.get(id).map(seen_by_others)
    }

    /// The hosts behind an id that fit a filter, in the order of their ids.
    pub fn list<'e>(&'e self, filter: &'e Filter, after: Option<HostId>) -> impl Iterator<Item = Host> + 'e {
        let ids: Box<dyn Iterator<Item = HostId> + 'e> = match (filter.address, filter.at) {
            (Some(address), _) => {
                // One in each VLAN: 4,095 at most.
                let mut ids: Vec<_> = self.table.with_address(address).collect();
                ids.sort_unstable();
                Box::new(ids.into_iter())
            }
            (None, Some(at)) => Box::new(self.table.at(at)),
            (None, None) => Box::new(self.table.behind(after)),
        };
        let entries = ids.filter(move |id| after.is_none_or(|after| *id > after));
        entries
            .filter_map(|id| self.table.get(id))
            .filter(move |entry| fits(entry, filter))
            .map(seen_by_others)
    }

    /// The last incidents, the oldest first.
    pub fn incidents(&self) -> impl Iterator<Item = &Incident> {
        self.incidents.last()
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        Counts { hosts: self.table.len() as u64, ..self.counts }
    }
}

fn seen_by_others(entry: &Entry) -> Host {
    Host {
        id: entry.id,
        addresses: entry.addresses.iter().map(|it| it.address).collect(),
        at: entry.at,
        since_ms: entry.since_ms,
        configured: entry.configured,
        annotations: entry.annotations.clone(),
    }
}

fn fits(entry: &Entry, filter: &Filter) -> bool {
    let Filter { switch, at, vlan, address, configured } = *filter;
    switch.is_none_or(|switch| entry.at.switch == switch)
        && at.is_none_or(|at| entry.at == at)
        && vlan.is_none_or(|vlan| entry.id.vlan.unwrap_or_default() == vlan)
        && address.is_none_or(|address| entry.addresses.iter().any(|it| it.address == address))
        && configured.is_none_or(|configured| entry.configured == configured)
}

/// An incident without the parts that not every kind has.
fn incident(kind: IncidentKind, host: HostId, at: ConnectPoint, time_ms: u64) -> Incident {
    Incident { kind, host, at, address: None, holder: None, stays_at: None, repeated: 0, time_ms }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
