//! Apps that follow the view of services which fail, restart, and publish more than the app has credit for.

use super::*;
use crate::instance::Instance;
use crate::stream::Table;
use crate::{App, Commands, Interests, Settings};
use abi::command::{Command, What};
use abi::event::{Caller, Credit, Query, QueryReply, write};
use abi::service::Form;
use abi::{Frame, Outcome, Receipt};
use flow::{DatapathId, ErrorCode, MacAddr, PortNo};
use proptest::prelude::*;
use std::collections::VecDeque;
use view::{ConnectPoint, Notice, Object, Port, Stamp, Switch, SwitchState};

/// Keeps what it was told, and compares it with the view each time.
#[derive(Default)]
struct Watching {
    seen: BTreeMap<Key, Record>,
    batches: Vec<usize>,
    ticks: usize,
}

impl App for Watching {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Watching::default())
    }

    fn interests(&self) -> Interests {
        Interests::none().view(&[Kind::Port])
    }

    fn on_view(&mut self, changes: &Batch, view: &Snapshot, _: &mut Commands) {
        for notice in changes.iter() {
            match notice {
                Notice::Visible(now) | Notice::Changed { now, .. } => {
                    drop(self.seen.insert(notice.key(), (**now).clone()));
                }
                Notice::Invisible(_) => drop(self.seen.remove(&notice.key())),
            }
        }
        assert!(self.seen.values().eq(view.records_after(None).map(|record| &**record)));
        self.batches.push(changes.iter().len());
    }

    fn on_tick(&mut self, _: u64, _: &mut Commands) {
        self.ticks += 1;
    }
}

/// An app, the service `discovery`, and what is under way between them.
struct Bed {
    app: Instance<Watching>,
    service: Option<(Table, Commands)>,
    /// Event frames that the app has not read yet.
    under_way: VecDeque<Vec<u8>>,
    /// The ticket of the stream that is open.
    ticket: Option<u64>,
    now_ms: u64,
    logged: Vec<String>,
    questions: Vec<String>,
}

const LOG_BYTES: usize = 8 << 10;

impl Bed {
    fn new() -> Bed {
        let app = Instance::start(&Settings::from_json(b"{}").unwrap()).unwrap();
        let (under_way, logged, questions) = (VecDeque::new(), Vec::new(), Vec::new());
        let mut bed = Bed { app, service: None, under_way, ticket: None, now_ms: 0, logged, questions };
        bed.start_service();
        bed.take_commands();
        bed
    }

    fn start_service(&mut self) {
        self.service = Some((Table::with_log_bytes(LOG_BYTES), Commands::new()));
    }

    fn stop_service(&mut self) {
        self.service = None;
        self.end_stream(event::SERVICE_GONE);
    }

    fn end_stream(&mut self, status: u16) {
        let Some(ticket) = self.ticket.take() else { return };
        let mut frame = Vec::new();
        write::query_reply(&mut frame, 1, &QueryReply { ticket, status, more: false, payload: b"" });
        self.under_way.push_back(frame);
    }

    /// What the app commanded reaches the service.
    fn take_commands(&mut self) {
        let frames = std::mem::take(self.app.frames());
        let mut rest = frames.as_slice();
        while !rest.is_empty() {
            let (frame, behind) = Frame::split(rest).unwrap();
            self.take_command(&Command::read(&frame).unwrap());
            rest = behind;
        }
    }

    fn take_command(&mut self, command: &Command<'_>) {
        match command.what {
            What::Query(ask) => {
                self.questions.push(String::from_utf8_lossy(ask.payload).into_owned());
                self.ticket = Some(command.ticket);
                let Some((table, out)) = &mut self.service else {
                    return self.end_stream(event::NO_SUCH_SERVICE);
                };
                let caller = Caller { number: 3, name: "app", grant: &[] };
                let (ticket, credit_bytes) = (command.ticket, 64 << 10);
                let (form, deadline_ms, payload) = (Form::Stream, 1, &b""[..]);
                let service = "discovery";
                let query = Query { ticket, caller, service, form, deadline_ms, credit_bytes, payload };
                out.calls.on_query(&query);
                table.follow(&query, out);
                self.take_answers();
            }
            What::QueryCredit(bytes) => {
                if let Some((_, out)) = &mut self.service {
                    out.calls.on_credit(&mut out.frames, Credit { ticket: command.ticket, bytes });
                    self.send();
                }
            }
            What::Log(log) => self.logged.push(log.text.to_owned()),
            _ => {}
        }
    }

    fn send(&mut self) {
        if let Some((table, out)) = &mut self.service {
            table.send(out);
        }
        self.take_answers();
    }

