//! `burnet slice rehearse`: the slices of a file in virtual time, with flows that begin.
//!
//! ```text
//!   slices.toml, network.toml or a node's network, flows ──> slice_plan::rehearse ──> text or JSON
//! ```
//!
//! In: parsed options and files. Out: what to print, and the exit code. It starts no node and sends no packet.

use super::table::aligned;
use super::{json, slice};
use crate::cli::CommandError;
use crate::cli::slice::SliceRehearseArgs;
use crate::slice_plan::packets::{Heard, HeardError, Packets, RulesAt};
use crate::slice_plan::rehearse::{Flow, Labelled, Options, Rehearsed, rehearse};
use hose::Bandwidth;
use serde_json::{Value, json};
use std::process::ExitCode;

/// The most phases in text. Of more, the last are shown; JSON has all.
const PHASES_SHOWN: usize = 6;

/// `burnet slice rehearse`.
pub fn run(args: &SliceRehearseArgs) -> Result<(String, ExitCode), CommandError> {
    let (description, judged) = slice::judged_with_network(&args.plan, false)?;
    let options = Options { choose: args.choose.into(), rest_ms: args.seconds * 1_000 };
    let seen = rehearse(&description, &judged, &args.flows, options).map_err(CommandError::DidNotWork)?;
    shown_to(args, &seen)
}

/// What the operator reads, and the exit code: 1 if a flow gets too little, or a packet came where it must not.
///
/// # Errors
/// It cannot be JSON.
pub fn shown_to(args: &SliceRehearseArgs, seen: &Rehearsed) -> Result<(String, ExitCode), CommandError> {
    let is_isolated = seen.packets.as_ref().is_none_or(|packets| packets.crossed == 0);
    let is_content = seen.flows.iter().all(Flow::is_content) && is_isolated;
    let text = if args.plan.asking.json { json(&value(seen))? } else { text(seen) };
    Ok((text, if is_content { ExitCode::SUCCESS } else { ExitCode::from(1) }))
}

fn text(seen: &Rehearsed) -> String {
    let counted = format!("{} moved to another path; {} notices to tenants\n", seen.moves, seen.notices);
    let packets = seen.packets.as_ref().map(packets_text).unwrap_or_default();
    flows_text(seen) + &missing_text(seen) + &labels_text(seen) + &counted + &packets
}

/// What only packets show.
fn packets_text(packets: &Packets) -> String {
    let heading = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let mut tenants = vec![heading(&["SLICE", "OPENFLOW", "PACKET-INS", "ERRORS"])];
    for Heard { slice, openflow, packet_ins, errors } in &packets.tenants {
        let errors: u64 = errors.iter().map(|(_, count)| count).sum();
        tenants.push(vec![slice.clone(), openflow.clone(), packet_ins.to_string(), errors.to_string()]);
    }
    let mut rules = vec![heading(&["SLICE", "SWITCH", "RULES", "ENTRIES"])];
    // JSON has also the switches where a slice has none.
    for RulesAt { slice, switch, rules: count, entries } in packets.rules.iter().filter(|it| it.entries > 0) {
        rules.push(vec![slice.clone(), switch.clone(), count.to_string(), entries.to_string()]);
    }
    let counted = format!(
        "{} frames between slices; {} storms; {} frames lost; digest {:016x}\n",
        packets.crossed, packets.storms, packets.lost, packets.digest
    );
    let log = packets.log.iter().map(|line| format!("log: {line}\n"));
    aligned(&tenants) + &aligned(&rules) + &errors_text(packets) + &log.collect::<String>() + &counted
}

/// A sentence for each error that a tenant got.
fn errors_text(packets: &Packets) -> String {
    let of = |heard: &Heard| {
        let line = |(it, count): &(HeardError, u64)| {
            let HeardError { switch, message, error, why } = it;
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            let times = if *count == 1 { String::new() } else { format!(", {count} times") };
            format!("{} got {error} for {message} at {switch}{times}{why}\n", heard.slice)
        };
        heard.errors.iter().map(line).collect::<String>()
    };
    packets.tenants.iter().map(of).collect()
}

