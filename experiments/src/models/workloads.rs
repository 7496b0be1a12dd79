//! Workloads that nobody measured: does a profile predict them?
//!
//! Poisson arrivals at shares of the set-up rate, and bursts. The probe has not seen any of them. The paper's emulator has the delays of
//! figure 2's load.
//!
//! Above the set-up rate, queues grow until no query completes in time. That happens in the first minute, so there the whole run counts:
//! how delays grow, and which share of the queries fails.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{
    Chart, Content, Figure, Panel, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series,
};
use crate::report::Claim;
use emulator::Arrivals;
use profile::compare::{Samples, ks};
use serde_json::{Value, json};
use std::time::Duration;

use super::curves::{NO_HARDWARE, VIRTUAL, summary};
use super::fig2::load;
use super::fig8::{Trio, paper_emulator, trio};
use super::paper::paper;
use super::players::{HARDWARE, Target};
use super::virtual_bed::{Load, Seen, samples};

/// The largest KS distance.
const KS_LIMIT: f64 = 0.1;
/// How far the shares of failed queries may be apart, where many fail.
const FAILED_LIMIT: f64 = 0.05;
/// With five, bursts of a switch differ from those of the same switch by more than the limit.
const RUNS: usize = 30;
/// A query takes a rule in each direction.
const SETUPS_PER_QUERY: f64 = 2.0;
/// Queries of a burst, and the time between two bursts: the switch is idle again before the next.
const BURST: u32 = 100;
const BURST_EVERY: Duration = Duration::from_secs(20);

/// A workload: its name and its arrivals, for a switch with this set-up rate.
const WORKLOADS: [(&str, Kind); 4] = [
    ("Poisson, 50 %", Kind::Poisson(0.5)),
    ("Poisson, 90 %", Kind::Poisson(0.9)),
    ("Poisson, 110 %", Kind::Poisson(1.1)),
    ("bursts of 100", Kind::Bursts),
];

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// At this share of the set-up rate.
    Poisson(f64),
    Bursts,
}

/// The distances of both emulators for a workload.
struct Distances {
    workload: &'static str,
    full: f64,
    paper: f64,
    /// The shares of queries that failed, of the target and of both emulators. None: the load is one that a switch can bear.
    failed: Option<[f64; 3]>,
}

impl Kind {
    /// Whether it is more than a switch can set up.
    fn is_overload(self) -> bool {
        matches!(self, Kind::Poisson(share) if share > 1.0)
    }
}

/// Runs it.
///
/// # Errors
/// A run or the probe fails.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let paper = paper()?;
    let base = load(lab, &paper.fig2);
    let count = lab.times(RUNS, 2);
    let (mut claims, mut panels, mut data) = (Vec::new(), Vec::new(), serde_json::Map::new());
    for target in HARDWARE {
        let emulator = paper_emulator(target, &base, count)?;
        let rate = paper.row(target.profile).ok_or("Table 1 does not have the switch")?.setups_per_s;
        let (mut distances, mut of_target) = (Vec::new(), serde_json::Map::new());
        for (workload, kind) in WORKLOADS {
            lab.say(&format!("{}: {workload}", target.name));
            let runs = trio(target, &with_arrivals(&base, kind, rate), &emulator, count)?;
            let [truth, full, simple] = pooled(&runs, base.timeout)?;
            let failed = [&runs.target, &runs.full, &runs.paper].map(|runs| failed_share(runs));
            let distance = |emulator| ks(&truth, emulator).distance;
            let (full_ks, paper_ks) = (distance(&full), distance(&simple));
            let in_overload = kind.is_overload().then_some(failed);
            let of = Distances { workload, full: full_ks, paper: paper_ks, failed: in_overload };
            let numbers = json!({
                "ks": { "full": of.full, "paper": of.paper },
                "failed": { "target": failed[0], "full": failed[1], "paper": failed[2] },
                "target": summary(&truth), "full": summary(&full), "paper": summary(&simple),
            });
            of_target.insert(workload.to_owned(), numbers);
            claims.extend(claims_of(target, &of));
            distances.push(of);
        }
        panels.push(bars(target, &distances));
        data.insert(target.profile.to_owned(), Value::Object(of_target));
    }
    let figure = Figure {
        title: "Loads that were not measured: how far the emulators are from their targets".to_owned(),
        panels,
        notes: vec![
            NO_HARDWARE.to_owned(),
            VIRTUAL.to_owned(),
            "A query that failed counts as one that took its time-out of 10 s.".to_owned(),
            "Not in the paper. Shares are of the set-up rate of Table 1, with two set-ups for each query."
                .to_owned(),
        ],
    };
    Ok(Findings { claims, data: Value::Object(data), figure })
}

