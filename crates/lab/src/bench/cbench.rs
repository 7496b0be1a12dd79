//! cbench's lines, for eyes and scripts that know them.
//!
//! In: rounds. Out: a line each, and the last one. It measures nothing, and how it is measured is not said here.

use std::time::{SystemTime, UNIX_EPOCH};

use load::RoundReport;

/// A round: the time of day (UTC; cbench says local time), what each switch was answered, and all together by milliseconds.
pub fn round_line(now: SystemTime, round: &RoundReport) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, ms) = (since.as_secs() % 86_400, since.subsec_millis());
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let counts: String = round.answered_by_switch.iter().map(|count| format!("{count}  ")).collect();
    let per_ms = round.responses_per_s() / 1000.0;
    let switches = round.answered_by_switch.len();
    format!(
        "{hour:02}:{minute:02}:{second:02}.{ms:03} {switches:<3} switches: flows/sec:  {counts} total = {per_ms:.6} per ms "
    )
}

/// The last line, of the rounds that count: least, most, mean and standard deviation (of the whole, as cbench has it).
pub fn result_line(switches: u16, rates: &[f64]) -> String {
    let count = rates.len().max(1) as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let deviation = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count).sqrt();
    let (min, max) =
        rates.iter().fold((f64::MAX, 0.0), |(min, max): (f64, f64), rate| (min.min(*rate), max.max(*rate)));
    format!(
        "RESULT: {switches} switches {} tests min/max/avg/stdev = {min:.2}/{max:.2}/{mean:.2}/{deviation:.2} responses/s",
        rates.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn lines_are_as_cbench_prints_them() {
        let round = RoundReport {
            took: Duration::from_millis(500),
            answered: 1500,
            answered_by_switch: vec![1000, 500],
            ..RoundReport::default()
        };
        let noon = UNIX_EPOCH + Duration::from_millis(86_400_000 * 3 + 43_200_000 + 61_007);
        assert_eq!(
            round_line(noon, &round),
            "12:01:01.007 2   switches: flows/sec:  1000  500   total = 3.000000 per ms "
        );
        assert_eq!(
            result_line(2, &[1000.0, 3000.0]),
            "RESULT: 2 switches 2 tests min/max/avg/stdev = 1000.00/3000.00/2000.00/1000.00 responses/s"
        );
    }
}
