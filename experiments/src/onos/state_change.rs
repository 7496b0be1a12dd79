//! Table 1: a switch of four ports, and a link, are added to the view of 81 switches.
//!
//! ```text
//!   session up ──> kernel ──> discovery ──> kernel ──> app's view          the whole way, seen by the probe
//!                    └──────────────────────────────> app                  the kernel's own event: the begin
//!   records ──bytes──> records ──> tables                                  the breakdown, in this process
//!   switch ──10 reads, 8 writes──> a generic graph                         the baseline, in this process
//! ```
//!
//! A time begins when the probe receives the kernel's event that the session is up, and ends when its view has the
//! switch and all four ports.

use super::bed::{Bed, Plan, wait_until};
use super::clock::{between_ms, now_ns};
use super::generic_graph::{Cost, GraphStore};
use super::paper::{Row, Table1, paper};
use super::protocol::Sight;
use super::wan::{Wan, cable_name};
use crate::lab::Lab;
use crate::network;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::{median, percentile};
use emulator::topology::{Endpoint, HostPlan, Link, SwitchPlan};
use emulator::{Change, Handle, LinkQuality, SwitchOptions, Topology};
use flow::{DatapathId, MacAddr, PortNo};
use serde::Serialize;
use serde_json::json;
use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::{Duration, Instant};
use view::{ConnectPoint, Kind, Object, Port, Record, Stamp, Switch, SwitchState, Tables};

const SWITCHES: usize = 81;
/// With a host at each switch, four ports of a switch are active on average.
const CABLES: usize = 121;
const SEED: u64 = 81;

/// Datapath ids of the switches that are added.
const FIRST_ADDED: u64 = 1_000;
const PORTS: u32 = 4;

const ASKED_MS: f64 = 0.1;

/// After a change, this process does nothing for so long: it shares two cores with the node, and the probe notes the times by itself.
const QUIET: Duration = Duration::from_millis(10);

/// What was measured, in milliseconds.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    /// From the session's event to the switch and its ports in the view.
    switch_ms: Vec<f64>,
    /// From the begin of the connection to the session's event.
    connect_ms: Vec<f64>,
    /// From the event that the later port is up to the link in the view, with the probe's way over the link.
    link_ms: Vec<f64>,
    /// Parts, in this process: the median.
    serialise_ms: f64,
    deserialise_ms: f64,
    apply_ms: f64,
    generic: Cost,
    typed: Cost,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let mut seen = Measured::default();
    let kinds = [Kind::Switch, Kind::Port, Kind::Link];
    let mut bed = Bed::start(lab, Plan { services: &["discovery"], kinds: &kinds, raw: true, more: "" })?;
    let wan = Wan::new(SWITCHES, CABLES, SEED);
    let network = bed.network(&wan.topology())?;
    bed.wait_links(CABLES * 2)?;
    let added = lab.times(200, 4);
    lab.say(&format!("table1: {added} switches, one after the other"));
    for number in 0..added {
        add_switch(&mut bed, FIRST_ADDED + number as u64, &mut seen)?;
    }
    let links = lab.times(100, 4);
    lab.say(&format!("table1: {links} links, one after the other"));
    for cable in wan.cables.iter().take(links) {
        add_link(&mut bed, &network, &wan, *cable, &mut seen)?;
    }
    network.stop();
    drop(bed);
    in_this_process(lab, &mut seen)?;
    let paper = paper()?.table1;
    Ok(Findings { claims: claims(&seen, &paper), data: json!(seen), figure: figure(&seen, &paper) })
}

/// A switch of its own emulation connects, and leaves again.
fn add_switch(bed: &mut Bed, id: u64, seen: &mut Measured) -> Result<(), String> {
    bed.report()?;
    let began_ns = now_ns();
    let network = network::begin(&one_switch(id), bed.controller, SwitchOptions::default())?;
    sleep(QUIET);
    let switch = DatapathId(id);
    let mut sights: Vec<Sight> = Vec::new();
    let wanted: Vec<String> = std::iter::once(format!("switch/{switch}"))
        .chain((1..=PORTS).map(|port| format!("port/{switch}/{port}")))
        .collect();
    wait_until("the switch and its ports are in the view", || {
        sights.extend(bed.report()?);
        Ok(wanted.iter().all(|key| in_view(&sights, key).is_some()))
    })?;
    let up = sights.iter().find(|sight| sight.raw && sight.key == wanted[0]).ok_or("no session's event")?;
    let last = wanted.iter().filter_map(|key| in_view(&sights, key)).max().unwrap_or(0);
    seen.switch_ms.push(between_ms(up.at_ns, last));
    seen.connect_ms.push(between_ms(began_ns, up.at_ns));
    network.stop();
    let mut sights = Vec::new();
    wait_until("the switch is down", || {
        sights.extend(bed.report()?);
        Ok(sights.iter().any(|sight| !sight.raw && !sight.up && sight.key == wanted[0]))
    })
}

