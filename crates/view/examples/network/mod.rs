//! Large tables for measurements: 206 switches of 48 ports, with hosts or rules.
//!
//! In: how many. Out: tables, and objects that differ from those in them. It measures nothing.

#![allow(dead_code, reason = "each measurement uses a part of it")]

use flow::{Action, DatapathId, Field, Instruction, MacAddr, Match, PortNo};
use std::collections::BTreeMap;
use view::{
    Batch, Change, ConnectPoint, EntryState, Host, HostId, Object, Port, Rule, RuleId, Stamp, Switch,
    SwitchState, Tables,
};

/// As in the paper's topology.
const SWITCHES: u64 = 206;
const PORTS: u32 = 48;

/// Tables, and the number of the last change.
pub struct Network {
    pub tables: Tables,
    sequence: u64,
}

/// A port.
pub fn at(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch % SWITCHES + 1), port: PortNo(port % PORTS + 1) }
}

impl Network {
    /// Switches and ports.
    pub fn new() -> Network {
        let mut network = Network { tables: Tables::new(), sequence: 0 };
        network.apply((0..SWITCHES).map(switch));
        network
            .apply((0..SWITCHES).flat_map(|switch| (0..PORTS).map(move |number| port(at(switch, number)))));
        network
    }

    pub fn with_hosts(count: u64) -> Network {
        let place = |number: u64| at(number, number as u32 / 206);
        Network::filled(count, |network, number| network.host(number, place(number)))
    }

    pub fn with_rules(count: u64) -> Network {
        Network::filled(count, Network::rule)
    }

    /// In updates of a thousand objects, so that an update takes no memory to speak of.
    fn filled(count: u64, make: impl Fn(&Network, u64) -> Object) -> Network {
        let mut network = Network::new();
        for first in (0..count).step_by(1_000) {
            let objects: Vec<_> =
                (first..count.min(first + 1_000)).map(|number| make(&network, number)).collect();
            network.apply(objects);
        }
        network
    }

    pub fn apply(&mut self, objects: impl IntoIterator<Item = Object>) -> Batch {
        self.sequence += 1;
        let stamp = Stamp { term: 1, sequence: self.sequence, origin: 0 };
        let change = |object: Object| Change { stamp, key: object.key(), object: Some(object) };
        self.tables.apply(objects.into_iter().map(change))
    }

    /// A host with one address.
    pub fn host(&self, number: u64, at: ConnectPoint) -> Object {
        let id = HostId { mac: MacAddr::from_u64(0x0200_0000_0000 + number), vlan: None };
        let addresses = vec![std::net::Ipv4Addr::from(0x0a00_0000 + number as u32).into()];
        Host { id, addresses, at, since_ms: 0, configured: false, annotations: BTreeMap::new() }.into()
    }

    /// A rule with two fields and one output.
    pub fn rule(&self, number: u64) -> Object {
        let matching = Match::any()
            .with(Field::EthSrc, MacAddr::from_u64(number))
            .with(Field::EthDst, MacAddr::from_u64(!number));
        let output = Action::Output { port: PortNo(1), max_len: 0 };
        Rule {
            id: RuleId {
                switch: DatapathId(number % SWITCHES + 1),
                number: number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            },
            owner: "paths".into(),
            set: "intent/1".into(),
            table_id: 0,
            priority: 100,
            matching,
            instructions: vec![Instruction::ApplyActions(vec![output])],
            cookie: number,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            state: EntryState::Installed,
        }
        .into()
    }
}

fn switch(number: u64) -> Object {
    let (annotations, description) = Default::default();
    let (id, state, openflow) = (DatapathId(number + 1), SwitchState::Up, "1.3".to_owned());
    Switch { id, state, openflow, n_tables: 1, n_buffers: 0, description, since_ms: 0, annotations }.into()
}

fn port(id: ConnectPoint) -> Object {
    let (mac, name) = (MacAddr::from_u64(1), format!("port{}", id.port));
    Port { id, name, mac, live: true, enabled: true, speed_kbps: 0, annotations: BTreeMap::new() }.into()
}
