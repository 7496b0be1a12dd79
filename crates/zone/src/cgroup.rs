//! Control groups: Linux counts and limits the memory, processor time and processes of a whole zone (cgroups(7)).
//! ```text
//!   <the node's own group>/burnet-PID/            one node        version 1: in each hierarchy; version 2: in the one
//!                              ├─ node/            the monitor and the kernel; version 2 alone, which asks for that
//!                              └─ APP.GENERATION/  one zone
//! ```
//!
//! In: the groups of this process ([`NodeGroups::find`]), and limits. Out: folders, and the limits that could not be
//! set. The launcher of a zone writes its process id into the `cgroup.procs` of each folder.
//! The monitor creates and removes the folders. An app does not see them.
//! It never moves a process of another program, and never waits. If a group still has processes, the monitor tries
//! again later.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::Limits;
use crate::sandbox::NotEnforced;

/// The controllers that limit an app.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];

/// Memory that a group counts beyond the app's own, in bytes: the ports, the launcher and init, and pages of the
/// binary. Linux counts a shared page for the process that touches it first.
const GROUP_ROOM_BYTES: u64 = 32 << 20;

/// The period within which Linux enforces the share of processor time (cfs_period_us). This is Linux's default.
const CPU_PERIOD_US: u64 = 100_000;

/// The folders in which a node may create groups.
#[derive(Debug, Default)]
pub struct NodeGroups {
    folders: Vec<Hierarchy>,
    /// The node's group in each folder, open and locked while the node lives. So no other node removes it as a
    /// leftover.
    held: Vec<File>,
    missing: Vec<NotEnforced>,
    /// `burnet-PID`.
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    /// The group of the calling process.
    own: PathBuf,
    controllers: Vec<&'static str>,
    unified: bool,
}

/// The groups of one zone. They exist until they are removed.
#[derive(Debug, Default)]
pub struct ZoneGroups {
    folders: Vec<PathBuf>,
}

impl NodeGroups {
    /// Parses `/proc/self/mounts` and `/proc/self/cgroup`. It does not touch the file system.
    #[must_use]
    pub fn find(mounts: &str, places: &str, node_pid: u32) -> NodeGroups {
        let mut found = NodeGroups { name: format!("burnet-{node_pid}"), ..NodeGroups::default() };
        for controller in CONTROLLERS {
            let of_version_1 = mounted(mounts, "cgroup", Some(controller))
                .map(|mount| (inside(mount, place(places, Some(controller))), false));
            let of_version_2 =
                || mounted(mounts, "cgroup2", None).map(|mount| (inside(mount, place(places, None)), true));
            match of_version_1.or_else(of_version_2) {
                Some((own, unified)) => found.add(own, unified, controller),
                None => found.missing.push(lacks(controller, "no control group of it is mounted")),
            }
        }
        found
    }

    /// Creates the node's group in each hierarchy, and removes the groups of nodes that have ended.
    #[must_use]
    pub fn make(mut self) -> NodeGroups {
        for hierarchy in std::mem::take(&mut self.folders) {
            sweep(&hierarchy.own);
            let folder = hierarchy.own.join(&self.name);
            let made = make_and_hold(&folder).and_then(|held| hierarchy.hand_down(&folder).map(|()| held));
            match made {
                Ok(held) => {
                    self.held.extend(held);
                    self.folders.push(hierarchy);
                }
                Err(error) => {
                    let why = |name: &&str| lacks(name, &format!("{}: {error}", folder.display()));
                    self.missing.extend(hierarchy.controllers.iter().map(why));
                }
            }
        }
        self
    }

