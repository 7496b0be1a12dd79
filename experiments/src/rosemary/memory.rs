//! Figure 17: an app allocates memory without end. Its hard limit must stop it, and the node's own memory must not
//! grow.
//!
//! ```text
//!   1 MiB every 4 ms, about 250 MB a second, as fast as the paper's: 1.2 GB in 5 s
//!   Burnet: hard limits of 1.2 GB (the paper's) and of 64 MB; monolithic: an end of the process's memory at 1.4 GB, as a JVM's heap has one
//! ```
//!
//! Memory is what is there of the app's process's own (resident, anonymous), and of the kernel's process, looked at every 20 ms.

use super::paper::{Leak, paper};
use crate::lab::Lab;
use crate::node::{Kind, Node};
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use lab::processes::{own_bytes, tree};
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(20);
/// Where the monolithic process's memory ends.
const MONOLITHIC_BYTES: u64 = 1_400_000_000;
const SMALL_BYTES: u64 = 64_000_000;
/// By so much the kernel's process may be larger than before: what it keeps for an app that comes and goes.
const GROWTH_BYTES: u64 = 4 << 20;

#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    case: String,
    limit_bytes: u64,
    looks: Vec<Look>,
    /// Why the app ended, each time.
    ends: Vec<String>,
    node_ended: bool,
}

/// What was there, in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
struct Look {
    at_s: f64,
    app: u64,
    kernel: u64,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let paper = paper()?;
    let big = paper.fig17.rosemary_limit_bytes as u64;
    let mut seen = Vec::new();
    for (case, kind, limit_bytes) in [
        ("Burnet, 1.2 GB", Kind::Burnet, big),
        ("Burnet, 64 MB", Kind::Burnet, SMALL_BYTES),
        ("monolithic", Kind::Monolithic, MONOLITHIC_BYTES),
    ] {
        lab.say(&format!("fig17: {case}"));
        seen.push(watch(lab, case, kind, limit_bytes)?);
    }
    Ok(Findings { claims: claims(&seen), data: json!(seen), figure: figure(&paper.fig17, &seen) })
}

fn configuration(lab: &Lab, kind: Kind, limit_bytes: u64) -> Result<String, String> {
    let path = match kind {
        Kind::Burnet => lab.misbehaving_program()?,
        Kind::Monolithic => lab.misbehaving_object()?,
    };
    Ok(format!(
        "[app.firewall]\n[app.misbehaving]\npath = \"{}\"\n[app.misbehaving.limits]\nmemory_bytes = {limit_bytes}\n\
         [app.misbehaving.settings]\nattack = \"memory-leak\"\nleak_pause_ms = {}\n",
        path.display(),
        lab.times(4, 1)
    ))
}

fn watch(lab: &Lab, case: &str, kind: Kind, limit_bytes: u64) -> Result<Measured, String> {
    let end = (kind == Kind::Monolithic).then_some(MONOLITHIC_BYTES);
    let node = Node::start_within(lab, kind, &configuration(lab, kind, limit_bytes)?, end)?;
    node.wait(&["firewall"])?;
    let kernel = node.ask(&json!("node"))?["node"]["pid"].as_u64().unwrap_or(0) as u32;
    let mut seen = Measured { case: case.to_owned(), limit_bytes, ..Measured::default() };
    let (began, time) = (Instant::now(), lab.time(10.0, 4.0));
    let (mut pid, mut asked_at) = (0, None::<Instant>);
    while began.elapsed() < time {
        // A kernel that is inside an app answers nobody, and this must not wait for it.
        if kind == Kind::Burnet && asked_at.is_none_or(|at| at.elapsed() > LOOK) {
            asked_at = Some(Instant::now());
            let app = node.app("misbehaving").unwrap_or_default();
            pid = app["status"]["pid"].as_u64().unwrap_or(0) as u32;
            note_end(&app["status"]["last_end"], &mut seen.ends);
        }
        // The app is the last of its zone's processes: launcher, init, app.
        let app = if pid == 0 { None } else { tree(pid).last().copied() };
        let app = app.map_or(0, |pid| own_bytes(&[pid]));
        seen.looks.push(Look { at_s: began.elapsed().as_secs_f64(), app, kernel: own_bytes(&[kernel]) });
        std::thread::sleep(LOOK);
    }
    seen.node_ended = node.has_ended();
    Ok(seen)
}

fn note_end(end: &serde_json::Value, ends: &mut Vec<String>) {
    let (Some(reason), Some(at)) = (end["reason"].as_str(), end["unix_ms"].as_u64()) else { return };
    let text = format!("{reason}, at {at}");
    if ends.last() != Some(&text) {
        ends.push(text);
    }
}

