//! The driver for virtual time: a probe and a simulated switch, without sockets.
//!
//! In: a probe and a [`Subject`]. Out: how the probe ended. The clock jumps from one event to the next. It never reads a clock, so the
//! same subject gives the same end.

use crate::engine::Probe;
use crate::event::{Command, Event, Finished};
pub use crate::subject::{Effects, Subject};
use openflow::Message;

/// What a run in virtual time gave.
#[derive(Debug)]
pub struct Ended {
    /// How the probe ended.
    pub finished: Finished,
    /// What was found, for people.
    pub report: String,
    /// What lets a later probe go on, if this one is incomplete.
    pub kept: Option<String>,
    /// How long it took, in virtual time.
    pub took_ns: u64,
    /// What it told the operator, with the time.
    pub progress: Vec<(u64, String)>,
    /// A digest of all messages and frames, with their times.
    pub digest: u64,
}

/// A clock with a probe and a switch.
struct Bench<'a> {
    probe: Probe,
    subject: &'a mut dyn Subject,
    now_ns: u64,
    wake_ns: Option<u64>,
    progress: Vec<(u64, String)>,
    digest: u64,
    finished: Option<Finished>,
    report: String,
    kept: Option<String>,
}

/// Lets a probe measure a simulated switch. None: it did not end within `limit_ns`.
pub fn run(probe: Probe, subject: &mut dyn Subject, limit_ns: u64) -> Option<Ended> {
    let digest = 0xcbf2_9ce4_8422_2325;
    let mut bench = Bench {
        probe,
        subject,
        now_ns: 0,
        wake_ns: None,
        progress: Vec::new(),
        digest,
        finished: None,
        report: String::new(),
        kept: None,
    };
    let mut effects = Effects::default();
    bench.subject.on_connected(0, &mut effects);
    let mut commands = Vec::new();
    bench.probe.on_event(0, Event::Connected, &mut commands);
    bench.exchange(commands, effects);
    while bench.finished.is_none() {
        let due = [bench.wake_ns, bench.subject.next_due_ns()].into_iter().flatten().min()?;
        bench.now_ns = bench.now_ns.max(due);
        if bench.now_ns > limit_ns {
            return None;
        }
        bench.step();
    }
    let Bench { finished, report, kept, now_ns, progress, digest, .. } = bench;
    Some(Ended { finished: finished?, report, kept, took_ns: now_ns, progress, digest })
}

impl Bench<'_> {
    fn step(&mut self) {
        let (mut effects, mut commands) = (Effects::default(), Vec::new());
        if self.subject.next_due_ns().is_some_and(|due| due <= self.now_ns) {
            self.subject.on_time(self.now_ns, &mut effects);
        } else if self.wake_ns.is_some_and(|due| due <= self.now_ns) {
            self.wake_ns = None;
            self.probe.on_event(self.now_ns, Event::Time, &mut commands);
        }
        self.exchange(commands, effects);
    }

    /// Passes on what both sides do, until neither does anything more at this moment.
    fn exchange(&mut self, mut commands: Vec<Command>, mut effects: Effects) {
        loop {
            let mut next = Effects::default();
            for command in commands.drain(..) {
                self.carry_out(command, &mut next);
            }
            let Effects { messages, frames, leaves } = std::mem::take(&mut effects);
            for message in &messages {
                self.note_message(message);
                self.probe.on_event(self.now_ns, Event::Message(message), &mut commands);
            }
            for (port, frame) in &frames {
                self.note(frame);
                let at_ns = self.now_ns;
                self.probe.on_event(at_ns, Event::Frame { port: *port, frame, at_ns }, &mut commands);
            }
            if leaves {
                self.probe.on_event(self.now_ns, Event::Left, &mut commands);
            }
            effects = next;
            let is_quiet = effects.messages.is_empty() && effects.frames.is_empty() && !effects.leaves;
            if is_quiet && commands.is_empty() {
                return;
            }
        }
    }

    fn carry_out(&mut self, command: Command, effects: &mut Effects) {
        match command {
            Command::Send(message) => {
                self.note_message(&message);
                self.subject.on_message(&message, self.now_ns, effects);
            }
            Command::Frame { port, frame } => {
                self.note(&frame);
                self.subject.on_frame(port, frame, self.now_ns, effects);
            }
            Command::WakeAt(at_ns) => self.wake_ns = Some(at_ns),
            Command::Progress(text) => self.progress.push((self.now_ns, text)),
            Command::Report(text) => self.report = text,
            Command::Keep(text) => self.kept = Some(text),
            Command::Finished(finished) => self.finished = Some(*finished),
        }
    }

    fn note_message(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        // A message that cannot be encoded is not part of the digest, and no switch would get it.
        if message.encode(&mut bytes).is_ok() {
            self.note(&bytes);
        }
    }

    /// Adds bytes and the time to the digest (FNV-1a).
    fn note(&mut self, bytes: &[u8]) {
        let time = self.now_ns.to_le_bytes();
        for byte in time.iter().chain(bytes.iter().take(96)) {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
