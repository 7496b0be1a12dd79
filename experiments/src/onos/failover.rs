//! What hosts lose when a link of their path fails: with a restored intent, and with a protected one.
//!
//! ```text
//!   host ──10,000 datagrams a second──> six switches ──> host        a cable between fails
//!     restored:  port status ──> node ──> other path ──> flow mods      lost: what was sent meanwhile
//!     protected: the switch changes over by its own group               lost: what was on its way
//! ```
//!
//! In: a node with intents, the paper's network. Out: lost datagrams, and so the time without connection.

use super::bed::wait_until;
use super::flows::payload;
use super::reroute::{SERVICES, Trial};
use super::wan::cable_name;
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::{median, spread_point, spread_text};
use emulator::host::flow::FlowSpec;
use flow::{Field, Match};
use paths_contract::{Question, SERVICE};
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use std::time::Duration;
use view::{Ends, Protection, Wanted};

/// Datagrams a second, and their payload.
const PER_S: u64 = 10_000;
const PAYLOAD_BYTES: usize = 100;
const MS_OF_ONE: f64 = 1000.0 / PER_S as f64;

const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;

const ASKED_RESTORED_MS: f64 = 20.0;

/// Datagrams that can be on their way: on a cable or in a switch, at one every 0.1 ms and links without delay.
const ON_THE_WAY: u64 = 3;

/// What was measured.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    restored_lost: Vec<u64>,
    protected_lost: Vec<u64>,
    sent: u64,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let mut trial = Trial::start(lab, &SERVICES)?;
    let pair = trial.detour.moved.first().copied().ok_or("no pair has a path over the cable")?;
    let mut seen = Measured::default();
    let times = lab.times(20, 1);
    for (protection, word) in [(Protection::Restored, "restored"), (Protection::Protected, "protected")] {
        for number in 0..times {
            lab.say(&format!("failover: {word}, {} of {times}", number + 1));
            let (lost, sent) = one_failure(lab, &mut trial, pair, protection)?;
            seen.sent += sent;
            match protection {
                Protection::Restored => seen.restored_lost.push(lost),
                Protection::Protected => seen.protected_lost.push(lost),
            }
        }
    }
    Ok(Findings { claims: claims(&seen), data: json!(seen), figure: figure(&seen) })
}

/// Connects the pair, lets one host send, takes a cable of the path down, and counts what is lost.
fn one_failure(
    lab: &Lab,
    trial: &mut Trial,
    (from, to): (usize, usize),
    protection: Protection,
) -> Result<(u64, u64), String> {
    connect(trial, (from, to), protection)?;
    let spec = FlowSpec {
        payload_bytes: PAYLOAD_BYTES,
        ..FlowSpec::udp(format!("h{}", from + 1), format!("h{}", to + 1), PAYLOAD_BYTES as u64 * 8 * PER_S)
    };
    let flow = trial.network.start_flow(spec).map_err(|error| error.to_string())?;
    let delivered =
        |trial: &Trial| trial.network.flow_report(flow).map_or(0, |report| report.delivered_packets);
    wait_until("datagrams arrive", || Ok(delivered(trial) > 100))?;
    let cable = busy_cable(trial)?;
    std::thread::sleep(lab.time(0.2, 0.05));
    trial.set_cable(cable, false)?;
    std::thread::sleep(lab.time(0.5, 0.3));
    let at_failure = delivered(trial);
    wait_until("datagrams arrive again", || Ok(delivered(trial) > at_failure + 100))?;
    trial.network.stop_flow(flow);
    std::thread::sleep(Duration::from_millis(20));
    let report = trial.network.flow_report(flow).ok_or("the flow is gone")?;
    withdraw(trial)?;
    trial.heal(cable)?;
    Ok((report.lost_packets, report.sent_packets))
}

/// A cable between two switches in the middle of the path that carries the datagrams.
fn busy_cable(trial: &Trial) -> Result<(usize, usize), String> {
    let count = || -> HashMap<String, u64> {
        let links = trial.network.link_counters().into_iter();
        links.map(|(name, counters)| (name, counters.forth.sent + counters.back.sent)).collect()
    };
    let before = count();
    std::thread::sleep(Duration::from_millis(30));
    let after = count();
    let is_busy = |cable: &&(usize, usize)| {
        let name = cable_name(**cable);
        let frames = |counts: &HashMap<String, u64>| {
            counts.iter().find(|(known, _)| is_link(known, &name)).map_or(0, |(_, frames)| *frames)
        };
        frames(&after) > frames(&before) + 20
    };
    let busy: Vec<(usize, usize)> = trial.detour.wan.cables.iter().filter(is_busy).copied().collect();
    let wanted = busy.iter().find(|cable| **cable == trial.detour.cable).or(busy.get(busy.len() / 2));
    wanted.copied().ok_or_else(|| "no cable carries the datagrams".to_owned())
}

