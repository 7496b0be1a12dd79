//! The resource use of processes, read from `/proc`.
//!
//! In: process ids. Out: bytes, descriptors, threads, processor time. An ended process uses nothing. It never changes
//! a process.

use crate::machine::kibibytes;
use std::collections::HashMap;
use std::time::Duration;

/// A process and its descendants, parents first.
pub fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = read(pid, "stat").and_then(|stat| field(&stat, PARENT)) {
            children.entry(parent as u32).or_default().push(pid);
        }
    }
    let (mut found, mut next) = (vec![root], 0);
    while let Some(pid) = found.get(next) {
        let below = children.remove(pid).unwrap_or_default();
        found.extend(below);
        next += 1;
    }
    found
}

/// Memory of processes' own that is there: resident and anonymous, so neither code nor files.
pub fn own_bytes(pids: &[u32]) -> u64 {
    pids.iter().filter_map(|pid| kibibytes(&read(*pid, "status")?, "RssAnon")).sum::<u64>() * 1024
}

/// Memory with each shared page divided among those that share it (Pss).
pub fn proportional_bytes(pids: &[u32]) -> u64 {
    pids.iter().filter_map(|pid| kibibytes(&read(*pid, "smaps_rollup")?, "Pss")).sum::<u64>() * 1024
}

/// When a process was started, in ticks since the machine was.
pub fn started(pid: u32) -> Option<u64> {
    field(&read(pid, "stat")?, STARTED)
}

/// The most memory that a process has had so far.
pub fn peak_bytes(pid: u32) -> Option<u64> {
    Some(kibibytes(&read(pid, "status")?, "VmHWM")? << 10)
}

/// Open descriptors.
pub fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Threads.
pub fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// Processor time since each began.
pub fn processor_time(pids: &[u32]) -> Duration {
    let ticks = |pid: &u32| {
        let stat = read(*pid, "stat")?;
        Some(field(&stat, USER)? + field(&stat, SYSTEM)?)
    };
    let total: u64 = pids.iter().filter_map(ticks).sum();
    // USER_HZ is 100 on every Linux that we run on (sysconf(3), _SC_CLK_TCK).
    Duration::from_millis(total * 10)
}

/// Places in /proc/PID/stat behind the program's name (proc(5)).
const PARENT: usize = 1;
const USER: usize = 11;
const SYSTEM: usize = 12;
const STARTED: usize = 19;

/// A number of /proc/PID/stat. The name before stands in brackets and may hold spaces and brackets itself.
fn field(stat: &str, place: usize) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(place)?.parse().ok()
}

fn read(pid: u32, file: &str) -> Option<String> {
    std::fs::read(format!("/proc/{pid}/{file}"))
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_lines_say_nothing() {
        assert_eq!(field("", PARENT), None);
        assert_eq!(field("12 (sh) S", PARENT), None);
    }

    #[test]
    fn a_name_with_brackets_hides_nothing() {
        let stat = "12 (a) b) S 7 12 12 0 -1 4 1 0 0 0 55 44 0 0 20 0";
        assert_eq!(
            (field(stat, PARENT), field(stat, USER), field(stat, SYSTEM)),
            (Some(7), Some(55), Some(44))
        );
    }

    #[test]
    fn this_process_takes_something_and_one_that_is_not_there_nothing() {
        let own = [std::process::id()];
        assert!(own_bytes(&own) > 0 && threads(own[0]) > 0 && descriptors(own[0]) > 0);
        assert_eq!(own_bytes(&[u32::MAX]), 0);
        assert_eq!(tree(u32::MAX), [u32::MAX]);
    }
}