fn most(looks: &[Look], of: fn(&Look) -> u64) -> u64 {
    looks.iter().map(of).max().unwrap_or(0)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

fn claims(all: &[Measured]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for seen in all {
        let (app, kernel) = (most(&seen.looks, |look| look.app), most(&seen.looks, |look| look.kernel));
        let first = seen.looks.first().map_or(0, |look| look.kernel);
        if seen.case.starts_with("monolithic") {
            let ended = if seen.node_ended { ", and the node ended" } else { "" };
            let text = format!("the kernel's process took {}{ended}", megabytes(kernel));
            claims.push(
                Claim::seen("monolithic: memory of everything", text)
                    .beside("Floodlight takes its heap's maximum, then has no more memory"),
            );
            continue;
        }
        let paper = if seen.limit_bytes > SMALL_BYTES { Some("held at 1.2 GB") } else { None };
        let within = app > 0 && app <= seen.limit_bytes;
        let claim = Claim::asked(
            &format!("{}: most that the leaking app had", seen.case),
            &format!("at most {}", megabytes(seen.limit_bytes)),
            format!("{}; ended {} times", megabytes(app), seen.ends.len()),
            within && !seen.ends.is_empty(),
        );
        claims.push(match paper {
            Some(paper) => claim.beside(paper),
            None => claim,
        });
        claims.push(Claim::asked(
            &format!("{}: the kernel's process", seen.case),
            "does not grow",
            format!("{} at first, {} at most", megabytes(first), megabytes(kernel)),
            kernel > 0 && kernel <= first + GROWTH_BYTES,
        ));
    }
    claims
}

fn figure(paper: &Leak, all: &[Measured]) -> Figure {
    let y = || axis("memory, in bytes", Scale::Linear(0.0, 1.6e9));
    let begin = paper.leak_begins_s;
    let reached = paper.rosemary_at_limit_s - begin;
    let theirs = Chart {
        x: axis("seconds since the leak began", Scale::Linear(0.0, 9.0)),
        y: y(),
        series: vec![series(
            "Rosemary: held at its limit, from then on",
            Shape::Line,
            Style::Paper,
            vec![Point::at(reached, paper.rosemary_limit_bytes), Point::at(9.0, paper.rosemary_limit_bytes)],
        )],
        marks: vec![ReferenceLine::Vertical(
            paper.floodlight_out_of_memory_s - begin,
            "Floodlight: out of memory".to_owned(),
        )],
    };
    let styles = [Style::Ours, Style::Other, Style::Baseline];
    let drawn = all.iter().zip(styles).map(|(seen, style)| {
        let of = |look: &Look| if style == Style::Baseline { look.kernel } else { look.app };
        let name = if style == Style::Baseline { "monolithic: everything" } else { &seen.case };
        series(
            name,
            Shape::Line,
            style,
            seen.looks.iter().map(|look| Point::at(look.at_s, of(look) as f64)).collect(),
        )
    });
    let kernel = all.first().map(|seen| {
        let points = seen.looks.iter().map(|look| Point::at(look.at_s, look.kernel as f64)).collect();
        series("the kernel's process beside the first", Shape::Line, Style::Reference, points)
    });
    let last_s = all.iter().flat_map(|seen| &seen.looks).map(|look| look.at_s).fold(1.0, f64::max);
    let ours = Chart {
        x: axis("seconds since the apps were up", Scale::Linear(0.0, last_s)),
        y: y(),
        series: drawn.chain(kernel).collect(),
        marks: vec![ReferenceLine::Horizontal(paper.rosemary_limit_bytes, "1.2 GB".to_owned())],
    };
    Figure {
        title: "Figure 17: an app leaks".to_owned(),
        panels: vec![panel(format!("The paper, {}", paper.place), Content::Chart(theirs)), panel("Burnet, and everything in one process", Content::Chart(ours))],
        notes: vec![
            "Of the paper, what its text says: the limit is reached 5 s after the leak begins, and Floodlight has no more memory after 7 s. \
             Burnet ends an app that asks for more than its limit, and starts it again; so it leaks again. Monolithic: one process for \
             everything, whose memory ends at 1.4 GB."
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(app: u64, kernel: u64, ended: bool) -> Measured {
        let look = |app, kernel| Look { at_s: 0.0, app, kernel };
        let ends = if ended { vec!["SIGKILL".to_owned()] } else { vec![] };
        Measured {
            case: "Burnet".to_owned(),
            limit_bytes: SMALL_BYTES,
            looks: vec![look(1, 5 << 20), look(app, kernel)],
            ends,
            node_ended: false,
        }
    }

    fn check(seen: Measured, expected: [bool; 2]) {
        let claims = claims(&[seen]);
        assert_eq!([claims[0].holds, claims[1].holds], expected.map(Some));
    }

    #[test]
    fn a_limit_that_did_not_hold_and_a_kernel_that_grew_are_told() {
        check(seen(2 * SMALL_BYTES, 5 << 20, true), [false, true]);
        check(seen(SMALL_BYTES, 90 << 20, true), [true, false]);
        check(seen(SMALL_BYTES, 5 << 20, false), [false, true]);
        check(seen(SMALL_BYTES, 5 << 20, true), [true, true]);
    }

    #[test]
    fn an_end_is_counted_once() {
        let mut ends = Vec::new();
        for end in [
            json!(null),
            json!({"reason": "a", "unix_ms": 1}),
            json!({"reason": "a", "unix_ms": 1}),
            json!({"reason": "a", "unix_ms": 2}),
        ] {
            note_end(&end, &mut ends);
        }
        assert_eq!(ends.len(), 2);
    }
}
