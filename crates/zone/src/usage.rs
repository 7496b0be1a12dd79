//! What a zone uses of the machine and of the node, now and in the last half minute.
//!
//! In: measured numbers. Out: [`Sample`], the soft and hard limit of each [`Resource`], and [`History`]. It never
//! measures, and does not compare with limits (the service `resource` does).

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::Limits;

/// Samples of a zone that are kept: half a minute at two a second. A new sample replaces the oldest.
pub const HISTORY_SAMPLES_MAX: usize = 60;

/// A soft limit that is not written is this percentage of the hard limit.
const SOFT_PERCENT: u64 = 80;

/// A resource with a soft and a hard limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Processor time: [`Limits::cpu_percent`].
    CpuPercent,
    /// Private memory: [`Limits::memory_bytes`].
    MemoryBytes,
    /// Open file descriptors: [`Limits::open_files`].
    OpenFiles,
    /// Processes and threads: [`Limits::processes`].
    Processes,
    /// Unread data in the ring: [`Limits::lag_ms`].
    LagMs,
    /// Data in the store: [`Limits::store_bytes`].
    StoreBytes,
}

impl Resource {
    /// All resources.
    pub const ALL: [Resource; 6] = [
        Resource::CpuPercent,
        Resource::MemoryBytes,
        Resource::OpenFiles,
        Resource::Processes,
        Resource::LagMs,
        Resource::StoreBytes,
    ];

    /// Its key in `[app.NAME.limits]`. For the store, the key is in `[app.NAME.quotas]`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Resource::CpuPercent => "cpu_percent",
            Resource::MemoryBytes => "memory_bytes",
            Resource::OpenFiles => "open_files",
            Resource::Processes => "processes",
            Resource::LagMs => "lag_ms",
            Resource::StoreBytes => "store_bytes",
        }
    }

    /// The hard limit, in the unit of the resource. `None`: unlimited.
    #[must_use]
    pub fn hard(self, limits: &Limits) -> Option<u64> {
        match self {
            Resource::CpuPercent => limits.cpu_percent.map(|percent| NonZeroU32::get(percent).into()),
            Resource::MemoryBytes => Some(limits.memory_bytes),
            Resource::OpenFiles => Some(limits.open_files.into()),
            Resource::Processes => limits.processes.map(u64::from),
            Resource::LagMs => limits.lag_ms.map(u64::from),
            Resource::StoreBytes => limits.store_bytes.map(u64::from),
        }
    }

    /// The soft limit: the one that was written, or four fifths of the hard limit. Above it, the app and the operator
    /// are notified.
    #[must_use]
    pub fn soft(self, limits: &Limits) -> Option<u64> {
        let said = match self {
            Resource::CpuPercent => limits.soft.cpu_percent.map(u64::from),
            Resource::MemoryBytes => limits.soft.memory_bytes,
            Resource::OpenFiles => limits.soft.open_files.map(u64::from),
            Resource::Processes => limits.soft.processes.map(u64::from),
            Resource::LagMs => limits.soft.lag_ms.map(u64::from),
            Resource::StoreBytes => limits.soft.store_bytes.map(u64::from),
        };
        let hard = self.hard(limits)?;
        Some(said.unwrap_or(hard / 100 * SOFT_PERCENT + hard % 100 * SOFT_PERCENT / 100))
    }

    /// The usage in a sample. `None`: the sample has no value for this app alone.
    #[must_use]
    pub fn used(self, sample: &Sample) -> Option<u64> {
        match self {
            Resource::CpuPercent => Some(sample.cpu_percent.into()),
            Resource::MemoryBytes => sample.memory_bytes,
            Resource::OpenFiles => sample.open_files.map(u64::from),
            Resource::Processes => sample.processes.map(u64::from),
            Resource::LagMs => sample.lag_ms.map(u64::from),
            Resource::StoreBytes => Some(sample.store_bytes),
        }
    }

    /// An amount for the operator: `61.2 MiB`, `120 %`, `17`, `2.5 s`.
    #[must_use]
    pub fn amount(self, used: u64) -> String {
        match self {
            Resource::CpuPercent => format!("{used} %"),
            Resource::MemoryBytes | Resource::StoreBytes => bytes(used),
            Resource::OpenFiles | Resource::Processes => used.to_string(),
            Resource::LagMs => format!("{}.{} s", used / 1_000, used % 1_000 / 100),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

fn bytes(number: u64) -> String {
    const MIB: u64 = 1 << 20;
    match number {
        0..1024 => format!("{number} B"),
        1024..MIB => format!("{} KiB", number >> 10),
        _ => format!("{}.{} MiB", number / MIB, number % MIB * 10 / MIB),
    }
}

/// What a zone used at one moment. Rates are averages since the sample before. A trusted app has no ring, and shares
/// memory, descriptors and threads with the kernel process. Its sample has no values for these. The kernel process
/// has its own samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sample {
    /// When, in milliseconds since the Unix epoch.
    pub unix_ms: u64,
    /// Which start of the app the sample belongs to.
    pub generation: u64,
    /// Processor time, in percent of one core. For a trusted app, the time within its calls.
    pub cpu_percent: u32,
    /// Private memory of all its processes, in bytes, including what was swapped out.
    pub memory_bytes: Option<u64>,
    /// The largest number of open descriptors of one of its processes.
    pub open_files: Option<u32>,
    /// Threads of all its processes.
    pub processes: Option<u32>,
    /// How long data has waited in a ring without the app reading any, in milliseconds.
    pub lag_ms: Option<u32>,
    /// Bytes that the app keeps in the store.
    pub store_bytes: u64,
    /// Events per second that the app was to receive.
    pub events_per_s: u32,
    /// Packet-ins per second that were dropped because its ring was full.
    pub dropped_per_s: u32,
    /// Commands per second.
    pub commands_per_s: u32,
    /// Packet-outs per second.
    pub packet_outs_per_s: u32,
    /// Refused commands per second.
    pub refusals_per_s: u32,
}

/// The last samples of a zone, oldest first; at most [`HISTORY_SAMPLES_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    samples: VecDeque<Sample>,
}

