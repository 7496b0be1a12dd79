//! Table 1: sizes of flow tables and set-up rates, measured from outside.
//!
//! The probe fills the table of each switch. Clients that come too often show the set-up rate: one packet-in and one rule for each flow.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Panel, Point, Scale, Series, Shape, Style, axis, panel, series};
use crate::report::Claim;
use profile::{Profile, WhenFull};
use serde_json::{Value, json};
use std::time::Duration;

use super::curves::{NO_HARDWARE, VIRTUAL, said};
use super::fig2::targets;
use super::paper::{Row, paper};
use super::players::{HARDWARE, Target};
use super::virtual_bed::{Load, run};

/// Clients come this many times as often as the switch can set up flows.
const OVERLOAD: f64 = 2.0;
/// How far a measured rate may be from the paper's, as a share.
const RATE_LIMIT: f64 = 0.03;

/// How far the size of a table may be that does not end in an error.
const SIZE_LIMIT: f64 = 0.01;

/// Packets that a switch keeps while its set-up rate is measured: enough for all that come. Otherwise the controller sends packets back, which
/// costs the CPU more than the one packet-in and the one rule that are counted.
const BUFFERS: u32 = 65_536;

/// A row that was measured.
struct Measured {
    row: Row,
    name: &'static str,
    entries: u32,
    is_at_least: bool,
    /// Whether rules go to software when the table is full.
    spills: bool,
    has_software: bool,
    setups_per_s: f64,
    found: Profile,
}

/// Runs it.
///
/// # Errors
/// A run or the probe fails.
pub fn run_table(lab: &Lab) -> Result<Findings, String> {
    let paper = paper()?;
    // In a short run only the smallest table is filled.
    let wanted = |target: &Target| !lab.short || target.profile == HARDWARE[1].profile;
    let mut all = Vec::new();
    for target in targets().filter(wanted) {
        let row = paper.row(target.profile).ok_or("Table 1 does not have the switch")?;
        lab.say(&format!("{}: the probe fills its table, then clients come too often", target.name));
        all.push(measure(lab, target, row)?);
    }
    let data = all.iter().map(to_json).collect::<Result<Vec<Value>, String>>()?;
    let figure = Figure {
        title: "Table 1: flow tables and set-up rates".to_owned(),
        panels: vec![
            bars("Flow table entries", "entries", Scale::Decades(100.0, 100_000.0), &all, |it| {
                (f64::from(it.row.entries), f64::from(it.entries))
            }),
            bars("Flow set-up rate", "flows a second", Scale::Decades(10.0, 1000.0), &all, |it| {
                (it.row.setups_per_s, it.setups_per_s)
            }),
        ],
        notes: vec![said(&paper.table1.place, &[]), NO_HARDWARE.to_owned(), VIRTUAL.to_owned()],
    };
    Ok(Findings { claims: all.iter().flat_map(claims).collect(), data: Value::Array(data), figure })
}

fn measure(lab: &Lab, target: Target, row: &Row) -> Result<Measured, String> {
    let found = target.full()?;
    let of_hardware = found.hardware.iter().flat_map(|it| &it.capacities);
    let hardware = of_hardware.map(|it| (it.entries, it.at_least)).max();
    let of_software = found.software.as_ref().and_then(|it| Some((it.entries?, it.at_least)));
    let (entries, is_at_least) =
        hardware.or(of_software).ok_or_else(|| format!("the probe found no table of {}", target.name))?;
    let (lasts, counted_from) = (lab.time(80.0, 10.0), lab.time(20.0, 5.0));
    // A query takes two rules.
    let every = Duration::from_secs_f64(2.0 / (row.setups_per_s * OVERLOAD));
    let load = Load { with_delays: false, ..Load::of_figure_2(every, lasts, counted_from) };
    let mut truth = target.truth()?;
    truth.packet_in.buffers_packets = Some(BUFFERS);
    let seen = run(&truth, &load, 1)?;
    Ok(Measured {
        row: row.clone(),
        name: target.name,
        entries,
        is_at_least,
        spills: found.hardware.as_ref().is_some_and(|it| it.when_full == WhenFull::Spill),
        has_software: found.software.is_some(),
        setups_per_s: seen.setups_per_s,
        found,
    })
}