fn flows_text(seen: &Rehearsed) -> String {
    let skipped = seen.phases_ms.len().saturating_sub(PHASES_SHOWN);
    let seconds = |ms: u64| format!("{}", ms as f64 / 1e3);
    let phases = seen.phases_ms[skipped..].iter();
    let headings = phases.map(|(from_ms, to_ms)| format!("{}-{} s", seconds(*from_ms), seconds(*to_ms)));
    let fixed = ["SLICE", "FLOW", "NOMINAL"].map(str::to_owned).into_iter();
    let mut rows: Vec<Vec<String>> =
        vec![fixed.chain(headings).chain(["PATH AT THE END".to_owned()]).collect()];
    for flow in &seen.flows {
        let got = flow.got_bps[skipped..].iter().map(|bps| shown(*bps));
        let path = if flow.path.is_empty() { "none".to_owned() } else { flow.path.join(", ") };
        let fixed = [flow.slice.clone(), flow.ends.clone(), shown(flow.nominal_bps)].into_iter();
        rows.push(fixed.chain(got).chain([path]).collect());
    }
    aligned(&rows)
}

/// A sentence for each flow that gets less than it should.
fn missing_text(seen: &Rehearsed) -> String {
    let short = seen.flows.iter().filter(|flow| !flow.is_content());
    let lines = short.map(|flow| {
        let name = format!("{}:{}", flow.slice, flow.ends);
        let got = shown(flow.got_bps.last().copied().flatten());
        match flow.nominal_bps {
            Some(nominal_bps) => format!("{name} gets {got} of {}\n", shown(Some(nominal_bps))),
            None if flow.path.is_empty() => format!("{name} has no path over the links of its slice\n"),
            None => format!("{name} sends, and no agent has reported it\n"),
        }
    });
    lines.collect()
}

fn labels_text(seen: &Rehearsed) -> String {
    let headings = ["LINK", "CAPACITY"].map(str::to_owned).into_iter();
    let slices = seen.slices.iter().map(|slice| format!("LABEL OF {slice}"));
    let mut rows: Vec<Vec<String>> = vec![headings.chain(slices).collect()];
    for Labelled { name, capacity_bps, labels_bps } in &seen.links {
        let labels = labels_bps.iter().map(|bps| shown(*bps));
        rows.push([name.clone(), shown(Some(*capacity_bps))].into_iter().chain(labels).collect());
    }
    aligned(&rows)
}

/// A rate with one decimal, as others see it. The last digits of a measured rate say nothing.
fn shown(bps: Option<u64>) -> String {
    let rounded = |bps: u64| match bps {
        0..1_000_000 => bps / 1_000 * 1_000,
        _ => (bps + 50_000) / 100_000 * 100_000,
    };
    bps.map_or("-".to_owned(), |bps| Bandwidth::from_bps(rounded(bps)).to_string())
}

fn value(seen: &Rehearsed) -> Value {
    let phases = seen.phases_ms.iter().map(|(from_ms, to_ms)| json!({ "from_ms": from_ms, "to_ms": to_ms }));
    let flows = seen.flows.iter().map(|flow| {
        json!({
            "slice": flow.slice,
            "flow": flow.ends,
            "begins_ms": flow.at_ms,
            "nominal_bps": flow.nominal_bps,
            "got_bps": flow.got_bps,
            "path": flow.path,
            "content": flow.is_content(),
        })
    });
    let links = seen.links.iter().map(|link| {
        let labels = seen.slices.iter().zip(&link.labels_bps).filter_map(|(slice, bps)| {
            let bps = (*bps)?;
            Some((slice.clone(), Value::from(bps)))
        });
        let labels: serde_json::Map<String, Value> = labels.collect();
        json!({ "link": link.name, "capacity_bps": link.capacity_bps, "labels_bps": labels })
    });
    let mut value = json!({
        "phases": phases.collect::<Vec<_>>(),
        "flows": flows.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "moves": seen.moves,
        "notices": seen.notices,
    });
    if let Some(packets) = &seen.packets {
        value["packets"] = packets_value(packets);
    }
    value
}