    fn take_answers(&mut self) {
        let Some((_, out)) = &mut self.service else { return };
        let frames = std::mem::take(&mut out.frames);
        let mut rest = frames.as_slice();
        while !rest.is_empty() {
            let (frame, behind) = Frame::split(rest).unwrap();
            let command = Command::read(&frame).unwrap();
            let What::QueryAnswer(it) = command.what else { panic!("{command:?}") };
            let reply = QueryReply { ticket: command.ticket, status: 0, more: it.more, payload: it.payload };
            let mut event = Vec::new();
            assert!(write::query_reply(&mut event, 1, &reply));
            self.under_way.push_back(event);
            rest = behind;
        }
    }

    fn put(&mut self, object: Object, sequence: u64) {
        let (key, stamp) = (object.key().to_string(), Stamp { term: 0, sequence, origin: 0 });
        let Some((table, _)) = &mut self.service else { return };
        assert!(table.put(key.as_bytes(), &Record { stamp, object }.to_bytes()));
    }

    fn remove(&mut self, key: Key) {
        if let Some((table, _)) = &mut self.service {
            table.remove(key.to_string().as_bytes());
        }
    }

    fn hear(&mut self, event: &[u8]) {
        self.app.on_frame(&Frame::read(event).unwrap()).unwrap();
        self.take_commands();
    }

    /// The app reads one event.
    fn read(&mut self) -> bool {
        let Some(event) = self.under_way.pop_front() else { return false };
        self.hear(&event);
        true
    }

    fn read_all(&mut self) {
        while self.read() {}
    }

    fn tick(&mut self, after_ms: u64) {
        self.now_ms += after_ms;
        let mut frame = Vec::new();
        write::tick(&mut frame, 1, self.now_ms);
        self.hear(&frame);
    }

    fn seen(&self) -> Vec<String> {
        self.app.app().seen.keys().map(Key::to_string).collect()
    }
}

fn switch(id: u64) -> Object {
    let (annotations, description) = Default::default();
    let (state, openflow) = (SwitchState::Up, "1.3".to_owned());
    let id = DatapathId(id);
    Switch { id, state, openflow, n_tables: 1, n_buffers: 0, description, since_ms: 0, annotations }.into()
}

/// A port with a name so long that some twenty of them use up the credit.
fn port(switch: u64, number: u32, speed_kbps: u64) -> Object {
    let id = ConnectPoint { switch: DatapathId(switch), port: PortNo(number) };
    let (mac, name) = (MacAddr::from_u64(1), "x".repeat(3_000));
    Port { id, name, mac, live: true, enabled: true, speed_kbps, annotations: BTreeMap::new() }.into()
}

