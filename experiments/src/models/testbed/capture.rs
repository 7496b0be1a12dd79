//! Measures the delays of a switch at its interfaces and at its control channel, by the kernel's time stamps.
//!
//! ```text
//!   s1-eth1, s1-eth2: frames in and out ──┐
//!   lo: the control channel ──────────────┴──> Delays: ingress, egress
//! ```
//!
//! It runs in the testbed's namespace until its standard input ends. It says `ready` when it sees everything. One clock, CLOCK_REALTIME,
//! stamps all. It never sends a frame.

use emulator::run::packet_socket::{Direction, PacketSocket, Received, Room, SocketOptions};
use openflow::Body;
use openflow::message::PacketIn;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::streams::{Heard, Segment, Streams};
use crate::models::packet_key::{DelayFinder, FlowKey, PacketDelay, PacketKey};
use flow::{Field, Match};

/// How often sockets are read. Frames wait in the kernel, with their stamps.
const LOOK: Duration = Duration::from_millis(1);
/// What the kernel keeps of each interface while this process waits for a core.
const KERNEL_BYTES: usize = 8 << 20;
/// Frames and segments that are kept: a run of an hour has fewer.
const KEPT_MAX: usize = 4_000_000;
/// OFPET_FLOW_MOD_FAILED of OpenFlow 1.0.
const FLOW_MOD_FAILED: u16 = 3;

/// What is captured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The interfaces of the switch's ports.
    pub interfaces: Vec<String>,
    /// The controller's port at the loopback interface.
    pub control_port: u16,
}

/// A delay: when the packet or flow mod came to the switch (Unix time), and how long the switch kept it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// When.
    pub from_unix_us: u64,
    /// How long.
    pub took_us: f64,
}

/// What was captured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// From a packet to its packet-in.
    pub ingress: Vec<Delay>,
    /// From a flow mod to the packet.
    pub egress: Vec<Delay>,
    /// Flow mods.
    pub flow_mods: u64,
    /// Flow mods that the switch refused.
    pub refused: u64,
    /// Frames that the kernel did not keep for this process. More than none: the delays are not all.
    pub dropped: u64,
    /// Directions of the control channel that could not be read to their end.
    pub broken: usize,
}

/// What a socket sees.
enum Sight {
    /// Frames from hosts, or to them.
    Port(Direction),
    Control,
}

/// All that was seen.
#[derive(Default)]
struct Seen {
    sent: Vec<(Duration, PacketKey)>,
    received: Vec<(Duration, PacketKey)>,
    segments: Vec<Segment>,
}

/// Captures until the standard input ends.
///
/// # Errors
/// An interface is not there.
pub fn run(plan: &Plan) -> Result<Delays, String> {
    let sockets = open(plan)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    thread::spawn(move || {
        // However the input ends, this is over.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
    });
    println!("ready");
    let (mut seen, mut room) = (Seen::default(), Room::new());
    loop {
        let ends = is_over.load(Ordering::Relaxed);
        for (socket, sight) in &sockets {
            drain(socket, sight, plan.control_port, &mut room, &mut seen)?;
        }
        if ends {
            break;
        }
        thread::sleep(LOOK);
    }
    let dropped = sockets.iter().map(|(socket, _)| socket.take_dropped().unwrap_or(0)).sum();
    Ok(Delays { dropped, ..seen.delays() })
}

fn open(plan: &Plan) -> Result<Vec<(PacketSocket, Sight)>, String> {
    let socket = |name: &str, direction: Direction| {
        PacketSocket::bind_to(name, SocketOptions { direction, stamps: true, kept_bytes: Some(KERNEL_BYTES) })
            .map_err(|why| format!("{name} cannot be captured: {why}"))
    };
    let mut sockets = vec![(socket("lo", Direction::Received)?, Sight::Control)];
    for name in &plan.interfaces {
        for direction in [Direction::Received, Direction::Sent] {
            sockets.push((socket(name, direction)?, Sight::Port(direction)));
        }
    }
    Ok(sockets)
}

fn drain(
    socket: &PacketSocket,
    sight: &Sight,
    control_port: u16,
    room: &mut Room,
    seen: &mut Seen,
) -> Result<(), String> {
    loop {
        let (frame, stamp) = match socket.receive(room).map_err(|why| why.to_string())? {
            Received::Nothing => return Ok(()),
            Received::Other => continue,
            Received::Frame { frame, stamp } => (frame, stamp.unwrap_or_default()),
        };
        if seen.sent.len() + seen.received.len() + seen.segments.len() >= KEPT_MAX {
            return Err("the run is longer than what can be kept of it".to_owned());
        }
        let key = || PacketKey::of_opening(&frame);
        match sight {
            Sight::Control => seen.segments.extend(Segment::read(&frame, stamp, control_port)),
            Sight::Port(Direction::Received) => seen.sent.extend(key().map(|key| (stamp, key))),
            Sight::Port(Direction::Sent) => seen.received.extend(key().map(|key| (stamp, key))),
        }
    }
}

