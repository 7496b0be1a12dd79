//! The service on a whole node: a browser's requests, and what happens to them when the service is killed.
//!
//! The node's program is the one in Cargo's target folder: `cargo build -p burnet`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use test_bed::{Bed, Node, PATIENCE, kill};

fn bed() -> Bed {
    let burnet = Path::new(env!("CARGO_BIN_EXE_service-web")).with_file_name("burnet");
    assert!(burnet.is_file(), "{} is missing: cargo build -p burnet", burnet.display());
    Bed::new(burnet)
}

/// The service's program with its manifest, which requests this address.
fn service(bed: &Bed, address: &str) -> PathBuf {
    let program = bed.path("service-web");
    std::fs::copy(env!("CARGO_BIN_EXE_service-web"), &program).unwrap();
    bed.file("service-web.toml", &include_str!("../app.toml").replace("127.0.0.1:8181", address));
    program
}

/// An address that was free a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The answer to a request. It waits as long as a browser would.
fn get(address: SocketAddr, path: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    answer
}

fn is_there(node: &Node) -> bool {
    node.pid_of("service-web").is_some()
}

#[test]
fn a_request_is_answered_also_while_the_service_restarts() {
    let (bed, address) = (bed(), free());
    let program = service(&bed, &address.to_string());
    let node = bed.node().app(program.to_str().unwrap()).log("info").start();
    node.wait("the service is there", is_there);
    assert!(get(address, "/").ends_with("/switches\n"));
    let _network = node.network("single,3", &Default::default());
    node.wait("the switch is shown", |_| {
        get(address, "/switches").contains("of:0000000000000001 with 3 ports")
    });
    for _ in 0..2 {
        let pid = node.pid_of("service-web").unwrap();
        kill(pid);
        // A process that is about to end may still accept a connection.
        node.wait("the service has ended", |_| !Path::new(&format!("/proc/{pid}")).exists());
        // The connection waits in the socket that the node keeps open.
        assert!(get(address, "/").ends_with("/switches\n"));
    }
}

/// Connections that stay open: more than the service may have descriptors, and more than wait in the socket.
const FLOOD: usize = 600;

#[test]
fn a_flood_of_connections_stops_neither_the_node_nor_other_apps_and_ends_with_its_sender() {
    let (bed, address) = (bed(), free());
    let program = service(&bed, &address.to_string());
    let node = bed.node().app("hub").app(program.to_str().unwrap()).log("info").start();
    node.wait("the service is there", is_there);
    let pids = ["hub", "service-web"].map(|app| node.pid_of(app));
    let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(10)).ok();
    let flood: Vec<TcpStream> = (0..FLOOD).filter_map(connect).collect();
    assert!(flood.len() > 128, "only {} connections were made", flood.len());
    assert_eq!(["hub", "service-web"].map(|app| node.pid_of(app)), pids);
    drop(flood);
    assert!(get(address, "/").ends_with("/switches\n"));
    assert_eq!(["hub", "service-web"].map(|app| node.pid_of(app)), pids);
}

#[test]
fn an_address_that_others_can_reach_needs_the_operator() {
    let bed = bed();
    let program = service(&bed, "0.0.0.0:8181");
    let run = bed.run(&["run", "--listen", "127.0.0.1:0", "--app", program.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(
        said.contains(
            "the app service-web requests to listen on 0.0.0.0:8181, and other machines can reach it"
        ),
        "{said}"
    );
}

#[test]
fn an_address_in_use_is_the_reason_why_the_service_does_not_start() {
    let (bed, theirs) = (bed(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = theirs.local_addr().unwrap();
    let program = service(&bed, &address.to_string());
    let node = bed.node().app(program.to_str().unwrap()).log("info").start();
    node.wait_for_line(&format!("it cannot listen on {address}: another program uses it"));
    drop(theirs);
    node.wait("the service is there", is_there);
    assert!(get(address, "/").ends_with("/switches\n"));
}
