//! How soon a killed process is noticed and restarted. The paper has a table of reactions (table 1) without
//! measurements.
//!
//! ```text
//!   kill -9 of an app's process      ──> noticed (the monitor's word) ──> back: it has subscribed again
//!   kill -9 of a service's process  ──> the same
//!   kill -9 of the kernel's process  ──> all of 16 emulated switches connected again; pings by the rules in the switches meanwhile
//! ```

use crate::lab::Lab;
use crate::network;
use crate::node::{Kind, Node, app_in, kill, serves, unix_ms};
use crate::paper::Findings;
use crate::pings::{Pinging, count};
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::{median, spread_point, spread_text};
use emulator::Handle;
use lab::processes::tree;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const SWITCHES: usize = 16;
const PINGS_EVERY: Duration = Duration::from_millis(20);
const PING_PATIENCE: Duration = Duration::from_millis(1000);

/// Times of one kind of death, in milliseconds.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    what: &'static str,
    /// Until the monitor knew; nothing where it does not say.
    noticed_ms: Vec<f64>,
    back_ms: Vec<f64>,
    pings: usize,
    answered: usize,
    /// Whether all rules that were in the switches still were.
    rules_whole: bool,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let times = lab.times(5, 2);
    let mut seen = vec![Measured { what: "app", rules_whole: true, ..Measured::default() }];
    for number in 0..times {
        lab.say(&format!("recovery: an app, {} of {times}", number + 1));
        kill_an_app(lab, &mut seen[0])?;
    }
    let mut kernel = Measured { what: "kernel, 16 switches", rules_whole: true, ..Measured::default() };
    for number in 0..times {
        lab.say(&format!("recovery: the kernel, {} of {times}", number + 1));
        kill_the_kernel(lab, &mut kernel)?;
    }
    seen.push(kernel);
    let mut service = Measured { what: "service", rules_whole: true, ..Measured::default() };
    for number in 0..times {
        lab.say(&format!("recovery: a service, {} of {times}", number + 1));
        kill_a_service(lab, &mut service)?;
    }
    // A node without a service has none that could be killed.
    if !service.back_ms.is_empty() {
        seen.push(service);
    }
    Ok(Findings { claims: claims(&seen), data: json!(seen), figure: figure(&seen) })
}

/// A node each time: the first restart comes at once, and that is what is measured.
fn kill_an_app(lab: &Lab, seen: &mut Measured) -> Result<(), String> {
    let node = Node::start(lab, Kind::Burnet, "[node]\nlog = \"error\"\n[app.hub]\n")?;
    node.wait(&["hub"])?;
    kill_one(&node, "hub", seen)
}