#[test]
fn an_app_follows_the_kinds_it_names_and_what_they_need() {
    let check = |kinds: &[Kind], expected: &[&str]| {
        let questions: Vec<_> = ViewFollower::new(kinds).streams;
        let questions = questions
            .iter()
            .map(|it| format!("{} {}", it.service, String::from_utf8_lossy(&question(&it.kinds))));
        assert_eq!(questions.collect::<Vec<_>>(), expected);
    };
    check(&[], &[]);
    check(&[Kind::Switch], &[r#"discovery {"kinds":["switch"]}"#]);
    check(&[Kind::Link], &[r#"discovery {"kinds":["switch","port","link"]}"#]);
    check(&[Kind::Host], &[r#"discovery {"kinds":["switch","port"]}"#, r#"hosts {"kinds":["host"]}"#]);
}

#[test]
fn an_app_hears_a_snapshot_and_each_part_as_one_update() {
    let mut bed = Bed::new();
    bed.put(port(1, 1, 0), 1);
    bed.put(switch(1), 2);
    bed.send();
    bed.read_all();
    assert_eq!(bed.app.app().batches, [2], "the port waits for its switch");
    bed.put(port(1, 2, 0), 3);
    bed.put(port(1, 1, 9), 4);
    bed.send();
    bed.remove(switch(1).key());
    bed.send();
    bed.read_all();
    assert_eq!(bed.app.app().batches, [2, 2, 3]);
    assert!(bed.seen().is_empty());
    assert_eq!(bed.app.app().ticks, 0);
    bed.tick(1_000);
    assert_eq!(bed.app.app().ticks, 0, "the app has not asked for the time");
}

#[test]
fn the_view_stays_while_its_service_is_away_and_follows_the_next_one() {
    let mut bed = Bed::new();
    bed.put(switch(1), 100);
    bed.put(switch(2), 101);
    bed.send();
    bed.read_all();
    bed.stop_service();
    bed.read_all();
    assert_eq!(bed.seen(), ["switch/of:0000000000000001", "switch/of:0000000000000002"]);
    bed.tick(10_000);
    bed.read_all();
    bed.start_service();
    // The clock of the machine went back.
    bed.put(switch(2), 1);
    bed.put(switch(3), 2);
    bed.tick(10_000);
    bed.read_all();
    assert_eq!(bed.seen(), ["switch/of:0000000000000002", "switch/of:0000000000000003"]);
    bed.put(switch(2), 3);
    bed.send();
    bed.read_all();
    assert_eq!(bed.app.app().batches, [2, 3, 1]);
}

#[test]
fn attempts_come_ever_later_up_to_a_bound() {
    let mut bed = Bed::new();
    bed.stop_service();
    bed.read_all();
    let mut attempts = Vec::new();
    for second in 1..60 {
        let before = bed.questions.len();
        bed.tick(1_000);
        bed.read_all();
        if bed.questions.len() > before {
            attempts.push(second);
        }
    }
    assert_eq!(attempts, [1, 2, 4, 8, 16, 24, 32, 40, 48, 56]);
    let expected = "view: no changes from the service discovery: it is not there; next attempt in 8000 ms";
    assert_eq!(bed.logged.last().unwrap(), expected);
}

#[test]
fn a_refusal_of_the_kernel_is_logged_and_tried_again() {
    let mut bed = Bed::new();
    let (ticket, outcome) = (bed.ticket.unwrap(), Outcome::Refused);
    let receipt =
        Receipt { ticket, outcome, error: ErrorCode { kind: 0, code: 0 }, reason: "it needs view.read" };
    let mut frame = Vec::new();
    write::receipt(&mut frame, 1, DatapathId(0), &receipt);
    bed.hear(&frame);
    let expected = "view: no changes from the service discovery: it needs view.read; next attempt in 500 ms";
    assert_eq!(bed.logged, [expected]);
    bed.tick(1_000);
    assert_eq!(bed.questions.len(), 2);
}

#[test]
fn damaged_entries_are_left_out_and_reported_once() {
    let mut bed = Bed::new();
    let (table, _) = bed.service.as_mut().unwrap();
    let stamp = Stamp::default();
    table.put(b"garbage", b"");
    table.put(b"switch/1", b"{}");
    table.put(b"switch/5", &Record { stamp, object: switch(6) }.to_bytes());
    bed.put(switch(7), 1);
    bed.send();
    bed.read_all();
    assert_eq!(bed.seen(), ["switch/of:0000000000000007"]);
    assert_eq!(bed.logged.len(), 1);
    assert!(bed.logged[0].contains("\"garbage\" is no key"), "{:?}", bed.logged);
}

#[derive(Clone, Debug)]
enum Step {
    Put(Object),
    Remove(Key),
    Send,
    Read,
    Tick,
    Stop,
    Start,
}

fn step() -> impl Strategy<Value = Step> {
    let object = || {
        prop_oneof![
            (1..4u64).prop_map(switch),
            (1..4u64, 1..30u32, 0..3u64).prop_map(|(switch, number, speed)| port(switch, number, speed)),
        ]
    };
    prop_oneof![
        12 => object().prop_map(Step::Put),
        4 => object().prop_map(|object| Step::Remove(object.key())),
        8 => Just(Step::Send),
        3 => Just(Step::Read),
        1 => Just(Step::Tick),
        1 => Just(Step::Stop),
        1 => Just(Step::Start),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// In every state, the app's own record equals its view: `Watching` checks it. In the end, both are what the service has.
    #[test]
    fn whatever_happens_the_app_ends_with_what_the_service_has(steps in prop::collection::vec(step(), 0..300)) {
        let mut bed = Bed::new();
        for (sequence, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(object) => bed.put(object, sequence as u64),
                Step::Remove(key) => bed.remove(key),
                Step::Send => bed.send(),
                Step::Read => drop(bed.read()),
                Step::Tick => bed.tick(1_000),
                Step::Stop => bed.stop_service(),
                Step::Start if bed.service.is_none() => bed.start_service(),
                Step::Start => {}
            }
        }
        if bed.service.is_none() {
            bed.start_service();
        }
        bed.read_all();
        bed.tick(RETRY_MAX_MS);
        bed.read_all();
        bed.send();
        bed.read_all();
        let (table, _) = bed.service.as_ref().unwrap();
        let mut known = Tables::new();
        known.replace(Kind::ALL, table.iter().map(|(_, value)| Record::from_bytes(value).unwrap()));
        let expected = known.view().records_after(None).map(|record| &**record);
        prop_assert!(bed.app.app().seen.values().eq(expected));
        prop_assert!(bed.app.act(&mut Vec::new(), |_, out| out.view_is_current()));
    }
}
