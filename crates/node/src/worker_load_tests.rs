//! A worker under load: a switch that says as little as a load generator does, and apps that are slower than their switches.

use super::*;
use abi::command::StatsRequest;
use openflow::message::{FlowStats, MultipartReply, PacketIn, ReplyBody};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};

/// Types of messages of 1.0 (1.0.0, 5.1).
const FLOW_MOD: u8 = 14;
const BARRIER_REQUEST: u8 = 18;
const BARRIER_REPLY: u8 = 19;
const STATS_REQUEST: u8 = 16;

/// A switch of 1.0 that answers barriers, and passes over every statistics request.
struct Silent {
    stream: TcpStream,
    read: Vec<u8>,
    /// What it has to say and the socket has not taken yet: whole messages, but for the first.
    said: VecDeque<u8>,
    flow_mods: usize,
    passed_over: usize,
    /// The xid of the last statistics request.
    asked: Option<[u8; 4]>,
}

impl Silent {
    fn connect(bench: &mut Bench, datapath: DatapathId) -> Silent {
        let stream = bench.come_up(datapath);
        Silent::on(stream)
    }

    fn on(stream: TcpStream) -> Silent {
        stream.set_nonblocking(true).unwrap();
        Silent { stream, read: Vec::new(), said: VecDeque::new(), flow_mods: 0, passed_over: 0, asked: None }
    }

