//! `burnet slice rehearse --packets`: the slices of a file with packets and OpenFlow messages, in virtual time.
//!
//! ```text
//!   slices.toml, network ──> slice_plan::rehearse::cast ──> network, members ──> virtual_node::Stage ──> show: what was seen
//! ```
//!
//! In: parsed options and files. Out: what to print, and the exit code: both are those of a rehearsal without packets. It opens no socket but to ask a
//! node for its network, and its result depends on nothing but its input.

mod members;
mod network;
mod show;
#[cfg(test)]
mod tests;

use crate::printing::print;
use burnet::cli::CommandError;
use burnet::cli::slice::{SliceArgs, SliceCommand, SliceRehearseArgs};
use burnet::commands::{slice, slice_rehearse};
use std::process::ExitCode;

/// Carries out the one command about slices that is the laboratory's.
///
/// # Errors
/// Why it did not work.
pub fn slice(args: &SliceArgs) -> Result<ExitCode, CommandError> {
    match &args.command {
        SliceCommand::Rehearse(args) => rehearse(args),
        _ => Err(CommandError::Usage(
            "of the commands about slices, the laboratory has `rehearse --packets` only: the others are those of burnet"
                .to_owned(),
        )),
    }
}

fn rehearse(args: &SliceRehearseArgs) -> Result<ExitCode, CommandError> {
    let (description, judged) = slice::judged_with_network(&args.plan, false)?;
    let seen = show::rehearse(&description, &judged, args).map_err(CommandError::DidNotWork)?;
    let (text, code) = slice_rehearse::shown_to(args, &seen)?;
    print(&text)?;
    Ok(code)
}
