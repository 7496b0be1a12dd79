//! The specification and the status of an app.
//!
//! In: the operator's list of apps ([`AppSpec`]). Out: one [`AppStatus`] for each app, which the kernel process shows to the
//! operator. Nothing here decides or acts.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zone::{Limits, NotEnforced, Sandbox};

/// Most apps on one node, services included: as many as the kernel has zone numbers. Their statuses must also fit into one message.
pub const APPS_MAX: usize = 1_023;

/// The maximum length of an app's settings, in bytes of JSON. They must fit into one message.
pub const SETTINGS_BYTES_MAX: usize = 64 << 10;

/// The maximum length of an app's grant, in bytes of JSON. It must fit into one message with the settings.
pub const GRANT_BYTES_MAX: usize = 64 << 10;

/// The maximum length of a reason and of a last line, in bytes. A longer text is cut.
pub const REASON_BYTES_MAX: usize = 160;

/// The maximum length of an app's name in bytes. Every line of its output shows the name.
pub const APP_NAME_BYTES_MAX: usize = 64;

/// Why an app that is paused does not run: the reason of its last end.
pub const PAUSED: &str = "the operator paused it";

/// Why an app that waits does not run: the reason of its last end.
pub const WAITS: &str = "it waits for the network";

/// The maximum length of a note, in bytes. A longer one is cut.
pub const NOTE_BYTES_MAX: usize = 240;

/// The type of an app's zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneKind {
    /// A separate process, in a sandbox.
    Process,
    /// Inside the kernel process, because the operator trusts the app.
    Trusted,
}

impl fmt::Display for ZoneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ZoneKind::Process => "process",
            ZoneKind::Trusted => "trusted",
        })
    }
}

/// The role of an app.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppRole {
    /// An app that the operator configured.
    #[default]
    App,
    /// A service of the node, in its own process zone. It restarts with less delay than an app. It is
    /// never trusted, and the operator cannot stop it.
    Service,
}

/// The task of a service for the monitor. The service's contract defines the messages of its duty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duty {
    /// It keeps audit records: `audit_contract`.
    KeepRecords,
    /// It judges the resource use of zones: `resource_contract`.
    JudgeUsage,
    /// It verifies packages: `security_contract`.
    VerifyPackages,
    /// It reports how many bytes each app has stored: `store_contract`.
    ReportStoredBytes,
    /// It shows the apps to people and programs: `northbound_contract`.
    ShowApps,
}

/// The location of an app's code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AppSource {
    /// Compiled into the node's binary, under this name.
    BuiltIn(String),
    /// A separate program. It runs only in a process zone.
    Executable(PathBuf),
    /// A Python program. It runs only in a process zone.
    Python(PathBuf),
    /// A shared object with the app's C table. It runs in both types of zone.
    SharedObject(PathBuf),
}

/// One app that the node runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppSpec {
    /// The app's name on this node; unique.
    pub name: String,
    /// Its role.
    #[serde(default)]
    pub role: AppRole,
    /// Its duty for the monitor. Only a service has one, and no two services have the same.
    #[serde(default)]
    pub duty: Option<Duty>,
    /// The number of its zone, which rules in switches carry. `None`: the lowest free number.
    #[serde(default)]
    pub zone: Option<u16>,
    /// The configured type of zone.
    pub kind: ZoneKind,
    /// The location of its code.
    pub source: AppSource,
    /// The resource limits of its process zone.
    #[serde(default, with = "zone::limits::handed_on")]
    pub limits: Limits,
    /// The sandbox of its process zone.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The app's settings, `[app.NAME.settings]` of `burnet.toml`: a JSON object that only the app interprets.
    #[serde(default)]
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// The app's grant, for the kernel process. The caller defines the format.
    #[serde(default)]
    pub grant: serde_json::Value,
    /// The shared memory that it writes or reads.
    #[serde(default)]
    pub regions: Regions,
    /// It comes from a package, which is verified (`monitor::PackageChecks`) before each start and while it runs.
    #[serde(default)]
    pub packaged: bool,
    /// The operator has paused it: it does not run until a configuration says otherwise.
    #[serde(default)]
    pub paused: bool,
    /// What it needs of the network is not there yet: it does not run until a configuration says otherwise.
    #[serde(default)]
    pub waits: bool,
}

