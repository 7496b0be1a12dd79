//! The attacks, a line each: what is tried, by whom, and what must come of it.
//!
//! In every case, besides: no ping of others is lost, what the firewall blocks stays blocked, no switch loses its session, and neither kernel
//! nor innocent app is started anew. Nothing is tried here.

use super::from_a_package::PackageAttack;
use super::from_a_switch::SwitchAttack;

/// An attack.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, on the command line and in `apps/misbehaving`.
    pub name: &'static str,
    /// What is tried, in a few words.
    pub what: &'static str,
    /// By whom.
    pub by: By,
    /// What must come of it.
    pub must: Must,
}

/// Who attacks.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// The app `misbehaving`, with these lines in the configuration besides its settings.
    App(&'static str),
    /// The shared memory of a port, written over by an app that has nothing else.
    Ring,
    /// So many apps that end as soon as they are started.
    Storm(usize),
    /// Whoever has a package.
    Package(PackageAttack),
    /// A switch.
    Switch(SwitchAttack),
}

/// What must come of an attack.
#[derive(Clone, Copy, Debug)]
pub enum Must {
    /// The app ends for one of these reasons, and nobody else notices.
    End(&'static [&'static str]),
    /// Each try of the system is denied, or the first ends the app by SIGSYS.
    BeDenied,
    /// The kernel refuses its commands, every one.
    BeRefused,
    /// The kernel refuses its commands beyond a quota.
    BeLimited,
    /// So many of its commands work and no more.
    KeepNoMore(u64),
    /// What it logs is cut short, and how much that was is said.
    BeCutShort,
    /// Its rules are its own, whatever it said.
    OwnItsRules,
    /// It may go on, and hurts nobody.
    HurtNobody,
    /// What it tries is not done, for this reason.
    BeTurnedAway(&'static str),
    /// The node closes the attacker's connection.
    BeCutOff,
}

/// With `[app.misbehaving.limits]`: as much memory as the trial of a leak gives.
pub const SMALL: &str = "[app.misbehaving.limits]\nmemory_bytes = 67108864\nprocesses = 32\n";

/// What an operator gives an app that is not trusted, for `APP`: a tenth of a core, and little of the rest.
pub const LIMITS: &str =
    "[app.APP.limits]\ncpu_percent = 10\nmemory_bytes = 67108864\nprocesses = 32\nopen_files = 64\n";

/// And how much of the network. Where a case has quotas of its own, these come beside them.
pub const QUOTAS: &str = "[app.APP.quotas]\n";
pub const QUOTA_LINES: &str = "commands_per_s = 1000\npacket_outs_per_s = 100\n";

/// May do nothing at all.
const NO_CAPABILITY: &str = "[app.misbehaving.capabilities]\n";

/// May write rules for one network, and only a few.
const BOUNDED: &str = "[app.misbehaving.capabilities]\n\"view.read\" = true\n\
    \"rule.write\" = { match = [\"ip,nw_dst=10.9.0.0/16\"], rules_per_datapath = 100 }\n";

/// May write any rule, but only a hundred for each switch.
const FEW_RULES: &str =
    "[app.misbehaving.capabilities]\n\"view.read\" = true\n\"rule.write\" = { rules_per_datapath = 100 }\n";

/// May keep three of the longest values, under its own name.
const SMALL_STORE: &str = "[app.misbehaving.capabilities]\n\"view.read\" = true\n\"store.read\" = [\"misbehaving/\"]\n\
    \"store.write\" = [\"misbehaving/\"]\n[app.misbehaving.quotas]\nstore_bytes = 100000\n";

const fn app(name: &'static str, what: &'static str, must: Must) -> Case {
    Case { name, what, by: By::App(""), must }
}

const fn bounded(name: &'static str, what: &'static str, lines: &'static str, must: Must) -> Case {
    Case { name, what, by: By::App(lines), must }
}

const fn package(name: &'static str, what: &'static str, by: PackageAttack, must: Must) -> Case {
    Case { name, what, by: By::Package(by), must }
}

const fn switch(name: &'static str, what: &'static str, by: SwitchAttack, must: Must) -> Case {
    Case { name, what, by: By::Switch(by), must }
}

