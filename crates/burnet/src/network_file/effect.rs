//! What one step changes in the switches, and where.
//!
//! In: intents, sets of rules, ways. Out: numbers of rules for each switch, and the ports and rules that are touched. Numbers of intents that are not
//! compiled yet follow from the way that the node would choose now, so they are an estimate.

use super::current::{Current, Known};
use super::document::Document;
use burnet_sdk::view::{ConnectPoint, Ends, HostId, Intent, LinkId, Rule, Wanted};
use flow::{DatapathId, Instruction, Match};
use flows_contract::{WantedRule, WantedSet};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Rules that are added and removed in a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Added, or replaced by others.
    pub added: u64,
    /// Removed.
    pub removed: u64,
}

/// A rule of a set, in a form that can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlainRule {
    /// The switch.
    pub switch: DatapathId,
    /// The table.
    pub table_id: u8,
    /// The priority.
    pub priority: u16,
    /// The match, sorted.
    pub matching: Match,
    /// The instructions.
    pub instructions: Vec<Instruction>,
}

/// What a step changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// For each switch.
    pub counts: BTreeMap<DatapathId, Count>,
    /// Whether a way is not known: the numbers are too low.
    pub is_open: bool,
    /// The ports at which paths begin and end, and those of their links.
    pub ports: BTreeSet<ConnectPoint>,
    /// Rules of sets that are added or removed.
    pub rules: Vec<PlainRule>,
}

impl From<&WantedRule> for PlainRule {
    fn from(rule: &WantedRule) -> PlainRule {
        PlainRule {
            switch: rule.switch,
            table_id: rule.table_id,
            priority: rule.priority,
            matching: rule.matching.clone().sorted(),
            instructions: rule.instructions.clone(),
        }
    }
}

impl From<&Rule> for PlainRule {
    fn from(rule: &Rule) -> PlainRule {
        PlainRule {
            switch: rule.id.switch,
            table_id: rule.table_id,
            priority: rule.priority,
            matching: rule.matching.clone().sorted(),
            instructions: rule.instructions.clone(),
        }
    }
}

impl PlainRule {
    /// What a switch takes for one rule: another rule with the same place replaces it.
    fn place(&self) -> (DatapathId, u8, u16, &Match) {
        (self.switch, self.table_id, self.priority, &self.matching)
    }
}

impl Effect {
    fn count(&mut self, switch: DatapathId, is_added: bool) {
        let count = self.counts.entry(switch).or_default();
        match is_added {
            true => count.added += 1,
            false => count.removed += 1,
        }
    }

    /// A path: a rule in each switch.
    fn path(&mut self, from: ConnectPoint, to: ConnectPoint, links: &[LinkId], is_added: bool) {
        self.ports.extend([from, to]);
        self.count(from.switch, is_added);
        for link in links {
            self.ports.extend([link.from, link.to]);
            self.count(link.to.switch, is_added);
        }
    }

    /// Adds what another step changes.
    pub fn add(&mut self, other: &Effect) {
        for (switch, count) in &other.counts {
            let sum = self.counts.entry(*switch).or_default();
            sum.added += count.added;
            sum.removed += count.removed;
        }
        self.is_open |= other.is_open;
        self.ports.extend(&other.ports);
        self.rules.extend(other.rules.iter().cloned());
    }

    /// Rules that are added and removed.
    pub fn total(&self) -> u64 {
        self.counts.values().map(|count| count.added + count.removed).sum()
    }
}

/// The two ports of a way.
type WayEnds = (ConnectPoint, ConnectPoint);

/// Where hosts are, or will be.
pub type Places = BTreeMap<HostId, ConnectPoint>;

/// Where hosts will be when the file is applied.
pub fn places(document: &Document, current: &Current) -> Places {
    let present = current.hosts.iter().map(|host| (host.id, host.at));
    present.chain(document.hosts.iter().map(|host| (host.id, host.at))).collect()
}

/// The ports between which an intent needs ways. `None`: the place of a host is not known. An explicit intent names its way itself.
fn pairs(wanted: &Wanted, places: &Places) -> Vec<Option<WayEnds>> {
    match &wanted.ends {
        Ends::HostToHost { one, two } => {
            let both = places.get(one).copied().zip(places.get(two).copied());
            vec![both, both.map(|(one, two)| (two, one))]
        }
        Ends::PointToPoint { from, to } => vec![Some((*from, *to))],
        Ends::MultiToSingle { from, to } => from.iter().map(|from| Some((*from, *to))).collect(),
        Ends::SingleToMulti { from, to } => to.iter().map(|to| Some((*from, *to))).collect(),
        Ends::Explicit { .. } => Vec::new(),
    }
}

/// The ways that a plan needs to know for an intent.
pub fn ways_of(wanted: &Wanted, places: &Places) -> Vec<WayEnds> {
    pairs(wanted, places).into_iter().flatten().collect()
}

/// What an intent adds.
pub fn of_wanted(wanted: &Wanted, places: &Places, current: &Current) -> Effect {
    let mut effect = Effect::default();
    if let Ends::Explicit { from, to, links } = &wanted.ends {
        effect.path(*from, *to, links, true);
    }
    for ends in pairs(wanted, places) {
        let known = ends.and_then(|ends| Some((ends, current.ways.get(&(ends.0.switch, ends.1.switch))?)));
        match known {
            Some(((from, to), links)) => effect.path(from, to, links, true),
            None => {
                effect.is_open = true;
                effect.ports.extend(ends.into_iter().flat_map(|(from, to)| [from, to]));
            }
        }
    }
    effect
}

/// What the paths of an intent, as they are, remove.
pub fn of_present(intent: &Intent, known: &Known<'_>) -> Effect {
    let mut effect = Effect::default();
    for path in known.paths_of(intent.id) {
        effect.path(path.from, path.to, &path.links, false);
    }
    effect
}

/// What a set adds and removes. `None`: nothing.
pub fn of_set(wanted: Option<&WantedSet>, name: &str, known: &Known<'_>) -> Option<Effect> {
    let before: Vec<PlainRule> = known.rules_of(name).iter().map(|rule| PlainRule::from(*rule)).collect();
    let after: Vec<PlainRule> = wanted.iter().flat_map(|set| &set.rules).map(PlainRule::from).collect();
    let (there, coming): (HashSet<_>, HashSet<_>) = (before.iter().collect(), after.iter().collect());
    let places: HashSet<_> = after.iter().map(PlainRule::place).collect();
    let mut effect = Effect::default();
    for rule in after.iter().filter(|rule| !there.contains(rule)) {
        effect.count(rule.switch, true);
        effect.rules.push(rule.clone());
    }
    for rule in before.iter().filter(|rule| !coming.contains(rule)) {
        if !places.contains(&rule.place()) {
            effect.count(rule.switch, false);
        }
        effect.rules.push(rule.clone());
    }
    (!effect.rules.is_empty()).then_some(effect)
}
