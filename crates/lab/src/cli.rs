//! The command line of the laboratory, as types.
//!
//! In: arguments. Out: the command to carry out, help (exit code 0), or an error in the arguments (exit code 2). It
//! carries out nothing.

use burnet::cli::CompletionArgs;
use burnet::cli::slice::SliceArgs;
use clap::{CommandFactory, Parser, Subcommand};

use crate::apps::AppsArgs;
use crate::attack::AttackArgs;
use crate::bench::args::BenchArgs;
use crate::demo::DemoArgs;
use crate::emulate::EmulateArgs;
use crate::probe::ProbeArgs;
use crate::profiles::ProfileArgs;

/// Try and measure Burnet and other controllers; `burnet bench` and its like start this program
#[derive(Debug, Parser)]
#[command(version, disable_help_subcommand = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// One of the commands.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Show Burnet at work on an emulated network; needs no privileges
    Demo(DemoArgs),
    /// Run a network of emulated switches and hosts against any controller; needs no privileges
    Emulate(Box<EmulateArgs>),
    /// Run attacks of apps and switches against a node, and print which of them it withstood
    Attack(AttackArgs),
    /// Measure a controller: throughput and latency of packet-ins
    Bench(BenchArgs),
    /// Measure a switch as a black box, and write its profile; needs root
    Probe(ProbeArgs),
    /// List, show, check, compare, try and tune profiles of switches
    Profile(ProfileArgs),
    /// Write the laboratory's apps into a folder, to run them on a node with --app FOLDER/NAME
    Apps(AppsArgs),
    /// Rehearse slices with packets: `burnet slice rehearse --packets` starts it
    #[command(hide = true)]
    Slice(Box<SliceArgs>),
    /// Print the completion script for a shell for burnet with the laboratory's commands
    #[command(hide = true)]
    Completion(CompletionArgs),
}

/// The script of `burnet completion`, with the options of the laboratory's commands.
pub fn completion(args: &CompletionArgs) -> String {
    let mut whole = burnet::cli::Cli::command();
    for own in Cli::command().get_subcommands().filter(|own| !own.is_hide_set()) {
        if whole.find_subcommand(own.get_name()).is_some() {
            whole = whole.mut_subcommand(own.get_name(), |_| own.clone());
        }
    }
    burnet::completion::script(args.shell, &whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap_complete::Shell;
    use config::OpenFlowVersion;

    fn parse(line: &str) -> Result<LabCommand, clap::Error> {
        Cli::try_parse_from(line.split_whitespace()).map(|cli| cli.command)
    }

    fn refused(line: &str, expected: &str) {
        let error = parse(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(expected), "{line}: {error}");
    }

    #[test]
    fn wrong_arguments_are_named() {
        refused("burnet-lab", "Usage: burnet-lab <COMMAND>");
        refused("burnet demo --topo square,4", "square");
        refused("burnet demo --version 1.4", "[possible values: 1.0, 1.3]");
        refused("burnet probe --out my.toml", "--port <NUMBER=INTERFACE>");
        refused("burnet probe --port 1=a --out my.toml --measure all", "timeouts");
    }

    #[test]
    fn every_command_and_argument_has_a_help_line() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        let mut command = Cli::command();
        command.build();
        check(&command);
    }

    #[test]
    fn a_shell_completes_the_options_of_both_programs() {
        let script = completion(&CompletionArgs { shell: Shell::Bash });
        for word in ["--spanning-tree", "--listen", "southbound"] {
            assert!(script.contains(word), "{word}");
        }
        assert!(!script.contains("burnet,apps)"));
    }

    #[test]
    fn the_demo_has_the_defaults_of_its_kind() {
        let LabCommand::Demo(demo) = parse("burnet demo --once").unwrap() else { panic!("another command") };
        assert_eq!((demo.topo, demo.rest, demo.apps), (None, None, Vec::new()));
        assert_eq!(demo.version, OpenFlowVersion::V1_3);
        let LabCommand::Demo(demo) = parse("burnet demo --app hub --topo tree,2").unwrap() else {
            panic!("another command")
        };
        assert_eq!(demo.apps, ["hub".parse().unwrap()]);
        refused("burnet demo --rest 8282", "--rest <ADDRESS:PORT>");
    }
}
