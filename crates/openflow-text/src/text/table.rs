//! Prints flow tables: table mods, counters and features.

use std::fmt::{self, Write};

use crate::json::vocabulary::{ACTION_TYPES_1_3, INSTRUCTION_TYPES, Names};
use flow::Field;

use openflow::hex;
use openflow::message::*;
use openflow::version::Version;

pub(super) fn table_mod(out: &mut String, table_mod: &TableMod) -> fmt::Result {
    match table_mod.table_id {
        TABLE_ALL => out.write_str(" table_id: ALL_TABLES"),
        table_id => write!(out, " table_id={table_id}"),
    }
}

/// Tables that equal the previous one are summarised (`tables 2...4: ditto`).
pub(super) fn stats(out: &mut String, version: Version, tables: &[TableStats]) -> fmt::Result {
    let mut before: Option<&TableStats> = None;
    let mut dittos: Option<(u8, u8)> = None;
    for table in tables {
        let same_counters = before.is_some_and(|before| counters(before) == counters(table));
        let same_features = before.is_some_and(|before| features_1_0(before) == features_1_0(table));
        if same_counters && same_features && table.name.is_empty() {
            let first = dittos.map_or(table.table_id, |(first, _)| first);
            dittos = Some((first, table.table_id));
        } else {
            print_dittos(out, dittos.take())?;
            heading(out, table.table_id, &table.name)?;
            if same_counters && same_features {
                out.push_str(" ditto");
            } else {
                stats_of_one(out, version, table, before.filter(|_| same_features), before)?;
            }
        }
        before = Some(table);
    }
    print_dittos(out, dittos)
}

fn counters(table: &TableStats) -> (u32, u64, u64) {
    (table.active_count, table.lookup_count, table.matched_count)
}

/// The features of a table in 1.0.
fn features_1_0(table: &TableStats) -> (u32, String) {
    (table.max_entries, fields_1_0(table.wildcards))
}

fn heading(out: &mut String, table_id: u8, name: &str) -> fmt::Result {
    write!(out, "\n  table {table_id}")?;
    if !name.is_empty() {
        write!(out, " (\"{name}\")")?;
    }
    out.write_char(':')
}

fn print_dittos(out: &mut String, dittos: Option<(u8, u8)>) -> fmt::Result {
    match dittos {
        None => Ok(()),
        Some((first, last)) if first == last => writeln!(out, "\n  table {first}: ditto"),
        Some((first, last)) => writeln!(out, "\n  tables {first}...{last}: ditto"),
    }
}

/// `alike` is the previous table, if it has the same features.
fn stats_of_one(
    out: &mut String,
    version: Version,
    table: &TableStats,
    alike: Option<&TableStats>,
    before: Option<&TableStats>,
) -> fmt::Result {
    write!(out, "\n    active={}, lookup={}, ", table.active_count, table.lookup_count)?;
    writeln!(out, "matched={}", table.matched_count)?;
    if version != Version::V1_0 {
        return Ok(());
    }
    let fields = fields_1_0(table.wildcards);
    if alike.is_some() {
        let nothing_to_say = table.max_entries == 0 && fields.is_empty();
        return out.write_str(if nothing_to_say { "" } else { "    (same features)\n" });
    }
    if table.max_entries != 0 {
        writeln!(out, "    max_entries={}", table.max_entries)?;
    }
    if fields.is_empty() {
        Ok(())
    } else if before.is_some_and(|before| fields_1_0(before.wildcards) == fields) {
        out.write_str("    (same matching)\n")
    } else {
        writeln!(out, "    matching:\n      exact match or wildcard:{fields}")
    }
}

/// The fields that a match may omit, from the bits of 1.0: one name each, or names after a shared prefix.
fn fields_1_0(wildcards: u32) -> String {
    /// The shared prefix, and the rest of each name with its bits.
    const FIELDS: [(&str, &[(u32, &str)]); 6] = [
        ("", &[(1, "in_port")]),
        ("eth_", &[(1 << 2, "src"), (1 << 3, "dst"), (1 << 4, "type")]),
        ("vlan_", &[(1 << 1, "vid"), (1 << 20, "pcp")]),
        // Six bits each: the number of ignored bits of the address.
        ("ip_", &[(0x3f << 8, "src"), (0x3f << 14, "dst")]),
        ("nw_", &[(1 << 5, "proto"), (1 << 21, "tos")]),
        ("tcp_", &[(1 << 6, "src"), (1 << 7, "dst")]),
    ];
    let mut text = String::new();
    for (shared, rests) in FIELDS {
        let there: Vec<&str> =
            rests.iter().filter(|(bits, _)| wildcards & bits != 0).map(|(_, rest)| *rest).collect();
        match there[..] {
            [] => {}
            [one] => text += &format!(" {shared}{one}"),
            _ => text += &format!(" {shared}{{{}}}", there.join(",")),
        }
    }
    text
}

