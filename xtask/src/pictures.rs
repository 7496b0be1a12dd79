//! `cargo xtask pictures`: draws the pictures of the docs from their text sources in `docs/pictures`.
//!
//! ```text
//! NAME.boxes     ──→ boxes::svg()    ──┐
//! NAME.terminal  ──→ terminal::svg() ──┴→ NAME.svg
//! ```
//!
//! In: the text sources. Out: SVG files beside them. The same text gives the same bytes on every machine, and a test
//! compares them. It needs no other program.

mod boxes;
mod terminal;

use crate::tree;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the sources and the pictures are.
const FOLDER: &str = "docs/pictures";

/// `cargo xtask pictures`.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(argument) = arguments.first() {
        return Err(format!("`pictures` takes no arguments, and was given `{argument}`"));
    }
    for (path, svg) in drawn()? {
        fs::write(&path, svg).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Each picture that differs from what its source gives, as one line.
pub fn violations() -> Result<Vec<String>, String> {
    let differs = |(path, svg): &(PathBuf, String)| fs::read_to_string(path).ok().as_ref() != Some(svg);
    let stale = drawn()?.into_iter().filter(differs);
    Ok(stale
        .map(|(path, _)| format!("{}: not what its source gives: run `cargo xtask pictures`", path.display()))
        .collect())
}

/// Every picture with the path of its file.
fn drawn() -> Result<Vec<(PathBuf, String)>, String> {
    let folder = tree::root().join(FOLDER);
    let entries = fs::read_dir(&folder).map_err(|error| format!("cannot list {FOLDER}: {error}"))?;
    let mut sources: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    sources.sort();
    let pictures = sources.iter().filter_map(|source| {
        let draw = match source.extension()?.to_str()? {
            "boxes" => boxes::svg,
            "terminal" => terminal::svg,
            _ => return None,
        };
        Some(picture(source, draw))
    });
    pictures.collect()
}

fn picture(source: &Path, draw: fn(&str) -> Result<String, String>) -> Result<(PathBuf, String), String> {
    let svg = draw(&tree::read_text(source)?).map_err(|error| format!("{}: {error}", source.display()))?;
    Ok((source.with_extension("svg"), svg))
}

/// Text as it may stand in an SVG file.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
