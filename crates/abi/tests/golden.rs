//! The frames as bytes: one golden line for each kind, so that no layout ever changes; and whatever bytes come, reading them ends.

use abi::command::{self, Command, What};
use abi::event::{self, Event, PortFacts, PortRecord};
use abi::service::Form;
use abi::{Frame, Outcome, Receipt, ZoneId};
use flow::{DatapathId, ErrorCode, MacAddr, PortNo};
use proptest::prelude::*;

const SWITCH: DatapathId = DatapathId(0x0102_0304_0506_0708);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Adds one frame by its name: how to write it.
type Add<'a> = &'a mut dyn FnMut(&'static str, &dyn Fn(&mut Vec<u8>) -> bool);

/// Every kind of event, as its name and its bytes.
fn events() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = Vec::new();
    let mut add = |name, write: &dyn Fn(&mut Vec<u8>) -> bool| {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes), "{name}");
        all.push((name, bytes));
    };
    of_switches(&mut add);
    of_commands(&mut add);
    of_calls(&mut add);
    of_the_zone(&mut add);
    of_ended_calls(&mut add);
    of_experimenters(&mut add);
    all
}

fn of_experimenters(add: Add<'_>) {
    let message =
        event::Experimenter { datapath: SWITCH, experimenter: 0x2320, exp_type: 7, data: &[1, 2, 3] };
    add("experimenter", &|out| event::write::experimenter(out, 22, &message));
}

fn of_switches(add: Add<'_>) {
    let port = PortRecord::new(PortFacts {
        port_no: PortNo(2),
        hw_addr: MacAddr([2, 0, 0, 0, 0, 9]),
        live: true,
        administratively_up: false,
        curr_speed_kbps: 1000,
        name: "s1-eth2",
    });
    let up = event::SwitchUp {
        datapath: SWITCH,
        n_buffers: 256,
        n_tables: 3,
        openflow: event::OpenFlowVersion::V1_3,
        ports: &[port],
    };
    add("switch_up", &|out| event::write::switch_up(out, 1, &up));
    add("switch_down", &|out| event::write::switch_down(out, 2, SWITCH));
    let packet = event::PacketIn {
        datapath: SWITCH,
        in_port: PortNo(2),
        buffer_id: Some(5),
        total_len: 60,
        reason: 1,
        table_id: 4,
        cookie: 0xabc,
        metadata: &[0x80, 0, 0, 4, 0, 0, 0, 2],
        data: &[1, 2, 3],
    };
    add("packet_in", &|out| event::write::packet_in(out, 3, &packet));
    let status = event::PortStatus { datapath: SWITCH, reason: 2, port: &port };
    add("port_status", &|out| event::write::port_status(out, 4, &status));
    let removed = event::FlowRemoved {
        datapath: SWITCH,
        cookie: ZoneId(3).stamp(7),
        duration_s: 8,
        duration_ns: 9,
        packet_count: 10,
        byte_count: 11,
        priority: 12,
        idle_timeout_s: 13,
        hard_timeout_s: 14,
        reason: 1,
        table_id: 2,
        matching: &[],
    };
    add("flow_removed", &|out| event::write::flow_removed(out, 5, &removed));
}

/// The results of an app's commands.
fn of_commands(add: Add<'_>) {
    let error = ErrorCode { kind: 5, code: 1 };
    let complaint = event::SwitchError { datapath: SWITCH, error, ticket: 6, reason: "table full" };
    add("switch_error", &|out| event::write::switch_error(out, 6, &complaint));
    let stats = event::StatsReply { datapath: SWITCH, ticket: 7, multipart: 1, more: true, body: &[9, 9] };
    add("stats_reply", &|out| event::write::stats_reply(out, 7, &stats));
    let receipt = Receipt { ticket: 8, outcome: Outcome::Failed, error, reason: "no" };
    add("receipt", &|out| event::write::receipt(out, 8, SWITCH, &receipt));
    add("dropped", &|out| event::write::dropped(out, 9, 1000));
}

