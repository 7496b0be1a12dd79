//! Table 3: 1,000 paths of six switches are added beside 15,000, as intents and as paths that the app has computed itself.
//!
//! ```text
//!   app ──1,000 intents──> paths ──sets──> flows ──6,000 flow mods──> switches
//!   app ──1,000 paths────────────────────> flows ──6,000 flow mods──> switches
//! ```
//!
//! A time begins when the app is about to send its first question, and ends when the flow mod is read from the switch's
//! connection.

use super::arrivals::{Arrivals, Burst};
use super::bed::wait_until;
use super::clock::between_ms;
use super::engines;
use super::flows::{self, ADDS_AT_ONCE};
use super::paper::{Installation, Paper, paper};
use super::planner::{Wish, removals};
use super::protocol::Payload;
use super::reroute::{AT_ONCE, ROUNDS_TIME, SERVICES, Trial, latency_chart, latency_text, rounds_chart};
use super::scale_part::RULES_OF_PATH;
use super::wan::Detour;
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::{median, percentile, spread_text};
use flows_contract::SwitchSummary;
use paths_contract::{Page, Question, SERVICE};
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// Between two questions whether all is as it was before.
const SETTLED_LOOK: Duration = Duration::from_millis(5);

const ASKED_TOTAL_MS: f64 = 10.0;
const ASKED_PATHS_PER_S: f64 = 200_000.0;

/// What was measured.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    /// Of intents: flow mods of each round.
    intents: Vec<Burst>,
    /// Of intents: until the last question was answered, and so kept in the store.
    answered_ms: Vec<f64>,
    /// Of paths of the app: flow mods of each round.
    own: Vec<Burst>,
    /// Of the engines in this process.
    paths_per_s: Vec<f64>,
    rules_per_s: Vec<f64>,
    intents_per_s: Vec<f64>,
    /// Of 15,000 intents at the begin, from the first question to all installed.
    first_fill_per_s: f64,
    beside: u32,
    added: u32,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let (beside, added) = match lab.short {
        true => (60, 10),
        false => (15_000, 1_000),
    };
    let mut seen = Measured { beside, added, ..Measured::default() };
    let mut trial = Trial::start(lab, &SERVICES)?;
    let questions = flows::adds(&trial.detour.wan, &trial.detour.others, beside, 0);
    seen.first_fill_per_s = f64::from(beside) / trial.add(questions, beside)?;
    lab.say(&format!("table3: {beside} flows are installed, {:.0} a second", seen.first_fill_per_s));
    let rounds = lab.times(40, 1);
    let began = Instant::now();
    for round in 0..rounds {
        if began.elapsed() > ROUNDS_TIME {
            break;
        }
        with_intents(&mut trial, &mut seen)?;
        with_own_paths(&mut trial, round as u64 + 1, &mut seen)?;
        if round % 10 == 9 {
            lab.say(&format!("table3: round {} of {rounds}", round + 1));
        }
    }
    let Detour { wan, six, .. } = trial.detour.clone();
    drop(trial);
    lab.say("table3: the engines without a node");
    for _ in 0..lab.times(5, 1) {
        seen.paths_per_s.push(engines::paths_per_s(&wan, &six, beside, lab.time(1.0, 0.05)));
        let paths = if lab.short { 200 } else { 20_000 };
        seen.rules_per_s.push(engines::rules_per_s(&wan, &six, paths)?);
        seen.intents_per_s.push(engines::intents_per_s(&wan, &six, paths)?);
    }
    let paper = paper()?;
    Ok(Findings { claims: claims(&seen, &paper), data: json!(seen), figure: figure(&seen, &paper) })
}

/// Adds the flows as intents, and withdraws them.
fn with_intents(trial: &mut Trial, seen: &mut Measured) -> Result<(), String> {
    let questions = flows::adds(&trial.detour.wan, &trial.detour.six, seen.added, seen.beside);
    let last = last_id(trial)?;
    trial.bed.load(SERVICE, questions)?;
    trial.bed.count()?;
    let mut arrivals = Arrivals::begin(&trial.network);
    trial.bed.ask(ADDS_AT_ONCE)?;
    let times = arrivals.wait_for((seen.added * RULES_OF_PATH).into());
    let asked = trial.bed.asked()?;
    let times = times.map_err(|why| format!("{why}; {:?}", trial.counts()))?;
    seen.intents.push(times.since(asked.began_ns));
    seen.answered_ms.push(between_ms(asked.began_ns, asked.ended_ns));
    trial.wait_installed(seen.beside + seen.added, SETTLED_LOOK)?;
    let ids = ids_behind(trial, last)?;
    let withdraw = ids.into_iter().map(|id| flows::payload(&Question::Withdraw { id: view::IntentId(id) }));
    trial.bed.load(SERVICE, withdraw.collect())?;
    trial.bed.ask(AT_ONCE)?;
    trial.bed.asked()?;
    let question = String::from_utf8_lossy(&Question::Counts.to_bytes()).into_owned();
    let until = format!("\"intents\":{},", seen.beside);
    trial.bed.poll(SERVICE, &question, SETTLED_LOOK, &until)?;
    trial.bed.polled().map(drop)
}

