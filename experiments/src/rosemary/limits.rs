//! An app's limits of processor time, descriptors and threads, while it takes as much as it can. The paper names
//! processor and descriptors as controlled (section 3.2, item 3), without measurements.

use crate::lab::Lab;
use crate::node::{Kind, Node};
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::median;
use lab::processes::{descriptors, processor_time, threads, tree};
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// What the app may have.
const CPU_PERCENT: f64 = 20.0;
const OPEN_FILES: usize = 64;
const PROCESSES: usize = 32;

const LOOK: Duration = Duration::from_millis(20);
/// Processor time is counted in hundredths of a second, so that a shorter step would measure the counting.
const STEP_S: f64 = 1.0;

#[derive(Clone, Debug, Serialize)]
struct Measured {
    attack: &'static str,
    /// Seconds, and what it had then: per cent of a core, descriptors or threads.
    looks: Vec<(f64, f64)>,
    /// What the app said of it.
    said: Option<String>,
    /// What of its limits the machine does not enforce, in the node's words.
    not_enforced: Vec<String>,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let mut seen = Vec::new();
    for attack in ["infinite-loop", "descriptor-leak", "thread-bomb"] {
        lab.say(&format!("limits: {attack}"));
        seen.push(watch(lab, attack)?);
    }
    Ok(Findings { claims: claims(&seen), data: json!(seen), figure: figure(&seen) })
}

fn watch(lab: &Lab, attack: &'static str) -> Result<Measured, String> {
    let configuration = format!(
        "[app.firewall]\n[app.misbehaving]\npath = \"{}\"\n[app.misbehaving.limits]\ncpu_percent = {CPU_PERCENT}\nopen_files = {OPEN_FILES}\n\
         processes = {PROCESSES}\n[app.misbehaving.settings]\nattack = \"{attack}\"\nquiet_s = 1\n",
        lab.misbehaving_program()?.display()
    );
    let node = Node::start(lab, Kind::Burnet, &configuration)?;
    node.wait(&["firewall", "misbehaving"])?;
    let app = node.app("misbehaving").unwrap_or_default();
    let processes = tree(app["status"]["pid"].as_u64().unwrap_or(0) as u32);
    // The app is the last of its zone's processes: launcher, init, app.
    let own = processes.last().copied().unwrap_or(0);
    let began = Instant::now();
    let (mut looks, mut step) = (Vec::new(), (0.0, processor_time(&processes)));
    while began.elapsed() < lab.time(9.0, 6.0) {
        std::thread::sleep(LOOK);
        let now_s = began.elapsed().as_secs_f64();
        match attack {
            "infinite-loop" if now_s - step.0 < STEP_S => {}
            "infinite-loop" => {
                let used = processor_time(&processes);
                looks.push((now_s, used.saturating_sub(step.1).as_secs_f64() / (now_s - step.0) * 100.0));
                step = (now_s, used);
            }
            "descriptor-leak" => looks.push((now_s, descriptors(own) as f64)),
            _ => looks.push((now_s, threads(own) as f64)),
        }
    }
    let log = node.log();
    let said = log
        .lines()
        .filter_map(|line| line.split_once("misbehaving: tried "))
        .map(|(_, said)| said.to_owned())
        .next_back();
    let gaps = app["status"]["not_enforced"].as_array().cloned().unwrap_or_default();
    let not_enforced = gaps.iter().map(|gap| format!("{}: {}", gap["limit"], gap["why"])).collect();
    Ok(Measured { attack, looks, said, not_enforced })
}

fn most(looks: &[(f64, f64)]) -> f64 {
    looks.iter().map(|(_, had)| *had).fold(0.0, f64::max)
}

fn claims(all: &[Measured]) -> Vec<Claim> {
    all.iter().map(claim).collect()
}

