//! Control groups: what a whole zone takes of memory, processor and processes, counted and bounded by Linux (cgroups(7)).
//!
//! ```text
//!   <the node's own group>/burnet-PID/            one node        version 1: in each hierarchy; version 2: in the one
//!                              ├─ node/            the monitor and the kernel; version 2 alone, which asks for that
//!                              └─ APP.GENERATION/  one zone
//! ```
//!
//! In: where the groups of this process are ([`NodeGroups::find`]), and limits. Out: folders whose `cgroup.procs` the launcher of a zone
//! writes itself into, and what could not be had. They are the monitor's to make and to remove; an app does not see them.
//! It never moves a process of another, and never waits: a group that still has processes is tried again later.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::Limits;
use crate::sandbox::NotEnforced;

/// The controllers that bound an app.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];

/// What a group counts beyond the app's own memory: its ports, which are counted for whoever touches a page first, launcher and init,
/// and pages of its binary that are being read in.
const GROUP_ROOM_BYTES: u64 = 32 << 20;

/// The period in which processor time is shared out (cfs_period_us; the default of Linux).
const CPU_PERIOD_US: u64 = 100_000;

/// The folders in which a node may make groups.
#[derive(Debug, Default)]
pub struct NodeGroups {
    folders: Vec<Hierarchy>,
    /// The node's group in each of them, open and locked for as long as the node lives: no other node takes it for one that was left behind.
    held: Vec<File>,
    missing: Vec<NotEnforced>,
    /// `burnet-PID`.
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    /// The group of the process that asks.
    own: PathBuf,
    controllers: Vec<&'static str>,
    unified: bool,
}

/// The groups of one zone; they are there until they are removed.
#[derive(Debug, Default)]
pub struct ZoneGroups {
    folders: Vec<PathBuf>,
}

impl NodeGroups {
    /// From `/proc/self/mounts` and `/proc/self/cgroup`; nothing is looked at.
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

    /// Makes the node's group in each hierarchy, and takes away those of nodes that are no more.
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

    /// Makes the groups of a zone, and says which of its limits they do not keep.
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

    /// Removes the node's groups, as far as nobody is in them.
    pub fn remove(&self) {
        for hierarchy in &self.folders {
            // In version 2 the monitor itself is in one; the next node takes it away.
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
    /// Into whose `cgroup.procs` the launcher writes.
    #[must_use]
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Removes them; `false` if somebody is still in one: ask again later.
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
    /// In version 2 a group has processes or hands its controllers down, not both: what is in the node's own group moves to a leaf.
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
        // Memory and what of it is swapped out together: in version 1 after the first, since it may not be less.
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

/// What may be swapped out: nothing, since it would not count as memory.
const SWAP: &str = "memory.swap.max";
const SWAP_OF_VERSION_1: &str = "memory.memsw.limit_in_bytes";

/// When the memory is used up, the whole zone ends, and not whichever of its processes Linux picks. A Linux before 4.19, and version 1, pick one.
const ALL_TOGETHER: &str = "memory.oom.group";

/// What it means that a file of a group could not be written.
fn gap(controller: &str, file: &str, why: &str, has_swap: impl FnOnce() -> bool) -> Option<NotEnforced> {
    match file {
        ALL_TOGETHER => None,
        SWAP | SWAP_OF_VERSION_1 => has_swap().then(|| {
            NotEnforced::new(limit_of(controller), format!("{why}; what is swapped out is not counted"))
        }),
        _ => Some(lacks(controller, why)),
    }
}

/// From `/proc/swaps`: a heading, and a line for each. Where it cannot be read there may be some.
fn has_swap(swaps: &io::Result<String>) -> bool {
    swaps.as_ref().map_or(true, |swaps| swaps.lines().count() > 1)
}

/// Launcher and init are in the group, and are not the app's.
const WAITING_PROCESSES: u32 = 2;

/// The limit that a controller keeps.
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

/// Processes are counted by the launcher too, which says itself if it cannot.
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

/// The group of this process, from a line as `4:memory:/a/b` or, in version 2, `0::/a/b`.
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

/// How often another node may be looking at a group, or have taken it away, just when it is made.
const TRIES_MAX: usize = 100;

/// Makes a node's group and locks it. Where it cannot be locked it is used all the same: nodes that see this one's process leave it alone.
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

/// A group, locked, if its node has ended. One in another PID namespace cannot be seen, but holds its group.
fn left_behind(group: &Path, pid: u32) -> Option<File> {
    let ended = !Path::new(&format!("/proc/{pid}")).exists();
    let unheld = |group: &File| group.try_lock().is_ok();
    File::open(group).ok().filter(|group| ended && unheld(group))
}

/// The groups that nodes left behind, which were killed or were in them to the end.
fn sweep(own: &Path) {
    let Ok(entries) = fs::read_dir(own) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix("burnet-"))
            .and_then(|pid| pid.parse::<u32>().ok());
        // Held until it is gone, so that nobody moves in meanwhile.
        if let Some(_held) = pid.and_then(|pid| left_behind(&entry.path(), pid)) {
            // Folders only: the files in a group go with it.
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

    /// A folder in place of a hierarchy; of files in it nothing removes itself, as it would in a real one.
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
        let expected = "x; what is swapped out is not counted";
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
        // No process has this id: it is more than Linux gives out.
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
        // As a node in another PID namespace, whose process has no folder in this /proc.
        let unseen = make(999_999_999);
        let group = folder.0.join("burnet-999999999");
        let _other = make(std::process::id());
        assert!(group.exists());
        drop(unseen);
        let _other = make(std::process::id());
        assert!(!group.exists());
    }
}
