//! The results of queries between emulated hosts, as text and as JSON.
//!
//! Pure: the reports are arguments.

use std::fmt;
use std::time::Duration;

use emulator::QueriesReport;
use emulator::host::query::quantile;
use serde::Serialize;

/// JSON has the quantiles at these many steps from 0 to 1, for pictures of distributions.
const STEPS: u32 = 100;

/// The result of a series of queries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct QueriesSeen {
    name: String,
    begun: u64,
    completed: usize,
    /// Refused, or lost after their time-out.
    failed: usize,
    /// Not begun, because too many were open.
    skipped: u64,
    /// Ended, but neither completed nor failed here, because there were too many.
    unrecorded: u64,
    /// `None` if none was completed.
    completion_ms: Option<Completion>,
    /// The bits a second that the median client got.
    median_bits_per_s: Option<f64>,
}

/// Completion times.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Completion {
    min: f64,
    median: f64,
    p90: f64,
    p99: f64,
    max: f64,
    mean: f64,
    quantiles: Vec<f64>,
}

impl QueriesSeen {
    pub(super) fn new(name: &str, report: &QueriesReport) -> Self {
        let times = report.completion_times(Duration::ZERO);
        QueriesSeen {
            name: name.to_owned(),
            begun: report.begun,
            completed: times.len(),
            failed: report.failed(Duration::ZERO),
            skipped: report.skipped,
            unrecorded: report.unrecorded,
            completion_ms: Completion::new(&times),
            median_bits_per_s: quantile(&times, 0.5).map(|took| report.rate_bits_per_s(took)),
        }
    }
}

impl Completion {
    fn new(times: &[Duration]) -> Option<Self> {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let at = |share| quantile(times, share).map(ms);
        Some(Completion {
            min: at(0.0)?,
            median: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99)?,
            max: at(1.0)?,
            mean: times.iter().copied().map(ms).sum::<f64>() / times.len() as f64,
            quantiles: (0..=STEPS).filter_map(|step| at(f64::from(step) / f64::from(STEPS))).collect(),
        })
    }
}

impl fmt::Display for QueriesSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueriesSeen { name, begun, completed, failed, skipped, unrecorded, .. } = self;
        write!(
            f,
            "queries     {name}: {begun} begun, {completed} completed, {failed} failed, {skipped} skipped"
        )?;
        if *unrecorded > 0 {
            write!(f, ", {unrecorded} ended without a record, since there were too many")?;
        }
        writeln!(f)?;
        let (Some(times), Some(bits)) = (&self.completion_ms, self.median_bits_per_s) else { return Ok(()) };
        writeln!(
            f,
            "completion  min {:.3} ms, median {:.3} ms, p90 {:.3} ms, p99 {:.3} ms, max {:.3} ms; median {:.3} Mbit/s",
            times.min,
            times.median,
            times.p90,
            times.p99,
            times.max,
            bits / 1e6
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::{Outcome, QueryRecord, QuerySpec};

    fn report(outcomes: &[Outcome]) -> QueriesReport {
        let record = |outcome: &Outcome| QueryRecord { began_at: Duration::ZERO, outcome: *outcome };
        QueriesReport {
            spec: QuerySpec { reply_bytes: 1000, ..QuerySpec::new("h1", "h2") },
            began_at: Duration::ZERO,
            at: Duration::from_secs(1),
            begun: outcomes.len() as u64,
            open: 0,
            skipped: 3,
            unrecorded: 0,
            records: outcomes.iter().map(record).collect(),
        }
    }

    #[test]
    fn without_a_completed_query_there_are_no_times() {
        let seen = QueriesSeen::new("q", &report(&[Outcome::Lost, Outcome::Refused]));
        assert_eq!(seen.to_string(), "queries     q: 2 begun, 0 completed, 2 failed, 3 skipped\n");
        assert!(serde_json::to_value(&seen).unwrap()["completion_ms"].is_null());
    }

    #[test]
    fn queries_without_a_record_are_shown() {
        let seen = QueriesSeen::new("q", &QueriesReport { unrecorded: 7, ..report(&[Outcome::Lost]) });
        assert!(seen.to_string().contains("3 skipped, 7 ended without a record"), "{seen}");
        assert_eq!(serde_json::to_value(&seen).unwrap()["unrecorded"], 7);
    }

    #[test]
    fn times_are_said_from_the_shortest_to_the_longest() {
        let outcomes: Vec<Outcome> =
            (1..=100).rev().map(|ms| Outcome::Completed(Duration::from_millis(ms))).collect();
        let seen = QueriesSeen::new("q", &report(&outcomes));
        let text = "completion  min 1.000 ms, median 50.000 ms, p90 90.000 ms, p99 99.000 ms, max 100.000 ms; median 0.160 Mbit/s";
        assert!(seen.to_string().contains(text), "{seen}");
        let json = serde_json::to_value(&seen).unwrap();
        assert_eq!(
            (&json["completion_ms"]["mean"], &json["completion_ms"]["quantiles"][25]),
            (&50.5.into(), &25.0.into())
        );
    }
}
