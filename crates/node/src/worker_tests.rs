//! A worker, apps that are nothing but the other end of their rings, and switches that say what a test says.

use super::super::zones::COMMAND_BYTES_PER_TURN;
use super::*;
use abi::command::{Ask, Command, FlowMod, Log, Publish, QueryAnswer, Subscribe, What, write as command};
use abi::event::{
    CALLER_GONE, Event, NO_ANSWER_IN_TIME, NO_SUCH_SERVICE, SERVICE_BUSY, SERVICE_GONE, TOO_MUCH,
};
use audit_contract::Record;
use flow::canonical::{write_instructions, write_match};
use flow::text::{parse_instructions, parse_match};
use flow::{Field, Match, PortNo};
use kernel::{Asked, Bounds, Grant, Unanswered};
use openflow::message::{Body, FeaturesReply, Hello, NO_BUFFER, PacketIn};
use openflow::{Message, Version};
use ring::{AppEnd, Port, Sizes};
use std::io::Write;
use std::net::{TcpListener, TcpStream};

#[path = "worker_tests/pacing.rs"]
mod pacing;
#[path = "worker_tests/refused.rs"]
mod refused;
#[path = "worker_tests/routing.rs"]
mod routing;
#[path = "worker_tests/topics.rs"]
mod topics;

const VICTIM: ZoneId = ZoneId(1);
const ATTACKER: ZoneId = ZoneId(2);
const OTHER: ZoneId = ZoneId(3);
const RING_BYTES: usize = 1 << 20;

/// A worker of a node that has so many.
struct Bench {
    worker: Worker,
    line: WorkerSender,
    reports: std::sync::mpsc::Receiver<FromWorker>,
    events: Events,
}

impl Bench {
    fn new() -> Bench {
        let [bench] = Bench::node();
        bench
    }

    /// All workers of a node that has so many.
    fn node<const WORKERS: usize>() -> [Bench; WORKERS] {
        let roster = Arc::new(Roster::new(SouthboundConfig::default().caps()));
        let polls = [(); WORKERS].map(|()| {
            let poll = Poll::new().unwrap();
            let waker = Arc::new(mio::Waker::new(poll.registry(), WAKER_TOKEN).unwrap());
            let (line, inbox) = WorkerSender::new(waker.clone());
            (poll, waker, line, inbox)
        });
        let peers: Vec<WorkerSender> = polls.iter().map(|(_, _, line, _)| line.clone()).collect();
        let mut numbers = 0..;
        polls.map(|(poll, waker, line, inbox)| {
            let (control, reports) = ControlSender::new(waker);
            let setup = WorkerSetup {
                number: numbers.next().unwrap(),
                poll,
                southbound: SouthboundConfig::default(),
                roster: roster.clone(),
                inbox,
                control,
                peers: peers.clone(),
                epoch: Instant::now(),
                limits: NodeLimits::default(),
                calls: CallTracker::default(),
                seed: 7,
                missing_services: Vec::new(),
                claims: Arc::default(),
            };
            Bench { worker: Worker::new(setup).unwrap(), line, reports, events: Events::with_capacity(8) }
        })
    }

    fn turn(&mut self) {
        self.worker.turn(&self.events);
    }

    /// An app with this grant; the other end of its port.
    fn attach(&mut self, zone: ZoneId, app: &str, grant: Grant) -> App {
        self.attach_with(RING_BYTES, zone, app, grant)
    }

    /// The same, with rings of so many bytes.
    fn attach_with(&mut self, bytes: usize, zone: ZoneId, app: &str, grant: Grant) -> App {
        self.attach_start(1, bytes, zone, app, grant)
    }

