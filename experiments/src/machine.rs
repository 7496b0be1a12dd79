//! The machine and the builds, without which a figure means nothing.
//!
//! In: `/proc`, and the version of the binary. Out: plain data. What cannot be read is left empty.

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;

/// What was measured, and on what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Linux's release.
    pub linux: String,
    /// How busy the machine was when it began: the load average of the last minute.
    pub load: f64,
    /// What the binary calls itself.
    pub burnet: String,
    /// `release`, `debug`, or the name of another profile's folder.
    pub profile: String,
    /// Whether this ran as root: without it control groups and users of apps' own are missing.
    pub root: bool,
}

impl Machine {
    /// Reads the machine's data.
    pub fn describe(burnet: &Path) -> Machine {
        let lab::machine::Machine { cpu, cores, memory_mib, kernel } = lab::machine::Machine::describe();
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let profile = burnet.parent().and_then(Path::file_name).unwrap_or_default();
        let version = Command::new(burnet).arg("--version").output();
        Machine {
            cpu,
            cores,
            memory_mib,
            linux: kernel,
            load: load.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
            burnet: version
                .map_or(String::new(), |out| String::from_utf8_lossy(&out.stdout).trim().to_owned()),
            profile: profile.to_string_lossy().into_owned(),
            root: rustix::process::geteuid().is_root(),
        }
    }

    /// The data in one line, for the text below a figure.
    pub fn line(&self) -> String {
        let Machine { cpu, cores, memory_mib, linux, burnet, profile, root, .. } = self;
        let who = if *root { "as root" } else { "without root" };
        format!("{burnet}, {profile} build, {who}, on {cpu}, {cores} cores, {memory_mib} MiB, Linux {linux}.")
    }
}
