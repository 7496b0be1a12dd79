//! The rules that keep the parts apart: who may depend on whom, where `unsafe` may be, what files open with.
//!
//! ```text
//! Workspace (tree.rs) ──→ violations() ──→ sentences that name the crate and what it must not do
//! ```
//!
//! In: plain data about the workspace. Out: one sentence for each breach. It never changes a file.

use crate::circles;
use crate::lengths;
use crate::pages;
use crate::pictures;
use crate::prose;
use crate::site;
use crate::tree::{self, Member, SourceFile, Workspace};
use std::process::ExitCode;

/// The project's crates and which others each may build on. A crate that is missing here fails the check, so
/// that a new one is thought about. `dev` edges are free: a test may bring its own peer.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("flow", &[]),
    ("abi", &["flow"]),
    ("view", &["flow"]),
    ("graph", &["flow", "view"]),
    ("hose", &["graph"]),
    ("explain", &["flow", "view"]),
    ("profile", &["flow"]),
    ("openflow", &["flow"]),
    ("openflow-text", &["flow", "openflow"]),
    ("ring", &[]),
    ("southbound", &["flow", "abi", "openflow"]),
    // openflow only to read switches' answers to statistics requests.
    // zone only for the processor's prefetch instruction, which needs `unsafe`.
    ("kernel", &["flow", "abi", "openflow", "zone"]),
    ("zone", &["flow", "abi", "contract", "ring"]),
    ("monitor-channel", &["audit-contract", "ring", "zone"]),
    // The contracts of the services that have a duty for the monitor.
    (
        "monitor",
        &[
            "audit-contract",
            "contract",
            "monitor-channel",
            "northbound-contract",
            "resource-contract",
            "ring",
            "security-contract",
            "store-contract",
            "zone",
        ],
    ),
    // It holds the rules by which the service judges what a zone uses: the monitor judges by them too while the service is silent.
    ("resource-contract", &["contract", "zone"]),
    ("slicer", &["flow", "abi", "openflow"]),
    ("software-switch", &["flow", "openflow", "profile"]),
    ("emulator", &["flow", "openflow", "profile", "software-switch"]),
    ("probe", &["emulator", "flow", "openflow", "profile", "software-switch"]),
    // emulator only for its timer, its packet sockets and its meter of validity.
    ("proxy", &["emulator", "flow", "openflow", "profile", "software-switch"]),
    // Of the rest of the project, an agent on a server needs addresses only.
    ("edge", &["flow"]),
    // The pure halves that a node, a server and a tenant's controller run. Of the apps, it needs the choices of one that uses labels, and of the
    // services, the caps of `labels`.
    ("rehearsal", &["edge", "flow", "hose", "labels", "multipath"]),
    // All parts of a node, of servers and of tenants' controllers, on an emulated network. Of the services, it needs the engine of `labels` and the
    // settings of `slice`.
    (
        "virtual-node",
        &[
            "abi",
            "config",
            "edge",
            "emulator",
            "flow",
            "hose",
            "kernel",
            "labels",
            "labels-contract",
            "node",
            "openflow",
            "rehearsal",
            "slice",
            "slicer",
            "southbound",
            "view",
        ],
    ),
    ("load", &["flow", "openflow"]),
    // Data that services declare, and the table of the node's services.
    ("contract", &[]),
    // It also knows every contract, for the table of the node's services.
    (TABLE_OF_SERVICES, &["contract", "flow"]),
    ("operator", &["flow", "monitor-channel", "zone"]),
    (
        "config",
        &[
            "abi",
            "contract",
            "flow",
            "hose",
            "kernel",
            "monitor-channel",
            "operator",
            "package",
            "profile",
            "slicer",
            "southbound",
            "view",
            "zone",
        ],
    ),
    // openflow only to read a switch's answers about its flow entries, for the operator.
    (
        "node",
        &[
            "abi",
            "audit-contract",
            "config",
            "flow",
            "kernel",
            "monitor-channel",
            "openflow",
            "operator",
            "package",
            "ring",
            "southbound",
            "zone",
        ],
    ),
    // zone makes the C table that a trusted app is called through.
    ("burnet-sdk-core", &["flow", "abi", "contract", "store-contract", "view", "zone"]),
    // monitor-channel: an app in a process zone gets its ports over that socket.
    ("burnet-sdk", &["burnet-sdk-core", "flow", "abi", "ring", "zone", "monitor-channel"]),
    ("burnet-sdk-tokio", &["burnet-sdk"]),
    ("burnet-sdk-rules", &["burnet-sdk", "flows-contract"]),
    // A service like any other, whose judging is the package crate's own: the monitor judges by it too while the service is silent.
    ("security", &["burnet-sdk", "package", "security-contract"]),
    // What it computes paths with is a crate of its own, so that benchmarks and tests reach it.
    ("paths", &["burnet-sdk", "flow", "flows-contract", "graph", "hose", "paths-contract", "view"]),
    // The virtual switches of a slice take events of the ABI, and speak OpenFlow towards the tenant.
    (
        "slice",
        &[
            "abi",
            "burnet-sdk",
            "flow",
            "labels-contract",
            "openflow",
            "paths-contract",
            "slice-contract",
            "slicer",
            "view",
        ],
    ),
    // The arithmetic of labels is a crate of its own, which the slices and the command line use too.
    // It has the other ends of the links with the agents on servers.
    ("labels", &["burnet-sdk", "edge", "hose", "labels-contract", "paths-contract", "view"]),
    // It explains the ways of packets, on what the service `flows` reads from switches.
    (
        "northbound",
        &[
            "audit-contract",
            "burnet-sdk",
            "burnet-sdk-tokio",
            "discovery-contract",
            "explain",
            "flow",
            "flows-contract",
            "hosts-contract",
            "labels-contract",
            "northbound-contract",
            "paths-contract",
            "slice-contract",
            "view",
        ],
    ),
    // The laboratory knows the node's program as operators do, and of its library what the operator's commands share.
    (
        "lab",
        &[
            "burnet",
            "config",
            "node",
            "operator",
            "burnet-sdk",
            "edge",
            "emulator",
            "flow",
            "hose",
            "load",
            "misbehaving",
            "monitor",
            "monitor-channel",
            "openflow",
            "probe",
            "profile",
            "proxy",
            // To rehearse slices with packets.
            "abi",
            "labels-contract",
            "rehearsal",
            "slice",
            "southbound",
            "virtual-node",
        ],
    ),
    // For tests of whole nodes, which it starts and asks as an operator does.
    ("test-bed", &["emulator", "monitor-channel", "operator"]),
    // These look at Burnet from outside, as an operator does; the experiments with the laboratory's nodes and emulated switches. Some
    // experiments have an app in the node, and some run the engine of a service without a node.
    (
        "experiments",
        &[
            "abi",
            "burnet-sdk",
            "config",
            "emulator",
            "flow",
            "flows",
            "flows-contract",
            "graph",
            "hose",
            "lab",
            "labels",
            "labels-contract",
            "load",
            "openflow",
            "paths",
            "paths-contract",
            "probe",
            "profile",
            "rehearsal",
            "software-switch",
            "southbound",
            "view",
        ],
    ),
    ("xtask", &[]),
    ("system-tests", &[]),
];

