//! All of a worker that a packet-in meets, without sockets: a session, a kernel, a trusted learning switch that knows all hosts.
//!
//! For the bench that times and counts it and for the test that counts what it allocates. Never opens a socket.

use std::hint::black_box;

use abi::{Frame, ZoneId};
use flow::{DatapathId, Field, Match, PortNo};
use kernel::{Bounds, Capability, Decision, Grant, Kernel, Unanswered};
use learning_switch::LearningSwitch;
use openflow::message::*;
use openflow::view::PacketInView;
use openflow::{Body, Message, Version};
use southbound::session::Session;
use southbound::{SessionOutput, SouthboundConfig, SouthboundEvent, Tag, Turn};
use zone::trusted::{TrustedApp, TrustedCode};

/// Packet-ins of a round: what one read brings is of this order.
pub const BATCH: usize = 256;

/// Hosts that send to each other in turn; the learning switch knows them all.
const HOSTS: u32 = 1000;

const ZONE: ZoneId = ZoneId(1);

/// How far a packet-in goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    View,
    Session,
    Dispatch,
    App,
    Path,
}

#[allow(dead_code, reason = "only the bench goes stage by stage")]
pub const STAGES: [(&str, Stage); 5] = [
    ("view", Stage::View),
    ("session", Stage::Session),
    ("dispatch", Stage::Dispatch),
    ("app", Stage::App),
    ("path", Stage::Path),
];

/// All of a worker that a packet-in meets.
pub struct Worker {
    session: Session,
    kernel: Kernel,
    app: TrustedApp,
    frame: Vec<u8>,
    events: Vec<u8>,
    commands: Vec<u8>,
    out: Vec<u8>,
    effects: Vec<kernel::Effect>,
}

fn encoded(version: Version, body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    Message { version, xid: 1, body }.encode(&mut bytes).unwrap();
    bytes
}

/// Host `number` of the ring sends to the next one: 64 bytes, kept by the switch.
fn packet_in(version: Version, number: u32) -> Vec<u8> {
    let address = |host: u32| {
        let [_, a, b, c] = host.to_be_bytes();
        [2, 0, 0, a, b, c]
    };
    let mut data = vec![0; 64];
    data[..6].copy_from_slice(&address((number + 1) % HOSTS));
    data[6..12].copy_from_slice(&address(number % HOSTS));
    data[12..14].copy_from_slice(&[0x08, 0x00]);
    let packet_in = PacketIn {
        buffer_id: number,
        total_len: 64,
        reason: 0,
        table_id: 0,
        cookie: if version == Version::V1_0 { u64::MAX } else { 0 },
        matching: Match::any().with(Field::InPort, PortNo(1 + number % 2)),
        data,
    };
    encoded(version, Body::PacketIn(packet_in))
}

/// What its manifest asks for, with the bounds that are there.
fn granted() -> Grant {
    let held = [Capability::PacketIn, Capability::PacketOut, Capability::ViewRead, Capability::RuleWrite];
    let bounds = Bounds { priorities: 1..=9_999, ..Bounds::default() };
    held.into_iter().fold(Grant::nothing(), Grant::with).with_rules(bounds)
}

impl Worker {
    /// A switch that is up, an app that has subscribed, and hosts that it has learned.
    pub fn new(version: Version) -> Worker {
        let code = TrustedCode::built_in(burnet_sdk::table::<LearningSwitch>());
        let mut kernel = Kernel::new(7);
        kernel.attach(ZONE, "learning-switch", granted(), 0);
        let session = Session::new(&SouthboundConfig::default(), 0);
        let mut worker = Worker {
            session,
            kernel,
            app: code.start(b"{}").unwrap(),
            frame: Vec::new(),
            events: Vec::new(),
            commands: Vec::new(),
            out: Vec::new(),
            effects: Vec::new(),
        };
        worker.serve_app(Stage::Path);
        worker.come_up(version);
        let all: Vec<Vec<u8>> = (0..HOSTS).map(|number| packet_in(version, number)).collect();
        worker.round(Stage::Path, &all);
        worker.out.clear();
        worker.round(Stage::Path, &all);
        assert!(worker.out.len() > 72 * all.len(), "each is answered with a flow mod");
        worker
    }

