//! `cargo xtask deb --try`: the packages in a fresh Debian 12. `cargo xtask oci --try`: a program in the root of an image.
//!
//! ```text
//!   debootstrap ──> target/packages/debian-12 ──copy──> a root, with namespaces of its own ──deploy/debian/trial.sh──> passed, or not
//! ```
//!
//! In: packages. Out: what the script prints, and whether it passed. It needs root and a mirror of Debian. Nothing outside of the
//! target folder changes, but for debootstrap, which is installed if it is missing. The fresh Debian is made once.

use crate::release::{self, copy};
use crate::{packages, process, tree};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A mirror that answers slowly needs minutes for the 60 MB of a minimal Debian.
const BOOTSTRAP_LIMIT: Duration = Duration::from_secs(10 * 60);

/// The script takes seconds.
const TRIAL_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Installs debootstrap if it is missing. An error says why the packages cannot be tried here.
pub fn prepare() -> Result<(), String> {
    if !process::is_root() {
        return Err("not root".to_owned());
    }
    packages::install_for("debootstrap", "debootstrap")?;
    let missing =
        ["dpkg-deb", "ip", "unshare", "chroot"].into_iter().find(|name| process::find(name).is_none());
    missing.map_or(Ok(()), |program| Err(format!("{program} is missing")))
}

/// Tries these packages. An error says what failed.
pub fn run(packages: &[PathBuf]) -> Result<(), String> {
    prepare().map_err(|reason| format!("the packages cannot be tried: {reason}"))?;
    let fresh = release::folder().join("debian-12");
    if !fresh.join("complete").exists() {
        bootstrap(&fresh)?;
    }
    let root = release::folder().join("trial");
    release::remove(&root)?;
    process::must(Command::new("cp").arg("--archive").arg(&fresh).arg(&root), release::LIMIT)?;
    for package in packages {
        let name = package.file_name().unwrap_or_default();
        copy(package, &root.join("packages").join(name), 0o644)?;
    }
    copy(&tree::root().join("deploy/debian/trial.sh"), &root.join("trial.sh"), 0o755)?;
    let tried = process::must(&mut inside(&root, &["/trial.sh"]), TRIAL_LIMIT);
    release::remove(&root)?;
    tried
}

fn bootstrap(fresh: &Path) -> Result<(), String> {
    release::remove(fresh)?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", "bookworm"]).arg(fresh);
    process::must(&mut debootstrap, BOOTSTRAP_LIMIT)?;
    // The packages of the download are of no further use.
    release::remove(&fresh.join("var/cache/apt/archives"))?;
    release::put(&fresh.join("complete"), "", 0o644)
}

/// A command in this root. Its processes end with it, and its mounts and addresses are its own.
pub fn inside(root: &Path, command: &[&str]) -> Command {
    let script = "ip link set lo up && mount --bind \"$1\" \"$1\" && mount -t proc proc \"$1/proc\" && \
                  mount -t sysfs sys \"$1/sys\" && mount -t tmpfs tmpfs \"$1/run\" && mount --rbind /dev \"$1/dev\" && \
                  exec chroot \"$@\"";
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-c", script, "sh"])
        .arg(root)
        .args(command);
    unshare.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
    unshare
}
