//! Reports that arrive completely and in order, although datagrams are lost.
//!
//! In: entries to report, reports that arrived, and requests to send some again. Out: numbered reports, and which numbers are missing.
//! It signs nothing and knows no clock.
//!
//! The agent numbers its reports and keeps the newest. A beat tells the newest number, so that the loss of the last report is noticed
//! too. The label service asks for what is missing. If the agent has it no more, it sends a report that begins with a reset, and
//! all its flows.

use super::{ENTRIES_MAX, Entry, What};
use crate::vnic::RATE_MAX_BPS;
use std::collections::{BTreeMap, VecDeque};

/// How many reports the agent keeps. Older ones cannot be sent again; a reset replaces them.
pub const KEPT_MAX: usize = 256;

/// How many reports the service holds back behind a gap. Later ones are ignored, and asked for again.
const HELD_MAX: u64 = 256;

/// How many reports are asked for at once: about one second's worth of a busy agent.
const ASKED_MAX: u64 = 64;

/// The agent's side.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    newest: u64,
    kept: VecDeque<Vec<Entry>>,
}

/// A report with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// From 1.
    pub number: u64,
    /// What it says.
    pub entries: Vec<Entry>,
}

impl Outbox {
    /// Numbers entries. They become one report or more. A rate above [`RATE_MAX_BPS`] becomes that: a reader refuses a report with a greater one,
    /// and would ask for it again without end.
    pub fn add(&mut self, entries: &[Entry]) -> Vec<Numbered> {
        let within = |entry: &Entry| Entry { rate_bps: entry.rate_bps.min(RATE_MAX_BPS), ..*entry };
        entries.chunks(ENTRIES_MAX).map(|chunk| self.keep(chunk.iter().map(within).collect())).collect()
    }

    /// The number of the newest report, 0 if there is none.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// The reports with these numbers. None: one of them is not kept any more, and the caller adds a reset.
    pub fn again(&self, first: u64, last: u64) -> Option<Vec<Numbered>> {
        let oldest = self.newest + 1 - self.kept.len() as u64;
        let last = last.min(self.newest).min(first.saturating_add(ASKED_MAX - 1));
        if first < oldest {
            return None;
        }
        let get = |number: u64| {
            let entries = self.kept.get(usize::try_from(number - oldest).ok()?)?.clone();
            Some(Numbered { number, entries })
        };
        (first..=last).map(get).collect()
    }

    fn keep(&mut self, entries: Vec<Entry>) -> Numbered {
        self.newest += 1;
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(entries.clone());
        Numbered { number: self.newest, entries }
    }
}

/// The service's side, one for each session of an agent.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// All reports up to this one were delivered.
    delivered: u64,
    held: BTreeMap<u64, Vec<Entry>>,
    /// The highest number that the agent has spoken of.
    known: u64,
}

impl Inbox {
    /// A report has arrived. Returns the reports that are complete now, in order.
    pub fn on_report(&mut self, number: u64, entries: Vec<Entry>) -> Vec<Vec<Entry>> {
        self.known = self.known.max(number);
        if number <= self.delivered || number > self.delivered.saturating_add(HELD_MAX) && !is_reset(&entries)
        {
            return Vec::new();
        }
        if is_reset(&entries) {
            // What was before does not matter any more.
            self.delivered = number - 1;
            self.held = self.held.split_off(&number);
        }
        self.held.insert(number, entries);
        let mut complete = Vec::new();
        while let Some(entries) = self.held.remove(&self.delivered.saturating_add(1)) {
            self.delivered = self.delivered.saturating_add(1);
            complete.push(entries);
        }
        complete
    }

    /// The agent says that this is its newest report.
    pub fn on_beat(&mut self, newest: u64) {
        self.known = self.known.max(newest);
    }

    /// The first missing reports: the first and last number. The caller asks for them, and again after a while.
    pub fn missing(&self) -> Option<(u64, u64)> {
        let first = self.delivered.saturating_add(1);
        let last = self.held.keys().next().map_or(self.known, |held| held - 1);
        (first <= last && first > self.delivered)
            .then_some((first, last.min(first.saturating_add(ASKED_MAX - 1))))
    }
}

