//! Metrics of switches and links: sessions, ports, wanted rules.
//!
//! In: the state. Out: text for Prometheus.

use super::exposition::{head, sample};
use crate::state::State;
use burnet_sdk::view::{LinkState, SwitchState};
use flows_contract::SwitchSummary;

/// Writes them all.
pub fn write(text: &mut String, state: &State) {
    sessions(text, state);
    rules(text, state);
    links(text, state);
    ports(text, state);
}

fn sessions(text: &mut String, state: &State) {
    head(text, "burnet_switch_up", "gauge", "Whether a switch has a session.");
    for switch in state.view.switches() {
        let up = u8::from(switch.state == SwitchState::Up);
        sample(text, "burnet_switch_up", &[("switch", &switch.id.to_string())], up);
    }
    let name = "burnet_switch_state_start_time_seconds";
    head(text, name, "gauge", "Since when a switch has its present state.");
    for switch in state.view.switches() {
        sample(text, name, &[("switch", &switch.id.to_string())], switch.since_ms / 1_000);
    }
    head(text, "burnet_switch_info", "gauge", "What a switch says about itself, and its name.");
    for switch in state.view.switches() {
        let of = |name: &str| switch.description.get(name).map_or("", String::as_str);
        let labels = [
            ("switch", switch.id.to_string()),
            ("name", switch.annotations.get("name").cloned().unwrap_or_default()),
            ("openflow", switch.openflow.clone()),
            ("manufacturer", of("manufacturer").to_owned()),
            ("hardware", of("hardware").to_owned()),
            ("software", of("software").to_owned()),
        ];
        let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
        sample(text, "burnet_switch_info", &labels, 1);
    }
}

type Column = (&'static str, &'static str, &'static str, fn(&SwitchSummary) -> u64);

const COLUMNS: [Column; 7] = [
    ("burnet_switch_rules_wanted", "gauge", "Wanted rules, groups and meters of a switch.", |it| it.wanted),
    ("burnet_switch_rules_installed", "gauge", "Those that the switch has confirmed.", |it| it.installed),
    ("burnet_switch_rules_pending", "gauge", "Commands that wait for a switch.", |it| it.pending),
    ("burnet_switch_rules_foreign", "gauge", "Rules of other apps or controllers in a switch.", |it| {
        it.foreign
    }),
    ("burnet_switch_rules_orphaned", "gauge", "Rules in a switch that no set wants.", |it| it.orphans),
    (
        "burnet_switch_rules_repaired_total",
        "counter",
        "Rules that were missing in a switch and were added again.",
        |it| it.repaired,
    ),
    ("burnet_switch_table_reads_total", "counter", "How often the tables of a switch were read.", |it| {
        it.audits
    }),
];

fn rules(text: &mut String, state: &State) {
    for (name, kind, help, of) in COLUMNS {
        head(text, name, kind, help);
        for summary in &state.rules {
            sample(text, name, &[("switch", &summary.switch.to_string())], of(summary));
        }
    }
}

fn links(text: &mut String, state: &State) {
    head(text, "burnet_link_up", "gauge", "Whether one direction of a link is up.");
    for link in state.view.links() {
        let (from, to) = (link.id.from.to_string(), link.id.to.to_string());
        sample(
            text,
            "burnet_link_up",
            &[("from", &from), ("to", &to)],
            u8::from(link.state == LinkState::Up),
        );
    }
}

fn ports(text: &mut String, state: &State) {
    let name = "burnet_port_speed_bytes";
    head(text, name, "gauge", "The speed of a port in bytes per second, if the switch reports it.");
    for port in state.view.ports().filter(|port| port.speed_kbps > 0) {
        let labels = [("switch", port.id.switch.to_string()), ("port", port.id.port.to_string())];
        let labels = labels.each_ref().map(|(name, value)| (*name, value.as_str()));
        sample(text, name, &labels, port.speed_kbps.saturating_mul(125));
    }
}
