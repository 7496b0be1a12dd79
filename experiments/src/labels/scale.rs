//! Scale: a fat tree of 8, 16 tenants, 80 % load. How many flows get what their VNICs promise?
//!
//! All flows begin in random order, and the tenants settle. Then pairs of flows exchange their destinations at random times, so that the load stays.

use super::draws::Draws;
use super::load::{LINK_GBPS, Load, SERVER_GBPS, TENANTS};
use super::paper::paper;
use super::scheduler::{Wish, schedule};
use super::setting::G;
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{
    Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, quote, series,
};
use crate::report::Claim;
use crate::spread::{median, spread_point, spread_text};
use rehearsal::{Choose, Cloud, Fabric, Got, Meter, Pair, Sends, Telling, fair_rates};
use serde_json::{Value, json};

/// The ports of a switch of the fat tree.
const PORTS: usize = 8;
/// A meter reports a flow after this time: an interval at 10 Gb/s, and the way of the report.
const REPORT_US: u64 = 300;
/// The mean time between two new flows.
const GAP_US: f64 = 5_000.0;
/// How long the tenants settle.
const SETTLE_US: u64 = 10_000_000;
/// The mean time between two exchanges, and how long there are exchanges.
const EXCHANGE_US: f64 = 50_000.0;
const CHURN_S: usize = 20;
/// A flow is content with this part of its nominal rate.
const CONTENT: f64 = 0.9;
/// The percentage of the flows that must be content.
const ASKED_PERCENT: f64 = 95.0;
const SEEDS: usize = 5;

/// How paths are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Labels,
    Random,
    Hash,
    Scheduler,
}

const WAYS: [(Way, &str); 4] = [
    (Way::Labels, "labels"),
    (Way::Random, "random"),
    (Way::Hash, "hash"),
    (Way::Scheduler, "one scheduler"),
];

/// What a run gave.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// The percentage of content flows when all have settled.
    settled_percent: f64,
    /// What flows get of their nominal rates in all, each at most its nominal rate, in percent.
    carried_percent: f64,
    /// The mean percentage while flows are exchanged, and the least sample.
    churn_percent: f64,
    churn_least_percent: f64,
    flows: usize,
    moves: usize,
    most_moves: u32,
    notices: u64,
}

/// Runs it.
///
/// # Errors
/// A rehearsal ends with an error.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let fabric = Fabric::fat_tree(PORTS, LINK_GBPS * G);
    let (seeds, churn_s) = (lab.times(SEEDS, 1), lab.times(CHURN_S, 1));
    let mut outcomes: Vec<(&str, Vec<Outcome>)> = WAYS.iter().map(|(_, name)| (*name, Vec::new())).collect();
    for seed in 1..=seeds as u64 {
        for ((way, name), (_, all)) in WAYS.iter().zip(&mut outcomes) {
            let outcome = rehearse(&fabric, *way, seed, churn_s)?;
            lab.say(&format!(
                "seed {seed}, {name}: {:.1} % of {} flows content",
                outcome.settled_percent, outcome.flows
            ));
            all.push(outcome);
        }
    }
    let data = json!(
        outcomes
            .iter()
            .map(|(name, all)| json!({ "way": name, "runs": all.iter().map(to_json).collect::<Vec<_>>() }))
            .collect::<Vec<_>>()
    );
    Ok(Findings { claims: claims(&outcomes), data, figure: figure(&outcomes)? })
}