    fn come_up(&mut self, version: Version) {
        let features = FeaturesReply {
            datapath_id: DatapathId(1),
            n_buffers: 256,
            n_tables: 1,
            auxiliary_id: 0,
            capabilities: 0,
            actions: 0,
            ports: Vec::new(),
        };
        let mut handshake = vec![Body::Hello(Hello::default()), Body::FeaturesReply(features)];
        if version == Version::V1_3 {
            let body = ReplyBody::PortDesc(Vec::new());
            handshake.push(Body::MultipartReply(MultipartReply { flags: 0, body }));
        }
        let handshake: Vec<Vec<u8>> = handshake.into_iter().map(|body| encoded(version, body)).collect();
        self.hear(Stage::App, &handshake);
        let Worker { session, out, frame, events, kernel, effects, .. } = self;
        let mut sink = |output: SessionOutput<'_>| {
            if let SessionOutput::Out(SouthboundEvent::Event(bytes)) = output {
                let frame = Frame::read(bytes).unwrap();
                kernel.on_event(&frame, 0, effects).unwrap();
                // It has no rules from before.
                let (asked, why) = (kernel::Asked::Owners, kernel::Unanswered::Refused);
                kernel.on_no_answer(frame.datapath(), asked, why, 0);
                events.extend_from_slice(bytes);
            }
        };
        session.admit(&mut Turn { now_ms: 0, out, frame, sink: &mut sink });
        self.serve_app(Stage::Path);
    }

    /// What one read has brought.
    pub fn round(&mut self, stage: Stage, messages: &[Vec<u8>]) {
        self.out.clear();
        if stage == Stage::View {
            messages.iter().for_each(|message| drop(black_box(PacketInView::read(black_box(message)))));
            return;
        }
        self.hear(stage, messages);
        if stage >= Stage::App {
            self.serve_app(stage);
        }
        black_box(&self.out);
    }

    /// Bytes of the messages that the last round led to.
    #[allow(dead_code, reason = "only the test asks")]
    pub fn said(&self) -> usize {
        self.out.len()
    }

    /// As in a node, one turn takes all messages of a read.
    fn hear(&mut self, stage: Stage, messages: &[Vec<u8>]) {
        let Worker { session, kernel, events, frame, out, effects, .. } = self;
        let mut sink = |output: SessionOutput<'_>| {
            let SessionOutput::Out(SouthboundEvent::Event(bytes)) = output else { return };
            if stage == Stage::Session {
                black_box(bytes);
                return;
            }
            let hearers = kernel.on_event(&Frame::read(bytes).unwrap(), 0, effects).unwrap();
            if stage == Stage::Dispatch {
                black_box(hearers);
                return;
            }
            hearers.for_each(|_| events.extend_from_slice(bytes));
        };
        let mut turn = Turn { now_ms: 0, out, frame, sink: &mut sink };
        for message in messages {
            session.on_message(black_box(message), &mut turn).unwrap();
        }
    }

    fn serve_app(&mut self, stage: Stage) {
        if !self.events.is_empty() {
            self.app.on_events(&self.events).unwrap();
            self.events.clear();
        }
        self.app.take_commands(&mut self.commands);
        if stage < Stage::Path {
            black_box(&self.commands);
            return;
        }
        let Worker { session, kernel, commands, frame, out, effects, .. } = self;
        let mut rest = &commands[..];
        while !rest.is_empty() {
            let (command, behind) = Frame::split(rest).unwrap();
            rest = behind;
            if let Some(rule) = kernel.on_prepared(ZONE, &command, 0, effects) {
                let tag = Tag { zone: ZONE, generation: 0, ticket: rule.of_use.ticket };
                let waiting = out.len();
                let mut turn = Turn { now_ms: 0, out, frame, sink: &mut |_| {} };
                session.send_rule(rule, tag, waiting, &mut turn).unwrap();
                kernel.on_sent();
            } else if let Decision::Send(command) = kernel.on_command(ZONE, &command, 0, effects) {
                let cookie = match command.what {
                    abi::command::What::FlowMod(flow_mod) => flow_mod.cookie,
                    _ => 0,
                };
                let tag = Tag { zone: ZONE, generation: 0, ticket: command.ticket };
                let waiting = out.len();
                let mut turn = Turn { now_ms: 0, out, frame, sink: &mut |_| {} };
                session.send(&command, cookie, tag, waiting, &mut turn).unwrap();
                kernel.on_sent();
            }
        }
        // What the kernel would ask the switch it does without, as of one that cannot be asked.
        for effect in effects.drain(..) {
            if let kernel::Effect::Ask { datapath, asked } = effect {
                kernel.on_no_answer(datapath, asked, Unanswered::Refused, 0);
            }
        }
    }
}

pub fn batch(version: Version) -> Vec<Vec<u8>> {
    (0..BATCH as u32).map(|number| packet_in(version, number)).collect()
}
