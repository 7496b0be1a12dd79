//! What each VNIC of a slice is promised, what its flows get of that, and why that is less.
//!
//! In: a promise, and the flows of a slice. Out: a [`Share`] for each VNIC. What flows get is what meters measured. Of a flow that nobody
//! meters, it is the nominal rate.

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
    /// What the flows from it get, in bit/s: [`Flow::got_bps`].
    pub sends_bps: u64,
    /// What the flows to it get, likewise.
    pub receives_bps: u64,
    /// How many flows come from it.
    pub flows: usize,
    /// Whether meters measured all flows from it and to it that count.
    #[serde(default)]
    pub measured: bool,
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
    /// How many flows from it and to it count, and how many of them were measured.
    counting: usize,
    measured: usize,
}

impl Sums<'_> {
    fn is_measured(&self) -> bool {
        self.counting > 0 && self.measured == self.counting
    }

    fn note(&mut self, flow: &Flow) {
        self.counting += usize::from(flow.counts);
        self.measured += usize::from(flow.measured_bps.is_some());
    }
}

/// What counts as all of a rate: agents say rates to a tenth, and leave a little of a NIC free.
fn nearly(bps: u64, is_measured: bool) -> u64 {
    if is_measured { bps / 100 * 88 } else { bps }
}

/// The share of each VNIC.
pub fn shares(hose: &Hose, flows: &[Flow]) -> Vec<Share> {
    let mut sums: BTreeMap<&str, Sums<'_>> = BTreeMap::new();
    for flow in flows {
        let sender = sums.entry(&flow.from).or_default();
        sender.sends_bps = sender.sends_bps.saturating_add(flow.got_bps());
        sender.note(flow);
        sender.own.push(flow);
        let receiver = sums.entry(&flow.to).or_default();
        receiver.receives_bps = receiver.receives_bps.saturating_add(flow.got_bps());
        receiver.note(flow);
    }
    let none = Sums::default();
    let of = |name: &str| sums.get(name).unwrap_or(&none);
    let is_full = |name: &str| {
        let (sum, promised) = (of(name), hose.vnics.get(name));
        promised.is_some_and(|vnic| sum.receives_bps >= nearly(vnic.rate_bps, sum.is_measured()))
    };
    let share = |(name, promised): (&String, &crate::Vnic)| {
        let sum = of(name);
        let measured = sum.is_measured();
        let is_less = sum.sends_bps < nearly(promised.rate_bps, measured);
        Share {
            vnic: name.clone(),
            promised_bps: promised.rate_bps,
            sends_bps: sum.sends_bps,
            receives_bps: sum.receives_bps,
            flows: sum.own.len(),
            measured,
            why_less: is_less.then(|| why_less(&sum.own, is_full)),
        }
    };
    hose.vnics.iter().map(share).collect()
}

/// Why the flows of a VNIC get less than it is promised. In a max-min share, each flow is limited by a VNIC that sends or receives all
/// that it may. Over an overbooked link, the service caps it. And a tenant may send less than it may.
fn why_less(own: &[&Flow], is_full: impl Fn(&str) -> bool) -> String {
    if own.is_empty() {
        return "no rules bring its packets to another VNIC".to_owned();
    }
    let counting: Vec<&Flow> = own.iter().copied().filter(|flow| flow.counts).collect();
    if counting.is_empty() {
        return "its flows are silent".to_owned();
    }
    let of_those = |is_it: &dyn Fn(&Flow) -> bool| -> Vec<&str> {
        counting.iter().filter(|flow| is_it(flow)).map(|flow| flow.to.as_str()).collect()
    };
    let (capped, full) = (of_those(&is_at_its_cap), of_those(&|flow| is_full(&flow.to)));
    let reasons = [
        (!capped.is_empty()).then(|| format!("links on the way to {} are overbooked", names(&capped))),
        match full.as_slice() {
            [] => None,
            [one] => Some(format!("{one} receives all that it may")),
            some => Some(format!("{} receive all that they may", names(some))),
        },
    ];
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    match reasons.is_empty() {
        false => reasons.join("; "),
        true if counting.iter().any(|flow| is_idle(flow)) => "it sends less than it may".to_owned(),
        true => "its flows share what it may send".to_owned(),
    }
}

fn is_at_its_cap(flow: &Flow) -> bool {
    let is_at = |cap_bps: u64| flow.got_bps() >= nearly(cap_bps, flow.measured_bps.is_some());
    flow.cap_bps.filter(|cap_bps| *cap_bps < flow.rate_bps).is_some_and(is_at)
}

/// Whether the flow gets less than its nominal rate, and no cap is in its way.
fn is_idle(flow: &Flow) -> bool {
    flow.measured_bps.is_some_and(|bps| bps < nearly(flow.rate_bps, true)) && !is_at_its_cap(flow)
}

/// The first few names, and how many more there are.
fn names(all: &[&str]) -> String {
    match all.split_at_checked(NAMED_MAX) {
        Some((first, more)) if !more.is_empty() => format!("{} and {} more", first.join(", "), more.len()),
        _ => all.join(", "),
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
            measured_bps: None,
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
    fn what_meters_measured_is_what_is_got_and_caps_are_a_reason() {
        let hose = hose(&[("A", 8_000), ("B", 8_000), ("C", 8_000), ("D", 8_000)]);
        let check = |measured: Option<u64>, cap: Option<u64>, expected: (u64, bool, Option<&str>)| {
            let flow = Flow { measured_bps: measured, cap_bps: cap, ..flow("A", "B", 8_000) };
            let share = &shares(&hose, &[flow])[0];
            let (sends, is_measured, why) = expected;
            assert_eq!((share.sends_bps, share.measured), (sends, is_measured), "{measured:?} {cap:?}");
            assert_eq!(share.why_less.as_deref(), why, "{measured:?} {cap:?}");
        };
        check(None, None, (8_000, false, None));
        check(Some(7_800), None, (7_800, true, None));
        check(Some(9_800), None, (9_800, true, None));
        check(Some(1_000), None, (1_000, true, Some("it sends less than it may")));
        let overbooked = Some("links on the way to B are overbooked");
        check(Some(4_300), Some(4_400), (4_300, true, overbooked));
        check(None, Some(4_400), (4_400, false, overbooked));
        check(Some(1_000), Some(4_400), (1_000, true, Some("it sends less than it may")));
        let both = [
            Flow { measured_bps: Some(4_000), cap_bps: Some(4_000), ..flow("A", "B", 6_000) },
            Flow { measured_bps: None, ..flow("C", "B", 6_000) },
        ];
        let share = &shares(&hose, &both)[0];
        assert_eq!((share.sends_bps, share.measured), (4_000, true));
        let why = "links on the way to B are overbooked; B receives all that it may";
        assert_eq!(share.why_less.as_deref(), Some(why));
        assert!(!shares(&hose, &both)[1].measured, "one of its flows is not metered");
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
