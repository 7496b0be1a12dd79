//! Figures 19 to 22: how many packet-ins a learning switch answers, as a user app (in a process zone) and as a kernel
//! app (trusted), and the cost of the checks.
//!
//! ```text
//!   two nodes, U-App and K-App ──burnet bench compare, round by round in turn──> rates, and the ratio of each pair of rounds
//! ```
//!
//! The speed of a machine varies with time. The ratio of two consecutive rounds varies less. The paper's 1 Gb/s link
//! is a rate that the generator does not exceed.

use super::paper::{Paper, paper};
use crate::lab::Lab;
use crate::node::{Kind, Node};
use crate::paper::Findings;
use crate::plot::{
    Axis, Chart, Content, Figure, Panel, Point, ReferenceLine, Scale, Shape, Style, axis, panel, quote,
    series,
};
use crate::report::Claim;
use crate::spread::{median, spread_point, spread_text};
use serde::Serialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// Payload of TCP in a second on an Ethernet of 1 Gb/s: of 1538 bytes that a full frame takes there, 1448 are payload.
const LINK_PAYLOAD_BITS_PER_S: f64 = 1e9 * 1448.0 / 1538.0;
/// A packet-in of OpenFlow 1.0 with a 64-byte frame, as cbench sends it.
const PACKET_IN_BITS: f64 = 82.0 * 8.0;
const HOSTS: usize = 100;
/// Behind a limit that nobody reaches, so that it is checked and refuses nothing.
const NO_LIMIT: u32 = 2_000_000_000;

/// What a link of 1 Gb/s carries, in packet-ins a second.
fn link_per_s() -> f64 {
    LINK_PAYLOAD_BITS_PER_S / PACKET_IN_BITS
}

/// One place on the x axis.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    x: f64,
    switches: usize,
    workers: usize,
    at_most_per_s: Option<f64>,
    user_per_s: Vec<f64>,
    kernel_per_s: Vec<f64>,
    ratios: Vec<f64>,
    /// What was not as asked for.
    incomplete: Vec<String>,
}

/// What is varied, and behind which link.
#[derive(Clone, Copy)]
struct Plan {
    name: &'static str,
    title: &'static str,
    by_switches: bool,
    capped: bool,
}

pub(super) fn fig19(lab: &Lab) -> Result<Findings, String> {
    measure(
        lab,
        Plan {
            name: "fig19",
            title: "Figure 19: throughput by switches, at 1 Gb/s",
            by_switches: true,
            capped: true,
        },
    )
}

pub(super) fn fig20(lab: &Lab) -> Result<Findings, String> {
    measure(
        lab,
        Plan {
            name: "fig20",
            title: "Figure 20: throughput by threads, at 1 Gb/s",
            by_switches: false,
            capped: true,
        },
    )
}

pub(super) fn fig21(lab: &Lab) -> Result<Findings, String> {
    measure(
        lab,
        Plan {
            name: "fig21",
            title: "Figure 21: maximum throughput by the number of switches",
            by_switches: true,
            capped: false,
        },
    )
}

pub(super) fn fig22(lab: &Lab) -> Result<Findings, String> {
    measure(
        lab,
        Plan {
            name: "fig22",
            title: "Figure 22: maximum throughput by the number of threads",
            by_switches: false,
            capped: false,
        },
    )
}

fn measure(lab: &Lab, plan: Plan) -> Result<Findings, String> {
    let places: Vec<(usize, usize)> = match plan.by_switches {
        true => [1, 4, 16, 64].map(|switches| (switches, 1)).into(),
        false => [1, 2, 4].map(|workers| (64, workers)).into(),
    };
    let mut seen = Vec::new();
    for (switches, workers) in places.into_iter().take(lab.times(4, 2)) {
        lab.say(&format!("{}: {switches} switches, {workers} threads", plan.name));
        let (user, kernel) =
            (learning_switch(lab, &process(ALL_CHECKS), workers)?, learning_switch(lab, TRUSTED, workers)?);
        let load = Load { switches, at_most_per_s: plan.capped.then(link_per_s), rounds: lab.times(2, 1) };
        let compared = compare(lab, user.1, kernel.1, &load)?;
        seen.push(Measured {
            x: if plan.by_switches { switches } else { workers } as f64,
            switches,
            workers,
            at_most_per_s: load.at_most_per_s,
            user_per_s: rates(&compared["a"]),
            kernel_per_s: rates(&compared["b"]),
            ratios: numbers(&compared["ratio"]["pairs"]),
            incomplete: incomplete(&compared),
        });
    }
    let paper = paper()?;
    Ok(Findings {
        claims: claims(plan, &paper, &seen),
        data: json!(seen),
        figure: figure(plan, &paper, &seen),
    })
}

