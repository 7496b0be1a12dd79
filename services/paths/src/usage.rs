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
use view::{ConnectPoint, Ends, Wanted};

/// The tag of a selector: the upper bits name a field, and the lower bits are its folded value. Two selectors with different tags of
/// one field have no packet in common. Two with the same tag may have one.
type Tag = u64;

/// The fields that tell selectors apart best. The tag of a selector is of the first one that it has as a whole.
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

/// The bits of a tag below the field.
const VALUE_BITS: u32 = 56;

/// The tag of a selector without a whole field.
const NO_TAG: Tag = (TAGS.len() as u64) << VALUE_BITS;

/// The place of a tag's field.
const fn field_of(tag: Tag) -> usize {
    (tag >> VALUE_BITS) as usize
}

fn tag(wanted: &Wanted) -> Tag {
    let whole = |(number, field): (usize, &Field)| {
        let (value, mask) = wanted.selector.get(*field)?;
        (mask == field.full_mask()).then(|| (number as u64) << VALUE_BITS | folded(value))
    };
    TAGS.iter().enumerate().find_map(whole).unwrap_or(NO_TAG)
}

/// All values but IPv6 addresses fit. Their halves are mixed.
fn folded(value: u128) -> u64 {
    let halves = value as u64 ^ ((value >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (halves ^ (halves >> VALUE_BITS)) & ((1 << VALUE_BITS) - 1)
}

/// The users of a link or a port.
#[derive(Clone, Debug, Default)]
struct Users {
    /// Intents between two hosts: each wants the packets of its pair only.
    pairs: BTreeSet<u64>,
    /// All others, by their tags.
    others: BTreeSet<(Tag, u64)>,
    /// How many of the others have a tag of each field, or none.
    by_field: [u32; TAGS.len() + 1],
}

impl Users {
    fn add(&mut self, id: u64, tag: Option<Tag>) {
        match tag {
            None => drop(self.pairs.insert(id)),
            Some(tag) => self.by_field[field_of(tag)] += u32::from(self.others.insert((tag, id))),
        }
    }

    fn remove(&mut self, id: u64, tag: Option<Tag>) {
        match tag {
            None => drop(self.pairs.remove(&id)),
            Some(tag) => self.by_field[field_of(tag)] -= u32::from(self.others.remove(&(tag, id))),
        }
    }

    fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.others.is_empty()
    }

    /// The others that can have a packet in common with a selector of this tag. `has_same`: another plan anywhere has the same tag.
    fn others_beside(&self, tag: Tag, has_same: bool) -> impl Iterator<Item = u64> {
        let first_of = |field: usize| (field as u64) << VALUE_BITS;
        let field = field_of(tag);
        let same = has_same.then(|| self.others.range((tag, 0)..=(tag, u64::MAX)));
        // Mostly, all have a tag of the same field.
        let has_more = self.by_field[field] as usize != self.others.len();
        let more = has_more.then(|| {
            let before = self.others.range(..(first_of(field), 0));
            before.chain(self.others.range((first_of(field + 1), 0)..))
        });
        same.into_iter().flatten().chain(more.into_iter().flatten()).map(|(_, id)| *id)
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
    /// How many plans have each tag. Mostly, a plan is the only one of its tag, and no link has to be searched.
    tags: HashMap<Tag, u32>,
}

fn pair(wanted: &Wanted) -> Option<(view::HostId, view::HostId)> {
    match wanted.ends {
        Ends::HostToHost { one, two } => Some((one.min(two), one.max(two))),
        _ => None,
    }
}

/// The tag by which users are found. `None`: an intent between two hosts.
fn tag_of_user(wanted: &Wanted) -> Option<Tag> {
    pair(wanted).is_none().then(|| tag(wanted))
}

/// If a plan has this many links or more, it is not compared link by link with another one: the time grows with the square.
const LINKS_COMPARED: usize = 64;

/// What a plan uses and another one does not.
struct Rest<'p> {
    plan: &'p Plan,
    /// `None`: all of `plan` counts, because there is no other plan, or one of the two is large.
    other: Option<&'p Plan>,
}

impl<'p> Rest<'p> {
    fn of(plan: &'p Plan, other: Option<&'p Plan>) -> Rest<'p> {
        let is_small = |plan: &Plan| plan.links().take(LINKS_COMPARED).count() < LINKS_COMPARED;
        Rest { plan, other: other.filter(|other| is_small(plan) && is_small(other)) }
    }

    fn links(&self) -> impl Iterator<Item = LinkNo> {
        let other = self.other;
        let is_new = move |link: &LinkNo| other.is_none_or(|other| other.links().all(|known| known != *link));
        self.plan.links().filter(is_new)
    }

    fn entries(&self) -> impl Iterator<Item = ConnectPoint> {
        let other = self.other;
        let is_new =
            move |at: &ConnectPoint| other.is_none_or(|other| other.legs.iter().all(|leg| leg.from != *at));
        self.plan.legs.iter().map(|leg| leg.from).filter(is_new)
    }
}

