//! The rules of a slice as hops: what each does with packets that enter by one port.
//!
//! ```text
//!   piece of a rule ──> Hop { match, ways } at (switch, port)  ──> by priority, and by the destination that its match names
//! ```
//!
//! In: rules, groups and ports of a virtual switch. Out: hops, as the tenant sees packets: without the slice's tag. It follows no packet.

use crate::flattening::{flatten, in_order};
use crate::plan::End;
use crate::port::VirtualPort;
use crate::rule_table::{Group, Rule, physical_priority};
use crate::space::Space;
use flow::{Action, Field, Match, PortNo};
use openflow::message::GROUP_TYPE_ALL;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most ways of one hop, as many as actions in a list. Further ones are left out.
const WAYS_MAX: usize = 1_024;

/// A port by which packets leave, as they are then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The tenant's number.
    pub(crate) port: PortNo,
    /// The actions that change the packets before.
    pub(crate) rewrites: Arc<[Action]>,
}

/// What a rule does with packets that enter by one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    /// Its packets, without their port and the slice's tag.
    pub(crate) matching: Match,
    /// Where they go. None: they are dropped, or go to a controller.
    pub(crate) ways: Vec<Way>,
}

/// The place of a hop among those of its port: the highest priority first, then the newest rule.
pub(crate) type Order = (Reverse<u16>, Reverse<u64>, u32);

/// The one destination of a hop's packets. Packets with another one need not look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// This Ethernet address.
    Ethernet(u128),
    /// This IPv4 address.
    Ipv4(u128),
    /// Several, or all.
    Any,
}

impl Target {
    pub(crate) fn of(matching: &Match) -> Target {
        match (exact(matching, Field::EthDst), exact(matching, Field::Ipv4Dst)) {
            (Some(address), _) => Target::Ethernet(address),
            (None, Some(address)) => Target::Ipv4(address),
            (None, None) => Target::Any,
        }
    }

    /// Whether packets of this match may have the destination.
    pub(crate) fn may_be_of(self, packets: &Match) -> bool {
        let fits = |field, address| exact(packets, field).is_none_or(|there| there == address);
        match self {
            Target::Ethernet(address) => fits(Field::EthDst, address),
            Target::Ipv4(address) => fits(Field::Ipv4Dst, address),
            Target::Any => true,
        }
    }
}

/// The one value of a field, if a match has only one.
pub(crate) fn exact(matching: &Match, field: Field) -> Option<u128> {
    matching.get(field).filter(|(_, mask)| *mask == field.full_mask()).map(|(value, _)| value)
}

/// The hops of one port.
#[derive(Clone, Debug, Default)]
pub(crate) struct HopTable {
    hops: BTreeMap<Order, Hop>,
    by_target: BTreeMap<Target, BTreeSet<Order>>,
}

impl HopTable {
    pub(crate) fn insert(&mut self, order: Order, hop: Hop) {
        self.by_target.entry(Target::of(&hop.matching)).or_default().insert(order);
        self.hops.insert(order, hop);
    }

    pub(crate) fn remove(&mut self, order: Order) -> Option<Hop> {
        let hop = self.hops.remove(&order)?;
        let target = Target::of(&hop.matching);
        if let Some(orders) = self.by_target.get_mut(&target) {
            orders.remove(&order);
            if orders.is_empty() {
                self.by_target.remove(&target);
            }
        }
        Some(hop)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hops.is_empty()
    }

    /// The hops that these packets may hit, first to last.
    pub(crate) fn candidates<'a>(&'a self, packets: &Match) -> Vec<(Order, &'a Hop)> {
        let (ethernet, ipv4) = (exact(packets, Field::EthDst), exact(packets, Field::Ipv4Dst));
        if ethernet.is_none() && ipv4.is_none() {
            return self.hops.iter().map(|(order, hop)| (*order, hop)).collect();
        }
        let (first, last) = (Target::Ethernet(0), Target::Ethernet(u128::MAX));
        let range = ethernet.map_or(first..=last, |it| Target::Ethernet(it)..=Target::Ethernet(it));
        let of_ethernet = self.by_target.range(range);
        let (first, last) = (Target::Ipv4(0), Target::Ipv4(u128::MAX));
        let range = ipv4.map_or(first..=last, |it| Target::Ipv4(it)..=Target::Ipv4(it));
        let of_ipv4 = self.by_target.range(range);
        let of_any = self.by_target.range(Target::Any..);
        let all = of_ethernet.chain(of_ipv4).chain(of_any);
        let mut orders: Vec<Order> = all.flat_map(|(_, orders)| orders.iter().copied()).collect();
        orders.sort_unstable();
        orders.into_iter().filter_map(|order| Some((order, self.hops.get(&order)?))).collect()
    }
}