fn claim(seen: &Measured) -> Claim {
    let most = most(&seen.looks);
    let gaps = if seen.not_enforced.is_empty() {
        String::new()
    } else {
        format!("; not enforced: {}", seen.not_enforced.join(", "))
    };
    match seen.attack {
        // A control group gives its share in slices of a tenth of a second, of which one more may fall into a step.
        "infinite-loop" => {
            let typical = median(&seen.looks.iter().skip(3).map(|(_, had)| *had).collect::<Vec<_>>());
            let text = format!("{typical:.0} %, {most:.0} % in its worst second{gaps}");
            Claim::asked(
                "an app that spins, with cpu_percent = 20",
                "at most 20 % of a core",
                text,
                typical > 0.0 && typical <= CPU_PERCENT * 1.1,
            )
        }
        "descriptor-leak" => {
            let asks = ("an app that opens files, with open_files = 64", "at most 64, then denied");
            counted(seen, asks, OPEN_FILES, &gaps)
        }
        _ => {
            let asks = ("an app that starts threads, with processes = 32", "at most 32, then denied");
            counted(seen, asks, PROCESSES, &gaps)
        }
    }
}

/// Of what is counted one by one: never more than the limit, and the app was told.
fn counted(seen: &Measured, (what, asked): (&str, &str), limit: usize, gaps: &str) -> Claim {
    let most = most(&seen.looks);
    let said = seen.said.as_deref().unwrap_or("it said nothing");
    let denied = seen.said.as_ref().is_some_and(|said| said.contains("denied"));
    Claim::asked(what, asked, format!("{most:.0} seen; {said}{gaps}"), denied && most <= limit as f64)
}

fn figure(all: &[Measured]) -> Figure {
    let panel_of = |seen: &Measured| {
        let (title, label, limit) = match seen.attack {
            "infinite-loop" => ("It spins", "% of a core", CPU_PERCENT),
            "descriptor-leak" => ("It opens files", "descriptors", OPEN_FILES as f64),
            _ => ("It starts threads", "threads", PROCESSES as f64),
        };
        let points: Vec<Point> = seen.looks.iter().map(|(at, had)| Point::at(*at, *had)).collect();
        let last_s = seen.looks.last().map_or(1.0, |(at, _)| *at);
        let chart = Chart {
            x: axis("seconds; it begins after about 2", Scale::Linear(0.0, last_s)),
            y: axis(label, Scale::from_zero([limit * 1.4, most(&seen.looks)])),
            series: vec![series("the misbehaving app", Shape::Line, Style::Ours, points)],
            marks: vec![ReferenceLine::Horizontal(limit, format!("its limit: {limit:.0}"))],
        };
        panel(title, Content::Chart(chart))
    };
    Figure {
        title: "An app's limits, while it uses as much as it can".to_owned(),
        panels: all.iter().map(panel_of).collect(),
        notes: vec![
            "Not in the paper. Descriptors and threads are looked at every 20 ms: what was taken and given back between two looks is not \
             seen, which is why the app's own word is among the results."
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(attack: &'static str, had: f64, said: Option<&str>, expected: bool) {
        let looks = (0..8).map(|at| (f64::from(at), had)).collect();
        let seen = Measured { attack, looks, said: said.map(str::to_owned), not_enforced: vec![] };
        assert_eq!(claim(&seen).holds, Some(expected), "{attack} {had} {said:?}");
    }

    #[test]
    fn a_limit_held_only_if_the_app_reached_it() {
        check("infinite-loop", 0.0, None, false);
        check("infinite-loop", 100.0, None, false);
        check("infinite-loop", 20.0, None, true);
        check("descriptor-leak", 10.0, None, false);
        check("descriptor-leak", 10.0, Some("to open without end: it worked"), false);
        check("descriptor-leak", 65.0, Some("to open without end: denied: EMFILE"), false);
        check("descriptor-leak", 64.0, Some("to open without end: denied: EMFILE"), true);
        check("thread-bomb", 33.0, Some("denied"), false);
        check("thread-bomb", 12.0, Some("denied"), true);
    }
}
