//! Figure 4: three TCP flows of two tenants on Mininet, with labels and without.
//!
//! Each run has a network, a node, controllers and agents of its own. A run is described by what arrives at the three receivers in each sample, and by
//! the spine that each flow crosses.

mod rehearsed;

use super::bed::Bed;
use super::paper::{Fourth, paper};
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Panel, Point, ReferenceLine, Scale, Shape, Style};
use crate::plot::{axis, panel, quote, series};
use crate::report::Claim;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

const RUNS: usize = 10;
const PHASE_S: u64 = 60;
/// Four samples: two in the half that counts.
const SHORT_PHASE_S: u64 = 8;
const SAMPLE_S: u64 = 2;
/// At the end of a phase, before the next one, the paths are asked for.
const BEFORE_END_S: u64 = 2;
/// Tenant, sender and receiver, in the order in which flows begin.
const FLOWS: [(&str, &str, &str); 3] = [("red", "A", "B"), ("blue", "E", "F"), ("blue", "C", "D")];
/// What flows get at t3, in Mb/s.
const ASKED_MBPS: [f64; 3] = [8.0, 10.0, 2.0];
const RATE_LIMIT: f64 = 0.05;
/// The sum, as a part of twice a lone flow.
const LABELLED_MIN: f64 = 0.97;
const COLLIDING_MAX: f64 = 0.55;
/// The widest confidence interval of a sum, in Mb/s.
const INTERVAL_MBPS: f64 = 0.1;
/// Student's t for 95 % by the number of runs less one, from 1.
const STUDENT: [f64; 9] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];

/// Where a flow goes, beside the first one that has a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    One,
    Other,
    NoPath,
}

/// The side of each flow that runs.
type Sharing = Vec<Side>;

/// A run.
#[derive(Clone, Debug, Deserialize)]
struct Run {
    phase_s: f64,
    /// The end of each sample, and what arrived in it, in Mb/s.
    #[serde(rename = "samples_s_mbps")]
    samples: Vec<(f64, [f64; 3])>,
    /// At the end of each phase: the spine of each flow. 0: it has no path.
    spines: Vec<[u8; 3]>,
}

impl Run {
    /// The mean rates in the second half of a phase.
    fn means(&self, phase: usize) -> [f64; 3] {
        let (from, to) = ((phase as f64 + 0.5) * self.phase_s, (phase as f64 + 1.0) * self.phase_s);
        let within: Vec<&[f64; 3]> =
            self.samples.iter().filter(|it| it.0 > from && it.0 <= to + 0.5).map(|it| &it.1).collect();
        [0, 1, 2].map(|flow| within.iter().map(|it| it[flow]).sum::<f64>() / within.len().max(1) as f64)
    }

    fn sum(&self, phase: usize) -> f64 {
        self.means(phase).iter().sum()
    }

    /// The sum in the second phase, as a part of twice the lone flow of the first.
    fn part(&self, phase: usize) -> f64 {
        self.sum(phase) / (2.0 * self.sum(0))
    }

    /// Whether the first two flows share a spine in the second phase.
    fn collides(&self) -> bool {
        self.spines.get(1).is_some_and(|it| it[0] == it[1] && it[0] != 0)
    }

    /// Which flows share a spine at the end of a phase, of those that run then. Spines have no names here: both have the same links.
    fn sharing(&self, phase: usize) -> Sharing {
        let spines = self.spines.get(phase).copied().unwrap_or_default();
        sharing(&spines[..=phase])
    }

    fn to_json(&self) -> Value {
        let means = [0, 1, 2].map(|phase| self.means(phase));
        json!({
            "phase_s": self.phase_s,
            "samples_s_mbps": self.samples,
            "spines": self.spines,
            "means_mbps": means,
        })
    }
}