/// When the view first had an object as up.
fn in_view(sights: &[Sight], key: &str) -> Option<u64> {
    sights.iter().find(|sight| !sight.raw && sight.up && sight.key == key).map(|sight| sight.at_ns)
}

fn one_switch(id: u64) -> Topology {
    let switch =
        SwitchPlan { name: format!("s{id}"), label: String::new(), datapath_id: DatapathId(id), place: None };
    let host = |number: u32| HostPlan {
        name: format!("h{number}"),
        mac: MacAddr::from_u64((id << 8) + u64::from(number)),
        address: Ipv4Addr::from(0x0a80_0000 + number),
    };
    let link = |number: u32| Link {
        one: Endpoint::Host { index: number as usize - 1 },
        two: Endpoint::Switch { index: 0, port: PortNo(number) },
        quality: LinkQuality::default(),
    };
    Topology {
        switches: vec![switch],
        hosts: (1..=PORTS).map(host).collect(),
        links: (1..=PORTS).map(link).collect(),
    }
}

/// A cable goes down and comes up again.
fn add_link(
    bed: &mut Bed,
    network: &Handle,
    wan: &Wan,
    cable: (usize, usize),
    seen: &mut Measured,
) -> Result<(), String> {
    let Some((one, two)) = wan.ends(cable) else { return Ok(()) };
    let links = [format!("link/{one}-{two}"), format!("link/{two}-{one}")];
    let set = |up| {
        let link = cable_name(cable);
        network.change(Change::Link { link, up }).map_err(|error| error.to_string())
    };
    bed.report()?;
    set(false)?;
    bed.wait_links(CABLES * 2 - 2)?;
    bed.report()?;
    set(true)?;
    sleep(QUIET);
    let mut sights = Vec::new();
    wait_until("both directions of the link are up", || {
        sights.extend(bed.report()?);
        Ok(links.iter().all(|key| in_view(&sights, key).is_some()))
    })?;
    for key in &links {
        let Some(found) = in_view(&sights, key) else { continue };
        let before = |wanted: String| {
            let is_it = |sight: &&Sight| sight.raw && sight.up && sight.key == wanted && sight.at_ns <= found;
            sights.iter().rev().find(is_it).map(|sight| sight.at_ns)
        };
        let both = [before(format!("port/{one}")), before(format!("port/{two}"))];
        let later = both.into_iter().flatten().max();
        seen.link_ms.extend(later.map(|at_ns| between_ms(at_ns, found)));
    }
    Ok(())
}

/// The parts of the way, and the baseline.
fn in_this_process(lab: &Lab, seen: &mut Measured) -> Result<(), String> {
    let times = lab.times(2_000, 20);
    let mut tables = Tables::new();
    for id in 1..=SWITCHES as u64 {
        tables.apply(changes(&records(id, 1)));
    }
    let (mut serialise, mut deserialise, mut apply) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..times {
        let records = records(FIRST_ADDED + number as u64 % 200, number as u64 + 2);
        let began = Instant::now();
        let bytes: Vec<Vec<u8>> = records.iter().map(Record::to_bytes).collect();
        serialise.push(began.elapsed().as_secs_f64() * 1000.0);
        let began = Instant::now();
        let read: Result<Vec<Record>, String> = bytes.iter().map(|bytes| Record::from_bytes(bytes)).collect();
        deserialise.push(began.elapsed().as_secs_f64() * 1000.0);
        let changes = changes(&read?);
        let held = tables.snapshot();
        let began = Instant::now();
        let batch = tables.apply(changes);
        apply.push(began.elapsed().as_secs_f64() * 1000.0);
        drop((held, batch));
    }
    (seen.serialise_ms, seen.deserialise_ms, seen.apply_ms) =
        (median(&serialise), median(&deserialise), median(&apply));
    let (mut generic, mut typed) = (Vec::new(), Vec::new());
    let (mut graph, mut objects) = (GraphStore::start()?, GraphStore::start()?);
    for number in 0..SWITCHES as u64 + lab.times(300, 10) as u64 {
        let cost = graph.add_switch(&DatapathId(number).to_string(), PORTS as usize)?;
        let keyed: Vec<(String, Record)> = records(number + 1, 1)
            .into_iter()
            .map(|record| (record.object.key().to_string(), record))
            .collect();
        let typed_cost = objects.add_typed(&keyed)?;
        // As in the paper, 81 switches are there before.
        if number >= SWITCHES as u64 {
            generic.push(cost);
            typed.push(typed_cost);
        }
    }
    (seen.generic, seen.typed) = (middle(&generic), middle(&typed));
    Ok(())
}

