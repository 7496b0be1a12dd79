//! The plan of a slice: its switches, ports, links, isolation and limits, as the operator wrote it.
//!
//! In: values that the caller read from a file. Out: the same, or the sentence that says what is wrong. It never reads a file, and never
//! compares slices with each other.

use crate::addresses::{AddressPlan, HostPlan};
use flow::canonical::check_prerequisites;
use flow::relation::is_nothing;
use flow::{DatapathId, Field, Match, MatchEntry, PortNo};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// The most ports of a slice at one switch. A rule without an input port becomes as many pieces.
pub const PORTS_MAX: usize = 256;
/// The most matches of a flowspace. A rule becomes up to as many pieces for each port.
pub const MATCHES_MAX: usize = 64;
/// The most switches of a slice. The number of a switch is a part of each ticket.
pub const SWITCHES_MAX: usize = 4_096;
/// The most groups, and the most meters, of a slice at one switch.
pub const NUMBERS_MAX: u32 = 4_096;
/// The highest VLAN id that a tag can have (IEEE 802.1Q: 0xfff is reserved).
pub const TAG_MAX: u16 = 4_094;

/// A slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePlan {
    /// Its name.
    pub name: String,
    /// How its packets differ from those of other slices.
    pub isolation: Isolation,
    /// Whether the tenant may only observe: it hears packets and statistics, and changes nothing.
    pub is_read_only: bool,
    /// Its switches.
    pub switches: Vec<SwitchPlan>,
    /// Its links. Each is between two ports of the slice, over one or several links of the network.
    pub links: Vec<LinkPlan>,
    /// What it may use of each switch.
    pub limits: Limits,
    /// Its groups and meters in the physical switches.
    pub numbers: Numbers,
}

/// The numbers of groups and meters in the physical switches that are a slice's. The tenant has numbers of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Numbers of groups.
    pub groups: Range<u32>,
    /// Numbers of meters.
    pub meters: Range<u32>,
}

impl Numbers {
    /// No groups and no meters.
    pub const NONE: Numbers = Numbers { groups: 0..0, meters: 0..0 };

    fn check(&self) -> Result<(), String> {
        match [&self.groups, &self.meters].into_iter().map(count).max() {
            Some(most) if most > NUMBERS_MAX => {
                Err(format!("{most} numbers of groups or meters are more than {NUMBERS_MAX}"))
            }
            _ => Ok(()),
        }
    }
}

/// How many numbers there are.
pub(crate) fn count(numbers: &Range<u32>) -> u32 {
    numbers.end.saturating_sub(numbers.start)
}

/// How the packets of a slice differ from those of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// They have this VLAN tag between switches, and no tag at the edge. The tenant sees untagged frames, and owns all addresses.
    Vlan(u16),
    /// They are within one of these matches. `in_port` in them is the port of the physical switch.
    Flowspace(Vec<Match>),
    /// Their IPv4 addresses are of a prefix between switches, and of the tenant's own at the edge.
    Address(AddressPlan),
}

/// A switch of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPlan {
    /// The physical switch.
    pub datapath: DatapathId,
    /// The datapath id that the tenant sees.
    pub shown_as: DatapathId,
    /// The ports of the slice.
    pub ports: Vec<PortPlan>,
}

/// A port of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// The port of the physical switch.
    pub port: PortNo,
    /// The number that the tenant sees. It is at most 0xfeff, so that OpenFlow 1.0 can express it.
    pub shown_as: PortNo,
    /// Whether no other slice has the port: any packet of the slice may leave there, and its counters are the slice's.
    pub is_edge: bool,
}

/// A virtual link of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPlan {
    /// One end: the physical switch, and the number of the port that the tenant sees.
    pub from: End,
    /// The other end.
    pub to: End,
}

/// An end of a virtual link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The physical switch.
    pub datapath: DatapathId,
    /// The number of the port that the tenant sees.
    pub port: PortNo,
}

/// A limit for uses per second, or for a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Above it, the operator is told, at most once a second.
    pub soft: u32,
    /// Above it, the use is refused.
    pub hard: u32,
}

impl Limit {
    /// No limit.
    pub const NONE: Limit = Limit { soft: u32::MAX, hard: u32::MAX };
}

/// What a slice may use of each switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Packet-ins per second. Those above the hard limit are dropped and counted.
    pub packet_ins_per_s: Limit,
    /// Packet-outs per second. Those above the hard limit get an error.
    pub packet_outs_per_s: Limit,
    /// Flow mods, group mods, meter mods and port mods per second. Those above the hard limit get an error. A port mod counts once more for
    /// each rule and group that it changes in the physical switch; the next messages may have to wait for that. When the first controller
    /// of 1.0 connects, or the last one disconnects, the floor changes, which counts as one. A controller of 1.0 that needs another floor
    /// above the hard limit is disconnected.
    pub flow_mods_per_s: Limit,
    /// Statistics requests per second. Those above the hard limit get an error.
    pub statistics_per_s: Limit,
    /// Rules in the physical switch: each piece counts, also one whose port the tenant has closed. A rule above the hard limit gets the error of a full table.
    pub rules: Limit,
}

