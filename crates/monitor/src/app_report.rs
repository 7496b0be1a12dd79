//! An app as the REST interface shows it.
//!
//! In: the status, limits, last sample and counts of an app. Out: a report of the contract `northbound`. It measures nothing.

use crate::app::{AppRole, AppState, AppStatus};
use crate::resources::ZoneCounts;
use northbound_contract::{AppReport, Limit};
use zone::{Limits, Resource, Sample};

/// The report about one app.
pub(crate) fn app_report(
    status: AppStatus,
    limits: &Limits,
    sample: Option<Sample>,
    counts: ZoneCounts,
) -> AppReport {
    let limit = |resource: &Resource| {
        let (soft, hard) = (resource.soft(limits)?, resource.hard(limits)?);
        Some(Limit { resource: resource.key().to_owned(), soft, hard })
    };
    AppReport {
        id: status.app,
        role: if status.role == AppRole::Service { "service" } else { "app" }.to_owned(),
        state: word(status.state).to_owned(),
        zone: status.zone,
        zone_kind: status.kind.to_string(),
        pid: status.pid,
        restarts: status.restarts,
        since_ms: status.since_unix_ms,
        last_end: status.last_end.map(|end| end.reason),
        note: status.note,
        events: counts.events,
        dropped: counts.dropped,
        commands: counts.commands,
        packet_outs: counts.packet_outs,
        refusals: counts.refusals,
        limits: Resource::ALL.iter().filter_map(limit).collect(),
        sample: sample.map(numbers),
    }
}

fn word(state: AppState) -> &'static str {
    match state {
        AppState::Starting => "starting",
        AppState::Running => "running",
        AppState::Ending => "ending",
        AppState::BackingOff { .. } => "backing_off",
        AppState::Quarantined => "quarantined",
        AppState::Stopped => "stopped",
        AppState::Held => "held",
        AppState::Refused => "refused",
    }
}

/// The numbers of a sample by name; what was not measured is left out.
pub(crate) fn numbers(sample: Sample) -> std::collections::BTreeMap<String, u64> {
    let value = serde_json::to_value(sample).unwrap_or_default();
    let members = value.as_object().cloned().unwrap_or_default();
    members.into_iter().filter_map(|(name, value)| Some((name, value.as_u64()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Ending;

    #[test]
    fn a_report_has_what_was_measured_and_the_limits_that_are_set() {
        let end = Ending { reason: "exit code 3".to_owned(), last_line: None, unix_ms: 1 };
        let status = AppStatus {
            app: "hub".to_owned(),
            role: AppRole::App,
            zone: 1,
            kind: crate::app::ZoneKind::Process,
            demoted: None,
            state: AppState::BackingOff { until_unix_ms: 9 },
            since_unix_ms: 5,
            restarts: 2,
            generation: 3,
            pid: None,
            last_end: Some(end),
            not_enforced: Vec::new(),
            note: None,
            listens: Vec::new(),
        };
        let sample = Sample { unix_ms: 7, memory_bytes: Some(8), open_files: None, ..Sample::default() };
        let counts = ZoneCounts { events: 9, refusals: 4, ..ZoneCounts::default() };
        let report = app_report(status, &Limits::default(), Some(sample), counts);
        assert_eq!((report.events, report.refusals, report.commands), (9, 4, 0));
        assert_eq!((report.state.as_str(), report.last_end.as_deref()), ("backing_off", Some("exit code 3")));
        let sample = report.sample.unwrap();
        assert_eq!((sample["unix_ms"], sample["memory_bytes"], sample.get("open_files")), (7, 8, None));
        assert!(report.limits.iter().any(|limit| limit.resource == "memory_bytes"));
    }
}
