//! Profiles in emulated networks, and the commands that try and tune them.

use super::node::{Node, burnet, complained, said};
use super::refused;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/switch-profiles");

/// A folder of its own, which is deleted with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("burnet-profiles-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(arguments: &[&str]) -> Output {
    burnet().args(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}{}", said(output), complained(output)))
}

#[test]
fn profiles_that_cannot_be_played_are_refused_before_it_starts() {
    refused(&["--profile", "cisco"], "cisco is neither a file nor a built-in profile: broadcom-956846k, ");
    refused(
        &["--profile", "s9=null"],
        "--profile s9=null: there is no switch s9; the switches are s1, s2, s3",
    );
    refused(&["--slow-motion", "2"], "--slow-motion 2 has no effect: no switch plays a profile");
    let proxy = ["--proxy", "127.0.0.1:0", "--profile", "s1=null"];
    refused(&proxy, "--proxy serves one switch");
    let folder = Folder::new("wrong");
    let wrong = folder.write("wrong.toml", "schema = 1\nname = \"x\"\n[cpu]\nqueue = 3\n");
    refused(&["--profile", &wrong], "wrong.toml:4: cpu.queue is an unknown key");
}

#[test]
fn a_full_table_refuses_rules_and_no_ping_is_lost() {
    let node = Node::start();
    let small = format!("s1={EXAMPLE}/small.toml");
    let output = node.emulate(&["--topo", "single,4", "--profile", &small, "--ping-all", "--json"]);
    let summary = json(&output);
    assert_eq!((output.status.code(), &summary["pings"]["received"]), (Some(0), &12.into()), "{summary}");
    assert!(summary["counters"]["rules_refused"].as_u64() > Some(0), "{summary}");
}

/// Queries over new connections in virtual time.
const LOAD: &str = "topology = \"single,2\"\ntime = \"virtual\"\nprofile = \"quanta-lb4g\"\n[[event]]\nat = \"0s\"\n\
                    queries = { name = \"q\", from = \"h1\", to = \"h2\", every = \"150ms\", for = \"60s\" }\n";

#[test]
fn in_virtual_time_profiles_meet_messages_and_a_run_repeats() {
    let folder = Folder::new("virtual");
    let load = folder.write("load.toml", LOAD);
    let play = |more: &[&str]| run(&[&["emulate", "--json", "--scenario", &load], more].concat());
    let (once, again) = (play(&[]), play(&[]));
    assert_eq!(said(&once), said(&again), "{}", complained(&once));
    let median = |output: &Output| json(output)["queries"][0]["completion_ms"]["median"].as_f64().unwrap();
    assert!(json(&once)["counters"]["packet_ins"].as_u64() > Some(700), "{}", said(&once));
    // The command line overrides the file, and slow motion multiplies.
    let (quick, slow) = (median(&play(&["--profile", "null"])), median(&play(&["--slow-motion", "2"])));
    assert!(quick < 1.0 && slow > 1.5 * median(&once), "{quick} {} {slow}", median(&once));
    assert!(
        complained(&play(&["--slow-motion", "2"]))
            .contains("not slowed: links, hosts with the timers of TCP")
    );
}

