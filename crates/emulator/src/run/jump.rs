//! How time passes in a running network: by the clock in real time, by jumps in virtual time.
//!
//! Virtual time with real controllers is for users of this crate, and for its tests. No command offers it, because
//! nobody can know for certain that a controller has nothing more to send. A scenario in virtual time has no
//! controller.
//!
//! In: the messages on connections, the next event of the network, and the times that callers wait for. Out: the network's time,
//! and which controllers to ask whether they have anything to send. It never reads a clock. Connections are still
//! made and given up in real time. A caller that needs a switch to reconnect before time advances must wait for that
//! first.

use openflow::Body;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::quiescence::{QUESTION, Quiescence};

/// How many rounds of frames are processed at one moment before the clock advances anyway. A storm on links without
/// delay has no end.
const ROUNDS_OF_A_MOMENT: u32 = 16;
/// By how much the clock advances then.
const STORM_STEP: Duration = Duration::from_millis(1);

/// How time passes in a running network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Real time.
    #[default]
    Real,
    /// Virtual time. It stands still, and jumps to the next event once the controllers have nothing to send. It does
    /// so only while a caller waits for pings or for a time ([`crate::run::Handle::pass_to`]). Timers inside controllers are not
    /// accelerated.
    Virtual,
}

/// Virtual time.
#[derive(Debug, Default)]
pub(super) struct VirtualTime {
    /// The time in the network.
    pub(super) now: Duration,
    quiescence: Quiescence,
    /// How many rounds of frames were processed at this moment.
    rounds: u32,
}

impl VirtualTime {
    /// A controller has sent something.
    pub(super) fn note_heard(&mut self, connection: usize, body: &Body, now: Duration) {
        match body {
            Body::EchoReply(payload) if payload == QUESTION => self.quiescence.answered(connection, now),
            _ => self.quiescence.stir(connection, now),
        }
    }

    /// A switch has sent something.
    pub(super) fn note_said(&mut self, connection: usize, body: &Body, now: Duration) {
        if !matches!(body, Body::EchoRequest(payload) if payload == QUESTION) {
            self.quiescence.stir(connection, now);
        }
    }

    /// A connection has ended.
    pub(super) fn note_gone(&mut self, connection: usize) {
        self.quiescence.gone(connection);
    }

    /// How long the loop may sleep if no controller sends anything. `None`: without limit.
    pub(super) fn patience(&self, now: Duration) -> Option<Duration> {
        self.quiescence.quiet_in(now).filter(|left| !left.is_zero())
    }

    /// Frames were carried. If there are always more of them at one moment, the clock advances anyway.
    pub(super) fn on_round(&mut self, frames_left: bool) {
        self.rounds = if frames_left { self.rounds + 1 } else { 0 };
        if self.rounds >= ROUNDS_OF_A_MOMENT {
            (self.rounds, self.now) = (0, self.now + STORM_STEP);
        }
    }

    /// The connections whose controllers must be asked whether they have anything to send.
    pub(super) fn ask_next(&mut self, can_be_asked: impl Fn(usize) -> bool) -> Vec<usize> {
        self.quiescence.ask_next(can_be_asked)
    }

    /// Whether no controller has anything to send.
    pub(super) fn is_quiet(&self, now: Duration) -> bool {
        self.quiescence.quiet_in(now) == Some(Duration::ZERO)
    }

    /// Jumps to a later time.
    pub(super) fn jump_to(&mut self, time: Duration) {
        self.now = self.now.max(time);
    }
}

/// Callers that wait for a time in the network.
#[derive(Debug, Default)]
pub(super) struct Goals(Vec<(Duration, Sender<()>)>);

impl Goals {
    /// A caller waits for this time.
    pub(super) fn add(&mut self, time: Duration, answer: Sender<()>) {
        self.0.push((time, answer));
    }

    /// The earliest time that a caller waits for.
    pub(super) fn next(&self) -> Option<Duration> {
        self.0.iter().map(|(time, _)| *time).min()
    }

    /// Answers callers whose time has come.
    pub(super) fn answer(&mut self, time: Duration) {
        self.0.retain(|(goal, answer)| {
            let is_ahead = *goal > time;
            if !is_ahead {
                // The caller may have stopped waiting.
                let _ = answer.send(());
            }
            is_ahead
        });
    }
}
