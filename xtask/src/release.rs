//! What the packages share: the programs without symbols, the version, the time, and commands of the system.
//!
//! ```text
//!   cargo build --release ──> burnet, burnet-lab ──strip──> target/packages/bin        the last commit ──> the time of all files
//! ```
//!
//! In: the working tree, or a folder with programs (`--binaries`). Out: programs, and archives that are the same for the same files. It
//! packs nothing by itself.

use crate::{process, tree};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A release build from nothing takes some minutes on two cores.
const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Packing takes seconds.
pub const LIMIT: Duration = Duration::from_secs(5 * 60);

/// The production program and the laboratory.
pub const PROGRAMS: [&str; 2] = ["burnet", "burnet-lab"];

/// Where packages are written.
pub fn folder() -> PathBuf {
    tree::target_folder().join("packages")
}

/// The folder of the programs that are to be packed: from `--binaries DIR`, or built now.
pub fn programs(chore: &str, arguments: &[&String]) -> Result<PathBuf, String> {
    let built = match arguments {
        [] => build()?,
        [option, folder] if *option == "--binaries" => PathBuf::from(folder),
        [argument, ..] => {
            return Err(format!("`{chore}` takes --binaries DIR, and was given `{argument}`"));
        }
    };
    let stripped = folder().join("bin");
    remove(&stripped)?;
    make(&stripped)?;
    for program in PROGRAMS {
        strip(&built.join(program), &stripped.join(program))?;
    }
    Ok(stripped)
}

/// Writes a program without its symbols.
///
/// Cargo's `strip` would spare this step, but Cargo ignores it for a package that has a profile of its own.
pub fn strip(program: &Path, to: &Path) -> Result<(), String> {
    let mut strip = Command::new("strip");
    process::must(strip.arg("--strip-all").arg("-o").arg(to).arg(program), LIMIT)
}

fn build() -> Result<PathBuf, String> {
    let mut cargo = process::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "burnet", "--package", "lab"]);
    process::must(&mut cargo, BUILD_LIMIT)?;
    Ok(tree::target_folder().join("release"))
}

/// The version in the workspace's manifest.
pub fn version() -> Result<String, String> {
    let manifest = tree::read_text(&tree::root().join("Cargo.toml"))?;
    let of_workspace = manifest.split("[workspace.package]").nth(1).unwrap_or_default();
    let line = of_workspace.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.split('"').next());
    version.map(str::to_owned).ok_or_else(|| "Cargo.toml has no version in [workspace.package]".to_owned())
}

/// The time of all files in packages, in seconds since 1970: `$SOURCE_DATE_EPOCH`, or that of the last commit.
pub fn epoch_s() -> Result<u64, String> {
    let set = std::env::var("SOURCE_DATE_EPOCH").ok().filter(|text| !text.is_empty());
    let text = match set {
        Some(text) => text,
        None => process::output_of(
            Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(tree::root()),
        )?,
    };
    text.trim()
        .parse()
        .map_err(|_| format!("{text:?} is no time: set SOURCE_DATE_EPOCH to seconds since 1970"))
}

/// The architecture in the words of Debian and of OCI images.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "riscv64" => "riscv64",
        other => other,
    }
}

/// Packs a folder as a tar archive that depends on its names, modes and contents only.
pub fn tar(folder: &Path, archive: &Path, epoch_s: u64) -> Result<(), String> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{epoch_s}")).arg("--file").arg(archive).arg("--directory").arg(folder).arg(".");
    process::must(&mut tar, LIMIT)
}

/// Compresses a file, without its name and time. The result has `.gz` behind its name.
pub fn gzip(file: &Path) -> Result<PathBuf, String> {
    process::must(Command::new("gzip").args(["--force", "--no-name", "--best"]).arg(file), LIMIT)?;
    let mut name = file.as_os_str().to_owned();
    name.push(".gz");
    Ok(name.into())
}

/// The SHA-256 of a file, in hexadecimal digits.
pub fn sha256(file: &Path) -> Result<String, String> {
    let said = process::output_of(Command::new("sha256sum").arg(file))?;
    let digest = said.split_whitespace().next().unwrap_or_default().to_owned();
    if digest.len() == 64 { Ok(digest) } else { Err(format!("sha256sum printed no digest: {said}")) }
}

/// Writes a file with this mode, and the folders above it.
pub fn put(file: &Path, content: impl AsRef<[u8]>, mode: u32) -> Result<(), String> {
    make(file.parent().unwrap_or(Path::new("/")))?;
    let written = fs::write(file, content).and_then(|()| set_mode(file, mode));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

/// Copies a file, with this mode.
pub fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    let content = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    put(to, content, mode)
}

/// Makes a folder, readable by all.
pub fn make(folder: &Path) -> Result<(), String> {
    let made = fs::create_dir_all(folder).and_then(|()| set_mode(folder, 0o755));
    made.map_err(|error| format!("{}: {error}", folder.display()))
}

fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Removes a folder with all that is in it, if it is there.
pub fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{} cannot be removed: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A folder of a test's own.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("burnet-xtask-{name}-{}", std::process::id()));
            remove(&folder).unwrap();
            make(&folder).unwrap();
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_archive_is_the_same_for_the_same_files() {
        let digest = |name: &str, order: [&str; 2]| {
            let folder = Folder::new(name);
            order.iter().for_each(|file| put(&folder.0.join("in").join(file), file, 0o644).unwrap());
            let archive = folder.0.join("x.tar");
            tar(&folder.0.join("in"), &archive, 7).unwrap();
            sha256(&gzip(&archive).unwrap()).unwrap()
        };
        assert_eq!(digest("tar-1", ["a", "b"]), digest("tar-2", ["b", "a"]));
        assert_ne!(digest("tar-3", ["a", "b"]), digest("tar-4", ["a", "c"]));
    }

    #[test]
    fn the_version_is_found() {
        assert!(version().unwrap().split('.').all(|part| part.parse::<u32>().is_ok()));
    }
}