fn rehearse(fabric: &Fabric, way: Way, seed: u64, churn_s: usize) -> Result<Outcome, String> {
    let mut load = Load::new(fabric, seed);
    if way == Way::Scheduler {
        return Ok(scheduled(fabric, &load, seed));
    }
    let choose = if way == Way::Labels { Choose::Label } else { Choose::Number };
    let mut cloud = Cloud::new(fabric.clone(), Telling::Damped, Meter::After(REPORT_US), load.plans(choose))
        .map_err(|why| why.to_string())?;
    // Its own numbers, so that each way has the same flows at the same times.
    let (mut times, mut numbers) = (Draws::new(seed + 1_000), Draws::new(seed + 2_000));
    let mut number = |pair: Pair| if way == Way::Hash { hash(pair) } else { numbers.number() };
    let mut order = load.pairs.clone();
    times.shuffle(&mut order);
    let mut at_us = 0.0;
    for pair in order {
        at_us += times.exponential(GAP_US);
        cloud.run_until(at_us as u64)?;
        cloud.begin(pair, Sends::All, number(pair));
    }
    let settled_us = cloud.now_us() + SETTLE_US;
    cloud.run_until(settled_us)?;
    let settled = cloud.rates();
    let mut samples = Vec::new();
    let mut next_us = settled_us as f64 + times.exponential(EXCHANGE_US);
    for second in 1..=churn_s as u64 {
        let end_us = settled_us + second * 1_000_000;
        while next_us < end_us as f64 {
            cloud.run_until(next_us as u64)?;
            if let Some((old, new)) = load.exchange(&mut times) {
                old.into_iter().for_each(|pair| cloud.end(pair));
                new.into_iter().for_each(|pair| cloud.begin(pair, Sends::All, number(pair)));
            }
            next_us += times.exponential(EXCHANGE_US);
        }
        cloud.run_until(end_us)?;
        samples.push(content_percent(&cloud.rates()));
    }
    Ok(outcome(&settled, &samples, &cloud))
}

fn outcome(settled: &[Got], samples: &[f64], cloud: &Cloud) -> Outcome {
    Outcome {
        settled_percent: content_percent(settled),
        carried_percent: carried_percent(settled),
        churn_percent: samples.iter().sum::<f64>() / samples.len().max(1) as f64,
        churn_least_percent: samples.iter().copied().fold(100.0, f64::min),
        flows: settled.len(),
        moves: cloud.moves().len(),
        most_moves: cloud.moves_by_flow().map(|(_, moves)| moves).max().unwrap_or(0),
        notices: cloud.notices(),
    }
}

fn scheduled(fabric: &Fabric, load: &Load, seed: u64) -> Outcome {
    let wish = |pair: &Pair| {
        let paths =
            fabric.paths(load.server(pair.slice, pair.source), load.server(pair.slice, pair.destination));
        let paths =
            paths.into_iter().map(|path| path.into_iter().map(|link| link.index()).collect()).collect();
        Wish { rate_bps: load.gbps(*pair) * G, paths }
    };
    let wishes: Vec<Wish> = load.pairs.iter().map(wish).collect();
    let chosen = schedule(LINK_GBPS * G, &wishes, seed);
    let placed = load.pairs.iter().zip(chosen).map(|(pair, index)| {
        let mut paths =
            fabric.paths(load.server(pair.slice, pair.source), load.server(pair.slice, pair.destination));
        (*pair, load.gbps(*pair) * G, paths.swap_remove(index))
    });
    let flows: Vec<_> = placed.collect();
    let capacities: Vec<u64> = fabric.links().map(|(_, link)| link.capacity_bps).collect();
    let rates = fair_rates(&capacities, &flows);
    let got = |((pair, nominal_bps, _), got_bps): (&(Pair, u64, _), u64)| Got {
        pair: *pair,
        nominal_bps: *nominal_bps,
        got_bps,
    };
    let settled: Vec<Got> = flows.iter().zip(rates).map(got).collect();
    let percent = content_percent(&settled);
    Outcome {
        settled_percent: percent,
        carried_percent: carried_percent(&settled),
        churn_percent: percent,
        churn_least_percent: percent,
        flows: settled.len(),
        moves: 0,
        most_moves: 0,
        notices: 0,
    }
}

/// A number that depends on both ends alone, as a switch's hash of addresses does.
fn hash(pair: Pair) -> u64 {
    let ends = u64::from(pair.slice.0) << 40 | u64::from(pair.source.0) << 20 | u64::from(pair.destination.0);
    Draws::new(ends).number()
}

fn content_percent(flows: &[Got]) -> f64 {
    let is_content = |flow: &&Got| flow.got_bps as f64 >= CONTENT * flow.nominal_bps as f64;
    100.0 * flows.iter().filter(is_content).count() as f64 / flows.len().max(1) as f64
}

fn carried_percent(flows: &[Got]) -> f64 {
    let nominal: u64 = flows.iter().map(|flow| flow.nominal_bps).sum();
    let carried: u64 = flows.iter().map(|flow| flow.got_bps.min(flow.nominal_bps)).sum();
    100.0 * carried as f64 / nominal.max(1) as f64
}

