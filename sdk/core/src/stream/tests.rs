//! A table and its readers, joined by the credit alone: whatever happens between them, readers end with the table's entries.

use super::*;
use crate::commands::Commands;
use abi::Frame;
use abi::command::{Command, What};
use abi::event::{
    BAD_ANSWER, BAD_QUESTION, Caller, Credit, OVER_QUOTA, Query, QueryOver, QueryReply, SERVICE_GONE,
};
use abi::service::Form;
use proptest::prelude::*;
use std::collections::VecDeque;

const TICKET: u64 = TICKET_OF_STREAM | 7;

fn query(ticket: u64, form: Form) -> Query<'static> {
    let caller = Caller { number: 3, name: "app", grant: &[] };
    Query { ticket, caller, service: "s", form, deadline_ms: 1, credit_bytes: 40 << 10, payload: &[] }
}

/// The answers in these frames: ticket, status, whether more follows, payload.
fn answers(out: &mut Commands) -> Vec<(u64, u16, bool, Vec<u8>)> {
    let frames = std::mem::take(&mut out.frames);
    let (mut rest, mut all) = (frames.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (frame, others) = Frame::split(rest).unwrap();
        let command = Command::read(&frame).unwrap();
        let What::QueryAnswer(it) = command.what else { panic!("{command:?}") };
        all.push((command.ticket, it.status, it.more, it.payload.to_vec()));
        rest = others;
    }
    all
}

/// A service and one app that follows its table.
struct Bed {
    table: Table,
    service: Commands,
    app: Commands,
    /// Parts that the app has not read yet.
    under_way: VecDeque<Vec<u8>>,
    replica: Replica,
    heard: Vec<String>,
}

impl Bed {
    fn new(log_bytes_max: usize) -> Bed {
        let mut bed = Bed {
            table: Table::with_log_bytes(log_bytes_max),
            service: Commands::new(),
            app: Commands::new(),
            under_way: VecDeque::new(),
            replica: Replica::new(),
            heard: Vec::new(),
        };
        bed.app.calls.follow(TICKET, 40 << 10);
        bed
    }

    fn follow(&mut self) {
        let query = query(TICKET, Form::Stream);
        self.service.calls.on_query(&query);
        self.table.follow(&query, &mut self.service);
        self.take();
    }

    fn send(&mut self) {
        self.table.send(&mut self.service);
        self.take();
    }

    fn take(&mut self) {
        for (ticket, status, more, payload) in answers(&mut self.service) {
            assert_eq!((ticket, status, more), (TICKET, 0, true));
            assert!(payload.len() <= crate::part::PART_BYTES);
            self.under_way.push_back(payload);
        }
    }

    /// The app reads one part. What it grants comes to the service.
    fn read(&mut self) -> bool {
        let Some(payload) = self.under_way.pop_front() else { return false };
        let reply = QueryReply { ticket: TICKET, status: 0, more: true, payload: &payload };
        self.hear(&reply);
        let granted = std::mem::take(&mut self.app.frames);
        if !granted.is_empty() {
            let command = Command::read(&Frame::read(&granted).unwrap()).unwrap();
            let What::QueryCredit(bytes) = command.what else { panic!("{command:?}") };
            self.service.calls.on_credit(&mut self.service.frames, Credit { ticket: TICKET, bytes });
            self.send();
        }
        true
    }

    fn hear(&mut self, reply: &QueryReply<'_>) {
        let Bed { app, replica, heard, .. } = self;
        let Commands { calls, frames, .. } = app;
        let Some(mut part) = calls.begin_part(reply) else { return };
        while let Some(update) = calls.next_update(frames, &mut part) {
            replica.apply(&update);
            heard.push(in_words(&update));
        }
    }

    fn entries_of_table(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.table.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    }

    fn entries_of_replica(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.replica.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    }
}

