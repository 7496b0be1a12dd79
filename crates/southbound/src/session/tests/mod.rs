//! A session against scripted bytes: no socket, no clock.

mod bundles;
mod commands;
mod damage;
mod handshake;
mod life;
mod paced;
mod roles;

use super::*;
use crate::fault::Refused;
use crate::receipts::Tag;
use crate::reply_watch::Departure;
use crate::turn::{SessionOutput, SouthboundEvent};
use abi::command::{Command, What};
use abi::{Event, Frame, Outcome, Receipt, ZoneId};
use flow::{MacAddr, PortNo};
use openflow::message::*;

const ZONE: ZoneId = ZoneId(3);
const DATAPATH: DatapathId = DatapathId(0x2a);

/// A session on a test bench: its inputs and outputs.
struct Bench {
    session: Session,
    now_ms: u64,
    out: Vec<u8>,
    events: Vec<Vec<u8>>,
    to_zones: Vec<(ZoneId, Vec<u8>)>,
    lines: Vec<String>,
    bundles_over: usize,
    departures: Vec<Departure>,
}

impl Bench {
    fn with(config: &SouthboundConfig) -> Bench {
        let mut bench = Bench {
            session: Session::new(config, 0),
            now_ms: 0,
            out: Vec::new(),
            events: Vec::new(),
            to_zones: Vec::new(),
            lines: Vec::new(),
            bundles_over: 0,
            departures: Vec::new(),
        };
        bench.turn(|session, turn| session.open(turn));
        bench
    }

    /// A session of the usual configuration that has sent its hello.
    fn opened() -> Bench {
        let mut bench = Bench::with(&SouthboundConfig::default());
        assert!(matches!(bench.said()[..], [Body::Hello(_)]));
        bench
    }

    /// A session that is up, with nothing left to read.
    fn up(version: Version) -> Bench {
        let mut bench = Bench::opened();
        bench.come_up(version);
        bench.said();
        bench
    }

    /// Goes from the sent hello to a session that is up. Its events on going up remain to be read.
    fn come_up(&mut self, version: Version) {
        self.hear(version, Body::Hello(Hello::default())).unwrap();
        self.hear(version, Body::FeaturesReply(features(version))).unwrap();
        self.said();
        if version == Version::V1_3 {
            self.hear(version, port_desc(0, vec![port(1), port(2)])).unwrap();
        }
        assert_eq!(self.session.state(), State::Identified);
        self.turn(|session, turn| session.admit(turn));
        self.events.clear();
    }

    fn turn<T>(&mut self, act: impl FnOnce(&mut Session, &mut Turn<'_>) -> T) -> T {
        let Bench { session, now_ms, out, events, to_zones, lines, bundles_over, departures } = self;
        let mut sink = |effect: SessionOutput<'_>| match effect {
            SessionOutput::Out(SouthboundEvent::Event(frame)) => events.push(frame.to_vec()),
            SessionOutput::Out(SouthboundEvent::ToZone { zone, frame, .. }) => {
                to_zones.push((zone, frame.to_vec()))
            }
            SessionOutput::Out(SouthboundEvent::BundleOver { datapath }) => {
                assert_eq!(datapath, DATAPATH);
                *bundles_over += 1;
            }
            SessionOutput::Out(SouthboundEvent::LeftProfile { datapath, profile, departure }) => {
                assert_eq!((datapath, profile), (DATAPATH, "hp"));
                departures.push(*departure);
            }
            SessionOutput::Out(SouthboundEvent::Ended { .. } | SouthboundEvent::Entries { .. }) => {
                unreachable!("a session does not end itself, and knows no profile")
            }
            SessionOutput::Line(line) => {
                lines.push(format!("{} {:?} {}", line.message, line.place, line.text))
            }
        };
        act(session, &mut Turn { now_ms: *now_ms, out, frame: &mut Vec::new(), sink: &mut sink })
    }

    fn hear_bytes(&mut self, bytes: &[u8]) -> Result<Step, SessionEnd> {
        let now_ms = self.now_ms;
        self.session.heard(bytes.len(), now_ms);
        self.turn(|session, turn| session.on_message(bytes, turn))
    }

