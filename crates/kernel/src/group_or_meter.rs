//! The groups and meters that an app can own in a switch.
//!
//! In: numbers. Out: names and errors. It keeps no owner.

use crate::excess::Excess;
use flow::DatapathId;

/// How many groups and meters one zone may have, over all switches and workers. One more is refused, so that no app takes every number.
pub(crate) const MAX_OWNED: usize = 4_096;

/// OFPG_MAX and OFPM_MAX (1.3.5, 7.3.4.2 and 7.3.4.3): numbers above are the switch's own, among them OFPM_SLOWPATH and OFPM_CONTROLLER,
/// which meter what it sends up for every app.
pub(crate) const MAX_GROUP: u32 = 0xffff_ff00;
const MAX_METER: u32 = 0xffff_0000;

/// What is owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupOrMeter {
    /// The group of this number.
    Group(u32),
    /// The meter of this number.
    Meter(u32),
}

impl GroupOrMeter {
    /// Whether it is the switch's own, and concerns everybody.
    pub(crate) fn is_reserved(self) -> bool {
        match self {
            GroupOrMeter::Group(id) => id > MAX_GROUP,
            GroupOrMeter::Meter(id) => id > MAX_METER,
        }
    }

    pub(crate) fn excess_of_kernels(self) -> Excess {
        match self {
            GroupOrMeter::Group(id) => Excess::Group(id),
            GroupOrMeter::Meter(id) => Excess::KernelsMeter(id),
        }
    }

    pub(crate) fn excess(self) -> Excess {
        match self {
            GroupOrMeter::Group(id) => Excess::Group(id),
            GroupOrMeter::Meter(id) => Excess::Meter(id),
        }
    }

    pub(crate) fn excess_unjudged(self) -> Excess {
        match self {
            GroupOrMeter::Group(id) => Excess::UnjudgedGroup(id),
            GroupOrMeter::Meter(id) => Excess::UnjudgedMeter(id),
        }
    }
}

/// A group or meter of a switch.
pub(crate) type Place = (DatapathId, GroupOrMeter);
