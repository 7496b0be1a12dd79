//! `burnet.toml`: its keys and values, and the errors for invalid ones.
//!
//! ```text
//!   text ──> ConfigFile, in which a missing key is None
//!        └─> an error with the line, the invalid key or value, and what to write instead
//! ```
//!
//! It applies no defaults (`Config::merge` does) and reads no other file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use monitor_channel::protocol::WORKERS_MAX;
use monitor_channel::{AppSource, ZoneKind};
use package::manifest::amounts::flaw_of_memory;
use package::manifest::{Capabilities, Quotas};
use package::toml_text::{self, Fault};
use package::trust::Require;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value};
use toml::Spanned;
use zone::{Limits, Sandbox};

use super::binding::{Datapaths, TlsBinding};
use super::grant::GrantedBy;
use super::slices::{Slice, WrittenSlices};
use super::{
    AppsTable, ConfigError, LimitsTable, ListenAddress, LogLevel, NetworkTable, OpenFlowVersion, Role,
    Switches, WHOLE_PACKETS, users,
};

/// The longest interval or timeout: an hour, in milliseconds. Probing a switch less often has no use.
pub const DURATION_MS_MAX: u64 = 3_600_000;

/// The highest number of connections that can be configured. A process can have no more descriptors (`fs.nr_open` is
/// 1048576).
pub const CONNECTIONS_MAX: usize = 1 << 20;

/// A whole `burnet.toml`. A key that is not written is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfigFile {
    /// `[southbound]`.
    pub southbound: SouthboundTable,
    /// `[node]`.
    pub node: NodeTable,
    /// `[packages]`.
    pub packages: PackagesTable,
    /// `[python]`.
    pub python: PythonTable,
    /// `[limits]`.
    pub limits: LimitsTable,
    /// `[switch."of:…"]`.
    #[serde(rename = "switch")]
    pub switches: Switches,
    /// `[safe_mode]`.
    pub safe_mode: SafeModeTable,
    /// `[network]`.
    pub network: Option<NetworkTable>,
    /// `[apps]`.
    #[serde(rename = "apps")]
    pub order: AppsTable,
    #[serde(rename = "app")]
    apps: BTreeMap<Spanned<String>, AppTable>,
    #[serde(rename = "slice")]
    written_slices: WrittenSlices,
    /// `[slice.NAME]`, in the order in which they are written.
    #[serde(skip)]
    pub slices: Vec<Slice>,
}

/// `[southbound]`: how switches connect.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SouthboundTable {
    /// Addresses to listen on.
    #[serde(deserialize_with = "one_or_more")]
    pub listen: Option<Vec<ListenAddress>>,
    /// The number of worker threads.
    #[serde(deserialize_with = "workers")]
    pub workers: Option<u16>,
    /// OpenFlow versions to offer.
    #[serde(deserialize_with = "one_or_more")]
    pub versions: Option<Vec<OpenFlowVersion>>,
    /// The role to request from a switch.
    pub role: Option<Role>,
    /// The number of the election that gave the role.
    #[serde(deserialize_with = "generation_id")]
    pub role_generation_id: Option<u64>,
    /// Silence of a switch before an echo request, in milliseconds.
    #[serde(deserialize_with = "duration_ms")]
    pub echo_interval_ms: Option<u64>,
    /// Silence of a switch before its session is ended, in milliseconds.
    #[serde(deserialize_with = "duration_ms")]
    pub echo_timeout_ms: Option<u64>,
    /// Time limit for each step of the handshake, in milliseconds.
    #[serde(deserialize_with = "duration_ms")]
    pub handshake_timeout_ms: Option<u64>,
    /// Maximum number of connections.
    #[serde(deserialize_with = "connections")]
    pub max_connections: Option<usize>,
    /// Maximum number of connections from one address.
    #[serde(deserialize_with = "connections")]
    pub max_connections_per_address: Option<usize>,
    /// Maximum number of unfinished handshakes from one address.
    #[serde(deserialize_with = "connections")]
    pub max_half_open_per_address: Option<usize>,
    /// Bytes that a switch has sent and the node has not read.
    #[serde(deserialize_with = "receive_buffer_bytes")]
    pub receive_buffer_bytes: Option<usize>,
    /// Bytes of a packet that a switch sends in a packet-in, if it keeps the packet.
    #[serde(deserialize_with = "miss_send_len")]
    pub miss_send_len: Option<u16>,
    /// `[southbound.tls]`.
    pub tls: TlsTable,
}

