//! Commands to a switch that is up, and their results.

use super::*;
use crate::receipts::RECENT;
use abi::command::{self, StatsRequest};
use flow::canonical::{ActionWriter, write_instructions, write_match};
use flow::{Action, ErrorCode, Field, Instruction, Match};

const BOTH: [Version; 2] = [Version::V1_0, Version::V1_3];
const FLOW: u16 = 1;

/// A rule that sends packets from port 1 to port 2, in canonical bytes.
fn rule() -> (Vec<u8>, Vec<u8>) {
    let (mut matching, mut instructions) = (Vec::new(), Vec::new());
    write_match(&Match::any().with(Field::InPort, PortNo(1)), &mut matching);
    let output = Action::Output { port: PortNo(2), max_len: 0 };
    write_instructions(&[Instruction::ApplyActions(vec![output])], &mut instructions).unwrap();
    (matching, instructions)
}

fn add(bench: &mut Bench, ticket: u64, wants_receipt: bool) -> Result<(), Refused> {
    let (matching, instructions) = rule();
    let add = command::FlowMod { matching: &matching, instructions: &instructions, ..command::FlowMod::ADD };
    bench.send(What::FlowMod(add), ticket, wants_receipt)
}

#[test]
fn what_1_0_cannot_say_is_refused_with_the_reason_and_nothing_is_sent() {
    let mut bench = Bench::up(Version::V1_0);
    let group = command::GroupMod { command: 0, group_type: 0, group_id: 1, buckets: &[] };
    let meter = command::MeterMod { command: 0, flags: 1, meter_id: 1, bands: &[] };
    let other_table = command::FlowMod { table_id: 3, ..command::FlowMod::ADD };
    let groups = StatsRequest { multipart: 7, body: &[] };
    for what in
        [What::GroupMod(group), What::MeterMod(meter), What::FlowMod(other_table), What::StatsRequest(groups)]
    {
        let refused = bench.send(what, 1, true).unwrap_err();
        assert!(matches!(refused, Refused::Unwritable(_)), "{what:?}: {refused:?}");
    }
    assert_eq!((bench.said(), bench.session.outstanding()), (vec![], 0));
    assert_eq!(bench.session.counters().refused, 4);
}

#[test]
fn in_1_0_an_owner_may_delete_one_rule_but_not_all_within_a_match() {
    let mut bench = Bench::up(Version::V1_0);
    let owners = !abi::zone_id::COOKIE_MASK;
    let strict = command::FlowMod { command: 4, cookie_mask: owners, ..command::FlowMod::ADD };
    assert_eq!(bench.send(What::FlowMod(strict), 1, false), Ok(()));
    let loose = command::FlowMod { command: 3, ..strict };
    assert!(matches!(bench.send(What::FlowMod(loose), 2, false), Err(Refused::Unwritable(_))));
}

#[test]
fn damaged_bytes_of_an_app_are_refused_with_the_place() {
    let mut bench = Bench::up(Version::V1_3);
    let group = command::GroupMod { command: 0, group_type: 0, group_id: 1, buckets: &[0, 99] };
    let refused = bench.send(What::GroupMod(group), 1, false).unwrap_err();
    assert!(matches!(&refused, Refused::Malformed(bad) if bad.offset >= 16), "{refused:?}");
    let stats = StatsRequest { multipart: FLOW, body: &[1, 2, 3] };
    assert!(matches!(bench.send(What::StatsRequest(stats), 1, false), Err(Refused::Malformed(_))));
    assert_eq!(bench.said(), []);
}

#[test]
fn what_is_for_no_switch_is_refused() {
    let mut bench = Bench::up(Version::V1_3);
    let log = command::Log { level: 2, text: "hello" };
    assert_eq!(bench.send(What::Log(log), 1, false), Err(Refused::NotForSwitches));
}

#[test]
fn promises_of_receipts_are_bounded() {
    let config = SouthboundConfig::default();
    let mut bench = Bench::up(Version::V1_3);
    // Half of all, but for what is kept.
    let share = config.max_outstanding / 2 - 4;
    for ticket in 0..share as u64 {
        add(&mut bench, ticket, true).unwrap();
    }
    assert_eq!(add(&mut bench, 0, true), Err(Refused::TooManyOutstanding(share)));
    assert_eq!(add(&mut bench, 0, false), Ok(()));
    let command = Command { datapath: DATAPATH, ticket: 1, wants_receipt: true, what: What::Barrier };
    let other = Tag { zone: ZoneId(ZONE.0 + 1), generation: 0, ticket: 1 };
    assert_eq!(bench.turn(|session, turn| session.send(&command, 0, other, 0, turn)), Ok(()));
}

