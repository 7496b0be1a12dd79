//! Packet-ins that the target would not have sent: its rule was in the data plane before the packet came.
//!
//! ```text
//!   rule put in the data plane, time ──> [ the last 1,024 ] <── miss of a frame that a tap has seen ──> back through the switch's tables
//! ```
//!
//! Open vSwitch remembers for each kind of packet what its tables said, and revalidates that some milliseconds after a change. Until then,
//! packets of a connection whose rule is there still come to the controller. A controller that sets up each connection then writes its rules
//! again, and a switch at its set-up rate falls behind for good.
//!
//! In: rules with the time at which they were put, misses with the time at which they came. Out: whether the miss is stale. It asks no
//! switch. A frame that no tap has seen is never stale, so that the same packet does not go back twice.

use flow::frame::FrameFields;
use flow::{Action, Instruction, PortNo};
use openflow::view::PacketInView;
use software_switch::BookedRule;
use std::collections::VecDeque;

use crate::shadow::Shadow;

/// How many rules are remembered: those of the last 0.4 s of the fastest hardware among the built-in profiles, with 2,500 rules a second. The oldest is
/// forgotten, and then a stale miss reaches the controller.
const RULES_MAX: usize = 1024;
/// How long Open vSwitch may act by what it remembers: its revalidators begin at the latest after half a second.
const AGE_MAX_NS: u64 = 1_000_000_000;
/// OFPR_ACTION. Open vSwitch gives it to misses too, if a rule of priority 0 sends them. Only OFPR_NO_MATCH is below it.
const REASON_ACTION: u8 = 1;

/// The rules that came to the data plane last.
#[derive(Debug, Default)]
pub(super) struct NewRules {
    last: VecDeque<(u64, u64)>,
}

impl NewRules {
    /// The switch gets this rule at this time.
    pub(super) fn note(&mut self, rule: u64, at_ns: u64) {
        if self.last.len() >= RULES_MAX {
            self.last.pop_front();
        }
        self.last.push_back((rule, at_ns));
    }

    /// Whether a packet that came to the switch then, and left the first table for the controller, would have met one of the rules.
    pub(super) fn has_one_for(
        &mut self,
        packet_in: &PacketInView<'_>,
        arrived_ns: u64,
        shadow: &Shadow,
    ) -> bool {
        while self.last.front().is_some_and(|(_, at_ns)| at_ns.saturating_add(AGE_MAX_NS) < arrived_ns) {
            self.last.pop_front();
        }
        if packet_in.reason > REASON_ACTION || packet_in.table_id != 0 || self.last.is_empty() {
            return false;
        }
        let fields = FrameFields::read(packet_in.data).from_port(packet_in.in_port);
        let meets =
            |rule: &BookedRule| rule.table_id == 0 && rule.priority > 0 && rule.matching.matches(&fields);
        let before = self.last.iter().filter(|(_, at_ns)| *at_ns <= arrived_ns);
        let met = before.filter_map(|(rule, _)| shadow.placed_rule(*rule)).filter(|rule| meets(rule));
        let Some(met) = met.max_by_key(|rule| rule.priority) else { return false };
        // If this rule or one above it sends the packet to the controller, the packet-in is right. Few packet-ins get as far as here.
        !shadow.placed_rules().any(|rule| {
            rule.priority >= met.priority && sends_to_controller(&rule.instructions) && meets(rule)
        })
    }
}

fn sends_to_controller(instructions: &[Instruction]) -> bool {
    let has = |actions: &[Action]| {
        // A group may send to the controller too.
        let is_such = |action: &Action| {
            matches!(action, Action::Output { port: PortNo::CONTROLLER, .. } | Action::Group(_))
        };
        actions.iter().any(is_such)
    };
    instructions.iter().any(|instruction| match instruction {
        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => has(actions),
        // What a further table says is not known here.
        Instruction::GotoTable(_) => true,
        _ => false,
    })
}
