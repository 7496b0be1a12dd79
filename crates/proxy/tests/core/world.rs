//! A world in virtual time: a software switch, the proxy before it, and a controller that is the test.
//!
//! In: frames, and messages of the controller. Out: what the controller hears and what leaves the switch, each with its time. The switch
//! needs a constant time for each message that it sends.

use flow::{DatapathId, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version, stream};
use profile::{Profile, Quantiles};
use proxy::{Commands, Event, Method, Passage, Proxy, Release, Settings};
use software_switch::{ControllerId, Effects, Switch, SwitchOptions, Versions};
use std::collections::BTreeMap;
use std::time::Duration;

const C: ControllerId = ControllerId(0);
pub const MS: u64 = 1_000_000;
/// How long the switch needs for each message that it sends.
pub const OF_SWITCH: u64 = MS;
/// The time at which a world begins: after the handshake.
pub const START: u64 = 1_000 * MS;

pub struct World {
    pub proxy: Proxy,
    pub switch: Switch,
    pub version: Version,
    pub now: u64,
    /// What the controller has heard.
    pub heard: Vec<(u64, Message)>,
    /// What has left the switch.
    pub left: Vec<(u64, PortNo, Vec<u8>)>,
    /// What the switch got.
    pub got: Vec<(u64, Message)>,
    /// What it got up to the end of the handshake.
    pub first: Vec<Message>,
    /// What the proxy has let go.
    pub released: Vec<Release>,
    /// Why the proxy ended the session.
    pub ended: Option<String>,
    /// Whether the switch keeps its answers to barriers back.
    pub is_mute: bool,
    kept_back: Vec<Vec<u8>>,
    on_the_way: BTreeMap<(u64, u64), Vec<u8>>,
    sent: u64,
    xid: u32,
}

/// The base: what the switch of a world is.
pub fn base() -> Profile {
    let mut base = Profile::null();
    base.delay.ingress_us = Quantiles::constant(OF_SWITCH as f64 / 1e3);
    base
}

pub fn settings(profile: Profile, method: Method) -> Settings {
    Settings { profile, base: base(), method, seed: 1, slow_motion: 1 }
}

impl World {
    pub fn new(profile: &Profile, method: Method, version: Version) -> World {
        Self::with_switch(
            profile,
            method,
            version,
            SwitchOptions { n_buffers: 0, ..SwitchOptions::default() },
        )
    }

    pub fn in_slow_motion(profile: &Profile, method: Method, version: Version, slow_motion: u32) -> World {
        let options = SwitchOptions { n_buffers: 0, ..SwitchOptions::default() };
        Self::begin(Settings { slow_motion, ..settings(profile.clone(), method) }, version, options)
    }

    pub fn with_switch(profile: &Profile, method: Method, version: Version, options: SwitchOptions) -> World {
        Self::begin(settings(profile.clone(), method), version, options)
    }