/// The sizes that shared memory can have, in bytes.
pub use ring::region::{REGION_BYTES_MAX, REGION_BYTES_MIN};

/// The shared memory of a process zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regions {
    /// The size of the region in which a service has its table, in bytes. 0: it has none.
    pub writes_bytes: usize,
    /// The services whose tables the app reads.
    pub reads: Vec<String>,
}

impl Regions {
    /// Whether a process with `other` has nothing that it may not have now, and writes the same.
    pub fn includes(&self, other: &Regions) -> bool {
        self.writes_bytes == other.writes_bytes
            && other.reads.iter().all(|service| self.reads.contains(service))
    }
}

/// The largest number of unenforced parts that one zone reports; a zone has fewer parts.
pub const NOT_ENFORCED_MAX: usize = 6;

/// Longest text of all of them together, in bytes, so that the statuses of all apps fit into one message; what is beyond is cut.
pub const NOT_ENFORCED_BYTES_MAX: usize = 700;

/// The state of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AppState {
    /// Its process is starting, or it waits for the kernel process.
    Starting,
    /// Its process runs, or the kernel process has loaded the trusted app.
    Running,
    /// It is stopping.
    Ending,
    /// It ended, and restarts at this time.
    BackingOff {
        /// Milliseconds since the Unix epoch.
        until_unix_ms: u64,
    },
    /// It ended too often, or the operator quarantined it. It stays stopped until the operator restarts it.
    Quarantined,
    /// The operator stopped it.
    Stopped,
    /// It does not run because the node is in safe mode.
    Held,
    /// The verification of its package failed. It stays stopped until the operator fixes the cause and sends `restart`
    /// or `start`.
    Refused,
}

impl AppState {
    /// Whether the app runs, or will run again without the operator.
    #[must_use]
    pub fn goes_on(self) -> bool {
        matches!(
            self,
            AppState::Starting | AppState::Running | AppState::Ending | AppState::BackingOff { .. }
        )
    }
}

/// The reason and time of an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// The reason as a phrase: `exit code 3`, `killed by SIGSEGV`, `its ring held garbage …`.
    pub reason: String,
    /// The last line of the process's output, if there is one.
    pub last_line: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    pub unix_ms: u64,
}

/// The status of an app, for `burnet app list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppStatus {
    /// The app's name.
    pub app: String,
    /// Its role.
    #[serde(default)]
    pub role: AppRole,
    /// The id of its zone. It is never 0, and constant while the node runs.
    pub zone: u16,
    /// The present type of its zone.
    pub kind: ZoneKind,
    /// The reason why it does not run trusted although this is configured. It stays so while the node runs.
    pub demoted: Option<Ending>,
    /// Its state.
    pub state: AppState,
    /// The time of its last state change, in milliseconds since the Unix epoch.
    pub since_unix_ms: u64,
    /// The number of restarts.
    pub restarts: u64,
    /// The number of its start. Events of an earlier generation are ignored.
    pub generation: u64,
    /// Its process id, if it has a process.
    pub pid: Option<u32>,
    /// Its last end.
    pub last_end: Option<Ending>,
    /// What the operator should know about it now, or change: at most [`NOTE_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The parts of its sandbox and limits that this machine does not enforce, at most [`NOT_ENFORCED_MAX`].
    #[serde(default)]
    pub not_enforced: Vec<NotEnforced>,
    /// The addresses on which it accepts connections. Their sockets stay open while the app continues
    /// ([`AppState::goes_on`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listens: Vec<String>,
}

