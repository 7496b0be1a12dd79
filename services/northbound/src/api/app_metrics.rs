//! Metrics of apps and services, and of incidents.
//!
//! In: the last report of the monitor. Out: text for Prometheus, in base units.

use super::exposition::{head, sample};
use crate::state::State;
use northbound_contract::AppReport;
use std::collections::BTreeMap;

type Counter = (&'static str, &'static str, fn(&AppReport) -> u64);

const COUNTERS: [Counter; 6] = [
    ("burnet_app_restarts_total", "Restarts of an app.", |it| it.restarts),
    ("burnet_app_events_total", "Events for an app since its zone was attached.", |it| it.events),
    ("burnet_app_packet_ins_dropped_total", "Packet-ins that an app did not read in time.", |it| it.dropped),
    ("burnet_app_commands_total", "Commands of an app.", |it| it.commands),
    ("burnet_app_packet_outs_total", "Packet-outs of an app.", |it| it.packet_outs),
    ("burnet_app_commands_refused_total", "Commands of an app that the kernel refused.", |it| it.refusals),
];

/// A member of a sample, and by what it is divided to be in base units.
type Gauge = (&'static str, &'static str, &'static str, u32);

const GAUGES: [Gauge; 6] = [
    ("burnet_app_cpu_cores", "Processor time of an app, in cores.", "cpu_percent", 100),
    ("burnet_app_memory_bytes", "Memory of an app.", "memory_bytes", 1),
    ("burnet_app_open_files", "Open descriptors of an app.", "open_files", 1),
    ("burnet_app_threads", "Threads of an app.", "processes", 1),
    ("burnet_app_lag_seconds", "How long data waits for an app.", "lag_ms", 1_000),
    ("burnet_app_store_bytes", "What an app keeps in the store.", "store_bytes", 1),
];

/// Writes them all.
pub fn write(text: &mut String, state: &State) {
    up(text, state);
    for (name, help, of) in COUNTERS {
        head(text, name, "counter", help);
        for app in state.apps.iter() {
            sample(text, name, &[("app", &app.id)], of(app));
        }
    }
    for (name, help, member, divisor) in GAUGES {
        head(text, name, "gauge", help);
        for app in state.apps.iter() {
            let value = app.sample.as_ref().and_then(|sample| sample.get(member));
            if let Some(value) = value.and_then(|it| u32::try_from(*it).ok()).filter(|_| divisor > 1) {
                sample(text, name, &[("app", &app.id)], f64::from(value) / f64::from(divisor));
            } else if let Some(value) = value {
                sample(text, name, &[("app", &app.id)], value);
            }
        }
    }
    limits(text, state);
    incidents(text, state);
}

fn up(text: &mut String, state: &State) {
    head(text, "burnet_app_up", "gauge", "Whether an app runs.");
    for app in state.apps.iter() {
        let labels = [("app", app.id.as_str()), ("role", &app.role)];
        sample(text, "burnet_app_up", &labels, u8::from(app.state == "running"));
    }
    head(text, "burnet_apps", "gauge", "Apps and services, by state.");
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for app in state.apps.iter() {
        *counts.entry((&app.role, &app.state)).or_default() += 1;
    }
    for ((role, state), count) in counts {
        sample(text, "burnet_apps", &[("role", role), ("state", state)], count);
    }
}

fn limits(text: &mut String, state: &State) {
    head(text, "burnet_app_memory_limit_bytes", "gauge", "The limits of an app's memory.");
    for app in state.apps.iter() {
        for limit in app.limits.iter().filter(|limit| limit.resource == "memory_bytes") {
            for (word, value) in [("soft", limit.soft), ("hard", limit.hard)] {
                let labels = [("app", app.id.as_str()), ("limit", word)];
                sample(text, "burnet_app_memory_limit_bytes", &labels, value);
            }
        }
    }
}

fn incidents(text: &mut String, state: &State) {
    head(text, "burnet_incidents", "gauge", "Known incidents, by source and kind.");
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for incident in state.incidents.newest() {
        *counts.entry((&incident.source, &incident.what)).or_default() += 1;
    }
    for ((source, what), count) in counts {
        sample(text, "burnet_incidents", &[("source", source), ("what", what)], count);
    }
}