// `fuzz` and `sdk/python` (the native half of the Python SDK: abi, burnet-sdk, flow, zone) are workspaces of their own, which this table
// does not see. The manifest of the latter forbids `unsafe`.

/// What apps and services may build on: what an author outside the project has too, by the SDK or from it. In addition, the contracts
/// of services.
const APPS_MAY_KNOW: &[&str] = &["burnet-sdk", "burnet-sdk-rules", "burnet-sdk-tokio", "flow", "view"];

/// What the contract of a service may build on, if the table does not say otherwise.
const CONTRACTS_MAY_KNOW: &[&str] = &["contract", "flow", "view"];

/// How the names of contracts end.
const CONTRACT: &str = "-contract";

/// The crate with the table of the node's services.
const TABLE_OF_SERVICES: &str = "package";

/// Libraries that have one home each, so that replacing one touches one crate. An example may show any library.
const AT_HOME: [(&str, &str); 11] = [
    ("tokio", "burnet-sdk-tokio"),
    ("ed25519-dalek", "package"),
    ("redb", "store"),
    ("etcd-client", "store"),
    ("async-nats", "bus"),
    ("seccompiler", "zone"),
    ("landlock", "zone"),
    ("wasmtime", "zone"),
    ("axum", "northbound"),
    ("hyper", "northbound"),
    ("utoipa", "northbound"),
];