/// `[southbound.tls]`: PEM files, and who may connect without TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsTable {
    /// The path of the controller's certificate.
    pub certificate: Option<PathBuf>,
    /// The path of its private key.
    pub private_key: Option<PathBuf>,
    /// The path of the certificates of the switches' authority.
    pub ca_certificate: Option<PathBuf>,
    /// Whether other machines may connect without TLS too.
    pub allow_plain: Option<bool>,
    /// Whether connections without TLS are refused even from this machine.
    pub required: Option<bool>,
    /// How datapath ids are bound to certificates.
    pub binding: Option<TlsBinding>,
    /// `[southbound.tls.datapaths]`: the certificates that may be used for a datapath id.
    pub datapaths: Datapaths,
}

/// `[node]`: the node itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeTable {
    /// The path of the operator's socket.
    pub socket: Option<PathBuf>,
    /// The log level.
    pub log: Option<LogLevel>,
    /// The first of the user ids for apps, if the node runs as root.
    #[serde(deserialize_with = "user_base")]
    pub app_user_base: Option<u32>,
    /// The state folder.
    pub state: Option<PathBuf>,
    /// Whether to keep an audit log. Default: yes if the node has a state folder.
    pub audit: Option<bool>,
    /// The description of the network by which slices are admitted.
    pub network_description: Option<PathBuf>,
}

/// `[packages]`: which packages may be installed and started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PackagesTable {
    /// Whose signature a package needs.
    pub require: Require,
}

/// `[python]`: the interpreter for Python apps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PythonTable {
    /// The path of the interpreter for all Python apps.
    pub interpreter: Option<PathBuf>,
}

/// `[safe_mode]`: what runs in safe mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SafeModeTable {
    /// The apps that run, in the order in which they start.
    pub apps: Vec<String>,
}

/// `[app.NAME]`: an app to run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AppTable {
    /// The kind of zone.
    pub zone: Option<ZoneKind>,
    /// The path of its program or shared object. A built-in app has none.
    pub path: Option<PathBuf>,
    /// The kind of code, from the app's package. For other apps, the file name tells it.
    #[serde(skip)]
    pub packaged: Option<AppSource>,
    /// `[app.NAME.limits]`.
    #[serde(deserialize_with = "limits")]
    pub limits: Limits,
    /// `[app.NAME.capabilities]`. Without it the app gets what its manifest requests.
    pub capabilities: Option<Capabilities>,
    /// Where the capabilities come from.
    #[serde(skip)]
    pub granted_by: GrantedBy,
    /// What the app declares as a service, from its manifest.
    #[serde(skip)]
    pub service: Option<contract::Service>,
    /// `[app.NAME.quotas]`.
    pub quotas: Quotas,
    /// `[app.NAME.sandbox]`.
    #[serde(deserialize_with = "sandbox")]
    pub sandbox: Sandbox,
    /// Addresses that its manifest requests to listen on, and that only the operator can grant.
    #[serde(skip)]
    pub needs_operator: Vec<contract::ServiceAddress>,
    /// `[app.NAME.settings]`, as the JSON object that the app receives.
    #[serde(deserialize_with = "settings")]
    pub settings: Map<String, Value>,
}

