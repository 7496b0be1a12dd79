//! How soon links are found, and how soon an app knows that one has failed.
//!
//! ```text
//!   205 switches connect ──> the last session is up ──> 828 directions of links are in the app's view
//!   a port goes down ──> port status ──> the link is down in the app's view
//!   a cable loses all frames ──> three probes are missing ──> the link is down in the app's view
//! ```
//!
//! In: a node with `discovery`, and the paper's network. Out: times.

use super::bed::{Bed, Plan, wait_until};
use super::clock::{between_ms, now_ns};
use super::paper::{Paper, paper};
use super::protocol::Sight;
use super::reroute::{SEED, latency_text};
use super::wan::{Wan, cable_name};
use crate::lab::Lab;
use crate::network;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::{median, spread_point, spread_text};
use emulator::{Change, Handle, LinkQuality, SwitchOptions};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;
use view::Kind;

/// The usual interval of probes.
const INTERVAL_MS: u64 = 3_000;
const SHORT_INTERVAL_MS: u64 = 300;

const ASKED_FOUND_MS: f64 = 3_000.0;
const ASKED_STATUS_MS: f64 = 5.0;

/// A silent failure is a loss of all frames.
const ALL_PPM: u32 = 1_000_000;

/// What was measured, in milliseconds.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    /// From the last session to the last link.
    found_ms: Vec<f64>,
    /// From the first session to the last link.
    from_first_ms: Vec<f64>,
    links: Vec<usize>,
    by_status_ms: Vec<f64>,
    by_silence_ms: Vec<f64>,
    interval_ms: u64,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let paper = paper()?;
    let (switches, cables) = (paper.demonstration.switches, paper.demonstration.links);
    let wan = Wan::new(switches, cables, SEED);
    let interval_ms = if lab.short { SHORT_INTERVAL_MS } else { INTERVAL_MS };
    let mut seen = Measured { interval_ms, ..Measured::default() };
    let rounds = lab.times(5, 1);
    for round in 0..rounds {
        lab.say(&format!("discovery: {switches} switches connect, {} of {rounds}", round + 1));
        let more = format!("[network.discovery]\nprobe_interval_ms = {interval_ms}");
        let plan = Plan { services: &["discovery"], kinds: &[Kind::Link], raw: true, more: &more };
        let mut bed = Bed::start(lab, plan)?;
        let network = find_all(&mut bed, &wan, &mut seen)?;
        if round + 1 == rounds {
            lab.say("discovery: ports go down");
            by_status(lab, &mut bed, &network, &wan, &mut seen)?;
            lab.say("discovery: cables lose all frames");
            by_silence(lab, &mut bed, &network, &wan, &mut seen)?;
        }
        network.stop();
    }
    Ok(Findings { claims: claims(&seen, &paper), data: json!(seen), figure: figure(&seen, &paper) })
}

fn find_all(bed: &mut Bed, wan: &Wan, seen: &mut Measured) -> Result<Handle, String> {
    bed.report()?;
    let network = network::begin(&wan.topology(), bed.controller, SwitchOptions::default())?;
    bed.wait_links(wan.cables.len() * 2)?;
    let sights = bed.report()?;
    let sessions = sights.iter().filter(|sight| sight.raw && sight.key.starts_with("switch/") && sight.up);
    let sessions: Vec<u64> = sessions.map(|sight| sight.at_ns).collect();
    let is_link = |sight: &&Sight| !sight.raw && sight.up && sight.key.starts_with("link/");
    let links: Vec<u64> = sights.iter().filter(is_link).map(|sight| sight.at_ns).collect();
    let (Some(first), Some(last), Some(found)) =
        (sessions.iter().min(), sessions.iter().max(), links.iter().max())
    else {
        return Err("the probe saw no session or no link".to_owned());
    };
    seen.found_ms.push(between_ms(*last, *found));
    seen.from_first_ms.push(between_ms(*first, *found));
    seen.links.push(bed.count()?.links);
    Ok(network)
}

fn by_status(
    lab: &Lab,
    bed: &mut Bed,
    network: &Handle,
    wan: &Wan,
    seen: &mut Measured,
) -> Result<(), String> {
    let all = wan.cables.len() * 2;
    for cable in wan.cables.iter().take(lab.times(100, 3)) {
        let link = cable_name(*cable);
        let set = |up| {
            let link = link.clone();
            network.change(Change::Link { link, up }).map_err(|error| error.to_string())
        };
        bed.report()?;
        let began_ns = now_ns();
        set(false)?;
        bed.wait_links(all - 2)?;
        let down = ends(&bed.report()?, wan, *cable);
        seen.by_status_ms.extend(down.into_iter().reduce(u64::max).map(|at_ns| between_ms(began_ns, at_ns)));
        set(true)?;
        bed.wait_links(all)?;
    }
    Ok(())
}

/// When the directions of a cable went down in the view.
fn ends(sights: &[Sight], wan: &Wan, cable: (usize, usize)) -> Vec<u64> {
    let Some((one, two)) = wan.ends(cable) else { return Vec::new() };
    let keys = [format!("link/{one}-{two}"), format!("link/{two}-{one}")];
    let down = |key: &String| sights.iter().find(|sight| !sight.raw && !sight.up && sight.key == *key);
    keys.iter().filter_map(down).map(|sight| sight.at_ns).collect()
}

