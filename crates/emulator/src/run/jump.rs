//! How time passes in a network that runs: by itself in real time, by jumps in virtual time.
//!
//! Virtual time with real controllers is for whoever builds on this crate, and for its tests: no command offers it, since
//! whether a controller has said all that it will say can only be guessed. A scenario in virtual time has none.
//!
//! In: what was said and heard on connections, what is due in the network, who waits. Out: the network's time, and whom to ask
//! whether it has anything to say. Never asks for the time itself. Connections are made and given up in real time all the same: who wants
//! a switch that comes back to be connected before time goes on waits for that first.

use openflow::Body;
use std::time::Duration;

use super::quiescence::{QUESTION, Quiescence};
use super::reactor::Reactor;

/// How often frames are carried in one moment before the clock goes on all the same: a storm on links that take no time has no end.
const ROUNDS_OF_A_MOMENT: u32 = 16;
/// By how much it goes on then.
const STORM_STEP: Duration = Duration::from_millis(1);

/// Virtual time.
#[derive(Debug, Default)]
pub(super) struct VirtualTime {
    /// What it is in the network.
    pub(super) now: Duration,
    quiescence: Quiescence,
    /// How often frames have been carried in this moment.
    rounds: u32,
}

impl VirtualTime {
    /// A controller has said something.
    pub(super) fn note_heard(&mut self, connection: usize, body: &Body, now: Duration) {
        match body {
            Body::EchoReply(payload) if payload == QUESTION => self.quiescence.answered(connection, now),
            _ => self.quiescence.stir(connection, now),
        }
    }

    /// A switch has said something.
    pub(super) fn note_said(&mut self, connection: usize, body: &Body, now: Duration) {
        if !matches!(body, Body::EchoRequest(payload) if payload == QUESTION) {
            self.quiescence.stir(connection, now);
        }
    }

    /// A connection has ended.
    pub(super) fn note_gone(&mut self, connection: usize) {
        self.quiescence.gone(connection);
    }

    /// How long nothing has to be done if no controller says anything; `None`: as long as it takes.
    pub(super) fn patience(&self, now: Duration) -> Option<Duration> {
        self.quiescence.quiet_in(now).filter(|left| !left.is_zero())
    }
}

impl Reactor {
    /// Answers whoever waits for a time that has come, and lets virtual time jump if nothing else is to be done now. Says whether there is
    /// something to be done by that.
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

    /// Asks the controllers that were stirred whether they have anything to say. Says whether there are any.
    fn ask_all(&mut self) -> bool {
        let Some(mut virtual_time) = self.virtual_time.take() else { return false };
        let asked = virtual_time.quiescence.ask_next(|connection| self.can_be_asked(connection));
        self.virtual_time = Some(virtual_time);
        asked.iter().for_each(|connection| self.ask_whether_quiet(*connection));
        !asked.is_empty()
    }

    /// Jumps to what is due next, if all is quiet.
    fn jump(&mut self, now: Duration) -> bool {
        let Some(virtual_time) = &self.virtual_time else { return false };
        if virtual_time.quiescence.quiet_in(now) != Some(Duration::ZERO) {
            return false;
        }
        // Everything up to here has happened.
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
                // Who asked may be gone.
                let _ = answer.send(());
            }
            is_ahead
        });
    }
}
