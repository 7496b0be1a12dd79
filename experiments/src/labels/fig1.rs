//! Figure 1: without labels, the flows of two tenants collide on a link between switches.

use super::packets;
use super::paper::{Collision, Gbps, paper};
use super::run::Recording;
use super::setting::{FLOWS, FigureFlow, G, RATE_LIMIT, fabric, plans, rate_claim, slips};
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Point};
use crate::plot::{Content, Figure, Panel, Scale, Shape, Style, axis, panel, quote, series};
use crate::report::Claim;
use rehearsal::{Choose, Demand, Fabric, LinkNo, Rig, Telling, fair_rates};
use serde_json::json;
use std::time::Duration;

/// What each flow gets without a shaper: the two on the shared link have equal parts, and C to D has the rest of its NIC.
const UNSHAPED_GBPS: f64 = 5.0;
/// What is asked with shapers, in the order of the flows: 10 in proportion 8 to 10, and the rest of A's NIC.
const SHAPED_GBPS: [f64; 3] = [4.444, 5.556, 5.556];
/// The paths that collide: A to B and E to F by s1, C to D by s2.
const COLLIDING: [u64; 3] = [0, 0, 1];
/// How long the run lasts, in ms.
const LASTS_MS: usize = 500;
const SHORT_MS: usize = 60;
/// How long TCP runs, in ms. Its second half counts.
const TCP_MS: usize = 1_000;
const SHORT_TCP_MS: usize = 10;

/// Runs it.
///
/// # Errors
/// The paper's numbers or the tenants cannot be.
pub fn run_figure(lab: &Lab) -> Result<Findings, String> {
    let paper = paper()?.fig1;
    let fabric = fabric(paper.link_gbps);
    let unshaped = unshaped(&fabric)?;
    let tcp_ms = lab.times(TCP_MS, SHORT_TCP_MS) as u64;
    lab.say(&format!("{tcp_ms} ms of TCP by packets"));
    let tcp = packets::rates_gbps(paper.link_gbps * G, Duration::from_millis(tcp_ms))?;
    let lasts_ms = lab.times(LASTS_MS, SHORT_MS) as u64;
    lab.say(&format!("{lasts_ms} ms with shapers, and no labels"));
    let mut rig = Rig::new(&fabric, Telling::Never, plans(&fabric, Choose::Number)?)?;
    for (flow, number) in FLOWS.iter().zip(COLLIDING) {
        rig.begin(flow.pair, Demand::All, number);
    }
    let mut recording = Recording::default();
    recording.record(&mut rig, &FLOWS, lasts_ms)?;
    let shaped = FLOWS.map(|flow| recording.mean(flow.name, 0.0, lasts_ms as f64));
    let began_ms = FLOWS.iter().filter_map(|flow| rig.began_ns(flow.pair)).max().unwrap_or(0) as f64 / 1e6;
    let expected: Vec<(&str, f64)> = FLOWS.iter().map(|flow| flow.name).zip(SHAPED_GBPS).collect();
    let near_ms = recording.near_after_ms(&expected, began_ms, lasts_ms as f64);
    let data = json!({
        "unshaped_gbps": unshaped,
        "unshaped_tcp_gbps": tcp,
        "shaped_gbps": shaped,
        "near_after_ms": near_ms,
        "refused_datagrams": rig.refusals(),
        "colliding_choices": colliding(&fabric)?,
        "samples_ms_gbps": recording.to_json(),
    });
    let mut claims = claims(&paper, unshaped, shaped, near_ms, colliding(&fabric)?);
    claims.extend(tcp_claims(tcp));
    Ok(Findings { claims, data, figure: figure(&paper, unshaped, shaped, &recording) })
}

/// What elastic flows get of links that share evenly: max-min, all with the same weight.
fn unshaped(fabric: &Fabric) -> Result<[f64; 3], String> {
    let tenants = plans(fabric, Choose::Number)?;
    let mut flows = Vec::new();
    for (flow, number) in FLOWS.iter().zip(COLLIDING) {
        let vnics = &tenants[flow.pair.slice.index()].vnics;
        let [from, to] = [flow.pair.source, flow.pair.destination].map(|vnic| vnics[vnic.index()].server);
        let mut paths = fabric.paths(from, to);
        flows.push((flow.pair, 1, paths.swap_remove(number as usize % paths.len())));
    }
    let capacities: Vec<u64> = fabric.links().map(|(_, link)| link.capacity_bps).collect();
    let rates = fair_rates(&capacities, &flows);
    Ok(std::array::from_fn(|index| rates.get(index).map_or(0.0, |bps| *bps as f64 / G as f64)))
}

