//! The paths of an intent, and what they need: the answer of the compiler.
//!
//! In: numbers of links. Out: ends and hops. It decides nothing.

use flow::{DatapathId, PortNo};
use flows_contract::Hop;
use graph::{LinkNo, Topology};
use view::ConnectPoint;

/// One path of an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Which of the intent's ways. Both paths of a protected way have the same number.
    pub number: u16,
    /// Whether it is the backup.
    pub backup: bool,
    /// Where packets enter the network.
    pub from: ConnectPoint,
    /// Where they leave it.
    pub to: ConnectPoint,
    /// The links between.
    pub links: Vec<LinkNo>,
}

/// The paths of an intent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The paths. A backup follows the path that it backs up.
    pub legs: Vec<Leg>,
    /// Why the intent has less than it wants.
    pub lacks: Option<String>,
}

impl Leg {
    /// The switches with their ports, from the first to the last.
    pub fn hops<'t>(&'t self, topology: &'t Topology) -> impl Iterator<Item = Hop> + 't {
        let ends = self.links.iter().map(|link| topology.slot(*link).id);
        let entries = std::iter::once(self.from).chain(ends.clone().map(|id| id.to));
        let exits = ends.map(|id| id.from.port).chain([self.to.port]);
        entries.zip(exits).map(|(entry, out_port)| Hop {
            switch: entry.switch,
            in_port: entry.port,
            out_port,
        })
    }
}

impl Plan {
    /// Each link of the plan, once for each path that uses it.
    pub fn links(&self) -> impl Iterator<Item = LinkNo> {
        self.legs.iter().flat_map(|leg| leg.links.iter().copied())
    }

    /// Whether packets of the plan pass this switch.
    pub fn visits(&self, topology: &Topology, switch: DatapathId) -> bool {
        self.legs.iter().any(|leg| {
            leg.from.switch == switch
                || leg.links.iter().any(|link| topology.slot(*link).id.to.switch == switch)
        })
    }

    /// The backup of a path.
    pub fn backup_of(&self, leg: &Leg) -> Option<&Leg> {
        self.legs.iter().find(|other| other.backup && other.number == leg.number)
    }
}

/// The port to write into a rule: a switch sends a packet back only if the rule says IN_PORT.
pub fn output_port(in_port: PortNo, out_port: PortNo) -> PortNo {
    if in_port == out_port { PortNo::IN_PORT } else { out_port }
}
