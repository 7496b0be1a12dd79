//! Sets that are wanted, and a service that answers, restarts or refuses.

use super::*;
use burnet_sdk::DatapathId;
use flows_contract::{Change, Refusal, read_batch, write_refusals};

struct Trial {
    sets: RuleSets,
    out: Commands,
}

/// A rule with this priority.
fn rule(items: &mut Items<'_>, priority: u16) {
    let switch = DatapathId(1);
    let (table_id, stage, idle_timeout_s, hard_timeout_s) = (0, 0, 0, 0);
    let (matching, instructions) = (&[][..], &[][..]);
    items.rule(&Rule {
        switch,
        table_id,
        stage,
        priority,
        idle_timeout_s,
        hard_timeout_s,
        matching,
        instructions,
    });
}

impl Trial {
    fn new() -> Trial {
        let mut trial = Trial { sets: RuleSets::new(1), out: Commands::new() };
        trial.sets.on_tick(0, false, &mut trial.out);
        trial.stream(&Update::Begin { number: 0 });
        trial.stream(&Update::Complete { number: 0 });
        trial.asked();
        trial
    }

    fn stream(&mut self, update: &Update<'_>) {
        let Stream::Open(ticket) = self.sets.stream else { panic!("{:?}", self.sets.stream) };
        assert!(self.sets.on_stream(ticket, update, &mut self.out));
    }

    /// The changes of the queries since the last call, in words.
    fn asked(&mut self) -> Vec<String> {
        let out = std::mem::take(&mut self.out);
        let mut asked = Vec::new();
        let mut frames = out.frames();
        while !frames.is_empty() {
            let (frame, rest) = abi::Frame::split(frames).unwrap();
            frames = rest;
            let command = abi::command::Command::read(&frame).unwrap();
            let abi::command::What::Query(query) = command.what else { continue };
            if flows_contract::is_batch(query.payload) {
                asked.extend(read_batch(query.payload).unwrap().iter().map(|change| match change {
                    Change::Put { name, .. } => format!("put {name}"),
                    Change::Remove { name, .. } => format!("remove {name}"),
                }));
            }
        }
        asked
    }

    fn want(&mut self, name: &str, priority: u16) -> Vec<String> {
        self.sets.want(name, |items| rule(items, priority));
        self.sets.send(&mut self.out);
        self.asked()
    }

    fn answer(&mut self, status: u16, payload: &[u8]) {
        let tickets: Vec<_> = self.sets.under_way.keys().copied().collect();
        for ticket in tickets {
            let reply = QueryReply { ticket: ticket.0, status, more: false, payload };
            assert!(self.sets.on_reply(&reply, &mut self.out));
        }
    }
}

#[test]
fn only_what_differs_is_sent() {
    let mut trial = Trial::new();
    assert_eq!(trial.want("a", 1), ["put a"]);
    assert_eq!(trial.want("a", 1), [""; 0]);
    assert_eq!(trial.want("a", 2), ["put a"]);
    trial.sets.unwant("b");
    trial.sets.unwant("a");
    trial.sets.send(&mut trial.out);
    assert_eq!(trial.asked(), ["remove a"]);
}

#[test]
fn a_service_that_restarts_gets_all_sets_again() {
    let mut trial = Trial::new();
    trial.want("a", 1);
    trial.answer(status::DONE, b"");
    trial.stream(&Update::Ended { status: 1, reason: b"" });
    trial.sets.on_tick(1_000, false, &mut trial.out);
    trial.sets.on_tick(1_000 + RETRY_MS, false, &mut trial.out);
    trial.stream(&Update::Begin { number: 0 });
    assert_eq!(trial.asked(), [""; 0]);
    trial.stream(&Update::Complete { number: 0 });
    assert_eq!(trial.asked(), ["put a"]);
}

#[test]
fn a_query_that_was_not_taken_is_sent_again_and_told_once() {
    let mut trial = Trial::new();
    trial.want("a", 1);
    trial.answer(query_status::NO_SUCH_SERVICE, b"it is away");
    trial.sets.on_tick(1, false, &mut trial.out);
    assert_eq!(trial.asked(), ["put a"]);
    trial.answer(query_status::NO_SUCH_SERVICE, b"it is away");
    let told = trial.sets.take_told();
    assert_eq!(told, [Told::Complaint("the service flows takes no rules now: it is away".to_owned())]);
}

#[test]
fn sets_of_an_earlier_run_are_removed_when_all_is_known() {
    let mut trial = Trial::new();
    trial.want("a", 1);
    let state = SetState { version: 1, wanted: 1, confirmed: 1, phase: Phase::Installed }.to_bytes();
    trial.stream(&Update::Put { number: 1, key: b"old", value: &state });
    trial.sets.on_tick(1, false, &mut trial.out);
    assert_eq!(trial.asked(), [""; 0]);
    trial.sets.on_tick(2, true, &mut trial.out);
    assert_eq!(trial.asked(), ["remove old"]);
}

#[test]
fn refusals_and_failures_are_told_with_the_name_of_the_set() {
    let mut trial = Trial::new();
    trial.want("a", 1);
    let refusals = [Refusal { number: 0, status: status::CONFLICT, reason: "b has it".to_owned() }];
    trial.answer(status::SOME_REFUSED, &write_refusals(&refusals));
    let version = trial.sets.wanted["a"].version;
    let failure = Failure {
        switch: DatapathId(1),
        rule: 0,
        failure: FailureKind::TableFull,
        reason: "full".to_owned(),
    };
    let phase = Phase::Failed(failure.clone());
    let failed = |version| SetState { version, wanted: 1, confirmed: 0, phase: phase.clone() };
    trial.stream(&Update::Put { number: 1, key: b"a", value: &failed(version - 1).to_bytes() });
    trial.stream(&Update::Put { number: 2, key: b"a", value: &failed(version).to_bytes() });
    let told = trial.sets.take_told();
    assert_eq!(told, [Told::Complaint("a: b has it".to_owned()), Told::Failed("a".to_owned(), failure)]);
    trial.asked();
    trial.sets.on_tick(REFUSED_RETRY_MS, false, &mut trial.out);
    assert_eq!(trial.asked(), ["put a"], "what stood in its way may be gone");
}

#[test]
fn what_is_too_long_is_told_and_not_sent() {
    let mut trial = Trial::new();
    trial.sets.want("a", |items| (0..5_000).for_each(|priority| rule(items, priority)));
    trial.sets.send(&mut trial.out);
    assert_eq!(trial.asked(), [""; 0]);
    let told = trial.sets.take_told();
    assert!(
        matches!(&told[..], [Told::Complaint(why)] if why.contains("the rules of a are not installed")),
        "{told:?}"
    );
}