/// How many choices of paths put A to B and E to F on the same spine, as figure 1 does, and how many choices there are.
fn colliding(fabric: &Fabric) -> Result<(usize, usize), String> {
    let spine = |name: &str| fabric.named(name).ok_or(format!("figure 1a has no link {name}"));
    let spines: [LinkNo; 2] = [spine("s3-s1")?, spine("s3-s2")?];
    let choices = spines.iter().flat_map(|a| spines.iter().map(move |e| (*a, *e)));
    let both: Vec<(LinkNo, LinkNo)> = choices.collect();
    Ok((both.iter().filter(|(a, e)| a == e).count(), both.len()))
}

/// What TCP made of it. It is no ideal, so nothing is asked.
fn tcp_claims(tcp: [f64; 3]) -> Vec<Claim> {
    let claim = |(flow, gbps): (&FigureFlow, f64)| {
        let what = format!("unshaped, {}, TCP by packets (payload)", flow.name);
        Claim::seen(&what, format!("{gbps:.2} Gb/s"))
    };
    FLOWS.iter().zip(tcp).map(claim).collect()
}

fn claims(
    paper: &Collision,
    unshaped: [f64; 3],
    shaped: [f64; 3],
    near_ms: Option<f64>,
    (colliding, choices): (usize, usize),
) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (flow, gbps) in FLOWS.iter().zip(unshaped) {
        let what = format!("unshaped, {}", flow.name);
        let claim = rate_claim(&what, gbps, UNSHAPED_GBPS, None);
        // C to D is not on the shared link, and the paper does not say what it gets.
        let is_on_shared_link = flow.name != "C to D";
        claims.push(if is_on_shared_link { claim.beside("equal parts of the shared link") } else { claim });
    }
    let of_paper = |rates: &Gbps, name: &str| rates.get(name).copied();
    for ((flow, gbps), asked) in FLOWS.iter().zip(shaped).zip(SHAPED_GBPS) {
        let what = format!("shaped, {}", flow.name);
        claims.push(rate_claim(&what, gbps, asked, of_paper(&paper.shaped_gbps, flow.name)));
    }
    let sum: f64 = shaped.iter().sum();
    let text = format!("{sum:.2} of {} Gb/s", paper.bisection_gbps);
    claims.push(Claim::seen("shaped, sum", text).beside(&format!("{} Gb/s", paper.sum_gbps)));
    let text = near_ms
        .map_or("never".to_owned(), |ms| format!("{ms:.1} ms after the first packets, in windows of 1 ms"));
    let what = format!("shaped, rates within {:.0} %", RATE_LIMIT * 100.0);
    claims.push(Claim::asked(&what, "5 ms", text, near_ms.is_some_and(|ms| ms <= 5.0)));
    let text = format!("{colliding} of {choices} choices");
    claims.push(
        Claim::seen("paths of A to B and E to F collide without labels", text).beside("with probability 0.5"),
    );
    claims
}

fn figure(paper: &Collision, unshaped: [f64; 3], shaped: [f64; 3], recording: &Recording) -> Figure {
    let names = Scale::Names(FLOWS.iter().map(|flow| flow.name.to_owned()).collect());
    let bars = |name: &str, style: Style, rates: Vec<f64>| {
        let points = (0u32..).zip(rates).map(|(place, gbps)| Point::at(f64::from(place), gbps)).collect();
        series(name, Shape::Bars, style, points)
    };
    let of_paper =
        FLOWS.iter().map(|flow| paper.shaped_gbps.get(flow.name).copied().unwrap_or(0.0)).collect();
    let rates = Chart {
        x: axis("flow", names),
        y: axis("rate, Gb/s", Scale::Linear(0.0, 10.0)),
        series: vec![
            bars("the paper, shaped", Style::Paper, of_paper),
            bars("shaped", Style::Ours, shaped.to_vec()),
            bars("unshaped", Style::Baseline, unshaped.to_vec()),
        ],
        marks: Vec::new(),
    };
    let over_time = Chart {
        x: axis("time, ms", Scale::from_zero(recording.flows.iter().flat_map(|it| &it.1).map(|it| it.0))),
        y: axis("rate, Gb/s", Scale::Linear(0.0, 12.0)),
        series: recording.series(),
        marks: Vec::new(),
    };
    let panels: Vec<Panel> = vec![
        panel("Rates at rest", Content::Chart(rates)),
        panel("Shaped, from the start", Content::Chart(over_time)),
        quote("The paper", &paper.place, &paper.says),
    ];
    let mut notes = vec![
        "Shaped: agents of the crate edge on a fluid network in virtual time, and caps of the label service on the overbooked link.".to_owned(),
        "Unshaped: elastic flows as max-min shares with equal weights. That is a model of TCP, not a measurement.".to_owned(),
        "TCP by packets: NewReno in Burnet's emulator in virtual time, 150 KB of queue at each port, 5 us for each link.".to_owned(),
    ];
    notes.extend(slips());
    Figure { title: "Figure 1: two tenants without labels".to_owned(), panels, notes }
}
