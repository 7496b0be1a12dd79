//! The agent of one server: it ties meter, feedback, shaper and protocol together.
//!
//! ```text
//!  bytes of flows ──┐                        ┌──> datagrams for peers: feedback, reports
//!  datagrams ───────┤   ┌───────────────┐    │
//!  shaper is done ──┼──>│ Agent (pure)  │───>┼──> changes of the shaper
//!  directory ───────┤   └───────────────┘    │
//!  time ────────────┘                        └──> refusals: who lies, or is misconfigured
//! ```
//!
//! In: events, with the time as an argument. Out: [`Commands`]. It opens no socket and reads no clock. It never obeys a
//! peer about a VNIC that is not the peer's own.

mod links;
mod receiving;
mod sending;
mod settings;

pub use sending::{CAP_LIFE_NS, FEEDBACK_LIFE_NS, HELD_CAP_LIFE_NS, IDLE_NS};
pub use settings::{
    BadSettings, HEADROOM_PERMILLE, INTERVAL_MAX_NS, INTERVAL_MIN_NS, PEERS_MAX, Peer, Settings, interval_for,
};

use crate::protocol::link::Refusal;
use crate::protocol::reports::{Numbered, Outbox};
use crate::protocol::{Entry, Message, RATES_MAX, RateOf, What};
use crate::shaper::{Change, Place};
use crate::vnic::{AgentId, Directory, Flow};
use links::{Heard, Links};
use receiving::Receiving;
use sending::Sending;
use std::collections::{BTreeMap, BTreeSet};

/// How often the label service learns the number of the newest report.
const BEAT_INTERVAL_NS: u64 = 200_000_000;

/// The most refusals of an interval that come out. More are only counted ([`Counts::refused`]): an attacker decides how many there are.
const REFUSALS_MAX: u64 = 8;

/// The most flows without an agent at the sender that are remembered as reported. Then the list begins again.
const UNSHAPED_MAX: usize = 4096;

/// Something that happens to an agent.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// These flows received so many bytes of frames since the last event of this kind.
    Bytes(&'a [(Flow, u64)]),
    /// A datagram of anybody.
    Datagram(&'a [u8]),
    /// The last changes of the shaper were made, except for these places.
    Shaped(&'a [Place]),
    /// The VNICs are these now.
    Directory(Directory),
    /// Time has passed. The caller says so at [`Agent::next_due_ns`] at the latest, after it has read the counters.
    Time,
}

/// What the caller does.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Datagrams to send.
    pub datagrams: Vec<(AgentId, Vec<u8>)>,
    /// Changes of the shaper, in order. The caller answers with [`Event::Shaped`]; until then there are no more.
    pub changes: Vec<Change>,
    /// What was ignored, and why.
    pub refusals: Vec<Refusal>,
}

/// Numbers for the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ignored datagrams and statements.
    pub refused: u64,
    /// Flows and VNICs without a class, because there is no slot.
    pub unplaced: u64,
    /// Feedback about more flows than there is room for.
    pub ignored: u64,
    /// Bytes of flows beyond the meter's bound.
    pub unmetered_bytes: u64,
}

/// The agent.
#[derive(Debug)]
pub struct Agent {
    settings: Settings,
    directory: Directory,
    receiving: Receiving,
    sending: Sending,
    links: Links,
    outbox: Outbox,
    /// What the next report says.
    entries: Vec<Entry>,
    unshaped: BTreeSet<Flow>,
    next_ns: u64,
    next_beat_ns: u64,
    refused: u64,
    refused_now: u64,
}

impl Agent {
    /// An agent that begins now. The first [`Event::Time`] gives the classes of its VNICs and greets its peers.
    ///
    /// # Errors
    ///
    /// The settings cannot be.
    pub fn new(now_ns: u64, settings: Settings, directory: Directory) -> Result<Self, BadSettings> {
        settings.check()?;
        let mut sending = Sending::default();
        sending.set_vnics(&Directory::default(), &directory, &settings);
        Ok(Agent {
            receiving: Receiving::new(now_ns),
            sending,
            links: Links::new(&settings),
            outbox: Outbox::default(),
            entries: vec![reset()],
            unshaped: BTreeSet::new(),
            next_ns: now_ns,
            next_beat_ns: now_ns,
            refused: 0,
            refused_now: 0,
            settings,
            directory,
        })
    }

