//! The services that are compiled into the binary: parts of the node, each an app in a process zone of its own.
//!
//! ```text
//!   Config ──> wanted() ──> AppSpec with the role of a service ──> monitor ──> run() in the service's process
//! ```
//!
//! In: what the node was configured with. Out: which services it needs, and how each of them is confined. It starts none.

use crate::port_speeds;
use crate::slice_links;
use audit::AuditSettings;
use config::slices::Slice;
use config::{AppGrant, Config, ServiceShare};
use monitor::{AppRole, AppSource, AppSpec, Duty, Regions, ZoneKind};
use node::now_unix_ms;
use std::collections::BTreeMap;
use std::process::ExitCode;
use store::StoreSettings;
use zone::sandbox::Files;
use zone::{Limits, Sandbox};

/// A service within the binary.
pub struct Service {
    /// Its name, from its contract.
    pub name: &'static str,
    /// What it does for the monitor, if it does something.
    pub duty: Option<Duty>,
    /// What its process does.
    pub run: fn() -> ExitCode,
    /// The reason why this node needs it, or `None` if it does not.
    pub need: fn(&Config) -> Option<Need>,
}

/// What a service gets that a node needs.
#[derive(Debug, Default)]
pub struct Need {
    /// What it may take of the machine.
    pub limits: Limits,
    /// What of the machine it may touch.
    pub sandbox: Sandbox,
    /// What it is told.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// What it may do with the network and with other services.
    pub grant: AppGrant,
    /// The size of the shared memory for its tables in bytes.
    pub shared_bytes: usize,
}

/// All of them.
static SERVICES: &[Service] = &[
    Service {
        name: audit_contract::SERVICE,
        duty: Some(Duty::KeepRecords),
        run: audit::run,
        need: needs_audit,
    },
    Service {
        name: resource_contract::SERVICE,
        duty: Some(Duty::JudgeUsage),
        run: resource::run,
        need: needs_resource,
    },
    Service {
        name: security_contract::SERVICE,
        duty: Some(Duty::VerifyPackages),
        run: security::run,
        need: needs_security,
    },
    Service {
        name: store_contract::SERVICE,
        duty: Some(Duty::ReportStoredBytes),
        run: store::run,
        need: needs_store,
    },
    // The services of the network view. Each says in its own tables what it needs.
    Service { name: discovery_contract::SERVICE, duty: None, run: discovery::run, need: needs_discovery },
    Service {
        name: northbound_contract::SERVICE,
        duty: Some(Duty::ShowApps),
        run: northbound::run,
        need: needs_northbound,
    },
    Service {
        name: hosts_contract::SERVICE,
        duty: None,
        run: hosts::run,
        need: |config| of_network(config, hosts_contract::SERVICE, hosts::NEEDS),
    },
    Service { name: labels_contract::SERVICE, duty: None, run: labels::run, need: needs_labels },
    Service {
        name: paths_contract::SERVICE,
        duty: None,
        run: paths::run,
        need: |config| of_network(config, paths_contract::SERVICE, paths::NEEDS),
    },
    Service { name: flows_contract::SERVICE, duty: None, run: flows::run, need: needs_flows },
];

/// A service of the network view runs if the configuration says so, with the settings of `[network.NAME]`.
fn of_network(config: &Config, name: &str, needs: &str) -> Option<Need> {
    // The needs are compiled in, and a test reads those of each service. So an error is a mistake of ours, and must not hide a service.
    let share = config
        .network_share(name, needs)
        .unwrap_or_else(|fault| unreachable!("the needs of {name}: {fault:?}"));
    let ServiceShare { limits, sandbox, shared_bytes, settings, grant } = share?;
    Some(Need { limits, sandbox, settings, grant, shared_bytes })
}

/// It also knows the speeds of ports that the operator has written.
fn needs_discovery(config: &Config) -> Option<Need> {
    let mut need = of_network(config, discovery_contract::SERVICE, discovery::NEEDS)?;
    // `check` has reported what is wrong with them.
    let _reported = port_speeds::fill_in(&mut need.settings);
    Some(need)
}

