//! `burnet`: one binary for the node, its processes, and the operator's commands.

use burnet::cli::{AppCommand, Cli, CommandError, Commanded};
use burnet::commands::{app, bench, demo, emulate, flows, run, switches};
use burnet::{completion, doctor, new_app, node, ofp};
use clap::Parser;
use monitor::Verb;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Commanded::Kernel(_) => Ok(node::run()),
        Commanded::Zone(args) => Ok(run::zone(&args)),
        Commanded::Run(args) => run::run(&args),
        Commanded::Demo(args) => demo::demo(&args),
        Commanded::Emulate(args) => emulate::emulate(&args),
        Commanded::Bench(args) => bench::bench(&args),
        Commanded::Switches(args) => switches::switches(&args).and_then(print),
        Commanded::Flows(args) => flows::flows(&args).and_then(print),
        Commanded::Ofp(args) => ofp::run(&args, std::io::stdin().lock(), std::io::stdout().lock())
            .map(|()| ExitCode::SUCCESS)
            .map_err(CommandError::from),
        Commanded::App(args) => match args.command {
            AppCommand::List(args) => app::list(&args).and_then(print),
            AppCommand::Restart(args) => app::ask_for(&args, Verb::Restart).and_then(print),
            AppCommand::Stop(args) => app::ask_for(&args, Verb::Stop).and_then(print),
            AppCommand::Start(args) => app::ask_for(&args, Verb::Start).and_then(print),
            AppCommand::New(args) => new_app::new_app(&args).and_then(print),
        },
        Commanded::Doctor(args) => {
            let (text, code) = doctor::doctor(&args);
            print(text).map(|_| code)
        }
        Commanded::Completion(args) => print(completion::completion(&args)),
    };
    done.unwrap_or_else(|error| {
        eprintln!("burnet: {error}");
        error.exit_code()
    })
}

/// Prints what a command has to say. A reader that has gone away has heard enough.
fn print(text: String) -> Result<ExitCode, CommandError> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
