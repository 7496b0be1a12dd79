//! Parses flow mods in ovs-ofctl's flow syntax.

use flow::Match;
use flow::text::{BadText, parse_instructions, parse_match};

use super::super::rule::FLAGS;
use super::words::{Token, fault, first, split, split_actions};
use openflow::message::*;
use openflow::version::Version;

/// The commands in ovs-ofctl's files, and in print.
const COMMANDS: [(u8, &str, &str); 5] = [
    (FLOW_ADD, "add", "ADD"),
    (FLOW_MODIFY, "modify", "MOD"),
    (FLOW_MODIFY_STRICT, "modify_strict", "MOD_STRICT"),
    (FLOW_DELETE, "delete", "DEL"),
    (FLOW_DELETE_STRICT, "delete_strict", "DEL_STRICT"),
];

/// `delete in_port=1`; without a command it is an add. A delete applies to every table unless it names one, and needs
/// no actions.
pub(super) fn typed(text: &str, version: Version) -> Result<FlowMod, BadText> {
    let (word, rest) = first(text);
    let command = COMMANDS.iter().find(|(_, name, _)| *name == word).map(|(command, ..)| *command);
    let (command, rest) = command.map_or((FLOW_ADD, text), |command| (command, rest));
    let is_delete = matches!(command, FLOW_DELETE | FLOW_DELETE_STRICT);
    let table_id = if is_delete { TABLE_ALL } else { 0 };
    let before = text.len() - rest.len();
    let (read, has_actions) =
        read(rest, FlowMod { command, table_id, ..empty() }, version).map_err(|bad| bad.shifted(before))?;
    if !has_actions && !is_delete {
        return Err(fault(text.len(), "", "expected actions=…; for none write actions=drop"));
    }
    Ok(read)
}

/// `ADD table:1 priority=1,in_port=1 cookie:0x5 actions=output:2`
pub(super) fn printed(text: &str, version: Version) -> Result<FlowMod, BadText> {
    let (word, rest) = first(text);
    let command = COMMANDS.iter().find(|(_, _, name)| *name == word);
    let (command, ..) =
        command.ok_or_else(|| fault(0, word, "expected ADD, MOD, MOD_STRICT, DEL or DEL_STRICT"))?;
    // 1.0 names no table. Use the value that its bytes are read as.
    let is_delete = matches!(*command, FLOW_DELETE | FLOW_DELETE_STRICT);
    let table_id = if version == Version::V1_0 && is_delete { TABLE_ALL } else { 0 };
    let before = text.len() - rest.len();
    let (read, _) = read(rest, FlowMod { command: *command, table_id, ..empty() }, version)
        .map_err(|bad| bad.shifted(before))?;
    Ok(read)
}

/// A flow mod with all defaults.
fn empty() -> FlowMod {
    FlowModFields::default().with(Match::any(), Vec::new())
}

/// Reads the words of a rule. Returns also whether there are actions among them.
fn read(text: &str, mut flow_mod: FlowMod, version: Version) -> Result<(FlowMod, bool), BadText> {
    let (before, actions) = split_actions(text);
    let mut matching = Vec::new();
    for word in split(before) {
        if !read_word(&word, &mut flow_mod, version)? {
            matching.push(word);
        }
    }
    flow_mod.matching = parse_match(&only(before, &matching))?;
    if let Some((actions, at)) = actions {
        flow_mod.instructions = parse_instructions(actions).map_err(|bad| bad.shifted(at))?;
    }
    Ok((flow_mod, actions.is_some()))
}

/// `text` with blanks in place of all other words, so that these words keep their offsets.
pub(super) fn only(text: &str, words: &[Token<'_>]) -> String {
    let mut blanked = String::with_capacity(text.len());
    for word in words {
        blanked.extend(std::iter::repeat_n(' ', word.offset - blanked.len()));
        blanked.push_str(word.whole);
    }
    blanked
}

/// Reads a word that is not part of the match. `false` if it may be part of the match.
fn read_word(word: &Token<'_>, flow_mod: &mut FlowMod, version: Version) -> Result<bool, BadText> {
    match word.key {
        "table" => flow_mod.table_id = word.number("a table's number")?,
        "priority" | "pri" => flow_mod.priority = word.number("a priority from 0 to 65535")?,
        "idle_timeout" | "idle" => flow_mod.idle_timeout_s = word.number("seconds from 0 to 65535")?,
        "hard_timeout" | "hard" => flow_mod.hard_timeout_s = word.number("seconds from 0 to 65535")?,
        "out_port" => flow_mod.out_port = word.port()?,
        "out_group" => flow_mod.out_group = word.number("a group's number")?,
        "buffer_id" | "buf" => flow_mod.buffer_id = word.number("a buffer's number")?,
        "cookie" => read_cookie(word, flow_mod, version)?,
        "emerg" if version == Version::V1_0 => flow_mod.flags |= FLOW_MOD_RESET_COUNTS,
        // ovs-ofctl prints these for an entry and ignores them when it reads, and so does this.
        "duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age" => {}
        key => match FLAGS.iter().find(|(_, name)| *name == key) {
            Some((flag, _)) => flow_mod.flags |= flag,
            None => return Ok(false),
        },
    }
    Ok(true)
}

/// A new cookie, or with a mask the cookie by which rules are selected.
fn read_cookie(word: &Token<'_>, flow_mod: &mut FlowMod, version: Version) -> Result<(), BadText> {
    let value = word.needed("a cookie")?;
    let sets_it = version == Version::V1_0 || flow_mod.command == FLOW_ADD;
    let read = |text: &str| {
        super::words::number(text)
            .ok_or_else(|| word.fault(format!("'{text}' is no cookie: expected a number of 64 bits")))
    };
    match value.split_once('/') {
        None if sets_it => flow_mod.cookie = read(value)?,
        None => return Err(word.fault(
            "only an add sets a cookie; to restrict this to one write cookie=VALUE/MASK (-1 for all bits)",
        )),
        Some(_) if sets_it => {
            return Err(
                word.fault("a cookie with a mask restricts a modify or delete of 1.3; an add takes none")
            );
        }
        Some((cookie, mask)) => {
            flow_mod.cookie = read(cookie)?;
            flow_mod.cookie_mask = if mask == "-1" { u64::MAX } else { read(mask)? };
        }
    }
    Ok(())
}
