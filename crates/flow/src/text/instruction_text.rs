//! Instructions, printed and read.

use super::BadText;
use super::action_print::actions_to_string;
use super::action_text::{drop_alone, parse_actions, read_action};
use super::words::{Token, number, words};
use crate::instruction::Instruction;
use crate::value::{self, read_hex, show_hex};

/// Prints instructions in the order of execution (1.3.5, 5.9), which is also ovs-ofctl's. An empty list is `drop`.
///
/// ```
/// use flow::{Action, Instruction, PortNo, text::instructions_to_string};
/// let instructions = [Instruction::GotoTable(3), Instruction::ApplyActions(vec![Action::output(PortNo(2))])];
/// assert_eq!(instructions_to_string(&instructions), "output:2,goto_table:3");
/// ```
pub fn instructions_to_string(instructions: &[Instruction]) -> String {
    let mut sorted: Vec<&Instruction> =
        instructions.iter().filter(|instruction| !is_nothing(instruction)).collect();
    sorted.sort_by_key(|instruction| rank(instruction));
    if sorted.is_empty() {
        return "drop".to_owned();
    }
    sorted.into_iter().map(show).collect::<Vec<_>>().join(",")
}

fn is_nothing(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::ApplyActions(actions) if actions.is_empty())
}

/// The order of execution.
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

fn show(instruction: &Instruction) -> String {
    match instruction {
        Instruction::GotoTable(table_id) => format!("goto_table:{table_id}"),
        Instruction::WriteMetadata { metadata, mask: u64::MAX } => format!("write_metadata:{metadata:#x}"),
        Instruction::WriteMetadata { metadata, mask } => format!("write_metadata:{metadata:#x}/{mask:#x}"),
        Instruction::WriteActions(actions) => format!("write_actions({})", actions_to_string(actions)),
        Instruction::ApplyActions(actions) => actions_to_string(actions),
        Instruction::ClearActions => "clear_actions".to_owned(),
        Instruction::Meter(meter_id) => format!("meter:{meter_id}"),
        Instruction::Experimenter { experimenter, body } => {
            format!("experimenter_instruction({experimenter:#010x},{})", show_hex(body))
        }
    }
}

/// Reads instructions as ovs-ofctl does: actions outside a list are apply-actions. `drop` alone, or an empty text, is
/// an empty list.
///
/// # Errors
/// A word that is neither an instruction nor an action, an invalid argument, or an instruction that appears twice or
/// out of the order of execution.
///
/// ```
/// use flow::{Instruction, text::parse_instructions};
/// assert_eq!(parse_instructions("meter:5,goto_table:3"), Ok(vec![Instruction::Meter(5), Instruction::GotoTable(3)]));
/// assert_eq!(parse_instructions("goto_table:3,output:2").unwrap_err().offset, 13);
/// ```
pub fn parse_instructions(text: &str) -> Result<Vec<Instruction>, BadText> {
    let words = words(text)?;
    if let Some(drop) = drop_alone(&words)? {
        return Ok(drop);
    }
    let mut instructions: Vec<Instruction> = Vec::new();
    for word in &words {
        let next = match read_instruction(word)? {
            Some(instruction) => instruction,
            None => {
                let action = read_action(word)?;
                if let Some(Instruction::ApplyActions(actions)) = instructions.last_mut() {
                    actions.push(action);
                    continue;
                }
                Instruction::ApplyActions(vec![action])
            }
        };
        check_order(word, instructions.last(), &next)?;
        instructions.push(next);
    }
    Ok(instructions)
}

fn check_order(word: &Token<'_>, last: Option<&Instruction>, next: &Instruction) -> Result<(), BadText> {
    let Some(last) = last else { return Ok(()) };
    let (before, after) = (rank(last), rank(next));
    let may_repeat = matches!(next, Instruction::Experimenter { .. });
    if before < after || before == after && may_repeat {
        return Ok(());
    }
    if before == after {
        return Err(word.fault("this instruction appears twice"));
    }
    let order = "meter, actions, clear_actions, write_actions, write_metadata, goto_table";
    Err(word.fault(format!("it stands behind a later step; expected the order {order}")))
}

/// An instruction, or `None` if the word is none.
fn read_instruction(word: &Token<'_>) -> Result<Option<Instruction>, BadText> {
    Ok(Some(match word.key {
        "goto_table" => Instruction::GotoTable(number(word, "a table from 0 to 255")?),
        "meter" => Instruction::Meter(number(word, "a meter's number")?),
        "clear_actions" => word.bare(Instruction::ClearActions)?,
        "write_metadata" => read_write_metadata(word)?,
        "write_actions" => {
            let inner = word.value.filter(|_| word.in_parentheses);
            let inner = inner.ok_or_else(|| word.fault("expected write_actions(ACTIONS)"))?;
            let actions = parse_actions(inner).map_err(|fault| fault.shifted(word.value_offset()))?;
            Instruction::WriteActions(actions)
        }
        "experimenter_instruction" => read_experimenter(word)?,
        _ => return Ok(None),
    }))
}

fn read_write_metadata(word: &Token<'_>) -> Result<Instruction, BadText> {
    let expected = "a number of 64 bits, with or without a mask (0x5/0xff)";
    let text = word.needed(expected)?;
    let (metadata, mask) = text.split_once('/').unwrap_or((text, "0xffffffffffffffff"));
    let read = |text| value::read_number(text).and_then(|number| u64::try_from(number).ok());
    match (read(metadata), read(mask)) {
        (Some(metadata), Some(mask)) => Ok(Instruction::WriteMetadata { metadata, mask }),
        _ => Err(word.fault(format!("expected {expected}"))),
    }
}

fn read_experimenter(word: &Token<'_>) -> Result<Instruction, BadText> {
    let expected = "an experimenter's number and its bytes (experimenter_instruction(0x00002320,0011))";
    let (number, hex) = word.needed(expected)?.split_once(',').unwrap_or_default();
    let number = value::read_number(number.trim()).and_then(|number| u32::try_from(number).ok());
    let experimenter = number.ok_or_else(|| word.fault(format!("expected {expected}")))?;
    let body = read_hex(hex.trim()).map_err(|fault| word.fault(fault))?;
    Ok(Instruction::Experimenter { experimenter, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(text: &str, offset: usize, words: &[&str]) {
        let refused = parse_instructions(text).unwrap_err();
        assert_eq!(refused.offset, offset, "{refused}");
        assert!(words.iter().all(|word| refused.to_string().contains(word)), "{refused}");
    }

    fn check(text: &str, again: &str) {
        assert_eq!(instructions_to_string(&parse_instructions(text).unwrap()), again, "{text}");
    }

    #[test]
    fn wrong_words_are_named_with_their_place() {
        check_refused("goto_table:256", 0, &["a table from 0 to 255"]);
        check_refused("output:1,meter:3", 9, &["order"]);
        check_refused("meter:1,meter:2", 8, &["twice"]);
        check_refused("output:1,write_actions(output:2,gruop:3)", 32, &["'gruop:3'"]);
        check_refused("write_metadata:5/", 0, &["64 bits"]);
        check_refused("write_actions:output", 0, &["write_actions(ACTIONS)"]);
        check_refused("goto_table:1,drop", 13, &["alone"]);
    }

    #[test]
    fn free_actions_are_applied() {
        check("meter:1,dec_ttl,output:2,goto_table:3", "meter:1,dec_ttl,output:2,goto_table:3");
        check("write_metadata:5/0xffffffffffffffff", "write_metadata:0x5");
        check("write_actions(),goto_table:4", "write_actions(drop),goto_table:4");
        check("", "drop");
    }
}