#[test]
fn packet_outs_do_not_wait_for_a_slow_switch_and_rules_do() {
    let mut bench = Bench::up(Version::V1_3);
    let packet = command::PacketOut { buffer_id: None, in_port: PortNo::CONTROLLER, actions: &[], data: &[] };
    let half = SouthboundConfig::default().max_output_bytes / 2;
    let mut send = |zone, what, waiting| {
        let command = Command { datapath: DATAPATH, ticket: 1, wants_receipt: false, what };
        bench.turn(|session, turn| {
            session.send(&command, 0, Tag { zone, generation: 0, ticket: 1 }, waiting, turn)
        })
    };
    assert_eq!(send(ZONE, What::PacketOut(packet), half), Ok(()));
    assert_eq!(send(ZONE, What::PacketOut(packet), half + 1), Err(Refused::SlowReader));
    let (rule, for_apps) = (What::FlowMod(command::FlowMod::ADD), half / 2 * 3);
    assert_eq!(send(ZONE, rule, half + 1), Ok(()));
    // An empty rule is 56 bytes long.
    assert_eq!(send(ZONE, rule, for_apps - 56), Ok(()));
    for what in [rule, What::Barrier] {
        assert_eq!(send(ZONE, what, for_apps), Err(Refused::SlowReader));
        assert_eq!(send(ZoneId::KERNEL, what, for_apps), Ok(()));
    }
    assert_eq!(send(ZONE, rule, for_apps - 55), Err(Refused::SlowReader));
    let (sent, refused) = (bench.said().len(), bench.session.counters().refused);
    assert_eq!((sent, refused), (5, 4), "of what is refused nothing is left behind");
}

#[test]
fn a_flow_mod_goes_out_with_the_stamped_cookie() {
    for version in BOTH {
        let mut bench = Bench::up(version);
        add(&mut bench, 5, false).unwrap();
        bench.end_turn();
        let [Body::FlowMod(flow_mod)] = &bench.said()[..] else { panic!("one flow mod") };
        assert_eq!(flow_mod.cookie, ZONE.stamp(5));
        assert_eq!(flow_mod.matching, Match::any().with(Field::InPort, PortNo(1)));
        assert_eq!(flow_mod.instructions.len(), 1);
    }
}

#[test]
fn a_packet_out_goes_out_in_the_version_of_the_switch() {
    for version in BOTH {
        let mut bench = Bench::up(version);
        let mut actions = Vec::new();
        ActionWriter::new(&mut actions).output(PortNo::FLOOD, 0);
        let packet =
            command::PacketOut { buffer_id: None, in_port: PortNo(1), actions: &actions, data: b"a frame" };
        bench.send(What::PacketOut(packet), 5, false).unwrap();
        let [Body::PacketOut(packet)] = &bench.said()[..] else { panic!("one packet-out") };
        assert_eq!(
            (packet.buffer_id, packet.in_port, &packet.data[..]),
            (NO_BUFFER, PortNo(1), &b"a frame"[..])
        );
        assert!(matches!(packet.actions[..], [Action::Output { port: PortNo::FLOOD, .. }]));
    }
}

#[test]
fn one_barrier_confirms_all_commands_of_a_turn() {
    for version in BOTH {
        let mut bench = Bench::up(version);
        add(&mut bench, 1, true).unwrap();
        add(&mut bench, 2, false).unwrap();
        add(&mut bench, 3, true).unwrap();
        bench.end_turn();
        bench.end_turn();
        let said = bench.said_whole();
        let [.., Message { xid, body: Body::BarrierRequest, .. }] = said[..] else { panic!("{said:?}") };
        assert_eq!(said.len(), 4);
        bench.hear_as(version, xid, Body::BarrierReply).unwrap();
        assert_eq!(outcomes(&mut bench), [(1, Outcome::Programmed), (3, Outcome::Programmed)]);
    }
}

