//! Files with delays: a number of microseconds in each line, or the summary of `burnet emulate --json`.
//!
//! In: a file. Out: the delays of one run, or the line and what was expected there. It never changes the file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use profile::compare::Samples;
use serde_json::Value;

/// The largest file: ten million delays.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The delays in a file.
///
/// # Errors
/// It cannot be read, is too large, or has something else than delays.
pub(super) fn read(path: &Path) -> Result<Samples, String> {
    let shown = path.display();
    let unread = |error: std::io::Error| format!("{shown} cannot be read: {error}");
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    if u64::try_from(read.map_err(unread)?).is_ok_and(|bytes| bytes > FILE_BYTES_MAX) {
        return Err(format!("{shown} has more than {FILE_BYTES_MAX} bytes, the limit"));
    }
    let delays = if text.trim_start().starts_with('{') { of_summary(&text) } else { of_lines(&text) };
    let delays = delays.map_err(|why| format!("{shown}: {why}"))?;
    Samples::new(delays).map_err(|bad| format!("{shown}: {bad}"))
}

/// A number in each line. Empty lines and what follows a `#` are left out.
fn of_lines(text: &str) -> Result<Vec<f64>, String> {
    let mut delays = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words = line.split('#').next().unwrap_or_default().trim();
        if words.is_empty() {
            continue;
        }
        match words.parse::<f64>() {
            Ok(delay) if delay.is_finite() && delay >= 0.0 => delays.push(delay),
            _ => return Err(format!("line {}: expected microseconds, found {words:?}", index + 1)),
        }
    }
    Ok(delays)
}

/// The quantiles of the completion times of all series of queries, which are as evenly spaced as delays of a run.
fn of_summary(text: &str) -> Result<Vec<f64>, String> {
    let summary: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let series = summary["queries"].as_array().into_iter().flatten();
    let quantiles = series.filter_map(|one| one["completion_ms"]["quantiles"].as_array()).flatten();
    let delays: Vec<f64> = quantiles.filter_map(Value::as_f64).map(|ms| ms * 1000.0).collect();
    match delays.is_empty() {
        true => Err("it has no completed queries: expected queries[].completion_ms.quantiles".to_owned()),
        false => Ok(delays),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_delay_is_named() {
        assert_eq!(of_lines("# two\n1.5\n\n 2 # µs\n"), Ok(vec![1.5, 2.0]));
        for wrong in ["x", "-1", "NaN", "inf", "1 2", "1,5"] {
            let why = of_lines(&format!("1\n{wrong}\n")).unwrap_err();
            assert!(why.starts_with("line 2: expected microseconds, found"), "{why}");
        }
        assert!(read(Path::new("/no/such")).unwrap_err().contains("/no/such cannot be read"));
    }

    #[test]
    fn the_summary_of_an_emulation_has_its_quantiles() {
        let text = r#"{"queries": [{"completion_ms": {"quantiles": [1.0, 2.5]}}, {"completion_ms": null}]}"#;
        assert_eq!(of_summary(text), Ok(vec![1000.0, 2500.0]));
        assert!(of_summary("{}").unwrap_err().contains("no completed queries"));
        assert!(of_summary("{").unwrap_err().contains("no JSON"));
    }
}