    /// Creates the groups of a zone. Returns the limits that these groups do not enforce.
    #[must_use]
    pub fn zone(&self, name: &str, limits: &Limits) -> (ZoneGroups, Vec<NotEnforced>) {
        let mut groups = ZoneGroups::default();
        let mut gaps: Vec<_> =
            self.missing.iter().filter(|gap| is_asked(&gap.limit, limits)).cloned().collect();
        for hierarchy in &self.folders {
            let folder = hierarchy.own.join(&self.name).join(name);
            match make_folder(&folder) {
                Ok(()) => gaps.extend(hierarchy.limit(&folder, limits)),
                Err(error) => gaps.push(NotEnforced::new("cgroup", format!("{}: {error}", folder.display()))),
            }
            groups.folders.push(folder);
        }
        (groups, gaps)
    }

    /// Removes the node's groups, except those that still have processes.
    pub fn remove(&self) {
        for hierarchy in &self.folders {
            // In version 2 the monitor itself is in one of them. The next node removes it.
            let _ = fs::remove_dir(hierarchy.own.join(&self.name));
        }
    }

    fn add(&mut self, own: PathBuf, unified: bool, controller: &'static str) {
        match self.folders.iter_mut().find(|hierarchy| hierarchy.own == own) {
            Some(hierarchy) => hierarchy.controllers.push(controller),
            None => self.folders.push(Hierarchy { own, controllers: vec![controller], unified }),
        }
    }
}

impl ZoneGroups {
    /// The folders whose `cgroup.procs` the launcher writes to.
    #[must_use]
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Removes the groups. Returns `false` if a group still has processes: call it again later.
    #[must_use]
    pub fn remove(&mut self) -> bool {
        self.folders.retain(|folder| match fs::remove_dir(folder) {
            Ok(()) => false,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        });
        self.folders.is_empty()
    }
}

impl Hierarchy {
    /// In version 2 a group has processes or passes its controllers to child groups, not both. So the processes in
    /// the node's group move to a leaf.
    fn hand_down(&self, folder: &Path) -> io::Result<()> {
        if !self.unified {
            return Ok(());
        }
        let available = fs::read_to_string(self.own.join("cgroup.controllers"))?;
        let has = |name: &&&str| available.split_whitespace().any(|available| available == **name);
        if let Some(missing) = self.controllers.iter().find(|name| !has(name)) {
            return Err(io::Error::other(format!("version 2 has no controller {missing} here")));
        }
        make_folder(&folder.join("node"))?;
        fs::write(folder.join("node").join("cgroup.procs"), "0")?;
        let all: Vec<String> = self.controllers.iter().map(|name| format!("+{name}")).collect();
        for group in [self.own.as_path(), folder] {
            fs::write(group.join("cgroup.subtree_control"), all.join(" "))?;
        }
        Ok(())
    }

    fn limit(&self, folder: &Path, limits: &Limits) -> Vec<NotEnforced> {
        let mut gaps = Vec::new();
        for (controller, file, value) in self.settings(limits) {
            if !self.controllers.contains(&controller) {
                continue;
            }
            if let Err(error) = fs::write(folder.join(file), value) {
                let why = format!("{}: {error}", folder.join(file).display());
                gaps.extend(gap(controller, file, &why, || has_swap(&fs::read_to_string("/proc/swaps"))));
            }
        }
        gaps
    }

    fn settings(&self, limits: &Limits) -> Vec<(&'static str, &'static str, String)> {
        let memory = limits.memory_bytes.saturating_add(GROUP_ROOM_BYTES);
        // The limit of memory plus swap comes second: in version 1 it must not be below the memory limit.
        let mut settings = match self.unified {
            true => vec![
                ("memory", "memory.max", memory.to_string()),
                ("memory", SWAP, "0".to_owned()),
                ("memory", ALL_TOGETHER, "1".to_owned()),
            ],
            false => vec![
                ("memory", "memory.limit_in_bytes", memory.to_string()),
                ("memory", SWAP_OF_VERSION_1, memory.to_string()),
            ],
        };
        if let Some(processes) = limits.processes {
            settings.push(("pids", "pids.max", processes.saturating_add(WAITING_PROCESSES).to_string()));
        }
        if let Some(percent) = limits.cpu_percent {
            let quota_us = u64::from(percent.get()) * CPU_PERIOD_US / 100;
            settings.push(match self.unified {
                true => ("cpu", "cpu.max", format!("{quota_us} {CPU_PERIOD_US}")),
                false => ("cpu", "cpu.cfs_quota_us", quota_us.to_string()),
            });
        }
        settings
    }
}

