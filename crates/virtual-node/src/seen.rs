//! What is seen of a node: rules, errors, packet-ins, labels and flows of its slices.
//!
//! In: a node. Out: values. It changes nothing.

use crate::node::{Member, Node};
use crate::tenant::TenantError;
use flow::DatapathId;
use labels_contract::{Flow, Label};
use view::LinkId;

/// The rules of a slice at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Those of the tenant.
    pub tenant: usize,
    /// The entries of the physical switch that they are.
    pub entries: usize,
}

impl Node {
    fn of(&self, slice: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.settings.name == slice)
    }

    /// What the operator would read in the log.
    pub fn log(&self) -> &[String] {
        &self.log
    }

    /// How many packet-ins the controller of a slice got.
    pub fn packet_ins(&self, slice: &str) -> u64 {
        self.of(slice).map_or(0, |member| member.packet_ins)
    }

    /// The errors that the controller of a slice got, and how often.
    pub fn errors(&self, slice: &str) -> Vec<(TenantError, u64)> {
        let errors = self.of(slice).into_iter().flat_map(|member| &member.tenant.errors);
        errors.map(|(error, count)| (error.clone(), *count)).collect()
    }

    /// The rules of a slice at a switch, if it has the switch.
    pub fn rules(&self, slice: &str, datapath: DatapathId) -> Option<Rules> {
        let (tenant, entries) = self.of(slice)?.zone.slicer().rules(datapath)?;
        Some(Rules { tenant, entries })
    }

    /// The label of a link that a slice was told last.
    pub fn label(&self, slice: &str, link: LinkId) -> Option<Label> {
        self.service.known(slice, link)
    }

    /// How many labels slices were told.
    pub fn notices(&self) -> u64 {
        self.service.notices()
    }

    /// The flows of a slice, as the service of labels knows them.
    pub fn flows(&self, slice: &str) -> Vec<Flow> {
        self.service.flows(slice)
    }

    /// How many frames came up by the same port too often in a second: packets circulate.
    pub fn storms(&self) -> u64 {
        self.circles.storms
    }

    /// How often controllers moved a flow to another path.
    pub fn moves(&self) -> usize {
        self.members.iter().map(|member| member.tenant.moves()).sum()
    }

    /// The commands of a slice that the kernel refused: the sentence, and how often.
    pub fn refused(&self, slice: &str) -> Vec<(String, u64)> {
        let refused = self.of(slice).into_iter().flat_map(|member| &member.refused);
        refused.map(|(why, count)| (why.clone(), *count)).collect()
    }
}