impl Seen {
    /// Each kind by its times, since sockets were read in turn.
    fn delays(mut self) -> Delays {
        self.sent.sort_by_key(|(at, _)| *at);
        self.received.sort_by_key(|(at, _)| *at);
        let mut streams = Streams::default();
        self.segments.iter().for_each(|segment| streams.on_segment(segment));
        streams.heard.sort_by_key(|heard| heard.at);
        let mut finder = DelayFinder::default();
        self.sent.iter().for_each(|(at, key)| finder.on_sent(*key, *at));
        let (flow_mods, refused) = pair(&streams.heard, &mut finder);
        self.received.iter().for_each(|(at, key)| finder.on_received(*key, *at));
        let all = |delays: &[PacketDelay]| delays.iter().map(Delay::from).collect();
        Delays {
            ingress: all(&finder.ingress),
            egress: all(&finder.egress),
            flow_mods,
            refused,
            dropped: 0,
            broken: streams.broken(),
        }
    }
}

impl From<&PacketDelay> for Delay {
    fn from(delay: &PacketDelay) -> Delay {
        let from_unix_us = u64::try_from(delay.from.as_micros()).unwrap_or(u64::MAX);
        Delay { from_unix_us, took_us: delay.took.as_secs_f64() * 1e6 }
    }
}

/// Gives the finder packet-ins, and flow mods with the packet that each releases. Returns how many flow mods there are, and how many
/// were refused.
fn pair(heard: &[Heard], finder: &mut DelayFinder) -> (u64, u64) {
    let mut waiting: HashMap<FlowKey, VecDeque<PacketKey>> = HashMap::new();
    let (mut flow_mods, mut refused) = (0, 0);
    for Heard { at, from_switch, message } in heard {
        match &message.body {
            Body::PacketIn(PacketIn { data, .. }) if *from_switch => {
                let Some(key) = PacketKey::of_opening(data) else { continue };
                finder.on_packet_in(key, *at);
                waiting.entry(key.flow()).or_default().push_back(key);
            }
            Body::FlowMod(flow_mod) if !*from_switch => {
                flow_mods += 1;
                let flow = flow_of(&flow_mod.matching);
                let key = flow.and_then(|flow| waiting.get_mut(&flow)).and_then(VecDeque::pop_front);
                key.into_iter().for_each(|key| finder.on_flow_mod(key, *at));
            }
            Body::Error(error) if *from_switch && error.kind == FLOW_MOD_FAILED => refused += 1,
            _ => {}
        }
    }
    (flow_mods, refused)
}

fn flow_of(matching: &Match) -> Option<FlowKey> {
    let mut key = Vec::with_capacity(12);
    for (field, bytes) in [(Field::Ipv4Src, 4), (Field::Ipv4Dst, 4), (Field::TcpSrc, 2), (Field::TcpDst, 2)] {
        let (value, _) = matching.get(field)?;
        key.extend_from_slice(&value.to_be_bytes()[16 - bytes..]);
    }
    key.try_into().ok().map(FlowKey)
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::message::{FlowModFields, NO_BUFFER};
    use openflow::{Message, Version};

    /// A SYN from this port.
    fn syn(port: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12] = 8;
        (frame[14], frame[23], frame[47]) = (0x45, 6, 2);
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[36..38].copy_from_slice(&6379u16.to_be_bytes());
        frame
    }

    fn heard(at_ms: u64, from_switch: bool, body: Body) -> Heard {
        let message = Message { version: Version::V1_0, xid: 1, body };
        Heard { at: Duration::from_millis(at_ms), from_switch, message }
    }

    fn packet_in(port: u16) -> Body {
        Body::PacketIn(PacketIn {
            buffer_id: NO_BUFFER,
            total_len: 60,
            reason: 0,
            table_id: 0,
            cookie: 0,
            matching: Match::any(),
            data: syn(port),
        })
    }

    fn flow_mod(port: u16) -> Body {
        let matching = Match::any()
            .with(Field::Ipv4Src, 0x0a00_0001u32)
            .with(Field::Ipv4Dst, 0x0a00_0002u32)
            .with(Field::TcpSrc, port)
            .with(Field::TcpDst, 6379u16);
        Body::FlowMod(FlowModFields::default().with(matching, Vec::new()))
    }

    #[test]
    fn a_flow_mod_releases_the_packet_of_its_flow() {
        let mut finder = DelayFinder::default();
        let key = |port| PacketKey::of_opening(&syn(port)).unwrap();
        finder.on_sent(key(1), Duration::from_millis(0));
        finder.on_sent(key(2), Duration::from_millis(0));
        let all = [
            heard(5, true, packet_in(1)),
            heard(6, true, packet_in(2)),
            heard(7, false, flow_mod(2)),
            heard(9, false, flow_mod(1)),
            heard(9, false, flow_mod(3)),
        ];
        assert_eq!(pair(&all, &mut finder), (3, 0));
        finder.on_received(key(1), Duration::from_millis(19));
        finder.on_received(key(2), Duration::from_millis(18));
        let took = |delays: &[PacketDelay]| -> Vec<u128> {
            delays.iter().map(|delay| delay.took.as_millis()).collect()
        };
        assert_eq!((took(&finder.ingress), took(&finder.egress)), (vec![5, 6], vec![10, 11]));
    }
}
