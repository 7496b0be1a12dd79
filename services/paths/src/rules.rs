//! The rules of a plan, as items of a set of the service `flows`.
//!
//! ```text
//!   one path, or nothing in its place yet ──> a path item: the service makes a rule for each switch
//!   anything else ──> a rule item for each switch and input port, with the stage in which it is added
//!   a protected path ──> a fast-failover group at each switch, and rules that carry packets back to the entry
//! ```
//!
//! In: a plan, and what was before it. Out: items. A rule that changes its output comes after all rules behind it, so that no packet meets a
//! gap. It decides no path.

use crate::plan::{Leg, Plan, output_port};
use flow::canonical::{ActionWriter, InstructionWriter, write_actions, write_match};
use flow::{Action, DatapathId, Field, Match, PortNo};
use flows_contract::{Group, Hop, Hops, Items, Path, Rule, hop_bytes};
use graph::Topology;
use std::collections::BTreeMap;
use view::{Ends, HostId, Wanted};

/// The table of all rules of intents.
pub const TABLE: u8 = 0;

/// `OFPGT_FF`.
const FAST_FAILOVER: u8 = 3;

/// `OFPG_ANY`: a bucket watches no group.
const WATCH_NO_GROUP: u32 = 0xffff_ffff;

/// The bit of `vlan_vid` that is set if a packet has a tag.
const VLAN_PRESENT: u128 = 0x1000;

/// The packets of one way of an intent, without an input port.
pub fn packets(wanted: &Wanted, way: u16) -> Match {
    let mut packets = wanted.selector.clone();
    if let Ends::HostToHost { one, two } = &wanted.ends {
        let (source, destination) = if way == 0 { (one, two) } else { (two, one) };
        add_hosts(&mut packets, *source, *destination);
    }
    packets.sorted()
}

fn add_hosts(packets: &mut Match, source: HostId, destination: HostId) {
    packets.set(Field::EthSrc, source.mac.to_u64().into());
    packets.set(Field::EthDst, destination.mac.to_u64().into());
    if let Some(vlan) = source.vlan {
        packets.set(Field::VlanVid, u128::from(vlan) | VLAN_PRESENT);
    }
}

/// What happens to the packets of a way at an input port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Act {
    /// Ports to other switches.
    forward: Vec<PortNo>,
    /// Ports where packets leave the network, after the treatment.
    deliver: Vec<PortNo>,
    /// In place of the others: the first of these ports that is live. The second one is `None` if it is the input port.
    failover: Option<[PortNo; 2]>,
}

/// Where a rule is: the way, the switch and the input port.
type Place = (u16, DatapathId, PortNo);

/// The way whose rules a path has. Paths to or from several ends share their rules.
fn way_of(wanted: &Wanted, leg: &Leg) -> u16 {
    match wanted.ends {
        Ends::MultiToSingle { .. } | Ends::SingleToMulti { .. } => 0,
        _ => leg.number,
    }
}

/// The rules of a plan.
fn acts(wanted: &Wanted, plan: &Plan, topology: &Topology) -> BTreeMap<Place, Act> {
    let mut acts: BTreeMap<Place, Act> = BTreeMap::new();
    for leg in plan.legs.iter().filter(|leg| !leg.backup) {
        match plan.backup_of(leg) {
            Some(backup) => add_protected(&mut acts, topology, leg, backup),
            None => add_leg(&mut acts, topology, way_of(wanted, leg), leg, 0),
        }
    }
    acts
}

/// Adds the rules of a path from its hop with this number on.
fn add_leg(acts: &mut BTreeMap<Place, Act>, topology: &Topology, way: u16, leg: &Leg, first: usize) {
    for (number, hop) in leg.hops(topology).enumerate().skip(first) {
        let act = acts.entry((way, hop.switch, hop.in_port)).or_default();
        let ports = if number == leg.links.len() { &mut act.deliver } else { &mut act.forward };
        if !ports.contains(&hop.out_port) {
            ports.push(hop.out_port);
        }
    }
}

/// Each switch of the path watches its next port. If that is down, it sends packets back to the entry, where they take the backup.
fn add_protected(acts: &mut BTreeMap<Place, Act>, topology: &Topology, leg: &Leg, backup: &Leg) {
    let way = leg.number;
    add_leg(acts, topology, way, backup, 1);
    let Some(detour) = backup.hops(topology).next() else { return };
    for (number, hop) in leg.hops(topology).enumerate() {
        if number == leg.links.len() {
            acts.entry((way, hop.switch, hop.in_port)).or_default().deliver = vec![hop.out_port];
            continue;
        }
        let second = if number == 0 { detour.out_port } else { hop.in_port };
        let act = Act { failover: Some([hop.out_port, second]), ..Act::default() };
        acts.insert((way, hop.switch, hop.in_port), act);
        let returned = Act { forward: vec![second], ..Act::default() };
        acts.insert((way, hop.switch, hop.out_port), returned);
    }
}

/// What can be in the switches already.
#[derive(Clone, Copy, Debug)]
pub struct Before<'p> {
    /// These plans.
    pub plans: &'p [Plan],
    /// And rules of an earlier run, of which nothing is known.
    pub is_unknown: bool,
}

