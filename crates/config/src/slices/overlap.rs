//! Slices against each other: no two of them may write rules for the same packet.
//!
//! ```text
//!   names, tags, own ports, numbers of groups and meters ──> each once
//!   matches at ports that are not a slice's own ────> no two overlap at a common port
//! ```
//!
//! In: slices. Out: nothing, or the second of two slices with its line, a packet that both own, and the first with its line. Observers own nothing.

use super::names::{port_name, switch_name};
use super::slice::{Line, Packets, Prefix, Slice, SliceIsolation, SlicePort};
use flow::relation::{intersection, is_nothing};
use flow::text::match_to_string;
use flow::{Field, Match, MatchEntry, PortNo};
use package::toml_text::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use view::ConnectPoint;

/// OFPVID_PRESENT: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u16 = 0x1000;
/// The EtherTypes of IPv4 and of ARP.
const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;

/// Compares all slices.
pub(super) fn check(slices: &[Slice]) -> Result<(), Fault> {
    let writers: Vec<&Slice> = slices.iter().filter(|slice| !slice.is_read_only).collect();
    check_names(slices)?;
    check_tags(&writers)?;
    check_own_ports(&writers)?;
    check_numbers("group", slices, |slice| &slice.numbers.groups)?;
    check_numbers("meter", slices, |slice| &slice.numbers.meters)?;
    check_packets(&writers)
}

fn fault(line: Line, slice: &Slice, why: String) -> Fault {
    Fault { line: line.0, reason: format!("slice {}: {why}", slice.name) }
}

/// The state of a slice is on a socket file, whose name has small letters only.
fn check_names(slices: &[Slice]) -> Result<(), Fault> {
    let mut users: BTreeMap<String, &Slice> = BTreeMap::new();
    for slice in slices {
        if let Some(first) = users.insert(slice.name.to_ascii_lowercase(), slice) {
            let why = format!(
                "only capital letters tell its name from that of slice {} ({}): write another name",
                first.name, first.line
            );
            return Err(fault(slice.line, slice, why));
        }
    }
    Ok(())
}

fn check_tags(writers: &[&Slice]) -> Result<(), Fault> {
    let mut users: BTreeMap<u16, &Slice> = BTreeMap::new();
    for slice in writers {
        let SliceIsolation::Vlan(tag) = slice.isolation else { continue };
        if let Some(first) = users.insert(tag, slice) {
            let why = format!("tag {tag} is in use by slice {} ({}): write another", first.name, first.line);
            return Err(fault(slice.line, slice, why));
        }
    }
    Ok(())
}

/// A port that is one slice's own belongs to no other writer.
fn check_own_ports(writers: &[&Slice]) -> Result<(), Fault> {
    let mut users: BTreeMap<ConnectPoint, (&Slice, &SlicePort)> = BTreeMap::new();
    for slice in writers {
        for port in &slice.ports {
            let Some((first, there)) = users.insert(port.at, (slice, port)) else { continue };
            if !port.is_own && !there.is_own {
                continue;
            }
            let owner = if port.is_own { slice } else { first };
            let packet = at_port(&edge_packets(owner), port.at.port);
            let why = format!(
                "port {} is also slice {}'s ({}), and is {}'s own: both would own the packet `{}` at {}; give one of them another port",
                port_name(port.at),
                first.name,
                there.line,
                owner.name,
                example(&packet),
                switch_name(port.at.switch)
            );
            return Err(fault(port.line, slice, why));
        }
    }
    Ok(())
}

/// Packets of a slice at its own ports.
fn edge_packets(slice: &Slice) -> Match {
    match &slice.isolation {
        SliceIsolation::Vlan(_) => Match::any().with(Field::VlanVid, 0u16),
        SliceIsolation::Flowspace(packets) => {
            packets.first().map(|it| it.matching.clone()).unwrap_or_default()
        }
        SliceIsolation::Address(addresses) => {
            let [packets, _] = of_prefix(addresses.tenant);
            packets
        }
    }
}

fn at_port(packets: &Match, port: PortNo) -> Match {
    packets.clone().with(Field::InPort, port)
}

fn check_numbers(kind: &str, slices: &[Slice], of: impl Fn(&Slice) -> &Range<u32>) -> Result<(), Fault> {
    let mut ranges: Vec<(&Range<u32>, &Slice)> =
        slices.iter().map(|slice| (of(slice), slice)).filter(|(range, _)| !range.is_empty()).collect();
    ranges.sort_by_key(|(range, _)| range.start);
    for pair in ranges.windows(2) {
        let [(lower, first), (upper, second)] = pair else { continue };
        if upper.start < lower.end {
            let (first, second) =
                if first.line.0 < second.line.0 { (first, second) } else { (second, first) };
            let why = format!(
                "{kind} {} is also slice {}'s ({}): write other numbers",
                upper.start, first.name, first.line
            );
            return Err(fault(second.line, second, why));
        }
    }
    Ok(())
}