#[test]
fn an_app_is_tried_with_each_profile() {
    let scenario = format!("{EXAMPLE}/scenario.toml");
    let small = format!("{EXAMPLE}/small.toml");
    let config = format!("{EXAMPLE}/burnet.toml");
    let output = run(&[
        "profile",
        "trial",
        "--app",
        "learning-switch",
        "--config",
        &config,
        "--scenario",
        &scenario,
        "--profile",
        "null",
        "--profile",
        &small,
        "--json",
    ]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    let [null, small] = [0, 1].map(|at| &report["trials"][at]);
    assert_eq!((&null["profile"], &null["rules_refused"]), (&"null".into(), &0.into()), "{report}");
    assert!(small["rules_refused"].as_u64() > Some(0), "{report}");
    // Eight queries, each with rules of its own for both ways at both switches. For addresses, there would be a dozen.
    assert!(null["flow_mods"].as_u64() >= Some(32), "{report}");
    // A packet of each way waits at both switches, for at least a millisecond.
    assert!(small["set_up_ms"]["p50"].as_f64() >= Some(4.0), "{report}");
}

#[test]
fn what_cannot_be_tried_or_tuned_is_refused() {
    let folder = Folder::new("refused");
    let load = folder.write("load.toml", LOAD);
    let one = folder.write("one.txt", "1\n2\n");
    let bad = folder.write("bad.txt", "1\nmuch\n");
    let check = |arguments: &[&str], words: &str| {
        let output = run(&[&["profile"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", complained(&output));
        assert!(complained(&output).contains(words), "{}", complained(&output));
    };
    check(
        &["trial", "--app", "hup", "--scenario", &format!("{EXAMPLE}/scenario.toml")],
        "no built-in app hup",
    );
    check(&["trial", "--app", "hub", "--scenario", &load], "an app runs in real time");
    check(&["tune", "null", &one, &bad, "--scenario", &load], "bad.txt: line 2: expected microseconds");
    check(&["tune", "null", &one, "--scenario", &load], "2 values required");
    check(&["tune", "null", &one, &one], "--emulated <SAMPLES>");
    check(
        &["tune", "null", &one, &one, "--scenario", &format!("{EXAMPLE}/scenario.toml")],
        "time = \"virtual\"",
    );
}

/// The completion times of the load with a profile and a seed, as the summary of an emulation.
fn measured(folder: &Folder, profile: &str, seed: u32) -> String {
    let load = folder.write(&format!("load-{seed}.toml"), &format!("seed = {seed}\n{LOAD}"));
    let output = run(&["emulate", "--json", "--scenario", &load, "--profile", profile]);
    folder.write(&format!("run-{seed}.json"), &said(&output))
}

#[test]
fn a_profile_that_is_too_fast_is_tuned_by_runs_of_the_real_switch() {
    let folder = Folder::new("tuned");
    // The real switch takes 10 ms more for each of the two ways of a query.
    let real = folder.write(
        "real.toml",
        "schema = 1\nname = \"real\"\nbased_on = \"quanta-lb4g\"\n[delay]\ningress_us = [[0, 10500], [0.5, 11000], [1, 13000]]\n\
         [source]\ndelay = { assumed = \"for a test\" }\n",
    );
    let runs: Vec<String> = (11..15).map(|seed| measured(&folder, &real, seed)).collect();
    let (load, tuned) = (folder.write("load.toml", LOAD), folder.path("tuned.toml"));
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let output = run(&[
        &["profile", "tune", "quanta-lb4g"],
        &runs[..],
        &["--scenario", &load, "--out", &tuned, "--json"],
    ]
    .concat());
    let report = json(&output);
    assert_eq!((output.status.code(), &report["is_better"]), (Some(0), &true.into()), "{report}");
    let qq_us = |which: &str| report[which]["qq_us"].as_f64().unwrap();
    assert!(qq_us("before") > 15_000.0 && qq_us("after") < 5_000.0, "{report}");
    let checked = run(&["profile", "check", &tuned]);
    assert!(
        said(&checked).contains("quanta-lb4g-tuned is good"),
        "{}{}",
        said(&checked),
        complained(&checked)
    );
    let shown = said(&run(&["profile", "show", &tuned]));
    assert!(shown.contains("reconstructed: burnet profile tune: "), "{shown}");

    // Runs of the emulation itself cannot be better than they are: it says so, and writes nothing.
    let same: Vec<String> = (21..23).map(|seed| measured(&folder, "quanta-lb4g", seed)).collect();
    let emulated = ["--emulated", &same[0], "--emulated", &same[1], "--out"];
    let none = folder.path("none.toml");
    let output =
        run(&[&["profile", "tune", "quanta-lb4g", &same[0], &same[1]], &emulated[..], &[&none]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("refused: the new profile is not nearer"), "{}", said(&output));
    assert!(!Path::new(&none).exists());
}
