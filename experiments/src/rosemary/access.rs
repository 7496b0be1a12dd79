//! Figure 18: an app tries to access what is not its own: the node's files, another process's memory, another app's
//! rule.
//!
//! The paper's app requests the controller's database and is refused. This experiment tries three ways, each against
//! its own node. It repeats them against the baseline, where the same code runs in the kernel process and is granted
//! everything.

use super::paper::paper;
use crate::lab::Lab;
use crate::network;
use crate::node::{Kind, Node};
use crate::paper::Findings;
use crate::plot::{Content, Figure, LineKind, line, panel, quote};
use crate::report::Claim;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

const START_PATIENCE: Duration = Duration::from_secs(20);
/// It acts at its first tick, a second after it was started.
const WATCH: Duration = Duration::from_millis(2500);
/// A ping that must not be answered is waited for so long.
const BLOCKED_PATIENCE: Duration = Duration::from_millis(500);

/// What is tried.
const TRIES: [(&str, &str); 3] = [
    ("read-files", "read the node's configuration and log, and the machine's passwords"),
    ("read-memory", "read the memory of a process that is not its own"),
    ("change-others", "turn the firewall's rule from drop to forward"),
];

#[derive(Clone, Debug, Serialize)]
struct Measured {
    kind: &'static str,
    tried: &'static str,
    what: &'static str,
    /// What the app said in the node's log.
    lines: Vec<String>,
    /// Whether a ping came through the firewall afterwards.
    came_through: bool,
    /// Whether it got anything that is not its own.
    got_it: bool,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let mut seen = Vec::new();
    for (kind, name) in [(Kind::Burnet, "Burnet"), (Kind::Monolithic, "monolithic")] {
        for (tried, what) in TRIES {
            lab.say(&format!("fig18: {name}, {tried}"));
            seen.push(watch(lab, (kind, name), tried, what)?);
        }
    }
    let paper = paper()?;
    let figure = Figure {
        title: "Figure 18: an app accesses data of other apps".to_owned(),
        panels: vec![
            quote("Rosemary", &paper.fig18.place, &paper.fig18.says),
            panel("Burnet: what the app said that it tried", lines(&seen, "Burnet")),
            panel("The same code inside the kernel", lines(&seen, "monolithic")),
        ],
        notes: vec![
            "Each line is the app's own, from the node's log. That a command worked says that the switch did what the kernel let through: \
             of a change to another's rule, nothing but the app's own rules, of which none is meant."
                .to_owned(),
        ],
    };
    Ok(Findings { claims: claims(&seen), data: json!(seen), figure })
}

fn configuration(lab: &Lab, kind: Kind, tried: &str) -> Result<String, String> {
    let (path, grants) = match kind {
        Kind::Burnet => (lab.misbehaving_program()?, ""),
        Kind::Monolithic => (
            lab.misbehaving_object()?,
            "[app.misbehaving.capabilities]\n\"packet.in\" = true\n\"rule.write\" = true\n\"rule.write.others\" = true\n\"view.read\" = true\n",
        ),
    };
    Ok(format!(
        "[app.firewall]\n[app.firewall.settings]\nblock = [\"ip,nw_src=10.0.0.1,nw_dst=10.0.0.4\"]\n[app.learning-switch]\n\
         [app.misbehaving]\npath = \"{}\"\n{grants}[app.misbehaving.settings]\nattack = \"{tried}\"\nquiet_s = 1\nprocesses = [{}]\n\
         files = [\"/etc/shadow\", \"FOLDER/burnet.toml\", \"FOLDER/node.log\"]\n",
        path.display(),
        std::process::id()
    ))
}

fn watch(
    lab: &Lab,
    (kind, name): (Kind, &'static str),
    tried: &'static str,
    what: &'static str,
) -> Result<Measured, String> {
    let node = Node::start(lab, kind, &configuration(lab, kind, tried)?)?;
    let controller = node.wait(&["firewall", "learning-switch"])?;
    let network = network::start("single,4", controller)?;
    let began = Instant::now();
    while began.elapsed() < START_PATIENCE && !node.log().contains("misbehaving: tried ") {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(WATCH.min(lab.time(1.5, 1.2)));
    let ping = network.begin_ping("h1", "h4", BLOCKED_PATIENCE).map_err(|error| error.to_string())?;
    let came_through = ping.recv().is_ok_and(|report| report.is_complete());
    network.stop();
    let lines = tries(&node.log());
    let worked = lines.iter().any(|line| line.ends_with("it worked"));
    let got_it = if tried == "change-others" { came_through } else { worked };
    Ok(Measured { kind: name, tried, what, lines, came_through, got_it })
}

/// The lines of a log in which the app says what it tried.
fn tries(log: &str) -> Vec<String> {
    let of = |line: &str| line.split_once("misbehaving: tried ").map(|(_, tried)| tried.trim().to_owned());
    log.lines().filter_map(of).collect()
}

fn claims(all: &[Measured]) -> Vec<Claim> {
    let claim = |seen: &Measured| {
        let what = format!("{}: {}", seen.kind, seen.what);
        let said = seen.lines.last().cloned().unwrap_or_else(|| "it said nothing".to_owned());
        let text = format!("{}: {said}", if seen.got_it { "it got it" } else { "it did not" });
        match seen.kind {
            "Burnet" => Claim::asked(&what, "denied", text, !seen.got_it && !seen.lines.is_empty())
                .beside("ERR operation not permitted"),
            _ => Claim::seen(&what, text).beside("in Floodlight it gets it (figure 4)"),
        }
    };
    all.iter().map(claim).collect()
}

/// Lines of one try that are shown; there are more of the same.
const LINES_SHOWN: usize = 4;

fn lines(all: &[Measured], kind: &str) -> Content {
    let mut text = Vec::new();
    for seen in all.iter().filter(|seen| seen.kind == kind) {
        text.push(line(format!("To {}:", seen.what), LineKind::Heading));
        for said in seen.lines.iter().take(LINES_SHOWN) {
            let worked = said.ends_with("it worked");
            text.push(line(said, if worked { LineKind::Bad } else { LineKind::Good }));
        }
        if seen.tried == "change-others" {
            let (said, kind) = match seen.came_through {
                true => ("then a ping from 10.0.0.1 came through the firewall", LineKind::Bad),
                false => ("then the firewall still blocked 10.0.0.1", LineKind::Good),
            };
            text.push(line(said, kind));
        }
    }
    Content::Text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], got_it: bool, expected: bool) {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        let seen = Measured {
            kind: "Burnet",
            tried: "read-files",
            what: "read",
            lines,
            came_through: false,
            got_it,
        };
        assert_eq!(claims(&[seen])[0].holds, Some(expected));
    }

    #[test]
    fn an_app_that_said_nothing_shows_nothing() {
        check(&[], false, false);
        check(&["a: it worked"], true, false);
        check(&["a: denied: EPERM"], false, true);
    }

    #[test]
    fn its_tries_are_found_in_a_log() {
        let log = "x\n12:00 WARN app misbehaving: tried to read /a: denied: no\nmisbehaving: tried nothing\n";
        assert_eq!(tries(log), ["to read /a: denied: no", "nothing"]);
    }
}