/// It may delete the rules of other controllers only if the operator wants that.
fn needs_flows(config: &Config) -> Option<Need> {
    let need = of_network(config, flows_contract::SERVICE, flows::NEEDS)?;
    match need.settings.get("foreign").and_then(serde_json::Value::as_str) {
        Some("remove") => {
            of_network(config, flows_contract::SERVICE, &flows::needs_to_remove_foreign_rules())
        }
        _ => Some(need),
    }
}

/// Descriptors of `labels` besides its connections.
const OPEN_FILES: u32 = 256;

/// It runs where there are slices, or where the operator names it in the list of services. It knows what each `[slice.NAME]` is promised.
fn needs_labels(config: &Config) -> Option<Need> {
    let mut need = of_network(config, labels_contract::SERVICE, labels::NEEDS)?;
    let is_named = config.network.as_ref().is_some_and(|network| network.services.is_some());
    let promised = config.slices.iter().map(|slice| (slice.name.clone(), hose(slice)));
    let promised: BTreeMap<String, labels_contract::Hose> = promised.collect();
    if !promised.is_empty() {
        let slices = need.settings.entry("slices").or_insert_with(|| serde_json::json!({}));
        let promised = serde_json::to_value(promised).ok()?;
        if let (Some(slices), serde_json::Value::Object(promised)) = (slices.as_object_mut(), promised) {
            slices.extend(promised);
        }
    }
    // Without a store, `paths` keeps no intent.
    let paths = of_network(config, paths_contract::SERVICE, paths::NEEDS);
    let has_intents = paths.is_some() && needs_store(config).is_some();
    need.settings.insert("intents".to_owned(), has_intents.into());
    // `check_labels` has reported what is wrong with it.
    if let Some(keys) = need.settings.remove("keys").and_then(|path| crate::edge_keys::read_value(&path).ok())
    {
        let keys = keys.into_iter().map(|(agent, key)| (agent.to_string(), key.into())).collect();
        need.settings.insert("agents".to_owned(), serde_json::Value::Object(keys));
    }
    if !need.sandbox.net.listen.is_empty() {
        // A connection for each agent, and what every process has open.
        let connections = u32::try_from(labels::LINES_MAX).unwrap_or(u32::MAX);
        need.limits.open_files = need.limits.open_files.max(connections.saturating_add(OPEN_FILES));
    }
    let has_slices = need.settings.get("slices").and_then(serde_json::Value::as_object);
    (is_named || has_slices.is_some_and(|slices| !slices.is_empty())).then_some(need)
}

/// Whether this node has labels, so that slices can report their flows and follow their labels.
pub fn has_labels(config: &Config) -> bool {
    needs_labels(config).is_some()
}

/// What a slice is promised. [`slice_links`] adds its links, which may be chosen for it.
fn hose(slice: &config::slices::Slice) -> labels_contract::Hose {
    let vnic = |vnic: &config::slices::Vnic| {
        let (number, agent) = (vnic.edge.map(|edge| edge.number), vnic.edge.and_then(|edge| edge.agent));
        let promised = labels_contract::Vnic { rate_bps: vnic.rate.bps(), number, agent };
        (vnic.name.clone(), promised)
    };
    labels_contract::Hose {
        vnics: slice.vnics.iter().map(vnic).collect(),
        links: None,
        step_percent: slice.step.map(|step| step.percent()),
    }
}

/// It also listens for the command line, wherever the operator lets it listen for others.
fn needs_northbound(config: &Config) -> Option<Need> {
    let mut need = of_network(config, northbound_contract::SERVICE, northbound::NEEDS)?;
    let (socket, listen) = (northbound_contract::SOCKET.parse().ok()?, &mut need.sandbox.net.listen);
    if !listen.contains(&socket) {
        listen.push(socket);
    }
    // `check` has reported what is wrong with it.
    let tls = need.settings.get("tls").and_then(|tls| serde_json::from_value(tls.clone()).ok());
    let identity = tls.and_then(|tls| identity(&tls).ok()).and_then(|it| serde_json::to_value(it).ok());
    need.settings.extend(identity.map(|identity| ("identity".to_owned(), identity)));
    Some(need)
}

