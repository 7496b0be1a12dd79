//! The records of the service as streams: one for each set of kinds that an app can follow.
//!
//! In: changes, and requests to follow. Out: parts of streams, records in shared memory, and the records themselves. It decides nothing about who may follow.

use burnet_sdk::stream::Source;
use burnet_sdk::{Commands, Query};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use view::{Key, Kind, Record};

/// The kinds of this service. A set of them has a bit for each, in this order.
const KINDS: [Kind; 3] = [Kind::Switch, Kind::Port, Kind::Link];

/// The sets of kinds, without the empty one.
const SETS: usize = (1 << KINDS.len()) - 1;

/// What is published.
#[derive(Debug)]
pub struct Published {
    /// By the text of the key.
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    /// By the set of kinds, less one.
    sources: [Source; SETS],
}

impl Default for Published {
    fn default() -> Published {
        Published { entries: BTreeMap::new(), sources: std::array::from_fn(|_| Source::default()) }
    }
}

fn bit(kind: Kind) -> usize {
    KINDS.iter().position(|one| *one == kind).map_or(0, |place| 1 << place)
}

/// The bit of a key's kind: the kinds begin with different letters.
fn bit_of(key: &[u8]) -> usize {
    let first = |kind: &Kind| kind.word().as_bytes().first();
    KINDS.iter().position(|kind| first(kind) == key.first()).map_or(0, |place| 1 << place)
}

impl Published {
    /// A change. Followers receive it with the next [`Published::send`], readers of shared memory at once.
    pub fn change(&mut self, key: Key, record: Option<&Record>, out: &mut Commands) {
        let (text, value) = (key.to_string().into_bytes(), record.map(Record::to_bytes));
        // Without room, readers are told to follow the stream.
        out.share(&text, value.as_deref());
        let sources = self.sources.iter_mut().enumerate();
        for (_, source) in sources.filter(|(place, _)| (place + 1) & bit(key.kind()) != 0) {
            source.change(&text, value.as_deref());
        }
        match value {
            Some(value) => self.entries.insert(text, value),
            None => self.entries.remove(&text),
        };
    }

    /// A call follows these kinds from now on.
    pub fn follow(&mut self, kinds: &[Kind], query: &Query<'_>, out: &mut Commands) {
        let set = kinds.iter().fold(0, |set, kind| set | bit(*kind));
        if let Some(source) = set.checked_sub(1).and_then(|place| self.sources.get_mut(place)) {
            source.follow(query, out);
        }
        self.send(out);
    }

    /// Sends each follower what its credit allows.
    pub fn send(&mut self, out: &mut Commands) {
        let Published { entries, sources } = self;
        for (place, source) in sources.iter_mut().enumerate().filter(|(_, source)| source.readers() > 0) {
            source.send(out, |after, page| {
                let behind = entries.range::<[u8], _>((after.map_or(Unbounded, Excluded), Unbounded));
                for (key, value) in behind.filter(|(key, _)| (place + 1) & bit_of(key) != 0) {
                    if !page.entry(key, value) {
                        return;
                    }
                }
            });
        }
    }

    /// The record of an object, as JSON.
    pub fn get(&self, key: Key) -> Option<&[u8]> {
        self.entries.get(key.to_string().as_bytes()).map(Vec::as_slice)
    }

    /// The records behind a key, in the order of their keys' texts.
    pub fn behind(&self, after: Option<Key>) -> impl Iterator<Item = &[u8]> {
        let after = after.map(|key| key.to_string().into_bytes());
        let bound = after.as_deref().map_or(Unbounded, Excluded);
        self.entries.range::<[u8], _>((bound, Unbounded)).map(|(_, value)| value.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_those_of_this_service_and_a_key_shows_its_kind() {
        let all = Kind::ALL.iter().filter(|kind| kind.service() == discovery_contract::SERVICE);
        assert_eq!(all.copied().collect::<Vec<_>>(), KINDS);
        for text in ["switch/1", "port/1/2", "link/1/2-3/4"] {
            assert_eq!(bit_of(text.as_bytes()), bit(text.parse::<Key>().unwrap().kind()), "{text}");
        }
    }
}
