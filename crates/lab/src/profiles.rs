//! `burnet profile`: lists, shows, checks and compares profiles of switches.
//!
//! ```text
//!   a name ──> built in ─┐
//!   a file ──> its text ─┴─> profile::Profile ──> text::… (pure) ──> text or JSON
//! ```
//!
//! In: names and files. Out: text or JSON, and an exit code. It changes no file and talks to no switch.

mod text;

use burnet::cli::CommandError;
use clap::{Args, Subcommand};
use operator::visible::visible;
use profile::file::TEXT_BYTES_MAX;
use profile::{Profile, built_in};
use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  burnet profile list
  burnet profile show hp-procurve-j9451a
  burnet profile check my.toml
  burnet profile compare quanta-lb4g quanta-lb4g-software

docs/reference/profile.md describes the file.";

/// `burnet profile`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct ProfileArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: ProfileCommand,
}

/// A subcommand of `burnet profile`.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ProfileCommand {
    /// List the built-in profiles
    List(ListArgs),
    /// Show the values of a profile, and where each is from
    Show(ShowArgs),
    /// Check files; exit code 2 if one has a problem
    Check(CheckArgs),
    /// Show in which values two profiles differ
    Compare(CompareArgs),
}

/// `burnet profile list`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `burnet profile show`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ShowArgs {
    /// The name of a built-in profile, or a file
    #[arg(value_name = "NAME|FILE")]
    pub profile: String,
    /// Print the profile as a file, together with its base
    #[arg(long, conflicts_with = "json")]
    pub toml: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `burnet profile check`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CheckArgs {
    /// Files of profiles
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,
}

/// `burnet profile compare`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CompareArgs {
    /// The name of a built-in profile, or a file
    #[arg(value_name = "A")]
    pub first: String,
    /// Another
    #[arg(value_name = "B")]
    pub second: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A profile that is not there or has a problem: exit code 2.
pub fn profile(args: &ProfileArgs) -> Result<ExitCode, CommandError> {
    let output = match &args.command {
        ProfileCommand::List(args) => {
            let profiles: Vec<Profile> = profile::built_in::names().filter_map(built_in).collect();
            if args.json { text::list_json(&profiles) } else { text::list(&profiles) }
        }
        ProfileCommand::Show(args) => {
            let profile = read(&args.profile)?;
            match (args.toml, args.json) {
                (true, _) => profile.to_toml().map_err(|bad| CommandError::DidNotWork(bad.to_string()))?,
                (_, true) => text::show_json(&profile),
                _ => text::show(&profile),
            }
        }
        ProfileCommand::Check(args) => check(&args.files)?,
        ProfileCommand::Compare(args) => {
            let (first, second) = (read(&args.first)?, read(&args.second)?);
            if args.json { text::compare_json(&first, &second) } else { text::compare(&first, &second) }
        }
    };
    print(&output)?;
    Ok(ExitCode::SUCCESS)
}

/// If the reader has closed the pipe, that is no error.
fn print(output: &str) -> Result<(), CommandError> {
    match std::io::stdout().write_all(visible(output).as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// A line for each good file. The problems of all others are the error.
fn check(files: &[String]) -> Result<String, CommandError> {
    let mut good = String::new();
    let mut problems = Vec::new();
    for file in files {
        match read_file(file).and_then(|text| parse(file, &text)) {
            Ok(profile) => good.push_str(&text::checked(file, &profile)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        return Ok(good);
    }
    print(&good)?;
    Err(CommandError::Usage(problems.join("\n")))
}

/// The profile of this name, or in this file.
///
/// # Errors
/// There is none, or it has a problem.
pub fn read(name: &str) -> Result<Profile, CommandError> {
    if let Some(profile) = built_in(name) {
        return Ok(profile);
    }
    read_file(name).and_then(|text| parse(name, &text)).map_err(CommandError::Usage)
}

fn parse(file: &str, text: &str) -> Result<Profile, String> {
    Profile::parse(file, text).map_err(|bad| bad.to_string())
}

fn read_file(name: &str) -> Result<String, String> {
    let file = File::open(name).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let names: Vec<_> = profile::built_in::names().collect();
            format!("{name} is neither a file nor a built-in profile: {}", names.join(", "))
        }
        _ => format!("{name} cannot be read: {error}"),
    })?;
    let mut text = String::new();
    // One byte more than a profile may have, so that its reader refuses it.
    let limit = u64::try_from(TEXT_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_string(&mut text).map_err(|error| format!("{name} cannot be read: {error}"))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_built_in_profile_and_a_path_is_a_file() {
        assert_eq!(read("null").unwrap(), built_in("null").unwrap());
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles/quanta-lb4g-software.toml");
        assert_eq!(read(file).unwrap(), built_in("quanta-lb4g-software").unwrap());
        let error = read("no-such").unwrap_err();
        assert!(error.to_string().starts_with("no-such is neither a file nor a built-in profile: broadcom"));
        let folder = read(env!("CARGO_MANIFEST_DIR")).unwrap_err();
        assert!(folder.to_string().contains("cannot be read"), "{folder}");
    }

    #[test]
    fn every_problem_of_every_file_is_named() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let error = check(&[file.to_owned(), "no-such.toml".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("schema is missing") && error.contains("no-such.toml is neither"), "{error}");
    }
}
