//! Figure 3: how long the five steps of a new flow take, from its first frame to the labels of all other tenants.
//!
//! ```text
//!   first frame ──1 meter──2 rate update──3 shaper confirmed──4, 5 label and notice──> 99 other controllers
//! ```
//!
//! In: what is asked. Out: claims and a figure. All parts are real, but the slices' switches are emulated: what servers send crosses a bridge. It runs in
//! namespaces of its own and needs root.

mod part;
mod tenants;

use self::part::{Begun, OTHERS, Seen};
use super::paper::paper;
use crate::lab::Lab;
use crate::models::testbed::bounded::end_of;
use crate::models::testbed::sandbox::Sandbox;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Panel, Point, ReferenceLine, Scale, Shape, Style};
use crate::plot::{axis, panel, quote, series};
use crate::report::Claim;
use crate::spread::{median, spread_point, spread_text};
use std::time::Duration;

/// How long all of it takes at most.
const PATIENCE: Duration = Duration::from_secs(1_200);
const MEDIAN_MS: f64 = 1.0;
const P99_MS: f64 = 5.0;
const RATE_LIMIT: f64 = 0.05;
/// Rates are those of this time behind the first frame of the second flow, in seconds.
const WINDOW_S: (f64, f64) = (0.2, 0.3);
/// What both flows are promised, in Mb/s, and the size of their frames.
const SHARES_MBPS: [f64; 2] = [8.0, 2.0];
const FRAME_BYTES: [f64; 2] = [1250.0, 250.0];
/// Steps, as far as they can be seen from outside.
const STEPS: [&str; 5] = ["meter", "rate update", "shaper confirmed", "first notice", "last notice"];

/// Measures in this process, which has namespaces of its own.
///
/// # Errors
/// As [`part::run`].
pub(super) fn part(is_short: bool) -> Result<String, String> {
    part::run(is_short)
}

/// Runs it.
///
/// # Errors
/// It is not root, a program is missing, or something does not happen in time.
pub fn run_figure(lab: &Lab) -> Result<Findings, String> {
    let seen = measure(lab)?;
    let flows: Vec<&Begun> = seen.rounds.iter().flatten().collect();
    let times: Vec<[f64; 5]> = flows.iter().filter_map(|begun| steps_ms(begun)).collect();
    let mut claims =
        vec![Claim::seen("flows whose five steps were seen", format!("{} of {}", times.len(), flows.len()))];
    for (place, step) in STEPS.iter().enumerate() {
        let of_step: Vec<f64> = times.iter().map(|it| it[place]).collect();
        claims.push(Claim::seen(&format!("from the first frame: {step}"), spread_text(&of_step, "ms", 1)));
    }
    let rules: Vec<f64> = seen.rules_s.iter().flatten().map(|it| it * 1e3).collect();
    let words: Vec<f64> = flows.iter().flat_map(|begun| after_word_ms(begun)).collect();
    claims.extend(claims_of_notices("a flow mod", &rules));
    claims.extend(claims_of_notices("the word of a shaper", &words));
    for (flow, share) in SHARES_MBPS.iter().enumerate() {
        let rates: Vec<f64> = seen.rounds.iter().filter_map(|it| rate_mbps(&it[1], flow, WINDOW_S)).collect();
        let middle = median(&rates);
        claims.push(Claim::asked(
            &format!(
                "rate of the flow of {share} Mb/s, 200 to 300 ms behind the first frame of the second flow"
            ),
            "within 5 % of its share",
            spread_text(&rates, "Mb/s", 2),
            (middle - share).abs() <= RATE_LIMIT * share,
        ));
    }
    let figure = figure(&seen, &times)?;
    let data = serde_json::to_value(&seen).map_err(|error| error.to_string())?;
    Ok(Findings { claims, data, figure })
}

fn measure(lab: &Lab) -> Result<Seen, String> {
    let sandbox = Sandbox::new()?;
    let own = std::env::current_exe().map_err(|error| format!("this program cannot find itself: {error}"))?;
    let output = sandbox.folder().join("seen.json");
    let failed = |error: std::io::Error| format!("{} cannot be written: {error}", output.display());
    let file = std::fs::File::create(&output).map_err(failed)?;
    let mut command = sandbox.command("part", own)?;
    command.arg("--part").arg(if lab.short { "labels:fig3-short" } else { "labels:fig3" }).stdout(file);
    let mut child = command.spawn().map_err(|error| format!("the part cannot be run: {error}"))?;
    let status = end_of(&mut child, "the part", PATIENCE)?;
    let text = std::fs::read_to_string(&output).unwrap_or_default();
    match serde_json::from_str(&text) {
        Ok(seen) if status.success() => Ok(seen),
        _ => Err(sandbox.failed("the part", "part")),
    }
}

/// Milliseconds from the first frame to each step. None: a step was not seen.
fn steps_ms(begun: &Begun) -> Option<[f64; 5]> {
    let first = time_of(begun, "leaves", 0.0)?;
    let began = time_of(begun, "began", first)?;
    let rate = time_of(begun, "rate", first)?;
    let shaped = time_of(begun, "shaped", first)?;
    let told = |pick: fn(f64, f64) -> f64| begun.told_s.iter().copied().reduce(pick);
    let (first_told, last_told) = (told(f64::min)?, told(f64::max)?);
    Some([began, rate, shaped, first_told, last_told].map(|at| (at - first) * 1e3))
}

