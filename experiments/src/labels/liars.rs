//! Liars: a tenant has rules and sends nothing, or a frame now and then. What do its lies cost another tenant?
//!
//! Two leaves and four spines of 10 Gb/s. The liar has bought 20 Gb/s, so its rules can make two spines look full. The honest tenant then
//! begins three flows of 6 Gb/s, which need three spines.

use super::paper::paper;
use super::setting::G;
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, Scale, Shape, Style, axis, panel, quote, series};
use crate::report::Claim;
use rehearsal::{
    Choose, Cloud, Fabric, Meter, Pair, Plan, STAY_MS, Sends, ServerNo, SliceNo, Telling, Vnic, VnicNo,
};
use serde_json::{Value, json};

const SPINES: usize = 4;
const LINK_GBPS: u64 = 10;
const HONEST: SliceNo = SliceNo(0);
const LIAR: SliceNo = SliceNo(1);
const HONEST_FLOWS: usize = 3;
const HONEST_GBPS: u64 = 6;
/// The liar's VNICs: 20 on each leaf, of 1 Gb/s. Rules between all of them make 400 flows.
const LIAR_VNICS: usize = 20;
const REPORT_US: u64 = 300;
/// Below the two seconds for which a flow counts after its meter's report.
const FRAME_US: u64 = 1_500_000;
/// The honest tenant begins, and the run ends.
const BEGIN_US: u64 = 3_000_000;
const END_US: u64 = 10_000_000;

/// What the liar does.
#[derive(Clone, Copy, Debug)]
struct Lie {
    name: &'static str,
    /// `None`: there is no liar.
    sends: Option<Sends>,
    is_metered: bool,
}

const LIES: [Lie; 5] = [
    Lie { name: "no liar", sends: None, is_metered: true },
    Lie { name: "rules, metered", sends: Some(Sends::Nothing), is_metered: true },
    Lie { name: "rules, no meter", sends: Some(Sends::Nothing), is_metered: false },
    Lie { name: "a frame each 1.5 s", sends: Some(Sends::AFrameEach(FRAME_US)), is_metered: true },
    Lie { name: "sends all it can", sends: Some(Sends::All), is_metered: true },
];

/// What it cost.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    /// The sum of the honest tenant's labels on the ways up to the spines, before it begins.
    labels_gbps: f64,
    /// What its flows get in all, and the least of them.
    got_gbps: f64,
    least_gbps: f64,
    /// Flows with 0.9 of their nominal rate.
    content: usize,
    /// Flows of the liar that count.
    lies: usize,
}

/// Runs it. It has no long times, so a short run is the same.
///
/// # Errors
/// A rehearsal ends with an error.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let mut costs = Vec::new();
    for lie in LIES {
        lab.say(lie.name);
        costs.push((lie, rehearse(lie)?));
    }
    let data = json!(costs.iter().map(|(lie, cost)| to_json(lie.name, cost)).collect::<Vec<_>>());
    Ok(Findings { claims: claims(&costs), data, figure: figure(&costs)? })
}

fn plans(is_metered: bool) -> Vec<Plan> {
    let plan = |count: usize, rate_bps: u64, first: usize, is_metered: bool| {
        let of_leaf = |leaf: usize| {
            (0..count).map(move |number| Vnic {
                server: ServerNo(leaf * SERVERS + first + number / PER_SERVER),
                rate_bps,
            })
        };
        Plan {
            vnics: (0..2).flat_map(of_leaf).collect(),
            choose: Choose::Number,
            stay_ms: STAY_MS,
            notice_us: 500,
            is_metered,
            step: None,
            links: None,
        }
    };
    // Each honest VNIC has a server of its own: its numbers are spread as the liar's are not.
    let honest = Plan {
        vnics: (0..2)
            .flat_map(|leaf| (0..HONEST_FLOWS).map(move |number| leaf * SERVERS + number))
            .map(|server| Vnic { server: ServerNo(server), rate_bps: HONEST_GBPS * G })
            .collect(),
        choose: Choose::Label,
        ..plan(0, 0, 0, true)
    };
    vec![honest, plan(LIAR_VNICS, G, HONEST_FLOWS, is_metered)]
}

/// How many of the liar's VNICs share a server, and how many servers a leaf has.
const PER_SERVER: usize = 10;
const SERVERS: usize = HONEST_FLOWS + LIAR_VNICS / PER_SERVER;

fn pair(slice: SliceNo, source: usize, destination: usize) -> Pair {
    // VNICs are few.
    Pair { slice, source: VnicNo(source as u32), destination: VnicNo(destination as u32) }
}

