//! Draws conclusions from the facts. Pure.
//!
//! In: [`Facts`]. Out: a [`Finding`] for each. They come in the order in which an operator needs them: what a node
//! requires, what its sandbox can use, who uses its ports, and tools to try it with.

use super::facts::{CONTROLLERS, CgroupVersion, Facts, OvsModule, PortFact};
use super::proc::linux_version;
use super::{Finding, State};
use std::path::Path;

/// The oldest Linux on which a node runs. The monitor waits for its children with `PIDFD_NONBLOCK` (pidfd_open(2)).
const LINUX_MIN: (u32, u32) = (5, 10);

/// How many descriptors a node needs to start: its sockets, those of a few apps, and the streams of all.
const OPEN_FILES_MIN: u64 = 64;

/// How many descriptors the default number of connections and the node itself need.
const OPEN_FILES_DEFAULT: u64 = 4_096 + OPEN_FILES_MIN;

/// `CAP_NET_RAW` (capabilities(7)).
const NET_RAW: u64 = 1 << 13;

/// The finding for each fact.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![
        linux(facts),
        memfd(facts),
        open_files(facts),
        user(facts),
        cores(facts),
        memory(facts),
        user_namespaces(facts),
        seccomp(facts),
        landlock(facts),
        cgroup(facts),
        zone(facts),
    ];
    findings.extend(facts.ports.iter().map(port));
    findings.push(open_vswitch(facts));
    findings.push(ovs_datapath(facts));
    findings.push(mininet(facts));
    findings.push(tshark(facts));
    findings.push(ping(facts));
    findings.push(raw_sockets(facts));
    findings
}

fn ok(subject: &str, found: impl Into<String>) -> Finding {
    Finding {
        subject: subject.to_owned(),
        state: State::Ok,
        found: found.into(),
        follows: None,
        advice: None,
    }
}

fn lacks(
    subject: &str,
    found: impl Into<String>,
    follows: impl Into<String>,
    advice: impl Into<String>,
) -> Finding {
    let (follows, advice) = (Some(follows.into()), Some(advice.into()));
    Finding { state: State::Lacks, follows, advice, ..ok(subject, found) }
}

fn stops(finding: Finding) -> Finding {
    Finding { state: State::CannotRun, ..finding }
}

fn linux(facts: &Facts) -> Finding {
    let (major, minor) = LINUX_MIN;
    // A release without a version is a custom build, and is assumed to be new enough.
    if linux_version(&facts.linux).is_none_or(|version| version >= LINUX_MIN) {
        return ok("Linux", &facts.linux);
    }
    stops(lacks(
        "Linux",
        &facts.linux,
        format!("a node needs Linux {major}.{minor}: it watches its processes by pidfd"),
        "run it on a newer Linux",
    ))
}

fn memfd(facts: &Facts) -> Finding {
    match &facts.memfd_sealing {
        Ok(()) => ok("sealed memfd", "memory can be shared with apps"),
        Err(error) => stops(lacks(
            "sealed memfd",
            error,
            "no app can run in a process zone, because it cannot share memory with the kernel",
            "allow memfd_create (a container's seccomp profile may forbid it)",
        )),
    }
}

fn open_files(facts: &Facts) -> Finding {
    let subject = "open files";
    let Some(soft) = facts.open_files_soft else { return ok(subject, "no limit") };
    let found = match facts.open_files_hard {
        Some(hard) => format!("{soft} for a process (may be raised to {hard})"),
        None => format!("{soft} for a process (may be raised)"),
    };
    let advice =
        format!("ulimit -n {OPEN_FILES_DEFAULT} before burnet run, or LimitNOFILE= of its systemd unit");
    if soft < OPEN_FILES_MIN {
        return stops(lacks(subject, found, format!("a node needs {OPEN_FILES_MIN}"), advice));
    }
    if soft < OPEN_FILES_DEFAULT {
        let switches = soft - OPEN_FILES_MIN;
        return lacks(subject, found, format!("about {switches} switches can be connected at once"), advice);
    }
    ok(subject, found)
}

fn user(facts: &Facts) -> Finding {
    if facts.root {
        return lacks(
            "user",
            "root",
            "a fault in the node has the rights of root; apps run as users of their own",
            "run the node as a user of its own; its ports need no privilege",
        );
    }
    ok("user", "not root; a node needs no privilege, tests against real switches do")
}

