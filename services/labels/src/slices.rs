//! The slices that the service knows: what each is promised, and how far its reports are.
//!
//! In: promises, numbers of reports. Out: numbers of slices and VNICs, and whether a report is next. It computes no rate.

use crate::names::Name;
use foldhash::fast::RandomState;
use hose::{Index, LinkNo, SLICES_MAX, SliceNo, VnicNo};
use labels_contract::{Heard, Hose, Report};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use view::LinkId;

/// The number under which the reservations of intents are summed. No slice has it.
pub const INTENTS: SliceNo = SliceNo(0);

/// How far the reports of a slice are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It has not reported since the service began.
    #[default]
    Silent,
    /// It reports all that it has. What it has reported since the beginning of this: pairs and links.
    Rebuilding(BTreeSet<(VnicNo, VnicNo)>, BTreeSet<LinkNo>),
    /// The service has all.
    Complete,
}

/// What comes of a report by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is the next one.
    Next,
    /// It was there before.
    Repeated,
    /// An earlier one is missing.
    Early,
    /// The slice must begin again.
    Rebuild,
    /// It is of a process that is over.
    Outdated,
}

/// A slice.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// Its name.
    pub name: Name,
    /// What it is promised.
    pub hose: Hose,
    /// The links that it has. None: all.
    allowed: Option<BTreeSet<LinkId>>,
    /// The VNICs that it has, by hash as in [`Slices`].
    vnics: Index,
    hasher: RandomState,
    /// By number. A VNIC that is gone leaves a place for another.
    names: Vec<Option<Name>>,
    session: u64,
    next: u64,
    /// How far it is.
    pub stage: Stage,
    /// It has reported all that it had, once since the service began. While it begins again, what it reported before still counts.
    has_reported: bool,
    /// The links that it shows.
    pub shown: BTreeSet<LinkNo>,
}

impl Slice {
    /// The number of a VNIC.
    pub fn vnic(&self, name: &str) -> Option<VnicNo> {
        let is_it = |number: u32| {
            self.names.get(number as usize).and_then(Option::as_ref).is_some_and(|it| it.is(name))
        };
        self.vnics.find(self.hasher.hash_one(name), is_it).map(VnicNo)
    }

    /// The name of a VNIC.
    pub fn vnic_name(&self, number: VnicNo) -> &str {
        self.names.get(number.index()).and_then(Option::as_ref).map_or("", Name::as_str)
    }

    /// Whether it has reported all that it has.
    pub fn is_complete(&self) -> bool {
        self.stage == Stage::Complete
    }

    /// Whether the slice has a link.
    pub fn may_use(&self, link: LinkId) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&link))
    }

    /// The answer to a report that changes nothing more.
    pub fn heard(&self) -> Heard {
        Heard { next: self.next, ..Heard::default() }
    }

    /// Takes the number of a report.
    pub fn turn(&mut self, report: &Report) -> Turn {
        if report.session < self.session {
            return Turn::Outdated;
        }
        let is_new_session = report.session > self.session;
        if !report.reset && (is_new_session || self.stage == Stage::Silent) {
            return Turn::Rebuild;
        }
        if !is_new_session && report.number < self.next {
            return Turn::Repeated;
        }
        if !report.reset && report.number > self.next {
            return Turn::Early;
        }
        if report.reset {
            self.stage = Stage::Rebuilding(BTreeSet::new(), BTreeSet::new());
        }
        self.session = report.session;
        self.next = report.number.saturating_add(1);
        Turn::Next
    }

    /// Gives the promise. Returns the VNICs that are gone.
    fn promise(&mut self, hose: &Hose) -> Vec<VnicNo> {
        let mut gone = Vec::new();
        for (number, place) in self.names.iter_mut().enumerate() {
            if let Some(name) = place.take_if(|name| !hose.vnics.contains_key(name.as_str())) {
                // The contract bounds their number.
                let number = number as u32;
                self.vnics.remove(self.hasher.hash_one(name.as_str()), number);
                gone.push(VnicNo(number));
            }
        }
        for name in hose.vnics.keys() {
            if self.vnic(name).is_none() {
                let place = self.names.iter().position(Option::is_none).unwrap_or(self.names.len());
                if place == self.names.len() {
                    self.names.push(None);
                }
                self.names[place] = Some(Name::new(name));
                // The contract bounds their number.
                self.vnics.insert(self.hasher.hash_one(name.as_str()), place as u32);
            }
        }
        self.allowed = hose.links.as_ref().map(|links| links.iter().copied().collect());
        self.hose = hose.clone();
        gone
    }
}

/// All slices.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    /// In the order of their names.
    ordered: BTreeMap<String, SliceNo>,
    /// The same by hash. Each report names a slice and VNICs, and among a thousand slices, a search in a tree compares ten names that are not in
    /// the processor's cache.
    numbers: Index,
    hasher: RandomState,
    /// By number.
    slices: Vec<Option<Slice>>,
    /// How many have not reported all.
    unreported: usize,
}

