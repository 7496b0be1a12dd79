//! A model of a network: switches with tables, and the service `flows` as its contract describes it.
//!
//! ```text
//!   engine ──effects──> sets ──stage by stage──> commands on the way, in random order, some lost ──> tables ──> walks of packets
//!          <──states of sets──┘
//! ```
//!
//! In: effects of the engine, a seed. Out: states of sets, and where a packet ends up. It knows no paths: what it says about packets
//! follows from the tables alone.

use flow::canonical::{actions_raw, buckets_raw, read_actions, read_instructions, read_match, write_match};
use flow::frame::FrameFields;
use flow::{Action, DatapathId, Field, Instruction, Match, PortNo};
use flows_contract::{Failure, FailureKind, Hop, Item, Items, Phase, SetState, items};
use std::collections::{BTreeMap, BTreeSet};
use view::{ConnectPoint, LinkId};

/// A generator of numbers (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// What identifies an entry: a rule by its priority and match, a group by its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Group(DatapathId, u32),
    Rule(DatapathId, u16, Vec<u8>),
}

impl Place {
    pub fn switch(&self) -> DatapathId {
        match self {
            Place::Group(switch, _) | Place::Rule(switch, ..) => *switch,
        }
    }
}

/// Where a packet ended up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// The ports where it left the network.
    pub out: BTreeSet<ConnectPoint>,
    /// It met a switch without a rule for it, or a link that is down.
    pub lost: bool,
    /// It was at the same port more often than can be.
    pub looped: bool,
}

struct Set {
    version: u64,
    /// The content of each entry, and its stage.
    wanted: BTreeMap<Place, (Vec<u8>, u8)>,
    is_removing: bool,
    told: Option<SetState>,
}

/// The model.
pub struct Model {
    pub random: Random,
    /// What the switches hold: the content of each entry.
    pub tables: BTreeMap<Place, Vec<u8>>,
    sets: BTreeMap<u64, Set>,
    /// The cables by their ends, both directions; those that carry frames.
    pub up: BTreeMap<ConnectPoint, ConnectPoint>,
    /// Switches that take no further rule.
    pub full: BTreeSet<DatapathId>,
}

impl Model {
    pub fn new(seed: u64) -> Model {
        Model {
            random: Random::new(seed),
            tables: BTreeMap::new(),
            sets: BTreeMap::new(),
            up: BTreeMap::new(),
            full: BTreeSet::new(),
        }
    }

    pub fn set_link(&mut self, link: LinkId, is_up: bool) {
        match is_up {
            true => drop(self.up.insert(link.from, link.to)),
            false => drop(self.up.remove(&link.from)),
        }
    }

