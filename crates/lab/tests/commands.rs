//! The laboratory as an operator meets it: by way of `burnet`, by itself, and without what it needs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The laboratory's program, beside which Cargo puts the node's.
fn laboratory() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_burnet-lab"))
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.env_remove("BURNET_SOCKET").env("PATH", "").stdin(Stdio::null()).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// One sentence on standard error, and exit code 2.
fn refuses(program: &Path, arguments: &[&str], words: &str) {
    let output = run(program, arguments);
    let complained = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complained}");
    assert!(complained.starts_with("burnet: ") && complained.contains(words), "{complained}");
    assert_eq!((complained.lines().count(), text(&output.stdout)), (1, ""), "{complained}");
}

/// So that two tests of one process have different folders.
static FOLDERS: AtomicUsize = AtomicUsize::new(0);

/// A folder with one program alone in it, which ends with this value.
struct Alone {
    folder: PathBuf,
    program: PathBuf,
}

impl Alone {
    fn with(program: &Path) -> Alone {
        let name = program.file_name().unwrap();
        // Where links are possible: a program finds itself by its file, not by a symbolic link to it.
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
            "alone-{}-{}-{number}",
            name.display(),
            std::process::id()
        ));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let alone = Alone { program: folder.join(name), folder };
        fs::hard_link(program, &alone.program).unwrap();
        alone
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_command_without_its_program_says_what_to_install() {
    let burnet = Alone::with(&laboratory().with_file_name("burnet"));
    for command in ["bench", "attack", "emulate", "demo", "profile"] {
        refuses(&burnet.program, &[command, "--help"], "cargo install --path crates/lab");
    }
    let lab = Alone::with(laboratory());
    refuses(&lab.program, &["demo", "--once"], "cargo install --path crates/burnet");
}

#[test]
fn a_rehearsal_of_slices_is_the_laboratorys_if_it_has_packets() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/slices");
    let [slices, network] = ["slices.toml", "fig1a.toml"].map(|file| folder.join(file).display().to_string());
    let without =
        ["slice", "rehearse", &slices, "--network", &network, "--flow", "red:A-B", "--seconds", "1"];
    let with = [&without[..], &["--packets"]].concat();
    let burnet = laboratory().with_file_name("burnet");
    for (arguments, has_packets) in [(&without[..], false), (&with[..], true)] {
        let output = run(&burnet, arguments);
        let shown = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{shown} {}", text(&output.stderr));
        assert!(shown.starts_with("SLICE  FLOW  NOMINAL  0-1 s"), "{shown}");
        assert_eq!(shown.contains("0 frames between slices; 0 storms"), has_packets, "{shown}");
    }
    let alone = Alone::with(&burnet);
    refuses(&alone.program, &with, "burnet slice needs the program burnet-lab");
    refuses(laboratory(), &["slice", "list"], "the laboratory has `rehearse --packets` only");
}

#[test]
fn burnet_becomes_the_laboratory_with_the_same_arguments() {
    let burnet = laboratory().with_file_name("burnet");
    let help = run(&burnet, &["bench", "southbound", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("Usage: burnet bench southbound"), "{}", text(&help.stdout));
    let refused = run(&burnet, &["emulate", "--topo", "tree,2", "--no-such"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--no-such"), "{}", text(&refused.stderr));
    let by_itself = run(laboratory(), &["bench", "--help"]);
    assert!(text(&by_itself.stdout).contains("Usage: burnet-lab bench"), "{}", text(&by_itself.stdout));
}

#[test]
fn the_laboratory_is_found_in_the_path_too() {
    let burnet = Alone::with(&laboratory().with_file_name("burnet"));
    let bin = burnet.folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    symlink(laboratory(), bin.join("burnet-lab")).unwrap();
    let output = Command::new(&burnet.program).args(["attack", "--list"]).env("PATH", &bin).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("fork-bomb"));
}

#[test]
fn a_demo_that_cannot_be_is_refused_in_one_sentence() {
    refuses(laboratory(), &["demo", "--once", "--app", "hup"], "there is no built-in app hup");
    refuses(laboratory(), &["demo", "--once", "--app", "/bin/true=trusted"], "cannot run trusted");
}
