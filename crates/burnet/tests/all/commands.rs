//! The binary without a running node: exit codes, standard output or standard error, and JSON if it is requested.

use std::process::{Command, Output, Stdio};

fn burnet(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_burnet"));
    command.env_remove("BURNET_SOCKET").stdin(Stdio::null()).args(arguments).output().unwrap()
}

/// Nothing on standard output, and words on standard error.
fn fails(arguments: &[&str], code: i32, words: &str) -> String {
    let output = burnet(arguments);
    let (said, complained) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {complained}");
    assert!(complained.contains(words), "{arguments:?}: {complained}");
    assert_eq!(said, "", "{arguments:?}");
    complained
}

/// As [`fails`], in one sentence of our own.
fn refuses(arguments: &[&str], words: &str) {
    let complained = fails(arguments, 2, words);
    assert!(complained.starts_with("burnet: "), "{complained}");
    assert_eq!(complained.lines().count(), 1, "{complained}");
}

#[test]
fn usage_that_cannot_be_is_refused_with_exit_code_2() {
    fails(&[], 2, "Usage: burnet <COMMAND>");
    fails(&["rum"], 2, "'run'");
    fails(&["run", "--workers", "33"], 2, "1..=32");
    fails(&["flows", "of:zz"], 2, "of:zz");
}

#[test]
fn what_cannot_be_run_is_refused_in_one_sentence() {
    refuses(&["run", "--app", "hup"], "there is no built-in app hup (there are");
    refuses(&["run", "--app", "/nowhere/mine"], "/nowhere/mine cannot be used");
    refuses(&["run", "--config", "/nowhere.toml"], "/nowhere.toml cannot be read");
    refuses(&["run", "--tls-cert", "c.pem"], "add --tls-key FILE");
    refuses(&["app", "new", "../mine"], "\"../mine\" cannot be an app's name");
    refuses(&["app", "new", "mine", "--sdk", "/nowhere"], "/nowhere is not Burnet's SDK");
}

#[test]
fn a_node_that_does_not_answer_did_not_work() {
    for command in [&["switches"][..], &["flows"], &["app", "list"], &["app", "stop", "hub"]] {
        let arguments = [command, &["--socket", "/nowhere/burnet.sock"]].concat();
        fails(&arguments, 1, "no node answers at /nowhere/burnet.sock");
    }
}

#[test]
fn help_and_completion_go_to_standard_output() {
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"], &["completion", "fish"]] {
        let output = burnet(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("burnet"), "{arguments:?}");
    }
}

#[test]
fn doctor_says_the_same_as_text_and_as_json() {
    let text = String::from_utf8(burnet(&["doctor"]).stdout).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&burnet(&["doctor", "--json"]).stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    assert!(!findings.is_empty());
    for finding in findings {
        assert!(text.contains(finding["subject"].as_str().unwrap()), "{finding}");
    }
    assert!(text.ends_with("A node can run on this machine.\n"), "{text}");
}
