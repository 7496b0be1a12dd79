//! Figure 2: with labels, three flows at t1, t2 and t3 take paths that do not collide.

use super::paper::{Gbps, Labelled, paper};
use super::run::Recording;
use super::setting::{BLUE, FLOWS, FigureFlow, G, MS, RED, fabric, plans, rate_claim, slips};
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, LineKind, ReferenceLine, Scale, axis, line, panel, quote};
use crate::report::Claim;
use rehearsal::{Choose, Demand, Fabric, Rig, SliceNo, Telling};
use serde_json::{Value, json};

/// How long each phase lasts, in ms.
const PHASE_MS: usize = 1_000;
const SHORT_PHASE_MS: usize = 150;
/// C sends 10 Gb/s for 2 of 5 ms: twice the rate of its VNIC on average.
const BURSTS: Demand = Demand::Bursts { bps: 10 * G, on_ns: 2 * MS, period_ns: 5 * MS };
/// The links between the switches in the direction of the flows.
const LINKS: [&str; 4] = ["s3-s1", "s1-s4", "s3-s2", "s2-s4"];

/// What is expected of a phase: rates by flow, and labels of the two ways over the spines by definition, in Gb/s.
struct Expected {
    rates: &'static [(&'static str, f64)],
    red: [f64; 2],
    blue: [f64; 2],
}

/// The label of a link is 10 Gb/s minus the nominal rates of the other tenant's flows: 8 for A to B, 10 for E to F, 2 for C to D.
const PHASES: [Expected; 3] = [
    Expected { rates: &[("A to B", 10.0)], red: [10.0, 10.0], blue: [2.0, 10.0] },
    Expected { rates: &[("A to B", 10.0), ("E to F", 10.0)], red: [10.0, 0.0], blue: [2.0, 10.0] },
    Expected {
        rates: &[("A to B", 8.0), ("E to F", 10.0), ("C to D", 2.0)],
        red: [8.0, 0.0],
        blue: [2.0, 10.0],
    },
];

/// What was seen of a phase.
struct Phase {
    means: Vec<(&'static str, f64)>,
    near_ms: Option<f64>,
    /// Of red and of blue: the labels that the tenants were told, in Gb/s, by link.
    red: Vec<f64>,
    blue: Vec<f64>,
    /// From the first packet to the meter's report at the service.
    report_ms: f64,
    path: String,
}

/// Runs it.
///
/// # Errors
/// The paper's numbers or the tenants cannot be.
pub fn run_figure(lab: &Lab) -> Result<Findings, String> {
    let (fig1, fig2) = paper().map(|paper| (paper.fig1, paper.fig2))?;
    let fabric = fabric(fig1.link_gbps);
    let phase_ms = lab.times(PHASE_MS, SHORT_PHASE_MS) as u64;
    let mut rig = Rig::new(&fabric, Telling::Damped, plans(&fabric, Choose::Label)?)?;
    let mut recording = Recording::default();
    let mut phases = Vec::new();
    for (index, expected) in PHASES.iter().enumerate() {
        lab.say(&format!("t{}: {} begins", index + 1, FLOWS[index].name));
        let demand = if FLOWS[index].name == "C to D" { BURSTS } else { Demand::All };
        rig.begin(FLOWS[index].pair, demand, 0);
        recording.record(&mut rig, &FLOWS[..=index], phase_ms)?;
        phases.push(seen(&rig, &fabric, &recording, FLOWS[index], expected)?);
    }
    let moves = rig.cloud().moves().len();
    let data = json!({
        "phase_ms": phase_ms,
        "phases": phases.iter().map(to_json).collect::<Vec<_>>(),
        "links": LINKS,
        "moves": moves,
        "refused_datagrams": rig.refusals(),
        "samples_ms_gbps": recording.to_json(),
    });
    Ok(Findings {
        claims: claims(&fig2, &phases, moves),
        data,
        figure: figure(&fig2, &phases, &recording, phase_ms),
    })
}

fn seen(
    rig: &Rig,
    fabric: &Fabric,
    recording: &Recording,
    flow: FigureFlow,
    expected: &Expected,
) -> Result<Phase, String> {
    let to_ms = rig.now_ns() as f64 / 1e6;
    let none = || format!("{} has no rules", flow.name);
    let began_ms = rig.began_ns(flow.pair).ok_or_else(none)? as f64 / 1e6;
    let heard_ms = rig.heard_ns(flow.pair).ok_or(format!("no meter saw {}", flow.name))? as f64 / 1e6;
    let told = |slice: SliceNo| -> Result<Vec<f64>, String> {
        let label = |name: &&str| {
            let link = fabric.named(name).ok_or(format!("figure 1a has no link {name}"))?;
            Ok(rig.cloud().tenants()[slice.index()].told_bps(link) as f64 / 1e9)
        };
        LINKS.iter().map(label).collect()
    };
    let links = rig.cloud().path(flow.pair).ok_or_else(none)?;
    let names: Vec<String> = links.iter().map(|link| fabric.name(*link)).collect();
    Ok(Phase {
        means: expected
            .rates
            .iter()
            .map(|(name, _)| (*name, recording.mean(name, began_ms, to_ms)))
            .collect(),
        near_ms: recording.near_after_ms(expected.rates, began_ms, to_ms),
        red: told(RED)?,
        blue: told(BLUE)?,
        report_ms: heard_ms - began_ms,
        path: names.join(", "),
    })
}

fn to_json(phase: &Phase) -> Value {
    json!({
        "gbps": phase.means.iter().map(|(name, gbps)| json!({ "flow": name, "gbps": gbps })).collect::<Vec<_>>(),
        "near_after_ms": phase.near_ms,
        "red_labels_gbps": phase.red,
        "blue_labels_gbps": phase.blue,
        "report_after_ms": phase.report_ms,
        "path": phase.path,
    })
}

fn claims(paper: &Labelled, phases: &[Phase], moves: usize) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (index, (phase, expected)) in phases.iter().zip(&PHASES).enumerate() {
        let at = format!("t{}", index + 1);
        let of_paper: Option<&Gbps> = paper.rates_gbps.get(index);
        for ((name, gbps), (_, asked)) in phase.means.iter().zip(expected.rates) {
            let said = of_paper.and_then(|rates| rates.get(*name)).copied();
            claims.push(rate_claim(&format!("{at}, {name}"), *gbps, *asked, said));
        }
        let text = phase.near_ms.map_or("never".to_owned(), |ms| format!("{ms:.1} ms, in windows of 1 ms"));
        let what = format!("{at}, from the first packet to rates within 5 %");
        claims.push(Claim::asked(&what, "5 ms", text, phase.near_ms.is_some_and(|ms| ms <= 5.0)));
        claims.push(label_claim(&format!("{at}, labels of red"), &phase.red, expected.red));
        claims.push(label_claim(&format!("{at}, labels of blue"), &phase.blue, expected.blue));
        let text = format!("{:.1} ms", phase.report_ms);
        claims.push(Claim::seen(
            &format!("{at}, from the first packet to the meter's report at the label service"),
            text,
        ));
    }
    claims.push(Claim::asked("flows that moved", "none", moves.to_string(), moves == 0));
    claims
}

