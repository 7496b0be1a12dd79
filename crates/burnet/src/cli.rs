//! The command line: what may be asked of `burnet`, as types.
//!
//! ```text
//!   arguments ──> Cli::parse ──> BurnetCommand
//!                          └───> help (exit code 0), or what is wrong with them (exit code 2)
//! ```
//!
//! It does nothing of what is asked. Exit codes are the same for all commands: 0 success, 1 failure, 2 usage or
//! configuration error ([`CommandError`]).

pub mod audit;
pub mod backup;
pub mod edge;
pub mod incidents;
pub mod network;
mod node;
pub mod package;
pub mod slice;
pub mod tls;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use flow::DatapathId;

use self::audit::AuditArgs;
use self::backup::{BackupArgs, RestoreArgs};
use self::edge::EdgeArgs;
use self::incidents::{AppLogsArgs, AppQuarantineArgs, IncidentsArgs, SafeModeArgs};
use self::network::{
    AnnotateArgs, ApplyArgs, EventsArgs, ExplainArgs, IntentsArgs, MetricsArgs, ObjectsArgs, PlanArgs,
    RollbackArgs,
};
pub use self::node::NodeArgs;
use self::package::{
    AppBuildArgs, AppInstallArgs, AppRemoveArgs, AppShowArgs, AppSignArgs, AppVerifyArgs, GrantArgs,
    InstalledArgs, KeyArgs, RevokeArgs,
};
use self::slice::SliceArgs;
use self::tls::TlsArgs;
use crate::ofp::OfpArgs;
pub use config::RunArgs;
use config::{AppArgument, ConfigError};

/// Control OpenFlow switches, and run network apps in sandboxes
#[derive(Debug, Parser)]
#[command(name = "burnet", version, disable_help_subcommand = true, after_help = EXAMPLES)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: BurnetCommand,
}

const EXAMPLES: &str = "\
Examples:
  burnet demo                         a network with intents and failing links, and its web page
  burnet run --app learning-switch    control the switches that connect to port 6653 or 6633
  burnet switches                     which switches are connected to the running node
  burnet doctor                       what this machine has and lacks

Exit codes: 0 success, 1 failure, 2 usage or configuration error.";

/// One of the commands.
#[derive(Debug, Subcommand)]
pub enum BurnetCommand {
    /// Run a node: listen for switches, and run apps
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Show Burnet at work on an emulated network; needs no privileges
    Demo(LaboratoryArgs),
    /// Run a network of emulated switches and hosts against any controller; needs no privileges
    Emulate(LaboratoryArgs),
    /// Reload the configuration of the running node; no switch session ends
    #[command(after_help = RELOAD_EXAMPLES)]
    Reload(ReloadArgs),
    /// Explain what an app may do, and which apps are before it in the order
    #[command(after_help = EXPLAIN_EXAMPLES)]
    ExplainGrant(ExplainGrantArgs),
    /// Run attacks of apps and switches against a node, and print which of them it withstood
    Attack(LaboratoryArgs),
    /// Measure a controller: throughput and latency of packet-ins
    Bench(LaboratoryArgs),
    /// Measure a switch as a black box, and write its profile; needs root
    Probe(LaboratoryArgs),
    /// List, show, check, compare, try and tune profiles of switches
    Profile(LaboratoryArgs),
    /// Create, package, sign, install, list and control apps
    App(AppArgs),
    /// Show incidents of this machine's node: what happened, the cause, and the evidence
    #[command(after_help = incidents::EXAMPLES)]
    Incidents(IncidentsArgs),
    /// Show whether the running node is in safe mode, or leave it
    SafeMode(SafeModeArgs),
    /// Create keys, and choose which keys may sign packages
    Key(KeyArgs),
    /// Show the audit log, and check that it is unaltered
    Audit(AuditArgs),
    /// Write a backup of a node into a file; the node may run
    #[command(after_help = backup::BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Replace the state of a stopped node with a backup
    #[command(after_help = backup::RESTORE_EXAMPLES)]
    Restore(RestoreArgs),
    /// Show the switches of the running node
    #[command(after_help = SWITCHES_EXAMPLES)]
    Switches(SwitchesArgs),
    /// Show the flow entries of the switches of the running node
    #[command(after_help = FLOWS_EXAMPLES)]
    Flows(FlowsArgs),
    /// Show the ports of the network view
    #[command(after_help = network::LIST_EXAMPLES)]
    Ports(ObjectsArgs),
    /// Show the links of the network view
    #[command(after_help = network::LIST_EXAMPLES)]
    Links(ObjectsArgs),
    /// Show the hosts of the network view
    #[command(after_help = network::LIST_EXAMPLES)]
    Hosts(ObjectsArgs),
    /// Show the wanted groups of the network view
    #[command(after_help = network::LIST_EXAMPLES)]
    Groups(ObjectsArgs),
    /// Show the wanted meters of the network view
    #[command(after_help = network::LIST_EXAMPLES)]
    Meters(ObjectsArgs),
    /// Show the paths that serve intents
    #[command(after_help = network::LIST_EXAMPLES)]
    Paths(ObjectsArgs),
    /// Show, add and withdraw intents
    #[command(after_help = network::INTENTS_EXAMPLES)]
    Intents(IntentsArgs),
    /// Explain the way of a packet: which rules it meets, who owns them, and where it ends
    #[command(after_help = network::EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Show what a network file would change
    #[command(after_help = network::FILE_EXAMPLES)]
    Plan(PlanArgs),
    /// Make the network as a file says
    #[command(after_help = network::FILE_EXAMPLES)]
    Apply(ApplyArgs),
    /// Return to the version of a network file that was applied before
    #[command(after_help = network::FILE_EXAMPLES)]
    Rollback(RollbackArgs),
    /// Plan, run, list and show slices: a network of its own for each tenant's controller
    Slice(SliceArgs),
    /// Run the agent of a server: meter and shape the VNICs of slices; needs root
    #[command(after_help = edge::EXAMPLES)]
    Edge(EdgeArgs),
    /// Set or remove notes about a switch, a port, a link or a host
    #[command(after_help = network::ANNOTATE_EXAMPLES)]
    Annotate(AnnotateArgs),
    /// Show changes of the network view as they happen
    #[command(after_help = network::EVENTS_EXAMPLES)]
    Events(EventsArgs),
    /// Print the metrics of the network view in the format of Prometheus
    Metrics(MetricsArgs),
    /// Show or remove pins of switch certificates
    #[command(after_help = tls::EXAMPLES)]
    Tls(TlsArgs),
    /// Translate OpenFlow messages between hexadecimal, JSON and text
    Ofp(OfpArgs),
    /// Check whether this machine can run a node
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Print the completion script for a shell
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completion(CompletionArgs),
    /// The kernel process of a node; the monitor starts it
    #[command(hide = true)]
    Kernel(LaunchArgs),
    /// The process of an app; the monitor starts it
    #[command(hide = true)]
    Zone(LaunchArgs),
}