/// All that can be checked of this app: tables, priorities, ports, how many rules, how many commands a second; it keeps within all. A
/// flowspace cannot be among them: what is in a switch's buffer cannot be compared with one, and these packets are.
const ALL_CHECKS: &str = "[app.learning-switch.capabilities]\n\"view.read\" = true\n\"packet.in\" = true\n\
    \"packet.out\" = { ports = [1, 2, 3, 4, \"FLOOD\"] }\n\
    \"rule.write\" = { tables = [0], priority = [100, 100], ports = [1, 2, 3, 4], rules_per_datapath = NO_LIMIT }\n\
    [app.learning-switch.quotas]\ncommands_per_s = NO_LIMIT\npacket_outs_per_s = NO_LIMIT\n";
/// What an app gets that the operator names and says no more of.
const NO_BOUNDS: &str = "";
const TRUSTED: &str = "zone = \"trusted\"\n";

fn process(checks: &str) -> String {
    checks.replace("NO_LIMIT", &NO_LIMIT.to_string())
}

/// A node with the learning switch, and where it listens.
fn learning_switch(lab: &Lab, lines: &str, workers: usize) -> Result<(Node, SocketAddr), String> {
    let configuration =
        format!("[southbound]\nworkers = {workers}\n[node]\nlog = \"error\"\n[app.learning-switch]\n{lines}");
    let node = Node::start(lab, Kind::Burnet, &configuration)?;
    let address = node.wait(&["learning-switch"])?;
    Ok((node, address))
}

/// What the generator is told.
struct Load {
    switches: usize,
    at_most_per_s: Option<f64>,
    rounds: usize,
}

impl Load {
    fn arguments(&self, lab: &Lab) -> Vec<String> {
        let seconds = lab.time(0.7, 0.2).as_secs_f64();
        let mut words = format!(
            "--json --switches {} --hosts {HOSTS} --seconds {seconds} --rounds {} --warmup 1 --patience 20",
            self.switches, self.rounds
        );
        if let Some(per_s) = self.at_most_per_s {
            words.push_str(&format!(" --at-most {per_s:.0}"));
        }
        words.split(' ').map(str::to_owned).collect()
    }
}

