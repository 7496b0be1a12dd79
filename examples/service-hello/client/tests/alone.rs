//! The client started by hand, outside of a zone.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use std::process::{Command, Stdio};

#[test]
fn a_client_that_no_node_started_says_so_and_ends() {
    let program = env!("CARGO_BIN_EXE_hello-client");
    let output = Command::new(program).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("not started by a Burnet node"), "{said}");
}
