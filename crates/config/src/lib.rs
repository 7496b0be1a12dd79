//! The configuration of a node: defaults, then `burnet.toml`, then the command line. Each overrides the one before.
//!
//! ```text
//!   burnet.toml ──> ConfigFile ──┐
//!   command line ──> RunArgs ────┼── Config::merge (pure) ──> Config ──> check_files ──> JSON to the kernel process
//!   environment ──> Environment ┘                        └─> ConfigError: one sentence, exit code 2
//! ```
//!
//! It opens no socket, reads no certificate and starts no process.

mod app;
mod applied_slices;
mod arguments;
pub mod binding;
#[cfg(test)]
mod built_in;
mod environment;
mod file;
mod file_check;
mod grant;
mod installed;
mod limits;
mod listen;
mod listening;
mod manifests;
mod network;
mod network_share;
mod order;
mod services;
mod shared_files;
pub mod slices;
mod switch_paces;
mod switches;
pub mod users;
mod withdrawals;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use monitor_channel::{AppRole, AppSource, AppSpec, Regions, ZoneKind};
use package::manifest::{Manifest, Needs};
use package::state::State;
use serde::{Deserialize, Serialize};

pub use app::{AppArgument, AppReference, BuiltInApp, NotAnApp};
pub use applied_slices::{SlicesFrom, applied_file};
pub use arguments::RunArgs;
pub use binding::{Datapaths, TlsBinding};
pub use environment::Environment;
pub use file::{
    AppTable, CONNECTIONS_MAX, ConfigFile, DURATION_MS_MAX, NodeTable, PackagesTable, PythonTable,
    SafeModeTable, SouthboundTable, TlsTable,
};
pub use grant::{AppGrant, GrantedBy};
pub use installed::{Installed, Packages};
pub use limits::{LimitsTable, NodeLimits};
pub use listen::{ListenAddress, first_address};
pub use manifests::files;
pub use network::{NetworkTable, ServiceSettings};
pub use network_share::ServiceShare;
pub use operator::place::shared_folder;
pub use order::AppsTable;
pub use services::check_app_name;
pub use shared_files::shared_folders;
pub use switch_paces::ProfileFiles;
pub use switches::{Pace, Quantile, SwitchKey, SwitchTable, Switches};
pub use withdrawals::{WITHDRAWN_FILE, Withdrawal, WithdrawnParts, read_withdrawn, write_withdrawn};

/// The present time. A clock before 1970 counts as 1970.
fn now() -> package::moment::Moment {
    package::moment::Moment::from_unix_s(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs(),
    )
}

/// The whole configuration of a node. The kernel process gets it as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How switches connect.
    pub southbound: Southbound,
    /// The node itself.
    pub node: Node,
    /// Limits of what switches and apps may use.
    #[serde(default)]
    pub limits: NodeLimits,
    /// Which profile applies to which switch.
    #[serde(default)]
    pub switches: Switches,
    /// What runs in safe mode.
    #[serde(default)]
    pub safe_mode: SafeMode,
    /// The apps, in the order in which they are started.
    pub apps: Vec<AppSpec>,
    /// The services of the network view, if the node runs them. The kernel process does not get it.
    #[serde(skip)]
    pub network: Option<NetworkTable>,
    /// The slices of tenants, in the order of the file. The kernel process does not get them.
    #[serde(skip)]
    pub slices: Vec<slices::Slice>,
    /// The file that the slices are from, if the operator has applied one.
    #[serde(skip)]
    pub applied_slices: Option<PathBuf>,
    /// The packages that apps come from.
    pub packages: Packages,
    /// What runs apps in Python.
    #[serde(default)]
    pub python: Python,
    /// Where each app's capabilities come from. For the operator only: the kernel process does not get it.
    #[serde(skip)]
    pub granted_by: BTreeMap<String, GrantedBy>,
    /// What slices lost and the kernel process deletes for them.
    #[serde(default)]
    pub withdrawals: Vec<Withdrawal>,
    /// What the apps of this node declare as services. For the operator only.
    #[serde(skip)]
    pub declared: Vec<contract::Service>,
}