fn cores(facts: &Facts) -> Finding {
    match facts.cores {
        0 | 1 => lacks(
            "cores",
            "1",
            "the kernel and its apps take turns, so packets wait for each other",
            "leave --workers at 1",
        ),
        cores => ok("cores", format!("{cores}; --workers up to {} leaves one for the apps", cores - 1)),
    }
}

fn memory(facts: &Facts) -> Finding {
    const MEBIBYTE: u64 = 1 << 20;
    let (total, available) = (facts.memory_bytes / MEBIBYTE, facts.memory_available_bytes / MEBIBYTE);
    let found = format!("{available} MiB of {total} MiB are available");
    let app = zone::Limits::default().memory_bytes;
    if facts.memory_available_bytes < app {
        return lacks(
            "memory",
            found,
            format!("an app may take {} MiB by default, which is more", app / MEBIBYTE),
            "set memory_bytes in [app.NAME.limits] of burnet.toml",
        );
    }
    ok("memory", found)
}

fn user_namespaces(facts: &Facts) -> Finding {
    match &facts.user_namespaces_forbidden {
        None => ok("user namespaces", "allowed"),
        Some(by) if facts.root => ok("user namespaces", format!("{by}, but root needs none")),
        Some(by) => lacks(
            "user namespaces",
            by,
            "apps run without a root, a network and processes of their own; Landlock and the filter of system calls remain",
            "allow them by sysctl, if this machine's rules permit, or run the node as root",
        ),
    }
}

fn seccomp(facts: &Facts) -> Finding {
    if facts.seccomp {
        return ok("seccomp", "filters are supported");
    }
    lacks(
        "seccomp",
        "Linux was built without filters",
        "apps run without a filter of their system calls",
        "run a Linux with CONFIG_SECCOMP_FILTER",
    )
}

fn landlock(facts: &Facts) -> Finding {
    match &facts.landlock {
        Ok(abi) => ok("Landlock", format!("ABI {abi}")),
        Err(error) => lacks(
            "Landlock",
            error,
            "only an empty root folder hides the machine's files from apps",
            "run a Linux with CONFIG_SECURITY_LANDLOCK and landlock among the lsm= of its command line",
        ),
    }
}

fn cgroup(facts: &Facts) -> Finding {
    let cgroup = &facts.cgroup;
    let interface = match cgroup.version {
        CgroupVersion::None => "none mounted",
        CgroupVersion::V1 => "version 1",
        CgroupVersion::V2 => "version 2",
    };
    let missing: Vec<&str> =
        CONTROLLERS.into_iter().filter(|name| !cgroup.writable.iter().any(|have| have == name)).collect();
    if missing.is_empty() {
        return ok("cgroups", format!("{interface}, writable: {}", cgroup.writable.join(", ")));
    }
    lacks(
        "cgroups",
        format!("{interface}, not writable: {}", missing.join(", ")),
        format!("the {} of each process is limited, but not that of the whole zone", missing.join(", ")),
        "run the node as a systemd unit with Delegate=yes, or as root",
    )
}

fn zone(facts: &Facts) -> Finding {
    const MAY_BE_DEMANDED: &str =
        "apps run without this protection, and those with enforce = \"strict\" do not start";
    match &facts.zone {
        Ok(gaps) if gaps.is_empty() => ok("zone", "a trial zone was started, and everything is enforced"),
        Ok(gaps) => {
            let limits: Vec<_> = gaps.iter().map(|gap| gap.limit.as_str()).collect();
            let why: Vec<_> = gaps.iter().map(|gap| gap.why.as_str()).collect();
            lacks(
                "zone",
                format!("not enforced in a trial: {}", limits.join(", ")),
                MAY_BE_DEMANDED,
                why.join("; "),
            )
        }
        Err(error) => lacks(
            "zone",
            error,
            "no app runs in a process zone",
            "fix the problems named above, or run apps as trusted apps, without a sandbox",
        ),
    }
}

fn port(fact: &PortFact) -> Finding {
    let PortFact { port, in_use, holder } = fact;
    let subject = format!("port {port}");
    let is_openflow = *port != 8181;
    if !in_use {
        return ok(
            &subject,
            if is_openflow { "free" } else { "free (REST and the web page of a node with [network])" },
        );
    }
    let by = holder.as_ref().map_or_else(
        || "in use by a process of another user".to_owned(),
        |holder| format!("in use by {} (process {})", holder.name, holder.pid),
    );
    if !is_openflow {
        return lacks(
            &subject,
            by,
            "the service northbound of a node with [network] cannot listen there",
            "stop that process, or set listen in [network.northbound]",
        );
    }
    lacks(
        &subject,
        by,
        "burnet run cannot listen there, and ends with exit code 2 unless told otherwise",
        format!("end that process, or choose another port: burnet run --listen 0.0.0.0:{}", port + 10_000),
    )
}

