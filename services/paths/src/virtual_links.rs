//! The virtual links of slices: rules in the switches between their ends, and whether they carry frames.
//!
//! ```text
//!   the view ──> [ network ] ──a way for each link──> sets of rules ──> flows
//!                                                         states of sets ──┐
//!   slices, labels <──is it up, over which hops── [ tables ] <─────────────┘
//! ```
//!
//! A link that is one cable needs no rules, and is up while the view has it so. The frames of a slice are recognised by the port where they
//! enter a switch and by the packets of the slice. So links of slices with a packet in common never share a cable.
//!
//! A way that carries the worst traffic of all slices beside what intents have reserved comes before one that does not. If there is no such way, the
//! link takes the one with the smallest shortfall, and its readers learn how large that is. It moves as soon as a way fits.
//!
//! In: slices, changes of the network and of reservations, states of rules, the time. Out: sets of rules to put or to remove, and states for readers. No user can
//! change these links. It sends nothing to a switch, and reads no clock.

mod room;
mod slice;
mod tables;
mod way;

use crate::engine::settle::Settle;
use crate::network::Network;
use burnet_sdk::{Commands, Query};
use flow::canonical::write_match;
use flows_contract::{FailureKind, Hop, Hops, Items, Path, Phase, SetState, hop_bytes};
use graph::{LinkNo, LinkSlot, Topology};
use paths_contract::{ALL_SLICES, Lack, LinkState, SliceLinks};
use room::Room;
use slice::Slices;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tables::Tables;
use view::LinkId;

/// The priority of the rules: the highest that slices use. Rules of apps for the same packets must not take them.
const PRIORITY: u16 = 65_000;

/// The bit that sets of virtual links have in their numbers, and sets of intents have not.
const OF_LINK: u64 = 1 << 63;

/// How many links that do not fit search a better way in one turn: tens of milliseconds in a large network. The others search in the next turns.
const SEARCHES_MAX: usize = 64;

/// How many ways are tried for a link if none fits. At the bound, it takes the best of them.
const TRIES_MAX: usize = 16;

/// Whether a set of this number is one of a virtual link.
pub fn is_of_link(set: u64) -> bool {
    set & OF_LINK != 0
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Put a set of rules: [`VirtualLinks::write_rules`] has them.
    Put(u64),
    /// Remove a set, up to this version.
    Remove(u64, u64),
}

/// The rules of one direction.
#[derive(Debug)]
struct Rules {
    set: u64,
    /// The version that was put last; 0: none.
    version: u64,
    hops: Vec<Hop>,
    must_put: bool,
    /// Every switch has confirmed them.
    is_confirmed: bool,
    /// Rules of this direction were confirmed since the link has had a way.
    has_carried: bool,
    failure: Option<String>,
}

/// A link of a slice.
#[derive(Debug)]
struct Link {
    slice: usize,
    id: LinkId,
    /// The links of the network, from its first port to its last one.
    way: Option<Vec<LinkNo>>,
    /// Why it has no way.
    why: Option<String>,
    /// What its way does not carry.
    lack: Option<Lack>,
    /// There, and back.
    rules: [Rules; 2],
}

/// All links of all slices.
#[derive(Debug)]
pub struct VirtualLinks {
    slices: Slices,
    links: Vec<Link>,
    /// The link and the direction of a set.
    sets: HashMap<u64, (usize, usize)>,
    tables: Tables,
    /// What the ways of all links take.
    room: Room,
    settle: Settle,
    /// Of the links, how many are still to be asked whether they fit since the last change, and which one is next.
    unasked: usize,
    next_asked: usize,
    /// The network changed, or rules are to be put again.
    is_due: bool,
    last_version: u64,
}