/// What the binary contains.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its built-in apps, with their manifests.
    pub apps: &'static [BuiltInApp],
    /// Returns which of its services and slices a node with this configuration needs, or the sentence that says why one cannot run.
    pub services: fn(&Config) -> Result<Vec<AppSpec>, String>,
}

/// How switches connect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Southbound {
    /// Where to listen. Never empty.
    pub listen: Vec<ListenAddress>,
    /// Worker threads: 1 to [`monitor_channel::protocol::WORKERS_MAX`].
    pub workers: u16,
    /// The OpenFlow versions that the node offers. Never empty.
    pub versions: Vec<OpenFlowVersion>,
    /// The role that the node requests when a 1.3 switch connects.
    pub role: Role,
    /// The number of the election that gave the role. 0 unless the role is master or slave.
    pub role_generation_id: u64,
    /// After this silence of a switch, in milliseconds, the node sends an echo request. It is shorter than the
    /// timeout.
    pub echo_interval_ms: u64,
    /// After this silence of a switch, in milliseconds, the session is ended.
    pub echo_timeout_ms: u64,
    /// The time limit for each step of the handshake, in milliseconds.
    pub handshake_timeout_ms: u64,
    /// Maximum number of connections. A further one is closed at once.
    pub max_connections: usize,
    /// Maximum number of connections from one IPv4 address, or one IPv6 /64. A further one is closed at once.
    pub max_connections_per_address: usize,
    /// Maximum number of unfinished handshakes from one address. A further connection is closed at once.
    pub max_half_open_per_address: usize,
    /// How many bytes the system keeps of what a switch has sent and the node has not read. 0: the system chooses.
    pub receive_buffer_bytes: usize,
    /// How many bytes of a packet a switch sends in a packet-in, if it keeps the packet. [`WHOLE_PACKETS`]: all of it.
    pub miss_send_len: u16,
    /// The TLS settings, if TLS is configured.
    pub tls: Option<Tls>,
}

/// Packet-ins with whole packets (OFPCML_NO_BUFFER: 1.3.5, 7.3.2).
pub const WHOLE_PACKETS: u16 = 0xffff;

impl Default for Southbound {
    fn default() -> Southbound {
        Southbound {
            listen: ListenAddress::DEFAULTS.to_vec(),
            // One core serves more packet-ins than most networks send. An operator who needs more sets the number.
            workers: 1,
            versions: vec![OpenFlowVersion::V1_0, OpenFlowVersion::V1_3],
            role: Role::NoChange,
            role_generation_id: 0,
            // A switch is lost after three unanswered echo requests.
            echo_interval_ms: 5_000,
            echo_timeout_ms: 15_000,
            handshake_timeout_ms: 10_000,
            max_connections: 4_096,
            max_connections_per_address: 1_024,
            max_half_open_per_address: 256,
            receive_buffer_bytes: 65_536,
            miss_send_len: WHOLE_PACKETS,
            tls: None,
        }
    }
}

/// TLS with switches. It is always mutual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The path of the controller's certificate, PEM.
    pub certificate: PathBuf,
    /// The path of its private key, PEM.
    pub private_key: PathBuf,
    /// The path of the certificates of the switches' authority, PEM.
    pub ca_certificate: PathBuf,
    /// Whether other machines may connect without TLS too.
    pub allow_plain: bool,
    /// Whether connections without TLS are refused even from this machine. Never together with `allow_plain`.
    pub required: bool,
    /// How datapath ids are bound to certificates.
    #[serde(default)]
    pub binding: TlsBinding,
    /// The certificates that may be used for a datapath id. Empty if the table is not used.
    #[serde(default)]
    pub datapaths: Datapaths,
}

