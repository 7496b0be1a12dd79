//! What the service answers, and when.

use super::*;
use burnet_sdk::store::Prefixes;
use burnet_sdk::testing::in_words;
use redb::StorageBackend;
use redb::backends::InMemoryBackend;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

struct World {
    store: Store,
    folder: PathBuf,
    ticket: u64,
}

impl World {
    fn new(name: &str) -> World {
        let folder = std::env::temp_dir().join(format!("burnet-store-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder::make(&folder).unwrap();
        World { store: World::service(&folder), folder, ticket: 0 }
    }

    fn service(folder: &std::path::Path) -> Store {
        let settings = serde_json::json!({ "folder": folder }).to_string();
        Store::new(&Settings::from_json(settings.as_bytes()).unwrap()).unwrap()
    }

    fn ask(&mut self, op: Op, key: &str, value: &[u8]) -> Vec<String> {
        let mut out = Commands::new();
        self.ticket += 1;
        let ask = Ask { op, key, value };
        self.store.on_query(&asked(self.ticket, &ALL.to_bytes(), &ask.to_bytes()), &mut out);
        all(&out)
    }

    fn end_turn(&mut self) -> Vec<String> {
        let mut out = Commands::new();
        self.store.on_caught_up(&mut out);
        all(&out)
    }
}

/// Every key, and ten bytes.
const ALL: Grant = Grant { read: Prefixes::All, write: Prefixes::All, hard_bytes: 10 };

fn asked<'q>(ticket: u64, grant: &'q [u8], payload: &'q [u8]) -> Query<'q> {
    Query {
        ticket,
        caller: Caller { number: 1, name: "a", grant },
        service: "store",
        form: burnet_sdk::Form::Query,
        deadline_ms: 10_000,
        credit_bytes: 64 << 10,
        payload,
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn answer(status: u16, payload: &[u8]) -> String {
    format!("QueryAnswer(QueryAnswer {{ status: {status}, more: false, payload: {payload:?} }})")
}

const FULL: &str =
    "store_bytes: the hard limit 10 is reached; the operator raises it by store_bytes in the app's quotas";

const AWAY: &str = "the store's file cannot be used (I/O error: No such file or directory (os error 2))";

fn used(bytes: u64) -> String {
    format!(r#"{{"stored":{{"app":"a","bytes":{bytes}}}}}"#)
}

/// What was commanded, then what the monitor was told.
fn all(out: &Commands) -> Vec<String> {
    let mut lines = in_words(out.frames());
    lines.extend(out.told_monitor());
    lines
}

#[test]
fn what_cannot_be_kept_is_said_once_and_answered_each_time() {
    let mut world = World::new("away");
    fs::remove_dir_all(&world.folder).unwrap();
    let said = world.ask(Op::Put, "k", b"v");
    assert!(said[0].starts_with("log the store's file cannot be used ("), "{said:?}");
    assert_eq!(world.ask(Op::Get, "k", b""), [""; 0]);
    let away = answer(status::FAILED, AWAY.as_bytes());
    assert_eq!(world.end_turn(), [away.clone(), away.clone()]);
    assert_eq!(world.ask(Op::Get, "k", b""), [""; 0]);
    assert_eq!(world.end_turn(), [away]);
    folder::make(&world.folder).unwrap();
    world.ask(Op::Put, "k", b"v");
    assert_eq!(world.end_turn(), [answer(status::DONE, b""), used(2)], "it is put right");
}

#[test]
fn the_monitor_gets_a_copy_or_the_reason_why_there_is_none() {
    let mut world = World::new("saved");
    let save = |world: &mut World| {
        let mut out = Commands::new();
        world.store.on_monitor(br#"{"ticket":3}"#, &mut out).unwrap();
        all(&out)
    };
    assert_eq!(save(&mut world), [r#"{"saved":{"ticket":3,"trouble":""}}"#], "it was never opened");
    world.ask(Op::Put, "k", b"v");
    world.end_turn();
    assert_eq!(save(&mut world), [r#"{"saved":{"ticket":3,"trouble":null}}"#]);
    let saved = fs::read(world.folder.join(store_contract::SAVED)).unwrap();
    assert_eq!(copy::read(&saved).unwrap(), [copy::Entry { app: "a", key: "k", value: b"v" }]);
    assert!(world.store.on_monitor(b"{}", &mut Commands::new()).is_err());
}

#[test]
fn a_turn_is_answered_in_its_order_when_it_is_on_disk() {
    let mut world = World::new("turn");
    let asked = [
        (Op::Get, "k", &b""[..]),
        (Op::Put, "k", b"v"),
        (Op::Get, "k", b""),
        (Op::Put, "l", b"1234567890"),
        (Op::List, "", b""),
        (Op::Delete, "l", b""),
    ];
    for (op, key, value) in asked {
        assert_eq!(world.ask(op, key, value), [""; 0], "nothing is said before it is on disk");
    }
    let (done, not_found) = (answer(status::DONE, b""), answer(status::NOT_FOUND, b""));
    let (value, full) = (answer(status::DONE, b"v"), answer(status::APP_FULL, FULL.as_bytes()));
    let list = answer(status::DONE, &[1, 0, b'k']);
    assert_eq!(world.end_turn(), [not_found.clone(), done, value, full, list, not_found, used(2)]);
    assert_eq!(world.end_turn(), [""; 0]);
}

#[test]
fn a_service_that_comes_back_says_what_each_app_has() {
    let mut world = World::new("back");
    world.ask(Op::Put, "k", b"v");
    world.end_turn();
    world.store = World::service(&world.folder.clone());
    let mut out = Commands::new();
    world.store.on_start(&mut out);
    assert_eq!(all(&out), [used(2)]);
    world.ask(Op::Delete, "k", b"");
    assert_eq!(world.end_turn(), [answer(status::DONE, b""), used(0)], "who has nothing any more is told of");
}

#[test]
fn what_is_not_granted_or_cannot_be_read_is_refused_and_keeps_nothing() {
    let mut world = World::new("refused");
    let mut said = |grant: &[u8], payload: &[u8]| {
        let mut out = Commands::new();
        world.store.on_query(&asked(7, grant, payload), &mut out);
        let mut out = Commands::new();
        world.store.on_caught_up(&mut out);
        all(&out)
    };
    let put = Ask { op: Op::Put, key: "k", value: b"v" }.to_bytes();
    let get = Ask { op: Op::Get, key: "k", value: b"" }.to_bytes();
    let only_reads = Grant { write: Prefixes::Nothing, ..ALL }.to_bytes();
    let refused = "store.write: the app does not hold this capability".as_bytes();
    assert_eq!(said(&only_reads, &put), [answer(status::NOT_GRANTED, refused)]);
    assert_eq!(said(&only_reads, &get), [answer(status::NOT_FOUND, b"")]);
    assert_eq!(said(&[], &put), [answer(status::NOT_GRANTED, refused)]);
    assert_eq!(said(&only_reads, b"?"), [answer(status::BAD_QUESTION, b"the question is too short")]);
    let damaged = said(b"{", &get);
    assert!(damaged[0].contains(&format!("status: {}", status::FAILED)), "{damaged:?}");
    assert_eq!(said(&ALL.to_bytes(), &put)[0], answer(status::DONE, b""), "another grant holds at once");
}

/// A disk whose last sync fails from a time on, although it has all bytes.
#[derive(Debug)]
struct Failing {
    disk: InMemoryBackend,
    fails: Arc<AtomicBool>,
}

impl StorageBackend for Failing {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.fails.load(Ordering::Relaxed) {
            true => Err(io::Error::other("no answer of the disk")),
            false => self.disk.sync_data(),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write(offset, data)
    }
}

#[test]
fn a_change_whose_commit_failed_may_be_there_and_a_question_was_not_answered() {
    let mut world = World::new("commit");
    let fails = Arc::new(AtomicBool::new(false));
    let disk = Failing { disk: InMemoryBackend::new(), fails: fails.clone() };
    world.store.file = Some(store_file::on_backend(disk));
    world.ask(Op::Put, "k", b"v");
    world.ask(Op::Put, "l", b"1234567890");
    world.ask(Op::Get, "k", b"");
    fails.store(true, Ordering::Relaxed);
    let said = world.end_turn();
    let statuses = [status::MAYBE_DONE, status::FAILED, status::FAILED];
    for (line, status) in said.iter().filter(|line| line.starts_with("QueryAnswer")).zip(statuses) {
        assert!(line.contains(&format!("status: {status},")) && line.contains("more: false"), "{said:?}");
    }
    assert_eq!(said.len(), 4, "three answers and a line of the log: {said:?}");
}