/// The stage of each rule that changes its output, or that may do so: behind all rules that follow it on a path. What is new has the
/// stage 0.
fn stages(
    wanted: &Wanted,
    (plan, now): (&Plan, &BTreeMap<Place, Act>),
    before: Before<'_>,
    topology: &Topology,
) -> BTreeMap<Place, u8> {
    let earlier: Vec<_> = before.plans.iter().map(|plan| acts(wanted, plan, topology)).collect();
    let is_change = |place: &Place| {
        let differs =
            |before: &BTreeMap<Place, Act>| before.get(place).is_some_and(|act| now.get(place) != Some(act));
        before.is_unknown || earlier.iter().any(differs)
    };
    let mut stages = BTreeMap::new();
    for leg in &plan.legs {
        let mut stage = 0u8;
        let hops: Vec<Hop> = leg.hops(topology).collect();
        for hop in hops.iter().rev() {
            let place = (way_of(wanted, leg), hop.switch, hop.in_port);
            if is_change(&place) {
                stage = stage.saturating_add(1);
                let known = stages.entry(place).or_insert(stage);
                *known = stage.max(*known);
            }
        }
    }
    stages
}

/// Whether the plan is paths without backups, each of a way of its own.
fn is_plain(plan: &Plan, wanted: &Wanted) -> bool {
    !matches!(wanted.ends, Ends::MultiToSingle { .. } | Ends::SingleToMulti { .. })
        && plan.legs.iter().all(|leg| !leg.backup)
}

/// Writes the items of a plan that takes the place of what was before.
pub fn write(
    id: u64,
    wanted: &Wanted,
    plan: &Plan,
    before: Before<'_>,
    topology: &Topology,
    items: &mut Items<'_>,
) {
    // The rules of a path item have stages by themselves: the distance to its end. With two paths, these stages would let one wait for the
    // other where both change.
    let has_stages = before.plans.is_empty() || plan.legs.len() == 1;
    match has_stages && is_plain(plan, wanted) {
        true => write_paths(wanted, plan, topology, items),
        false => write_rules(id, wanted, plan, before, topology, items),
    }
}

fn write_paths(wanted: &Wanted, plan: &Plan, topology: &Topology, items: &mut Items<'_>) {
    let mut treatment = Vec::new();
    write_treatment(&wanted.treatment, &mut treatment);
    let mut selector = Vec::with_capacity(64);
    let mut hops = Vec::new();
    for leg in &plan.legs {
        selector.clear();
        write_match(&packets(wanted, leg.number), &mut selector);
        hops.clear();
        hops.reserve(leg.links.len() + 1);
        hops.extend(leg.hops(topology));
        items.path(&Path {
            table_id: TABLE,
            priority: wanted.priority,
            selector: &selector,
            treatment: &treatment,
            hops: Hops::of(&hop_bytes(&hops)),
        });
    }
}

fn write_treatment(treatment: &[Action], out: &mut Vec<u8>) {
    // The contract refuses actions that have no canonical form.
    let _ = write_actions(treatment, out);
}

fn write_rules(
    id: u64,
    wanted: &Wanted,
    plan: &Plan,
    before: Before<'_>,
    topology: &Topology,
    items: &mut Items<'_>,
) {
    let now = acts(wanted, plan, topology);
    let stages = stages(wanted, (plan, &now), before, topology);
    let (mut matching, mut instructions) = (Vec::new(), Vec::new());
    for (place, act) in &now {
        let (way, switch, in_port) = *place;
        matching.clear();
        let mut rule = packets(wanted, way);
        rule.set(Field::InPort, in_port.0.into());
        write_match(&rule.sorted(), &mut matching);
        instructions.clear();
        let group = act.failover.map(|ports| write_group(id, way, switch, in_port, ports, items));
        InstructionWriter::new(&mut instructions)
            .apply_actions(|actions| write_act(act, group, in_port, &wanted.treatment, actions));
        items.rule(&Rule {
            switch,
            table_id: TABLE,
            stage: stages.get(place).copied().unwrap_or(0),
            priority: wanted.priority,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            matching: &matching,
            instructions: &instructions,
        });
    }
}

fn write_act(
    act: &Act,
    group: Option<u32>,
    in_port: PortNo,
    treatment: &[Action],
    actions: &mut ActionWriter<'_>,
) {
    if let Some(group) = group {
        actions.group(group);
        return;
    }
    for port in &act.forward {
        actions.output(output_port(in_port, *port), 0);
    }
    if act.deliver.is_empty() {
        return;
    }
    for action in treatment {
        // The contract refuses actions that have no canonical form.
        let _ = actions.action(action);
    }
    for port in &act.deliver {
        actions.output(output_port(in_port, *port), 0);
    }
}

/// Adds the group of a rule, and returns its number.
fn write_group(
    id: u64,
    way: u16,
    switch: DatapathId,
    in_port: PortNo,
    ports: [PortNo; 2],
    items: &mut Items<'_>,
) -> u32 {
    let mut buckets = Vec::with_capacity(64);
    for port in ports {
        write_bucket(port, output_port(in_port, port), &mut buckets);
    }
    let group_id = group_number(id, way, switch, &buckets);
    items.group(&Group { switch, group_id, group_type: FAST_FAILOVER, buckets: &buckets });
    group_id
}

/// Appends a bucket (OpenFlow 1.3.5, 7.3.4.2) that is used while a port is live.
fn write_bucket(watched: PortNo, output: PortNo, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&watched.0.to_be_bytes());
    out.extend_from_slice(&WATCH_NO_GROUP.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    ActionWriter::new(out).output(output, 0);
    // One output: 32 bytes.
    let length = (out.len() - start) as u16;
    out[start..start + 2].copy_from_slice(&length.to_be_bytes());
}

/// The number of a group follows from what it is: another content is another group, which can be installed before the earlier one is
/// removed. Two groups of a switch with a thousand have the same number once in four thousand networks; then the intent fails and says so.
fn group_number(id: u64, way: u16, switch: DatapathId, buckets: &[u8]) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let numbers = [id.to_le_bytes(), u64::from(way).to_le_bytes(), switch.0.to_le_bytes()];
    for byte in numbers.iter().flatten().chain(buckets) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // Below OFPG_MAX, and never 0.
    ((hash >> 33) as u32 & 0x7fff_fffe) + 1
}