fn label_claim(what: &str, told: &[f64], expected: [f64; 2]) -> Claim {
    let asked = format!("s3-s1-s4 {}, s3-s2-s4 {} Gb/s", expected[0], expected[1]);
    let whole: Vec<f64> = expected.iter().flat_map(|gbps| [*gbps, *gbps]).collect();
    let holds =
        told.len() == whole.len() && told.iter().zip(&whole).all(|(told, asked)| (told - asked).abs() < 1e-6);
    Claim::asked(what, &asked, labels_text(told), holds).beside("only in the figure")
}

fn labels_text(told: &[f64]) -> String {
    let named = LINKS.iter().zip(told).map(|(name, gbps)| format!("{name} {gbps}"));
    format!("{} Gb/s", named.collect::<Vec<_>>().join(", "))
}

fn figure(paper: &Labelled, phases: &[Phase], recording: &Recording, phase_ms: u64) -> Figure {
    let begins = (0u32..).zip(phases).map(|(index, _)| {
        ReferenceLine::Vertical(f64::from(index) * phase_ms as f64, format!("t{}", index + 1))
    });
    let rates = Chart {
        x: axis("time, ms", Scale::from_zero([phases.len() as f64 * phase_ms as f64])),
        y: axis("rate, Gb/s", Scale::Linear(0.0, 12.0)),
        series: recording.series(),
        marks: begins.collect(),
    };
    let mut lines = Vec::new();
    for (index, phase) in phases.iter().enumerate() {
        lines.push(line(
            format!("t{}: {} by {}", index + 1, FLOWS[index].name, phase.path),
            LineKind::Heading,
        ));
        lines.push(line(format!("red: {}", labels_text(&phase.red)), LineKind::Plain));
        lines.push(line(format!("blue: {}", labels_text(&phase.blue)), LineKind::Plain));
    }
    let mut notes = vec![
        "Agents of the crate edge on a fluid network in virtual time, labels and notices of the crate hose, choices of the app multipath.".to_owned(),
        "C sends bursts of 10 Gb/s, 2 of 5 ms, into a queue of 1 MB. What the queue does not hold is dropped at the sender.".to_owned(),
    ];
    notes.extend(slips());
    Figure {
        title: "Figure 2: two tenants with labels".to_owned(),
        panels: vec![
            panel("Rates", Content::Chart(rates)),
            panel("Labels that the tenants were told", Content::Text(lines)),
            quote("The paper", &paper.place, &paper.says),
        ],
        notes,
    }
}
