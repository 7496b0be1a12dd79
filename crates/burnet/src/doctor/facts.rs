//! What is the case on this machine.
//!
//! In: `/proc`, `/sys`, the folders of programs, a memfd that is made and dropped. Out: [`Facts`]. It judges nothing and
//! changes nothing; what cannot be read counts as not there.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::process::Resource;

use zone::NotEnforced;

use super::proc;

/// The ports that are looked at: the two of OpenFlow, and the one for REST and the web page.
const PORTS: [u16; 3] = [6653, 6633, 8181];

/// The controllers that limit what an app takes of the machine.
pub(super) const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

/// Where programs of the system are that a user's `PATH` may leave out.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// What is the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Linux's release.
    pub linux: String,
    /// Whether this is root.
    pub root: bool,
    /// Effective capabilities, a bit each (capabilities(7)).
    pub capabilities: u64,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Memory that is to be had now, in bytes.
    pub memory_available_bytes: u64,
    /// Descriptors that a process has; `None` if there is no limit.
    pub open_files_soft: Option<u64>,
    /// Descriptors that a process may ask for; `None` if there is no limit.
    pub open_files_hard: Option<u64>,
    /// What keeps an ordinary user from making namespaces, if something does.
    pub user_namespaces_forbidden: Option<String>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Landlock's ABI, or why there is none.
    pub landlock: Result<u32, String>,
    /// Control groups.
    pub cgroup: Cgroup,
    /// What a zone that was closed for a trial does not enforce, or why none could be closed.
    pub zone: Result<Vec<NotEnforced>, String>,
    /// Why memory cannot be shared and sealed, if it cannot.
    pub memfd_sealing: Result<(), String>,
    /// The ports that a node uses.
    pub ports: Vec<PortFact>,
    /// Open vSwitch's daemon.
    pub ovs_vswitchd: Option<PathBuf>,
    /// Open vSwitch's datapath in Linux.
    pub ovs_module: OvsModule,
    /// Mininet.
    pub mininet: Option<PathBuf>,
    /// Wireshark without windows.
    pub tshark: Option<PathBuf>,
    /// Ping.
    pub ping: Option<PathBuf>,
}

/// Control groups, as far as they limit apps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Which interface has the controllers.
    pub version: CgroupVersion,
    /// Of `cpu`, `memory` and `pids`, those with which this process may make groups.
    pub writable: Vec<String>,
}

/// Which interface of control groups there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// None is mounted.
    None,
    /// A hierarchy for each controller.
    V1,
    /// One hierarchy.
    V2,
}

/// A port, and who listens on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFact {
    /// Its number.
    pub port: u16,
    /// Whether something listens on it.
    pub in_use: bool,
    /// Who; `None` as well if this user may not know.
    pub holder: Option<Holder>,
}

/// A process that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub pid: u32,
    /// Its name, fit for a terminal.
    pub name: String,
}

/// Whether Linux can forward for Open vSwitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OvsModule {
    /// It does.
    Loaded,
    /// It can be told to.
    Loadable,
    /// It cannot.
    Absent,
}

impl Facts {
    /// Looks. `zone` is what came of the trial.
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

/// The switches by which distributions forbid them (user_namespaces(7); Debian's and Ubuntu's own).
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

/// The process that has the socket open. Only root may look into everybody's.
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
    // A process chooses its name itself, so it might hold anything.
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
