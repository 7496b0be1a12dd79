//! A packet from switch to switch.
//!
//! ```text
//!   Network: tables of switches, links ──trace──> Way: stops in the order in which the packet reaches them
//! ```
//!
//! In: what is known, and a packet at a connect point. Out: the way as far as the tables are known, and whose tables are needed to go on. So a
//! caller reads one switch after the other, and only those on the way. It asks nobody itself.

use crate::packet::Packet;
use crate::pipeline::{Event, Fate, Passage, pass};
use crate::tables::Tables;
use flow::{DatapathId, PortNo};
use std::collections::{BTreeMap, VecDeque};
use view::ConnectPoint;

/// The most stops of a way. A flood through a large network has more; the rest is left out, and the way says so.
pub const STOPS_MAX: usize = 512;

/// The tables of a switch. If they were read for one packet, they hold only rules that this packet can match.
#[derive(Clone, Debug)]
struct Reading {
    packet: Option<Packet>,
    in_port: PortNo,
    tables: Tables,
}

/// What is known of the network.
#[derive(Clone, Debug, Default)]
pub struct Network {
    readings: BTreeMap<DatapathId, Vec<Reading>>,
    /// Where a frame arrives that leaves by a port.
    links: BTreeMap<ConnectPoint, ConnectPoint>,
}

/// A switch whose tables are not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Where the packet arrives.
    pub at: ConnectPoint,
    /// The packet.
    pub packet: Packet,
}

/// How a stop ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopEnd {
    /// The packet passed the switch. Its outputs say where to.
    Passed,
    /// The same packet has been at this stop before: it is in a loop.
    Loop(usize),
    /// The tables of the switch are not known.
    Unread,
}

/// A switch on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Where the packet arrives.
    pub at: ConnectPoint,
    /// The packet that arrives.
    pub packet: Packet,
    /// The stop before, and the number of the event there by which it came.
    pub from: Option<(usize, usize)>,
    /// What happens to it.
    pub passage: Passage,
    /// How it ends.
    pub end: StopEnd,
    /// Where each sent output goes: the number of the event, and the number of the stop behind it. If the way is cut, that stop may be
    /// missing. An output that is not here leaves the network.
    pub next: Vec<(usize, usize)>,
}

/// The way of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// In the order in which the packet reaches them.
    pub stops: Vec<Stop>,
    /// Whose tables are needed to go on.
    pub needs: Vec<Need>,
    /// Whether there are more than [`STOPS_MAX`] stops.
    pub is_cut: bool,
}

impl Network {
    /// A network of which only the links are known: where a frame arrives that leaves by a port.
    pub fn new(links: BTreeMap<ConnectPoint, ConnectPoint>) -> Network {
        Network { readings: BTreeMap::new(), links }
    }

    /// The tables of a switch, for every packet.
    pub fn add(&mut self, switch: DatapathId, tables: Tables) {
        self.readings.entry(switch).or_default().push(Reading { packet: None, in_port: PortNo::ANY, tables });
    }

    /// The tables of a switch, read for this need.
    pub fn fill(&mut self, need: &Need, tables: Tables) {
        let packet = Some(need.packet.clone());
        let reading = Reading { packet, in_port: need.at.port, tables };
        self.readings.entry(need.at.switch).or_default().push(reading);
    }

    /// The tables for a packet that arrives here.
    pub fn tables(&self, at: ConnectPoint, packet: &Packet) -> Option<&Tables> {
        let fits = |reading: &&Reading| {
            reading
                .packet
                .as_ref()
                .is_none_or(|known| known.is_same_but_older(packet) && reading.in_port == at.port)
        };
        self.readings.get(&at.switch)?.iter().find(fits).map(|reading| &reading.tables)
    }
}

/// The way of a packet that arrives at a connect point.
pub fn trace(network: &Network, at: ConnectPoint, packet: Packet) -> Way {
    let mut way = Way::default();
    let mut ahead = VecDeque::from([(at, packet, None)]);
    while let Some((at, packet, from)) = ahead.pop_front() {
        let number = way.stops.len();
        let mut stop = arrive(network, &mut way, at, packet, from);
        let mut next = Vec::new();
        for (event, (port, packet)) in outputs(&stop.passage) {
            let Some(there) = network.links.get(&ConnectPoint { switch: at.switch, port }) else { continue };
            // Each packet ahead becomes a stop, in this order.
            let behind = number + 1 + ahead.len();
            next.push((event, behind));
            match behind < STOPS_MAX {
                true => ahead.push_back((*there, packet.clone(), Some((number, event)))),
                false => way.is_cut = true,
            }
        }
        stop.next = next;
        way.stops.push(stop);
    }
    way
}