impl Usage {
    /// An intent uses this plan from now on, in place of an earlier one for the same wish.
    pub fn put(&mut self, id: u64, wanted: &Wanted, earlier: Option<&Plan>, plan: &Plan) {
        let tag = tag_of_user(wanted);
        match earlier {
            Some(earlier) => self.leave(id, tag, &Rest::of(earlier, Some(plan))),
            None => self.count(wanted, tag, id),
        }
        let new = Rest::of(plan, earlier);
        for link in new.links() {
            if self.links.len() <= link.index() {
                self.links.resize_with(link.index() + 1, Users::default);
            }
            self.links[link.index()].add(id, tag);
        }
        for at in new.entries() {
            self.ports.entry(at).or_default().add(id, tag);
        }
    }

    /// A plan without an earlier one begins.
    fn count(&mut self, wanted: &Wanted, tag: Option<Tag>, id: u64) {
        if let Some(tag) = tag {
            *self.tags.entry(tag).or_default() += 1;
        }
        if let Some(pair) = pair(wanted) {
            self.pairs.entry(pair).or_default().insert(id);
        }
    }

    fn leave(&mut self, id: u64, tag: Option<Tag>, old: &Rest<'_>) {
        for link in old.links() {
            if let Some(users) = self.links.get_mut(link.index()) {
                users.remove(id, tag);
            }
        }
        for at in old.entries() {
            if let Some(users) = self.ports.get_mut(&at) {
                users.remove(id, tag);
                if users.is_empty() {
                    self.ports.remove(&at);
                }
            }
        }
    }

    /// An intent uses this plan no more.
    pub fn remove(&mut self, id: u64, wanted: &Wanted, plan: &Plan) {
        let tag = tag_of_user(wanted);
        self.leave(id, tag, &Rest::of(plan, None));
        if let Some(tag) = tag
            && let Some(count) = self.tags.get_mut(&tag)
        {
            *count -= 1;
            if *count == 0 {
                self.tags.remove(&tag);
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

    /// An intent of the same priority that wants some of the same packets at the same place. Links and ports of the intent's earlier
    /// plan are left out: they were compared when that plan began, and each later intent has compared itself with it.
    pub fn rival<'w>(
        &self,
        id: u64,
        wanted: &Wanted,
        (earlier, plan): (Option<&Plan>, &Plan),
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
        let new = Rest::of(plan, earlier);
        let at_links = new.links().filter_map(|link| self.links.get(link.index()));
        let at_ports = new.entries().filter_map(|at| self.ports.get(&at));
        let is_pair = pair(wanted).is_some();
        // The hosts of a pair are part of its packets, but not of its selector.
        let tag = if is_pair { NO_TAG } else { tag(wanted) };
        // The earlier plan is counted itself.
        let own = u32::from(!is_pair && earlier.is_some());
        let has_same = self.tags.get(&tag).is_some_and(|count| *count > own);
        let mut found = at_links.chain(at_ports).flat_map(|users| {
            // Two pairs clash only if they are the same, which was looked up.
            let pairs = (!is_pair).then_some(&users.pairs).into_iter().flatten();
            users.others_beside(tag, has_same).chain(pairs.copied())
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
