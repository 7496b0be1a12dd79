//! Gathers facts about this machine.
//!
//! In: `/proc`, `/sys`, the folders of programs, a temporary memfd. Out: [`Facts`]. It draws no conclusions and
//! changes nothing. What it cannot read counts as missing.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::process::Resource;

use zone::NotEnforced;

use super::proc;

/// The ports to check: the two of OpenFlow, and the one for REST and the web page.
const PORTS: [u16; 3] = [6653, 6633, 8181];

/// The controllers that limit an app's use of the machine.
pub(super) const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

/// Folders of system programs that a user's `PATH` may lack.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The facts about this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Linux's release.
    pub linux: String,
    /// Whether this process runs as root.
    pub root: bool,
    /// Effective capabilities, one bit each (capabilities(7)).
    pub capabilities: u64,
    /// The number of cores that this process may use.
    pub cores: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Available memory, in bytes.
    pub memory_available_bytes: u64,
    /// Soft limit of open descriptors. `None`: unlimited.
    pub open_files_soft: Option<u64>,
    /// Hard limit of open descriptors. `None`: unlimited.
    pub open_files_hard: Option<u64>,
    /// What prevents an ordinary user from creating namespaces, if anything.
    pub user_namespaces_forbidden: Option<String>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Landlock's ABI number, or why Landlock is missing.
    pub landlock: Result<u32, String>,
    /// Control groups.
    pub cgroup: Cgroup,
    /// What a test zone does not enforce, or why it could not be confined.
    pub zone: Result<Vec<NotEnforced>, String>,
    /// Why memory cannot be shared and sealed. `None`: it can.
    pub memfd_sealing: Result<(), String>,
    /// The ports that a node uses.
    pub ports: Vec<PortFact>,
    /// The path of Open vSwitch's daemon.
    pub ovs_vswitchd: Option<PathBuf>,
    /// Whether Linux has Open vSwitch's datapath.
    pub ovs_module: OvsModule,
    /// Mininet.
    pub mininet: Option<PathBuf>,
    /// Wireshark's command-line program.
    pub tshark: Option<PathBuf>,
    /// Ping.
    pub ping: Option<PathBuf>,
}

/// The control groups that can limit apps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Which version has the controllers.
    pub version: CgroupVersion,
    /// Those of `cpu`, `memory` and `pids` with which this process may create groups.
    pub writable: Vec<String>,
}

/// The version of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// None is mounted.
    None,
    /// Version 1: one hierarchy for each controller.
    V1,
    /// Version 2: one hierarchy for all.
    V2,
}

/// A port, and the process that listens on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFact {
    /// Its number.
    pub port: u16,
    /// Whether a process listens on it.
    pub in_use: bool,
    /// Which process. `None` also if this user may not know it.
    pub holder: Option<Holder>,
}

/// A process that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its name, safe to print on a terminal.
    pub name: String,
}

/// Whether Linux can forward packets for Open vSwitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OvsModule {
    /// The module is loaded.
    Loaded,
    /// The module can be loaded.
    Loadable,
    /// There is no module.
    Absent,
}