impl VirtualLinks {
    /// No link has a way yet. Versions of rules are above `first_version`, which must grow with each start.
    pub fn new(
        slices: BTreeMap<String, SliceLinks>,
        first_version: u64,
        settle_ms: u64,
        now_ms: u64,
    ) -> VirtualLinks {
        let slices = Slices::new(slices);
        let (mut links, mut sets) = (Vec::new(), HashMap::new());
        for (slice, id) in slices.links() {
            let numbers = [id, id.reversed()].map(|direction| set_number(slices.name(slice), direction));
            // A link that is written twice is one link.
            if numbers.iter().any(|number| sets.contains_key(number)) {
                continue;
            }
            sets.extend([(numbers[0], (links.len(), 0)), (numbers[1], (links.len(), 1))]);
            links.push(Link { slice, id, way: None, why: None, lack: None, rules: numbers.map(Rules::new) });
        }
        let mut settle = Settle::new(settle_ms, now_ms);
        settle.on_loaded(!links.is_empty());
        VirtualLinks {
            is_due: !links.is_empty(),
            unasked: links.len(),
            next_asked: 0,
            room: Room::new(slices.all()),
            slices,
            links,
            sets,
            tables: Tables::default(),
            settle,
            last_version: first_version,
        }
    }

    /// A switch or a link changed.
    pub fn on_change(&mut self, now_ms: u64) {
        self.settle.on_change(now_ms);
        self.is_due = !self.links.is_empty();
        self.unasked = self.links.len();
    }

    /// Intents reserve more or less than before.
    pub fn on_reserved(&mut self) {
        if self.room.is_used() {
            (self.is_due, self.unasked) = (true, self.links.len());
        }
    }

    /// The view is complete, or not any more.
    pub fn on_view_complete(&mut self, is_complete: bool, now_ms: u64) {
        self.settle.on_view(is_complete, now_ms);
    }

