//! Finds out whether the switch that has a datapath id is alive, when another connection claims that id.
//! ```text
//!            a claim            a message arrived
//!   Unasked ─────────> Asked ────────────────────> Answered ──(REST_MS later, another claim)──> Asked
//! ```
//!
//! In: claims and received messages, with the time. Out: which switch to probe, which claim waits, which claim is
//! refused. Pure: the worker that has the switch's session sends the probe, and ends the session if no message
//! arrives.

/// If a probed switch sends nothing for this long, it counts as dead and loses its id, in milliseconds. A live switch
/// answers an echo request within one round trip, which is far shorter in control networks. Any other message counts
/// too. It is not configurable, because a claim must be decided within [`CLAIM_MS`].
pub const PROBE_MS: u64 = 500;

/// How long a switch that has just answered is not probed again, in milliseconds. So endless claims of its id make it
/// answer at most three times a second.
pub const REST_MS: u64 = 300;

/// A claim is decided within this time, in milliseconds. It is the sum of a rest, a probe, the 50 ms that the other
/// worker may sleep, and time for turns. After it the claim is refused.
pub const CLAIM_MS: u64 = 950;

/// The present result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The claim waits, and the switch that has the id must be probed.
    Ask,
    /// The claim waits.
    Wait,
    /// The switch that has the id is alive, so the claim is refused.
    Lives,
}

/// The state of the switch that has an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// It was not probed.
    #[default]
    Unasked,
    /// It was probed, and has sent nothing since.
    Asked,
    /// It was probed, and sent a message at this time.
    Answered(u64),
}

impl Probe {
    /// A connection claims the id since `claimed_ms`, and still does.
    pub fn on_claim(&mut self, claimed_ms: u64, now_ms: u64) -> Verdict {
        match *self {
            Probe::Answered(at_ms) if at_ms > claimed_ms => Verdict::Lives,
            _ if now_ms.saturating_sub(claimed_ms) >= CLAIM_MS => Verdict::Lives,
            Probe::Answered(at_ms) if now_ms.saturating_sub(at_ms) < REST_MS => Verdict::Wait,
            Probe::Asked => Verdict::Wait,
            Probe::Unasked | Probe::Answered(_) => {
                *self = Probe::Asked;
                Verdict::Ask
            }
        }
    }

    /// The switch sent a message after it was probed.
    pub fn on_answer(&mut self, now_ms: u64) {
        *self = Probe::Answered(now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Ask, Lives, Wait};

    #[test]
    fn the_first_claim_has_the_switch_asked_and_waits() {
        let mut probe = Probe::default();
        assert_eq!(probe.on_claim(1_000, 1_000), Ask);
        assert_eq!(probe.on_claim(1_000, 1_001), Wait);
        assert_eq!(probe.on_claim(1_200, 1_200), Wait, "a second claim asks nothing more");
    }

    #[test]
    fn a_switch_that_answers_keeps_its_id() {
        let mut probe = Probe::default();
        probe.on_claim(1_000, 1_000);
        probe.on_answer(1_010);
        assert_eq!(probe.on_claim(1_000, 1_011), Lives);
    }

    #[test]
    fn whoever_claims_without_end_has_it_asked_three_times_a_second_and_waits() {
        let mut probe = Probe::default();
        let mut asked = 0;
        for now_ms in 0..10_000 {
            if probe.on_claim(now_ms, now_ms) == Ask {
                asked += 1;
                probe.on_answer(now_ms);
            }
        }
        assert_eq!(asked, 10_000 / REST_MS + 1);
    }

    #[test]
    fn a_claim_during_a_rest_is_decided_on_by_the_next_probe_and_in_time() {
        let mut probe = Probe::default();
        probe.on_claim(0, 0);
        probe.on_answer(10);
        assert_eq!(probe.on_claim(11, 11), Wait);
        assert_eq!(probe.on_claim(11, 10 + REST_MS - 1), Wait);
        assert_eq!(probe.on_claim(11, 10 + REST_MS), Ask);
        // If it does not answer, its worker ends it after PROBE_MS. 100 ms are left for two turns.
        const { assert!(REST_MS + PROBE_MS + 100 <= CLAIM_MS && CLAIM_MS < 1_000) };
    }

    #[test]
    fn a_claim_on_which_nobody_decides_is_refused() {
        let mut probe = Probe::default();
        probe.on_claim(0, 0);
        assert_eq!(probe.on_claim(0, CLAIM_MS - 1), Wait);
        assert_eq!(probe.on_claim(0, CLAIM_MS), Lives);
    }
}