/// The side of each flow, by its spine.
fn sharing(spines: &[u8]) -> Sharing {
    let first = spines.iter().copied().find(|spine| *spine != 0).unwrap_or(0);
    let side = |spine: &u8| match *spine {
        0 => Side::NoPath,
        spine if spine == first => Side::One,
        _ => Side::Other,
    };
    spines.iter().map(side).collect()
}

/// The runs of this process. Figure 4c is made of those of 4a and 4b.
static DONE: Mutex<[Vec<Run>; 2]> = Mutex::new([Vec::new(), Vec::new()]);

fn runs(lab: &Lab, has_labels: bool) -> Result<Vec<Run>, String> {
    let mut done = DONE.lock().map_err(|_| "an earlier figure has failed".to_owned())?;
    let runs = &mut done[usize::from(has_labels)];
    for number in runs.len()..lab.times(RUNS, 1) {
        let choose = if has_labels { "label" } else { "random" };
        let run = one_run(lab, choose)?;
        lab.say(&format!(
            "run {} by {choose}: spines {:?}, {:.2?} Mb/s",
            number + 1,
            run.spines,
            run.means(2)
        ));
        runs.push(run);
    }
    Ok(runs.clone())
}

fn one_run(lab: &Lab, choose: &str) -> Result<Run, String> {
    let phase_s = if lab.short { SHORT_PHASE_S } else { PHASE_S };
    let mut bed = Bed::start(lab, choose)?;
    bed.begin(&json!({ "do": "run", "phase_s": phase_s, "sample_s": SAMPLE_S }))?;
    let mut spines = Vec::new();
    for _ in FLOWS {
        std::thread::sleep(Duration::from_secs(phase_s - BEFORE_END_S));
        spines.push(FLOWS.map(|(tenant, from, to)| spine(&bed.path(tenant, from, to).unwrap_or_default())));
        std::thread::sleep(Duration::from_secs(BEFORE_END_S));
    }
    let answer = bed.answer(Duration::from_secs(phase_s + 60))?;
    let samples = rates(&answer).ok_or(format!("Mininet says {answer}"))?;
    Ok(Run { phase_s: phase_s as f64, samples, spines })
}

/// The spine of a path: s1 or s2.
fn spine(links: &[String]) -> u8 {
    let crosses = |spine: u8| links.iter().any(|link| link.contains(&format!("of:{spine:016x}/")));
    [1, 2].into_iter().find(|spine| crosses(*spine)).unwrap_or(0)
}

/// Rates between two counts.
fn rates(answer: &Value) -> Option<Vec<(f64, [f64; 3])>> {
    let read = |sample: &Value| {
        let bytes: Vec<f64> = sample["bytes"].as_array()?.iter().filter_map(Value::as_f64).collect();
        Some((sample["at_s"].as_f64()?, <[f64; 3]>::try_from(bytes).ok()?))
    };
    let counts: Vec<(f64, [f64; 3])> =
        answer["samples"].as_array()?.iter().map(read).collect::<Option<_>>()?;
    let rate = |pair: &[(f64, [f64; 3])]| {
        let [(before_s, before), (now_s, now)] = pair else { return None };
        let mbps = [0, 1, 2].map(|flow| (now[flow] - before[flow]) * 8.0 / 1e6 / (now_s - before_s));
        Some((*now_s, mbps))
    };
    counts.windows(2).map(rate).collect()
}

/// Half the width of the 95 % confidence interval of a mean.
fn interval(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let variance = values.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let student = STUDENT.get(values.len().saturating_sub(2)).copied().unwrap_or(2.26);
    if values.len() < 2 { 0.0 } else { student * (variance / count).sqrt() }
}

/// Figure 4a.
///
/// # Errors
/// A run fails.
pub fn run_without(lab: &Lab) -> Result<Findings, String> {
    without(&runs(lab, false)?)
}

/// Figure 4a of the data of earlier runs.
///
/// # Errors
/// The data is not that of this experiment.
pub fn without_again(data: &Value) -> Result<Findings, String> {
    without(&read(data)?)
}