fn in_words(update: &Update<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match *update {
        Update::Begin { number } => format!("begin {number}"),
        Update::Entry { key, value } => format!("entry {}={}", text(key), text(value)),
        Update::Complete { number } => format!("complete {number}"),
        Update::Put { number, key, value } => format!("put {number} {}={}", text(key), text(value)),
        Update::Removed { number, key } => format!("removed {number} {}", text(key)),
        Update::Missed { from, to } => format!("missed {} ({from} to {to})", update.missed()),
        Update::Ended { status, .. } => format!("ended {status:#x}"),
    }
}

#[test]
fn a_part_that_is_no_part_of_a_stream_ends_it() {
    let mut entry = Vec::new();
    item::write(&mut entry, &Update::Entry { key: b"k", value: b"v" });
    let mut begin = Vec::new();
    item::write(&mut begin, &Update::Begin { number: 4 });
    let mut gap = begin.clone();
    item::write(&mut gap, &Update::Put { number: 6, key: b"k", value: b"v" });
    let mut missed = begin.clone();
    item::write(&mut missed, &Update::Missed { from: 5, to: 4 });
    let mut unknown = begin.clone();
    unknown[14] = 9;
    let check = |part: &[u8], before: usize| {
        let mut bed = Bed::new(LOG_BYTES_MAX);
        bed.hear(&QueryReply { ticket: TICKET, status: 0, more: true, payload: part });
        assert_eq!(bed.heard.len(), before + 1, "{:?}", bed.heard);
        assert_eq!(bed.heard.last().unwrap(), &format!("ended {BAD_ANSWER:#x}"));
        let cancelled = Command::read(&Frame::read(&bed.app.frames).unwrap()).unwrap();
        assert!(matches!(cancelled.what, What::QueryCancel));
        bed.hear(&QueryReply { ticket: TICKET, status: 0, more: true, payload: part });
        assert_eq!(bed.heard.len(), before + 1, "what is under way is passed over");
    };
    check(b"garbage", 0);
    check(&entry, 0);
    check(&unknown, 0);
    check(&begin[..10], 0);
    check(&gap, 1);
    check(&missed, 1);
    check(&[begin.clone(), begin.clone()].concat(), 1);
    check(&[begin, vec![1]].concat(), 1);
}

#[test]
fn a_reader_gets_the_snapshot_and_then_each_change() {
    let mut bed = Bed::new(LOG_BYTES_MAX);
    bed.table.put(b"a", b"1");
    bed.table.put(b"b", b"2");
    bed.follow();
    bed.table.put(b"a", b"1");
    bed.table.put(b"a", b"3");
    assert!(bed.table.remove(b"b") && !bed.table.remove(b"b"));
    bed.send();
    while bed.read() {}
    assert_eq!(bed.heard, ["begin 2", "entry a=1", "entry b=2", "complete 2", "put 3 a=3", "removed 4 b"]);
    assert!(bed.replica.is_complete() && bed.replica.number() == 4);
}

#[test]
fn a_slow_reader_hears_what_it_missed_and_gets_a_new_snapshot() {
    let mut bed = Bed::new(1 << 10);
    bed.follow();
    let value = [b'x'; 400];
    for number in 0..200_u8 {
        bed.table.put(&[b'a' + number % 26], &[&value[..], &[b'0' + number % 10]].concat());
        bed.send();
    }
    let sent = bed.under_way.len();
    assert!((50..90).contains(&sent), "40 KiB of credit, and some 500 bytes each: {sent}");
    while bed.read() {}
    let missed: Vec<_> = bed.heard.iter().filter(|line| line.starts_with("missed")).collect();
    assert_eq!(missed, [&format!("missed {} ({} to 200)", 201 - sent, sent)]);
    assert!(bed.replica.is_complete());
    assert_eq!(bed.entries_of_replica(), bed.entries_of_table());
}

#[test]
fn what_is_kept_for_readers_is_bounded_and_nothing_is_kept_without_one() {
    let mut bed = Bed::new(1 << 10);
    for number in 0..100_u8 {
        bed.table.put(&[number], &[0; 100]);
    }
    let kept = format!("{:?}", bed.table);
    assert!(kept.contains("log: []"), "nobody follows");
    assert!(!bed.table.put(b"k", &[0; ITEM_BYTES_MAX]) && bed.table.get(b"k").is_none());
    assert!(bed.table.put(b"k", &[0; ITEM_BYTES_MAX - 17]));
}

