//! `burnet explain` on a whole node with emulated switches: what it says is what happens to the packets.

use emulator::{SwitchOptions, Topology};
use std::net::TcpListener;
use test_bed::{Bed, Node, PATIENCE};

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

/// A node with all services of the network, and apps.
fn node(bed: &Bed, apps: &str) -> Node {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!("[network.northbound]\nlisten = ['{address}']\n{apps}\n");
    bed.node().config(&config).log("info").start_ready()
}

/// What a command prints, or its error.
fn run(bed: &Bed, words: &[&str]) -> Result<String, String> {
    let done = bed.run(words);
    match done.status.success() {
        true => Ok(String::from_utf8(done.stdout).unwrap()),
        false => Err(String::from_utf8(done.stderr).unwrap()),
    }
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}

#[test]
fn the_way_of_an_intent_is_told_switch_by_switch() {
    let bed = bed();
    let node = node(&bed, "");
    let network = node.network("linear,3", &SwitchOptions::default());
    let _answers = network.begin_ping_all(PATIENCE);
    node.wait("all hosts and links are known", |_| {
        let hosts = run(&bed, &["hosts"]).unwrap_or_default();
        let links = run(&bed, &["links"]).unwrap_or_default();
        (1..=3).all(|host| hosts.contains(&format!("10.0.0.{host}"))) && links.lines().count() >= 5
    });
    let hosts = run(&bed, &["hosts", "--json"]).unwrap();
    let hosts: serde_json::Value = serde_json::from_str(&hosts).unwrap();
    let of = |address: &str| {
        let found = hosts.as_array().unwrap().iter().find(|it| it["addresses"].to_string().contains(address));
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (one, three) = (of("10.0.0.1"), of("10.0.0.3"));
    let added = run(&bed, &["intents", "add", &one, &three, "--name", "web", "--wait"]).unwrap();
    contains(&added, &["installed"]);
    let told = run(&bed, &["explain", "10.0.0.1", "10.0.0.3"]).unwrap();
    contains(
        &told,
        &[
            "10.0.0.1 -> 10.0.0.3: delivered",
            "10.0.0.3 -> 10.0.0.1: delivered",
            "of:0000000000000002 in by port",
            "owner: paths, intent 1",
            &format!("to {three}"),
        ],
    );
    let refused = run(&bed, &["explain", "10.0.0.1", "10.0.0.99"]).unwrap_err();
    contains(&refused, &["no host 10.0.0.99"]);
    // A packet that no intent wants goes to the app, by the kernel's table-miss rule.
    let told = run(&bed, &["explain", "--at", "1/1", "eth_dst=00:00:00:00:00:99,eth_type=0x1234"]).unwrap();
    contains(&told, &["punted", "owner: kernel"]);
    // No other way leads there.
    let link = Topology::linear(3, 1).unwrap().links_between("s1", "s2")[0];
    network.set_link(link, false);
    node.wait("the packet is explained without the link", |_| {
        run(&bed, &["explain", "10.0.0.1", "10.0.0.3", "--one-way"])
            .is_ok_and(|told| !told.contains(": delivered"))
    });
}

#[test]
fn a_counter_that_moves_is_shown() {
    let bed = bed();
    let node = node(&bed, "[app.learning-switch]");
    let network = node.network("linear,2", &SwitchOptions::default());
    node.wait("the app has added its rules", |_| {
        let _ = network.begin_ping_all(PATIENCE);
        let told = run(&bed, &["explain", "10.0.0.1", "10.0.0.2", "icmp"]).unwrap_or_default();
        told.contains(": delivered") && told.contains("owner: learning-switch")
    });
    let told = run(&bed, &["explain", "10.0.0.1", "10.0.0.2", "icmp", "--watch", "1"]).unwrap();
    contains(&told, &["of them in the last 1 s", "packet: icmp"]);
}