    /// When it wants [`Event::Time`] next.
    pub fn next_due_ns(&self) -> u64 {
        self.next_ns
    }

    /// The VNICs that it knows.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Numbers for the operator.
    pub fn counts(&mut self) -> Counts {
        let (unplaced, ignored) = self.sending.overflow();
        let unmetered_bytes = self.receiving.meter().unmetered_bytes();
        Counts { refused: self.refused, unplaced, ignored, unmetered_bytes }
    }

    /// Something has happened.
    pub fn on_event(&mut self, now_ns: u64, event: Event<'_>, out: &mut Commands) {
        match event {
            Event::Bytes(bytes) => {
                let meter = self.receiving.meter();
                return bytes.iter().for_each(|(flow, bytes)| meter.add(now_ns, *flow, *bytes));
            }
            Event::Datagram(bytes) => match self.links.open(bytes, &mut out.datagrams) {
                Ok(heard) => heard.into_iter().for_each(|heard| self.on_message(now_ns, heard, out)),
                Err(refusal) => self.refuse(refusal, out),
            },
            Event::Shaped(failed) => {
                let entries = self.sending.confirm(now_ns, failed);
                self.entries.extend(entries);
                self.report(out);
            }
            Event::Directory(directory) => {
                self.sending.set_vnics(&self.directory, &directory, &self.settings);
                self.directory = directory;
            }
            Event::Time if now_ns >= self.next_ns => self.end_interval(now_ns, out),
            Event::Time => {}
        }
        out.changes.extend(self.sending.changes(now_ns));
    }

    fn refuse(&mut self, refusal: Refusal, out: &mut Commands) {
        self.refused += 1;
        self.refused_now += 1;
        if self.refused_now <= REFUSALS_MAX && !refusal.is_innocent() {
            out.refusals.push(refusal);
        }
    }

    fn end_interval(&mut self, now_ns: u64, out: &mut Commands) {
        self.refused_now = 0;
        self.next_ns = next_after(self.next_ns, now_ns, self.settings.interval_ns);
        self.links.greet(now_ns, &mut out.datagrams);
        let interval = self.receiving.close(now_ns, &self.directory, &self.settings);
        self.entries.extend(interval.entries);
        self.tell(now_ns, interval.rates, out);
        self.sending.look(now_ns, &self.directory, &self.settings);
        self.report(out);
        if now_ns >= self.next_beat_ns
            && let Some(service) = self.settings.service
        {
            self.next_beat_ns = now_ns.saturating_add(BEAT_INTERVAL_NS);
            let beat = Message::Beat { newest: self.outbox.newest() };
            self.links.send(service, &beat, &mut out.datagrams);
        }
    }

    /// Tells senders their rates: by the agent of each, or by the label service if there is no link with that agent.
    fn tell(&mut self, now_ns: u64, rates: Vec<RateOf>, out: &mut Commands) {
        let mut by_agent: BTreeMap<AgentId, Vec<RateOf>> = BTreeMap::new();
        for rate in rates {
            match self.directory.get(rate.flow.sender).and_then(|sender| sender.agent) {
                Some(agent) if agent == self.settings.me => {
                    self.sending.on_rate(now_ns, rate, true, &self.directory, &self.settings);
                }
                Some(agent) => {
                    let by = if self.links.knows(agent) { Some(agent) } else { self.settings.service };
                    if let Some(by) = by {
                        by_agent.entry(by).or_default().push(rate);
                    }
                }
                None => self.list_unshaped(rate.flow),
            }
        }
        for (agent, rates) in by_agent {
            for rates in rates.chunks(RATES_MAX) {
                self.links.send(agent, &Message::Feedback(rates.to_vec()), &mut out.datagrams);
            }
        }
    }

