//! Whether the switch that has a datapath id still lives, when somebody else claims that id.
//!
//! ```text
//!            a claim               something came
//!   Unasked ─────────> Asked ────────────────────> Answered ──(REST_MS later, another claim)──> Asked
//! ```
//!
//! In: claims and signs of life, with the time. Out: who is asked, who waits, who is refused. Pure: whoever holds the switch's session
//! asks it, and ends it if nothing comes.

/// A switch that says nothing for so long after it was asked is taken for dead if another claims its id. A living one answers an echo request out of
/// turn within one round trip, and those of control networks are far below this; anything else that it says counts too. It is no setting, because a claim
/// must be decided on within [`CLAIM_MS`].
pub const PROBE_MS: u64 = 500;

/// A switch that has just answered is not asked again for so long: whoever claims its id without end makes it answer three times a second, and no more.
pub const REST_MS: u64 = 300;

/// A claim is decided on within this: a rest, a probe, the 50 ms that the other worker may sleep before it hears of it, and what turns take. Beyond it
/// the claim is refused.
pub const CLAIM_MS: u64 = 950;

/// What becomes of a claim for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The switch that has the id is to be asked, and the claim waits.
    Ask,
    /// The claim waits.
    Wait,
    /// The switch that has the id lives.
    Lives,
}

/// What is known of the switch that has an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// It was not asked.
    #[default]
    Unasked,
    /// It was asked, and nothing came yet.
    Asked,
    /// It was asked, and something came then.
    Answered(u64),
}

impl Probe {
    /// Somebody has claimed its id at `claimed_ms`, and still does.
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

    /// It said something after it was asked.
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
        // It does not answer: whoever holds it ends it after PROBE_MS, and there are 100 ms left for two turns.
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
