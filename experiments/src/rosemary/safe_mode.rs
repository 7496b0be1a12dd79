//! Safe mode, and the search for the culprit (the paper's section 3.2, item 6, and table 1, both without
//! measurements).
//!
//! ```text
//!   the kernel's process is killed whenever it is there ──> safe mode: listed apps run, the others are held ──> the operator leaves it
//!   a trusted app aborts, and the kernel with it        ──> who did it is named, and runs in a process zone from then on
//! ```
//!
//! Hosts with rules in their switches ping each other all the while.

use crate::lab::Lab;
use crate::network;
use crate::node::{Kind, Node, kill};
use crate::paper::Findings;
use crate::pings::{Ping, Pinging, count};
use crate::plot::{Content, Figure, ReferenceLine, Row, Scale, Tick, Timeline, axis, panel};
use crate::report::Claim;
use emulator::Handle;
use serde::Serialize;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_S: f64 = 0.02;
const EVERY: Duration = Duration::from_millis(50);
const PING_PATIENCE: Duration = Duration::from_millis(500);
/// How long safe mode is left on, so that it can be seen.
const STAY_S: f64 = 1.0;
/// The kernel's process is killed so often at most.
const KILLS_MAX: usize = 20;

#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    kills_s: Vec<f64>,
    safe_mode_s: Option<f64>,
    left_s: Option<f64>,
    /// When all apps ran again.
    whole_s: Option<f64>,
    /// In safe mode, each app with its state and zone.
    in_safe_mode: Vec<(String, String, String)>,
    /// When the operator's question was answered, and when not.
    operator: Vec<(f64, bool)>,
    pings: Vec<Ping>,
}

/// The result for the trusted app that aborted.
#[derive(Clone, Debug, Default, Serialize)]
struct Culprit {
    kernel_restarts: u64,
    named: Option<String>,
    zone: String,
    others_zone: String,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    lab.say("safe-mode: the kernel is killed again and again");
    let seen = kill_until_safe(lab)?;
    lab.say("safe-mode: a trusted app aborts");
    let culprit = abort_in_the_kernel(lab)?;
    Ok(Findings {
        claims: claims(&seen, &culprit),
        data: json!({"safe_mode": seen, "culprit": culprit}),
        figure: figure(&seen),
    })
}

/// A network whose switches have the rules for pings in both directions.
fn pinged_network(topology: &str, controller: std::net::SocketAddr) -> Result<Handle, String> {
    let network = network::start(topology, controller)?;
    network.ping_all(Duration::from_secs(2));
    Ok(network)
}

fn kill_until_safe(lab: &Lab) -> Result<Measured, String> {
    let configuration = "[node]\nlog = \"error\"\n[safe_mode]\napps = [\"firewall\", \"learning-switch\"]\n[app.hub]\nzone = \"trusted\"\n\
        [app.learning-switch]\n[app.firewall]\n";
    let node = Node::start(lab, Kind::Burnet, configuration)?;
    let controller = node.wait(&["firewall", "learning-switch", "hub"])?;
    let network = pinged_network("single,2", controller)?;
    let began = Instant::now();
    let mut pinging = Pinging::new(&network, &[("h1", "h2")], EVERY, PING_PATIENCE, began);
    let (mut seen, mut killed, mut looked_s) = (Measured::default(), Vec::new(), -1.0);
    while seen.whole_s.is_none() && began.elapsed() < PATIENCE {
        pinging.go_on();
        let now_s = began.elapsed().as_secs_f64();
        if now_s - looked_s > LOOK_S {
            looked_s = now_s;
            look(&node, now_s, &mut seen, &mut killed);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    seen.pings = pinging.finish();
    network.stop();
    Ok(seen)
}

/// One look at the node, and what is to be done next.
fn look(node: &Node, now_s: f64, seen: &mut Measured, killed: &mut Vec<u64>) {
    let answer = node.ask(&json!("node"));
    seen.operator.push((now_s, answer.is_ok()));
    let Ok(answer) = answer else { return };
    let pid = answer["node"]["pid"].as_u64().unwrap_or(0);
    match (seen.safe_mode_s, seen.left_s) {
        (None, _) if !answer["node"]["safe_mode"].is_null() => seen.safe_mode_s = Some(now_s),
        (None, _) if !killed.contains(&pid) && killed.len() < KILLS_MAX => {
            if kill(pid).is_ok() {
                killed.push(pid);
                seen.kills_s.push(now_s);
            }
        }
        (None, _) => {}
        (Some(since_s), None) if now_s - since_s > STAY_S => {
            seen.in_safe_mode = states(node);
            if node.ask(&json!("leave_safe_mode")).is_ok() {
                seen.left_s = Some(now_s);
            }
        }
        (Some(_), None) => {}
        (Some(_), Some(_)) => {
            if ["hub", "learning-switch", "firewall"].iter().all(|app| node.serves(app)) {
                seen.whole_s = Some(now_s);
            }
        }
    }
}

/// Each app, its state and its zone. A state is a word, or an object of one key.
fn states(node: &Node) -> Vec<(String, String, String)> {
    let apps = node.ask(&json!("apps")).unwrap_or_default();
    let of = |app: &Value| {
        let state = &app["status"]["state"];
        let word = state.as_str().map(str::to_owned).or_else(|| state.as_object()?.keys().next().cloned());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&app["status"]["app"]), word.unwrap_or_default(), text(&app["status"]["kind"]))
    };
    apps["apps"].as_array().into_iter().flatten().map(of).collect()
}