fn is_reset(entries: &[Entry]) -> bool {
    entries.first().is_some_and(|entry| entry.what == What::Reset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vnic::{Flow, VnicId};
    use proptest::prelude::*;

    fn entry(what: What, rate_bps: u64) -> Entry {
        Entry { what, flow: Flow { sender: VnicId(1), receiver: VnicId(2) }, rate_bps }
    }

    #[test]
    fn a_gap_is_named_and_what_is_behind_it_waits() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.on_report(1, vec![entry(What::Began, 1)]).len(), 1);
        assert_eq!(inbox.missing(), None);
        assert_eq!(inbox.on_report(4, vec![entry(What::Rate, 4)]).len(), 0);
        assert_eq!(inbox.missing(), Some((2, 3)));
        assert_eq!(inbox.on_report(2, vec![entry(What::Rate, 2)]).len(), 1);
        assert_eq!(inbox.on_report(2, vec![entry(What::Rate, 2)]).len(), 0, "a second time");
        assert_eq!(inbox.on_report(3, vec![entry(What::Rate, 3)]).len(), 2);
        inbox.on_beat(6);
        assert_eq!(inbox.missing(), Some((5, 6)));
    }

    #[test]
    fn what_is_kept_no_more_is_replaced_by_a_reset() {
        let (mut outbox, mut inbox) = (Outbox::default(), Inbox::default());
        for rate in 0..300 {
            outbox.add(&[entry(What::Rate, rate)]);
        }
        assert!(inbox.on_report(100, vec![entry(What::Rate, 99)]).is_empty(), "it waits behind the gap");
        inbox.on_beat(outbox.newest());
        let (first, last) = inbox.missing().unwrap();
        assert_eq!((first, last, outbox.again(first, last)), (1, 64, None));
        let reset = outbox.add(&[entry(What::Reset, 0), entry(What::Began, 9)]);
        let delivered = inbox.on_report(reset[0].number, reset[0].entries.clone());
        assert_eq!((delivered.len(), inbox.missing()), (1, None));
        inbox.on_beat(305);
        assert_eq!(inbox.missing(), Some((302, 305)), "what waited does not hide the next gap");
    }

    #[test]
    fn a_rate_that_no_report_may_say_is_cut() {
        let kept = Outbox::default().add(&[entry(What::Rate, u64::MAX), entry(What::Rate, RATE_MAX_BPS - 1)]);
        let rates: Vec<u64> = kept[0].entries.iter().map(|entry| entry.rate_bps).collect();
        assert_eq!(rates, [RATE_MAX_BPS, RATE_MAX_BPS - 1]);
    }

    #[test]
    fn many_entries_are_several_reports() {
        let mut outbox = Outbox::default();
        let many = vec![entry(What::Rate, 1); ENTRIES_MAX + 1];
        let lengths: Vec<_> = outbox.add(&many).iter().map(|report| report.entries.len()).collect();
        assert_eq!(lengths, [ENTRIES_MAX, 1]);
        assert_eq!(outbox.again(2, 9).unwrap().len(), 1, "not more than there is");
        assert_eq!(outbox.again(5, 4), Some(vec![]));
    }

    proptest! {
        /// Whatever is lost and doubled: after questions and answers, all was delivered once and in order.
        #[test]
        fn all_reports_arrive_once_and_in_order(
            losses in prop::collection::vec(0..3u8, 1..120),
            more in prop::collection::vec(any::<bool>(), 600),
        ) {
            let (mut outbox, mut inbox) = (Outbox::default(), Inbox::default());
            let mut got = Vec::new();
            let mut take = |inbox: &mut Inbox, report: &Numbered| {
                for entries in inbox.on_report(report.number, report.entries.clone()) {
                    got.extend(entries.iter().map(|entry| entry.rate_bps));
                }
            };
            for (index, loss) in losses.iter().enumerate() {
                let reports = outbox.add(&[entry(What::Rate, index as u64)]);
                (0..*loss).for_each(|_| take(&mut inbox, &reports[0]));
            }
            inbox.on_beat(outbox.newest());
            let mut luck = more.into_iter().chain(std::iter::repeat(true));
            while let Some((first, last)) = inbox.missing() {
                for report in outbox.again(first, last).unwrap() {
                    if luck.next() == Some(true) {
                        take(&mut inbox, &report);
                    }
                }
            }
            prop_assert_eq!(got, (0..losses.len() as u64).collect::<Vec<_>>());
        }
    }
}
