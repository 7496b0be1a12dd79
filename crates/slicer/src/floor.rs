//! The floor of a slice: rules below all of the tenant's, for packets that hit none.
//!
//! A switch of 1.3 drops such packets, a switch of 1.0 sends them to the controller. Whether the physical switch does, is not the tenant's
//! affair: other tenants and apps share it. So the slice has rules of its own. Packets that no controller
//! needs are dropped there, so that they do not reach the node by the kernel's table-miss rule.
//!
//! In: which versions the controllers speak. Out: flow mods. It never touches a tenant's rule.

use flow::{Action, Instruction, Match};
use openflow::Version;
use openflow::message::{FLOW_ADD, FLOW_DELETE_STRICT, FlowMod, FlowModFields};

/// The priority of the floor: above the kernel's table-miss rule, below all rules of the tenant.
const FLOOR_PRIORITY: u16 = 1;
/// The cookie of the floor. No rule of a tenant has this number.
pub(crate) const FLOOR_COOKIE: u64 = 0;

/// What happens to packets that hit no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Floor {
    /// What the physical switch and the kernel do.
    #[default]
    None,
    /// They are dropped.
    Drop,
    /// They go to the controller.
    Controller,
}

impl Floor {
    /// The floor that controllers of these versions need. A controller of 1.0 receives misses always; a physical switch of 1.0 sends them
    /// up by itself.
    pub(crate) fn wanted(mut controllers: impl Iterator<Item = Version>, on: Version) -> Floor {
        let hears_misses = controllers.any(|version| version == Version::V1_0);
        match (hears_misses, on) {
            (true, Version::V1_0) => Floor::None,
            (true, _) => Floor::Controller,
            (false, _) => Floor::Drop,
        }
    }
}

/// The flow mod that lays the floor for the packets of a match.
pub(crate) fn floor_mod(floor: Floor, matching: Match) -> FlowMod {
    let instructions = match floor {
        Floor::Controller => vec![Instruction::ApplyActions(vec![Action::to_controller()])],
        Floor::Drop | Floor::None => Vec::new(),
    };
    let command = if floor == Floor::None { FLOW_DELETE_STRICT } else { FLOW_ADD };
    FlowModFields { cookie: FLOOR_COOKIE, priority: FLOOR_PRIORITY, command, ..FlowModFields::default() }
        .with(matching, instructions)
}
