//! A node that paces slow switches: 1,000 rules at once, in virtual time.
//!
//! In: the built-in profiles, as the switch and as the numbers by which the node treats it. Out: where the rules are, when apps are told, and
//! how long it takes. The paper has none of it.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, Scale, Series, Shape, Style, axis, panel, series};
use crate::report::Claim;
use serde_json::json;
use southbound::{PriorityOrder, SwitchPace};

use super::curves::{NO_HARDWARE, VIRTUAL};
use super::paced::{Pair, delays_of_packet_ins, falling_priorities, mean, pace_of};

const HP: &str = "hp-procurve-j9451a";
/// Rules a second that stay in the HP's hardware.
const HP_PER_S: f64 = 8.0;
/// The switches of Tango, for which the order of priorities counts. The third has no room for a thousand rules.
const TANGO: [&str; 2] = ["tango-1", "tango-2"];

/// How it is told that rules at a switch are programmed.
struct Programmed {
    /// Seconds from the first rule on.
    told_s: Vec<f64>,
    in_hardware: usize,
    by_software: usize,
    errors: u64,
}

/// Runs it.
///
/// # Errors
/// A rule is refused, or something else is not as the switch's profile has it: what.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let rules = u16::try_from(lab.times(1_000, 100)).map_err(|why| why.to_string())?;
    lab.say("HP: all rules at once, paced");
    let hp = programmed(HP, &format!("profile = '{HP}'\npace = 'hardware'"), rules, true)?;
    lab.say("HP: the packets of another app");
    let seconds = u64::from(rules) * 120 / 1_000;
    let (idle, busy) = (packet_ins(0, seconds)?, packet_ins(rules, seconds)?);
    lab.say("Pica8: when apps are told");
    let pica8 = programmed("pica8-p3290", "profile = 'pica8-p3290'", rules, false)?;
    let unaware = programmed("pica8-p3290", "profile = 'null'", rules, false)?;
    lab.say("Tango: falling priorities");
    let orders: Vec<(&str, [f64; 2])> =
        TANGO.into_iter().map(|name| Ok((name, orders(name, rules)?))).collect::<Result<_, String>>()?;
    let mut claims = hp_claims(&hp, rules);
    claims.push(Claim::asked(
        "HP: packet-ins of another app meanwhile, mean",
        "at most twice the mean when idle",
        format!("{:.1} ms, idle {:.1} ms", mean(&busy), mean(&idle)),
        mean(&busy) <= 2.0 * mean(&idle),
    ));
    let early = |it: &Programmed| usize::from(rules) - it.in_hardware;
    claims.push(Claim::asked(
        "Pica8: apps that are told too early",
        "none",
        format!("{} of {rules}; {} by the barriers alone", early(&pica8), early(&unaware)),
        early(&pica8) == 0,
    ));
    claims.extend(orders.iter().map(|(name, took)| order_claim(name, *took)));
    let data = json!({
        "rules": rules,
        "hp": { "told_s": hp.told_s, "in_hardware": hp.in_hardware, "by_software": hp.by_software, "errors": hp.errors },
        "packet_ins_ms": { "idle": idle, "busy": busy },
        "pica8": { "early": early(&pica8), "early_by_barriers": early(&unaware) },
        "orders_s": orders.iter().map(|(name, [cheap, as_they_come])| json!([name, cheap, as_they_come])).collect::<Vec<_>>(),
    });
    Ok(Findings { claims, data, figure: figure(&hp, &idle, &busy) })
}

fn programmed(plays: &str, treated: &str, rules: u16, tries: bool) -> Result<Programmed, String> {
    let mut pair = Pair::new(plays, pace_of(treated)?)?;
    pair.tries = tries;
    let began = pair.now;
    (0..rules).try_for_each(|host| pair.add(host.into(), 7))?;
    let in_hardware = pair.until_all_are_told(rules.into())?;
    let told_s = pair.receipts.iter().map(|(_, _, at)| (*at - began).as_secs_f64()).collect();
    let errors = pair.session.counters().errors_in;
    Ok(Programmed { told_s, in_hardware, by_software: pair.by_software, errors })
}

