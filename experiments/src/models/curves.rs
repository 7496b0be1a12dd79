//! Distributions as curves, and the words around them.
//!
//! In: samples. Out: series and panels of figures, and JSON. It measures nothing.

use crate::plot::{Chart, Content, Panel, Point, Scale, Series, Shape, Style, axis, panel, series};
use profile::compare::{QqPoint, Samples};
use serde_json::{Value, json};

/// Points of a curve. The first and the last are the ends of the samples.
const POINTS: u32 = 200;
/// The quantiles that JSON has.
const QUANTILES: [f64; 9] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// What figures say that compare a target with an emulator.
pub const NO_HARDWARE: &str = "No hardware switch was at hand. The target is Burnet's software switch with the built-in profile, and the \
                               emulator knows only what the probe found.";
/// What every page of an experiment in virtual time says.
pub const VIRTUAL: &str =
    "In virtual time: nothing depends on the machine, and each seed gives the same run.";

/// A note with what the paper says.
pub fn said(place: &str, says: &[String]) -> String {
    format!("The paper, {place}. {}", says.join(" ")).trim_end().to_owned()
}

/// The distribution function in milliseconds.
pub fn cdf(name: &str, style: Style, us: &Samples) -> Series {
    scaled_cdf(name, style, us, 1e-3)
}

/// The distribution function of values that are multiplied by a factor.
pub fn scaled_cdf(name: &str, style: Style, values: &Samples, factor: f64) -> Series {
    let point = |step| {
        let share = f64::from(step) / f64::from(POINTS);
        Point::at(values.quantile(share) * factor, share)
    };
    series(name, Shape::Line, style, (0..=POINTS).map(point).collect())
}

/// A panel of distribution functions.
pub fn cdf_panel(title: &str, label: &str, x: Scale, curves: Vec<Series>) -> Panel {
    let y = axis("share", Scale::Linear(0.0, 1.0));
    let chart = Chart { x: axis(label, x), y, series: curves, marks: Vec::new() };
    panel(title, Content::Chart(chart))
}

/// A scale of factors of ten around all points of curves.
pub fn decades(curves: &[Series]) -> Scale {
    let values = || curves.iter().flat_map(|curve| &curve.points).map(|point| point.x);
    let most = values().fold(f64::MIN_POSITIVE, f64::max);
    // Four decades at most: a curve that begins at zero would need more than there are.
    let least = values().filter(|value| *value > most * 1e-4).fold(most, f64::min);
    Scale::Decades(10f64.powf(least.log10().floor()), 10f64.powf(most.log10().ceil()))
}

/// A panel of QQ plots: the quantiles of both emulators over those of their target.
pub fn qq_panel(title: &str, full: &[QqPoint], simple: &[QqPoint]) -> Panel {
    let both = full.iter().chain(simple);
    let most_ms = both.map(|point| point.first_us.max(point.second_us) / 1e3).fold(1.0, f64::max);
    let scale = Scale::from_zero([most_ms]);
    let diagonal = vec![Point::at(0.0, 0.0), Point::at(most_ms, most_ms)];
    let chart = Chart {
        x: axis("target, ms", scale.clone()),
        y: axis("emulator, ms", scale),
        series: vec![
            series("equal", Shape::Line, Style::Paper, diagonal),
            qq_series("paper", Style::Baseline, simple),
            qq_series("full", Style::Ours, full),
        ],
        marks: Vec::new(),
    };
    panel(title, Content::Chart(chart))
}

/// A line of a QQ plot, in milliseconds.
fn qq_series(name: &str, style: Style, points: &[QqPoint]) -> Series {
    let points = points.iter().map(|point| Point::at(point.first_us / 1e3, point.second_us / 1e3));
    series(name, Shape::Line, style, points.collect())
}

/// Count, mean and quantiles, in milliseconds.
pub fn summary(us: &Samples) -> Value {
    let quantiles: Vec<Value> = QUANTILES.iter().map(|q| json!([q, us.quantile(*q) / 1e3])).collect();
    json!({ "count": us.count(), "mean_ms": us.mean_us() / 1e3, "quantiles_ms": quantiles })
}

/// Median and 99th percentile in words.
pub fn median_and_tail(us: &Samples) -> String {
    format!("median {:.1} ms, 99 % within {:.1} ms", us.quantile(0.5) / 1e3, us.quantile(0.99) / 1e3)
}