fn to_json(outcome: &Outcome) -> Value {
    let Outcome { settled_percent, carried_percent, churn_percent, churn_least_percent, .. } = outcome;
    json!({
        "settled_percent": settled_percent, "carried_percent": carried_percent, "churn_percent": churn_percent,
        "churn_least_percent": churn_least_percent, "flows": outcome.flows, "moves": outcome.moves,
        "most_moves_of_a_flow": outcome.most_moves, "notices": outcome.notices,
    })
}

fn values(all: &[Outcome], of: fn(&Outcome) -> f64) -> Vec<f64> {
    all.iter().map(of).collect()
}

fn claims(outcomes: &[(&str, Vec<Outcome>)]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (name, all) in outcomes {
        let settled = values(all, |it| it.settled_percent);
        let what = format!("{name}: flows with at least 0.9 of their nominal rate");
        let text = spread_text(&settled, "%", 1);
        claims.push(match *name {
            "labels" => {
                let least = settled.iter().copied().fold(100.0, f64::min);
                Claim::asked(&what, "at least 95 %", text, least >= ASKED_PERCENT)
            }
            _ => Claim::seen(&what, text),
        });
        let text = spread_text(&values(all, |it| it.carried_percent), "%", 1);
        claims.push(Claim::seen(&format!("{name}: carried of all nominal rates"), text));
        if *name != "one scheduler" {
            let text = format!(
                "{}; least sample {:.1} %",
                spread_text(&values(all, |it| it.churn_percent), "%", 1),
                values(all, |it| it.churn_least_percent).into_iter().fold(100.0, f64::min)
            );
            claims.push(Claim::seen(
                &format!("{name}: the same while flows are exchanged, mean of a run"),
                text,
            ));
        }
    }
    if let Some((_, all)) = outcomes.iter().find(|(name, _)| *name == "labels") {
        let (moves, most) = (values(all, |it| it.moves as f64), values(all, |it| f64::from(it.most_moves)));
        let text = format!(
            "{:.0} in a run; at most {:.0} of one flow",
            median(&moves),
            most.into_iter().fold(0.0, f64::max)
        );
        claims.push(Claim::seen("labels: moves", text));
        claims.push(Claim::seen(
            "labels: notices",
            format!("{:.0} in a run", median(&values(all, |it| it.notices as f64))),
        ));
    }
    claims
}

fn figure(outcomes: &[(&str, Vec<Outcome>)]) -> Result<Figure, String> {
    let names = || Scale::Names(outcomes.iter().map(|(name, _)| (*name).to_owned()).collect());
    let drawn = |name: &str, style: Style, of: fn(&Outcome) -> f64| {
        let points =
            (0u32..).zip(outcomes).map(|(place, (_, all))| spread_point(f64::from(place), &values(all, of)));
        series(name, Shape::Bars, style, points.collect::<Vec<Point>>())
    };
    let content = Chart {
        x: axis("how paths are chosen", names()),
        y: axis("flows with 0.9 of their rate, %", Scale::Linear(0.0, 100.0)),
        series: vec![
            drawn("settled", Style::Ours, |it| it.settled_percent),
            drawn("while flows are exchanged", Style::Other, |it| it.churn_percent),
        ],
        marks: vec![ReferenceLine::Horizontal(ASKED_PERCENT, "asked of labels".to_owned())],
    };
    let carried = Chart {
        x: axis("how paths are chosen", names()),
        y: axis("carried of all nominal rates, %", Scale::Linear(0.0, 100.0)),
        series: vec![drawn("settled", Style::Ours, |it| it.carried_percent)],
        marks: Vec::new(),
    };
    let beyond = paper()?.beyond;
    Ok(Figure {
        title: format!("Scale: {TENANTS} tenants in a fat tree of {PORTS}"),
        panels: vec![
            panel("Content flows", Content::Chart(content)),
            panel("Carried", Content::Chart(carried)),
            quote("The paper", &beyond.place, &beyond.says),
        ],
        notes: vec![
            format!("Not in the paper. 128 servers, links of {LINK_GBPS} Gb/s; the VNICs of a server add up to {SERVER_GBPS} Gb/s."),
            "VNICs of 4, 2 and 1 Gb/s; each sends to one other of its size, as much as it can. Rates are weighted max-min shares at rest.".to_owned(),
            "The scheduler knows all flows: the largest first, then random moves that do not overbook more. It is a search, not a proof.".to_owned(),
        ],
    })
}