/// All of them, in the order in which they are tried.
pub const CASES: &[Case] = &[
    app("exit", "calls exit()", Must::End(&["exit code 7"])),
    app("abort", "aborts", Must::End(&["SIGABRT"])),
    app("segfault", "reads where it has no memory", Must::End(&["SIGSEGV"])),
    app("panic", "panics in a handler", Must::End(&["exit code 101"])),
    app("kill-itself", "kills itself with SIGKILL", Must::End(&["SIGKILL"])),
    app("deadlock", "never returns from a handler, asleep", Must::HurtNobody),
    app("infinite-loop", "never returns from a handler, awake", Must::HurtNobody),
    app("stop-reading", "asks for 40,000 receipts and reads none", Must::End(&["stopped reading"])),
    app("restart-storm", "ends as soon as it is started, again and again", Must::End(&["exit code 7"])),
    Case {
        name: "restart-storms",
        what: "eight apps end as soon as they are started, again and again",
        by: By::Storm(8),
        must: Must::End(&["exit code 1"]),
    },
    bounded("fork-bomb", "starts processes without end", SMALL, Must::BeDenied),
    bounded("memory-leak", "takes memory without end", SMALL, Must::End(&["SIGABRT", "SIGKILL"])),
    app("descriptor-leak", "opens files without end", Must::BeDenied),
    bounded("thread-bomb", "starts threads without end", SMALL, Must::BeDenied),
    app("disk-fill", "writes files without end, wherever one might", Must::BeDenied),
    app("log-flood", "writes 220,000 lines into the log", Must::BeCutShort),
    app("read-files", "reads the password file and the node's own files", Must::BeDenied),
    app("read-memory", "reads the memory of the kernel and of other apps", Must::BeDenied),
    app("ptrace", "traces the kernel and other apps", Must::BeDenied),
    app("signals", "sends signals to the kernel and other apps", Must::BeDenied),
    app("raw-socket", "opens packet, raw, netlink and UDP sockets", Must::BeDenied),
    app("connect-out", "connects to a server on this machine", Must::BeDenied),
    app("run-shell", "runs a shell", Must::BeDenied),
    app("mount", "changes mounts", Must::BeDenied),
    app("load-module", "loads a module into Linux", Must::BeDenied),
    app("set-time", "sets the system's clock", Must::BeDenied),
    Case {
        name: "ring-garbage",
        what: "writes over the whole memory that it shares with the kernel, indices too",
        by: By::Ring,
        must: Must::End(&["broke the rules of its port"]),
    },
    app("forged-datapath", "commands a switch that does not exist", Must::BeRefused),
    app("forged-cookie", "writes rules with others' owner in the cookie", Must::OwnItsRules),
    app("change-others", "changes the firewall's rule", Must::HurtNobody),
    app("replace-others", "adds a rule in place of the firewall's", Must::BeRefused),
    app("delete-others", "deletes the firewall's rule", Must::HurtNobody),
    app("clear-tables", "deletes every rule in every table", Must::HurtNobody),
    bounded("table-flood", "adds 20,000 rules to each switch", FEW_RULES, Must::BeLimited),
    app("rule-flood", "adds the same rule 20,000 times to each switch", Must::HurtNobody),
    app("packet-out-flood", "sends 20,000 packets from each switch", Must::HurtNobody),
    bounded(
        "uninvited",
        "subscribes, commands and asks without a capability",
        NO_CAPABILITY,
        Must::BeRefused,
    ),
    app("malformed", "commands rules whose match or actions are no such thing", Must::BeRefused),
    bounded(
        "rewrite-escape",
        "writes a rule whose actions lead out of its flowspace",
        BOUNDED,
        Must::BeRefused,
    ),
    bounded("silence-all", "meters what switches send up for every app", BOUNDED, Must::BeRefused),
    app("output-flood", "adds a rule of 16 KB 600 times to each switch at once", Must::HurtNobody),
    app("ask-flood", "asks another app faster than that one reads", Must::BeLimited),
    bounded("store-flood", "keeps ten MiB in the store at once", SMALL_STORE, Must::KeepNoMore(3)),
    bounded("store-others", "reads and writes the store's keys of others", SMALL_STORE, Must::BeRefused),
    package(
        "old-package",
        "installs an old package of an app that has a newer one",
        PackageAttack::Replay,
        Must::BeTurnedAway("is older than 2.0.0"),
    ),
    package(
        "altered-package",
        "flips a bit of an installed program and starts it again",
        PackageAttack::Tamper,
        Must::BeTurnedAway("was altered on disk"),
    ),
    package(
        "altered-while-running",
        "flips a bit of the program of an app that runs",
        PackageAttack::TamperRunning,
        Must::BeTurnedAway("was altered on disk"),
    ),
    package(
        "outlived-key",
        "goes on running when its key is revoked",
        PackageAttack::OutliveKey,
        Must::BeTurnedAway("is signed with a revoked key"),
    ),
    package(
        "greedy-update",
        "updates an app to one that asks for more, and nobody says yes",
        PackageAttack::AskForMore,
        Must::BeTurnedAway("nobody can be asked here"),
    ),
    switch("no-hello", "says a packet-in before any hello", SwitchAttack::NoHello, Must::BeCutOff),
    switch(
        "wrong-version",
        "says hello in a version that is not spoken here",
        SwitchAttack::WrongVersion,
        Must::BeCutOff,
    ),
    switch(
        "mixed-version",
        "agrees on one version and goes on in another",
        SwitchAttack::MixedVersion,
        Must::BeCutOff,
    ),
    switch(
        "bad-length",
        "states a length that is less than a header's",
        SwitchAttack::BadLength,
        Must::BeCutOff,
    ),
    switch("bad-types", "sends messages of types that do not exist", SwitchAttack::BadTypes, Must::BeCutOff),
    switch(
        "damaged-messages",
        "sends messages whose insides are garbage",
        SwitchAttack::Damaged,
        Must::BeCutOff,
    ),
    switch(
        "stolen-datapath",
        "comes up with the datapath id of a switch that is up",
        SwitchAttack::StolenDatapath,
        Must::BeCutOff,
    ),
    switch("half-open", "opens 300 connections and says nothing", SwitchAttack::HalfOpen, Must::HurtNobody),
    switch(
        "packet-in-flood",
        "sends packet-ins as fast as they go",
        SwitchAttack::PacketInFlood,
        Must::HurtNobody,
    ),
    switch("slow-reader", "asks and asks, and reads nothing", SwitchAttack::SlowReader, Must::HurtNobody),
    switch(
        "false-removals",
        "tells of rules that went and never were",
        SwitchAttack::FalseRemovals,
        Must::HurtNobody,
    ),
    switch(
        "false-ports",
        "tells of ports by the thousand that do not exist",
        SwitchAttack::FalsePorts,
        Must::HurtNobody,
    ),
    switch(
        "error-storm",
        "answers what nobody asked with errors",
        SwitchAttack::ErrorStorm,
        Must::HurtNobody,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_case_has_a_name_of_its_own_and_its_app_knows_it() {
        let names: BTreeSet<&str> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
        for case in CASES {
            if matches!(case.by, By::App(_)) {
                let read = serde_json::from_value::<misbehaving::Attack>(case.name.into());
                assert!(read.is_ok(), "{}", case.name);
            }
        }
    }
}
