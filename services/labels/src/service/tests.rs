//! Tests of the shell: events in, commands out.

use super::*;
use abi::event::{Caller, write};
use burnet_sdk::flow::MacAddr;
use burnet_sdk::testing::Trial;
use view::{LinkKind, Port, Switch, SwitchState};

const BLUE: &[u8] = br#"{"capabilities":{"labels.own":["blue"]}}"#;
const RED: &[u8] = br#"{"capabilities":{"labels.own":["red"]}}"#;
const OPERATOR: &[u8] = br#"{"capabilities":{"labels.read":true,"labels.write":true}}"#;

const SETTINGS: &str = r#"{"slices":{
    "blue":{"vnics":{"E":{"rate_bps":10000000},"F":{"rate_bps":10000000}}},
    "red":{"vnics":{"A":{"rate_bps":8000000},"B":{"rate_bps":8000000}}}}}"#;

fn started() -> Trial<Labels> {
    let mut trial = Trial::<Labels>::start(SETTINGS).unwrap();
    // A link is in the view if both switches and ports are.
    let switches = [1, 2].map(|id| {
        let (annotations, description) = Default::default();
        let (state, openflow) = (SwitchState::Up, "1.3".to_owned());
        let id = DatapathId(id);
        Switch { id, state, openflow, n_tables: 1, n_buffers: 0, description, since_ms: 0, annotations }
            .into()
    });
    let ports = ["1/1", "2/1"].map(|id| {
        let (mac, name, annotations) = (MacAddr([2, 0, 0, 0, 0, 1]), String::new(), Default::default());
        let id = id.parse().unwrap();
        Port { id, name, mac, live: true, enabled: true, speed_kbps: 0, annotations }.into()
    });
    trial.view_put(switches.into_iter().chain(ports).chain([Object::Link(link(10_000))]));
    trial
}

fn link(capacity_kbps: u64) -> Link {
    Link {
        id: "1/1-2/1".parse().unwrap(),
        found: LinkKind::Direct,
        state: LinkState::Up,
        capacity_kbps,
        latency_us: None,
        since_ms: 0,
        annotations: Default::default(),
    }
}

/// What the service commands, with bytes as text.
fn call(trial: &mut Trial<Labels>, form: Form, grant: &[u8], payload: &str) -> String {
    let caller = Caller { number: 3, name: "slice", grant };
    let ticket = if form == Form::Stream { 10 } else { 9 };
    let (service, payload) = (labels_contract::SERVICE, payload.as_bytes());
    let query = Query { ticket, caller, service, form, deadline_ms: 1_000, credit_bytes: 60 << 10, payload };
    trial.event(|out, sequence| write::query(out, sequence, &query)).concat()
}

fn ask(trial: &mut Trial<Labels>, grant: &[u8], payload: &str) -> String {
    call(trial, Form::Query, grant, payload)
}

/// Whether bytes of this text are in what was commanded.
fn has(said: &str, text: &str) -> bool {
    said.contains(format!("{:?}", text.as_bytes()).trim_matches(['[', ']']))
}

fn report(slice: &str, number: u64, entries: &str) -> String {
    let reset = number == 1;
    format!(
        r#"{{"op":"report","slice":"{slice}","session":1,"number":{number},"reset":{reset},"entries":[{entries}]}}"#
    )
}

const SHOWS: &str = r#"{"is":"link","link":"1/1-2/1"}"#;
const RED_PATH: &str = r#"{"is":"path","from":"A","to":"B","links":["1/1-2/1"],"rules":2}"#;