/// The status of the kernel process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelStatus {
    /// Its process id.
    pub pid: Option<u32>,
    /// The start time of this process, in milliseconds since the Unix epoch.
    pub since_unix_ms: u64,
    /// The number of restarts.
    pub restarts: u64,
    /// The end of the previous kernel process.
    pub last_end: Option<Ending>,
}

/// An operator's request for an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Restart it, and reset its failure count.
    Restart,
    /// Stop it.
    Stop,
    /// Start it if it does not run.
    Start,
    /// Quarantine it: it stays stopped until it is restarted.
    Quarantine,
    /// Stop it, and remove it from this node.
    Remove,
}

impl Verb {
    /// The name of the request in commands.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Restart => "restart",
            Verb::Stop => "stop",
            Verb::Start => "start",
            Verb::Quarantine => "quarantine",
            Verb::Remove => "remove",
        }
    }
}

/// A list of apps that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError(pub String);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

/// Refuses lists that cannot be run or shown. The number of apps is bounded. Names are valid and unique. A separate program cannot run inside the kernel process. A service is built in and runs in a process zone, and
/// only one has each duty.
///
/// # Errors
/// [`PlanError`], one sentence for the operator.
pub fn check_specs(specs: &[AppSpec]) -> Result<(), PlanError> {
    if specs.len() > APPS_MAX {
        let services = specs.iter().filter(|spec| spec.role == AppRole::Service).count();
        let most = APPS_MAX - services;
        return Err(PlanError(format!(
            "{} apps are more than the limit of {most}, beside {services} services",
            specs.len() - services
        )));
    }
    for (index, spec) in specs.iter().enumerate() {
        check_app_name(&spec.name)?;
        check_role(spec)?;
        if specs[..index].iter().any(|other| other.name == spec.name) {
            return Err(PlanError(format!("there are two apps {}; give the second another name", spec.name)));
        }
        if let Some(other) =
            specs[..index].iter().find(|other| other.duty == spec.duty && spec.duty.is_some())
        {
            return Err(PlanError(format!(
                "the services {} and {} have the same duty",
                other.name, spec.name
            )));
        }
        check_zone(spec, &specs[..index])?;
        if spec.kind == ZoneKind::Trusted && matches!(spec.source, AppSource::Executable(_)) {
            let why = "is a separate program and cannot run trusted; build it as a shared object, or leave out =trusted";
            return Err(PlanError(format!("the app {} {why}", spec.name)));
        }
        if spec.kind == ZoneKind::Trusted && matches!(spec.source, AppSource::Python(_)) {
            let why = "is in Python and cannot run trusted; leave out =trusted";
            return Err(PlanError(format!("the app {} {why}", spec.name)));
        }
        check_settings(spec)?;
    }
    Ok(())
}

fn check_zone(spec: &AppSpec, before: &[AppSpec]) -> Result<(), PlanError> {
    let Some(zone) = spec.zone else { return Ok(()) };
    let name = &spec.name;
    if zone == 0 || usize::from(zone) > APPS_MAX {
        return Err(PlanError(format!(
            "the app {name} cannot have the number {zone}: it is 1 to {APPS_MAX}"
        )));
    }
    match before.iter().find(|other| other.zone == Some(zone)) {
        Some(other) => {
            Err(PlanError(format!("the apps {} and {name} have the same number, {zone}", other.name)))
        }
        None => Ok(()),
    }
}

/// Whether a character is invisible and changes how the line is shown: control characters, and the controls for
/// right-to-left text (Unicode 16, "Bidirectional Ordering Controls").
#[must_use]
pub fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text from outside made fit for a terminal and a status: characters that steer a terminal are spelt out, and it is cut after
/// `bytes_max`.
#[must_use]
pub fn legible(text: &str, bytes_max: usize) -> String {
    let mut legible = String::new();
    for character in text.chars() {
        let piece = if steers(character) { character.escape_default().to_string() } else { character.into() };
        if legible.len() + piece.len() > bytes_max {
            break;
        }
        legible.push_str(&piece);
    }
    legible
}

