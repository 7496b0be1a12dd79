//! The controller of the experiments in virtual time: POX's learning switch, with a rule for each flow.
//!
//! ```text
//!   packet-in ──> learn the source's port ──> rule of the flow, which releases the packet; or a flood
//!                                        └──> Log: when, and which packet
//! ```
//!
//! It answers in the moment in which it hears, so that all delays are the switch's. It decides as the app `learning-switch` with
//! `match = "flow"` does. It never reads a clock.

use emulator::Channel;
use emulator::simulation::Conduct;
use flow::frame::FrameFields;
use flow::{Action, Field, Instruction, MacAddr, Match, PortNo};
use openflow::message::{FlowModFields, Hello, NO_BUFFER, PacketIn, PacketOut};
use openflow::{Body, Message, Version};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::packet_key::PacketKey;

/// What identifies a flow, besides its port: as in `learning-switch`.
const FIELDS: [Field; 12] = [
    Field::EthDst,
    Field::EthSrc,
    Field::EthType,
    Field::VlanVid,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::ArpOp,
    Field::ArpSpa,
    Field::ArpTpa,
];
const PRIORITY: u16 = 100;
/// OFPET_FLOW_MOD_FAILED of OpenFlow 1.0.
const FLOW_MOD_FAILED: u16 = 3;

/// The time-outs of its rules in seconds; 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleTimeouts {
    /// Idle.
    pub idle_s: u16,
    /// Hard.
    pub hard_s: u16,
}

impl RuleTimeouts {
    /// Those of POX's learning switch.
    pub const POX: RuleTimeouts = RuleTimeouts { idle_s: 10, hard_s: 30 };
}

/// A packet-in that was answered with a rule in the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When.
    pub at: Duration,
    /// The packet, if it begins a connection.
    pub key: Option<PacketKey>,
}

/// What the controller has seen.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Packet-ins with their answers, in order. The experiment takes them away when it reads them.
    pub answered: Vec<Answered>,
    /// Flow mods that the switch refused.
    pub refused: u64,
    /// Flow mods that were sent.
    pub flow_mods: u64,
}

/// A log that the controller and the experiment share.
#[derive(Clone, Debug, Default)]
pub struct SharedLog(Arc<Mutex<Log>>);

impl SharedLog {
    /// Looks at the log, or changes it.
    pub fn with<T>(&self, what: impl FnOnce(&mut Log) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The controller, for any number of switches.
pub fn controller(timeouts: RuleTimeouts, log: SharedLog) -> Conduct {
    let mut places: HashMap<(usize, MacAddr), PortNo> = HashMap::new();
    Box::new(move |at: Channel, message: &Message, now: Duration, out: &mut Vec<Message>| {
        let body = match &message.body {
            Body::Hello(_) => Body::Hello(Hello::default()),
            Body::PacketIn(packet) => {
                let Some(answer) = answer(at.switch, packet, timeouts, &mut places) else { return };
                if matches!(answer, Body::FlowMod(_)) {
                    let answered = Answered { at: now, key: PacketKey::of_opening(&packet.data) };
                    log.with(|log| {
                        log.flow_mods += 1;
                        log.answered.push(answered);
                    });
                }
                answer
            }
            Body::Error(error) if error.kind == FLOW_MOD_FAILED => {
                log.with(|log| log.refused += 1);
                return;
            }
            _ => return,
        };
        out.push(Message { version: Version::V1_0, xid: 1, body });
    })
}

fn answer(
    switch: usize,
    packet: &PacketIn,
    timeouts: RuleTimeouts,
    places: &mut HashMap<(usize, MacAddr), PortNo>,
) -> Option<Body> {
    let (in_port, _) = packet.matching.get(Field::InPort)?;
    let in_port = PortNo(u32::try_from(in_port).ok()?);
    let fields = FrameFields::read(&packet.data);
    let address = |field| Some(MacAddr::from_u64(u64::try_from(fields.get(field)?).ok()?));
    let (destination, source) = (address(Field::EthDst)?, address(Field::EthSrc)?);
    if !source.is_multicast() {
        places.insert((switch, source), in_port);
    }
    match places.get(&(switch, destination)) {
        Some(port) if *port == in_port => None,
        Some(port) => Some(rule(packet, &fields, in_port, *port, timeouts)),
        None => Some(flood(packet, in_port)),
    }
}

fn rule(
    packet: &PacketIn,
    fields: &FrameFields,
    in_port: PortNo,
    out: PortNo,
    timeouts: RuleTimeouts,
) -> Body {
    let mut matching = Match::any().with(Field::InPort, in_port);
    for field in FIELDS {
        if let Some(value) = fields.get(field) {
            matching.set(field, value);
        }
    }
    let rule = FlowModFields {
        priority: PRIORITY,
        idle_timeout_s: timeouts.idle_s,
        hard_timeout_s: timeouts.hard_s,
        buffer_id: packet.buffer_id,
        ..FlowModFields::default()
    };
    Body::FlowMod(rule.with(matching, vec![Instruction::ApplyActions(vec![Action::output(out)])]))
}

fn flood(packet: &PacketIn, in_port: PortNo) -> Body {
    let data = if packet.buffer_id == NO_BUFFER { packet.data.clone() } else { Vec::new() };
    let actions = vec![Action::output(PortNo::FLOOD)];
    Body::PacketOut(PacketOut { buffer_id: packet.buffer_id, in_port, actions, data })
}