fn packets_value(packets: &Packets) -> Value {
    let error = |(it, count): &(HeardError, u64)| {
        json!({
            "switch": it.switch, "message": it.message, "error": it.error, "why": it.why, "count": count,
        })
    };
    let tenants = packets.tenants.iter().map(|it| {
        json!({
            "slice": it.slice,
            "openflow": it.openflow,
            "packet_ins": it.packet_ins,
            "errors": it.errors.iter().map(error).collect::<Vec<_>>(),
        })
    });
    let rules = packets.rules.iter().map(
        |it| json!({ "slice": it.slice, "switch": it.switch, "rules": it.rules, "entries": it.entries }),
    );
    json!({
        "tenants": tenants.collect::<Vec<_>>(),
        "rules": rules.collect::<Vec<_>>(),
        "crossed": packets.crossed,
        "storms": packets.storms,
        "lost": packets.lost,
        "log": packets.log,
        "digest": format!("{:016x}", packets.digest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Rehearsed {
        let flow = |ends: &str, nominal_bps, got_bps, path: &[&str]| Flow {
            slice: "red".to_owned(),
            ends: ends.to_owned(),
            at_ms: 0,
            nominal_bps,
            got_bps,
            path: path.iter().map(|link| (*link).to_owned()).collect(),
        };
        Rehearsed {
            phases_ms: vec![(0, 1_500), (1_500, 3_500)],
            flows: vec![
                flow("A-B", Some(8_000_000), vec![Some(9_812_345), Some(7_840_000)], &["s3-s1", "s1-s4"]),
                flow("C-D", Some(2_000_000), vec![None, Some(512_345)], &["s3-s1"]),
                flow("E-F", None, vec![None, Some(0)], &[]),
            ],
            slices: vec!["red".to_owned(), "blue".to_owned()],
            links: vec![Labelled {
                name: "s3-s1".to_owned(),
                capacity_bps: 10_000_000,
                labels_bps: vec![Some(8_000_000), None],
            }],
            moves: 1,
            notices: 7,
            packets: None,
        }
    }

    fn packets() -> Packets {
        let error = HeardError {
            switch: "s5".to_owned(),
            message: "OFPT_FLOW_MOD".to_owned(),
            error: "OFPET_BAD_MATCH, OFPBMC_BAD_VALUE".to_owned(),
            why: Some("port 9 is not in the slice".to_owned()),
        };
        let (slice, switch) = ("red".to_owned(), "s5".to_owned());
        Packets {
            rules: vec![RulesAt { slice: slice.clone(), switch, rules: 3, entries: 4 }],
            tenants: vec![Heard {
                slice,
                openflow: "1.3".to_owned(),
                packet_ins: 5,
                errors: vec![(error, 2)],
            }],
            log: vec!["slice red: something".to_owned()],
            lost: 6,
            digest: 0xab,
            ..Packets::default()
        }
    }

    #[test]
    fn packets_show_rules_errors_and_packet_ins() {
        let seen = Rehearsed { packets: Some(packets()), ..seen() };
        let expected = "\
1 moved to another path; 7 notices to tenants
SLICE  OPENFLOW  PACKET-INS  ERRORS
red    1.3       5           2
SLICE  SWITCH  RULES  ENTRIES
red    s5      3      4
red got OFPET_BAD_MATCH, OFPBMC_BAD_VALUE for OFPT_FLOW_MOD at s5, 2 times: port 9 is not in the slice
log: slice red: something
0 frames between slices; 0 storms; 6 frames lost; digest 00000000000000ab
";
        assert!(text(&seen).ends_with(expected), "{}", text(&seen));
        let value = value(&seen);
        assert_eq!(value["packets"]["tenants"][0]["errors"][0]["count"], json!(2));
        assert_eq!(value["packets"]["rules"][0]["entries"], json!(4));
        assert_eq!(value["packets"]["digest"], json!("00000000000000ab"));
    }

    #[test]
    fn phases_are_columns_and_each_shortage_is_a_sentence() {
        let expected = "\
SLICE  FLOW  NOMINAL  0-1.5 s  1.5-3.5 s  PATH AT THE END
red    A-B   8.0M     9.8M     7.8M       s3-s1, s1-s4
red    C-D   2.0M     -        512.0k     s3-s1
red    E-F   -        -        0          none
red:C-D gets 512.0k of 2.0M
red:E-F has no path over the links of its slice
LINK   CAPACITY  LABEL OF red  LABEL OF blue
s3-s1  10.0M     8.0M          -
1 moved to another path; 7 notices to tenants
";
        assert_eq!(text(&seen()), expected);
    }

    #[test]
    fn programs_get_all_numbers() {
        let value = value(&seen());
        assert_eq!(value["flows"][1]["got_bps"], json!([null, 512_345]));
        assert_eq!(value["flows"][1]["content"], json!(false));
        assert_eq!(value["links"][0]["labels_bps"], json!({ "red": 8_000_000 }));
        assert_eq!(value["phases"][1], json!({ "from_ms": 1_500, "to_ms": 3_500 }));
    }
}
