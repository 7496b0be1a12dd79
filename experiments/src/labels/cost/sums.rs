//! What a change costs the service of labels, among few flows and among a million, in a process of its own.
//!
//! ```text
//!   experiments --part labels:1000:1000 ──> an engine with 1,000 slices of 1,000 flows ──> {"bytes": …, "moved_us": [ … ], …}
//! ```
//!
//! In: a number of slices, and how many flows each has. Out: a line of JSON. The engine is that of the service, with 10,000 links. Each slice has 100 VNICs and shows a hundred
//! links to its tenant. It has rules for flows of six hops, in a tenth of the network.

use super::super::draws::Draws;
use ::labels::Engine;
use hose::Bandwidth;
use lab::processes::own_bytes;
use labels_contract::{Entry, Hose, Report, Vnic};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use view::LinkId;

/// Links of the network, and those of a tenth of it.
const LINKS: usize = 10_000;
const TENTH: usize = LINKS / 10;
const CAPACITY: Bandwidth = Bandwidth::from_kbps(100_000_000);
/// Flows of a slice in a network that is full, and its VNICs.
pub(super) const FLOWS: usize = 1_000;
const VNICS: usize = 100;
/// Links that a slice shows.
const SHOWN: usize = 100;
const HOPS: usize = 6;
/// Changes that are timed together, so that reading the clock does not count, and how often.
const BATCH: usize = 50;
const BATCHES: usize = 200;

/// What a part has measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Part {
    /// Memory of all flows, with their slices.
    pub bytes: u64,
    /// Flows.
    pub flows: u64,
    /// The time of a change of a path, in microseconds: the mean of each batch.
    pub moved_us: Vec<f64>,
    /// The time of the end of a flow, or of its begin.
    pub ended_us: Vec<f64>,
}

/// Measures with this number of slices.
///
/// # Errors
/// The engine refuses something.
pub(super) fn measure(slices: usize, flows_each: usize) -> Result<String, String> {
    let mut bench = Bench::new(flows_each);
    let before = own_bytes(&[std::process::id()]);
    for slice in 0..slices {
        bench.add(slice)?;
    }
    let bytes = own_bytes(&[std::process::id()]).saturating_sub(before);
    let flows = bench.engine.counts().flows;
    // The first time that a slice uses a link costs memory. Slices with few flows would have that in the middle of the measurement.
    let mut moved_us = Vec::new();
    for _warm_up_and_measured in 0..2 {
        moved_us = bench.timed(slices, |bench, slice, flow| vec![bench.path(slice, flow)])?;
    }
    let ended_us = bench.timed(slices, |bench, slice, flow| {
        let (from, to) = ends(flow);
        vec![Entry::NoPath { from, to }, bench.path(slice, flow)]
    })?;
    let ended_us = ended_us.into_iter().map(|both| both / 2.0).collect();
    let part = Part { bytes, flows, moved_us, ended_us };
    serde_json::to_string(&part).map_err(|error| error.to_string())
}

struct Bench {
    engine: Engine,
    links: Vec<LinkId>,
    flows_each: usize,
    /// The number of the next report of each slice.
    next: Vec<u64>,
    draws: Draws,
    now_ms: u64,
}

impl Bench {
    fn new(flows_each: usize) -> Bench {
        let mut engine = Engine::default();
        let link = |number: usize| format!("{}/1-{}/2", number + 1, number + 2).parse().ok();
        let links: Vec<LinkId> = (0..LINKS).filter_map(link).collect();
        links.iter().for_each(|link| engine.on_link(*link, Some(CAPACITY), 0, &mut Vec::new()));
        Bench { engine, links, flows_each, next: Vec::new(), draws: Draws::new(7), now_ms: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        // Below a `usize`.
        self.draws.below(bound as u64) as usize
    }

    /// A slice is there, and reports all that it has.
    fn add(&mut self, slice: usize) -> Result<(), String> {
        let vnic = Vnic { rate_bps: 100_000, number: None, agent: None };
        let hose = Hose { vnics: (0..VNICS).map(|it| (vnic_name(it), vnic)).collect(), ..Hose::default() };
        let put = self.engine.put(&slice_name(slice), &hose, self.now_ms, &mut Vec::new());
        put.map_err(|(_, why)| why)?;
        self.next.push(1);
        let first = slice % 10 * TENTH;
        let link = |place: usize| self.links[first + (place * 7 + slice) % TENTH];
        let shown = (0..SHOWN).map(|place| Entry::Link { link: link(place) });
        let mut entries: Vec<Entry> = shown.collect();
        entries.extend((0..self.flows_each).map(|flow| self.path(slice, flow)));
        let mut report = self.report(slice, entries);
        report.reset = true;
        self.tell(&report)
    }

    /// Another path of a flow.
    fn path(&mut self, slice: usize, flow: usize) -> Entry {
        let (from, to) = ends(flow);
        let first = slice % 10 * TENTH;
        let places: [usize; HOPS] = std::array::from_fn(|_| first + self.below(TENTH));
        let links = places.map(|place| self.links[place]).to_vec();
        Entry::Path { from, to, links, rules: 6 }
    }

    fn report(&mut self, slice: usize, entries: Vec<Entry>) -> Report {
        let number = self.next[slice];
        self.next[slice] += 1;
        Report { slice: slice_name(slice), session: 1, number, reset: false, more: false, entries }
    }

    fn tell(&mut self, report: &Report) -> Result<(), String> {
        let heard = self.engine.on_report(report, self.now_ms, &mut Vec::new());
        let heard = heard.map_err(|(_, why)| why)?;
        heard.refused.first().map_or(Ok(()), |refused| Err(refused.why.clone()))
    }

    /// The mean time of each change of a batch. A millisecond passes between two changes.
    fn timed(
        &mut self,
        slices: usize,
        mut change: impl FnMut(&mut Bench, usize, usize) -> Vec<Entry>,
    ) -> Result<Vec<f64>, String> {
        let mut means = Vec::new();
        for _ in 0..BATCHES {
            let mut reports = Vec::new();
            for _ in 0..BATCH {
                let (slice, flow) = (self.below(slices), self.below(self.flows_each));
                let entries = change(self, slice, flow);
                reports.push(self.report(slice, entries));
            }
            let began = Instant::now();
            for report in &reports {
                self.now_ms += 1;
                self.tell(report)?;
            }
            means.push(began.elapsed().as_secs_f64() * 1e6 / BATCH as f64);
        }
        Ok(means)
    }
}

fn slice_name(number: usize) -> String {
    format!("slice{number}")
}

fn vnic_name(number: usize) -> String {
    format!("v{number}")
}

/// The VNICs of a flow: each sends to ten others.
fn ends(flow: usize) -> (String, String) {
    let source = flow % VNICS;
    (vnic_name(source), vnic_name((source + 1 + flow / VNICS * 7) % VNICS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flow_has_ends_of_its_own_and_all_changes_are_taken() {
        let pairs: std::collections::BTreeSet<_> = (0..FLOWS).map(ends).collect();
        assert!(pairs.len() == FLOWS && pairs.iter().all(|(from, to)| from != to));
        let part: Part = serde_json::from_str(&measure(2, FLOWS).unwrap()).unwrap();
        assert_eq!((part.flows, part.moved_us.len(), part.ended_us.len()), (2_000, BATCHES, BATCHES));
    }
}
