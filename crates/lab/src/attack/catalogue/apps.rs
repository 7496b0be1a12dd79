//! Attacks by an app: on itself, on the machine, on shared folders, and on the store.

use super::super::case::{By, Case, FOLDERS, Family, Must, On, SMALL_STORE, SMALL_VIEW, USUAL, VIEW};

pub(super) const CASES: &[Case] = &[
    Case::app(Family::Body, "exit", "calls exit()", VIEW, Must::End(&["exit code 7"])).on(On::Any),
    Case::app(Family::Body, "abort", "aborts", VIEW, Must::End(&["SIGABRT"])).on(On::Any),
    Case::app(Family::Body, "segfault", "reads an address that is not mapped", VIEW, Must::End(&["SIGSEGV"]))
        .on(On::Any),
    Case::app(Family::Body, "panic", "panics in a handler", VIEW, Must::End(&["exit code 101"])).on(On::Any),
    Case::app(Family::Body, "kill-itself", "kills itself with SIGKILL", VIEW, Must::End(&["SIGKILL"]))
        .on(On::Any),
    Case::app(Family::Body, "deadlock", "never returns from a handler, asleep", VIEW, Must::HurtNobody)
        .on(On::Any),
    Case::app(Family::Body, "infinite-loop", "never returns from a handler, awake", VIEW, Must::HurtNobody)
        .on(On::Any),
    Case::app(
        Family::Body,
        "stop-reading",
        "requests 40,000 receipts and reads none",
        USUAL,
        Must::End(&["stopped reading"]),
    )
    .on(On::Any),
    Case::app(
        Family::Body,
        "restart-storm",
        "ends as soon as it is started, again and again",
        VIEW,
        Must::End(&["exit code 7"]),
    )
    .on(On::Any),
    Case::by(
        Family::Body,
        "restart-storms",
        "eight apps end as soon as they are started, again and again",
        By::Storm(8),
        Must::End(&["exit code 1"]),
    ),
    Case::by(
        Family::Body,
        "ring-garbage",
        "overwrites all memory that it shares with the kernel, including the indices",
        By::Ring,
        Must::End(&["broke the rules of its port"]),
    ),
    Case::app(Family::Machine, "fork-bomb", "starts processes without end", SMALL_VIEW, Must::BeDenied)
        .on(On::Any),
    Case::app(
        Family::Machine,
        "memory-leak",
        "allocates memory without end",
        SMALL_VIEW,
        Must::End(&["SIGABRT", "SIGKILL"]),
    )
    .on(On::Any),
    Case::app(Family::Machine, "descriptor-leak", "opens files without end", VIEW, Must::BeDenied)
        .on(On::Any),
    Case::app(Family::Machine, "thread-bomb", "starts threads without end", SMALL_VIEW, Must::BeDenied)
        .on(On::Any),
    Case::app(
        Family::Machine,
        "disk-fill",
        "writes files without end, in every folder that may be writable",
        VIEW,
        Must::BeDenied,
    )
    .on(On::Any),
    Case::app(Family::Machine, "log-flood", "writes 220,000 lines into the log", VIEW, Must::BeCutShort)
        .on(On::Any),
    Case::app(
        Family::Machine,
        "read-files",
        "reads the password file and the node's own files",
        VIEW,
        Must::BeDenied,
    )
    .on(On::Any),
    Case::app(
        Family::Machine,
        "read-memory",
        "reads the memory of the kernel and of other apps",
        VIEW,
        Must::BeDenied,
    )
    .on(On::Any),
    Case::app(Family::Machine, "ptrace", "traces the kernel and other apps", VIEW, Must::BeDenied)
        .on(On::Any),
    Case::app(Family::Machine, "signals", "sends signals to the kernel and other apps", VIEW, Must::BeDenied)
        .on(On::Any),
    Case::app(
        Family::Machine,
        "raw-socket",
        "opens packet, raw, netlink and UDP sockets",
        VIEW,
        Must::BeDenied,
    )
    .on(On::Any),
    Case::app(Family::Machine, "connect-out", "connects to a server on this machine", VIEW, Must::BeDenied)
        .on(On::Any),
    Case::app(Family::Machine, "run-shell", "runs a shell", VIEW, Must::BeDenied).on(On::Any),
    Case::app(Family::Machine, "mount", "changes mounts", VIEW, Must::BeDenied).on(On::Any),
    Case::app(Family::Machine, "load-module", "loads a module into Linux", VIEW, Must::BeDenied).on(On::Any),
    Case::app(Family::Machine, "set-time", "sets the system's clock", VIEW, Must::BeDenied).on(On::Any),
    Case::app(
        Family::Folders,
        "planted-link",
        "replaces a granted folder by a link to another folder",
        FOLDERS,
        Must::KeepOut,
    )
    .on(On::Any),
    Case::app(
        Family::Folders,
        "planted-file-link",
        "replaces a granted file by a link to another file",
        FOLDERS,
        Must::KeepOut,
    )
    .on(On::Any),
    Case::app(
        Family::Store,
        "store-flood",
        "writes ten MiB into the store at once",
        SMALL_STORE,
        Must::KeepNoMore(3),
    )
    .on(On::Any),
    Case::app(
        Family::Store,
        "store-others",
        "reads and writes keys of other apps in the store",
        SMALL_STORE,
        Must::BeRefused,
    )
    .on(On::Any),
];