    fn hear_as(&mut self, version: Version, xid: u32, body: Body) -> Result<Step, SessionEnd> {
        let mut bytes = Vec::new();
        Message { version, xid, body }.encode(&mut bytes).unwrap();
        self.hear_bytes(&bytes)
    }

    fn hear(&mut self, version: Version, body: Body) -> Result<Step, SessionEnd> {
        self.hear_as(version, 77, body)
    }

    fn tick(&mut self, now_ms: u64) -> Result<(), SessionEnd> {
        self.now_ms = now_ms;
        self.turn(|session, turn| session.on_tick(turn))
    }

    fn end_turn(&mut self) {
        self.turn(|session, turn| session.on_turn_end(turn));
    }

    fn send(&mut self, what: What<'_>, ticket: u64, wants_receipt: bool) -> Result<(), Refused> {
        let command = Command { datapath: DATAPATH, ticket, wants_receipt, what };
        let tag = Tag { zone: ZONE, generation: 0, ticket };
        self.turn(|session, turn| session.send(&command, ZONE.stamp(ticket), tag, 0, turn))
    }

    /// The messages to the switch since the last call of this function.
    fn said_whole(&mut self) -> Vec<Message> {
        let bytes = std::mem::take(&mut self.out);
        let (mut rest, mut messages) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let length = openflow::frame_len(rest).unwrap().unwrap();
            messages.push(Message::decode(&rest[..length]).unwrap());
            rest = &rest[length..];
        }
        messages
    }

    fn said(&mut self) -> Vec<Body> {
        self.said_whole().into_iter().map(|message| message.body).collect()
    }

    /// The only message that was sent, which is an error: type and code.
    fn complained(&mut self) -> (u16, u16) {
        match &self.said()[..] {
            [Body::Error(error)] => (error.kind, error.code),
            other => panic!("one error was expected, and there is {other:?}"),
        }
    }

    fn event<T>(&self, index: usize, look: impl FnOnce(Event<'_>) -> T) -> T {
        look(Event::read(&Frame::read(&self.events[index]).unwrap()).unwrap())
    }

    fn told<T>(&self, index: usize, look: impl FnOnce(Event<'_>) -> T) -> T {
        let (zone, frame) = &self.to_zones[index];
        assert_eq!(*zone, ZONE);
        look(Event::read(&Frame::read(frame).unwrap()).unwrap())
    }
}

fn features(version: Version) -> FeaturesReply {
    FeaturesReply {
        datapath_id: DATAPATH,
        n_buffers: 256,
        n_tables: 254,
        auxiliary_id: 0,
        capabilities: 0,
        actions: 0,
        ports: if version == Version::V1_0 { vec![port(1), port(2)] } else { Vec::new() },
    }
}

fn port(number: u32) -> Port {
    Port {
        port_no: PortNo(number),
        hw_addr: MacAddr([2, 0, 0, 0, 0, 1]),
        name: format!("s1-eth{number}"),
        config: 0,
        state: 0,
        curr: 1 << 6,
        advertised: 0,
        supported: 0,
        peer: 0,
        curr_speed_kbps: 0,
        max_speed_kbps: 0,
    }
}

fn port_desc(flags: u16, ports: Vec<Port>) -> Body {
    Body::MultipartReply(MultipartReply { flags, body: ReplyBody::PortDesc(ports) })
}

/// The header of a message with the given values.
fn header(version: u8, kind: u8, length: u16, xid: u32) -> Vec<u8> {
    Header { version: Version(version), kind, length, xid }.to_bytes().to_vec()
}

fn error(kind: u16, code: u16) -> Body {
    Body::Error(ErrorMessage { kind, code, experimenter: None, data: Vec::new() })
}

/// The outcomes since the last call, by ticket.
fn outcomes(bench: &mut Bench) -> Vec<(u64, Outcome)> {
    let outcome = |event: Event<'_>| match event {
        Event::Receipt(_, Receipt { ticket, outcome, .. }) => (ticket, outcome),
        other => panic!("{other:?}"),
    };
    let told = (0..bench.to_zones.len()).map(|index| bench.told(index, outcome)).collect();
    bench.to_zones.clear();
    told
}
