//! The audit records of the node, until the service that stores them has them. Pure.
//!
//! ```text
//!   what apps and kernel did (observed), what the kernel process tells ──> Collector ──a batch──> kernel process ──> service
//!                                                                             ▲                                          │
//!                                                                             └────────────── kept up to N ──────────────┘
//! ```
//!
//! In: records, and the number up to which the service has stored them. Out: batches, each sent again until it is
//! stored. The monitor keeps the records because it outlives the kernel process and the service. Records that are not
//! stored when the node ends are returned to the caller. It makes no decision from a record, and never waits.

use std::collections::VecDeque;

use crate::app::{AppRole, AppState, AppStatus, KernelStatus, legible};
pub use audit_contract::{Batch, Record};

/// The longest text of a record, in bytes; longer ones are cut.
const TEXT_BYTES_MAX: usize = 512;

/// The longest other field of a record.
const WORD_BYTES_MAX: usize = 64;

/// The largest number of waiting records. At the bound the oldest stay, because they show the start of the trouble.
/// Newer ones are only counted, and a record reports their number.
pub const WAITING_MAX: usize = 4_096;

/// The largest number of records in a batch. With [`TEXT_BYTES_MAX`], a batch fits one message.
const BATCH_MAX: usize = 64;

/// A batch that is not acknowledged within this time is sent again, because its receiver may have ended.
const TOLD_AGAIN_MS: u64 = 3_000;

/// Equal records become one with a count, if the later one arrives within this time.
const MERGED_MS: u64 = 1_000;

/// How many of the newest records are compared with a new one.
const MERGED_MAX: usize = 32;

/// The records that are not stored yet.
#[derive(Debug)]
pub struct Collector {
    waiting: VecDeque<Record>,
    /// The number of the first waiting record.
    first: u64,
    /// The number of dropped records, and since when.
    lost: Option<(u64, u64)>,
    /// The start of the service that last reported how many records it has.
    asked_by: Option<u64>,
    /// How many of the waiting records were sent, and when.
    told: Option<(usize, u64)>,
    /// The number after the last record that was ever sent. A later equal record is not merged with one before it,
    /// because the service may have stored that one already.
    untold_from: u64,
}

/// The record with terminal control characters escaped and each text cut to its bound.
fn printable(mut record: Record) -> Record {
    record.text = legible(&record.text, TEXT_BYTES_MAX);
    for word in [&mut record.what, &mut record.who] {
        *word = legible(word, WORD_BYTES_MAX);
    }
    for word in [&mut record.app, &mut record.switch, &mut record.capability].into_iter().flatten() {
        *word = legible(word, WORD_BYTES_MAX);
    }
    record
}

impl Default for Collector {
    fn default() -> Collector {
        Collector {
            waiting: VecDeque::new(),
            first: 1,
            lost: None,
            asked_by: None,
            told: None,
            untold_from: 1,
        }
    }
}

impl Collector {
    /// Adds a record.
    pub fn push(&mut self, record: Record) {
        let record = printable(record);
        let next = self.first + self.waiting.len() as u64;
        let untold = usize::try_from(next.saturating_sub(self.untold_from)).unwrap_or(usize::MAX);
        let newest = self.waiting.iter_mut().rev().take(untold.min(MERGED_MAX));
        let near = |other: &&mut Record| {
            record.unix_ms.saturating_sub(other.unix_ms) <= MERGED_MS && other.says_the_same_as(&record)
        };
        if let Some(same) = newest.into_iter().find(near) {
            same.count = same.count.saturating_add(record.count);
            return;
        }
        if self.waiting.len() >= WAITING_MAX {
            let (count, since) = self.lost.get_or_insert((0, record.unix_ms));
            *count += record.count;
            *since = (*since).min(record.unix_ms);
            return;
        }
        self.waiting.push_back(record);
    }

    /// This start of the service has stored all records up to this number, and requests the next ones.
    pub fn kept(&mut self, generation: u64, up_to: u64) {
        let begins = self.asked_by.replace(generation) != Some(generation);
        let done =
            usize::try_from((up_to.saturating_add(1)).saturating_sub(self.first)).unwrap_or(usize::MAX);
        let done = done.min(self.waiting.len());
        self.waiting.drain(..done);
        self.first += done as u64;
        let told = self.told.take().filter(|_| !begins);
        self.told =
            told.and_then(|(count, at)| Some((count.checked_sub(done).filter(|left| *left > 0)?, at)));
        self.say_what_was_lost();
    }

    /// The service has ended, or cannot receive anything.
    pub fn service_ended(&mut self) {
        (self.asked_by, self.told) = (None, None);
    }