impl Default for Limits {
    /// No limits per second, and 4,096 rules.
    fn default() -> Limits {
        let per_s = Limit::NONE;
        Limits {
            packet_ins_per_s: per_s,
            packet_outs_per_s: per_s,
            flow_mods_per_s: per_s,
            statistics_per_s: per_s,
            rules: Limit { soft: 3_072, hard: 4_096 },
        }
    }
}

/// A plan that cannot be carried out. It is the operator's fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPlan(pub String);

impl fmt::Display for BadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPlan {}

impl SlicePlan {
    /// Checks the plan by itself.
    ///
    /// # Errors
    /// A sentence that names the slice, the wrong value and what is allowed.
    pub fn check(&self) -> Result<(), BadPlan> {
        let bad = |what: String| Err(BadPlan(format!("slice {}: {what}", self.name)));
        if self.switches.len() > SWITCHES_MAX {
            return bad(format!("{} switches are more than {SWITCHES_MAX}", self.switches.len()));
        }
        let mut seen = BTreeSet::new();
        for switch in &self.switches {
            if !seen.insert(switch.datapath) {
                return bad(format!("switch {} is there twice", switch.datapath));
            }
            if let Err(what) = switch.check() {
                return bad(format!("switch {}: {what}", switch.datapath));
            }
        }
        if let Err(what) = self.isolation.check().and_then(|()| self.numbers.check()) {
            return bad(what);
        }
        if let Some(host) = self.host_elsewhere() {
            return bad(format!(
                "host {} is at port {} of switch {}, which is no edge port of the slice",
                host.address, host.port, host.datapath
            ));
        }
        for link in &self.links {
            if let Some(end) = [link.from, link.to].into_iter().find(|end| !self.has(*end)) {
                return bad(format!(
                    "a link ends at port {} of switch {}, which is not in the slice",
                    end.port, end.datapath
                ));
            }
        }
        Ok(())
    }

    /// A host that is not at an edge port of the slice.
    fn host_elsewhere(&self) -> Option<&HostPlan> {
        let Isolation::Address(addresses) = &self.isolation else { return None };
        let is_there = |host: &&HostPlan| {
            let mut switches = self.switches.iter().filter(|switch| switch.datapath == host.datapath);
            switches.any(|switch| switch.ports.iter().any(|port| port.is_edge && port.port == host.port))
        };
        addresses.hosts.iter().find(|host| !is_there(host))
    }

    fn has(&self, end: End) -> bool {
        let mut switches = self.switches.iter();
        switches
            .any(|it| it.datapath == end.datapath && it.ports.iter().any(|port| port.shown_as == end.port))
    }
}

impl SwitchPlan {
    fn check(&self) -> Result<(), String> {
        /// The highest number below the reserved ones of OpenFlow 1.0.
        const SHOWN_MAX: u32 = 0xfeff;
        if self.ports.len() > PORTS_MAX {
            return Err(format!("{} ports are more than {PORTS_MAX}", self.ports.len()));
        }
        let (mut ports, mut shown) = (BTreeSet::new(), BTreeSet::new());
        for port in &self.ports {
            if port.port.0 == 0 || port.port > PortNo::MAX {
                return Err(format!("port {} is no port of a switch", port.port));
            }
            if port.shown_as.0 == 0 || port.shown_as.0 > SHOWN_MAX {
                return Err(format!(
                    "port {} is shown as {}: write 1 to {SHOWN_MAX}",
                    port.port, port.shown_as
                ));
            }
            if !ports.insert(port.port) || !shown.insert(port.shown_as) {
                return Err(format!("port {} or its number {} is there twice", port.port, port.shown_as));
            }
        }
        Ok(())
    }
}

impl Isolation {
    fn check(&self) -> Result<(), String> {
        match self {
            Isolation::Vlan(tag) if *tag == 0 || *tag > TAG_MAX => {
                Err(format!("VLAN {tag} cannot be a slice's: write 1 to {TAG_MAX}"))
            }
            Isolation::Vlan(_) => Ok(()),
            Isolation::Flowspace(matches) if matches.len() > MATCHES_MAX => {
                Err(format!("{} matches in a flowspace are more than {MATCHES_MAX}", matches.len()))
            }
            Isolation::Flowspace(matches) => matches.iter().try_for_each(check_match),
            Isolation::Address(addresses) => addresses.check(),
        }
    }
}

/// A match of a flowspace: of fields that packets carry, complete, and not empty.
fn check_match(space: &Match) -> Result<(), String> {
    let shown = || flow::text::match_to_string(space);
    let is_carried = |entry: &MatchEntry| match entry {
        MatchEntry::Field { field, .. } => {
            !matches!(field, Field::Metadata | Field::TunnelId | Field::InPhyPort)
        }
        MatchEntry::Unknown { .. } => false,
    };
    if !space.entries().iter().all(is_carried) {
        return Err(format!("`{}` has a field that no packet carries between switches", shown()));
    }
    if let Err(bad) = check_prerequisites(&space.clone().sorted()) {
        return Err(format!("`{}`: {bad}", shown()));
    }
    if is_nothing(space) { Err(format!("`{}` matches no packet", shown())) } else { Ok(()) }
}
