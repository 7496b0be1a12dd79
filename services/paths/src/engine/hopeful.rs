//! The intents that may be served when something changes, and what each waits for.
//!
//! In: intents that have no plan, or less than they want. Out: those that a change concerns. It decides nothing.

use std::collections::{BTreeMap, BTreeSet};

/// What an intent waits for, beside a change of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hope {
    /// The intent that wants the same packets.
    pub(crate) rival: Option<u64>,
    /// Bandwidth that another intent gives back may serve it.
    pub(crate) has_bounds: bool,
}

/// The intents that wait: at most as many as there are intents.
#[derive(Debug, Default)]
pub(crate) struct Hopeful {
    all: BTreeMap<u64, Hope>,
    /// By the rival: the intents that wait for it.
    rivals: BTreeSet<(u64, u64)>,
    bounded: BTreeSet<u64>,
}

impl Hopeful {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// An intent waits for this from now on. It also waits for the rival that it waited for before, unless there is another: a
    /// rival that is not in the way any more costs one needless compilation.
    pub(crate) fn insert(&mut self, id: u64, hope: Hope) {
        let before = self.all.get(&id).and_then(|before| before.rival);
        let hope = Hope { rival: hope.rival.or(before), ..hope };
        self.remove(id);
        self.all.insert(id, hope);
        self.rivals.extend(hope.rival.map(|rival| (rival, id)));
        if hope.has_bounds {
            self.bounded.insert(id);
        }
    }

    pub(crate) fn remove(&mut self, id: u64) {
        let Some(hope) = self.all.remove(&id) else { return };
        if let Some(rival) = hope.rival {
            self.rivals.remove(&(rival, id));
        }
        self.bounded.remove(&id);
    }

    /// Takes all of them out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(self).all.into_keys()
    }

    /// Takes out those that this intent may have blocked.
    pub(crate) fn take_behind(&mut self, id: u64) -> Vec<u64> {
        let behind = self.rivals.range((id, 0)..=(id, u64::MAX));
        let behind: Vec<u64> = behind.map(|(_, other)| *other).collect();
        behind.iter().for_each(|other| self.remove(*other));
        behind
    }

    /// Whether bandwidth may serve any.
    pub(crate) fn has_bounded(&self) -> bool {
        !self.bounded.is_empty()
    }

    /// Takes out those that bandwidth may serve.
    pub(crate) fn take_bounded(&mut self) -> BTreeSet<u64> {
        let bounded = self.bounded.clone();
        bounded.iter().for_each(|id| self.remove(*id));
        bounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_that_goes_wakes_those_that_waited_for_it_and_no_others() {
        let mut hopeful = Hopeful::default();
        let behind = |rival| Hope { rival: Some(rival), has_bounds: false };
        hopeful.insert(1, behind(7));
        hopeful.insert(2, behind(8));
        hopeful.insert(3, Hope { rival: None, has_bounds: true });
        // It waits for another one meanwhile.
        hopeful.insert(4, behind(7));
        hopeful.insert(4, behind(9));
        assert_eq!(hopeful.take_behind(7), [1]);
        assert!(hopeful.take_behind(7).is_empty());
        assert_eq!(hopeful.take_bounded(), BTreeSet::from([3]));
        hopeful.remove(2);
        assert!(hopeful.take_behind(8).is_empty() && !hopeful.has_bounded());
        assert_eq!(hopeful.take().collect::<Vec<_>>(), [4]);
        assert!(hopeful.is_empty() && hopeful.take_behind(9).is_empty());
    }

    #[test]
    fn an_intent_that_fails_meanwhile_still_waits_for_its_rival() {
        let mut hopeful = Hopeful::default();
        hopeful.insert(1, Hope { rival: Some(7), has_bounds: false });
        hopeful.insert(1, Hope { rival: None, has_bounds: true });
        assert_eq!(hopeful.take_behind(7), [1]);
    }
}
