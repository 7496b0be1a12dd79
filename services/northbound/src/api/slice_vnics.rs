//! The VNICs of a slice: what each is promised, what its flows get of that, and why that is less.
//!
//! ```text
//!   Question::Promise ──> Hose, then Question::Flows ──> flows ──of_vnics──> a line for each VNIC
//! ```
//!
//! In: the answers of the service `labels`. Out: JSON. What flows get is their nominal rate, which no meter has measured.

use super::context::{Answer, Answered, Context, First};
use super::slices::{answer, ask, known};
use crate::http::Response;
use labels_contract::{Flow, Hose, Question, SERVICE};
use serde_json::{Value, json};

/// `/api/v1/slices/{id}/vnics`
pub fn vnics(context: &Context<'_>) -> Answered {
    let slice = known(context)?.to_owned();
    let payload = Question::Promise { slice: slice.clone() }.to_bytes();
    let next = move |status: u16, payload: &[u8]| -> Answered {
        let hose: Hose = answer(status, payload)?;
        let read = move |status: u16, payload: &[u8]| {
            let flows: Vec<Flow> = answer(status, payload)?;
            let items = of_vnics(&hose, &flows);
            Ok(Response::value(&json!({ "total": items.len(), "items": items })))
        };
        Ok(ask(&Question::Flows { slice }, Box::new(read)))
    };
    Ok(Answer::Then(First { service: SERVICE, payload, next: Box::new(next) }))
}

fn of_vnics(hose: &Hose, flows: &[Flow]) -> Vec<Value> {
    let sum = |is_meant: &dyn Fn(&Flow) -> bool| -> u64 {
        flows.iter().filter(|flow| is_meant(flow)).map(|flow| flow.rate_bps).sum()
    };
    let receives = |name: &str| sum(&|flow| flow.to == name);
    let is_full = |name: &str| hose.vnics.get(name).is_some_and(|vnic| receives(name) >= vnic.rate_bps);
    let of_one = |(name, promised): (&String, &labels_contract::Vnic)| {
        let sends = sum(&|flow| flow.from == *name);
        let own: Vec<&Flow> = flows.iter().filter(|flow| flow.from == *name).collect();
        let mut item = json!({
            "vnic": name,
            "promised_bps": promised.rate_bps,
            "sends_bps": sends,
            "receives_bps": receives(name),
            "flows": own.len(),
        });
        if let (true, Some(members)) = (sends < promised.rate_bps, item.as_object_mut()) {
            members.insert("why_less".to_owned(), why_less(&own, is_full).into());
        }
        item
    };
    hose.vnics.iter().map(of_one).collect()
}

/// Why the flows of a VNIC get less than it is promised. In a max-min share, each flow is limited by a VNIC that sends or receives all
/// that it may.
fn why_less(own: &[&Flow], is_full: impl Fn(&str) -> bool) -> String {
    if own.is_empty() {
        return "no rules bring its packets to another VNIC".to_owned();
    }
    if !own.iter().any(|flow| flow.counts) {
        return "its flows are silent".to_owned();
    }
    let full: Vec<&str> =
        own.iter().filter(|flow| flow.counts && is_full(&flow.to)).map(|flow| flow.to.as_str()).collect();
    match full.as_slice() {
        [] => "its flows share what it may send".to_owned(),
        [one] => format!("{one} receives all that it may"),
        more => format!("{} receive all that they may", more.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(from: &str, to: &str, rate_bps: u64) -> Flow {
        Flow {
            from: from.to_owned(),
            to: to.to_owned(),
            links: Vec::new(),
            rules: 1,
            counts: rate_bps > 0,
            rate_bps,
        }
    }

    #[test]
    fn each_vnic_has_what_it_is_promised_what_it_gets_and_why_less() {
        let rate = |rate_bps: u64| json!({ "rate_bps": rate_bps });
        let hose: Hose = serde_json::from_value(
            json!({"vnics": {"A": rate(10), "B": rate(10), "C": rate(6), "D": rate(1), "E": rate(5)}}),
        )
        .unwrap();
        let flows =
            [flow("A", "C", 3), flow("B", "C", 3), flow("B", "D", 1), flow("D", "A", 1), flow("E", "A", 0)];
        let lines = of_vnics(&hose, &flows);
        let check = |place: usize, sends: u64, receives: u64, why: Option<&str>| {
            let line = &lines[place];
            assert_eq!(
                (line["sends_bps"].as_u64(), line["receives_bps"].as_u64()),
                (Some(sends), Some(receives)),
                "{line}"
            );
            assert_eq!(line["why_less"].as_str(), why, "{line}");
        };
        check(0, 3, 1, Some("C receives all that it may"));
        check(1, 4, 0, Some("C, D receive all that they may"));
        check(2, 0, 6, Some("no rules bring its packets to another VNIC"));
        check(3, 1, 1, None);
        check(4, 0, 0, Some("its flows are silent"));
    }
}