fn abort_in_the_kernel(lab: &Lab) -> Result<Culprit, String> {
    let configuration = format!(
        "[node]\nlog = \"error\"\n[app.hub]\nzone = \"trusted\"\n[app.misbehaving]\nzone = \"trusted\"\npath = \"{}\"\n\
         [app.misbehaving.settings]\nattack = \"abort\"\nquiet_s = 1\n",
        lab.misbehaving_object()?.display()
    );
    let node = Node::start(lab, Kind::Burnet, &configuration)?;
    let controller = node.wait(&["hub"])?;
    let network = pinged_network("single,2", controller)?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE
        && node.app("misbehaving").is_none_or(|app| app["status"]["demoted"].is_null())
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    let zone = |app: &str| states(&node).into_iter().find(|(name, ..)| name == app).map(|(.., zone)| zone);
    let kernel_restarts = node.ask(&json!("node"))?["node"]["kernel_restarts"].as_u64().unwrap_or(0);
    let culprit = Culprit {
        kernel_restarts,
        named: named(lab, &node),
        zone: zone("misbehaving").unwrap_or_default(),
        others_zone: zone("hub").unwrap_or_default(),
    };
    network.stop();
    Ok(culprit)
}

/// Whom the node names for the end of its kernel.
fn named(lab: &Lab, node: &Node) -> Option<String> {
    let state = node.folder().join("state");
    let ask = |words: &[&str]| {
        let mut command = Command::new(&lab.burnet);
        command.args(words).arg("--json").arg("--state").arg(&state).stdin(Stdio::null());
        serde_json::from_slice::<Value>(&command.output().ok()?.stdout).ok()
    };
    let ended = ask(&["incidents", "list"])?;
    let ended = ended.as_array()?.iter().find(|incident| incident["what"] == "kernel_ended")?.clone();
    let incident = ask(&["incidents", "show", &ended["number"].as_u64()?.to_string()])?;
    incident["finding"]["culprit"].as_str().map(str::to_owned)
}