fn of_calls(add: Add<'_>) {
    let topic = event::Topic {
        topic: "link.up",
        publisher: ZoneId(2),
        run: 0x0103,
        number: 4,
        is_retained: true,
        payload: b"x",
    };
    add("topic", &|out| event::write::topic(out, 10, &topic));
    let query = event::Query {
        ticket: 11,
        caller: event::Caller { number: 1, name: "fw", grant: b"{}" },
        service: "paths",
        form: Form::Stream,
        deadline_ms: 500,
        credit_bytes: 4096,
        payload: b"?",
    };
    add("query", &|out| event::write::query(out, 11, &query));
    let reply = event::QueryReply { ticket: 12, status: 0, more: false, payload: b"!" };
    add("query_reply", &|out| event::write::query_reply(out, 12, &reply));
}

fn of_ended_calls(add: Add<'_>) {
    let credit = event::Credit { ticket: 11, bytes: 512 };
    add("query_credit", &|out| event::write::query_credit(out, 20, credit));
    let over = event::QueryOver { ticket: 11, status: event::CANCELLED };
    add("query_over", &|out| event::write::query_over(out, 21, over));
}

/// Events about the app itself.
fn of_the_zone(add: Add<'_>) {
    add("tick", &|out| event::write::tick(out, 13, 123_456));
    add("shutdown", &|out| event::write::shutdown(out, 14));
    let soft = event::SoftLimit {
        datapath: SWITCH,
        quota: event::quota::RULES_PER_DATAPATH,
        used: 81,
        soft: 80,
        hard: 100,
    };
    add("soft_limit", &|out| event::write::soft_limit(out, 15, &soft));
    let memory = event::SoftLimit {
        datapath: DatapathId(0),
        quota: event::quota::MEMORY_KIB,
        used: 61 << 10,
        soft: 51 << 10,
        hard: 64 << 10,
    };
    add("soft_limit", &|out| event::write::soft_limit(out, 16, &memory));
}

/// Every kind of command, as its name and its bytes.
fn commands() -> Vec<(&'static str, Vec<u8>)> {
    let write = |(name, what)| {
        let mut bytes = Vec::new();
        assert!(command::write::command(
            &mut bytes,
            &Command { datapath: SWITCH, ticket: 77, wants_receipt: true, what }
        ));
        (name, bytes)
    };
    let mut all: Vec<_> = changes_of_switches().into_iter().chain(other_commands()).map(write).collect();
    all.push(("bundle", bundle(SWITCH, 2)));
    all
}

/// A bundle for [`SWITCH`] of so many flow mods for a switch.
fn bundle(of: DatapathId, count: usize) -> Vec<u8> {
    let (mut bytes, mut body) = (vec![0; 24], Vec::new());
    let what = What::FlowMod(command::FlowMod { priority: 8, ..command::FlowMod::ADD });
    for _ in 0..count {
        command::write::command(&mut body, &Command { datapath: of, ticket: 0, wants_receipt: false, what });
    }
    bytes.extend_from_slice(&body);
    // Whatever is in it, the header is that of a bundle.
    if !command::write::finish_bundle(&mut bytes, 0, SWITCH, 77) {
        let length = u32::try_from(24 + body.len()).expect("a short bundle");
        bytes = [&[20, 0, 1, 0], &length.to_le_bytes()[..], &SWITCH.0.to_le_bytes(), &77u64.to_le_bytes()]
            .concat();
        bytes.extend_from_slice(&body);
    }
    bytes
}

fn malformed(bundle: &[u8]) -> abi::Malformed {
    Command::read(&Frame::read(bundle).expect("a frame")).expect_err("not a bundle")
}