fn check_settings(spec: &AppSpec) -> Result<(), PlanError> {
    let bytes = serde_json::to_vec(&spec.settings).map_or(usize::MAX, |json| json.len());
    if bytes > SETTINGS_BYTES_MAX {
        let name = &spec.name;
        let most = format!("the limit is {SETTINGS_BYTES_MAX}; put the rest into a file of the app");
        return Err(PlanError(format!("the settings of the app {name} have {bytes} bytes; {most}")));
    }
    let bytes = serde_json::to_vec(&spec.grant).map_or(usize::MAX, |json| json.len());
    if bytes > GRANT_BYTES_MAX {
        let name = &spec.name;
        let most = format!("the limit is {GRANT_BYTES_MAX}; use fewer matches and names");
        return Err(PlanError(format!("the capabilities of the app {name} have {bytes} bytes; {most}")));
    }
    Ok(())
}

fn check_role(spec: &AppSpec) -> Result<(), PlanError> {
    let name = &spec.name;
    match spec.role {
        AppRole::App if spec.duty.is_some() => {
            Err(PlanError(format!("the app {name} is no service, and cannot have a duty of one")))
        }
        AppRole::Service if spec.kind == ZoneKind::Trusted => {
            Err(PlanError(format!("the service {name} can run only in a process zone")))
        }
        AppRole::Service if !matches!(spec.source, AppSource::BuiltIn(_)) => {
            Err(PlanError(format!("the service {name} is built in and has no path")))
        }
        _ => Ok(()),
    }
}