/// The node itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The path of the operator's socket. Absolute.
    pub socket: PathBuf,
    /// The log level.
    pub log: LogLevel,
    /// The first of the user ids for apps, if the node runs as root.
    pub app_user_base: u32,
    /// The folder for incidents, the output of apps, and zone numbers. `None` without a state folder.
    #[serde(default)]
    pub records: Option<PathBuf>,
    /// The state folder, if this user has one and the node may use it. It need not exist.
    #[serde(default)]
    pub state: Option<PathBuf>,
    /// Whether the operator named the state folder, or requires what is stored there. If not, the node can run
    /// without it.
    #[serde(default)]
    pub state_is_asked_for: bool,
    /// The folder of the audit log. `None` if the node writes none.
    #[serde(default)]
    pub audit: Option<PathBuf>,
    /// The file that describes the network. If there is one, the node admits slices by it, and chooses their links.
    #[serde(default)]
    pub network_description: Option<PathBuf>,
}

/// The settings of safe mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafeMode {
    /// The apps that run in safe mode, in the order in which they start. Each is an app of this node.
    pub apps: Vec<String>,
    /// Whether the node starts in safe mode.
    pub from_start: bool,
}

/// The interpreter for Python apps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// The path of the interpreter for all Python apps, if the operator sets one.
    pub interpreter: Option<PathBuf>,
}

/// An OpenFlow version that the node can offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum OpenFlowVersion {
    /// Wire version 0x01.
    #[serde(rename = "1.0")]
    #[value(name = "1.0")]
    V1_0,
    /// Wire version 0x04.
    #[serde(rename = "1.3")]
    #[value(name = "1.3")]
    V1_3,
}

/// The role that the node requests from a switch (OpenFlow 1.3.5, 6.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// No request: the switch's default stays.
    #[default]
    NoChange,
    /// Equal: one of several controllers with full access.
    Equal,
    /// Master: the only controller that may change the switch.
    Master,
    /// Slave: read only.
    Slave,
}

/// The log level. Each level includes the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Failures that stay until the operator acts.
    Error,
    /// Failures that the node is correcting.
    Warn,
    /// Normal events: switches and apps that start and stop.
    #[default]
    Info,
    /// Each decision of the node.
    Debug,
    /// Each message.
    Trace,
}

