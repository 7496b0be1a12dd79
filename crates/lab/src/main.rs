//! `burnet-lab`: the laboratory's commands, and the programs of its apps.

use clap::Parser;
use lab::cli::{self, Cli, LabCommand};
use lab::{apps, attack, bench, demo, emulate, probe, profiles, rehearse};
use operator::visible::visible;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(app) = apps::started_as() {
        return (app.run)();
    }
    let done = match Cli::parse().command {
        LabCommand::Demo(args) => demo::demo(&args),
        LabCommand::Emulate(args) => emulate::emulate(&args),
        LabCommand::Attack(args) => attack::attack(&args),
        LabCommand::Bench(args) => bench::bench(&args),
        LabCommand::Probe(args) => probe::probe(&args),
        LabCommand::Profile(args) => profiles::profile(&args),
        LabCommand::Apps(args) => apps::write(&args),
        LabCommand::Slice(args) => rehearse::slice(&args),
        LabCommand::Completion(args) => {
            print!("{}", cli::completion(&args));
            Ok(ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("burnet: {}", visible(&error.to_string()));
        error.exit_code()
    })
}
