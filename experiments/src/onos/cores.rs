//! Which core a process may use, so that the node and its clients do not share one.
//!
//! In: process ids and numbers of cores. Out: nothing. Threads that begin later inherit it. It changes only this process and those that an
//! experiment started.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that this process may use.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Lets all threads of these processes use only these cores.
///
/// # Errors
/// Linux refuses it.
pub fn pin(processes: &[u32], cores: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    for thread in processes.iter().flat_map(|process| threads(*process)) {
        match sched_setaffinity(Some(thread), &set) {
            // The thread has ended meanwhile.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(format!("a thread cannot be moved to the cores {cores:?}: {error}")),
        }
    }
    Ok(())
}

fn threads(process: u32) -> Vec<Pid> {
    let folder = std::fs::read_dir(format!("/proc/{process}/task"));
    let names = folder.into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| Pid::from_raw(name.to_str()?.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_cores_that_it_was_given() {
        let all = allowed();
        std::thread::spawn(move || {
            pin(&[std::process::id()], &all[..1]).unwrap();
            assert_eq!(allowed(), all[..1]);
            pin(&[std::process::id()], &all).unwrap();
            assert_eq!(allowed(), all);
        })
        .join()
        .unwrap();
        assert!(pin(&[u32::MAX], &[0]).is_ok(), "a process that is not there");
    }
}
