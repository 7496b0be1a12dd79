//! The example on a whole node with an emulated network.
//!
//! The node's program is the one in Cargo's target folder: `cargo build -p burnet`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use std::path::Path;
use std::time::Duration;
use test_bed::Bed;

/// How long one ping waits. The first ones are lost, while no intent is installed.
const PING: Duration = Duration::from_secs(1);

#[test]
fn each_host_reaches_the_server() {
    let burnet = Path::new(env!("CARGO_BIN_EXE_to-server")).with_file_name("burnet");
    assert!(burnet.is_file(), "{} is missing: cargo build -p burnet", burnet.display());
    let bed = Bed::new(burnet);
    let program = bed.path("to-server");
    std::fs::copy(env!("CARGO_BIN_EXE_to-server"), &program).unwrap();
    bed.file("to-server.toml", include_str!("../app.toml"));
    let app = format!(
        "[app.to-server]\npath = '{}'\n[app.to-server.settings]\nserver = '10.0.0.4'",
        program.display()
    );
    let services = "services = ['discovery', 'hosts', 'flows', 'paths']";
    let node = bed
        .node()
        .config(&format!("[network]\n{services}\n[app.proxy-arp]\n{app}\n"))
        .log("info")
        .start_ready();
    let network = node.network("ring,4", &Default::default());
    let reaches =
        |from: &str, to: &str| network.begin_ping(from, to, PING).unwrap().recv().unwrap().is_complete();
    for from in ["h1", "h2", "h3"] {
        // A host is known when it has sent a frame, and the server sends none by itself.
        node.wait("the host reaches the server", |_| reaches("h4", from) || reaches(from, "h4"));
    }
    assert!(!reaches("h1", "h2"), "no intent connects other hosts");
    let printed = bed.run(&["app", "logs", "to-server"]).stdout;
    let printed = String::from_utf8_lossy(&printed);
    assert!(printed.contains("00:00:00:00:00:01: installed"), "{printed}");
}
