//! A statistics request of a controller, while the physical switch answers.
//!
//! In: parts of the answer. Out: sums. It asks nobody.

use flow::PortNo;
use openflow::message::{FlowStatsRequest, GroupStats, MeterStats, PortStats, QueueStats};
use std::collections::BTreeMap;

/// What a controller asked.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// Flow entries.
    Flows(FlowStatsRequest),
    /// The sum of flow entries.
    Aggregate(FlowStatsRequest),
    /// Ports.
    Ports(PortNo),
    /// One group, or all.
    Groups(u32),
    /// One meter, or all.
    Meters(u32),
    /// Queues of a port.
    Queues { port: PortNo },
}

/// A statistics request on its way.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    /// What the controller asked.
    pub(crate) question: Question,
    /// The counters of rules by number, from the parts so far.
    pub(crate) rules: BTreeMap<u64, Counted>,
    /// The ports so far.
    pub(crate) ports: Vec<PortStats>,
    /// The queues so far.
    pub(crate) queues: Vec<QueueStats>,
    /// The groups so far, under the tenant's numbers.
    pub(crate) groups: Vec<GroupStats>,
    /// The meters so far, under the tenant's numbers.
    pub(crate) meters: Vec<MeterStats>,
}

/// The counters of the pieces of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Seconds and nanoseconds since the oldest piece was added.
    pub(crate) lived: (u32, u32),
}

impl Asking {
    pub(crate) fn new(question: Question) -> Asking {
        Asking {
            question,
            rules: BTreeMap::new(),
            ports: Vec::new(),
            queues: Vec::new(),
            groups: Vec::new(),
            meters: Vec::new(),
        }
    }
}
