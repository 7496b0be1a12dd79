//! The table `[source]`: where the values of a file are from.
//!
//! In: the tables of a file and its bases, and the keys that have values. Out: the origins of the whole profile, or a fault for a
//! value without one. A value that a variant changes needs an origin in the variant: that of the base is about another value.

use super::node::{Kind, Node};
use super::place::Place;
use super::problem::{Fault, Faults};
use super::reader::Leaf;
use crate::provenance::{EVERYTHING, Provenance, Sources};

/// Paths in a table.
const PATHS_MAX: usize = 400;

/// Characters of an origin.
const TEXT_CHARS: usize = 500;

/// Keys that describe the file and no switch.
const WITHOUT_SOURCE: [&str; 3] = ["name", "about", "measurement"];

const EXPECTED: &str = "{ measured = \"2026-11-25\", firmware = \"…\", samples = 200 }, { published = \"…\" }, \
                        { reconstructed = \"…\" } or { assumed = \"…\" }";

/// The sources of one file, with the place of each.
#[derive(Default)]
pub(super) struct FileSources {
    sources: Sources,
    places: Vec<(String, Place)>,
}

impl FileSources {
    pub(super) fn read(table: Option<Node>) -> Result<Self, Fault> {
        let mut read = FileSources::default();
        let Some(table) = table else { return Ok(read) };
        if !matches!(table.kind, Kind::Table(_)) {
            return Err(Fault::new(table.at, "source", format!("is {}; expected a table", table.shown())));
        }
        if table.entries().len() > PATHS_MAX {
            let what = format!("has {} keys; expected at most {PATHS_MAX}", table.entries().len());
            return Err(Fault::new(table.at, "source", what));
        }
        for entry in table.entries() {
            let key = format!("source.{:?}", entry.key);
            let provenance =
                provenance(&entry.value).map_err(|what| Fault::new(entry.value.at, &key, what))?;
            read.sources.set(entry.key.clone(), provenance);
            read.places.push((entry.key.clone(), entry.at));
        }
        Ok(read)
    }
}

fn provenance(node: &Node) -> Result<Provenance, String> {
    let entries = node.entries();
    let text = |key: &str| match node.get(key).map(|value| &value.kind) {
        Some(Kind::Text(text)) if !text.trim().is_empty() && text.chars().count() <= TEXT_CHARS => {
            Ok(text.trim().to_owned())
        }
        Some(_) => Err(format!("has no text of 1 to {TEXT_CHARS} characters at {key}; expected {EXPECTED}")),
        None => Err(format!("has no {key}; expected {EXPECTED}")),
    };
    let kinds = ["measured", "published", "reconstructed", "assumed"];
    let found: Vec<_> = kinds.into_iter().filter(|kind| node.get(kind).is_some()).collect();
    let [kind] = found[..] else {
        let hint = match entries.first().map(|entry| &entry.value.kind) {
            Some(Kind::Table(_)) => "; put a path with dots in quotes",
            _ => "",
        };
        return Err(format!("has {} kinds of source; expected {EXPECTED}{hint}", found.len()));
    };
    let known: &[&str] = if kind == "measured" { &["measured", "firmware", "samples"] } else { &[kind] };
    if let Some(unknown) = entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
        return Err(format!("has the unknown key {:?}; expected {EXPECTED}", unknown.key));
    }
    Ok(match kind {
        "measured" => measured(node, text("measured")?, text("firmware")?)?,
        "published" => Provenance::Published(text(kind)?),
        "reconstructed" => Provenance::Reconstructed(text(kind)?),
        _ => Provenance::Assumed(text(kind)?),
    })
}

fn measured(node: &Node, date: String, firmware: String) -> Result<Provenance, String> {
    let digits = |(index, byte): (usize, u8)| {
        if matches!(index, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() }
    };
    if date.len() != 10 || !date.bytes().enumerate().all(digits) {
        return Err(format!("has the date {date:?}; expected a date such as \"2026-11-25\""));
    }
    let samples = node.get("samples").and_then(Node::integer).and_then(|samples| u32::try_from(samples).ok());
    match samples {
        Some(samples) if samples > 0 => Ok(Provenance::Measured { date, firmware, samples }),
        _ => Err(format!("has no number of samples from 1; expected {EXPECTED}")),
    }
}

/// The origins of a profile from those of its files. `files` has the file itself first and then its bases.
pub(super) fn origins(leaves: &[Leaf], files: &[FileSources], faults: &mut Faults) -> Sources {
    let mut merged = Sources::default();
    for file in files.iter().rev() {
        for (path, provenance) in file.sources.iter() {
            merged.set(path, provenance.clone());
        }
    }
    let mut used: Vec<Vec<&str>> = vec![Vec::new(); files.len()];
    for leaf in leaves.iter().filter(|leaf| needs_source(&leaf.path)) {
        let found = files.get(leaf.at.file).and_then(|file| file.sources.entry_of(&leaf.path));
        let Some((path, provenance)) = found else {
            let what = format!("has no source; expected \"{}\" = {EXPECTED} in [source]", leaf.path);
            faults.push(Fault::new(leaf.at, &leaf.path, what));
            continue;
        };
        used[leaf.at.file].push(path);
        // The variant's path may lead to values of the base, which have their own origin. And a default that is written is a statement
        // of its own: the writer leaves out a default without one.
        if leaf.is_default || merged.of(&leaf.path) != Some(provenance) {
            merged.set(leaf.path.clone(), provenance.clone());
        }
    }
    merged.keep_used_by(leaves.iter().filter(|leaf| needs_source(&leaf.path)).map(|leaf| leaf.path.as_str()));
    for (path, at) in files.first().map_or(&[][..], |file| &file.places) {
        if path != EVERYTHING && !used[0].contains(&path.as_str()) {
            let what = "is the source of no value of this file; expected the path of a value or of a table"
                .to_owned();
            faults.push(Fault::new(*at, &format!("source.{path:?}"), what));
        }
    }
    merged
}

fn needs_source(path: &str) -> bool {
    let first = path.split('.').next().unwrap_or_default();
    !WITHOUT_SOURCE.contains(&first)
}
