//! The evidence of a stored incident, for the service that shows it. Pure.
//!
//! ```text
//!   service ──ToMonitor::ReadEvidence──> record_writer: reads the file ──EvidenceRead──> FromMonitor::Evidence ──> service
//! ```
//!
//! In: the evidence as it was stored. Out: a report that fits into one message: a file that was changed by hand can be longer. It reads no
//! file.

use northbound_contract::{EvidenceReport, LogLine};
use zone::usage::HISTORY_SAMPLES_MAX;

use crate::app::{APP_NAME_BYTES_MAX, legible};
use crate::app_report::numbers;
use crate::incident::{Evidence, FACT_BYTES_MAX, FACTS_MAX, LAST_LINES_MAX};

/// The longest line of an app in the report, in bytes. Those that the monitor stores are not longer.
const LINE_BYTES_MAX: usize = 500;

/// The most trusted apps in the report.
const CALLED_MAX: usize = 64;

/// A question of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EvidenceAsked {
    /// The start of the service. A later start did not ask.
    pub(crate) generation: u64,
    pub(crate) ticket: u64,
    pub(crate) number: u64,
}

/// What was read.
#[derive(Debug, PartialEq)]
pub(crate) struct EvidenceRead {
    pub(crate) asked: EvidenceAsked,
    pub(crate) evidence: Option<EvidenceReport>,
}

/// The report: the newest lines and samples, cut to their bounds.
pub(crate) fn report(evidence: Evidence) -> EvidenceReport {
    let Evidence { exit_code, signal, core_dumped, called, last_lines, facts, samples, delays: _ } = evidence;
    EvidenceReport {
        exit_code,
        signal,
        core_dumped,
        called: called.iter().take(CALLED_MAX).map(|app| legible(app, APP_NAME_BYTES_MAX)).collect(),
        last_lines: newest(last_lines, LAST_LINES_MAX).map(|line| legible(&line, LINE_BYTES_MAX)).collect(),
        log: newest(facts, FACTS_MAX)
            .map(|fact| LogLine { unix_ms: fact.unix_ms, line: legible(&fact.line, FACT_BYTES_MAX) })
            .collect(),
        samples: newest(samples, HISTORY_SAMPLES_MAX).map(numbers).collect(),
    }
}

/// The last ones of a list that begins with the oldest.
fn newest<T>(list: Vec<T>, most: usize) -> impl Iterator<Item = T> {
    let beyond = list.len().saturating_sub(most);
    list.into_iter().skip(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::Fact;
    use crate::resources::LARGEST_SAMPLE;
    use northbound_contract::FromMonitor;

    #[test]
    fn the_newest_lines_are_kept() {
        let last_lines = (0..LAST_LINES_MAX + 2).map(|number| number.to_string()).collect();
        let report = report(Evidence { exit_code: Some(3), last_lines, ..Evidence::default() });
        assert_eq!((report.exit_code, report.last_lines.len()), (Some(3), LAST_LINES_MAX));
        assert_eq!(report.last_lines[0], "2");
    }

    #[test]
    fn the_longest_report_fits_into_a_datagram() {
        let long = || "\"".repeat(10_000);
        let evidence = report(Evidence {
            exit_code: Some(i32::MIN),
            signal: Some(i32::MIN),
            core_dumped: true,
            called: vec![long(); 2 * CALLED_MAX],
            last_lines: vec![long(); 2 * LAST_LINES_MAX],
            facts: vec![Fact { unix_ms: u64::MAX, line: long() }; 2 * FACTS_MAX],
            samples: vec![LARGEST_SAMPLE; 2 * HISTORY_SAMPLES_MAX],
            ..Evidence::default()
        });
        let message = FromMonitor::Evidence { ticket: u64::MAX, evidence: Some(Box::new(evidence)) };
        let bytes = serde_json::to_vec(&message).unwrap().len();
        assert!(bytes <= crate::channel::DATAGRAM_BYTES_MAX, "{bytes}");
    }
}