/// The delays of packet-ins while so many rules wait, in milliseconds.
fn packet_ins(rules: u16, seconds: u64) -> Result<Vec<f64>, String> {
    let mut pair = Pair::new(HP, pace_of(&format!("profile = '{HP}'\npace = 'hardware'"))?)?;
    (0..rules).try_for_each(|host| pair.add(host.into(), 7))?;
    delays_of_packet_ins(&mut pair, seconds)
}

/// Seconds in the order that is cheap for the switch, and as the rules come.
fn orders(name: &str, rules: u16) -> Result<[f64; 2], String> {
    let cheap = (*pace_of(&format!("profile = '{name}'"))?).clone();
    let as_they_come = SwitchPace { order: PriorityOrder::AsTheyCome, ..cheap.clone() };
    Ok([falling_priorities(name, cheap, rules)?, falling_priorities(name, as_they_come, rules)?])
}

fn hp_claims(hp: &Programmed, rules: u16) -> Vec<Claim> {
    let took = hp.told_s.last().copied().unwrap_or_default();
    let limit = 1.05 * f64::from(rules) / HP_PER_S;
    let (there, soft) = (hp.in_hardware, hp.by_software);
    vec![
        Claim::asked(
            "HP: rules in hardware when their app is told",
            "all",
            format!("{there} of {rules}"),
            there == usize::from(rules),
        ),
        Claim::asked("HP: packets that a software rule sent on", "none", soft.to_string(), soft == 0),
        Claim::asked("HP: errors", "none", hp.errors.to_string(), hp.errors == 0),
        Claim::asked("HP: time", &format!("at most {limit:.1} s"), format!("{took:.1} s"), took <= limit),
    ]
}

fn order_claim(name: &str, [cheap, as_they_come]: [f64; 2]) -> Claim {
    let what = format!("{name}: rules of falling priorities in the cheap order");
    let measured = format!("{cheap:.1} s, as they come {as_they_come:.1} s");
    if (cheap / as_they_come - 1.0).abs() < 0.01 {
        return Claim::seen(&what, format!("{measured}: the order costs nothing here"));
    }
    let saved = 1.0 - cheap / as_they_come;
    Claim::asked(&what, "70 % less time", format!("{measured}: {:.0} % less", 100.0 * saved), saved >= 0.7)
}

fn figure(hp: &Programmed, idle: &[f64], busy: &[f64]) -> Figure {
    let count = |told: &[f64]| (1..=told.len()).map(|it| it as f64).collect::<Vec<_>>();
    let told = line("HP", Style::Ours, &hp.told_s, &count(&hp.told_s));
    let shares = |delays: &[f64]| count(delays).iter().map(|it| it / delays.len() as f64).collect::<Vec<_>>();
    let delays = vec![
        line("idle", Style::Baseline, idle, &shares(idle)),
        line("while rules wait", Style::Ours, busy, &shares(busy)),
    ];
    Figure {
        title: "A node paces slow switches".to_owned(),
        panels: vec![
            panel("Rules in hardware", Content::Chart(chart("time, s", "rules", vec![told]))),
            panel("Packet-ins of another app", Content::Chart(chart("delay, ms", "share", delays))),
        ],
        notes: vec![format!("Not in the paper. {NO_HARDWARE}"), VIRTUAL.to_owned()],
    }
}

fn line(name: &str, style: Style, x: &[f64], y: &[f64]) -> Series {
    let points = x.iter().zip(y).map(|(x, y)| Point::at(*x, *y)).collect();
    series(name, Shape::Line, style, points)
}

fn chart(x: &str, y: &str, series: Vec<Series>) -> Chart {
    let scale = |of: fn(&Point) -> f64| {
        Scale::from_zero(series.iter().flat_map(|it| &it.points).map(of).collect::<Vec<_>>())
    };
    Chart {
        x: axis(x, scale(|it| it.x)),
        y: axis(y, scale(|it| it.y)),
        series: series.clone(),
        marks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_saves_seventy_percent_holds_and_one_that_costs_nothing_is_no_claim() {
        let holds = |took| order_claim("tango-1", took).holds;
        assert_eq!(
            [holds([3.0, 10.0]), holds([3.1, 10.0]), holds([10.0, 10.0])],
            [Some(true), Some(false), None]
        );
    }
}