    /// The batch to send to the service now.
    pub fn next(&mut self, now_ms: u64) -> Option<Batch> {
        self.asked_by?;
        let waits_for_answer = self.told.is_some_and(|(_, at)| now_ms.saturating_sub(at) < TOLD_AGAIN_MS);
        if self.waiting.is_empty() || waits_for_answer {
            return None;
        }
        let records: Vec<_> = self.waiting.iter().take(BATCH_MAX).cloned().collect();
        self.told = Some((records.len(), now_ms));
        self.untold_from = self.untold_from.max(self.first + records.len() as u64);
        Some(Batch { first: self.first, records })
    }

    /// Removes and returns all unstored records, with a record of the dropped ones.
    pub fn take_unkept(&mut self) -> Batch {
        self.note_what_was_lost();
        let records: Vec<_> = std::mem::take(&mut self.waiting).into();
        let batch = Batch { first: self.first, records };
        (self.first, self.told) = (self.first + batch.records.len() as u64, None);
        batch
    }

    fn say_what_was_lost(&mut self) {
        if self.waiting.len() < WAITING_MAX {
            self.note_what_was_lost();
        }
    }

    fn note_what_was_lost(&mut self) {
        if let Some((count, since)) = self.lost.take() {
            let text = format!("{count} audit records were dropped: the queue of {WAITING_MAX} was full");
            self.waiting.push_back(Record { count, ..Record::new(since, "lost", "monitor", text) });
        }
    }
}

/// The records of the changes between two statuses of apps and kernel.
#[must_use]
pub fn changes(
    before: (&[AppStatus], &KernelStatus),
    after: (&[AppStatus], &KernelStatus),
    now_unix_ms: u64,
) -> Vec<Record> {
    let mut records = Vec::new();
    kernel_changes(before.1, after.1, now_unix_ms, &mut records);
    for new in after.0 {
        match before.0.iter().find(|old| old.app == new.app) {
            Some(old) => app_changes(old, new, now_unix_ms, &mut records),
            // An app that was added while the node runs. The initial apps are recorded when they first change.
            None if new.generation > 0 && runs(new) => records.push(started(new, now_unix_ms)),
            None => {}
        }
    }
    let gone = before.0.iter().filter(|old| after.0.iter().all(|new| new.app != old.app));
    records.extend(gone.filter(|old| runs(old)).map(|old| {
        Record::new(now_unix_ms, "ended", "app", "it was removed from the node").of_app(&old.app)
    }));
    records
}

fn runs(app: &AppStatus) -> bool {
    matches!(app.state, AppState::Starting | AppState::Running | AppState::Ending)
}

fn started(app: &AppStatus, now_unix_ms: u64) -> Record {
    let text = format!("in a {} zone, zone {}; restarts: {}", app.kind, app.zone, app.restarts);
    Record::new(now_unix_ms, "started", "monitor", text).of_app(&app.app)
}

fn kernel_changes(old: &KernelStatus, new: &KernelStatus, now_unix_ms: u64, records: &mut Vec<Record>) {
    if let Some(end) = new.last_end.as_ref().filter(|end| Some(*end) != old.last_end.as_ref()) {
        records.push(Record::new(end.unix_ms, "kernel_ended", "kernel", &end.reason));
    }
    if let Some(pid) = new.pid.filter(|_| new.pid != old.pid) {
        let text = format!("the kernel process is {pid}; restarts: {}", new.restarts);
        records.push(Record::new(now_unix_ms, "kernel_started", "monitor", text));
    }
}

