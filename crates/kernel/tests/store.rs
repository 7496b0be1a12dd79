//! Asks the kernel what becomes of commands for the store: whose they are, which keys they reach, and who answers.

#![allow(clippy::unwrap_used, reason = "a test may")]

use abi::command::{self, Command, QueryAnswer, What};
use abi::store::{Ask, KEY_BYTES_MAX, Op, Used, VALUE_BYTES_MAX, status};
use abi::{Frame, ZoneId};
use flow::DatapathId;
use kernel::{Capability, Decision, Effect, Grant, Kernel, Names, Quota, QuotaKind, Quotas};

const APP: ZoneId = ZoneId(1);
const OTHER: ZoneId = ZoneId(2);
const SERVICE: ZoneId = ZoneId(3);

struct Node {
    kernel: Kernel,
    effects: Vec<Effect>,
}

impl Node {
    /// A store, an app that may read `shared/` and write `app/`, and another that may do nothing.
    fn new() -> Node {
        let mut kernel = Kernel::new(7);
        kernel.expect_store();
        let names = |name: &str| Names::new(vec![name.to_owned()]);
        let grant = Grant::nothing()
            .with_names(Capability::StoreRead, names("shared/"))
            .with_names(Capability::StoreWrite, names("app/"));
        assert!(kernel.attach(APP, "app", grant, 0));
        assert!(kernel.attach(OTHER, "other", Grant::nothing(), 0));
        let mut node = Node { kernel, effects: Vec::new() };
        node.attach_service();
        node
    }

    fn attach_service(&mut self) {
        assert!(self.kernel.attach(SERVICE, "store", Grant::nothing().with(Capability::SystemStore), 0));
    }

    /// What becomes of a command, in words.
    fn command(&mut self, zone: ZoneId, ticket: u64, what: What<'_>) -> String {
        let mut bytes = Vec::new();
        let command = Command { datapath: DatapathId(0), ticket, wants_receipt: true, what };
        assert!(command::write::command(&mut bytes, &command));
        self.effects.clear();
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), 0, &mut self.effects) {
            Decision::AskStore { to, ticket, hard_bytes, .. } => {
                format!("ask {to} as {ticket}, {hard_bytes} bytes")
            }
            Decision::Answer { to, ticket, .. } => format!("answer {to}'s {ticket}"),
            Decision::Refuse(refusal) => format!("refuse: {refusal}"),
            other => format!("{other:?}"),
        }
    }

    fn ask(&mut self, zone: ZoneId, op: Op, key: &str) -> String {
        self.command(zone, 7, What::Store(Ask { op, key, value: &[] }))
    }

    fn answer(&mut self, zone: ZoneId, ticket: u64, status: u16) -> String {
        self.command(zone, ticket, What::QueryAnswer(QueryAnswer { status, more: false, payload: &[] }))
    }
}

#[test]
fn what_is_beyond_a_bound_is_malformed() {
    let mut node = Node::new();
    let refused = |said: &str, words: &str| assert!(said.contains(words), "{said}");
    let long = format!("app/{}", "k".repeat(KEY_BYTES_MAX));
    refused(&node.ask(APP, Op::Put, &long), "a key of the store is longer than 256 bytes");
    refused(&node.ask(APP, Op::Put, ""), "a key of the store is empty");
    let value = vec![0; VALUE_BYTES_MAX + 1];
    let put = What::Store(Ask { op: Op::Put, key: "app/k", value: &value });
    refused(&node.command(APP, 7, put), "a value for the store is longer than 32 KiB");
}

#[test]
fn who_holds_nothing_of_the_store_is_told_which_capability_is_missing() {
    let mut node = Node::new();
    let needs = |capability: &str| format!("refuse: the app does not hold the capability {capability}");
    for (op, capability) in [
        (Op::Get, "store.read"),
        (Op::List, "store.read"),
        (Op::Put, "store.write"),
        (Op::Delete, "store.write"),
    ] {
        assert_eq!(node.ask(OTHER, op, "app/k"), needs(capability));
    }
    let used = What::StoreUsed(Used { app: "app", bytes: 0, revision: 1 });
    assert_eq!(node.command(APP, 7, used), needs("system.store"));
}