fn rehearse(lie: Lie) -> Result<Cost, String> {
    let fabric = Fabric::leaf_spine(2, SPINES, SERVERS, LINK_GBPS * G);
    let mut cloud = Cloud::new(fabric, Telling::Damped, Meter::After(REPORT_US), plans(lie.is_metered))
        .map_err(|why| why.to_string())?;
    if let Some(sends) = lie.sends {
        // The liar's rules lead over the first two spines alone.
        for source in 0..LIAR_VNICS {
            for destination in 0..LIAR_VNICS {
                cloud.begin(pair(LIAR, source, LIAR_VNICS + destination), sends, destination as u64 % 2);
            }
        }
    }
    cloud.run_until(BEGIN_US)?;
    let up = |number: usize| cloud.fabric().named(&format!("leaf1-spine{number}"));
    let labels: Vec<u64> =
        (1..=SPINES).filter_map(up).map(|link| cloud.service().label_bps(HONEST, link)).collect();
    let lies = cloud.service().counting().iter().filter(|(pair, ..)| pair.slice == LIAR).count();
    (0..HONEST_FLOWS).for_each(|flow| cloud.begin(pair(HONEST, flow, HONEST_FLOWS + flow), Sends::All, 0));
    cloud.run_until(END_US)?;
    let rates = cloud.rates();
    let honest = rates.iter().filter(|it| it.pair.slice == HONEST);
    let got: Vec<u64> = honest.clone().map(|it| it.got_bps.min(it.nominal_bps)).collect();
    Ok(Cost {
        labels_gbps: labels.iter().sum::<u64>() as f64 / 1e9,
        got_gbps: got.iter().sum::<u64>() as f64 / 1e9,
        least_gbps: got.iter().copied().min().unwrap_or(0) as f64 / 1e9,
        content: honest.filter(|it| it.got_bps * 10 >= it.nominal_bps * 9).count(),
        lies,
    })
}

fn to_json(name: &str, cost: &Cost) -> Value {
    let Cost { labels_gbps, got_gbps, least_gbps, content, lies } = cost;
    json!({
        "liar": name, "honest_labels_gbps": labels_gbps, "honest_got_gbps": got_gbps, "honest_least_gbps": least_gbps,
        "honest_content": content, "flows_of_the_liar_that_count": lies,
    })
}

fn claims(costs: &[(Lie, Cost)]) -> Vec<Claim> {
    let (all_gbps, bought_gbps) = ((SPINES as u64 * LINK_GBPS) as f64, LIAR_VNICS as f64);
    let honest = costs.first().map(|(_, cost)| *cost);
    let mut claims = Vec::new();
    for (lie, cost) in costs {
        let lowered = all_gbps - cost.labels_gbps;
        let what = format!("{}: the honest tenant's labels are lowered by", lie.name);
        let text = format!("{lowered:.1} of {all_gbps} Gb/s, by {} flows", cost.lies);
        claims.push(match lie {
            Lie { sends: None, .. } => Claim::seen(&what, text),
            Lie { sends: Some(Sends::Nothing), is_metered: true, .. } => {
                Claim::asked(&what, "0", text, lowered == 0.0)
            }
            _ => {
                let asked = format!("at most what the liar bought, {bought_gbps} Gb/s");
                Claim::asked(&what, &asked, text, lowered <= bought_gbps + 1e-6)
            }
        });
        let what = format!("{}: what the honest tenant gets", lie.name);
        let text = format!(
            "{:.1} Gb/s; {} of {HONEST_FLOWS} flows have 0.9 of {HONEST_GBPS}, the least has {:.1}",
            cost.got_gbps, cost.content, cost.least_gbps
        );
        let is_metered_lie = matches!(lie, Lie { sends: Some(Sends::Nothing), is_metered: true, .. });
        claims.push(match honest.filter(|_| is_metered_lie) {
            Some(honest) => {
                Claim::asked(&what, "the same as without a liar", text, cost.got_gbps == honest.got_gbps)
            }
            None => Claim::seen(&what, text),
        });
    }
    claims
}

fn figure(costs: &[(Lie, Cost)]) -> Result<Figure, String> {
    let names = || Scale::Names(costs.iter().map(|(lie, _)| lie.name.to_owned()).collect());
    let bars = |name: &str, style: Style, of: fn(&Cost) -> f64| {
        let points = (0u32..).zip(costs).map(|(place, (_, cost))| Point::at(f64::from(place), of(cost)));
        series(name, Shape::Bars, style, points.collect())
    };
    let chart = |label: &str, bars| Chart {
        x: axis("what the liar does", names()),
        y: axis(label, Scale::from_zero([(SPINES as u64 * LINK_GBPS) as f64])),
        series: vec![bars],
        marks: Vec::new(),
    };
    let labels =
        chart("sum of labels, Gb/s", bars("labels of the honest tenant", Style::Ours, |it| it.labels_gbps));
    let got = chart("rate, Gb/s", bars("what its three flows get", Style::Other, |it| it.got_gbps));
    let beyond = paper()?.beyond;
    Ok(Figure {
        title: "Liars: rules without traffic".to_owned(),
        panels: vec![
            panel("Labels", Content::Chart(labels)),
            panel("Rates", Content::Chart(got)),
            quote("The paper", &beyond.place, &beyond.says),
        ],
        notes: vec![
            format!("Not in the paper. {SPINES} spines of {LINK_GBPS} Gb/s. The liar has {LIAR_VNICS} VNICs of 1 Gb/s at each leaf and rules for 400 flows."),
            "With a meter at the receiver, a flow counts from its first frame until two seconds after its last. Then it has its whole nominal rate.".to_owned(),
        ],
    })
}
