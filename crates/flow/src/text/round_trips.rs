//! Properties of all values and all texts.

use super::*;
use crate::action::Action;
use crate::arbitrary;
use crate::instruction::Instruction;
use crate::matching::{Match, MatchEntry};
use crate::port::PortNo;
use proptest::prelude::*;

/// What text keeps of a match: no mask of all ones, no field with a mask of zeros, in one order.
fn said(rule: &Match) -> Vec<MatchEntry> {
    let mut entries: Vec<MatchEntry> = rule.entries().iter().cloned().filter_map(said_entry).collect();
    entries.sort_by_key(|entry| match entry {
        MatchEntry::Field { field, .. } => (u32::from(field.number()), Vec::new()),
        MatchEntry::Unknown { header, body } => (*header | 1 << 31, body.clone()),
    });
    entries
}

fn said_entry(entry: MatchEntry) -> Option<MatchEntry> {
    match entry {
        MatchEntry::Field { mask: Some(0), .. } => None,
        MatchEntry::Field { field, value, mask } => {
            Some(MatchEntry::Field { field, value, mask: mask.filter(|mask| *mask != field.full_mask()) })
        }
        unknown => Some(unknown),
    }
}

/// What text says of actions: an output's length for the controller only; what Nicira's actions say as OpenFlow's own.
fn said_actions(actions: &[Action]) -> Vec<Action> {
    let said = |action: &Action| match action {
        Action::Output { port, .. } if *port != PortNo::CONTROLLER => Action::output(*port),
        other => other.clone(),
    };
    actions.iter().map(said).collect()
}

fn printable(action: &Action) -> bool {
    match action {
        Action::SetVlanVid(vid) => *vid < 4096,
        Action::SetVlanPcp(pcp) => *pcp < 8,
        _ => true,
    }
}

proptest! {
    #[test]
    fn a_match_comes_back(rule in arbitrary::rule()) {
        let text = match_to_string(&rule);
        let again = parse_match(&text).map_err(|bad| TestCaseError::fail(format!("{text}: {bad}")))?;
        prop_assert_eq!(said(&again), said(&rule), "{}", text);
        prop_assert_eq!(match_to_string(&again), text);
    }

    #[test]
    fn actions_come_back(
        actions in proptest::collection::vec(
            prop_oneof![arbitrary::action(), arbitrary::action_of_1_0().prop_filter("sayable", printable)],
            0..6,
        ),
    ) {
        let text = actions_to_string(&actions);
        let again = parse_actions(&text).map_err(|bad| TestCaseError::fail(format!("{text}: {bad}")))?;
        prop_assert_eq!(again, said_actions(&actions), "{}", text);
    }

    #[test]
    fn niciras_actions_come_back(subtype in 0u16..50, body in proptest::collection::vec(any::<u8>(), 0..30), zeros in any::<bool>()) {
        let mut bytes = subtype.to_be_bytes().to_vec();
        bytes.extend(body.iter().map(|byte| if zeros && *byte > 40 { 0 } else { *byte }));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let action = Action::Experimenter { experimenter: nicira::NICIRA, body: bytes };
        let text = actions_to_string(std::slice::from_ref(&action));
        let again = parse_actions(&text).map_err(|bad| TestCaseError::fail(format!("{text}: {bad}")))?;
        let own = matches!(again[..], [Action::DecNwTtl | Action::SetQueue(_) | Action::Output { .. }]);
        prop_assert!(own || again == [action], "{}", text);
    }

    #[test]
    fn instructions_come_back(instructions in arbitrary::instructions()) {
        let text = instructions_to_string(&instructions);
        let again = parse_instructions(&text).map_err(|bad| TestCaseError::fail(format!("{text}: {bad}")))?;
        prop_assert_eq!(instructions_to_string(&again), text);
        let without_empty = |list: &[Instruction]| {
            list.iter().filter(|one| **one != Instruction::ApplyActions(Vec::new())).count()
        };
        prop_assert_eq!(again.len(), without_empty(&instructions));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,60}", words in "([a-z_]{1,12}[:=(,\\-> \\[\\]0-9)./x]{0,8}){0,5}") {
        for text in [&text, &words] {
            let _ = parse_match(text);
            let _ = parse_instructions(text);
        }
    }

    #[test]
    fn no_argument_panics(key in "(output|load|move|set_field|resubmit|controller|note|dec_ttl|enqueue|experimenter|write_metadata|write_actions|vlan_tci|dl_vlan|nw_src|oxm|reg0|eth_src)", value in "[:(=][0-9a-z/.:,>\\[\\]A-Z_-]{0,30}\\)?") {
        let text = format!("{key}{value}");
        let _ = parse_match(&text);
        let _ = parse_instructions(&text);
    }
}
