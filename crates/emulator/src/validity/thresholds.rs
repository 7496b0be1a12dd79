//! The limits of the meter, each with its reason.
//!
//! A value above the first limit of a pair makes a run doubtful, above the second invalid. A value at a limit is within
//! it.

use std::time::Duration;

/// Two limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Above it, a run is doubtful.
    pub doubtful: f64,
    /// Above it, a run is invalid.
    pub invalid: f64,
}

const fn limits(doubtful: f64, invalid: f64) -> Limits {
    Limits { doubtful, invalid }
}

/// The difference between the mean of the actual delays and that of the meant ones, as a share of the meant one. An
/// emulated switch is right if its mean differs from that of the real one by at most 2 %. The machine may not use that
/// up alone.
pub const MEAN_SHIFT: Limits = limits(0.01, 0.02);
/// Below this difference, the means count as the same: a loop wakes within about this of its time.
pub const MEAN_SHIFT_FLOOR: Duration = Duration::from_micros(50);
/// The Kolmogorov-Smirnov distance of actual delays from meant ones. An emulated switch is right below 0.05 from the real
/// one.
pub const DISTANCE: Limits = limits(0.025, 0.05);
/// With fewer delays, the distance and the mean say nothing.
pub const DELAYS_MIN: u64 = 20;
/// The share of the releases for which the base (Open vSwitch) was slower than the target. Each of them has a wrong delay, so
/// that the distance can be as large as this share.
pub const BASE_SLOWER: Limits = limits(0.01, 0.05);
/// A release is late if it is this much after its time. This is what a loop does that waits by whole milliseconds.
pub const LATE: Duration = Duration::from_millis(1);
/// The share of late releases, for the same reason as the distance.
pub const LATE_SHARE: Limits = limits(0.01, 0.05);
/// Frames that the machine lost, as a share of the releases. A TCP connection notices one lost packet in a thousand.
pub const LOST: Limits = limits(0.0, 0.001);
/// The share of a second that the host of a virtual machine took away from all its cores. An emulation on a machine of its own has none.
pub const STEAL: Limits = limits(0.01, 0.05);
/// The share of a second in which one of our threads was ready to run but had no core. These limits are chosen, not
/// measured: a thread that waits for a tenth of a second cannot release in time.
pub const RUN_QUEUE: Limits = limits(0.03, 0.1);
/// The use of all cores. In no experiment of Huang, Yocom and Snoeren (HotSDN'13, section 2.1) was it above 80 %.
pub const PROCESSOR: Limits = limits(0.8, 0.8);
/// The share of the seconds that may be above a limit of the machine's readings before the run as a whole is. A single
/// second of a long run does not spoil its distribution.
pub const BAD_SECONDS: f64 = 0.1;
/// A run that is this long and has no reading of the machine is doubtful.
pub const UNREAD: Duration = Duration::from_secs(3);
