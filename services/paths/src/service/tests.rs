//! Random questions about a few intents, and a store that answers, refuses, fails and ends at random.
//!
//! In: seeds. Checked: what was answered is what is wanted, in the service and in the store, before and after a restart.

use super::*;
use crate::engine::Kept;
use crate::writing::PREFIX;
use abi::Frame;
use abi::command::{Command, What};
use burnet_sdk::store::{Ask, Op, changes, push_key, status as store_status};
use burnet_sdk::{Caller, query_status};
use flows_contract::{Refusal, read_batch, write_refusals};
use paths_contract::{AddResult, Added, Addition};
use std::collections::{BTreeMap, VecDeque};
use view::{Ends, IntentState, Record, Wanted};

/// A grant for everything.
const ALL: &[u8] = br#"{"capabilities":{"intent.write":true,"intent.read":true}}"#;

/// A number that stands for what an intent wants.
type Wish = u16;

/// What is asked: the number of an intent, or its name, and a wish.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asks {
    Add(u64, Wish),
    Change(u64, Wish),
    Withdraw(u64),
}

struct Bed {
    random: u64,
    service: Paths,
    out: Commands,
    /// How much of `out` was read.
    read: usize,
    store: BTreeMap<String, Vec<u8>>,
    /// Questions at the store, oldest first.
    at_store: VecDeque<(u64, Vec<u8>)>,
    at_flows: VecDeque<(u64, Vec<u8>)>,
    last_question: u64,
    open: BTreeMap<u64, Vec<Asks>>,
    /// By the number of an intent: what it may want, after all answers. `None`: it is not there.
    truth: BTreeMap<u64, Vec<Option<Wish>>>,
    /// The intents about which a question of their own was answered: the answer to several comes later than the truth about each.
    told: BTreeSet<u64>,
    when: String,
}

fn wanted(wish: Wish) -> Wanted {
    let point = |text: &str| text.parse().expect("a port");
    let ends = Ends::PointToPoint { from: point("1/1"), to: point("2/1") };
    let (selector, treatment, constraints) = Default::default();
    Wanted { ends, selector, treatment, constraints, priority: wish, protection: Default::default() }
}