/// The hops of a rule, each with the port by which its packets enter. Pieces that the switch does not have are left out.
pub(crate) fn hops_of(
    rule: &Rule,
    space: &Space,
    groups: &BTreeMap<u32, Group>,
    at: impl Fn(PortNo) -> End,
) -> Vec<(End, Order, Hop)> {
    // The virtual switch has refused instructions that are none.
    let Ok(flat) = flatten(&rule.instructions) else { return Vec::new() };
    let mut numbers: BTreeMap<PortNo, u32> = BTreeMap::new();
    let mut hops = Vec::new();
    for piece in rule.pieces.iter().filter(|piece| piece.idle.is_in_switch()) {
        let physical = piece.matching.get(Field::InPort).and_then(|(port, _)| u32::try_from(port).ok());
        let Some(in_port) = physical.and_then(|port| space.shown(PortNo(port))) else { continue };
        let number = numbers.entry(in_port).or_default();
        *number += 1;
        let order = (Reverse(physical_priority(rule.priority)), Reverse(rule.number), *number);
        // With a tag, the tenant's own match is that of the packets without it.
        let is_dressed = space.port(in_port).is_some_and(|port| space.is_dressed_at(port));
        let mut matching = match space.tag {
            Some(_) => rule.matching.clone(),
            None => space.tenant_match(&piece.matching, is_dressed),
        };
        matching.remove(Field::InPort);
        if space.tag.is_some() {
            matching.remove(Field::VlanVid);
        }
        let stays_dressed = is_dressed && space.has_open_address(&piece.matching);
        let mut leaving = Leaving {
            space,
            in_port,
            stays_dressed,
            rewrites: Vec::new(),
            shared: Arc::new([]),
            ways: Vec::new(),
        };
        leaving.take_all(&flat.actions, groups);
        hops.push((at(in_port), order, Hop { matching, ways: leaving.ways }));
    }
    hops
}

/// A walk through a list of actions.
struct Leaving<'a> {
    space: &'a Space,
    in_port: PortNo,
    /// Whether the packets cannot leave at the edge, since the switch does not know their addresses.
    stays_dressed: bool,
    rewrites: Vec<Action>,
    /// The same, for ways.
    shared: Arc<[Action]>,
    ways: Vec<Way>,
}

impl Leaving<'_> {
    fn take_all(&mut self, actions: &[Action], groups: &BTreeMap<u32, Group>) {
        for action in actions {
            match action {
                Action::Output { port, .. } | Action::Enqueue { port, .. } => self.send(*port),
                Action::Group(id) => {
                    if let Some(group) = groups.get(id) {
                        self.take_group(group);
                    }
                }
                Action::SetQueue(_) => {}
                _ => {
                    self.rewrites.push(action.clone());
                    self.shared = self.rewrites.clone().into();
                }
            }
        }
    }

    /// Each packet goes to all buckets of ALL, and to one of the other types: the first one counts.
    fn take_group(&mut self, group: &Group) {
        let buckets = if group.group_type == GROUP_TYPE_ALL { group.buckets.len() } else { 1 };
        for bucket in group.buckets.iter().take(buckets) {
            let before = (self.rewrites.clone(), self.shared.clone());
            // A bucket of a slice leads to no other group.
            self.take_all(&in_order(&bucket.actions), &BTreeMap::new());
            (self.rewrites, self.shared) = before;
        }
    }

    fn send(&mut self, port: PortNo) {
        match port {
            PortNo::IN_PORT => self.send_to(self.in_port),
            PortNo::FLOOD => self.flood(VirtualPort::floods),
            PortNo::ALL => self.flood(VirtualPort::sends),
            port if port == self.in_port => {}
            port => self.send_to(port),
        }
    }

    fn flood(&mut self, wanted: impl Fn(&VirtualPort) -> bool) {
        let ports = self.space.ports().filter(|port| wanted(port)).map(|port| port.plan.shown_as);
        let ports: Vec<PortNo> = ports.filter(|port| *port != self.in_port).collect();
        ports.into_iter().for_each(|port| self.send_to(port));
    }

    /// Controllers and ports that do not send are no ways.
    fn send_to(&mut self, port: PortNo) {
        let can_leave = |port: &VirtualPort| port.sends() && !(self.stays_dressed && port.plan.is_edge);
        let sends = self.space.port(port).is_some_and(can_leave);
        if sends && self.ways.len() < WAYS_MAX {
            self.ways.push(Way { port, rewrites: self.shared.clone() });
        }
    }
}
