//! The REST interface on a whole node: requests, attacks, streams, and the command line over it.

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
fn long_bodies_of_others_take_no_room_of_the_operator() {
    const LONG: usize = 1 << 20;
    let bed = bed();
    let (node, address) = node(&bed, "");
    node.wait_ready();
    let head = |length: usize| {
        format!(
            "PUT /api/v1/rule-sets/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    // As many as have room, and more. None of them sends its body.
    let others: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut other = TcpStream::connect(address).unwrap();
            other.write_all(head(LONG).as_bytes()).unwrap();
            other
        })
        .collect();
    let socket = bed.socket().with_extension("listen").join("northbound");
    let mut operator = std::os::unix::net::UnixStream::connect(socket).unwrap();
    operator.set_read_timeout(Some(PATIENCE)).unwrap();
    // A set without rules, and many spaces.
    let body = format!("{{\"rules\":[]{}}}", " ".repeat(64 << 10));
    operator.write_all((head(body.len()) + &body).as_bytes()).unwrap();
    let mut answer = String::new();
    operator.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    for mut other in others {
        other.set_nonblocking(true).unwrap();
        let still_waits = other.read(&mut [0]).is_err_and(|why| why.kind() == ErrorKind::WouldBlock);
        assert!(still_waits, "the operator was answered only after the others");
    }
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
    let config = bed.file("open.toml", &format!("[network.northbound]\nlisten = ['0.0.0.0:{port}']"));
    let refused = bed.run(&["run", "--config", config.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("[network.northbound] listen: other machines can reach this address"), "{said}");
}

/// Asks with the token `secret`, if the node has tokens, and returns the JSON.
fn json(address: SocketAddr, path: &str) -> serde_json::Value {
    let (mut status, mut answer) = get(address, path);
    if status == 401 {
        (status, answer) = request(address, "GET", path, &format!("Host: localhost\r\n{ADMIN}"), "");
    }
    assert_eq!(status, 200, "{path}: {answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

const ADMIN: &str = "Authorization: Bearer secret\r\n";

fn admin(more: &str) -> String {
    format!("{more}\n{}", TOKENS.replace("viewer", "admin"))
}

/// A node with the app hub and an audit log.
fn operated(bed: &Bed, more: &str) -> (Node, SocketAddr) {
    let address = free();
    let config = format!("[network.northbound]\nlisten = ['{address}']\n{}", admin(more));
    let state = bed.state();
    let node =
        bed.node().config(&config).app("hub").args([std::path::Path::new("--state"), &state]).start_ready();
    node.wait("the service is there", |node| node.pid_of("northbound").is_some());
    (node, address)
}

#[test]
fn an_app_is_stopped_and_restarted_over_rest_if_the_operator_permits_it() {
    let bed = bed();
    let (node, address) = operated(&bed, "may_change_apps = true");
    let order = |app: &str, verb: &str| {
        let path = format!("/api/v1/apps/{app}/{verb}");
        request(address, "POST", &path, &format!("Host: localhost\r\n{ADMIN}"), "").0
    };
    node.wait("the apps are reported", |_| json(address, "/api/v1/apps")["total"].as_u64() > Some(5));
    assert_eq!(order("nobody", "stop"), 404);
    assert_eq!(order("flows", "stop"), 409);
    assert_eq!(order("hub", "stop"), 202);
    node.wait("it is stopped", |_| json(address, "/api/v1/apps/hub")["state"] == "stopped");
    assert_eq!(order("hub", "start"), 202);
    node.wait("it runs", |_| json(address, "/api/v1/apps/hub")["state"] == "running");
    // The log is written by another service, which may take a moment.
    let asked = |_: &Node| {
        let page = json(address, "/api/v1/audit?what=asked&app=hub");
        let texts: Vec<_> = page["items"].as_array().unwrap().iter().map(|it| it["text"].clone()).collect();
        texts == ["start (over REST, token a)", "stop (over REST, token a)"]
    };
    node.wait("the audit log has both, the newest first", asked);
    let pid = node.pid_of("hub").unwrap();
    kill(pid);
    let failed = |_: &Node| {
        let page = json(address, "/api/v1/incidents?app=hub");
        page["items"][0]["what"] == "app_ended" && page["items"][0]["source"] == "monitor"
    };
    node.wait("its end is an incident", failed);
    let incident = json(address, "/api/v1/incidents?app=hub")["items"][0]["id"].as_str().unwrap().to_owned();
    let evidence = json(address, &format!("/api/v1/incidents/{incident}/evidence"));
    assert_eq!((&evidence["id"], &evidence["signal"]), (&incident.as_str().into(), &9.into()), "{evidence}");
    let log = evidence["log"].as_array().unwrap();
    assert!(log.iter().any(|line| line["line"].as_str().unwrap().contains("hub")), "{evidence}");
}

#[test]
fn without_the_operators_word_no_app_is_changed_over_rest() {
    let bed = bed();
    let (node, address) = operated(&bed, "");
    node.wait("the apps are reported", |_| json(address, "/api/v1/apps")["total"].as_u64() > Some(5));
    let headers = format!("Host: localhost\r\n{ADMIN}");
    let (status, answer) = request(address, "POST", "/api/v1/apps/hub/stop", &headers, "");
    assert_eq!(status, 403, "{answer}");
    assert!(answer.contains("may_change_apps = true"), "{answer}");
    assert!(node.pid_of("hub").is_some());
}

#[test]
fn programs_for_ryu_and_onos_add_and_delete_rules_in_a_switch() {
    let bed = bed();
    let (node, address) = node(&bed, "");
    node.wait_ready();
    let _network = node.network("single,2", &emulator::SwitchOptions::default());
    let ask = |method: &str, path: &str, headers: &str, body: &str| {
        let (status, answer) = request(address, method, path, &format!("Host: localhost\r\n{headers}"), body);
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    };
    let shows = |path: &str, part: &str| ask("GET", path, "", "").1.contains(part);
    node.wait("the switch is known", |_| shows("/stats/switches", "[1]"));
    // As curl sends it.
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let entry = r#"{"dpid":1,"priority":777,"match":{"in_port":1},"actions":[{"type":"OUTPUT","port":2}]}"#;
    assert_eq!(ask("POST", "/stats/flowentry/add", form, entry).0, 200);
    node.wait("the switch has the rule", |_| shows("/stats/flow/1", "\"priority\":777"));
    assert!(shows("/stats/flow/1", "OUTPUT:2") && shows("/onos/v1/flows/of:1", "\"priority\":777"));
    for path in [
        "aggregateflow",
        "table",
        "port",
        "portdesc",
        "queue",
        "queueconfig",
        "role",
        "group",
        "groupdesc",
        "groupfeatures",
        "meter",
        "meterconfig",
        "meterfeatures",
    ] {
        let (status, answer) = ask("GET", &format!("/stats/{path}/1"), "", "");
        assert!(status == 200 && answer.starts_with("{\"1\":["), "{path}: {status} {answer}");
    }
    assert_eq!(ask("POST", "/stats/flowentry/delete", form, r#"{"dpid":1,"match":{"in_port":1}}"#).0, 200);
    node.wait("the switch has it no more", |_| !shows("/stats/flow/1", "\"priority\":777"));
    let port = |config: u32| format!(r#"{{"dpid":1,"port_no":1,"config":{config},"mask":1}}"#);
    for config in [1, 0] {
        assert_eq!(ask("POST", "/stats/portdesc/modify", form, &port(config)).0, 200);
        node.wait("the port has changed", |_| {
            let (_, shown) = ask("GET", "/stats/portdesc/1", "", "");
            let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
            let ports = shown["1"].as_array().unwrap();
            ports.iter().any(|it| it["port_no"] == 1 && it["config"] == config)
        });
    }
    let json = "Content-Type: application/json\r\n";
    let flow = r#"{"priority":888,"isPermanent":true,"treatment":{"instructions":[{"type":"OUTPUT","port":"1"}]},
                   "selector":{"criteria":[{"type":"IN_PORT","port":"2"}]}}"#;
    let (status, answer) =
        request(address, "POST", "/onos/v1/flows/of:1", &format!("Host: localhost\r\n{json}"), flow);
    assert_eq!(status, 201, "{answer}");
    let location = answer.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().to_owned();
    node.wait("the switch has it", |_| shows("/stats/flow/1", "\"priority\":888"));
    assert_eq!(ask("DELETE", &location, "", "").0, 204);
    node.wait("and has it no more", |_| !shows("/stats/flow/1", "\"priority\":888"));
}

#[test]
fn a_switch_gets_a_name() {
    let bed = bed();
    let address = free();
    let state = bed.state();
    let config = format!("[network.northbound]\nlisten = ['{address}']");
    let node = bed.node().config(&config).args([std::path::Path::new("--state"), &state]).start_ready();
    let _network = node.network("single,2", &emulator::SwitchOptions::default());
    node.wait("the switch is known", |_| get(address, "/api/v1/switches/1").0 == 200);
    node.wait("the notes are loaded", |_| bed.run(&["annotate", "of:1", "name=Vienna"]).status.success());
    assert!(get(address, "/api/v1/switches/1").1.contains("\"name\":\"Vienna\""));
    let said = bed.run(&["annotate", "of:1", "name="]);
    assert!(said.status.success() && said.stdout.is_empty(), "{said:?}");
    assert!(!get(address, "/api/v1/switches/1").1.contains("Vienna"));
}

/// The program that tries the interface by its description, if it is installed.
fn schemathesis() -> Option<std::path::PathBuf> {
    let python = std::env::var_os("BURNET_OTHERS_PYTHON")?;
    let program = std::path::Path::new(&python).with_file_name("schemathesis");
    program.exists().then_some(program)
}

#[test]
fn schemathesis_finds_nothing() {
    let Some(program) = schemathesis() else {
        eprintln!("left out: schemathesis_finds_nothing: schemathesis is not installed");
        return;
    };
    let bed = bed();
    let address = free();
    let state = bed.state();
    let config = format!("[network.northbound]\nlisten = ['{address}']");
    let node = bed.node().config(&config).args([std::path::Path::new("--state"), &state]).start_ready();
    let _network = node.network("ring,4", &emulator::SwitchOptions::default());
    node.wait("the links are known", |_| json(address, "/api/v1/links?state=up")["total"] == 8);
    // The conditions between members, which a description cannot say, are in a program beside this one.
    let conditions = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemathesis/conditions.py");
    let mut command = std::process::Command::new(&program);
    command.arg("run").arg(format!("http://{address}/api/v1/openapi.json")).current_dir(bed.folder());
    command.env("SCHEMATHESIS_HOOKS", conditions).env("PYTHONDONTWRITEBYTECODE", "1");
    // Streams do not end.
    command.args(["--exclude-path", "/api/v1/stream", "--exclude-path", "/api/v1/ws"]);
    command.args(["--phases", "coverage,fuzzing", "--max-examples", "3", "--seed", "1", "--no-color"]);
    command.args(["--generation-database", "none", "--request-timeout", "20", "--continue-on-failure"]);
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}\n{}", String::from_utf8_lossy(&ended.stderr));
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

#[test]
fn a_node_whose_rest_port_is_in_use_runs_on_and_has_the_port_when_it_is_free() {
    let bed = bed();
    let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = theirs.local_addr().unwrap();
    let slice = "[slice.blue]\ncontrollers = ['127.0.0.1:9']\nisolation = 'vlan'\nown_ports = ['s1:1']\n";
    let text = format!("[network.northbound]\nlisten = ['{address}']\n{slice}");
    let node = bed.node().config(&text).log("info").start();
    let why = format!(
        "it cannot listen on {address}: another program uses it: stop that program, or change listen in [network.northbound]; it runs on without this \
         address, and tries again"
    );
    let status = |node: &Node| node.app("northbound").status;
    node.wait("the service runs without the address", |node| status(node).note.as_ref() == Some(&why));
    node.wait_for_line(&format!("service northbound: {why}"));
    // The operator still has the network view, by the socket file.
    node.wait("the command line reaches it", |_| bed.run(&["links"]).status.success());
    node.wait("the slice runs", |node| node.pid_of("slice.blue").is_some());
    assert_eq!((status(&node).restarts, node.view().safe_mode), (0, None));
    let listed = String::from_utf8(bed.run(&["app", "list"]).stdout).unwrap();
    assert!(listed.contains(&format!("northbound: {why}\n")), "{listed}");
    let slice = node.pid_of("slice.blue");
    drop(theirs);
    node.wait("the address answers", |_| {
        TcpStream::connect(address).is_ok() && get(address, "/api/v1/node").0 == 200
    });
    assert_eq!((status(&node).note, node.pid_of("slice.blue")), (None, slice));
}
