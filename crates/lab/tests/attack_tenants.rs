//! All attacks of tenants of `burnet attack`, in OpenFlow 1.0 and 1.3: against one node each, beside slices and apps that must not notice.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use serde_json::Value;
use std::process::Command;

fn check(openflow: &str, at_least: usize) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_burnet-lab"));
    command.args(["attack", "--family", "tenants", "--together", "--json", "--openflow", openflow]);
    let output = command.env_remove("BURNET_LOG").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let outcomes: Vec<Value> = serde_json::from_slice(&output.stdout).expect(&said);
    let has_faults = |outcome: &&Value| outcome["faults"].as_array().is_none_or(|faults| !faults.is_empty());
    // Only an attack whose first try was late, or on a machine that stood still, has a second one: `tenant_faults`.
    for again in outcomes.iter().filter(|outcome| outcome["first_try"].is_array()) {
        println!("tried again: {again:#}");
    }
    let failed: Vec<&Value> = outcomes.iter().filter(has_faults).collect();
    assert!(failed.is_empty() && output.status.success(), "these did not hold: {failed:#?}\n{said}");
    assert!(outcomes.len() >= at_least, "only {} attacks were tried", outcomes.len());
}

#[test]
fn tenants_of_openflow_1_3_harm_nobody() {
    check("1.3", 44);
}

#[test]
fn tenants_of_openflow_1_0_harm_nobody() {
    check("1.0", 34);
}
