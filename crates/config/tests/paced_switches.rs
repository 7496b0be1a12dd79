//! A session paces switches that play their profiles, in virtual time: 1,000 rules at once.
//!
//! The settings are those of `burnet.toml`. What counts is what packets meet: each rule is tried by a frame when its app is told that it is
//! programmed. A rule in hardware sends the frame on at once, one in software later, and a missing one brings a packet-in.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

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
struct Pair {
    session: Session,
    switch: Switch,
    now: Duration,
    /// Ticket, outcome and time of each receipt.
    receipts: Vec<(u64, Outcome, Duration)>,
    /// How many packet-ins came, with the time of the last.
    packet_ins: Vec<Duration>,
    departures: usize,
    /// Rules that were sent, to be tried a little later: when, and the host.
    to_try: VecDeque<(Duration, u32)>,
    tries: bool,
    /// Frames that a rule in software has sent on.
    by_software: usize,
}

/// The numbers of a section of `burnet.toml`.
fn pace_of(section: &str) -> Arc<SwitchPace> {
    #[derive(serde::Deserialize)]
    struct File {
        switch: Switches,
    }
    let file: File = toml::from_str(&format!("[switch.1]\n{section}")).unwrap();
    file.switch.paces().unwrap().of(DATAPATH, None).unwrap()
}

