//! The versions of network files: what operators applied, kept in the service `store`.
//!
//! ```text
//!   request ──> get head ──> get or put parts of a document ──> put head ──> delete parts that are too old ──> response
//! ```
//!
//! In: a request for one file, and answers of the store. Out: calls of the store, and the response. A document is written before the head that
//! names it, so a crash in between leaves the earlier head. It knows no meaning of a document.

use crate::http::{Problem, Response};
use crate::steps::{Question, Steps, Turn};
use burnet_sdk::store::{Ask, Op, VALUE_BYTES_MAX, status};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// The most versions that are kept of one file. With one more, the oldest is deleted. The last one whose steps are all taken, and those after
/// it, are never deleted, because they say which hosts the file owns. If they are all, one more is refused, unless it is a rollback.
pub const VERSIONS_MAX: usize = 10;

/// The longest document in bytes, as JSON: some thousand intents. A longer one is refused.
pub const DOCUMENT_BYTES_MAX: usize = 512 << 10;

/// The prefix of the keys. Behind it come the name, and `head` or the version and the number of the part.
const PREFIX: &str = "northbound/file/";

/// The service.
const STORE: &str = "store";

/// One version of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Its number, from 1.
    pub version: u64,
    /// When it was applied, in milliseconds since 1970.
    pub at_ms: u64,
    /// The number of its parts in the store.
    pub parts: usize,
    /// The version whose document it has, if it is a rollback. 0: the empty one before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<u64>,
    /// Its steps are not all taken: the command that applies it is at work, or was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// How many rules it changed, and how long the switches took to confirm them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<Took>,
}

/// How long the switches took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Took {
    /// Rules that were added or removed.
    pub rules: u64,
    /// Milliseconds until the last one was confirmed.
    pub took_ms: u64,
}

/// The versions of a file, the latest last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    versions: Vec<Version>,
}

/// What is done with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// List its versions.
    List,
    /// The document of a version.
    Get(u64),
    /// Keep a document as the next version.
    Put {
        /// The version that it follows.
        base: u64,
        /// The document.
        document: Value,
        /// The version whose document it is.
        restores: Option<u64>,
        /// Whether its steps are still to be taken.
        open: bool,
        /// The time.
        now_ms: u64,
    },
    /// Note what has become of a version.
    Note {
        /// The version.
        version: u64,
        /// All its steps are taken.
        done: bool,
        /// How long the switches took.
        took: Option<Took>,
    },
}

/// What the next answers are to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Head,
    Reading,
    Writing,
    Closing,
    Tidying,
}

/// A request for a file that is under way.
#[derive(Debug)]
pub struct Keeping {
    name: String,
    act: Act,
    phase: Phase,
    head: Head,
    body: Vec<u8>,
    calls: VecDeque<Vec<u8>>,
    old: Vec<Version>,
    outcome: Option<Result<Response, Problem>>,
}

impl Keeping {
    /// Begins.
    pub fn new(name: &str, act: Act) -> Keeping {
        let mut keeping = Keeping {
            name: name.to_owned(),
            act,
            phase: Phase::Head,
            head: Head::default(),
            body: Vec::new(),
            calls: VecDeque::new(),
            old: Vec::new(),
            outcome: None,
        };
        keeping.call(Op::Get, "head", &[]);
        keeping
    }

    fn call(&mut self, op: Op, behind: &str, value: &[u8]) {
        let key = format!("{PREFIX}{}/{behind}", self.name);
        self.calls.push_back(Ask { op, key: &key, value }.to_bytes());
    }

    fn end(&mut self, outcome: Result<Response, Problem>) {
        self.calls.clear();
        self.outcome = Some(outcome);
    }

    fn on_head(&mut self, status: u16, payload: &[u8]) {
        if status != status::NOT_FOUND {
            match serde_json::from_slice(payload) {
                Ok(head) => self.head = head,
                Err(why) => return self.end(Err(damaged(&self.name, &why.to_string()))),
            }
        }
        match self.act.clone() {
            Act::List => {
                let body = json!({ "name": self.name, "versions": self.head.versions });
                self.end(Ok(Response::value(&body)));
            }
            Act::Get(version) => match self.head.versions.iter().find(|it| it.version == version).cloned() {
                Some(found) => {
                    self.phase = Phase::Reading;
                    (0..found.parts).for_each(|part| self.call(Op::Get, &format!("{version}/{part}"), &[]));
                }
                None => {
                    let why = format!("version {version} of the file {:?} is not kept", self.name);
                    self.end(Err(Problem::not_found(&why)));
                }
            },
            Act::Put { base, document, restores, open, now_ms } => {
                let next = Version {
                    version: base.saturating_add(1),
                    at_ms: now_ms,
                    parts: 0,
                    restores,
                    open,
                    took: None,
                };
                self.put(base, &document, next);
            }
            Act::Note { version, done, took } => {
                let Some(found) = self.head.versions.iter_mut().find(|it| it.version == version) else {
                    return self.end(Err(Problem::not_found("this version is not kept")));
                };
                found.open &= !done;
                found.took = took.or(found.took);
                self.close();
            }
        }
    }

