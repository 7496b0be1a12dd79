//! `burnet`: one binary for the node, its processes, and the operator's commands.

use burnet::cli::package::KeyCommand;
use burnet::cli::slice::SliceCommand;
use burnet::cli::{AppCommand, BurnetCommand, Cli, CommandError};
use burnet::commands::network::{self, Collection};
use burnet::commands::{
    app, audit, backup, edge, explain_grant, flows, incidents, key, logs, package, reload, restore, run,
    safe_mode, slice, slice_apply, slice_explain, slice_flows, slice_life, slice_rehearse, slices, switches,
    tls, top,
};
use burnet::{apps, completion, doctor, laboratory, new_app, ofp};
use clap::Parser;
use monitor::Verb;
use operator::visible::{Visible, visible};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        BurnetCommand::Kernel(_) => Ok(node::run(apps::trusted_code)),
        BurnetCommand::Zone(args) => Ok(run::zone(&args)),
        BurnetCommand::Run(args) => run::run(&args),
        BurnetCommand::Reload(args) => reload::reload(&args).and_then(print),
        BurnetCommand::ExplainGrant(args) => explain_grant::explain_grant(&args).and_then(print),
        BurnetCommand::Demo(_)
        | BurnetCommand::Emulate(_)
        | BurnetCommand::Attack(_)
        | BurnetCommand::Bench(_)
        | BurnetCommand::Probe(_)
        | BurnetCommand::Profile(_) => Err(laboratory::replace_this_process()),
        BurnetCommand::Switches(args) => switches::switches(&args).and_then(print),
        BurnetCommand::Flows(args) => flows::flows(&args).and_then(print),
        BurnetCommand::Ports(args) => network::objects(&args, Collection::Ports).and_then(print),
        BurnetCommand::Links(args) => network::objects(&args, Collection::Links).and_then(print),
        BurnetCommand::Hosts(args) => network::objects(&args, Collection::Hosts).and_then(print),
        BurnetCommand::Groups(args) => network::objects(&args, Collection::Groups).and_then(print),
        BurnetCommand::Meters(args) => network::objects(&args, Collection::Meters).and_then(print),
        BurnetCommand::Paths(args) => network::objects(&args, Collection::Paths).and_then(print),
        BurnetCommand::Intents(args) => network::intents(&args).and_then(print),
        BurnetCommand::Explain(args) => network::explain(&args).and_then(print),
        BurnetCommand::Plan(args) => network::plan_file(&args).and_then(print),
        BurnetCommand::Apply(args) => network::apply_file(&args).and_then(print),
        BurnetCommand::Rollback(args) => network::rollback(&args).and_then(print),
        BurnetCommand::Slice(args) => slice_command(args.command),
        BurnetCommand::Edge(args) => edge::edge(&args),
        BurnetCommand::Annotate(args) => network::annotate(&args).and_then(print),
        BurnetCommand::Events(args) => network::events(&args).and_then(print),
        BurnetCommand::Metrics(args) => network::metrics(&args).and_then(print),
        BurnetCommand::Ofp(args) => ofp::run(&args, std::io::stdin().lock(), std::io::stdout().lock())
            .map(|()| ExitCode::SUCCESS)
            .map_err(CommandError::from),
        BurnetCommand::App(args) => app_command(args.command).and_then(print),
        BurnetCommand::Incidents(args) => incidents::incidents(&args).and_then(print),
        BurnetCommand::SafeMode(args) => safe_mode::safe_mode(&args.command).and_then(print),
        BurnetCommand::Tls(args) => tls::tls(&args.command).and_then(print),
        BurnetCommand::Key(args) => match args.command {
            KeyCommand::New(args) => key::new(&args),
            KeyCommand::List(args) => key::list(&args),
            KeyCommand::Trust(args) => key::trust(&args),
            KeyCommand::Distrust(args) => key::distrust(&args),
        }
        .and_then(print),
        BurnetCommand::Audit(args) => audit::audit(&args),
        BurnetCommand::Backup(args) => backup::backup(&args).and_then(print),
        BurnetCommand::Restore(args) => restore::restore(&args).and_then(print),
        BurnetCommand::Doctor(args) => {
            let (text, code) = doctor::doctor(&args, run::try_zone());
            print(text).map(|_| code)
        }
        // The laboratory parses the options of its own commands.
        BurnetCommand::Completion(_) if laboratory::is_installed() => Err(laboratory::replace_this_process()),
        BurnetCommand::Completion(args) => print(completion::completion(&args)),
    };
    done.unwrap_or_else(|error| {
        eprintln!("burnet: {}", visible(&error.to_string()));
        error.exit_code()
    })
}

