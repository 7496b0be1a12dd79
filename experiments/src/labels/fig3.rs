//! Figure 3: how long the five steps of a new flow take, from its first frame to the labels of all other tenants.
//!
//! ```text
//!   first frame ──1 meter──2 rate update──3 shaper confirmed──4 label──5 notices──> 99 other controllers
//! ```
//!
//! In: what is asked. Out: claims and a figure. All parts are real, but the slices' switches are emulated: what servers send crosses a bridge. It runs in
//! namespaces of its own and needs root.

mod bare;
mod kept;
mod part;
mod tenants;

use self::kept::{BEFORE, Flow, Kept, WINDOW_S};
use self::part::{OTHERS, Seen};
use super::paper::paper;
use crate::lab::Lab;
use crate::models::testbed::bounded::end_of;
use crate::models::testbed::sandbox::Sandbox;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Panel, Point, ReferenceLine, Scale, Shape, Style};
use crate::plot::{axis, panel, quote, series};
use crate::report::Claim;
use crate::spread::{median, spread_point, spread_text};
use serde_json::Value;
use std::time::Duration;

/// How long all of it takes at most.
const PATIENCE: Duration = Duration::from_secs(1_200);
const MEDIAN_MS: f64 = 1.0;
const P99_MS: f64 = 5.0;
const RATE_LIMIT: f64 = 0.05;
/// Rates are those of 200 to 300 ms behind the first frame of the second flow: the first window, and how many.
const JUDGED: (usize, usize) = (BEFORE + 4, 2);
/// What both flows are promised, in Mb/s, and the size of their frames.
const SHARES_MBPS: [f64; 2] = [8.0, 2.0];
const FRAME_BYTES: [f64; 2] = [1250.0, 250.0];
/// The five steps. Of the last one, the first and the last notice.
const STEPS: [&str; 6] = ["meter", "rate update", "shaper confirmed", "label", "first notice", "last notice"];

/// Measures in this process, which has namespaces of its own.
///
/// # Errors
/// As [`part::run`].
pub(super) fn part(is_short: bool) -> Result<String, String> {
    part::run(is_short)
}

/// One of the processes that slices are compared with.
///
/// # Errors
/// As [`bare::serve`].
pub(super) fn bare_part(address: &str) -> Result<String, String> {
    bare::serve(address)
}

/// Runs it.
///
/// # Errors
/// It is not root, a program is missing, or something does not happen in time.
pub fn run_figure(lab: &Lab) -> Result<Findings, String> {
    findings(&Kept::of(&measure(lab)?))
}

/// Makes it of the data of an earlier run.
///
/// # Errors
/// The data is not that of this experiment.
pub fn again(data: &Value) -> Result<Findings, String> {
    let kept = serde_json::from_value(data.clone());
    findings(&kept.map_err(|error| format!("the report does not have what fig3 keeps: {error}"))?)
}