#[test]
fn a_bundle_holds_only_whole_flow_mods_for_its_own_switch() {
    let is_refused = |bytes: &[u8], offset| assert_eq!(malformed(bytes).offset, offset);
    is_refused(&bundle(SWITCH, 0), 24);
    is_refused(&bundle(DatapathId(1), 2), 24);
    let good = bundle(SWITCH, 2);
    let inner = (good.len() - 24) / 2;
    for (at, offset) in [(24, 24), (24 + inner, 24 + inner), (24 + inner + 8, 24 + inner)] {
        // The kind of the first and the second, and the switch of the second.
        let mut bytes = good.clone();
        bytes[at] ^= 0xff;
        is_refused(&bytes, offset);
    }
    for (length, offset) in [(0, 28), (23, 28), (200, 28)] {
        let mut bytes = good.clone();
        bytes[28] = length;
        is_refused(&bytes, offset);
    }
    let whole = Command::read(&Frame::read(&good).unwrap()).unwrap();
    let What::Bundle(read) = whole.what else { panic!("{whole:?}") };
    assert_eq!(read.flow_mods().map(|it| it.bytes.to_vec()).collect::<Vec<_>>().concat(), good[24..]);
}

#[test]
fn a_bundle_is_bounded_and_one_that_is_too_large_is_not_written() {
    let most = bundle(SWITCH, command::BUNDLE_MAX);
    assert!(Command::read(&Frame::read(&most).unwrap()).is_ok());
    let offset = most.len();
    assert_eq!(malformed(&bundle(SWITCH, command::BUNDLE_MAX + 1)).offset, offset);
    for length in [0, 7, abi::header::MAX_FRAME_LEN] {
        let mut bytes = vec![1; 1 + 24 + length];
        assert!(!command::write::finish_bundle(&mut bytes, 1, SWITCH, 1));
        assert_eq!(bytes, [1]);
    }
}

fn changes_of_switches() -> Vec<(&'static str, What<'static>)> {
    vec![
        (
            "subscribe",
            What::Subscribe(command::Subscribe { events: 8, packets: &[0x80, 0, 0, 4, 0, 0, 0, 2] }),
        ),
        (
            "packet_out",
            What::PacketOut(command::PacketOut {
                buffer_id: None,
                in_port: PortNo::CONTROLLER,
                actions: &[0, 0, 0, 16, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0],
                data: &[1, 2],
            }),
        ),
        (
            "flow_mod",
            What::FlowMod(command::FlowMod {
                cookie: 1,
                cookie_mask: 2,
                buffer_id: Some(3),
                out_port: PortNo(4),
                out_group: 5,
                idle_timeout_s: 6,
                hard_timeout_s: 7,
                priority: 8,
                flags: 1,
                table_id: 9,
                command: 4,
                matching: &[0x80, 0, 0, 4, 0, 0, 0, 2],
                instructions: &[0, 5, 0, 8, 0, 0, 0, 0],
            }),
        ),
        (
            "group_mod",
            What::GroupMod(command::GroupMod { command: 1, group_type: 3, group_id: 9, buckets: &[1] }),
        ),
        ("meter_mod", What::MeterMod(command::MeterMod { command: 2, flags: 1, meter_id: 9, bands: &[1] })),
        (
            "port_mod",
            What::PortMod(command::PortMod {
                port_no: PortNo(1),
                hw_addr: MacAddr([1; 6]),
                config: 1,
                mask: 1,
            }),
        ),
    ]
}

fn other_commands() -> Vec<(&'static str, What<'static>)> {
    vec![
        ("stats_request", What::StatsRequest(command::StatsRequest { multipart: 4, body: &[0xff; 8] })),
        ("barrier", What::Barrier),
        ("publish", What::Publish(command::Publish { topic: "host.moved", retain: true, payload: b"h1" })),
        (
            "query",
            What::Query(command::Ask {
                service: "paths",
                form: Form::Stream,
                deadline_ms: 500,
                credit_bytes: 4096,
                payload: b"?",
            }),
        ),
        ("query_answer", What::QueryAnswer(command::QueryAnswer { status: 1, more: true, payload: b"!" })),
        ("log", What::Log(command::Log { level: 2, text: "hello" })),
        ("query_credit", What::QueryCredit(512)),
        ("query_cancel", What::QueryCancel),
    ]
}

