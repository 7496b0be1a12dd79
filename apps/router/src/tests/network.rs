//! Random networks whose switches do what the rule sets say: a packet to the router arrives at its host with one hop less, and nowhere else.
//!
//! In: a random graph, hosts in two subnets, a link that fails. Out: nothing; a packet that is lost, changed twice or goes in circles fails. Whether there
//! is a path is decided by the graph alone.

use super::*;
use burnet_sdk::flow::canonical::{read_instructions, read_match};
use burnet_sdk::flow::frame::FrameFields;
use burnet_sdk::flow::{Action, Instruction, Match};
use flows_contract::{Change, read_batch};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

const HOST_PORT: u32 = 1;
const STEPS_MAX: usize = 20;

struct Held {
    switch: u64,
    priority: u16,
    matching: Match,
    instructions: Vec<Instruction>,
}

/// The rules that the app wants after these changes of its view, from its queries.
fn wanted(frames: &[u8], sets: &mut HashMap<String, Vec<Held>>) {
    let mut rest = frames;
    while !rest.is_empty() {
        let (frame, behind) = abi::Frame::split(rest).unwrap();
        rest = behind;
        let command = abi::command::Command::read(&frame).unwrap();
        let abi::command::What::Query(query) = command.what else { continue };
        for change in read_batch(query.payload).unwrap() {
            match change {
                Change::Put { name, items, .. } => drop(sets.insert(name.to_owned(), held(items))),
                Change::Remove { name, .. } => drop(sets.remove(name)),
            }
        }
    }
}

fn held(items: &[u8]) -> Vec<Held> {
    let rule = |(_, item)| {
        let burnet_sdk_rules::Item::Rule(rule) = item else { panic!("{item:?}") };
        Held {
            switch: rule.switch.0,
            priority: rule.priority,
            matching: read_match(rule.matching).unwrap(),
            instructions: read_instructions(rule.instructions).unwrap(),
        }
    };
    flows_contract::items(items).map(rule).collect()
}

struct Network {
    view: burnet_sdk::view::Tables,
    ways: Ways,
    settings: RouterSettings,
    sets: HashMap<String, Vec<Held>>,
    cables: Vec<[ConnectPoint; 2]>,
    sequence: u64,
}

impl Network {
    fn new(switches: u64, further: &[(u64, u64)]) -> Network {
        let settings = settings::tests::settings(SETTINGS).unwrap();
        let mut next_port: HashMap<u64, u32> = HashMap::new();
        let mut end = |switch: u64| {
            let number = next_port.entry(switch).or_insert(HOST_PORT);
            *number += 1;
            point(switch, *number)
        };
        let line = (1..switches).map(|switch| (switch, switch + 1));
        let further =
            further.iter().map(|(a, b)| (a % switches + 1, b % switches + 1)).filter(|(a, b)| a != b);
        let cables: Vec<_> = line.chain(further).map(|(a, b)| [end(a), end(b)]).collect();
        let mut network = Network {
            view: Default::default(),
            ways: Ways::new(1),
            settings,
            sets: HashMap::new(),
            cables,
            sequence: 0,
        };
        network.put((1..=switches).map(|id| switch(id, "1.3")).collect());
        let ports =
            (1..=switches).map(|id| point(id, HOST_PORT)).chain(network.cables.iter().flatten().copied());
        network.put(ports.map(port).collect());
        let links = network.cables.iter().flat_map(|[a, b]| [link(*a, *b), link(*b, *a)]);
        network.put(links.collect());
        // Odd hosts are in the first subnet, even ones in the second, which is tagged.
        let host = |id: u64| {
            let (number, subnet) = (id as u8, if id % 2 == 1 { 1 } else { 2 });
            let vlan = (subnet == 2).then_some(2);
            host(number, vlan, point(id, HOST_PORT), &format!("10.0.{subnet}.{}", 100 + number))
        };
        network.put((1..=switches).map(host).collect());
        network
    }

    fn put(&mut self, objects: Vec<Object>) {
        self.sequence += 1;
        let stamp = burnet_sdk::view::Stamp { term: 0, sequence: self.sequence, origin: 0 };
        let changes = objects.into_iter().map(|object| burnet_sdk::view::Change {
            stamp,
            key: object.key(),
            object: Some(object),
        });
        let batch = self.view.apply(changes);
        let mut out = Commands::new();
        self.ways.on_view(&batch, &self.view.snapshot(), &self.settings, &mut out);
        wanted(out.frames(), &mut self.sets);
    }

    fn fail(&mut self, cable: usize) {
        let [a, b] = self.cables.remove(cable);
        let down = |from, to| match link(from, to) {
            Object::Link(mut link) => {
                link.state = LinkState::Down;
                Object::from(link)
            }
            other => other,
        };
        self.put(vec![down(a, b), down(b, a)]);
    }

