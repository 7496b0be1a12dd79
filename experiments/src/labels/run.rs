//! Runs the flows of figures 1 and 2, and records their rates each millisecond.
//!
//! In: a rig, flows, how long. Out: rates over time, their means, and since when they are near. It judges nothing else.

use super::setting::{FigureFlow, MS, is_near};
use crate::plot::{Point, Series, Shape, Style, series};
use rehearsal::Rig;
use serde_json::{Value, json};

/// A rate that differs by less is the same in the results. Claims are read to 0.01 Gb/s.
const SAME_GBPS: f64 = 0.001;

/// The rates of flows, a sample each millisecond.
#[derive(Debug, Default)]
pub struct Recording {
    /// By flow: name, and time in ms with the rate in Gb/s.
    pub flows: Vec<(FigureFlow, Vec<(f64, f64)>)>,
}

impl Recording {
    /// Lets the rig run for this many milliseconds, and records these flows.
    ///
    /// # Errors
    /// As [`Rig::run`].
    pub fn record(&mut self, rig: &mut Rig, flows: &[FigureFlow], for_ms: u64) -> Result<(), String> {
        for _ in 0..for_ms {
            rig.run(MS)?;
            let at_ms = rig.now_ns() as f64 / MS as f64;
            for flow in flows {
                let sample = (at_ms, rig.rate_bps(flow.pair) / 1e9);
                match self.flows.iter_mut().find(|(known, _)| known.name == flow.name) {
                    Some((_, samples)) => samples.push(sample),
                    None => self.flows.push((*flow, vec![sample])),
                }
            }
        }
        Ok(())
    }

    fn samples(&self, name: &str) -> &[(f64, f64)] {
        self.flows.iter().find(|(flow, _)| flow.name == name).map_or(&[], |(_, samples)| samples)
    }

    /// The mean rate of a flow in the second half of a phase.
    pub fn mean(&self, name: &str, from_ms: f64, to_ms: f64) -> f64 {
        let settled = from_ms + (to_ms - from_ms) / 2.0;
        let values: Vec<f64> =
            self.samples(name).iter().filter(|it| it.0 > settled && it.0 <= to_ms).map(|it| it.1).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }

    /// How long after a time the first window ends from which on all of these rates are near, to the end of the phase. `None`: they are not near
    /// at its end.
    pub fn near_after_ms(&self, expected: &[(&str, f64)], from_ms: f64, to_ms: f64) -> Option<f64> {
        let phase = |name: &str| self.samples(name).iter().filter(|it| it.0 > from_ms && it.0 <= to_ms);
        let last_far = |(name, gbps): &(&str, f64)| {
            phase(name).filter(|it| !is_near(it.1, *gbps)).map(|it| it.0).fold(from_ms, f64::max)
        };
        let since = expected.iter().map(last_far).fold(from_ms, f64::max);
        let near =
            expected.first().and_then(|(name, _)| phase(name).map(|it| it.0).find(|at| *at > since))?;
        Some(near - from_ms)
    }

    /// For the results: by flow, the first and the last sample of each time in which its rate stays the same.
    pub fn to_json(&self) -> Value {
        let of_flow = |(flow, samples): &(FigureFlow, Vec<(f64, f64)>)| json!({ "flow": flow.name, "samples": changes(samples) });
        self.flows.iter().map(of_flow).collect()
    }

    /// As series of a chart.
    pub fn series(&self) -> Vec<Series> {
        let styles = [Style::Ours, Style::Other, Style::Baseline];
        let drawn = |flow: &FigureFlow, samples: &[(f64, f64)], style| {
            let points = samples.iter().map(|(at, gbps)| Point::at(*at, *gbps)).collect();
            series(flow.name, Shape::Line, style, points)
        };
        let flows = self.flows.iter().zip(styles);
        flows.map(|((flow, samples), style)| drawn(flow, samples, style)).collect()
    }
}

/// The first and the last sample of each time in which the rate stays the same.
fn changes(mut samples: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    while let Some(first) = samples.first() {
        let differs = samples.iter().position(|it| (it.1 - first.1).abs() >= SAME_GBPS);
        let (same, rest) = samples.split_at(differs.unwrap_or(samples.len()));
        kept.extend(same.iter().take(1).chain(same[1..].last()));
        samples = rest;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::setting::FLOWS;
    use super::*;

    #[test]
    fn the_results_keep_the_ends_of_each_rate() {
        let samples = [(1.0, 0.0), (2.0, 9.8), (3.0, 9.8), (4.0, 9.8004), (5.0, 8.0), (6.0, 8.0)];
        assert_eq!(changes(&samples), [(1.0, 0.0), (2.0, 9.8), (4.0, 9.8004), (5.0, 8.0), (6.0, 8.0)]);
        assert_eq!(changes(&[]), []);
    }

    #[test]
    fn a_rate_is_near_since_it_was_far_for_the_last_time() {
        let samples = vec![(1.0, 9.0), (2.0, 7.9), (3.0, 9.0), (4.0, 8.1), (5.0, 8.0)];
        let recording = Recording { flows: vec![(FLOWS[0], samples)] };
        let near = |to_ms| recording.near_after_ms(&[("A to B", 8.0)], 0.0, to_ms);
        assert_eq!([near(5.0), near(3.0), near(2.0)], [Some(4.0), None, Some(2.0)]);
        assert!((recording.mean("A to B", 1.0, 5.0) - 8.05).abs() < 1e-9);
    }
}