/// Each property on a line. Open vSwitch summarises them and drops unknown ones.
pub(super) fn features(out: &mut String, tables: &[TableFeatures]) -> fmt::Result {
    tables.iter().try_for_each(|table| features_of_one(out, table))
}

fn features_of_one(out: &mut String, table: &TableFeatures) -> fmt::Result {
    heading(out, table.table_id, &table.name)?;
    write!(out, "\n    metadata: match=0x{:x} ", table.metadata_match)?;
    writeln!(out, "write=0x{:x}", table.metadata_write)?;
    if table.config != 0 {
        writeln!(out, "    config=0x{:x}", table.config)?;
    }
    writeln!(out, "    max_entries={}", table.max_entries)?;
    table.properties.iter().try_for_each(|there| property(out, there))
}

fn property(out: &mut String, property: &TableProperty) -> fmt::Result {
    let (kind, words) = match property {
        TableProperty::Instructions { kind, ids } => (*kind, ids.iter().map(instruction).collect()),
        TableProperty::NextTables { kind, tables } => (*kind, tables.iter().map(u8::to_string).collect()),
        TableProperty::Actions { kind, ids } => (*kind, ids.iter().map(action).collect()),
        TableProperty::Oxm { kind, oxm_ids } => (*kind, oxm_ids.iter().map(oxm).collect()),
        TableProperty::Experimenter { kind, experimenter, exp_type, data } => (
            *kind,
            vec![format!("experimenter=0x{experimenter:x} exp_type={exp_type} data={}", hex::to_text(data))],
        ),
        TableProperty::Unknown { kind, data } => (*kind, vec![format!("data={}", hex::to_text(data))]),
    };
    match PROPERTIES.iter().find(|(number, _)| *number == kind) {
        Some((_, name)) => write!(out, "    {name}:")?,
        None => write!(out, "    property {kind}:")?,
    }
    let words: Vec<String> = words;
    words.iter().try_for_each(|word| write!(out, " {word}"))?;
    out.write_char('\n')
}

const PROPERTIES: [(u16, &str); 16] = [
    (0, "instructions"),
    (1, "instructions_miss"),
    (2, "next_tables"),
    (3, "next_tables_miss"),
    (4, "write_actions"),
    (5, "write_actions_miss"),
    (6, "apply_actions"),
    (7, "apply_actions_miss"),
    (8, "match"),
    (10, "wildcards"),
    (12, "write_setfield"),
    (13, "write_setfield_miss"),
    (14, "apply_setfield"),
    (15, "apply_setfield_miss"),
    (0xfffe, "experimenter"),
    (0xffff, "experimenter_miss"),
];

fn instruction(id: &FeatureId) -> String {
    named(id, INSTRUCTION_TYPES)
}

fn action(id: &FeatureId) -> String {
    named(id, ACTION_TYPES_1_3)
}

fn named(id: &FeatureId, names: Names) -> String {
    let is_experimenter = id.kind == 0xffff;
    let name = names.iter().find(|(number, _)| *number == u64::from(id.kind) && !is_experimenter);
    match (id.experimenter, name) {
        (Some(experimenter), _) => format!("experimenter:0x{experimenter:x}"),
        (None, Some((_, name))) => (*name).to_owned(),
        (None, None) => id.kind.to_string(),
    }
}

/// The field's name, followed by `/mask` if the header has the mask bit. An unknown header is printed as a number.
fn oxm(header: &u32) -> String {
    const CLASS_BASIC: u32 = flow::field::CLASS_BASIC as u32;
    let [_, _, field, length] = header.to_be_bytes();
    let has_mask = field & 1 == 1;
    let known = Field::from_number(field >> 1).filter(|known| {
        header >> 16 == CLASS_BASIC && usize::from(length) == known.bytes() * if has_mask { 2 } else { 1 }
    });
    match known {
        Some(known) => format!("{}{}", known.name(), if has_mask { "/mask" } else { "" }),
        None => format!("0x{header:08x}"),
    }
}