/// No memory may be swapped out, because swap does not count as memory.
const SWAP: &str = "memory.swap.max";
const SWAP_OF_VERSION_1: &str = "memory.memsw.limit_in_bytes";

/// If memory runs out, Linux ends the whole zone, not one process of its choice. Before Linux 4.19, and in version 1,
/// it picks one process.
const ALL_TOGETHER: &str = "memory.oom.group";

/// What is not enforced if this file of a group could not be written.
fn gap(controller: &str, file: &str, why: &str, has_swap: impl FnOnce() -> bool) -> Option<NotEnforced> {
    match file {
        ALL_TOGETHER => None,
        SWAP | SWAP_OF_VERSION_1 => has_swap()
            .then(|| NotEnforced::new(limit_of(controller), format!("{why}; swapped memory is not counted"))),
        _ => Some(lacks(controller, why)),
    }
}

/// Parses `/proc/swaps`: a heading, and one line per swap area. If it cannot be read, assumes that swap exists.
fn has_swap(swaps: &io::Result<String>) -> bool {
    swaps.as_ref().map_or(true, |swaps| swaps.lines().count() > 1)
}

/// The launcher and init are in the group, but do not count as the app's processes.
const WAITING_PROCESSES: u32 = 2;

/// The limit that a controller enforces.
fn limit_of(controller: &str) -> &'static str {
    match controller {
        "memory" => "memory_bytes",
        "pids" => "processes",
        _ => "cpu_percent",
    }
}

fn lacks(controller: &str, why: &str) -> NotEnforced {
    let instead = match controller {
        "memory" => {
            "each process of the app is limited, and the monitor ends it when it sees that all of them together are beyond"
        }
        "pids" => "the app's user is limited, if it has one of its own",
        _ => "the monitor ends the app when it goes on beyond it",
    };
    NotEnforced::new(limit_of(controller), format!("{why}; {instead}"))
}

/// Whether these limits need it. The launcher limits processes too, and reports if it cannot.
fn is_asked(limit: &str, limits: &Limits) -> bool {
    limit == "memory_bytes" || (limit == "cpu_percent" && limits.cpu_percent.is_some())
}

fn mounted<'m>(mounts: &'m str, kind: &str, controller: Option<&str>) -> Option<&'m str> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (mount, its_kind, options) = (words.next()?, words.next()?, words.next()?);
        let has = |name: &str| options.split(',').any(|option| option == name);
        (its_kind == kind && controller.is_none_or(has)).then_some(mount)
    })
}

/// The group of this process, from a line such as `4:memory:/a/b` or, in version 2, `0::/a/b`.
fn place<'p>(places: &'p str, controller: Option<&str>) -> &'p str {
    let of = |line: &'p str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let same = match controller {
            Some(name) => controllers.split(',').any(|one| one == name),
            None => controllers.is_empty(),
        };
        same.then_some(path)
    };
    places.lines().find_map(of).unwrap_or("/")
}

fn inside(mount: &str, place: &str) -> PathBuf {
    Path::new(mount).join(place.trim_start_matches('/'))
}

fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

/// How often the node tries to create its group. A try fails if another node looks at the group or removes it at that
/// moment.
const TRIES_MAX: usize = 100;

/// Creates a node's group and locks it. It is used even if it cannot be locked: other nodes that see this node's
/// process leave it alone.
fn make_and_hold(folder: &Path) -> io::Result<Option<File>> {
    for _ in 0..TRIES_MAX {
        make_folder(folder)?;
        let held = File::open(folder).ok().filter(|group| group.try_lock_shared().is_ok());
        if held.is_some() && folder.exists() {
            return Ok(held);
        }
        std::thread::yield_now();
    }
    make_folder(folder).map(|()| None)
}

