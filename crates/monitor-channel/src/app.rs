//! What the monitor knows of an app: what it was told to run, and what it says of it.
//!
//! In: the operator's list of apps ([`AppSpec`]). Out: one [`AppStatus`] an app, which the kernel process shows to
//! the operator. Nothing here decides or acts.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zone::{Limits, NotEnforced, Sandbox};

/// The names of the node's own services. No app may have one of them.
pub const SERVICES: [&str; 4] = ["audit", "resource", "security", "store"];

/// Most apps on one node, services included: as many as the kernel has zone numbers. Their statuses must also fit into one message.
pub const APPS_MAX: usize = 1_023;

/// Longest settings of one app, in bytes of JSON; they must fit into one message with a few other words.
pub const SETTINGS_BYTES_MAX: usize = 64 << 10;

/// Longest grant of one app, in bytes of JSON; it must fit into one message with the settings.
pub const GRANT_BYTES_MAX: usize = 64 << 10;

/// Longest reason, and longest last line, that is kept of an end, in bytes; what is longer is cut.
pub const REASON_BYTES_MAX: usize = 160;

/// Longest name of an app, in bytes; it is shown in every line of the app's output.
pub const APP_NAME_BYTES_MAX: usize = 64;

/// The kind of sandbox around an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneKind {
    /// A process of its own.
    Process,
    /// Inside the kernel's process, at the operator's word.
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

/// What an app is to the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppRole {
    /// One that the operator wants.
    #[default]
    App,
    /// A part of the node itself, in a process zone of its own: one of [`SERVICES`]. It is started again with less delay than an app, is
    /// never trusted, and the operator cannot stop it.
    Service,
}

/// Where an app's code is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AppSource {
    /// Compiled into the node's binary, under this name.
    BuiltIn(String),
    /// A program of its own; runs in a process zone only.
    Executable(PathBuf),
    /// A program in Python, which an interpreter runs; in a process zone only.
    Python(PathBuf),
    /// A shared object with the app's C table; runs in either kind of zone.
    SharedObject(PathBuf),
}

/// One app that the node runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppSpec {
    /// The app's name on this node; unique.
    pub name: String,
    /// What it is to the node.
    #[serde(default)]
    pub role: AppRole,
    /// The number that its zone is to have; `None`: the lowest that is free. A rule in a switch is known as an app's by it.
    #[serde(default)]
    pub zone: Option<u16>,
    /// The kind of zone that the operator asked for.
    pub kind: ZoneKind,
    /// Where its code is.
    pub source: AppSource,
    /// What its process zone may take of the machine.
    #[serde(default, with = "zone::limits::handed_on")]
    pub limits: Limits,
    /// What of the machine its process zone may touch.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The app's own settings, `[app.NAME]` of `burnet.toml`: a JSON object that only the app understands.
    #[serde(default)]
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// What the app was granted, for the kernel process; the form is the caller's.
    #[serde(default)]
    pub grant: serde_json::Value,
    /// It comes from a package, which is verified (`monitor::PackageChecks`) before each start and while it runs.
    #[serde(default)]
    pub packaged: bool,
}

/// Most parts of a zone that are said not to be enforced; there are not as many.
pub const NOT_ENFORCED_MAX: usize = 6;

/// Longest text of all of them together, in bytes, so that the statuses of all apps fit into one message; what is beyond is cut.
pub const NOT_ENFORCED_BYTES_MAX: usize = 700;

/// What an app is doing now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AppState {
    /// Its process is being started, or it waits for a kernel to be loaded into or attached to.
    Starting,
    /// Its process runs; a trusted app has been given to the kernel.
    Running,
    /// It was asked to end and has not yet.
    Ending,
    /// It ended, and is started again at this time.
    BackingOff {
        /// Milliseconds since the Unix epoch.
        until_unix_ms: u64,
    },
    /// It ended too often, or the operator said so; it stays stopped until the operator says `restart`.
    Quarantined,
    /// The operator stopped it.
    Stopped,
    /// The node is in safe mode, in which it does not run.
    Held,
    /// Nobody vouches for its package; it stays stopped until the operator has mended that, and says `restart` or `start`.
    Refused,
}

