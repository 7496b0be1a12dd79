//! Which intents use which link, and which port they enter at.
//!
//! In: plans that begin and end to be used. Out: the intents that a link failure concerns, and those that want the same packets. It holds
//! only numbers.

use crate::plan::Plan;
use crate::rules::packets;
use flow::Field;
use flow::relation::overlaps;
use graph::LinkNo;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use view::{ConnectPoint, Ends, Wanted};

/// The users of a link or a port.
#[derive(Clone, Debug, Default)]
struct Users {
    /// Intents between two hosts: each wants the packets of its pair only.
    pairs: BTreeSet<u64>,
    /// All others, by their tags.
    others: BTreeSet<(Tag, u64)>,
}

/// The first whole field of a selector, in the order of [`TAGS`], and its value. Two selectors with different values of one field have no
/// packet in common.
type Tag = (u8, u128);

/// The fields that tell selectors apart best.
const TAGS: [Field; 8] = [
    Field::Ipv4Dst,
    Field::Ipv6Dst,
    Field::EthDst,
    Field::Ipv4Src,
    Field::Ipv6Src,
    Field::EthSrc,
    Field::VlanVid,
    Field::EthType,
];

/// The tag of a selector without a whole field.
const NO_TAG: Tag = (u8::MAX, 0);

fn tag(wanted: &Wanted) -> Tag {
    let whole = |field: &Field| {
        let (value, mask) = wanted.selector.get(*field)?;
        (mask == field.full_mask()).then_some((field.number(), value))
    };
    TAGS.iter().find_map(whole).unwrap_or(NO_TAG)
}

impl Users {
    fn add(&mut self, id: u64, wanted: &Wanted) {
        match wanted.ends {
            Ends::HostToHost { .. } => self.pairs.insert(id),
            _ => self.others.insert((tag(wanted), id)),
        };
    }

    fn remove(&mut self, id: u64, wanted: &Wanted) {
        match wanted.ends {
            Ends::HostToHost { .. } => self.pairs.remove(&id),
            _ => self.others.remove(&(tag(wanted), id)),
        };
    }

    /// The others that can have a packet in common with a selector of this tag.
    fn others_beside(&self, tag: Tag) -> impl Iterator<Item = u64> {
        let (field, _) = tag;
        let before = self.others.range(..((field, 0), 0));
        let same = self.others.range((tag, 0)..=(tag, u64::MAX));
        let behind = self.others.range((Excluded(((field, u128::MAX), u64::MAX)), Unbounded));
        before.chain(same).chain(behind).map(|(_, id)| *id)
    }
}

/// Which intents use what.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// By link: those whose rules match packets that come over it.
    links: Vec<Users>,
    /// By port: those whose packets enter there.
    ports: BTreeMap<ConnectPoint, Users>,
    /// By the two hosts, in the order of their ids.
    pairs: HashMap<(view::HostId, view::HostId), BTreeSet<u64>>,
}

fn pair(wanted: &Wanted) -> Option<(view::HostId, view::HostId)> {
    match wanted.ends {
        Ends::HostToHost { one, two } => Some((one.min(two), one.max(two))),
        _ => None,
    }
}

impl Usage {
    /// An intent uses this plan from now on.
    pub fn add(&mut self, id: u64, wanted: &Wanted, plan: &Plan) {
        for link in plan.links() {
            if self.links.len() <= link.index() {
                self.links.resize_with(link.index() + 1, Users::default);
            }
            self.links[link.index()].add(id, wanted);
        }
        for leg in &plan.legs {
            self.ports.entry(leg.from).or_default().add(id, wanted);
        }
        if let Some(pair) = pair(wanted) {
            self.pairs.entry(pair).or_default().insert(id);
        }
    }

    /// An intent uses this plan no more.
    pub fn remove(&mut self, id: u64, wanted: &Wanted, plan: &Plan) {
        for link in plan.links() {
            if let Some(users) = self.links.get_mut(link.index()) {
                users.remove(id, wanted);
            }
        }
        for leg in &plan.legs {
            if let Some(users) = self.ports.get_mut(&leg.from) {
                users.remove(id, wanted);
                if users.pairs.is_empty() && users.others.is_empty() {
                    self.ports.remove(&leg.from);
                }
            }
        }
        if let Some(pair) = pair(wanted)
            && let Some(users) = self.pairs.get_mut(&pair)
        {
            users.remove(&id);
            if users.is_empty() {
                self.pairs.remove(&pair);
            }
        }
    }

    /// The intents that use a link.
    pub fn users(&self, link: LinkNo) -> impl Iterator<Item = u64> {
        let users = self.links.get(link.index()).into_iter();
        users.flat_map(|users| users.pairs.iter().copied().chain(users.others.iter().map(|(_, id)| *id)))
    }

    /// An intent of the same priority that wants some of the same packets at the same place.
    pub fn rival<'w>(
        &self,
        id: u64,
        wanted: &Wanted,
        plan: &Plan,
        wanted_of: impl Fn(u64) -> Option<&'w Wanted>,
    ) -> Option<u64> {
        let is_rival = |other: &u64| {
            *other != id
                && wanted_of(*other)
                    .is_some_and(|other| other.priority == wanted.priority && clash(other, wanted))
        };
        if let Some(pair) = pair(wanted) {
            let same_pair = self.pairs.get(&pair).into_iter().flatten().find(|other| is_rival(other));
            if let Some(other) = same_pair {
                return Some(*other);
            }
        }
        let at_links = plan.links().filter_map(|link| self.links.get(link.index()));
        let at_ports = plan.legs.iter().filter_map(|leg| self.ports.get(&leg.from));
        let is_pair = pair(wanted).is_some();
        // The hosts of a pair are part of its packets, but not of its selector.
        let tag = if is_pair { NO_TAG } else { tag(wanted) };
        let mut found = at_links.chain(at_ports).flat_map(|users| {
            // Two pairs clash only if they are the same, which was looked up.
            let pairs = (!is_pair).then_some(&users.pairs).into_iter().flatten();
            users.others_beside(tag).chain(pairs.copied())
        });
        found.find(is_rival)
    }
}

/// Whether a packet can be of both.
fn clash(one: &Wanted, two: &Wanted) -> bool {
    if pair(one).is_none() && pair(two).is_none() {
        return overlaps(&one.selector, &two.selector);
    }
    let ways = |wanted: &Wanted| if pair(wanted).is_some() { 0..2 } else { 0..1 };
    ways(one).any(|first| ways(two).any(|second| overlaps(&packets(one, first), &packets(two, second))))
}
