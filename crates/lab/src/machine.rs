//! The machine that measured, in a few words: a figure without it says nothing.
//!
//! In: `/proc` and uname(2). Out: [`Machine`]. What cannot be read is left empty.

use serde::Serialize;
use std::fmt;

/// What a figure was measured on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The operating system's release.
    pub kernel: String,
}

impl Machine {
    /// Looks.
    pub fn describe() -> Machine {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Machine {
            cpu: value(&read("/proc/cpuinfo"), "model name").unwrap_or_default().to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kibibytes(&read("/proc/meminfo"), "MemTotal").unwrap_or(0) / 1024,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cpu, cores, memory_mib, kernel } = self;
        write!(f, "{cpu}, {cores} cores, {memory_mib} MiB, Linux {kernel}")
    }
}

/// The value of the first line `name : value`.
pub fn value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

/// The number of the first line `name: number kB`.
pub fn kibibytes(text: &str, name: &str) -> Option<u64> {
    value(text, name)?.strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_made_up() {
        assert_eq!(value("model : x", "model name"), None);
        assert_eq!(kibibytes("MemTotal: many kB", "MemTotal"), None);
        assert_eq!(kibibytes("", "MemTotal"), None);
    }

    #[test]
    fn lines_are_found_by_their_whole_name() {
        let text = "model\t\t: 1\nmodel name\t: A CPU @ 3:1\nMemTotal:   2048 kB\n";
        assert_eq!(value(text, "model name"), Some("A CPU @ 3:1"));
        assert_eq!(kibibytes(text, "MemTotal"), Some(2048));
    }

    #[test]
    fn this_machine_has_a_core_and_memory() {
        let machine = Machine::describe();
        assert!(machine.cores >= 1 && machine.memory_mib > 0 && !machine.kernel.is_empty(), "{machine}");
    }
}
