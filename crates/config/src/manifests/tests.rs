//! Which manifest belongs to an app, and the result for an app that has none.

use super::super::{AppArgument, Config};
use super::*;
use crate::built_in::WITHIN;
use kernel::Capability;
use std::fs;

/// A folder of this test's own, gone when the test is.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("burnet-manifests-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Scratch(path.canonicalize().unwrap())
    }

    fn put(&self, path: &str, text: &str) -> &Scratch {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn load_with(&self, file: &str, args: RunArgs) -> Result<Config, String> {
        self.put("burnet.toml", file);
        let config = Some(self.0.join("burnet.toml"));
        let around = Environment { uid: 1000, current_dir: self.0.clone(), ..Environment::default() };
        Config::load(&RunArgs { config, ..args }, &around, &WITHIN).map_err(|error| error.to_string())
    }

    fn load(&self, app: &str) -> Result<Config, String> {
        self.load_with("", args(app, false))
    }

    /// What the app holds, and who has said so.
    fn granted(&self, app: &str) -> (Vec<Capability>, GrantedBy) {
        held(&self.load(app).unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn args(app: &str, grant_all: bool) -> RunArgs {
    let app: AppArgument = app.parse().unwrap();
    RunArgs { apps: vec![app], grant_all, ..RunArgs::default() }
}

fn held(config: &Config) -> (Vec<Capability>, GrantedBy) {
    let app = &config.apps[0];
    let grant = super::super::AppGrant::read(app.grant.clone()).unwrap().to_kernel();
    let held = Capability::all().filter(|capability| grant.holds(*capability)).collect();
    (held, config.granted_by[&app.name].clone())
}

fn manifest(name: &str, lines: &str) -> String {
    format!(
        "name = '{name}'\nversion = '1.0.0'\ndescription = 'It.'\nkind = 'native'\nabi = 2\nentry.any = 'bin/main'\n{lines}"
    )
}

const HEARS: &str = "[capabilities]\n'packet.in' = true\n";

#[test]
fn an_app_without_a_manifest_does_not_start_and_says_how_to_go_on() {
    let scratch = Scratch::new("none");
    let refused = scratch.put("mine", "").put("mine.py", "import burnet\n").load("./mine").unwrap_err();
    let expected = format!(
        "the app mine has no manifest, so it would get no capabilities: write {}/mine.toml (docs/reference/package.md; burnet app new \
         writes one), or [app.mine.capabilities] in burnet.toml. On a test network, --grant-all grants the usual capabilities",
        scratch.0.display()
    );
    assert_eq!(refused, expected);
    assert!(scratch.load("mine.py").unwrap_err().contains("or a block `# /// burnet` at its top"));
    scratch.put("app.toml", &manifest("another", HEARS));
    assert!(scratch.load("./mine").unwrap_err().contains("app.toml is the manifest of another)"));
}

#[test]
fn a_manifest_that_is_damaged_is_refused_by_file_and_line() {
    let scratch = Scratch::new("damaged");
    scratch.put("mine", "").put("mine.toml", &manifest("mine", "[capabilities]\n'packet.ins' = true"));
    assert!(scratch.load("./mine").unwrap_err().contains("mine.toml, line 8: unknown key `packet.ins`"));
    scratch.put("mine.py", "# /// burnet\n# [capabilities]\n# 'packet.ins' = true\n# ///\n");
    assert!(scratch.load("./mine.py").unwrap_err().contains("mine.py, line 3: unknown key"));
    fs::create_dir(scratch.0.join("empty")).unwrap();
    assert!(scratch.load("./empty").unwrap_err().contains("empty is a folder without an app.toml"));
    scratch.put("mine.toml", &manifest("mine", "[system]\n'fs.read' = ['/']"));
    assert!(scratch.load("./mine").is_err());
}

#[test]
fn the_folder_that_one_is_in_is_an_app_too() {
    let scratch = Scratch::new("here");
    scratch.put("app.toml", &manifest("mine", HEARS)).put("bin/main", "");
    let here = scratch.granted(".");
    assert_eq!(here, scratch.granted("./"));
    assert_eq!(here.1, GrantedBy::Manifest(scratch.0.join("./app.toml")));
}

#[test]
fn each_place_of_a_manifest_is_found() {
    let hears = vec![Capability::PacketIn];
    let scratch = Scratch::new("places");
    let path = |path: &str| GrantedBy::Manifest(scratch.0.join(path));
    scratch.put("a/one", "").put("a/one.toml", &manifest("any-name", HEARS));
    assert_eq!(scratch.granted("./a/one"), (hears.clone(), path("./a/one.toml")));
    scratch.put("b/two", "").put("b/app.toml", &manifest("two", HEARS));
    assert_eq!(scratch.granted("./b/two"), (hears.clone(), path("./b/app.toml")));
    scratch.put("b/main", "");
    assert_eq!(
        scratch.granted("./b/main"),
        (hears.clone(), path("./b/app.toml")),
        "the entry of the package"
    );
    scratch.put("c/target/release/my-app", "").put("c/app.toml", &manifest("my-app", HEARS));
    scratch.put("c/target/x86_64-unknown-linux-musl/debug/libmy_app.so", "");
    assert_eq!(scratch.granted("c/target/release/my-app"), (hears.clone(), path("c/app.toml")));
    let shared = "c/target/x86_64-unknown-linux-musl/debug/libmy_app.so";
    assert_eq!(scratch.granted(shared), (hears.clone(), path("c/app.toml")));
    let python = format!("# /// burnet\n# {}# ///\n", HEARS.trim_end().replace('\n', "\n# ") + "\n");
    scratch.put("d/four.py", &python).put("d/four.toml", &manifest("four", ""));
    assert_eq!(scratch.granted("d/four.py"), (hears, GrantedBy::Comments(scratch.0.join("d/four.py"))));
}

#[test]
fn a_folder_stands_for_the_program_that_its_manifest_names() {
    let scratch = Scratch::new("folder");
    let files = "[files]\n'bin/main' = '../target/release/main'\n";
    scratch
        .put("mine/app.toml", &manifest("my-app", &format!("{files}{HEARS}")))
        .put("target/release/main", "");
    let config = scratch.load("./mine").unwrap();
    assert_eq!(config.apps[0].name, "my-app");
    let monitor_channel::AppSource::Executable(program) = &config.apps[0].source else { panic!() };
    assert_eq!(program, &scratch.0.join("./mine").join("../target/release/main"));
    assert_eq!(held(&config).0, [Capability::PacketIn]);
    fs::remove_file(scratch.0.join("target/release/main")).unwrap();
    assert!(scratch.load("./mine").unwrap_err().contains("the program of the app my-app"));
}

#[test]
fn what_burnet_toml_says_goes_before_the_manifest() {
    let scratch = Scratch::new("file");
    scratch
        .put("mine", "")
        .put("mine.toml", &manifest("mine", &format!("{HEARS}[quotas]\ncommands_per_s = 7\n")));
    let written = "[app.mine]\npath = 'mine'\n[app.mine.capabilities]\n'stats.read' = true\n";
    let config = scratch.load_with(written, RunArgs::default()).unwrap();
    assert_eq!(held(&config), (vec![Capability::StatsRead], GrantedBy::Configuration));
    let grant = super::super::AppGrant::read(config.apps[0].grant.clone()).unwrap();
    assert_eq!(grant.quotas.commands_per_s.unwrap().hard, 7, "each quota by itself");
    let built_in = "[app.hub.capabilities]\n'stats.read' = true\n";
    let config = scratch.load_with(built_in, RunArgs::default()).unwrap();
    assert_eq!(held(&config), (vec![Capability::StatsRead], GrantedBy::Configuration));
}

#[test]
fn a_built_in_app_has_what_its_manifest_asks_for() {
    let scratch = Scratch::new("built-in");
    let (held, by) = scratch.granted("hub");
    assert_eq!(held, [Capability::PacketIn, Capability::PacketOut]);
    assert_eq!(by, GrantedBy::BuiltIn);
}

#[test]
fn grant_all_is_for_those_of_which_nobody_has_said_anything() {
    let scratch = Scratch::new("grant-all");
    scratch.put("mine", "").put("yours", "").put("yours.toml", &manifest("yours", HEARS));
    let (all, by) = held(&scratch.load_with("", args("./mine", true)).unwrap());
    assert_eq!((all, by), (Capability::GRANT_ALL.to_vec(), GrantedBy::GrantAll));
    let (held, _) = held(&scratch.load_with("", args("./yours", true)).unwrap());
    assert_eq!(held, [Capability::PacketIn]);
}
