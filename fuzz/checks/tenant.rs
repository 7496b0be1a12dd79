//! What must hold for the messages of a tenant. The fuzz target calls it with what it finds, and a test of the slicer crate with what was
//! kept (`corpus/tenant_messages`).
//!
//! In: any bytes. Out: nothing, or a panic that says what does not hold. The kernel is the judge: it compares each command with the grant of the
//! slice, as it does for an app.

use abi::event::SwitchUp;
use abi::{Receipt, ZoneId};
use flow::{DatapathId, ErrorCode, Field, MacAddr, Match, PortNo};
use kernel::{Bounds, Decision, Grant, Kernel, Refusal};
use openflow::message::{FlowRemoved, FlowStats, ReplyBody, RequestBody};
use openflow::{HEADER_LEN, Header, Message, Version};
use slicer::{
    AddressPlan, Cause, Command, Connection, Event, HostPlan, Isolation, Limit, Limits, Numbers, Outcome,
    Output, PRIORITY_MAX, PacketIn, PortFacts, PortPlan, SlicePlan, Slicer, SwitchPlan,
};
use std::collections::VecDeque;

const DATAPATH: DatapathId = DatapathId(7);
const OWN: ZoneId = ZoneId(5);
const TAG: u16 = 42;
/// The ports: that of the switch, that of the tenant, and whether no other slice has it.
const PORTS: [(u32, u32, bool); 4] = [(2, 1, true), (3, 2, true), (5, 3, false), (6, 4, false)];
/// The most pieces of rules.
const RULES_MAX: u32 = 64;
/// The most that one input may cause: each of the rules of the slice may change a few times, and there are as many groups.
const OUTPUTS_MAX: usize = 4_096;
/// The bits of a cookie that are the slice's.
const COOKIE_MASK: u64 = (1 << 48) - 1;