    fn put(&mut self, base: u64, document: &Value, next: Version) {
        let latest = self.head.versions.last().map_or(0, |it| it.version);
        if latest != base {
            let why = format!(
                "base: the file {:?} has the version {latest} meanwhile, and not {base}: plan again",
                self.name
            );
            return self.end(Err(Problem::new(409, "conflict", "It contradicts another object", why)));
        }
        if let Some(why) = self.unfinished(&next) {
            return self.end(Err(Problem::conflict(why)));
        }
        let bytes = document.to_string().into_bytes();
        if bytes.len() > DOCUMENT_BYTES_MAX {
            let why = format!(
                "document: {} bytes are more than the limit of {DOCUMENT_BYTES_MAX}: divide the file",
                bytes.len()
            );
            return self.end(Err(Problem::field("document", why)));
        }
        let version = next.version;
        let parts: Vec<&[u8]> = bytes.chunks(VALUE_BYTES_MAX).collect();
        for (part, bytes) in parts.iter().enumerate() {
            self.call(Op::Put, &format!("{version}/{part}"), bytes);
        }
        self.head.versions.push(Version { parts: parts.len(), ..next });
        self.old = too_old(&mut self.head.versions);
        self.phase = Phase::Writing;
    }

    /// Why the next version is refused, if too many before it are not finished.
    fn unfinished(&self, next: &Version) -> Option<String> {
        let versions = &self.head.versions;
        let needed = versions.len() - first_needed(versions);
        if !next.open || needed < VERSIONS_MAX {
            return None;
        }
        let (name, last) = (&self.name, versions.last()?);
        let how = match last.restores.filter(|_| last.open) {
            // A rollback goes on when it is asked for again.
            Some(to) => format!("finish the rollback that is begun: burnet rollback {name} --to {to}"),
            None if next.restores.is_some() => return None,
            None => format!("apply version {} again, or run: burnet rollback {name}", last.version),
        };
        Some(format!(
            "the last {needed} versions of the file {name:?} are needed, because those that are not finished may have added hosts: {how}"
        ))
    }

    /// Writes the head, which makes the change.
    fn close(&mut self) {
        self.phase = Phase::Closing;
        let head = serde_json::to_vec(&self.head).unwrap_or_default();
        self.call(Op::Put, "head", &head);
    }

    fn tidy(&mut self) {
        self.phase = Phase::Tidying;
        for old in std::mem::take(&mut self.old) {
            (0..old.parts).for_each(|part| self.call(Op::Delete, &format!("{}/{part}", old.version), &[]));
        }
        let body = json!({ "name": self.name, "versions": self.head.versions });
        let status = if matches!(self.act, Act::Put { .. }) { 201 } else { 200 };
        self.outcome = Some(Ok(Response { status, ..Response::value(&body) }));
    }
}

/// Where the versions begin that say which hosts the file owns: the last one whose steps are all taken. An interrupted apply returns to it.
fn first_needed(versions: &[Version]) -> usize {
    versions.iter().rposition(|it| !it.open).unwrap_or(0)
}

/// Takes out versions that are too many: the oldest ones that are not needed.
fn too_old(versions: &mut Vec<Version>) -> Vec<Version> {
    let too_many = versions.len().saturating_sub(VERSIONS_MAX);
    versions.drain(..too_many.min(first_needed(versions))).collect()
}

fn damaged(name: &str, why: &str) -> Problem {
    Problem::no_service(STORE, &format!("what it keeps of the file {name:?} is damaged: {why}"))
}

/// What an answer of the store that is no success means.
fn failure(status: u16, payload: &[u8]) -> Problem {
    match status {
        status::STORE_FULL | status::APP_FULL => Problem::new(
            507,
            "no-room",
            "The node cannot keep it",
            "the store has no room for another version",
        ),
        status::FAILED => Problem::new(
            507,
            "no-room",
            "The node cannot keep it",
            "the disk failed; the log has the details",
        ),
        other => {
            let why = String::from_utf8_lossy(payload);
            Problem::no_service(STORE, &format!("{why} (status {other})"))
        }
    }
}

impl Steps for Keeping {
    fn question(&mut self) -> Option<Question> {
        Some(Question { service: STORE, payload: self.calls.pop_front()? })
    }

