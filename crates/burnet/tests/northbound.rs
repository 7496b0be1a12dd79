//! The REST interface on a whole node: requests, attacks, streams, and the command line over it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use test_bed::{Bed, Node, PATIENCE, kill};

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

/// An address that was free a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A node with the services of the network, and where it answers.
fn node(bed: &Bed, more: &str) -> (Node, SocketAddr) {
    let address = free();
    let node = bed
        .node()
        .config(&format!("[network.northbound]\nlisten = ['{address}']\n{more}"))
        .log("info")
        .start();
    node.wait("the service is there", |node| node.pid_of("northbound").is_some());
    (node, address)
}

/// What comes back for these bytes, until the connection ends.
fn exchange(address: SocketAddr, request: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    // The node may have answered and closed before all of it was sent.
    let _ = connection.write_all(request.as_bytes());
    let mut answer = Vec::new();
    match connection.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => String::from_utf8_lossy(&answer).into_owned(),
    }
}

fn request(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n");
    let answer = exchange(address, &(head + body));
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|it| it.parse().ok())
        .unwrap_or_else(|| panic!("{path}: {answer:?}"));
    (status, answer)
}

fn get(address: SocketAddr, path: &str) -> (u16, String) {
    request(address, "GET", path, "Host: localhost\r\n", "")
}

#[test]
fn what_attackers_send_is_refused_and_the_service_stays() {
    let bed = bed();
    let (node, address) = node(&bed, "");
    let pid = node.pid_of("northbound");
    let check = |method: &str, path: &str, headers: &str, body: &str, status: u16, part: &str| {
        let (got, answer) = request(address, method, path, headers, body);
        assert_eq!(got, status, "{method} {path} {headers:?}: {answer}");
        assert!(answer.contains(part), "{answer}");
    };
    let api = "/api/v1/switches";
    let json = "Host: localhost\r\nContent-Type: application/json\r\n";
    check("GET", api, "Host: evil.example\r\n", "", 421, "wrong-host");
    check("GET", api, "", "", 421, "wrong-host");
    check("GET", api, "Host: localhost\r\nOrigin: http://evil.example\r\n", "", 403, "foreign-origin");
    check("GET", "/", "Host: localhost\r\nOrigin: null\r\n", "", 403, "foreign-origin");
    check(
        "POST",
        "/api/v1/intents",
        &format!("{json}Sec-Fetch-Site: cross-site\r\n"),
        "{}",
        403,
        "foreign-origin",
    );
    check(
        "POST",
        "/api/v1/intents",
        "Host: localhost\r\nContent-Type: text/plain\r\n",
        "{}",
        415,
        "not-json",
    );
    check("POST", "/api/v1/intents", json, "{", 400, "bad-request");
    check(
        "POST",
        "/api/v1/intents",
        json,
        r#"{"type":"point_to_point","from":"1/1"}"#,
        422,
        "\"field\":\"to\"",
    );
    check("GET", api, "Host: localhost\r\nAuthorization: Bearer x\r\n", "", 401, "wrong-token");
    check("GET", "/../../../etc/passwd", "Host: localhost\r\n", "", 400, "bad-request");
    check("GET", "/%2e%2e/%2e%2e/etc/passwd", "Host: localhost\r\n", "", 400, "bad-request");
    check("GET", "/assets/..%2f..%2fetc%2fpasswd", "Host: localhost\r\n", "", 404, "not-found");
    check("TRACE", api, "Host: localhost\r\n", "", 405, "bad-method");
    let long = format!("Host: localhost\r\nX: {}\r\n", "x".repeat(32 << 10));
    check("GET", api, &long, "", 431, "");
    let many = format!("Host: localhost\r\n{}", "X: y\r\n".repeat(100));
    check("GET", api, &many, "", 431, "");
    assert_eq!(get(address, api).0, 200);
    assert_eq!(node.pid_of("northbound"), pid, "it has not restarted");
}

#[test]
fn a_gigabyte_is_refused_before_it_is_sent() {
    let bed = bed();
    let (_node, address) = node(&bed, "");
    let head = "POST /api/v1/intents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n";
    let answer = exchange(address, head);
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("too-large"), "{answer}");
    // Without a length, it is refused when it is too long.
    let head = "POST /api/v1/intents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = exchange(address, &format!("{head}200000\r\n{}", " ".repeat(0x20_0000)));
    assert!(answer.starts_with("HTTP/1.1 413") || answer.is_empty(), "{answer}");
    assert_eq!(get(address, "/api/v1").0, 200);
}