    /// When to call [`VirtualLinks::on_time`], if nothing happens before.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.is_due.then(|| self.settle.ready_at_ms())
    }

    /// Gives each link that has none a way, moves those that do not fit if they can, and puts rules.
    pub fn on_time(&mut self, network: &mut Network, now_ms: u64, out: &mut Vec<Effect>) {
        if !self.is_due || self.settle.ready_at_ms() > now_ms {
            return;
        }
        self.settle.finish();
        self.is_due = false;
        self.begin(network);
        for number in 0..self.links.len() {
            let Link { id, ref way, .. } = self.links[number];
            if way.as_ref().is_none_or(|way| way::has_full(network, way, id, now_ms)) {
                self.choose(number, network, now_ms);
            }
        }
        self.move_unfit(network, now_ms);
        for number in 0..self.links.len() {
            self.judge(number, network);
            self.put(number, network, out);
            self.tell(number, network);
        }
    }

    /// Forgets ways that serve no more, and notes what the others take. A cable is the only way of its link, so it counts before others are chosen.
    fn begin(&mut self, network: &Network) {
        let VirtualLinks { links, room, .. } = self;
        let topology = network.graph.topology();
        room.clear();
        for Link { slice, id, way, .. } in links {
            way.take_if(|way| !way::serves(network, way));
            *way = way.take().or_else(|| way::cable(network, *id).map(|cable| vec![cable]));
            room.take(topology, way.as_deref().unwrap_or_default(), room.load(*slice, *id));
        }
    }

    /// Moves links that do not fit, where that helps. A link that moves makes room, so all are asked again: each such move leaves one less.
    fn move_unfit(&mut self, network: &mut Network, now_ms: u64) {
        let mut searches = 0;
        while self.unasked > 0 && searches < SEARCHES_MAX {
            let number = self.next_asked;
            self.next_asked = (number + 1) % self.links.len();
            self.unasked -= 1;
            self.judge(number, network);
            if self.links[number].lack.is_some() {
                searches += 1;
                self.choose(number, network, now_ms);
            }
        }
        self.is_due |= self.unasked > 0;
    }

    /// Chooses a way, if the link has none, or another one is better.
    fn choose(&mut self, number: usize, network: &mut Network, now_ms: u64) {
        let Link { slice, id, ref mut way, .. } = self.links[number];
        let (load, before) = (self.room.load(slice, id), way.take());
        self.room.give_back(network.graph.topology(), before.as_deref().unwrap_or_default(), load);
        let found = self.better(number, before.as_deref(), network, now_ms);
        if matches!(found, Ok(Some(_))) {
            self.unasked = self.links.len();
        }
        let link = &mut self.links[number];
        (link.way, link.why) = match found {
            Ok(better) => (better.or(before), None),
            // One with a full table is better than none.
            Err(why) => (before, Some(why)),
        };
        if link.way.is_none() {
            link.rules.iter_mut().for_each(|rules| rules.has_carried = false);
        }
        self.room.take(network.graph.topology(), link.way.as_deref().unwrap_or_default(), load);
    }

    /// A better way for a link than this one, which it has given back. `Ok(None)`: there is none.
    fn better(
        &mut self,
        number: usize,
        before: Option<&[LinkNo]>,
        network: &mut Network,
        now_ms: u64,
    ) -> Result<Option<Vec<LinkNo>>, String> {
        let Link { slice, id, .. } = self.links[number];
        let load = self.room.load(slice, id);
        let topology = network.graph.topology();
        let fits = |way: &[LinkNo]| self.room.lack(topology, way, load).is_none();
        let is_free = before.is_some_and(|way| !way::has_full(network, way, id, now_ms));
        if is_free && before.is_some_and(fits) {
            return Ok(None);
        }
        if let Some(cable) = way::cable(network, id) {
            return Ok((before != Some(&[cable])).then(|| vec![cable]));
        }
        match self.find(number, network, now_ms, 0) {
            Ok(way) => Ok(Some(way)),
            // A smaller shortfall is no reason to move: links could push each other back and forth.
            Err(_) if is_free => Ok(None),
            Err(_) => self.least_lacking(number, network, now_ms).map(Some),
        }
    }

    /// The way with the smallest shortfall: that of its worst hop counts.
    fn least_lacking(
        &mut self,
        number: usize,
        network: &mut Network,
        now_ms: u64,
    ) -> Result<Vec<LinkNo>, String> {
        let Link { slice, id, .. } = self.links[number];
        let load = self.room.load(slice, id);
        let mut best = self.find(number, network, now_ms, u64::MAX)?;
        for _ in 0..TRIES_MAX {
            let topology = network.graph.topology();
            let lacking = best.iter().map(|hop| self.room.lacking_bps(topology, topology.slot(*hop), load));
            let Some(less_bps) = lacking.max().unwrap_or_default().checked_sub(1) else { break };
            match self.find(number, network, now_ms, less_bps) {
                Ok(way) => best = way,
                Err(_) => break,
            }
        }
        Ok(best)
    }

    /// Searches a way on which no hop lacks more than this.
    fn find(
        &mut self,
        number: usize,
        network: &mut Network,
        now_ms: u64,
        lacking_bps_max: u64,
    ) -> Result<Vec<LinkNo>, String> {
        let Link { slice, id, .. } = self.links[number];
        self.slices.prepare(slice);
        let (blocked, used) = (self.slices.blocked(slice), self.used_by_rivals(number, network));
        let is_blocked = |at: &view::ConnectPoint| blocked.contains(at) && ![id.from, id.to].contains(at);
        let load = self.room.load(slice, id);
        let may = |topology: &Topology, hop: &LinkSlot| {
            ![hop.id.from, hop.id.to].iter().any(is_blocked)
                && !used.contains(&hop.id)
                && !used.contains(&hop.id.reversed())
                && self.room.lacking_bps(topology, hop, load) <= lacking_bps_max
        };
        way::find(network, id, may, now_ms)
    }

    /// Notes what the way of a link lacks, now that all links have theirs.
    fn judge(&mut self, number: usize, network: &Network) {
        let VirtualLinks { links, room, .. } = self;
        let Link { slice, id, way, lack, .. } = &mut links[number];
        let (topology, load) = (network.graph.topology(), room.load(*slice, *id));
        let way = way.as_deref().unwrap_or_default();
        room.give_back(topology, way, load);
        *lack = room.lack(topology, way, load);
        room.take(topology, way, load);
    }

    /// The links of the network under other links of slices with a packet in common.
    fn used_by_rivals(&self, number: usize, network: &Network) -> BTreeSet<LinkId> {
        let slice = self.links[number].slice;
        let is_rival =
            |(other, link): &(usize, &Link)| *other != number && self.slices.are_rivals(slice, link.slice);
        let rivals = self.links.iter().enumerate().filter(is_rival);
        let topology = network.graph.topology();
        rivals.flat_map(|(_, link)| link.way.iter().flatten()).map(|hop| topology.slot(*hop).id).collect()
    }

    /// Puts the rules of a link that are not those of its way. Without a way, the last rules stay: it may come back.
    fn put(&mut self, number: usize, network: &Network, out: &mut Vec<Effect>) {
        let link = &mut self.links[number];
        let Some(way) = &link.way else { return };
        let has_packets = self.slices.get(link.slice).is_some_and(|slice| !slice.packets.is_empty());
        let there = way::hops(network.graph.topology(), way);
        let back = there.iter().rev().map(|hop| Hop { in_port: hop.out_port, out_port: hop.in_port, ..*hop });
        let hops = [there.clone(), back.collect()];
        for (rules, hops) in link.rules.iter_mut().zip(hops) {
            let hops = if has_packets { hops } else { Vec::new() };
            let is_same = rules.hops == hops && !rules.must_put;
            if is_same && (rules.version != 0 || hops.is_empty()) {
                continue;
            }
            self.last_version += 1;
            let effect = match hops.is_empty() {
                true => Effect::Remove(rules.set, self.last_version),
                false => Effect::Put(rules.set),
            };
            rules.replace(hops, self.last_version);
            out.push(effect);
        }
    }

    /// The state of a set of rules. `None`: it is gone.
    pub fn on_rules(
        &mut self,
        set: u64,
        state: Option<&SetState>,
        network: &mut Network,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        let Some((number, direction)) = self.sets.get(&set).copied() else {
            // Rules of a link that its slice has no more.
            if let Some(state) = state.filter(|state| state.phase != Phase::Removing) {
                self.last_version = self.last_version.max(state.version) + 1;
                out.push(Effect::Remove(set, self.last_version));
            }
            return;
        };
        let rules = &mut self.links[number].rules[direction];
        match state {
            None => self.is_due |= rules.on_gone(),
            Some(state) => {
                self.last_version = self.last_version.max(state.version);
                // A process before this one has put it.
                let is_from_before = rules.version == 0 && state.phase != Phase::Removing;
                rules.must_put |= is_from_before;
                self.is_due |= is_from_before;
                if state.version != rules.version || rules.hops.is_empty() {
                    return;
                }
                if let Some(full) = rules.on_state(state) {
                    network.mark_full(full, now_ms);
                    self.is_due = true;
                }
            }
        }
        self.tell(number, network);
    }

    /// The service of rules did not take a set, or refused it for this reason.
    pub fn on_not_taken(&mut self, set: u64, why: Option<&str>, network: &Network) {
        let Some((number, direction)) = self.sets.get(&set).copied() else { return };
        let rules = &mut self.links[number].rules[direction];
        rules.must_put = true;
        match why {
            // It is tried again when the cause may be gone.
            Some(why) => rules.failure = Some(why.to_owned()),
            None => self.is_due = true,
        }
        self.tell(number, network);
    }

    /// All states of rules were told. Others do not exist.
    pub fn on_rules_complete(&mut self, there: &BTreeSet<u64>) {
        for rules in self.links.iter_mut().flat_map(|link| &mut link.rules) {
            if !there.contains(&rules.set) {
                self.is_due |= rules.on_gone();
            }
        }
    }

    /// Tells readers how a link is, once that is known.
    fn tell(&mut self, number: usize, network: &Network) {
        let link = &self.links[number];
        let Some(state) = link.state() else { return };
        let topology = network.graph.topology();
        let hops: Vec<LinkId> = match &link.way {
            Some(way) if state.is_up => way.iter().map(|hop| topology.slot(*hop).id).collect(),
            _ => Vec::new(),
        };
        let back = hops.iter().rev().map(|hop| hop.reversed()).collect();
        let name = self.slices.name(link.slice).to_owned();
        let state = LinkState { lack: link.lack.filter(|_| state.is_up), ..state };
        self.tables.put(&name, link.id, LinkState { hops, ..state.clone() });
        self.tables.put(&name, link.id.reversed(), LinkState { hops: back, ..state });
    }

    /// A reader follows the links of a slice, or of all.
    ///
    /// # Errors
    /// There is no such slice.
    pub fn follow(&mut self, links_of: &str, query: &Query<'_>, out: &mut Commands) -> Result<(), String> {
        if links_of != ALL_SLICES && !self.slices.has(links_of) {
            return Err(format!("there is no slice {links_of}"));
        }
        self.tables.follow(links_of, query, out);
        Ok(())
    }

    /// Sends to readers what changed.
    pub fn send(&mut self, out: &mut Commands) {
        self.tables.send(out);
    }

    /// The version of a set, for the effect [`Effect::Put`].
    pub fn version(&self, set: u64) -> Option<u64> {
        let (number, direction) = self.sets.get(&set)?;
        Some(self.links[*number].rules[*direction].version)
    }

    /// Writes the rules of a set, for the effect [`Effect::Put`].
    pub fn write_rules(&self, set: u64, items: &mut Items<'_>) {
        let Some((number, direction)) = self.sets.get(&set).copied() else { return };
        let link = &self.links[number];
        let hops = hop_bytes(&link.rules[direction].hops);
        let mut selector = Vec::new();
        for packets in self.slices.get(link.slice).into_iter().flat_map(|slice| &slice.packets) {
            selector.clear();
            write_match(packets, &mut selector);
            items.path(&Path {
                table_id: crate::rules::TABLE,
                priority: PRIORITY,
                selector: &selector,
                treatment: &[],
                hops: Hops::of(&hops),
            });
        }
    }
}