/// What the kernel decides with is handed to it: no library that does I/O or runs tasks.
const NOT_IN_KERNEL: [&str; 9] =
    ["tokio", "mio", "futures", "smol", "async-io", "rustix", "libc", "socket2", "rustls"];

/// … and nothing of the standard library that does I/O, tells the time or starts threads.
const NOT_IN_KERNEL_SOURCES: [&str; 8] = [
    "Instant::now",
    "SystemTime",
    "std::net",
    "std::fs",
    "std::io",
    "std::os",
    "std::process",
    "std::thread",
];

/// The only crates that may hold `unsafe`: shared memory and the sandbox.
const UNSAFE_HOMES: [&str; 2] = ["ring", "zone"];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 5] = ["common", "util", "helper", "misc", "shared"];

/// The files whose language is not rewritten yet. It shrinks until it is empty.
const PROSE_EXCEPTIONS: &str = "xtask/prose-exceptions.txt";

/// `cargo xtask rules`.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(argument) = arguments.first() {
        return Err(format!("`rules` takes no arguments, and was given `{argument}`"));
    }
    let found = breaches()?;
    for breach in &found {
        println!("{breach}");
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the working tree does that it must not, in code and in prose.
pub fn breaches() -> Result<Vec<String>, String> {
    let workspace = tree::read()?;
    let mut found = violations(&workspace);
    found.extend(pages::violations(&workspace, |path| tree::root().join(path).exists()));
    found.extend(pages::stale_quotes(&workspace.pages, |path| tree::read_text(&tree::root().join(path))));
    found.extend(site::violations(&workspace.pages, workspace.page(site::SUMMARY)));
    found.extend(pictures::violations()?);
    let listed_in = |path: &str| tree::read_text(&tree::root().join(path));
    found.extend(prose::violations(&workspace, &listed_in(PROSE_EXCEPTIONS)?));
    found.extend(lengths::violations(&workspace, &listed_in(lengths::EXCEPTIONS)?));
    found.extend(circles::violations(&workspace, &listed_in(circles::EXCEPTIONS)?));
    Ok(found)
}

/// Every breach of the rules for code, one sentence each.
pub fn violations(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for member in &workspace.members {
        found.extend(forbidden_edges(member));
        found.extend(libraries_away_from_home(member));
        found.extend(empty_name(member));
        found.extend(lints_not_inherited(member));
        found.extend(member.files.iter().flat_map(|file| file_rules(member, file)));
        found.extend(unlisted(member, workspace.page("crates/README.md")));
    }
    found
}

fn is_app(member: &Member) -> bool {
    ["apps/", "services/", "examples/"].iter().any(|folder| member.folder.starts_with(folder))
}

/// What is in no node: the production binary has no hostile code and nothing that makes load. Those who build on it are kept out by the table.
const NOT_IN_A_NODE: [&str; 7] = ["emulator", "lab", "load", "misbehaving", "probe", "proxy", "virtual-node"];

/// None when the crate may know all but [`NOT_IN_A_NODE`] (`burnet` alone).
fn may_know(member: &Member) -> Option<Result<&'static [&'static str], String>> {
    if member.name == "burnet" {
        return None;
    }
    let known = MAY_KNOW.iter().find(|(name, _)| *name == member.name);
    if is_app(member) && known.is_none() {
        let is_contract = member.name.ends_with(CONTRACT);
        return Some(Ok(if is_contract { CONTRACTS_MAY_KNOW } else { APPS_MAY_KNOW }));
    }
    Some(known.map(|(_, allowed)| *allowed).ok_or_else(|| {
        format!(
            "{}: not in the table of who may depend on whom (xtask/src/rules.rs): add a line",
            member.name
        )
    }))
}

fn forbidden_edges(member: &Member) -> Vec<String> {
    let allowed = match may_know(member) {
        None => {
            let wrong =
                |edge: &&tree::Edge| edge.ours && !edge.dev && NOT_IN_A_NODE.contains(&edge.to.as_str());
            let edges = member.edges.iter().filter(wrong);
            return edges
                .map(|edge| format!("{} -> {}: it belongs to the laboratory", member.name, edge.to))
                .collect();
        }
        Some(Err(unknown)) => return vec![unknown],
        Some(Ok(allowed)) => allowed,
    };
    let knows_contracts = allowed == APPS_MAY_KNOW || member.name == TABLE_OF_SERVICES;
    let is_allowed = |to: &str| allowed.contains(&to) || knows_contracts && to.ends_with(CONTRACT);
    let edges = member.edges.iter().filter(|edge| edge.ours && !edge.dev && !is_allowed(&edge.to));
    edges
        .map(|edge| format!("{} -> {}: {} must not know {}", member.name, edge.to, member.name, edge.to))
        .collect()
}