    fn list_unshaped(&mut self, flow: Flow) {
        if self.unshaped.len() >= UNSHAPED_MAX {
            self.unshaped.clear();
        }
        if self.unshaped.insert(flow) {
            self.entries.push(Entry { what: What::Unshaped, flow, rate_bps: 0 });
        }
    }

    /// Sends what there is to report. Without a label service there is nobody to report to.
    fn report(&mut self, out: &mut Commands) {
        let entries = std::mem::take(&mut self.entries);
        if let Some(service) = self.settings.service {
            // What is lost here, because the service is not up or the network drops it, is asked for again.
            let reports = self.outbox.add(&entries);
            self.send_reports(service, reports, out);
        }
    }

    fn send_reports(&mut self, to: AgentId, reports: Vec<Numbered>, out: &mut Commands) {
        for Numbered { number, entries } in reports {
            self.links.send(to, &Message::Report { number, entries }, &mut out.datagrams);
        }
    }

    fn on_message(&mut self, now_ns: u64, heard: Heard, out: &mut Commands) {
        let Heard { peer, message, is_new_session } = heard;
        let is_service = Some(peer) == self.settings.service;
        if is_new_session {
            // The peer does not know that this side knows it, until it gets a message.
            let beat = Message::Beat { newest: self.outbox.newest() };
            self.links.send(peer, &beat, &mut out.datagrams);
        }
        match message {
            Message::Feedback(rates) => self.on_rates(now_ns, peer, &rates, out),
            Message::Caps(caps) if is_service => self.on_caps(now_ns, peer, &caps, out),
            Message::Again { first, last } if is_service => match self.outbox.again(first, last) {
                Some(reports) => self.send_reports(peer, reports, out),
                None => self.start_over(out),
            },
            Message::Caps(_) | Message::Again { .. } => self.refuse(Refusal::NotTheService(peer), out),
            // A beat only proves the session here, and an agent gets no reports.
            Message::Beat { .. } | Message::Welcome | Message::Hello | Message::Report { .. } => {}
        }
    }

    /// The service asks for reports that are kept no more: all flows are reported again.
    fn start_over(&mut self, out: &mut Commands) {
        self.entries.push(reset());
        self.entries.extend(self.receiving.flows());
        self.unshaped.clear();
        self.report(out);
    }

    fn on_rates(&mut self, now_ns: u64, peer: AgentId, rates: &[RateOf], out: &mut Commands) {
        for rate in rates {
            // The label service passes on what the agent of the receiver said.
            let may_say = |agent| agent == Some(peer) || Some(peer) == self.settings.service;
            let is_right = self.directory.ends(rate.flow).is_some_and(|(sender, receiver)| {
                sender.agent == Some(self.settings.me) && may_say(receiver.agent)
            });
            if is_right {
                let is_direct = Some(peer) != self.settings.service;
                self.sending.on_rate(now_ns, *rate, is_direct, &self.directory, &self.settings);
            } else {
                self.refuse(Refusal::Foreign(peer, rate.flow), out);
            }
        }
    }

    fn on_caps(&mut self, now_ns: u64, peer: AgentId, caps: &[RateOf], out: &mut Commands) {
        self.sending.on_caps_told(now_ns);
        for cap in caps {
            let ends = self.directory.ends(cap.flow);
            if ends.is_some_and(|(sender, _)| sender.agent == Some(self.settings.me)) {
                self.sending.on_cap(now_ns, *cap, &self.directory, &self.settings);
            } else {
                self.refuse(Refusal::Foreign(peer, cap.flow), out);
            }
        }
    }
}

fn reset() -> Entry {
    let nobody = crate::vnic::VnicId(0);
    Entry { what: What::Reset, flow: Flow { sender: nobody, receiver: nobody }, rate_bps: 0 }
}

/// The end of the next interval: in step, or from now on if one was missed.
fn next_after(due_ns: u64, now_ns: u64, interval_ns: u64) -> u64 {
    let next = due_ns.saturating_add(interval_ns);
    if next > now_ns { next } else { now_ns.saturating_add(interval_ns) }
}
