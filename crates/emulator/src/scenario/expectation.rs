//! The expectations of a scenario, and whether they hold.

use std::time::Duration;

use flow::PortNo;

use super::Scenario;
use crate::host::flow::{FlowReport, jain_index};
use software_switch::SwitchView;

/// Something that must be true in a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The line in the file.
    pub line: u32,
    /// From this time on it is checked.
    pub at: Duration,
    /// How long it may take to become true.
    pub within: Duration,
    /// What must be true.
    pub wanted: Wanted,
}

/// The kinds of expectations.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// This many switches are connected to a controller.
    Connected(usize),
    /// A host reaches another. Or, if `reached` is false, none of its pings is answered in all that time.
    Ping {
        /// The name of the host that pings.
        from: String,
        /// The name of the host that is pinged.
        to: String,
        /// Whether it must be reached.
        reached: bool,
    },
    /// The loss of a series of pings, in per cent.
    Lost {
        /// The series' index.
        series: usize,
        /// The lower bound.
        min: Option<f64>,
        /// The upper bound.
        max: Option<f64>,
    },
    /// The rate of a flow.
    Rate {
        /// The flow's index.
        flow: usize,
        /// The lower bound, in payload bits a second.
        min: Option<u64>,
        /// The upper bound, in payload bits a second.
        max: Option<u64>,
    },
    /// How equally flows have shared a link (Jain's index).
    Fair {
        /// The flows' indices.
        flows: Vec<usize>,
        /// The lower bound of the index, in hundredths.
        index_percent: u8,
    },
    /// How many queries of a series are completed, in per cent of those that have ended.
    Completed {
        /// The series' index.
        queries: usize,
        /// Only queries that begin at least so long after the series are counted.
        after: Duration,
        /// The lower bound.
        min: Option<f64>,
        /// The upper bound.
        max: Option<f64>,
    },
    /// A quantile of the completion times of queries.
    Completion {
        /// The series' index.
        queries: usize,
        /// Only queries that begin at least so long after the series are counted.
        after: Duration,
        /// Which quantile, from 0 to 1.
        quantile: f64,
        /// The lower bound.
        min: Option<Duration>,
        /// The upper bound.
        max: Option<Duration>,
    },
    /// Whether a port is live.
    Port {
        /// The switch's name.
        switch: String,
        /// The port.
        port: PortNo,
        /// Whether it must be live.
        up: bool,
    },
    /// The number of a switch's flow entries.
    Entries {
        /// The switch's name.
        switch: String,
        /// The lower bound.
        min: Option<u64>,
        /// The upper bound.
        max: Option<u64>,
    },
}

/// The result of an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The line in the file.
    pub line: u32,
    /// What was expected.
    pub expected: String,
    /// Whether it held.
    pub held: bool,
    /// What was found.
    pub found: String,
}

impl Wanted {
    /// Whether it can be checked only after something has ended.
    pub(super) fn is_of_the_whole(&self) -> bool {
        matches!(self, Wanted::Lost { .. } | Wanted::Rate { .. } | Wanted::Fair { .. })
            || matches!(self, Wanted::Completed { .. } | Wanted::Completion { .. })
    }

    /// Whether it needs the state of switches.
    pub(super) fn is_of_switches(&self) -> bool {
        matches!(self, Wanted::Connected(_) | Wanted::Port { .. } | Wanted::Entries { .. })
    }

    /// Whether it holds for these switches, and what was found. `None` if it is not about switches.
    pub(super) fn in_switches(&self, switches: &[SwitchView]) -> Option<(bool, String)> {
        let named = |name: &str| switches.iter().find(|switch| switch.name == name);
        match self {
            Wanted::Connected(wanted) => {
                let connected = switches.iter().filter(|switch| switch.connected).count();
                Some((connected == *wanted, format!("{connected} are")))
            }
            Wanted::Port { switch, port, up } => {
                let found = named(switch)?.ports.iter().find(|(number, _)| number == port);
                Some(match found {
                    None => (false, "there is no such port".to_owned()),
                    Some((_, live)) => (live == up, if *live { "it is up" } else { "it is down" }.to_owned()),
                })
            }
            Wanted::Entries { switch, min, max } => {
                let count = named(switch)?.flow_entries as u64;
                let fits = min.is_none_or(|min| count >= min) && max.is_none_or(|max| count <= max);
                Some((fits, format!("it has {count}")))
            }
            _ => None,
        }
    }

