//! The slice's side of its reports: numbered, one on its way at a time, sent again until the service has it.
//!
//! ```text
//!   changes ──say──> waiting ─next_report─> Report ──> service
//!                                             ^         │
//!   lost ──again──────────────────────────────┘  Heard <┘ ──on_heard──> Go, or Rebuild: the caller gives all that it has
//! ```
//!
//! In: changes, answers, and losses. Out: reports. It sends nothing and knows no time: the caller decides when an answer is overdue.

use crate::answer::Heard;
use crate::question::QUESTION_BYTES_MAX;
use crate::report::{ENTRIES_MAX, Entry, Report};
use std::collections::VecDeque;

/// The most changes that wait. With one more, all are dropped, and the slice begins again: that is shorter than what waited.
pub const WAITING_MAX: usize = 65_536;

/// What a report may have in bytes, as estimated. It leaves room for the fields around the entries.
const REPORT_BYTES: usize = QUESTION_BYTES_MAX - 1_024;

/// The bytes of an entry without its names and links, and of a link with its quotes.
const ENTRY_BYTES: usize = 80;
const LINK_BYTES: usize = 64;

/// What the caller does after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It asks for the next report.
    Go,
    /// It gives all that it has to [`Reporter::rebuild`].
    Rebuild,
}

/// The reports of one process of a slice.
#[derive(Clone, Debug)]
pub struct Reporter {
    slice: String,
    session: u64,
    /// The number of the last report.
    number: u64,
    waiting: VecDeque<Entry>,
    /// The report that is on its way.
    sent: Option<Report>,
    /// The next report begins again.
    resets: bool,
    /// What waits belongs to a beginning.
    is_rebuilding: bool,
    /// The beginning does not end yet.
    is_held: bool,
    /// All was dropped.
    is_overrun: bool,
}

impl Reporter {
    /// The reports of a process that begins now. It has nothing to report: the first report begins with that.
    pub fn new(slice: &str, session: u64) -> Reporter {
        Reporter {
            slice: slice.to_owned(),
            session: session.max(1),
            number: 0,
            waiting: VecDeque::new(),
            sent: None,
            resets: true,
            is_rebuilding: true,
            is_held: false,
            is_overrun: false,
        }
    }

    /// Whether a beginning stays open, because the slice does not know all that it has yet. What an earlier process has reported counts until its
    /// end.
    pub fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Something has changed.
    pub fn say(&mut self, entry: Entry) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.clear();
            self.is_overrun = true;
        }
        if !self.is_overrun {
            self.waiting.push_back(entry);
        }
    }

    /// Whether the caller must give all that it has, because too much waited.
    pub fn is_overrun(&self) -> bool {
        self.is_overrun
    }

    /// Begins again with all that the slice has. What waited is in it.
    pub fn rebuild(&mut self, all: impl IntoIterator<Item = Entry>) {
        self.waiting = all.into_iter().collect();
        self.sent = None;
        (self.resets, self.is_rebuilding, self.is_overrun) = (true, true, false);
    }

    /// The next report to send. None: one is on its way, or there is nothing to say.
    pub fn next_report(&mut self) -> Option<Report> {
        let has_end = self.is_rebuilding && (self.resets || !self.is_held);
        if self.sent.is_some() || self.is_overrun || self.waiting.is_empty() && !has_end {
            return None;
        }
        self.number += 1;
        let entries = self.take();
        let report = Report {
            slice: self.slice.clone(),
            session: self.session,
            number: self.number,
            reset: std::mem::take(&mut self.resets),
            more: self.is_rebuilding && (self.is_held || !self.waiting.is_empty()),
            entries,
        };
        self.is_rebuilding = report.more;
        self.sent = Some(report.clone());
        Some(report)
    }

    /// A report that asks whether the service has all: after its stream began, for example. None: another is on its way, or waits.
    pub fn ask(&mut self) -> Option<Report> {
        if self.sent.is_some() || self.is_overrun || self.is_rebuilding || !self.waiting.is_empty() {
            return self.next_report();
        }
        self.number += 1;
        let report = Report {
            slice: self.slice.clone(),
            session: self.session,
            number: self.number,
            ..Report::default()
        };
        self.sent = Some(report.clone());
        Some(report)
    }

    /// The report on its way again: its answer was lost, or is overdue.
    pub fn again(&self) -> Option<&Report> {
        self.sent.as_ref()
    }

    /// The service has answered. An answer to an earlier report changes nothing.
    pub fn on_heard(&mut self, heard: &Heard) -> Next {
        let Some(sent) = &self.sent else { return Next::Go };
        if heard.rebuild || heard.next < sent.number {
            // It lacks a report that is not kept any more.
            self.sent = None;
            return Next::Rebuild;
        }
        if heard.next > sent.number {
            self.sent = None;
        }
        Next::Go
    }

    fn take(&mut self) -> Vec<Entry> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while let Some(entry) = self.waiting.front() {
            bytes += size(entry);
            if entries.len() >= ENTRIES_MAX || bytes > REPORT_BYTES && !entries.is_empty() {
                break;
            }
            entries.extend(self.waiting.pop_front());
        }
        entries
    }
}