/// The first service that the node has, if it has one.
fn kill_a_service(lab: &Lab, seen: &mut Measured) -> Result<(), String> {
    let node = Node::start(lab, Kind::Burnet, "[node]\nlog = \"error\"\n[app.hub]\n")?;
    node.wait(&["hub"])?;
    let apps = node.ask(&json!("apps"))?;
    let all = apps["apps"].as_array().cloned().unwrap_or_default();
    let service = all.iter().find(|app| app["status"]["role"] == "service");
    let Some(name) = service.and_then(|app| app["status"]["app"].as_str()) else { return Ok(()) };
    let began = Instant::now();
    while !node.serves(name) {
        if began.elapsed() > PATIENCE {
            return Err(format!("the service {name} does not serve"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_one(&node, name, seen)
}

/// Kills the process of an app or service that serves, and waits until it serves again.
fn kill_one(node: &Node, name: &str, seen: &mut Measured) -> Result<(), String> {
    let before = node.app(name).ok_or("the app is not there")?;
    let mut line = node.line()?;
    // Below the launcher is init, and below that the app; without namespaces the launcher has become the app.
    let launcher = before["status"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let of_the_app = launcher.and_then(|pid| tree(pid).pop()).ok_or("it has no process")?;
    let (began, began_unix_ms) = (Instant::now(), unix_ms());
    kill(of_the_app.into())?;
    while began.elapsed() < PATIENCE {
        let app = app_in(line.ask(&json!("apps"))?, name).ok_or("the app is not there")?;
        if app["status"]["generation"] != before["status"]["generation"] && serves(&app) {
            seen.back_ms.push(began.elapsed().as_secs_f64() * 1000.0);
            // Both clocks are this machine's; the monitor's word is in whole milliseconds.
            let noticed =
                app["status"]["last_end"]["unix_ms"].as_f64().map(|at| (at - began_unix_ms).max(0.0));
            seen.noticed_ms.extend(noticed);
            return Ok(());
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    Err("the app did not come back".to_owned())
}

fn kill_the_kernel(lab: &Lab, seen: &mut Measured) -> Result<(), String> {
    let node = Node::start(lab, Kind::Burnet, "[node]\nlog = \"error\"\n[app.learning-switch]\n")?;
    let controller = node.wait(&["learning-switch"])?;
    let network = network::start(&format!("linear,{SWITCHES}"), controller)?;
    // Both ways, so that the rules of both are there.
    wait_for_a_ping(&network, ("h1", "h16"))?;
    wait_for_a_ping(&network, ("h16", "h1"))?;
    let rules: usize = network.switch_views().iter().map(|view| view.flow_entries).sum();
    let rules_before = rules_of_apps(&node)?;
    let pid = node.ask(&json!("node"))?["node"]["pid"].as_u64().unwrap_or(0);
    let before = network.counters().connections;
    let began = Instant::now();
    let mut pinging = Pinging::new(&network, &[("h1", "h16")], PINGS_EVERY, PING_PATIENCE, began);
    kill(pid)?;
    let mut fewest = rules;
    while network.counters().connections < before + SWITCHES as u64 {
        if began.elapsed() > PATIENCE {
            return Err("the switches did not come back".to_owned());
        }
        pinging.go_on();
        fewest = fewest.min(network.switch_views().iter().map(|view| view.flow_entries).sum());
        std::thread::sleep(Duration::from_millis(1));
    }
    seen.back_ms.push(began.elapsed().as_secs_f64() * 1000.0);
    let pings = pinging.finish();
    let (sent, answered) = count(&pings, 0, 0.0);
    seen.pings += sent;
    seen.answered += answered;
    let began = Instant::now();
    let rules_after = loop {
        match rules_of_apps(&node) {
            Ok(rules) => break rules,
            Err(why) if began.elapsed() > PATIENCE => return Err(why),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let lives_on = |(rule, lived_s): &(String, f64)| {
        rules_after.iter().any(|(other, now_s)| other == rule && now_s >= lived_s)
    };
    seen.rules_whole &= fewest >= rules && rules_before.iter().all(lives_on);
    network.stop();
    Ok(())
}

/// The rules of the learning switch in all switches, with their ages as the node reports them. A rule that was
/// deleted and added again has a new age.
fn rules_of_apps(node: &Node) -> Result<Vec<(String, f64)>, String> {
    let answer = node.ask(&json!({"flows": {"datapath": null}}))?;
    let switches = answer["flows"].as_array().ok_or("the node does not say its rules")?;
    if switches.len() < SWITCHES || switches.iter().any(|switch| !switch["trouble"].is_null()) {
        return Err("not all switches say their rules".to_owned());
    }
    let mut rules = Vec::new();
    for switch in switches {
        for flow in switch["flows"].as_array().into_iter().flatten() {
            if flow["owner"] == "learning-switch" {
                let (at, cookie) = (&switch["datapath"], &flow["cookie"]);
                let rule = format!("{at} {cookie} {} {}", flow["match"], flow["actions"]);
                rules.push((rule, flow["duration_s"].as_f64().unwrap_or(0.0)));
            }
        }
    }
    if rules.is_empty() {
        return Err("the switches have no rules, so nothing is shown".to_owned());
    }
    Ok(rules)
}

fn wait_for_a_ping(network: &Handle, (from, to): (&str, &str)) -> Result<(), String> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let report =
            network.begin_ping(from, to, Duration::from_secs(2)).map_err(|error| error.to_string())?;
        if report.recv().is_ok_and(|report| report.is_complete()) {
            return Ok(());
        }
    }
    Err(format!("{from} does not reach {to}"))
}

/// What is asked: noticed and back, in milliseconds.
fn asked_ms(what: &str) -> (Option<f64>, f64) {
    match what {
        "app" => (Some(10.0), 100.0),
        "service" => (Some(10.0), 300.0),
        _ => (None, 1000.0),
    }
}

fn claims(all: &[Measured]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for seen in all {
        let (noticed_asked, back_asked) = asked_ms(seen.what);
        if let Some(asked) = noticed_asked {
            let ms = median(&seen.noticed_ms);
            let holds = !seen.noticed_ms.is_empty() && ms <= asked;
            claims.push(Claim::asked(
                &format!("{} killed: noticed", seen.what),
                &format!("<= {asked} ms"),
                spread_text(&seen.noticed_ms, "ms", 1),
                holds,
            ));
        }
        let ms = median(&seen.back_ms);
        let holds = !seen.back_ms.is_empty() && ms <= back_asked;
        claims.push(
            Claim::asked(
                &format!("{} killed: back", seen.what),
                &format!("<= {back_asked} ms"),
                spread_text(&seen.back_ms, "ms", 1),
                holds,
            )
            .beside("restarted; not measured"),
        );
        if seen.pings > 0 {
            let text = format!("{} of {} pings answered", seen.answered, seen.pings);
            claims.push(Claim::asked(
                "kernel killed: hosts whose rules are in the switches, during the restart",
                "no ping lost",
                text,
                seen.answered == seen.pings,
            ));
            let text = if seen.rules_whole { "all there, all the time" } else { "some went" };
            claims.push(Claim::asked(
                "kernel killed: rules in the switches",
                "untouched",
                text,
                seen.rules_whole,
            ));
        }
    }
    claims
}

fn figure(all: &[Measured]) -> Figure {
    let names = Scale::Names(all.iter().map(|seen| seen.what.to_owned()).collect());
    let bars = |of: fn(&Measured) -> &[f64]| {
        let drawn = all.iter().enumerate().filter(|(_, seen)| !of(seen).is_empty());
        drawn.map(|(place, seen)| spread_point(place as f64, of(seen))).collect::<Vec<Point>>()
    };
    let chart = Chart {
        x: axis("killed with SIGKILL", names),
        y: axis("milliseconds", Scale::Decades(0.1, 10_000.0)),
        series: vec![
            series("noticed", Shape::Bars, Style::Other, bars(|seen| &seen.noticed_ms)),
            series("back", Shape::Bars, Style::Ours, bars(|seen| &seen.back_ms)),
        ],
        marks: vec![
            ReferenceLine::Horizontal(100.0, "asked of an app: 100 ms".to_owned()),
            ReferenceLine::Horizontal(300.0, "of a service: 300 ms".to_owned()),
            ReferenceLine::Horizontal(1000.0, "of the kernel: 1 s".to_owned()),
        ],
    };
    Figure {
        title: "Recovery time after a kill".to_owned(),
        panels: vec![panel("Burnet", Content::Chart(chart))],
        notes: vec![
            "Not in the paper. An app is back when it has subscribed again; the kernel when all 16 switches are connected \
             again. Each time with a node of its own."
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(noticed_ms: &[f64], back_ms: &[f64], expected: [bool; 2]) {
        let seen = Measured {
            what: "app",
            noticed_ms: noticed_ms.to_vec(),
            back_ms: back_ms.to_vec(),
            ..Measured::default()
        };
        let claims = claims(&[seen]);
        assert_eq!([claims[0].holds, claims[1].holds], expected.map(Some));
    }

    #[test]
    fn what_never_came_back_is_not_in_time() {
        check(&[], &[], [false, false]);
        check(&[12.0], &[120.0], [false, false]);
        check(&[2.0], &[60.0, 61.0, 900.0], [true, true]);
    }

    #[test]
    fn one_lost_ping_or_rule_is_enough() {
        let seen = Measured {
            what: "kernel",
            back_ms: vec![1.0],
            pings: 5,
            answered: 4,
            rules_whole: false,
            ..Measured::default()
        };
        let held: Vec<_> = claims(&[seen]).into_iter().map(|claim| claim.holds).collect();
        assert_eq!(held, [Some(true), Some(false), Some(false)]);
    }
}
