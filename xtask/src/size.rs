//! `cargo xtask size`: how large the production binary is, and how long its release build takes from nothing.
//!
//! ```text
//!   cargo build --release --package burnet, into an empty folder ──strip──> bytes, seconds, seconds of the processors ──> two lines
//! ```
//!
//! The build has its own folder below the target folder, which is removed before and after. Exit code 1 if the binary is too large. The
//! time is only printed: it depends on the machine and on what else runs there.

use crate::{process, release, tree};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The most that `burnet` may have without symbols (docs/decisions/0158).
const BYTES_MAX: u64 = 20 << 20;

/// What the build is to take on two idle cores.
const BUILD_TARGET: Duration = Duration::from_secs(6 * 60);

/// Ticks of `/proc/self/stat` in a second: the same on every Linux (`USER_HZ`).
const TICKS_PER_S: u64 = 100;

/// Builds, and prints what was found.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(argument) = arguments.first() {
        return Err(format!("`size` takes no arguments, and was given `{argument}`"));
    }
    let folder = tree::target_folder().join("size");
    remove(&folder)?;
    let (began, before) = (Instant::now(), processor_time());
    let mut cargo = process::cargo();
    cargo.args(["build", "--release", "--package", "burnet"]);
    let built = cargo.arg("--target-dir").arg(&folder).status();
    let (took, processors) = (began.elapsed(), processor_time().saturating_sub(before));
    if !built.is_ok_and(|status| status.success()) {
        return Ok(ExitCode::FAILURE);
    }
    let binary = folder.join("burnet");
    release::strip(&folder.join("release/burnet"), &binary)?;
    let bytes = fs::metadata(&binary).map_err(|error| format!("{}: {error}", binary.display()))?.len();
    remove(&folder)?;
    println!("{}", size_line(bytes));
    println!("{}", time_line(took, processors));
    Ok(if bytes <= BYTES_MAX { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{} cannot be removed: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn size_line(bytes: u64) -> String {
    let verdict = if bytes <= BYTES_MAX { "within" } else { "MORE THAN" };
    format!("burnet without symbols   {:>9} ({bytes} bytes), {verdict} {}", mib(bytes), mib(BYTES_MAX))
}

fn time_line(took: Duration, processors: Duration) -> String {
    format!(
        "release build from nothing {:>7}, {} of processor time; target {} on two idle cores",
        minutes(took),
        minutes(processors),
        minutes(BUILD_TARGET)
    )
}

/// With two decimals; nothing is lost that anybody would see.
fn mib(bytes: u64) -> String {
    format!("{}.{:02} MiB", bytes >> 20, ((bytes % (1 << 20)) * 100) >> 20)
}

fn minutes(time: Duration) -> String {
    format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
}

/// What the processes that this one waited for have had of the processors, with those that they waited for.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    Duration::from_millis(ticks_of_children(&stat).unwrap_or(0) * 1000 / TICKS_PER_S)
}

/// The fields `cutime` and `cstime` (proc_pid_stat(5)): the fourteenth and fifteenth behind the name, which may hold blanks.
fn ticks_of_children(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(13).take(2).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_that_is_too_large_is_named_so() {
        assert!(size_line(BYTES_MAX).contains("20.00 MiB (20971520 bytes), within 20.00 MiB"));
        assert!(size_line(BYTES_MAX + 1).contains("MORE THAN"));
    }

    #[test]
    fn times_are_minutes() {
        let line = time_line(Duration::from_secs(351), Duration::from_secs(605));
        assert!(line.contains("5 min 51 s, 10 min 05 s of processor time; target 6 min 00 s"), "{line}");
    }

    #[test]
    fn the_time_of_children_is_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 9 9 0 0 11 12 130 40 20 0 1 0";
        assert_eq!(ticks_of_children(stat), Some(170));
        assert_eq!(ticks_of_children("7 (x) S 1"), None);
    }
}