#[test]
fn a_query_and_a_caller_with_too_many_streams_are_refused() {
    let (mut table, mut out) = (Table::new(), Commands::new());
    let mut check = |ticket, form, expected| {
        let query = query(ticket, form);
        out.calls.on_query(&query);
        table.follow(&query, &mut out);
        let all = answers(&mut out);
        assert_eq!(all.iter().map(|(_, status, more, _)| (*status, *more)).collect::<Vec<_>>(), [expected]);
    };
    check(1, Form::Query, (BAD_QUESTION, false));
    for ticket in 2..2 + STREAMS_PER_CALLER_MAX as u64 {
        check(ticket, Form::Stream, (0, true));
    }
    check(100, Form::Stream, (OVER_QUOTA, false));
    out.calls.on_over(QueryOver { ticket: 2, status: SERVICE_GONE });
    let query = query(101, Form::Stream);
    out.calls.on_query(&query);
    table.follow(&query, &mut out);
    assert_eq!((answers(&mut out)[0].1, table.readers()), (0, STREAMS_PER_CALLER_MAX));
}

#[test]
fn a_reader_hears_the_end_once_and_nothing_after_it() {
    let mut bed = Bed::new(LOG_BYTES_MAX);
    bed.follow();
    while bed.read() {}
    for _ in 0..2 {
        bed.hear(&QueryReply { ticket: TICKET, status: SERVICE_GONE, more: false, payload: b"" });
    }
    assert_eq!(bed.heard, ["begin 0", "complete 0", "ended 0xfffb"]);
    assert!(!bed.replica.is_complete());
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u16),
    Remove(u8),
    Send,
    Read,
    Follow,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..40_u8, 0..4_000_u16).prop_map(|(key, length)| Step::Put(key, length)),
        2 => (0..40_u8).prop_map(Step::Remove),
        3 => Just(Step::Send),
        3 => Just(Step::Read),
        1 => Just(Step::Follow),
    ];
    proptest::collection::vec(step, 0..400)
}

proptest! {
    /// Whenever a snapshot is complete, the replica is the table as it was after the change of that number; in the end it is the table.
    #[test]
    fn a_readers_last_state_is_the_tables(steps in steps(), log_bytes_max in 0..60_000_usize) {
        let mut bed = Bed::new(log_bytes_max);
        let mut was = vec![bed.entries_of_table()];
        let mut is_followed = false;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(key, length) => {
                    let mut value = vec![number as u8; length.into()];
                    value.extend_from_slice(&number.to_le_bytes());
                    prop_assert!(bed.table.put(&[key], &value));
                }
                Step::Remove(key) => drop(bed.table.remove(&[key])),
                Step::Send => bed.send(),
                Step::Read => drop(bed.read()),
                Step::Follow if !is_followed => {
                    is_followed = true;
                    bed.follow();
                }
                Step::Follow => {}
            }
            if bed.table.number() as usize == was.len() {
                was.push(bed.entries_of_table());
            }
            if bed.replica.is_complete() {
                prop_assert_eq!(&bed.entries_of_replica(), &was[bed.replica.number() as usize]);
            }
        }
        if !is_followed {
            bed.follow();
        }
        bed.send();
        while bed.read() {}
        prop_assert!(bed.replica.is_complete());
        prop_assert_eq!(bed.replica.number(), bed.table.number());
        prop_assert_eq!(bed.entries_of_replica(), bed.entries_of_table());
        prop_assert!(!bed.heard.iter().any(|line| line.starts_with("ended")));
    }

    /// Any bytes as a part: reading ends, and the app receives only what the order allows.
    #[test]
    fn whatever_bytes_come_reading_ends(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..4)) {
        let mut bed = Bed::new(LOG_BYTES_MAX);
        for part in &parts {
            bed.hear(&QueryReply { ticket: TICKET, status: 0, more: true, payload: part });
        }
        prop_assert!(bed.heard.iter().filter(|line| line.starts_with("ended")).count() <= 1);
    }
}