impl Facts {
    /// Gathers all facts. `zone` is the result of the test zone.
    pub fn gather(zone: Result<Vec<NotEnforced>, String>) -> Facts {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let meminfo = read("/proc/meminfo");
        let memory = |name| proc::meminfo_bytes(&meminfo, name).unwrap_or(0);
        let open_files = rustix::process::getrlimit(Resource::Nofile);
        Facts {
            root: rustix::process::geteuid().is_root(),
            capabilities: proc::effective_capabilities(&read("/proc/self/status")).unwrap_or(0),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory("MemTotal"),
            memory_available_bytes: memory("MemAvailable"),
            open_files_soft: open_files.current,
            open_files_hard: open_files.maximum,
            user_namespaces_forbidden: user_namespaces_forbidden(),
            seccomp: Path::new("/proc/sys/kernel/seccomp/actions_avail").exists(),
            landlock: zone::landlock::abi().map_err(|error| error.to_string()),
            cgroup: cgroup(),
            zone,
            memfd_sealing: memfd_sealing(),
            ports: ports(),
            ovs_vswitchd: program("ovs-vswitchd"),
            ovs_module: ovs_module(&release),
            mininet: program("mn"),
            tshark: program("tshark"),
            ping: program("ping"),
            linux: release,
        }
    }
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The settings with which distributions forbid user namespaces (user_namespaces(7); Debian's and Ubuntu's own).
fn user_namespaces_forbidden() -> Option<String> {
    let says = |path: &str, value: &str| read(path).trim() == value;
    let switches = [
        ("user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", "0"),
        ("kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone", "0"),
        (
            "kernel.apparmor_restrict_unprivileged_userns",
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
        ),
    ];
    if !Path::new("/proc/self/ns/user").exists() {
        return Some("Linux was built without them".to_owned());
    }
    let forbidding = switches.into_iter().find(|(_, path, value)| says(path, value));
    forbidding.map(|(name, _, value)| format!("sysctl {name} is {value}"))
}

fn memfd_sealing() -> Result<(), String> {
    ring::Board::create().map(drop).map_err(|error| error.to_string())
}

fn cgroup() -> Cgroup {
    let (mounts, places) = (read("/proc/self/mounts"), read("/proc/self/cgroup"));
    let may_write = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
    let place = |mount: &str, controller: &str| {
        let place = proc::cgroup_place(&places, controller).unwrap_or("/").trim_start_matches('/');
        Path::new(mount).join(place)
    };
    let hierarchies = proc::mounts(&mounts, "cgroup");
    let controlled = |name: &str| hierarchies.iter().find(|(_, options)| options.contains(&name));
    if CONTROLLERS.iter().any(|name| controlled(name).is_some()) {
        let writable = CONTROLLERS
            .iter()
            .filter(|name| controlled(name).is_some_and(|(mount, _)| may_write(&place(mount, name))));
        return Cgroup { version: CgroupVersion::V1, writable: writable.map(ToString::to_string).collect() };
    }
    let unified = proc::mounts(&mounts, "cgroup2");
    let Some((mount, _)) = unified.first() else {
        return Cgroup { version: CgroupVersion::None, writable: Vec::new() };
    };
    let own = place(mount, "");
    let available = read(own.join("cgroup.controllers"));
    let may_write = may_write(&own) && may_write(&own.join("cgroup.subtree_control"));
    let writable = CONTROLLERS
        .iter()
        .filter(|name| may_write && available.split_whitespace().any(|available| available == **name));
    Cgroup { version: CgroupVersion::V2, writable: writable.map(ToString::to_string).collect() }
}

fn ports() -> Vec<PortFact> {
    let tables = [read("/proc/net/tcp"), read("/proc/net/tcp6")];
    PORTS
        .iter()
        .map(|port| {
            let inode = tables.iter().find_map(|table| proc::listener_inode(table, *port));
            PortFact { port: *port, in_use: inode.is_some(), holder: inode.and_then(holder) }
        })
        .collect()
}

/// The process that has the socket open. Only root can see the sockets of all processes.
fn holder(inode: u64) -> Option<Holder> {
    let socket = format!("socket:[{inode}]");
    let holds = |process: &Path| {
        let descriptors = fs::read_dir(process.join("fd")).ok();
        let mut links =
            descriptors.into_iter().flatten().flatten().filter_map(|fd| fs::read_link(fd.path()).ok());
        links.any(|link| link.as_os_str() == socket.as_str())
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut processes =
        processes.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    let (pid, process) = processes.find(|(_, process)| holds(process))?;
    // A process chooses its own name, so it may contain control characters.
    let name = read(process.join("comm")).trim_end().escape_debug().to_string();
    Some(Holder { pid, name })
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM_FOLDERS.iter().map(PathBuf::from));
    let mut candidates = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    candidates.find(|file| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok())
}

fn ovs_module(release: &str) -> OvsModule {
    let modules = Path::new("/lib/modules").join(release);
    let known = ["modules.builtin", "modules.dep"].map(|list| read(modules.join(list)));
    if Path::new("/sys/module/openvswitch").exists() {
        OvsModule::Loaded
    } else if known.iter().any(|list| list.contains("/openvswitch.ko")) {
        OvsModule::Loadable
    } else {
        OvsModule::Absent
    }
}
