//! Decides whether controllers have nothing more to send, so that virtual time may jump.
//!
//! ```text
//!   "said or heard something there", "it answered the question" ──> Quiescence ──> whom to ask, whether all is quiet
//! ```
//!
//! It asks a controller with an echo request after each exchange. The answer means that the controller has read
//! everything before. If nothing else arrives in between, and nothing for a moment of real time after the last
//! answer, the controllers count as quiet.
//!
//! OpenFlow allows no better test. A controller may think for longer than that moment after its answer, or act on its
//! own timers. It then acts later in virtual time than it would have. This file never sends anything.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long nothing may arrive, in real time, after all answers. An app in a process zone answers within this.
pub(super) const QUIET: Duration = Duration::from_millis(3);
/// The payload of the echo request, which identifies the answer.
pub(super) const QUESTION: &[u8] = b"quiet?";

/// A connection with recent messages.
#[derive(Clone, Copy, Debug, Default)]
struct Stirred {
    is_asked: bool,
    /// A message passed after the question.
    again: bool,
}

/// The connections that are not quiet.
#[derive(Debug, Default)]
pub(super) struct Quiescence {
    stirred: BTreeMap<usize, Stirred>,
    last_stir: Duration,
}

impl Quiescence {
    /// A message passed on a connection.
    pub(super) fn stir(&mut self, connection: usize, now: Duration) {
        self.last_stir = now;
        let stirred = self.stirred.entry(connection).or_default();
        stirred.again = stirred.is_asked;
    }

    /// A connection has answered the question.
    pub(super) fn answered(&mut self, connection: usize, now: Duration) {
        self.last_stir = now;
        match self.stirred.get_mut(&connection) {
            Some(stirred) if stirred.again => *stirred = Stirred::default(),
            Some(_) => drop(self.stirred.remove(&connection)),
            None => {}
        }
    }

    /// A connection has ended. It has nothing more to send.
    pub(super) fn gone(&mut self, connection: usize) {
        self.stirred.remove(&connection);
    }

    /// The connections to ask now, among those that can be asked.
    pub(super) fn ask_next(&mut self, can_be_asked: impl Fn(usize) -> bool) -> Vec<usize> {
        let stirred = self.stirred.iter_mut();
        let unasked = stirred.filter(|(connection, stirred)| !stirred.is_asked && can_be_asked(**connection));
        unasked
            .map(|(connection, stirred)| {
                *stirred = Stirred { is_asked: true, again: false };
                *connection
            })
            .collect()
    }

    /// How long until all count as quiet if nothing arrives. `None`: answers are missing.
    pub(super) fn quiet_in(&self, now: Duration) -> Option<Duration> {
        self.stirred.is_empty().then(|| (self.last_stir + QUIET).saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1);

    #[test]
    fn all_is_quiet_when_all_have_answered_and_nothing_came_for_a_moment() {
        let mut quiescence = Quiescence::default();
        assert_eq!(quiescence.quiet_in(NOW), Some(Duration::ZERO));
        quiescence.stir(3, NOW);
        quiescence.stir(5, NOW);
        assert!(quiescence.ask_next(|_| false).is_empty());
        assert_eq!((quiescence.quiet_in(NOW), quiescence.ask_next(|_| true)), (None, vec![3, 5]));
        assert!(quiescence.ask_next(|_| true).is_empty(), "they are asked once");
        quiescence.answered(3, NOW);
        quiescence.gone(5);
        assert_eq!(quiescence.quiet_in(NOW), Some(QUIET));
        assert_eq!(quiescence.quiet_in(NOW + QUIET), Some(Duration::ZERO));
    }

    #[test]
    fn who_says_something_after_the_question_is_asked_again() {
        let mut quiescence = Quiescence::default();
        quiescence.stir(1, NOW);
        assert_eq!(quiescence.ask_next(|_| true), [1]);
        quiescence.stir(1, NOW);
        quiescence.answered(1, NOW);
        assert_eq!((quiescence.quiet_in(NOW), quiescence.ask_next(|_| true)), (None, vec![1]));
        quiescence.answered(1, NOW);
        assert!(quiescence.quiet_in(NOW).is_some());
    }
}
