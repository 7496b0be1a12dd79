//! A node's session paces a switch that plays a profile, in virtual time.
//!
//! ```text
//!   rules of an app ──> Session, with the numbers of a section of burnet.toml ⇄ Switch ──> frames, packet-ins, receipts
//! ```
//!
//! What counts is what packets meet: each rule is tried by a frame when its app is told that it is programmed. A rule in hardware sends the
//! frame on at once, one in software later, and a missing one brings a packet-in. Nothing here waits in real time.

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
///
/// # Errors
/// The section or its profile has a fault.
pub fn pace_of(section: &str) -> Result<Arc<SwitchPace>, String> {
    #[derive(serde::Deserialize)]
    struct File {
        switch: Switches,
    }
    let file: File =
        toml::from_str(&format!("[switch.1]\n{section}")).map_err(|why| format!("{section}: {why}"))?;
    let paces = file.switch.paces().map_err(|why| why.to_string())?;
    paces.of(DATAPATH, None).ok_or_else(|| format!("{section}: no profile"))
}

impl Pair {
    /// A switch that plays a profile is up, and is treated like this.
    ///
    /// # Errors
    /// There is no such profile, or the switch does not come up.
    pub fn new(plays: &str, treated: Arc<SwitchPace>) -> Result<Pair, String> {
        let profile = profile::built_in(plays).ok_or_else(|| format!("there is no profile {plays}"))?;
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
        pair.turn(|session, turn| session.open(turn))?;
        pair.hear(effects)?;
        pair.pass_to(Duration::from_secs(2))?;
        if pair.session.state() != State::Up {
            return Err(format!("the switch {plays} is not up, but {:?}", pair.session.state()));
        }
        let now_ms = pair.now_ms();
        pair.session.set_pace(Some(treated), now_ms);
        Ok(pair)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.now.as_millis()).unwrap_or(u64::MAX)
    }

    /// The session's turn. What it writes goes to the switch, and what that answers at once comes back.
    fn turn<T>(&mut self, act: impl FnOnce(&mut Session, &mut Turn<'_>) -> T) -> Result<T, String> {
        let (mut out, mut frame, now_ms, now) = (Vec::new(), Vec::new(), self.now_ms(), self.now);
        let Pair { session, receipts, packet_ins, departures, .. } = self;
        let mut fault = None;
        let mut sink = |effect: SessionOutput<'_>| match effect {
            SessionOutput::Out(SouthboundEvent::Event(bytes)) => {
                let is_packet_in = event_of(bytes, &mut fault, |it| matches!(it, Event::PacketIn(_)));
                packet_ins.extend(is_packet_in.unwrap_or(false).then_some(now));
            }
            SessionOutput::Out(SouthboundEvent::ToZone { frame, .. }) => {
                let receipt = event_of(frame, &mut fault, |it| match it {
                    Event::Receipt(_, it) => Some((it.ticket, it.outcome, now)),
                    _ => None,
                });
                receipts.extend(receipt.flatten());
            }
            SessionOutput::Out(SouthboundEvent::LeftProfile { .. }) => *departures += 1,
            SessionOutput::Out(_) | SessionOutput::Line(_) => {}
        };
        let mut turn = Turn { now_ms, out: &mut out, frame: &mut frame, sink: &mut sink };
        let done = act(session, &mut turn);
        session.on_turn_end(&mut turn);
        if let Some(fault) = fault {
            return Err(fault);
        }
        self.say(&out)?;
        Ok(done)
    }

    fn say(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut rest = bytes;
        let bad = |why: flow::BadInput| format!("the session wrote a bad message: {why}");
        while let Some(length) = openflow::frame_len(rest) {
            let (message, behind) = rest.split_at(length.map_err(bad)?.min(rest.len()));
            let mut effects = Effects::default();
            let message = Message::decode(message).map_err(bad)?;
            if let (Body::FlowMod(it), true) = (&message.body, self.tries) {
                // A host is the part of the cookie that the app chose.
                let host = host_of(it.cookie & COOKIE_MASK)?;
                self.to_try.push_back((self.now + TRIED_AFTER, host));
            }
            self.switch.on_message(C0, &message, self.now, &mut effects);
            self.hear(effects)?;
            rest = behind;
        }
        Ok(())
    }

    fn hear(&mut self, effects: Effects) -> Result<(), String> {
        for (_, message) in effects.messages {
            let mut bytes = Vec::new();
            message.encode(&mut bytes).map_err(|why| format!("the switch has a bad message: {why}"))?;
            let step = self.turn(|session, turn| {
                let step = session.on_message(&bytes, turn);
                if step == Ok(Step::Identified) {
                    session.admit(turn);
                }
                step
            })?;
            step.map_err(|end| format!("the session ends: {}", end.reason))?;
        }
        Ok(())
    }

    fn due(&self) -> Option<Duration> {
        let session = self.session.due_ms().map(Duration::from_millis);
        let to_try = self.to_try.front().map(|(at, _)| *at);
        session.into_iter().chain(self.switch.next_due()).chain(to_try).min()
    }

    /// Lets time pass, event by event.
    ///
    /// # Errors
    /// A message cannot be read, or the session ends.
    pub fn pass_to(&mut self, until: Duration) -> Result<(), String> {
        while let Some(due) = self.due().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.step()?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let mut effects = Effects::default();
        if self.switch.next_due().is_some_and(|due| due <= self.now) {
            self.switch.on_tick(self.now, &mut effects);
            self.by_software += effects.frames.len();
            self.hear(effects)?;
        }
        while let Some((_, host)) = self.to_try.pop_front_if(|(at, _)| *at <= self.now) {
            self.is_in_hardware(host)?;
        }
        if self.session.due_ms().is_some_and(|due_ms| due_ms <= self.now_ms()) {
            self.turn(|session, turn| session.on_time(0, turn))?;
        }
        Ok(())
    }

    /// An app adds a rule for a host, with a receipt.
    ///
    /// # Errors
    /// The session refuses the rule, or ends.
    pub fn add(&mut self, host: u32, priority: u16) -> Result<(), String> {
        self.add_rule(host, priority, true)
    }

    /// The same, with or without a receipt.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_rule(&mut self, host: u32, priority: u16, wants_receipt: bool) -> Result<(), String> {
        let (mut matching, mut instructions) = (Vec::new(), Vec::new());
        let fields = Match::any().with(Field::EthType, 0x0800_u16).with(Field::Ipv4Dst, host);
        write_match(&fields, &mut matching);
        let output = Action::Output { port: PortNo(2), max_len: 0 };
        write_instructions(&[Instruction::ApplyActions(vec![output])], &mut instructions)
            .map_err(|why| format!("the rule for host {host} cannot be written: {why}"))?;
        let what = What::FlowMod(FlowMod {
            priority,
            matching: &matching,
            instructions: &instructions,
            ..FlowMod::ADD
        });
        let command = Command { datapath: DATAPATH, ticket: host.into(), wants_receipt, what };
        let tag = Tag { zone: PLANNER, generation: 0, ticket: host.into() };
        let sent =
            self.turn(|session, turn| session.send(&command, PLANNER.stamp(host.into()), tag, 0, turn))?;
        sent.map_err(|why| format!("the rule for host {host} is refused: {why}"))
    }

    /// A frame for a host. Returns whether it left at once by the port of the rule.
    ///
    /// # Errors
    /// The session cannot read what follows, or ends.
    pub fn is_in_hardware(&mut self, host: u32) -> Result<bool, String> {
        let mut frame = vec![0; 1_500];
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        frame[30..34].copy_from_slice(&host.to_be_bytes());
        let mut effects = Effects::default();
        self.switch.on_frame(PortNo(1), frame, self.now, &mut effects);
        let has_left = effects.frames.iter().any(|(port, _)| *port == PortNo(2));
        self.hear(effects)?;
        Ok(has_left)
    }

    /// All receipts are there. Each rule is tried when its app is told.
    ///
    /// # Errors
    /// A rule is not programmed, or a receipt never comes.
    pub fn until_all_are_told(&mut self, count: usize) -> Result<usize, String> {
        let (mut looked_at, mut in_hardware) = (0, 0);
        while self.receipts.len() < count {
            let due = self.due().ok_or_else(|| {
                format!("of {count} rules, {} have a receipt, and nothing is due", self.receipts.len())
            })?;
            self.now = due.max(self.now);
            self.step()?;
            for place in looked_at..self.receipts.len() {
                let (host, outcome, _) = self.receipts[place];
                if outcome != Outcome::Programmed {
                    return Err(format!("the receipt of the rule for host {host} says {outcome:?}"));
                }
                in_hardware += usize::from(self.is_in_hardware(host_of(host)?)?);
            }
            looked_at = self.receipts.len();
        }
        Ok(in_hardware)
    }
}

