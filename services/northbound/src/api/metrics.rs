//! Metrics for Prometheus, in its text format.
//!
//! In: the state. Out: text. The names of the metrics are those of the ecosystem: base units, `_total` for counters.

use super::context::{Answer, Answered, Context};
use super::exposition::head;
use super::{app_metrics, slice_metrics, switch_metrics};
use crate::counters::PortCounters;
use crate::http::Response;
use crate::state::State;
use burnet_sdk::view::{Kind, LinkState, Object, SwitchState};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The type of the text.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics.
pub fn metrics(context: &Context<'_>) -> Answered {
    let mut text = String::new();
    objects(&mut text, context.state);
    switch_metrics::write(&mut text, context.state);
    app_metrics::write(&mut text, context.state);
    slice_metrics::write(&mut text, context.state);
    ports(&mut text, context.state);
    requests(&mut text, context.state);
    Ok(Answer::Ready(Response::new(200, TEXT, text)))
}

/// The number of objects of each kind, by state.
fn objects(text: &mut String, state: &State) {
    for (kind, name, help) in [
        (Kind::Switch, "burnet_switches", "Known switches."),
        (Kind::Port, "burnet_ports", "Ports of known switches."),
        (Kind::Link, "burnet_links", "Links, each direction by itself."),
        (Kind::Host, "burnet_hosts", "Known hosts."),
        (Kind::Intent, "burnet_intents", "Intents."),
    ] {
        head(text, name, "gauge", help);
        let mut counts: BTreeMap<&str, usize> = words(kind).iter().map(|word| (*word, 0)).collect();
        for record in state.view.records(kind) {
            *counts.entry(word(&record.object)).or_default() += 1;
        }
        for (word, count) in counts {
            let labels = if word.is_empty() { String::new() } else { format!("{{state=\"{word}\"}}") };
            let _ = writeln!(text, "{name}{labels} {count}");
        }
    }
}

fn words(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Host => &[""],
        Kind::Intent => &["failed", "installed", "waiting"],
        _ => &["up", "down"],
    }
}

fn word(object: &Object) -> &'static str {
    let is_up = match object {
        Object::Switch(switch) => switch.state == SwitchState::Up,
        Object::Port(port) => port.live,
        Object::Link(link) => link.state == LinkState::Up,
        Object::Intent(intent) => return intent.state.word(),
        _ => return "",
    };
    if is_up { "up" } else { "down" }
}

type Column = (&'static str, &'static str, fn(&PortCounters) -> u64);

/// The counters of ports. The names follow those of node_exporter.
const COLUMNS: [Column; 8] = [
    ("burnet_port_receive_bytes_total", "Received bytes.", |it| it.rx_bytes),
    ("burnet_port_transmit_bytes_total", "Sent bytes.", |it| it.tx_bytes),
    ("burnet_port_receive_packets_total", "Received packets.", |it| it.rx_packets),
    ("burnet_port_transmit_packets_total", "Sent packets.", |it| it.tx_packets),
    ("burnet_port_receive_drop_total", "Received packets that were dropped.", |it| it.rx_dropped),
    ("burnet_port_transmit_drop_total", "Packets to send that were dropped.", |it| it.tx_dropped),
    ("burnet_port_receive_errs_total", "Damaged packets.", |it| it.rx_errors),
    ("burnet_port_transmit_errs_total", "Packets that could not be sent.", |it| it.tx_errors),
];

fn ports(text: &mut String, state: &State) {
    for (name, help, of) in COLUMNS {
        head(text, name, "counter", help);
        for port in state.counters.iter() {
            let (switch, number) = (port.id.switch, port.id.port);
            let _ = writeln!(text, "{name}{{switch=\"{switch}\",port=\"{number}\"}} {}", of(port));
        }
    }
}

fn requests(text: &mut String, state: &State) {
    head(text, "burnet_http_requests_total", "counter", "Answered requests.");
    for ((method, code), count) in &state.requests {
        let _ = writeln!(text, "burnet_http_requests_total{{method=\"{method}\",code=\"{code}\"}} {count}");
    }
    head(text, "burnet_http_stream_clients", "gauge", "Clients of streams.");
    let _ = writeln!(text, "burnet_http_stream_clients {}", state.feed.clients());
    head(text, "burnet_http_stream_missed_total", "counter", "Events that were left out for slow clients.");
    let _ = writeln!(text, "burnet_http_stream_missed_total {}", state.feed.missed());
    head(
        text,
        "burnet_http_stalled_clients_total",
        "counter",
        "Clients that were disconnected because they read nothing.",
    );
    let _ = writeln!(text, "burnet_http_stalled_clients_total {}", state.stalled);
    head(text, "burnet_view_current", "gauge", "Whether the changes of all objects arrive.");
    let _ = writeln!(text, "burnet_view_current {}", u8::from(state.is_current));
    head(text, "burnet_build_info", "gauge", "The version of the node.");
    let _ = writeln!(text, "burnet_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
}
