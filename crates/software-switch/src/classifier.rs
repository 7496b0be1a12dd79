//! Finds the flow entry that matches a packet, by tuple-space search (Srinivasan, Suri and Varghese, SIGCOMM 1999).
//! Open vSwitch uses it too.
//!
//! ```text
//!   match, priority ──> Classifier ──> the slot of the very entry of this match and priority
//!   packet's key ─────────────────────> the slot of the entry of the highest priority that speaks of it
//! ```
//!
//! All matches that test the same bits form one *tuple*: one hash table, in which one probe finds the entry. Tuples
//! are searched in the order of their highest priorities. The search ends when no later tuple can have a higher one.
//!
//! Adding, removing and finding an entry takes the same time for any number of entries. A search for a packet takes
//! at most one probe for each mask in use. If several entries of one priority match a packet, any of them may be used
//! (1.3.5, 5.3); the search always finds the same one.
//!
//! It never holds the entries, only the numbers of their slots. Its size follows the table, which its owner bounds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::flow_key::{FlowKey, Mask, MaskedKey, WordHash};

/// An entry in the classifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ranked {
    priority: u16,
    slot: u32,
}

/// The entries with one match and different priorities.
#[derive(Clone, Debug)]
struct Chain {
    highest: Ranked,
    /// The other entries, the highest priority first. Almost always empty.
    others: Vec<Ranked>,
}

/// The entries whose matches test the same bits.
#[derive(Clone, Debug)]
struct Tuple {
    mask: Mask,
    chains: HashMap<Box<[u64]>, Chain, WordHash>,
    /// How many entries there are of each priority.
    priorities: BTreeMap<u16, u32>,
}

/// A tuple's place in the search order: the highest priority first, and for equal priorities the lower number.
type Rank = (Reverse<u16>, u32);

/// What the search must know of a tuple before it probes it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    rank: Rank,
    /// The fields that a packet must have.
    fields: u64,
}

/// The matches of a flow table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classifier {
    tuples: Vec<Option<Tuple>>,
    /// The numbers of unused tuples.
    free: Vec<u32>,
    by_mask: HashMap<Mask, u32, WordHash>,
    order: Vec<Asked>,
    /// The bits that any match has tested since the table was empty.
    looked_at: Mask,
}

impl Classifier {
    /// The entry of the highest priority that matches a packet.
    pub(crate) fn find(&self, key: &FlowKey) -> Option<u32> {
        let mut best: Option<Ranked> = None;
        for Asked { rank: (Reverse(priority), number), fields } in &self.order {
            if best.is_some_and(|best| best.priority >= *priority) {
                break;
            }
            if !key.has_all(*fields) {
                continue;
            }
            let Some(tuple) = self.tuple(*number) else { continue };
            if let Some(chain) = tuple.chains.get(tuple.mask.applied_to(key).as_ref())
                && best.is_none_or(|best| chain.highest.priority > best.priority)
            {
                best = Some(chain.highest);
            }
        }
        best.map(|best| best.slot)
    }

    /// The entry of exactly this match and priority.
    pub(crate) fn exactly(&self, wanted: &MaskedKey, priority: u16) -> Option<u32> {
        let chain = self.tuple(*self.by_mask.get(&wanted.mask)?)?.chains.get(&wanted.value)?;
        chain.all().find(|ranked| ranked.priority == priority).map(|ranked| ranked.slot)
    }

    /// The entries of a priority that may overlap with `wanted`. All that overlap are among them.
    pub(crate) fn near<'a>(&'a self, wanted: &'a MaskedKey, priority: u16) -> impl Iterator<Item = u32> + 'a {
        let tuples =
            self.tuples.iter().flatten().filter(move |tuple| tuple.priorities.contains_key(&priority));
        let chains = tuples.flat_map(|tuple| {
            // If `wanted` fixes all bits that the tuple tests, one probe finds all entries that agree with it.
            let probe = tuple.mask.narrowed(wanted);
            let probed = probe.as_ref().and_then(|probe| tuple.chains.get(probe.as_ref()));
            let rest = probe.is_none().then(|| tuple.chains.values());
            probed.into_iter().chain(rest.into_iter().flatten())
        });
        let entries = chains.flat_map(Chain::all);
        entries.filter(move |ranked| ranked.priority == priority).map(|ranked| ranked.slot)
    }