fn libraries_away_from_home(member: &Member) -> Vec<String> {
    let mut found = Vec::new();
    for edge in member.edges.iter().filter(|edge| !edge.ours && !edge.dev) {
        if let Some((library, home)) = AT_HOME.iter().find(|(library, _)| *library == edge.to)
            && *home != member.name
            && !member.folder.starts_with("examples/")
        {
            found.push(format!("{} -> {library}: only {home} may know {library}", member.name));
        }
        if member.name == "kernel" && NOT_IN_KERNEL.contains(&edge.to.as_str()) {
            found.push(format!("kernel -> {}: the kernel is pure, so it knows no I/O and no tasks", edge.to));
        }
    }
    found
}

fn empty_name(member: &Member) -> Option<String> {
    let word = EMPTY_NAMES.iter().find(|word| member.name.contains(*word))?;
    Some(format!("{}: a crate named `{word}` says nothing about what is inside", member.name))
}

/// Without the table, the workspace's lints (no `unsafe`, no `unwrap`, no missing docs) would not hold for it.
fn lints_not_inherited(member: &Member) -> Option<String> {
    let inherits = member
        .manifest
        .split("[lints]")
        .nth(1)
        .is_some_and(|rest| rest.trim_start().starts_with("workspace = true"));
    (!inherits).then(|| format!("{}: its Cargo.toml does not say `[lints] workspace = true`", member.name))
}

fn file_rules(member: &Member, file: &SourceFile) -> Vec<String> {
    let mut found = Vec::new();
    if !file.text.starts_with("//!") {
        found.push(format!("{}: {} does not open with `//!`", member.name, file.path));
    }
    let pure_source = member.name == "kernel" && file.path.starts_with("crates/kernel/src/");
    for (number, line) in code_lines(&file.text) {
        let place = format!("{}: {}:{number}", member.name, file.path);
        if !UNSAFE_HOMES.contains(&member.name.as_str()) && allows_unsafe(line) {
            found.push(format!("{place}: `unsafe` may only be in ring and zone"));
        }
        if pure_source && let Some(word) = NOT_IN_KERNEL_SOURCES.iter().find(|word| line.contains(*word)) {
            found.push(format!("{place}: `{word}`: the kernel has no clock and does no I/O"));
        }
    }
    found
}

/// Whether a line is an attribute that switches the lint off that keeps `unsafe` out; the lint finds the rest.
fn allows_unsafe(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("#[") || line.starts_with("#![")) && line.contains("unsafe_code")
}

