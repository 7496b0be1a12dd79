//! Parses group mods and groups in ovs-ofctl's group syntax.

use flow::PortNo;
use flow::text::{BadText, parse_actions};

use super::rule::only;
use super::words::{Token, fault, first, split};
use openflow::message::*;

const TYPES: [(u8, &str); 5] = [
    (GROUP_TYPE_ALL, "all"),
    (GROUP_TYPE_SELECT, "select"),
    (GROUP_TYPE_INDIRECT, "indirect"),
    (GROUP_TYPE_FAST_FAILOVER, "ff"),
    (GROUP_TYPE_FAST_FAILOVER, "fast_failover"),
];

/// `add group_id=1,type=all,bucket=output:1`; without a command it is an add. A delete without a group id means all
/// groups.
pub(super) fn typed(text: &str) -> Result<GroupMod, BadText> {
    with_command(text, [(0, "add"), (1, "modify"), (2, "delete")], Some(0))
}

/// `ADD group_id=1,type=all,bucket=actions=output:1`
pub(super) fn printed(text: &str) -> Result<GroupMod, BadText> {
    with_command(text, [(0, "ADD"), (1, "MOD"), (2, "DEL")], None)
}

fn with_command(text: &str, commands: [(u16, &str); 3], usual: Option<u16>) -> Result<GroupMod, BadText> {
    const DELETE: u16 = 2;
    let (word, rest) = first(text);
    let (command, rest) = match (commands.iter().find(|(_, name)| *name == word), usual) {
        (Some((command, _)), _) => (*command, rest),
        (None, Some(usual)) => (usual, text),
        (None, None) => {
            return Err(fault(0, word, format!("expected {}", commands.map(|(_, name)| name).join(", "))));
        }
    };
    if command == DELETE && rest.is_empty() {
        return Ok(GroupMod {
            command,
            group_type: GROUP_TYPE_ALL,
            group_id: GROUP_ALL,
            buckets: Vec::new(),
        });
    }
    let GroupDesc { group_type, group_id, buckets } =
        group(rest, command != DELETE).map_err(|bad| bad.shifted(text.len() - rest.len()))?;
    Ok(GroupMod { command, group_type, group_id, buckets })
}

/// `group_id=1,type=all,bucket=…,bucket=…`
pub(super) fn group(text: &str, needs_type: bool) -> Result<GroupDesc, BadText> {
    let starts: Vec<usize> = split(text)
        .filter(|word| word.key == "bucket" && word.value.is_some())
        .map(|word| word.offset)
        .collect();
    let before = &text[..starts.first().copied().unwrap_or(text.len())];
    let (mut group_id, mut group_type) = (None, None);
    for word in split(before) {
        match word.key {
            "group_id" => group_id = Some(word.named(&[(GROUP_ALL, "all")], "a group's number or 'all'")?),
            "type" => group_type = Some(word.named(&TYPES, "all, select, indirect or ff")?),
            _ => return Err(word.unknown("group_id, type, bucket")),
        }
    }
    let group_id = group_id.ok_or_else(|| fault(0, before, "expected group_id=…"))?;
    if needs_type && group_type.is_none() {
        return Err(fault(before.len(), "", "expected type=all, type=select, type=indirect or type=ff"));
    }
    let group_type = group_type.unwrap_or(GROUP_TYPE_ALL);
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let buckets = starts.iter().zip(ends).map(|(start, end)| {
        let at = start + "bucket=".len();
        bucket(&text[at..end], group_type).map_err(|bad| bad.shifted(at))
    });
    Ok(GroupDesc { group_type, group_id, buckets: buckets.collect::<Result<_, _>>()? })
}

/// `weight:1,watch_port:2,actions=output:3`; `actions=` may be left out.
fn bucket(text: &str, group_type: u8) -> Result<Bucket, BadText> {
    let mut bucket = Bucket {
        weight: u16::from(group_type == GROUP_TYPE_SELECT),
        watch_port: PortNo::ANY,
        watch_group: GROUP_ANY,
        actions: Vec::new(),
    };
    let mut actions = Vec::new();
    for word in split(text) {
        match word.key {
            "weight" => bucket.weight = word.number("a weight from 0 to 65535")?,
            "watch_port" => bucket.watch_port = word.port()?,
            "watch_group" => bucket.watch_group = word.named(&[(GROUP_ANY, "any")], "a group's number")?,
            "actions" | "action" => actions.push(behind_key(&word)?),
            _ => actions.push(word),
        }
    }
    if actions.is_empty() {
        return Err(fault(0, text, "expected the bucket's actions; for none write actions=drop"));
    }
    bucket.actions = parse_actions(&only(text, &actions))?;
    Ok(bucket)
}

/// The first action, after `actions=`.
fn behind_key<'a>(word: &Token<'a>) -> Result<Token<'a>, BadText> {
    let whole = word.needed("an action")?;
    Ok(Token { whole, key: whole, value: None, offset: word.offset + word.key.len() + 1 })
}
