//! Runs `nft`, `tc` and `ip`, and says clearly why they failed.
//!
//! In: a program, its arguments, and its input. Out: what it printed, or a [`Trouble`]. It runs no shell.

use super::device::BadDevice;
use crate::agent::BadSettings;
use std::fmt;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// How much of a program's complaint is kept.
const COMPLAINT_MAX: usize = 400;

/// Why an agent cannot work.
#[derive(Debug)]
pub enum Trouble {
    /// The settings cannot be.
    Settings(BadSettings),
    /// The interface cannot be used.
    Device(BadDevice),
    /// A program is not installed.
    Missing {
        /// The program.
        program: &'static str,
        /// Debian's package with it.
        package: &'static str,
    },
    /// This process may not change the network.
    NotPermitted {
        /// What was not allowed.
        what: String,
    },
    /// The kernel lacks something.
    Kernel {
        /// The option with which a kernel has it.
        option: &'static str,
        /// What the program said.
        said: String,
    },
    /// A program failed.
    Failed {
        /// What it was to do.
        what: String,
        /// What it said.
        said: String,
    },
    /// A system call failed.
    Io {
        /// What it was to do.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Settings(why) => why.fmt(f),
            Trouble::Device(why) => why.fmt(f),
            Trouble::Missing { program, package } => {
                write!(f, "{program} is missing; install Debian's package {package}")
            }
            Trouble::NotPermitted { what } => {
                write!(f, "{what}: not permitted; run the agent as root, or with CAP_NET_ADMIN")
            }
            Trouble::Kernel { option, said } => {
                write!(f, "this kernel lacks what the agent needs: it must have {option} ({said})")
            }
            Trouble::Failed { what, said } => write!(f, "{what} failed: {said}"),
            Trouble::Io { what, error } => write!(f, "{what} failed: {error}"),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<BadDevice> for Trouble {
    fn from(why: BadDevice) -> Self {
        Trouble::Device(why)
    }
}

impl From<BadSettings> for Trouble {
    fn from(why: BadSettings) -> Self {
        Trouble::Settings(why)
    }
}

/// For `map_err` of a system call.
pub(super) fn io_trouble<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Trouble {
    move |error| Trouble::Io { what, error: error.into() }
}

/// Debian's package of a program.
pub(super) fn package(program: &'static str) -> &'static str {
    if program == "nft" { "nftables" } else { "iproute2" }
}

/// Why a program could not be started.
pub(super) fn not_started(program: &'static str, error: io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::NotFound => Trouble::Missing { program, package: package(program) },
        _ => Trouble::Failed { what: format!("starting {program}"), said: error.to_string() },
    }
}

/// Runs a program to its end.
///
/// # Errors
///
/// It is missing, or it failed. The trouble has its first complaint.
pub(super) fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<String, Trouble> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| not_started(program, error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it ended before it read all, its complaint says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(io_trouble("waiting for nft or tc"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let what = format!("{program} {}", arguments.join(" "));
    Err(judge(what, &String::from_utf8_lossy(&output.stderr)))
}

/// What a complaint of nft or tc means.
pub(super) fn judge(what: String, complaint: &str) -> Trouble {
    let lines: Vec<&str> = complaint.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said: String = lines.join("; ").chars().take(COMPLAINT_MAX).collect();
    let has = |part: &str| complaint.contains(part);
    if has("Operation not permitted") || has("you must be root") {
        return Trouble::NotPermitted { what };
    }
    if has("qdisc kind is unknown") || has("Specified qdisc not found") || has("Unknown qdisc") {
        let option = if what.contains("bfifo") { "CONFIG_NET_SCH_FIFO" } else { "CONFIG_NET_SCH_HTB" };
        return Trouble::Kernel { option, said };
    }
    if has("Protocol not supported") || has("Unable to initialize Netlink socket") {
        return Trouble::Kernel { option: "CONFIG_NF_TABLES", said };
    }
    Trouble::Failed { what, said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_become_sentences_that_say_what_to_do() {
        let check = |complaint: &str, expected: &str| {
            assert_eq!(judge("tc -batch -".to_owned(), complaint).to_string(), expected);
        };
        check(
            "RTNETLINK answers: Operation not permitted\nCommand failed -:1\n",
            "tc -batch -: not permitted; run the agent as root, or with CAP_NET_ADMIN",
        );
        check(
            "Error: Specified qdisc kind is unknown.\nCommand failed -:1\n",
            "this kernel lacks what the agent needs: it must have CONFIG_NET_SCH_HTB \
             (Error: Specified qdisc kind is unknown.; Command failed -:1)",
        );
        check("Cannot find device \"eth9\"\n", "tc -batch - failed: Cannot find device \"eth9\"");
        let missing = not_started("nft", io::ErrorKind::NotFound.into());
        assert_eq!(missing.to_string(), "nft is missing; install Debian's package nftables");
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let trouble = run("tc", &["qdisc", "show", "dev", "no-such-device"], "");
        // Without iproute2 there is another reason, but always one.
        assert!(!trouble.unwrap_err().to_string().is_empty());
    }
}
