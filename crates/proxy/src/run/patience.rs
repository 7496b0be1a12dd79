//! How long the peers of a session owe something: bytes that they do not take, and answers to questions of the proxy.
//!
//! In: the time, and what each peer owes. Out: an error that names the peer, once it has owed for too long without giving anything. It
//! reads no clock.

use crate::commands::Side;
use std::time::Duration;

/// Between two looks, at most this time counts. In a longer one this process did not run, and that is no fault of a peer.
const BETWEEN_LOOKS_MAX: Duration = Duration::from_secs(1);

/// What the peers owe. Each number is how much of it a peer has given before, and `None`: it owes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owed {
    /// Bytes that the switch has taken.
    pub(super) taken_by_switch: Option<u64>,
    /// Bytes that the controller has taken. While it owes some, the switch is not read.
    pub(super) taken_by_controller: Option<u64>,
    /// Questions that the switch has answered.
    pub(super) answered: Option<u64>,
}

/// One of these.
#[derive(Debug, Default)]
struct Debt {
    given: Option<u64>,
    owes_for: Duration,
}

impl Debt {
    /// Returns for how long it has given nothing of what it owes.
    fn look(&mut self, given: Option<u64>, passed: Duration) -> Duration {
        if given.is_none() || given != self.given {
            *self = Debt { given, owes_for: Duration::ZERO };
        } else {
            self.owes_for += passed;
        }
        self.owes_for
    }
}

/// The patience with both peers of a session.
#[derive(Debug)]
pub(super) struct Patience {
    most: Duration,
    looked: Duration,
    by_switch: Debt,
    by_controller: Debt,
    answers: Debt,
}

impl Patience {
    /// A peer may owe for this time.
    pub(super) fn new(most: Duration) -> Self {
        let debt = Debt::default;
        Patience { most, looked: Duration::ZERO, by_switch: debt(), by_controller: debt(), answers: debt() }
    }

    /// Looks at what is owed now.
    ///
    /// # Errors
    /// A peer has given nothing for too long: which one, and what.
    pub(super) fn look(&mut self, now: Duration, owed: Owed) -> Result<(), String> {
        let passed = now.saturating_sub(self.looked).min(BETWEEN_LOOKS_MAX);
        self.looked = now;
        let too_long = |debt: &mut Debt, given, passed| debt.look(given, passed) > self.most;
        if too_long(&mut self.by_controller, owed.taken_by_controller, passed) {
            return Err(self.sentence(Side::Controller, "it has taken no byte"));
        }
        if too_long(&mut self.by_switch, owed.taken_by_switch, passed) {
            return Err(self.sentence(Side::Switch, "it has taken no byte"));
        }
        // An answer may be among the bytes that are not read because of the controller.
        let heard = if owed.taken_by_controller.is_some() { Duration::ZERO } else { passed };
        if too_long(&mut self.answers, owed.answered, heard) {
            return Err(self.sentence(Side::Switch, "it has answered no barrier of the proxy"));
        }
        Ok(())
    }

    fn sentence(&self, side: Side, what: &str) -> String {
        format!("{side}: {what} for {} s", self.most.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(30);

    /// Looks each second, and returns in which the session ends.
    fn ends(owed: impl Fn(u64) -> Owed) -> Option<(u64, String)> {
        let mut patience = Patience::new(MOST);
        (1..200).find_map(|second| {
            Some((second, patience.look(Duration::from_secs(second), owed(second)).err()?))
        })
    }

    #[test]
    fn a_peer_that_owes_and_gives_nothing_is_named() {
        let (switch, controller) = (Some(7), Some(7));
        let check = |owed: Owed, expected: &str| {
            let (second, why) = ends(|_| owed).unwrap();
            assert_eq!((second, why.as_str()), (32, expected));
        };
        check(
            Owed { taken_by_switch: switch, ..Owed::default() },
            "the switch: it has taken no byte for 30 s",
        );
        check(
            Owed { taken_by_controller: controller, ..Owed::default() },
            "the controller: it has taken no byte for 30 s",
        );
        check(
            Owed { answered: Some(0), ..Owed::default() },
            "the switch: it has answered no barrier of the proxy for 30 s",
        );
    }

    #[test]
    fn a_peer_that_gives_now_and_then_goes_on() {
        assert_eq!(ends(|second| Owed { answered: Some(second / 25), ..Owed::default() }), None);
        assert_eq!(ends(|second| Owed { taken_by_switch: Some(second / 25), ..Owed::default() }), None);
        let at_times =
            |second: u64| Owed { answered: (!second.is_multiple_of(25)).then_some(4), ..Owed::default() };
        assert_eq!(ends(at_times), None, "it owes nothing at times");
    }

    #[test]
    fn an_answer_that_cannot_be_read_because_of_the_controller_is_not_the_switchs_fault() {
        let slow = |second: u64| Owed {
            answered: Some(0),
            taken_by_controller: (!second.is_multiple_of(4)).then_some(second),
            ..Owed::default()
        };
        let (second, why) = ends(slow).unwrap();
        assert!(second > 100 && why.starts_with("the switch"), "{second} {why}");
        let stopped = |_| Owed { answered: Some(0), taken_by_controller: Some(9), ..Owed::default() };
        assert!(ends(stopped).unwrap().1.starts_with("the controller"));
    }

    #[test]
    fn time_in_which_this_process_did_not_run_does_not_count() {
        let (mut patience, owed) = (Patience::new(MOST), Owed { answered: Some(0), ..Owed::default() });
        patience.look(Duration::from_secs(1), owed).unwrap();
        patience.look(Duration::from_secs(1_000), owed).unwrap();
        patience.look(Duration::from_secs(1_001), owed).unwrap();
    }
}