fn app_changes(old: &AppStatus, new: &AppStatus, now_unix_ms: u64, records: &mut Vec<Record>) {
    let mut record = |unix_ms, what, who, text: String| {
        records.push(Record::new(unix_ms, what, who, text).of_app(&new.app));
    };
    let ended = |end: &crate::app::Ending| match &end.last_line {
        Some(line) => format!("{}; its last line: {line}", end.reason),
        None => end.reason.clone(),
    };
    let is_refused = new.state == AppState::Refused;
    if let Some(end) = new.last_end.as_ref().filter(|end| Some(*end) != old.last_end.as_ref()) {
        if is_refused {
            record(end.unix_ms, "package_refused", "monitor", end.reason.clone());
        }
        let who = if new.role == AppRole::Service { "monitor" } else { "app" };
        // An app that was refused before it started has not ended.
        if !is_refused || matches!(old.state, AppState::Running | AppState::Ending) {
            record(end.unix_ms, "ended", who, ended(end));
        }
    }
    if let Some(end) = new.demoted.as_ref().filter(|_| old.demoted.is_none()) {
        record(
            end.unix_ms,
            "demoted",
            "monitor",
            format!("it runs in a process zone from now on: {}", end.reason),
        );
    }
    if new.generation != old.generation {
        records.push(started(new, now_unix_ms));
    }
    if new.state == old.state {
        return;
    }
    let (what, text) = match (new.state, &new.last_end) {
        // Its last end shows whether the operator stopped it or it ended too often.
        (AppState::Quarantined, Some(end)) => {
            ("quarantined", format!("it stays stopped; its last end: {}", end.reason))
        }
        (AppState::Quarantined, None) => ("quarantined", "it stays stopped".to_owned()),
        (AppState::Stopped, _) => ("stopped", "it stays stopped".to_owned()),
        _ => return,
    };
    records.push(Record::new(now_unix_ms, what, "monitor", text).of_app(&new.app));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Ending, ZoneKind};

    fn record(unix_ms: u64, text: &str) -> Record {
        Record::new(unix_ms, "refused", "app", text)
    }

    fn texts(batch: Option<Batch>) -> Option<(u64, Vec<String>)> {
        batch.map(|batch| (batch.first, batch.records.into_iter().map(|record| record.text).collect()))
    }

    fn said(first: u64, expected: &[&str]) -> Option<(u64, Vec<String>)> {
        Some((first, expected.iter().map(|text| (*text).to_owned()).collect()))
    }

    #[test]
    fn nothing_is_told_before_the_service_has_said_how_far_it_came() {
        let mut collector = Collector::default();
        collector.push(record(0, "a"));
        assert_eq!(collector.next(0), None);
        collector.kept(1, 0);
        assert_eq!(texts(collector.next(0)), said(1, &["a"]));
    }

    #[test]
    fn a_batch_is_told_once_and_again_when_it_was_lost() {
        let mut collector = Collector::default();
        collector.kept(1, 0);
        collector.push(record(0, "a"));
        assert_eq!(texts(collector.next(0)), said(1, &["a"]));
        collector.push(record(0, "b"));
        assert_eq!(collector.next(TOLD_AGAIN_MS - 1), None);
        assert_eq!(texts(collector.next(TOLD_AGAIN_MS)), said(1, &["a", "b"]));
        collector.kept(1, 2);
        assert_eq!(collector.next(TOLD_AGAIN_MS), None);
    }

    #[test]
    fn a_new_life_of_the_service_is_told_what_the_last_did_not_keep() {
        let mut collector = Collector::default();
        collector.kept(1, 0);
        ["a", "b", "c"].into_iter().for_each(|text| collector.push(record(0, text)));
        assert!(collector.next(0).is_some());
        collector.service_ended();
        assert_eq!(collector.next(TOLD_AGAIN_MS), None);
        collector.kept(2, 1);
        assert_eq!(texts(collector.next(1)), said(2, &["b", "c"]));
    }

    #[test]
    fn what_the_service_claims_beyond_what_there_is_does_no_harm() {
        let mut collector = Collector::default();
        collector.push(record(0, "a"));
        collector.kept(1, u64::MAX - 1);
        collector.push(record(0, "b"));
        assert_eq!(texts(collector.next(0)), said(2, &["b"]));
        collector.kept(1, 0);
        assert_eq!(collector.take_unkept().records.len(), 1);
    }

    #[test]
    fn what_was_lost_is_said_at_the_end_even_if_the_service_never_came() {
        let mut collector = Collector::default();
        (0..WAITING_MAX + 3)
            .for_each(|number| collector.push(record(number as u64 * 10, &number.to_string())));
        let unkept = collector.take_unkept().records;
        assert_eq!(unkept.len(), WAITING_MAX + 1);
        assert_eq!((unkept[WAITING_MAX].what.as_str(), unkept[WAITING_MAX].count), ("lost", 3));
        collector.push(record(0, "after"));
        assert_eq!(collector.take_unkept().first, WAITING_MAX as u64 + 2);
    }

    #[test]
    fn what_a_killed_service_may_have_kept_is_not_counted_up() {
        let mut collector = Collector::default();
        collector.kept(1, 0);
        collector.push(record(0, "a"));
        assert_eq!(texts(collector.next(0)), said(1, &["a"]));
        collector.service_ended();
        collector.push(record(1, "a"));
        collector.kept(2, 1);
        assert_eq!(texts(collector.next(1)), said(2, &["a"]));
    }

    #[test]
    fn a_flood_of_the_same_is_one_record_a_second() {
        let mut collector = Collector::default();
        (0..3_000).for_each(|ms| collector.push(record(ms, "a")));
        let counts: Vec<u64> = collector.take_unkept().records.iter().map(|record| record.count).collect();
        assert_eq!(counts, [1_001, 1_001, 998]);
    }

    #[test]
    fn what_was_told_already_is_not_changed_any_more() {
        let mut collector = Collector::default();
        collector.kept(1, 0);
        collector.push(record(0, "a"));
        assert!(collector.next(0).is_some());
        collector.push(record(1, "a"));
        collector.kept(1, 1);
        assert_eq!(texts(collector.next(1)), said(2, &["a"]));
    }

    #[test]
    fn at_the_bound_the_oldest_stay_and_the_others_are_counted() {
        let mut collector = Collector::default();
        (0..WAITING_MAX + 5).for_each(|number| collector.push(record(7, &number.to_string())));
        collector.kept(1, 10);
        let unkept = collector.take_unkept();
        assert_eq!(unkept.first, 11);
        let last = unkept.records.last().unwrap();
        assert_eq!((last.what.as_str(), last.count, unkept.records[0].text.as_str()), ("lost", 5, "10"));
    }

    #[test]
    fn a_record_cannot_steer_a_terminal_and_a_batch_fits_into_a_message() {
        let mut collector = Collector::default();
        let wild = "\u{1b}\"".repeat(10_000);
        for number in 0..BATCH_MAX {
            let text = || format!("{number}{wild}");
            let (app, switch, capability) = (Some(text()), Some(text()), Some(text()));
            let (what, who) = (text(), text());
            collector.push(Record {
                unix_ms: u64::MAX,
                what,
                who,
                app,
                switch,
                capability,
                count: u64::MAX,
                text: text(),
            });
        }
        collector.kept(1, 0);
        let batch = collector.next(0).unwrap();
        assert!(!batch.records[0].text.contains('\u{1b}'));
        let message = crate::channel::encode(&batch).unwrap();
        assert!(message.len() <= crate::channel::MESSAGE_BYTES_MAX);
    }

    fn status() -> AppStatus {
        AppStatus {
            app: "hub".into(),
            role: AppRole::App,
            zone: 1,
            kind: ZoneKind::Process,
            demoted: None,
            state: AppState::Running,
            since_unix_ms: 0,
            restarts: 0,
            generation: 1,
            pid: Some(1),
            last_end: None,
            not_enforced: Vec::new(),
            note: None,
            listens: Vec::new(),
        }
    }

    fn check(new: AppStatus, expected: &[&str]) {
        let kernel = KernelStatus { pid: Some(1), since_unix_ms: 0, restarts: 0, last_end: None };
        let found = changes((&[status()], &kernel), (&[new], &kernel), 9);
        let words: Vec<_> = found.iter().map(|record| format!("{}: {}", record.what, record.text)).collect();
        assert_eq!(words, expected);
    }

    #[test]
    fn an_app_that_comes_or_goes_while_the_node_runs_is_told() {
        let kernel = KernelStatus { pid: Some(1), since_unix_ms: 0, restarts: 0, last_end: None };
        let words = |before: &[AppStatus], after: &[AppStatus]| -> Vec<String> {
            let found = changes((before, &kernel), (after, &kernel), 9);
            found.iter().map(|record| format!("{}: {}", record.what, record.text)).collect()
        };
        let runs = AppStatus { generation: 1, state: AppState::Starting, ..status() };
        assert_eq!(
            words(&[], std::slice::from_ref(&runs)),
            ["started: in a process zone, zone 1; restarts: 0"]
        );
        assert_eq!(words(&[runs], &[]), ["ended: it was removed from the node"]);
        let stopped = AppStatus { state: AppState::Stopped, ..status() };
        assert!(words(&[], std::slice::from_ref(&stopped)).is_empty() && words(&[stopped], &[]).is_empty());
    }

    #[test]
    fn what_happened_to_an_app_is_told_by_its_statuses() {
        let end =
            || Some(Ending { reason: "killed by SIGKILL".into(), last_line: Some("oh".into()), unix_ms: 5 });
        check(status(), &[]);
        check(
            AppStatus { generation: 2, restarts: 1, last_end: end(), ..status() },
            &[
                "ended: killed by SIGKILL; its last line: oh",
                "started: in a process zone, zone 1; restarts: 1",
            ],
        );
        let by_hand =
            Some(Ending { reason: "the operator quarantined it".into(), last_line: None, unix_ms: 5 });
        check(
            AppStatus { state: AppState::Quarantined, last_end: by_hand, ..status() },
            &[
                "ended: the operator quarantined it",
                "quarantined: it stays stopped; its last end: the operator quarantined it",
            ],
        );
        check(AppStatus { state: AppState::Stopped, ..status() }, &["stopped: it stays stopped"]);
        let unsigned = Some(Ending { reason: "is unsigned".into(), last_line: None, unix_ms: 5 });
        let refused = AppStatus { state: AppState::Refused, last_end: unsigned, ..status() };
        check(refused, &["package_refused: is unsigned", "ended: is unsigned"]);
        let demoted = AppStatus { demoted: end(), ..status() };
        check(demoted, &["demoted: it runs in a process zone from now on: killed by SIGKILL"]);
    }
}
