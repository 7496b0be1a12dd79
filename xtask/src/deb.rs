//! `cargo xtask deb`: the packages for Debian 12, `burnet` and `burnet-lab`.
//!
//! ```text
//!   programs, deploy/, LICENSE, CHANGELOG.md ──> target/packages/deb/NAME (as it will be on the machine) ──dpkg-deb──> NAME_VERSION_ARCH.deb
//! ```
//!
//! In: the working tree, and programs that are built now or named (`--binaries DIR`). Out: two files in `target/packages`, the same for the
//! same input. It installs nothing but in a root of its own (`--try`). The program `dpkg-deb` is on every Debian machine.

use crate::release::{self, LIMIT, copy, put};
use crate::{process, tree, trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Who answers for the packages.
const MAINTAINER: &str = "The Burnet project <burnet@localhost>";

/// The C library of Debian 12, with which the programs are built.
const LIBC: &str = "libc6 (>= 2.36)";

/// `cargo xtask deb`.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let (tried, arguments): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| *argument == "--try");
    let programs = release::programs("deb", &arguments)?;
    let packages = build(&programs, &release::folder())?;
    packages.iter().for_each(|package| println!("{}", package.display()));
    if !tried.is_empty() {
        trial::run(&packages)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A package.
struct Package {
    name: &'static str,
    depends: String,
    suggests: &'static str,
    summary: &'static str,
    /// Lines of the description, each without its blank.
    about: &'static [&'static str],
}

fn packages(version: &str) -> [Package; 2] {
    [
        Package {
            name: "burnet",
            depends: format!("{LIBC}, libgcc-s1, init-system-helpers (>= 1.51)"),
            suggests: "burnet-lab, openvswitch-switch, python3",
            summary: "network operating system for OpenFlow switches",
            about: &[
                "Burnet controls OpenFlow 1.0 and 1.3 switches. It runs each network app in its",
                "own sandbox, with only the rights that the operator granted. It keeps a view of",
                "the whole network and intents for connectivity. It has a REST interface, a",
                "command line and a web page.",
            ],
        },
        Package {
            name: "burnet-lab",
            depends: format!("burnet (= {version}), {LIBC}, libgcc-s1"),
            suggests: "mininet",
            summary: "demo, emulated networks and measurements for Burnet",
            about: &[
                "The laboratory of Burnet: a demo, emulated networks of switches and hosts, a",
                "load generator for OpenFlow controllers, and attacks of apps and switches. A",
                "production machine does not need it.",
            ],
        },
    ]
}

/// Builds both packages into a folder. Their paths.
pub fn build(programs: &Path, to: &Path) -> Result<Vec<PathBuf>, String> {
    if process::find("dpkg-deb").is_none() {
        return Err("dpkg-deb is missing: build the packages on Debian".to_owned());
    }
    let (version, epoch_s) = (release::version()?, release::epoch_s()?);
    let mut built = Vec::new();
    for package in packages(&version) {
        let root = to.join("deb").join(package.name);
        release::remove(&root)?;
        fill(&package, programs, &root, epoch_s)?;
        control(&package, &version, &root)?;
        let file = to.join(format!("{}_{version}_{}.deb", package.name, release::architecture()));
        let mut pack = Command::new("dpkg-deb");
        pack.env("SOURCE_DATE_EPOCH", epoch_s.to_string());
        pack.args(["--root-owner-group", "--uniform-compression", "-Zxz", "--build"]).arg(&root).arg(&file);
        process::must(&mut pack, LIMIT)?;
        built.push(file);
    }
    Ok(built)
}

/// The files of the package, as they will be on the machine.
fn fill(package: &Package, programs: &Path, root: &Path, epoch_s: u64) -> Result<(), String> {
    let deploy = tree::root().join("deploy");
    let program = root.join("usr/bin").join(package.name);
    copy(&programs.join(package.name), &program, 0o755)?;
    let doc = root.join("usr/share/doc").join(package.name);
    put(&doc.join("copyright"), COPYRIGHT, 0o644)?;
    put(&doc.join("changelog"), changelog(package.name, epoch_s)?, 0o644)?;
    release::gzip(&doc.join("changelog"))?;
    let help = process::output_of(Command::new(&program).arg("--help"))?;
    let page = root.join("usr/share/man/man1").join(format!("{}.1", package.name));
    put(&page, man_page(package.name, package.summary, &help, &release::version()?), 0o644)?;
    release::gzip(&page)?;
    if package.name != "burnet" {
        return Ok(());
    }
    copy(&deploy.join("burnet.toml"), &root.join("etc/burnet/burnet.toml"), 0o644)?;
    copy(&deploy.join("debian/burnet.service"), &root.join("lib/systemd/system/burnet.service"), 0o644)?;
    copy(&deploy.join("debian/README.Debian"), &doc.join("README.Debian"), 0o644)?;
    for script in ["postinst", "prerm", "postrm"] {
        copy(&deploy.join(format!("debian/burnet.{script}")), &root.join("DEBIAN").join(script), 0o755)?;
    }
    put(&root.join("DEBIAN/conffiles"), "/etc/burnet/burnet.toml\n", 0o644)?;
    for (shell, place) in [
        ("bash", "usr/share/bash-completion/completions/burnet"),
        ("zsh", "usr/share/zsh/vendor-completions/_burnet"),
        ("fish", "usr/share/fish/vendor_completions.d/burnet.fish"),
    ] {
        // The program stands alone in its folder, so these are its own words and not the laboratory's.
        let mut complete = Command::new(&program);
        let script = process::output_of(complete.args(["completion", shell]).env("PATH", "/nowhere"))?;
        put(&root.join(place), script, 0o644)?;
    }
    Ok(())
}

/// What dpkg reads about the package.
fn control(package: &Package, version: &str, root: &Path) -> Result<(), String> {
    let mut text = format!(
        "Package: {}\nVersion: {version}\nArchitecture: {}\nMaintainer: {MAINTAINER}\nInstalled-Size: {}\n\
         Depends: {}\nSuggests: {}\nSection: net\nPriority: optional\nDescription: {}\n",
        package.name,
        release::architecture(),
        kib_below(&root.join("usr"))?,
        package.depends,
        package.suggests,
        package.summary,
    );
    package.about.iter().for_each(|line| text += &format!(" {line}\n"));
    put(&root.join("DEBIAN/control"), text, 0o644)?;
    let mut sums = Command::new("sh");
    sums.args(["-c", "find etc lib usr -type f 2>/dev/null | LC_ALL=C sort | xargs md5sum"])
        .current_dir(root);
    put(&root.join("DEBIAN/md5sums"), process::output_of(&mut sums)?, 0o644)
}

/// How large all files below are, in KiB.
fn kib_below(folder: &Path) -> Result<u64, String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut kib = 0;
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let metadata = entry.metadata().map_err(cannot)?;
        kib += if metadata.is_dir() { kib_below(&entry.path())? } else { metadata.len().div_ceil(1024) };
    }
    Ok(kib)
}

