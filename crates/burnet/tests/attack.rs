//! Each attack of `burnet attack`, as a test of its own: the binary tries it against a node and says whether everything held.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use std::process::Command;

fn burnet(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_burnet")).arg("attack").args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

macro_rules! holds {
    ($($test:ident: $case:literal,)*) => {
        $(#[test]
        fn $test() {
            let (held, said) = burnet(&["--case", $case]);
            assert!(held, "{said}");
        })*

        #[test]
        fn every_attack_is_tried() {
            let (_, list) = burnet(&["--list"]);
            let listed: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
            assert_eq!(listed, [$($case),*]);
        }
    };
}

holds! {
    exit: "exit",
    abort: "abort",
    segfault: "segfault",
    panic: "panic",
    kill_itself: "kill-itself",
    deadlock: "deadlock",
    infinite_loop: "infinite-loop",
    stop_reading: "stop-reading",
    restart_storm: "restart-storm",
    restart_storms: "restart-storms",
    fork_bomb: "fork-bomb",
    memory_leak: "memory-leak",
    descriptor_leak: "descriptor-leak",
    thread_bomb: "thread-bomb",
    disk_fill: "disk-fill",
    log_flood: "log-flood",
    read_files: "read-files",
    read_memory: "read-memory",
    ptrace: "ptrace",
    signals: "signals",
    raw_socket: "raw-socket",
    connect_out: "connect-out",
    run_shell: "run-shell",
    mount: "mount",
    load_module: "load-module",
    set_time: "set-time",
    ring_garbage: "ring-garbage",
    forged_datapath: "forged-datapath",
    forged_cookie: "forged-cookie",
    change_others: "change-others",
    replace_others: "replace-others",
    delete_others: "delete-others",
    clear_tables: "clear-tables",
    table_flood: "table-flood",
    rule_flood: "rule-flood",
    packet_out_flood: "packet-out-flood",
    uninvited: "uninvited",
    malformed: "malformed",
    rewrite_escape: "rewrite-escape",
    silence_all: "silence-all",
    output_flood: "output-flood",
    ask_flood: "ask-flood",
    store_flood: "store-flood",
    store_others: "store-others",
    old_package: "old-package",
    altered_package: "altered-package",
    altered_while_running: "altered-while-running",
    outlived_key: "outlived-key",
    greedy_update: "greedy-update",
    no_hello: "no-hello",
    wrong_version: "wrong-version",
    mixed_version: "mixed-version",
    bad_length: "bad-length",
    bad_types: "bad-types",
    damaged_messages: "damaged-messages",
    stolen_datapath: "stolen-datapath",
    half_open: "half-open",
    packet_in_flood: "packet-in-flood",
    slow_reader: "slow-reader",
    false_removals: "false-removals",
    false_ports: "false-ports",
    error_storm: "error-storm",
}
