//! The VNICs of a slice: what each is promised, what its flows get of that, and why that is less. Now, or over the time until now.
//!
//! ```text
//!   Question::Promise ──> Hose, then Question::Flows ──> labels_contract::shares ──> a line for each VNIC
//!                          └── with since_s: Question::Past ──> means over that time ──┘
//! ```
//!
//! In: the answers of the service `labels`. Out: JSON. What flows get is what meters measured. Of a flow that nobody meters, it is the nominal rate.

use super::context::{Answer, Answered, Context, First};
use super::slices::{answer, ask, known};
use crate::http::{Problem, Response};
use labels_contract::{Flow, Hose, Past, PastShare, Question, SERVICE, Vnic, shares};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How far back a report can go, in seconds: what the service keeps.
pub const SINCE_S_MAX: usize = 24 * 3_600;

/// `/api/v1/slices/{id}/vnics`
pub fn vnics(context: &Context<'_>) -> Answered {
    let slice = known(context)?.to_owned();
    let since_s = context.number("since_s", (1, SINCE_S_MAX))?;
    let payload = Question::Promise { slice: slice.clone() }.to_bytes();
    let next = move |status: u16, payload: &[u8]| -> Answered {
        let hose: Hose = answer(status, payload)?;
        Ok(match since_s {
            None => {
                ask(&Question::Flows { slice }, Box::new(move |status, payload| now(&hose, status, payload)))
            }
            Some(since_s) => ask(
                &Question::Past { slice, since_s: since_s as u64 },
                Box::new(move |status, payload| before(&hose, status, payload)),
            ),
        })
    };
    Ok(Answer::Then(First { service: SERVICE, payload, next: Box::new(next) }))
}

fn now(hose: &Hose, status: u16, payload: &[u8]) -> Result<Response, Problem> {
    let flows: Vec<Flow> = answer(status, payload)?;
    let items = shares(hose, &flows);
    Ok(Response::value(&json!({ "total": items.len(), "items": items })))
}

fn before(hose: &Hose, status: u16, payload: &[u8]) -> Result<Response, Problem> {
    let past: Past = answer(status, payload)?;
    let known: BTreeMap<&str, &PastShare> =
        past.vnics.iter().map(|share| (share.vnic.as_str(), share)).collect();
    let items: Vec<Value> =
        hose.vnics.iter().map(|(name, vnic)| line(name, vnic, known.get(name.as_str()).copied())).collect();
    Ok(Response::value(&json!({ "total": items.len(), "items": items, "covers_s": past.covers_s })))
}

/// What a VNIC got. One without any flow is not in what the service answers.
fn line(name: &str, vnic: &Vnic, share: Option<&PastShare>) -> Value {
    let (sends, receives) = share.map_or((0, 0), |share| (share.sends_bps, share.receives_bps));
    let mut line = json!({
        "vnic": name,
        "promised_bps": vnic.rate_bps,
        "sends_bps": sends,
        "receives_bps": receives,
    });
    let reasons = share.map_or(&[][..], |share| &share.reasons);
    if let (false, Some(members)) = (reasons.is_empty(), line.as_object_mut()) {
        let texts: Vec<String> = reasons
            .iter()
            .map(|reason| format!("{} ({} % of the time)", reason.why, reason.percent))
            .collect();
        members.insert("why_less".to_owned(), texts.join("; ").into());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use labels_contract::Reason;

    #[test]
    fn the_past_of_a_vnic_has_its_reasons_with_their_share_of_the_time() {
        let vnic = Vnic { rate_bps: 10, number: None, agent: None };
        assert_eq!(
            line("A", &vnic, None),
            json!({"vnic": "A", "promised_bps": 10, "sends_bps": 0, "receives_bps": 0})
        );
        let reason = |why: &str, percent| Reason { why: why.to_owned(), percent };
        let reasons = vec![reason("C receives all that it may", 40), reason("other reasons", 2)];
        let share = PastShare { vnic: "A".to_owned(), sends_bps: 4, receives_bps: 1, reasons };
        let why = "C receives all that it may (40 % of the time); other reasons (2 % of the time)";
        assert_eq!(
            line("A", &vnic, Some(&share)),
            json!({"vnic": "A", "promised_bps": 10, "sends_bps": 4, "receives_bps": 1, "why_less": why})
        );
    }
}