/// Why and when something ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// The reason as a phrase: `exit code 3`, `killed by SIGSEGV`, `its ring held garbage …`.
    pub reason: String,
    /// The last line that the process printed before, if it printed any; its own words.
    pub last_line: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    pub unix_ms: u64,
}

/// All that the monitor says of an app, for `burnet app list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppStatus {
    /// The app's name.
    pub app: String,
    /// What it is to the node.
    #[serde(default)]
    pub role: AppRole,
    /// Its zone's id: never 0, and the same for the node's life.
    pub zone: u16,
    /// The kind of zone that it runs in now.
    pub kind: ZoneKind,
    /// Why it does not run trusted although the operator asked for that; it stays so for the node's life.
    pub demoted: Option<Ending>,
    /// What it is doing.
    pub state: AppState,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_unix_ms: u64,
    /// How often it was started, less the first time.
    pub restarts: u64,
    /// Counts its starts; events of an older generation are ignored.
    pub generation: u64,
    /// Its process, if it has one.
    pub pid: Option<u32>,
    /// How it ended last.
    pub last_end: Option<Ending>,
    /// What of its sandbox and limits this machine does not enforce; at most [`NOT_ENFORCED_MAX`].
    #[serde(default)]
    pub not_enforced: Vec<NotEnforced>,
}

/// All that the monitor says of the kernel process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelStatus {
    /// Its process id; the receiver's own.
    pub pid: Option<u32>,
    /// Since when this process is the kernel, in milliseconds since the Unix epoch.
    pub since_unix_ms: u64,
    /// How often it was started, less the first time.
    pub restarts: u64,
    /// How the one before ended.
    pub last_end: Option<Ending>,
}

/// What the operator may ask for an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// End it if it runs, forget its failures, start it.
    Restart,
    /// End it; it stays stopped.
    Stop,
    /// Start it if it is not running.
    Start,
    /// End it; it stays stopped, as one that ended too often does.
    Quarantine,
    /// End it, and forget it: it is no app of this node any more.
    Remove,
}

impl Verb {
    /// As the operator types it.
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

/// What the operator wants of the node cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError(pub String);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

/// Refuses what could not be run or shown: too many apps, a name twice, empty, too long or with characters beyond
/// `a-z A-Z 0-9 - _ .`, a program of its own asked to run inside the kernel, an app with the name of a service, and a service that is not
/// the binary's own or not in a process zone.
///
/// # Errors
/// [`PlanError`], one sentence for the operator.
pub fn check_specs(specs: &[AppSpec]) -> Result<(), PlanError> {
    if specs.len() > APPS_MAX {
        let services = specs.iter().filter(|spec| spec.role == AppRole::Service).count();
        let most = APPS_MAX - services;
        return Err(PlanError(format!(
            "{} apps are more than the {most} that one node runs beside {services} services of its own",
            specs.len() - services
        )));
    }
    for (index, spec) in specs.iter().enumerate() {
        check_role(spec)?;
        if specs[..index].iter().any(|other| other.name == spec.name) {
            return Err(PlanError(format!(
                "the app {} is named twice; give the second another name",
                spec.name
            )));
        }
        check_zone(spec, &specs[..index])?;
        if spec.kind == ZoneKind::Trusted && matches!(spec.source, AppSource::Executable(_)) {
            let why = "is a program of its own and cannot run trusted; build it as a shared object, or leave out =trusted";
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
        Some(other) => Err(PlanError(format!("the apps {} and {name} have one number, {zone}", other.name))),
        None => Ok(()),
    }
}

/// Whether a character steers how others are shown and is not to be seen itself: control characters, and those by which text is written from right to left
/// (Unicode 16, "Bidirectional Ordering Controls"), so that a line would read as another than it is.
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
        let most =
            format!("at most {SETTINGS_BYTES_MAX} are passed on; put the rest into a file of the app's");
        return Err(PlanError(format!("the settings of the app {name} take {bytes} bytes; {most}")));
    }
    let bytes = serde_json::to_vec(&spec.grant).map_or(usize::MAX, |json| json.len());
    if bytes > GRANT_BYTES_MAX {
        let name = &spec.name;
        let most = format!("at most {GRANT_BYTES_MAX} are passed on; say it with fewer matches and names");
        return Err(PlanError(format!("the capabilities of the app {name} take {bytes} bytes; {most}")));
    }
    Ok(())
}

