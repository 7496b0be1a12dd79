//! What `burnet app new` writes is given to Cargo: it must compile without a warning, and its tests must pass.
//!
//! It needs no network: what the SDK is built from is on this machine, since Burnet was built here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use burnet::cli::AppNewArgs;
use burnet::new_app::new_app;

/// Its build is kept between runs, since only the first has to compile the SDK.
fn target_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-app")
}

#[test]
fn a_new_app_compiles_without_a_warning_and_its_tests_pass() {
    let folder = std::env::temp_dir().join(format!("burnet-new-app-compiled-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/rust");
    // A name that the app's own source has as a word, as the harder case.
    let args = AppNewArgs { name: "packet-in".to_owned(), dir: Some(folder.clone()), sdk: Some(sdk) };
    new_app(&args).unwrap();

    let tested = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["test", "--offline"])
        .current_dir(folder.join("packet-in"))
        .env("CARGO_TARGET_DIR", target_dir())
        .output()
        .unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&tested.stdout), String::from_utf8_lossy(&tested.stderr));
    let whole = format!("{said}\n{complained}");
    fs::remove_dir_all(&folder).unwrap();

    assert!(tested.status.success(), "{whole}");
    assert!(said.contains("2 passed; 0 failed"), "{whole}");
    assert!(!complained.contains("warning: unused") && !complained.contains("packet-in` (lib"), "{whole}");
}
