//! A node's session paces a switch that plays a profile, in virtual time.
//!
//! ```text
//!   rules of an app ──> Session, with the numbers of a section of burnet.toml ⇄ Switch ──> frames, packet-ins, receipts
//! ```
//!
//! What counts is what packets meet: each rule is tried by a frame when its app is told that it is programmed. A rule in hardware sends the
//! frame on at once, one in software later, and a missing one brings a packet-in. Nothing here waits in real time.

#![allow(
    clippy::unwrap_used,
    reason = "both sides are our own, so what is not as it should be is a fault that ends the experiment"
)]

use abi::command::FlowMod;
use abi::zone_id::COOKIE_MASK;
use abi::{Command, Event, Frame, Outcome, ZoneId, command::What};
use config::Switches;
use flow::canonical::{write_instructions, write_match};
use flow::{Action, DatapathId, Field, Instruction, Match, PortNo};
use openflow::{Body, Message};
use software_switch::{ControllerId, Effects, Profiles, Switch, SwitchOptions};
use southbound::session::{Session, State, Step};
use southbound::{SessionOutput, SouthboundConfig, SouthboundEvent, SwitchPace, Tag, Turn};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

const C0: ControllerId = ControllerId(0);
const DATAPATH: DatapathId = DatapathId(1);
const PLANNER: ZoneId = ZoneId(1);

/// When a frame tries a rule that was sent: the HP's CPU has served it, and its hardware may not have it yet.
const TRIED_AFTER: Duration = Duration::from_millis(60);

/// A node's session and a switch, on one clock.
pub struct Pair {
    /// Of the node.
    pub session: Session,
    /// Its switch.
    pub switch: Switch,
    /// The time.
    pub now: Duration,
    /// Ticket, outcome and time of each receipt.
    pub receipts: Vec<(u64, Outcome, Duration)>,
    /// How many packet-ins came, with the time of the last.
    pub packet_ins: Vec<Duration>,
    /// How often the session said that the switch has left its profile.
    pub departures: usize,
    /// Rules that were sent, to be tried a little later: when, and the host.
    to_try: VecDeque<(Duration, u32)>,
    /// Whether each rule is tried a little after it was sent.
    pub tries: bool,
    /// Frames that a rule in software has sent on.
    pub by_software: usize,
}

/// The numbers of a section of `burnet.toml`.
pub fn pace_of(section: &str) -> Arc<SwitchPace> {
    #[derive(serde::Deserialize)]
    struct File {
        switch: Switches,
    }
    let file: File = toml::from_str(&format!("[switch.1]\n{section}")).unwrap();
    file.switch.paces().unwrap().of(DATAPATH, None).unwrap()
}