    /// The same for the `generation`th start of the app.
    fn attach_start(&mut self, generation: u64, bytes: usize, zone: ZoneId, app: &str, grant: Grant) -> App {
        let port = Port::create(Sizes::new(bytes, bytes, bytes).unwrap()).unwrap();
        let (app, grant) = (app.to_owned(), Box::new(grant));
        let rates = Arc::new(kernel::NodeRates::new(grant.quotas(), 0));
        let message = ToWorker::AttachZone { zone, app, generation, port: port.kernel, grant, rates };
        assert!(self.line.send(message).is_ok());
        self.turn();
        App { end: AppEnd::attach(port.app).unwrap() }
    }

    /// How many commands of this zone the kernel has looked at.
    fn commands_of(&self, zone: ZoneId) -> u64 {
        self.worker.dispatch.kernel.zone(zone).unwrap().counters.commands
    }

    /// Somebody connects and says this.
    fn connect(&mut self, said: &[u8]) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut switch = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        assert!(self.line.send(ToWorker::Adopt(mio::net::TcpStream::from_std(stream), peer)).is_ok());
        self.turn();
        switch.write_all(said).unwrap();
        switch
    }

    /// A switch of 1.0 comes up, and refuses to say which rules it has.
    fn come_up(&mut self, datapath: DatapathId) -> TcpStream {
        let switch = self.connect(&handshake(datapath));
        self.turn_until(|worker| worker.dispatch.kernel.is_held(datapath));
        self.worker.dispatch.kernel.on_no_answer(datapath, Asked::Owners, Unanswered::Refused, 0);
        self.turn();
        assert!(self.worker.dispatch.kernel.switch(datapath).is_some());
        switch
    }

    /// Turns until it is so. What comes from a socket may take its time.
    fn turn_until(&mut self, is_so: impl Fn(&Worker) -> bool) {
        for _ in 0..1_000 {
            self.worker.poll.poll(&mut self.events, Some(LONGEST_SLEEP)).unwrap();
            self.turn();
            if is_so(&self.worker) {
                return;
            }
        }
        panic!("it never is");
    }

    /// The zones that were found at fault.
    fn faults(&self) -> usize {
        self.reports.try_iter().filter(|report| matches!(report, FromWorker::ZoneFault { .. })).count()
    }
}

struct App {
    end: AppEnd,
}

impl App {
    /// Commands as often as the ring takes it, up to so many times.
    fn command(&mut self, times: usize, what: What<'_>) -> usize {
        self.push(times, Command { datapath: DatapathId(1), ticket: 7, wants_receipt: true, what })
    }

    /// The same, without receipts.
    fn command_unheard(&mut self, times: usize, what: What<'_>) -> usize {
        self.push(times, Command { datapath: DatapathId(1), ticket: 7, wants_receipt: false, what })
    }

    fn push(&mut self, times: usize, command: Command<'_>) -> usize {
        let mut bytes = Vec::new();
        assert!(command::command(&mut bytes, &command));
        let pushed = (0..times).take_while(|_| self.end.producer.push(&[&bytes]).is_ok()).count();
        self.end.producer.publish();
        pushed
    }