/// The lines that are not comments, numbered from 1.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn unlisted(member: &Member, crates_page: &str) -> Option<String> {
    let folder = member.folder.strip_prefix("crates/")?;
    let listed = crates_page.contains(&format!("({folder}/"));
    (!listed).then(|| format!("{}: crates/README.md does not link to {folder}/", member.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Edge, Page};

    /// A member with nothing wrong about it, at `folder/name`.
    fn sound(folder: &str, name: &str) -> Member {
        let lib =
            SourceFile { path: format!("{folder}/{name}/src/lib.rs"), text: "//! What it is.\n".to_owned() };
        Member {
            name: name.to_owned(),
            folder: format!("{folder}/{name}"),
            manifest: "[package]\n[lints]\nworkspace = true\n".to_owned(),
            edges: Vec::new(),
            files: vec![lib],
        }
    }

    fn ours(to: &str) -> Edge {
        Edge { to: to.to_owned(), dev: false, ours: true }
    }

    fn theirs(to: &str) -> Edge {
        Edge { to: to.to_owned(), dev: false, ours: false }
    }

    fn crates_page(text: &str) -> Vec<Page> {
        vec![Page { path: "crates/README.md".to_owned(), text: text.to_owned() }]
    }

    /// `expected` is how the only violation starts, or nothing when there must be none.
    fn check(member: Member, expected: &str) {
        let folder = member.folder.strip_prefix("crates/").unwrap_or_default().to_owned();
        let workspace =
            Workspace { members: vec![member], pages: crates_page(&format!("* [it]({folder}/)")) };
        let found = violations(&workspace);
        let matches = match found.as_slice() {
            [] => expected.is_empty(),
            [only] => !expected.is_empty() && only.starts_with(expected),
            _ => false,
        };
        assert!(matches, "expected `{expected}`, found {found:?}");
    }

    fn with_edges<const N: usize>(member: Member, edges: [Edge; N]) -> Member {
        Member { edges: edges.to_vec(), ..member }
    }

    fn with_source(mut member: Member, text: &str) -> Member {
        member.files[0].text = text.to_owned();
        member
    }

    #[test]
    fn the_workspace_as_it_is_keeps_the_rules() {
        assert_eq!(breaches().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_is_named() {
        check(with_edges(sound("crates", "flow"), [ours("abi")]), "flow -> abi: flow must not know abi");
        check(with_edges(sound("crates", "kernel"), [ours("southbound")]), "kernel -> southbound:");
        check(with_edges(sound("crates", "monitor"), [ours("openflow")]), "monitor -> openflow:");
        check(with_edges(sound("apps", "hub"), [ours("kernel")]), "hub -> kernel:");
        check(with_edges(sound("services", "hosts"), [ours("store")]), "hosts -> store:");
        check(with_edges(sound("crates", "southbound"), [ours("openflow"), ours("abi")]), "");
        check(with_edges(sound("crates", "burnet"), [ours("openflow"), ours("kernel")]), "");
        check(with_edges(sound("apps", "hub"), [ours("burnet-sdk")]), "");
        check(with_edges(sound("crates", "burnet"), [ours("misbehaving")]), "burnet -> misbehaving:");
    }

    #[test]
    fn tests_may_reach_further_than_the_crate() {
        let edge = Edge { dev: true, ..ours("emulator") };
        check(with_edges(sound("crates", "southbound"), [edge]), "");
    }

    #[test]
    fn a_crate_that_nobody_thought_about_is_refused() {
        check(sound("crates", "novelty"), "novelty: not in the table");
    }

    #[test]
    fn a_library_stays_at_home() {
        check(with_edges(sound("crates", "southbound"), [theirs("redb")]), "southbound -> redb: only store");
        check(with_edges(sound("crates", "zone"), [theirs("landlock")]), "");
    }

    #[test]
    fn the_kernel_stays_pure() {
        check(with_edges(sound("crates", "kernel"), [theirs("mio")]), "kernel -> mio:");
        let now = "//! Decides.\nfn now() { std::time::Instant::now(); }\n";
        check(
            with_source(sound("crates", "kernel"), now),
            "kernel: crates/kernel/src/lib.rs:2: `Instant::now`",
        );
        check(with_source(sound("crates", "southbound"), now), "");
        check(with_source(sound("crates", "kernel"), "//! Decides.\n// never std::io\n"), "");
    }

    #[test]
    fn unsafe_has_two_homes() {
        let text = "//! It.\n#![allow(unsafe_code)]\n";
        check(with_source(sound("crates", "flow"), text), "flow: crates/flow/src/lib.rs:2: `unsafe`");
        check(with_source(sound("crates", "ring"), text), "");
        check(with_source(sound("crates", "zone"), text), "");
    }

    #[test]
    fn a_member_inherits_the_lints() {
        let bare = Member { manifest: "[package]\n".to_owned(), ..sound("crates", "flow") };
        check(bare, "flow: its Cargo.toml");
    }

    #[test]
    fn a_file_says_what_it_is() {
        check(with_source(sound("crates", "flow"), ""), "flow: crates/flow/src/lib.rs does not open");
        check(with_source(sound("crates", "flow"), "// It.\n"), "flow: crates/flow/src/lib.rs does not open");
    }

    #[test]
    fn a_name_says_what_is_inside() {
        check(sound("apps", "net-utils"), "net-utils: a crate named `util`");
    }

    #[test]
    fn every_crate_has_its_line_in_the_list() {
        let workspace = Workspace { members: vec![sound("crates", "flow")], pages: crates_page("") };
        assert_eq!(violations(&workspace), ["flow: crates/README.md does not link to flow/"]);
    }
}
