//! The links that the service knows: their names, their numbers for the arithmetic, and who needs them.
//!
//! In: links of the view, links that slices name. Out: numbers. It knows no capacity and no label.
//!
//! A slice may learn of a link before this service does. So a link that is not in the view has a number too, as long as a path or a slice needs
//! it. How many such links a slice can bring is bounded.

use foldhash::fast::RandomState;
use hose::{Index, LinkNo, SliceNo};
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use view::LinkId;

/// The most links that one slice can name that are not in the view. A path over a further one is refused until the view has the link.
pub const UNKNOWN_MAX: usize = 64;

/// The most links. Further ones have no labels.
pub const LINKS_MAX: usize = 65_536;

/// What is known of a link.
#[derive(Clone, Copy, Debug)]
struct Named {
    id: LinkId,
    is_in_view: bool,
    /// The slice that named it first is in [`Links::bringers`], while it is not in the view.
    is_brought: bool,
    /// How many places in paths, and how many slices that show it.
    users: u32,
}

/// All links.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// By hash: a path names six of ten thousand links, and each level of a tree would be a miss in the processor's cache.
    numbers: Index,
    hasher: RandomState,
    /// By number. Each path touches those of its links, so they are small.
    named: Vec<Option<Named>>,
    /// The slices that named links first that are not in the view. They are few.
    bringers: BTreeMap<LinkNo, SliceNo>,
    free: Vec<LinkNo>,
    /// How many links that are not in the view each slice has brought.
    brought: BTreeMap<SliceNo, usize>,
}

impl Links {
    /// The number of a link.
    pub fn number(&self, id: LinkId) -> Option<LinkNo> {
        let number = self.numbers.find(self.hasher.hash_one(id), |number| {
            self.get(LinkNo(number)).is_some_and(|named| named.id == id)
        });
        number.map(LinkNo)
    }

    /// The number of a link that the view has.
    pub fn in_view(&self, id: LinkId) -> Option<LinkNo> {
        self.number(id).filter(|number| self.get(*number).is_some_and(|named| named.is_in_view))
    }

    /// The name of a number that was given.
    pub fn id(&self, number: LinkNo) -> Option<LinkId> {
        self.get(number).map(|named| named.id)
    }

    /// The view has this link. None: there are too many.
    pub fn put(&mut self, id: LinkId) -> Option<LinkNo> {
        let number = self.number(id).or_else(|| self.add(id))?;
        if let Some(named) = self.named.get_mut(number.index()).and_then(Option::as_mut) {
            named.is_in_view = true;
            if std::mem::take(&mut named.is_brought) {
                self.give_back(number);
            }
        }
        Some(number)
    }

    /// The view has this link no more. Its number stays as long as it is needed.
    pub fn remove(&mut self, id: LinkId) -> Option<LinkNo> {
        let number = self.number(id)?;
        self.named.get_mut(number.index())?.as_mut()?.is_in_view = false;
        self.tidy(number);
        Some(number)
    }

    /// A slice needs this link. None: it is not in the view, and the slice or all together have named too many such links.
    pub fn take(&mut self, slice: SliceNo, id: LinkId) -> Option<LinkNo> {
        let known = self.number(id);
        if known.is_none() && self.brought.get(&slice).copied().unwrap_or_default() >= UNKNOWN_MAX {
            return None;
        }
        let number = known.or_else(|| self.add(id))?;
        let named = self.named.get_mut(number.index())?.as_mut()?;
        named.users += 1;
        if known.is_none() {
            named.is_brought = true;
            self.bringers.insert(number, slice);
            *self.brought.entry(slice).or_default() += 1;
        }
        Some(number)
    }

    /// A link that was taken is needed no more.
    pub fn release(&mut self, number: LinkNo) {
        if let Some(named) = self.named.get_mut(number.index()).and_then(Option::as_mut) {
            named.users = named.users.saturating_sub(1);
            self.tidy(number);
        }
    }

    fn get(&self, number: LinkNo) -> Option<&Named> {
        self.named.get(number.index())?.as_ref()
    }

    fn add(&mut self, id: LinkId) -> Option<LinkNo> {
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.named.len() >= LINKS_MAX => return None,
            None => {
                self.named.push(None);
                // Below LINKS_MAX.
                LinkNo((self.named.len() - 1) as u32)
            }
        };
        self.numbers.insert(self.hasher.hash_one(id), number.0);
        self.named[number.index()] = Some(Named { id, is_in_view: false, is_brought: false, users: 0 });
        Some(number)
    }

    /// A number that nobody needs is free.
    fn tidy(&mut self, number: LinkNo) {
        let needless = |named: &&Named| !named.is_in_view && named.users == 0;
        let Some(named) = self.get(number).filter(needless).copied() else { return };
        self.numbers.remove(self.hasher.hash_one(named.id), number.0);
        self.named[number.index()] = None;
        self.free.push(number);
        if named.is_brought {
            self.give_back(number);
        }
    }

    fn give_back(&mut self, number: LinkNo) {
        let Some(slice) = self.bringers.remove(&number) else { return };
        if let Some(count) = self.brought.get_mut(&slice) {
            *count -= 1;
            if *count == 0 {
                self.brought.remove(&slice);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(number: u32) -> LinkId {
        format!("1/{number}-2/{number}").parse().unwrap()
    }

    #[test]
    fn a_number_lives_as_long_as_the_view_or_a_slice_needs_it() {
        let mut links = Links::default();
        let number = links.put(link(1)).unwrap();
        assert_eq!(links.take(SliceNo(0), link(1)), Some(number));
        assert_eq!(links.remove(link(1)), Some(number));
        assert_eq!(
            (links.number(link(1)), links.id(number)),
            (Some(number), Some(link(1))),
            "a path is over it"
        );
        links.release(number);
        assert_eq!((links.number(link(1)), links.id(number)), (None, None));
        assert_eq!(links.put(link(2)), Some(number), "the number is used again");
    }

    #[test]
    fn a_slice_brings_few_links_that_the_view_has_not() {
        let mut links = Links::default();
        let most = UNKNOWN_MAX as u32;
        let taken: Vec<_> = (0..=most).map(|number| links.take(SliceNo(3), link(number))).collect();
        assert!(taken[..UNKNOWN_MAX].iter().all(Option::is_some) && taken[UNKNOWN_MAX].is_none());
        assert!(links.take(SliceNo(4), link(most)).is_some(), "another slice may");
        // One that the view has then, and one that is needed no more, make room.
        links.put(link(0));
        assert!(links.take(SliceNo(3), link(most + 1)).is_some());
        links.release(taken[1].unwrap());
        assert!(links.take(SliceNo(3), link(most + 2)).is_some());
        assert!(links.take(SliceNo(3), link(most + 3)).is_none());
    }
}