/// A session with a virtual switch: the first byte chooses versions and isolation. Then come pieces, each with a byte that says what it is,
/// a byte for its length, and its bytes.
pub fn tenant_messages(bytes: &[u8]) {
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let version = |bit: u8| if first & bit == 0 { Version::V1_3 } else { Version::V1_0 };
    let isolation = match first & 12 {
        0 | 8 => Isolation::Vlan(TAG),
        4 => Isolation::Flowspace(vec![
            Match::any().with(Field::EthType, 0x800_u16).with(Field::Ipv4Dst, 0x0a00_0001_u32),
        ]),
        _ => Isolation::Address(addresses()),
    };
    let mut world = World::new(isolation, version(2));
    world.greet(version(1));
    while let [what, length, behind @ ..] = rest {
        let (piece, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        world.take(*what, version(1), piece);
    }
}

/// The slice, and the kernel that its commands go to.
struct World {
    slicer: Slicer,
    kernel: Kernel,
    on: Version,
    now_ms: u64,
    /// How many of the next commands fail.
    failing: u8,
    /// The number of the last rule that the slice added.
    last_rule: u64,
}

impl World {
    fn new(isolation: Isolation, on: Version) -> World {
        let grant = grant(&isolation);
        let mut world = World {
            slicer: Slicer::new(&plan(isolation)).expect("a plan that is right"),
            kernel: Kernel::new(7),
            on,
            now_ms: 1_000,
            failing: 0,
            last_rule: 0,
        };
        world.kernel.attach(OWN, "blue", grant, 0);
        let openflow =
            if on == Version::V1_0 { abi::OpenFlowVersion::V1_0 } else { abi::OpenFlowVersion::V1_3 };
        let up = SwitchUp { datapath: DATAPATH, n_buffers: 0, n_tables: 1, openflow, ports: &[] };
        let mut bytes = Vec::new();
        abi::event::write::switch_up(&mut bytes, 1, &up);
        let frame = abi::Frame::read(&bytes).expect("our own frame");
        let _ = world.kernel.on_event(&frame, 0, &mut Vec::new());
        world.kernel.on_no_answer(DATAPATH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
        world.switch_up();
        world
    }

    fn switch_up(&mut self) {
        let ports = (1..=6).map(|port| facts(port, true)).collect();
        self.happens(Event::SwitchUp { datapath: DATAPATH, version: self.on, ports });
    }

    fn greet(&mut self, version: Version) {
        let connection = Connection { datapath: DATAPATH, controller: 0 };
        self.happens(Event::ControllerUp(connection));
        let hello = Header { version, kind: 0, length: HEADER_LEN as u16, xid: 1 };
        self.happens(Event::Message(connection, &hello.to_bytes()));
    }

    /// One piece of the input.
    fn take(&mut self, what: u8, version: Version, piece: &[u8]) {
        let connection = Connection { datapath: DATAPATH, controller: 0 };
        match what & 7 {
            // A message whose type, transaction id and body are the input's: the length is right.
            0..=3 => {
                let Some((kind, body)) = piece.split_first() else { return };
                let length = (HEADER_LEN + body.len()) as u16;
                let header = Header { version, kind: *kind, length, xid: u32::from(what) };
                self.happens(Event::Message(connection, &[&header.to_bytes(), body].concat()));
            }
            4 => self.happens(Event::Message(connection, piece)),
            5 => self.packet_in(what >> 3, piece),
            6 => self.failing = piece.first().copied().unwrap_or(1),
            _ => self.other(what >> 3, piece, version),
        }
    }

    fn packet_in(&mut self, how: u8, data: &[u8]) {
        let cause = match how & 3 {
            0 => Cause::Own(self.last_rule),
            1 => Cause::Own(0),
            2 => Cause::Other,
            _ => Cause::Unknown,
        };
        let in_port = PortNo(1 + u32::from(how >> 2) % 6);
        let buffer_id = (how & 4 != 0).then_some(u32::from(how));
        self.happens(Event::PacketIn(PacketIn {
            datapath: DATAPATH,
            in_port,
            buffer_id,
            total_len: data.len() as u16,
            reason: how & 1,
            cause,
            data,
        }));
    }

    fn other(&mut self, how: u8, piece: &[u8], version: Version) {
        let port = piece.first().map_or(2, |port| u32::from(port % 7));
        match how & 7 {
            0 => self.now_ms += 1_000 * u64::from(port),
            1 => self.happens(Event::PortStatus { datapath: DATAPATH, reason: 2, port: facts(port, false) }),
            2 => self.happens(Event::PortStatus { datapath: DATAPATH, reason: 1, port: facts(port, false) }),
            3 => self.happens(Event::PortStatus { datapath: DATAPATH, reason: 0, port: facts(port, true) }),
            4 => {
                self.happens(Event::SwitchDown(DATAPATH));
                self.switch_up();
                self.greet(version);
            }
            5 => {
                self.happens(Event::ControllerDown(Connection { datapath: DATAPATH, controller: 0 }));
                self.greet(version);
            }
            _ => {
                let removed = FlowRemoved {
                    matching: Match::any().with(Field::InPort, port),
                    cookie: self.last_rule & COOKIE_MASK,
                    priority: 3,
                    reason: (how >> 3) & 3,
                    table_id: 0,
                    duration_s: 1,
                    duration_ns: 0,
                    idle_timeout_s: 1,
                    hard_timeout_s: 0,
                    packet_count: 1,
                    byte_count: 60,
                };
                self.happens(Event::FlowRemoved { datapath: DATAPATH, removed });
            }
        }
    }

    /// The slice decides on an event, and the kernel on what the slice wants. All of it is bounded.
    fn happens(&mut self, event: Event<'_>) {
        let mut queue = VecDeque::new();
        self.decide(event, &mut queue);
        let mut count = 0;
        while let Some(output) = queue.pop_front() {
            count += 1;
            assert!(count <= OUTPUTS_MAX, "one event causes more than {OUTPUTS_MAX} outputs");
            match output {
                Output::Tell { bytes, .. } => {
                    let message = Message::decode(&bytes);
                    assert!(message.is_ok(), "the tenant receives no message: {message:?}: {bytes:?}");
                }
                Output::End { .. } | Output::Soft { .. } => {}
                Output::Command { datapath, ticket, command, .. } => {
                    assert_eq!(datapath, DATAPATH);
                    self.command(ticket, &command, &mut queue);
                }
            }
        }
        let (rules, pieces) = self.slicer.rules(DATAPATH).expect("the slice has the switch");
        assert!(
            rules <= RULES_MAX as usize && pieces <= RULES_MAX as usize,
            "{rules} rules of {pieces} pieces"
        );
    }

    fn decide(&mut self, event: Event<'_>, queue: &mut VecDeque<Output>) {
        let mut outputs = Vec::new();
        self.slicer.on_event(self.now_ms, event, &mut outputs);
        queue.extend(outputs);
    }

    /// A command is within the grant, whatever the tenant said.
    fn command(&mut self, ticket: u64, command: &Command, queue: &mut VecDeque<Output>) {
        if let Command::FlowMod(flow_mod) = command {
            assert!((1..=PRIORITY_MAX).contains(&flow_mod.priority), "{flow_mod:?}");
            self.last_rule = self.last_rule.max(flow_mod.cookie);
        }
        let mut bytes = Vec::new();
        assert!(
            slicer::abi_frames::write_command(&mut bytes, DATAPATH, ticket, true, command),
            "{command:?}"
        );
        let frame = abi::Frame::read(&bytes).expect("our own frame");
        let sent = match self.kernel.on_command(OWN, &frame, self.now_ms, &mut Vec::new()) {
            Decision::Send(sent) => sent.ticket,
            Decision::Refuse(refusal @ Refusal::Beyond(..)) => panic!("{refusal}: {command:?}"),
            _ => {
                let outcome = Outcome::Refused(ErrorCode { kind: 0, code: 0 });
                return self.decide(Event::Answer { datapath: DATAPATH, ticket, outcome }, queue);
            }
        };
        self.kernel.on_sent();
        let fails = self.failing > 0;
        self.failing = self.failing.saturating_sub(1);
        if sent != ticket {
            // A group or meter: the kernel hears first whether the switch has it.
            let outcome = if fails { abi::Outcome::Failed } else { abi::Outcome::Programmed };
            let error = ErrorCode { kind: 0, code: 0 };
            self.kernel.on_receipt(&Receipt { ticket: sent, outcome, error, reason: "" });
        }
        let event = match command {
            _ if fails => failed(ticket),
            Command::Statistics(request) => statistics(ticket, request, self.last_rule),
            _ => Event::Answer { datapath: DATAPATH, ticket, outcome: Outcome::Done },
        };
        self.decide(event, queue);
    }
}

fn failed(ticket: u64) -> Event<'static> {
    let outcome = Outcome::Failed(ErrorCode { kind: 5, code: 1 });
    Event::Answer { datapath: DATAPATH, ticket, outcome }
}

/// What the switch answers: one rule of the slice, or nothing.
fn statistics(ticket: u64, request: &RequestBody, cookie: u64) -> Event<'static> {
    let flow = || FlowStats {
        table_id: 0,
        duration_s: 1,
        duration_ns: 0,
        priority: 3,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: 0,
        cookie,
        packet_count: u64::MAX,
        byte_count: u64::MAX,
        matching: Match::any(),
        instructions: Vec::new(),
    };
    let body = match request {
        RequestBody::PortStats(_) => ReplyBody::PortStats(Vec::new()),
        RequestBody::Queue { .. } => ReplyBody::Queue(Vec::new()),
        RequestBody::Group(_) => ReplyBody::Group(Vec::new()),
        RequestBody::Meter(_) => ReplyBody::Meter(Vec::new()),
        _ => ReplyBody::Flow(vec![flow(), flow()]),
    };
    Event::Statistics { datapath: DATAPATH, ticket, more: false, body }
}