#[test]
fn a_rule_that_the_switch_refuses_has_failed_with_its_error_in_the_numbers_of_1_3() {
    for (version, kind, code) in [(Version::V1_0, 3, 0), (Version::V1_3, 5, 1)] {
        let mut bench = Bench::up(version);
        add(&mut bench, 1, true).unwrap();
        bench.end_turn();
        let said = bench.said_whole();
        bench.hear_as(version, said[0].xid, error(kind, code)).unwrap();
        bench.told(0, |event| {
            let Event::Receipt(datapath, receipt) = event else { panic!("{event:?}") };
            assert_eq!((datapath, receipt.ticket, receipt.outcome), (DATAPATH, 1, Outcome::Failed));
            assert_eq!(receipt.error, ErrorCode { kind: 5, code: 1 });
            assert!(receipt.reason.starts_with("OFPET_FLOW_MOD_FAILED"), "{}", receipt.reason);
        });
        bench.to_zones.clear();
        bench.hear_as(version, said[1].xid, Body::BarrierReply).unwrap();
        assert_eq!(outcomes(&mut bench), []);
    }
}

#[test]
fn without_a_receipt_an_error_still_finds_its_zone() {
    let mut bench = Bench::up(Version::V1_3);
    add(&mut bench, 9, false).unwrap();
    let xid = bench.said_whole()[0].xid;
    bench.hear_as(Version::V1_3, xid, error(5, 1)).unwrap();
    bench.told(0, |event| {
        let Event::SwitchError(told) = event else { panic!("{event:?}") };
        assert_eq!((told.ticket, told.error), (9, ErrorCode { kind: 5, code: 1 }));
    });
}

#[test]
fn an_error_that_belongs_to_nobody_is_only_a_line_in_the_log() {
    let mut bench = Bench::up(Version::V1_3);
    add(&mut bench, 9, false).unwrap();
    let xid = bench.said_whole()[0].xid;
    (0..RECENT as u64).for_each(|ticket| add(&mut bench, ticket, false).unwrap());
    bench.hear_as(Version::V1_3, xid, error(5, 1)).unwrap();
    bench.hear_as(Version::V1_3, 0xdead_beef, error(5, 1)).unwrap();
    assert_eq!((bench.to_zones.len(), bench.lines.len()), (0, 2));
}

#[test]
fn the_end_of_the_session_leaves_unknown_what_was_not_answered() {
    let mut bench = Bench::up(Version::V1_3);
    add(&mut bench, 1, true).unwrap();
    bench.send(What::StatsRequest(StatsRequest { multipart: 3, body: &[] }), 2, false).unwrap();
    bench.turn(|session, turn| session.on_end("the cable was pulled", turn));
    assert_eq!(outcomes(&mut bench), [(1, Outcome::Unknown), (2, Outcome::Unknown)]);
    bench.event(0, |event| assert!(matches!(event, Event::SwitchDown(DATAPATH))));
}

#[test]
fn what_is_not_answered_in_time_is_unknown() {
    let mut bench = Bench::up(Version::V1_3);
    add(&mut bench, 1, true).unwrap();
    bench.end_turn();
    bench.send(What::StatsRequest(StatsRequest { multipart: 3, body: &[] }), 2, false).unwrap();
    for now_ms in (0..=30_000).step_by(1_000) {
        bench.session.heard(1, now_ms);
        bench.tick(now_ms).unwrap();
    }
    assert_eq!(outcomes(&mut bench), [(2, Outcome::Unknown), (1, Outcome::Unknown)]);
}

#[test]
fn a_barrier_that_was_asked_for_stands_where_it_was_asked_for() {
    let mut bench = Bench::up(Version::V1_3);
    add(&mut bench, 1, true).unwrap();
    bench.send(What::Barrier, 2, true).unwrap();
    add(&mut bench, 3, false).unwrap();
    bench.end_turn();
    let said = bench.said_whole();
    assert_eq!(said.len(), 3);
    assert_eq!(said[1].body, Body::BarrierRequest);
    bench.hear_as(Version::V1_3, said[1].xid, Body::BarrierReply).unwrap();
    assert_eq!(outcomes(&mut bench), [(1, Outcome::Programmed), (2, Outcome::Programmed)]);
}

fn all_flows() -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 0, 0];
    bytes.extend([0xff; 8]);
    bytes.extend([0; 4 + 16]);
    bytes.extend([0, 1, 0, 4, 0, 0, 0, 0]);
    bytes
}

fn entry(priority: u16) -> FlowStats {
    FlowStats {
        table_id: 0,
        duration_s: 1,
        duration_ns: 0,
        priority,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: 0,
        cookie: 7,
        packet_count: 1,
        byte_count: 60,
        matching: Match::any().with(Field::InPort, PortNo(1)),
        instructions: vec![Instruction::ApplyActions(vec![Action::Output { port: PortNo(2), max_len: 0 }])],
    }
}

