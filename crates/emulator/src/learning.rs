//! A controller in virtual time: a learning switch that adds a rule for each new flow.
//!
//! ```text
//!   packet-in ──> source learned ──> destination known:   flow mod for exactly this flow
//!                                    destination unknown: packet-out to all ports
//! ```
//!
//! In: messages of switches. Out: its answers, at once. A rule matches all fields of its packet. Unless the caller says otherwise, it ends
//! after 10 s without a packet and after 30 s in any case, as POX's learning switch has it. It does no I/O and reads no clock. It does not
//! break loops.

use std::collections::HashMap;

use flow::frame::FrameFields;
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::{FlowModFields, Hello, NO_BUFFER, PacketIn, PacketOut};
use openflow::{Body, Message, Version};

use crate::network::Channel;
use crate::simulation::Conduct;

/// The priority of the rule of a flow.
const PRIORITY: u16 = 10;

/// As many bytes of a buffered packet as OpenFlow 1.0 sends (OFP_DEFAULT_MISS_SEND_LEN): all headers are in them.
const PACKET_IN_BYTES: u16 = 128;

/// Addresses that it learns on all switches. Above this, packets for further addresses go to all ports.
const ADDRESSES_MAX: usize = 4_194_304;

/// The fields that a rule matches, as far as the packet has them: those of OpenFlow 1.0.
const FIELDS: [Field; 16] = [
    Field::EthSrc,
    Field::EthDst,
    Field::EthType,
    Field::VlanVid,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::Icmpv4Type,
    Field::Icmpv4Code,
    Field::ArpOp,
    Field::ArpSpa,
    Field::ArpTpa,
];

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

/// The controller, with the time-outs of POX's.
pub fn learning_controller() -> Conduct {
    learning_controller_with(RuleTimeouts::POX)
}

/// The controller, with these time-outs of rules.
pub fn learning_controller_with(timeouts: RuleTimeouts) -> Conduct {
    let mut learning = Learning { timeouts, ports: HashMap::new() };
    Box::new(move |at, message, _, out| learning.on_message(at, message, out))
}

struct Learning {
    timeouts: RuleTimeouts,
    /// Behind which port each address is: by the switch and the address.
    ports: HashMap<(usize, u64), u32>,
}

impl Learning {
    fn on_message(&mut self, at: Channel, message: &Message, out: &mut Vec<Message>) {
        let mut say = |body| out.push(Message { version: message.version, xid: 0, body });
        match &message.body {
            Body::Hello(_) => {
                say(Body::Hello(Hello::default()));
                // A switch of 1.3 drops what meets no rule.
                if message.version >= Version::V1_3 {
                    let to_controller = Action::Output { port: PortNo::CONTROLLER, max_len: PACKET_IN_BYTES };
                    let actions = vec![to_controller];
                    let rule = FlowModFields { priority: 0, ..FlowModFields::default() };
                    let instructions = vec![Instruction::ApplyActions(actions)];
                    say(Body::FlowMod(rule.with(Match::any(), instructions)));
                }
            }
            Body::PacketIn(packet_in) => self.on_packet_in(at.switch, packet_in, say),
            _ => {}
        }
    }

    fn on_packet_in(&mut self, switch: usize, packet_in: &PacketIn, mut say: impl FnMut(Body)) {
        let Some((in_port, _)) = packet_in.matching.get(Field::InPort) else { return };
        let in_port = PortNo(in_port as u32);
        let fields = FrameFields::read(&packet_in.data);
        let address = |field| fields.get(field).map(|address| (switch, address as u64));
        let (Some(from), Some(to)) = (address(Field::EthSrc), address(Field::EthDst)) else { return };
        if self.ports.len() < ADDRESSES_MAX || self.ports.contains_key(&from) {
            self.ports.insert(from, in_port.0);
        }
        let is_whole = packet_in.buffer_id == NO_BUFFER;
        let data = if is_whole { packet_in.data.clone() } else { Vec::new() };
        let send = |port| {
            let (buffer_id, actions) = (packet_in.buffer_id, vec![Action::output(port)]);
            Body::PacketOut(PacketOut { buffer_id, in_port, actions, data: data.clone() })
        };
        let Some(&port) = self.ports.get(&to) else {
            say(send(PortNo::FLOOD));
            return;
        };
        let port = if port == in_port.0 { PortNo::IN_PORT } else { PortNo(port) };
        let rule = FlowModFields {
            priority: PRIORITY,
            idle_timeout_s: self.timeouts.idle_s,
            hard_timeout_s: self.timeouts.hard_s,
            buffer_id: packet_in.buffer_id,
            ..FlowModFields::default()
        };
        let instructions = vec![Instruction::ApplyActions(vec![Action::output(port)])];
        say(Body::FlowMod(rule.with(exact(&fields, in_port), instructions)));
        if is_whole {
            say(send(port));
        }
    }
}

/// The match of exactly this packet's flow.
fn exact(fields: &FrameFields, in_port: PortNo) -> Match {
    let mut matching = Match::any();
    matching.set(Field::InPort, in_port.0.into());
    for field in FIELDS {
        if let Some(value) = fields.get(field) {
            matching.set(field, value);
        }
    }
    matching
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QuerySpec, Simulation};
    use software_switch::{SwitchOptions, Versions};
    use std::time::Duration;

    /// The number of rules in the switch while a query's flow is new, and after its time-outs.
    fn rules(versions: Versions, n_buffers: u32) -> [usize; 2] {
        let options = SwitchOptions { versions, n_buffers, ..SwitchOptions::default() };
        let topology = "single,2".parse().unwrap();
        let mut network = Simulation::with_controller(&topology, &options, 1, learning_controller());
        let count = |network: &Simulation| network.network().switches()[0].flow_count();
        network.run_for(Duration::from_secs(1));
        let before = count(&network);
        let spec = QuerySpec {
            every: Duration::from_secs(1),
            duration: Duration::from_secs(1),
            ..QuerySpec::new("h1", "h2")
        };
        let queries = network.start_queries(&spec).unwrap();
        network.run_for(Duration::from_millis(500));
        let with = count(&network) - before;
        network.run_for(Duration::from_secs(40));
        let report = network.queries_report(queries).unwrap();
        assert_eq!((report.begun, report.completion_times(Duration::ZERO).len()), (1, 1));
        [with, count(&network) - before]
    }

    #[test]
    fn each_direction_of_a_flow_has_a_rule_until_it_times_out() {
        for versions in [Versions::Only10, Versions::Only13] {
            for n_buffers in [0, 256] {
                // One more is for the answer to the request for the other's address, which is a flow of its own.
                assert_eq!(rules(versions, n_buffers), [3, 0], "{versions} {n_buffers}");
            }
        }
    }
}