impl ConfigFile {
    /// Reads a file. Relative paths in it start at its folder.
    ///
    /// # Errors
    /// The file cannot be read, or its content is not valid.
    pub fn read(path: &Path) -> Result<ConfigFile, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error: error.to_string() })?;
        let mut file = ConfigFile::parse(&text, path)?;
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if let Some(folder) = absolute.parent() {
            file.resolve(folder);
        }
        Ok(file)
    }

    /// Parses the text of a file. Errors call it by `path`.
    ///
    /// # Errors
    /// The first invalid part, with its line.
    pub fn parse(text: &str, path: &Path) -> Result<ConfigFile, ConfigError> {
        let read =
            toml_text::parse_explained(text, super::slices::explain).and_then(|mut file: ConfigFile| {
                file.slices = file.written_slices.read(text)?;
                Ok(file)
            });
        read.map_err(|Fault { line, reason }| ConfigError::InFile { path: path.to_owned(), line, reason })
    }

    /// The apps in the order in which they are written.
    pub fn apps(self) -> Vec<(String, AppTable)> {
        let mut apps: Vec<_> = self.apps.into_iter().collect();
        apps.sort_by_key(|(name, _)| name.span().start);
        apps.into_iter().map(|(name, table)| (name.into_inner(), table)).collect()
    }

    /// The names of the apps without a path.
    pub(super) fn without_path(&self) -> impl Iterator<Item = &str> {
        self.apps.iter().filter(|(_, table)| table.path.is_none()).map(|(name, _)| name.get_ref().as_str())
    }

    /// The apps that have a path, with the path.
    pub(super) fn paths(&self) -> Vec<(String, PathBuf)> {
        let path = |(name, table): (&Spanned<String>, &AppTable)| {
            Some((name.get_ref().clone(), table.path.clone()?))
        };
        self.apps.iter().filter_map(path).collect()
    }

    /// Whether the file gives a path for this app.
    pub(super) fn has_path(&self, name: &str) -> bool {
        self.apps.get(name).is_some_and(|table| table.path.is_some())
    }

    /// The table of an app. If the file has none, adds one at the end.
    pub(super) fn app_table(&mut self, name: &str) -> &mut AppTable {
        let behind = usize::MAX / 2 + self.apps.len();
        let place = match self.apps.get_key_value(name) {
            Some((there, _)) => there.clone(),
            None => Spanned::new(behind..behind, name.to_owned()),
        };
        self.apps.entry(place).or_default()
    }

    /// Removes this app.
    pub(super) fn leave_out(&mut self, name: &str) {
        self.apps.retain(|other, _| other.get_ref() != name);
        self.safe_mode.apps.retain(|other| other != name);
    }

    fn resolve(&mut self, folder: &Path) {
        let TlsTable { certificate, private_key, ca_certificate, .. } = &mut self.southbound.tls;
        let app_paths = self.apps.values_mut().map(|app| &mut app.path);
        let NodeTable { socket, state, network_description, .. } = &mut self.node;
        let interpreter = &mut self.python.interpreter;
        let of_node = [socket, state, network_description, interpreter];
        let paths = [certificate, private_key, ca_certificate].into_iter().chain(of_node);
        for path in paths.chain(app_paths).flatten() {
            *path = folder.join(&*path);
        }
        self.switches.resolve(folder);
        self.slices.iter_mut().filter_map(|slice| slice.tls.as_mut()).for_each(|tls| tls.resolve(folder));
    }
}

fn one_or_more<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<Option<Vec<T>>, D::Error> {
    let list = Vec::deserialize(input)?;
    if list.is_empty() {
        return Err(D::Error::custom("the list is empty: write at least one, or leave the key out"));
    }
    Ok(Some(list))
}

fn within<'de, D: Deserializer<'de>>(input: D, max: u64, unit: &str) -> Result<u64, D::Error> {
    let number = i128::deserialize(input)?;
    match u64::try_from(number) {
        Ok(number) if (1..=max).contains(&number) => Ok(number),
        _ => Err(D::Error::custom(format!("{number} is out of range: write 1 to {max}{unit}"))),
    }
}

fn workers<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u16>, D::Error> {
    let number = within(input, u64::from(WORKERS_MAX), "")?;
    u16::try_from(number).map(Some).map_err(D::Error::custom)
}

fn duration_ms<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    within(input, DURATION_MS_MAX, " milliseconds").map(Some)
}

fn generation_id<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    let number = i64::deserialize(input)?;
    u64::try_from(number)
        .map(Some)
        .map_err(|_| D::Error::custom(format!("{number} is out of range: write 0 to {}", i64::MAX)))
}

fn connections<'de, D: Deserializer<'de>>(input: D) -> Result<Option<usize>, D::Error> {
    let number = within(input, CONNECTIONS_MAX as u64, "")?;
    usize::try_from(number).map(Some).map_err(D::Error::custom)
}

/// Below the least, a message of OpenFlow arrives in many pieces. Above the most, Linux's default limit would cut it silently.
fn receive_buffer_bytes<'de, D: Deserializer<'de>>(input: D) -> Result<Option<usize>, D::Error> {
    const BYTES: std::ops::RangeInclusive<usize> = 16_384..=212_992;
    let number = i128::deserialize(input)?;
    match usize::try_from(number) {
        Ok(bytes) if bytes == 0 || BYTES.contains(&bytes) => Ok(Some(bytes)),
        _ => Err(D::Error::custom(format!(
            "{number} is out of range: write {} to {} bytes, or 0 to let the system choose",
            BYTES.start(),
            BYTES.end()
        ))),
    }
}

