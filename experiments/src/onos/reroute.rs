//! Table 2: an interface goes down, and 1,000 of 16,000 flows move from six switches to seven.
//!
//! ```text
//!   Change::Link down ──> port status ──> node ──> first flow mod … last flow mod ──> (other rounds) installed again
//!   heal, the way around down, heal ──> the flows are back on six switches
//! ```
//!
//! A time begins before the emulator is told to take the link down, and ends when the flow mod is read from the switch's
//! connection. Both add to the node's own time.

use super::arrivals::{Arrivals, Burst};
use super::bed::{Bed, PATIENCE, Plan, wait_until};
use super::clock::{between_ms, now_ns};
use super::flows::{self, ADDS_AT_ONCE};
use super::paper::{Latency, paper};
use super::protocol::Payload;
use super::wan::{Detour, cable_name, detour};
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::{median, percentile};
use emulator::{Change, Handle};
use paths_contract::{Counts, Question, SERVICE};
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};
use view::Kind;

/// What the node runs.
pub const SERVICES: [&str; 3] = ["discovery", "flows", "paths"];

/// Questions under way while flows are withdrawn.
pub const AT_ONCE: usize = 120;

/// The network is drawn from this number.
pub const SEED: u64 = 2014;

/// After this time, no further round begins.
pub const ROUNDS_TIME: Duration = Duration::from_secs(90);

const ASKED_FIRST_MS: f64 = 2.0;
const ASKED_TOTAL_MS: f64 = 10.0;
const ASKED_P99_MS: f64 = 20.0;

/// What was measured.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    bursts: Vec<Burst>,
    /// To the app's event that the link is down.
    noticed_ms: Vec<f64>,
    /// Flows that moved, in each round.
    moved: Vec<u64>,
    flows: u32,
    wanted: u32,
}

/// A node with the network, and flows in place.
pub struct Trial {
    /// The node.
    pub bed: Bed,
    /// The switches.
    pub network: Handle,
    /// The plan of the network.
    pub detour: Detour,
}

impl Trial {
    /// Starts the node and the network, and waits until all links are found.
    ///
    /// # Errors
    /// It does not start, or does not find its links.
    pub fn start(lab: &Lab, services: &[&str]) -> Result<Trial, String> {
        let detour = detour(SEED);
        let plan = Plan { services, kinds: &[Kind::Link], raw: false, more: "" };
        let mut bed = Bed::start(lab, plan)?;
        let network = bed.network(&detour.wan.topology())?;
        bed.wait_links(detour.wan.cables.len() * 2)?;
        Ok(Trial { bed, network, detour })
    }

    /// Adds flows, and waits until all are installed. Returns the seconds that it took.
    ///
    /// # Errors
    /// One is refused, or not installed in time.
    pub fn add(&mut self, questions: Vec<Payload>, total: u32) -> Result<f64, String> {
        let began_ns = now_ns();
        self.bed.load(SERVICE, questions)?;
        self.bed.ask(ADDS_AT_ONCE)?;
        self.bed.asked()?;
        self.wait_installed(total, Duration::from_millis(20))?;
        Ok(between_ms(began_ns, now_ns()) / 1000.0)
    }

    /// Waits until so many flows are installed. Returns when.
    ///
    /// # Errors
    /// They are not in time.
    pub fn wait_installed(&mut self, total: u32, every: Duration) -> Result<u64, String> {
        let question = String::from_utf8_lossy(&Question::Counts.to_bytes()).into_owned();
        self.bed.poll(SERVICE, &question, every, &format!("\"installed\":{total},"))?;
        match self.bed.polled() {
            Ok((at_ns, _)) => Ok(at_ns),
            Err(why) => Err(format!("{why}; {:?}", self.counts())),
        }
    }

    /// What the service of paths has counted.
    ///
    /// # Errors
    /// It does not answer.
    pub fn counts(&mut self) -> Result<Counts, String> {
        counts(&mut self.bed)
    }

    /// Takes a cable down or up.
    ///
    /// # Errors
    /// The emulation has ended.
    pub fn set_cable(&self, cable: (usize, usize), up: bool) -> Result<(), String> {
        self.network.change(Trial::link(cable, up)).map_err(|error| error.to_string())
    }

    fn link(cable: (usize, usize), up: bool) -> Change {
        Change::Link { link: cable_name(cable), up }
    }

