//! A whole node with an app that stores data. Is the data there after the service was killed, after the node was
//! killed, and when the file is damaged?

use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use test_bed::{Bed, Node, kill};
use zone::Resource;

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

/// A node with an app that first does one thing after the other with the store, and then repeats others.
fn start(bed: &Bed, first: &[&str], then: &[&str]) -> Node {
    let config = format!(
        "[node]\naudit = true\n[app.hoarder]\npath = '{}'\n[app.hoarder.capabilities]\n'view.read' = true\n'store.read' = ['hoarder/']\n\
         'store.write' = ['hoarder/', 'shared']\n[app.hoarder.quotas]\nstore_bytes = {{ soft = 100, hard = 1000 }}\n\
         [app.hoarder.settings]\nfirst = {first:?}\nthen = {then:?}\n",
        bed.example("hoarder").display()
    );
    // With two workers the app hears ticks from one and answers from both.
    bed.node().config(&config).args(["--workers", "2"]).log("info").start()
}

fn file(bed: &Bed) -> PathBuf {
    bed.state().join("store/store.redb")
}

/// The records of the audit log, as text.
fn records(bed: &Bed) -> String {
    let files = fs::read_dir(bed.state().join("audit")).unwrap().flatten();
    files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect()
}

/// Bytes in the store, by the newest sample.
fn stored(node: &Node) -> Option<u64> {
    node.usage_of("hoarder")?.samples.last().and_then(|sample| Resource::StoreBytes.used(sample))
}

/// Waits for another line, in addition to those that the log has now.
fn wait_for_another(node: &Node, line: &str) {
    let before = node.log().matches(line).count();
    node.wait(line, |node| node.log().matches(line).count() > before);
}

fn kill_service(node: &Node) {
    kill(node.pid_of("store").unwrap());
}

/// Ends the node in order, for another in the same folder.
fn end(mut node: Node) {
    node.signal(Signal::TERM);
    node.wait_for_end();
}

const THERE: &str = "get hoarder/k: done, 300 bytes";

#[test]
fn what_was_kept_outlives_the_service_and_the_node() {
    let bed = bed();
    let node = start(&bed, &["get hoarder/k", "put hoarder/k 300"], &["get hoarder/k", "list hoarder/"]);
    node.wait_for_line("get hoarder/k: not found");
    node.wait_for_line("put hoarder/k 300: done");
    node.wait_for_line("list hoarder/: done, 11 bytes [\"hoarder/k\"]");
    node.wait("what it has is shown", |node| stored(node) == Some(309));
    kill_service(&node);
    wait_for_another(&node, THERE);
    node.wait("what it has is shown again", |node| stored(node) == Some(309));
    end(node);
    let node = start(&bed, &[], &["get hoarder/k"]);
    node.wait_for_line(THERE);
    end(node);
    fs::write(file(&bed), [0x55; 10_000]).unwrap();
    let node = start(&bed, &[], &["get hoarder/k"]);
    node.wait_for_line("store.redb is damaged (");
    node.wait_for_line("get hoarder/k: not found");
    let names = fs::read_dir(bed.state().join("store")).unwrap().flatten().map(|file| file.file_name());
    assert!(names.into_iter().any(|name| name.to_string_lossy().starts_with("store.redb.damaged-")));
}

#[test]
fn nobody_keeps_more_than_its_share_or_touches_the_keys_of_others() {
    let bed = bed();
    let first = ["put hoarder/k 300", "put hoarder/long 2000", "put shared/k 1", "get hoarder/k"];
    let then = ["get shared/k", "put other/k 1", "delete other/k", "list ", "get hoarder/long"];
    let node = start(&bed, &first, &then);
    node.wait_for_line("put hoarder/k 300: done");
    node.wait_for_line("app hoarder uses more than a soft limit: store_bytes: 3");
    node.wait_for_line("told of 10: 3");
    node.wait_for_line("put hoarder/long 2000: the app's share is full");
    node.wait_for_line("put shared/k 1: done");
    node.wait_for_line("get shared/k: refused: store.read: it is not granted for the key");
    node.wait_for_line("put other/k 1: refused: store.write: it is not granted for the key");
    node.wait_for_line("delete other/k: refused: store.write: it is not granted for the key");
    node.wait_for_line("list : refused: store.read: it is not granted for the prefix");
    node.wait_for_line("get hoarder/long: not found");
    for part in ["quota store_bytes: the hard limit 1000 is reached", "\"store.read\"", "\"store.write\""] {
        node.wait(part, |_| records(&bed).contains(part));
    }
    assert_eq!(node.log().matches("uses more than a soft limit: store_bytes").count(), 1);
}