    /// Where a packet comes out, with its fields, and how often it was changed. `None`: the app gets it, or it is dropped.
    fn send(&self, from: u64, to: u64) -> Option<(u64, FrameFields, u32)> {
        let subnet = |id: u64| if id % 2 == 1 { 1 } else { 2 };
        let source = [10, 0, subnet(from), 100 + from as u8];
        let target = [10, 0, subnet(to), 100 + to as u8];
        let mut frame = packet(source, target, 64, frame::UDP);
        if subnet(from) == 2 {
            frame.splice(12..12, [0x81, 0, 0, 2]);
        }
        let (mut fields, mut at, mut changed) = (FrameFields::read(&frame), point(from, HOST_PORT), 0);
        for _ in 0..STEPS_MAX {
            fields = fields.from_port(at.port);
            let here = self.sets.values().flatten().filter(|rule| rule.switch == at.switch.0);
            let rule = here.filter(|rule| rule.matching.matches(&fields)).max_by_key(|rule| rule.priority)?;
            let Some(Instruction::ApplyActions(actions)) = rule.instructions.first() else { return None };
            let mut exit = None;
            for action in actions {
                match action {
                    Action::DecNwTtl => changed += 1,
                    Action::SetField { field, value } => fields.set(*field, *value),
                    Action::PushVlan(_) => {}
                    Action::PopVlan => fields.set(Field::VlanVid, 0_u16),
                    Action::Output { port: PortNo::CONTROLLER, .. } => return None,
                    Action::Output { port: PortNo::IN_PORT, .. } => exit = Some(at.port),
                    // A switch does not send a packet back to where it came from.
                    Action::Output { port, .. } => exit = Some(*port).filter(|port| *port != at.port),
                    other => panic!("{other:?}"),
                }
            }
            let exit = ConnectPoint { switch: at.switch, port: exit? };
            if exit.port.0 == HOST_PORT {
                return Some((exit.switch.0, fields, changed));
            }
            let cable = self.cables.iter().find(|cable| cable.contains(&exit))?;
            at = *cable.iter().find(|end| **end != exit)?;
        }
        panic!("the packet goes in circles");
    }

    fn reachable(&self, from: u64) -> BTreeSet<u64> {
        let (mut reached, mut waiting) = (BTreeSet::from([from]), vec![from]);
        while let Some(switch) = waiting.pop() {
            for [a, b] in self.cables.iter().map(|cable| cable.map(|end| end.switch.0)) {
                for (here, there) in [(a, b), (b, a)] {
                    if here == switch && reached.insert(there) {
                        waiting.push(there);
                    }
                }
            }
        }
        reached
    }

    fn check(&self, switches: u64) {
        for from in 1..=switches {
            let reachable = self.reachable(from);
            for to in 1..=switches {
                let arrived = self.send(from, to);
                assert_eq!(arrived.is_some(), reachable.contains(&to), "from {from} to {to}");
                let Some((at, fields, changed)) = arrived else { continue };
                assert_eq!((at, changed), (to, 1), "from {from}");
                assert_eq!(fields.get(Field::EthDst), Some(mac(to as u8).to_u64().into()));
                assert_eq!(fields.get(Field::EthSrc), Some(MAC.to_u64().into()));
                let tag = if to % 2 == 1 { 0 } else { 0x1002 };
                assert_eq!(fields.get(Field::VlanVid), Some(tag));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_packet_arrives_with_one_hop_less_whatever_fails(
        switches in 1..7_u64,
        further in prop::collection::vec((0..6_u64, 0..6_u64), 0..6),
        failures in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let mut network = Network::new(switches, &further);
        network.check(switches);
        for failure in failures {
            if network.cables.is_empty() {
                break;
            }
            network.fail(failure.index(network.cables.len()));
            network.check(switches);
        }
    }
}

#[test]
fn a_host_that_goes_leaves_no_rule() {
    let mut network = Network::new(2, &[]);
    let before = network.sets.len();
    network.put(vec![host(50, None, point(1, HOST_PORT), "10.0.1.50")]);
    assert_eq!(network.sets.len(), before + 2);
    network.sequence += 1;
    let stamp = burnet_sdk::view::Stamp { term: 0, sequence: network.sequence, origin: 0 };
    let key = Key::Host(HostId { mac: mac(50), vlan: None });
    let batch = network.view.apply([burnet_sdk::view::Change { stamp, key, object: None }]);
    let mut out = Commands::new();
    network.ways.on_view(&batch, &network.view.snapshot(), &network.settings, &mut out);
    wanted(out.frames(), &mut network.sets);
    assert_eq!(network.sets.len(), before);
}

#[test]
fn a_default_route_leaves_packets_to_unknown_hosts_of_subnets_to_the_app() {
    let mut network = Network::new(2, &[]);
    let settings = SETTINGS.replace("192.168.0.0/16", "0.0.0.0/0").replace("10.0.2.9", "10.0.2.102");
    network.settings = settings::tests::settings(&settings).unwrap();
    network.put(vec![switch(3, "1.3")]);
    assert!(network.sets.keys().any(|name| name.starts_with("0.0.0.0/0/")), "the next router is known");
    assert!(network.send(1, 50).is_none(), "10.0.2.150 is not known");
    assert!(network.send(1, 2).is_some());
}

#[test]
fn fewer_switches_leave_no_set_of_those_that_are_gone() {
    let mut network = Network::new(130, &[]);
    let sets = |network: &Network| network.ways.sets.names("10.0.1.101/").count();
    assert_eq!(sets(&network), 3);
    network.sequence += 1;
    let stamp = burnet_sdk::view::Stamp { term: 0, sequence: network.sequence, origin: 0 };
    let gone =
        (2..=130).map(|id| burnet_sdk::view::Change { stamp, key: switch(id, "1.3").key(), object: None });
    let batch = network.view.apply(gone);
    network.ways.on_view(&batch, &network.view.snapshot(), &network.settings, &mut Commands::new());
    assert_eq!(sets(&network), 1);
}
