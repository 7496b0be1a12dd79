//! Tests of a whole configuration, merged from its parts.

use super::*;
use crate::built_in::{APPS, WITHIN};

const BUILT_IN: &[BuiltInApp] = APPS;

fn around() -> Environment {
    Environment { uid: 1000, current_dir: "/home/u".into(), ..Environment::default() }
}

fn merge(file: &str, args: &RunArgs) -> Result<Config, ConfigError> {
    let file = ConfigFile::parse(file, Path::new("burnet.toml"))?;
    Config::merge(file, args, &around(), BUILT_IN)
}

fn args(apps: &[&str]) -> RunArgs {
    RunArgs { apps: apps.iter().map(|app| app.parse().unwrap()).collect(), ..RunArgs::default() }
}

fn refused(file: &str, args: &RunArgs, expected: &str) {
    let error = merge(file, args).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn values_that_do_not_go_together_are_refused() {
    refused(
        "[southbound]\necho_interval_ms = 20000",
        &args(&[]),
        "southbound.echo_interval_ms (20000) must be less than southbound.echo_timeout_ms (15000)",
    );
    for role in ["", "role = 'nochange'\n", "role = 'equal'\n"] {
        let file = format!("[southbound]\n{role}role_generation_id = 1");
        refused(&file, &args(&[]), "the role is neither master nor slave");
    }
    refused("[southbound.tls]\nrequired = true", &args(&[]), "required is true, but there is no certificate");
    let both =
        "[southbound.tls]\ncertificate = '/c'\nprivate_key = '/k'\nca_certificate = '/a'\nrequired = true";
    let says_otherwise = RunArgs { allow_plain: true, ..RunArgs::default() };
    refused(
        both,
        &says_otherwise,
        "southbound.tls.required and allow_plain (or --allow-plain) are both true",
    );
    let print = "00:".repeat(31) + "00";
    refused(
        &format!("[southbound.tls]\nbinding = 'none'\n[southbound.tls.datapaths]\n1 = '{print}'"),
        &args(&[]),
        "binds no datapath id, but southbound.tls.datapaths binds some",
    );
    let key = RunArgs { tls_key: Some("k".into()), ..RunArgs::default() };
    refused("", &key, "add --tls-cert FILE, or southbound.tls.certificate");
    refused(
        "[southbound.tls]\ncertificate = '/c'",
        &key,
        "add --tls-ca FILE, or southbound.tls.ca_certificate",
    );
    refused("[southbound.tls]\ncertificate = '/c'", &args(&[]), "add --tls-key FILE");
}

#[test]
fn apps_that_cannot_run_are_refused() {
    refused("", &args(&["hub", "hub=trusted"]), "the app hub is named twice by --app");
    refused("", &args(&["a/x", "b/x"]), "the app x is named twice by --app");
    refused("", &args(&["audit"]), "audit is the name of a service of the node");
    refused("[app.security]\npath = '/x'", &args(&[]), "security is the name of a service of the node");
    refused(
        "[app.hub.capabilities]\n'system.audit' = true",
        &args(&[]),
        "only services of the node have this",
    );
    refused("", &args(&["hup"]), "there is no built-in app hup (there are firewall, hub, learning-switch)");
    refused("[app.mine]", &args(&[]), "or set app.mine.path");
    refused("", &args(&["./mine=trusted"]), "the app mine is a separate program and cannot run trusted");
    refused("[app.'a b']\npath = '/x'", &args(&[]), "\"a b\" cannot be an app's name");
}

#[test]
fn nothing_said_is_the_default() {
    let config = merge("", &args(&[])).unwrap();
    assert_eq!(config.southbound, Southbound::default());
    assert_eq!(config.node.log, LogLevel::Info);
    assert!(config.apps.is_empty());
}

#[test]
fn a_role_that_is_elected_has_a_generation_id_which_is_0_unless_it_is_said() {
    for (said, expected) in [
        ("role = 'master'", (Role::Master, 0)),
        ("role = 'slave'\nrole_generation_id = 3", (Role::Slave, 3)),
        ("role = 'equal'", (Role::Equal, 0)),
    ] {
        let config = merge(&format!("[southbound]\n{said}"), &args(&[])).unwrap().southbound;
        assert_eq!((config.role, config.role_generation_id), expected, "{said}");
    }
}

#[test]
fn the_command_line_goes_before_the_file_and_the_file_before_defaults() {
    let file = "[southbound]\nlisten = [':1', ':2']\nworkers = 4\nversions = ['1.3']\n[node]\nlog = 'debug'";
    let config = merge(file, &args(&[])).unwrap();
    assert_eq!(config.southbound.workers, 4);
    assert_eq!(config.southbound.listen.len(), 2);
    assert_eq!(config.southbound.versions, [OpenFlowVersion::V1_3]);
    assert_eq!(config.node.log, LogLevel::Debug);
    let said = RunArgs {
        listen: vec![":3".parse().unwrap()],
        workers: Some(2),
        log: Some(LogLevel::Warn),
        ..RunArgs::default()
    };
    let config = merge(file, &said).unwrap();
    assert_eq!(config.southbound.workers, 2);
    assert_eq!(config.southbound.listen, [":3".parse().unwrap()]);
    assert_eq!(config.node.log, LogLevel::Warn);
}

#[test]
fn the_files_of_tls_come_from_both_and_are_absolute() {
    let file =
        "[southbound.tls]\ncertificate = '/c'\nprivate_key = '/k'\nca_certificate = '/a'\nrequired = true";
    let said = RunArgs { tls_key: Some("mine.pem".into()), ..RunArgs::default() };
    let tls = merge(file, &said).unwrap().southbound.tls.unwrap();
    let expected = Tls {
        certificate: "/c".into(),
        private_key: "/home/u/mine.pem".into(),
        ca_certificate: "/a".into(),
        allow_plain: false,
        required: true,
        ..tls.clone()
    };
    assert_eq!(tls, expected);
}

#[test]
fn an_app_of_both_keeps_its_settings_and_runs_where_the_command_line_says() {
    let file =
        "[app.learning-switch]\nzone = 'trusted'\nlimits.open_files = 70\nsettings.priority = 7\n[app.hub]";
    let config = merge(file, &args(&["hub=trusted", "learning-switch=process", "./mine"])).unwrap();
    let kinds: Vec<_> = config.apps.iter().map(|app| (app.name.as_str(), app.kind)).collect();
    let expected =
        [("learning-switch", ZoneKind::Process), ("hub", ZoneKind::Trusted), ("mine", ZoneKind::Process)];
    assert_eq!(kinds, expected);
    assert_eq!(config.apps[0].limits.open_files, 70);
    assert_eq!(config.apps[0].settings["priority"], 7);
    assert_eq!(config.apps[2].source, AppSource::Executable("/home/u/mine".into()));
}

#[test]
fn an_app_that_is_not_built_in_has_its_path_from_the_file() {
    let config = merge("[app.mine]\npath = '/opt/libx.so'\nzone = 'trusted'", &args(&["mine"])).unwrap();
    assert_eq!(config.apps[0].source, AppSource::SharedObject("/opt/libx.so".into()));
    assert_eq!(config.apps[0].kind, ZoneKind::Trusted);
    let config = merge("", &args(&["mine.py"])).unwrap();
    assert_eq!(config.apps[0].source, AppSource::Python("/home/u/mine.py".into()));
}

#[test]
fn a_configuration_survives_the_way_to_the_kernel_process() {
    let file = "[southbound.tls]\ncertificate = '/c'\nprivate_key = '/k'\nca_certificate = '/a'\n[app.hub.settings]\nx = [1]";
    let config = merge(file, &args(&["./mine", "libx.so=trusted"])).unwrap();
    let sent = serde_json::to_value(&config).unwrap();
    let handed_on = Config { granted_by: BTreeMap::new(), ..config };
    assert_eq!(serde_json::from_value::<Config>(sent).unwrap(), handed_on);
}

#[test]
fn a_file_that_is_missing_or_no_file_is_named() {
    let check = |config: Config, expected: &str| {
        let error = config.check_files().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let tls = "[southbound.tls]\ncertificate = '/nowhere.pem'\nprivate_key = '/k'\nca_certificate = '/a'";
    check(merge(tls, &args(&[])).unwrap(), "the certificate /nowhere.pem cannot be used (No such file");
    let mut config = merge("[app.x]\npath = '/x'", &args(&[])).unwrap();
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"/x/\xff");
    config.apps[0].source = AppSource::Executable(odd.into());
    check(config, "the program of the app x /x/\u{fffd} has a name that is not UTF-8");
    check(merge("", &args(&["/nowhere/mine"])).unwrap(), "the program of the app mine /nowhere/mine cannot");
    check(
        merge("", &args(&["/dev/"])).unwrap_or_else(|error| panic!("{error}")),
        "the program of the app dev",
    );
    check(
        merge("[app.x]\npath = '/dev/null'", &args(&[])).unwrap(),
        "the program of the app x /dev/null is not a file",
    );
    check(
        merge("[app.x]\npath = '/etc/passwd'", &args(&[])).unwrap(),
        "the program of the app x /etc/passwd may not be executed by this user",
    );
}

#[test]
fn a_configuration_that_cannot_be_read_is_named() {
    let args = RunArgs { config: Some("/nowhere/burnet.toml".into()), ..RunArgs::default() };
    let error = Config::load(&args, &around(), &WITHIN).unwrap_err().to_string();
    let expected =
        "/nowhere/burnet.toml cannot be read (No such file or directory (os error 2)): check the path";
    assert!(error.starts_with(expected), "{error}");
}

fn audit_of(file: &str, args: &RunArgs, around: &Environment) -> Option<PathBuf> {
    audit_folder(&ConfigFile::parse(file, Path::new("burnet.toml")).unwrap(), args, around).unwrap()
}

#[test]
fn who_did_what_is_kept_by_roots_node_and_where_the_state_folder_was_named() {
    let user = Environment { uid: 1000, home: Some("/home/u".into()), ..around() };
    let root = Environment { uid: 0, ..user.clone() };
    let told = Environment { burnet_state: Some("/b".into()), ..user.clone() };
    let own = RunArgs { die_with_parent: true, ..RunArgs::default() };
    let check = |file: &str, args: &RunArgs, around: &Environment, expected: Option<&str>| {
        assert_eq!(audit_of(file, args, around), expected.map(PathBuf::from), "{file} {around:?}");
    };
    check("", &args(&[]), &user, None);
    check("", &args(&[]), &root, Some("/var/lib/burnet/audit"));
    check("[node]\naudit = false", &args(&[]), &root, None);
    check("[node]\naudit = true", &args(&[]), &user, Some("/home/u/.local/state/burnet/audit"));
    check("[node]\nstate = '/s'", &args(&[]), &user, Some("/s/audit"));
    check("", &args(&[]), &told, Some("/b/audit"));
    check("", &own, &told, None);
    check("", &own, &root, None);
    check("[node]\nstate = '/s'", &own, &root, Some("/s/audit"));
}

#[test]
fn a_node_that_a_program_starts_for_itself_leaves_the_operators_state_folder_alone() {
    let root = Environment { uid: 0, burnet_state: Some("/b".into()), ..around() };
    let check = |file: &str, args: RunArgs, records: &str, state: Option<&str>| {
        let file = ConfigFile::parse(file, Path::new("burnet.toml")).unwrap();
        let node = Config::merge(file, &args, &root, BUILT_IN).unwrap().node;
        assert_eq!((node.records, node.state), (Some(records.into()), state.map(PathBuf::from)));
    };
    let own = || RunArgs { records: Some("/r".into()), ..RunArgs::default() };
    check("", RunArgs::default(), "/b", Some("/b"));
    check("", own(), "/r", None);
    check("[node]\nstate = '/s'", own(), "/r", Some("/b"));
    check("", RunArgs { state: Some("/s".into()), ..own() }, "/r", Some("/s"));
}

#[test]
fn a_capability_of_a_service_needs_an_app_that_declares_it() {
    let merged = |text: &str| {
        let folder = std::env::temp_dir().join(format!("burnet-declared-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let head = "version = '1.0.0'\ndescription = 'It.'\nkind = 'native'\nabi = 2\nentry.any = 'hello'\nname = 'hello'\n";
        let declared = "[service.capabilities]\n'hello.greet' = { permits = 'have all greeted' }\n";
        std::fs::write(folder.join("hello.toml"), format!("{head}{declared}")).unwrap();
        std::fs::write(folder.join("hello"), "").unwrap();
        let text = text.replace("FOLDER", folder.to_str().unwrap());
        let mut file = ConfigFile::parse(&text, Path::new("t")).unwrap();
        let (args, around) = (RunArgs::default(), Environment { uid: 1000, ..Environment::default() });
        manifests::look(&mut file, &args, &around).unwrap();
        let args = RunArgs { records: Some("/r".into()), ..args };
        Config::merge(file, &args, &around, BUILT_IN)
    };
    let asks = "[app.hub.capabilities]\n'hello.greet' = true\n";
    let said = merged(asks).unwrap_err().to_string();
    assert!(said.contains("`hello.greet` needs the service hello, which is not installed"), "{said}");
    let config = merged(&format!("{asks}[app.hello]\npath = 'FOLDER/hello'\n")).unwrap();
    let grant = AppGrant::read(config.apps[0].grant.clone()).unwrap().to_kernel();
    let part = contract::Part::from_bytes(grant.service("hello").unwrap()).unwrap();
    assert_eq!(part.permitted("hello.greet"), Some(&contract::Permitted::All));
    assert_eq!(config.declared[0].name, "hello");
}
