//! The 90 % rule: an app adds rules without end. The kernel refuses those that would fill more of a switch's table
//! than the operator allows.
//!
//! The paper has the threshold (section 3.2, item 4) and an alert. Burnet refuses rules above it. The paper has no
//! measurement of either.

use super::paper::paper;
use crate::lab::Lab;
use crate::network;
use crate::node::{Kind, Node};
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use emulator::{SwitchOptions, Versions};
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// The size of the emulated switch's table. The kernel requests the size after 256 rules, and accepts up to 1,024
/// until it has the answer. So a table of fewer than 1,024 entries can be filled in one burst.
const TABLE: u32 = 4000;
const LOOK: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, Serialize)]
struct Measured {
    percent: u8,
    table: u32,
    looks: Vec<(f64, usize)>,
    refusals: u64,
    /// Errors that the switch sent, as for a table that is full.
    errors: u64,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let paper = paper()?.table1;
    let percent = paper.rule_threshold_percent as u8;
    let mut seen = Vec::new();
    for percent in [percent, 50, 100] {
        lab.say(&format!("table-budget: {percent} %"));
        seen.push(watch(lab, percent)?);
    }
    Ok(Findings { claims: claims(&seen), data: json!(seen), figure: figure(&seen, &paper.place) })
}

fn watch(lab: &Lab, percent: u8) -> Result<Measured, String> {
    let configuration = format!(
        "[limits]\ntable_fill_percent = {percent}\n[app.firewall]\n[app.misbehaving]\npath = \"{}\"\n[app.misbehaving.settings]\nattack = \"table-flood\"\nagain = true\n",
        lab.misbehaving_program()?.display()
    );
    let node = Node::start(lab, Kind::Burnet, &configuration)?;
    let controller = node.wait(&["firewall"])?;
    let options = SwitchOptions {
        versions: Versions::Only13,
        n_tables: 1,
        max_entries: TABLE,
        ..SwitchOptions::default()
    };
    let network = network::start_with("single,2", controller, options)?;
    // What it floods are the switches that are there at its first tick: it is started when this one is.
    node.tell("misbehaving", "restart")?;
    let (began, mut looks) = (Instant::now(), Vec::new());
    while began.elapsed() < lab.time(6.0, 5.0) {
        let entries = network.switch_views().iter().map(|view| view.flow_entries).sum();
        looks.push((began.elapsed().as_secs_f64(), entries));
        std::thread::sleep(LOOK);
    }
    let refusals = node.app("misbehaving").and_then(|app| app["refusals"].as_u64()).unwrap_or(0);
    let errors = network.counters().errors;
    network.stop();
    Ok(Measured { percent, table: TABLE, looks, refusals, errors })
}

fn most(seen: &Measured) -> usize {
    seen.looks.iter().map(|(_, entries)| *entries).max().unwrap_or(0)
}

fn claims(all: &[Measured]) -> Vec<Claim> {
    let claim = |seen: &Measured| {
        let allowed = u64::from(seen.table) * u64::from(seen.percent) / 100;
        let most = most(seen);
        let text = format!(
            "{most} of {}; {} commands refused, {} errors of the switch",
            seen.table, seen.refusals, seen.errors
        );
        let asked = format!("at most {allowed} entries, and near them");
        // Rules are counted by estimate, never too low: a few fewer than allowed may fit.
        let holds = most as u64 <= allowed && most as u64 * 10 >= allowed * 9 && seen.refusals > 0;
        let claim = Claim::asked(
            &format!("an app adds 20,000 rules each second, table_fill_percent = {}", seen.percent),
            &asked,
            text,
            holds,
        );
        if seen.percent == 90 { claim.beside("an alert at 90 %; not measured") } else { claim }
    };
    all.iter().map(claim).collect()
}

fn figure(all: &[Measured], place: &str) -> Figure {
    let styles = [Style::Ours, Style::Other, Style::Baseline];
    let drawn = all.iter().zip(styles).map(|(seen, style)| {
        let points = seen.looks.iter().map(|(at, entries)| Point::at(*at, *entries as f64)).collect();
        series(&format!("table_fill_percent = {}", seen.percent), Shape::Line, style, points)
    });
    let last_s = all.iter().flat_map(|seen| &seen.looks).map(|(at, _)| *at).fold(1.0, f64::max);
    let table = f64::from(TABLE);
    let chart = Chart {
        x: axis("seconds", Scale::Linear(0.0, last_s)),
        y: axis("entries in the switch's table", Scale::Linear(0.0, table * 1.1)),
        series: drawn.collect(),
        marks: vec![
            ReferenceLine::Horizontal(table, format!("the table's size: {TABLE}")),
            ReferenceLine::Horizontal(table * 0.9, "90 %".to_owned()),
        ],
    };
    Figure {
        title: format!(
            "The 90 % rule: an app adds 20,000 rules each second to a switch with room for {TABLE}"
        ),
        panels: vec![panel("Burnet", Content::Chart(chart))],
        notes: vec![format!("The threshold is the paper's ({place}).")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entries: usize, refusals: u64, expected: bool) {
        let seen =
            Measured { percent: 90, table: 1000, looks: vec![(0.0, 1), (1.0, entries)], refusals, errors: 0 };
        assert_eq!(claims(&[seen])[0].holds, Some(expected), "{entries} {refusals}");
    }

    #[test]
    fn an_app_that_did_not_get_far_shows_nothing() {
        check(0, 0, false);
        check(300, 100, false);
        check(900, 0, false);
        check(901, 100, false);
        check(890, 100, true);
    }
}
