//! A worker and a switch that its profile paces, in a time that the test sets.

use super::*;
use abi::Outcome;
use abi::command::PacketOut;
use openflow::message::{MultipartReply, MultipartRequest, ReplyBody, RequestBody, TableStats};
use southbound::{CommandRate, PriorityOrder, SwitchPace, SwitchPaces};
use std::io::Read;

const SWITCH: DatapathId = DatapathId(1);

fn slow() -> SwitchPace {
    SwitchPace {
        profile: "hp".into(),
        rate: Some(CommandRate { milli_per_s: 8_000, burst: 1 }),
        order: PriorityOrder::AsTheyCome,
        programmed_after_ms: 0,
        entries: None,
        replies: None,
    }
}

/// A switch that answers barriers, and keeps what else it gets.
struct SlowSwitch {
    stream: TcpStream,
    unread: Vec<u8>,
    got: Vec<Body>,
    /// How often it was asked how many rules it has.
    questions: usize,
}

/// The answer of a switch that has one rule.
fn one_rule() -> Body {
    let table = TableStats {
        table_id: 0,
        name: "only".into(),
        wildcards: 0,
        max_entries: 1_000,
        active_count: 1,
        lookup_count: 0,
        matched_count: 0,
    };
    Body::MultipartReply(MultipartReply { flags: 0, body: ReplyBody::Table(vec![table]) })
}

impl SlowSwitch {
    /// Comes up at a worker that paces it like this.
    fn come_up(bench: &mut Bench, pace: SwitchPace) -> SlowSwitch {
        let pace = Arc::new(pace);
        let paces = SwitchPaces::by(move |_, _| Some(pace.clone()));
        let southbound = Box::new(SouthboundConfig { paces, ..SouthboundConfig::default() });
        assert!(bench.line.send(ToWorker::Reconfigure { southbound, limits: NodeLimits::default() }).is_ok());
        bench.turn();
        let stream = bench.come_up(SWITCH);
        stream.set_nonblocking(true).unwrap();
        // A packet-in behind a barrier reply would wait for the worker's acknowledgement (RFC 896).
        stream.set_nodelay(true).unwrap();
        let mut switch = SlowSwitch { stream, unread: Vec::new(), got: Vec::new(), questions: 0 };
        switch.take();
        switch.got.clear();
        switch
    }

    /// Takes what the worker has written, and answers barriers and questions about its table.
    fn take(&mut self) {
        let mut part = [0; 65_536];
        while let Ok(count) = self.stream.read(&mut part) {
            assert!(count > 0, "the worker has closed the connection");
            self.unread.extend_from_slice(&part[..count]);
        }
        let (mut rest, mut replies) = (&self.unread[..], Vec::new());
        while let Some(length) = openflow::frame_len(rest).map(Result::unwrap).filter(|it| *it <= rest.len())
        {
            let message = Message::decode(&rest[..length]).unwrap();
            match message.body {
                Body::BarrierRequest => replies.push(Message { body: Body::BarrierReply, ..message }),
                Body::MultipartRequest(MultipartRequest { body: RequestBody::Table, .. }) => {
                    self.questions += 1;
                    replies.push(Message { body: one_rule(), ..message });
                }
                Body::EchoRequest(data) => {
                    replies.push(Message {
                        body: Body::EchoReply(data),
                        version: message.version,
                        xid: message.xid,
                    });
                }
                other => self.got.push(other),
            }
            rest = &rest[length..];
        }
        self.unread = rest.to_vec();
        for reply in replies {
            self.say(reply);
        }
    }

    fn say(&mut self, message: Message) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    fn flow_mods(&self) -> usize {
        self.got.iter().filter(|body| matches!(body, Body::FlowMod(_))).count()
    }
}

/// A turn at this time, with what the switch has said by then.
fn at(bench: &mut Bench, now_ms: u64) {
    bench.worker.poll.poll(&mut bench.events, Some(Duration::ZERO)).unwrap();
    (bench.worker.now_ms, bench.worker.dispatch.now_ms) = (now_ms, now_ms);
    bench.turn();
}

/// Turns at this time until it is so. What comes from a socket may take its time.
fn until(bench: &mut Bench, now_ms: u64, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        at(bench, now_ms);
        if is_so() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("it never is at {now_ms} ms");
}