/// The entries in the reported parts, which all belong to ticket 4, and whether the last part is marked as the last.
fn entries(bench: &Bench) -> (Vec<u16>, bool) {
    let (mut priorities, mut more) = (Vec::new(), true);
    for index in 0..bench.to_zones.len() {
        bench.told(index, |event| {
            let Event::StatsReply(reply) = event else { panic!("{event:?}") };
            assert_eq!((reply.ticket, reply.multipart, reply.datapath), (4, FLOW, DATAPATH));
            let mut bytes = header(4, 19, 16 + reply.body.len() as u16, 0);
            bytes.extend([0, FLOW as u8, 0, 0, 0, 0, 0, 0]);
            bytes.extend_from_slice(reply.body);
            let Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(list), .. }) =
                Message::decode(&bytes).unwrap().body
            else {
                panic!("flow entries")
            };
            priorities.extend(list.iter().map(|entry| entry.priority));
            assert!(more, "a part after the last");
            more = reply.more;
        });
    }
    (priorities, !more)
}

#[test]
fn statistics_come_back_part_by_part_in_the_words_of_1_3() {
    for version in BOTH {
        let mut bench = Bench::up(version);
        let request = StatsRequest { multipart: FLOW, body: &all_flows() };
        bench.send(What::StatsRequest(request), 4, false).unwrap();
        let said = bench.said_whole();
        assert!(matches!(
            said[..],
            [Message {
                body: Body::MultipartRequest(MultipartRequest { body: RequestBody::Flow(_), .. }),
                ..
            }]
        ));
        for (flags, first) in [(MULTIPART_MORE, 1), (0, 3)] {
            let body = ReplyBody::Flow(vec![entry(first), entry(first + 1)]);
            bench
                .hear_as(version, said[0].xid, Body::MultipartReply(MultipartReply { flags, body }))
                .unwrap();
        }
        assert_eq!(entries(&bench), (vec![1, 2, 3, 4], true));
    }
}

#[test]
fn how_large_tables_are_is_asked_of_1_0_by_their_statistics() {
    let mut bench = Bench::up(Version::V1_0);
    bench.send(What::StatsRequest(StatsRequest { multipart: 12, body: &[] }), 4, false).unwrap();
    let said = bench.said_whole();
    let [
        Message {
            body: Body::MultipartRequest(MultipartRequest { body: RequestBody::Table, .. }), xid, ..
        },
    ] = said[..]
    else {
        panic!("{said:?}")
    };
    let table = TableStats {
        table_id: 0,
        name: "classifier".to_owned(),
        wildcards: 0,
        max_entries: 4_096,
        active_count: 7,
        lookup_count: 0,
        matched_count: 0,
    };
    let body = ReplyBody::Table(vec![table]);
    bench.hear_as(Version::V1_0, xid, Body::MultipartReply(MultipartReply { flags: 0, body })).unwrap();
    bench.told(0, |event| {
        let Event::StatsReply(reply) = event else { panic!("{event:?}") };
        assert_eq!((reply.multipart, reply.more, reply.body.len()), (12, false, 64));
        assert_eq!(reply.body[60..], 4_096u32.to_be_bytes());
    });
}

/// Asks, and returns the only message that goes to the switch.
fn asks(bench: &mut Bench, multipart: u16, body: &[u8]) -> Message {
    bench.send(What::StatsRequest(StatsRequest { multipart, body }), 4, false).unwrap();
    let said = bench.said_whole();
    assert_eq!(said.len(), 1, "{said:?}");
    said[0].clone()
}

/// What the app gets as the answer.
fn gets(bench: &mut Bench, multipart: u16) -> Vec<u8> {
    let mut body = Vec::new();
    bench.told(0, |event| {
        let Event::StatsReply(reply) = event else { panic!("{event:?}") };
        assert_eq!((reply.ticket, reply.multipart, reply.more), (4, multipart, false));
        body = reply.body.to_vec();
    });
    body
}