impl History {
    /// Adds the newest sample. If there is no room, removes the oldest.
    pub fn push(&mut self, sample: Sample) {
        if self.samples.len() >= HISTORY_SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The newest sample.
    #[must_use]
    pub fn last(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// All samples, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Sample> + ExactSizeIterator {
        self.samples.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_sample_goes_for_the_newest() {
        let mut history = History::default();
        assert_eq!(history.last(), None);
        for unix_ms in 0..200 {
            history.push(Sample { unix_ms, ..Sample::default() });
        }
        let times: Vec<u64> = history.iter().map(|sample| sample.unix_ms).collect();
        assert_eq!(times, (140..200).collect::<Vec<_>>());
    }

    #[test]
    fn a_hard_limit_without_a_soft_one_has_four_fifths_of_it() {
        let check = |json: &str, resource: Resource, expected: (Option<u64>, Option<u64>)| {
            let limits: Limits = serde_json::from_str(json).unwrap();
            assert_eq!((resource.soft(&limits), resource.hard(&limits)), expected, "{json}");
        };
        check("{}", Resource::CpuPercent, (None, None));
        check(r#"{"processes": null}"#, Resource::Processes, (None, None));
        check("{}", Resource::LagMs, (Some(2_000), Some(30_000)));
        check(r#"{"memory_bytes": 67108864}"#, Resource::MemoryBytes, (Some(53_687_091), Some(67_108_864)));
        check(
            r#"{"memory_bytes": 18446744073709551615}"#,
            Resource::MemoryBytes,
            (Some(14_757_395_258_967_641_292), Some(u64::MAX)),
        );
        check(r#"{"open_files": {"soft": 7, "hard": 20}}"#, Resource::OpenFiles, (Some(7), Some(20)));
        check(r#"{"cpu_percent": 1}"#, Resource::CpuPercent, (Some(0), Some(1)));
    }

    #[test]
    fn an_amount_is_written_as_the_operator_reads_it() {
        let check = |resource: Resource, used, expected: &str| assert_eq!(resource.amount(used), expected);
        check(Resource::MemoryBytes, 1_023, "1023 B");
        check(Resource::MemoryBytes, 3 << 10, "3 KiB");
        check(Resource::MemoryBytes, (64 << 20) - 1, "63.9 MiB");
        check(Resource::CpuPercent, 120, "120 %");
        check(Resource::LagMs, 2_540, "2.5 s");
        check(Resource::OpenFiles, 17, "17");
    }
}
