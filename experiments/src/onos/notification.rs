//! Notification against polling: an app that follows the view, and one that asks `discovery` again and again.
//!
//! ```text
//!   a port goes down ──> the link is down in the view that the app follows
//!                    ──> the next question of an app that polls is answered with a link that is down
//! ```
//!
//! Also: the processor time of the node in a second in which nothing happens. In: intervals. Out: delays and shares.

use super::bed::{Bed, Plan};
use super::clock::{between_ms, now_ns};
use super::paper::{Said, paper};
use super::reroute::latency_text;
use super::wan::{Wan, cable_name};
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, Scale, Shape, Style, axis, panel, quote, series};
use crate::report::Claim;
use crate::spread::{median, spread_point};
use emulator::{Change, Handle, Random};
use lab::processes::{processor_time, tree};
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};
use view::Kind;

const SWITCHES: usize = 81;
const CABLES: usize = 121;
const SEED: u64 = 81;

/// The service that is asked.
const SERVICE: &str = "discovery";

/// The intervals of the app that polls, in milliseconds.
const INTERVALS_MS: [u64; 4] = [1, 10, 100, 1_000];

/// What was measured of one way.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    /// `None`: it follows.
    interval_ms: Option<u64>,
    delay_ms: Vec<f64>,
    /// Processor time of the node while nothing happens, in per cent of one core.
    idle_per_cent: f64,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let wan = Wan::new(SWITCHES, CABLES, SEED);
    let plan = Plan { services: &[SERVICE], kinds: &[Kind::Link], raw: false, more: "" };
    let mut bed = Bed::start(lab, plan)?;
    let network = bed.network(&wan.topology())?;
    bed.wait_links(CABLES * 2)?;
    let mut random = Random::new(SEED);
    let mut all = Vec::new();
    let intervals = if lab.short { &INTERVALS_MS[..2] } else { &INTERVALS_MS[..] };
    for interval_ms in std::iter::once(None).chain(intervals.iter().copied().map(Some)) {
        let way = interval_ms.map_or("notification".to_owned(), |ms| format!("polling every {ms} ms"));
        lab.say(&way);
        let times = if interval_ms == Some(1_000) { 12 } else { 30 };
        let mut seen = Measured { interval_ms, delay_ms: Vec::new(), idle_per_cent: 0.0 };
        for cable in wan.cables.iter().take(lab.times(times, 2)) {
            let phase = random.share();
            seen.delay_ms.push(one_failure(&mut bed, &network, &wan, *cable, interval_ms, phase)?);
        }
        seen.idle_per_cent = idle(lab, &mut bed, &wan, interval_ms)?;
        all.push(seen);
    }
    let paper = paper()?.polling;
    Ok(Findings { claims: claims(&all, &paper), data: json!(all), figure: figure(&all, &paper) })
}

fn question(wan: &Wan, cable: (usize, usize)) -> String {
    let key = wan.ends(cable).map(|(one, two)| format!("link/{one}-{two}")).unwrap_or_default();
    json!({"op": "get", "key": key}).to_string()
}

/// How long until the app knows. `phase`: when in the interval the failure comes.
fn one_failure(
    bed: &mut Bed,
    network: &Handle,
    wan: &Wan,
    cable: (usize, usize),
    interval_ms: Option<u64>,
    phase: f64,
) -> Result<f64, String> {
    let set = |up| {
        let link = cable_name(cable);
        network.change(Change::Link { link, up }).map_err(|error| error.to_string())
    };
    bed.report()?;
    let delay_ms = match interval_ms {
        None => {
            let began_ns = now_ns();
            set(false)?;
            bed.wait_links(CABLES * 2 - 2)?;
            let key = wan.ends(cable).map(|(one, two)| format!("link/{one}-{two}")).unwrap_or_default();
            let sights = bed.report()?;
            let down = sights.iter().find(|sight| sight.key == key && !sight.up);
            between_ms(began_ns, down.ok_or("the app was not told")?.at_ns)
        }
        Some(ms) => {
            bed.poll(SERVICE, &question(wan, cable), Duration::from_millis(ms), "\"state\":\"down\"")?;
            std::thread::sleep(Duration::from_secs_f64((ms as f64 * (1.0 + phase) + 5.0) / 1000.0));
            let began_ns = now_ns();
            set(false)?;
            between_ms(began_ns, bed.polled()?.0)
        }
    };
    set(true)?;
    bed.wait_links(CABLES * 2)?;
    Ok(delay_ms)
}

