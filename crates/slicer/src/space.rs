//! The flowspace of a slice at one switch: its ports, and the packets that enter by them.
//!
//! ```text
//!   a tenant's match (its port numbers, untagged, own addresses) ──> narrow ──> pieces: matches of the physical switch, each for one input port
//! ```
//!
//! A packet is *dressed* if it has what tells it from those of other slices: the slice's tag, or addresses of the slice's prefix. Packets are
//! dressed between switches, and undressed at the edge. With a flowspace, they are never dressed.
//!
//! Each piece lies within the flowspace, and together they match the tenant's packets that do. A piece has an input port always: a
//! host on another slice's port can send a frame with this slice's tag, and must not reach the slice's rules with it.
//!
//! In: the plan, matches, frames. Out: pieces, port numbers, yes or no. It holds no rule, and knows no action.

use crate::addresses::{AddressPlan, HostPlan, exact_address, fields_of};
use crate::journal::crc32;
use crate::plan::{Isolation, PortPlan, SwitchPlan};
use crate::port::VirtualPort;
use crate::readdress::readdressed;
use crate::refusal::{ACTION_EPERM, ACTION_OUT_PORT, FLOW_MOD_EPERM, MATCH_FIELD, Refusal};
use crate::tag::{outer_tag, stripped, tagged};
use flow::canonical::check_prerequisites;
use flow::frame::FrameFields;
use flow::relation::{covers, intersection, is_nothing};
use flow::{DatapathId, Field, Match, MatchEntry, PortNo};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// OFPVID_PRESENT: the bit of vlan_vid that is set if the packet has a tag.
pub(crate) const VLAN_PRESENT: u16 = 0x1000;

/// The packets of the slice that enter by one port, or some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The port by which they enter, as the tenant sees it.
    pub(crate) in_port: PortNo,
    /// Whether they are dressed.
    pub(crate) is_dressed: bool,
    /// The match in the physical switch.
    pub(crate) matching: Match,
}

/// A slice's part of one switch.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// The slice's tag, if it has one.
    pub(crate) tag: Option<u16>,
    /// The slice's addresses, if they differ between switches.
    pub(crate) addresses: Option<Arc<AddressPlan>>,
    datapath: DatapathId,
    /// By the number that the tenant sees.
    ports: BTreeMap<PortNo, VirtualPort>,
    /// From physical ports to the numbers that the tenant sees.
    shown: BTreeMap<PortNo, PortNo>,
    /// All packets of the slice, by port.
    entries: Vec<Piece>,
}

impl Space {
    /// The flowspace of these ports. The plan was checked.
    pub(crate) fn new(isolation: &Isolation, switch: &SwitchPlan) -> Space {
        let (tag, addresses) = match isolation {
            Isolation::Vlan(tag) => (Some(*tag), None),
            Isolation::Flowspace(_) => (None, None),
            Isolation::Address(addresses) => (None, Some(Arc::new(addresses.clone()))),
        };
        let (datapath, ports) = (switch.datapath, &switch.ports);
        Space {
            tag,
            addresses,
            datapath,
            ports: ports.iter().map(|port| (port.shown_as, VirtualPort::new(*port))).collect(),
            shown: ports.iter().map(|port| (port.port, port.shown_as)).collect(),
            entries: ports.iter().flat_map(|port| entries_of(isolation, datapath, port)).collect(),
        }
    }

    /// Takes ports, by their numbers in the physical switch, and hosts away. Returns the packets that are not the slice's any more.
    pub(crate) fn give_up(&mut self, ports: &BTreeSet<PortNo>, hosts: &BTreeSet<Ipv4Addr>) -> Vec<Match> {
        self.ports.retain(|_, port| !ports.contains(&port.plan.port));
        self.shown.retain(|port, _| !ports.contains(port));
        let mut kept: Vec<Piece> =
            self.entries.iter().filter(|entry| self.ports.contains_key(&entry.in_port)).cloned().collect();
        if let Some(addresses) = &mut self.addresses {
            let plan = Arc::make_mut(addresses);
            plan.hosts.retain(|host| !hosts.contains(&host.address));
            let isolation = Isolation::Address(plan.clone());
            let entries = self.ports.values().flat_map(|it| entries_of(&isolation, self.datapath, &it.plan));
            kept = entries.collect();
        }
        let before = std::mem::replace(&mut self.entries, kept);
        let gone = before.into_iter().filter(|entry| !self.entries.contains(entry));
        gone.map(|entry| entry.matching).collect()
    }

