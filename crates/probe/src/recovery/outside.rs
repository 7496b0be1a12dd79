//! Switches that no profile describes: the model of a calm switch, with a law beside it that one queue and residual delays cannot play.
//!
//! ```text
//!   frames, messages ──> Modelled ──> packet-ins ──> the law: later, lost, or together ──> the probe
//! ```
//!
//! In: a law. Out: a simulated switch, and what the probe says of its own fit. It serves to show that a probe notices what it cannot
//! describe.

use crate::engine::Probe;
use crate::event::Finished;
use crate::modelled::Modelled;
use crate::options::{Options, Part};
use crate::virtual_time::{self, Effects, Subject};
use flow::PortNo;
use openflow::message::FLOW_ADD;
use openflow::{Body, Message, Version};
use profile::random::Random;
use profile::{Capacity, Delay, Fit, Hardware, Profile, Quantiles};
use std::collections::VecDeque;

const MS: u64 = 1_000_000;
/// A probe that takes longer in virtual time has no end.
const LIMIT_NS: u64 = 3_600_000_000_000;

/// What packet-ins do that the model does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// They leave when a timer goes off.
    Timer,
    /// Each takes a little longer than the one before.
    Drift,
    /// Some are lost, whatever the load.
    Loss,
    /// Now and then, all wait for a pause to end.
    Pauses,
    /// After a silence, the first one takes longer.
    Sleep,
    /// The switch is slow for some seconds, then fast.
    TwoSpeeds,
    /// They leave four at once, or after some time.
    Together,
    /// If they come too fast, most are lost.
    Collapse,
    /// A request for statistics delays them.
    Polling,
    /// Flow mods delay them.
    FlowMods,
}

impl Law {
    /// All of them.
    pub const ALL: [Law; 10] = [
        Law::Timer,
        Law::Drift,
        Law::Loss,
        Law::Pauses,
        Law::Sleep,
        Law::TwoSpeeds,
        Law::Together,
        Law::Collapse,
        Law::Polling,
        Law::FlowMods,
    ];
}

/// The switch without a law.
fn calm() -> Profile {
    let mut profile = Profile { name: "calm".to_owned(), ..Profile::default() };
    let residual = |least: f64| Quantiles::new(&[(0.0, least), (0.8, 1.5 * least), (1.0, 3.0 * least)]);
    profile.cpu.packet_in.service_us = Quantiles::constant(2000.0);
    profile.cpu.packet_out.service_us = Quantiles::constant(1000.0);
    profile.cpu.add.service_us = Quantiles::constant(6000.0);
    profile.cpu.delete.service_us = Quantiles::constant(500.0);
    profile.cpu.statistics.service_us = Quantiles::constant(800.0);
    profile.cpu.barrier.service_us = Quantiles::constant(100.0);
    profile.cpu.echo.service_us = Quantiles::constant(100.0);
    profile.delay = Delay {
        ingress_us: residual(300.0).unwrap_or_default(),
        egress_us: residual(200.0).unwrap_or_default(),
    };
    profile.hardware = Some(Hardware { capacities: vec![Capacity::any(400)], ..Hardware::default() });
    profile
}

/// A switch with a law.
#[derive(Debug)]
struct Outside {
    inner: Modelled,
    law: Option<Law>,
    held: VecDeque<(u64, Message)>,
    random: Random,
    seen: u64,
    /// When the last frame came, and how many came fast one after another.
    last_frame_ns: u64,
    in_a_row: u32,
    last_packet_in_ns: u64,
    slow_until_ns: u64,
}

impl Outside {
    fn new(law: Option<Law>) -> Self {
        Outside {
            inner: Modelled::new(&calm(), Version::V1_3, 5),
            law,
            held: VecDeque::new(),
            random: Random::new(7),
            seen: 0,
            last_frame_ns: 0,
            in_a_row: 0,
            last_packet_in_ns: 0,
            slow_until_ns: 0,
        }
    }

