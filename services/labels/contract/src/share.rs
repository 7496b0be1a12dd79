//! What each VNIC of a slice is promised, what its flows get of that, and why that is less.
//!
//! In: a promise, and the flows of a slice. Out: a [`Share`] for each VNIC. What flows get is their nominal rate, which no meter has measured.

use crate::{Flow, Hose};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most VNICs that a reason names.
const NAMED_MAX: usize = 4;

/// What a VNIC is promised and gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Its name.
    pub vnic: String,
    /// What it may send and what it may receive, in bit/s.
    pub promised_bps: u64,
    /// The nominal rates of the flows from it, in bit/s.
    pub sends_bps: u64,
    /// The nominal rates of the flows to it, in bit/s.
    pub receives_bps: u64,
    /// How many flows come from it.
    pub flows: usize,
    /// Why it sends less than it is promised, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_less: Option<String>,
}

/// What the VNICs of a slice got in the past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// The time that the answer is about, in seconds. It is less than what was asked for if the service does not know more.
    pub covers_s: u64,
    /// Its VNICs that had a flow in that time.
    pub vnics: Vec<PastShare>,
}

/// What a VNIC got in the past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastShare {
    /// Its name.
    pub vnic: String,
    /// What its flows sent, in bit/s, as a mean over the whole time.
    pub sends_bps: u64,
    /// What the flows to it sent, likewise.
    pub receives_bps: u64,
    /// Why it sent less than it is promised, the most frequent reason first.
    pub reasons: Vec<Reason>,
}

/// A reason, and for how much of the time it held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The reason, as a sentence.
    pub why: String,
    /// The share of the time, in percent, 0 to 100.
    pub percent: u8,
}

/// The sums of the flows of a VNIC.
#[derive(Default)]
struct Sums<'a> {
    sends_bps: u64,
    receives_bps: u64,
    own: Vec<&'a Flow>,
}

/// The share of each VNIC.
pub fn shares(hose: &Hose, flows: &[Flow]) -> Vec<Share> {
    let mut sums: BTreeMap<&str, Sums<'_>> = BTreeMap::new();
    for flow in flows {
        let sender = sums.entry(&flow.from).or_default();
        sender.sends_bps = sender.sends_bps.saturating_add(flow.rate_bps);
        sender.own.push(flow);
        let receiver = sums.entry(&flow.to).or_default();
        receiver.receives_bps = receiver.receives_bps.saturating_add(flow.rate_bps);
    }
    let of = |name: &str| sums.get(name).map_or((0, 0), |sums| (sums.sends_bps, sums.receives_bps));
    let is_full = |name: &str| hose.vnics.get(name).is_some_and(|vnic| of(name).1 >= vnic.rate_bps);
    let share = |(name, promised): (&String, &crate::Vnic)| {
        let (sends_bps, receives_bps) = of(name);
        let own = sums.get(name.as_str()).map_or(&[][..], |sums| &sums.own);
        let why_less = (sends_bps < promised.rate_bps).then(|| why_less(own, is_full));
        Share {
            vnic: name.clone(),
            promised_bps: promised.rate_bps,
            sends_bps,
            receives_bps,
            flows: own.len(),
            why_less,
        }
    };
    hose.vnics.iter().map(share).collect()
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
        some if some.len() <= NAMED_MAX => format!("{} receive all that they may", some.join(", ")),
        many => {
            let (first, more) = many.split_at(NAMED_MAX);
            format!("{} and {} more receive all that they may", first.join(", "), more.len())
        }
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
            cap_bps: None,
        }
    }

    fn hose(rates_bps: &[(&str, u64)]) -> Hose {
        let vnic = |rate_bps| crate::Vnic { rate_bps, number: None, agent: None };
        let vnics = rates_bps.iter().map(|(name, rate_bps)| ((*name).to_owned(), vnic(*rate_bps))).collect();
        Hose { vnics, ..Hose::default() }
    }

    #[test]
    fn each_vnic_has_what_it_is_promised_what_it_gets_and_why_less() {
        let hose = hose(&[("A", 10), ("B", 10), ("C", 6), ("D", 1), ("E", 5)]);
        let flows =
            [flow("A", "C", 3), flow("B", "C", 3), flow("B", "D", 1), flow("D", "A", 1), flow("E", "A", 0)];
        let found = shares(&hose, &flows);
        let check = |place: usize, sends: u64, receives: u64, why: Option<&str>| {
            let share = &found[place];
            assert_eq!((share.sends_bps, share.receives_bps), (sends, receives), "{share:?}");
            assert_eq!(share.why_less.as_deref(), why, "{share:?}");
        };
        check(0, 3, 1, Some("C receives all that it may"));
        check(1, 4, 0, Some("C, D receive all that they may"));
        check(2, 0, 6, Some("no rules bring its packets to another VNIC"));
        check(3, 1, 1, None);
        check(4, 0, 0, Some("its flows are silent"));
    }

    #[test]
    fn a_reason_names_a_few_vnics_and_counts_the_others() {
        let names: Vec<String> = (0..7).map(|number| format!("V{number}")).collect();
        let mut rates: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        rates.push(("A", 10));
        let flows: Vec<Flow> = names.iter().map(|name| flow("A", name, 1)).collect();
        let why = shares(&hose(&rates), &flows)[0].why_less.clone();
        assert_eq!(why.as_deref(), Some("V0, V1, V2, V3 and 3 more receive all that they may"));
    }
}
