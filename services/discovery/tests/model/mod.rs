//! A network in memory: switches, cables, and segments of other people's switches.
//!
//! In: the engine's commands, and failures. Out: what the engine hears, and which links there truly are. It knows nothing of probes
//! but their EtherType.

use discovery::engine::{Command, Engine, Event};
use discovery::frame::{BDDP, Signer};
use discovery::time::{DiscoverySettings, Now};
use discovery_contract::Incident;
use flow::{DatapathId, MacAddr, PortNo};
use std::collections::{BTreeMap, BTreeSet};
use view::{
    Annotations, ConnectPoint, Key, LinkId, LinkKind, LinkState, Object, Port, Record, Switch, SwitchState,
};

/// How long a frame is on its way.
const FLIGHT_US: u64 = 400;

pub fn at(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch), port: PortNo(port) }
}

pub struct Network {
    pub engine: Engine,
    pub now_us: u64,
    /// What a follower has: the records that were published.
    pub view: BTreeMap<Key, Record>,
    pub incidents: Vec<Incident>,
    /// Frames that were sent, with their ports and times.
    pub sent: Vec<(u64, ConnectPoint, Vec<u8>)>,
    pub published: usize,
    up: BTreeSet<u64>,
    live: BTreeMap<ConnectPoint, bool>,
    cables: BTreeMap<ConnectPoint, ConnectPoint>,
    /// Cables that lose everything, with their ports up.
    silent: BTreeSet<ConnectPoint>,
    /// Ports that share a segment of other people's switches.
    segments: Vec<BTreeSet<ConnectPoint>>,
    flying: BTreeMap<(u64, u64), (ConnectPoint, Vec<u8>)>,
    flights: u64,
}

impl Network {
    pub fn new(settings: DiscoverySettings) -> Network {
        let signer = Signer { key: [5; 32], run: 77 };
        Network {
            engine: Engine::new(settings, signer, 1),
            now_us: 0,
            view: BTreeMap::new(),
            incidents: Vec::new(),
            sent: Vec::new(),
            published: 0,
            up: BTreeSet::new(),
            live: BTreeMap::new(),
            cables: BTreeMap::new(),
            silent: BTreeSet::new(),
            segments: Vec::new(),
            flying: BTreeMap::new(),
            flights: 0,
        }
    }

    pub fn cable(&mut self, one: ConnectPoint, two: ConnectPoint) {
        self.cables.extend([(one, two), (two, one)]);
        self.live.extend([(one, true), (two, true)]);
    }

    /// A port with a host.
    pub fn edge(&mut self, port: ConnectPoint) {
        self.live.insert(port, true);
    }

    pub fn segment(&mut self, ports: &[ConnectPoint]) {
        self.live.extend(ports.iter().map(|port| (*port, true)));
        self.segments.push(ports.iter().copied().collect());
    }

    pub fn unplug(&mut self, port: ConnectPoint) {
        if let Some(other) = self.cables.remove(&port) {
            self.cables.remove(&other);
        }
    }

    /// The cable of this port loses everything, or nothing.
    pub fn set_silent(&mut self, port: ConnectPoint, is_silent: bool) {
        let Some(other) = self.cables.get(&port).copied() else { return };
        for end in [port, other] {
            if is_silent {
                self.silent.insert(end)
            } else {
                self.silent.remove(&end)
            };
        }
    }

    pub fn set_live(&mut self, id: ConnectPoint, is_live: bool) {
        self.live.insert(id, is_live);
        if self.up.contains(&id.switch.0) {
            self.feed(Event::PortChanged(port(id, is_live)));
        }
    }

    pub fn connect(&mut self, switch: u64) {
        self.up.insert(switch);
        let ports = self.live.iter().filter(|(id, _)| id.switch.0 == switch);
        let ports = ports.map(|(id, is_live)| port(*id, *is_live)).collect();
        let switch = Switch {
            id: DatapathId(switch),
            state: SwitchState::Up,
            openflow: "1.3".to_owned(),
            n_tables: 1,
            n_buffers: 0,
            description: BTreeMap::new(),
            since_ms: self.now_us / 1_000,
            annotations: Annotations::new(),
        };
        self.feed(Event::SwitchUp(switch, ports));
    }

    pub fn disconnect(&mut self, switch: u64) {
        self.up.remove(&switch);
        self.feed(Event::SwitchDown(DatapathId(switch)));
    }

    pub fn connect_all(&mut self) {
        let switches: BTreeSet<u64> = self.live.keys().map(|port| port.switch.0).collect();
        switches.into_iter().for_each(|switch| self.connect(switch));
    }