    fn take(&mut self, status: u16, payload: &[u8]) {
        let is_new = self.phase == Phase::Head && status == status::NOT_FOUND;
        if status != status::DONE && !is_new {
            // What could not be deleted is in nobody's way.
            return match self.phase {
                Phase::Tidying => {}
                _ => self.end(Err(failure(status, payload))),
            };
        }
        match self.phase {
            Phase::Head => self.on_head(status, payload),
            Phase::Reading => {
                self.body.extend_from_slice(payload);
                if self.calls.is_empty() {
                    let document = serde_json::from_slice::<Value>(&self.body);
                    let document = document.map_err(|why| damaged(&self.name, &why.to_string()));
                    self.end(document.map(|document| Response::value(&json!({ "document": document }))));
                }
            }
            Phase::Writing if self.calls.is_empty() => self.close(),
            Phase::Closing => self.tidy(),
            Phase::Writing | Phase::Tidying => {}
        }
    }

    /// The store has no call that compares before it writes. Two changes at once would both follow the same version.
    fn turn(&self) -> Turn {
        if matches!(self.act, Act::Put { .. } | Act::Note { .. }) { Turn::Alone } else { Turn::Any }
    }

    fn stop(&mut self) {
        if self.outcome.is_none() {
            self.end(Err(Problem::no_service(STORE, "it did not answer in time")));
        }
    }

