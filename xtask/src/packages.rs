//! What the tests against real switches need of this machine, and installing it from Debian's packages.
//!
//! In: PATH, and whether this is root. Out: what is missing, or that nothing is. It installs only as root, and
//! only packages of the distribution.

use crate::process;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A program that a test runs, and the package of Debian 12 that it comes in.
struct Tool {
    program: &'static str,
    package: &'static str,
}

const TOOLS: [Tool; 12] = [
    Tool { program: "ovs-vswitchd", package: "openvswitch-switch" },
    Tool { program: "ovsdb-server", package: "openvswitch-switch" },
    Tool { program: "ovs-ofctl", package: "openvswitch-common" },
    // The stand-in controller that shows that a failing test is Burnet's fault and not the network's.
    Tool { program: "ovs-testcontroller", package: "openvswitch-testcontroller" },
    Tool { program: "mn", package: "mininet" },
    Tool { program: "ping", package: "iputils-ping" },
    Tool { program: "tshark", package: "tshark" },
    Tool { program: "ip", package: "iproute2" },
    Tool { program: "tc", package: "iproute2" },
    // Counts what arrives at the servers of slices.
    Tool { program: "nft", package: "nftables" },
    Tool { program: "openssl", package: "openssl" },
    Tool { program: "unshare", package: "util-linux" },
];

/// A mirror that answers slowly is waited for this long; one that does not answer must not eat the build's time.
pub const LIMIT: Duration = Duration::from_secs(8 * 60);

const TUN: &str = "/dev/net/tun";

/// The programs that are not here.
pub fn missing() -> Vec<&'static str> {
    absent().map(|tool| tool.program).collect()
}

fn absent() -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().filter(|tool| process::find(tool.program).is_none())
}

/// Installs a package of Debian's for a program, if that is missing and this is root.
pub fn install_for(program: &str, package: &str) -> Result<(), String> {
    if process::find(program).is_some() {
        return Ok(());
    }
    if !process::is_root() || process::find("apt-get").is_none() {
        return Err(format!("{program} is missing, and this cannot install it: install {package}"));
    }
    install_all(&[package])
}

/// Installs what is missing; an error says what could not be had and what to do.
pub fn install() -> Result<(), String> {
    let mut packages: Vec<&str> = absent().map(|tool| tool.package).collect();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    if process::find("apt-get").is_none() {
        return Err(format!("no apt-get here; install by hand: {}", missing().join(" ")));
    }
    install_all(&packages)?;
    match missing().as_slice() {
        [] => Ok(()),
        programs => Err(format!("still missing after apt-get install: {}", programs.join(" "))),
    }
}

fn install_all(packages: &[&str]) -> Result<(), String> {
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

fn apt(words: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(["--quiet", "-o", "DPkg::Lock::Timeout=120"]).args(words);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    println!("{}", process::shown(&command));
    process::must(&mut command, LIMIT)
}

/// Why this machine cannot run real switches although the programs are there, if so.
pub fn refusal() -> Option<String> {
    no_namespaces().or_else(no_tun)
}

fn no_namespaces() -> Option<String> {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]);
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Some(format!("this machine does not let us make namespaces ({said})"))
        }
        Err(error) => Some(format!("cannot run unshare: {error}")),
    }
}

/// Open vSwitch's user-space datapath makes a tap device for each bridge. Containers often lack the device file.
fn no_tun() -> Option<String> {
    let error = File::options().read(true).write(true).open(TUN).err()?;
    Some(format!("{TUN} cannot be opened ({error})"))
}