const RUN_EXAMPLES: &str = "\
Examples:
  burnet run --app learning-switch
  burnet run --app learning-switch=trusted --app ./target/release/my-app
  burnet run --config /etc/burnet/burnet.toml --listen 10.0.0.1:6653
  burnet run --app hub --tls-cert node.pem --tls-key node.key --tls-ca switches.pem

Point a switch at it:
  ovs-vsctl set-controller br0 tcp:10.0.0.1:6653

Ctrl-C or SIGTERM stops the node. Command-line options override the file.";

const RELOAD_EXAMPLES: &str = "\
Examples:
  burnet reload
  burnet reload --json | jq -r '.left[]'     the settings that need a restart of the node

SIGHUP to burnet run does the same. The log of the node has the result.";

/// `burnet reload`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ReloadArgs {
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  burnet explain-grant learning-switch
  burnet explain-grant learning-switch --config /etc/burnet/burnet.toml
  burnet explain-grant ./my-app --app firewall

It reads the same files as burnet run with these options, and needs no running node.";

/// `burnet explain-grant`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct ExplainGrantArgs {
    /// The app: by its name, or by the path of its program or of the folder with its app.toml
    #[arg(value_name = "APP")]
    pub app: AppArgument,
    /// Another app of the node (repeat for more)
    #[arg(long = "app", value_name = "NAME[=trusted]")]
    pub others: Vec<AppArgument>,
    /// Read the configuration in this file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The state folder, with keys and installed apps
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// As in burnet run: grant apps that have no manifest the usual capabilities
    #[arg(long)]
    pub grant_all: bool,
}

/// `burnet demo`, `emulate`, `attack`, `bench` and `profile`, which are the laboratory's.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(disable_help_flag = true)]
pub struct LaboratoryArgs {
    /// The arguments of burnet-lab; --help shows them
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// `burnet app`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AppArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: AppCommand,
}

