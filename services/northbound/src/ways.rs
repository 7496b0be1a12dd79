//! The ways between many pairs of switches, for one request.
//!
//! ```text
//!   pairs ──question──> the service paths ──take──> … ──response──> {"items": [a way, or why there is none, for each pair]}
//! ```
//!
//! In: pairs of switches, and answers of the service. Out: the next question, and in the end the response. It asks nobody itself.

use crate::http::{Problem, Response};
use crate::steps::{Question, Steps, Turn};
use burnet_sdk::DatapathId;
use paths_contract::{SERVICE, Ways, status};
use serde_json::{Value, json};

/// Why a pair has no way in the response: there is none now, or the time was over before the service was asked for it.
const NO_WAY: &str = "no_way";
const NO_TIME: &str = "no_time";

fn missing(why: &str) -> Value {
    json!({ "missing": why })
}

/// A request that is under way.
#[derive(Debug)]
pub struct ManyWays {
    pairs: Vec<(DatapathId, DatapathId)>,
    /// What is known of the first pairs, in their order.
    found: Vec<Value>,
    problem: Option<Problem>,
}

impl ManyWays {
    /// Begins.
    pub fn new(pairs: Vec<(DatapathId, DatapathId)>) -> ManyWays {
        ManyWays { pairs, found: Vec::new(), problem: None }
    }
}

impl Steps for ManyWays {
    fn question(&mut self) -> Option<Question> {
        let (from, to) = self.pairs.get(self.found.len()).filter(|_| self.problem.is_none())?;
        let question = json!({ "op": "ways", "from": from, "to": to, "count": 1, "choice": "equal" });
        Some(Question { service: SERVICE, payload: question.to_string().into_bytes() })
    }

    fn take(&mut self, answer: u16, payload: &[u8]) {
        match answer {
            status::DONE => match serde_json::from_slice::<Ways>(payload) {
                Ok(ways) => {
                    self.found.push(ways.ways.first().map_or_else(|| missing(NO_WAY), |way| json!(way)))
                }
                Err(why) => {
                    self.problem =
                        Some(Problem::no_service(SERVICE, &format!("its answer is damaged: {why}")))
                }
            },
            // A switch that is not there has no way either.
            status::NOT_FOUND | status::NO_WAY => self.found.push(missing(NO_WAY)),
            _ => self.problem = Some(Problem::no_service(SERVICE, &String::from_utf8_lossy(payload))),
        }
    }

    /// A request can be up to 256 searches in the graph.
    fn turn(&self) -> Turn {
        Turn::Few
    }

    fn stop(&mut self) {
        // The ways that are known by then are answered.
    }

    fn response(self: Box<Self>) -> Result<Response, Problem> {
        let ManyWays { pairs, mut found, problem } = *self;
        if let Some(problem) = problem {
            return Err(problem);
        }
        found.resize(pairs.len(), missing(NO_TIME));
        Ok(Response::value(&json!({ "items": found })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"ways":[{"links":["1/2-2/2"],"weight":3}]}"#;

    fn answered(answers: &[(u16, &str)]) -> Result<Value, u16> {
        let pair = (DatapathId(1), DatapathId(2));
        let mut ways = Box::new(ManyWays::new(vec![pair; answers.len()]));
        for (status, payload) in answers {
            let Some(question) = ways.question() else { break };
            assert!(paths_contract::Question::from_bytes(&question.payload).is_ok(), "{question:?}");
            ways.take(*status, payload.as_bytes());
        }
        assert!(ways.question().is_none());
        let response = ways.response().map_err(|problem| problem.status)?;
        Ok(serde_json::from_slice(&response.body).unwrap())
    }

    #[test]
    fn each_pair_has_its_way_or_none_in_the_order_of_the_pairs() {
        let found =
            answered(&[(status::NO_WAY, "no"), (0, ONE), (0, r#"{"ways":[]}"#), (status::NOT_FOUND, "")])
                .unwrap();
        let items = found["items"].as_array().unwrap();
        assert_eq!((items.len(), &items[1]["weight"]), (4, &json!(3)));
        assert!([0, 2, 3].iter().all(|at| items[*at] == json!({"missing": "no_way"})));
        assert_eq!(answered(&[]), Ok(json!({"items": []})));
    }

    #[test]
    fn a_pair_without_an_answer_in_time_says_so() {
        let mut ways = Box::new(ManyWays::new(vec![(DatapathId(1), DatapathId(2)); 3]));
        assert!(ways.question().is_some());
        ways.take(status::DONE, ONE.as_bytes());
        assert!(ways.question().is_some());
        ways.stop();
        let found: Value = serde_json::from_slice(&ways.response().unwrap().body).unwrap();
        assert_eq!(found["items"][0]["weight"], 3);
        let no_time = json!({"missing": "no_time"});
        assert_eq!((&found["items"][1], &found["items"][2]), (&no_time, &no_time));
        assert_eq!(found["items"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn a_service_that_does_not_answer_ends_the_request() {
        assert_eq!(answered(&[(status::NOT_READY, "wait"), (0, "{}")]), Err(503));
        assert_eq!(answered(&[(0, "{")]), Err(503));
    }
}
