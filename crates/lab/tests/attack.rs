//! Some attacks of each family of `burnet attack`, as tests of their own: the binary tries them against a node and says whether everything held.
//!
//! All of them, on emulated switches and on Open vSwitch, take too long for a test; `burnet attack --openflow all` tries them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use std::process::Command;

use serde_json::Value;

fn burnet(arguments: &[&str]) -> (Option<i32>, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_burnet-lab")).arg("attack").args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// What is listed with `--json`.
fn listed(arguments: &[&str]) -> Vec<Value> {
    let (code, said) = burnet(&[arguments, &["--list", "--json"]].concat());
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str(&said).unwrap()
}

macro_rules! holds {
    ($($test:ident: $($argument:literal),+;)*) => {
        $(#[test]
        fn $test() {
            let (code, said) = burnet(&["--case", $($argument),+]);
            assert_eq!(code, Some(0), "{said}");
        })*
    };
}

holds! {
    exit: "exit";
    segfault: "segfault";
    infinite_loop: "infinite-loop";
    stop_reading: "stop-reading";
    restart_storms: "restart-storms";
    ring_garbage: "ring-garbage";
    fork_bomb: "fork-bomb";
    memory_leak: "memory-leak";
    log_flood: "log-flood";
    read_memory: "read-memory";
    ptrace: "ptrace";
    run_shell: "run-shell";
    forged_cookie: "forged-cookie";
    change_others_in_1_0: "change-others", "--openflow", "1.0";
    replace_others: "replace-others";
    clear_tables_in_1_0: "clear-tables", "--openflow", "1.0";
    table_flood: "table-flood";
    uninvited: "uninvited";
    learn_by_packet_out: "learn-by-packet-out";
    alias_of_field: "alias-of-field";
    miss_rule: "miss-rule";
    table_255: "table-255", "--openflow", "1.0";
    exact_priority: "exact-priority", "--openflow", "1.0";
    untagged_priority: "untagged-priority", "--openflow", "all";
    escape_by_bucket: "escape-by-bucket";
    forge_by_group: "forge-by-group";
    forge_by_table_in_1_0: "forge-by-table", "--openflow", "1.0";
    delete_all_groups: "delete-all-groups";
    controller_outputs: "controller-outputs", "--openflow", "all";
    packet_in_loop: "packet-in-loop";
    without_stats_read: "without-stats-read", "--openflow", "1.0";
    without_packet_in: "without-packet-in";
    shadow_higher: "shadow-higher";
    planted_link: "planted-link";
    store_others: "store-others";
    altered_while_running: "altered-while-running";
    greedy_update: "greedy-update";
    other_signer: "other-signer";
    operator_never_reads: "operator-never-reads";
    damaged_messages: "damaged-messages";
    packet_in_flood: "packet-in-flood";
    tenant_garbage: "tenant-garbage";
    tenant_output_outside: "tenant-output-outside", "--openflow", "all";
    tenant_delete_all: "tenant-delete-all";
    tenant_rule_flood: "tenant-rule-flood";
}

#[test]
fn on_open_vswitch_or_told_what_is_missing() {
    let cases = ["--case", "replace-others", "--case", "forge-by-group"];
    let (code, said) = burnet(&[&cases[..], &["--switch", "ovs", "--openflow", "all"]].concat());
    match code {
        Some(2) => assert!(said.contains("Open vSwitch cannot be attacked here: "), "{said}"),
        code => assert_eq!(code, Some(0), "{said}"),
    }
}

#[test]
fn a_list_has_each_attack_with_its_family_and_what_it_tries() {
    let (code, text) = burnet(&["--list"]);
    assert_eq!(code, Some(0));
    let all = listed(&[]);
    assert!(all.len() >= 100);
    for case in &all {
        assert!(
            text.contains(case["case"].as_str().unwrap()) && text.contains(case["what"].as_str().unwrap())
        );
        assert!(text.contains(&format!("{}: ", case["family"].as_str().unwrap())), "{case}");
    }
}

#[test]
fn each_family_that_an_assessment_asked_for_has_attacks() {
    for family in [
        "vendors",
        "identity",
        "indirect-effects",
        "amplification",
        "defaults",
        "shadowing",
        "folders",
        "operator",
        "signers",
    ] {
        assert!(!listed(&["--family", family]).is_empty(), "{family}");
    }
}

#[test]
fn who_mistypes_is_told_what_was_meant() {
    let (code, said) = burnet(&["--case", "fork-bom"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("did you mean fork-bomb?"), "{said}");
}