    /// The bits that any match tests. May include bits that only a removed match tested.
    pub(crate) fn looked_at(&self) -> &Mask {
        &self.looked_at
    }

    /// Adds an entry that is not in it yet.
    pub(crate) fn insert(&mut self, key: MaskedKey, priority: u16, slot: u32) {
        let number = self.number_for(key.mask);
        self.ranked_anew(number, |tuple| {
            *tuple.priorities.entry(priority).or_insert(0) += 1;
            let ranked = Ranked { priority, slot };
            tuple
                .chains
                .entry(key.value)
                .and_modify(|chain| chain.insert(ranked))
                .or_insert(Chain::of(ranked));
        });
    }

    /// Removes the entry of exactly this match and priority, and its tuple if that is empty then.
    pub(crate) fn remove(&mut self, key: &MaskedKey, priority: u16) {
        let Some(number) = self.by_mask.get(&key.mask).copied() else { return };
        self.ranked_anew(number, |tuple| {
            let Some(chain) = tuple.chains.get_mut(&key.value) else { return };
            if !chain.remove(priority) {
                tuple.chains.remove(&key.value);
            }
            if let Some(count) = tuple.priorities.get_mut(&priority) {
                *count -= 1;
                if *count == 0 {
                    tuple.priorities.remove(&priority);
                }
            }
        });
        if self.tuple(number).is_some_and(|tuple| tuple.chains.is_empty()) {
            self.tuples[number as usize] = None;
            self.by_mask.remove(&key.mask);
            self.free.push(number);
        }
        if self.by_mask.is_empty() {
            self.looked_at = Mask::default();
        }
    }

    fn tuple(&self, number: u32) -> Option<&Tuple> {
        self.tuples.get(number as usize)?.as_ref()
    }

    /// The number of a mask's tuple. Makes the tuple if there is none.
    fn number_for(&mut self, mask: Mask) -> u32 {
        if let Some(number) = self.by_mask.get(&mask) {
            return *number;
        }
        let tuple = Tuple { mask: mask.clone(), chains: HashMap::default(), priorities: BTreeMap::new() };
        let number = self.free.pop().unwrap_or_else(|| {
            self.tuples.push(None);
            // A table holds fewer entries than this has room for, and no tuple is empty.
            (self.tuples.len() - 1) as u32
        });
        self.tuples[number as usize] = Some(tuple);
        self.looked_at = self.looked_at.or(&mask);
        self.by_mask.insert(mask, number);
        number
    }

    /// Changes a tuple, and its place in the search order if its highest priority has changed.
    fn ranked_anew(&mut self, number: u32, change: impl FnOnce(&mut Tuple)) {
        let Some(tuple) = self.tuples[number as usize].as_mut() else { return };
        let before = tuple.highest();
        change(tuple);
        let (after, fields) = (tuple.highest(), tuple.mask.fields());
        if before == after {
            return;
        }
        let place = |order: &[Asked], rank: Rank| order.partition_point(|asked| asked.rank < rank);
        if let Some(priority) = before {
            self.order.remove(place(&self.order, (Reverse(priority), number)));
        }
        if let Some(priority) = after {
            let rank = (Reverse(priority), number);
            self.order.insert(place(&self.order, rank), Asked { rank, fields });
        }
    }
}

impl Tuple {
    fn highest(&self) -> Option<u16> {
        self.priorities.last_key_value().map(|(priority, _)| *priority)
    }
}

impl Chain {
    fn of(highest: Ranked) -> Chain {
        Chain { highest, others: Vec::new() }
    }

