//! When an incident of agents was reported last, so that a liar cannot fill the log.
//!
//! In: refusals, with the time. Out: whether to report now, and how many were not. It reports nothing itself.

use edge::protocol::link::Refusal;
use edge::vnic::AgentId;
use std::collections::HashMap;
use std::mem::Discriminant;

/// How often an incident of one agent and kind is reported, in milliseconds. All are counted.
const INTERVAL_MS: u64 = 10_000;

/// What is known of incidents of one kind.
#[derive(Clone, Copy, Debug)]
struct Last {
    at_ms: u64,
    unreported: u64,
}

/// Each kind of each known agent, and of nobody who is known. There are ten kinds.
#[derive(Debug, Default)]
pub struct Reported(HashMap<(Option<AgentId>, Discriminant<Refusal>), Last>);

impl Reported {
    /// Takes an incident of a known agent, or of nobody who is known. Returns how many like it were not reported, if this one is to be.
    pub fn take(&mut self, of: Option<AgentId>, refusal: &Refusal, now_ms: u64) -> Option<u64> {
        let last = self.0.get_mut(&(of, std::mem::discriminant(refusal)));
        match last {
            Some(last) if now_ms.saturating_sub(last.at_ms) < INTERVAL_MS => {
                last.unreported += 1;
                None
            }
            Some(last) => {
                last.at_ms = now_ms;
                Some(std::mem::take(&mut last.unreported))
            }
            None => {
                let last = Last { at_ms: now_ms, unreported: 0 };
                self.0.insert((of, std::mem::discriminant(refusal)), last);
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_each_agent_is_reported_once_in_ten_seconds() {
        let mut reported = Reported::default();
        let mut check = |agent: Option<u32>, refusal: Refusal, now_ms, expected| {
            assert_eq!(
                reported.take(agent.map(AgentId), &refusal, now_ms),
                expected,
                "{refusal} at {now_ms}"
            );
        };
        let (one, forged) = (AgentId(1), Refusal::Forged(AgentId(1)));
        check(Some(1), forged, 0, Some(0));
        check(Some(1), forged, 9_999, None);
        check(Some(1), Refusal::Retired(one), 9_999, Some(0));
        check(Some(2), Refusal::Forged(AgentId(2)), 9_999, Some(0));
        check(None, forged, 9_999, Some(0));
        check(Some(1), forged, 10_000, Some(1));
        check(Some(1), forged, 30_000, Some(0));
    }
}