/// Runs a command about apps. Returns what to print.
fn app_command(command: AppCommand) -> Result<String, CommandError> {
    match command {
        AppCommand::List(args) => app::list(&args),
        AppCommand::Top(args) => top::show(&args),
        AppCommand::Restart(args) => app::ask_for(&args, Verb::Restart),
        AppCommand::Stop(args) => app::ask_for(&args, Verb::Stop),
        AppCommand::Start(args) => app::ask_for(&args, Verb::Start),
        AppCommand::Quarantine(args) => app::quarantine(&args),
        // This command prints its output itself.
        AppCommand::Logs(args) => {
            logs::logs(&args, &mut Visible(std::io::stdout().lock())).map(|()| String::new())
        }
        AppCommand::New(args) => new_app::new_app(&args),
        AppCommand::Build(args) => package::build(&args),
        AppCommand::Sign(args) => package::sign(&args),
        AppCommand::Verify(args) => package::verify(&args),
        AppCommand::Install(args) => package::install(&args),
        AppCommand::Remove(args) => package::remove(&args),
        AppCommand::Show(args) => package::show(&args),
        AppCommand::Grant(args) => package::grant(&args),
        AppCommand::Revoke(args) => package::revoke(&args),
        AppCommand::Trust(args) => package::trust(&args),
        AppCommand::Untrust(args) => package::untrust(&args),
    }
}

/// Runs a command about slices. Prints what it found, and returns whether all is well.
fn slice_command(command: SliceCommand) -> Result<ExitCode, CommandError> {
    let (text, code) = match command {
        SliceCommand::Plan(args) => slice::plan(&args)?,
        SliceCommand::Fit(args) => slice::fit(&args)?,
        SliceCommand::Rehearse(args) if args.packets => return Err(laboratory::replace_this_process()),
        SliceCommand::Rehearse(args) => slice_rehearse::run(&args)?,
        SliceCommand::Run(args) => return slices::run(args),
        SliceCommand::List(args) => (slices::list(&args)?, ExitCode::SUCCESS),
        SliceCommand::Show(args) => (slices::show(&args)?, ExitCode::SUCCESS),
        SliceCommand::Labels(args) => (slice_flows::labels(&args)?, ExitCode::SUCCESS),
        SliceCommand::Flows(args) => (slice_flows::flows(&args)?, ExitCode::SUCCESS),
        SliceCommand::Report(args) => (slice_flows::report(&args)?, ExitCode::SUCCESS),
        SliceCommand::Explain(args) => slice_explain::explain(&args)?,
        SliceCommand::Pause(args) => (slice_life::pause(&args)?, ExitCode::SUCCESS),
        SliceCommand::Resume(args) => (slice_life::resume(&args)?, ExitCode::SUCCESS),
        SliceCommand::Apply(args) => (slice_apply::apply(&args)?, ExitCode::SUCCESS),
        SliceCommand::Remove(args) => (slice_apply::remove(&args)?, ExitCode::SUCCESS),
        SliceCommand::Watch(args) => (slice_life::watch(&args)?, ExitCode::SUCCESS),
    };
    print(text).map(|_| code)
}

/// Prints a command's output. If the reader has closed the pipe, that is no error.
fn print(text: String) -> Result<ExitCode, CommandError> {
    match std::io::stdout().write_all(visible(&text).as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