#[test]
fn a_client_that_sends_slowly_is_disconnected() {
    let bed = bed();
    let (_node, address) = node(&bed, "");
    let start = Instant::now();
    let mut slow = TcpStream::connect(address).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    slow.write_all(b"GET /api/v1 HTTP/1.1\r\nHost: local").unwrap();
    let mut idle = TcpStream::connect(address).unwrap();
    idle.set_read_timeout(Some(PATIENCE)).unwrap();
    idle.write_all(b"GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    for connection in [&mut slow, &mut idle] {
        let mut rest = Vec::new();
        // It ends: cleanly, or by a reset.
        let _ = connection.read_to_end(&mut rest);
    }
    assert!(start.elapsed() < PATIENCE, "the connections stayed open");
    assert_eq!(get(address, "/api/v1").0, 200);
}

/// The SHA-256 of `secret`.
const TOKENS: &str = "[network.northbound.tokens]
a = { role = 'viewer', sha256 = '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b' }";

#[test]
fn a_token_permits_what_its_role_does_and_the_operator_needs_none() {
    let bed = bed();
    let (node, address) = node(&bed, TOKENS);
    let with = |method: &str, token: &str, body: &str| {
        let headers = format!("Host: localhost\r\nContent-Type: application/json\r\n{token}");
        request(address, method, "/api/v1/intents", &headers, body).0
    };
    assert_eq!(with("GET", "", ""), 401);
    assert_eq!(with("GET", "Authorization: Bearer secret\r\n", ""), 200);
    assert_eq!(with("POST", "Authorization: Bearer secret\r\n", "{}"), 403);
    assert_eq!(get(address, "/").0, 200, "the page itself is no secret");
    let listed = bed.run(&["ports", "--json"]);
    assert!(listed.status.success(), "{listed:?}");
    drop(node);
}

#[test]
fn a_stream_begins_with_a_snapshot_and_survives_no_restart() {
    let bed = bed();
    let (node, address) = node(&bed, "");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    write!(stream, "GET /api/v1/stream?kinds=link HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("\"event\":\"complete\"") {
        let length = stream.read(&mut buffer).unwrap();
        assert_ne!(length, 0, "{text}");
        text += &String::from_utf8_lossy(&buffer[..length]);
    }
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    assert!(text.find("event: begin").unwrap() < text.find("event: complete").unwrap(), "{text}");
    let pid = node.pid_of("northbound").unwrap();
    kill(pid);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A read that times out is no end.
    let ended = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(why) => break why.kind() == std::io::ErrorKind::ConnectionReset,
        }
    };
    assert!(ended, "the stream goes on after its service was killed");
    node.wait("it runs again", |node| node.pid_of("northbound").is_some_and(|it| it != pid));
    assert_eq!(get(address, "/api/v1/node").0, 200);
}

#[test]
fn a_websocket_answers_the_handshake_of_the_standard() {
    let bed = bed();
    let (_node, address) = node(&bed, "");
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // The key and its answer are those of RFC 6455, 1.3.
    let head = "GET /api/v1/ws?kinds=link HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                Sec-WebSocket-Protocol: burnet.v1, other\r\n\r\n";
    socket.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("\"event\":\"complete\"") {
        let length = socket.read(&mut buffer).unwrap();
        assert_ne!(length, 0, "{text}");
        text += &String::from_utf8_lossy(&buffer[..length]);
    }
    assert!(text.starts_with("HTTP/1.1 101"), "{text}");
    assert!(text.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{text}");
    assert!(text.contains("sec-websocket-protocol: burnet.v1"), "{text}");
    assert_eq!(get(address, "/api/v1/ws").0, 426, "without the headers of a WebSocket");
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    let bed = bed();
    let port = free().port();
    let node =
        bed.node().config(&format!("[network.northbound]\nlisten = ['0.0.0.0:{port}']")).log("info").start();
    node.wait_for_line("other machines can reach this address, and there is no token");
}

#[test]
fn a_node_without_the_network_says_what_to_do() {
    let bed = bed();
    let _node = bed.node().app("hub").start_ready();
    let refused = bed.run(&["links"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("burnet run --network"), "{said}");
    assert!(bed.run(&["switches"]).status.success(), "that one needs no view");
}
