//! The example on a whole node with an emulated network, whose link fails and whose service is killed.
//!
//! The node's program is the one in Cargo's target folder: `cargo build -p burnet`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use emulator::Change;
use std::path::Path;
use test_bed::{Bed, Node, PATIENCE, kill};

const SERVICES: &str = "services = ['discovery', 'hosts']";

/// A node with the example, a service with these settings, and an app that forwards.
fn start(bed: &Bed, services: &str) -> Node {
    let program = bed.path("network-size");
    std::fs::copy(env!("CARGO_BIN_EXE_network-size"), &program).unwrap();
    bed.file("network-size.toml", include_str!("../app.toml"));
    let app = format!("[app.hub]\n[app.network-size]\npath = '{}'\n", program.display());
    bed.node().config(&format!("[network]\n{services}\n{app}")).log("info").start_ready()
}

fn bed() -> Bed {
    let burnet = Path::new(env!("CARGO_BIN_EXE_network-size")).with_file_name("burnet");
    assert!(burnet.is_file(), "{} is missing: cargo build -p burnet", burnet.display());
    Bed::new(burnet)
}

/// What the app printed last.
fn printed(node: &Node) -> String {
    let log = node.log();
    let mut lines = log.lines().filter_map(|line| Some(line.split_once("network-size: ")?.1));
    lines.rfind(|line| line.contains(" switches, ")).unwrap_or_default().to_owned()
}

fn wait_printed(node: &Node, line: &str) {
    node.wait(&format!("{line}, not {}", printed(node)), |node| printed(node) == line);
}

/// A process and all that it started: a zone's process is the launcher, and the app is below it.
fn with_descendants(pid: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
    };
    let names = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let all: Vec<u32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    let mut found = vec![pid];
    for _ in 0..4 {
        let is_below =
            |one: &&u32| !found.contains(one) && parent(**one).is_some_and(|it| found.contains(&it));
        let more: Vec<u32> = all.iter().filter(is_below).copied().collect();
        found.extend(more);
    }
    found
}

/// Whether a zone has the shared memory of a service mapped, and whether any such mapping is writable.
fn maps_region(pid: u32) -> (bool, bool) {
    let maps = |pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps: String = with_descendants(pid).into_iter().map(maps).collect();
    let regions: Vec<_> = maps.lines().filter(|line| line.contains("burnet-region")).collect();
    (!regions.is_empty(), regions.iter().any(|line| line.contains(" rw")))
}

#[test]
fn the_app_sees_switches_links_and_hosts_a_failed_link_and_the_next_run_of_a_service() {
    let bed = bed();
    let node = start(&bed, SERVICES);
    let network = node.network("linear,3,1", &Default::default());
    let _answers = network.begin_ping_all(PATIENCE);
    wait_printed(&node, "3 switches, 4 links, 3 hosts");
    let link = |up| Change::Link { link: "s1-s2".to_owned(), up };
    network.change(link(false)).unwrap();
    wait_printed(&node, "3 switches, 2 links, 3 hosts");
    network.change(link(true)).unwrap();
    wait_printed(&node, "3 switches, 4 links, 3 hosts");
    let app = node.pid_of("network-size").unwrap();
    let before = node.pid_of("discovery");
    kill(before.unwrap());
    node.wait("the service is there again", |node| {
        node.pid_of("discovery").is_some_and(|it| Some(it) != before)
    });
    network.change(link(false)).unwrap();
    wait_printed(&node, "3 switches, 2 links, 3 hosts");
    assert_eq!(node.pid_of("network-size"), Some(app), "the app was not restarted");
    assert!(!node.log().contains("follows the streams instead"), "{}", node.log());
    assert_eq!(maps_region(app), (true, false), "shared memory is mapped, and not writable");
    assert_eq!(maps_region(node.pid_of("discovery").unwrap()), (true, true), "its service writes it");
    assert!(!maps_region(node.pid_of("hub").unwrap()).0, "an app without the capability has none");
}

#[test]
fn without_shared_memory_or_with_a_full_one_the_app_sees_the_same_by_streams() {
    for bytes in [0, 65_536] {
        let bed = bed();
        let node = start(&bed, &format!("{SERVICES}\n[network.discovery]\nshared_bytes = {bytes}"));
        // More ports than 64 KiB have room for.
        let network = node.network("linear,40", &Default::default());
        node.wait("the app follows the streams", |node| node.log().contains("follows the streams instead"));
        node.wait("all links", |node| printed(node).starts_with("40 switches, 78 links"));
        network.change(Change::Link { link: "s1-s2".to_owned(), up: false }).unwrap();
        node.wait("the failed link", |node| printed(node).starts_with("40 switches, 76 links"));
    }
}