fn service() -> Paths {
    Paths::new(&Settings::from_json(br#"{"settle_ms":0}"#).expect("it is JSON")).expect("it is sound")
}

impl Bed {
    fn new(seed: u64) -> Bed {
        let (store, at_store, at_flows, open, truth, told) = Default::default();
        let (service, out, when) = (service(), Commands::new(), format!("seed {seed}"));
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let (read, last_question) = (0, 0);
        let mut bed = Bed {
            random,
            service,
            out,
            read,
            store,
            at_store,
            at_flows,
            last_question,
            open,
            truth,
            told,
            when,
        };
        bed.start();
        bed
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % bound
    }

    /// Starts the service, and lets it load what the store has.
    fn start(&mut self) {
        self.service.on_start(&mut self.out);
        self.hear();
        while let Some((ticket, bytes)) = self.at_store.pop_front() {
            self.answer_well(ticket, &bytes);
        }
        assert!(self.service.storage.is_loaded(), "{}", self.when);
    }

    /// Notes what the service has said since the last call.
    fn hear(&mut self) {
        let bytes = self.out.frames()[self.read..].to_vec();
        self.read += bytes.len();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (frame, behind) = Frame::split(rest).expect("a frame");
            let command = Command::read(&frame).expect("a command");
            match command.what {
                What::Query(ask) if ask.service == "store" => {
                    self.at_store.push_back((command.ticket, ask.payload.to_vec()));
                }
                What::Query(ask) if ask.form == Form::Query => {
                    self.at_flows.push_back((command.ticket, ask.payload.to_vec()));
                }
                What::QueryAnswer(answer) => self.on_answer(command.ticket, answer.status, answer.payload),
                _ => {}
            }
            rest = behind;
        }
    }

    fn ask(&mut self, asks: Vec<Asks>) {
        let addition = |name: u64, wish| Addition {
            name: format!("n{name}"),
            intent: wanted(wish),
            annotations: Default::default(),
        };
        let add = |asks: &Asks| match *asks {
            Asks::Add(name, wish) => addition(name, wish),
            _ => panic!("several are only added"),
        };
        let question = match asks[..] {
            [Asks::Add(name, wish)] => {
                let Addition { name, intent, annotations } = addition(name, wish);
                Question::Add { name, intent, annotations }
            }
            [Asks::Change(id, wish)] => Question::Change { id: IntentId(id), intent: wanted(wish) },
            [Asks::Withdraw(id)] => Question::Withdraw { id: IntentId(id) },
            _ => Question::AddAll { intents: asks.iter().map(add).collect() },
        };
        self.last_question += 1;
        // Far from the tickets of the service's own calls.
        let ticket = 1 << 40 | self.last_question;
        self.open.insert(ticket, asks);
        let query = Query {
            ticket,
            caller: Caller { number: 3, name: "app", grant: ALL },
            service: "paths",
            form: Form::Query,
            deadline_ms: 10_000,
            credit_bytes: 60 << 10,
            payload: &question.to_bytes(),
        };
        self.service.on_query(&query, &mut self.out);
        self.hear();
    }

    fn ask_something(&mut self) {
        let (name, wish) = (self.below(4), self.below(5) as Wish + 1);
        let known = self.truth.keys().next_back().copied().unwrap_or_default() + 2;
        // Mostly one of the last ones.
        let id = known.saturating_sub(self.below(6)).max(1);
        let asks = match self.below(8) {
            0..3 => vec![Asks::Add(name, wish)],
            3 => (0..2 + self.below(3)).map(|more| Asks::Add((name + more) % 4, wish)).collect(),
            4..6 => vec![Asks::Change(id, wish)],
            _ => vec![Asks::Withdraw(id)],
        };
        self.ask(asks);
    }

    fn on_answer(&mut self, ticket: u64, status: u16, payload: &[u8]) {
        let asks = self.open.remove(&ticket).unwrap_or_else(|| panic!("{}: an answer too many", self.when));
        if asks.len() > 1 && status == status::DONE {
            let added: Added = serde_json::from_slice(payload).expect("an answer");
            assert_eq!(added.intents.len(), asks.len());
            for (asks, result) in asks.iter().zip(added.intents) {
                match result {
                    AddResult::Taken { id } if self.told.contains(&id.0) => {}
                    AddResult::Taken { id } => self.on_outcome(*asks, status::DONE, Some(id.0)),
                    AddResult::Refused { status, reason } => {
                        self.on_outcome(*asks, status, id_in(&reason));
                    }
                }
            }
            return;
        }
        let id = match status {
            status::DONE => Some(Record::from_bytes(payload).expect("a record")).map(|it| match it.object {
                Object::Intent(intent) => intent.id.0,
                other => panic!("no intent: {other:?}"),
            }),
            _ => id_in(&String::from_utf8_lossy(payload)),
        };
        asks.iter().for_each(|asks| self.on_outcome(*asks, status, id));
    }

    /// What an answer says about an intent.
    fn on_outcome(&mut self, asks: Asks, status: u16, id: Option<u64>) {
        let id = match asks {
            Asks::Change(id, _) | Asks::Withdraw(id) => Some(id),
            Asks::Add(..) => id,
        };
        let next = match asks {
            Asks::Add(_, wish) | Asks::Change(_, wish) => Some(wish),
            Asks::Withdraw(_) => None,
        };
        let when = format!("{}: {asks:?} of {id:?}, status {status}", self.when);
        let Some(id) = id else { return };
        if [status::DONE, status::MAYBE_STORED].contains(&status) {
            self.told.insert(id);
        }
        let has_several = self.open.values().any(|asks| asks.len() > 1);
        let truth = self.truth.entry(id).or_insert_with(|| vec![None]);
        match (asks, status) {
            (Asks::Add(..), status::DONE) => {
                assert!(truth.iter().all(Option::is_none) || truth.contains(&next), "{when}: {truth:?}");
                *truth = vec![next];
            }
            (_, status::DONE) => {
                assert!(has_several || truth.iter().any(Option::is_some), "{when}: {truth:?}");
                *truth = vec![next];
            }
            (_, status::MAYBE_STORED) => truth.push(next),
            (Asks::Change(..) | Asks::Withdraw(_), status::NOT_FOUND | status::CONFLICT) => {
                assert!(truth.contains(&None), "{when}: {truth:?}");
                *truth = vec![None];
            }
            (_, status::NOT_STORED | status::NOT_READY | status::CONFLICT) => {}
            _ => panic!("{when}"),
        }
    }

    /// Makes a question of the service at the store true.
    fn execute(&mut self, bytes: &[u8]) -> (u16, Vec<u8>) {
        let Ask { op, key, value } = Ask::from_bytes(bytes).expect("a question");
        match op {
            Op::Get => match self.store.get(key) {
                Some(value) => (store_status::DONE, value.clone()),
                None => (store_status::NOT_FOUND, Vec::new()),
            },
            Op::List => {
                let mut keys = Vec::new();
                self.store.keys().filter(|it| it.starts_with(key)).for_each(|it| push_key(&mut keys, it));
                (store_status::DONE, keys)
            }
            Op::Put => {
                self.store.insert(key.to_owned(), value.to_vec());
                (store_status::DONE, Vec::new())
            }
            Op::Delete => panic!("all is deleted by changes"),
            Op::ChangeAll => {
                for change in changes(value).map(|change| change.expect("a change")) {
                    match change.value {
                        Some(value) => drop(self.store.insert(change.key.to_owned(), value.to_vec())),
                        None => drop(self.store.remove(change.key)),
                    }
                }
                (store_status::DONE, Vec::new())
            }
        }
    }

    fn reply(&mut self, ticket: u64, status: u16, payload: &[u8]) {
        let reply = QueryReply { ticket, status, more: false, payload };
        self.service.on_query_reply(&reply, &mut self.out);
        self.hear();
    }

    fn answer_well(&mut self, ticket: u64, bytes: &[u8]) {
        let (status, payload) = self.execute(bytes);
        self.reply(ticket, status, &payload);
    }

    /// The store answers its oldest question, in one way or another.
    fn store_acts(&mut self) {
        if self.below(12) == 0 {
            // It ends. What it had read before is on disk.
            let mut read = self.below(self.at_store.len() as u64 + 1);
            for (ticket, bytes) in std::mem::take(&mut self.at_store) {
                if read > 0 {
                    self.execute(&bytes);
                    read -= 1;
                }
                self.reply(ticket, query_status::SERVICE_GONE, b"");
            }
            return;
        }
        let Some((ticket, bytes)) = self.at_store.pop_front() else { return };
        let is_read = bytes[0] == Op::Get as u8;
        match self.below(10) {
            0 if is_read => self.reply(ticket, store_status::FAILED, b"no disk"),
            0 => self.reply(ticket, store_status::APP_FULL, b"store_bytes: full"),
            1 => self.reply(ticket, query_status::SERVICE_BUSY, b""),
            2 => {
                if self.below(2) == 0 {
                    self.execute(&bytes);
                }
                let status = [store_status::MAYBE_DONE, query_status::NO_ANSWER_IN_TIME];
                let status = status[self.below(2) as usize];
                self.reply(ticket, status, b"");
            }
            _ => self.answer_well(ticket, &bytes),
        }
    }

    /// The service has heard all events that wait, or time has passed.
    fn pass(&mut self, ms: u64) {
        self.service.clock.began_ms += ms;
        self.service.on_wake(&mut self.out);
        self.hear();
        while let Some((ticket, bytes)) = self.at_flows.pop_front() {
            // No switch is known, so there are only removals of rules, and no rule is there.
            let count = read_batch(&bytes).expect("a batch").len() as u32;
            let gone =
                |number| Refusal { number, status: flows_contract::status::NOT_FOUND, reason: String::new() };
            let gone: Vec<_> = (0..count).map(gone).collect();
            self.reply(ticket, flows_contract::status::SOME_REFUSED, &write_refusals(&gone));
        }
    }

    /// The store and all others answer well until nothing is open.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            while let Some((ticket, bytes)) = self.at_store.pop_front() {
                self.answer_well(ticket, &bytes);
            }
            self.pass(300);
            let is_quiet = self.at_store.is_empty() && self.open.is_empty() && self.service.moved.is_empty();
            if is_quiet && self.service.storage.has_room(storage::WRITES_MAX) {
                return;
            }
        }
        panic!("{}: it does not settle: {:?}", self.when, self.open);
    }

    fn stored(&self) -> BTreeMap<u64, Kept> {
        let intents = self.store.iter().filter(|(key, _)| key.starts_with(PREFIX));
        let kept = intents.map(|(_, value)| serde_json::from_slice::<Kept>(value).expect("an intent"));
        kept.map(|kept| (kept.id.0, kept)).collect()
    }

    fn in_memory(&self) -> BTreeMap<u64, Kept> {
        let entries = self.service.engine.entries_after(None);
        let wanted = entries.filter(|entry| entry.state != IntentState::Withdrawing);
        wanted.map(|entry| (entry.kept.id.0, entry.kept.clone())).collect()
    }

    fn check(&self) {
        let (stored, memory) = (self.stored(), self.in_memory());
        assert_eq!(stored, memory, "{}", self.when);
        for (id, truth) in &self.truth {
            let now = memory.get(id).map(|kept| kept.wanted.priority);
            assert!(truth.contains(&now), "{}: the intent {id} is {now:?} and not {truth:?}", self.when);
        }
        assert!(memory.keys().all(|id| self.truth.contains_key(id)), "{}: {memory:?}", self.when);
        let names: BTreeSet<&str> = memory.values().map(|kept| kept.name.as_str()).collect();
        assert_eq!(names.len(), memory.len(), "{}: a name is there twice", self.when);
    }

    /// The service ends and starts again. Questions of callers are over; those at the store are carried out.
    fn restart(&mut self) {
        for (_, bytes) in std::mem::take(&mut self.at_store) {
            self.execute(&bytes);
        }
        self.at_flows.clear();
        for asks in std::mem::take(&mut self.open).into_values().flatten() {
            match asks {
                Asks::Change(id, wish) => self.truth.entry(id).or_insert(vec![None]).push(Some(wish)),
                Asks::Withdraw(id) => self.truth.entry(id).or_insert(vec![None]).push(None),
                Asks::Add(_, wish) => {
                    // The caller did not get its number.
                    for (id, kept) in self.stored() {
                        if kept.wanted.priority == wish {
                            self.truth.entry(id).or_insert(vec![None]).push(Some(wish));
                        }
                    }
                }
            }
        }
        self.service = service();
        self.start();
        self.pass(1);
    }
}

