//! The view in shared memory on a whole node, under attack: an app in its zone can read what it may, and write nothing.

use test_bed::{Bed, Node};

fn node(bed: &Bed, capabilities: &str) -> Node {
    let config = format!(
        "[network]\nservices = ['discovery', 'hosts']\n[app.thief]\npath = '{}'\n[app.thief.capabilities]\n{capabilities}",
        bed.example("region_thief").display()
    );
    bed.node().config(&config).log("info").start()
}

#[test]
fn an_app_that_may_read_shared_memory_can_neither_write_it_nor_stop_its_writer() {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let node = node(&bed, "'view.read' = true\n'host.read' = true\n");
    let network = node.network("linear,2", &Default::default());
    for service in ["discovery", "hosts"] {
        node.wait_for_line(&format!("done with {service}"));
    }
    let log = node.log();
    assert!(log.contains("before any message it has no region"), "{log}");
    assert!(log.contains("it can be read"), "{log}");
    assert!(!log.contains("it has no port to try it with"), "{log}");
    assert!(!log.contains("it worked") && !log.contains("IT IS MAPPED"), "{log}");
    let denied = |what: &str| log.matches(&format!("tried to {what}: denied")).count();
    assert!(denied("map it writable") >= 2 && denied("write through its memory file") == 2, "{log}");
    // An ordinary user's app owns the memory and opens it again. It gains nothing.
    if log.contains("it is open again") {
        assert_eq!(denied("map it writable again") + denied("write to it again"), 4, "{log}");
    }
    // The service goes on, in the same process.
    drop(network);
    node.wait("the service runs", |node| node.pid_of("discovery").is_some());
    assert!(!node.log().contains("discovery ended"), "{}", node.log());
}

#[test]
fn an_app_without_the_capability_gets_no_shared_memory() {
    for (capabilities, got, not_got) in [
        ("'packet.in' = true\n", "before any message", "discovery"),
        ("'view.read' = true\n", "done with discovery", "hosts"),
    ] {
        let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
        let node = node(&bed, capabilities);
        let _network = node.network("linear,2", &Default::default());
        node.wait_for_line(got);
        node.wait("both services run", |node| {
            ["discovery", "hosts"].iter().all(|service| node.pid_of(service).is_some())
        });
        // The monitor hands out regions in each turn, at least twice a second.
        std::thread::sleep(std::time::Duration::from_secs(2));
        assert!(!node.log().contains(&format!("got the region of {not_got}")), "{}", node.log());
    }
}
