//! Whether controllers have said all that they have to say, so that virtual time may jump.
//!
//! ```text
//!   "said or heard something there", "it answered the question" ──> Quiescence ──> whom to ask, whether all is quiet
//! ```
//!
//! A controller that is stirred is asked with an echo request. Its answer says that it has read everything before; if nothing else came
//! meanwhile, and nothing comes for a moment of real time after the last answer, it is taken to have nothing to say. That is all that
//! OpenFlow lets one know: a controller that thinks for longer than that moment after it has answered, or that acts on timers of
//! its own, acts later in virtual time than it would have. Never sends anything.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long nothing may come, in real time, after all have answered: a process zone's app has its say within this.
pub(super) const QUIET: Duration = Duration::from_millis(3);
/// What is in the echo request, by which the answer is known.
pub(super) const QUESTION: &[u8] = b"quiet?";

/// A connection on which something passed.
#[derive(Clone, Copy, Debug, Default)]
struct Stirred {
    is_asked: bool,
    /// Something passed after it was asked.
    again: bool,
}

/// Which connections are not quiet.
#[derive(Debug, Default)]
pub(super) struct Quiescence {
    stirred: BTreeMap<usize, Stirred>,
    last_stir: Duration,
}

impl Quiescence {
    /// Something was said or heard on a connection.
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

    /// A connection is gone; it has nothing more to say.
    pub(super) fn gone(&mut self, connection: usize) {
        self.stirred.remove(&connection);
    }

    /// The connections that are to be asked now, of those that can be.
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

    /// How long it is until all may be taken for quiet if nothing comes; `None`: answers are missing.
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