fn with_arrivals(base: &Load, kind: Kind, setups_per_s: f64) -> Load {
    match kind {
        Kind::Poisson(share) => {
            let every = Duration::from_secs_f64(SETUPS_PER_QUERY / (setups_per_s * share));
            let counted_from = if kind.is_overload() { Duration::ZERO } else { base.counted_from };
            Load { arrivals: Arrivals::Poisson, every, counted_from, ..*base }
        }
        // A short run has bursts that are counted, too.
        Kind::Bursts => {
            Load { arrivals: Arrivals::Bursts(BURST), every: BURST_EVERY.min(base.lasts / 4), ..*base }
        }
    }
}

/// All queries of each.
fn pooled(runs: &Trio, timeout: Duration) -> Result<[Samples; 3], String> {
    let pool = |runs: &[Seen]| {
        let all: Vec<f64> = runs.iter().flat_map(|seen| seen.times_us(timeout)).collect();
        samples(&all, "queries")
    };
    Ok([pool(&runs.target)?, pool(&runs.full)?, pool(&runs.paper)?])
}

/// The share of queries that failed.
fn failed_share(runs: &[Seen]) -> f64 {
    let (failed, all) =
        runs.iter().fold((0, 0), |(failed, all), seen| (failed + seen.failed, all + seen.queries()));
    failed as f64 / all.max(1) as f64
}

fn claims_of(target: Target, of: &Distances) -> Vec<Claim> {
    let name = format!("{}, {}", target.name, of.workload);
    let text = format!("{:.3}; the paper's model {:.3}", of.full, of.paper);
    let limit = format!("< {KS_LIMIT}");
    let distance = Claim::asked(&format!("{name}: KS distance"), &limit, text, of.full < KS_LIMIT);
    let shares = of.failed.map(|[truth, full, paper]| {
        let [truth_text, full_text, paper_text] =
            [truth, full, paper].map(|share| format!("{:.1} %", 100.0 * share));
        let text = format!("target {truth_text}, full {full_text}, the paper's model {paper_text}");
        let limit = format!("{:.0} % of all apart", 100.0 * FAILED_LIMIT);
        let is_near = (truth - full).abs() <= FAILED_LIMIT;
        Claim::asked(&format!("{name}: queries that failed in the whole run"), &limit, text, is_near)
    });
    std::iter::once(distance).chain(shares).collect()
}

fn bars(target: Target, all: &[Distances]) -> Panel {
    let names = Scale::Names(all.iter().map(|it| it.workload.to_owned()).collect());
    let points = |of: fn(&Distances) -> f64| -> Vec<Point> {
        all.iter().zip(0u32..).map(|(it, place)| Point::at(f64::from(place), of(it))).collect()
    };
    let chart = Chart {
        x: axis("workload", names),
        y: axis("KS distance", Scale::Linear(0.0, 1.0)),
        series: vec![
            series("paper", Shape::Bars, Style::Baseline, points(|it| it.paper)),
            series("full", Shape::Bars, Style::Ours, points(|it| it.full)),
        ],
        marks: vec![ReferenceLine::Horizontal(KS_LIMIT, format!("asked: {KS_LIMIT}"))],
    };
    panel(target.name, Content::Chart(chart))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_failed_took_the_time_out() {
        let seen = |failed| vec![Seen { completion_us: vec![5.0], failed, ..Seen::default() }];
        let runs = Trio { target: seen(0), full: seen(1), paper: seen(3) };
        let means = pooled(&runs, Duration::from_micros(9)).unwrap().map(|of| of.mean_us());
        assert_eq!(means, [5.0, 7.0, 8.0]);
        assert!(pooled(&Trio { full: vec![Seen::default()], ..runs }, Duration::ZERO).is_err(), "no query");
    }

    #[test]
    fn half_of_the_set_up_rate_is_a_quarter_of_it_in_queries() {
        let base =
            Load::of_figure_2(Duration::from_millis(50), Duration::from_secs(120), Duration::from_secs(60));
        let load = with_arrivals(&base, Kind::Poisson(0.5), 40.0);
        assert_eq!((load.arrivals, load.every), (Arrivals::Poisson, Duration::from_millis(100)));
        assert_eq!(load.counted_from, base.counted_from);
        let overload = with_arrivals(&base, Kind::Poisson(1.1), 40.0);
        assert_eq!(overload.counted_from, Duration::ZERO, "later, no query completes");
    }

    #[test]
    fn in_overload_the_shares_that_fail_are_compared() {
        let holds = |failed| {
            let of = Distances { workload: "x", full: 0.02, paper: 0.5, failed };
            claims_of(HARDWARE[0], &of).iter().map(|claim| claim.holds).collect::<Vec<_>>()
        };
        assert_eq!(holds(None), [Some(true)]);
        assert_eq!(holds(Some([0.5, 0.54, 0.0])), [Some(true), Some(true)]);
        assert_eq!(holds(Some([0.5, 0.44, 0.5])), [Some(true), Some(false)]);
    }
}