/// The number of the intent that a refusal names.
fn id_in(sentence: &str) -> Option<u64> {
    let behind = sentence.split("the intent ").nth(1)?;
    behind.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn what_was_answered_is_what_is_wanted_whatever_the_store_does() {
    let (mut in_doubt, mut refused) = (0, 0);
    for seed in 1..=300 {
        let mut bed = Bed::new(seed);
        for round in 0..120 {
            bed.when = format!("seed {seed}, round {round}");
            match bed.below(100) {
                0..40 => bed.ask_something(),
                40..70 => bed.store_acts(),
                70..96 => {
                    let ms = [0, 1, 250, 1_100][bed.below(4) as usize];
                    bed.pass(ms);
                }
                96 => bed.restart(),
                _ => {
                    bed.settle();
                    bed.check();
                }
            }
            in_doubt += usize::from(bed.truth.values().any(|truth| truth.len() > 1));
            refused += usize::from(bed.service.pending.behind() > 0);
        }
        bed.settle();
        bed.check();
        let before = bed.in_memory();
        bed.when = format!("seed {seed}, after a restart");
        bed.restart();
        bed.check();
        assert_eq!(bed.in_memory(), before, "{}", bed.when);
    }
    assert!(in_doubt > 100 && refused > 100, "the trial is too tame: {in_doubt}, {refused}");
}

#[test]
fn a_change_behind_a_withdrawal_does_not_put_the_intent_back() {
    let mut bed = Bed::new(1);
    bed.ask(vec![Asks::Add(1, 7)]);
    bed.settle();
    bed.ask(vec![Asks::Withdraw(1)]);
    bed.ask(vec![Asks::Change(1, 8)]);
    bed.settle();
    bed.check();
    assert!(bed.stored().is_empty());
    bed.restart();
    assert!(bed.in_memory().is_empty());
}

#[test]
fn an_intent_that_the_store_has_although_it_ended_before_its_answer_is_answered_as_stored() {
    let mut bed = Bed::new(1);
    bed.ask(vec![Asks::Add(1, 7)]);
    bed.ask(vec![Asks::Add(2, 7)]);
    bed.pass(0);
    let (next, group) = (bed.at_store.pop_front().expect("the numbers"), bed.at_store.pop_front());
    bed.answer_well(next.0, &next.1);
    let (ticket, bytes) = group.expect("both");
    bed.execute(&bytes);
    bed.reply(ticket, query_status::SERVICE_GONE, b"");
    assert_eq!(bed.open.len(), 2, "it is read back first");
    bed.settle();
    bed.check();
    assert_eq!(bed.in_memory().len(), 2);
    assert_eq!(bed.truth, BTreeMap::from([(1, vec![Some(7)]), (2, vec![Some(7)])]));
}

#[test]
fn while_the_store_says_nothing_callers_are_told_that_nobody_knows() {
    let mut bed = Bed::new(1);
    bed.ask(vec![Asks::Add(1, 7)]);
    bed.settle();
    bed.ask(vec![Asks::Change(1, 8)]);
    bed.pass(0);
    let (ticket, bytes) = bed.at_store.pop_front().expect("the change");
    bed.execute(&bytes);
    bed.reply(ticket, query_status::SERVICE_GONE, b"");
    for _ in 0..4 {
        bed.pass(1_100);
        if let Some((ticket, _)) = bed.at_store.pop_front() {
            bed.reply(ticket, query_status::NO_SUCH_SERVICE, b"");
        }
    }
    assert_eq!(bed.truth[&1], [Some(7), Some(8)], "the answer was that it may be stored");
    bed.ask(vec![Asks::Withdraw(1)]);
    assert!(bed.open.is_empty(), "the next question is refused until it is known");
    bed.settle();
    bed.check();
    assert_eq!(bed.in_memory()[&1].wanted.priority, 8);
    bed.ask(vec![Asks::Withdraw(1)]);
    bed.settle();
    bed.check();
    assert!(bed.stored().is_empty());
}