/// The packets that leave a switch, with the number of each event.
fn outputs(passage: &Passage) -> impl Iterator<Item = (usize, (PortNo, &Packet))> {
    passage.events.iter().enumerate().filter_map(|(number, event)| match event {
        Event::Output(output) if output.fate == Fate::Sent => Some((number, (output.port, &output.packet))),
        _ => None,
    })
}

fn arrive(
    network: &Network,
    way: &mut Way,
    at: ConnectPoint,
    packet: Packet,
    from: Option<(usize, usize)>,
) -> Stop {
    let mut stop =
        Stop { at, packet, from, passage: Passage::default(), end: StopEnd::Passed, next: Vec::new() };
    if let Some(earlier) = earlier(&way.stops, &stop) {
        stop.end = StopEnd::Loop(earlier);
    } else if let Some(tables) = network.tables(at, &stop.packet) {
        stop.passage = pass(tables, &stop.packet, at.port);
    } else {
        stop.end = StopEnd::Unread;
        let need = Need { at, packet: stop.packet.clone() };
        if !way.needs.contains(&need) {
            way.needs.push(need);
        }
    }
    stop
}

/// The same packet at the same place, earlier on this way. Copies that meet again are no loop.
fn earlier(stops: &[Stop], stop: &Stop) -> Option<usize> {
    let mut before = stop.from;
    while let Some((number, _)) = before {
        let one = stops.get(number)?;
        if one.at == stop.at && one.packet.is_same_but_older(&stop.packet) {
            return Some(number);
        }
        before = one.from;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_packet;
    use crate::tables::Rule;
    use flow::text::{parse_instructions, parse_match};

    fn point(text: &str) -> ConnectPoint {
        text.parse().unwrap()
    }

    fn switch(ports: u32, rules: &[(&str, &str)]) -> Tables {
        let rule = |(matching, instructions): &(&str, &str)| Rule {
            table_id: 0,
            priority: 5,
            matching: parse_match(matching).unwrap(),
            instructions: parse_instructions(instructions).unwrap(),
        };
        let ports = (1..=ports).map(|port| (PortNo(port), true)).collect();
        Tables { rules: rules.iter().map(rule).collect(), ports, ..Tables::default() }
    }

    /// Two switches, joined by their ports 2.
    fn two(one: Tables, other: Option<Tables>) -> Network {
        let mut network = Network::new([(point("1/2"), point("2/2")), (point("2/2"), point("1/2"))].into());
        network.add(DatapathId(1), one);
        other.into_iter().for_each(|tables| network.add(DatapathId(2), tables));
        network
    }

    fn way(network: &Network) -> Way {
        trace(network, point("1/1"), read_packet("ip_dst=10.0.0.2").unwrap())
    }

    #[test]
    fn a_switch_that_was_not_read_is_asked_for_once() {
        let network = two(switch(3, &[("ip", "output:2,output:2")]), None);
        let found = way(&network);
        assert_eq!(found.needs.iter().map(|need| need.at).collect::<Vec<_>>(), [point("2/2")]);
        let mut filled = network.clone();
        filled.fill(&found.needs[0], switch(2, &[("ip", "output:1")]));
        assert!(way(&filled).needs.is_empty());
        let other = trace(&filled, point("1/1"), read_packet("ip_dst=10.0.0.3").unwrap());
        assert_eq!(other.needs.len(), 1, "it was read for another packet");
    }

    #[test]
    fn a_loop_is_noticed_also_while_the_time_to_live_falls() {
        for back in ["in_port", "dec_ttl,in_port"] {
            let network = two(
                switch(3, &[("ip,in_port=1", "output:2"), ("ip,in_port=2", back)]),
                Some(switch(2, &[("ip", back)])),
            );
            let ends: Vec<StopEnd> = way(&network).stops.into_iter().map(|stop| stop.end).collect();
            assert_eq!(ends, [StopEnd::Passed, StopEnd::Passed, StopEnd::Passed, StopEnd::Loop(1)], "{back}");
        }
    }

    #[test]
    fn a_storm_is_cut() {
        let mut network = two(switch(9, &[("", "all")]), Some(switch(9, &[("", "all,in_port")])));
        for port in 3..10 {
            let (one, other) = (point(&format!("1/{port}")), point(&format!("2/{port}")));
            network.links.extend([(one, other), (other, one)]);
        }
        let found = way(&network);
        assert!(found.is_cut && found.stops.len() == STOPS_MAX);
        let exits = crate::exits(&found);
        assert!(exits.iter().all(|exit| exit.at.port == PortNo(1)), "the other ports have links: {exits:?}");
    }
}
