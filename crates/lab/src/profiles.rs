//! `burnet profile`: lists, shows, checks, compares, tries and tunes profiles of switches.
//!
//! ```text
//!   a name ──> built in ─┐
//!   a file ──> its text ─┴─> profile::Profile ──> text::… (pure) ──────────────────> text or JSON
//!                                             ├─> trial: a node ⇄ emulated switches ──> a table
//!                                             └─> tune: emulated runs, measured runs ──> a profile
//! ```
//!
//! In: names and files. Out: text or JSON, and an exit code. It talks to no real switch, and writes only the file of `tune --out`.

mod samples;
mod text;
mod trial;
mod tune;

use burnet::cli::CommandError;
use clap::{Args, Subcommand};
use emulator::profiles;
use profile::{Profile, built_in};
use std::path::Path;
use std::process::ExitCode;

use crate::printing::print;
pub use trial::TrialArgs;
pub use tune::TuneArgs;

const EXAMPLES: &str = "\
Examples:
  burnet profile list
  burnet profile show hp-procurve-j9451a
  burnet profile check my.toml
  burnet profile compare quanta-lb4g quanta-lb4g-software
  burnet profile trial --app learning-switch --scenario scenario.toml        some minutes: the scenario with each profile
  burnet profile tune my.toml run1.txt run2.txt --scenario load.toml --out tuned.toml

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
    /// Run an app against switches of every profile: rules refused, packet-ins lost, how long flows take
    Trial(TrialArgs),
    /// Correct the delays of a profile so that an emulation takes as long as the real switch did
    Tune(TuneArgs),
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
        ProfileCommand::Trial(args) => return trial::trial(args),
        ProfileCommand::Tune(args) => return tune::tune(args),
        ProfileCommand::Compare(args) => {
            let (first, second) = (read(&args.first)?, read(&args.second)?);
            if args.json { text::compare_json(&first, &second) } else { text::compare(&first, &second) }
        }
    };
    print(&output)?;
    Ok(ExitCode::SUCCESS)
}

/// A line for each good file. The problems of all others are the error.
fn check(files: &[String]) -> Result<String, CommandError> {
    let mut good = String::new();
    let mut problems = Vec::new();
    for file in files {
        // A file, even if a built-in profile has its name.
        let read = profiles::text_of(Path::new(file))
            .and_then(|text| Profile::parse(file, &text).map_err(|bad| bad.to_string()));
        match read {
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
fn read(name: &str) -> Result<Profile, CommandError> {
    profiles::read(name, Path::new("")).map_err(CommandError::Usage)
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