    pub fn put(&mut self, id: u64, version: u64, write: impl FnOnce(&mut Items<'_>)) {
        let mut bytes = Vec::new();
        write(&mut Items::new(&mut bytes));
        let mut wanted = BTreeMap::new();
        for (_, item) in items(&bytes) {
            add_item(&item, &mut wanted);
        }
        let known = self.sets.get(&id).map_or(0, |set| set.version);
        assert!(version > known, "the version of intent {id} went from {known} to {version}");
        self.sets.insert(id, Set { version, wanted, is_removing: false, told: None });
    }

    pub fn remove(&mut self, id: u64, version: u64) {
        let Some(set) = self.sets.get_mut(&id) else { panic!("there is no set of intent {id}") };
        assert!(version >= set.version);
        (set.is_removing, set.told) = (true, None);
        set.wanted.clear();
    }

    /// The entries of a switch that a set of this intent has put, in this version or an earlier one. Owners are told apart by what they
    /// want, so places are unique to an intent in these tests.
    fn is_wanted(&self, place: &Place) -> bool {
        self.sets.values().any(|set| set.wanted.contains_key(place))
    }

    /// Does one thing that can be done now: a random one. `false`: everything is as wanted.
    pub fn step(&mut self) -> bool {
        let mut possible: Vec<(Place, Option<Vec<u8>>)> = Vec::new();
        for set in self.sets.values() {
            possible.extend(self.next_of(set).into_iter().map(|(place, content)| (place, Some(content))));
        }
        let are_all_there = possible.is_empty();
        if are_all_there {
            // What is gone is removed after what is new is confirmed: rules before the groups that they use.
            let stale = || self.tables.keys().filter(|place| !self.is_wanted(place));
            let rules: Vec<_> = stale().filter(|place| matches!(place, Place::Rule(..))).cloned().collect();
            let stale: Vec<_> = if rules.is_empty() { stale().cloned().collect() } else { rules };
            possible.extend(stale.into_iter().map(|place| (place, None)));
        }
        possible.retain(|(place, content)| {
            content.is_none() || self.tables.contains_key(place) || !self.full.contains(&place.switch())
        });
        if possible.is_empty() {
            return false;
        }
        let number = self.random.below(possible.len());
        let (place, content) = possible.swap_remove(number);
        // A third of all commands is lost on the way, and sent again.
        if self.random.below(3) == 0 {
            return true;
        }
        match content {
            Some(content) => drop(self.tables.insert(place, content)),
            None => drop(self.tables.remove(&place)),
        }
        true
    }

    /// The entries of a set that are to be added now: the groups, then the lowest stage that is not complete.
    fn next_of(&self, set: &Set) -> Vec<(Place, Vec<u8>)> {
        let missing =
            || set.wanted.iter().filter(|(place, (content, _))| self.tables.get(place) != Some(content));
        let order = |place: &Place, stage: u8| (matches!(place, Place::Rule(..)), stage);
        let Some(first) = missing().map(|(place, (_, stage))| order(place, *stage)).min() else {
            return Vec::new();
        };
        let now = missing().filter(|(place, (_, stage))| order(place, *stage) == first);
        now.map(|(place, (content, _))| (place.clone(), content.clone())).collect()
    }

    /// The states that changed.
    pub fn states(&mut self) -> Vec<(u64, Option<SetState>)> {
        let mut changed = Vec::new();
        let leftover = self.tables.keys().any(|place| !self.is_wanted(place));
        let ids: Vec<u64> = self.sets.keys().copied().collect();
        for id in ids {
            let set = &self.sets[&id];
            let missing: Vec<Place> = self.next_of(set).into_iter().map(|(place, _)| place).collect();
            if set.is_removing && !leftover {
                self.sets.remove(&id);
                changed.push((id, None));
                continue;
            }
            let full = missing.iter().map(Place::switch).find(|switch| self.full.contains(switch));
            let phase = match full {
                _ if set.is_removing => Phase::Removing,
                Some(switch) => Phase::Failed(Failure {
                    switch,
                    rule: 0,
                    failure: FailureKind::TableFull,
                    reason: "full".to_owned(),
                }),
                None if missing.is_empty() && !leftover => Phase::Installed,
                None => Phase::Pending,
            };
            let state = SetState { version: set.version, wanted: 0, confirmed: 0, phase };
            if set.told.as_ref() != Some(&state) {
                changed.push((id, Some(state.clone())));
                if let Some(set) = self.sets.get_mut(&id) {
                    set.told = Some(state);
                }
            }
        }
        changed
    }

    /// Sends a packet in at a port.
    pub fn walk(&self, frame: &[u8], at: ConnectPoint) -> Walk {
        let mut walk = Walk::default();
        let mut at_ports = vec![at];
        let mut seen: BTreeMap<ConnectPoint, u32> = BTreeMap::new();
        while let Some(at) = at_ports.pop() {
            let times = seen.entry(at).or_default();
            *times += 1;
            if *times > 2 {
                walk.looped = true;
                return walk;
            }
            let Some(outputs) = self.outputs(frame, at) else {
                walk.lost = true;
                continue;
            };
            for port in outputs {
                let port = if port == PortNo::IN_PORT { at.port } else { port };
                let out = ConnectPoint { switch: at.switch, port };
                match self.up.get(&out) {
                    Some(next) => at_ports.push(*next),
                    None if is_edge(port) => drop(walk.out.insert(out)),
                    None => walk.lost = true,
                }
            }
        }
        walk
    }

    /// The ports to which a switch sends a frame. `None`: it has no rule.
    fn outputs(&self, frame: &[u8], at: ConnectPoint) -> Option<Vec<PortNo>> {
        let fields = FrameFields::read(frame).from_port(at.port);
        let mut best: Option<(u16, &Vec<u8>)> = None;
        for (place, content) in &self.tables {
            let Place::Rule(switch, priority, matching) = place else { continue };
            let matches = || read_match(matching).expect("a match").matches(&fields);
            if *switch == at.switch && best.is_none_or(|(least, _)| *priority > least) && matches() {
                best = Some((*priority, content));
            }
        }
        let instructions = read_instructions(best?.1).expect("instructions");
        let mut ports = Vec::new();
        for instruction in instructions {
            let Instruction::ApplyActions(actions) = instruction else { panic!("{instruction:?}") };
            for action in actions {
                match action {
                    Action::Output { port, .. } => ports.push(port),
                    Action::Group(group) => ports.extend(self.live_bucket(at.switch, group)),
                    _ => {}
                }
            }
        }
        Some(ports)
    }

    /// The output of a fast-failover group: its first bucket whose port has a signal.
    fn live_bucket(&self, switch: DatapathId, group: u32) -> Option<PortNo> {
        let buckets =
            self.tables.get(&Place::Group(switch, group)).expect("a rule uses a group that is not there");
        let live = |port: PortNo| is_edge(port) || self.up.contains_key(&ConnectPoint { switch, port });
        let mut buckets = buckets_raw(buckets).map(|bucket| bucket.expect("a bucket"));
        let bucket = buckets.find(|bucket| live(bucket.watch_port))?;
        assert_eq!(actions_raw(bucket.actions).count(), 1);
        match read_actions(bucket.actions).expect("actions").as_slice() {
            [Action::Output { port, .. }] => Some(*port),
            other => panic!("{other:?}"),
        }
    }
}

/// Ports from 100 on have no link.
pub fn is_edge(port: PortNo) -> bool {
    port.0 >= 100
}

fn add_item(item: &Item<'_>, wanted: &mut BTreeMap<Place, (Vec<u8>, u8)>) {
    let mut add = |place, content, stage| {
        assert!(wanted.insert(place, (content, stage)).is_none(), "two entries at one place");
    };
    match item {
        Item::Rule(rule) => {
            let place = Place::Rule(rule.switch, rule.priority, rule.matching.to_vec());
            add(place, rule.instructions.to_vec(), rule.stage);
        }
        Item::Group(group) => add(Place::Group(group.switch, group.group_id), group.buckets.to_vec(), 0),
        Item::Path(path) => {
            let selector = read_match(path.selector).expect("a match");
            let last = path.hops.len() - 1;
            for (number, hop) in path.hops.iter().enumerate() {
                let treatment = if number == last { path.treatment } else { &[] };
                let place = Place::Rule(hop.switch, path.priority, matching_at(&selector, hop));
                // A rule waits for all rules behind it.
                let stage = u8::try_from(last - number).expect("a short path");
                add(place, instructions_of(treatment, hop), stage);
            }
        }
        Item::Meter(_) => panic!("an intent has no meter"),
    }
}

fn matching_at(selector: &Match, hop: Hop) -> Vec<u8> {
    let mut matching = Vec::new();
    write_match(&selector.clone().with(Field::InPort, hop.in_port).sorted(), &mut matching);
    matching
}

fn instructions_of(treatment: &[u8], hop: Hop) -> Vec<u8> {
    let port = if hop.in_port == hop.out_port { PortNo::IN_PORT } else { hop.out_port };
    let mut actions = read_actions(treatment).expect("actions");
    actions.push(Action::output(port));
    let mut bytes = Vec::new();
    flow::canonical::write_instructions(&[Instruction::ApplyActions(actions)], &mut bytes)
        .expect("canonical");
    bytes
}
