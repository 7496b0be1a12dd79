//! Figure 16: an app calls exit(). The firewall must still block A, and B must still reach C.
//!
//! ```text
//!   A (h1, 10.0.0.1), B (h2, 10.0.0.2), C (h3) on one switch ──> node: firewall (A to C is blocked), hub, the crash app
//! ```
//!
//! The hub forwards, because it installs no rules: every packet goes to the control plane. So rules in the switch
//! cannot hide that the control plane is gone.

use super::paper::paper;
use crate::lab::Lab;
use crate::network;
use crate::node::{Kind, Node, unix_ms};
use crate::paper::Findings;
use crate::pings::{Ping, Pinging, count};
use crate::plot::{Content, Figure, ReferenceLine, Row, Scale, Tick, Timeline, axis, panel, quote};
use crate::report::Claim;
use emulator::{FailMode, SwitchOptions};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The pairs that ping: B must reach C, A must not.
const PAIRS: [(&str, &str); 2] = [("h2", "h3"), ("h1", "h3")];
const EVERY: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_millis(500);
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How often the app's state is requested.
const LOOK_S: f64 = 0.05;

/// One node, and what its switch does without a controller.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    kind: Kind,
    fail_mode: FailMode,
}

const CASES: [Case; 3] = [
    Case { name: "Burnet", kind: Kind::Burnet, fail_mode: FailMode::Secure },
    Case { name: "monolithic", kind: Kind::Monolithic, fail_mode: FailMode::Secure },
    Case { name: "monolithic, standalone", kind: Kind::Monolithic, fail_mode: FailMode::Standalone },
];

#[derive(Clone, Debug, Serialize)]
struct Measured {
    case: &'static str,
    /// When it crashed, in seconds since the pings began.
    crashes_s: Vec<f64>,
    /// How often the app restarted.
    restarts: u64,
    /// Whether the node had ended at the end.
    node_ended: bool,
    pings: Vec<Ping>,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let mut seen = Vec::new();
    for case in CASES {
        lab.say(&format!("fig16: {}", case.name));
        seen.push(watch(lab, case)?);
    }
    let paper = paper()?;
    let figure = Figure {
        title: "Figure 16: an app calls exit()".to_owned(),
        panels: vec![quote("Rosemary", &paper.fig16.place, &paper.fig16.says), panel("Burnet, and everything in one process", timeline(&seen))],
        notes: vec![
            "Monolithic: the same node with every app inside the kernel's process and a monitor that starts nothing again. Its switch \
             drops what has no rule (secure) or becomes a learning switch (standalone) once the controller is gone."
                .to_owned(),
        ],
    };
    Ok(Findings { claims: claims(&seen), data: json!(seen), figure })
}

fn configuration(lab: &Lab, case: Case) -> Result<String, String> {
    let path = match case.kind {
        Kind::Burnet => lab.misbehaving_program()?,
        Kind::Monolithic => lab.misbehaving_object()?,
    };
    Ok(format!(
        "[app.firewall]\n[app.firewall.settings]\nblock = [\"ip,nw_src=10.0.0.1\"]\n[app.hub]\n\
         [app.misbehaving]\npath = \"{}\"\n[app.misbehaving.settings]\nattack = \"exit\"\nquiet_s = 2\n",
        path.display()
    ))
}

