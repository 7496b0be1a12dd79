//! Checks whether the switch supports a request: its instructions, actions and matches.
//!
//! In: the content of a flow mod, group mod or packet-out. Out: the same in the order in which it is carried out, or
//! the refusal. It never changes anything.

use flow::canonical::check_prerequisites;
use flow::{Action, Field, Instruction, Match, MatchEntry, PortNo};
use openflow::Version;
use openflow::message::FlowMod;

use super::Switch;
use crate::action_set::ActionSet;
use crate::frame::ether_type;
use crate::instructions::Instructions;
use crate::refusal::Refusal;
use crate::supported::{can_match, can_set};

/// Where actions are used, which decides where they may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActionContext {
    Rule,
    Bucket,
    PacketOut,
}

/// The order in which the instructions of one rule are carried out (1.3.5, 5.9).
fn rank(instruction: &Instruction) -> u8 {
    match instruction {
        Instruction::Meter(_) => 0,
        Instruction::ApplyActions(_) => 1,
        Instruction::ClearActions => 2,
        Instruction::WriteActions(_) => 3,
        Instruction::WriteMetadata { .. } => 4,
        Instruction::GotoTable(_) => 5,
        Instruction::Experimenter { .. } => 6,
    }
}

impl Switch {
    /// The instructions of a rule for a table, in the order in which they are carried out.
    pub(super) fn check_instructions(
        &self,
        table_id: u8,
        wanted: &FlowMod,
        version: Version,
    ) -> Result<Instructions, Refusal> {
        for instruction in &wanted.instructions {
            match instruction {
                Instruction::GotoTable(next) if *next <= table_id || !self.pipeline.has(*next) => {
                    return Err(Refusal::InstructionTableId);
                }
                Instruction::ApplyActions(actions) => self.check_actions(actions, ActionContext::Rule)?,
                Instruction::WriteActions(actions) => self.check_actions(actions, ActionContext::Rule)?,
                // As in Open vSwitch; the specification names no error for it.
                Instruction::Meter(id) if !self.meters.contains(*id) => return Err(Refusal::MeterInvalid),
                Instruction::Experimenter { .. } => return Err(Refusal::InstructionExperimenter),
                Instruction::Meter(_)
                | Instruction::GotoTable(_)
                | Instruction::WriteMetadata { .. }
                | Instruction::ClearActions => {}
            }
        }
        let mut ordered = wanted.instructions.to_vec();
        ordered.sort_by_key(rank);
        let twice = ordered.windows(2).any(|pair| rank(&pair[0]) == rank(&pair[1]));
        if twice {
            return Err(Refusal::InstructionUnsupported);
        }
        // 1.0 allows an action on packets that do not have the field that it changes.
        if version != Version::V1_0 {
            check_consistency(&wanted.matching, &ordered)?;
        }
        Ok(Instructions::new(ordered))
    }

    /// Whether the switch supports all of these actions.
    pub(super) fn check_actions(&self, actions: &[Action], context: ActionContext) -> Result<(), Refusal> {
        actions.iter().try_for_each(|action| self.check_action(action, context))
    }

    fn check_action(&self, action: &Action, context: ActionContext) -> Result<(), Refusal> {
        let allowed = |good: bool, refusal| if good { Ok(()) } else { Err(refusal) };
        match action {
            Action::Output { port, .. } => allowed(can_send_to(*port, context), Refusal::ActionOutPort),
            Action::Enqueue { port, .. } => {
                let queues_there = port.0 <= PortNo::MAX.0 || *port == PortNo::IN_PORT;
                allowed(queues_there && can_send_to(*port, context), Refusal::ActionOutPort)
            }
            // A chain of buckets is checked when the group is changed.
            Action::Group(id) => allowed(self.groups.contains(*id), Refusal::ActionOutGroup),
            Action::PushVlan(kind) => allowed(ether_type::is_vlan(*kind), Refusal::ActionArgument),
            Action::PushMpls(kind) => allowed(ether_type::is_mpls(*kind), Refusal::ActionArgument),
            Action::SetVlanVid(vid) => allowed(*vid < 0x1000, Refusal::ActionArgument),
            Action::SetVlanPcp(pcp) => allowed(*pcp < 8, Refusal::ActionArgument),
            Action::SetField { field, .. } => allowed(can_set(*field), Refusal::ActionSetType),
            Action::SetUnknownField { .. } => Err(Refusal::ActionSetType),
            Action::PushPbb(_) | Action::PopPbb => Err(Refusal::ActionType),
            Action::Experimenter { .. } => Err(Refusal::ActionExperimenter),
            _ => Ok(()),
        }
    }

    /// Whether the switch can test all fields of a match.
    pub(super) fn check_match(&self, matching: &Match) -> Result<(), Refusal> {
        let known =
            |entry: &MatchEntry| matches!(entry, MatchEntry::Field { field, .. } if can_match(*field));
        if !matching.entries().iter().all(known) {
            return Err(Refusal::MatchField);
        }
        check_prerequisites(matching).map_err(|_| Refusal::MatchPrerequisite)
    }
}

/// Whether the packets that reach each set-field have its field. The match decides that, with the changes of the
/// actions before it (OFPBAC_MATCH_INCONSISTENT).
fn check_consistency(matching: &Match, in_order: &[Instruction]) -> Result<(), Refusal> {
    let mut known = Known::of(matching);
    for instruction in in_order {
        match instruction {
            Instruction::ApplyActions(actions) => known.follow(actions)?,
            Instruction::WriteActions(actions) => {
                known.clone().follow(ActionSet::of(actions).in_order())?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What is known about the kind of packets.
#[derive(Clone)]
struct Known(Match);

impl Known {
    /// The fields on which other fields depend.
    fn of(matching: &Match) -> Self {
        let needed = [Field::EthType, Field::VlanVid, Field::IpProto, Field::Icmpv6Type];
        let known = |field: &Field| Some((*field, matching.get(*field)?.0));
        let there = needed.iter().filter_map(known);
        Known(there.fold(Match::any(), |all, (field, value)| all.with(field, value)))
    }

    fn follow(&mut self, actions: &[Action]) -> Result<(), Refusal> {
        actions.iter().try_for_each(|action| self.change(action))
    }

    fn change(&mut self, action: &Action) -> Result<(), Refusal> {
        match action {
            Action::SetField { field, value } => {
                let mut after = self.0.clone();
                after.remove(*field);
                let after = after.with(*field, *value).sorted();
                check_prerequisites(&after).map_err(|_| Refusal::ActionInconsistent)?;
                *self = Known::of(&after);
            }
            Action::PushVlan(_) => self.0.set(Field::VlanVid, VLAN_PRESENT),
            Action::PopVlan => {
                self.0.remove(Field::VlanVid);
            }
            Action::PushMpls(kind) | Action::PopMpls(kind) => {
                self.0 = Match::any().with(Field::EthType, *kind);
            }
            _ => {}
        }
        Ok(())
    }
}

/// OFPVID_PRESENT.
const VLAN_PRESENT: u128 = 0x1000;

/// Accepts a number that no port has yet, because the port may be added later.
fn can_send_to(port: PortNo, context: ActionContext) -> bool {
    match port {
        PortNo::TABLE => context == ActionContext::PacketOut,
        PortNo::IN_PORT
        | PortNo::FLOOD
        | PortNo::ALL
        | PortNo::NORMAL
        | PortNo::CONTROLLER
        | PortNo::LOCAL => true,
        PortNo(number) => number > 0 && number <= PortNo::MAX.0,
    }
}