#[test]
fn no_layout_ever_changes() {
    let golden = include_str!("golden/frames.txt");
    if std::env::var_os("BURNET_WRITE_GOLDEN").is_some() {
        let head: String = golden
            .lines()
            .filter(|line| line.starts_with('#'))
            .fold(String::new(), |all, line| all + line + "\n");
        let lines = events().into_iter().chain(commands());
        let all = lines.fold(head, |all, (name, bytes)| all + &format!("{name} {}\n", hex(&bytes)));
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/frames.txt"), all).unwrap();
        return;
    }
    let mut expected = golden.lines().filter(|line| !line.starts_with('#'));
    for (name, bytes) in events().iter().chain(&commands()) {
        assert_eq!(expected.next(), Some(format!("{name} {}", hex(bytes)).as_str()));
    }
    assert_eq!(expected.next(), None);
}

#[test]
fn what_is_written_is_read() {
    for (name, bytes) in events() {
        let event = Event::read(&Frame::read(&bytes).unwrap()).unwrap();
        assert_eq!(
            format!("{event:?}").split(['(', ' ', '{']).next().map(|s| s.to_lowercase()),
            Some(name.replace('_', ""))
        );
    }
    for (name, bytes) in commands() {
        let command = Command::read(&Frame::read(&bytes).unwrap()).unwrap();
        let mut again = Vec::new();
        assert!(command::write::command(&mut again, &command));
        assert_eq!(hex(&again), hex(&bytes), "{name}");
    }
}

#[test]
fn a_frame_that_is_cut_anywhere_is_refused() {
    for (name, bytes) in events().iter().chain(&commands()) {
        for length in 0..bytes.len() {
            assert!(Frame::read(&bytes[..length]).is_err(), "{name} cut to {length}");
        }
    }
}

#[test]
fn a_switch_of_a_version_that_nobody_speaks_is_refused() {
    let (_, bytes) = events().into_iter().find(|(name, _)| *name == "switch_up").unwrap();
    for version in 0..=u8::MAX {
        let mut bytes = bytes.clone();
        bytes[31] = version;
        let event = Event::read(&Frame::read(&bytes).unwrap());
        match (version, event) {
            (1 | 4, Ok(Event::SwitchUp(up))) => assert_eq!(up.openflow as u8, version),
            (1 | 4, other) => panic!("{version}: {other:?}"),
            (_, event) => assert_eq!(event.unwrap_err().offset, 31, "{version}"),
        }
    }
}

#[test]
fn a_frame_longer_than_the_limit_is_not_written() {
    let mut bytes = vec![1];
    let big = vec![0; abi::header::MAX_FRAME_LEN];
    let topic = event::Topic {
        topic: "t",
        publisher: ZoneId(1),
        run: 1,
        number: 1,
        is_retained: false,
        payload: &big,
    };
    assert!(!event::write::topic(&mut bytes, 1, &topic));
    assert_eq!(bytes, [1]);
}

#[test]
fn a_long_port_name_is_cut_at_a_character() {
    let facts = PortFacts {
        port_no: PortNo(1),
        hw_addr: MacAddr::default(),
        live: false,
        administratively_up: false,
        curr_speed_kbps: 0,
        name: "0123456789abcdeé",
    };
    assert_eq!(PortRecord::new(facts).facts().name, "0123456789abcde");
}

proptest! {
    #[test]
    fn whatever_the_body_is_reading_ends(kind in 0u16..32, body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = vec![0; 24];
        bytes[..2].copy_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&body);
        let length = u32::try_from(bytes.len()).unwrap();
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        let frame = Frame::read(&bytes).unwrap();
        let _ = Event::read(&frame);
        if let Ok(command) = Command::read(&frame) {
            let mut again = Vec::new();
            prop_assert!(command::write::command(&mut again, &command));
        }
    }
}