impl Pair {
    /// A switch that plays a profile is up, and is treated like this.
    pub fn new(plays: &str, treated: Arc<SwitchPace>) -> Pair {
        let profile = profile::built_in(plays).unwrap();
        let options = SwitchOptions { profiles: Profiles::for_all(profile), ..SwitchOptions::default() };
        let config = SouthboundConfig::default();
        let mut pair = Pair {
            session: Session::new(&config, 0),
            switch: Switch::new(DATAPATH, "s1", options),
            now: Duration::ZERO,
            receipts: Vec::new(),
            packet_ins: Vec::new(),
            departures: 0,
            to_try: VecDeque::new(),
            tries: false,
            by_software: 0,
        };
        let mut effects = Effects::default();
        (1..=2).for_each(|port| pair.switch.add_port(PortNo(port), Duration::ZERO, &mut effects));
        pair.switch.on_connected(C0, &mut effects);
        pair.turn(|session, turn| session.open(turn));
        pair.hear(effects);
        pair.pass_to(Duration::from_secs(2));
        assert_eq!(pair.session.state(), State::Up);
        let now_ms = pair.now_ms();
        pair.session.set_pace(Some(treated), now_ms);
        pair
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.now.as_millis()).unwrap()
    }

    /// The session's turn. What it writes goes to the switch, and what that answers at once comes back.
    fn turn<T>(&mut self, act: impl FnOnce(&mut Session, &mut Turn<'_>) -> T) -> T {
        let (mut out, mut frame, now_ms, now) = (Vec::new(), Vec::new(), self.now_ms(), self.now);
        let Pair { session, receipts, packet_ins, departures, .. } = self;
        let mut sink = |effect: SessionOutput<'_>| match effect {
            SessionOutput::Out(SouthboundEvent::Event(bytes)) => {
                let is_packet_in =
                    matches!(Event::read(&Frame::read(bytes).unwrap()).unwrap(), Event::PacketIn(_));
                packet_ins.extend(is_packet_in.then_some(now));
            }
            SessionOutput::Out(SouthboundEvent::ToZone { frame, .. }) => {
                if let Event::Receipt(_, it) = Event::read(&Frame::read(frame).unwrap()).unwrap() {
                    receipts.push((it.ticket, it.outcome, now));
                }
            }
            SessionOutput::Out(SouthboundEvent::LeftProfile { .. }) => *departures += 1,
            SessionOutput::Out(_) | SessionOutput::Line(_) => {}
        };
        let mut turn = Turn { now_ms, out: &mut out, frame: &mut frame, sink: &mut sink };
        let done = act(session, &mut turn);
        session.on_turn_end(&mut turn);
        self.say(&out);
        done
    }

    fn say(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(length) = openflow::frame_len(rest) {
            let (message, behind) = rest.split_at(length.unwrap());
            let mut effects = Effects::default();
            let message = Message::decode(message).unwrap();
            if let (Body::FlowMod(it), true) = (&message.body, self.tries) {
                let host = u32::try_from(it.cookie & COOKIE_MASK).unwrap();
                self.to_try.push_back((self.now + TRIED_AFTER, host));
            }
            self.switch.on_message(C0, &message, self.now, &mut effects);
            self.hear(effects);
            rest = behind;
        }
    }

    fn hear(&mut self, effects: Effects) {
        for (_, message) in effects.messages {
            let mut bytes = Vec::new();
            message.encode(&mut bytes).unwrap();
            self.turn(|session, turn| {
                if session.on_message(&bytes, turn).unwrap() == Step::Identified {
                    session.admit(turn);
                }
            });
        }
    }

    fn due(&self) -> Option<Duration> {
        let session = self.session.due_ms().map(Duration::from_millis);
        let to_try = self.to_try.front().map(|(at, _)| *at);
        session.into_iter().chain(self.switch.next_due()).chain(to_try).min()
    }

    /// Lets time pass, event by event.
    pub fn pass_to(&mut self, until: Duration) {
        while let Some(due) = self.due().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.step();
        }
        self.now = self.now.max(until);
    }

    fn step(&mut self) {
        let mut effects = Effects::default();
        if self.switch.next_due().is_some_and(|due| due <= self.now) {
            self.switch.on_tick(self.now, &mut effects);
            self.by_software += effects.frames.len();
            self.hear(effects);
        }
        while let Some((_, host)) = self.to_try.pop_front_if(|(at, _)| *at <= self.now) {
            self.is_in_hardware(host);
        }
        if self.session.due_ms().is_some_and(|due_ms| due_ms <= self.now_ms()) {
            self.turn(|session, turn| session.on_time(0, turn));
        }
    }

    /// An app adds a rule for a host, with a receipt.
    pub fn add(&mut self, host: u32, priority: u16) {
        self.add_rule(host, priority, true);
    }

    /// The same, with or without a receipt.
    pub fn add_rule(&mut self, host: u32, priority: u16, wants_receipt: bool) {
        let (mut matching, mut instructions) = (Vec::new(), Vec::new());
        let fields = Match::any().with(Field::EthType, 0x0800_u16).with(Field::Ipv4Dst, host);
        write_match(&fields, &mut matching);
        let output = Action::Output { port: PortNo(2), max_len: 0 };
        write_instructions(&[Instruction::ApplyActions(vec![output])], &mut instructions).unwrap();
        let what = What::FlowMod(FlowMod {
            priority,
            matching: &matching,
            instructions: &instructions,
            ..FlowMod::ADD
        });
        let command = Command { datapath: DATAPATH, ticket: host.into(), wants_receipt, what };
        let tag = Tag { zone: PLANNER, generation: 0, ticket: host.into() };
        let sent =
            self.turn(|session, turn| session.send(&command, PLANNER.stamp(host.into()), tag, 0, turn));
        assert_eq!(sent, Ok(()));
    }

    /// A frame for a host. Returns whether it left at once by the port of the rule.
    pub fn is_in_hardware(&mut self, host: u32) -> bool {
        let mut frame = vec![0; 1_500];
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        frame[30..34].copy_from_slice(&host.to_be_bytes());
        let mut effects = Effects::default();
        self.switch.on_frame(PortNo(1), frame, self.now, &mut effects);
        let has_left = effects.frames.iter().any(|(port, _)| *port == PortNo(2));
        self.hear(effects);
        has_left
    }

    /// All receipts are there. Each rule is tried when its app is told.
    pub fn until_all_are_told(&mut self, count: usize) -> usize {
        let (mut looked_at, mut in_hardware) = (0, 0);
        while self.receipts.len() < count {
            self.now = self.due().unwrap().max(self.now);
            self.step();
            for place in looked_at..self.receipts.len() {
                let (host, outcome, _) = self.receipts[place];
                assert_eq!(outcome, Outcome::Programmed, "{host}");
                in_hardware += usize::from(self.is_in_hardware(host.try_into().unwrap()));
            }
            looked_at = self.receipts.len();
        }
        in_hardware
    }
}

/// The delays of the packets of another app, one each 400 ms, in milliseconds.
pub fn delays_of_packet_ins(pair: &mut Pair, seconds: u64) -> Vec<f64> {
    let (from, mut delays) = (pair.now, Vec::new());
    for number in 0..seconds * 5 / 2 {
        pair.pass_to(from + Duration::from_millis(400 * number));
        let (sent, before) = (pair.now, pair.packet_ins.len());
        assert!(!pair.is_in_hardware(0x0b00_0000), "it has no rule");
        pair.pass_to(sent + Duration::from_millis(390));
        let came = pair.packet_ins.get(before).expect("no packet-in is lost");
        delays.push((*came - sent).as_secs_f64() * 1e3);
    }
    delays.sort_by(f64::total_cmp);
    delays
}

/// The mean; not a number without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How long a switch takes to add rules whose priorities fall, in seconds.
pub fn falling_priorities(plays: &str, treated: SwitchPace, count: u16) -> f64 {
    let mut pair = Pair::new(plays, Arc::new(treated));
    let began = pair.now;
    (0..count).for_each(|number| pair.add(number.into(), 20_000 - number));
    assert_eq!(pair.until_all_are_told(count.into()), usize::from(count));
    (pair.now - began).as_secs_f64()
}
