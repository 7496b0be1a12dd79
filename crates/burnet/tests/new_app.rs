//! What `burnet app new` writes is given to Cargo and then to a node: it must compile without a warning, its tests must
//! pass, and hosts must reach each other through it.
//!
//! It needs no network: what the SDK is built from is on this machine, since Burnet was built here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

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
fn forwards(app: &str) {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_burnet"));
    done(demo.args(["demo", "--once", "--topo", "single,2", "--app", app]));
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
    forwards(built.join(NAME).to_str().unwrap());
    forwards(&format!("{}=trusted", built.join("libpacket_in.so").display()));
}