fn last_id(trial: &mut Trial) -> Result<u64, String> {
    let mut last = 0;
    while let Some(id) = ids_behind(trial, last)?.last() {
        last = *id;
    }
    Ok(last)
}

pub fn ids_behind(trial: &mut Trial, after: u64) -> Result<Vec<u64>, String> {
    let list = Question::List {
        filter: Default::default(),
        after: Some(view::IntentId(after)),
        limit: Some(paths_contract::PAGE_MAX),
    };
    let answer = trial.bed.question(SERVICE, &String::from_utf8_lossy(&list.to_bytes()))?;
    let page: Page = serde_json::from_str(&answer).map_err(|error| format!("a page of intents: {error}"))?;
    let id = |record: &view::Record| match &record.object {
        view::Object::Intent(intent) => Some(intent.id.0),
        _ => None,
    };
    Ok(page.intents.iter().filter_map(id).collect())
}

/// Lets the probe compute the paths and have them installed, and removes them.
fn with_own_paths(trial: &mut Trial, version: u64, seen: &mut Measured) -> Result<(), String> {
    let Detour { wan, six, .. } = &trial.detour;
    let pairs =
        six.iter().take(seen.added as usize).map(|(from, to)| (wan.edge(*from), wan.edge(*to))).collect();
    let wish = Wish { pairs, first: 0, count: seen.added, version };
    let before = confirmed(trial)?;
    let wanted = before.0 + u64::from(seen.added * RULES_OF_PATH);
    let mut arrivals = Arrivals::begin(&trial.network);
    trial.bed.install(&wish)?;
    let times = arrivals.wait_for((seen.added * RULES_OF_PATH).into());
    let asked = trial.bed.asked()?;
    let times = times?;
    seen.own.push(times.since(asked.began_ns));
    wait_until("all rules of the paths are confirmed", || Ok(confirmed(trial)? == (wanted, wanted)))?;
    trial.bed.load(flows_contract::SERVICE, vec![Payload::of_bytes(removals(&wish).as_bytes())])?;
    trial.bed.ask(1)?;
    trial.bed.asked()?;
    wait_until("all rules of the paths are removed", || Ok(confirmed(trial)? == before))
}

/// How many rules are wanted, and how many of them are confirmed.
fn confirmed(trial: &mut Trial) -> Result<(u64, u64), String> {
    let question = flows_contract::Question::Switches.to_bytes();
    let answer = trial.bed.question(flows_contract::SERVICE, &String::from_utf8_lossy(&question))?;
    let switches: Vec<SwitchSummary> =
        serde_json::from_str(&answer).map_err(|error| format!("the list of switches: {error}"))?;
    Ok((switches.iter().map(|it| it.wanted).sum(), switches.iter().map(|it| it.installed).sum()))
}

fn of(bursts: &[Burst], value: fn(&Burst) -> f64) -> Vec<f64> {
    bursts.iter().map(value).collect()
}

fn claims(seen: &Measured, paper: &Paper) -> Vec<Claim> {
    let ways = [("intents", &seen.intents), ("paths that the app has computed", &seen.own)];
    let mut claims: Vec<Claim> = ways
        .into_iter()
        .flat_map(|(how, bursts)| way_claims(how, bursts, seen.added, &paper.table3))
        .collect();
    claims.extend(engine_claims(seen, paper));
    claims
}

/// What is claimed of one way to add the paths.
fn way_claims(how: &str, bursts: &[Burst], added: u32, table: &Installation) -> Vec<Claim> {
    let said = |median_ms: f64, p99_ms: f64| format!("median {median_ms} ms, p99 {p99_ms} ms");
    let [first, last, confirmed] =
        [of(bursts, |it| it.first_ms), of(bursts, |it| it.last_ms), of(bursts, |it| it.confirmed_ms)];
    let per_s = |values: &[f64]| f64::from(added) / median(values).max(1e-9) * 1000.0;
    vec![
        Claim::seen(&format!("{how}: question to the first flow mod"), latency_text(&first))
            .beside(&said(table.first_median_ms, table.first_p99_ms)),
        Claim::asked(
            &format!("{how}: question to the last flow mod"),
            "median <= 10 ms",
            latency_text(&last),
            !last.is_empty() && median(&last) <= ASKED_TOTAL_MS,
        )
        .beside(&said(table.total_median_ms, table.total_p99_ms)),
        Claim::seen(&format!("{how}: question to the last barrier's answer"), latency_text(&confirmed)),
        Claim::seen(
            &format!("{how}: paths a second, derived as in the paper"),
            format!("{:.0}; confirmed by barriers: {:.0}", per_s(&last), per_s(&confirmed)),
        )
        .beside(&format!("{:.0}", table.paths_per_s)),
    ]
}