fn claims(seen: &Measured, culprit: &Culprit) -> Vec<Claim> {
    let first_s = seen.kills_s.first().copied().unwrap_or(0.0);
    let after = |at: Option<f64>, from_s: f64| {
        at.map_or("it did not come to that".to_owned(), |at| format!("after {:.2} s", at - from_s))
    };
    let state = |app: &str| seen.in_safe_mode.iter().find(|(name, ..)| name == app);
    let runs = |app: &str| state(app).is_some_and(|(_, state, zone)| state == "running" && zone == "process");
    let written: Vec<String> =
        seen.in_safe_mode.iter().map(|(app, state, zone)| format!("{app} {state} ({zone})")).collect();
    let (sent, answered) = count(&seen.pings, 0, 0.0);
    let paper = "safe mode: basic services, then the apps of the administrator's list, none inside the kernel; not measured";
    vec![
        Claim::asked(
            "the kernel is killed after each start",
            "safe mode",
            format!("{} kills, {}", seen.kills_s.len(), after(seen.safe_mode_s, first_s)),
            seen.safe_mode_s.is_some(),
        )
        .beside(paper),
        Claim::asked(
            "what runs in safe mode",
            "the listed apps in process zones, the other held",
            written.join(", "),
            runs("firewall")
                && runs("learning-switch")
                && state("hub").is_some_and(|(_, state, _)| state == "held"),
        )
        .beside(paper),
        Claim::asked(
            "safe mode is left",
            "all apps run again",
            after(seen.whole_s, seen.left_s.unwrap_or(0.0)),
            seen.whole_s.is_some(),
        ),
        Claim::asked(
            "hosts with rules in their switch, all the while",
            "no ping lost",
            format!("{answered} of {sent} pings answered"),
            sent > 0 && sent == answered,
        ),
        Claim::asked(
            "a trusted app aborts, and the kernel with it",
            "it is named, and runs in a process zone from then on",
            format!(
                "named: {}; its zone: {}; kernel restarted {} times; the other trusted app's zone: {}",
                culprit.named.as_deref().unwrap_or("nobody"),
                culprit.zone,
                culprit.kernel_restarts,
                culprit.others_zone
            ),
            culprit.named.as_deref() == Some("misbehaving")
                && culprit.zone == "process"
                && culprit.kernel_restarts > 0,
        )
        .beside("restarted as a user app; the administrator is told the log's finding; not measured"),
    ]
}

fn figure(seen: &Measured) -> Figure {
    let tick = |answered: bool| if answered { Tick::Good } else { Tick::Bad };
    let rows = vec![
        Row {
            name: "hosts ping by rules".to_owned(),
            ticks: seen.pings.iter().map(|ping| (ping.at_s, tick(ping.answered))).collect(),
        },
        Row {
            name: "the operator asks the node".to_owned(),
            ticks: seen.operator.iter().map(|(at, answered)| (*at, tick(*answered))).collect(),
        },
        Row {
            name: "the kernel's process is killed".to_owned(),
            ticks: seen.kills_s.iter().map(|at| (*at, Tick::Bad)).collect(),
        },
    ];
    let marks = [(seen.safe_mode_s, "safe mode"), (seen.left_s, "left")];
    let marks = marks
        .into_iter()
        .filter_map(|(at, word)| Some(ReferenceLine::Vertical(at?, word.to_owned())))
        .collect();
    let last_s = seen.operator.last().map_or(1.0, |(at, _)| at + 0.2);
    let timeline = Timeline { x: axis("seconds", Scale::Linear(0.0, last_s)), rows, marks };
    Figure {
        title: "A kernel that is killed again and again: safe mode".to_owned(),
        panels: vec![panel("Burnet", Content::Timeline(timeline))],
        notes: vec![
            "Not measured in the paper. A question of the operator that is not answered is one while there is no kernel. The kernel is killed \
             by this experiment; in a network it would be a fault of ours or of a trusted app."
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(hub: &str, answered: bool) -> Measured {
        let app = |name: &str, state: &str| (name.to_owned(), state.to_owned(), "process".to_owned());
        Measured {
            kills_s: vec![1.0],
            safe_mode_s: Some(3.0),
            left_s: Some(4.0),
            whole_s: Some(5.0),
            in_safe_mode: vec![
                app("firewall", "running"),
                app("learning-switch", "running"),
                app("hub", hub),
            ],
            operator: vec![],
            pings: vec![Ping { pair: 0, at_s: 0.0, answered }],
        }
    }

    fn check(seen: &Measured, culprit: &Culprit, expected: [bool; 5]) {
        let held: Vec<bool> = claims(seen, culprit).iter().filter_map(|claim| claim.holds).collect();
        assert_eq!(held, expected);
    }

    #[test]
    fn each_thing_that_did_not_come_is_told() {
        let named = Culprit {
            kernel_restarts: 1,
            named: Some("misbehaving".to_owned()),
            zone: "process".to_owned(),
            others_zone: String::new(),
        };
        check(&Measured::default(), &Culprit::default(), [false; 5]);
        check(&seen("held", true), &named, [true; 5]);
        check(&seen("running", false), &named, [true, false, true, false, true]);
        check(
            &seen("held", true),
            &Culprit { zone: "trusted".to_owned(), ..named },
            [true, true, true, true, false],
        );
    }
}