fn by_silence(
    lab: &Lab,
    bed: &mut Bed,
    network: &Handle,
    wan: &Wan,
    seen: &mut Measured,
) -> Result<(), String> {
    let all = wan.cables.len() * 2;
    let step = wan.cables.len() / 20;
    let cables: Vec<(usize, usize)> =
        wan.cables.iter().step_by(step.max(1)).take(lab.times(20, 2)).copied().collect();
    bed.report()?;
    let mut begins = Vec::new();
    for cable in &cables {
        begins.push(now_ns());
        let quality = LinkQuality { loss_ppm: ALL_PPM, ..LinkQuality::default() };
        let link = cable_name(*cable);
        network.change(Change::Quality { link, quality }).map_err(|error| error.to_string())?;
        // The cables fail at different phases of the interval.
        std::thread::sleep(Duration::from_millis(seen.interval_ms / 20));
    }
    let mut sights = Vec::new();
    wait_until("all silent links are down", || {
        sights.extend(bed.report()?);
        Ok(cables.iter().all(|cable| ends(&sights, wan, *cable).len() == 2))
    })?;
    for (cable, began_ns) in cables.iter().zip(begins) {
        let down = ends(&sights, wan, *cable);
        seen.by_silence_ms.extend(down.into_iter().map(|at_ns| between_ms(began_ns, at_ns)));
    }
    let left = bed.count()?.links;
    match left == all - cables.len() * 2 {
        true => Ok(()),
        false => Err(format!("{left} links are up, of {all} without those that are silent")),
    }
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn claims(seen: &Measured, paper: &Paper) -> Vec<Claim> {
    let records = &paper.later_records;
    let two_ms = 2.0 * seen.interval_ms as f64;
    let is_measured = |values: &[f64]| !values.is_empty();
    let all = paper.demonstration.links * 2;
    vec![
        Claim::asked(
            "205 switches and 414 links: last session up to the last link in the app's view",
            "<= 3 s each time",
            spread_text(&seen.found_ms, "ms", 0),
            is_measured(&seen.found_ms)
                && most(&seen.found_ms) <= ASKED_FOUND_MS
                && seen.links.iter().all(|links| *links == all),
        )
        .beside("found; no time is given"),
        Claim::seen("the same from the first session", spread_text(&seen.from_first_ms, "ms", 0)),
        Claim::asked(
            "a port goes down: both directions of its link are down in the app's view",
            "<= 5 ms, median",
            latency_text(&seen.by_status_ms),
            is_measured(&seen.by_status_ms) && median(&seen.by_status_ms) <= ASKED_STATUS_MS,
        )
        .beside(&format!("{} ms to the graph, ONOS later", records.port_down_to_graph_ms)),
        Claim::asked(
            &format!(
                "a cable loses all frames, probes every {} ms: down in the app's view",
                seen.interval_ms
            ),
            "within two intervals, each",
            spread_text(&seen.by_silence_ms, "ms", 0),
            is_measured(&seen.by_silence_ms) && most(&seen.by_silence_ms) <= two_ms,
        ),
    ]
}

fn figure(seen: &Measured, paper: &Paper) -> Figure {
    let names = ["last link found", "port down", "cable silent"];
    let values = [&seen.found_ms, &seen.by_status_ms, &seen.by_silence_ms];
    let points = values.iter().enumerate().filter(|(_, values)| !values.is_empty());
    let points = points.map(|(place, values)| spread_point(place as f64, values)).collect();
    let chart = Chart {
        x: axis("in the app's view", Scale::Names(names.map(str::to_owned).to_vec())),
        y: axis("milliseconds", Scale::Decades(0.01, 100_000.0)),
        series: vec![series("median, least and most", Shape::Bars, Style::Ours, points)],
        marks: vec![
            ReferenceLine::Horizontal(ASKED_FOUND_MS, "asked of all links: 3 s".to_owned()),
            ReferenceLine::Horizontal(ASKED_STATUS_MS, "asked of a port: 5 ms".to_owned()),
        ],
    };
    Figure {
        title: "205 switches and 414 links: found, and failed".to_owned(),
        panels: vec![panel("Burnet", Content::Chart(chart))],
        notes: vec![format!(
            "Probes every {} ms. ONOS shows this network ({}), and gives no times.",
            seen.interval_ms, paper.demonstration.place
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found_ms: f64, status_ms: f64, silence_ms: f64, expected: [bool; 3]) {
        let seen = Measured {
            found_ms: vec![found_ms],
            links: vec![828],
            by_status_ms: vec![status_ms],
            by_silence_ms: vec![silence_ms],
            interval_ms: 3_000,
            ..Measured::default()
        };
        let claims = claims(&seen, &paper().unwrap());
        assert_eq!(claims.iter().filter_map(|claim| claim.holds).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_bound_is_judged_by_itself() {
        check(2_000.0, 1.0, 5_999.0, [true, true, true]);
        check(3_001.0, 6.0, 6_001.0, [false, false, false]);
    }

    #[test]
    fn what_was_not_measured_is_not_reached() {
        let claims = claims(&Measured::default(), &paper().unwrap());
        assert!(claims.iter().filter_map(|claim| claim.holds).all(|holds| !holds));
    }
}