/// The node's processor time while nothing happens.
fn idle(lab: &Lab, bed: &mut Bed, wan: &Wan, interval_ms: Option<u64>) -> Result<f64, String> {
    let time = lab.time(3.0, 0.2);
    let processes = tree(bed.node().pid());
    let (before, began) = (processor_time(&processes), Instant::now());
    match interval_ms {
        None => std::thread::sleep(time),
        Some(ms) => {
            let most = usize::try_from(time.as_millis()).unwrap_or(1) / ms.max(1) as usize;
            let cable = wan.cables.first().copied().unwrap_or_default();
            bed.poll_in_vain(SERVICE, &question(wan, cable), Duration::from_millis(ms), most.max(1))?;
            std::thread::sleep(time.saturating_sub(began.elapsed()));
        }
    }
    let used = processor_time(&processes).saturating_sub(before);
    Ok(used.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0)
}

fn way(seen: &Measured) -> String {
    seen.interval_ms.map_or("following".to_owned(), |ms| format!("every {ms} ms"))
}

fn claims(all: &[Measured], paper: &Said) -> Vec<Claim> {
    let mut claims = Vec::new();
    for seen in all {
        let text =
            format!("{}; {:.1} % of a core while idle", latency_text(&seen.delay_ms), seen.idle_per_cent);
        let claim = Claim::seen(&format!("an app that asks {}: link down until it knows", way(seen)), text);
        claims.push(match seen.interval_ms {
            None => {
                Claim { what: "an app that follows the view: link down until it knows".to_owned(), ..claim }
            }
            Some(_) => claim.beside(&paper.says.join(" ")),
        });
    }
    let follows = all.iter().find(|seen| seen.interval_ms.is_none());
    let polls = all.iter().filter(|seen| seen.interval_ms.is_some_and(|ms| ms >= 10));
    let fastest = polls.map(|seen| median(&seen.delay_ms)).reduce(f64::min);
    let holds = follows.zip(fastest).is_some_and(|(follows, fastest)| {
        !follows.delay_ms.is_empty() && median(&follows.delay_ms) < fastest
    });
    claims.push(Claim::asked(
        "following is faster than polling every 10 ms or less often",
        "median, by median",
        fastest.map_or("nothing was polled".to_owned(), |fastest| {
            format!("{:.2} and {fastest:.2} ms", follows.map_or(0.0, |seen| median(&seen.delay_ms)))
        }),
        holds,
    ));
    claims
}

fn figure(all: &[Measured], paper: &Said) -> Figure {
    let names = || Scale::Names(all.iter().map(way).collect());
    let delays = all.iter().enumerate().filter(|(_, seen)| !seen.delay_ms.is_empty());
    let delays = delays.map(|(place, seen)| spread_point(place as f64, &seen.delay_ms)).collect();
    let idle =
        all.iter().enumerate().map(|(place, seen)| Point::at(place as f64, seen.idle_per_cent.max(0.01)));
    Figure {
        title: "Notification against polling".to_owned(),
        panels: vec![
            quote("ONOS", &paper.place, &paper.says),
            panel(
                "A link goes down until the app knows",
                Content::Chart(Chart {
                    x: axis("the app", names()),
                    y: axis("milliseconds", Scale::Decades(0.01, 10_000.0)),
                    series: vec![series("median, least and most", Shape::Bars, Style::Ours, delays)],
                    marks: vec![],
                }),
            ),
            panel(
                "Processor time of the node while nothing happens",
                Content::Chart(Chart {
                    x: axis("the app", names()),
                    y: axis("per cent of a core", Scale::Decades(0.01, 1_000.0)),
                    series: vec![series("node and app", Shape::Bars, Style::Other, idle.collect())],
                    marks: vec![],
                }),
            ),
        ],
        notes: vec![
            "81 switches, one question for one link. The processor time also has the probes of discovery and the node's \
             own watching."
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_polls_every_millisecond_is_not_compared() {
        let one = |interval_ms, delay| Measured { interval_ms, delay_ms: vec![delay], idle_per_cent: 0.0 };
        let check = |following: f64, every_ten: f64, expected: bool| {
            let all = [one(None, following), one(Some(1), 0.1), one(Some(10), every_ten)];
            assert_eq!(claims(&all, &paper().unwrap().polling).last().unwrap().holds, Some(expected));
        };
        check(0.5, 5.0, true);
        check(6.0, 5.0, false);
        assert_eq!(claims(&[], &paper().unwrap().polling).last().unwrap().holds, Some(false));
    }
}