    /// Takes what is there.
    fn take(&mut self) {
        let mut room = vec![0; 1 << 16];
        loop {
            match self.stream.read(&mut room) {
                Ok(0) => panic!("the node has ended the session"),
                Ok(count) => self.read.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let mut rest = self.read.as_slice();
        while let Some(header) = rest.first_chunk::<8>() {
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            if rest.len() < length {
                break;
            }
            match header[1] {
                FLOW_MOD => self.flow_mods += 1,
                STATS_REQUEST => {
                    self.passed_over += 1;
                    self.asked = header.last_chunk().copied();
                }
                BARRIER_REQUEST => {
                    let mut reply = *header;
                    reply[1] = BARRIER_REPLY;
                    self.said.extend(reply);
                }
                _ => {}
            }
            rest = &rest[length..];
        }
        self.read = rest.to_vec();
        self.write();
    }

    fn write(&mut self) {
        while !self.said.is_empty() {
            match self.stream.write(self.said.as_slices().0) {
                Ok(count) => drop(self.said.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn a_switch_that_is_silent_about_its_tables_gets_every_rule_and_none_is_refused() {
    const RULES: usize = 50_000;
    let mut bench = Bench::new();
    let mut switch = Silent::connect(&mut bench, DatapathId(1));
    let mut app = bench.attach(VICTIM, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let (mut said, mut turns) = (0, 0);
    while switch.flow_mods < RULES {
        assert!(turns < 100_000, "{} of {said} rules came", switch.flow_mods);
        // Each is a rule of its own.
        let rule = |number: usize| FlowMod { priority: u16::try_from(number + 1).unwrap(), ..FlowMod::ADD };
        while said < RULES && app.command_unheard(1, What::FlowMod(rule(said))) == 1 {
            said += 1;
        }
        bench.worker.poll.poll(&mut bench.events, Some(Duration::ZERO)).unwrap();
        // The clock stands still: what waits here waits for the switch and not for time to pass.
        bench.turn();
        switch.take();
        turns += 1;
    }
    assert_eq!((said, switch.flow_mods), (RULES, RULES));
    let counters = bench.worker.dispatch.kernel.zone(VICTIM).unwrap().counters;
    assert_eq!((counters.commands, counters.refusals), (RULES as u64, 0));
    assert!(switch.passed_over > 1, "it was asked what it is, and how large its tables are");
}

/// A packet-in of 1.0 with a frame of 64 bytes.
fn packet_in(buffer_id: u32) -> Vec<u8> {
    let packet = PacketIn {
        buffer_id,
        total_len: 64,
        reason: 0,
        table_id: 0,
        cookie: 0,
        matching: parse_match("in_port=1").unwrap(),
        data: vec![0; 64],
    };
    let mut bytes = Vec::new();
    Message { version: Version::V1_0, xid: 1, body: Body::PacketIn(packet) }.encode(&mut bytes).unwrap();
    bytes
}

/// The bench's app hears everything of switches.
fn listen(bench: &mut Bench, app: &mut App) {
    let events =
        [kind::PACKET_IN, kind::SWITCH_UP, kind::SWITCH_DOWN].iter().fold(0, |all, it| all | kind::bit(*it));
    assert_eq!(app.command_unheard(1, What::Subscribe(Subscribe { events, packets: &[] })), 1);
    bench.turn();
}

/// What a switch has to say at most when it makes one packet-in more. Stock cbench has a buffer of that size.
const SAID_BYTES: usize = 64 << 10;

/// The switch makes as many packet-ins of its flood as it has room for: how many it has made. They are numbered.
fn flood(switch: &mut Silent, packets: &[Vec<u8>], mut made: usize) -> usize {
    while switch.said.len() < SAID_BYTES
        && let Some(packet) = packets.get(made)
    {
        switch.said.extend(packet);
        made += 1;
    }
    switch.write();
    made
}

fn unheard(bench: &Bench) -> u64 {
    bench.worker.dispatch.kernel.of_switches().map(|it| it.dropped.unheard).sum()
}

/// Packet-ins of each switch.
const FLOOD: usize = 40_000;

/// Many times the turns that a flood takes.
const TURNS_MAX: usize = 2_000_000;

/// The packet-ins that the worker has read.
fn read(bench: &Bench) -> u64 {
    bench.worker.southbound.sessions().map(|it| it.counters.packet_ins).sum()
}

/// These switches flood an app that takes so many packet-ins a turn, of which each is a millisecond of the worker's clock. How many it
/// heard, until everything was read and four hundred turns brought none: a switch that does not say which rules it has is waited for
/// for 250 of them. On a busy machine, Linux can hold back the last bytes for more turns than that.
fn flooded(bench: &mut Bench, app: &mut App, switches: &mut [Silent], per_turn: usize) -> usize {
    let packets: Vec<_> = (0..FLOOD as u32).map(packet_in).collect();
    let mut sent = vec![0; switches.len()];
    let (mut buffer, mut heard, mut quiet, mut last) = (Vec::new(), 0, 0, BTreeMap::new());
    let everything = (FLOOD * switches.len()) as u64;
    for turn in 0.. {
        assert!(turn < TURNS_MAX, "{} of {everything} were read", read(bench));
        if quiet >= 400 {
            break;
        }
        for (switch, at) in switches.iter_mut().zip(&mut sent) {
            *at = flood(switch, &packets, *at);
            switch.take();
        }
        bench.worker.poll.poll(&mut bench.events, Some(Duration::ZERO)).unwrap();
        bench.worker.now_ms += 1;
        bench.worker.dispatch.now_ms += 1;
        bench.turn();
        let before = heard;
        while heard < before + per_turn && app.end.pop_into(&mut buffer).unwrap() {
            let frame = Frame::read(&buffer).unwrap();
            if let Ok(Event::PacketIn(packet)) = Event::read(&frame) {
                let before = last.insert(packet.datapath, packet.buffer_id);
                assert!(
                    before.is_none_or(|before| before < packet.buffer_id),
                    "{before:?} is before {packet:?}"
                );
                heard += 1;
            }
        }
        quiet = if heard == before && read(bench) == everything { quiet + 1 } else { 0 };
    }
    heard
}

/// The rings of apps that are slower than their switches, and how many packet-ins they take in a turn.
const SLOW: [(usize, usize); 2] = [(RING_BYTES, 100), (RING_BYTES / 4, 20)];

#[test]
fn a_live_app_that_is_slower_than_its_switches_loses_no_packet_in() {
    for (ring_bytes, per_turn) in SLOW {
        let mut bench = Bench::new();
        let mut switches: Vec<_> = (1..=4).map(|id| Silent::connect(&mut bench, DatapathId(id))).collect();
        let grant = Grant::everywhere(&kernel::Capability::GRANT_ALL);
        let mut app = bench.attach_with(ring_bytes, VICTIM, "slow", grant);
        listen(&mut bench, &mut app);
        let heard = flooded(&mut bench, &mut app, &mut switches, per_turn);
        assert_eq!((heard, unheard(&bench)), (4 * FLOOD, 0), "a ring of {ring_bytes} bytes");
    }
}

#[test]
fn what_a_switch_floods_before_apps_know_it_waits_until_they_do_and_none_is_lost() {
    for (ring_bytes, per_turn) in SLOW {
        let mut bench = Bench::new();
        let grant = Grant::everywhere(&kernel::Capability::GRANT_ALL);
        let mut app = bench.attach_with(ring_bytes, VICTIM, "slow", grant);
        listen(&mut bench, &mut app);
        let connect = |id| Silent::on(bench.connect(&handshake(DatapathId(id))));
        let mut switches: Vec<_> = (1..=4).map(connect).collect();
        let heard = flooded(&mut bench, &mut app, &mut switches, per_turn);
        assert_eq!((heard, unheard(&bench)), (4 * FLOOD, 0), "a ring of {ring_bytes} bytes");
        assert!(
            switches.iter().all(|it| it.passed_over > 0),
            "each was asked which rules it has, and did not say"
        );
    }
}

#[test]
fn an_app_that_takes_nothing_stops_nobody_and_what_it_loses_is_counted_for_its_switch() {
    let mut bench = Bench::new();
    let mut switch = Silent::connect(&mut bench, DatapathId(1));
    let mut app = bench.attach(VICTIM, "stopped", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    listen(&mut bench, &mut app);
    let packets: Vec<_> = (0..FLOOD as u32).map(packet_in).collect();
    let (mut sent, mut turns) = (0, 0);
    while read(&bench) < FLOOD as u64 {
        assert!(turns < 10_000, "{} of {FLOOD} were read", read(&bench));
        sent = flood(&mut switch, &packets, sent);
        bench.worker.poll.poll(&mut bench.events, Some(Duration::ZERO)).unwrap();
        bench.worker.now_ms += 1;
        bench.worker.dispatch.now_ms += 1;
        bench.turn();
        turns += 1;
    }
    let heard = app.hear(|event| matches!(event, Event::PacketIn(_)).then_some(())).len();
    assert_eq!(unheard(&bench), (FLOOD - heard) as u64);
    assert!(heard < FLOOD / 2, "{heard}");
}

#[test]
fn an_app_that_keeps_up_does_not_wait_for_one_that_does_not() {
    let mut bench = Bench::new();
    let mut switches = [Silent::connect(&mut bench, DatapathId(1))];
    let mut slow = bench.attach(OTHER, "slow", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut quick = bench.attach(VICTIM, "quick", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    listen(&mut bench, &mut slow);
    listen(&mut bench, &mut quick);
    let began_ms = bench.worker.now_ms;
    // The slow one takes a packet-in each millisecond, the quick one all that there are.
    let (mut buffer, mut heard, mut sent) = (Vec::new(), 0, 0);
    let packets: Vec<_> = (0..FLOOD as u32).map(packet_in).collect();
    while heard < FLOOD {
        sent = flood(&mut switches[0], &packets, sent);
        bench.worker.poll.poll(&mut bench.events, Some(Duration::ZERO)).unwrap();
        bench.worker.now_ms += 1;
        bench.worker.dispatch.now_ms += 1;
        bench.turn();
        heard += quick.hear(|event| matches!(event, Event::PacketIn(_)).then_some(())).len();
        slow.end.pop_into(&mut buffer).unwrap();
        assert!(bench.worker.now_ms - began_ms < FLOOD as u64 / 2, "{heard} of {FLOOD}");
    }
    let lost = bench.worker.dispatch.zones.all().map(|(_, end)| end.dropped()).sum::<u64>();
    assert_eq!(lost, unheard(&bench), "all by the slow one");
    assert!(lost > FLOOD as u64 / 2, "{lost}");
}

/// Flow entries in one part of an answer, and the parts of an answer about 100,000.
const ENTRIES_OF_PART: usize = 600;
const PARTS: usize = 167;

/// A part of an answer about flow entries.
fn part(xid: u32, more: bool) -> Vec<u8> {
    let entry = FlowStats {
        table_id: 0,
        duration_s: 1,
        duration_ns: 0,
        priority: 5,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: 0,
        cookie: 7,
        packet_count: 0,
        byte_count: 0,
        matching: parse_match("in_port=1").unwrap(),
        instructions: parse_instructions("output:2").unwrap(),
    };
    let body = ReplyBody::Flow(vec![entry; ENTRIES_OF_PART]);
    let reply = MultipartReply { flags: u16::from(more), body };
    let mut bytes = Vec::new();
    Message { version: Version::V1_0, xid, body: Body::MultipartReply(reply) }.encode(&mut bytes).unwrap();
    bytes
}

/// The bench's app asks for the rules of a switch, which begins to answer.
fn answer_about_all_rules(bench: &mut Bench, app: &mut App, switch: &mut Silent) {
    bench.worker.poll.poll(&mut bench.events, Some(Duration::ZERO)).unwrap();
    bench.turn();
    switch.take();
    switch.asked = None;
    let mut body = vec![0xff, 0, 0, 0];
    body.extend([0xff; 8]);
    body.extend([0; 20]);
    body.extend([0, 1, 0, 4, 0, 0, 0, 0]);
    let multipart = 1;
    assert_eq!(app.command_unheard(1, What::StatsRequest(StatsRequest { multipart, body: &body })), 1);
    while switch.asked.is_none() {
        bench.turn();
        switch.take();
    }
    let xid = u32::from_be_bytes(switch.asked.unwrap());
    (1..=PARTS).for_each(|number| switch.said.extend(part(xid, number < PARTS)));
}

/// One millisecond of the worker's clock.
fn pass(bench: &mut Bench, switch: &mut Silent) {
    switch.take();
    bench.worker.poll.poll(&mut bench.events, Some(Duration::ZERO)).unwrap();
    bench.worker.now_ms += 1;
    bench.worker.dispatch.now_ms += 1;
    bench.turn();
}

#[test]
fn an_answer_that_is_far_larger_than_an_apps_ring_comes_as_fast_as_the_app_reads() {
    let mut bench = Bench::new();
    let mut switch = Silent::connect(&mut bench, DatapathId(1));
    let grant = Grant::everywhere(&kernel::Capability::GRANT_ALL);
    let mut app = bench.attach_with(RING_BYTES / 4, VICTIM, "slow", grant);
    answer_about_all_rules(&mut bench, &mut app, &mut switch);
    let (mut buffer, mut parts, mut bytes, mut turns) = (Vec::new(), 0, 0, 0);
    while parts < PARTS {
        pass(&mut bench, &mut switch);
        turns += 1;
        assert!(turns < TURNS_MAX && bench.faults() == 0, "{parts} of {PARTS} parts came");
        // Two parts each ten milliseconds: that takes far longer than the switch needs to send all.
        for _ in 0..if turns % 10 == 0 { 2 } else { 0 } {
            if !app.end.pop_into(&mut buffer).unwrap() {
                break;
            }
            if let Ok(Event::StatsReply(reply)) = Event::read(&Frame::read(&buffer).unwrap()) {
                parts += 1;
                bytes += reply.body.len();
                assert_eq!(reply.more, parts < PARTS);
            }
        }
    }
    assert!(bytes > 8 << 20, "{bytes} bytes are not much larger than a ring");
}

#[test]
fn an_app_that_does_not_read_its_answer_holds_the_switch_back_for_a_moment_and_then_is_ended() {
    let mut bench = Bench::new();
    let mut switch = Silent::connect(&mut bench, DatapathId(1));
    let mut other_switch = Silent::connect(&mut bench, DatapathId(2));
    let grant = || Grant::everywhere(&kernel::Capability::GRANT_ALL);
    let mut app = bench.attach_with(RING_BYTES / 4, VICTIM, "stopped", grant());
    let mut other = bench.attach(OTHER, "other", grant());
    listen(&mut bench, &mut other);
    answer_about_all_rules(&mut bench, &mut app, &mut switch);
    let (mut ended_ms, mut number, mut heard) = (None, 0, 0);
    for ms in 0..10_000 {
        other_switch.said.extend(packet_in(number));
        other_switch.take();
        number += 1;
        pass(&mut bench, &mut switch);
        heard += other.hear(|event| matches!(event, Event::PacketIn(_)).then_some(())).len();
        if bench.faults() > 0 {
            ended_ms = Some(ms);
            break;
        }
    }
    let ended_ms = ended_ms.expect("it is ended");
    assert!(ended_ms > 500, "an app that only lacks processor time lives: {ended_ms} ms");
    for _ in 0..1_000 {
        pass(&mut bench, &mut switch);
        heard += other.hear(|event| matches!(event, Event::PacketIn(_)).then_some(())).len();
    }
    assert_eq!((heard, unheard(&bench)), (number as usize, 0), "nobody else is slowed down");
    // The rest of the answer has no receiver, and the switch is read as before.
    assert!(switch.said.is_empty());
}

#[test]
fn the_end_of_a_switch_that_floods_does_not_wait_for_an_app() {
    let mut bench = Bench::new();
    let mut switch = Silent::connect(&mut bench, DatapathId(1));
    let mut app = bench.attach(VICTIM, "slow", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    listen(&mut bench, &mut app);
    let packets: Vec<_> = (0..FLOOD as u32).map(packet_in).collect();
    let (mut sent, mut turns) = (0, 0);
    while !bench.worker.southbound.has_paused() {
        sent = flood(&mut switch, &packets, sent);
        bench.worker.poll.poll(&mut bench.events, Some(Duration::ZERO)).unwrap();
        bench.turn();
        turns += 1;
        assert!(turns < 10_000, "it is never slowed down");
    }
    drop(switch);
    // The clock stands still: nobody is waited for until something passes.
    bench.turn_until(|worker| worker.dispatch.kernel.switches().count() == 0);
}

#[test]
fn zones_of_all_numbers_hear_a_switch_and_one_beyond_the_last_is_not_attached() {
    let mut bench = Bench::new();
    let numbers: Vec<u16> = (1..4).chain(60..70).chain(950..=kernel::zone_set::MAX_ZONE).collect();
    let everything = || Grant::everywhere(&kernel::Capability::GRANT_ALL);
    let mut apps: Vec<App> = numbers
        .iter()
        .map(|number| bench.attach(ZoneId(*number), &format!("app{number}"), everything()))
        .collect();
    apps.iter_mut().for_each(|app| listen(&mut bench, app));
    bench.attach(ZoneId(kernel::zone_set::MAX_ZONE + 1), "one too many", everything());
    assert_eq!(bench.worker.dispatch.zones.all().count(), numbers.len());
    let mut switch = bench.come_up(DatapathId(1));
    let packets: Vec<u8> = (0..10).flat_map(packet_in).collect();
    switch.write_all(&packets).unwrap();
    bench.turn_until(|worker| worker.dispatch.kernel.events_heard(ZoneId(1)) == 10);
    for (app, number) in apps.iter_mut().zip(&numbers) {
        let heard = app.hear(|event| matches!(event, Event::PacketIn(_)).then_some(()));
        assert_eq!(heard.len(), 10, "zone {number}");
    }
    let last = ZoneId(kernel::zone_set::MAX_ZONE);
    bench.worker.detach(last);
    assert!(bench.worker.dispatch.zones.get(last).is_none());
}