/// The least is OpenFlow's default (OFP_DEFAULT_MISS_SEND_LEN); numbers above OFPCML_MAX are reserved (1.3.5, 7.3.2).
fn miss_send_len<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u16>, D::Error> {
    let number = i128::deserialize(input)?;
    match u16::try_from(number) {
        Ok(bytes) if (128..=0xffe5).contains(&bytes) || bytes == WHOLE_PACKETS => Ok(Some(bytes)),
        _ => Err(D::Error::custom(format!(
            "{number} is out of range: write 128 to 65509 bytes, or 65535 for whole packets"
        ))),
    }
}

fn user_base<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    let number = within(input, users::BASE_MAX.into(), "")?;
    u32::try_from(number).map(Some).map_err(D::Error::custom)
}

fn limits<'de, D: Deserializer<'de>>(input: D) -> Result<Limits, D::Error> {
    let limits = Limits::deserialize(input)?;
    flaw_of_memory(limits.memory_bytes).map_or(Ok(limits), |flaw| Err(D::Error::custom(flaw)))
}

fn sandbox<'de, D: Deserializer<'de>>(input: D) -> Result<Sandbox, D::Error> {
    let sandbox = Sandbox::deserialize(input)?;
    sandbox.flaw().map_or(Ok(sandbox), |flaw| Err(D::Error::custom(flaw)))
}