#[test]
fn a_key_beyond_the_prefix_is_refused_and_one_within_is_asked_for() {
    let mut node = Node::new();
    let mut check = |op, key: &str, expected: &str| {
        let said = node.ask(APP, op, key);
        assert!(said.starts_with(expected), "{op:?} {key}: {said}");
    };
    let (no_read, no_write) = ("refuse: store.read: it is not", "refuse: store.write: it is not");
    for op in [Op::Get, Op::List] {
        check(op, "app/k", no_read);
        check(op, "shared", no_read);
        check(op, "shared/k", "ask ");
    }
    check(Op::List, "", no_read);
    for op in [Op::Put, Op::Delete] {
        check(op, "shared/k", no_write);
        check(op, "app", no_write);
        check(op, "app/k", "ask ");
    }
}

#[test]
fn an_app_hears_how_much_it_may_have_from_its_quota_or_the_default() {
    let mut node = Node::new();
    assert_eq!(node.ask(APP, Op::Put, "app/k"), "ask 3 as 1, 1048576 bytes");
    let quotas = Quotas { store_bytes: Some(Quota { soft: 5, hard: 9 }), ..Quotas::default() };
    let grant = Grant::nothing().with(Capability::StoreWrite).with_quotas(quotas);
    assert!(node.kernel.attach(OTHER, "other", grant, 0));
    assert_eq!(node.ask(OTHER, Op::Put, "anything"), "ask 3 as 2, 9 bytes");
}

#[test]
fn without_a_store_one_is_told_what_to_configure_and_without_its_service_that_it_is_away() {
    let mut node = Node::new();
    node.ask(APP, Op::Put, "app/k");
    let over = node.kernel.detach(SERVICE);
    assert_eq!(
        over[0].caller.map(|end| (end.zone, end.ticket)),
        Some((APP, 7)),
        "what is open gets its answer"
    );
    assert_eq!(node.ask(APP, Op::Put, "app/k"), "NoSuchService { ticket: 7, service: \"store\" }");
    node.attach_service();
    assert!(node.ask(APP, Op::Put, "app/k").starts_with("ask "));
    let mut kernel = Kernel::new(7);
    kernel.attach(APP, "app", Grant::nothing().with(Capability::StoreRead), 0);
    let mut node = Node { kernel, effects: Vec::new() };
    let said = node.ask(APP, Op::Get, "app/k");
    assert!(said.contains("this node keeps no store: name a state folder (--state DIR"), "{said}");
}

#[test]
fn the_answer_goes_to_who_asked_and_only_the_service_gives_it() {
    let mut node = Node::new();
    node.ask(APP, Op::Put, "app/k");
    assert_eq!(node.answer(OTHER, 1, status::DONE), "refuse: there is no open query of that ticket");
    assert_eq!(node.answer(SERVICE, 1, status::DONE), "answer 1's 7");
    assert_eq!(node.answer(SERVICE, 1, status::DONE), "refuse: the query was answered already");
}

#[test]
fn a_put_that_the_service_refuses_for_its_length_counts_as_refused() {
    let mut node = Node::new();
    node.ask(APP, Op::Put, "app/k");
    node.answer(SERVICE, 1, status::APP_FULL);
    let refused = Effect::RefusedByQuota { zone: APP, kind: QuotaKind::StoreBytes, hard: 1 << 20 };
    assert_eq!(node.effects, [refused]);
    assert_eq!(node.kernel.zone(APP).unwrap().counters.refusals, 1);
    node.ask(APP, Op::Put, "app/k");
    node.answer(SERVICE, 1 << 20 | 1, status::NOT_FOUND);
    assert_eq!((node.effects.len(), node.kernel.zone(APP).unwrap().counters.refusals), (0, 1));
}