impl Rules {
    fn new(set: u64) -> Rules {
        Rules {
            set,
            version: 0,
            hops: Vec::new(),
            must_put: false,
            is_confirmed: false,
            has_carried: false,
            failure: None,
        }
    }

    fn replace(&mut self, hops: Vec<Hop>, version: u64) {
        (self.hops, self.version) = (hops, version);
        (self.must_put, self.is_confirmed, self.failure) = (false, false, None);
    }

    /// The switches do not have them any more. Says whether they are to be put again.
    fn on_gone(&mut self) -> bool {
        self.must_put |= self.version != 0 && !self.hops.is_empty();
        self.is_confirmed &= !self.must_put;
        self.must_put
    }

    /// Returns a switch whose table is full.
    fn on_state(&mut self, state: &SetState) -> Option<flow::DatapathId> {
        let is_between = |switch: &flow::DatapathId| self.hops.iter().any(|hop| hop.switch == *switch);
        self.failure = None;
        match &state.phase {
            Phase::Installed => (self.is_confirmed, self.has_carried) = (true, true),
            Phase::Waiting { switches } => match switches.iter().find(|switch| is_between(switch)) {
                // What is left of the earlier way goes when its switch comes back.
                None => (self.is_confirmed, self.has_carried) = (true, true),
                Some(switch) => self.failure = Some(format!("the switch {switch} is not connected")),
            },
            Phase::Failed(failure) => {
                let (switch, reason) = (failure.switch, &failure.reason);
                self.failure = Some(format!("the switch {switch} does not take a rule: {reason}"));
                return (failure.failure == FailureKind::TableFull).then_some(switch);
            }
            Phase::Pending | Phase::Removing => {}
        }
        None
    }
}

impl Link {
    /// How the link is, without its hops. `None`: the switches have not said yet whether they take its rules.
    fn state(&self) -> Option<LinkState> {
        let down = |why: &String| LinkState { why: Some(why.clone()), ..LinkState::default() };
        if self.way.is_none() {
            return self.why.as_ref().map(down);
        }
        if let Some(why) = self.rules.iter().find_map(|rules| rules.failure.as_ref()) {
            return Some(down(why));
        }
        let carries = |rules: &Rules| rules.hops.is_empty() || rules.is_confirmed || rules.has_carried;
        self.rules.iter().all(carries).then(|| LinkState { is_up: true, ..LinkState::default() })
    }
}

/// The number of a set follows from what it is, so that a later process of the service finds it again.
fn set_number(slice: &str, direction: LinkId) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in slice.bytes().chain([0]).chain(direction.to_string().bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash | OF_LINK
}

#[cfg(test)]
mod tests;
