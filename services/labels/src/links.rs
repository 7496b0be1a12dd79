//! The links that the service knows: their names, their numbers for the arithmetic, and who needs them.
//!
//! In: links of the view, links that slices name. Out: numbers. It knows no capacity and no label.
//!
//! A slice may learn of a link before this service does. So a link that is not in the view has a number too, as long as a path or a slice needs
//! it. How many such links a slice can bring is bounded.

use foldhash::fast::RandomState;
use hose::{LinkNo, SliceNo};
use std::collections::{BTreeMap, HashMap};
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
    /// How many places in paths, and how many slices that show it.
    users: u32,
    /// The slice that named it first, while it is not in the view.
    brought_by: Option<SliceNo>,
}

/// All links.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// By hash: a path names six of ten thousand links, and each level of a tree would be a miss in the processor's cache.
    numbers: HashMap<LinkId, LinkNo, RandomState>,
    /// By number.
    named: Vec<Option<Named>>,
    free: Vec<LinkNo>,
    /// How many links that are not in the view each slice has brought.
    brought: BTreeMap<SliceNo, usize>,
}

impl Links {
    /// The number of a link.
    pub fn number(&self, id: LinkId) -> Option<LinkNo> {
        self.numbers.get(&id).copied()
    }

    /// The name of a number that was given.
    pub fn id(&self, number: LinkNo) -> Option<LinkId> {
        self.get(number).map(|named| named.id)
    }

    /// The view has this link. None: there are too many.
    pub fn put(&mut self, id: LinkId) -> Option<LinkNo> {
        let number = self.number_for(id)?;
        if let Some(named) = self.named.get_mut(number.index()).and_then(Option::as_mut) {
            named.is_in_view = true;
            let brought_by = named.brought_by.take();
            self.give_back(brought_by);
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
        let is_new = !self.numbers.contains_key(&id);
        if is_new && self.brought.get(&slice).copied().unwrap_or_default() >= UNKNOWN_MAX {
            return None;
        }
        let number = self.number_for(id)?;
        let named = self.named.get_mut(number.index())?.as_mut()?;
        named.users += 1;
        if is_new {
            named.brought_by = Some(slice);
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

    fn number_for(&mut self, id: LinkId) -> Option<LinkNo> {
        if let Some(number) = self.number(id) {
            return Some(number);
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.named.len() >= LINKS_MAX => return None,
            None => {
                self.named.push(None);
                // Below LINKS_MAX.
                LinkNo((self.named.len() - 1) as u32)
            }
        };
        self.numbers.insert(id, number);
        self.named[number.index()] = Some(Named { id, is_in_view: false, users: 0, brought_by: None });
        Some(number)
    }

    /// A number that nobody needs is free.
    fn tidy(&mut self, number: LinkNo) {
        let Some(named) = self.get(number).copied() else { return };
        if named.is_in_view || named.users > 0 {
            return;
        }
        self.numbers.remove(&named.id);
        self.named[number.index()] = None;
        self.free.push(number);
        self.give_back(named.brought_by);
    }

    fn give_back(&mut self, brought_by: Option<SliceNo>) {
        let Some(slice) = brought_by else { return };
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