/// Checks the settings that only the contract of a service knows, before anything is started.
///
/// # Errors
/// A sentence with the table and the key.
pub fn check(config: &Config) -> Result<(), String> {
    check_labels(config)?;
    check_paths(config)?;
    check_discovery(config)?;
    let need = of_network(config, northbound_contract::SERVICE, northbound::NEEDS);
    let Some(need) = need else { return Ok(()) };
    let wrong = |why: String| format!("[network.{}] {why}", northbound_contract::SERVICE);
    let settings = serde_json::from_value::<northbound_contract::Settings>(need.settings.into());
    let settings = settings.map_err(|why| wrong(why.to_string()))?;
    if settings.identity.is_some() {
        return Err(wrong(
            "identity: the node fills it in: write tls.certificate and tls.private_key".to_owned(),
        ));
    }
    let is_open = need.sandbox.net.listen.iter().any(|it| it.is_open());
    let if_open = || settings.flaw_if_open().filter(|_| is_open).map(str::to_owned);
    if let Some(flaw) = settings.flaw().or_else(if_open) {
        return Err(wrong(flaw));
    }
    let Some(tls) = &settings.tls else { return Ok(()) };
    identity(tls).and_then(|identity| northbound::check_identity(&identity)).map_err(wrong)
}

fn check_paths(config: &Config) -> Result<(), String> {
    match of_network(config, paths_contract::SERVICE, paths::NEEDS) {
        Some(need) if need.settings.contains_key("slices") => Err(format!(
            "[network.{}] slices: the node fills it in: write sections [slice.NAME]",
            paths_contract::SERVICE
        )),
        _ => Ok(()),
    }
}

fn check_discovery(config: &Config) -> Result<(), String> {
    let need = of_network(config, discovery_contract::SERVICE, discovery::NEEDS);
    let filled = need.map(|mut need| port_speeds::fill_in(&mut need.settings)).transpose();
    filled.map(drop).map_err(|why| format!("[network.{}] {why}", discovery_contract::SERVICE))
}

fn check_labels(config: &Config) -> Result<(), String> {
    let wrong = |why: String| format!("[network.{}] {why}", labels_contract::SERVICE);
    if let Some(written) = of_network(config, labels_contract::SERVICE, labels::NEEDS) {
        if written.settings.contains_key("agents") {
            return Err(wrong("agents: the node fills it in: write keys, the path of a file".to_owned()));
        }
        if written.settings.contains_key("intents") {
            return Err(wrong("intents: the node fills it in: leave it out".to_owned()));
        }
        let keys =
            written.settings.get("keys").map(crate::edge_keys::read_value).transpose().map_err(wrong)?;
        if keys.is_none() && !written.sandbox.net.listen.is_empty() {
            return Err(wrong(
                "listen: no agent can connect without a key: write keys, the path of a file".to_owned(),
            ));
        }
    }
    let Some(need) = needs_labels(config) else { return Ok(()) };
    let settings = serde_json::from_value::<labels::LabelsSettings>(need.settings.into());
    settings.map_err(|why| wrong(why.to_string()))?.check().map_err(wrong)
}

/// What is in the files of a certificate. The service cannot read them: its sandbox has no files, and the key is the node's.
fn identity(tls: &northbound_contract::Tls) -> Result<northbound_contract::Identity, String> {
    let read = |key: &str, path: &std::path::Path| {
        std::fs::read_to_string(path)
            .map_err(|error| format!("tls.{key}: {} cannot be read: {error}", path.display()))
    };
    let certificate = read("certificate", &tls.certificate)?;
    Ok(northbound_contract::Identity { certificate, private_key: read("private_key", &tls.private_key)? })
}