/// What may be asked about apps.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum AppCommand {
    /// Show the apps of the running node: zone, uptime, restarts and their reasons
    #[command(after_help = APP_LIST_EXAMPLES)]
    List(AppListArgs),
    /// Show the resource use and limits of the running apps, live
    #[command(after_help = APP_TOP_EXAMPLES)]
    Top(AppTopArgs),
    /// Create a new app, with a test
    #[command(after_help = APP_NEW_EXAMPLES)]
    New(AppNewArgs),
    /// Restart an app, and reset its failure count
    Restart(AppVerbArgs),
    /// Stop an app until it is started again
    Stop(AppVerbArgs),
    /// Start an app that was stopped or quarantined
    Start(AppVerbArgs),
    /// Stop an app and record the reason; it stays stopped until it is restarted
    Quarantine(AppQuarantineArgs),
    /// Show the output of an app, including earlier runs
    #[command(after_help = incidents::LOGS_EXAMPLES)]
    Logs(AppLogsArgs),
    /// Build a package from a folder with an app.toml
    #[command(after_help = APP_BUILD_EXAMPLES)]
    Build(AppBuildArgs),
    /// Sign a package
    Sign(AppSignArgs),
    /// Check a package, and show its signatures and requests
    Verify(AppVerifyArgs),
    /// Install a package, and grant its requests
    #[command(after_help = APP_BUILD_EXAMPLES)]
    Install(AppInstallArgs),
    /// Remove an installed app
    Remove(AppRemoveArgs),
    /// Show installed apps, their verification, and their grants
    Show(AppShowArgs),
    /// Grant requests of an installed app; a running node applies them immediately
    Grant(GrantArgs),
    /// Revoke grants of an installed app
    Revoke(RevokeArgs),
    /// Allow an installed app to run inside the kernel process
    Trust(InstalledArgs),
    /// Revoke this trust
    Untrust(InstalledArgs),
}

const APP_BUILD_EXAMPLES: &str = "\
Examples:
  burnet app build my-app
  burnet app sign my-app-1.0.0.burnet --key alice
  burnet app install my-app-1.0.0.burnet
  burnet run --app my-app";

const APP_LIST_EXAMPLES: &str = "\
Examples:
  burnet app list
  burnet app list --json | jq -r '.[].status | select(.restarts > 0) | .app'";

/// `burnet app list`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AppListArgs {
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

const APP_TOP_EXAMPLES: &str = "\
Examples:
  burnet app top
  burnet app top --once --sort memory
  burnet app top --json | jq -r '.apps[] | .status.app as $app | .samples[] | [$app, .unix_ms, .memory_bytes] | @csv'";

/// `burnet app top`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct AppTopArgs {
    /// Print once, and exit
    #[arg(long)]
    pub once: bool,
    /// Sort by this; keys change it
    #[arg(long, value_name = "WHAT", default_value = "node")]
    pub sort: TopOrder,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// By what `burnet app top` sorts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TopOrder {
    /// By nothing: as the node lists them.
    #[default]
    Node,
    /// Time of the processors.
    Cpu,
    /// Memory.
    Memory,
    /// Events that they receive.
    Events,
    /// Commands that they give.
    Commands,
    /// Commands that are refused.
    Refused,
}

const APP_NEW_EXAMPLES: &str = "\
Examples:
  burnet app new my-app --sdk ~/burnet/sdk/rust
  cd my-app && cargo test && cargo build --release
  burnet run --app ./target/release/my-app";

/// `burnet app new`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AppNewArgs {
    /// The app's name: lower-case letters, digits and hyphens
    pub name: String,
    /// Create the app's folder in this one [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Where the SDK is: sdk/rust of a Burnet checkout [default: the checkout that holds the current folder]
    #[arg(long, value_name = "PATH")]
    pub sdk: Option<PathBuf>,
}

/// `burnet app restart`, `stop` and `start`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AppVerbArgs {
    /// The app's name, as in burnet app list
    pub name: String,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

const SWITCHES_EXAMPLES: &str = "\
Examples:
  burnet switches
  burnet switches --json | jq -r '.[].datapath'";

/// `burnet switches`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct SwitchesArgs {
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

const FLOWS_EXAMPLES: &str = "\
Examples:
  burnet flows                         of all switches
  burnet flows of:0000000000000001     of one; 1, 0x1 and 00:00:00:00:00:00:00:01 are the same
  burnet flows 1 --json";

/// `burnet flows`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct FlowsArgs {
    /// Only of this switch
    #[arg(value_name = "DATAPATH")]
    pub datapath: Option<DatapathId>,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

const DOCTOR_EXAMPLES: &str = "\
Examples:
  burnet doctor
  burnet doctor --json | jq -r '.findings[] | select(.state != \"ok\") | .advice'

Exit code 1 if no node can run on this machine.";

/// `burnet doctor`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  burnet completion bash > /etc/bash_completion.d/burnet
  burnet completion zsh > ~/.zfunc/_burnet
  burnet completion fish > ~/.config/fish/completions/burnet.fish";

