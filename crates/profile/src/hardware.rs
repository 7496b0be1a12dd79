//! The hardware flow table: how many rules it has, what a change costs, and what happens when it is full.

use crate::curve::Curve;
use crate::quantiles::Quantiles;
use flow::{Field, Match, MatchEntry};

/// Classes of matches with different numbers of entries.
pub const CAPACITIES_MAX: usize = 32;

/// Keys by which a victim is chosen, one after another.
pub const VICTIMS_MAX: usize = 4;

/// How many entries a class of matches has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capacity {
    /// The class: matches that look at no other fields than these. Empty: every match.
    pub fields: Vec<Field>,
    /// Whether the class has only matches without a mask.
    pub exact: bool,
    /// How many rules there are if all are of this class.
    pub entries: u32,
    /// The probe stopped before it found the end: there are `entries` or more, and the model has no bound here.
    pub at_least: bool,
    /// Classes with the same number share one memory. A rule of a class with n entries takes 1/n of it.
    pub memory: u8,
}

impl Capacity {
    /// Entries for every match.
    pub fn any(entries: u32) -> Self {
        Capacity { fields: Vec::new(), exact: false, entries, at_least: false, memory: 0 }
    }

    /// Whether a match is of this class.
    pub fn takes(&self, of: &Match) -> bool {
        of.entries().iter().all(|entry| match entry {
            MatchEntry::Field { field, mask, .. } => {
                let whole = mask.is_none_or(|mask| mask == field.full_mask());
                (self.fields.is_empty() || self.fields.contains(field)) && (whole || !self.exact)
            }
            MatchEntry::Unknown { .. } => self.fields.is_empty() && !self.exact,
        })
    }
}

/// What it costs to add a rule, by the priorities of the rules that are there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddCost {
    /// All have the same priority as the new rule.
    pub same: Curve,
    /// All have a lower priority: rules come in ascending order.
    pub ascending: Curve,
    /// All have a higher priority: rules come in descending order.
    pub descending: Curve,
    /// Half have a lower and half a higher priority. None: the mean of ascending and descending.
    pub random: Option<Curve>,
}

impl AddCost {
    /// The same cost in any order.
    pub fn any_order(curve: Curve) -> Self {
        AddCost { same: curve.clone(), ascending: curve.clone(), descending: curve, random: None }
    }

    /// The cost in µs, with `rules` in the table, of which `lower` have a lower and `higher` a higher priority.
    ///
    /// The pure orders give their own curves. Mixtures lie between: linear in both shares, and bent so that half and half gives
    /// [`Self::random`].
    pub fn at(&self, rules: u32, lower: u32, higher: u32) -> f64 {
        let count = f64::from(rules);
        if rules == 0 || (lower == 0 && higher == 0) {
            return self.same.at(count);
        }
        let (below, above) = (f64::from(lower) / count, f64::from(higher) / count);
        let same = self.same.at(count);
        let (ascending, descending) = (self.ascending.at(count), self.descending.at(count));
        let straight = same + below * (ascending - same) + above * (descending - same);
        let Some(random) = &self.random else { return straight.max(0.0) };
        let bend = random.at(count) - (ascending + descending) / 2.0;
        (straight + 4.0 * below * above * bend).max(0.0)
    }
}

/// How the hardware changes the actions of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModifyKind {
    /// In its place, at the cost of [`Hardware::modify`].
    #[default]
    InPlace,
    /// As a delete and then an add, at the cost of both. Between them, packets find no rule.
    DeleteAndAdd,
}

/// What passes between two stalls.
#[derive(Clone, Debug, PartialEq)]
pub enum StallInterval {
    /// So much time.
    TimeUs(Quantiles),
    /// So many changes of the table.
    Changes(u32),
}

impl Default for StallInterval {
    fn default() -> Self {
        StallInterval::TimeUs(Quantiles::default())
    }
}

/// A stall: from time to time, the hardware takes no change for a while.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stall {
    /// From the end of one stall to the start of the next.
    pub interval: StallInterval,
    /// How long it lasts.
    pub lasts_us: Quantiles,
}

/// What happens to a rule that finds the table full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The switch sends the error OFPFMFC_TABLE_FULL.
    #[default]
    Refuse,
    /// The rule is lost, and the switch sends no error.
    Ignore,
    /// The rule goes to the software table.
    Spill,
    /// Another rule makes place. It goes to the software table if the switch has one, and is removed otherwise.
    Evict,
}

/// Which rule makes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The one that was added first.
    Oldest,
    /// The one that was added last.
    Newest,
    /// The one whose last packet is the longest ago.
    LeastRecentlyUsed,
    /// The one whose last packet is the shortest ago.
    MostRecentlyUsed,
    /// The one with the fewest packets.
    LeastUsed,
    /// The one with the most packets.
    MostUsed,
    /// The one with the lowest priority.
    LowestPriority,
    /// The one with the highest priority.
    HighestPriority,
    /// Any.
    Random,
}

/// The hardware flow table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hardware {
    /// How many entries there are, by match. The first class that takes a match counts. A match of no class cannot be in hardware.
    pub capacities: Vec<Capacity>,
    /// What an add costs.
    pub add: AddCost,
    /// What a modify in place costs, for each rule that changes.
    pub modify: Curve,
    /// How a rule is modified.
    pub modify_kind: ModifyKind,
    /// What a delete costs, for each rule that goes.
    pub delete: Curve,
    /// Whether the CPU waits for the hardware, so that these costs are part of the service time of the flow mod. Otherwise the
    /// hardware works beside the CPU, one change after another.
    pub cpu_waits: bool,
    /// Stalls. None: none was seen.
    pub stall: Option<Stall>,
    /// What happens when there is no place.
    pub when_full: WhenFull,
    /// Which rule makes place, for [`WhenFull::Evict`]: by the first key; among equals by the next.
    pub evict: Vec<Victim>,
}

impl Hardware {
    /// The class of a match: its index in `capacities`. None: it cannot be in hardware.
    pub fn class_of(&self, of: &Match) -> Option<usize> {
        self.capacities.iter().position(|class| class.takes(of))
    }
}
