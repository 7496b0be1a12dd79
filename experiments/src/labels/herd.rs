//! Herd: many tenants learn at the same time that a link is free. Do they all move there, and back again?
//!
//! Two leaves and four spines. A flow of 10 Gb/s fills one spine. Eight tenants begin a flow of 4 Gb/s each at the same moment, and share the other
//! three spines. Then the large flow ends. Labels are damped, or each change is told to all at once.

use super::draws::Draws;
use super::paper::paper;
use super::setting::G;
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{
    Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, quote, series,
};
use crate::report::Claim;
use crate::spread::spread_text;
use rehearsal::{
    Choose, Cloud, Fabric, Meter, Pair, Plan, STAY_MS, Sends, ServerNo, SliceNo, Telling, Vnic, VnicNo,
};
use serde_json::{Value, json};

/// Tenants with a small flow, and the rate of their VNICs.
const TENANTS: usize = 8;
const SMALL_GBPS: u64 = 4;
const LARGE_GBPS: u64 = 10;
const SPINES: usize = 4;
const REPORT_US: u64 = 300;
/// The small flows begin, and the large one ends.
const BEGIN_US: u64 = 1_000_000;
const PHASE_US: u64 = 10_000_000;
const RUNS: usize = 50;
/// With a hundred thousand moves in each, a few are enough.
const RESTLESS_RUNS: usize = 5;
/// The most moves of a flow for one cause.
const MOVES_MAX: usize = 2;
/// The figure ends here: without damping and staying, there are hundreds of times as many moves.
const MOVES_SHOWN: f64 = 10.0;
/// Moves are counted in steps of this for the figure.
const BIN_US: u64 = 250_000;

/// How labels are told, and how flows move.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    telling: Telling,
    stay_ms: u64,
    /// How many runs there are.
    runs: usize,
}

/// The first is what Burnet does.
const KINDS: [Kind; 4] = [
    Kind { name: "damped", telling: Telling::Damped, stay_ms: STAY_MS, runs: RUNS },
    Kind { name: "damped, flows do not stay", telling: Telling::Damped, stay_ms: 0, runs: RUNS },
    Kind { name: "not damped", telling: Telling::AtOnce, stay_ms: STAY_MS, runs: RUNS },
    Kind { name: "not damped, flows do not stay", telling: Telling::AtOnce, stay_ms: 0, runs: RESTLESS_RUNS },
];

/// What happened in one phase.
#[derive(Clone, Copy, Debug, Default)]
struct Phase {
    moves: usize,
    most_of_a_flow: usize,
    /// The last move, after the begin of the phase.
    last_ms: f64,
    content: usize,
}

/// One run.
#[derive(Clone, Debug)]
struct Run {
    begin: Phase,
    end: Phase,
    most_of_a_flow: usize,
    at_us: Vec<u64>,
}

/// Runs it.
///
/// # Errors
/// A rehearsal ends with an error.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let mut all = Vec::new();
    for kind in KINDS {
        let seeds = lab.times(kind.runs, 2) as u64;
        lab.say(&format!("{seeds} runs, {}", kind.name));
        let runs: Vec<Run> = (1..=seeds).map(|seed| rehearse(kind, seed)).collect::<Result<_, _>>()?;
        all.push((kind.name, runs));
    }
    let data = json!(
        all.iter()
            .map(
                |(name, runs)| json!({ "labels": name, "runs": runs.iter().map(to_json).collect::<Vec<_>>() })
            )
            .collect::<Vec<_>>()
    );
    Ok(Findings { claims: claims(&all), data, figure: figure(&all)? })
}

fn pair(slice: usize) -> Pair {
    // Tenants are few.
    Pair { slice: SliceNo(slice as u32), source: VnicNo(0), destination: VnicNo(1) }
}

fn rehearse(kind: Kind, seed: u64) -> Result<Run, String> {
    let mut draws = Draws::new(seed);
    let fabric = Fabric::leaf_spine(2, SPINES, TENANTS + 1, LARGE_GBPS * G);
    let plan = |tenant: usize, draws: &mut Draws| {
        let rate_bps = if tenant == TENANTS { LARGE_GBPS } else { SMALL_GBPS } * G;
        let servers = [ServerNo(tenant), ServerNo(TENANTS + 1 + tenant)];
        Plan {
            vnics: servers.map(|server| Vnic { server, rate_bps }).to_vec(),
            choose: Choose::Label,
            stay_ms: kind.stay_ms,
            notice_us: 300 + draws.below(400),
            is_metered: true,
            step: None,
            links: None,
        }
    };
    let plans = (0..=TENANTS).map(|tenant| plan(tenant, &mut draws)).collect();
    let mut cloud =
        Cloud::new(fabric, kind.telling, Meter::After(REPORT_US), plans).map_err(|why| why.to_string())?;
    cloud.begin(pair(TENANTS), Sends::All, draws.number());
    cloud.run_until(BEGIN_US)?;
    (0..TENANTS).for_each(|tenant| cloud.begin(pair(tenant), Sends::All, draws.number()));
    cloud.run_until(BEGIN_US + PHASE_US)?;
    let begin = phase(&cloud, BEGIN_US);
    cloud.end(pair(TENANTS));
    cloud.run_until(BEGIN_US + 2 * PHASE_US)?;
    let end = phase(&cloud, BEGIN_US + PHASE_US);
    let most = (0..TENANTS).map(|tenant| moves(&cloud, tenant, 0)).max();
    Ok(Run {
        begin,
        end,
        most_of_a_flow: most.unwrap_or(0),
        at_us: cloud.moves().iter().map(|it| it.at_us).collect(),
    })
}

