//! Whether the probe finds profiles that it does not know: switches made from seeds, probed in virtual time.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use probe::recovery::{Summary, run as recover};
use serde_json::{Value, json};

use super::curves::VIRTUAL;

/// Hidden profiles.
const SEEDS: u64 = 50;
/// The first seed. The probe's estimators were tuned on profiles of smaller seeds.
const FIRST_SEED: u64 = 2000;
/// Values that are names. Two of fifty may be wrong.
const POLICIES: [&str; 9] = [
    "when full",
    "victim",
    "kind of modify",
    "barrier is honest",
    "software table",
    "promotion",
    "promotion batch",
    "promotion order",
    "packet-in limit",
];
const WRONG_POLICIES: u32 = 25;
/// Runs it.
///
/// # Errors
/// There is none: what the probe does not find is a result.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let seeds = u64::try_from(lab.times(usize::try_from(SEEDS).map_err(|why| why.to_string())?, 2))
        .map_err(|why| why.to_string())?;
    let first = pass(lab, seeds, "first");
    let second = pass(lab, seeds, "second");
    let mut claims: Vec<Claim> =
        first.by_value.iter().map(|(what, found)| value_claim(what, *found)).collect();
    claims.push(digest_claim(&first, &second));
    claims.push(Claim::asked(
        "probes without a profile",
        "none",
        format!("{} of {seeds}", first.failed.len()),
        first.failed.is_empty(),
    ));
    claims.push(Claim::asked(
        "probes that take longer than 300 s and than four fillings of the table",
        "none",
        format!("{} of {seeds}; the longest took {:.1} s", first.too_long, first.longest_s),
        first.too_long == 0,
    ));
    let count = u32::try_from(seeds).map_err(|why| why.to_string())?;
    let may_be_wrong = count / WRONG_POLICIES;
    claims.push(Claim::asked(
        "switches with all policies named right",
        &format!("at least {} of {count}", count - may_be_wrong),
        format!("{} of {count}", first.with_policies),
        first.with_policies + may_be_wrong >= count,
    ));
    Ok(Findings { claims, data: to_json(&first), figure: figure(&first, seeds) })
}

fn pass(lab: &Lab, seeds: u64, which: &str) -> Summary {
    let mut summary = Summary::default();
    for number in 0..seeds {
        lab.say(&format!("{which} pass: hidden profile {} of {seeds}", number + 1));
        summary.add(recover(FIRST_SEED + number));
    }
    summary
}

/// Numbers must all be right. A few names may be wrong.
fn value_claim(what: &str, (count, right, error): (u32, u32, f64)) -> Claim {
    let may_be_wrong = if POLICIES.contains(&what) { count / WRONG_POLICIES } else { 0 };
    let asked = if may_be_wrong > 0 {
        format!("at least {} of {count}", count - may_be_wrong)
    } else {
        "all".to_owned()
    };
    let text = format!("{right} of {count} within the limit, largest error {error:.3}");
    Claim::asked(what, &asked, text, count - right <= may_be_wrong)
}

fn digest_claim(first: &Summary, second: &Summary) -> Claim {
    let text = format!("{:016x}, {:016x}", first.digest, second.digest);
    Claim::asked("two passes", "one digest", text, first.digest == second.digest)
}

fn to_json(summary: &Summary) -> Value {
    let values: Vec<Value> = summary
        .by_value
        .iter()
        .map(|(what, (count, right, error))| {
            json!({ "what": what, "switches": count, "right": right, "largest_error": error })
        })
        .collect();
    let wrong: Vec<Value> = summary
        .wrong
        .iter()
        .map(|(seed, line)| {
            json!({ "seed": seed, "what": line.what, "truth": line.truth, "found": line.found, "error": line.error })
        })
        .collect();
    json!({
        "values": values,
        "wrong": wrong,
        "failed": summary.failed,
        "longest_s": summary.longest_s,
        "too_long": summary.too_long,
        "with_policies": summary.with_policies,
        "digest": format!("{:016x}", summary.digest),
    })
}

fn figure(summary: &Summary, seeds: u64) -> Figure {
    let names = Scale::Names(summary.by_value.keys().map(|what| (*what).to_owned()).collect());
    let share = |(count, right, _): &(u32, u32, f64)| f64::from(*right) / f64::from((*count).max(1));
    let points = summary.by_value.values().zip(0u32..);
    let points = points.map(|(found, place)| Point::at(f64::from(place), share(found))).collect();
    let chart = Chart {
        x: axis("value", names),
        y: axis("share that is right", Scale::Linear(0.0, 1.0)),
        series: vec![series("within the limit", Shape::Bars, Style::Ours, points)],
        marks: Vec::new(),
    };
    Figure {
        title: "Hidden profiles that the probe finds".to_owned(),
        panels: vec![panel(format!("{seeds} profiles from seeds"), Content::Chart(chart))],
        notes: vec![
            "Not in the paper. The switches are made from seeds, and the probe is told nothing of them."
                .to_owned(),
            VIRTUAL.to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_of_fifty_may_be_wrong_and_no_number() {
        let holds = |what, right| value_claim(what, (50, right, 0.5)).holds;
        assert_eq!([holds("victim", 48), holds("victim", 47)], [Some(true), Some(false)]);
        assert_eq!([holds("table, rules", 50), holds("table, rules", 49)], [Some(true), Some(false)]);
    }
}
