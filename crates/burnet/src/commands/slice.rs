//! `burnet slice plan` and `burnet slice fit`: slices of tenants on a network, before they are applied.
//!
//! ```text
//!   slices.toml ───────────────────────────────────────┐
//!   network.toml, or GET links, ports, paths of a node ─┴─> slice_plan ──> text or JSON, and whether all slices fit
//! ```
//!
//! In: parsed options and files. Out: what to print, and the exit code. It changes nothing in a node.

use super::{json, network, reload};
use crate::cli::CommandError;
use crate::cli::slice::SlicePlanArgs;
use crate::slice_plan::described;
use crate::slice_plan::judge::{Judged, judge};
use crate::slice_plan::shown;
use crate::slice_plan::substrate::{Description, Substrate};
use config::ConfigFile;
use config::slices::Slice;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

/// The longest network description that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// `burnet slice plan`.
pub fn plan(args: &SlicePlanArgs) -> Result<(String, ExitCode), CommandError> {
    let judged = judged(args, false)?;
    let (mut text, code) = answer(args, &judged, shown::plan_text)?;
    if !args.asking.json && args.network.is_none() {
        let lines = reload::foreseen(&args.asking, &args.file);
        lines.iter().for_each(|line| text += &format!("if it is applied: {line}\n"));
    }
    Ok((text, code))
}

/// `burnet slice fit`.
pub fn fit(args: &SlicePlanArgs) -> Result<(String, ExitCode), CommandError> {
    let judged = judged(args, true)?;
    answer(args, &judged, shown::fit_text)
}

fn answer(
    args: &SlicePlanArgs,
    judged: &[Judged],
    text: fn(&[Judged]) -> String,
) -> Result<(String, ExitCode), CommandError> {
    let all_fit = judged.iter().all(|slice| slice.result.is_ok());
    let text = if args.asking.json { json(&shown::value(judged))? } else { text(judged) };
    Ok((text, if all_fit { ExitCode::SUCCESS } else { ExitCode::from(1) }))
}

/// What each slice of the file gets of the network.
///
/// # Errors
/// A file is wrong, or the node cannot be asked.
pub(super) fn judged(args: &SlicePlanArgs, with_fit: bool) -> Result<Vec<Judged>, CommandError> {
    judged_with_network(args, with_fit).map(|(_, judged)| judged)
}

/// The same, and the network.
///
/// # Errors
/// A file is wrong, or the node cannot be asked.
pub fn judged_with_network(
    args: &SlicePlanArgs,
    with_fit: bool,
) -> Result<(Description, Vec<Judged>), CommandError> {
    let slices = slices_in(&args.file)?;
    let description = match &args.network {
        Some(network) => described_in(network)?,
        None => network::description(&args.asking)?,
    };
    let mut substrate = Substrate::new(description.clone()).map_err(CommandError::DidNotWork)?;
    let judged = judge(&mut substrate, &slices, with_fit)
        .map_err(|unknown| CommandError::Usage(format!("{}, {unknown}", args.file.display())))?;
    Ok((description, judged))
}

/// The slices of a file, at least one.
pub(super) fn slices_in(file: &Path) -> Result<Vec<Slice>, CommandError> {
    let slices = ConfigFile::read(file)?.slices;
    if slices.is_empty() {
        let path = file.display();
        let why = format!("{path} has no slices: write a section [slice.NAME], or name another file");
        return Err(CommandError::Usage(why));
    }
    Ok(slices)
}

/// The description of a network in a file.
///
/// # Errors
/// The file cannot be read, or is wrong.
pub fn described_in(file: &Path) -> Result<Description, CommandError> {
    let path = file.display();
    let unreadable = |why: std::io::Error| {
        CommandError::Usage(format!("{path} cannot be read ({why}): check the path and its permissions"))
    };
    let (opened, mut text) = (File::open(file).map_err(unreadable)?, String::new());
    let length = opened.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(CommandError::Usage(format!("{path} has more than the limit of {FILE_BYTES_MAX} bytes")));
    }
    described::read(&text).map_err(|fault| CommandError::Usage(format!("{path}, {fault}")))
}
