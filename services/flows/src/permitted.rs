//! Whether a caller may have the items of a set: its grant, and whether the items can be read.
//!
//! In: items, grants. Out: yes, or a status and a sentence. An app without bounds costs no look at a match. It never looks at other sets,
//! but for the owner of a group or meter.

use crate::wanted::{Body, Scratch, What};
use flow::Instruction;
use flow::canonical::{check_actions, check_instructions, read_instructions, read_match};
use flow::{Action, DatapathId};
use flows_contract::{Grant, Item, items, status};
use std::collections::BTreeSet;

/// Checks the items of a set.
///
/// # Errors
/// The status and the sentence for the caller.
pub fn check(grant: &Grant, name: &str, bytes: &[u8], scratch: &mut Scratch) -> Result<(), (u16, String)> {
    for (at, item) in items(bytes) {
        let is_sound = match &item {
            Item::Rule(rule) => check_instructions(rule.instructions).and(read_field_run(rule.matching)),
            Item::Path(path) => check_actions(path.treatment).and(read_field_run(path.selector)),
            Item::Group(_) | Item::Meter(_) => Ok(()),
        };
        is_sound
            .map_err(|why| (status::BAD_QUESTION, format!("set {name:?}, the item at byte {at}: {why}")))?;
    }
    if grant.is_unbounded() {
        return Ok(());
    }
    within(grant, bytes, scratch).map_err(|why| (status::NOT_GRANTED, why))
}

fn read_field_run(matching: &[u8]) -> Result<(), flow::BadInput> {
    flow::canonical::match_tlvs(matching).try_for_each(|tlv| tlv.map(drop))
}

fn within(grant: &Grant, bytes: &[u8], scratch: &mut Scratch) -> Result<(), String> {
    grant.check_write()?;
    let body = Body { set: 0, bytes: bytes.into() };
    let mut own: BTreeSet<(DatapathId, bool, u64)> = BTreeSet::new();
    let mut refused = None;
    body.each(scratch, |_, wanted| {
        if !wanted.key.is_rule() {
            let is_group = matches!(wanted.what, What::Group { .. });
            own.insert((wanted.switch, is_group, wanted.key.number()));
        }
    });
    body.each(scratch, |_, wanted| {
        if refused.is_none() {
            refused = match wanted.what {
                What::Rule { table_id, priority, matching, instructions, .. } => {
                    let rule = read_match(matching).map_err(|why| why.to_string());
                    rule.and_then(|rule| grant.check_rule(wanted.switch, table_id, priority, &rule))
                        .and_then(|()| refers_to_own(wanted.switch, instructions, &own))
                        .err()
                }
                _ => grant.check_switch(wanted.switch).err(),
            };
        }
    });
    refused.map_or(Ok(()), Err)
}

/// Through a group or meter of another set, an app with bounds would use what that set's owner may do.
fn refers_to_own(
    switch: DatapathId,
    instructions: &[u8],
    own: &BTreeSet<(DatapathId, bool, u64)>,
) -> Result<(), String> {
    let refused = |what: &str, id: u32| {
        Err(format!(
            "flows.write: with regions, a rule may refer only to groups and meters of its own set: {what} {id} is not in the set"
        ))
    };
    for instruction in read_instructions(instructions).map_err(|why| why.to_string())? {
        match &instruction {
            Instruction::Meter(id) if !own.contains(&(switch, false, u64::from(*id))) => {
                return refused("meter", *id);
            }
            Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => {
                for action in actions {
                    match action {
                        Action::Group(id) if !own.contains(&(switch, true, u64::from(*id))) => {
                            return refused("group", *id);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::canonical::{write_instructions, write_match};
    use flow::text::{parse_instructions, parse_match};
    use flows_contract::{Group, Items, Rule};

    fn said(
        regions: &str,
        matching: &str,
        instructions: &str,
        group: Option<u32>,
    ) -> Result<(), (u16, String)> {
        let part = format!(r#"{{"capabilities":{{"flows.write":{regions}}}}}"#);
        let (mut bytes, mut rule, mut done) = (Vec::new(), Vec::new(), Vec::new());
        write_match(&parse_match(matching).unwrap(), &mut rule);
        write_instructions(&parse_instructions(instructions).unwrap(), &mut done).unwrap();
        let mut items = Items::new(&mut bytes);
        let switch = DatapathId(1);
        if let Some(group_id) = group {
            items.group(&Group { switch, group_id, group_type: 0, buckets: &[] });
        }
        let (table_id, stage, priority, idle_timeout_s, hard_timeout_s) = (0, 0, 7, 0, 0);
        items.rule(&Rule {
            switch,
            table_id,
            stage,
            priority,
            idle_timeout_s,
            hard_timeout_s,
            matching: &rule,
            instructions: &done,
        });
        check(&Grant::from_bytes(part.as_bytes()).unwrap(), "s", &bytes, &mut Scratch::default())
    }

    #[test]
    fn an_app_with_bounds_stays_within_them() {
        let refused = |result: Result<(), (u16, String)>, part: &str| {
            let (status, why) = result.unwrap_err();
            assert!(status == status::NOT_GRANTED && why.contains(part), "{why}");
        };
        refused(said(r#"["arp"]"#, "ip", "output:1", None), "match [ip]");
        refused(said(r#"["switch=2"]"#, "arp", "output:1", None), "of:0000000000000001");
        refused(said(r#"["arp"]"#, "arp", "group:5", None), "group 5");
        refused(said(r#"["arp"]"#, "arp", "meter:5,output:1", Some(5)), "meter 5");
        assert_eq!(said(r#"["arp"]"#, "arp", "group:5", Some(5)), Ok(()));
        assert_eq!(said("true", "arp", "group:5", None), Ok(()));
    }

    #[test]
    fn a_damaged_item_is_refused_by_its_place() {
        let (mut bytes, switch) = (Vec::new(), DatapathId(1));
        let (table_id, stage, priority, idle_timeout_s, hard_timeout_s) = (0, 0, 7, 0, 0);
        let instructions = &[0, 4, 0, 9];
        Items::new(&mut bytes).rule(&Rule {
            switch,
            table_id,
            stage,
            priority,
            idle_timeout_s,
            hard_timeout_s,
            matching: &[],
            instructions,
        });
        let grant = Grant::from_bytes(br#"{"capabilities":{"flows.write":true}}"#).unwrap();
        let (status, why) = check(&grant, "s", &bytes, &mut Scratch::default()).unwrap_err();
        assert!(status == status::BAD_QUESTION && why.contains("set \"s\", the item at byte 0"), "{why}");
    }
}
