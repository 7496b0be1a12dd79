//! Metrics of slices.
//!
//! In: the state. Out: text for Prometheus. The numbers of a slice come from its own process, and are left out while that does not run.

use super::exposition::{head, sample};
use crate::state::State;
use labels_contract::Standing;
use northbound_contract::AppReport;
use slice_contract::{Summary, slice_of};

type OfSummary = (&'static str, &'static str, &'static str, fn(&Summary) -> u64);

const SUMMARIES: [OfSummary; 13] = [
    ("burnet_slice_switches", "gauge", "Virtual switches of a slice.", |it| it.switches),
    ("burnet_slice_switches_up", "gauge", "Virtual switches whose physical switch is connected.", |it| {
        it.switches_up
    }),
    (
        "burnet_slice_connections",
        "gauge",
        "Connections of a slice to its controllers, if all were up.",
        |it| it.connections,
    ),
    ("burnet_slice_connections_up", "gauge", "Connections of a slice to its controllers.", |it| {
        it.connections_up
    }),
    ("burnet_slice_rules", "gauge", "Rules of a tenant.", |it| it.rules),
    ("burnet_slice_rule_pieces", "gauge", "Rules in the switches for those of a tenant.", |it| it.pieces),
    ("burnet_slice_flow_mods_total", "counter", "Flow mods of a tenant that were carried out.", |it| {
        it.flow_mods_total
    }),
    ("burnet_slice_refused_total", "counter", "Messages of a tenant that got an error.", |it| {
        it.refused_total
    }),
    ("burnet_slice_packet_ins_total", "counter", "Packet-ins that a controller of a slice received.", |it| {
        it.packet_ins_total
    }),
    ("burnet_slice_packet_ins_dropped_total", "counter", "Packet-ins above the limit of a slice.", |it| {
        it.packet_ins_dropped_total
    }),
    (
        "burnet_slice_packet_ins_unread_total",
        "counter",
        "Packet-ins that a slow controller did not get.",
        |it| it.packet_ins_unread_total,
    ),
    ("burnet_slice_packet_outs_total", "counter", "Packet-outs of a tenant.", |it| it.packet_outs_total),
    (
        "burnet_slice_links_unfit",
        "gauge",
        "Links of a slice whose ways do not carry what all slices may send.",
        |it| it.links_unfit,
    ),
];

type OfStanding = (&'static str, &'static str, fn(&Standing) -> u64);

const STANDINGS: [OfStanding; 3] = [
    ("burnet_slice_flows", "Flows of a slice that have a path.", |it| it.flows),
    ("burnet_slice_labelled_links", "Directions of links that a slice shows its tenant.", |it| it.links),
    ("burnet_slice_labels_stale", "Whether the labels of a slice may be too high.", |it| u64::from(it.stale)),
];

/// Writes them all.
pub fn write(text: &mut String, state: &State) {
    let slices: Vec<(&str, &AppReport)> =
        state.apps.iter().filter_map(|app| Some((slice_of(&app.id)?, app))).collect();
    head(text, "burnet_slice_up", "gauge", "Whether the process of a slice runs.");
    for (slice, app) in &slices {
        sample(text, "burnet_slice_up", &[("slice", slice)], u8::from(app.state == "running"));
    }
    for (name, kind, help, of) in SUMMARIES {
        head(text, name, kind, help);
        for (slice, app) in &slices {
            if let Some(summary) = state.slices.summary(app) {
                sample(text, name, &[("slice", slice)], of(summary));
            }
        }
    }
    for (name, help, of) in STANDINGS {
        head(text, name, "gauge", help);
        for (slice, _) in &slices {
            if let Some(standing) = state.slices.standing(slice) {
                sample(text, name, &[("slice", slice)], of(standing));
            }
        }
    }
}