/// The median of each part.
fn middle(costs: &[Cost]) -> Cost {
    let of = |value: fn(&Cost) -> f64| median(&costs.iter().map(value).collect::<Vec<_>>());
    let (reads, writes) = costs.first().map_or((0, 0), |cost| (cost.reads, cost.writes));
    Cost {
        read_ms: of(|cost| cost.read_ms),
        write_ms: of(|cost| cost.write_ms),
        serialise_ms: of(|cost| cost.serialise_ms),
        deserialise_ms: of(|cost| cost.deserialise_ms),
        total_ms: of(|cost| cost.total_ms),
        reads,
        writes,
    }
}

/// A switch and its ports, as the service `discovery` publishes them.
fn records(id: u64, sequence: u64) -> Vec<Record> {
    let id = DatapathId(id);
    let (description, annotations) = Default::default();
    let switch = Switch {
        id,
        state: SwitchState::Up,
        openflow: "1.3".to_owned(),
        n_tables: 16,
        n_buffers: 256,
        description,
        since_ms: 1_790_000_000_000,
        annotations,
    };
    let port = |number: u32| Port {
        id: ConnectPoint { switch: id, port: PortNo(number) },
        name: format!("s{}-eth{number}", id.0),
        mac: MacAddr::from_u64((id.0 << 8) + u64::from(number)),
        live: true,
        enabled: true,
        speed_kbps: 10_000_000,
        annotations: Default::default(),
    };
    let stamp = Stamp { term: 1, sequence, origin: 0 };
    let objects = std::iter::once(Object::from(switch)).chain((1..=PORTS).map(|number| port(number).into()));
    objects.map(|object| Record { stamp, object }).collect()
}

fn changes(records: &[Record]) -> Vec<view::Change> {
    let change = |record: &Record| view::Change {
        stamp: record.stamp,
        key: record.object.key(),
        object: Some(record.object.clone()),
    };
    records.iter().map(change).collect()
}

fn latency(values: &[f64]) -> String {
    format!("median {:.3} ms, p99 {:.3} ms, {} times", median(values), percentile(values, 99), values.len())
}

fn claims(seen: &Measured, paper: &Table1) -> Vec<Claim> {
    let is_below = |values: &[f64]| !values.is_empty() && median(values) < ASKED_MS;
    let rows = &paper.switch_ms;
    let parts = |cost: &Cost| {
        format!(
            "{:.3} ms: reads {:.3}, writes {:.3}, serialisation {:.3}, deserialisation {:.3}",
            cost.total_ms, cost.read_ms, cost.write_ms, cost.serialise_ms, cost.deserialise_ms
        )
    };
    let own = seen.serialise_ms + seen.deserialise_ms + seen.apply_ms;
    vec![
        Claim::asked(
            "a switch of 4 ports: session up to the app's view with all of it",
            "median < 0.1 ms",
            latency(&seen.switch_ms),
            is_below(&seen.switch_ms),
        )
        .beside(&format!("{} ms, the write to the store alone, with InfiniBand", rows.infiniband.total)),
        Claim::seen(
            "of which in all processes together: serialisation, deserialisation, change of the tables",
            format!(
                "{:.4}, {:.4}, {:.4} ms; the other {:.4} ms are wake-ups, the kernel's routing, and discovery's decision",
                seen.serialise_ms,
                seen.deserialise_ms,
                seen.apply_ms,
                (median(&seen.switch_ms) - own).max(0.0)
            ),
        )
        .beside(&format!("{} ms serialisation, with Protocol Buffers", rows.protocol_buffers.serialise)),
        Claim::seen("before that: begin of the connection to the session's event", latency(&seen.connect_ms)),
        Claim::asked(
            "a link: both ports up to the app's view, with the probe's way over the link",
            "median < 0.1 ms",
            latency(&seen.link_ms),
            is_below(&seen.link_ms),
        )
        .beside(&format!(
            "{} ms, the write to the store alone, with InfiniBand; {} without, {} with a generic graph",
            paper.link_infiniband_ms, paper.link_new_ms, paper.link_generic_ms
        )),
        Claim::seen(
            &format!(
                "baseline: a switch in a generic graph, {} reads and {} writes to a store on this machine",
                seen.generic.reads, seen.generic.writes
            ),
            parts(&seen.generic),
        )
        .beside(&format!(
            "{} ms, {} reads and {} writes",
            rows.generic_graph.total, paper.generic_reads, paper.generic_writes
        )),
        Claim::seen(
            &format!("baseline: the same store with a write for each object, {} writes", seen.typed.writes),
            parts(&seen.typed),
        )
        .beside(&format!("{} ms; {} ms with Protocol Buffers", rows.new_model.total, rows.protocol_buffers.total)),
    ]
}

