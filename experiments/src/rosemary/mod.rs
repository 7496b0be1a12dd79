//! The experiments of the Rosemary paper (CCS 2014, section 5), and further ones.
//!
//! ```text
//!   name ──> Experiment::run ──> Found (claims, data, figure) ──> Outcome as JSON, Figure as SVG and PNG, a page
//! ```
//!
//! Each experiment starts its own node and network, and ends them.

mod access;
mod crash;
mod interference;
mod limits;
mod memory;
mod paper;
mod recovery;
mod safe_mode;
mod table_budget;
mod throughput;
mod zone;

use crate::lab::Lab;
use crate::outcome::Claim;
use crate::plot::{Axis, Content, Figure, LineKind, Panel, Point, Scale, Series, Shape, Style, TextLine};
use serde_json::Value;

/// An experiment.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// Its name on the command line, and its files'.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(&Lab) -> Result<Found, String>,
}

/// The findings of an experiment.
#[derive(Clone, Debug)]
pub struct Found {
    /// The claims.
    pub claims: Vec<Claim>,
    /// All that was measured.
    pub data: Value,
    /// The figure. Its notes get a line about the machine.
    pub figure: Figure,
}

/// The paper, and how its numbers were obtained: a sentence for below the results.
///
/// # Errors
///
/// The file with the numbers is malformed.
pub fn source() -> Result<String, String> {
    let paper = paper::paper()?;
    Ok(format!("The paper: {}. {}", paper.paper, paper.how))
}

/// All experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 14] = [
    Experiment {
        name: "fig16",
        about: "an app crashes; the firewall goes on blocking, and hosts reach each other",
        run: crash::run,
    },
    Experiment {
        name: "fig17",
        about: "an app leaks; its memory against time, with hard limits of 1.2 GB and 64 MB",
        run: memory::run,
    },
    Experiment { name: "fig18", about: "an app reads and changes what is not its own", run: access::run },
    Experiment { name: "fig19", about: "throughput by switches, at 1 Gb/s", run: throughput::fig19 },
    Experiment { name: "fig20", about: "throughput by threads, at 1 Gb/s", run: throughput::fig20 },
    Experiment { name: "fig21", about: "throughput by switches, as much as goes", run: throughput::fig21 },
    Experiment { name: "fig22", about: "throughput by threads, as much as goes", run: throughput::fig22 },
    Experiment {
        name: "price",
        about: "what the checks cost: a process zone with more and more of them beside a trusted app",
        run: throughput::price,
    },
    Experiment { name: "zone", about: "how long a zone takes to start, and its memory", run: zone::run },
    Experiment {
        name: "recovery",
        about: "how soon a killed app and a killed kernel are noticed and back",
        run: recovery::run,
    },
    Experiment {
        name: "safe-mode",
        about: "a kernel that ends again and again, and a trusted app that takes it down",
        run: safe_mode::run,
    },
    Experiment {
        name: "limits",
        about: "an app's limits of processor time, descriptors and threads",
        run: limits::run,
    },
    Experiment {
        name: "table-budget",
        about: "the 90 % rule: an app fills a switch's table",
        run: table_budget::run,
    },
    Experiment {
        name: "interference",
        about: "throughput of an innocent app while another does harm",
        run: interference::run,
    },
];

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

fn series(name: &str, shape: Shape, style: Style, points: Vec<Point>) -> Series {
    Series { name: name.to_owned(), shape, style, points }
}

fn panel(title: impl Into<String>, content: Content) -> Panel {
    Panel { title: title.into(), content }
}

fn line(text: impl Into<String>, kind: LineKind) -> TextLine {
    TextLine { text: text.into(), kind }
}

/// The paper's text, as a panel.
fn said(title: &str, place: &str, says: &[String]) -> Panel {
    let mut lines = vec![line(format!("Rosemary, {place}:"), LineKind::Heading)];
    lines.extend(says.iter().map(|text| line(text, LineKind::Plain)));
    panel(title, Content::Text(lines))
}

/// The median; 0 of nothing.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    match (sorted.get(low), sorted.get(high)) {
        (Some(low), Some(high)) => (low + high) / 2.0,
        _ => 0.0,
    }
}

/// Median, least and most, as a point.
fn spread_point(x: f64, values: &[f64]) -> Point {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Point { x, y: median(values), spread: (values.len() > 1).then_some((least, most)) }
}

/// `median (least to most)` in a unit.
fn spread_text(values: &[f64], unit: &str, digits: usize) -> String {
    let point = spread_point(0.0, values);
    match point.spread {
        Some((least, most)) => format!(
            "{:.digits$} {unit} ({least:.digits$} to {most:.digits$}, {} times)",
            point.y,
            values.len()
        ),
        None => format!("{:.digits$} {unit}", point.y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_nothing_is_nothing() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(spread_text(&[1.0, 3.0, 2.0], "ms", 1), "2.0 ms (1.0 to 3.0, 3 times)");
    }

    #[test]
    fn each_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<&str> = EXPERIMENTS.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), EXPERIMENTS.len());
    }
}