    /// Takes a cable up, and waits until both directions are found again.
    ///
    /// # Errors
    /// They are not.
    pub fn heal(&mut self, cable: (usize, usize)) -> Result<(), String> {
        self.set_cable(cable, true)?;
        self.bed.wait_links(self.detour.wan.cables.len() * 2)
    }
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let wanted = u32::try_from(lab.times(1_000, 20)).unwrap_or(20);
    let others = u32::try_from(lab.times(15_000, 80)).unwrap_or(80);
    let mut trial = Trial::start(lab, &SERVICES)?;
    let Detour { wan, moved, others: aside, .. } = &trial.detour;
    let mut questions = flows::adds(wan, moved, wanted, 0);
    questions.extend(flows::adds(wan, aside, others, wanted));
    let flows = wanted + others;
    let added_s = trial.add(questions, flows)?;
    lab.say(&format!("table2: {flows} flows are installed after {added_s:.1} s"));
    let mut seen = Measured { flows, wanted, ..Measured::default() };
    let rounds = lab.times(100, 2);
    let began = Instant::now();
    for round in 0..rounds {
        if began.elapsed() > ROUNDS_TIME {
            break;
        }
        one_round(&mut trial, &mut seen)?;
        if round % 10 == 9 {
            lab.say(&format!("table2: round {} of {rounds}", round + 1));
        }
    }
    let paper = paper()?.table2;
    Ok(Findings { claims: claims(&seen, &paper), data: json!(seen), figure: figure(&seen, &paper) })
}

fn one_round(trial: &mut Trial, seen: &mut Measured) -> Result<(), String> {
    let (cable, around) = (trial.detour.cable, trial.detour.around);
    let before = trial.counts()?.rerouted;
    trial.bed.report()?;
    let mut arrivals = Arrivals::begin(&trial.network);
    let began_ns = now_ns();
    trial.network.change(Trial::link(cable, false)).map_err(|error| error.to_string())?;
    let mut times = arrivals.wait()?;
    // A busy machine can pause for longer than the quiet time.
    let began = Instant::now();
    while !has_moved(&mut trial.bed, before, seen)? && began.elapsed() < PATIENCE {
        times = arrivals.wait()?;
    }
    seen.bursts.push(times.since(began_ns));
    seen.moved.push(trial.counts()?.rerouted - before);
    let sights = trial.bed.report()?;
    let down = sights.iter().filter(|sight| sight.key.starts_with("link/") && !sight.up);
    seen.noticed_ms.extend(down.map(|sight| between_ms(began_ns, sight.at_ns)).reduce(f64::max));
    // Back: the cable heals, and the failure of the way around moves the flows.
    trial.heal(cable)?;
    let before = trial.counts()?.rerouted;
    trial.set_cable(around, false)?;
    wait_until("all flows are back", || has_moved(&mut trial.bed, before, seen))?;
    trial.heal(around)
}

/// Whether all flows have moved since the count of before, and every rule is confirmed.
fn has_moved(bed: &mut Bed, before: u64, seen: &Measured) -> Result<bool, String> {
    let counts = counts(bed)?;
    Ok(counts.rerouted >= before + u64::from(seen.wanted) && counts.installed == u64::from(seen.flows))
}

fn counts(bed: &mut Bed) -> Result<Counts, String> {
    let question = String::from_utf8_lossy(&Question::Counts.to_bytes()).into_owned();
    let answer = bed.question(SERVICE, &question)?;
    serde_json::from_str(&answer).map_err(|error| format!("the counts: {error}"))
}

/// The values of all bursts.
fn of(bursts: &[Burst], value: fn(&Burst) -> f64) -> Vec<f64> {
    bursts.iter().map(value).collect()
}

/// `median …, p99 … (n rounds)`.
pub fn latency_text(values: &[f64]) -> String {
    format!("median {:.2} ms, p99 {:.2} ms, {} rounds", median(values), percentile(values, 99), values.len())
}

fn claims(seen: &Measured, paper: &Latency) -> Vec<Claim> {
    let (first, last) = (of(&seen.bursts, |it| it.first_ms), of(&seen.bursts, |it| it.last_ms));
    let is_measured = !first.is_empty();
    let all_moved = seen.moved.iter().all(|moved| *moved == u64::from(seen.wanted));
    let flow_mods = median(&of(&seen.bursts, |it| it.flow_mods as f64));
    let said = |median_ms: f64, p99_ms: f64| format!("median {median_ms} ms, p99 {p99_ms} ms");
    vec![
        Claim::asked(
            "interface down to the first flow mod",
            "median < 2 ms",
            latency_text(&first),
            is_measured && median(&first) < ASKED_FIRST_MS,
        )
        .beside(&said(paper.first_median_ms, paper.first_p99_ms)),
        Claim::asked(
            "interface down to the last flow mod, removals of old rules too",
            "median < 10 ms",
            latency_text(&last),
            is_measured && median(&last) < ASKED_TOTAL_MS,
        )
        .beside(&said(paper.total_median_ms, paper.total_p99_ms)),
        Claim::asked(
            "interface down to the last flow mod, p99",
            "<= 20 ms",
            format!("{:.2} ms", percentile(&last, 99)),
            is_measured && percentile(&last, 99) <= ASKED_P99_MS,
        )
        .beside(&format!("{} ms", paper.total_p99_ms)),
        Claim::asked(
            "flows that moved from six to seven switches",
            &format!("{} in each round", seen.wanted),
            format!("{:?} in {} rounds, of {} flows", spread(&seen.moved), seen.moved.len(), seen.flows),
            all_moved && !seen.moved.is_empty(),
        )
        .beside("1,000 of 16,000"),
        Claim::seen("flow mods of a round", format!("{flow_mods:.0}")),
        Claim::seen("interface down to the app's event about the link", latency_text(&seen.noticed_ms)),
        Claim::seen(
            "interface down to the last barrier's answer: every change is confirmed",
            latency_text(&of(&seen.bursts, |it| it.confirmed_ms)),
        ),
    ]
}