/// A program that was found, or the consequence of its absence and the Debian package that has it.
fn program(subject: &str, path: Option<&Path>, follows: &str, package: &str) -> Finding {
    match path {
        Some(path) => ok(subject, path.display().to_string()),
        None => lacks(subject, "not installed", follows, format!("apt install {package}")),
    }
}

fn open_vswitch(facts: &Facts) -> Finding {
    let follows = "there is no real switch here to test a node with; burnet demo emulates switches";
    program("Open vSwitch", facts.ovs_vswitchd.as_deref(), follows, "openvswitch-switch")
}

fn ovs_datapath(facts: &Facts) -> Finding {
    match facts.ovs_module {
        OvsModule::Loaded => ok("OVS datapath", "in Linux"),
        OvsModule::Loadable => ok("OVS datapath", "in Linux, once loaded: modprobe openvswitch"),
        OvsModule::Absent => lacks(
            "OVS datapath",
            "Linux has no module openvswitch",
            "Open vSwitch forwards in user space here, which is slower",
            "make bridges with datapath_type=netdev, and run Mininet with --switch ovsk,datapath=user",
        ),
    }
}

fn mininet(facts: &Facts) -> Finding {
    let follows = "no network of real switches and hosts can be emulated; burnet demo needs none";
    match (&facts.mininet, facts.root) {
        (Some(path), false) => lacks(
            "Mininet",
            path.display().to_string(),
            "it runs only as root",
            "sudo mn …; the node itself may stay as it is",
        ),
        (path, _) => program("Mininet", path.as_deref(), follows, "mininet"),
    }
}

fn tshark(facts: &Facts) -> Finding {
    let follows = "packets on the wire cannot be captured";
    program("tshark", facts.tshark.as_deref(), follows, "tshark")
}

fn ping(facts: &Facts) -> Finding {
    program("ping", facts.ping.as_deref(), "Mininet's hosts cannot ping", "iputils-ping")
}

