//! A whole node with an emulated network: hosts are learned, and a configured host is there after a restart.

use emulator::SwitchOptions;
use rustix::process::Signal;
use test_bed::{Bed, Launch, PATIENCE};

const GRANTED: &str = "'view.read' = true\n'host.read' = true\n'host.write' = true\n'packet.out' = true\n'subscribe' = ['hosts']";

/// A node with the services, an app that forwards, and one that logs what the service of hosts says.
fn node(bed: &Bed, settings: &str) -> Launch {
    let watcher = bed.example("host_watcher");
    let config = format!(
        "[network]\nservices = ['discovery', 'hosts']\n[app.learning-switch]\n[app.watcher]\npath = '{}'\n[app.watcher.capabilities]\n{GRANTED}\n\
         [app.watcher.settings]\n{settings}\n",
        watcher.display()
    );
    bed.node().config(&config).log("info")
}

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

#[test]
fn hosts_are_learned_with_their_addresses() {
    let bed = bed();
    let node = node(&bed, "").start_ready();
    let network = node.network("linear,2,2", &SwitchOptions::default());
    let _answers = network.begin_ping_all(PATIENCE);
    node.wait("all hosts are known with their addresses", |node| {
        (1..=4).all(|host| node.log().contains(&format!("with [10.0.0.{host}")))
    });
}

#[test]
fn a_configured_host_is_there_after_a_restart() {
    let bed = bed();
    let add = r#"ask = '{"op":"add","id":"00:00:00:00:00:99","at":"1/1","addresses":["10.9.9.9"]}'"#;
    let mut first = node(&bed, add).start_ready();
    first.wait_for_line("00:00:00:00:00:99 at of:0000000000000001/1 with [10.9.9.9]");
    first.signal(Signal::TERM);
    first.wait_for_end();
    let second = node(&bed, r#"ask = '{"op":"get","id":"00:00:00:00:00:99"}'"#).start_ready();
    second.wait("it is there again", |node| {
        node.log().matches("00:00:00:00:00:99 at of:0000000000000001/1 with [10.9.9.9]").count() == 2
    });
}