fn read(data: &Value) -> Result<Vec<Run>, String> {
    let runs = serde_json::from_value(data.clone());
    runs.map_err(|error| format!("the report does not have what fig4 keeps: {error}"))
}

fn without(runs: &[Run]) -> Result<Findings, String> {
    let paper = paper()?.fig4;
    let colliding: Vec<&Run> = runs.iter().filter(|run| run.collides()).collect();
    let mut claims = vec![
        Claim::seen(
            "runs in which A to B and E to F share a spine",
            format!("{} of {}", colliding.len(), runs.len()),
        )
        .beside("probability 0.5"),
    ];
    let parts: Vec<f64> = colliding.iter().map(|run| run.part(1)).collect();
    let worst = parts.iter().copied().fold(0.0, f64::max);
    let text = if parts.is_empty() { "no run collided".to_owned() } else { format!("at most {worst:.2}") };
    let what = "t2, where paths collide: the sum as a part of twice a lone flow";
    claims.push(match parts.is_empty() {
        true => Claim::seen(what, text),
        false => Claim::asked(what, &format!("at most {COLLIDING_MAX}"), text, worst <= COLLIDING_MAX)
            .beside("10 of 20 Mb/s"),
    });
    for phase in 0..FLOWS.len() {
        for (sharing, runs) in groups(runs, phase) {
            claims.push(interval_claim(phase, &in_words(&sharing), &runs));
        }
    }
    claims.extend(rehearsed::claims_without(&rehearsed::without_labels()?));
    let last = groups(runs, FLOWS.len() - 1);
    let panels = last.iter().map(|(sharing, runs)| rates_panel(&format!("t3: {}", in_words(sharing)), runs));
    Ok(findings("Figure 4a: without labels", claims, runs, panels.collect(), &paper))
}

/// Runs whose flows share spines in the same way. A random choice changes the sum, so only these have one mean.
fn groups(runs: &[Run], phase: usize) -> BTreeMap<Sharing, Vec<Run>> {
    let mut groups: BTreeMap<Sharing, Vec<Run>> = BTreeMap::new();
    runs.iter().for_each(|run| groups.entry(run.sharing(phase)).or_default().push(run.clone()));
    groups
}