fn watch(lab: &Lab, case: Case) -> Result<Measured, String> {
    let node = Node::start(lab, case.kind, &configuration(lab, case)?)?;
    let controller = node.wait(&["firewall", "hub"])?;
    let options = SwitchOptions { fail_mode: case.fail_mode, ..SwitchOptions::default() };
    let network = network::start_with("single,3", controller, options)?;
    wait_for_firewall(&node)?;
    let (began, began_unix_ms) = (Instant::now(), unix_ms());
    let mut pinging = Pinging::new(&network, &PAIRS, EVERY, PATIENCE, began);
    let time = lab.time(10.0, 6.0);
    let (mut crashes_s, mut restarts, mut looked_s) = (Vec::new(), 0, 0.0);
    while began.elapsed() < time {
        pinging.go_on();
        let now_s = began.elapsed().as_secs_f64();
        if now_s - looked_s > LOOK_S && !node.has_ended() {
            looked_s = now_s;
            let app = node.app("misbehaving").unwrap_or_default();
            restarts = app["status"]["restarts"].as_u64().unwrap_or(restarts);
            crashes_s.extend(new_crash(&app, began_unix_ms, &crashes_s));
        } else if node.has_ended() && crashes_s.is_empty() {
            crashes_s.push(now_s);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let pings = pinging.finish();
    network.stop();
    let node_ended = node.has_ended();
    Ok(Measured { case: case.name, crashes_s, restarts, node_ended, pings })
}

/// The blocking rule must be in the switch before its effect is measured.
fn wait_for_firewall(node: &Node) -> Result<(), String> {
    let began = Instant::now();
    while began.elapsed() < START_PATIENCE {
        let flows = node.ask(&json!({"flows": {"datapath": null}}))?;
        let entries = flows["flows"][0]["flows"].as_array().cloned().unwrap_or_default();
        if entries.iter().any(|entry| entry["owner"] == "firewall") {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err("the firewall's rule did not come into the switch".to_owned())
}

/// When the app ended last, if that is not known yet.
fn new_crash(app: &Value, began_unix_ms: f64, known_s: &[f64]) -> Option<f64> {
    let at_s = (app["status"]["last_end"]["unix_ms"].as_f64()? - began_unix_ms) / 1000.0;
    known_s.last().is_none_or(|last| at_s - last > 0.01).then_some(at_s)
}

/// Of a pair's pings behind the first crash: how many, and how many were answered.
fn after(seen: &Measured, pair: usize) -> (usize, usize) {
    count(&seen.pings, pair, seen.crashes_s.first().copied().unwrap_or(f64::INFINITY))
}

fn claims(all: &[Measured]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for seen in all {
        let ((b, b_answered), (a, a_answered)) = (after(seen, 0), after(seen, 1));
        let b_text =
            format!("{b_answered} of {b} pings answered after the first of {} crashes", seen.crashes_s.len());
        let a_text = format!("{a_answered} of {a} pings came through");
        if seen.case == "Burnet" {
            claims.push(
                Claim::asked("B reaches C after the crash", "no ping lost", b_text, b > 0 && b == b_answered)
                    .beside("it does"),
            );
            claims.push(
                Claim::asked(
                    "A stays blocked after the crash",
                    "no ping through",
                    a_text,
                    a > 0 && a_answered == 0,
                )
                .beside("it does"),
            );
            let restarts = format!("{} times", seen.restarts);
            claims.push(Claim::asked("the crash app is started again", "it is", restarts, seen.restarts > 0));
        } else {
            let end = if seen.node_ended { "the node ended; " } else { "" };
            let controllers = "so it is with Floodlight, OpenDaylight, POX and Beacon";
            claims.push(
                Claim::seen(&format!("{}: B reaches C", seen.case), end.to_owned() + &b_text)
                    .beside(controllers),
            );
            claims.push(Claim::seen(&format!("{}: A stays blocked", seen.case), a_text));
        }
    }
    claims
}

fn timeline(all: &[Measured]) -> Content {
    let mut rows = Vec::new();
    for seen in all {
        for (pair, name) in ["B to C", "A to C, blocked"].into_iter().enumerate() {
            let ticks = seen.pings.iter().filter(|ping| ping.pair == pair);
            let ticks = ticks.map(|ping| (ping.at_s, tick(pair, ping.answered))).collect();
            rows.push(Row { name: format!("{}: {name}", seen.case), ticks });
        }
    }
    let last_s = all.iter().flat_map(|seen| &seen.pings).map(|ping| ping.at_s).fold(1.0, f64::max);
    let first = all.first().and_then(|seen| seen.crashes_s.first());
    let marks =
        first.map(|at| ReferenceLine::Vertical(*at, "the first exit()".to_owned())).into_iter().collect();
    Content::Timeline(Timeline { x: axis("seconds", Scale::Linear(0.0, last_s)), rows, marks })
}

fn tick(pair: usize, answered: bool) -> Tick {
    match (pair, answered) {
        (0, true) => Tick::Good,
        (1, false) => Tick::Held,
        _ => Tick::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(case: &'static str, b: bool, a: bool) -> Measured {
        let ping = |pair, at_s, answered| Ping { pair, at_s, answered };
        // Before the crash anything may be.
        let pings = vec![ping(0, 0.5, false), ping(1, 0.5, true), ping(0, 2.0, b), ping(1, 2.0, a)];
        Measured { case, crashes_s: vec![1.0], restarts: 1, node_ended: false, pings }
    }

    fn check(b: bool, a: bool, expected: [bool; 2]) {
        let claims = claims(&[seen("Burnet", b, a)]);
        assert_eq!([claims[0].holds, claims[1].holds], expected.map(Some));
    }

    #[test]
    fn one_ping_lost_or_through_is_enough() {
        check(false, false, [false, true]);
        check(true, true, [true, false]);
        check(true, false, [true, true]);
    }

    #[test]
    fn without_a_crash_nothing_is_shown() {
        let quiet = Measured { crashes_s: vec![], ..seen("Burnet", true, false) };
        assert_eq!(claims(&[quiet])[0].holds, Some(false));
    }

    #[test]
    fn of_the_baseline_nothing_is_asked() {
        assert!(claims(&[seen("monolithic", false, true)]).iter().all(|claim| claim.holds.is_none()));
    }

    #[test]
    fn a_crash_is_counted_once() {
        let app = json!({"status": {"last_end": {"unix_ms": 3000}}});
        assert_eq!(new_crash(&json!(null), 0.0, &[]), None);
        assert_eq!(new_crash(&app, 1000.0, &[]), Some(2.0));
        assert_eq!(new_crash(&app, 1000.0, &[2.0]), None);
    }
}
