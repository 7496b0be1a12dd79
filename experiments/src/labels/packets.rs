//! Figure 1 by packets: the three flows as TCP in the emulator, without any shaper.
//!
//! ```text
//!   figure 1a with hosts A to F ──> emulator::Simulation: switches with rules for each host, TCP (NewReno), links of 10 Gb/s ──> payload bits a second
//! ```
//!
//! In: how long. Out: the rates of the flows. The switches have one rule for each host that sends through them, so nothing is learned.

use emulator::simulation::Conduct;
use emulator::topology::{Endpoint, HostPlan, Link, SwitchPlan};
use emulator::{Channel, FlowId, FlowSpec, LinkQuality, Simulation, SwitchOptions, Topology};
use flow::{Action, DatapathId, Field, Instruction, MacAddr, PortNo};
use openflow::message::{FlowModFields, Hello};
use openflow::{Body, Message, Version};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Each flow, and the switches that it passes. Both directions take the same way.
const FLOWS: [(&str, &str, [usize; 5]); 3] =
    [("A", "B", [5, 3, 1, 4, 7]), ("E", "F", [6, 3, 1, 4, 8]), ("C", "D", [5, 3, 2, 4, 7])];
/// The links between switches.
const CABLES: [(usize, usize); 8] = [(3, 1), (3, 2), (4, 1), (4, 2), (5, 3), (6, 3), (7, 4), (8, 4)];
/// 100 Gb/s at a host: the links between switches are the limit. 150 KB wait at a port, as at a small switch.
const HOST_BPS: u64 = 100_000_000_000;
const LINK_DELAY: Duration = Duration::from_micros(5);

/// The host with this index, from 0 for A.
fn mac(host: usize) -> MacAddr {
    MacAddr::from_u64(host as u64 + 1)
}

/// The index of a host by its letter.
fn host(name: &str) -> usize {
    name.bytes().next().map_or(0, |letter| usize::from(letter - b'A'))
}

/// The port of a switch that leads to another, or to a host (from 20 on). Numbers are small.
fn port_to(switch: usize) -> PortNo {
    PortNo(switch as u32)
}

fn port_of_host(host: usize) -> PortNo {
    PortNo(20 + host as u32)
}

fn topology(link_bps: u64) -> Topology {
    let mut topology = Topology { switches: Vec::new(), hosts: Vec::new(), links: Vec::new() };
    for number in 1..=8u64 {
        topology.switches.push(SwitchPlan {
            name: format!("s{number}"),
            label: String::new(),
            datapath_id: DatapathId(number),
            place: None,
        });
    }
    let quality =
        LinkQuality { delay: LINK_DELAY, rate_bits_per_s: Some(link_bps), ..LinkQuality::default() };
    let end = |switch: usize, port: PortNo| Endpoint::Switch { index: switch - 1, port };
    for (one, two) in CABLES {
        topology.links.push(Link { one: end(one, port_to(two)), two: end(two, port_to(one)), quality });
    }
    let places = FLOWS.iter().flat_map(|(from, to, way)| [(host(from), way[0]), (host(to), way[4])]);
    let places: BTreeMap<usize, usize> = places.collect();
    let quality = LinkQuality { rate_bits_per_s: Some(HOST_BPS), ..quality };
    for (index, switch) in places {
        // At most six hosts.
        let address = Ipv4Addr::new(10, 0, 0, index as u8 + 1);
        let name = char::from(b'A' + index as u8).to_string();
        topology.hosts.push(HostPlan { name, mac: mac(index), address });
        let (one, two) = (Endpoint::Host { index }, end(switch, port_of_host(index)));
        topology.links.push(Link { one, two, quality });
    }
    topology
}

/// By switch: which host's frames leave by which port. A host talks with one other, so its frames need no other match.
fn rules() -> Vec<(usize, MacAddr, PortNo)> {
    let mut rules = Vec::new();
    for (from, to, way) in FLOWS {
        let (from, to) = (host(from), host(to));
        let back: Vec<usize> = way.iter().rev().copied().collect();
        for (source, target, way) in [(from, to, way.to_vec()), (to, from, back)] {
            for (place, switch) in way.iter().enumerate() {
                let port = way.get(place + 1).map_or(port_of_host(target), |next| port_to(*next));
                rules.push((*switch, mac(source), port));
            }
        }
    }
    rules
}

/// Gives each switch its rules when it says hello.
fn controller() -> Conduct {
    Box::new(|at: Channel, message: &Message, _: Duration, say: &mut Vec<Message>| {
        if !matches!(message.body, Body::Hello(_)) {
            return;
        }
        let version = Version::V1_3;
        say.push(Message { version, xid: 1, body: Body::Hello(Hello::default()) });
        for (_, source, port) in rules().into_iter().filter(|(switch, ..)| switch - 1 == at.switch) {
            let mut matching = flow::Match::any();
            matching.set(Field::EthSrc, source.to_u64().into());
            let fields = FlowModFields { priority: 1, ..FlowModFields::default() };
            let instructions = vec![Instruction::ApplyActions(vec![Action::output(port)])];
            say.push(Message { version, xid: 2, body: Body::FlowMod(fields.with(matching, instructions)) });
        }
    })
}

/// The payload rates of A to B, E to F and C to D in Gb/s, in the second half of this time.
///
/// # Errors
/// A flow cannot be.
pub fn rates_gbps(link_bps: u64, lasts: Duration) -> Result<[f64; 3], String> {
    let topology = topology(link_bps);
    let mut network = Simulation::with_controller(&topology, &SwitchOptions::default(), 1, controller());
    let mut ids: Vec<FlowId> = Vec::new();
    for (from, to, _) in FLOWS {
        ids.push(network.start_flow(&FlowSpec::tcp(from, to)).map_err(|why| why.to_string())?);
    }
    network.run_for(lasts / 2);
    let before: Vec<_> = ids.iter().map(|id| network.flow_report(*id)).collect();
    network.run_for(lasts / 2);
    let mut rates = [0.0; 3];
    for ((rate, id), before) in rates.iter_mut().zip(ids).zip(before) {
        let report = network.flow_report(id).zip(before).ok_or("a flow is gone")?;
        *rate = report.0.rate_since(&report.1) / 1e9;
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_flows_fill_what_they_share() {
        let rates = rates_gbps(100_000_000, Duration::from_secs(2)).unwrap();
        // Headers take a twentieth. Two share the spine s1, two the NIC of A and C.
        assert!((0.08..0.1).contains(&(rates[0] + rates[1])), "{rates:?}");
        assert!((0.08..0.1).contains(&(rates[0] + rates[2])), "{rates:?}");
    }
}