    fn begin(settings: Settings, version: Version, options: SwitchOptions) -> World {
        let versions = if version == Version::V1_0 { Versions::Only10 } else { Versions::Only13 };
        let mut world = World {
            proxy: Proxy::new(settings),
            switch: Switch::new(DatapathId(1), "s1", SwitchOptions { versions, ..options }),
            version,
            now: 0,
            heard: Vec::new(),
            left: Vec::new(),
            got: Vec::new(),
            first: Vec::new(),
            released: Vec::new(),
            ended: None,
            is_mute: false,
            kept_back: Vec::new(),
            on_the_way: BTreeMap::new(),
            sent: 0,
            xid: 0x0100_0000,
        };
        let mut effects = Effects::default();
        (1..=3).for_each(|port| world.switch.add_port(PortNo(port), Duration::ZERO, &mut effects));
        world.switch.on_connected(C, &mut effects);
        world.take(effects);
        world.says(Body::Hello(Hello::default()));
        world.says(Body::FeaturesRequest);
        world.run_until(START);
        assert!(world.heard.iter().any(|(_, message)| matches!(message.body, Body::FeaturesReply(_))));
        world.heard.clear();
        world.first = world.got.drain(..).map(|(_, message)| message).collect();
        world
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// The controller says something. Returns the transaction id.
    pub fn says(&mut self, body: Body) -> u32 {
        self.xid += 1;
        let mut bytes = Vec::new();
        Message { version: self.version, xid: self.xid, body }.encode(&mut bytes).unwrap();
        self.says_bytes(&bytes);
        self.xid
    }

    pub fn says_bytes(&mut self, bytes: &[u8]) {
        let mut out = Commands::default();
        let passage = self.proxy.on_event(self.now, Event::FromController(bytes), &mut out);
        if passage == Passage::Unchanged {
            out.to_switch.extend_from_slice(bytes);
        }
        self.carry_out(out);
    }

    /// A frame comes to a port, where a tap sees it.
    pub fn frame(&mut self, port: u32, frame: &[u8]) {
        self.seen_frame(port, frame);
        self.unseen_frame(port, frame);
    }

    /// A tap sees a frame, of which the test says what the switch does with it.
    pub fn seen_frame(&mut self, port: u32, frame: &[u8]) {
        let mut out = Commands::default();
        let event = Event::Frame { port: PortNo(port), arrived_ns: self.now, frame };
        assert_eq!(self.proxy.on_event(self.now, event, &mut out), Passage::Taken);
        self.carry_out(out);
    }

    /// The same without a tap.
    pub fn unseen_frame(&mut self, port: u32, frame: &[u8]) {
        let mut effects = Effects::default();
        self.switch.on_frame(PortNo(port), frame.to_vec(), self.time(), &mut effects);
        self.take(effects);
    }

    fn take(&mut self, effects: Effects) {
        for (_, message) in effects.messages {
            let mut bytes = Vec::new();
            message.encode(&mut bytes).unwrap();
            if self.is_mute && message.body == Body::BarrierReply {
                self.kept_back.push(bytes);
            } else {
                self.send(bytes);
            }
        }
        self.left.extend(effects.frames.into_iter().map(|(port, frame)| (self.now, port, frame)));
    }

    /// The switch sends a message.
    fn send(&mut self, bytes: Vec<u8>) {
        self.sent += 1;
        self.on_the_way.insert((self.now + OF_SWITCH, self.sent), bytes);
    }

    /// The switch answers all barriers.
    pub fn unmute(&mut self) {
        self.is_mute = false;
        std::mem::take(&mut self.kept_back).into_iter().for_each(|bytes| self.send(bytes));
    }

    fn carry_out(&mut self, out: Commands) {
        self.released.extend_from_slice(&out.releases);
        if let Some(rubbish) = out.end {
            self.ended = Some(rubbish.to_string());
        }
        stream::cut(&out.to_switch, |bytes| {
            let message = Message::decode(bytes).unwrap();
            let mut effects = Effects::default();
            self.switch.on_received(C, &message, bytes, self.time(), &mut effects);
            self.got.push((self.now, message));
            self.take(effects);
            true
        })
        .unwrap();
        stream::cut(&out.to_controller, |bytes| {
            self.heard.push((self.now, Message::decode(bytes).unwrap()));
            true
        })
        .unwrap();
    }

    /// The switch says something with this transaction id.
    pub fn switch_says(&mut self, xid: u32, body: Body) {
        let mut bytes = Vec::new();
        Message { version: self.version, xid, body }.encode(&mut bytes).unwrap();
        self.send(bytes);
        self.run_for(2 * OF_SWITCH);
    }

    /// Everything that happens until then.
    pub fn run_until(&mut self, end: u64) {
        loop {
            let next = self.on_the_way.first_key_value().map(|(key, _)| *key);
            let due = self.proxy.next_due_ns();
            let of_switch = self.switch.next_due().map(|due| due.as_nanos() as u64);
            let first = [next.map(|(at, _)| at), due, of_switch].into_iter().flatten().min();
            let Some(first) = first.filter(|at| *at <= end) else { break };
            self.now = self.now.max(first);
            let mut out = Commands::default();
            if due.is_some_and(|due| due <= self.now) {
                assert_eq!(self.proxy.on_event(self.now, Event::Time, &mut out), Passage::Taken);
            } else if let Some(key) = next.filter(|(at, _)| *at <= self.now) {
                let bytes = self.on_the_way.remove(&key).unwrap();
                if self.proxy.on_event(self.now, Event::FromSwitch(&bytes), &mut out) == Passage::Unchanged {
                    out.to_controller.extend_from_slice(&bytes);
                }
            } else {
                let mut effects = Effects::default();
                self.switch.on_tick(self.time(), &mut effects);
                self.take(effects);
            }
            self.carry_out(out);
        }
        self.now = self.now.max(end);
    }

    pub fn run_for(&mut self, ns: u64) {
        self.run_until(self.now + ns);
    }

    /// The packet-ins that the controller has heard.
    pub fn packet_ins(&self) -> Vec<(u64, PacketIn)> {
        let packet_in = |(at, message): &(u64, Message)| match &message.body {
            Body::PacketIn(packet) => Some((*at, packet.clone())),
            _ => None,
        };
        self.heard.iter().filter_map(packet_in).collect()
    }

    /// The errors that the controller has heard: transaction id, type, code.
    pub fn errors(&self) -> Vec<(u32, u16, u16)> {
        let error = |(_, message): &(u64, Message)| match &message.body {
            Body::Error(error) => Some((message.xid, error.kind, error.code)),
            _ => None,
        };
        self.heard.iter().filter_map(error).collect()
    }

    /// When the controller heard the answer with this transaction id.
    pub fn answered(&self, xid: u32) -> Option<u64> {
        self.heard.iter().find(|(_, message)| message.xid == xid).map(|(at, _)| *at)
    }

    /// How many rules the switch has.
    pub fn rules(&self) -> usize {
        self.switch.flow_count()
    }
}