    /// A host sends this frame into a port.
    pub fn host_sends(&mut self, into: ConnectPoint, frame: &[u8]) {
        self.feed(Event::Frame(into, frame));
    }

    pub fn run_for_ms(&mut self, ms: u64) {
        let until_us = self.now_us + ms * 1_000;
        loop {
            let flight_us = self.flying.keys().next().map(|(us, _)| *us);
            let next_us = flight_us.unwrap_or(u64::MAX).min(self.engine.next_us()).max(self.now_us);
            if next_us > until_us {
                break;
            }
            self.now_us = next_us;
            match flight_us == Some(next_us) {
                true => {
                    let Some((_, (to, frame))) = self.flying.pop_first() else { continue };
                    if self.can_forward(to) {
                        self.feed(Event::Frame(to, &frame));
                    }
                }
                false => self.feed(Event::Time),
            }
        }
        self.now_us = until_us;
    }

    fn feed(&mut self, event: Event<'_>) {
        let now = Now { us: self.now_us, unix_ms: self.now_us / 1_000 };
        let mut commands = Vec::new();
        self.engine.on_event(event, now, &mut commands);
        for command in commands {
            match command {
                Command::AddRules(_) | Command::Describe(_) => {}
                Command::Send(from, frame) => {
                    self.fly(from, &frame);
                    self.sent.push((self.now_us, from, frame));
                }
                Command::Publish((key, record)) => {
                    self.published += 1;
                    match record {
                        Some(record) => self.view.insert(key, record),
                        None => self.view.remove(&key),
                    };
                    self.check_integrity();
                }
                Command::Report(incident) => self.incidents.push(incident),
            }
        }
    }

    fn check_integrity(&self) {
        for key in self.view.keys() {
            let needs: Vec<Key> = match key {
                Key::Link(id) => vec![Key::Port(id.from), Key::Port(id.to)],
                Key::Port(id) => vec![Key::Switch(id.switch)],
                _ => Vec::new(),
            };
            assert!(needs.iter().all(|needed| self.view.contains_key(needed)), "{key} without {needs:?}");
        }
    }

    fn can_forward(&self, port: ConnectPoint) -> bool {
        self.up.contains(&port.switch.0) && self.live.get(&port) == Some(&true)
    }

    fn fly(&mut self, from: ConnectPoint, frame: &[u8]) {
        if !self.can_forward(from) || self.silent.contains(&from) {
            return;
        }
        let is_broadcast = frame[12..14] == BDDP.to_be_bytes();
        let segments = self.segments.iter().filter(|segment| is_broadcast && segment.contains(&from));
        let others = segments.flatten().copied().filter(|other| *other != from);
        let ends: Vec<ConnectPoint> = self.cables.get(&from).copied().into_iter().chain(others).collect();
        for to in ends {
            self.flights += 1;
            self.flying.insert((self.now_us + FLIGHT_US, self.flights), (to, frame.to_vec()));
        }
    }

    /// The links that carry frames, as the cables and segments say.
    pub fn truth(&self) -> BTreeMap<LinkId, LinkKind> {
        let usable = |port: &ConnectPoint| self.can_forward(*port) && !self.silent.contains(port);
        let direct = self.cables.iter().filter(|(from, to)| usable(from) && usable(to));
        let mut links: BTreeMap<LinkId, LinkKind> =
            direct.map(|(from, to)| (LinkId { from: *from, to: *to }, LinkKind::Direct)).collect();
        for segment in &self.segments {
            for from in segment.iter().filter(|port| usable(port)) {
                let others = segment.iter().filter(|to| usable(to) && *to != from);
                links.extend(others.map(|to| (LinkId { from: *from, to: *to }, LinkKind::Indirect)));
            }
        }
        links
    }

    /// The links that are up in the view.
    pub fn found(&self) -> BTreeMap<LinkId, LinkKind> {
        let up = self.view.values().filter_map(|record| match &record.object {
            Object::Link(link) if link.state == LinkState::Up => Some((link.id, link.found)),
            _ => None,
        });
        up.collect()
    }
}

fn port(id: ConnectPoint, live: bool) -> Port {
    Port {
        id,
        name: format!("port{}", id.port),
        mac: MacAddr::from_u64(id.switch.0 << 16 | u64::from(id.port.0)),
        live,
        enabled: true,
        speed_kbps: 10_000_000,
        annotations: Annotations::new(),
    }
}