fn facts(port: u32, is_live: bool) -> PortFacts {
    PortFacts {
        port: PortNo(port),
        hw_addr: MacAddr([2, 0, 0, 0, 0, port as u8]),
        name: format!("s7-eth{port}"),
        is_live,
        curr_speed_kbps: 10_000_000,
    }
}

fn plan(isolation: Isolation) -> SlicePlan {
    let port = |(port, shown, is_edge): (u32, u32, bool)| PortPlan {
        port: PortNo(port),
        shown_as: PortNo(shown),
        is_edge,
    };
    SlicePlan {
        name: "blue".to_owned(),
        isolation,
        is_read_only: false,
        switches: vec![SwitchPlan {
            datapath: DATAPATH,
            shown_as: DatapathId(0x77),
            ports: PORTS.into_iter().map(port).collect(),
        }],
        links: Vec::new(),
        limits: Limits { rules: Limit { soft: RULES_MAX, hard: RULES_MAX }, ..Limits::default() },
        numbers: Numbers { groups: 100..104, meters: 200..204 },
    }
}

/// The tenant has 10.0.0.0/30, and 172.16.3.0/30 between switches. One host is at each edge port.
fn addresses() -> AddressPlan {
    let host = |last: u8, port| HostPlan {
        address: [10, 0, 0, last].into(),
        datapath: DATAPATH,
        port: PortNo(port),
    };
    AddressPlan {
        tenant: [10, 0, 0, 0].into(),
        physical: [172, 16, 3, 0].into(),
        length: 30,
        hosts: vec![host(1, 2), host(2, 3)],
    }
}

/// The grant that a node gives such a slice.
fn grant(isolation: &Isolation) -> Grant {
    let flowspace = match isolation {
        Isolation::Vlan(tag) => vec![Match::any().with(Field::VlanVid, tag | 0x1000)],
        Isolation::Flowspace(matches) => matches.clone(),
        Isolation::Address(addresses) => addresses.physical_packets().to_vec(),
    };
    let own = PORTS.iter().filter(|(.., is_edge)| *is_edge).map(|(port, ..)| PortNo(*port));
    let bounds = Bounds {
        flowspace: Some(flowspace),
        ports: Some(PORTS.iter().map(|(port, ..)| PortNo(*port)).chain([PortNo::TABLE]).collect()),
        own_ports: own.collect(),
        ..Bounds::default()
    };
    let grant = Grant::nothing().with_packets_in(bounds.clone()).with_packets_out(bounds.clone());
    grant.with_rules(bounds)
}