fn in_words(sharing: &[Side]) -> String {
    let of = |side: Side| -> Vec<String> {
        let flows = sharing.iter().zip(FLOWS).filter(|(it, _)| **it == side);
        flows.map(|(_, (_, from, to))| format!("{from} to {to}")).collect()
    };
    let together = |side: Side| match of(side).as_slice() {
        [] => None,
        [alone] => Some(format!("{alone} alone")),
        [flows @ .., last] => Some(format!("{} and {last} share a spine", flows.join(", "))),
    };
    let lost = Some(of(Side::NoPath)).filter(|it| !it.is_empty());
    let lost = lost.map(|it| format!("{} without a path", it.join(", ")));
    [together(Side::One), together(Side::Other), lost].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Figure 4b.
///
/// # Errors
/// A run fails.
pub fn run_with(lab: &Lab) -> Result<Findings, String> {
    with(&runs(lab, true)?)
}

/// Figure 4b of the data of earlier runs.
///
/// # Errors
/// The data is not that of this experiment.
pub fn with_again(data: &Value) -> Result<Findings, String> {
    with(&read(data)?)
}

fn with(runs: &[Run]) -> Result<Findings, String> {
    let paper = paper()?.fig4;
    let mut claims = Vec::new();
    for phase in [1, 2] {
        let good = runs.iter().filter(|run| run.part(phase) >= LABELLED_MIN).count();
        let least = runs.iter().map(|run| run.part(phase)).fold(f64::INFINITY, f64::min);
        let what = format!("t{}: the sum as a part of twice a lone flow", phase + 1);
        let asked = format!("{LABELLED_MIN} in all runs");
        let text = format!("at least {least:.3}, {good} of {} runs", runs.len());
        claims.push(Claim::asked(&what, &asked, text, good == runs.len()).beside("about 20 of 20 Mb/s"));
    }
    for (flow, asked) in ASKED_MBPS.iter().enumerate() {
        let (_, from, to) = FLOWS[flow];
        let values: Vec<f64> = runs.iter().map(|run| run.means(2)[flow]).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let holds = (mean - asked).abs() <= RATE_LIMIT * asked;
        let asked_text = format!("{asked} Mb/s, within 5 %");
        claims.push(Claim::asked(
            &format!("t3, {from} to {to}"),
            &asked_text,
            format!("{mean:.2} Mb/s"),
            holds,
        ));
    }
    if runs.len() > 1 {
        claims.extend((0..FLOWS.len()).map(|phase| interval_claim(phase, "with labels", runs)));
    }
    claims.extend(rehearsed::claims_with(&rehearsed::with_labels()?));
    let panels = vec![rates_panel("With labels", runs)];
    Ok(findings("Figure 4b: with labels", claims, runs, panels, &paper))
}

/// Figure 4c.
///
/// # Errors
/// A run fails.
pub fn run_sums(lab: &Lab) -> Result<Findings, String> {
    sums_of(runs(lab, false)?, runs(lab, true)?)
}

fn sums_of(without: Vec<Run>, with: Vec<Run>) -> Result<Findings, String> {
    let paper = paper()?.fig4;
    let colliding: Vec<Run> = without.iter().filter(|run| run.collides()).cloned().collect();
    let sum =
        |runs: &[Run], phase| runs.iter().map(|run| run.sum(phase)).sum::<f64>() / runs.len().max(1) as f64;
    let mut claims =
        vec![Claim::seen("t2, with labels", format!("{:.2} Mb/s", sum(&with, 1))).beside("about 20 Mb/s")];
    let mut drawn = vec![sums("with labels", Style::Ours, &with)];
    if !colliding.is_empty() {
        let text = format!("{:.2} Mb/s", sum(&colliding, 1));
        claims.push(Claim::seen("t2, without labels, where paths collide", text).beside("10 Mb/s"));
        drawn.push(sums("without labels, colliding", Style::Baseline, &colliding));
    }
    let in_time = rehearsed::with_labels()?.sum(1);
    claims.push(
        Claim::seen("rehearsed, t2, with labels", format!("{in_time:.2} Mb/s")).beside("about 20 Mb/s"),
    );
    let chart = Chart {
        x: axis("time, s", Scale::from_zero([with.first().map_or(1.0, |run| run.phase_s) * 3.0])),
        y: axis("sum, Mb/s", Scale::Linear(0.0, 22.0)),
        series: drawn,
        marks: vec![ReferenceLine::Horizontal(20.0, "capacity".to_owned())],
    };
    let all: Vec<Run> = without.into_iter().chain(with).collect();
    Ok(findings(
        "Figure 4c: the sum of all flows",
        claims,
        &all,
        vec![panel("Sum", Content::Chart(chart))],
        &paper,
    ))
}

/// The sum of all flows in a phase, with its confidence interval.
fn interval_claim(phase: usize, which: &str, runs: &[Run]) -> Claim {
    let sums: Vec<f64> = runs.iter().map(|run| run.sum(phase)).collect();
    let mean = sums.iter().sum::<f64>() / sums.len().max(1) as f64;
    let what = format!("t{}, {which}: the sum", phase + 1);
    if sums.len() < 2 {
        return Claim::seen(&what, format!("{mean:.2} Mb/s; one run has no interval"));
    }
    let width = interval(&sums);
    let text = format!("{mean:.2} ± {width:.3} Mb/s, {} runs", sums.len());
    Claim::asked(&what, "interval below 0.1 Mb/s", text, width < INTERVAL_MBPS)
        .beside("always smaller than 0.1 Mb/s")
}

/// The mean over runs of something of each sample.
fn mean_points(runs: &[Run], of: impl Fn(&[f64; 3]) -> f64) -> Vec<Point> {
    let shortest = runs.iter().map(|run| run.samples.len()).min().unwrap_or(0);
    let point = |at: usize| {
        let samples: Vec<&(f64, [f64; 3])> = runs.iter().filter_map(|run| run.samples.get(at)).collect();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
        Point::at(
            mean(samples.iter().map(|it| it.0).collect()),
            mean(samples.iter().map(|it| of(&it.1)).collect()),
        )
    };
    (0..shortest).map(point).collect()
}

fn sums(name: &str, style: Style, runs: &[Run]) -> crate::plot::Series {
    series(name, Shape::Line, style, mean_points(runs, |rates| rates.iter().sum()))
}

fn rates_panel(title: &str, runs: &[Run]) -> Panel {
    let styles = [Style::Ours, Style::Other, Style::Baseline];
    let drawn = FLOWS.iter().zip(styles).enumerate().map(|(flow, ((_, from, to), style))| {
        series(&format!("{from} to {to}"), Shape::Line, style, mean_points(runs, |rates| rates[flow]))
    });
    let chart = Chart {
        x: axis("time, s", Scale::from_zero([runs.first().map_or(1.0, |run| run.phase_s) * 3.0])),
        y: axis("rate, Mb/s", Scale::Linear(0.0, 12.0)),
        series: drawn.collect(),
        marks: Vec::new(),
    };
    let runs = if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
    panel(format!("{title}, {runs}"), Content::Chart(chart))
}

fn findings(
    title: &str,
    claims: Vec<Claim>,
    runs: &[Run],
    mut panels: Vec<Panel>,
    paper: &Fourth,
) -> Findings {
    panels.push(quote("The paper", &paper.place, &paper.says));
    let notes = [
        "Mininet, Open vSwitch on its user-space datapath, links of 10 Mb/s, slices by VLAN, iperf by TCP. Rates are of whole frames at the receivers.",
        "Rehearsed: the same flows in the fluid network, in virtual time. There, no TCP and no queue keeps a rate below its share.",
        "Both ways, agents meter and shape. They leave 2 % of a NIC free. Means are of the second half of each phase.",
        "Slip: section V.A says that the third flow goes from A to B. Figure 2 and the results need C to D.",
        "Slip: random choices give 10 or 20 Mb/s in each run, so ten runs of figure 4a cannot have intervals below 0.1 Mb/s. Runs are grouped by which flows share a spine in each phase.",
    ];
    let data = runs.iter().map(Run::to_json).collect();
    let notes = notes.map(str::to_owned).to_vec();
    Findings { claims, data, figure: Figure { title: title.to_owned(), panels, notes } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_rates_and_links_a_spine() {
        let counts = json!({ "samples": [
            { "at_s": 0.0, "bytes": [0, 0, 0] },
            { "at_s": 2.0, "bytes": [2_500_000, 0, 250_000] },
        ]});
        assert_eq!(rates(&counts), Some(vec![(2.0, [10.0, 0.0, 1.0])]));
        assert_eq!(rates(&json!({ "samples": [{ "at_s": 0.0 }] })), None);
        let links = |spine: u8| vec![format!("of:0000000000000003/1-of:{spine:016x}/1")];
        assert_eq!([spine(&links(1)), spine(&links(2)), spine(&[])], [1, 2, 0]);
    }

    #[test]
    fn a_run_is_judged_by_the_second_halves_of_its_phases() {
        let samples: Vec<(f64, [f64; 3])> = (1..=6)
            .map(|at| {
                (
                    f64::from(at),
                    if at <= 2 { [9.0 + f64::from(at) / 2.0, 0.0, 0.0] } else { [8.0, 10.0, 2.0] },
                )
            })
            .collect();
        let run = Run { phase_s: 2.0, samples, spines: vec![[1, 0, 0], [1, 1, 0], [1, 2, 1]] };
        assert_eq!((run.means(0), run.sum(1), run.part(2)), ([10.0, 0.0, 0.0], 20.0, 1.0));
        assert!(run.collides());
    }

    fn run(spines: [[u8; 3]; 3]) -> Run {
        let samples = (1..=6).map(|at| (f64::from(at), [4.0, 5.0, 1.0])).collect();
        Run { phase_s: 2.0, samples, spines: spines.into() }
    }

    #[test]
    fn runs_are_grouped_by_the_flows_that_share_a_spine() {
        let check = |spines: [u8; 3], phase, expected: &str| {
            assert_eq!(in_words(&run([spines; 3]).sharing(phase)), expected, "{spines:?}, {phase}");
        };
        check([2, 0, 0], 0, "A to B alone");
        check([2, 2, 0], 1, "A to B and E to F share a spine");
        check([1, 2, 0], 1, "A to B alone; E to F alone");
        check([1, 1, 2], 2, "A to B and E to F share a spine; C to D alone");
        check([2, 2, 1], 2, "A to B and E to F share a spine; C to D alone");
        check([1, 2, 1], 2, "A to B and C to D share a spine; E to F alone");
        check([2, 1, 1], 2, "A to B alone; E to F and C to D share a spine");
        check([2, 2, 2], 2, "A to B, E to F and C to D share a spine");
        check([0, 1, 2], 2, "E to F alone; C to D alone; A to B without a path");
        let runs = [[1, 1, 2], [2, 2, 2], [2, 2, 1]].map(|spines| run([[1, 0, 0], [1, 1, 0], spines]));
        let sizes = |phase| groups(&runs, phase).values().map(Vec::len).collect::<Vec<_>>();
        assert_eq!([0, 1, 2].map(sizes), [vec![3], vec![3], vec![1, 2]]);
    }

    #[test]
    fn findings_are_the_same_when_they_are_made_again() {
        let runs = [[1, 1, 2], [2, 2, 2], [2, 2, 1]].map(|spines| run([[1, 0, 0], [1, 1, 0], spines]));
        for (first, again) in [(without(&runs), without_again as fn(&Value) -> _), (with(&runs), with_again)]
        {
            let first = first.unwrap();
            let second = again(&first.data).unwrap();
            assert_eq!((&first.claims, &first.data), (&second.claims, &second.data));
            assert_eq!(first.figure.to_svg(), second.figure.to_svg());
        }
        assert!(read(&json!([{ "spines": [] }])).is_err_and(|why| why.contains("what fig4 keeps")));
    }

    #[test]
    fn the_sums_of_both_are_beside_each_other_where_paths_collide() {
        let of =
            |spines: [[u8; 3]; 2]| spines.map(|spines| run([[1, 0, 0], [1, spines[1], 0], spines])).to_vec();
        let found = sums_of(of([[1, 1, 2], [1, 2, 2]]), of([[1, 2, 1], [1, 2, 1]])).unwrap();
        let said: Vec<(&str, &str)> =
            found.claims.iter().map(|claim| (claim.what.as_str(), claim.measured.as_str())).collect();
        assert!(said.contains(&("t2, with labels", "10.00 Mb/s")), "{said:?}");
        assert!(said.contains(&("t2, without labels, where paths collide", "10.00 Mb/s")), "{said:?}");
        assert_eq!(found.data.as_array().map(Vec::len), Some(4));
        let none = sums_of(of([[1, 2, 2], [1, 2, 1]]), of([[1, 2, 1], [1, 2, 1]])).unwrap();
        assert!(none.claims.iter().all(|claim| !claim.what.contains("collide")), "no run collided");
    }

    #[test]
    fn an_interval_is_that_of_student() {
        assert_eq!(interval(&[1.0]), 0.0);
        assert!((interval(&[1.0, 2.0]) - 6.355).abs() < 0.001);
        assert!((interval(&[9.9, 10.0, 10.1]) - 0.248).abs() < 0.001);
    }
}
