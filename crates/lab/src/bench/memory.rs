//! What a node's processes take of memory, all of them together.
//!
//! In: `/proc`. Out: bytes. Memory that processes share is counted once (Pss), as the machine has it once.

use std::fs;

use super::machine::kibibytes;

/// Bytes that a process and all below it take; nothing if it is gone.
pub fn of_tree(root: u32) -> Option<u64> {
    let processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, parent(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
    });
    let tree = below(root, &processes.collect::<Vec<_>>());
    tree.into_iter().map(of_process).sum()
}

/// One process's share.
fn of_process(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(kibibytes(&text, "Pss")? * 1024)
}

/// The parent in `/proc/PID/stat`: the second word behind the name, which is in parentheses and may have any in it (proc(5)).
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// A process and all below it, of pairs of a process and its parent.
fn below(root: u32, processes: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        let children = processes.iter().filter(|(pid, of)| *of == parent && *pid != parent);
        let new: Vec<u32> = children.map(|(pid, _)| *pid).filter(|pid| !found.contains(pid)).collect();
        found.extend(new);
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_anything_in_it() {
        assert_eq!(parent("12 (a) b (c)) S 7 12 12"), Some(7));
        assert_eq!(parent("12 (a"), None);
    }

    #[test]
    fn all_below_are_found_once() {
        assert_eq!(below(1, &[(2, 1), (3, 2), (4, 9), (5, 1), (1, 1)]), [1, 2, 5, 3]);
        assert_eq!(below(7, &[]), [7]);
    }

    #[test]
    fn this_process_takes_memory() {
        assert!(of_tree(std::process::id()).unwrap() > 100_000);
    }
}