impl LogLevel {
    /// The level's name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

/// A usage or configuration error. It prints as one sentence that names the fault and says what to do. The exit code
/// is 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A file that cannot be read.
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        error: String,
    },
    /// An invalid part of `burnet.toml`.
    InFile {
        /// The path of the file.
        path: PathBuf,
        /// The line, starting with 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Values that contradict each other, or that this machine cannot provide. The text is the whole sentence.
    Contradiction(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Unreadable { path, error } => {
                write!(f, "{} cannot be read ({error}): check the path and its permissions", path.display())
            }
            ConfigError::InFile { path, line, reason } => {
                write!(f, "{}, line {line}: {reason}", path.display())
            }
            ConfigError::Contradiction(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for ConfigError {}

/// The folder of the audit log, within the state folder.
pub const AUDIT_FOLDER: &str = "audit";

fn contradiction<T>(sentence: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Contradiction(sentence.into()))
}

impl Config {
    /// The configuration for `burnet run`: reads the file, if one is named, merges, and checks that the named files
    /// exist.
    ///
    /// # Errors
    /// The first usage or configuration error.
    pub fn load(args: &RunArgs, around: &Environment, built_in: &BuiltIn) -> Result<Config, ConfigError> {
        Config::load_for(None, args.clone(), around, built_in)
    }

    /// The same for a running node that is to start this app. Other apps that may not start any more are left out.
    ///
    /// # Errors
    /// The first usage or configuration error.
    pub fn load_for(
        only: Option<&str>,
        mut args: RunArgs,
        around: &Environment,
        built_in: &BuiltIn,
    ) -> Result<Config, ConfigError> {
        let mut file = args.config.as_deref().map(ConfigFile::read).transpose()?.unwrap_or_default();
        manifests::enter_folders(&mut file, &mut args, around)?;
        let state = state_folder(&file, &args, around);
        let applied_slices = applied_slices::take(&mut file, &args.slices, state.as_deref())?;
        let unsaid = manifests::look(&mut file, &args, around)?;
        let wanted = elsewhere(&file, &args.apps, built_in.apps);
        let audit = audit_folder(&file, &args, around)?;
        let mut packages = Packages { require: file.packages.require, ..Packages::default() };
        let mut found = BTreeMap::new();
        if !wanted.is_empty() {
            let folder = around.state(args.state.as_deref(), file.node.state.as_deref())?;
            let policy = file.packages.require;
            let state = State::at(folder.clone());
            let resolved = installed::resolve(&mut file, &wanted, &state, policy, now(), only)?;
            for name in &resolved.left_out {
                file.leave_out(name);
                args.apps.retain(|app| app.which.name() != *name);
            }
            found = resolved.found;
            packages.state = Some(folder);
        }
        let order = file.order.order.clone();
        let mut config = Config::merge(file, &args, around, built_in.apps)?;
        packages.apps = installed::settle(&mut config.apps, found, only)?;
        for app in &mut config.apps {
            app.packaged = packages.apps.contains_key(&app.name);
        }
        (config.packages, config.node.audit, config.applied_slices) = (packages, audit, applied_slices);
        config.check_files()?;
        if let Some(unsaid) = unsaid.first() {
            return contradiction(unsaid.refusal());
        }
        let services = (built_in.services)(&config).or_else(contradiction)?;
        config.apps.extend(services);
        // Again, with the services: their rules and their addresses count too.
        order::rank(&order, &mut config.apps)?;
        listening::settle(&mut config.apps, &config.node.socket, &config.southbound.listen)?;
        monitor_channel::check_specs(&config.apps)
            .map_err(|error| ConfigError::Contradiction(error.to_string()))?;
        Ok(config)
    }

    /// Merges defaults, file and command line, in this order. `built_in` are the names of the built-in apps.
    ///
    /// A list on the command line replaces the file's list, except for apps: these are added. An app that is in both
    /// keeps the file's settings and limits. The command line decides how it runs.
    ///
    /// # Errors
    /// Values that contradict each other.
    pub fn merge(
        file: ConfigFile,
        args: &RunArgs,
        around: &Environment,
        built_in: &[BuiltInApp],
    ) -> Result<Config, ConfigError> {
        let socket = around.socket(args.socket.as_deref(), file.node.socket.as_deref())?;
        let app_user_base = file.node.app_user_base.unwrap_or(users::BASE);
        let records = match &args.records {
            Some(folder) => Some(around.current_dir.join(folder)),
            // Only if this user has no state folder does the node store nothing. It can run without that.
            None => around.state(args.state.as_deref(), file.node.state.as_deref()).ok(),
        };
        let log = args.log.or(file.node.log).unwrap_or_default();
        let said = args.state.is_some() || file.node.state.is_some();
        let state = state_folder(&file, args, around);
        let state_is_asked_for = said || around.names_state() || file.node.audit == Some(true);
        let network_description = file.node.network_description.clone();
        let node = Node {
            socket,
            log,
            app_user_base,
            records,
            state,
            state_is_asked_for,
            audit: None,
            network_description,
        };
        let southbound = Southbound::merge(&file.southbound, args, &around.current_dir)?;
        let limits = NodeLimits { on_overlap: file.order.on_overlap, ..NodeLimits::of(&file.limits) };
        let order = file.order.order.clone();
        let python = Python { interpreter: file.python.interpreter.clone() };
        let network = file.network.clone().or_else(|| args.network.then(NetworkTable::default));
        let switches = file.switches.clone();
        let slices = file.slices.clone();
        let listed = file.safe_mode.apps.clone();
        let (mut apps, granted_by, declared) = merge_apps(file, &args.apps, &around.current_dir, built_in)?;
        order::rank(&order, &mut apps)?;
        listening::settle(&mut apps, &node.socket, &southbound.listen)?;
        let safe_mode = SafeMode { apps: check_safe_mode(listed, &apps)?, from_start: args.safe_mode };
        let packages = Packages::default();
        Ok(Config {
            southbound,
            node,
            limits,
            switches,
            safe_mode,
            apps,
            network,
            slices,
            applied_slices: None,
            packages,
            python,
            withdrawals: Vec::new(),
            granted_by,
            declared,
        })
    }

    /// Whether the node runs the service with this name.
    pub fn has_service(&self, name: &str) -> bool {
        self.apps.iter().any(|app| app.role == AppRole::Service && app.name == name)
    }
}

impl Southbound {
    fn merge(file: &SouthboundTable, args: &RunArgs, current_dir: &Path) -> Result<Southbound, ConfigError> {
        let default = Southbound::default();
        let listen = if args.listen.is_empty() { file.listen.clone() } else { Some(args.listen.clone()) };
        let merged = Southbound {
            listen: listen.unwrap_or(default.listen),
            workers: args.workers.or(file.workers).unwrap_or(default.workers),
            versions: file.versions.clone().unwrap_or(default.versions),
            role: file.role.unwrap_or(default.role),
            role_generation_id: file.role_generation_id.unwrap_or(default.role_generation_id),
            echo_interval_ms: file.echo_interval_ms.unwrap_or(default.echo_interval_ms),
            echo_timeout_ms: file.echo_timeout_ms.unwrap_or(default.echo_timeout_ms),
            handshake_timeout_ms: file.handshake_timeout_ms.unwrap_or(default.handshake_timeout_ms),
            max_connections: file.max_connections.unwrap_or(default.max_connections),
            max_connections_per_address: file
                .max_connections_per_address
                .unwrap_or(default.max_connections_per_address),
            max_half_open_per_address: file
                .max_half_open_per_address
                .unwrap_or(default.max_half_open_per_address),
            receive_buffer_bytes: file.receive_buffer_bytes.unwrap_or(default.receive_buffer_bytes),
            miss_send_len: file.miss_send_len.unwrap_or(default.miss_send_len),
            tls: Tls::merge(&file.tls, args, current_dir)?,
        };
        let Southbound { echo_interval_ms, echo_timeout_ms, .. } = merged;
        if echo_interval_ms >= echo_timeout_ms {
            return contradiction(format!(
                "southbound.echo_interval_ms ({echo_interval_ms}) must be less than southbound.echo_timeout_ms \
                 ({echo_timeout_ms}): else a switch is given up before it is asked"
            ));
        }
        if file.role_generation_id.is_some() && !matches!(merged.role, Role::Master | Role::Slave) {
            return contradiction(
                "southbound.role_generation_id is set, but the role is neither master nor slave, and only these are \
                 elected: set southbound.role too, or leave it out",
            );
        }
        Ok(merged)
    }
}

impl Tls {
    /// Checks the PEM files: the certificate, its key and the switches' authority.
    pub fn files(&self) -> [&Path; 3] {
        [&self.certificate, &self.private_key, &self.ca_certificate]
    }

    fn merge(file: &TlsTable, args: &RunArgs, current_dir: &Path) -> Result<Option<Tls>, ConfigError> {
        let from = |given: &Option<PathBuf>, written: &Option<PathBuf>| {
            given.as_ref().map(|path| current_dir.join(path)).or_else(|| written.clone())
        };
        let certificate = from(&args.tls_cert, &file.certificate);
        let private_key = from(&args.tls_key, &file.private_key);
        let ca_certificate = from(&args.tls_ca, &file.ca_certificate);
        let required = file.required.unwrap_or(false);
        let allow_plain = args.allow_plain || file.allow_plain.unwrap_or(false);
        if required && allow_plain {
            return contradiction(
                "southbound.tls.required and allow_plain (or --allow-plain) are both true, and one says no to what the \
                 other lets in: leave one of them out",
            );
        }
        let (binding, datapaths) = (file.binding.unwrap_or_default(), file.datapaths.clone());
        if binding == TlsBinding::None && !datapaths.is_empty() {
            return contradiction(
                "southbound.tls.binding is none, which binds no datapath id, but southbound.tls.datapaths binds some: leave \
                 one of them out",
            );
        }
        match (certificate, private_key, ca_certificate) {
            (None, None, None) if required => contradiction(
                "southbound.tls.required is true, but there is no certificate: \
                 set certificate, private_key and ca_certificate too",
            ),
            (None, None, None) => Ok(None),
            (Some(certificate), Some(private_key), Some(ca_certificate)) => Ok(Some(Tls {
                certificate,
                private_key,
                ca_certificate,
                allow_plain,
                required,
                binding,
                datapaths,
            })),
            (None, ..) => contradiction(tls_lacks("--tls-cert", "certificate")),
            (_, None, _) => contradiction(tls_lacks("--tls-key", "private_key")),
            (.., None) => contradiction(tls_lacks("--tls-ca", "ca_certificate")),
        }
    }
}

fn tls_lacks(option: &str, key: &str) -> String {
    format!(
        "TLS needs a certificate, its key and the switches' CA: add {option} FILE, or southbound.tls.{key}"
    )
}

/// The names of apps that have no path and are not built in. They must be installed.
fn elsewhere(file: &ConfigFile, arguments: &[AppArgument], built_in: &[BuiltInApp]) -> Vec<String> {
    let said = arguments.iter().filter_map(|argument| match &argument.which {
        AppReference::Name(name) => Some(name.as_str()),
        AppReference::Path(_) => None,
    });
    let given_a_path = |name: &str| {
        let is_path = |argument: &AppArgument| matches!(argument.which, AppReference::Path(_));
        file.has_path(name) || arguments.iter().any(|one| is_path(one) && one.which.name() == name)
    };
    let mut names: Vec<String> = Vec::new();
    for name in file.without_path().chain(said) {
        if built_in_app(built_in, name).is_none()
            && !given_a_path(name)
            && !names.iter().any(|other| other == name)
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// A misspelt name would be noticed only in an emergency, when the app does not start.
fn check_safe_mode(listed: Vec<String>, apps: &[AppSpec]) -> Result<Vec<String>, ConfigError> {
    for (index, name) in listed.iter().enumerate() {
        if !apps.iter().any(|app| app.name == *name) {
            return contradiction(format!(
                "safe_mode.apps names {name}, which is not an app of this node: write [app.{name}], or leave it out"
            ));
        }
        if listed[..index].contains(name) {
            return contradiction(format!("safe_mode.apps names {name} twice: leave one out"));
        }
    }
    Ok(listed)
}

/// The apps, where the capabilities of each come from, and what those that are services declare.
type MergedApps = (Vec<AppSpec>, BTreeMap<String, GrantedBy>, Vec<contract::Service>);

fn merge_apps(
    file: ConfigFile,
    arguments: &[AppArgument],
    current_dir: &Path,
    built_in: &[BuiltInApp],
) -> Result<MergedApps, ConfigError> {
    let mut apps = file.apps();
    for (index, argument) in arguments.iter().enumerate() {
        let name = argument.which.name();
        if arguments[..index].iter().any(|other| other.which.name() == name) {
            return contradiction(format!(
                "the app {name} is named twice by --app: leave one out, or give it a name and a path in burnet.toml"
            ));
        }
        let place = apps.iter().position(|(other, _)| *other == name).unwrap_or_else(|| {
            apps.push((name, AppTable::default()));
            apps.len() - 1
        });
        let (_, table) = &mut apps[place];
        table.zone = argument.zone.or(table.zone);
        if let AppReference::Path(path) = &argument.which {
            table.path = Some(current_dir.join(path));
        }
    }
    let mut granted_by = BTreeMap::new();
    let mut specs = Vec::new();
    for (name, table) in &mut apps {
        fill_built_in(name, table, built_in)?;
    }
    let declared = manifests::resolve(&mut apps)?;
    for (name, table) in apps {
        let (spec, by) = app_spec(name, table, built_in)?;
        granted_by.insert(spec.name.clone(), by);
        specs.push(spec);
    }
    monitor_channel::check_specs(&specs).map_err(|error| ConfigError::Contradiction(error.to_string()))?;
    Ok((specs, granted_by, declared))
}

fn built_in_app<'b>(built_in: &'b [BuiltInApp], name: &str) -> Option<&'b BuiltInApp> {
    built_in.iter().find(|app| app.name == name)
}

/// Fills the table of a built-in app from its manifest.
fn fill_built_in(name: &str, table: &mut AppTable, built_in: &[BuiltInApp]) -> Result<(), ConfigError> {
    let is_elsewhere = table.path.is_some() || table.packaged.is_some();
    let Some(app) = built_in_app(built_in, name).filter(|_| !is_elsewhere) else { return Ok(()) };
    let manifest = Manifest::parse(app.manifest)
        .or_else(|fault| contradiction(format!("the built-in manifest of {name}, {fault}")))?;
    manifests::fill(table, Needs::from(&manifest), GrantedBy::BuiltIn);
    Ok(())
}

/// The app, and where its capabilities come from.
fn app_spec(
    name: String,
    mut table: AppTable,
    built_in: &[BuiltInApp],
) -> Result<(AppSpec, GrantedBy), ConfigError> {
    services::check_app_name(&name).or_else(|error| contradiction(error.to_string()))?;
    let source = match (table.path.take(), table.packaged.take(), built_in_app(built_in, &name)) {
        (Some(path), ..) => app::source(path),
        (None, Some(packaged), _) => packaged,
        (None, None, Some(_)) => AppSource::BuiltIn(name.clone()),
        (None, None, None) => return contradiction(no_such_app(&name, built_in)),
    };
    listening::check_granted(&name, &table.needs_operator)?;
    let kind = table.zone.unwrap_or(ZoneKind::Process);
    let capabilities = table.capabilities.unwrap_or_default();
    let grant = AppGrant { capabilities, quotas: table.quotas, rank: None };
    let mut limits = table.limits;
    grant.limit_store(&mut limits);
    let spec = AppSpec {
        zone: None,
        name,
        role: AppRole::App,
        duty: None,
        kind,
        source,
        limits,
        sandbox: table.sandbox,
        settings: table.settings,
        grant: grant.to_json(),
        regions: Regions { writes_bytes: 0, reads: grant.capabilities.shared_tables() },
        packaged: false,
        paused: false,
        waits: false,
    };
    Ok((spec, table.granted_by))
}

fn no_such_app(name: &str, built_in: &[BuiltInApp]) -> String {
    let offered: Vec<&str> = built_in.iter().map(|app| app.name).collect();
    let suggestion = package::toml_text::nearest(name, &offered)
        .map_or(String::new(), |near| format!("; did you mean {near}?"));
    format!(
        "there is no built-in app {name} (there are {}), and none of that name is installed{suggestion}: for one of your own \
         give its path, --app ./{name}, or set app.{name}.path, or install it (burnet app install)",
        offered.join(", ")
    )
}

/// The state folder, if the node uses one. A node that a program starts for its own use leaves the operator's state folder alone.
fn state_folder(file: &ConfigFile, args: &RunArgs, around: &Environment) -> Option<PathBuf> {
    let said = args.state.is_some() || file.node.state.is_some();
    (said || args.records.is_none())
        .then(|| around.state(args.state.as_deref(), file.node.state.as_deref()).ok())
        .flatten()
}

/// The folder of the audit log: in the state folder, if the operator named that or the node runs as root. The
/// operator can require or disable the log. Existing files in the folder do not matter, so a second start works like
/// the first.
fn audit_folder(
    file: &ConfigFile,
    args: &RunArgs,
    around: &Environment,
) -> Result<Option<PathBuf>, ConfigError> {
    let state = around.state(args.state.as_deref(), file.node.state.as_deref());
    let said = args.state.is_some() || file.node.state.is_some();
    let is_wanted = around.uid == 0 || around.names_state();
    match (file.node.audit.or_else(|| said.then_some(true)), state) {
        (Some(false), _) => Ok(None),
        (Some(true), state) => Ok(Some(state?.join(AUDIT_FOLDER))),
        // A node that a program starts for its own use is not the operator's.
        (None, _) if args.die_with_parent => Ok(None),
        (None, state) => Ok(state.ok().filter(|_| is_wanted).map(|state| state.join(AUDIT_FOLDER))),
    }
}

#[cfg(test)]
mod tests;
