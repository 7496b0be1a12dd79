//! How time passes in a running network: by the clock in real time, by jumps in virtual time.
//!
//! Virtual time with real controllers is for users of this crate, and for its tests. No command offers it, because
//! nobody can know for certain that a controller has nothing more to send. A scenario in virtual time has no
//! controller.
//!
//! In: the messages on connections, the next event of the network, and who waits for what. Out: the network's time,
//! and which controllers to ask whether they have anything to send. It never reads a clock. Connections are still
//! made and given up in real time. A caller that needs a switch to reconnect before time advances must wait for that
//! first.

use openflow::Body;
use std::time::Duration;

use super::quiescence::{QUESTION, Quiescence};
use super::reactor::Reactor;

/// How many rounds of frames are processed at one moment before the clock advances anyway. A storm on links without
/// delay has no end.
const ROUNDS_OF_A_MOMENT: u32 = 16;
/// By how much the clock advances then.
const STORM_STEP: Duration = Duration::from_millis(1);

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
}

impl Reactor {
    /// Answers callers whose time has come. Lets virtual time jump if nothing else must be done now. Returns whether
    /// that causes work.
    pub(super) fn pass_time(&mut self, frames_left: bool, is_busy: bool, now: Duration) -> bool {
        let Some(virtual_time) = &mut self.virtual_time else {
            self.answer_goals(now);
            return false;
        };
        if frames_left {
            virtual_time.rounds += 1;
            if virtual_time.rounds >= ROUNDS_OF_A_MOMENT {
                (virtual_time.rounds, virtual_time.now) = (0, virtual_time.now + STORM_STEP);
            }
            return false;
        }
        virtual_time.rounds = 0;
        !is_busy && self.is_waited_for() && (self.ask_all() || self.jump(now))
    }

    /// Asks each active controller whether it has anything to send. Returns whether there are any.
    fn ask_all(&mut self) -> bool {
        let Some(mut virtual_time) = self.virtual_time.take() else { return false };
        let asked = virtual_time.quiescence.ask_next(|connection| self.can_be_asked(connection));
        self.virtual_time = Some(virtual_time);
        asked.iter().for_each(|connection| self.ask_whether_quiet(*connection));
        !asked.is_empty()
    }

    /// Jumps to the next event, if all controllers are quiet.
    fn jump(&mut self, now: Duration) -> bool {
        let Some(virtual_time) = &self.virtual_time else { return false };
        if virtual_time.quiescence.quiet_in(now) != Some(Duration::ZERO) {
            return false;
        }
        // Everything up to this time has happened.
        self.answer_goals(virtual_time.now);
        let next = if self.is_waited_for() { self.next_in_network() } else { None };
        let (Some(next), Some(virtual_time)) = (next, &mut self.virtual_time) else { return false };
        virtual_time.now = virtual_time.now.max(next);
        true
    }

    fn answer_goals(&mut self, time: Duration) {
        self.goals.retain(|(goal, answer)| {
            let is_ahead = *goal > time;
            if !is_ahead {
                // The caller may have stopped waiting.
                let _ = answer.send(());
            }
            is_ahead
        });
    }
}
