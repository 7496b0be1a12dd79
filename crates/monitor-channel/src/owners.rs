//! One owner of a group or meter, as a message between the kernel process and the monitor.
//!
//! The monitor stores the whole list (`monitor::owners`).

use serde::{Deserialize, Serialize};

/// How many are in one message, so that it is far shorter than a message may be.
pub const IN_A_MESSAGE_MAX: usize = 1_024;

/// A group or a meter of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupOrMeter {
    /// The group of this number.
    Group(u32),
    /// The meter of this number.
    Meter(u32),
}

/// Its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owned {
    /// The switch's datapath id.
    pub datapath: u64,
    /// Which.
    pub thing: GroupOrMeter,
    /// Its zone; `None`: it has no owner any more.
    pub zone: Option<u16>,
}