/// The bytes of an entry as JSON, at most. A name may be escaped.
fn size(entry: &Entry) -> usize {
    let names = |from: &str, to: &str| 6 * (from.len() + to.len());
    ENTRY_BYTES
        + match entry {
            Entry::Path { from, to, links, .. } => names(from, to) + links.len() * LINK_BYTES,
            Entry::NoPath { from, to } => names(from, to),
            Entry::Link { .. } | Entry::NoLink { .. } => LINK_BYTES,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Question;

    fn path(from: u32, links: usize) -> Entry {
        let link = "of:ffffffffffffffff/4294967295-of:fffffffffffffffe/4294967294";
        let links = vec![link.parse().unwrap(); links];
        Entry::Path { from: format!("vnic {from}"), to: "F".to_owned(), links, rules: 1 }
    }

    fn heard(next: u64) -> Heard {
        Heard { next, ..Heard::default() }
    }

    #[test]
    fn one_report_is_on_its_way_and_is_repeated_until_it_is_heard() {
        let mut reporter = Reporter::new("blue", 7);
        reporter.say(path(1, 2));
        let first = reporter.next_report().unwrap();
        assert_eq!((first.number, first.reset, first.more, first.entries.len()), (1, true, false, 1));
        reporter.say(path(2, 2));
        assert_eq!((reporter.next_report(), reporter.again()), (None, Some(&first)));
        assert_eq!(reporter.on_heard(&heard(1)), Next::Go, "an answer to what came before it");
        assert_eq!(reporter.again(), Some(&first));
        assert_eq!(reporter.on_heard(&heard(2)), Next::Go);
        let second = reporter.next_report().unwrap();
        assert_eq!((second.number, second.reset, second.entries.len()), (2, false, 1));
        reporter.on_heard(&heard(3));
        assert_eq!(reporter.next_report(), None);
        assert_eq!(reporter.ask().map(|report| (report.number, report.entries.len())), Some((3, 0)));
    }

    #[test]
    fn a_service_that_lacks_something_gets_all_again() {
        let mut reporter = Reporter::new("blue", 7);
        reporter.next_report();
        reporter.on_heard(&heard(2));
        reporter.say(path(1, 1));
        reporter.next_report();
        assert_eq!(reporter.on_heard(&Heard { rebuild: true, ..heard(1) }), Next::Rebuild);
        reporter.rebuild((0..ENTRIES_MAX as u32 + 1).map(|from| path(from, 0)));
        let parts: Vec<_> = std::iter::from_fn(|| {
            let report = reporter.next_report()?;
            reporter.on_heard(&heard(report.number + 1));
            Some((report.number, report.reset, report.more))
        })
        .collect();
        let (first, last) = (parts[0], parts[parts.len() - 1]);
        assert_eq!((first, last.1, last.2), ((3, true, true), false, false));
        assert!(parts[1..].iter().all(|part| !part.1));
    }

    #[test]
    fn a_beginning_that_is_held_stays_open() {
        let mut reporter = Reporter::new("blue", 7);
        reporter.hold(true);
        let next = |reporter: &mut Reporter| {
            let report = reporter.next_report()?;
            reporter.on_heard(&heard(report.number + 1));
            Some((report.reset, report.more, report.entries.len()))
        };
        assert_eq!(next(&mut reporter), Some((true, true, 0)));
        assert_eq!(next(&mut reporter), None);
        reporter.say(path(1, 1));
        assert_eq!(next(&mut reporter), Some((false, true, 1)));
        assert_eq!((next(&mut reporter), reporter.ask()), (None, None));
        reporter.hold(false);
        assert_eq!(next(&mut reporter), Some((false, false, 0)));
        assert_eq!(next(&mut reporter), None);
    }

    #[test]
    fn a_report_fits_into_a_question() {
        let mut reporter = Reporter::new("blue", u64::MAX);
        (0..2_000).for_each(|from| reporter.say(path(from, 1 + from as usize % 200)));
        while let Some(report) = reporter.next_report() {
            let number = report.number;
            let bytes = Question::Report(report).to_bytes();
            assert!(bytes.len() <= QUESTION_BYTES_MAX, "{}", bytes.len());
            Question::from_bytes(&bytes).unwrap();
            reporter.on_heard(&heard(number + 1));
        }
    }

    #[test]
    fn too_much_that_waits_is_dropped_for_a_new_beginning() {
        let mut reporter = Reporter::new("blue", 1);
        (0..=WAITING_MAX as u32).for_each(|_| reporter.say(path(1, 0)));
        assert!(reporter.is_overrun() && reporter.next_report().is_none());
        reporter.rebuild([path(1, 0)]);
        assert!(reporter.next_report().is_some_and(|report| report.reset && !report.more));
    }
}
