//! The flows of the paper's tables 2 and 3 as intents: from one host's port to another's, each for a destination of its own.
//!
//! In: pairs of switches. Out: questions for the service `paths`. It asks nothing.

use super::protocol::Payload;
use super::wan::Wan;
use flow::{Field, Match};
use paths_contract::{Addition, Question};
use view::{Ends, Protection, Wanted};

/// The first destination address. Each flow has the next one.
const FIRST_ADDRESS: u32 = 0x1400_0000;

/// How many flows one question adds.
pub const ADDED_AT_ONCE: usize = 100;

/// Questions that add flows and are under way at one time: what the service has room for.
pub const ADDS_AT_ONCE: usize = 3;

/// A flow. Its number gives it a destination address.
pub fn add(wan: &Wan, (from, to): (usize, usize), number: u32) -> Addition {
    let selector = Match::any().with(Field::EthType, 0x0800u16).with(Field::Ipv4Dst, FIRST_ADDRESS + number);
    let ends = Ends::PointToPoint { from: wan.edge(from), to: wan.edge(to) };
    let (treatment, constraints) = Default::default();
    let (priority, protection) = (view::INTENT_PRIORITY, Protection::Restored);
    let intent = Wanted { ends, selector, treatment, constraints, priority, protection };
    Addition { name: format!("flow {number}"), intent, annotations: Default::default() }
}

/// Questions that add `count` flows, from `first` on. The pairs are taken in turn.
pub fn adds(wan: &Wan, pairs: &[(usize, usize)], count: u32, first: u32) -> Vec<Payload> {
    let pair = |number: u32| pairs.get(number as usize % pairs.len().max(1)).copied().unwrap_or_default();
    let flows: Vec<Addition> = (0..count).map(|number| add(wan, pair(number), first + number)).collect();
    let question = |intents: &[Addition]| payload(&Question::AddAll { intents: intents.to_vec() });
    flows.chunks(ADDED_AT_ONCE).map(question).collect()
}

/// A question as a payload.
pub fn payload(question: &Question) -> Payload {
    Payload::Text(String::from_utf8_lossy(&question.to_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flow_is_a_question_that_the_service_takes() {
        let wan = Wan::new(6, 6, 1);
        let questions = adds(&wan, &[(0, 3), (1, 4)], 257, 7);
        assert_eq!(questions.len(), 3);
        for added in questions {
            assert!(Question::from_bytes(&added.to_bytes()).is_ok(), "{added:?}");
        }
    }
}