impl Pair {
    /// A switch that plays a profile is up, and is treated like this.
    fn new(plays: &str, treated: Arc<SwitchPace>) -> Pair {
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
    fn pass_to(&mut self, until: Duration) {
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
    fn add(&mut self, host: u32, priority: u16) {
        self.add_rule(host, priority, true);
    }

    fn add_rule(&mut self, host: u32, priority: u16, wants_receipt: bool) {
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
    fn is_in_hardware(&mut self, host: u32) -> bool {
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
    fn until_all_are_told(&mut self, count: usize) -> usize {
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
fn delays_of_packet_ins(pair: &mut Pair, seconds: u64) -> Vec<f64> {
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

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn a_thousand_rules_at_once_are_all_in_the_hardware_of_the_hp_in_a_thousand_eighths_of_a_second() {
    let mut pair =
        Pair::new("hp-procurve-j9451a", pace_of("profile = 'hp-procurve-j9451a'\npace = 'hardware'"));
    let began = pair.now;
    pair.tries = true;
    (0..1_000).for_each(|host| pair.add(host, 7));
    assert_eq!(pair.until_all_are_told(1_000), 1_000, "in hardware when the app is told");
    assert_eq!(pair.by_software, 0, "and never in software before");
    let took = (pair.now - began).as_secs_f64();
    assert!(took <= 1.05 * 1_000.0 / 8.0, "{took} s");
    assert_eq!((pair.switch.flow_count(), pair.session.counters().errors_in), (1_000, 0));
    assert_eq!(pair.departures, 0);
    println!("HP: 1,000 rules in {took:.1} s, all in hardware");
}

#[test]
fn without_a_pace_most_of_them_are_in_the_software_of_the_hp_for_a_while() {
    let mut pair = Pair::new("hp-procurve-j9451a", pace_of("profile = 'hp-procurve-j9451a'\npace = 'none'"));
    // Without a barrier behind each, for which this switch would wait.
    (0..200).for_each(|host| pair.add_rule(host, 7, false));
    // 200 adds of 20 ms.
    pair.pass_to(pair.now + Duration::from_secs(5));
    let in_hardware = (0..200).filter(|host| pair.is_in_hardware(*host)).count();
    pair.pass_to(pair.now + Duration::from_secs(2));
    println!(
        "HP without a pace: after 7 s, {in_hardware} of 200 rules in hardware, {} frames by software",
        pair.by_software
    );
    assert!(in_hardware < 100 && pair.by_software > 0, "{in_hardware}, {}", pair.by_software);
}

#[test]
fn packet_ins_of_another_app_are_on_average_at_most_twice_as_late_while_a_thousand_rules_wait() {
    let paced = || pace_of("profile = 'hp-procurve-j9451a'\npace = 'hardware'");
    let idle = delays_of_packet_ins(&mut Pair::new("hp-procurve-j9451a", paced()), 120);
    let mut pair = Pair::new("hp-procurve-j9451a", paced());
    (0..1_000).for_each(|host| pair.add(host, 7));
    let busy = delays_of_packet_ins(&mut pair, 120);
    let middle = |delays: &[f64]| delays[delays.len() / 2];
    println!(
        "HP: packet-ins after {:.1} ms idle and {:.1} ms with 1,000 rules (median {:.1} and {:.1})",
        mean(&idle),
        mean(&busy),
        middle(&idle),
        middle(&busy)
    );
    assert!(mean(&busy) <= 2.0 * mean(&idle) && middle(&busy) <= 2.0 * middle(&idle));
}

#[test]
fn the_pica8_is_never_said_to_have_a_rule_too_early() {
    let mut pair = Pair::new("pica8-p3290", pace_of("profile = 'pica8-p3290'"));
    (0..1_000).for_each(|host| pair.add(host, 7));
    assert_eq!(pair.until_all_are_told(1_000), 1_000, "each rule is there when its app is told");
    assert_eq!((pair.packet_ins.len(), pair.departures), (0, 0));
    // By its barriers alone, it would be.
    let mut pair = Pair::new("pica8-p3290", pace_of("profile = 'null'"));
    (0..1_000).for_each(|host| pair.add(host, 7));
    assert!(pair.until_all_are_told(1_000) < 500);
}

/// How long it takes to add rules whose priorities fall, in seconds.
fn falling_priorities(treated: SwitchPace, count: u16) -> f64 {
    let mut pair = Pair::new("tango-2", Arc::new(treated));
    let began = pair.now;
    (0..count).for_each(|number| pair.add(number.into(), 20_000 - number));
    assert_eq!(pair.until_all_are_told(count.into()), usize::from(count));
    (pair.now - began).as_secs_f64()
}

#[test]
fn in_the_cheap_order_the_switch_of_tango_needs_seventy_percent_less_time() {
    let cheap = (*pace_of("profile = 'tango-2'")).clone();
    let as_they_come = SwitchPace { order: southbound::PriorityOrder::AsTheyCome, ..cheap.clone() };
    let both = |count| [&cheap, &as_they_come].map(|treated| falling_priorities(treated.clone(), count));
    let ([of_1000, unsorted_1000], [sorted, unsorted]) = (both(1_000), both(2_000));
    println!(
        "Tango: 1,000 rules of falling priorities in {of_1000:.1} s, and unsorted in {unsorted_1000:.1} s"
    );
    println!("Tango: 2,000 rules of falling priorities in {sorted:.1} s, and unsorted in {unsorted:.1} s");
    assert!(of_1000 <= 0.5 * unsorted_1000, "{of_1000} s of {unsorted_1000} s");
    assert!(sorted <= 0.3 * unsorted, "{sorted} s of {unsorted} s");
}

#[test]
fn a_switch_with_the_profile_of_another_has_left_it_and_one_with_its_own_has_not() {
    let departures = |plays: &str, treated: &str| {
        let mut pair = Pair::new(plays, pace_of(treated));
        (0..300).for_each(|host| pair.add(host, 7));
        pair.until_all_are_told(300);
        pair.departures
    };
    let own = ["fulcrum-monaco", "quanta-lb4g", "ovs-1.7-x3210", "hp-5406zl", "pica8-p3290", "tango-1"];
    own.iter().for_each(|name| {
        assert_eq!(departures(name, &format!("profile = '{name}'\nprogrammed_quantile = 0.5")), 0, "{name}")
    });
    // The Monaco takes some 20 ms for a rule, the Pica8 one.
    assert_eq!(departures("fulcrum-monaco", "profile = 'pica8-p3290'\nprogrammed_quantile = 0.5"), 1);
    assert_eq!(departures("pica8-p3290", "profile = 'fulcrum-monaco'"), 1);
}