/// What is claimed of the store and of the engines.
fn engine_claims(seen: &Measured, paper: &Paper) -> Vec<Claim> {
    let (table, mut claims) = (&paper.table3, Vec::new());
    claims.push(Claim::seen(
        "intents: until the last one is answered, which means that the store has it",
        latency_text(&seen.answered_ms),
    ));
    claims.push(
        Claim::asked(
            "the engine alone: paths of six switches computed and written as sets of rules, one core",
            ">= 200,000 a second",
            spread_text(&seen.paths_per_s, "a second", 0),
            median(&seen.paths_per_s) >= ASKED_PATHS_PER_S,
        )
        .beside(&format!(
            "reached {:.0}, wants {:.0} on a cluster; both end to end",
            table.paths_per_s, table.paths_per_s_wanted
        )),
    );
    let records = &paper.later_records;
    claims.push(
        Claim::asked(
            "the engine of rules alone: commands decided and confirmations taken, one core",
            ">= 750,000 a second",
            spread_text(&seen.rules_per_s, "a second", 0),
            median(&seen.rules_per_s) >= records.rules_per_s,
        )
        .beside(&format!("{:.0}, ONOS later, one node", records.rules_per_s)),
    );
    claims.push(
        Claim::asked(
            "both engines: intents compiled, their rules decided and confirmed, without switches, one core",
            ">= 30,000 a second",
            spread_text(&seen.intents_per_s, "a second", 0),
            median(&seen.intents_per_s) >= records.intents_per_s,
        )
        .beside(&format!("{:.0}, ONOS later, one node, without switches", records.intents_per_s)),
    );
    claims.push(Claim::seen(
        "intents of an empty node with switches: kept in the store, compiled and confirmed",
        format!("{:.0} a second, of {}", seen.first_fill_per_s, seen.beside),
    ));
    claims
}

fn figure(seen: &Measured, paper: &Paper) -> Figure {
    let table = &paper.table3;
    let theirs = [[table.first_median_ms, table.first_p99_ms], [table.total_median_ms, table.total_p99_ms]];
    let both = |bursts: &[Burst]| {
        [of(bursts, |it| it.first_ms), of(bursts, |it| it.last_ms)]
            .map(|values| [median(&values), percentile(&values, 99)])
    };
    Figure {
        title: "Table 3: adding 1,000 paths of six switches".to_owned(),
        panels: vec![
            panel("As intents", Content::Chart(latency_chart(both(&seen.intents), theirs))),
            panel("As paths of the app", Content::Chart(latency_chart(both(&seen.own), theirs))),
            panel(
                "As paths of the app, each round",
                Content::Chart(rounds_chart(
                    &of(&seen.own, |it| it.first_ms),
                    &of(&seen.own, |it| it.last_ms),
                )),
            ),
            panel("Paths a second", Content::Chart(rates_chart(seen, paper))),
        ],
        notes: vec![
            format!("ONOS: {}. Here: one node and emulated switches on one machine.", table.place),
            format!("Later records: {}.", paper.later_records.place),
        ],
    }
}

fn rates_chart(seen: &Measured, paper: &Paper) -> Chart {
    let per_s = |bursts: &[Burst], value: fn(&Burst) -> f64| {
        f64::from(seen.added) / median(&of(bursts, value)).max(1e-3) * 1000.0
    };
    let bars = [
        ("ONOS", paper.table3.paths_per_s),
        ("intents, sent", per_s(&seen.intents, |it| it.last_ms)),
        ("app's paths, sent", per_s(&seen.own, |it| it.last_ms)),
        ("app's paths, confirmed", per_s(&seen.own, |it| it.confirmed_ms)),
        ("engine alone", median(&seen.paths_per_s)),
    ];
    let points = bars.iter().enumerate().map(|(place, bar)| Point::at(place as f64, bar.1.max(1.0)));
    Chart {
        x: axis("", Scale::Names(bars.iter().map(|bar| bar.0.to_owned()).collect())),
        y: axis("paths of six switches a second", Scale::Decades(1_000.0, 10_000_000.0)),
        series: vec![series("median", Shape::Bars, Style::Ours, points.collect())],
        marks: vec![ReferenceLine::Horizontal(ASKED_PATHS_PER_S, "asked of the engine: 200,000".to_owned())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_not_reached() {
        let claims = claims(&Measured::default(), &paper().unwrap());
        let asked: Vec<_> = claims.iter().filter_map(|claim| claim.holds).collect();
        assert_eq!(asked, [false; 5]);
    }

    #[test]
    fn ten_milliseconds_are_enough_and_eleven_are_not() {
        let check = |last_ms: f64, expected: bool| {
            let burst = Burst { last_ms, ..Burst::default() };
            let seen = Measured { own: vec![burst], added: 1_000, ..Measured::default() };
            let claims = claims(&seen, &paper().unwrap());
            let last = claims.iter().rfind(|claim| claim.what.ends_with("the last flow mod")).unwrap();
            assert_eq!(last.holds, Some(expected), "{last_ms}");
        };
        check(10.0, true);
        check(11.0, false);
    }
}