    fn response(self: Box<Self>) -> Result<Response, Problem> {
        self.outcome.unwrap_or_else(|| Err(Problem::no_service(STORE, "it gave no answer")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A store in memory, which fails at one call, or never.
    #[derive(Default)]
    struct Store {
        values: BTreeMap<String, Vec<u8>>,
        calls: usize,
        fails_at: Option<usize>,
    }

    impl Store {
        fn run(&mut self, act: Act) -> Result<Value, Problem> {
            let mut keeping = Box::new(Keeping::new("campus", act));
            while let Some(question) = keeping.question() {
                self.calls += 1;
                if self.fails_at == Some(self.calls) {
                    keeping.take(status::STORE_FULL, &[]);
                    continue;
                }
                let ask = Ask::from_bytes(&question.payload).unwrap();
                let found = self.values.get(ask.key).cloned();
                match (ask.op, found) {
                    (Op::Get, None) => keeping.take(status::NOT_FOUND, &[]),
                    (Op::Get, Some(value)) => keeping.take(status::DONE, &value),
                    (Op::Put, _) => {
                        self.values.insert(ask.key.to_owned(), ask.value.to_vec());
                        keeping.take(status::DONE, &[]);
                    }
                    (Op::Delete, _) => {
                        self.values.remove(ask.key);
                        keeping.take(status::DONE, &[]);
                    }
                    (Op::List | Op::ChangeAll, _) => {
                        panic!("nothing is listed, and each key is written alone")
                    }
                }
            }
            let response = keeping.response()?;
            Ok(serde_json::from_slice(&response.body).unwrap())
        }

        fn put(&mut self, base: u64, document: Value) -> Result<Value, Problem> {
            self.run(Act::Put { base, document, restores: None, open: false, now_ms: 7 })
        }

        fn open(&mut self, base: u64) {
            self.run(Act::Put { base, document: json!(base), restores: None, open: true, now_ms: 7 })
                .unwrap();
        }
    }

    #[test]
    fn a_file_that_others_applied_meanwhile_is_not_replaced() {
        let mut store = Store::default();
        assert_eq!(store.put(1, json!({})).unwrap_err().status, 409);
        store.put(0, json!({"a": 1})).unwrap();
        let refused = store.put(0, json!({"a": 2})).unwrap_err();
        assert_eq!(refused.status, 409);
        assert!(refused.detail.contains("has the version 1"), "{}", refused.detail);
        assert_eq!(store.run(Act::Get(1)).unwrap()["document"], json!({"a": 1}));
        assert_eq!(store.run(Act::Get(2)).unwrap_err().status, 404);
    }

    #[test]
    fn a_store_that_fails_at_any_call_keeps_the_earlier_version() {
        let long = json!("x".repeat(3 * VALUE_BYTES_MAX));
        for fails_at in 1..8 {
            let mut store = Store::default();
            store.put(0, json!("first")).unwrap();
            store.fails_at = Some(store.calls + fails_at);
            let done = store.put(1, long.clone());
            store.fails_at = None;
            let latest = if done.is_ok() { 2 } else { 1 };
            let list = store.run(Act::List).unwrap();
            assert_eq!(list["versions"].as_array().unwrap().last().unwrap()["version"], latest, "{fails_at}");
            let document = store.run(Act::Get(latest)).unwrap()["document"].clone();
            assert_eq!(document, if latest == 2 { long.clone() } else { json!("first") });
        }
    }

    #[test]
    fn only_the_last_versions_are_kept() {
        let mut store = Store::default();
        for version in 0..15 {
            store.put(version, json!(version)).unwrap();
        }
        let list = store.run(Act::List).unwrap();
        assert_eq!(list["versions"].as_array().unwrap().len(), VERSIONS_MAX);
        assert_eq!(store.values.len(), VERSIONS_MAX + 1, "parts and the head");
        assert_eq!(store.run(Act::Get(15)).unwrap()["document"], 14);
        let too_long = store.put(15, json!("x".repeat(DOCUMENT_BYTES_MAX))).unwrap_err();
        assert_eq!((too_long.status, too_long.field.as_deref()), (422, Some("document")));
    }

    #[test]
    fn how_long_a_version_took_is_noted() {
        let mut store = Store::default();
        store.put(0, json!({})).unwrap();
        let took = Some(Took { rules: 12, took_ms: 30 });
        let list = store.run(Act::Note { version: 1, done: true, took }).unwrap();
        assert_eq!(list["versions"][0]["took"], json!({"rules": 12, "took_ms": 30}));
        assert_eq!(store.run(Act::Note { version: 2, done: true, took }).unwrap_err().status, 404);
    }

    #[test]
    fn a_version_is_open_until_its_steps_are_taken() {
        let mut store = Store::default();
        store.open(0);
        assert_eq!(store.run(Act::List).unwrap()["versions"][0]["open"], true);
        let took = Some(Took { rules: 1, took_ms: 2 });
        let list = store.run(Act::Note { version: 1, done: false, took }).unwrap();
        assert_eq!(list["versions"][0]["open"], true);
        let list = store.run(Act::Note { version: 1, done: true, took: None }).unwrap();
        assert_eq!(
            (list["versions"][0].get("open"), &list["versions"][0]["took"]["rules"]),
            (None, &json!(1))
        );
    }

    fn numbers(list: &Value) -> Vec<u64> {
        list["versions"].as_array().unwrap().iter().map(|it| it["version"].as_u64().unwrap()).collect()
    }

    fn rollback(store: &mut Store, base: u64, to: u64) -> Result<Value, Problem> {
        let document = json!(to);
        store.run(Act::Put { base, document, restores: Some(to), open: true, now_ms: 7 })
    }

    #[test]
    fn no_version_that_may_own_hosts_is_deleted_and_one_too_many_is_refused() {
        let mut store = Store::default();
        store.put(0, json!("one")).unwrap();
        store.put(1, json!("two")).unwrap();
        (2..11).for_each(|base| store.open(base));
        let all = (2..=11).collect::<Vec<_>>();
        assert_eq!(numbers(&store.run(Act::List).unwrap()), all);
        let refused =
            store.run(Act::Put { base: 11, document: json!(12), restores: None, open: true, now_ms: 7 });
        let refused = refused.unwrap_err();
        assert_eq!(refused.status, 409);
        assert!(refused.detail.contains("burnet rollback campus"), "{}", refused.detail);
        assert_eq!(numbers(&store.run(Act::List).unwrap()), all, "nothing has changed");
        // A rollback has one place more, and no other version begins before it ends.
        rollback(&mut store, 11, 2).unwrap();
        let refused = rollback(&mut store, 12, 1).unwrap_err();
        assert!(refused.detail.contains("burnet rollback campus --to 2"), "{}", refused.detail);
        assert_eq!(numbers(&store.run(Act::List).unwrap()), (2..=12).collect::<Vec<_>>());
        store.run(Act::Note { version: 12, done: true, took: None }).unwrap();
        store.open(12);
        assert_eq!(numbers(&store.run(Act::List).unwrap()), (4..=13).collect::<Vec<_>>());
        assert_eq!(store.values.len(), VERSIONS_MAX + 1, "parts and the head");
    }

    #[test]
    fn a_file_whose_first_versions_were_all_interrupted_is_rolled_back() {
        let mut store = Store::default();
        (0..10).for_each(|base| store.open(base));
        assert_eq!(rollback(&mut store, 9, 0).unwrap_err().status, 409, "another base");
        let list = rollback(&mut store, 10, 0).unwrap();
        assert_eq!(numbers(&list), (1..=11).collect::<Vec<_>>());
        let list = store.run(Act::Note { version: 11, done: true, took: None }).unwrap();
        assert_eq!(numbers(&list).len(), 11);
        let list = store.put(11, json!({})).unwrap();
        assert_eq!(numbers(&list), (3..=12).collect::<Vec<_>>());
    }
}