#[test]
fn wrong_settings_are_refused_with_the_key() {
    let refusal = |text: &str| Trial::<Labels>::start(text).err().unwrap();
    let why = refusal(r#"{"slices":{"blue":{"vnics":{"E":{"rate_bps":0}}}}}"#);
    assert!(why.contains("slices.blue.vnics.E.rate_bps: 0 is not possible"), "{why}");
    assert!(refusal(r#"{"slice":{}}"#).contains("slice"));
}

#[test]
fn a_caller_without_a_grant_is_refused() {
    let mut trial = started();
    let mut check = |form, grant: &[u8], payload: &str, expected: u16, part: &str| {
        let said = call(&mut trial, form, grant, payload);
        assert!(said.contains(&format!("status: {expected}")) && has(&said, part), "{payload}: {said}");
    };
    let foreign = "labels.own: slice red is not the app's own";
    check(Form::Query, BLUE, &report("red", 1, ""), status::NOT_GRANTED, foreign);
    check(Form::Query, BLUE, r#"{"op":"flows","slice":"red"}"#, status::NOT_GRANTED, foreign);
    check(Form::Stream, BLUE, r#"{"slice":"red"}"#, status::NOT_GRANTED, foreign);
    check(Form::Stream, OPERATOR, r#"{"slice":"green"}"#, status::NOT_FOUND, "there is no slice green");
    check(Form::Query, BLUE, "{", status::BAD_QUESTION, "the question is wrong");
}

#[test]
fn a_slice_is_told_what_others_leave_and_that_it_is_stale_until_they_have_reported() {
    let mut trial = started();
    let said = ask(&mut trial, BLUE, &report("blue", 1, SHOWS));
    assert!(has(&said, r#"{"next":2}"#), "{said}");
    let said = call(&mut trial, Form::Stream, BLUE, r#"{"slice":"blue"}"#);
    assert!(has(&said, r#""capacity_kbps":10000,"label_kbps":10000}"#), "{said}");
    assert!(has(&said, r#"{"stale":true,"rebuild":false}"#), "red has not reported: {said}");
    let said = ask(&mut trial, RED, &report("red", 1, RED_PATH));
    assert!(has(&said, r#"{"stale":false,"rebuild":false}"#), "{said}");
    let label = r#""capacity_kbps":10000,"label_kbps":2000}"#;
    assert!(!has(&said, label), "a port has one notice in 100 ms: {said}");
    let until = Instant::now() + Duration::from_secs(20);
    let mut said = String::new();
    while !has(&said, label) {
        assert!(Instant::now() < until, "{said}");
        std::thread::sleep(Duration::from_millis(5));
        said = trial.wake().unwrap_or_default().concat();
    }
    let said = ask(&mut trial, OPERATOR, r#"{"op":"flows","slice":"red"}"#);
    assert!(has(&said, r#""counts":true,"rate_bps":8000000}"#), "{said}");
}

#[test]
fn labels_of_a_link_are_stale_if_those_of_the_outer_node_are() {
    let mut trial = started();
    ask(&mut trial, BLUE, &report("blue", 1, SHOWS));
    ask(&mut trial, RED, &report("red", 1, ""));
    let said = call(&mut trial, Form::Stream, BLUE, r#"{"slice":"blue"}"#);
    let (stale, fresh) = (r#"{"stale":true,"rebuild":false}"#, r#"{"stale":false,"rebuild":false}"#);
    assert!(has(&said, fresh), "{said}");
    let (name, value) = Link::CAPACITY_NOTE;
    let annotations = [(name.to_owned(), value.to_owned())].into();
    let said = trial.view_put([Object::Link(Link { annotations, ..link(10_000) })]).concat();
    assert!(has(&said, stale), "{said}");
    // Red shows no such link.
    let said = call(&mut trial, Form::Stream, RED, r#"{"slice":"red"}"#);
    assert!(has(&said, fresh), "{said}");
    let said = trial.view_put([Object::Link(link(10_000))]).concat();
    assert!(has(&said, fresh), "{said}");
}

#[test]
fn what_slices_got_is_told_for_the_time_that_the_service_has_looked() {
    let mut trial = started();
    ask(&mut trial, RED, &report("red", 1, RED_PATH));
    let past = |slice: &str| format!(r#"{{"op":"past","slice":"{slice}","since_s":60}}"#);
    assert!(ask(&mut trial, OPERATOR, &past("green")).contains(&format!("status: {}", status::NOT_FOUND)));
    assert!(has(&ask(&mut trial, OPERATOR, &past("red")), r#"{"covers_s":0,"vnics":[]}"#));
    let until = Instant::now() + Duration::from_secs(60);
    let mut said = String::new();
    while !has(&said, r#""vnic":"A","sends_bps":8000000,"receives_bps":0,"reasons":[]"#) {
        assert!(Instant::now() < until, "{said}");
        std::thread::sleep(Duration::from_millis(20));
        trial.wake();
        said = ask(&mut trial, OPERATOR, &past("red"));
    }
}

#[test]
fn a_slice_whose_earlier_reports_are_not_known_begins_again() {
    let mut trial = started();
    let said = ask(&mut trial, BLUE, &report("blue", 7, SHOWS));
    assert!(has(&said, r#""rebuild":true"#), "{said}");
}

#[test]
fn slices_come_and_go_by_the_operators_word() {
    let mut trial = started();
    let put = r#"{"op":"put","slice":"green","hose":{"vnics":{"G":{"rate_bps":1}},"step_percent":10}}"#;
    assert!(ask(&mut trial, BLUE, put).contains(&format!("status: {}", status::NOT_GRANTED)));
    assert!(ask(&mut trial, OPERATOR, put).contains("status: 0"));
    assert!(has(&ask(&mut trial, OPERATOR, r#"{"op":"slices"}"#), r#"{"slice":"green","complete":false"#));
    let remove = r#"{"op":"remove","slice":"green"}"#;
    assert!(ask(&mut trial, OPERATOR, remove).contains("status: 0"));
    assert!(ask(&mut trial, OPERATOR, remove).contains(&format!("status: {}", status::NOT_FOUND)));
    assert!(has(&ask(&mut trial, OPERATOR, r#"{"op":"counts"}"#), r#"{"slices":2,"flows":0"#));
}

#[test]
fn a_link_that_is_down_has_no_label() {
    let mut trial = started();
    ask(&mut trial, BLUE, &report("blue", 1, SHOWS));
    let labels = r#"{"op":"labels","slice":"blue"}"#;
    assert!(has(&ask(&mut trial, BLUE, labels), r#""label_kbps":10000"#));
    trial.view_put([Object::Link(Link { state: LinkState::Down, ..link(10_000) })]);
    assert!(!has(&ask(&mut trial, BLUE, labels), "label_kbps"));
    trial.view_put([Object::Link(link(20_000))]);
    assert!(has(&ask(&mut trial, BLUE, labels), r#""label_kbps":20000"#));
}

#[test]
fn each_entry_is_that_of_its_label_whatever_the_one_before_was() {
    let label = |link: &str, label_kbps| Label { link: link.parse().unwrap(), capacity_kbps: 10, label_kbps };
    let mut told = Told::default();
    for (link, kbps) in [("1/1-2/1", 4), ("1/1-2/1", 4), ("1/1-2/1", 3), ("2/1-1/1", 3), ("1/1-2/1", 4)] {
        let label = label(link, kbps);
        let (key, value) = told.entry(label);
        assert_eq!(key, label.link.to_string().as_bytes());
        assert_eq!(serde_json::from_slice::<Label>(value).unwrap(), label);
    }
}

/// The service in a node with intents, which has just begun.
fn with_intents() -> (Labels, Commands) {
    let settings = SETTINGS.replacen('{', r#"{"intents":true,"#, 1);
    let mut labels = Labels::new(&Settings::from_json(settings.as_bytes()).unwrap()).unwrap();
    let mut out = Commands::new();
    labels.on_start(&mut out);
    let Labels { engine, effects, .. } = &mut labels;
    engine.on_link("1/1-2/1".parse().unwrap(), Some(Bandwidth::from_kbps(10_000)), 0, effects);
    for (slice, entries) in [("blue", SHOWS), ("red", SHOWS)] {
        let Ok(Question::Report(report)) = Question::from_bytes(report(slice, 1, entries).as_bytes()) else {
            panic!("it is a report")
        };
        engine.on_report(&report, 0, effects).unwrap();
    }
    (labels, out)
}

fn hear(labels: &mut Labels, update: &Update<'_>, out: &mut Commands) {
    let ticket = labels.reservations.as_ref().unwrap().ticket().expect("the stream is open");
    labels.on_stream(ticket, update, out);
}

/// The label of blue in kbit/s, and whether it is stale.
fn blue(labels: &Labels) -> (u64, bool) {
    let all = labels.engine.labels("blue").unwrap();
    (all[0].label_kbps, labels.engine.state("blue").unwrap().stale)
}

#[test]
fn what_intents_reserve_is_in_no_label_also_while_their_service_is_away() {
    let (mut labels, mut out) = with_intents();
    assert_eq!(blue(&labels), (10_000, true), "what intents reserve is not known");
    hear(&mut labels, &Update::Begin { number: 1 }, &mut out);
    hear(&mut labels, &Update::Entry { key: b"1/1-2/1", value: br#"{"kbps":8000}"# }, &mut out);
    hear(&mut labels, &Update::Entry { key: b"state", value: br#"{"complete":true}"# }, &mut out);
    hear(&mut labels, &Update::Complete { number: 1 }, &mut out);
    assert_eq!(blue(&labels), (2_000, false));
    hear(&mut labels, &Update::Ended { status: 9, reason: b"" }, &mut out);
    assert_eq!(blue(&labels), (2_000, false), "its rules forward");
    let until = Instant::now() + Duration::from_secs(60);
    while labels.reservations.as_ref().unwrap().ticket().is_none() {
        assert!(Instant::now() < until, "the stream is opened again");
        std::thread::sleep(Duration::from_millis(20));
        labels.on_wake(&mut out);
    }
    hear(&mut labels, &Update::Begin { number: 1 }, &mut out);
    hear(&mut labels, &Update::Complete { number: 1 }, &mut out);
    assert_eq!(blue(&labels), (2_000, false), "it has not compiled its intents");
    hear(&mut labels, &Update::Put { number: 2, key: b"state", value: br#"{"complete":true}"# }, &mut out);
    assert_eq!(blue(&labels), (10_000, false));
}

#[test]
fn a_stream_of_reservations_that_the_kernel_refuses_is_opened_again() {
    let (mut labels, mut out) = with_intents();
    let ticket = labels.reservations.as_ref().unwrap().ticket().expect("the stream is open").0;
    let receipt = Receipt {
        ticket,
        outcome: Outcome::Refused,
        error: burnet_sdk::flow::ErrorCode { kind: 0, code: 0 },
        reason: "too many streams",
    };
    labels.on_receipt(DatapathId(0), &receipt, &mut out);
    assert!(labels.reservations.as_ref().unwrap().next_ms().is_some());
}

#[test]
fn a_slice_with_a_step_is_told_whole_steps() {
    let mut trial = started();
    let put = r#"{"op":"put","slice":"green","hose":{"vnics":{},"step_percent":25}}"#;
    assert!(ask(&mut trial, OPERATOR, put).contains("status: 0"));
    let green: &[u8] = br#"{"capabilities":{"labels.own":["green"]}}"#;
    ask(&mut trial, green, &report("green", 1, SHOWS));
    ask(&mut trial, BLUE, &report("blue", 1, SHOWS));
    ask(&mut trial, RED, &report("red", 1, RED_PATH));
    let labels = |slice: &str| format!(r#"{{"op":"labels","slice":"{slice}"}}"#);
    // Red leaves 2 of 10: that is less than a step.
    let said = ask(&mut trial, OPERATOR, &labels("blue"));
    assert!(has(&said, r#""label_kbps":2000}"#), "{said}");
    let said = ask(&mut trial, OPERATOR, &labels("green"));
    assert!(has(&said, r#""label_kbps":0}"#), "{said}");
    let put = put.replace("25", "20");
    assert!(ask(&mut trial, OPERATOR, &put).contains("status: 0"));
    let said = ask(&mut trial, OPERATOR, &labels("green"));
    assert!(has(&said, r#""label_kbps":2000}"#), "{said}");
}