/// The least and the most.
fn spread(values: &[u64]) -> (u64, u64) {
    (values.iter().copied().min().unwrap_or(0), values.iter().copied().max().unwrap_or(0))
}

fn figure(seen: &Measured, paper: &Latency) -> Figure {
    let (first, last) = (of(&seen.bursts, |it| it.first_ms), of(&seen.bursts, |it| it.last_ms));
    let ours = [&first, &last].map(|values| [median(values), percentile(values, 99)]);
    let theirs = [[paper.first_median_ms, paper.first_p99_ms], [paper.total_median_ms, paper.total_p99_ms]];
    Figure {
        title: "Table 2: rerouting 1,000 flows".to_owned(),
        panels: vec![
            panel("Median and 99th percentile", Content::Chart(latency_chart(ours, theirs))),
            panel("Each round", Content::Chart(rounds_chart(&first, &last))),
        ],
        notes: vec![
            format!(
                "ONOS: {}. Here: the same numbers, one node and emulated switches on one machine.",
                paper.place
            ),
            "A time begins before the link goes down, and ends when the flow mod has reached its switch."
                .to_owned(),
        ],
    }
}

/// First and last flow mod, each with median and 99th percentile, beside those of the paper.
pub fn latency_chart(ours: [[f64; 2]; 2], theirs: [[f64; 2]; 2]) -> Chart {
    let names = ["first, median", "first, p99", "last, median", "last, p99"];
    let points = |values: [[f64; 2]; 2]| {
        let all = values.into_iter().flatten().enumerate();
        all.map(|(place, value)| Point::at(place as f64, value.max(0.01))).collect()
    };
    Chart {
        x: axis("flow mod", Scale::Names(names.map(str::to_owned).to_vec())),
        y: axis("milliseconds", Scale::Decades(0.01, 1_000.0)),
        series: vec![
            series("Burnet", Shape::Bars, Style::Ours, points(ours)),
            series("ONOS, its table", Shape::Bars, Style::Paper, points(theirs)),
        ],
        marks: vec![],
    }
}

/// The times of each round, sorted.
pub fn rounds_chart(first: &[f64], last: &[f64]) -> Chart {
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let count = values.len().max(1) as f64;
        values
            .iter()
            .enumerate()
            .map(|(place, value)| Point::at((place + 1) as f64 / count * 100.0, *value))
            .collect::<Vec<_>>()
    };
    let most = last.iter().copied().fold(ASKED_P99_MS, f64::max);
    Chart {
        x: axis("per cent of the rounds", Scale::Linear(0.0, 100.0)),
        y: axis("milliseconds", Scale::from_zero([most])),
        series: vec![
            series("first flow mod", Shape::Line, Style::Other, sorted(first)),
            series("last flow mod", Shape::Line, Style::Ours, sorted(last)),
        ],
        marks: vec![ReferenceLine::Horizontal(ASKED_TOTAL_MS, "asked of the median: 10 ms".to_owned())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(first_ms: f64, last_ms: f64, moved: u64, expected: [bool; 4]) {
        let burst = Burst { first_ms, last_ms, confirmed_ms: last_ms, flow_mods: 4_000 };
        let seen = Measured { bursts: vec![burst], moved: vec![moved], wanted: 1_000, ..Measured::default() };
        let claims = claims(&seen, &paper().unwrap().table2);
        assert_eq!(claims[..4].iter().map(|claim| claim.holds == Some(true)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_bound_is_judged_by_itself() {
        check(1.0, 9.0, 1_000, [true, true, true, true]);
        check(3.0, 15.0, 1_000, [false, false, true, true]);
        check(1.0, 25.0, 999, [true, false, false, false]);
    }

    #[test]
    fn what_was_not_measured_is_not_reached() {
        let claims = claims(&Measured::default(), &paper().unwrap().table2);
        assert!(claims[..4].iter().all(|claim| claim.holds == Some(false)));
    }
}
