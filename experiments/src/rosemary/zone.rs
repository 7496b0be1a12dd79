//! What a zone costs: how long until an app serves, and its memory. The paper has no figure of it.

use crate::lab::Lab;
use crate::node::{Kind, Node, app_in, serves};
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::{median, spread_point, spread_text};
use lab::processes::{proportional_bytes, tree};
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
/// What has been started is left alone for so long before its memory is looked at.
const SETTLE: Duration = Duration::from_millis(500);

const ASKED_MS: f64 = 50.0;
const ASKED_MIB: f64 = 3.0;

#[derive(Clone, Debug, Serialize)]
struct Measured {
    app: &'static str,
    start_ms: Vec<f64>,
    memory_mib: Vec<f64>,
    /// Processes of a zone, the app's own among them.
    processes: usize,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let mut seen = Vec::new();
    let program = lab.beside("hub").map(|path| format!("path = \"{}\"\n", path.display()));
    for (app, lines) in [("built in", Some(String::new())), ("a program of its own", program)] {
        lab.say(&format!("zone: {app}"));
        match lines {
            Some(lines) => seen.push(watch(lab, app, &lines)?),
            None => lab.say("left out: there is no program hub beside the binary (cargo build -p hub)"),
        }
    }
    Ok(Findings { claims: claims(&seen), data: json!(seen), figure: figure(&seen) })
}

fn watch(lab: &Lab, app: &'static str, lines: &str) -> Result<Measured, String> {
    let node = Node::start(lab, Kind::Burnet, &format!("[node]\nlog = \"error\"\n[app.hub]\n{lines}"))?;
    node.wait(&["hub"])?;
    let mut seen = Measured { app, start_ms: Vec::new(), memory_mib: Vec::new(), processes: 0 };
    for _ in 0..lab.times(10, 3) {
        node.tell("hub", "stop")?;
        wait_until(&node, "it has stopped", |app| app["status"]["state"] == "stopped")?;
        let began = Instant::now();
        node.tell("hub", "start")?;
        wait_until(&node, "it serves", serves)?;
        seen.start_ms.push(began.elapsed().as_secs_f64() * 1000.0);
        std::thread::sleep(SETTLE.min(lab.time(0.5, 0.1)));
        let pid = node.app("hub").and_then(|app| app["status"]["pid"].as_u64()).unwrap_or(0);
        let processes = tree(pid as u32);
        seen.processes = processes.len();
        seen.memory_mib.push(proportional_bytes(&processes) as f64 / 1048576.0);
    }
    Ok(seen)
}

fn wait_until(node: &Node, what: &str, holds: fn(&serde_json::Value) -> bool) -> Result<(), String> {
    let (began, mut line) = (Instant::now(), node.line()?);
    while began.elapsed() < PATIENCE {
        if app_in(line.ask(&json!("apps"))?, "hub").is_some_and(|app| holds(&app)) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    Err(format!("it was not to be seen within {} s that {what}", PATIENCE.as_secs()))
}

fn claims(all: &[Measured]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for seen in all {
        let (ms, mib) = (median(&seen.start_ms), median(&seen.memory_mib));
        let start = format!("an app that is {}: from the operator's command until it serves", seen.app);
        claims.push(Claim::asked(
            &start,
            "< 50 ms",
            spread_text(&seen.start_ms, "ms", 1),
            ms > 0.0 && ms < ASKED_MS,
        ));
        let memory = format!("an app that is {}: memory of its zone, {} processes", seen.app, seen.processes);
        claims.push(Claim::asked(
            &memory,
            "< 3 MiB",
            spread_text(&seen.memory_mib, "MiB", 2),
            mib > 0.0 && mib < ASKED_MIB,
        ));
    }
    claims
}

fn figure(all: &[Measured]) -> Figure {
    let names = || Scale::Names(all.iter().map(|seen| seen.app.to_owned()).collect());
    let bars = |of: fn(&Measured) -> &[f64]| {
        all.iter().enumerate().map(|(place, seen)| spread_point(place as f64, of(seen))).collect::<Vec<_>>()
    };
    let chart = |label: &str, points: Vec<crate::plot::Point>, limit: f64, word: &str| {
        let tops =
            points.iter().map(|point| point.spread.map_or(point.y, |(_, most)| most)).chain([limit * 1.1]);
        Content::Chart(Chart {
            x: axis("an app that is", names()),
            y: axis(label, Scale::from_zero(tops.collect::<Vec<_>>())),
            series: vec![series("median, least and most", Shape::Bars, Style::Ours, points)],
            marks: vec![ReferenceLine::Horizontal(limit, word.to_owned())],
        })
    };
    Figure {
        title: "What a process zone costs".to_owned(),
        panels: vec![
            panel(
                "From the operator's command until it serves",
                chart("ms", bars(|seen| &seen.start_ms), ASKED_MS, "asked: 50 ms"),
            ),
            panel(
                "Memory (Pss) of all processes of the zone",
                chart("MiB", bars(|seen| &seen.memory_mib), ASKED_MIB, "asked: 3 MiB"),
            ),
        ],
        notes: vec![
            "Not in the paper. A page that several processes share counts for each by its part.".to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(start_ms: &[f64], memory_mib: &[f64], expected: [bool; 2]) {
        let seen =
            Measured { app: "x", start_ms: start_ms.to_vec(), memory_mib: memory_mib.to_vec(), processes: 3 };
        let claims = claims(&[seen]);
        assert_eq!([claims[0].holds, claims[1].holds], expected.map(Some));
    }

    #[test]
    fn what_was_not_measured_is_not_reached() {
        check(&[], &[], [false, false]);
        check(&[60.0], &[4.0], [false, false]);
        check(&[20.0, 90.0, 21.0], &[2.0], [true, true]);
    }
}
