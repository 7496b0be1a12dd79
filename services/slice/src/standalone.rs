//! A learning switch in the tenant's place, while no controller is connected and the operator wrote `fail = "standalone"`.
//!
//! ```text
//!   packet-in of the virtual switch ──> source learned ──> destination known:   flow mod that ends with its packets
//!                                                          destination unknown: packet-out to all ports of the slice
//! ```
//!
//! In: messages of one virtual switch, as a controller of OpenFlow 1.0 gets them. Out: the controller's messages. So it can do no more than
//! the tenant. It holds no socket, and does not break loops.

use flow::frame::FrameFields;
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::{FlowModFields, Hello, NO_BUFFER, PacketIn, PacketOut};
use openflow::{Body, Message, Version};
use std::collections::HashMap;

/// How long no controller is connected before the learning switch begins, in milliseconds. Open vSwitch waits as long.
pub(crate) const AFTER_MS: u64 = 15_000;
/// The priority of its rules: below those of most controllers, which stay.
const PRIORITY: u16 = 1;
/// Its rules end after this time without a packet, so that few are left when a controller comes back.
const IDLE_TIMEOUT_S: u16 = 10;
/// Its rules end after this time in any case, so that a host that moved is found.
const HARD_TIMEOUT_S: u16 = 60;
/// Addresses at one switch. Above this, packets for further addresses go to all ports.
const ADDRESSES_MAX: usize = 4_096;
/// A transaction id for all messages: the answers are not read.
const XID: u32 = 1;

/// The learning switch of one virtual switch.
#[derive(Debug, Default)]
pub(crate) struct Learning {
    ports: HashMap<u64, PortNo>,
}

impl Learning {
    /// Its first message.
    pub(crate) fn hello() -> Option<Vec<u8>> {
        written(Body::Hello(Hello::default()))
    }

    /// The virtual switch sent a message. Returns the answer, if there is one.
    pub(crate) fn on_message(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        match Message::decode(bytes).ok()?.body {
            Body::PacketIn(packet) => written(self.on_packet_in(packet)?),
            Body::EchoRequest(payload) => written(Body::EchoReply(payload)),
            _ => None,
        }
    }

    fn on_packet_in(&mut self, packet: PacketIn) -> Option<Body> {
        let (in_port, _) = packet.matching.get(Field::InPort)?;
        let in_port = PortNo(u32::try_from(in_port).ok()?);
        let fields = FrameFields::read(&packet.data);
        let address = |field| fields.get(field).and_then(|value| u64::try_from(value).ok());
        let (source, destination) = (address(Field::EthSrc)?, address(Field::EthDst)?);
        if self.ports.len() < ADDRESSES_MAX || self.ports.contains_key(&source) {
            self.ports.insert(source, in_port);
        }
        match self.ports.get(&destination) {
            Some(port) if *port == in_port => None,
            Some(port) => Some(rule(&packet, in_port, (source, destination), *port)),
            None => Some(flood(packet, in_port)),
        }
    }
}

fn rule(packet: &PacketIn, in_port: PortNo, (source, destination): (u64, u64), port: PortNo) -> Body {
    let matching = Match::any()
        .with(Field::InPort, in_port.0)
        .with(Field::EthSrc, source)
        .with(Field::EthDst, destination)
        .sorted();
    let fields = FlowModFields {
        priority: PRIORITY,
        idle_timeout_s: IDLE_TIMEOUT_S,
        hard_timeout_s: HARD_TIMEOUT_S,
        buffer_id: packet.buffer_id,
        ..FlowModFields::default()
    };
    Body::FlowMod(fields.with(matching, vec![Instruction::ApplyActions(vec![Action::output(port)])]))
}

fn flood(packet: PacketIn, in_port: PortNo) -> Body {
    let is_whole = packet.buffer_id == NO_BUFFER;
    Body::PacketOut(PacketOut {
        buffer_id: packet.buffer_id,
        in_port,
        actions: vec![Action::output(PortNo::FLOOD)],
        data: if is_whole { packet.data } else { Vec::new() },
    })
}

fn written(body: Body) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    Message { version: Version::V1_0, xid: XID, body }.encode(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_in(in_port: u32, source: u8, destination: u8) -> Vec<u8> {
        let data = [&[2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source, 8, 0][..], &[0; 50]].concat();
        written(Body::PacketIn(PacketIn {
            buffer_id: 7,
            total_len: 64,
            reason: 0,
            table_id: 0,
            cookie: u64::MAX,
            matching: Match::any().with(Field::InPort, in_port),
            data,
        }))
        .unwrap()
    }

    #[test]
    fn the_first_packet_goes_to_all_ports_and_its_answer_makes_a_rule() {
        let mut learning = Learning::default();
        let mut answer =
            |bytes: Vec<u8>| Message::decode(&learning.on_message(&bytes)?).ok().map(|it| it.body);
        let Some(Body::PacketOut(out)) = answer(packet_in(1, 1, 2)) else { panic!("no packet-out") };
        assert_eq!(
            (out.buffer_id, out.in_port, out.actions),
            (7, PortNo(1), vec![Action::output(PortNo::FLOOD)])
        );
        let Some(Body::FlowMod(rule)) = answer(packet_in(2, 2, 1)) else { panic!("no rule") };
        assert_eq!((rule.buffer_id, rule.idle_timeout_s), (7, IDLE_TIMEOUT_S));
        assert_eq!(rule.instructions, [Instruction::ApplyActions(vec![Action::output(PortNo(1))])]);
        assert_eq!(answer(packet_in(1, 2, 1)), None, "both are behind port 1 now");
    }

    #[test]
    fn no_more_addresses_are_learned_than_the_bound() {
        let mut learning = Learning { ports: (0..ADDRESSES_MAX as u64).map(|it| (it, PortNo(9))).collect() };
        assert!(learning.on_message(&packet_in(1, 1, 2)).is_some());
        assert_eq!(learning.ports.len(), ADDRESSES_MAX);
        assert_eq!(learning.on_message(b"rubbish!"), None);
    }
}
