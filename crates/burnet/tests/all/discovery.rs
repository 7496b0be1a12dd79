//! A whole node with the service `discovery`: does an app receive the links of emulated switches and their failures?

use emulator::{Change, LinkQuality, SwitchOptions};
use test_bed::{Bed, Node, kill};

/// A short interval, so that the test does not take long.
const INTERVAL_MS: u64 = 500;

fn start(bed: &Bed) -> Node {
    let config = format!(
        "[network]\nservices = ['discovery']\n[network.discovery]\nprobe_interval_ms = {INTERVAL_MS}\n\
         [app.watcher]\npath = '{}'\n[app.watcher.capabilities]\n'view.read' = true\n'packet.out' = true\n",
        bed.example("link_watcher").display()
    );
    bed.node().config(&config).log("info").start_ready()
}

/// Waits until the last line of the app about links says this number.
fn wait_links(node: &Node, up: usize) {
    let line = format!("links up: {up}.");
    node.wait(&line, |node| {
        node.log().rfind("links up:").is_some_and(|at| node.log()[at..].starts_with(&line))
    });
}

fn quality(loss_ppm: u32) -> Change {
    Change::Quality { link: "s1-s2".to_owned(), quality: LinkQuality { loss_ppm, ..LinkQuality::default() } }
}

#[test]
fn links_are_found_and_go_down_by_port_status_and_by_silence_and_a_forged_probe_makes_none() {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let node = start(&bed);
    let network = node.network("linear,4", &SwitchOptions::default());
    wait_links(&node, 6);
    let link = |up| Change::Link { link: "s2-s3".to_owned(), up };
    network.change(link(false)).unwrap();
    wait_links(&node, 4);
    network.change(link(true)).unwrap();
    wait_links(&node, 6);
    network.change(quality(1_000_000)).unwrap();
    wait_links(&node, 4);
    network.change(quality(0)).unwrap();
    wait_links(&node, 6);
    node.wait_for_line("sends a forged probe");
    node.wait_for_line("is refused, and makes no link: it is unsigned and names of:0000000000000001/1");
    // The service is restarted, and finds the same again. Its probes of before are no attack.
    kill(node.pid_of("discovery").unwrap());
    node.wait("the service is there again", |node| node.pid_of("discovery").is_some());
    wait_links(&node, 6);
    assert!(!node.log().contains("it is forged") && !node.log().contains("it is replayed"), "{}", node.log());
}
