//! A slice in the words of the virtual switch.
//!
//! In: a slice. Out: `slicer::SlicePlan`. It chooses no links: a slice that names only VNICs gets those that the caller has chosen.

use super::slice::{Addresses, Line, Slice, SliceHost, SliceIsolation, SliceLink, SlicePort};
use flow::{DatapathId, PortNo};
use slicer::{AddressPlan, BadPlan, End, HostPlan, Isolation, LinkPlan, PortPlan, SlicePlan, SwitchPlan};
use std::collections::BTreeMap;
use view::{ConnectPoint, LinkId};

impl Slice {
    /// Whether the slice has VNICs at several switches, and names no links between them. Then links must be chosen for it.
    pub fn needs_links(&self) -> bool {
        let mut switches = self.vnics.iter().map(|vnic| vnic.at.switch);
        let first = switches.next();
        self.links.is_none() && switches.any(|switch| Some(switch) != first)
    }

    /// The same slice with these links, of which each is one direction. A port at an end of a link is shown with its own number if that is free, or else
    /// with the lowest free one.
    #[must_use]
    pub fn with_links(&self, links: &[LinkId]) -> Slice {
        let mut slice = self.clone();
        let line = self.line;
        for end in links.iter().flat_map(|link| [link.from, link.to]) {
            if let Err(place) = slice.place_of(end) {
                let shown_as = slice.free_number(end);
                slice.ports.insert(place, SlicePort { at: end, shown_as, is_own: false, line });
            }
        }
        slice.links = Some(links.iter().map(|id| SliceLink { id: *id, line }).collect());
        slice
    }

    /// A port of the slice.
    pub fn port(&self, at: ConnectPoint) -> Option<&SlicePort> {
        self.place_of(at).ok().map(|place| &self.ports[place])
    }

    /// Where a port is, or would be.
    fn place_of(&self, at: ConnectPoint) -> Result<usize, usize> {
        self.ports.binary_search_by_key(&at, |port| port.at)
    }

    /// The line on which a port is written, or that of the section.
    pub fn line_of(&self, at: ConnectPoint) -> Line {
        self.port(at).map_or(self.line, |port| port.line)
    }

    fn free_number(&self, at: ConnectPoint) -> PortNo {
        let is_free = |number: &PortNo| {
            !self.ports.iter().any(|port| port.at.switch == at.switch && port.shown_as == *number)
        };
        // A slice has fewer ports than there are numbers.
        Some(at.port).filter(is_free).or_else(|| (1..).map(PortNo).find(is_free)).unwrap_or(at.port)
    }

    /// The plan of its virtual switches.
    ///
    /// # Errors
    /// A sentence that names the slice, and what cannot be.
    pub fn plan(&self) -> Result<SlicePlan, BadPlan> {
        let isolation = match &self.isolation {
            SliceIsolation::Vlan(tag) => Isolation::Vlan(*tag),
            SliceIsolation::Flowspace(packets) => {
                Isolation::Flowspace(packets.iter().map(|it| it.matching.clone()).collect())
            }
            SliceIsolation::Address(addresses) => Isolation::Address(addresses.plan()),
        };
        let plan = self.plan_with(isolation);
        plan.check().map(|()| plan)
    }

    fn plan_with(&self, isolation: Isolation) -> SlicePlan {
        let mut switches: BTreeMap<DatapathId, SwitchPlan> = BTreeMap::new();
        let empty = |datapath, shown_as| SwitchPlan { datapath, shown_as, ports: Vec::new() };
        for switch in self.switches.iter().flatten() {
            switches.insert(switch.datapath, empty(switch.datapath, switch.shown_as));
        }
        for port in &self.ports {
            let datapath = port.at.switch;
            let switch = switches.entry(datapath).or_insert_with(|| empty(datapath, datapath));
            let SlicePort { shown_as, is_own, .. } = *port;
            switch.ports.push(PortPlan { port: port.at.port, shown_as, is_edge: is_own });
        }
        let end = |at: ConnectPoint| {
            let port = self.port(at).map_or(at.port, |port| port.shown_as);
            End { datapath: at.switch, port }
        };
        let link = |link: &SliceLink| LinkPlan { from: end(link.id.from), to: end(link.id.to) };
        SlicePlan {
            name: self.name.clone(),
            isolation,
            is_read_only: self.is_read_only,
            switches: switches.into_values().collect(),
            links: self.links.iter().flatten().map(link).collect(),
            limits: self.limits,
            numbers: self.numbers.clone(),
        }
    }
}

impl Addresses {
    fn plan(&self) -> AddressPlan {
        let host = |host: &SliceHost| HostPlan {
            address: host.address,
            datapath: host.at.switch,
            port: host.at.port,
        };
        AddressPlan {
            tenant: self.tenant.address,
            physical: self.prefix.address,
            length: self.prefix.length,
            hosts: self.hosts.iter().map(host).collect(),
        }
    }
}
