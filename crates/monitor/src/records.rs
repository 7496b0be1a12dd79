//! The files that a node stores for the operator: incidents, and the output of apps. Their format, and reading them.
//!
//! ```text
//!   FOLDER/incidents/N.json    one Incident each, at most INCIDENTS_MAX
//!   FOLDER/logs/APP.log        what the app printed: time, which start of it, the line
//!   FOLDER/logs/APP.log.1      the same, before that
//! ```
//!
//! Reading works with or without a running node. This module writes and deletes nothing; `record_writer` does.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::incident::Incident;

/// The largest number of stored incidents. Above it, the oldest incident of the subject with most incidents is deleted.
/// So one app that crashes repeatedly does not displace the incidents of others.
pub const INCIDENTS_MAX: usize = 256;

/// The size in bytes at which a new log file of an app starts. One earlier file is kept.
pub const LOG_BYTES_MAX: u64 = 1 << 20;

/// The largest number of apps with stored logs. Above it, the log with the oldest last write is deleted.
pub const LOGS_MAX: usize = 128;

/// The longest incident that is read, in bytes; stored ones are far shorter.
const INCIDENT_BYTES_MAX: u64 = 1 << 20;

/// The folder of the incidents.
#[must_use]
pub fn incidents_folder(records: &Path) -> PathBuf {
    records.join("incidents")
}

/// The file with the owners of groups and meters ([`crate::owners`]).
#[must_use]
pub fn owners_file(records: &Path) -> PathBuf {
    records.join("owners")
}

/// The folder of the apps' logs.
#[must_use]
pub fn logs_folder(records: &Path) -> PathBuf {
    records.join("logs")
}

/// An app's log: the current file, and the one before it. Either may be missing.
#[must_use]
pub fn log_files(records: &Path, app: &str) -> [PathBuf; 2] {
    let folder = logs_folder(records);
    [folder.join(format!("{app}.log")), folder.join(format!("{app}.log.1"))]
}

/// The file of an incident.
pub(crate) fn incident_file(records: &Path, number: u64) -> PathBuf {
    incidents_folder(records).join(format!("{number}.json"))
}

/// The numbers of the stored incidents, oldest first.
///
/// # Errors
/// The folder cannot be read. A missing folder has no incidents.
pub fn incident_numbers(records: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(incidents_folder(records)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let number = |entry: io::Result<fs::DirEntry>| -> Option<u64> {
        entry.ok()?.file_name().to_str()?.strip_suffix(".json")?.parse().ok()
    };
    let mut numbers: Vec<u64> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// An incident.
///
/// # Errors
/// It does not exist, cannot be read, or is malformed.
pub fn incident(records: &Path, number: u64) -> io::Result<Incident> {
    let mut text = Vec::new();
    let file = File::open(incident_file(records, number))?;
    file.take(INCIDENT_BYTES_MAX).read_to_end(&mut text)?;
    let incident: Incident = serde_json::from_slice(&text)?;
    // The operator named the file, so its number counts.
    Ok(Incident { number, ..incident })
}

/// A time in milliseconds since the Unix epoch as `2026-11-22T07:42:39.123Z` (RFC 3339).
#[must_use]
pub fn time_text(unix_ms: u64) -> String {
    let (days, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

/// The date this many days after 1970-01-01, in the Gregorian calendar. It counts in eras of 400 years that start in
/// March, so that the leap day is the last day of a year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_dates() {
        let check = |unix_s: u64, expected: &str| assert_eq!(time_text(unix_s * 1_000 + 7), expected);
        check(0, "1970-01-01T00:00:00.007Z");
        check(951_782_399, "2000-02-28T23:59:59.007Z");
        check(951_782_400, "2000-02-29T00:00:00.007Z");
        check(4_107_542_399, "2100-02-28T23:59:59.007Z");
        check(4_107_542_400, "2100-03-01T00:00:00.007Z");
        check(1_795_333_359, "2026-11-22T07:42:39.007Z");
    }
}
