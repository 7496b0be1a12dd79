//! A point in time, to the second, in the form of signatures and of the trust store: `2026-11-22T04:00:00Z`.
//!
//! In: text, or seconds since 1970. Out: the same. It never reads a clock.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The last second of the year 9999: beyond it the year has five digits.
const LAST: u64 = 253_402_300_799;

const DAY_S: u64 = 86_400;

/// Seconds since the beginning of 1970, UTC, up to the year 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Moment(u64);

impl Moment {
    /// The time this many seconds after the beginning of 1970. Times after the year 9999 become its last second.
    pub fn from_unix_s(seconds: u64) -> Moment {
        Moment(seconds.min(LAST))
    }

    /// Seconds since the beginning of 1970.
    pub fn unix_s(self) -> u64 {
        self.0
    }

    /// The time this many days later.
    pub fn plus_days(self, days: u32) -> Moment {
        Moment::from_unix_s(self.0 + u64::from(days) * DAY_S)
    }
}

/// Converts days since 1970-01-01 to year, month and day. Howard Hinnant's algorithm `civil_from_days`: years begin in
/// March, so the leap day is the last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The reverse; `None` for an invalid date or one before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let shifted_year = year - u64::from(month <= 2);
    let (era, year_of_era) = (shifted_year / 400, shifted_year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    // The 30th of February would become another day.
    (civil(days) == (year, month, day)).then_some(days)
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0 / DAY_S);
        let second = self.0 % DAY_S;
        let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z")
    }
}

impl FromStr for Moment {
    type Err = String;

    /// `2027-01-31T12:00:00Z`, or `2027-01-31` for the beginning of that day.
    fn from_str(text: &str) -> Result<Moment, String> {
        parse(text)
            .map(Moment)
            .ok_or_else(|| format!("{text:?} is not a time: write 2027-01-31, or 2027-01-31T12:00:00Z"))
    }
}

fn parse(text: &str) -> Option<u64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, time.strip_suffix('Z')?),
        None => (text, "00:00:00"),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hours, minutes, seconds] = numbers(time, ':', [2, 2, 2])?;
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    Some(days(year, month, day)? * DAY_S + hours * 3600 + minutes * 60 + seconds)
}

/// Three numbers with these numbers of digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut found = [0; 3];
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

impl From<Moment> for String {
    fn from(moment: Moment) -> String {
        moment.to_string()
    }
}

impl TryFrom<String> for Moment {
    type Error = String;

    fn try_from(text: String) -> Result<Moment, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(text.parse().ok(), expected.map(Moment), "{text}");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "tomorrow",
            "2027-1-1",
            "2027-02-29",
            "2027-13-01",
            "2027-00-10",
            "2027-01-00",
            "1969-12-31",
            "10000-01-01",
            "2027-01-01T24:00:00Z",
            "2027-01-01T00:60:00Z",
            "2027-01-01T00:00:00",
            "2027-01-01T00:00:00+01:00",
            "2027-01-01-01",
            "2027-01-+1",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn times_are_read_as_date_and_as_second() {
        check("1970-01-01", Some(0));
        check("2000-02-29", Some(951_782_400));
        check("2026-11-22T03:32:22Z", Some(1_795_318_342));
        check("9999-12-31T23:59:59Z", Some(LAST));
    }

    #[test]
    fn each_day_prints_as_it_reads() {
        for day in (0..LAST / DAY_S).step_by(17) {
            let moment = Moment::from_unix_s(day * DAY_S + day % DAY_S);
            assert_eq!(moment.to_string().parse(), Ok(moment));
        }
        assert_eq!(Moment::from_unix_s(u64::MAX).to_string(), "9999-12-31T23:59:59Z");
        assert_eq!("2026-12-31".parse::<Moment>().unwrap().plus_days(1).to_string(), "2027-01-01T00:00:00Z");
    }
}