fn add_rules(app: &mut App, count: u32) {
    for host in 0..count {
        let mut matching = Vec::new();
        write_match(
            &parse_match(&format!("ip,nw_dst=10.0.{}.{}", host / 256, host % 256)).unwrap(),
            &mut matching,
        );
        let rule = FlowMod { matching: &matching, priority: 7, ..FlowMod::ADD };
        let command =
            Command { datapath: SWITCH, ticket: host.into(), wants_receipt: true, what: What::FlowMod(rule) };
        assert_eq!(app.push(1, command), 1);
    }
}

fn outcomes(app: &mut App) -> Vec<(u64, Outcome)> {
    app.hear(|event| match event {
        Event::Receipt(_, receipt) => Some((receipt.ticket, receipt.outcome)),
        _ => None,
    })
}

#[test]
fn a_thousand_rules_at_once_go_to_a_slow_switch_at_its_rate_and_packets_pass_meanwhile() {
    let mut bench = Bench::new();
    let mut switch = SlowSwitch::come_up(&mut bench, slow());
    let mut planner = bench.attach(VICTIM, "planner", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut answers = bench.attach(OTHER, "answers", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    answers.command(1, What::Subscribe(Subscribe { events: kind::bit(kind::PACKET_IN), packets: &[] }));
    // The node's own rule for packets without a rule goes first.
    at(&mut bench, 1_000);
    switch.take();
    switch.got.clear();
    let (start_ms, mut told, mut packets) = (2_000, Vec::new(), 0);
    add_rules(&mut planner, 1_000);
    let packet_in = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 14,
        reason: 0,
        table_id: 0,
        cookie: u64::MAX,
        matching: Match::any().with(Field::InPort, PortNo(5)),
        data: vec![0; 14],
    };
    for step in 0..1_000 {
        switch.say(Message { version: Version::V1_0, xid: 9, body: Body::PacketIn(packet_in.clone()) });
        let sent = usize::try_from(step).unwrap() + 1;
        until(&mut bench, start_ms + step * 125, || {
            packets += answers.hear(|event| matches!(event, Event::PacketIn(_)).then_some(())).len();
            packets == sent
        });
        let out = PacketOut { buffer_id: None, in_port: PortNo::CONTROLLER, actions: &[], data: &[0; 14] };
        answers.command_unheard(1, What::PacketOut(out));
        at(&mut bench, start_ms + step * 125);
        switch.take();
        told.extend(outcomes(&mut planner));
        assert!(switch.flow_mods() <= sent, "{} flow mods after {sent} turns", switch.flow_mods());
        let outs = switch.got.iter().filter(|body| matches!(body, Body::PacketOut(_))).count();
        assert_eq!(outs, sent, "no packet-out waits");
    }
    assert_eq!(switch.flow_mods(), 1_000);
    until(&mut bench, start_ms + 125_000, || {
        told.extend(outcomes(&mut planner));
        told.len() == 1_000
    });
    assert_eq!(told, (0..1_000).map(|ticket| (ticket, Outcome::Programmed)).collect::<Vec<_>>());
    assert!(bench.worker.southbound.waiting_rules(SWITCH).next().is_none());
}

#[test]
fn the_worker_sleeps_until_commands_are_due_and_asks_the_switch_meanwhile() {
    let mut bench = Bench::new();
    let mut switch = SlowSwitch::come_up(&mut bench, slow());
    let mut app = bench.attach(VICTIM, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    add_rules(&mut app, 2);
    at(&mut bench, 1_000);
    at(&mut bench, 1_100);
    assert_eq!(bench.worker.how_long_to_sleep(), Duration::from_millis(25));
    bench.worker.ask_for_kernel(SWITCH, Asked::TableCounts);
    at(&mut bench, 1_101);
    switch.take();
    assert!(matches!(switch.got[..], [Body::FlowMod(_)]), "{:?}", switch.got);
    assert_eq!(switch.questions, 1);
    at(&mut bench, 1_125);
    switch.take();
    assert_eq!(switch.flow_mods(), 2);
}

#[test]
fn an_app_that_keeps_the_queue_filled_does_not_make_the_table_seem_full_to_others() {
    let mut bench = Bench::new();
    let mut switch = SlowSwitch::come_up(&mut bench, SwitchPace { entries: Some(40), ..slow() });
    let mut churner = bench.attach(VICTIM, "churner", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut other = bench.attach(OTHER, "other", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut matching = Vec::new();
    write_match(&parse_match("ip,nw_dst=10.9.9.9").unwrap(), &mut matching);
    let rule = |command: u8, priority: u16| {
        let flow_mod = FlowMod { command, priority, matching: &matching, ..FlowMod::ADD };
        Command { datapath: SWITCH, ticket: 1, wants_receipt: true, what: What::FlowMod(flow_mod) }
    };
    let add_and_delete = |churner: &mut App| {
        churner.push(1, rule(0, 7));
        churner.push(1, rule(4, 7));
    };
    // Four wait at any time. The kernel has counted 40 adds after ten seconds.
    (0..2).for_each(|_| add_and_delete(&mut churner));
    let mut told = Vec::new();
    for step in 0..400_u64 {
        if step % 2 == 0 {
            add_and_delete(&mut churner);
        }
        if step >= 200 && step % 8 == 0 && told.is_empty() {
            other.push(1, rule(0, 9));
        }
        at(&mut bench, 1_000 + step * 125);
        switch.take();
        at(&mut bench, 1_000 + step * 125);
        assert!(bench.worker.southbound.waiting_rules(SWITCH).next().is_some());
        outcomes(&mut churner);
        told.extend(outcomes(&mut other).into_iter().filter(|(_, outcome)| *outcome != Outcome::Refused));
    }
    assert_eq!(told[..], [(1, Outcome::Programmed)]);
    assert!(switch.questions > 1, "{}", switch.questions);
}

#[test]
fn a_queue_is_sent_though_its_app_has_ended_and_the_switch_keeps_its_rules() {
    let mut bench = Bench::new();
    let mut switch = SlowSwitch::come_up(&mut bench, slow());
    let mut app = bench.attach(VICTIM, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    add_rules(&mut app, 5);
    at(&mut bench, 1_000);
    let message = ToWorker::DetachZone { zone: VICTIM, generation: 1 };
    assert!(bench.line.send(message).is_ok());
    for step in 1..=8 {
        at(&mut bench, 1_000 + step * 125);
        switch.take();
    }
    assert_eq!(switch.flow_mods(), 5);
    assert!(bench.worker.southbound.waiting_rules(SWITCH).next().is_none());
}

#[test]
fn the_next_start_of_an_app_hears_nothing_of_the_queue_of_the_last_one() {
    let mut bench = Bench::new();
    let mut switch = SlowSwitch::come_up(&mut bench, slow());
    let grant = || Grant::everywhere(&kernel::Capability::GRANT_ALL);
    let mut first = bench.attach(VICTIM, "app", grant());
    add_rules(&mut first, 5);
    at(&mut bench, 1_000);
    let ended = ToWorker::DetachZone { zone: VICTIM, generation: 1 };
    assert!(bench.line.send(ended).is_ok());
    at(&mut bench, 1_001);
    let mut second = bench.attach_start(2, RING_BYTES, VICTIM, "app", grant());
    let mut heard = Vec::new();
    let mut run = |bench: &mut Bench, second: &mut App, from_ms: u64| {
        for step in 1..=16 {
            at(bench, from_ms + step * 125);
            switch.take();
            at(bench, from_ms + step * 125);
            heard.extend(outcomes(second));
        }
        switch.flow_mods()
    };
    assert_eq!(run(&mut bench, &mut second, 1_000), 5);
    // Its first rule has the same ticket as the first one's.
    add_rules(&mut second, 1);
    assert_eq!(run(&mut bench, &mut second, 4_000), 6);
    assert_eq!(heard, [(0, Outcome::Programmed)]);
}

#[test]
fn apps_fill_nine_tenths_of_the_hardware_table_of_the_profile() {
    let mut bench = Bench::new();
    let pace = SwitchPace { rate: None, entries: Some(100), ..slow() };
    let mut switch = SlowSwitch::come_up(&mut bench, pace);
    let mut app = bench.attach(VICTIM, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    add_rules(&mut app, 100);
    at(&mut bench, 1_000);
    switch.take();
    at(&mut bench, 1_001);
    let refused = outcomes(&mut app).into_iter().filter(|(_, outcome)| *outcome == Outcome::Refused);
    assert_eq!((switch.flow_mods(), refused.count()), (90, 10));
}

#[test]
fn a_switch_that_leaves_leaves_no_command_without_its_receipt() {
    let mut bench = Bench::new();
    let switch = SlowSwitch::come_up(&mut bench, slow());
    let mut app = bench.attach(VICTIM, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    add_rules(&mut app, 50);
    at(&mut bench, 1_000);
    assert_eq!(outcomes(&mut app), []);
    drop(switch);
    bench.turn_until(|worker| worker.dispatch.kernel.switch(SWITCH).is_none());
    assert_eq!(outcomes(&mut app), (0..50).map(|ticket| (ticket, Outcome::Unknown)).collect::<Vec<_>>());
}