/// `burnet completion`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CompletionArgs {
    /// The shell
    pub shell: Shell,
}

/// `burnet kernel` and `burnet zone`: what the monitor tells a child beyond what comes over its socket.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct LaunchArgs {
    /// JSON, in one argument
    #[arg(value_name = "JSON", default_value = "null", value_parser = json_argument)]
    pub launch: serde_json::Value,
}

fn json_argument(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))
}

/// The error of a command. It prints as one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The command failed: exit code 1.
    DidNotWork(String),
    /// A usage or configuration error, which the operator must fix: exit code 2.
    Usage(String),
}

impl CommandError {
    /// The exit code of a command that ends with it.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            CommandError::DidNotWork(_) => ExitCode::from(1),
            CommandError::Usage(_) => ExitCode::from(2),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::DidNotWork(sentence) | CommandError::Usage(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for CommandError {}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> CommandError {
        CommandError::Usage(error.to_string())
    }
}

/// A result that cannot be printed is no result.
impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> CommandError {
        CommandError::DidNotWork(format!("the output cannot be written: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, error::ErrorKind};

    fn parse(line: &str) -> Result<BurnetCommand, clap::Error> {
        Cli::try_parse_from(line.split_whitespace()).map(|cli| cli.command)
    }

    fn refused(line: &str, expected: &str) {
        let error = parse(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(expected), "{line}: {error}");
    }

    #[test]
    fn what_cannot_be_asked_is_refused_by_name() {
        refused("burnet", "Usage: burnet <COMMAND>");
        refused("burnet rum", "a similar subcommand exists: 'run'");
        refused("burnet run --listen 6653", "'6653' is not an address to listen on");
        refused("burnet run --app hub=safe", "`safe` is not a zone type");
        refused("burnet run --workers 0", "0 is not in 1..=32");
        refused("burnet run --workers 33", "33 is not in 1..=32");
        refused("burnet run --log loud", "[possible values: error, warn, info, debug, trace]");
        refused("burnet run --lisen :1", "a similar argument exists: '--listen'");
        refused("burnet flows of:xyz", "of:xyz");
        refused("burnet app new", "<NAME>");
        refused("burnet completion tcsh", "possible values: bash");
        refused("burnet zone {", "invalid JSON");
    }

    #[test]
    fn help_and_version_are_no_errors() {
        assert_eq!(parse("burnet --help").unwrap_err().exit_code(), 0);
        assert_eq!(parse("burnet --version").unwrap_err().kind(), ErrorKind::DisplayVersion);
    }

    #[test]
    fn every_command_says_what_it_does() {
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
    fn options_that_repeat_keep_their_order() {
        let BurnetCommand::Run(run) =
            parse("burnet run --app hub --listen :1 --app ./x --listen :2").unwrap()
        else {
            panic!("another command")
        };
        let names: Vec<String> = run.apps.iter().map(|app| app.which.name()).collect();
        assert_eq!(names, ["hub", "x"]);
        assert_eq!(run.listen, [":1".parse().unwrap(), ":2".parse().unwrap()]);
    }

    #[test]
    fn what_follows_a_command_of_the_laboratory_is_the_laboratorys() {
        for line in [
            "burnet bench --help",
            "burnet demo -h",
            "burnet emulate -- --topo",
            "burnet attack --no-such x",
            "burnet profile list --json",
            "burnet probe --out my.toml",
        ] {
            let command = parse(line).unwrap();
            assert!(
                matches!(
                    &command,
                    BurnetCommand::Bench(_)
                        | BurnetCommand::Demo(_)
                        | BurnetCommand::Emulate(_)
                        | BurnetCommand::Attack(_)
                        | BurnetCommand::Probe(_)
                        | BurnetCommand::Profile(_)
                ),
                "{line}: {command:?}"
            );
        }
    }

    #[test]
    fn what_the_monitor_says_to_its_children_is_one_argument() {
        let BurnetCommand::Zone(zone) = parse(r#"burnet zone {"app":"hub"}"#).unwrap() else {
            panic!("another command")
        };
        assert_eq!(zone.launch["app"], "hub");
        let BurnetCommand::Kernel(kernel) = parse("burnet kernel").unwrap() else {
            panic!("another command")
        };
        assert!(kernel.launch.is_null());
    }

    #[test]
    fn each_kind_of_failure_has_its_exit_code() {
        let code = |error: CommandError| format!("{:?}", error.exit_code());
        assert_eq!(
            code(ConfigError::Contradiction(String::new()).into()),
            format!("{:?}", ExitCode::from(2))
        );
        assert_eq!(code(CommandError::DidNotWork(String::new())), format!("{:?}", ExitCode::from(1)));
    }
}
