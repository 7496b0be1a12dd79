//! A hundred switches in virtual time, each with the paper's clients: how long does an hour take?

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use emulator::topology::{Endpoint, HostPlan, Link, SwitchPlan};
use emulator::{
    Arrivals, LinkQuality, Profiles, QueriesId, QuerySpec, RuleTimeouts, Simulation, SwitchOptions, Topology,
};
use flow::{DatapathId, MacAddr, PortNo};
use serde_json::json;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use super::controller::{SharedLog, controller};
use super::paper::paper;
use super::players::HARDWARE;

const SWITCHES: u32 = 100;
/// The time that is emulated.
const HOUR: Duration = Duration::from_secs(3600);
/// The longest that it may take.
const LIMIT_S: f64 = 360.0;
/// How far the clock goes at once.
const STEP: Duration = Duration::from_secs(1);

/// Runs it.
///
/// # Errors
/// The parameters are refused.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let of = paper()?.fig2;
    let lasts = lab.time(HOUR.as_secs_f64(), 10.0);
    let log = SharedLog::default();
    let mut network = network(&log)?;
    let every = Duration::from_millis(of.every_ms);
    let ids = (0..SWITCHES)
        .map(|switch| begin(&mut network, switch, every, lasts))
        .collect::<Result<Vec<QueriesId>, String>>()?;
    let (began, mut curve) = (Instant::now(), Vec::new());
    while network.now() < lasts {
        network.run_for(STEP);
        log.with(|log| log.answered.clear());
        curve.push((network.now().as_secs_f64(), began.elapsed().as_secs_f64()));
    }
    let took_s = began.elapsed().as_secs_f64();
    let hour_s = took_s * HOUR.as_secs_f64() / lasts.as_secs_f64();
    let reports = ids.iter().filter_map(|id| network.queries_report(*id));
    let (begun, ended) =
        reports.fold((0, 0), |(begun, ended), report| (begun + report.begun, ended + report.records.len()));
    let (flow_mods, refused) = log.with(|log| (log.flow_mods, log.refused));
    let per_s = flow_mods as f64 / f64::from(SWITCHES) / lasts.as_secs_f64();
    let claims = vec![
        Claim::asked(
            &format!("an hour of {SWITCHES} switches in virtual time"),
            &format!("at most {LIMIT_S} s"),
            format!("{hour_s:.0} s"),
            hour_s <= LIMIT_S,
        )
        .beside("tens or hundreds of switches are left to later work"),
        Claim::seen("rules a second at each switch", format!("{per_s:.1}; {refused} refused")),
        Claim::seen("queries", format!("{begun} begun, {ended} ended")),
    ];
    let data = json!({
        "switches": SWITCHES, "emulated_s": lasts.as_secs_f64(), "took_s": took_s, "flow_mods": flow_mods, "refused": refused,
        "begun": begun, "ended": ended,
    });
    Ok(Findings { claims, data, figure: figure(&curve) })
}

fn begin(
    network: &mut Simulation,
    switch: u32,
    every: Duration,
    lasts: Duration,
) -> Result<QueriesId, String> {
    let spec = QuerySpec {
        arrivals: Arrivals::Even,
        every,
        duration: lasts,
        ..QuerySpec::new(format!("h{}", 2 * switch + 1), format!("h{}", 2 * switch + 2))
    };
    network.start_queries(&spec).map_err(|why| why.to_string())
}

/// Switches of the paper in turn, each with two hosts and no link to another.
fn network(log: &SharedLog) -> Result<Simulation, String> {
    let (mut topology, mut profiles) =
        (Topology { switches: Vec::new(), hosts: Vec::new(), links: Vec::new() }, Profiles::default());
    for (number, target) in (1..=SWITCHES).zip(HARDWARE.into_iter().cycle()) {
        let name = format!("s{number}");
        profiles.set(name.clone(), target.truth()?.into());
        let index = topology.switches.len();
        topology.switches.push(SwitchPlan {
            name,
            label: String::new(),
            datapath_id: DatapathId(number.into()),
            place: None,
        });
        for port in [PortNo(1), PortNo(2)] {
            let host = topology.hosts.len();
            let id = 2 * number - 2 + port.0;
            let address = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 0)) + id);
            topology.hosts.push(HostPlan {
                name: format!("h{id}"),
                mac: MacAddr::from_u64(id.into()),
                address,
            });
            let (one, two) = (Endpoint::Host { index: host }, Endpoint::Switch { index, port });
            topology.links.push(Link { one, two, quality: LinkQuality::default() });
        }
    }
    let options = SwitchOptions { profiles, ..SwitchOptions::default() };
    Ok(Simulation::with_controller(&topology, &options, 1, controller(RuleTimeouts::POX, log.clone())))
}

fn figure(curve: &[(f64, f64)]) -> Figure {
    let points = curve.iter().map(|(emulated, took)| Point::at(*emulated, *took)).collect();
    let chart = Chart {
        x: axis("emulated time, s", Scale::from_zero(curve.iter().map(|it| it.0))),
        y: axis("time that it took, s", Scale::from_zero(curve.iter().map(|it| it.1))),
        series: vec![series("100 switches", Shape::Line, Style::Ours, points)],
        marks: vec![ReferenceLine::Horizontal(LIMIT_S, "asked of an hour".to_owned())],
    };
    Figure {
        title: "Many switches in virtual time".to_owned(),
        panels: vec![panel("HP, Monaco and Quanta in turn", Content::Chart(chart))],
        notes: vec![
            "Not in the paper. A client each 50 ms at each switch. This time depends on the machine."
                .to_owned(),
        ],
    }
}