    /// Takes packet-ins out of what the model did, and puts in those whose time has come.
    fn pass(&mut self, from: &mut Effects, now_ns: u64, out: &mut Effects) {
        for message in from.messages.drain(..) {
            match (&message.body, self.law) {
                (Body::PacketIn(_), Some(law)) => self.hold(law, message, now_ns),
                _ => out.messages.push(message),
            }
        }
        out.frames.append(&mut from.frames);
        while self.held.front().is_some_and(|(due, _)| *due <= now_ns) {
            out.messages.extend(self.held.pop_front().map(|(_, message)| message));
        }
    }

    fn hold(&mut self, law: Law, message: Message, now_ns: u64) {
        self.seen += 1;
        let silence_ns = now_ns - self.last_packet_in_ns;
        self.last_packet_in_ns = now_ns;
        let due_ns = match law {
            Law::Timer => now_ns.div_ceil(30 * MS) * 30 * MS,
            Law::Drift => now_ns + 10_000 * self.seen,
            Law::Loss if self.random.unit() < 0.35 => return,
            Law::Pauses if now_ns % (2000 * MS) < 700 * MS => now_ns / (2000 * MS) * 2000 * MS + 700 * MS,
            Law::Sleep if silence_ns > 4 * MS => now_ns + 25 * MS,
            Law::TwoSpeeds if (now_ns / (3000 * MS)).is_multiple_of(2) => now_ns + 40 * MS,
            Law::Together => now_ns + 50 * MS,
            Law::Collapse if self.in_a_row > 20 && self.random.unit() < 0.7 => return,
            Law::Polling | Law::FlowMods => now_ns.max(self.slow_until_ns),
            _ => now_ns,
        };
        // None overtakes another.
        let due_ns = self.held.back().map_or(due_ns, |(last, _)| due_ns.max(*last));
        self.held.push_back((due_ns, message));
        if law == Law::Together && self.held.len() >= 4 {
            self.held.iter_mut().for_each(|(due, _)| *due = now_ns);
        }
    }
}

impl Subject for Outside {
    fn on_connected(&mut self, now_ns: u64, out: &mut Effects) {
        self.inner.on_connected(now_ns, out);
    }

    fn on_message(&mut self, message: &Message, now_ns: u64, out: &mut Effects) {
        match (&message.body, self.law) {
            (Body::MultipartRequest(_), Some(Law::Polling)) => self.slow_until_ns = now_ns + 80 * MS,
            (Body::FlowMod(change), Some(Law::FlowMods)) if change.command == FLOW_ADD => {
                self.slow_until_ns = now_ns + 60 * MS;
            }
            _ => {}
        }
        let mut from = Effects::default();
        self.inner.on_message(message, now_ns, &mut from);
        self.pass(&mut from, now_ns, out);
    }

    fn on_frame(&mut self, port: PortNo, frame: Vec<u8>, now_ns: u64, out: &mut Effects) {
        let is_fast = now_ns - self.last_frame_ns < 2500 * MS / 1000;
        self.last_frame_ns = now_ns;
        self.in_a_row = if is_fast { self.in_a_row + 1 } else { 0 };
        let mut from = Effects::default();
        self.inner.on_frame(port, frame, now_ns, &mut from);
        self.pass(&mut from, now_ns, out);
    }

    fn next_due_ns(&self) -> Option<u64> {
        let held = self.held.front().map(|(due, _)| *due);
        [held, self.inner.next_due_ns()].into_iter().flatten().min()
    }

    fn on_time(&mut self, now_ns: u64, out: &mut Effects) {
        let mut from = Effects::default();
        if self.inner.next_due_ns().is_some_and(|due| due <= now_ns) {
            self.inner.on_time(now_ns, &mut from);
        }
        self.pass(&mut from, now_ns, out);
    }
}

/// What the probe says of its own fit to a switch with this law; without a law, to a switch that a profile describes. None: the probe did
/// not end.
pub fn fits(law: Option<Law>) -> Option<Vec<Fit>> {
    let parts = vec![Part::Delays, Part::Rates, Part::Barriers, Part::SetUp, Part::Table, Part::Loads];
    let options = Options { parts, ..Options::simulated("outside", "2026-11-25") };
    let ended = virtual_time::run(Probe::new(options), &mut Outside::new(law), LIMIT_NS)?;
    match ended.finished {
        Finished::Profile(found) => Some(found.measurement.fits),
        Finished::Refused(_) => None,
    }
}