#[test]
fn queues_are_asked_for_and_told_in_the_words_of_1_3() {
    for version in BOTH {
        let mut bench = Bench::up(version);
        let asked = asks(&mut bench, command::QUEUE_CONFIG, &[0, 0, 0, 2, 0, 0, 0, 0]);
        assert_eq!(asked.body, Body::QueueGetConfigRequest(QueueGetConfigRequest { port: PortNo(2) }));
        // Open vSwitch has the largest rate also in 1.0, which does not define it.
        let most = match version {
            Version::V1_0 => QueueProperty::Unknown { kind: 2, data: vec![1, 44, 0, 0, 0, 0, 0, 0] },
            _ => QueueProperty::MaxRate(300),
        };
        let properties = vec![QueueProperty::MinRate(200), most];
        let queues = vec![PacketQueue { queue_id: 7, port: PortNo(2), properties }];
        let reply = QueueGetConfigReply { port: PortNo(2), queues };
        bench.hear_as(version, asked.xid, Body::QueueGetConfigReply(reply)).unwrap();
        let body = gets(&mut bench, command::QUEUE_CONFIG);
        let expected = [
            &[0, 0, 0, 2, 0, 0, 0, 0][..],
            &[0, 0, 0, 7, 0, 0, 0, 2, 0, 48, 0, 0, 0, 0, 0, 0],
            &[0, 1, 0, 16, 0, 0, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0],
            &[0, 2, 0, 16, 0, 0, 0, 0, 1, 44, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(body, expected.concat(), "{version}");
        assert!(bench.session.requests.has_room(ZONE), "{version}");
    }
    let mut bench = Bench::up(Version::V1_3);
    for wrong in [&[][..], &[0, 0, 0, 2], &[0; 9]] {
        let ask = What::StatsRequest(StatsRequest { multipart: command::QUEUE_CONFIG, body: wrong });
        assert!(matches!(bench.send(ask, 4, false), Err(Refused::Malformed(_))), "{wrong:?}");
    }
}

#[test]
fn an_app_asks_for_the_role_without_a_change_of_it() {
    let mut bench = Bench::up(Version::V1_3);
    let asked = asks(&mut bench, command::ROLE, &[]);
    let [nochange, master] =
        [(ROLE_NOCHANGE, 0), (ROLE_MASTER, 9)].map(|(role, generation_id)| Role { role, generation_id });
    assert_eq!(asked.body, Body::RoleRequest(nochange));
    bench.hear_as(Version::V1_3, asked.xid, Body::RoleReply(master)).unwrap();
    assert_eq!(gets(&mut bench, command::ROLE), [0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    let ask = |body| What::StatsRequest(StatsRequest { multipart: command::ROLE, body });
    assert!(matches!(bench.send(ask(&[0]), 4, false), Err(Refused::Malformed(_))));
    let mut old = Bench::up(Version::V1_0);
    assert!(matches!(old.send(ask(&[]), 4, false), Err(Refused::Unwritable(_))));
}

#[test]
fn a_part_that_grows_beyond_a_message_in_1_3_comes_in_several() {
    let mut bench = Bench::up(Version::V1_0);
    let request = StatsRequest { multipart: FLOW, body: &all_flows() };
    bench.send(What::StatsRequest(request), 4, false).unwrap();
    let xid = bench.said_whole()[0].xid;
    let crowded = |priority| {
        let fields = Match::any()
            .with(Field::InPort, PortNo(1))
            .with(Field::EthSrc, MacAddr([2; 6]))
            .with(Field::EthDst, MacAddr([4; 6]))
            .with(Field::EthType, 0x0800u16);
        FlowStats { matching: fields, ..entry(priority) }
    };
    let list: Vec<FlowStats> = (0..680).map(crowded).collect();
    let expected: Vec<u16> = (0..680).collect();
    let body = ReplyBody::Flow(list);
    bench.hear_as(Version::V1_0, xid, Body::MultipartReply(MultipartReply { flags: 0, body })).unwrap();
    assert!(bench.to_zones.len() > 1, "one part was enough; make the entries larger");
    assert_eq!(entries(&bench), (expected, true));
}

#[test]
fn a_damaged_part_ends_the_request_and_not_the_session() {
    let mut bench = Bench::up(Version::V1_3);
    let request = StatsRequest { multipart: FLOW, body: &all_flows() };
    bench.send(What::StatsRequest(request), 4, false).unwrap();
    let xid = bench.said_whole()[0].xid;
    let mut damaged = header(4, 19, 20, xid);
    damaged.extend([0, 1, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0, 0]);
    assert_eq!(bench.hear_bytes(&damaged), Ok(Step::On));
    assert_eq!(outcomes(&mut bench), [(4, Outcome::Unknown)]);
    assert_eq!(bench.complained().0, 1);
}

#[test]
fn a_refused_request_is_told_to_its_asker() {
    let mut bench = Bench::up(Version::V1_3);
    let request = StatsRequest { multipart: FLOW, body: &all_flows() };
    bench.send(What::StatsRequest(request), 4, false).unwrap();
    let xid = bench.said_whole()[0].xid;
    bench.hear_as(Version::V1_3, xid, error(1, 2)).unwrap();
    bench.told(0, |event| assert!(matches!(event, Event::SwitchError(told) if told.ticket == 4)));
    assert_eq!(bench.to_zones.len(), 1);
}

#[test]
fn requests_are_bounded() {
    let mut bench = Bench::up(Version::V1_3);
    // Half of all, but for what is kept: the other half is for other zones.
    let share = SouthboundConfig::default().max_requests / 2 - 4;
    let request = What::StatsRequest(StatsRequest { multipart: 3, body: &[] });
    (0..share).for_each(|_| bench.send(request, 4, false).unwrap());
    assert_eq!(bench.send(request, 4, false), Err(Refused::TooManyRequests(share)));
    let command = Command { datapath: DATAPATH, ticket: 1, wants_receipt: false, what: request };
    let other = Tag { zone: ZoneId(ZONE.0 + 1), generation: 0, ticket: 1 };
    assert_eq!(bench.turn(|session, turn| session.send(&command, 0, other, 0, turn)), Ok(()));
}

/// Requests flow entries, and answers with this body. Returns the bodies and the outcomes that the zone gets.
fn entries_told(version: Version, body: &[u8]) -> (Vec<Vec<u8>>, Vec<(u64, Outcome)>) {
    let mut bench = Bench::up(version);
    bench.send(What::StatsRequest(StatsRequest { multipart: 1, body: &every_rule() }), 2, false).unwrap();
    let xid = bench.said_whole()[0].xid;
    let (kind, gap): (u8, &[u8]) = if version == Version::V1_0 { (17, &[]) } else { (19, &[0; 4]) };
    let whole = [&[0, 1, 0, 0][..], gap, body].concat();
    let mut message = header(version.0, kind, (8 + whole.len()) as u16, xid);
    message.extend_from_slice(&whole);
    bench.hear_bytes(&message).unwrap();
    let (mut bodies, mut ends) = (Vec::new(), Vec::new());
    for (_, frame) in &bench.to_zones {
        match Event::read(&Frame::read(frame).unwrap()).unwrap() {
            Event::StatsReply(reply) => bodies.push(reply.body.to_vec()),
            Event::Receipt(_, receipt) => ends.push((receipt.ticket, receipt.outcome)),
            other => panic!("{other:?}"),
        }
    }
    (bodies, ends)
}

/// OFPMP_FLOW of every rule of every table.
fn every_rule() -> Vec<u8> {
    let mut body = vec![0; 32];
    body[0] = 0xff;
    body[4..12].fill(0xff);
    body.extend_from_slice(&[0, 1, 0, 4, 0, 0, 0, 0]);
    body
}

#[test]
fn one_flow_entry_that_cannot_be_read_hides_no_other() {
    // 1.3: the second has a match that is longer than its entry.
    let mut entry = vec![0; 56];
    (entry[1], entry[49], entry[51]) = (56, 1, 4);
    let mut unreadable = entry.clone();
    unreadable[51] = 99;
    let all = [&entry[..], &unreadable, &entry].concat();
    assert_eq!(entries_told(Version::V1_3, &all), (vec![all.clone()], vec![]));
    // 1.0: the second has an action of length 0.
    let mut entry = vec![0; 88];
    entry[1] = 88;
    entry[4..8].copy_from_slice(&[0, 0x3f, 0xff, 0xff]);
    let mut unreadable = [&entry[..], &[0; 8]].concat();
    (unreadable[1], unreadable[53]) = (96, 7);
    let (bodies, ends) = entries_told(Version::V1_0, &[&entry[..], &unreadable, &entry].concat());
    assert_eq!((bodies.len(), ends.len()), (3, 0));
    assert_eq!(bodies[0], bodies[2]);
    // Its priority is there, and so are its bytes.
    assert_eq!(bodies[1][12..14], [0, 7]);
    assert!(bodies[1].windows(unreadable.len()).any(|bytes| bytes == unreadable));
    let head = [4, 19, 0, (16 + bodies[1].len()) as u8, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    assert!(Message::decode(&[&head[..], &bodies[1]].concat()).is_ok(), "apps can read it");
    // Where the lengths do not hold there is nothing to be told.
    assert_eq!(entries_told(Version::V1_3, &[0; 56]).1, [(2, Outcome::Unknown)]);
}