/// The file of the licence, in the form that Debian asks for.
const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: burnet

Files: *
Copyright: The authors of Burnet
License: Apache-2.0

License: Apache-2.0
 On Debian systems, the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
";

fn changelog(name: &str, epoch_s: u64) -> Result<String, String> {
    let version = release::version()?;
    let mut date = Command::new("date");
    date.args(["--utc", "--rfc-email", "--date"]).arg(format!("@{epoch_s}"));
    let date = process::output_of(&mut date)?;
    Ok(format!(
        "{name} ({version}) bookworm; urgency=medium\n\n  * The changes of each version are in CHANGELOG.md of the sources.\n\n \
         -- {MAINTAINER}  {date}"
    ))
}

/// A manual page with the help of the program as it is.
fn man_page(name: &str, summary: &str, help: &str, version: &str) -> String {
    let mut page = format!(
        ".TH {} 1 \"\" \"Burnet {version}\"\n.SH NAME\n{name} \\- {summary}\n.SH SYNOPSIS\n.B {name}\nCOMMAND [OPTIONS]\n.SH DESCRIPTION\n.nf\n",
        name.to_uppercase()
    );
    for line in help.lines() {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A line of roff that begins with these is a request.
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        page += &format!("{guard}{line}\n");
    }
    page += ".fi\n.PP\n\\(lq";
    page += &format!("{name} COMMAND \\-\\-help\\(rq explains a command.\n");
    if name == "burnet" {
        page += ".SH FILES\n.TP\n.I /etc/burnet/burnet.toml\nThe configuration of the node.\n.TP\n.I /var/lib/burnet\nWhat the node stores.\n";
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::tests::Folder;

    #[test]
    fn a_line_of_help_is_no_request_of_roff() {
        let page = man_page("burnet", "x", ".hidden\n'quoted\n  --json a\\b\n", "1");
        assert!(page.contains("\\&.hidden\n\\&'quoted\n  \\-\\-json a\\eb\n"), "{page}");
    }

    /// Programs that print something for each argument, in place of the real ones.
    fn programs(folder: &Path) -> PathBuf {
        for program in release::PROGRAMS {
            put(&folder.join("bin").join(program), "#!/bin/sh\necho \"words for $*\"\n", 0o755).unwrap();
        }
        folder.join("bin")
    }

    fn said(words: &[&str], file: &Path) -> String {
        process::output_of(Command::new("dpkg-deb").args(words).arg(file)).unwrap()
    }

    #[test]
    fn the_packages_have_what_a_machine_needs_and_are_the_same_for_the_same_files() {
        if process::find("dpkg-deb").is_none() {
            println!("left out: dpkg-deb is missing");
            return;
        }
        let digests = |name: &str| {
            let folder = Folder::new(name);
            let built = build(&programs(&folder.0), &folder.0).unwrap();
            let listed = said(&["--contents"], &built[0]);
            for file in [
                "-rwxr-xr-x root/root",
                "./usr/bin/burnet\n",
                "./etc/burnet/burnet.toml",
                "./lib/systemd/system/burnet.service",
                "./usr/share/man/man1/burnet.1.gz",
                "./usr/share/zsh/vendor-completions/_burnet",
                "./usr/share/doc/burnet/copyright",
            ] {
                assert!(listed.contains(file), "{file}: {listed}");
            }
            let about = said(&["--field"], &built[1]);
            assert!(
                about.contains("Depends: burnet (= ") && about.contains("Package: burnet-lab"),
                "{about}"
            );
            built.iter().map(|file| release::sha256(file).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(digests("deb-1"), digests("deb-2"));
    }
}
