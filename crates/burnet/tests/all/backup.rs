//! A whole node, its backup, and what a restore makes of it.

use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::process::Output;
use test_bed::{Bed, Node};

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

const APP: &str = "[app.hoarder]\npath = 'PATH'\n[app.hoarder.capabilities]\n'view.read' = true\n'store.read' = ['hoarder/']\n\
                   'store.write' = ['hoarder/']\n[app.hoarder.settings]\n";

/// A node with an app that does these things with the store, first once and then again and again.
fn start(bed: &Bed, first: &[&str], then: &[&str]) -> Node {
    let app = APP.replace("PATH", bed.example("hoarder").to_str().unwrap());
    bed.node().config(&format!("{app}first = {first:?}\nthen = {then:?}\n")).log("info").start()
}

fn end(mut node: Node) {
    node.signal(Signal::TERM);
    node.wait_for_end();
}

fn said(output: Output) -> (Option<i32>, String) {
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// Runs a command that succeeds. Returns what it printed.
fn run(bed: &Bed, arguments: &[&str]) -> String {
    let (code, text) = said(bed.run(arguments));
    assert_eq!(code, Some(0), "{arguments:?}: {text}");
    text
}

fn refused(bed: &Bed, arguments: &[&str], code: i32, expected: &str) {
    let (ended, text) = said(bed.run(arguments));
    assert!(ended == Some(code) && text.contains(expected), "{arguments:?}: {ended:?} {text}");
}

fn path(bed: &Bed, name: &str) -> String {
    bed.path(name).to_str().unwrap().to_owned()
}

/// The folders of the state folder in which a restore kept the state before.
fn kept(bed: &Bed) -> Vec<PathBuf> {
    let entries = fs::read_dir(bed.state()).unwrap().flatten().map(|entry| entry.path());
    entries.filter(|path| path.to_string_lossy().contains("restore-")).collect()
}

const THERE: &str = "get hoarder/k: done, 300 bytes";

#[test]
fn a_running_node_is_backed_up_and_restored() {
    let bed = bed();
    let file = path(&bed, "a.tar");
    run(&bed, &["key", "new", "alice"]);
    // It also writes while the backup is made.
    let node = start(&bed, &["put hoarder/k 300"], &["get hoarder/k", "put hoarder/l 200"]);
    node.wait_for_line(THERE);
    let config = bed.file("b.toml", &format!("[node]\nstate = {:?}\n", bed.state()));
    let told = run(&bed, &["backup", "--config", config.to_str().unwrap(), &file]);
    assert!(told.contains("a.tar has "), "{told}");
    refused(&bed, &["backup", &file], 1, "the file already exists");
    refused(&bed, &["restore", &file], 2, "a node runs with the state folder");
    end(node);
    let zones = fs::read_to_string(bed.state().join("zones")).unwrap();
    fs::remove_file(bed.state().join("zones")).unwrap();
    let node = start(&bed, &["delete hoarder/k"], &["get hoarder/k"]);
    node.wait_for_line("get hoarder/k: not found");
    end(node);
    fs::write(&config, "# lost").unwrap();
    let told = run(&bed, &["restore", "--config", config.to_str().unwrap(), &file]);
    assert!(told.contains("those of this machine stay") && told.contains("the state before is in"), "{told}");
    assert!(fs::read_to_string(&config).unwrap().contains("[node]"));
    assert_eq!(fs::read_to_string(bed.state().join("zones")).unwrap(), zones);
    assert!(bed.state().join("keys/alice.key").is_file(), "the private key is not in the backup, and stays");
    let node = start(&bed, &[], &["get hoarder/k"]);
    node.wait_for_line(THERE);
    end(node);
    assert!(kept(&bed)[0].join("store/store.redb").is_file());
}

#[test]
fn a_backup_of_a_stopped_node_restores_elsewhere() {
    let bed = bed();
    let file = path(&bed, "a.tar");
    refused(&bed, &["backup", &file], 2, "there is no state folder");
    run(&bed, &["key", "new", "alice"]);
    let node = start(&bed, &["put hoarder/k 300"], &["get hoarder/k"]);
    node.wait_for_line(THERE);
    end(node);
    run(&bed, &["backup", "--with-private-keys", &file]);
    let key = fs::read_to_string(bed.state().join("keys/alice.key")).unwrap();
    fs::remove_dir_all(bed.state()).unwrap();
    run(&bed, &["restore", &file]);
    assert_eq!(fs::read_to_string(bed.state().join("keys/alice.key")).unwrap(), key);
    let node = start(&bed, &[], &["get hoarder/k"]);
    node.wait_for_line(THERE);
    end(node);
}

#[test]
fn a_damaged_or_newer_backup_changes_nothing() {
    let bed = bed();
    let file = path(&bed, "a.tar");
    run(&bed, &["key", "new", "alice"]);
    run(&bed, &["backup", "--with-private-keys", &file]);
    let sound = fs::read(&file).unwrap();
    run(&bed, &["key", "new", "bob"]);
    let damage = |change: &dyn Fn(&mut Vec<u8>), expected: &str| {
        let mut bytes = sound.clone();
        change(&mut bytes);
        fs::write(bed.path("b.tar"), bytes).unwrap();
        refused(&bed, &["restore", &path(&bed, "b.tar")], 1, expected);
        assert!(bed.state().join("keys/bob.key").is_file());
        assert_eq!(kept(&bed), [""; 0].map(PathBuf::from), "nothing is left behind");
    };
    damage(&|bytes| bytes.truncate(sound.len() / 2), "nothing has changed");
    // The content of the second file comes after two headers and the first file.
    damage(&|bytes| bytes[3 * 512] ^= 1, "is damaged: its content does not match its checksum");
    damage(&|bytes| bytes[512 + 9] = b'?', "its first file cannot be read");
    damage(&|bytes| bytes[512 + 9] = b'7', "it has format 7, and this version of Burnet reads up to 1");
    refused(&bed, &["restore", &path(&bed, "nowhere.tar")], 2, "nowhere.tar cannot be read");
    run(&bed, &["restore", &file]);
    assert!(!bed.state().join("keys/bob.pub").is_file());
}

#[test]
fn a_node_finishes_a_restore_that_was_interrupted() {
    let bed = bed();
    run(&bed, &["key", "new", "alice"]);
    let ready = bed.state().join("restore-7.ready");
    fs::create_dir_all(&ready).unwrap();
    fs::write(ready.join("zones"), "9 hoarder\n").unwrap();
    let node = start(&bed, &[], &["get hoarder/k"]);
    node.wait_for_line("get hoarder/k: not found");
    assert_eq!(node.app("hoarder").status.zone, 9, "the number that the restore gives it");
    assert!(!ready.exists() && bed.state().join("before-restore-7/keys/alice.key").is_file());
    end(node);
}