    /// A checksum of the ports and hosts. Pieces of rules depend on them.
    pub(crate) fn checksum(&self) -> u32 {
        let ports = self.ports.values().map(|port| {
            let PortPlan { port, shown_as, is_edge } = port.plan;
            [port.0, shown_as.0, u32::from(is_edge)].map(u32::to_le_bytes).concat()
        });
        let hosts = self.addresses.iter().flat_map(|it| &it.hosts).map(|host| {
            let place = [u32::from(host.address), host.port.0].map(u32::to_le_bytes).concat();
            [&place[..], &host.datapath.0.to_le_bytes()].concat()
        });
        crc32(&ports.chain(hosts).flatten().collect::<Vec<u8>>())
    }

    /// All packets of the slice.
    pub(crate) fn entries(&self) -> &[Piece] {
        &self.entries
    }

    /// The packets of the slice that enter by a port, as the tenant sees them.
    pub(crate) fn packets_of(&self, shown: PortNo) -> Vec<Match> {
        let here = self.entries.iter().filter(|entry| entry.in_port == shown);
        let without = |entry: &Piece| {
            let mut matching = self.tenant_match(&entry.matching, entry.is_dressed);
            matching.remove(Field::InPort);
            if self.tag.is_some() {
                matching.remove(Field::VlanVid);
            }
            matching
        };
        here.map(without).collect()
    }

    /// A match of the physical switch with the addresses that the tenant sees.
    pub(crate) fn tenant_match(&self, matching: &Match, is_dressed: bool) -> Match {
        let addresses = self.addresses.as_ref().filter(|_| is_dressed);
        addresses.and_then(|it| it.tenant_match(matching)).unwrap_or_else(|| matching.clone())
    }

    /// Whether a match of a slice with addresses leaves one of them open.
    pub(crate) fn has_open_address(&self, matching: &Match) -> bool {
        let fields = fields_of(matching).filter(|_| self.addresses.is_some());
        fields.is_some_and(|fields| fields.into_iter().any(|it| exact_address(matching, it).is_none()))
    }

    /// Whether a host with this address of the tenant is at a physical port.
    pub(crate) fn is_host_at(&self, port: PortNo, address: u32) -> bool {
        let hosts = self.addresses.iter().flat_map(|it| &it.hosts);
        let is_meant = |host: &HostPlan| {
            host.datapath == self.datapath && host.port == port && u32::from(host.address) == address
        };
        hosts.into_iter().any(is_meant)
    }

    /// The same packets in parts, one for each host that the first open address may be of: the destination comes first. None: both addresses
    /// are given, or no host has a packet of the piece.
    pub(crate) fn by_host(&self, piece: &Piece) -> Vec<Piece> {
        let Some(addresses) = &self.addresses else { return Vec::new() };
        let Some([from, to]) = fields_of(&piece.matching) else { return Vec::new() };
        let is_open = |field: &Field| exact_address(&piece.matching, *field).is_none();
        let Some(open) = [to, from].into_iter().find(is_open) else { return Vec::new() };
        let part = |host: &HostPlan| {
            let address = u32::from(host.address);
            let address = if piece.is_dressed { addresses.to_physical(address)? } else { address };
            let matching = intersection(&piece.matching, &Match::any().with(open, address))?.sorted();
            Some(Piece { matching, ..piece.clone() })
        };
        addresses.hosts.iter().filter_map(part).collect()
    }

    /// A port by the tenant's number.
    pub(crate) fn port(&self, shown: PortNo) -> Option<&VirtualPort> {
        self.ports.get(&shown)
    }

    /// The same, to be changed.
    pub(crate) fn port_mut(&mut self, shown: PortNo) -> Option<&mut VirtualPort> {
        self.ports.get_mut(&shown)
    }

