//! The flowspace of a slice at one switch: its ports, and the packets that enter by them.
//!
//! ```text
//!   a tenant's match (its port numbers, untagged) ──> narrow ──> pieces: matches of the physical switch, each for one input port
//! ```
//!
//! Each piece lies within the flowspace, and together they match the tenant's packets that do. A piece has an input port always: a
//! host on another slice's port can send a frame with this slice's tag, and must not reach the slice's rules with it.
//!
//! In: the plan, matches, frames. Out: pieces, port numbers, yes or no. It holds no rule, and knows no action.

use crate::plan::{Isolation, PortPlan};
use crate::port::VirtualPort;
use crate::refusal::{FLOW_MOD_EPERM, MATCH_FIELD, Refusal};
use crate::tag::outer_tag;
use flow::canonical::check_prerequisites;
use flow::frame::FrameFields;
use flow::relation::{covers, intersection, is_nothing};
use flow::{Field, Match, MatchEntry, PortNo};
use std::collections::BTreeMap;

/// OFPVID_PRESENT: the bit of vlan_vid that is set if the packet has a tag.
pub(crate) const VLAN_PRESENT: u16 = 0x1000;

/// The packets of the slice that enter by one port, or some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The port by which they enter, as the tenant sees it.
    pub(crate) in_port: PortNo,
    /// Whether they have the slice's tag.
    pub(crate) is_tagged: bool,
    /// The match in the physical switch.
    pub(crate) matching: Match,
}

/// A slice's part of one switch.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// The slice's tag, if it has one.
    pub(crate) tag: Option<u16>,
    /// By the number that the tenant sees.
    ports: BTreeMap<PortNo, VirtualPort>,
    /// From physical ports to the numbers that the tenant sees.
    shown: BTreeMap<PortNo, PortNo>,
    /// All packets of the slice, by port.
    entries: Vec<Piece>,
}

impl Space {
    /// The flowspace of these ports. The plan was checked.
    pub(crate) fn new(isolation: &Isolation, ports: &[PortPlan]) -> Space {
        let tag = match isolation {
            Isolation::Vlan(tag) => Some(*tag),
            Isolation::Flowspace(_) => None,
        };
        Space {
            tag,
            ports: ports.iter().map(|port| (port.shown_as, VirtualPort::new(*port))).collect(),
            shown: ports.iter().map(|port| (port.port, port.shown_as)).collect(),
            entries: ports.iter().flat_map(|port| entries_of(isolation, port)).collect(),
        }
    }

    /// All packets of the slice.
    pub(crate) fn entries(&self) -> &[Piece] {
        &self.entries
    }

    /// The packets of the slice that enter by a port, as the tenant sees them.
    pub(crate) fn packets_of(&self, shown: PortNo) -> Vec<Match> {
        let here = self.entries.iter().filter(|entry| entry.in_port == shown);
        let without = |entry: &Piece| {
            let mut matching = entry.matching.clone();
            matching.remove(Field::InPort);
            if self.tag.is_some() {
                matching.remove(Field::VlanVid);
            }
            matching
        };
        here.map(without).collect()
    }

    /// A port by the tenant's number.
    pub(crate) fn port(&self, shown: PortNo) -> Option<&VirtualPort> {
        self.ports.get(&shown)
    }

    /// The same, to be changed.
    pub(crate) fn port_mut(&mut self, shown: PortNo) -> Option<&mut VirtualPort> {
        self.ports.get_mut(&shown)
    }