    /// What it hears, as far as `look` wants it.
    fn hear<T>(&mut self, look: impl Fn(&Event<'_>) -> Option<T>) -> Vec<T> {
        let (mut buffer, mut heard) = (Vec::new(), Vec::new());
        while self.end.pop_into(&mut buffer).unwrap() {
            heard.extend(look(&Event::read(&Frame::read(&buffer).unwrap()).unwrap()));
        }
        heard
    }
}

/// What a switch of 1.0 says to come up.
fn handshake(datapath_id: DatapathId) -> Vec<u8> {
    let features = FeaturesReply {
        datapath_id,
        n_buffers: 0,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: 0,
        actions: 0,
        ports: Vec::new(),
    };
    let mut bytes = Vec::new();
    for body in [Body::Hello(Hello::default()), Body::FeaturesReply(features)] {
        Message { version: Version::V1_0, xid: 1, body }.encode(&mut bytes).unwrap();
    }
    bytes
}

fn refusals(event: &Event<'_>) -> Option<String> {
    match event {
        Event::Receipt(_, receipt) => Some(receipt.reason.to_owned()),
        _ => None,
    }
}

#[test]
fn a_query_that_nobody_answers_is_over_after_ten_seconds_and_its_asker_hears_so() {
    let mut bench = Bench::new();
    let mut service = bench.attach(VICTIM, "paths", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut asker = bench.attach(ATTACKER, "asker", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    // As many as may be open.
    assert_eq!(asker.command(256, What::Query(Ask::query("paths", &[]))), 256);
    bench.turn();
    let status = |event: &Event<'_>| match event {
        Event::QueryReply(reply) => Some(reply.status),
        _ => None,
    };
    bench.worker.now_ms = 9_000;
    bench.turn();
    assert_eq!(asker.hear(status), [0; 0]);
    bench.worker.now_ms = 11_000;
    bench.turn();
    assert_eq!(asker.hear(status), [NO_ANSWER_IN_TIME; 256]);
    let asked = service.hear(|event| matches!(event, Event::Query(_)).then_some(()));
    assert_eq!(asked.len(), 256);
    assert_eq!(asker.command(1, What::Query(Ask::query("paths", &[]))), 1);
    bench.turn();
    let asked = service.hear(|event| matches!(event, Event::Query(_)).then_some(()));
    assert_eq!(asked.len(), 1, "there is room for it");
}

#[test]
fn no_app_ends_a_service_by_asking_more_than_it_answers() {
    let mut bench = Bench::new();
    let mut service = bench.attach(VICTIM, "paths", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut attacker = bench.attach(ATTACKER, "attacker", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut statuses = Vec::new();
    for _ in 0..10 {
        attacker.command(100, What::Query(Ask::query("paths", &[0; 60_000])));
        bench.turn();
        statuses.extend(attacker.hear(|event| match event {
            Event::QueryReply(reply) => Some(reply.status),
            _ => None,
        }));
    }
    assert_eq!(bench.faults(), 0);
    assert!(statuses.len() > 100 && statuses.iter().all(|status| *status == SERVICE_BUSY));
    let asked = service.hear(|event| match event {
        Event::Query(query) => Some(query.ticket),
        _ => None,
    });
    assert!((1..20).contains(&asked.len()), "{}", asked.len());
}

#[test]
fn an_app_that_asks_without_end_leaves_room_for_the_questions_of_others() {
    let mut bench = Bench::new();
    let mut service = bench.attach(VICTIM, "paths", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut attacker = bench.attach(ATTACKER, "attacker", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut other = bench.attach(OTHER, "other", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    attacker.command(250, What::Query(Ask::query("paths", &[0; 4_000])));
    bench.turn();
    other.command(1, What::Query(Ask::query("paths", &[0; 60_000])));
    bench.turn();
    assert_eq!(other.hear(|event| matches!(event, Event::QueryReply(_)).then_some(())), []);
    let askers = service.hear(|event| match event {
        Event::Query(query) => Some(query.caller.number),
        _ => None,
    });
    assert!((80..=125).contains(&(askers.len() - 1)), "{askers:?}");
    assert_eq!(askers.last(), Some(&u32::from(OTHER.0)));
}

#[test]
fn no_service_ends_who_asked_it_by_answering_without_end() {
    let mut bench = Bench::new();
    let mut asker = bench.attach(VICTIM, "asker", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut service = bench.attach(ATTACKER, "paths", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    asker.command(1, What::Query(Ask::query("paths", b"?")));
    bench.turn();
    let tickets = service.hear(|event| match event {
        Event::Query(query) => Some(query.ticket),
        _ => None,
    });
    let mut bytes = Vec::new();
    let part = QueryAnswer { status: 0, more: true, payload: &[0; 60_000] };
    let what = What::QueryAnswer(part);
    let command = Command { datapath: DatapathId(0), ticket: tickets[0], wants_receipt: false, what };
    assert!(command::command(&mut bytes, &command));
    for _ in 0..10 {
        while service.end.producer.push(&[&bytes]).is_ok() {}
        service.end.producer.publish();
        bench.turn();
    }
    assert_eq!(bench.faults(), 0);
    let replies = asker.hear(|event| match event {
        Event::QueryReply(reply) => Some((reply.status, reply.more)),
        _ => None,
    });
    assert_eq!(replies.iter().filter(|(status, _)| *status == TOO_MUCH).count(), 1);
    assert_eq!(replies.last(), Some(&(TOO_MUCH, false)));
    assert!(replies.len() <= 3, "no more than the credit of the call: {}", replies.len());
}

#[test]
fn what_a_zone_commands_beyond_its_turns_cost_waits_for_the_next_and_is_not_lost() {
    let mut bench = Bench::new();
    let flowspace = (0..=255u8).map(|last| parse_match(&format!("ip,nw_dst=10.0.{last}.0/24")).unwrap());
    let bounds = Bounds { flowspace: Some(flowspace.collect()), ..Bounds::default() };
    let mut app = bench.attach(ATTACKER, "attacker", Grant::nothing().with_rules(bounds));
    let (mut matching, mut instructions) = (Vec::new(), Vec::new());
    write_match(&parse_match("ip,nw_dst=10.0.0.0/16").unwrap(), &mut matching);
    write_instructions(&parse_instructions("drop").unwrap(), &mut instructions).unwrap();
    let rule = FlowMod { matching: &matching, instructions: &instructions, ..FlowMod::ADD };
    assert_eq!(app.command(100, What::FlowMod(rule)), 100);
    bench.turn();
    let first = app.hear(refusals).len();
    assert!((1..20).contains(&first), "{first}");
    assert_eq!(bench.worker.how_long_to_sleep(), Duration::ZERO);
    let mut turns = 1;
    let mut all = first;
    while all < 100 {
        assert!(turns < 100, "{all} of 100");
        bench.turn();
        all += app.hear(refusals).len();
        turns += 1;
    }
    assert!(turns > 5);
    bench.turn();
    assert_eq!(bench.worker.how_long_to_sleep(), LONGEST_SLEEP);
    assert_eq!(app.hear(refusals).len(), 0, "each is carried out once");
}

#[test]
fn a_turn_reads_so_many_messages_and_no_more() {
    let mut bench = Bench::new();
    for ticket in 0..1_000 {
        assert!(bench.line.send(ToWorker::AskCounts { ticket }).is_ok());
    }
    let counts = |bench: &mut Bench| {
        bench.turn();
        bench.reports.try_iter().filter(|report| matches!(report, FromWorker::Counts { .. })).count()
    };
    assert_eq!(counts(&mut bench), LETTERS_PER_TURN);
    assert_eq!(bench.worker.how_long_to_sleep(), Duration::ZERO);
    assert_eq!((1..5).map(|_| counts(&mut bench)).sum::<usize>(), 1_000 - LETTERS_PER_TURN);
    assert_eq!(bench.worker.how_long_to_sleep(), LONGEST_SLEEP);
}

#[test]
fn a_turn_takes_a_mebibyte_of_a_zones_commands() {
    const TEXT_BYTES: usize = 60_000;
    let mut bench = Bench::new();
    let mut app = bench.attach_with(4 * RING_BYTES, ATTACKER, "attacker", Grant::nothing());
    let log = What::Log(Log { level: 3, text: &"x".repeat(TEXT_BYTES) });
    let said = app.command(1_000, log) as u64;
    assert!(said > 60, "{said}");
    bench.turn();
    let most = COMMAND_BYTES_PER_TURN.div_ceil(TEXT_BYTES) as u64;
    let first = bench.commands_of(ATTACKER);
    assert!((1..=most).contains(&first), "{first} of {said}");
    (0..10).for_each(|_| bench.turn());
    assert_eq!(bench.commands_of(ATTACKER), said);
}

#[test]
fn a_rule_is_whose_whose_add_was_sent_and_of_one_that_cannot_be_sent_nobodys() {
    let mut bench = Bench::new();
    let _switch = bench.come_up(DatapathId(1));
    let mut victim = bench.attach(VICTIM, "victim", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut attacker = bench.attach(ATTACKER, "attacker", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut said = |app: &mut App, matching: &str| {
        let mut bytes = Vec::new();
        write_match(&parse_match(matching).unwrap(), &mut bytes);
        assert_eq!(app.command(1, What::FlowMod(FlowMod { matching: &bytes, ..FlowMod::ADD })), 1);
        bench.turn();
        app.hear(refusals).concat()
    };
    assert_eq!(said(&mut victim, "ip,nw_dst=10.0.0.1"), "");
    let refused = said(&mut attacker, "ip,nw_dst=10.0.0.1");
    assert!(refused.contains("belongs to the app victim"), "{refused}");
    let in_vain = said(&mut victim, "ipv6,ipv6_dst=::1");
    assert!(in_vain.contains("1.0"), "{in_vain}");
    assert_eq!(said(&mut attacker, "ipv6,ipv6_dst=::1"), in_vain, "it is not the victim's");
}

#[test]
fn apps_hear_of_a_switch_when_it_has_said_which_rules_it_has_and_then_of_what_it_sent_meanwhile() {
    let mut bench = Bench::new();
    let mut app = bench.attach(VICTIM, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let all = kind::bit(kind::SWITCH_UP) | kind::bit(kind::SWITCH_DOWN) | kind::bit(kind::PACKET_IN);
    app.command(1, What::Subscribe(Subscribe { events: all, packets: &[] }));
    bench.turn();
    let mut heard = move || {
        app.hear(|event| match event {
            Event::SwitchUp(up) => Some(format!("{} is up", up.datapath)),
            Event::SwitchDown(id) => Some(format!("{id} is down")),
            Event::PacketIn(packet) => Some(format!("a packet by port {}", packet.in_port)),
            _ => None,
        })
    };
    let packet_in = |in_port| PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 14,
        reason: 0,
        table_id: 0,
        cookie: u64::MAX,
        matching: Match::any().with(Field::InPort, PortNo(in_port)),
        data: vec![0; 14],
    };
    let mut said = handshake(DatapathId(1));
    for in_port in [5, 6] {
        let body = Body::PacketIn(packet_in(in_port));
        Message { version: Version::V1_0, xid: 9, body }.encode(&mut said).unwrap();
    }
    let switch = bench.connect(&said);
    bench.turn_until(|worker| worker.dispatch.kernel.is_held(DatapathId(1)));
    (0..3).for_each(|_| bench.turn());
    assert_eq!(heard(), Vec::<String>::new());
    bench.worker.dispatch.kernel.on_no_answer(DatapathId(1), Asked::Owners, Unanswered::Refused, 0);
    bench.turn();
    let up = "of:0000000000000001 is up";
    assert_eq!(heard(), [up, "a packet by port 5", "a packet by port 6"]);
    drop(switch);
    bench.turn_until(|worker| worker.dispatch.kernel.switch(DatapathId(1)).is_none());
    assert_eq!(heard(), ["of:0000000000000001 is down"]);
}

#[test]
fn apps_hear_of_a_switch_before_the_packets_that_follow_its_answer_in_the_same_read() {
    let mut bench = Bench::new();
    let mut app = bench.attach(VICTIM, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    app.command(1, What::Subscribe(Subscribe { events: kind::bit(kind::SWITCH_UP), packets: &[] }));
    bench.turn();
    let _switch = bench.connect(&handshake(DatapathId(1)));
    bench.turn_until(|worker| worker.dispatch.kernel.is_held(DatapathId(1)));
    let ticket = Asked::Owners.ticket();
    let refused = abi::Receipt { ticket, outcome: abi::Outcome::Failed, error: NO_ERROR, reason: "" };
    let mut answer = Vec::new();
    assert!(abi::event::write::receipt(&mut answer, 0, DatapathId(1), &refused));
    bench.worker.dispatch.hear(southbound::SouthboundEvent::ToZone {
        zone: ZoneId::KERNEL,
        generation: 0,
        frame: &answer,
    });
    let is_told = bench.worker.dispatch.kernel.next_ready().is_none();
    assert!(is_told && !bench.worker.dispatch.kernel.is_held(DatapathId(1)));
    bench.turn();
    let heard = app.hear(|event| matches!(event, Event::SwitchUp(_)).then_some(()));
    assert_eq!(heard.len(), 1, "once");
}

#[test]
fn who_breaks_the_protocol_or_is_a_second_switch_of_an_id_that_is_up_is_in_the_records() {
    let mut bench = Bench::new();
    let mut first = bench.come_up(DatapathId(1));
    let second = bench.connect(&handshake(DatapathId(1)));
    bench.turn_until(|worker| worker.southbound.has_claims());
    bench.worker.now_ms += 1;
    let mut lives = Vec::new();
    Message { version: Version::V1_0, xid: 1, body: Body::EchoReply(Vec::new()) }.encode(&mut lives).unwrap();
    first.write_all(&lives).unwrap();
    let second = second.local_addr().unwrap();
    let stranger = bench.connect(b"GET / HTTP/1.1\r\n\r\n").local_addr().unwrap();
    bench.turn_until(|worker| worker.southbound.sessions().count() == 1);
    bench.worker.now_ms = TICK_MS;
    bench.turn();
    let told = |message| if let FromWorker::Audit(records) = message { records } else { Vec::new() };
    let records: Vec<Record> = bench.reports.try_iter().flat_map(told).collect();
    let of = |what: &str| records.iter().find(|record| record.what == what).unwrap();
    let (refused, cut_off) = (of("switch_refused"), of("switch_cut_off"));
    assert_eq!((refused.switch.as_deref(), refused.count), (Some("of:0000000000000001"), 1));
    assert!(refused.text.starts_with(&format!("{second}: datapath id")), "{refused:?}");
    assert_eq!((cut_off.switch.as_deref(), cut_off.count, records.len()), (None, 1, 2));
    assert!(cut_off.text.starts_with(&stranger.to_string()), "{cut_off:?}");
}

#[path = "worker_load_tests.rs"]
mod load;

#[test]
fn what_follows_from_commands_is_carried_out_in_its_order() {
    let mut bench = Bench::new();
    let mut app = bench.attach(VICTIM, "victim", Grant::nothing());
    let limit = |used| Effect::SoftLimit {
        zone: VICTIM,
        datapath: DatapathId(1),
        kind: QuotaKind::CommandsPerS,
        used,
        soft: 1,
        hard: 9,
    };
    bench.worker.dispatch.effects.extend((1..=5).map(limit));
    bench.worker.carry_out_effects();
    bench.turn();
    let heard = app.hear(|event| match event {
        Event::SoftLimit(limit) => Some(limit.used),
        _ => None,
    });
    assert_eq!(heard, [1, 2, 3, 4, 5]);
}

#[test]
fn a_service_hears_who_asks_what_of_the_grant_concerns_it_and_that_the_caller_is_gone() {
    let mut bench = Bench::new();
    let mut service = bench.attach(VICTIM, "paths", Grant::nothing());
    let grant =
        Grant::nothing().with_service("paths", b"all".to_vec()).with_service("hosts", b"none".to_vec());
    let mut asker = bench.attach(ATTACKER, "asker", grant);
    let mut stranger = bench.attach(OTHER, "stranger", Grant::nothing());
    let ask = What::Query(Ask { deadline_ms: 500, ..Ask::query("paths", b"?") });
    asker.command(1, ask);
    stranger.command(1, ask);
    bench.turn();
    assert_eq!(stranger.hear(refusals), ["the app does not hold the capability query"]);
    let heard = service.hear(|event| match event {
        Event::Query(it) => Some(format!("{:?} {} {:?}", it.caller, it.deadline_ms, it.payload)),
        _ => None,
    });
    assert_eq!(heard, ["Caller { number: 2, name: \"asker\", grant: [97, 108, 108] } 500 [63]"]);
    bench.worker.detach(ATTACKER);
    bench.turn();
    let over = |event: &Event<'_>| match event {
        Event::QueryOver(over) => Some(over.status),
        _ => None,
    };
    assert_eq!(service.hear(over), [CALLER_GONE]);
}

#[test]
fn a_caller_hears_why_there_is_no_answer_and_a_service_that_its_answer_is_late() {
    let mut bench = Bench::new();
    let mut service = bench.attach(VICTIM, "paths", Grant::nothing());
    let mut asker = bench.attach(ATTACKER, "asker", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let reply = |event: &Event<'_>| match event {
        Event::QueryReply(it) => Some((it.status, String::from_utf8_lossy(it.payload).into_owned())),
        _ => None,
    };
    bench.worker.dispatch.kernel.services().explain_missing("store", "this node has no store");
    for name in ["store", "nobody"] {
        asker.command(1, What::Query(Ask::query(name, b"")));
    }
    bench.turn();
    let no_such = |why: &str| (NO_SUCH_SERVICE, why.to_owned());
    assert_eq!(asker.hear(reply), [no_such("this node has no store"), no_such("")]);
    asker.command(1, What::Query(Ask { deadline_ms: 5, ..Ask::query("paths", b"") }));
    bench.turn();
    let tickets = service.hear(|event| if let Event::Query(it) = event { Some(it.ticket) } else { None });
    bench.worker.now_ms += 5;
    bench.turn();
    assert_eq!(asker.hear(reply), [(NO_ANSWER_IN_TIME, String::new())]);
    let late = QueryAnswer { status: 0, more: false, payload: b"!" };
    let what = What::QueryAnswer(late);
    for (ticket, status) in [(tickets[0], 0), (tickets[0] + 1, 0), (tickets[0], SERVICE_GONE)] {
        let what = if status == 0 { what } else { What::QueryAnswer(QueryAnswer { status, ..late }) };
        service.push(1, Command { datapath: DatapathId(0), ticket, wants_receipt: true, what });
    }
    bench.turn();
    let heard = service.hear(refusals);
    assert_eq!(heard[..2], ["the query's deadline has passed", "there is no open query of that ticket"]);
    assert!(heard[2].contains("only the kernel uses it"), "{heard:?}");
    assert_eq!(asker.hear(reply), []);
    asker.command(1, What::Query(Ask::query("paths", b"")));
    bench.turn();
    bench.worker.detach(VICTIM);
    bench.turn();
    assert_eq!(asker.hear(reply), [(SERVICE_GONE, String::new())]);
}

#[test]
fn credit_that_a_service_does_not_hear_of_now_it_hears_of_later() {
    let mut bench = Bench::new();
    let mut service = bench.attach(VICTIM, "paths", Grant::nothing());
    let mut asker = bench.attach(ATTACKER, "asker", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    asker.command(1, What::Query(Ask::query("paths", b"")));
    bench.turn();
    let credit = |event: &Event<'_>| if let Event::QueryCredit(it) = event { Some(it.bytes) } else { None };
    assert_eq!(service.hear(credit), [0; 0]);
    let fill = What::Query(Ask::query("paths", &[0; 60_000]));
    let (datapath, wants_receipt) = (DatapathId(0), false);
    asker.push(10, Command { datapath, ticket: 8, wants_receipt, what: fill });
    let taken = asker.command(4_000, What::QueryCredit(0));
    asker.command(1, What::QueryCredit(9));
    asker.command(1, What::QueryCredit(u32::MAX));
    assert!(taken > 1_000);
    bench.turn();
    let told: u32 = service.hear(credit).iter().sum();
    bench.worker.now_ms += TICK_MS;
    bench.turn();
    assert_eq!(
        told + service.hear(credit).iter().sum::<u32>(),
        9,
        "it is told once, and what is too much never"
    );
    assert_eq!(bench.faults(), 0);
}
