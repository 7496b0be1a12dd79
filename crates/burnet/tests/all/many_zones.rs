//! A node with more apps than fit into one word of a set of zones, each in a process of its own.

use emulator::SwitchOptions;
use std::fmt::Write as _;
use test_bed::{Bed, PATIENCE};

/// With the node's services these are more than 63 zones.
const APPS: usize = 80;

#[test]
fn eighty_apps_in_processes_of_their_own_hear_one_switch_and_one_of_them_ends_alone() {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let hub = bed.example("libshared_hub.so");
    let mut config = String::new();
    for number in 1..=APPS {
        let limits = "memory_bytes = 33554432";
        let _ = writeln!(
            config,
            "[app.hub{number}]\npath = '{}'\n[app.hub{number}.limits]\n{limits}",
            hub.display()
        );
    }
    let node = bed.node().args(["--grant-all"]).config(&config).start_ready();
    let apps = node.apps();
    let of_operator: Vec<_> = apps.iter().filter(|app| app.status.app.starts_with("hub")).collect();
    assert_eq!(of_operator.len(), APPS);
    assert!(of_operator.iter().all(|app| app.status.pid.is_some()));
    assert!(of_operator.iter().map(|app| app.status.zone).max() >= Some(80));
    let network = node.network("single,2", &SwitchOptions::default());
    let report = network.ping_all(PATIENCE);
    assert!(report.is_complete(), "{report}");
    node.wait("every app has heard of the switch", |node| {
        node.apps().iter().filter(|app| app.status.app.starts_with("hub")).all(|app| app.events > 0)
    });
    let last = format!("hub{APPS}");
    test_bed::kill(node.pid_of(&last).unwrap());
    node.wait("it is started again", |node| {
        let app = node.app(&last);
        app.status.restarts == 1 && app.commands > 0
    });
    assert_eq!(node.app("hub1").status.restarts, 0);
}
