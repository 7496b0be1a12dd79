//! `burnet bench` as an operator runs it, with tiny numbers: a sink and a load on it, what is printed, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn burnet(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_burnet-lab"));
    command.args(arguments.split_whitespace()).stdin(Stdio::null()).output().unwrap()
}

/// What is printed, and the exit code.
fn measured(arguments: &str) -> (Value, i32) {
    let output = burnet(arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{errors}"));
    (json, output.status.code().unwrap())
}

/// A sink that ends with this value.
struct Sink {
    child: Child,
    address: SocketAddr,
}

impl Sink {
    fn start() -> Sink {
        let mut command = Command::new(env!("CARGO_BIN_EXE_burnet-lab"));
        command.args(["bench", "sink", "--listen", "127.0.0.1:0", "--die-with-parent"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("the sink listens on ").unwrap().parse().unwrap();
        Sink { child, address }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

const TINY: &str = "--switches 2 --hosts 3 --seconds 0.05 --rounds 2 --json";

#[test]
fn a_sink_answers_all_in_both_versions_and_both_modes() {
    let sink = Sink::start();
    for version in ["1.0", "1.3"] {
        for mode in ["throughput", "latency", "latency --rate 1000"] {
            let target = sink.address;
            let line = format!("bench southbound --target {target} --version {version} --mode {mode} {TINY}");
            let (report, code) = measured(&line);
            assert_eq!(code, 0, "{line}: {report}");
            assert_eq!((&report["complete"], &report["unanswered"]), (&true.into(), &0.into()), "{line}");
            assert!(report["responses_per_s"].as_f64().unwrap() > 0.0, "{line}: {report}");
            assert_eq!(report["rounds"].as_array().unwrap().len(), 2);
            assert_eq!(report["latency_us"]["p99"].is_null(), mode == "throughput", "{line}: {report}");
            assert_eq!(report["learned"]["answered"], 6);
            assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
        }
    }
}

#[test]
fn cbenchs_lines_end_with_its_result() {
    let sink = Sink::start();
    let line = format!(
        "bench southbound --target {} --like-cbench --switches 2 --hosts 9 --seconds 0.05 --rounds 2",
        sink.address
    );
    let output = burnet(&line);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "the warm-up has a line too: {text}");
    assert!(lines[0].contains(" 2   switches: flows/sec:  "), "{text}");
    assert!(lines[3].starts_with("RESULT: 2 switches 2 tests min/max/avg/stdev = "), "{text}");
}

#[test]
fn two_targets_are_compared_pair_by_pair() {
    let sink = Sink::start();
    let (report, code) = measured(&format!("bench compare sink {} --mode latency {TINY}", sink.address));
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["ratio"]["pairs"].as_array().unwrap().len(), 2, "{report}");
    assert!(report["ratio"]["median"].as_f64().unwrap() > 0.0);
    assert!(report["p99_ratio"]["median"].as_f64().unwrap() > 0.0);
    assert_eq!(report["a_target"], "sink");
}

#[test]
fn a_node_is_measured_with_all_its_hosts_learned() {
    // How much it answers in time depends on the machine; what it answers does not.
    let (report, _) = measured(&format!("bench compare node:learning-switch=trusted sink {TINY}"));
    assert_eq!(report["a_target"], "node:learning-switch=trusted");
    assert_eq!(report["a"]["unanswered"], 0, "{report}");
    let round = &report["a"]["rounds"][0];
    assert_eq!(report["a"]["learned"]["answered"], 6, "{report}");
    assert_eq!(round["packet_outs"], 0, "every packet-in was answered with a flow mod: {round}");
}

#[test]
fn what_cannot_be_asked_is_exit_code_2() {
    for (line, expected) in [
        ("bench southbound --mode throughput --rate 5", "--rate goes with --mode latency"),
        ("bench compare sink sunk", "or write sink"),
        ("bench suite --only speed", "possible values"),
        ("bench southbound --switches 65535 --hosts 99999999", "1..=16777216"),
    ] {
        let output = burnet(line);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(errors.contains(expected), "{line}: {errors}");
    }
}

#[test]
fn where_nobody_listens_it_ends_with_what_it_has() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (report, code) = measured(&format!("bench southbound --target {target} --patience 0.3 {TINY}"));
    assert_eq!(code, 1, "{report}");
    assert_eq!((&report["complete"], &report["responses_per_s"]), (&false.into(), &0.0.into()));
    assert!(report["connections"]["not_connected"].as_u64().unwrap() >= 2, "{report}");
    let why = report["incomplete"].as_str().unwrap();
    assert!(why.contains("knew 0 of 2 switches") && why.contains("refused"), "{why}");
}