    fn all(&self) -> impl Iterator<Item = Ranked> + '_ {
        std::iter::once(self.highest).chain(self.others.iter().copied())
    }

    fn insert(&mut self, mut ranked: Ranked) {
        if ranked.priority > self.highest.priority {
            std::mem::swap(&mut self.highest, &mut ranked);
        }
        let place = self.others.partition_point(|other| other.priority > ranked.priority);
        self.others.insert(place, ranked);
    }

    /// Removes the entry of a priority. Returns whether any is left.
    fn remove(&mut self, priority: u16) -> bool {
        if self.highest.priority != priority {
            self.others.retain(|other| other.priority != priority);
            return true;
        }
        if self.others.is_empty() {
            return false;
        }
        self.highest = self.others.remove(0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::frame::FrameFields;
    use flow::relation::overlaps;
    use flow::{Field, Match, PortNo};
    use proptest::prelude::*;

    /// Matches on few values of few fields with few masks, so that many of them overlap.
    fn arbitrary_match() -> impl Strategy<Value = Match> {
        let byte = |field| {
            let mask = prop::sample::select(vec![0u8, 0x0f, 0xf0, 0xff]);
            proptest::option::of(
                (0u8..4, mask).prop_map(move |(value, mask)| (field, value << 2 | value, mask)),
            )
        };
        (byte(Field::EthDst), byte(Field::EthSrc), byte(Field::Metadata)).prop_map(|(one, two, three)| {
            let entries = [one, two, three].into_iter().flatten();
            entries.fold(Match::any(), |all, (field, value, mask)| all.with_masked(field, value, mask))
        })
    }

    fn fields(one: u8, two: u8, three: u8) -> FrameFields {
        let mut fields = FrameFields::read(&[0; 14]).from_port(PortNo(1));
        fields.set(Field::EthDst, one << 2 | one);
        fields.set(Field::EthSrc, two << 2 | two);
        fields.set(Field::Metadata, three << 2 | three);
        fields
    }

    proptest! {
        #[test]
        fn it_finds_what_asking_every_entry_in_turn_would(
            changes in proptest::collection::vec((arbitrary_match(), 0u16..4, any::<bool>()), 1..60),
            packets in proptest::collection::vec((0u8..4, 0u8..4, 0u8..4), 1..20),
        ) {
            let mut classifier = Classifier::default();
            let mut entries: Vec<(MaskedKey, u16, Match, u32)> = Vec::new();
            for (slot, (matching, priority, adds)) in (0u32..).zip(changes) {
                let key = FlowKey::of_match(&matching).unwrap();
                let there = entries.iter().position(|entry| entry.0 == key && entry.1 == priority);
                prop_assert_eq!(classifier.exactly(&key, priority), there.map(|at| entries[at].3));
                let near: Vec<u32> = classifier.near(&key, priority).collect();
                for entry in entries.iter().filter(|entry| entry.1 == priority && overlaps(&entry.2, &matching)) {
                    prop_assert!(near.contains(&entry.3), "{:?} is not near {:?}", entry.2, matching);
                }
                match there {
                    None if adds => {
                        classifier.insert(key.clone(), priority, slot);
                        entries.push((key, priority, matching, slot));
                    }
                    Some(at) if !adds => {
                        classifier.remove(&key, priority);
                        entries.remove(at);
                    }
                    _ => {}
                }
            }
            for (one, two, three) in packets {
                let fields = fields(one, two, three);
                let found = classifier.find(&FlowKey::of(&fields));
                let speak = entries.iter().filter(|(_, _, matching, _)| matching.matches(&fields));
                let highest = speak.clone().map(|(_, priority, _, _)| *priority).max();
                let found = found.map(|slot| speak.clone().find(|entry| entry.3 == slot).map(|entry| entry.1));
                prop_assert_eq!(found, highest.map(Some));
            }
        }
    }

    #[test]
    fn an_emptied_classifier_has_no_tuples_left() {
        let mut classifier = Classifier::default();
        let keys =
            [Match::any(), Match::any().with(Field::EthDst, 1u8), Match::any().with(Field::EthSrc, 1u8)]
                .map(|matching| FlowKey::of_match(&matching).unwrap());
        for _ in 0..3 {
            keys.iter().for_each(|key| classifier.insert(key.clone(), 1, 0));
            keys.iter().for_each(|key| classifier.remove(key, 1));
        }
        assert_eq!((classifier.tuples.len(), classifier.order.len(), classifier.by_mask.len()), (3, 0, 0));
        assert_eq!(classifier.looked_at, Mask::default());
    }
}