impl Slices {
    /// The number of a slice.
    pub fn number(&self, name: &str) -> Option<SliceNo> {
        let number = self.numbers.find(self.hasher.hash_one(name), |number| {
            self.get(SliceNo(number)).is_some_and(|slice| slice.name.is(name))
        });
        number.map(SliceNo)
    }

    /// A slice.
    pub fn get(&self, number: SliceNo) -> Option<&Slice> {
        self.slices.get(number.index())?.as_ref()
    }

    /// A slice, to change it. It becomes complete by [`Slices::complete`].
    pub fn get_mut(&mut self, number: SliceNo) -> Option<&mut Slice> {
        self.slices.get_mut(number.index())?.as_mut()
    }

    /// All slices, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (SliceNo, &Slice)> {
        self.ordered.values().filter_map(|number| Some((*number, self.get(*number)?)))
    }

    /// A slice is promised this. Returns its number, and its VNICs that are gone. None: there are too many slices.
    pub fn put(&mut self, name: &str, hose: &Hose) -> Option<(SliceNo, Vec<VnicNo>)> {
        let number = match self.number(name) {
            Some(number) => number,
            None => self.add(name)?,
        };
        let gone = self.get_mut(number)?.promise(hose);
        Some((number, gone))
    }

    fn add(&mut self, name: &str) -> Option<SliceNo> {
        let first = INTENTS.index() + 1;
        let free = (first..self.slices.len()).find(|place| self.slices[*place].is_none());
        let place = free.unwrap_or(self.slices.len().max(first));
        if place >= SLICES_MAX {
            return None;
        }
        if place >= self.slices.len() {
            self.slices.resize_with(place + 1, || None);
        }
        let number = SliceNo(place as u32);
        self.slices[place] = Some(Slice { name: Name::new(name), ..Slice::default() });
        self.numbers.insert(self.hasher.hash_one(name), number.0);
        self.ordered.insert(name.to_owned(), number);
        self.unreported += 1;
        Some(number)
    }

    /// There is no such slice any more.
    pub fn remove(&mut self, name: &str) -> Option<(SliceNo, Slice)> {
        let number = self.ordered.remove(name)?;
        self.numbers.remove(self.hasher.hash_one(name), number.0);
        let slice = self.slices.get_mut(number.index())?.take()?;
        self.unreported -= usize::from(!slice.has_reported);
        Some((number, slice))
    }

    /// A slice has reported all that it has.
    pub fn complete(&mut self, number: SliceNo) {
        let Some(slice) = self.get_mut(number) else { return };
        slice.stage = Stage::Complete;
        if !std::mem::replace(&mut slice.has_reported, true) {
            self.unreported -= 1;
        }
    }

    /// How many slices have not reported all since the service began: labels of others may be too high.
    pub fn unreported(&self) -> usize {
        self.unreported
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(session: u64, number: u64, reset: bool) -> Report {
        Report { session, number, reset, ..Report::default() }
    }

    #[test]
    fn reports_are_taken_in_order_and_a_new_process_begins_again() {
        let mut slice = Slice::default();
        let mut check = |session, number, reset, expected: Turn| {
            let turn = slice.turn(&report(session, number, reset));
            assert_eq!(turn, expected, "{session} {number}");
            if turn == Turn::Next {
                slice.stage = Stage::Complete;
            }
        };
        check(5, 1, false, Turn::Rebuild);
        check(5, 4, true, Turn::Next);
        check(5, 4, true, Turn::Repeated);
        check(5, 5, false, Turn::Next);
        check(5, 7, false, Turn::Early);
        check(5, 6, false, Turn::Next);
        check(4, 7, true, Turn::Outdated);
        check(6, 1, false, Turn::Rebuild);
        check(6, 1, true, Turn::Next);
        check(5, 8, false, Turn::Outdated);
        check(6, 9, true, Turn::Next);
    }

    #[test]
    fn a_vnic_keeps_its_number_and_one_that_is_gone_leaves_a_place() {
        let hose = |names: &[&str]| Hose {
            vnics: names
                .iter()
                .map(|name| {
                    ((*name).to_owned(), labels_contract::Vnic { rate_bps: 1, number: None, agent: None })
                })
                .collect(),
            ..Hose::default()
        };
        let mut slices = Slices::default();
        let (number, gone) = slices.put("blue", &hose(&["A", "B", "C"])).unwrap();
        assert_eq!((number, gone), (SliceNo(1), vec![]), "the first number is that of intents");
        assert_eq!(slices.put("blue", &hose(&["A", "C", "D", "E"])), Some((number, vec![VnicNo(1)])));
        let blue = slices.get(number).unwrap();
        assert_eq!(
            ["A", "B", "C", "D", "E"].map(|name| blue.vnic(name)),
            [Some(VnicNo(0)), None, Some(VnicNo(2)), Some(VnicNo(1)), Some(VnicNo(3))]
        );
        assert_eq!(blue.vnic_name(VnicNo(1)), "D");
        assert_eq!(slices.unreported(), 1);
        slices.remove("blue");
        assert!(slices.unreported() == 0 && slices.number("blue").is_none());
        assert_eq!(slices.put("red", &hose(&[])).map(|(number, _)| number), Some(SliceNo(1)));
    }
}