    /// The port that an output names.
    pub(crate) fn port_for_output(&self, shown: PortNo) -> Result<&VirtualPort, Refusal> {
        match shown {
            PortNo::NORMAL | PortNo::LOCAL => {
                Err(Refusal::new(ACTION_EPERM, format!("{shown} would lead out of the slice")))
            }
            _ => self
                .port(shown)
                .ok_or_else(|| Refusal::new(ACTION_OUT_PORT, format!("port {shown} is not in the slice"))),
        }
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

    /// Whether frames look different at the edge than between switches.
    pub(crate) fn dresses(&self) -> bool {
        self.tag.is_some() || self.addresses.is_some()
    }

    /// Whether frames are dressed at a port.
    pub(crate) fn is_dressed_at(&self, port: &VirtualPort) -> bool {
        self.dresses() && !port.plan.is_edge
    }

    /// Whether the slice has ports at which its frames are dressed.
    pub(crate) fn has_dressed_ports(&self) -> bool {
        self.ports.values().any(|port| self.is_dressed_at(port))
    }

    /// Whether frames would be dressed between switches, and the slice has only edge ports here.
    pub(crate) fn is_undressed(&self) -> bool {
        self.dresses() && !self.has_dressed_ports()
    }

    /// Whether a match names a protocol without addresses that are rewritten, and the slice has only packets with such addresses. LLDP
    /// is one, which the slice answers itself.
    fn has_none_of_protocol(&self, wanted: &Match) -> bool {
        let full = Field::EthType.full_mask();
        let names_one = wanted.get(Field::EthType).is_some_and(|(_, mask)| mask == full);
        self.addresses.is_some() && names_one && fields_of(wanted).is_none()
    }

    /// The pieces of a tenant's match. Those of closed ports are among them. None: the match is of a protocol of which the slice has no packet.
    pub(crate) fn narrow(&self, wanted: &Match) -> Result<Vec<Piece>, Refusal> {
        check_fields(wanted)?;
        check_prerequisites(wanted)?;
        let (in_port, rest) = self.read(wanted)?;
        let all: Vec<Piece> = self
            .entries
            .iter()
            .filter(|entry| in_port.is_none_or(|port| port == entry.in_port))
            .filter_map(|entry| {
                let matching = match self.addresses.as_ref().filter(|_| entry.is_dressed) {
                    Some(addresses) => intersection(&addresses.physical_match(&rest)?, &entry.matching)?,
                    None => intersection(&rest, &entry.matching)?,
                };
                Some(Piece { matching: matching.sorted(), ..entry.clone() })
            })
            .collect();
        if all.is_empty() && !self.has_none_of_protocol(&rest) {
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

    /// A frame as the tenant sees it. `None`: it is not dressed.
    pub(crate) fn undressed(&self, frame: &[u8]) -> Option<Vec<u8>> {
        match (&self.addresses, self.tag) {
            (Some(addresses), _) => readdressed(frame, |address| addresses.to_tenant(address)),
            (None, tag) => (tag.is_some() && outer_tag(frame) == tag).then(|| stripped(frame)),
        }
    }

    /// A frame of the tenant as it is between switches. `None`: it is none of the slice.
    pub(crate) fn dressed(&self, frame: &[u8]) -> Option<Vec<u8>> {
        match (&self.addresses, self.tag) {
            (Some(addresses), _) => readdressed(frame, |address| addresses.to_physical(address)),
            (None, tag) => tag.filter(|_| outer_tag(frame).is_none()).map(|tag| tagged(frame, tag)),
        }
    }

    /// The packets that may enter a group, as the group gets them.
    pub(crate) fn group_entries(&self) -> Vec<Match> {
        let physical = self.addresses.iter().filter(|_| self.has_dressed_ports());
        let physical: Vec<Match> = physical.flat_map(|it| it.physical_packets()).collect();
        let of_entry = |entry: &Piece| match (&self.tag, physical.is_empty()) {
            (Some(_), _) => vec![Match::any()],
            (None, true) => vec![entry.matching.clone()],
            (None, false) => physical.clone(),
        };
        let mut entries: Vec<Match> = Vec::new();
        for entry in self.entries.iter().flat_map(of_entry) {
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        entries
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
fn entries_of(isolation: &Isolation, datapath: DatapathId, port: &PortPlan) -> Vec<Piece> {
    let piece = |is_dressed, matching: Match| Piece {
        in_port: port.shown_as,
        is_dressed,
        matching: matching.with(Field::InPort, port.port).sorted(),
    };
    match isolation {
        Isolation::Vlan(_) if port.is_edge => vec![piece(false, Match::any().with(Field::VlanVid, 0u16))],
        Isolation::Vlan(tag) => vec![piece(true, Match::any().with(Field::VlanVid, tag | VLAN_PRESENT))],
        Isolation::Address(addresses) if port.is_edge => {
            let packets = addresses.packets_from(datapath, port.port);
            packets.into_iter().map(|packets| piece(false, packets)).collect()
        }
        Isolation::Address(addresses) => addresses.physical_packets().map(|it| piece(true, it)).to_vec(),
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