fn settings<'de, D: Deserializer<'de>>(input: D) -> Result<Map<String, Value>, D::Error> {
    let table = toml::Table::deserialize(input)?;
    toml_text::json_object(table).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, ConfigError> {
        ConfigFile::parse(text, Path::new("burnet.toml"))
    }

    fn refused(text: &str, expected: &str) {
        let error = parse(text).unwrap_err().to_string();
        assert_eq!(error, format!("burnet.toml, {expected}"));
    }

    #[test]
    fn an_unknown_key_is_refused_by_name_with_its_line_and_its_neighbour() {
        refused("[southbond]", "line 1: unknown key `southbond`: did you mean `southbound`?");
        refused("[southbound]\n\nlisten_on = 1", "line 3: unknown key `listen_on`: did you mean `listen`?");
        refused(
            "[southbound.tls]\nkey = 'k'",
            "line 2: unknown key `key`: the keys here are certificate, private_key, ca_certificate, allow_plain, required, binding, datapaths",
        );
        refused("[node]\nlogs = 'info'", "line 2: unknown key `logs`: did you mean `log`?");
        refused("[app.hub]\nzones = 'process'", "line 2: unknown key `zones`: did you mean `zone`?");
        refused(
            "[app.hub.limits]\nmemory = 1",
            "line 2: unknown key `memory`: the keys here are memory_bytes, open_files, processes, file_bytes, core_bytes, cpu_percent, lag_ms, cores",
        );
        refused(
            "[app.hub.limits]\nmemory_bytes = { soft = 2, hard = 1 }",
            "line 2: the soft limit 2 is above the hard limit 1: the warning would come too late",
        );
        refused(
            "[app.hub.limits]\nmemory_bytes = 10",
            "line 1: an app cannot start with 10 bytes of memory: write 4194304 (4 MiB) or more",
        );
        refused("[app.hub.limits]\nprocesses = { soft = 2 }", "line 2: missing field `hard`");
        refused("[app.hub.sandbox]\nspawns = true", "line 2: unknown key `spawns`: did you mean `spawn`?");
        refused(
            "[app.hub.sandbox]\nfs.read = ['data']",
            "line 1: data cannot be granted: write an absolute path without .., other than /",
        );
        refused(
            "[app.hub.limits]\ncores = 'all'",
            "line 2: `all` is no list of cores: write numbers below 1024, as in \"1\", \"0,2\" or \"2-5\"",
        );
        refused("[node]\napp_user_base = 0", "line 2: 0 is out of range: write 1 to 4294901759");
    }

    #[test]
    fn a_bad_value_is_refused_with_its_line() {
        refused(
            "[southbound]\nlisten = [\n  ':6653',\n  'switch'\n]",
            "line 2: 'switch' is not an address to listen on: write ADDRESS:PORT, [IPV6-ADDRESS]:PORT or :PORT, for example 127.0.0.1:6653",
        );
        refused(
            "[southbound]\nlisten = []",
            "line 2: the list is empty: write at least one, or leave the key out",
        );
        let lengths = "is out of range: write 128 to 65509 bytes, or 65535 for whole packets";
        for length in [-1, 0, 127, 65_510, 65_534, 65_536] {
            refused(
                &format!("[southbound]\nmiss_send_len = {length}"),
                &format!("line 2: {length} {lengths}"),
            );
        }
        let sizes = "is out of range: write 16384 to 212992 bytes, or 0 to let the system choose";
        for size in [-1, 1, 16_383, 212_993] {
            refused(
                &format!("[southbound]\nreceive_buffer_bytes = {size}"),
                &format!("line 2: {size} {sizes}"),
            );
        }
        refused("[southbound]\nworkers = 0", "line 2: 0 is out of range: write 1 to 32");
        refused("[southbound]\nworkers = -3", "line 2: -3 is out of range: write 1 to 32");
        refused(
            "[southbound]\necho_timeout_ms = 3600001",
            "line 2: 3600001 is out of range: write 1 to 3600000 milliseconds",
        );
        refused(
            "[southbound]\nrole = 'primary'",
            "line 2: unknown variant `primary`, expected one of `nochange`, `equal`, `master`, `slave`",
        );
        refused(
            "[southbound]\nrole_generation_id = -1",
            "line 2: -1 is out of range: write 0 to 9223372036854775807",
        );
        refused("[southbound]\nversions = ['1.4']", "line 2: unknown variant `1.4`, expected `1.0` or `1.3`");
        refused(
            "[node]\nlog = 'loud'",
            "line 2: unknown variant `loud`, expected one of `error`, `warn`, `info`, `debug`, `trace`",
        );
        refused(
            "[app.hub]\nzone = 'wasm'",
            "line 2: unknown variant `wasm`, expected `process` or `trusted`",
        );
        refused("[app.hub.settings]\nx = [1, nan]", "line 1: NaN cannot be passed to an app: write a number");
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        let twice = parse("[app.hub]\n[app.hub]").unwrap_err().to_string();
        assert!(twice.starts_with("burnet.toml, line 2: duplicate key"), "{twice}");
        let open = parse("[node]\nlog = 'info").unwrap_err().to_string();
        assert!(open.starts_with("burnet.toml, line 2: ") && !open.contains('\n'), "{open}");
    }

    #[test]
    fn apps_keep_the_order_in_which_they_are_written() {
        let file = parse("[app.zebra]\n[app.ant.settings]\na = 1\n[app.mole]").unwrap();
        let names: Vec<String> = file.apps().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["zebra", "ant", "mole"]);
    }

    #[test]
    fn settings_become_json() {
        let file =
            parse("[app.x.settings]\ni = 1\nf = 0.5\nb = true\nd = 2026-11-01\nl = [1]\nt = {s = 'y'}")
                .unwrap();
        let (_, app) = file.apps().remove(0);
        let expected =
            serde_json::json!({"i": 1, "f": 0.5, "b": true, "d": "2026-11-01", "l": [1], "t": {"s": "y"}});
        assert_eq!(Value::Object(app.settings), expected);
    }

    #[test]
    fn paths_are_relative_to_the_folder_of_the_file() {
        let mut file =
            parse("[southbound.tls]\ncertificate = 'c.pem'\nprivate_key = '/k.pem'\n[python]\ninterpreter = 'py'\n[app.x]\npath = 'bin/x'")
                .unwrap();
        file.resolve(Path::new("/etc/burnet"));
        assert_eq!(file.southbound.tls.certificate.as_deref(), Some(Path::new("/etc/burnet/c.pem")));
        assert_eq!(file.southbound.tls.private_key.as_deref(), Some(Path::new("/k.pem")));
        assert_eq!(file.python.interpreter.as_deref(), Some(Path::new("/etc/burnet/py")));
        assert_eq!(file.apps().remove(0).1.path.as_deref(), Some(Path::new("/etc/burnet/bin/x")));
    }

    #[test]
    fn the_empty_file_says_nothing() {
        assert_eq!(parse("").unwrap(), ConfigFile::default());
    }
}