fn figure(seen: &Measured, paper: &Table1) -> Figure {
    let rows = &paper.switch_ms;
    let theirs = [
        ("generic graph", rows.generic_graph.total),
        ("new model", rows.new_model.total),
        ("Protocol Buffers", rows.protocol_buffers.total),
        ("InfiniBand", rows.infiniband.total),
    ];
    let ours = [
        ("generic graph", seen.generic.total_ms),
        ("a write an object", seen.typed.total_ms),
        ("Burnet, to the app", median(&seen.switch_ms)),
        ("its own work", seen.serialise_ms + seen.deserialise_ms + seen.apply_ms),
    ];
    let part = |name: &str, row: Row| (name.to_owned(), row);
    let shown = [
        part("ONOS, generic graph", rows.generic_graph),
        part(
            "here, generic graph",
            Row {
                read: seen.generic.read_ms,
                write: seen.generic.write_ms,
                serialise: seen.generic.serialise_ms,
                deserialise: seen.generic.deserialise_ms,
                ..Row::default()
            },
        ),
    ];
    Figure {
        title: "Table 1: adding a switch".to_owned(),
        panels: vec![
            panel("ONOS, its table", Content::Chart(bars(&theirs, Style::Paper))),
            panel("Burnet", Content::Chart(bars(&ours, Style::Ours))),
            panel("Parts of the generic graph", Content::Chart(parts_chart(&shown))),
        ],
        notes: vec![
            format!(
                "ONOS: {}; the time of the operations on a data store over a network. Here: one machine, from the session to \
                 the app's event, over three processes.",
                paper.place
            ),
            "The generic graph here is a model: a store in a thread of this process behind a socket."
                .to_owned(),
        ],
    }
}

fn bars(values: &[(&str, f64)], style: Style) -> Chart {
    let points = values.iter().enumerate().map(|(place, (_, ms))| Point::at(place as f64, ms.max(1e-4)));
    Chart {
        x: axis("", Scale::Names(values.iter().map(|(name, _)| (*name).to_owned()).collect())),
        y: axis("milliseconds for a switch", Scale::Decades(0.0001, 100.0)),
        series: vec![series("median", Shape::Bars, style, points.collect())],
        marks: vec![ReferenceLine::Horizontal(ASKED_MS, "asked: 0.1 ms".to_owned())],
    }
}

fn parts_chart(shown: &[(String, Row)]) -> Chart {
    let part = |name: &str, style, of: fn(&Row) -> f64| {
        let points =
            shown.iter().enumerate().map(|(place, (_, row))| Point::at(place as f64, of(row).max(1e-4)));
        series(name, Shape::Bars, style, points.collect())
    };
    Chart {
        x: axis("", Scale::Names(shown.iter().map(|(name, _)| name.clone()).collect())),
        y: axis("milliseconds", Scale::Decades(0.0001, 100.0)),
        series: vec![
            part("read", Style::Ours, |row| row.read),
            part("write", Style::Other, |row| row.write),
            part("serialise", Style::Baseline, |row| row.serialise),
            part("deserialise", Style::Reference, |row| row.deserialise),
        ],
        marks: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(switch_ms: &[f64], link_ms: &[f64], expected: [bool; 2]) {
        let seen =
            Measured { switch_ms: switch_ms.to_vec(), link_ms: link_ms.to_vec(), ..Measured::default() };
        let claims = claims(&seen, &paper().unwrap().table1);
        let asked: Vec<_> = claims.iter().filter_map(|claim| claim.holds).collect();
        assert_eq!(asked, expected);
    }

    #[test]
    fn a_tenth_of_a_millisecond_is_too_late() {
        check(&[], &[], [false, false]);
        check(&[0.1], &[0.099], [false, true]);
        check(&[0.05, 0.06, 9.0], &[0.2], [true, false]);
    }

    #[test]
    fn the_records_are_those_of_a_switch_and_its_ports() {
        let mut tables = Tables::new();
        assert_eq!(tables.apply(changes(&records(7, 1))).iter().count(), 1 + PORTS as usize);
    }
}