/// A node that runs apps or services of the network also watches their resource use.
fn needs_resource(config: &Config) -> Option<Need> {
    let limits = Limits { memory_bytes: RESOURCE_MEMORY_BYTES, ..Limits::default() };
    (!config.apps.is_empty() || !config.slices.is_empty() || config.network.is_some())
        .then(|| Need { limits, ..Need::default() })
}

/// A few numbers for each zone, and the text of one observation.
const RESOURCE_MEMORY_BYTES: u64 = 64 << 20;

/// A node that runs packages also verifies them. It sees their files, and of the state folder nothing else: no key and
/// no log.
fn needs_security(config: &Config) -> Option<Need> {
    let folder = config.packages.state.as_ref().filter(|_| !config.packages.apps.is_empty())?;
    let fs = Files { read: vec![package::state::apps_folder(folder)], ..Files::default() };
    Some(Need {
        limits: Limits { memory_bytes: SECURITY_MEMORY_BYTES, ..Limits::default() },
        sandbox: Sandbox { fs, ..Sandbox::default() },
        ..Need::default()
    })
}

/// One file of a package at a time, of which the largest has 128 MiB, as it grows while it is read.
const SECURITY_MEMORY_BYTES: u64 = 384 << 20;

/// A node with a state folder has a store, for apps that have a grant for it, and for the services of the network. It
/// sees that folder's folder and nothing else.
fn needs_store(config: &Config) -> Option<Need> {
    let is_used = || config.network.is_some() || config.apps.iter().any(uses_the_store);
    let state = config.node.state.as_ref().filter(|_| is_used())?;
    let folder = state.join(store::folder::NAME);
    let settings = serde_json::to_value(StoreSettings { folder: folder.clone() }).ok()?;
    let serde_json::Value::Object(settings) = settings else { return None };
    Some(Need {
        limits: Limits {
            memory_bytes: STORE_MEMORY_BYTES,
            file_bytes: STORE_FILE_BYTES,
            ..Limits::default()
        },
        sandbox: Sandbox { fs: Files { write: vec![folder], ..Files::default() }, ..Sandbox::default() },
        settings,
        ..Need::default()
    })
}

/// Its cache, and what one turn brings of the longest values and lists from each worker.
const STORE_MEMORY_BYTES: u64 = 256 << 20;

/// Many times what it keeps: a small value takes a page of the file, and what is changed is written beside what was there.
const STORE_FILE_BYTES: u64 = 1 << 30;

fn uses_the_store(app: &AppSpec) -> bool {
    // A grant that cannot be read is refused where it is needed.
    let grant = AppGrant::read(app.grant.clone()).unwrap_or_default();
    grant.to_kernel().service(store_contract::SERVICE).is_some()
}

/// A node keeps who did what where its configuration says.
fn needs_audit(config: &Config) -> Option<Need> {
    let folder = config.node.audit.clone()?;
    let run = format!("{}-{}", now_unix_ms(), std::process::id());
    let settings = serde_json::to_value(AuditSettings { folder: folder.clone(), run }).ok()?;
    let serde_json::Value::Object(settings) = settings else { return None };
    let fs = Files { write: vec![folder], ..Files::default() };
    Some(Need { sandbox: Sandbox { fs, ..Sandbox::default() }, settings, ..Need::default() })
}

/// The service of this name.
pub fn named(name: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.name == name)
}

/// The services that a node needs, and its slices. They come after its apps, whose zones keep their numbers.
///
/// # Errors
/// A slice that cannot run: a sentence that names it.
pub fn wanted(config: &Config) -> Result<Vec<AppSpec>, String> {
    with_slices(config, &crate::slices::admitted(config)?)
}

/// The same with these slices, which have the links that were chosen for them.
///
/// # Errors
/// A slice that cannot run: a sentence that names it.
pub fn with_slices(config: &Config, slices: &[Slice]) -> Result<Vec<AppSpec>, String> {
    let services = SERVICES.iter().filter_map(|service| Some(spec(service, (service.need)(config)?)));
    let mut specs: Vec<AppSpec> = services.collect();
    slice_links::add_to(&mut specs, slices, slice_links::has_service(config));
    specs.extend(crate::slices::wanted(config, slices)?);
    Ok(specs)
}

