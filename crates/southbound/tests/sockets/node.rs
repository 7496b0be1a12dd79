//! A worker's loop as the binary has it, driven by hand.

use abi::{Event, Frame, ZoneId};
use flow::DatapathId;
use mio::{Events, Poll, Token};
use southbound::{
    Listeners, Roster, SessionEnd, Southbound, SouthboundConfig, SouthboundEvent, SwitchRecord,
};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A test that has not got there by then has failed; nothing else depends on it.
const GIVE_UP: Duration = Duration::from_secs(60);

pub struct Node {
    poll: Poll,
    ready: Events,
    listeners: Listeners,
    pub southbound: Southbound,
    pub roster: Arc<Roster>,
    pub now_ms: u64,
    /// Where connections are taken to come from, instead of where they do.
    pub as_if_from: Option<IpAddr>,
    pub frames: Vec<Vec<u8>>,
    pub to_zones: Vec<(ZoneId, Vec<u8>)>,
    /// Sessions that ended.
    pub ended: Vec<(Option<DatapathId>, SessionEnd)>,
}

impl Node {
    pub fn new(config: SouthboundConfig) -> Node {
        let roster = Arc::new(Roster::new(config.caps()));
        Node::of_worker(config, roster, 0)
    }

    /// One worker of several, which share a roster.
    pub fn of_worker(config: SouthboundConfig, roster: Arc<Roster>, number: usize) -> Node {
        let poll = Poll::new().unwrap();
        let mut listeners = Listeners::bind(&["127.0.0.1:0".parse().unwrap()]).unwrap();
        listeners.register(poll.registry(), 0).unwrap();
        let registry = poll.registry().try_clone().unwrap();
        let southbound = Southbound::new(config, roster.clone(), number, registry, listeners.len());
        Node {
            poll,
            ready: Events::with_capacity(64),
            listeners,
            southbound,
            roster,
            now_ms: 0,
            as_if_from: None,
            frames: Vec::new(),
            to_zones: Vec::new(),
            ended: Vec::new(),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.listeners.addresses()[0]
    }

    /// One turn of the loop: everything that is ready, and then one flush.
    pub fn turn(&mut self) {
        self.read();
        let Node { southbound, now_ms, frames, to_zones, ended, .. } = self;
        let mut sink = |event: SouthboundEvent<'_>| match event {
            SouthboundEvent::Event(frame) => frames.push(frame.to_vec()),
            SouthboundEvent::ToZone { zone, frame, .. } => to_zones.push((zone, frame.to_vec())),
            SouthboundEvent::BundleOver { .. }
            | SouthboundEvent::Entries { .. }
            | SouthboundEvent::LeftProfile { .. } => {}
            SouthboundEvent::Ended { datapath, end, .. } => ended.push((datapath, end.clone())),
        };
        southbound.settle(*now_ms, &mut sink);
        southbound.flush(*now_ms, &mut sink);
    }

    /// Everything that is ready. Each connection gets its answers after it was read.
    pub fn read(&mut self) {
        let Node { poll, ready, listeners, southbound, now_ms, frames, to_zones, ended, as_if_from, .. } =
            self;
        let mut sink = |event: SouthboundEvent<'_>| match event {
            SouthboundEvent::Event(frame) => frames.push(frame.to_vec()),
            SouthboundEvent::ToZone { zone, frame, .. } => to_zones.push((zone, frame.to_vec())),
            SouthboundEvent::BundleOver { .. }
            | SouthboundEvent::Entries { .. }
            | SouthboundEvent::LeftProfile { .. } => {}
            SouthboundEvent::Ended { datapath, end, .. } => ended.push((datapath, end.clone())),
        };
        let wait_ms = if southbound.has_backlog() { 0 } else { 2 };
        poll.poll(ready, Some(Duration::from_millis(wait_ms))).unwrap();
        southbound.release(*now_ms);
        for _ in 0..southbound.waiting() {
            southbound.resume(*now_ms, &mut sink);
            southbound.flush_last_read(*now_ms, &mut sink);
        }
        for event in ready.iter() {
            if southbound.owns(event.token()) {
                southbound.on_ready(event.token(), event.into(), *now_ms, &mut sink);
                southbound.flush_last_read(*now_ms, &mut sink);
            } else {
                let Token(index) = event.token();
                while listeners.accept(index, |stream, peer| {
                    let from = SocketAddr::new(as_if_from.unwrap_or(peer.ip()), peer.port());
                    drop(southbound.adopt(stream, from, *now_ms));
                }) {}
            }
        }
    }

    /// Sets the clock and says so.
    pub fn tick(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let Node { southbound, frames, ended, .. } = self;
        southbound.on_tick(now_ms, &mut |event| match event {
            SouthboundEvent::Event(frame) => frames.push(frame.to_vec()),
            SouthboundEvent::ToZone { .. } => {}
            SouthboundEvent::BundleOver { .. }
            | SouthboundEvent::Entries { .. }
            | SouthboundEvent::LeftProfile { .. } => {}
            SouthboundEvent::Ended { datapath, end, .. } => ended.push((datapath, end.clone())),
        });
        self.turn();
    }

    /// Turns until `done`.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Node) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(began.elapsed() < GIVE_UP, "it never came to this: {what}");
            self.turn();
        }
    }

    /// How many events of a kind came so far.
    pub fn count(&self, wanted: impl Fn(&Event<'_>) -> bool) -> usize {
        let read = |frame: &Vec<u8>| wanted(&Event::read(&Frame::read(frame).unwrap()).unwrap());
        self.frames.iter().filter(|frame| read(frame)).count()
    }

    pub fn ups(&self) -> usize {
        self.count(|event| matches!(event, Event::SwitchUp(_)))
    }

    pub fn downs(&self) -> usize {
        self.count(|event| matches!(event, Event::SwitchDown(_)))
    }

    pub fn packet_ins(&self) -> usize {
        self.count(|event| matches!(event, Event::PacketIn(_)))
    }

    /// The only switch that is up.
    pub fn only_switch(&self) -> SwitchRecord {
        let mut switches = self.roster.switches();
        assert_eq!(switches.len(), 1, "{switches:?}");
        switches.remove(0)
    }
}