/// `burnet bench compare`, and its report. That it is incomplete is in the report.
fn compare(lab: &Lab, a: SocketAddr, b: SocketAddr, load: &Load) -> Result<Value, String> {
    let mut command = Command::new(&lab.burnet);
    command
        .args(["bench", "compare"])
        .args([a, b].map(|address| address.to_string()))
        .args(load.arguments(lab));
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.map_err(|error| format!("burnet bench cannot be run: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("burnet bench printed no report: {error}"))
}

fn rates(report: &Value) -> Vec<f64> {
    let rounds = report["rounds"].as_array().cloned().unwrap_or_default();
    rounds.iter().filter_map(|round| round["responses_per_s"].as_f64()).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

fn incomplete(compared: &Value) -> Vec<String> {
    let of = |side: &str| compared[side]["incomplete"].as_str().map(|why| format!("{side}: {why}"));
    ["a", "b"].into_iter().filter_map(of).collect()
}

fn most(seen: &[Measured], of: fn(&Measured) -> &[f64]) -> f64 {
    seen.iter().map(|seen| spread_point(0.0, of(seen)).y).fold(0.0, f64::max)
}

fn millions(per_s: f64) -> String {
    format!("{:.2} million/s", per_s / 1e6)
}

fn claims(plan: Plan, paper: &Paper, seen: &[Measured]) -> Vec<Claim> {
    let (user, kernel) = (most(seen, |seen| &seen.user_per_s), most(seen, |seen| &seen.kernel_per_s));
    let ratios: Vec<f64> = seen.iter().flat_map(|seen| &seen.ratios).copied().collect();
    let ratio = median(&ratios);
    let said = if plan.capped {
        &paper.throughput.user_by_kernel_1g_says
    } else {
        &paper.throughput.user_by_kernel_10g_says
    };
    let least = if plan.capped { 0.95 } else { 0.8 };
    let kernel_said = match plan.capped {
        true => "nearly what the link carries".to_owned(),
        false => format!(
            "more than {:.0} million/s (64 switches, up to 16 threads, two machines)",
            paper.throughput.kernel_app_most_per_s / 1e6
        ),
    };
    let mut claims = vec![
        Claim::seen("a trusted app (K-App), maximum", millions(kernel)).beside(&kernel_said),
        Claim::seen("an app in a process zone (U-App), maximum", millions(user)),
        Claim::asked(
            "U-App by K-App, all checks on",
            &format!(">= {least}"),
            spread_text(&ratios, "", 2),
            ratio >= least,
        )
        .beside(said),
    ];
    if plan.capped {
        claims.push(Claim::seen(
            "what 1 Gb/s carries",
            format!(
                "{}, of which the trusted app answered {:.0} % at most",
                millions(link_per_s()),
                kernel / link_per_s() * 100.0
            ),
        ));
    }
    let trouble: Vec<&str> = seen.iter().flat_map(|seen| &seen.incomplete).map(String::as_str).collect();
    if !trouble.is_empty() {
        claims.push(Claim::seen("not as asked for", trouble.join("; ")));
    }
    claims
}

fn figure(plan: Plan, paper: &Paper, seen: &[Measured]) -> Figure {
    let throughput = &paper.throughput;
    let (place, says) = match plan.name {
        "fig19" => (&throughput.where_1g, &throughput.fig19_says),
        "fig20" => (&throughput.where_1g, &throughput.fig20_says),
        "fig21" => (&throughput.where_10g, &throughput.fig21_says),
        _ => (&throughput.where_10g, &throughput.fig22_says),
    };
    let said_by_paper =
        if plan.capped { throughput.user_by_kernel_1g } else { throughput.user_by_kernel_10g };
    Figure {
        title: plan.title.to_owned(),
        panels: vec![
            quote("Rosemary", place, says),
            panel("Burnet", Content::Chart(rates_chart(plan, seen))),
            panel("The price of a process zone", Content::Chart(ratio_chart(plan, seen, said_by_paper))),
        ],
        notes: vec![format!(
            "The paper measures with {}, a machine for the controller and one for the generator, 8 threads and more; here both share one \
                 machine. The bar at a point shows the minimum and the maximum of its rounds. Only the ratio is comparable.",
            throughput.tool
        )],
    }
}

/// The largest value of the x axis.
fn last_place(seen: &[Measured]) -> f64 {
    seen.iter().map(|seen| seen.x).fold(2.0, f64::max)
}

fn x_axis(plan: Plan, seen: &[Measured]) -> Axis {
    let label = match plan.by_switches {
        true => "switches, of 100 hosts each; 1 thread of the node",
        false => "threads of the node; 64 switches of 100 hosts each",
    };
    axis(label, Scale::Doubling(1.0, last_place(seen)))
}

fn points(seen: &[Measured], values: fn(&Measured) -> &[f64]) -> Vec<Point> {
    seen.iter().map(|seen| spread_point(seen.x, values(seen))).collect()
}

fn rates_chart(plan: Plan, seen: &[Measured]) -> Chart {
    let (user, kernel) = (points(seen, |seen| &seen.user_per_s), points(seen, |seen| &seen.kernel_per_s));
    let tops = user.iter().chain(&kernel).map(|point| point.spread.map_or(point.y, |(_, most)| most));
    let link = plan.capped.then(link_per_s);
    let y = axis("answers a second", Scale::from_zero(tops.chain(link)));
    let marks = link.map(|per_s| ReferenceLine::Horizontal(per_s, "what 1 Gb/s carries".to_owned()));
    Chart {
        x: x_axis(plan, seen),
        y,
        series: vec![
            series("process zone, all checks (U-App)", Shape::Line, Style::Ours, user),
            series("trusted (K-App)", Shape::Line, Style::Other, kernel),
        ],
        marks: marks.into_iter().collect(),
    }
}

fn ratio_chart(plan: Plan, seen: &[Measured], (least, most): (f64, f64)) -> Chart {
    let at = |ratio| vec![Point::at(1.0, ratio), Point::at(last_place(seen), ratio)];
    let mut drawn = vec![
        series("Burnet", Shape::Line, Style::Ours, points(seen, |seen| &seen.ratios)),
        series("Rosemary, least and most that the text says", Shape::Line, Style::Paper, at(least)),
    ];
    if most > least {
        drawn.push(series("", Shape::Line, Style::Paper, at(most)));
    }
    Chart {
        x: x_axis(plan, seen),
        y: axis("U-App by K-App", Scale::Linear(0.0, 1.4)),
        series: drawn,
        marks: vec![],
    }
}

/// How much an app is checked, against a trusted app of which nothing is said.
#[derive(Clone, Debug, Serialize)]
struct Price {
    name: &'static str,
    at_most_per_s: Option<f64>,
    ratios: Vec<f64>,
    per_s: Vec<f64>,
    trusted_per_s: Vec<f64>,
    incomplete: Vec<String>,
}

pub(super) fn price(lab: &Lab) -> Result<Findings, String> {
    let trusted = learning_switch(lab, TRUSTED, 1)?;
    let mut prices = Vec::new();
    for (name, checks, capped) in
        [("no bounds", NO_BOUNDS, false), ("all", ALL_CHECKS, false), ("all, 1 Gb/s", ALL_CHECKS, true)]
    {
        lab.say(&format!("price: {name}"));
        let user = learning_switch(lab, &process(checks), 1)?;
        let load = Load { switches: 16, at_most_per_s: capped.then(link_per_s), rounds: lab.times(5, 1) };
        let compared = compare(lab, user.1, trusted.1, &load)?;
        prices.push(Price {
            name,
            at_most_per_s: load.at_most_per_s,
            ratios: numbers(&compared["ratio"]["pairs"]),
            per_s: rates(&compared["a"]),
            trusted_per_s: rates(&compared["b"]),
            incomplete: incomplete(&compared),
        });
    }
    let paper = paper()?;
    let claims = prices.iter().map(|price| price_claim(price, &paper)).collect();
    let figure = price_figure(&prices, &paper);
    Ok(Findings { claims, data: json!(prices), figure })
}

fn price_claim(price: &Price, paper: &Paper) -> Claim {
    let (least, says) = match price.at_most_per_s {
        Some(_) => (0.95, &paper.throughput.user_by_kernel_1g_says),
        None => (0.8, &paper.throughput.user_by_kernel_10g_says),
    };
    let ratio = median(&price.ratios);
    let measured = format!("{}; {}", spread_text(&price.ratios, "", 2), millions(median(&price.per_s)));
    let measured = price.incomplete.iter().fold(measured, |text, why| format!("{text}; {why}"));
    Claim::asked(
        &format!("process zone by trusted, checks: {}", price.name),
        &format!(">= {least}"),
        measured,
        ratio >= least,
    )
    .beside(says)
}

fn price_figure(prices: &[Price], paper: &Paper) -> Figure {
    let names = Scale::Names(prices.iter().map(|price| price.name.to_owned()).collect());
    let points =
        prices.iter().enumerate().map(|(place, price)| spread_point(place as f64, &price.ratios)).collect();
    let chart = Chart {
        x: axis("checks", names.clone()),
        y: axis("process zone by trusted", Scale::Linear(0.0, 1.4)),
        series: vec![series("Burnet, 16 switches, 1 thread", Shape::Bars, Style::Ours, points)],
        marks: vec![
            ReferenceLine::Horizontal(0.8, "asked: 0.8".to_owned()),
            ReferenceLine::Horizontal(0.95, "at 1 Gb/s: 0.95".to_owned()),
        ],
    };
    let (ten, one) = (paper.throughput.user_by_kernel_10g, paper.throughput.user_by_kernel_1g);
    let bar =
        |x, (least, most): (f64, f64)| Point { x, y: (least + most) / 2.0, spread: Some((least, most)) };
    let theirs = Chart {
        x: axis("link", Scale::Names(vec!["10 Gb/s".to_owned(), "1 Gb/s".to_owned()])),
        y: axis("user app by kernel app", Scale::Linear(0.0, 1.4)),
        series: vec![series(
            "Rosemary, what its text says",
            Shape::Bars,
            Style::Paper,
            vec![bar(0.0, ten), bar(1.0, one)],
        )],
        marks: vec![],
    };
    let panels: Vec<Panel> =
        vec![panel("The paper, section 6", Content::Chart(theirs)), panel("Burnet", Content::Chart(chart))];
    Figure {
        title: "The cost of isolating an app, and of checking its commands".to_owned(),
        panels,
        notes: vec![
            "no bounds: capabilities alone. all: tables, priorities, ports, a quota of rules, of commands and of packet-outs a second too. The \
             trusted app has no bounds."
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabit_carries_as_many_packet_ins_as_fit() {
        assert_eq!(link_per_s() as u64, 1435186);
    }

    fn check(ratios: &[f64], capped: bool, expected: bool) {
        let price = Price {
            name: "all",
            at_most_per_s: capped.then_some(1.0),
            ratios: ratios.to_vec(),
            per_s: vec![],
            trusted_per_s: vec![],
            incomplete: vec![],
        };
        assert_eq!(price_claim(&price, &paper().unwrap()).holds, Some(expected));
    }

    #[test]
    fn behind_a_link_more_is_asked_and_nothing_measured_is_nothing_reached() {
        check(&[], false, false);
        check(&[0.9], false, true);
        check(&[0.9], true, false);
        check(&[0.99, 0.1, 0.99], true, true);
    }

    #[test]
    fn what_a_report_lacks_is_not_made_up() {
        assert!(rates(&json!({"rounds": [{}, {"responses_per_s": "many"}]})).is_empty());
        assert_eq!(numbers(&json!([1, null, 2.5])), [1.0, 2.5]);
        assert_eq!(incomplete(&json!({"a": {"incomplete": null}, "b": {"incomplete": "lost"}})), ["b: lost"]);
    }
}