fn findings(kept: &Kept) -> Result<Findings, String> {
    let flows: Vec<&Flow> = kept.rounds.iter().flatten().collect();
    let seen = flows.iter().filter(|flow| flow.steps_ms.is_some() && flow.label_ms.is_some()).count();
    let times = STEPS.map(|step| flows.iter().filter_map(|flow| step_ms(flow, step)).collect::<Vec<f64>>());
    let mut claims =
        vec![Claim::seen("flows whose five steps were seen", format!("{seen} of {}", flows.len()))];
    for (step, of_step) in STEPS.iter().zip(&times) {
        let text = if of_step.is_empty() { "not seen".to_owned() } else { spread_text(of_step, "ms", 1) };
        claims.push(Claim::seen(&format!("from the first frame: {step}"), text));
    }
    let rules: Vec<f64> = kept.rules_ms.iter().flatten().copied().collect();
    let words: Vec<f64> = flows.iter().flat_map(|flow| flow.notices_ms.iter().copied()).collect();
    claims.extend(claims_of_notices("a flow mod", &rules));
    claims.extend(claims_of_notices("the word of a shaper", &words));
    claims.extend(claim_of_bare(kept));
    for (flow, share) in SHARES_MBPS.iter().enumerate() {
        let rates: Vec<f64> =
            kept.rounds.iter().filter_map(|it| rate_mbps(&it[1], flow, JUDGED.0, JUDGED.1)).collect();
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
    let figure = figure(kept, &times)?;
    let data = serde_json::to_value(kept).map_err(|error| error.to_string())?;
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

/// When one of [`STEPS`] was. None: it was not seen.
fn step_ms(flow: &Flow, step: &str) -> Option<f64> {
    let [meter, rate, shaped, first, last] = flow.steps_ms?;
    match step {
        "meter" => Some(meter),
        "rate update" => Some(rate),
        "shaper confirmed" => Some(shaped),
        "label" => flow.label_ms,
        "first notice" => Some(first),
        _ => Some(last),
    }
}

/// What arrives of a flow from this window on, in so many.
fn rate_mbps(begun: &Flow, flow: usize, from: usize, windows: usize) -> Option<f64> {
    let frames = f64::from(begun.arrived(flow, from, windows)?);
    Some(frames * FRAME_BYTES[flow] * 8.0 / (windows as f64 * WINDOW_S) / 1e6)
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

/// What the machine takes for as many processes that only pass a wake-up on.
fn claim_of_bare(kept: &Kept) -> Option<Claim> {
    let mut sorted: Vec<f64> = kept.bare_ms.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let [middle, most] = [last / 2, last * 99 / 100].map(|place| sorted[place]);
    let what = format!("from a wake-up to the sockets of {OTHERS} processes that only pass it on, median");
    Some(Claim::seen(
        &what,
        format!("{middle:.2} ms of {} notices; 99th percentile {most:.2} ms", sorted.len()),
    ))
}

fn figure(kept: &Kept, times: &[Vec<f64>; 6]) -> Result<Figure, String> {
    let places = times.iter().enumerate().filter(|(_, of_step)| !of_step.is_empty());
    let points: Vec<Point> = places.map(|(place, of_step)| spread_point(place as f64, of_step)).collect();
    let most = points.iter().map(|point| point.spread.map_or(point.y, |(_, most)| most));
    let steps = Chart {
        x: axis("", Scale::Names(STEPS.map(str::to_owned).into())),
        y: axis("ms behind the first frame", Scale::from_zero(most)),
        series: vec![series("median, minimum and maximum", Shape::Bars, Style::Ours, points)],
        marks: Vec::new(),
    };
    let mut panels = vec![panel("The steps of a new flow", Content::Chart(steps)), rates_panel(kept)];
    let paper = paper()?;
    panels.push(quote(&paper.paper, &paper.fig3.place, &paper.fig3.says));
    let notes = vec![
        format!(
            "{OTHERS} slices see the link beside the one that sends. The label is there when the label service has computed the first label for them, by its own clock reading. Notices are seen at sockets."
        ),
        "The paper has no numbers for this figure.".to_owned(),
    ];
    Ok(Figure { title: "Figure 3: the steps of a new flow".to_owned(), panels, notes })
}

/// Rates of both flows in windows of 50 ms, of the first round.
fn rates_panel(kept: &Kept) -> Panel {
    let drawn =
        SHARES_MBPS.iter().zip([Style::Ours, Style::Other]).enumerate().map(|(flow, (share, style))| {
            let point = |window: usize| {
                let from_ms = (window as f64 - BEFORE as f64) * WINDOW_S * 1e3;
                Some(Point::at(from_ms, rate_mbps(&kept.rounds.first()?[1], flow, window, 1)?))
            };
            let points = (0..).map_while(point).collect();
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

    #[test]
    fn a_rate_is_of_the_frames_that_arrive_in_the_window() {
        // A frame of 250 bytes each millisecond, from 200 ms behind the first on.
        let second = [vec![0; 6], vec![50; 5]].concat();
        let flow = Flow { arrivals: Some([vec![0; 11], second]), ..Flow::default() };
        let rate = |of, (from, windows)| rate_mbps(&flow, of, from, windows);
        assert!((rate(1, JUDGED).unwrap() - 2.0).abs() < 1e-9);
        assert!((rate(1, (JUDGED.0 - 1, 2)).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(rate(0, JUDGED), Some(0.0));
        assert_eq!(rate_mbps(&Flow::default(), 0, JUDGED.0, JUDGED.1), None);
    }

    #[test]
    fn findings_are_the_same_when_they_are_made_again() {
        let flow = Flow {
            steps_ms: Some([1.0, 2.0, 3.0, 4.0, 5.0]),
            label_ms: Some(3.5),
            notices_ms: vec![0.5; 99],
            arrivals: Some([vec![40; 11], vec![50; 11]]),
        };
        let kept = Kept {
            rules_ms: vec![vec![0.5; 99]],
            bare_ms: vec![vec![0.3; 99]],
            rounds: vec![[flow.clone(), flow]],
        };
        let first = findings(&kept).unwrap();
        let second = again(&first.data).unwrap();
        assert_eq!((&first.claims, &first.data), (&second.claims, &second.data));
        assert_eq!(first.figure.to_svg(), second.figure.to_svg());
        assert!(
            first.claims.iter().any(|it| it.measured == "0.30 ms of 99 notices; 99th percentile 0.30 ms")
        );
        assert!(first.claims.iter().any(|it| it.what == "from the first frame: label"));
        // A run from before the label was a step of its own.
        let mut old = first.data.clone();
        for flow in [0, 1] {
            old["rounds"][0][flow].as_object_mut().unwrap().remove("label_ms");
        }
        let claims = again(&old).unwrap().claims;
        let measured = [0, 1, 4].map(|place| claims[place].measured.as_str());
        assert_eq!(measured, ["0 of 2", "1.0 ms (1.0 to 1.0, 2 times)", "not seen"]);
        assert!(again(&Value::Null).is_err_and(|why| why.contains("does not have what fig3 keeps")));
    }
}