/// From the word that makes the flow count until each of the others was told. That word is the last of the meter's and the shaper's.
fn after_word_ms(begun: &Begun) -> Vec<f64> {
    let words = ["began", "shaped"].map(|what| time_of(begun, what, 0.0));
    let [Some(began), Some(shaped)] = words else { return Vec::new() };
    begun.told_s.iter().map(|told| (told - began.max(shaped)) * 1e3).collect()
}

/// When something was first seen of the flow that begins.
fn time_of(begun: &Begun, what: &str, from: f64) -> Option<f64> {
    let flow = begun.flow?;
    begun.events.iter().find(|(at, it, of)| it == what && *of == flow && *at >= from).map(|it| it.0)
}

/// What arrives of a flow in a window behind the first frame of the one that begins.
fn rate_mbps(begun: &Begun, flow: usize, (from, to): (f64, f64)) -> Option<f64> {
    let first = time_of(begun, "leaves", 0.0)?;
    let within = |at: f64| at >= first + from && at < first + to;
    let frames = begun.events.iter().filter(|(at, what, of)| what == "arrives" && *of == flow && within(*at));
    Some(frames.count() as f64 * FRAME_BYTES[flow] * 8.0 / (to - from) / 1e6)
}

fn claims_of_notices(what: &str, times_ms: &[f64]) -> Vec<Claim> {
    let mut sorted = times_ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| sorted.get(((sorted.len().saturating_sub(1)) as f64 * part) as usize).copied();
    let claim = |name: &str, value: Option<f64>, most: f64| {
        let text =
            value.map_or("not seen".to_owned(), |it| format!("{it:.2} ms of {} notices", sorted.len()));
        Claim::asked(
            &format!("from {what} to labels at {OTHERS} other controllers, {name}"),
            &format!("<= {most} ms"),
            text,
            value.is_some_and(|it| it <= most),
        )
    };
    vec![claim("median", at(0.5), MEDIAN_MS), claim("99th percentile", at(0.99), P99_MS)]
}

fn figure(seen: &Seen, times: &[[f64; 5]]) -> Result<Figure, String> {
    let points = (0..STEPS.len()).map(|place| {
        let of_step: Vec<f64> = times.iter().map(|it| it[place]).collect();
        spread_point(place as f64, &of_step)
    });
    let points: Vec<Point> = points.collect();
    let most = points.iter().map(|point| point.spread.map_or(point.y, |(_, most)| most));
    let steps = Chart {
        x: axis("", Scale::Names(STEPS.map(str::to_owned).into())),
        y: axis("ms behind the first frame", Scale::from_zero(most)),
        series: vec![series("median, minimum and maximum", Shape::Bars, Style::Ours, points)],
        marks: Vec::new(),
    };
    let mut panels = vec![panel("The steps of a new flow", Content::Chart(steps)), rates_panel(seen)];
    let paper = paper()?;
    panels.push(quote(&paper.paper, &paper.fig3.place, &paper.fig3.says));
    let notes = vec![
        format!(
            "{OTHERS} slices see the link beside the one that sends. The label service tells no time of its own, so steps 4 and 5 are seen at sockets."
        ),
        "The paper has no numbers for this figure.".to_owned(),
    ];
    Ok(Figure { title: "Figure 3: the steps of a new flow".to_owned(), panels, notes })
}

/// Rates of both flows in windows of 50 ms, of the first round.
fn rates_panel(seen: &Seen) -> Panel {
    let drawn =
        SHARES_MBPS.iter().zip([Style::Ours, Style::Other]).enumerate().map(|(flow, (share, style))| {
            let point = |window: i32| {
                let from = f64::from(window) * 0.05;
                let begun = &seen.rounds.first()?[1];
                Some(Point::at(from * 1e3, rate_mbps(begun, flow, (from, from + 0.05))?))
            };
            let points = (-2..9).filter_map(point).collect();
            series(&format!("{share} Mb/s"), Shape::Line, style, points)
        });
    let chart = Chart {
        x: axis("ms behind the first frame of the second flow", Scale::Linear(-100.0, 450.0)),
        y: axis("rate, Mb/s", Scale::Linear(0.0, 12.0)),
        series: drawn.collect(),
        marks: SHARES_MBPS.map(|share| ReferenceLine::Horizontal(share, "share".to_owned())).into(),
    };
    panel("Rates in windows of 50 ms, first round", Content::Chart(chart))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> Begun {
        let event = |at: f64, what: &str, flow: usize| (at, what.to_owned(), flow);
        let mut events = vec![
            event(9.9, "arrives", 0),
            event(10.0, "leaves", 1),
            event(10.01, "began", 1),
            event(10.011, "rate", 1),
            event(10.02, "shaped", 1),
        ];
        events.extend((0..100).map(|it| event(10.2005 + f64::from(it) * 0.001, "arrives", 1)));
        Begun { flow: Some(1), events, told_s: vec![10.021, 10.025] }
    }

    #[test]
    fn steps_count_from_the_first_frame() {
        let steps = steps_ms(&begun()).unwrap();
        let expected = [10.0, 11.0, 20.0, 21.0, 25.0];
        assert!(steps.iter().zip(expected).all(|(step, it)| (step - it).abs() < 1e-3), "{steps:?}");
        assert_eq!(steps_ms(&Begun { told_s: Vec::new(), ..begun() }), None);
        assert!((after_word_ms(&begun())[1] - 5.0).abs() < 1e-3);
    }

    #[test]
    fn a_rate_is_of_the_frames_that_arrive_in_the_window() {
        // A frame of 250 bytes each millisecond.
        assert!((rate_mbps(&begun(), 1, WINDOW_S).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(rate_mbps(&begun(), 0, WINDOW_S), Some(0.0));
    }
}