fn claims(of: &Measured) -> Vec<Claim> {
    let Measured { row, name, entries, is_at_least, setups_per_s, .. } = of;
    let more = if *is_at_least { " or more" } else { "" };
    let apart = f64::from(entries.abs_diff(row.entries)) / f64::from(row.entries);
    let size_holds = apart <= if of.spills { SIZE_LIMIT } else { 0.0 };
    let rate_holds = (setups_per_s / row.setups_per_s - 1.0).abs() <= RATE_LIMIT;
    let software = if of.has_software { "found" } else { "not found" };
    vec![
        Claim::asked(
            &format!("{name}: flow table entries"),
            if of.spills { "within 1 %" } else { "exact" },
            format!("{entries}{more}"),
            size_holds && !is_at_least,
        )
        .beside(&row.entries.to_string()),
        Claim::asked(
            &format!("{name}: flow set-up rate"),
            &format!("within {:.0} %", RATE_LIMIT * 100.0),
            format!("{setups_per_s:.1} flows/s"),
            rate_holds,
        )
        .beside(&format!("{} flows/s", row.setups_per_s)),
        Claim::seen(&format!("{name}: software table"), software).beside(&row.software_table),
    ]
}

fn to_json(of: &Measured) -> Result<Value, String> {
    let found = of.found.to_toml().map_err(|why| format!("{}: {why}", of.name))?;
    Ok(json!({
        "switch": of.row.profile,
        "paper": {
            "name": of.row.name, "firmware": of.row.firmware, "cpu": of.row.cpu, "link_gbps": of.row.link_gbps,
            "entries": of.row.entries, "setups_per_s": of.row.setups_per_s, "software_table": of.row.software_table,
        },
        "entries": of.entries,
        "at_least": of.is_at_least,
        "software_table": of.has_software,
        "setups_per_s": of.setups_per_s,
        "found": found,
    }))
}

fn bars(title: &str, label: &str, y: Scale, all: &[Measured], of: fn(&Measured) -> (f64, f64)) -> Panel {
    let names = Scale::Names(all.iter().map(|it| it.name.to_owned()).collect());
    let drawn = |name: &str, style: Style, pick: fn((f64, f64)) -> f64| -> Series {
        let points = all.iter().zip(0u32..).map(|(it, place)| Point::at(f64::from(place), pick(of(it))));
        series(name, Shape::Bars, style, points.collect())
    };
    let chart = Chart {
        x: axis("switch", names),
        y: axis(label, y),
        series: vec![
            drawn("the paper", Style::Baseline, |both| both.0),
            drawn("measured", Style::Ours, |both| both.1),
        ],
        marks: Vec::new(),
    };
    panel(title, Content::Chart(chart))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_an_end_is_not_exact_and_a_rate_has_three_percent() {
        let row = paper().unwrap().row("fulcrum-monaco").unwrap().clone();
        let measured = |entries, is_at_least, setups_per_s| Measured {
            row: row.clone(),
            name: "Monaco",
            entries,
            is_at_least,
            spills: false,
            has_software: false,
            setups_per_s,
            found: Profile::null(),
        };
        let holds = |of: &Measured| [claims(of)[0].holds, claims(of)[1].holds];
        assert_eq!(holds(&measured(511, false, 42.0)), [Some(true); 2]);
        assert_eq!(holds(&measured(511, true, 43.4)), [Some(false); 2]);
        let spills = Measured { spills: true, ..measured(510, false, 42.0) };
        assert_eq!(holds(&spills), [Some(true); 2], "nobody says where such a table ends");
        assert_eq!(holds(&measured(510, false, 40.8)), [Some(false), Some(true)]);
    }
}
