//! Random worlds: hosts that are really somewhere and answer truthfully, attackers who do not, ports that fail. The engine must
//! find the truth, and no lie may displace a host that answers.

use super::tests::{Bed, arp, link, port};
use super::*;
use crate::table::Entry;
use proptest::prelude::*;
use std::collections::BTreeMap;

const HOSTS: u8 = 6;
const PORTS: u8 = 5;

#[derive(Clone, Debug)]
enum Step {
    /// A host speaks where it is.
    Speaks(u8),
    /// A host moves, and says so.
    Moves(u8, u8),
    /// Somebody at a port says what the host would say.
    Lies(u8, u8),
    /// Somebody with a host's own Ethernet address claims another's address.
    Claims(u8, u8),
    /// A port fails and comes back.
    Flaps(u8),
    /// A host falls silent for good.
    Leaves(u8),
    Waits(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (host, port) = (1..=HOSTS, 1..=PORTS);
    let step = prop_oneof![
        4 => host.clone().prop_map(Step::Speaks),
        2 => (host.clone(), port.clone()).prop_map(|(host, port)| Step::Moves(host, port)),
        4 => (host.clone(), port.clone()).prop_map(|(host, port)| Step::Lies(host, port)),
        2 => (host.clone(), host.clone()).prop_map(|(host, other)| Step::Claims(host, other)),
        1 => port.prop_map(Step::Flaps),
        1 => host.prop_map(Step::Leaves),
        3 => (0..60_000_u16).prop_map(Step::Waits),
    ];
    proptest::collection::vec(step, 0..80)
}

/// Where each host really is, and the engine that has to find out.
struct World {
    bed: Bed,
    really: BTreeMap<u8, u8>,
}

fn at(port: u8) -> ConnectPoint {
    format!("1/{port}").parse().unwrap()
}

impl World {
    fn frame(&mut self, port: u8, frame: &[u8]) {
        let mut out = Vec::new();
        self.bed.engine.on_frame(at(port), frame, self.bed.now_ms, &mut out);
        self.answer(&out);
    }

    /// Hosts that are asked answer, if they are where they are asked.
    fn answer(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Probe { at: asked, host, address } = effect {
                let host = host.mac.0[5];
                let is_own = *address == IpAddr::from([10, 0, 0, host]);
                if let Some(port) =
                    self.really.get(&host).copied().filter(|port| at(*port) == *asked && is_own)
                {
                    self.frame(port, &arp(host, host));
                }
            }
        }
    }

    fn wait(&mut self, ms: u64) {
        let until_ms = self.bed.now_ms + ms;
        while let Some(due_ms) = self.bed.engine.next_due().filter(|due_ms| *due_ms <= until_ms) {
            self.bed.now_ms = self.bed.now_ms.max(due_ms);
            let mut out = Vec::new();
            self.bed.engine.on_time(self.bed.now_ms, &mut out);
            self.answer(&out);
        }
        self.bed.now_ms = until_ms;
    }

    fn put(&mut self, object: &Object) {
        let mut out = Vec::new();
        self.bed.engine.on_view_put(object, self.bed.now_ms, &mut out);
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Speaks(host) => self.speak(host),
            Step::Moves(host, port) => {
                self.really.insert(host, port);
                self.speak(host);
            }
            Step::Lies(host, port) => self.frame(port, &arp(host, host)),
            Step::Claims(host, other) => {
                if let Some(port) = self.really.get(&host).copied() {
                    self.frame(port, &arp(host, other));
                }
            }
            Step::Flaps(number) => {
                self.put(&port(&format!("1/{number}"), false));
                self.put(&port(&format!("1/{number}"), true));
            }
            Step::Leaves(host) => drop(self.really.remove(&host)),
            Step::Waits(ms) => self.wait(ms.into()),
        }
    }

    fn speak(&mut self, host: u8) {
        if let Some(port) = self.really.get(&host).copied() {
            self.frame(port, &arp(host, host));
        }
    }

    fn entry(&self, host: u8) -> Option<&Entry> {
        self.bed.engine.table.get(HostId { mac: burnet_sdk::MacAddr([0, 0, 0, 0, 0, host]), vlan: None })
    }

    /// Hosts whose place in the table is the true one.
    fn known(&self) -> Vec<u8> {
        let is_known =
            |(host, port): &(&u8, &u8)| self.entry(**host).is_some_and(|entry| entry.at == at(**port));
        self.really.iter().filter(is_known).map(|(host, _)| *host).collect()
    }
}

fn moves_or_removes(step: &Step, host: u8, port: u8) -> bool {
    match *step {
        Step::Moves(moved, _) | Step::Leaves(moved) => moved == host,
        Step::Flaps(failed) => failed == port,
        _ => false,
    }
}

proptest! {
    #[test]
    fn no_lie_displaces_a_host_that_answers_and_in_the_end_the_table_is_the_truth(steps in steps()) {
        let mut world = World { bed: Bed::new(HostsSettings::default()), really: BTreeMap::new() };
        world.put(&link("1/9-2/9"));
        for host in 1..=HOSTS {
            world.take(&Step::Moves(host, host % PORTS + 1));
        }
        for step in &steps {
            let known = world.known();
            let had_address: Vec<u8> = known.iter().copied().filter(|host| has_own_address(&world, *host)).collect();
            world.take(step);
            prop_assert!(world.bed.engine.table.is_sound());
            for host in known.iter().filter(|host| !moves_or_removes(step, **host, world.really.get(host).copied().unwrap_or_default())) {
                // A host can lose its place only while it has no address by which it can be asked.
                prop_assert!(!had_address.contains(host) || world.known().contains(host), "{} after {:?}", host, step);
            }
        }
        // Silence, in which what is left of lies is decided and expires. Then each host speaks twice.
        world.wait(700_000);
        for _ in 0..2 {
            (1..=HOSTS).for_each(|host| world.speak(host));
            world.wait(20_000);
        }
        let alive: Vec<u8> = world.really.keys().copied().collect();
        prop_assert_eq!(world.known(), alive.clone());
        prop_assert_eq!(world.bed.engine.counts().hosts, alive.len() as u64);
        prop_assert!(alive.iter().all(|host| has_own_address(&world, *host)));
    }
}

fn has_own_address(world: &World, host: u8) -> bool {
    let own = IpAddr::from([10, 0, 0, host]);
    world.entry(host).is_some_and(|entry| entry.addresses.iter().any(|it| it.address == own))
}