    /// All ports, in the order of the tenant's numbers.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &VirtualPort> {
        self.ports.values()
    }

    /// The same, to be changed.
    pub(crate) fn ports_mut(&mut self) -> impl Iterator<Item = &mut VirtualPort> {
        self.ports.values_mut()
    }

    /// The tenant's number of a physical port.
    pub(crate) fn shown(&self, physical: PortNo) -> Option<PortNo> {
        self.shown.get(&physical).copied()
    }

    /// Whether frames have the slice's tag at a port.
    pub(crate) fn is_tagged_at(&self, port: &VirtualPort) -> bool {
        self.tag.is_some() && !port.plan.is_edge
    }

    /// Whether the slice has ports at which its frames have a tag.
    pub(crate) fn has_tagged_ports(&self) -> bool {
        self.ports.values().any(|port| self.is_tagged_at(port))
    }

    /// The pieces of a tenant's match: at least one. Those of closed ports are among them.
    pub(crate) fn narrow(&self, wanted: &Match) -> Result<Vec<Piece>, Refusal> {
        check_fields(wanted)?;
        check_prerequisites(wanted)?;
        let (in_port, rest) = self.read(wanted)?;
        let all: Vec<Piece> = self
            .entries
            .iter()
            .filter(|entry| in_port.is_none_or(|port| port == entry.in_port))
            .filter_map(|entry| {
                let matching = intersection(&rest, &entry.matching)?.sorted();
                Some(Piece { matching, ..entry.clone() })
            })
            .collect();
        if all.is_empty() {
            return Err(Refusal::new(FLOW_MOD_EPERM, "the match has no packet of the slice's flowspace"));
        }
        Ok(without_covered(all))
    }

    /// The input port of a tenant's match, and its other fields as the physical switch sees them.
    fn read(&self, wanted: &Match) -> Result<(Option<PortNo>, Match), Refusal> {
        let (mut in_port, mut rest) = (None, Match::any());
        for entry in wanted.entries() {
            match entry {
                MatchEntry::Field { mask: Some(0), .. } => {}
                MatchEntry::Field { field: Field::InPort, value, .. } => {
                    let number = u32::try_from(*value).map_or(PortNo::ANY, PortNo);
                    if !self.ports.contains_key(&number) {
                        let why = format!("port {number} is not in the slice");
                        return Err(Refusal::new(FLOW_MOD_EPERM, why));
                    }
                    in_port = Some(number);
                }
                MatchEntry::Field { field: Field::VlanVid, value, .. } if self.tag.is_some() => {
                    if *value != 0 {
                        return Err(no_tags());
                    }
                }
                MatchEntry::Field { field: Field::VlanPcp, .. } if self.tag.is_some() => {
                    return Err(no_tags());
                }
                // `check_fields` has refused those that are unknown.
                other => rest.put(other.clone()),
            }
        }
        if is_nothing(&rest) {
            return Err(Refusal::new(FLOW_MOD_EPERM, "the match has no packet at all"));
        }
        Ok((in_port, rest))
    }

    /// Whether a whole frame that enters by this port, as the physical switch sees it, is of the slice. `in_port` is the tenant's
    /// number; without one, the frame may be of any port.
    pub(crate) fn holds(&self, in_port: Option<PortNo>, frame: &[u8]) -> bool {
        let fields = FrameFields::read(frame);
        self.entries.iter().filter(|entry| in_port.is_none_or(|port| port == entry.in_port)).any(|entry| {
            let physical = self.ports.get(&entry.in_port).map(|port| port.plan.port);
            physical.is_some_and(|port| entry.matching.matches(&fields.from_port(port)))
        })
    }

    /// Whether the outermost tag of a frame is the slice's.
    pub(crate) fn has_tag(&self, frame: &[u8]) -> bool {
        self.tag.is_some() && outer_tag(frame) == self.tag
    }
}

/// Whether the virtual switch knows all fields of a match.
fn check_fields(wanted: &Match) -> Result<(), Refusal> {
    let unknown = wanted.entries().iter().find_map(|entry| match entry {
        MatchEntry::Field { mask: Some(0), .. } => None,
        MatchEntry::Field {
            field: field @ (Field::InPhyPort | Field::Metadata | Field::TunnelId), ..
        } => Some(format!("a slice's switch has no {}", field.name())),
        MatchEntry::Field { .. } => None,
        MatchEntry::Unknown { header, .. } => Some(format!("field {header:#010x} is none of OpenFlow's")),
    });
    unknown.map_or(Ok(()), |why| Err(Refusal::new(MATCH_FIELD, why)))
}

fn no_tags() -> Refusal {
    Refusal::new(FLOW_MOD_EPERM, "the frames of this slice have no tag that its tenant sees")
}

/// The packets of the slice that enter by a port.
fn entries_of(isolation: &Isolation, port: &PortPlan) -> Vec<Piece> {
    let piece = |is_tagged, matching: Match| Piece {
        in_port: port.shown_as,
        is_tagged,
        matching: matching.with(Field::InPort, port.port).sorted(),
    };
    match isolation {
        Isolation::Vlan(_) if port.is_edge => vec![piece(false, Match::any().with(Field::VlanVid, 0u16))],
        Isolation::Vlan(tag) => vec![piece(true, Match::any().with(Field::VlanVid, tag | VLAN_PRESENT))],
        Isolation::Flowspace(matches) => {
            let is_here = |space: &&Match| {
                space.get(Field::InPort).is_none_or(|(there, _)| there == u128::from(port.port.0))
            };
            without_covered(matches.iter().filter(is_here).map(|space| piece(false, space.clone())).collect())
        }
    }
}

/// The pieces that no other piece covers. Of two equal ones, the first stays.
fn without_covered(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut kept: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let is_below = |one: &Piece, other: &Piece| {
            one.in_port == other.in_port && covers(&other.matching, &one.matching)
        };
        if kept.iter().any(|there| is_below(&piece, there)) {
            continue;
        }
        kept.retain(|there| !is_below(there, &piece));
        kept.push(piece);
    }
    kept
}
