//! The groups and meters that an app can own on a switch.
//!
//! In: numbers. Out: names and errors. It keeps no owner.

use crate::excess::Excess;
use flow::DatapathId;

/// How many groups and meters one zone may have, on all switches and workers. The kernel refuses more, so that no app
/// takes every number.
pub(crate) const MAX_OWNED: usize = 4_096;

/// OFPG_MAX and OFPM_MAX (1.3.5, 7.3.4.2 and 7.3.4.3). Higher numbers belong to the switch. Among them are
/// OFPM_SLOWPATH and OFPM_CONTROLLER, which limit its packet-ins for all apps.
pub(crate) const MAX_GROUP: u32 = 0xffff_ff00;
const MAX_METER: u32 = 0xffff_0000;

/// A group or a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupOrMeter {
    /// The group of this number.
    Group(u32),
    /// The meter of this number.
    Meter(u32),
}

impl GroupOrMeter {
    /// Whether it belongs to the switch, and so affects all apps.
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

/// A group or meter on a switch.
pub(crate) type Place = (DatapathId, GroupOrMeter);