/// Whether a link's name, which may have ports, is that of a cable.
fn is_link(known: &str, name: &str) -> bool {
    let bare = |text: &str| {
        text.split('-').map(|end| end.split('.').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    bare(known) == bare(name)
}

/// Connects two switches' hosts: address resolution in both directions, and IPv4 in one, which is what the datagrams need.
fn connect(trial: &mut Trial, pair: (usize, usize), protection: Protection) -> Result<(), String> {
    let wan = &trial.detour.wan;
    let add = |(from, to): (usize, usize), ether_type: u16, protection| {
        let intent = Wanted {
            ends: Ends::PointToPoint { from: wan.edge(from), to: wan.edge(to) },
            selector: Match::any().with(Field::EthType, ether_type),
            treatment: Vec::new(),
            constraints: Default::default(),
            priority: view::INTENT_PRIORITY,
            protection,
        };
        payload(&Question::Add { name: String::new(), intent, annotations: Default::default() })
    };
    let back = (pair.1, pair.0);
    let questions = vec![
        add(pair, ARP, Protection::Restored),
        add(back, ARP, Protection::Restored),
        add(pair, IPV4, protection),
    ];
    trial.add(questions, 3).map(drop)
}

fn withdraw(trial: &mut Trial) -> Result<(), String> {
    let ids = super::install::ids_behind(trial, 0)?;
    let questions =
        ids.into_iter().map(|id| payload(&Question::Withdraw { id: view::IntentId(id) })).collect();
    trial.bed.load(SERVICE, questions)?;
    trial.bed.ask(8)?;
    trial.bed.asked()?;
    wait_until("no intent is left", || Ok(trial.counts()?.intents == 0))
}

fn in_ms(lost: &[u64]) -> Vec<f64> {
    lost.iter().map(|lost| *lost as f64 * MS_OF_ONE).collect()
}

fn claims(seen: &Measured) -> Vec<Claim> {
    let restored = in_ms(&seen.restored_lost);
    let most = seen.protected_lost.iter().copied().max();
    vec![
        Claim::asked(
            "a restored intent, 206 switches: time without connection",
            "median <= 20 ms",
            spread_text(&restored, "ms", 1),
            !restored.is_empty() && median(&restored) <= ASKED_RESTORED_MS,
        ),
        Claim::asked(
            "a protected intent: datagrams lost, one every 0.1 ms",
            &format!("only those on their way: <= {ON_THE_WAY} each time"),
            format!("{:?}", seen.protected_lost),
            most.is_some_and(|most| most <= ON_THE_WAY),
        ),
        Claim::seen("datagrams sent in all rounds", seen.sent.to_string()),
    ]
}

fn figure(seen: &Measured) -> Figure {
    let values = [in_ms(&seen.restored_lost), in_ms(&seen.protected_lost)];
    let points = values.iter().enumerate().filter(|(_, values)| !values.is_empty());
    let points = points.map(|(place, values)| spread_point(place as f64, values)).collect();
    let most = values.iter().flatten().copied().fold(ASKED_RESTORED_MS * 1.1, f64::max);
    let names = ["restored", "protected"].map(str::to_owned).to_vec();
    let chart = Chart {
        x: axis("the intent", Scale::Names(names)),
        y: axis("milliseconds without connection", Scale::from_zero([most])),
        series: vec![series("median, least and most", Shape::Bars, Style::Ours, points)],
        marks: vec![ReferenceLine::Horizontal(ASKED_RESTORED_MS, "asked of restored: 20 ms".to_owned())],
    };
    Figure {
        title: "A link of the path fails".to_owned(),
        panels: vec![panel("206 switches, 10,000 datagrams a second", Content::Chart(chart))],
        notes: vec!["Lost datagrams times 0.1 ms. The paper has no figure of it.".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_judged_by_itself() {
        let check = |restored: &[u64], protected: &[u64], expected: [bool; 2]| {
            let seen = Measured {
                restored_lost: restored.to_vec(),
                protected_lost: protected.to_vec(),
                ..Measured::default()
            };
            let claims = claims(&seen);
            assert_eq!([claims[0].holds, claims[1].holds], expected.map(Some));
        };
        check(&[], &[], [false, false]);
        check(&[200], &[0, 3], [true, true]);
        check(&[201], &[0, 4], [false, false]);
    }

    #[test]
    fn a_links_name_can_have_ports() {
        assert!(is_link("s1-s12", "s1-s12") && is_link("s1.3-s12.2", "s1-s12"));
        assert!(!is_link("s1-s2", "s1-s12"));
    }
}