/// Refuses a name that cannot be an app's.
///
/// # Errors
/// [`PlanError`], one sentence for the operator.
pub fn check_app_name(name: &str) -> Result<(), PlanError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || name.len() > APP_NAME_BYTES_MAX || !name.bytes().all(plain) {
        let rule = format!("an app's name has 1 to {APP_NAME_BYTES_MAX} letters, digits, '-', '_' or '.'");
        return Err(PlanError(format!("{name:?} cannot be an app's name: {rule}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, kind: ZoneKind, source: AppSource) -> AppSpec {
        AppSpec {
            zone: None,
            name: name.to_owned(),
            role: AppRole::App,
            duty: None,
            kind,
            source,
            limits: Limits::default(),
            sandbox: Sandbox::default(),
            settings: Default::default(),
            grant: Default::default(),
            regions: Default::default(),
            packaged: false,
            paused: false,
            waits: false,
        }
    }

    fn built_in(name: &str) -> AppSpec {
        spec(name, ZoneKind::Process, AppSource::BuiltIn("hub".into()))
    }

    fn check(specs: &[AppSpec], expected: Result<(), &str>) {
        match (check_specs(specs), expected) {
            (Ok(()), Ok(())) => (),
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
            (got, expected) => panic!("{got:?}, but expected {expected:?}"),
        }
    }

    #[test]
    fn a_list_that_cannot_be_run_is_refused_by_name() {
        check(&[built_in("")], Err("\"\" cannot be"));
        check(&[built_in("a b")], Err("\"a b\""));
        check(&[built_in("\u{1b}[31m")], Err("\\u{1b}"));
        check(&[built_in(&"x".repeat(APP_NAME_BYTES_MAX + 1))], Err("1 to 64"));
        check(&[built_in("hub"), built_in("hub")], Err("there are two apps hub"));
        let program = AppSource::Executable("/bin/true".into());
        check(&[spec("x", ZoneKind::Trusted, program)], Err("cannot run trusted"));
        let python = AppSource::Python("/x.py".into());
        check(&[spec("x", ZoneKind::Trusted, python)], Err("is in Python and cannot run trusted"));
        let mut wordy = built_in("wordy");
        wordy.settings.insert("list".into(), "x".repeat(SETTINGS_BYTES_MAX).into());
        check(&[wordy], Err("settings of the app wordy have 65547 bytes"));
        let many: Vec<_> = (0..=APPS_MAX).map(|number| built_in(&number.to_string())).collect();
        check(&many, Err("1024 apps are more than the limit of 1023"));
    }

    #[test]
    fn a_service_is_the_nodes_own_and_runs_in_a_process_zone() {
        let service =
            |name: &str, kind, source| AppSpec { role: AppRole::Service, ..spec(name, kind, source) };
        let within = || AppSource::BuiltIn("audit".into());
        let on_duty = |spec| AppSpec { duty: Some(Duty::KeepRecords), ..spec };
        check(&[on_duty(built_in("hub"))], Err("the app hub is no service"));
        let two = ["audit", "log"].map(|name| on_duty(service(name, ZoneKind::Process, within())));
        check(&two, Err("the services audit and log have the same duty"));
        check(&[service("audit", ZoneKind::Trusted, within())], Err("only in a process zone"));
        let elsewhere = AppSource::Executable("/bin/true".into());
        check(&[service("audit", ZoneKind::Process, elsewhere)], Err("is built in and has no path"));
        check(&[service("audit", ZoneKind::Process, within()), built_in("hub")], Ok(()));
        let mut many: Vec<_> = (0..APPS_MAX).map(|number| built_in(&number.to_string())).collect();
        many.push(service("audit", ZoneKind::Process, within()));
        check(&many, Err("1023 apps are more than the limit of 1022, beside 1 services"));
    }

    #[test]
    fn text_from_outside_cannot_steer_a_terminal_or_fill_a_status() {
        assert_eq!(legible("\u{1b}[2J\u{7}ok", 100), "\\u{1b}[2J\\u{7}ok");
        assert_eq!(
            legible("a\u{202e}b\u{2066}\u{61c}\u{200f}", 100),
            "a\\u{202e}b\\u{2066}\\u{61c}\\u{200f}"
        );
        assert_eq!(legible("äää", 5), "ää");
        assert_eq!(legible("\u{1b}", 3), "");
    }

    #[test]
    fn the_longest_status_of_the_most_apps_fits_into_one_message() {
        let ending = || Ending {
            reason: "\"".repeat(REASON_BYTES_MAX),
            last_line: Some("\\".repeat(REASON_BYTES_MAX)),
            unix_ms: u64::MAX,
        };
        let status = AppStatus {
            app: "x".repeat(APP_NAME_BYTES_MAX),
            role: AppRole::Service,
            zone: u16::MAX,
            kind: ZoneKind::Process,
            demoted: Some(Ending { last_line: None, ..ending() }),
            state: AppState::BackingOff { until_unix_ms: u64::MAX },
            since_unix_ms: u64::MAX,
            restarts: u64::MAX,
            generation: u64::MAX,
            pid: Some(u32::MAX),
            last_end: Some(ending()),
            note: Some("\"".repeat(NOTE_BYTES_MAX)),
            not_enforced: vec![
                NotEnforced::new("", "\"".repeat(NOT_ENFORCED_BYTES_MAX / NOT_ENFORCED_MAX));
                NOT_ENFORCED_MAX
            ],
            listens: vec![format!("unix:/{}", "x".repeat(106)); zone::sandbox::LISTEN_MAX],
        };
        let kernel = KernelStatus {
            pid: Some(u32::MAX),
            since_unix_ms: u64::MAX,
            restarts: u64::MAX,
            last_end: Some(ending()),
        };
        let apps = vec![status; APPS_MAX];
        let safe_mode = Some(Ending { last_line: None, ..ending() });
        let message = crate::protocol::ToKernel::Apps { apps, kernel, safe_mode };
        let bytes = serde_json::to_vec(&message).unwrap().len();
        assert!(bytes <= crate::channel::MESSAGE_BYTES_MAX, "{bytes}");
    }

    #[test]
    fn a_list_of_different_apps_may_run() {
        check(&[], Ok(()));
        check(
            &[built_in("hub"), spec("x", ZoneKind::Trusted, AppSource::SharedObject("/x.so".into()))],
            Ok(()),
        );
    }
}