fn moves(cloud: &Cloud, tenant: usize, since_us: u64) -> usize {
    cloud.moves().iter().filter(|it| it.at_us >= since_us && it.pair == pair(tenant)).count()
}

fn phase(cloud: &Cloud, since_us: u64) -> Phase {
    let counts: Vec<usize> = (0..TENANTS).map(|tenant| moves(cloud, tenant, since_us)).collect();
    let last_us = cloud.moves().iter().map(|it| it.at_us).filter(|at_us| *at_us >= since_us).max();
    let is_content = |it: &&rehearsal::Got| it.pair != pair(TENANTS) && it.got_bps * 10 >= it.nominal_bps * 9;
    Phase {
        moves: counts.iter().sum(),
        most_of_a_flow: counts.into_iter().max().unwrap_or(0),
        last_ms: last_us.map_or(0.0, |at_us| (at_us - since_us) as f64 / 1e3),
        content: cloud.rates().iter().filter(is_content).count(),
    }
}

fn to_json(run: &Run) -> Value {
    let phase = |it: &Phase| json!({ "moves": it.moves, "most_of_a_flow": it.most_of_a_flow, "last_ms": it.last_ms, "content": it.content });
    json!({ "begin": phase(&run.begin), "large_flow_ends": phase(&run.end), "most_of_a_flow": run.most_of_a_flow })
}

fn values(runs: &[Run], of: impl Fn(&Run) -> f64) -> Vec<f64> {
    runs.iter().map(of).collect()
}

/// Two causes in one run. What is asked is asked of each.
const TOGETHER: &str = "both together";

/// The most moves of a flow in some part of a run.
type MostMoves = fn(&Run) -> usize;

/// When moves are counted.
const WHEN: [(&str, MostMoves); 3] = [
    ("all begin", |run| run.begin.most_of_a_flow),
    ("the large flow ends", |run| run.end.most_of_a_flow),
    (TOGETHER, |run| run.most_of_a_flow),
];

fn claims(all: &[(&str, Vec<Run>)]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (name, runs) in all {
        let most = |of: MostMoves| runs.iter().map(of).max().unwrap_or(0);
        let more = |of: MostMoves| runs.iter().filter(|run| of(run) > MOVES_MAX).count();
        for (when, of) in WHEN {
            let what = format!("{name}, {when}: the most moves of a flow");
            let text = format!("{}; more than {MOVES_MAX} in {} of {} runs", most(of), more(of), runs.len());
            claims.push(match *name {
                "damped" if when != TOGETHER => {
                    Claim::asked(&what, &format!("at most {MOVES_MAX}"), text, more(of) == 0)
                }
                _ => Claim::seen(&what, text),
            });
        }
        for (when, of) in
            [("all begin", (|run| run.begin) as fn(&Run) -> Phase), ("the large flow ends", |run| run.end)]
        {
            let moves = spread_text(&values(runs, |run| of(run).moves as f64), "moves", 0);
            claims.push(Claim::seen(&format!("{name}, {when}: moves in ten seconds"), moves));
            let last = spread_text(&values(runs, |run| of(run).last_ms), "ms", 0);
            claims.push(Claim::seen(&format!("{name}, {when}: the last move after"), last));
            let content =
                spread_text(&values(runs, |run| of(run).content as f64), &format!("of {TENANTS}"), 0);
            claims.push(Claim::seen(
                &format!("{name}, {when}: flows with 0.9 of their rate at the end"),
                content,
            ));
        }
    }
    claims
}

fn figure(all: &[(&str, Vec<Run>)]) -> Result<Figure, String> {
    let drawn = |((name, runs), style): (&(&str, Vec<Run>), Style)| {
        let bins = (BEGIN_US + 2 * PHASE_US) / BIN_US;
        let sum =
            |bin: u64| runs.iter().flat_map(|run| &run.at_us).filter(|at_us| *at_us / BIN_US == bin).count();
        let point =
            |bin: u64| Point::at((bin * BIN_US) as f64 / 1e6, sum(bin) as f64 / runs.len().max(1) as f64);
        series(name, Shape::Line, style, (0..bins).map(point).collect())
    };
    let all_series: Vec<_> =
        all.iter().zip([Style::Ours, Style::Other, Style::Reference, Style::Baseline]).map(drawn).collect();
    let chart = Chart {
        x: axis("time, s", Scale::from_zero([(BEGIN_US + 2 * PHASE_US) as f64 / 1e6])),
        y: axis("moves in 250 ms, mean of the runs", Scale::Linear(0.0, MOVES_SHOWN)),
        series: all_series.clone(),
        marks: vec![
            ReferenceLine::Vertical(BEGIN_US as f64 / 1e6, "all begin".to_owned()),
            ReferenceLine::Vertical((BEGIN_US + PHASE_US) as f64 / 1e6, "the large flow ends".to_owned()),
        ],
    };
    let beyond = paper()?.beyond;
    Ok(Figure {
        title: "Herd: tenants that learn of the same free link".to_owned(),
        panels: vec![panel("Moves", Content::Chart(chart)), quote("The paper", &beyond.place, &beyond.says)],
        notes: vec![
            format!(
                "Not in the paper. {TENANTS} tenants with a flow of {SMALL_GBPS} Gb/s, {SPINES} spines of {LARGE_GBPS} Gb/s, one of them full at first."
            ),
            "Notices take 0.3 to 0.7 ms, rules 1 ms. A flow moves for a gain of 20 % in what it gets, and then stays for one to two seconds."
                .to_owned(),
            format!("More than {MOVES_SHOWN} moves are drawn as {MOVES_SHOWN}."),
        ],
    })
}