/// Refuses a name that no app may have: one that does not fit, or a service's.
///
/// # Errors
/// [`PlanError`], one sentence for the operator.
pub fn check_app_name(name: &str) -> Result<(), PlanError> {
    check_name(name)?;
    if SERVICES.contains(&name) {
        let why = "is the name of a service of the node, and no app may have it; give the app another name";
        return Err(PlanError(format!("{name} {why}")));
    }
    Ok(())
}

fn check_role(spec: &AppSpec) -> Result<(), PlanError> {
    let name = &spec.name;
    let reserved = SERVICES.contains(&name.as_str());
    match spec.role {
        AppRole::App => check_app_name(name),
        AppRole::Service if !reserved => Err(PlanError(format!("{name} is no service of the node"))),
        AppRole::Service if spec.kind == ZoneKind::Trusted => {
            Err(PlanError(format!("the service {name} runs in a process zone only")))
        }
        AppRole::Service if !matches!(spec.source, AppSource::BuiltIn(_)) => {
            Err(PlanError(format!("the service {name} is in the binary and nowhere else")))
        }
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), PlanError> {
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
            kind,
            source,
            limits: Limits::default(),
            sandbox: Sandbox::default(),
            settings: Default::default(),
            grant: Default::default(),
            packaged: false,
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
        check(&[built_in("hub"), built_in("hub")], Err("hub is named twice"));
        let program = AppSource::Executable("/bin/true".into());
        check(&[spec("x", ZoneKind::Trusted, program)], Err("cannot run trusted"));
        let python = AppSource::Python("/x.py".into());
        check(&[spec("x", ZoneKind::Trusted, python)], Err("is in Python and cannot run trusted"));
        let mut wordy = built_in("wordy");
        wordy.settings.insert("list".into(), "x".repeat(SETTINGS_BYTES_MAX).into());
        check(&[wordy], Err("settings of the app wordy take 65547 bytes"));
        let many: Vec<_> = (0..=APPS_MAX).map(|number| built_in(&number.to_string())).collect();
        check(&many, Err("1024 apps are more than the 1023"));
    }

    #[test]
    fn a_service_is_the_nodes_own_and_runs_in_a_process_zone() {
        let service =
            |name: &str, kind, source| AppSpec { role: AppRole::Service, ..spec(name, kind, source) };
        let within = || AppSource::BuiltIn("audit".into());
        check(&[built_in("audit")], Err("audit is the name of a service of the node"));
        check(&[service("hub", ZoneKind::Process, within())], Err("hub is no service"));
        check(&[service("audit", ZoneKind::Trusted, within())], Err("in a process zone only"));
        let elsewhere = AppSource::Executable("/bin/true".into());
        check(&[service("audit", ZoneKind::Process, elsewhere)], Err("in the binary and nowhere else"));
        check(&[service("audit", ZoneKind::Process, within()), built_in("hub")], Ok(()));
        let mut many: Vec<_> = (0..APPS_MAX).map(|number| built_in(&number.to_string())).collect();
        many.push(service("audit", ZoneKind::Process, within()));
        check(&many, Err("1023 apps are more than the 1022 that one node runs beside 1 services"));
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
            not_enforced: vec![
                NotEnforced::new("", "\"".repeat(NOT_ENFORCED_BYTES_MAX / NOT_ENFORCED_MAX));
                NOT_ENFORCED_MAX
            ],
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