fn spec(service: &Service, need: Need) -> AppSpec {
    let Need { limits, sandbox, settings, grant, shared_bytes } = need;
    AppSpec {
        zone: None,
        name: service.name.to_owned(),
        role: AppRole::Service,
        duty: service.duty,
        kind: ZoneKind::Process,
        source: AppSource::BuiltIn(service.name.to_owned()),
        limits,
        sandbox,
        settings,
        grant: grant.to_json(),
        regions: Regions { writes_bytes: shared_bytes, reads: Vec::new() },
        packaged: false,
        paused: false,
        waits: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps;
    use crate::cli::RunArgs;
    use config::{ConfigFile, Environment};
    use package::manifest::services::OF_NETWORK;

    #[test]
    fn a_store_is_kept_where_there_is_a_state_folder_and_an_app_that_may_use_it() {
        let kept = |text: &str, state: Option<&str>| {
            let file = ConfigFile::parse(text, std::path::Path::new("t")).unwrap();
            let args = RunArgs { records: state.is_none().then(|| "/r".into()), ..RunArgs::default() };
            let around = Environment { uid: 1000, ..Environment::default() };
            let mut config = Config::merge(file, &args, &around, &apps::ALL).unwrap();
            config.node.state = state.map(Into::into);
            wanted(&config).unwrap().into_iter().find(|app| app.duty == Some(Duty::ReportStoredBytes))
        };
        let reads = "[app.hub.capabilities]\n'store.read' = ['hub/']";
        assert_eq!(kept(reads, None), None);
        assert_eq!(kept("[app.hub]", Some("/s")), None, "nobody has it without a word");
        for one in [reads, "[app.hub.capabilities]\n'store.write' = true"] {
            let service = kept(one, Some("/s")).unwrap();
            assert_eq!(service.sandbox.fs.write, [std::path::PathBuf::from("/s/store")]);
            assert!(service.sandbox.fs.read.is_empty());
        }
    }

    #[test]
    fn discovery_knows_the_speeds_that_the_operator_has_written() {
        let all = of_network("[network.discovery]\nport_speed = '10M'\nport_speeds = { 's1:3' = '1G' }");
        let discovery = all.iter().find(|app| app.name == discovery_contract::SERVICE).unwrap();
        let settings = serde_json::Value::Object(discovery.settings.clone());
        let expected = serde_json::json!({"port_speed_kbps": 10_000, "port_speeds_kbps": {"of:0000000000000001/3": 1_000_000}});
        assert_eq!(settings, expected);
        serde_json::from_value::<discovery::time::DiscoverySettings>(settings).unwrap().check().unwrap();
    }

    fn of_network(text: &str) -> Vec<AppSpec> {
        let file = ConfigFile::parse(text, std::path::Path::new("t")).unwrap();
        let around = Environment { uid: 1000, ..Environment::default() };
        let args = RunArgs { records: Some("/r".into()), ..RunArgs::default() };
        let mut config = Config::merge(file, &args, &around, &apps::ALL).unwrap();
        config.node.state = Some("/s".into());
        let services = wanted(&config).unwrap().into_iter();
        services.filter(|app| OF_NETWORK.iter().any(|service| service.name == app.name)).collect()
    }

    #[test]
    fn each_service_of_the_network_runs_where_it_is_wanted_with_what_it_needs() {
        assert_eq!(of_network("").len(), 0);
        let all = of_network("[network]");
        let without_slices = OF_NETWORK.len() - 1;
        assert_eq!(all.len(), without_slices, "a service is in one table only, or its needs are damaged");
        let slices = of_network("[network.labels.slices.blue]\nvnics = { E = { rate_bps = 1000 } }");
        assert_eq!(slices.len(), OF_NETWORK.len(), "labels are told where there are slices");
        let tenant = of_network(
            "[network]\n[slice.blue]\ncontrollers = ['127.0.0.1:6702']\nisolation = 'vlan'\ntag = 7\nstep = '10%'\n\
             vnics = { E = { port = 's6:1', rate = '10M' } }",
        );
        let labels = tenant.iter().find(|app| app.name == labels_contract::SERVICE).unwrap();
        let expected = serde_json::json!({"blue": {"vnics": {"E": {"rate_bps": 10_000_000}}, "links": [], "step_percent": 10}});
        assert_eq!(labels.settings["slices"], expected);
        assert!(all.iter().all(|service| service.grant != AppGrant::default().to_json()));
        let elsewhere = of_network("[network.northbound]\nlisten = ['127.0.0.1:9000']");
        let northbound = elsewhere.iter().find(|app| app.name == northbound_contract::SERVICE).unwrap();
        let listens: Vec<_> = northbound.sandbox.net.listen.iter().map(ToString::to_string).collect();
        assert_eq!(listens, ["127.0.0.1:9000", northbound_contract::SOCKET], "the command line reaches it");
        let only = of_network("[network]\nservices = ['discovery']");
        assert_eq!(only.iter().map(|app| app.name.as_str()).collect::<Vec<_>>(), ["discovery"]);
    }

    #[test]
    fn wrong_settings_of_a_service_are_refused_before_the_start() {
        let check = |text: &str, expected: &str| {
            let file = ConfigFile::parse(text, std::path::Path::new("t")).unwrap();
            let around = Environment { uid: 1000, ..Environment::default() };
            let args = RunArgs { records: Some("/r".into()), ..RunArgs::default() };
            let config = Config::merge(file, &args, &around, &apps::ALL).unwrap();
            let refused = super::check(&config).err().unwrap_or_default();
            assert!(
                refused.contains(expected) && refused.is_empty() == expected.is_empty(),
                "{text}: {refused}"
            );
        };
        let token = "[network.northbound.tokens]\na = { role = 'viewer', sha256 =";
        check("", "");
        check("[network]", "");
        let slice = "[network.labels.slices.blue]\nvnics = { E = { rate_bps =";
        check(&format!("{slice} 1000 }} }}"), "");
        check(
            &format!("{slice} 0 }} }}"),
            "[network.labels] slices.blue.vnics.E.rate_bps: 0 is not possible",
        );
        check(
            "[network.northbound]\nlisten = ['0.0.0.0:8181']",
            "[network.northbound] listen: other machines",
        );
        check(
            "[network.northbound]\nmay_change_app = true",
            "[network.northbound] unknown field `may_change_app`",
        );
        check("[network.northbound]\nmay_change_apps = 'yes'", "invalid type");
        check(
            "[network.discovery]\nport_speed = '10'",
            "[network.discovery] port_speed: `10`: the unit is missing",
        );
        check("[network.discovery]\nport_speed = '10M'", "");
        check("[network.paths.slices.blue]", "[network.paths] slices: the node fills it in");
        let tls = "[network.northbound.tls]\nprivate_key = '/nowhere/k.pem'\ncertificate =";
        check(
            &format!("{tls} '/nowhere/c.pem'"),
            "tls.certificate: /nowhere/c.pem cannot be read: No such file",
        );
        check(
            "[network.northbound.identity]\ncertificate = ''\nprivate_key = ''",
            "identity: the node fills it in",
        );
        check(&format!("{token} 'x' }}"), "[network.northbound] tokens.a.sha256: it is no SHA-256");
        check(&format!("{token} '{}' }}", "0".repeat(64)), "");
        check("[network]\nservices = ['discovery']\n[network.northbound]\nname = 1", "");
    }

    #[test]
    fn every_service_has_a_name_that_is_kept_for_it() {
        let named = |service: &Service| package::manifest::services::is_built_in(service.name);
        assert!(SERVICES.iter().all(named));
    }
}
