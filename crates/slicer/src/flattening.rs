//! The instructions of a rule as one list of actions. The virtual switch has one table, so its action set is carried out right behind the
//! applied actions.
//!
//! In: instructions of a tenant. Out: a meter and a list, or the refusal. It never looks at a port.

use crate::refusal::*;
use flow::{Action, Field, Instruction};

/// What a rule does with its packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flat {
    /// The meter that comes first.
    pub(crate) meter: Option<u32>,
    /// The actions, in order.
    pub(crate) actions: Vec<Action>,
}

/// Flattens instructions (1.3.5, 5.9 and 5.10).
pub(crate) fn flatten(instructions: &[Instruction]) -> Result<Flat, Refusal> {
    let (mut flat, mut applied, mut written, mut clears) = (Flat::default(), None, None, false);
    for instruction in instructions {
        let is_second = match instruction {
            Instruction::Meter(meter) => flat.meter.replace(*meter).is_some(),
            Instruction::ApplyActions(actions) => applied.replace(actions).is_some(),
            Instruction::WriteActions(actions) => written.replace(actions).is_some(),
            // The action set is empty in the first table.
            Instruction::ClearActions => std::mem::replace(&mut clears, true),
            Instruction::GotoTable(table) => {
                let why = format!("the switch of a slice has one table, and no table {table}");
                return Err(Refusal::new(INSTRUCTION_TABLE_ID, why));
            }
            Instruction::WriteMetadata { .. } => {
                return Err(Refusal::new(INSTRUCTION_METADATA, "one table has no use for metadata"));
            }
            Instruction::Experimenter { experimenter, .. } => {
                let why = format!("instructions of experimenter {experimenter:#010x} are unknown");
                return Err(Refusal::new(INSTRUCTION_EXPERIMENTER, why));
            }
        };
        if is_second {
            return Err(Refusal::new(INSTRUCTION_UNSUPPORTED, "an instruction is there twice"));
        }
    }
    flat.actions = applied.cloned().unwrap_or_default();
    flat.actions.extend(in_order(written.map_or(&[], Vec::as_slice)));
    Ok(flat)
}

/// An action set in the order in which it is carried out (1.3.5, 5.10). The later of two actions of a kind stays. A group replaces an
/// output.
pub(crate) fn in_order(written: &[Action]) -> Vec<Action> {
    let mut set: Vec<Action> = Vec::new();
    for action in written {
        match set.iter_mut().find(|there| same_kind(there, action)) {
            Some(there) => *there = action.clone(),
            None => set.push(action.clone()),
        }
    }
    if set.iter().any(|action| matches!(action, Action::Group(_))) {
        set.retain(|action| !matches!(action, Action::Output { .. } | Action::Enqueue { .. }));
    }
    set.sort_by_key(rank);
    set
}

fn same_kind(one: &Action, other: &Action) -> bool {
    let field = |action: &Action| -> Option<Field> {
        match action {
            Action::SetField { field, .. } => Some(*field),
            _ => None,
        }
    };
    std::mem::discriminant(one) == std::mem::discriminant(other) && field(one) == field(other)
}

fn rank(action: &Action) -> u8 {
    match action {
        Action::CopyTtlIn => 0,
        Action::PopVlan | Action::PopMpls(_) | Action::PopPbb => 1,
        Action::PushMpls(_) => 2,
        Action::PushPbb(_) => 3,
        Action::PushVlan(_) => 4,
        Action::CopyTtlOut => 5,
        Action::DecMplsTtl | Action::DecNwTtl => 6,
        Action::SetQueue(_) => 8,
        Action::Group(_) => 9,
        Action::Output { .. } | Action::Enqueue { .. } => 10,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::text::{actions_to_string, parse_instructions};

    fn check(text: &str, expected: &str) {
        let flat = flatten(&parse_instructions(text).unwrap()).unwrap();
        assert_eq!(actions_to_string(&flat.actions), expected, "{text}");
    }

    #[test]
    fn what_needs_a_second_table_is_refused() {
        for (text, error) in [
            ("goto_table:1", INSTRUCTION_TABLE_ID),
            ("write_metadata:5", INSTRUCTION_METADATA),
            ("experimenter_instruction(0x1,00000000)", INSTRUCTION_EXPERIMENTER),
        ] {
            assert_eq!(flatten(&parse_instructions(text).unwrap()).unwrap_err().error, error, "{text}");
        }
        let twice = [Instruction::ClearActions, Instruction::ClearActions];
        assert_eq!(flatten(&twice).unwrap_err().error, INSTRUCTION_UNSUPPORTED);
    }

    #[test]
    fn the_set_follows_the_list_in_the_specifications_order() {
        check("output:1,write_actions(output:2,dec_ttl)", "output:1,dec_ttl,output:2");
        check("write_actions(output:2,output:3)", "output:3");
        check("write_actions(group:4,output:3)", "group:4");
        check("clear_actions,write_actions(output:3)", "output:3");
    }
}
