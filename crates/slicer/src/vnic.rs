//! VNICs of a slice, and the paths of flows between them.
//!
//! In: nothing. Out: values. The names are those of the operator's file. A path is of physical links, because links are what slices share.

use crate::plan::{BadPlan, End, LinkPlan, SlicePlan};
use flow::{DatapathId, PortNo};
use std::collections::BTreeMap;

/// A VNIC: a port of the slice behind which a promise of bandwidth holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vnic {
    /// Its name.
    pub name: String,
    /// The port, with the number that the tenant sees. Several VNICs of a slice can be behind one port.
    pub at: End,
}

/// One direction of a link, by the ports of the physical switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PhysicalLink {
    /// The switch that sends.
    pub from: DatapathId,
    /// Its port.
    pub from_port: PortNo,
    /// The switch that receives.
    pub to: DatapathId,
    /// Its port.
    pub to_port: PortNo,
}

/// The way of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowPath {
    /// Its links, first to last. None if both VNICs are at one switch.
    pub links: Vec<PhysicalLink>,
    /// How many rules make the path: one for each switch.
    pub rules: u32,
}

/// A flow has a path, another path, or no path any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowChange {
    /// The VNIC that sends.
    pub from: String,
    /// The VNIC that receives.
    pub to: String,
    /// The path. `None`: the rules bring no packets from one to the other.
    pub path: Option<FlowPath>,
}

/// What is behind the ports of a slice: other ports, and VNICs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wiring {
    pub(crate) peers: BTreeMap<End, (End, PhysicalLink)>,
    pub(crate) vnics: BTreeMap<End, Vec<String>>,
}

impl Wiring {
    /// The links of a plan, and these VNICs.
    ///
    /// # Errors
    /// A VNIC is at a port that the slice does not have.
    pub(crate) fn new(plan: &SlicePlan, vnics: &[Vnic]) -> Result<Wiring, BadPlan> {
        let mut wiring = Wiring::default();
        for (link, [there, back]) in plan.links.iter().filter_map(|link| Some((link, physical(plan, link)?)))
        {
            wiring.peers.insert(link.from, (link.to, there));
            wiring.peers.insert(link.to, (link.from, back));
        }
        for vnic in vnics {
            if port_of(plan, vnic.at).is_none() {
                let (port, switch) = (vnic.at.port, vnic.at.datapath);
                let why = format!(
                    "VNIC {} is at port {port} of switch {switch}, which is not in the slice",
                    vnic.name
                );
                return Err(BadPlan(format!("slice {}: {why}", plan.name)));
            }
            wiring.vnics.entry(vnic.at).or_default().push(vnic.name.clone());
        }
        Ok(wiring)
    }
}

impl SlicePlan {
    /// Both directions of all links, by the ports of the physical switches.
    pub fn physical_links(&self) -> Vec<PhysicalLink> {
        self.links.iter().filter_map(|link| physical(self, link)).flatten().collect()
    }
}

/// Both directions of a link, by physical ports. `None`: an end is not in the plan.
fn physical(plan: &SlicePlan, link: &LinkPlan) -> Option<[PhysicalLink; 2]> {
    let (from_port, to_port) = (port_of(plan, link.from)?, port_of(plan, link.to)?);
    let there = PhysicalLink { from: link.from.datapath, from_port, to: link.to.datapath, to_port };
    let back = PhysicalLink { from: there.to, from_port: to_port, to: there.from, to_port: from_port };
    Some([there, back])
}

fn port_of(plan: &SlicePlan, end: End) -> Option<PortNo> {
    let switch = plan.switches.iter().find(|switch| switch.datapath == end.datapath)?;
    switch.ports.iter().find(|port| port.shown_as == end.port).map(|port| port.port)
}
