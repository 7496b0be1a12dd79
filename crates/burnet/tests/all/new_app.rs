//! Builds the output of `burnet app new` with Cargo and runs it on a node. It must compile without a warning, and its
//! tests must pass. Hosts must reach each other through it, by its path and as the package that its `app.toml`
//! describes.
//!
//! It needs no network: the SDK's dependencies are on this machine, since Burnet was built here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use burnet::cli::AppNewArgs;
use burnet::new_app::new_app;

/// A word of the app's own source, as the harder case for a name.
const NAME: &str = "packet-in";

/// A folder of this test's own, gone when the test is.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Its build is kept between runs, since only the first has to compile the SDK.
fn target_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-app")
}

fn done(command: &mut Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let (said, complained) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert!(status.success(), "{command:?}\n{said}\n{complained}");
    (said, complained)
}

fn cargo(folder: &Path, what: &str) -> (String, String) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    done(cargo.args([what, "--offline"]).current_dir(folder).env("CARGO_TARGET_DIR", target_dir()))
}

/// Hosts reach each other through this app.
fn forwards(app: &str, state: &Path) {
    burnet(state, &["demo", "--once", "--topo", "single,2", "--app", app]);
}

fn burnet(state: &Path, arguments: &[&str]) {
    let mut burnet = Command::new(env!("CARGO_BIN_EXE_burnet"));
    done(burnet.args(arguments).env("BURNET_STATE", state));
}

/// Makes a package of the app, whose program was built for this test elsewhere, and installs it.
fn install(app: &Path, program: &Path, state: &Path) {
    let manifest = fs::read_to_string(app.join("app.toml")).unwrap();
    let built = format!("./target/release/{NAME}");
    assert!(manifest.contains(&built), "{manifest}");
    fs::write(app.join("app.toml"), manifest.replace(&built, program.to_str().unwrap())).unwrap();
    let [folder, keys] = [app.to_str().unwrap(), state.join("keys").to_str().unwrap()].map(str::to_owned);
    let package = format!("{folder}/{NAME}-0.1.0.burnet");
    burnet(state, &["key", "new", "me"]);
    burnet(state, &["key", "trust", &format!("{keys}/me.pub"), "--role", "developer"]);
    burnet(state, &["app", "build", &folder, "--out", &folder]);
    burnet(state, &["app", "sign", &package, "--key", "me"]);
    burnet(state, &["app", "install", &package, "--grant-all"]);
}

#[test]
fn a_new_app_compiles_passes_its_tests_and_forwards_in_both_zones() {
    let folder = Folder(std::env::temp_dir().join(format!("burnet-new-app-compiled-{}", std::process::id())));
    fs::create_dir(&folder.0).unwrap();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sdk = checkout.join("sdk/rust");
    let args = AppNewArgs { name: NAME.to_owned(), dir: Some(folder.0.clone()), sdk: Some(sdk) };
    new_app(&args).unwrap();
    // The versions that Burnet was built from are here; others might have to be fetched.
    fs::copy(checkout.join("Cargo.lock"), folder.0.join(NAME).join("Cargo.lock")).unwrap();

    let (said, complained) = cargo(&folder.0.join(NAME), "test");
    assert!(said.contains("2 passed; 0 failed"), "{said}\n{complained}");
    assert!(!complained.contains(&format!("warning: `{NAME}`")), "{complained}");

    cargo(&folder.0.join(NAME), "build");
    let built = target_dir().join("debug");
    let state = folder.0.join("state");
    // Its build is elsewhere, so what Cargo would have put into its folder is put there.
    let release = folder.0.join(NAME).join("target/release");
    fs::create_dir_all(&release).unwrap();
    for file in [NAME, "libpacket_in.so"] {
        fs::copy(built.join(file), release.join(file)).unwrap();
    }
    forwards(folder.0.join(NAME).to_str().unwrap(), &state);
    forwards(release.join(NAME).to_str().unwrap(), &state);
    forwards(&format!("{}=trusted", release.join("libpacket_in.so").display()), &state);

    install(&folder.0.join(NAME), &built.join(NAME), &state);
    forwards(NAME, &state);
}