/// A writer's packets between switches, and where it has them.
struct Owned<'s> {
    slice: &'s Slice,
    packets: Vec<Packets>,
    /// Its ports that are not its own.
    shared: BTreeSet<ConnectPoint>,
}

impl<'s> Owned<'s> {
    fn of(slice: &'s Slice) -> Owned<'s> {
        let packets = match &slice.isolation {
            SliceIsolation::Vlan(tag) => {
                vec![(Match::any().with(Field::VlanVid, tag | VLAN_PRESENT), slice.line)]
            }
            SliceIsolation::Flowspace(packets) => {
                packets.iter().map(|it| (it.matching.clone(), it.line)).collect()
            }
            SliceIsolation::Address(addresses) => {
                of_prefix(addresses.prefix).into_iter().map(|matching| (matching, slice.line)).collect()
            }
        };
        let packets = packets.into_iter().map(|(matching, line)| Packets { matching, line }).collect();
        let shared = slice.ports.iter().filter(|port| !port.is_own).map(|port| port.at).collect();
        Owned { slice, packets, shared }
    }

    /// A port where both have packets. With a number: a port of this number. A slice whose links are not chosen yet may have any port.
    fn common(&self, other: &Owned<'_>, number: Option<PortNo>) -> Option<Place> {
        let fits = |at: &&ConnectPoint| number.is_none_or(|number| at.port == number);
        let (open, other_open) = (self.slice.needs_links(), other.slice.needs_links());
        let place = match (open, other_open) {
            (true, true) => return Some(Place::Anywhere),
            (true, false) => other.shared.iter().find(fits),
            (false, true) => self.shared.iter().find(fits),
            (false, false) => self.shared.intersection(&other.shared).find(fits),
        };
        place.map(|at| Place::At(*at))
    }
}

/// Where both slices have the packet.
enum Place {
    At(ConnectPoint),
    Anywhere,
}

fn of_prefix(prefix: Prefix) -> [Match; 2] {
    let (address, mask) = (u32::from(prefix.address), prefix.mask());
    let both = |kind: u16, from, to| {
        Match::any()
            .with(Field::VlanVid, 0u16)
            .with(Field::EthType, kind)
            .with_masked(from, address, mask)
            .with_masked(to, address, mask)
    };
    [both(IPV4, Field::Ipv4Src, Field::Ipv4Dst), both(ARP, Field::ArpSpa, Field::ArpTpa)]
}

fn check_packets(writers: &[&Slice]) -> Result<(), Fault> {
    let owned: Vec<Owned<'_>> = writers.iter().map(|slice| Owned::of(slice)).collect();
    for (number, second) in owned.iter().enumerate() {
        let is_vlan = |owned: &Owned<'_>| matches!(owned.slice.isolation, SliceIsolation::Vlan(_));
        // A packet has one outermost tag, and the tags of two slices differ.
        let others = owned[..number].iter().filter(|first| !(is_vlan(first) && is_vlan(second)));
        for first in others {
            if first.common(second, None).is_some() {
                check_pair(first, second)?;
            }
        }
    }
    Ok(())
}

fn check_pair(first: &Owned<'_>, second: &Owned<'_>) -> Result<(), Fault> {
    for one in &first.packets {
        for two in &second.packets {
            let Some(both) = intersection(&one.matching, &two.matching) else { continue };
            let number = both.get(Field::InPort).and_then(|(port, _)| u32::try_from(port).ok()).map(PortNo);
            let (packet, place) = match first.common(second, number) {
                None => continue,
                Some(Place::At(at)) => (at_port(&both, at.port), format!("at {}", switch_name(at.switch))),
                Some(Place::Anywhere) => (both, "on links that both may get".to_owned()),
            };
            let why = format!(
                "it owns the packet `{}` {place}, and so does slice {} ({}): narrow one of them, or write read_only = true",
                example(&packet),
                first.slice.name,
                one.line
            );
            return Err(fault(two.line, second.slice, why));
        }
    }
    Ok(())
}

/// A packet of a match: all bits that may be anything are zero.
fn example(packets: &Match) -> String {
    let mut packet = packets.clone();
    for entry in packets.entries() {
        if let MatchEntry::Field { field, value, mask: Some(_) } = entry {
            packet.set(*field, *value);
        }
    }
    let packet = if is_nothing(&packet) { packets.clone() } else { packet };
    match match_to_string(&packet.sorted()) {
        text if text.is_empty() => "any".to_owned(),
        text => text,
    }
}