/// What an event says. One that cannot be read is the fault.
fn event_of<T>(bytes: &[u8], fault: &mut Option<String>, look: impl FnOnce(&Event<'_>) -> T) -> Option<T> {
    let Ok(event) = Frame::read(bytes).and_then(|frame| Event::read(&frame).map(|event| look(&event))) else {
        *fault = Some("the session wrote an event that cannot be read".to_owned());
        return None;
    };
    Some(event)
}

fn host_of(number: u64) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{number} is no host: nobody added a rule for it"))
}

/// The delays of the packets of another app, one each 400 ms, in milliseconds.
///
/// # Errors
/// A packet meets a rule, or its packet-in is lost.
pub fn delays_of_packet_ins(pair: &mut Pair, seconds: u64) -> Result<Vec<f64>, String> {
    let (from, mut delays) = (pair.now, Vec::new());
    for number in 0..seconds * 5 / 2 {
        pair.pass_to(from + Duration::from_millis(400 * number))?;
        let (sent, before) = (pair.now, pair.packet_ins.len());
        if pair.is_in_hardware(0x0b00_0000)? {
            return Err("a packet of the other app met a rule".to_owned());
        }
        pair.pass_to(sent + Duration::from_millis(390))?;
        let came = pair.packet_ins.get(before);
        let came = came.ok_or_else(|| format!("the packet-in at {sent:?} did not come within 390 ms"))?;
        delays.push((*came - sent).as_secs_f64() * 1e3);
    }
    delays.sort_by(f64::total_cmp);
    Ok(delays)
}

/// The mean; not a number without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How long a switch takes to add rules whose priorities fall, in seconds.
///
/// # Errors
/// A rule is refused, or is not in hardware when its app is told.
pub fn falling_priorities(plays: &str, treated: SwitchPace, count: u16) -> Result<f64, String> {
    let mut pair = Pair::new(plays, Arc::new(treated))?;
    let began = pair.now;
    (0..count).try_for_each(|number| pair.add(number.into(), 20_000 - number))?;
    let in_hardware = pair.until_all_are_told(count.into())?;
    if in_hardware != usize::from(count) {
        return Err(format!(
            "{plays}: {in_hardware} of {count} rules are in hardware when their app is told"
        ));
    }
    Ok((pair.now - began).as_secs_f64())
}