    /// Whether the loss of this series is within the bounds, and what was found.
    pub(super) fn in_series(&self, sent: usize, answered: usize) -> Option<(bool, String)> {
        let Wanted::Lost { min, max, .. } = self else { return None };
        let lost = sent.saturating_sub(answered);
        let percent = if sent == 0 { 100.0 } else { lost as f64 * 100.0 / sent as f64 };
        let fits = min.is_none_or(|min| percent >= min) && max.is_none_or(|max| percent <= max);
        Some((fits, format!("{lost} of {sent} lost ({percent:.1} %)")))
    }

    /// Whether these flows are within the bounds, and what was found.
    pub(super) fn in_flows(&self, reports: &[Option<FlowReport>]) -> Option<(bool, String)> {
        let rate = |flow: &usize| reports.get(*flow)?.as_ref().map(FlowReport::rate_bits_per_s);
        match self {
            Wanted::Rate { flow, min, max } => {
                let Some(rate) = rate(flow) else { return Some((false, "it did not begin".to_owned())) };
                let fits =
                    min.is_none_or(|min| rate >= min as f64) && max.is_none_or(|max| rate <= max as f64);
                Some((fits, format!("{:.3} Mbit/s", rate / 1e6)))
            }
            Wanted::Fair { flows, index_percent } => {
                let rates: Vec<f64> = flows.iter().map(|flow| rate(flow).unwrap_or(0.0)).collect();
                let index = jain_index(&rates);
                let shown: Vec<String> = rates.iter().map(|rate| format!("{:.3}", rate / 1e6)).collect();
                let found = format!("index {index:.3} ({} Mbit/s)", shown.join(", "));
                Some((index * 100.0 >= f64::from(*index_percent), found))
            }
            _ => None,
        }
    }

    /// The expectation as text.
    pub(super) fn words(&self, scenario: &Scenario) -> String {
        let Scenario { series, flows, queries, .. } = scenario;
        let flow = |index: &usize| flows.get(*index).map_or("", |flow| flow.name.as_str());
        match self {
            Wanted::Connected(switches) => format!("{switches} switches are connected"),
            Wanted::Ping { from, to, reached: true } => format!("{from} reaches {to}"),
            Wanted::Ping { from, to, reached: false } => format!("{from} does not reach {to}"),
            Wanted::Lost { series: index, min, max } => {
                let name = series.get(*index).map_or("", String::as_str);
                format!("of pings {name} are lost {} %", between(*min, *max, |percent| percent.to_string()))
            }
            Wanted::Rate { flow: index, min, max } => {
                let mega = |bits: u64| format!("{}", bits as f64 / 1e6);
                format!("flow {} gets {} Mbit/s", flow(index), between(*min, *max, mega))
            }
            Wanted::Fair { flows: indices, index_percent } => {
                let names: Vec<&str> = indices.iter().map(flow).collect();
                format!(
                    "flows {} share with an index of {}",
                    names.join(", "),
                    f64::from(*index_percent) / 100.0
                )
            }
            Wanted::Port { switch, port, up } => {
                format!("port {port} of {switch} is {}", if *up { "up" } else { "down" })
            }
            Wanted::Entries { switch, min, max } => {
                format!("{switch} has {} flow entries", between(*min, *max, |count| count.to_string()))
            }
            Wanted::Completed { .. } | Wanted::Completion { .. } => self.words_of_queries(|index| {
                queries.get(index).map(|queries| queries.name.clone()).unwrap_or_default()
            }),
        }
    }
}

pub(super) fn between<T: Copy>(min: Option<T>, max: Option<T>, words: impl Fn(T) -> String) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{} to {}", words(min), words(max)),
        (Some(min), None) => format!("at least {}", words(min)),
        (None, Some(max)) => format!("at most {}", words(max)),
        (None, None) => "any number of".to_owned(),
    }
}