fn raw_sockets(facts: &Facts) -> Finding {
    if facts.capabilities & NET_RAW != 0 {
        return ok("raw sockets", "allowed (CAP_NET_RAW)");
    }
    lacks(
        "raw sockets",
        "this user lacks CAP_NET_RAW",
        "interfaces cannot be captured from; a node itself needs none",
        "run what captures as root",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Cgroup, Holder};

    /// A machine that lacks nothing.
    fn sound() -> Facts {
        Facts {
            linux: "6.1.0-13-amd64".to_owned(),
            root: false,
            capabilities: NET_RAW,
            cores: 4,
            memory_bytes: 8 << 30,
            memory_available_bytes: 4 << 30,
            open_files_soft: Some(8192),
            open_files_hard: None,
            user_namespaces_forbidden: None,
            seccomp: true,
            landlock: Ok(4),
            cgroup: Cgroup { version: CgroupVersion::V2, writable: CONTROLLERS.map(str::to_owned).to_vec() },
            zone: Ok(Vec::new()),
            memfd_sealing: Ok(()),
            ports: [6653, 6633, 8181].map(|port| PortFact { port, in_use: false, holder: None }).to_vec(),
            ovs_vswitchd: Some("/usr/sbin/ovs-vswitchd".into()),
            ovs_module: OvsModule::Loaded,
            mininet: None,
            tshark: Some("/usr/bin/tshark".into()),
            ping: Some("/usr/bin/ping".into()),
        }
    }

    /// The finding about a subject, on a machine that differs from a complete one by `change`.
    fn finding(subject: &str, change: impl FnOnce(&mut Facts)) -> Finding {
        let mut facts = sound();
        change(&mut facts);
        let about = judge(&facts).into_iter().find(|finding| finding.subject == subject);
        about.unwrap_or_else(|| panic!("nothing is said of {subject}"))
    }

    fn check(subject: &str, change: impl FnOnce(&mut Facts), state: State, words: &str) {
        let finding = finding(subject, change);
        let said = format!("{} / {:?} / {:?}", finding.found, finding.follows, finding.advice);
        assert_eq!(finding.state, state, "{said}");
        assert!(said.contains(words), "{said}");
    }

    #[test]
    fn without_these_no_node_can_run() {
        check("Linux", |facts| facts.linux = "5.9.1".to_owned(), State::CannotRun, "needs Linux 5.10");
        check("Linux", |facts| facts.linux = "4.19".to_owned(), State::CannotRun, "newer Linux");
        let refused = Err("Operation not permitted".to_owned());
        check("sealed memfd", |facts| facts.memfd_sealing = refused, State::CannotRun, "not permitted");
        check("open files", |facts| facts.open_files_soft = Some(63), State::CannotRun, "needs 64");
    }

    #[test]
    fn what_is_lacking_says_what_follows() {
        check("open files", |facts| facts.open_files_soft = Some(1024), State::Lacks, "about 960 switches");
        check("user", |facts| facts.root = true, State::Lacks, "a fault in the node");
        check("cores", |facts| facts.cores = 1, State::Lacks, "take turns");
        check("memory", |facts| facts.memory_available_bytes = 1 << 20, State::Lacks, "512 MiB by default");
        check("seccomp", |facts| facts.seccomp = false, State::Lacks, "without a filter");
        let off = Err("Operation not supported".to_owned());
        check("Landlock", |facts| facts.landlock = off, State::Lacks, "only an empty root folder");
        let by = Some("sysctl user.max_user_namespaces is 0".to_owned());
        check("user namespaces", |facts| facts.user_namespaces_forbidden = by, State::Lacks, "is 0");
        check("cgroups", |facts| drop(facts.cgroup.writable.remove(1)), State::Lacks, "not writable: memory");
        let gap = vec![zone::NotEnforced::new("own_user", "the node is not root's")];
        check("zone", |facts| facts.zone = Ok(gap), State::Lacks, "not enforced in a trial: own_user");
        let failed = Err("the sandbox of the zone is not complete".to_owned());
        check("zone", |facts| facts.zone = failed, State::Lacks, "no app runs in a process zone");
        let absent = |facts: &mut Facts| facts.ovs_module = OvsModule::Absent;
        check("OVS datapath", absent, State::Lacks, "datapath_type=netdev");
        check(
            "Open vSwitch",
            |facts| facts.ovs_vswitchd = None,
            State::Lacks,
            "apt install openvswitch-switch",
        );
        check("tshark", |facts| facts.tshark = None, State::Lacks, "apt install tshark");
        check("ping", |facts| facts.ping = None, State::Lacks, "cannot ping");
        check("Mininet", |facts| facts.mininet = Some("/usr/bin/mn".into()), State::Lacks, "only as root");
        check("raw sockets", |facts| facts.capabilities = 0, State::Lacks, "CAP_NET_RAW");
    }

    #[test]
    fn a_port_in_use_is_said_with_who_uses_it() {
        let holder = Some(Holder { pid: 7, name: "ovs-testcontrol".to_owned() });
        let taken = |facts: &mut Facts| facts.ports[0] = PortFact { port: 6653, in_use: true, holder };
        check("port 6653", taken, State::Lacks, "in use by ovs-testcontrol (process 7)");
        let hidden = |facts: &mut Facts| facts.ports[1].in_use = true;
        check("port 6633", hidden, State::Lacks, "a process of another user");
        check("port 8181", |facts| facts.ports[2].in_use = true, State::Lacks, "northbound");
    }

    #[test]
    fn whatever_lacks_says_what_follows_and_what_to_do() {
        let mut facts = sound();
        (facts.root, facts.cores, facts.seccomp, facts.capabilities) = (true, 1, false, 0);
        (facts.ovs_vswitchd, facts.tshark, facts.ping) = (None, None, None);
        for finding in judge(&facts) {
            let lacks = finding.state != State::Ok;
            assert_eq!(finding.follows.is_some(), lacks, "{}", finding.subject);
            assert_eq!(finding.advice.is_some(), lacks, "{}", finding.subject);
        }
    }

    #[test]
    fn a_machine_that_lacks_nothing_is_told_so() {
        let mut facts = sound();
        (facts.mininet, facts.open_files_soft) = (None, None);
        let lacking: Vec<String> = judge(&facts)
            .into_iter()
            .filter(|found| found.state != State::Ok)
            .map(|found| found.subject)
            .collect();
        assert_eq!(lacking, ["Mininet"]);
    }
}
