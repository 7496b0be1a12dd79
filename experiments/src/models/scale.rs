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
use std::ops::RangeInclusive;
use std::thread;
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

/// What one simulation has done.
struct Part {
    begun: u64,
    ended: usize,
    flow_mods: u64,
    refused: u64,
    /// Emulated time, and the time that it took.
    curve: Vec<(f64, f64)>,
}

/// Runs one simulation for each core, each with its share of the switches. No switch has a link to another.
///
/// # Errors
/// The parameters are refused, or a simulation panics.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let every = Duration::from_millis(paper()?.fig2.every_ms);
    let lasts = lab.time(HOUR.as_secs_f64(), 10.0);
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32).min(SWITCHES);
    let bounds = move |core: u32| SWITCHES * core / cores + 1..=SWITCHES * (core + 1) / cores;
    let began = Instant::now();
    let running: Vec<_> =
        (0..cores).map(|core| thread::spawn(move || run_part(bounds(core), every, lasts))).collect();
    let parts =
        running.into_iter().map(|part| part.join().map_err(|_| "a simulation panicked".to_owned())?);
    let parts = parts.collect::<Result<Vec<Part>, String>>()?;
    let took_s = began.elapsed().as_secs_f64();
    let hour_s = took_s * HOUR.as_secs_f64() / lasts.as_secs_f64();
    let begun: u64 = parts.iter().map(|part| part.begun).sum();
    let ended: usize = parts.iter().map(|part| part.ended).sum();
    let flow_mods: u64 = parts.iter().map(|part| part.flow_mods).sum();
    let refused: u64 = parts.iter().map(|part| part.refused).sum();
    let per_s = flow_mods as f64 / f64::from(SWITCHES) / lasts.as_secs_f64();
    let claims = vec![
        Claim::asked(
            &format!(
                "an hour of {SWITCHES} switches in virtual time, a simulation for each of {cores} cores"
            ),
            &format!("at most {LIMIT_S} s"),
            format!("{hour_s:.0} s"),
            hour_s <= LIMIT_S,
        )
        .beside("tens or hundreds of switches are left to later work"),
        Claim::seen("rules a second at each switch", format!("{per_s:.1}; {refused} refused")),
        Claim::seen("queries", format!("{begun} begun, {ended} ended")),
    ];
    let data = json!({
        "switches": SWITCHES, "simulations": cores, "emulated_s": lasts.as_secs_f64(), "took_s": took_s, "flow_mods": flow_mods,
        "refused": refused, "begun": begun, "ended": ended,
    });
    let curves: Vec<&[(f64, f64)]> = parts.iter().map(|part| &part.curve[..]).collect();
    Ok(Findings { claims, data, figure: figure(&curves) })
}

/// Runs the switches with these numbers.
fn run_part(numbers: RangeInclusive<u32>, every: Duration, lasts: Duration) -> Result<Part, String> {
    let log = SharedLog::default();
    let mut network = network(numbers.clone(), &log)?;
    let ids = numbers
        .map(|number| begin(&mut network, number, every, lasts))
        .collect::<Result<Vec<QueriesId>, String>>()?;
    let (began, mut curve) = (Instant::now(), Vec::new());
    while network.now() < lasts {
        network.run_for(STEP);
        log.with(|log| log.answered.clear());
        curve.push((network.now().as_secs_f64(), began.elapsed().as_secs_f64()));
    }
    let reports = ids.iter().filter_map(|id| network.queries_report(*id));
    let (begun, ended) =
        reports.fold((0, 0), |(begun, ended), report| (begun + report.begun, ended + report.records.len()));
    let (flow_mods, refused) = log.with(|log| (log.flow_mods, log.refused));
    Ok(Part { begun, ended, flow_mods, refused, curve })
}

fn begin(
    network: &mut Simulation,
    number: u32,
    every: Duration,
    lasts: Duration,
) -> Result<QueriesId, String> {
    let spec = QuerySpec {
        arrivals: Arrivals::Even,
        every,
        duration: lasts,
        ..QuerySpec::new(format!("h{}", 2 * number - 1), format!("h{}", 2 * number))
    };
    network.start_queries(&spec).map_err(|why| why.to_string())
}

/// Switches of the paper in turn, each with two hosts and no link to another.
fn network(numbers: RangeInclusive<u32>, log: &SharedLog) -> Result<Simulation, String> {
    let (mut topology, mut profiles) =
        (Topology { switches: Vec::new(), hosts: Vec::new(), links: Vec::new() }, Profiles::default());
    for (number, target) in numbers.zip(HARDWARE.into_iter().cycle()) {
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

fn figure(curves: &[&[(f64, f64)]]) -> Figure {
    let all = || curves.iter().flat_map(|curve| curve.iter());
    let line = |curve: &&[(f64, f64)]| {
        let points = curve.iter().map(|(emulated, took)| Point::at(*emulated, *took)).collect();
        series("a simulation of some of the 100 switches", Shape::Line, Style::Ours, points)
    };
    let chart = Chart {
        x: axis("emulated time, s", Scale::from_zero(all().map(|it| it.0))),
        y: axis("time that it took, s", Scale::from_zero(all().map(|it| it.1))),
        series: curves.iter().map(line).collect(),
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