/// Returns a group, locked, if its node has ended. A node in another PID namespace is not visible, but it holds its
/// group's lock.
fn left_behind(group: &Path, pid: u32) -> Option<File> {
    let ended = !Path::new(&format!("/proc/{pid}")).exists();
    let unheld = |group: &File| group.try_lock().is_ok();
    File::open(group).ok().filter(|group| ended && unheld(group))
}

/// Removes the groups that ended nodes left behind.
fn sweep(own: &Path) {
    let Ok(entries) = fs::read_dir(own) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix("burnet-"))
            .and_then(|pid| pid.parse::<u32>().ok());
        // Locked until it is removed, so that no process enters it in between.
        if let Some(_held) = pid.and_then(|pid| left_behind(&entry.path(), pid)) {
            // Only folders: Linux removes the files of a group together with it.
            for zone in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(zone.path());
            }
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION_1: &str = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
                             cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
                             cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n\
                             cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
    const VERSION_2: &str = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";

    fn check(mounts: &str, places: &str, expected: &[(&str, &[&str], bool)], missing: &[&str]) {
        let found = NodeGroups::find(mounts, places, 7);
        let folders: Vec<_> = found
            .folders
            .iter()
            .map(|one| (one.own.to_str().unwrap(), one.controllers.as_slice(), one.unified))
            .collect();
        assert_eq!(folders, expected);
        assert_eq!(found.missing.iter().map(|gap| gap.limit.as_str()).collect::<Vec<_>>(), missing);
    }

    #[test]
    fn where_nothing_is_mounted_nothing_is_kept() {
        check("", "", &[], &["memory_bytes", "processes", "cpu_percent"]);
        check("damaged", "damaged", &[], &["memory_bytes", "processes", "cpu_percent"]);
    }

    #[test]
    fn each_version_has_its_folders_and_of_both_the_one_with_the_controller() {
        let places = "4:memory:/api/x\n8:pids:/\n0::/user\n";
        let folders: [(&str, &[&str], bool); 3] = [
            ("/sys/fs/cgroup/memory/api/x", &["memory"], false),
            ("/sys/fs/cgroup/pids/", &["pids"], false),
            ("/sys/fs/cgroup/cpu/", &["cpu"], false),
        ];
        check(VERSION_1, places, &folders, &[]);
        let one: [(&str, &[&str], bool); 1] = [("/sys/fs/cgroup/user", &["memory", "pids", "cpu"], true)];
        check(VERSION_2, "0::/user\n", &one, &[]);
    }

    /// An ordinary folder in place of a hierarchy. Unlike in a real hierarchy, its files must be removed one by one.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("burnet-cgroup-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn version_2_hands_its_controllers_down_and_is_given_its_own_words() {
        let folder = Folder::new("v2");
        fs::write(folder.0.join("cgroup.controllers"), "cpu memory pids io\n").unwrap();
        let mounts = format!("cgroup2 {} cgroup2 rw 0 0\n", folder.0.display());
        let node = NodeGroups::find(&mounts, "0::/\n", std::process::id()).make();
        assert_eq!(node.missing, []);
        let read = |path: &str| fs::read_to_string(folder.0.join(&node.name).join(path)).unwrap();
        assert_eq!(read("cgroup.subtree_control"), "+memory +pids +cpu");
        assert_eq!(read("node/cgroup.procs"), "0");
        let limits = Limits {
            memory_bytes: 64 << 20,
            processes: Some(8),
            cpu_percent: 150.try_into().ok(),
            ..Limits::default()
        };
        let (groups, gaps) = node.zone("hub.1", &limits);
        assert_eq!(gaps, []);
        assert_eq!(groups.folders().len(), 1);
        assert_eq!(read("hub.1/memory.max"), (96 << 20).to_string());
        assert_eq!(read("hub.1/memory.swap.max"), "0");
        assert_eq!(read("hub.1/memory.oom.group"), "1");
        assert_eq!(read("hub.1/pids.max"), "10");
        assert_eq!(read("hub.1/cpu.max"), "150000 100000");
    }

    #[test]
    fn version_1_counts_memory_and_swap_together() {
        let folder = Folder::new("v1");
        let mounts = format!("cgroup {} cgroup rw,memory 0 0\n", folder.0.display());
        let node = NodeGroups::find(&mounts, "4:memory:/\n", std::process::id()).make();
        let (groups, _) = node.zone("hub.1", &Limits { memory_bytes: 64 << 20, ..Limits::default() });
        let read = |file: &str| fs::read_to_string(groups.folders()[0].join(file)).unwrap();
        assert_eq!(read("memory.memsw.limit_in_bytes"), (96 << 20).to_string());
    }

    #[test]
    fn swap_that_cannot_be_bounded_is_a_gap_where_there_is_some() {
        let words = |file, has_swap: bool| gap("memory", file, "x", || has_swap).map(|gap| gap.why);
        assert_eq!(words("memory.swap.max", false), None);
        let expected = "x; swapped memory is not counted";
        assert_eq!(words("memory.swap.max", true).as_deref(), Some(expected));
        assert_eq!(words("memory.memsw.limit_in_bytes", true).as_deref(), Some(expected));
        assert_eq!(words("memory.oom.group", true), None);
        assert!(words("memory.max", false).unwrap().contains("each process of the app is limited"));
        assert!(!has_swap(&Ok("Filename Type Size Used Priority\n".to_owned())));
        assert!(has_swap(&Ok("Filename\n/dev/sda2 partition 1 0 -2\n".to_owned())));
        assert!(has_swap(&Err(io::ErrorKind::NotFound.into())));
    }

    #[test]
    fn a_controller_that_is_not_there_is_a_gap_for_whom_it_would_bind() {
        let folder = Folder::new("lacking");
        fs::write(folder.0.join("cgroup.controllers"), "").unwrap();
        let mounts = format!("cgroup2 {} cgroup2 rw 0 0\n", folder.0.display());
        let node = NodeGroups::find(&mounts, "0::/\n", std::process::id()).make();
        let limits = |(_, gaps): (ZoneGroups, Vec<NotEnforced>)| {
            gaps.into_iter().map(|gap| gap.limit).collect::<Vec<_>>()
        };
        assert_eq!(limits(node.zone("hub.1", &Limits::default())), ["memory_bytes"]);
        let busy = Limits { cpu_percent: 50.try_into().ok(), ..Limits::default() };
        assert_eq!(limits(node.zone("hub.2", &busy)), ["memory_bytes", "cpu_percent"]);
    }

    #[test]
    fn what_another_node_left_behind_goes_and_what_lives_stays() {
        let folder = Folder::new("sweep");
        // No process has this id: it is above Linux's maximum.
        let dead = folder.0.join("burnet-999999999");
        let alive = folder.0.join(format!("burnet-{}", std::process::id()));
        for path in [dead.join("hub.1"), alive.join("hub.1"), folder.0.join("burnet-x")] {
            fs::create_dir_all(path).unwrap();
        }
        sweep(&folder.0);
        assert!(!dead.exists() && alive.join("hub.1").exists() && folder.0.join("burnet-x").exists());
    }

    #[test]
    fn a_node_that_cannot_be_seen_from_here_keeps_its_groups_while_it_lives() {
        let folder = Folder::new("unseen");
        let mounts = format!("cgroup {} cgroup rw,memory 0 0\n", folder.0.display());
        let make = |pid| NodeGroups::find(&mounts, "4:memory:/\n", pid).make();
        // Simulates a node in another PID namespace, whose process is not in this `/proc`.
        let unseen = make(999_999_999);
        let group = folder.0.join("burnet-999999999");
        let _other = make(std::process::id());
        assert!(group.exists());
        drop(unseen);
        let _other = make(std::process::id());
        assert!(!group.exists());
    }
}
