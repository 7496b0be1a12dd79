//! Bandwidth and steps, as types and as text.
//!
//! ```text
//!   "2.5G" ──parse──> Bandwidth (2,500,000,000 bit/s) ──Display──> "2.5G"
//! ```
//!
//! In: an operator's text, kbit/s of OpenFlow and of the view. Out: bit/s, text. What must be rounded is rounded down, so that no text and no label
//! promises more than there is.

use std::fmt;
use std::str::FromStr;

/// The least bandwidth that a text may say: the unit of labels in OpenFlow messages.
pub const BANDWIDTH_MIN: Bandwidth = Bandwidth(1_000);

/// The greatest bandwidth of a VNIC, a NIC or a link: 10 Tbit/s. With it, the sum over all flows that can be counted fits into 64 bits.
pub const BANDWIDTH_MAX: Bandwidth = Bandwidth(10_000_000_000_000);

/// The letters behind numbers, and what each multiplies by.
const SCALES: [(char, u64); 4] =
    [('k', 1_000), ('M', 1_000_000), ('G', 1_000_000_000), ('T', 1_000_000_000_000)];

/// A bandwidth in bit/s. Why not kbit/s: the share of one of a thousand flows would lose a part that can be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bandwidth(u64);

/// A text that is not a bandwidth or a step. Prints what is wrong and what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAQuantity {
    text: String,
    why: &'static str,
}

impl fmt::Display for NotAQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What an operator wrote may be long, or a whole file by mistake.
        let shown: String = self.text.chars().take(32).collect();
        write!(f, "`{}`: {}", shown.escape_debug(), self.why)
    }
}

impl std::error::Error for NotAQuantity {}

impl Bandwidth {
    /// No bandwidth.
    pub const ZERO: Bandwidth = Bandwidth(0);

    /// From bit/s.
    pub const fn from_bps(bps: u64) -> Bandwidth {
        Bandwidth(bps)
    }

    /// From kbit/s, the unit of the view. More than 64 bits of bit/s are cut.
    pub const fn from_kbps(kbps: u64) -> Bandwidth {
        Bandwidth(kbps.saturating_mul(1_000))
    }

    /// In bit/s.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// In whole kbit/s, the unit of labels in OpenFlow messages.
    pub const fn kbps(self) -> u64 {
        self.0 / 1_000
    }

    /// What is left when another bandwidth is taken away, at least 0.
    #[must_use]
    pub const fn less(self, other: Bandwidth) -> Bandwidth {
        Bandwidth(self.0.saturating_sub(other.0))
    }

    /// Whether this is more than a VNIC, NIC or link may have.
    pub const fn is_too_much(self) -> bool {
        self.0 > BANDWIDTH_MAX.0
    }
}

/// One digit behind the point, rounded down: `10.0M`. With `{:#}`, as many as the value needs: `1.25G`.
impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.pad("0");
        }
        let fits = SCALES.iter().rev().find(|(_, scale)| self.0 >= *scale);
        let (letter, scale) = fits.copied().unwrap_or(SCALES[0]);
        let (whole, rest) = (self.0 / scale, self.0 % scale);
        let digits = scale.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        let kept = if f.alternate() { fraction.trim_end_matches('0') } else { &fraction[..1] };
        match kept {
            "" => f.pad(&format!("{whole}{letter}")),
            kept => f.pad(&format!("{whole}.{kept}{letter}")),
        }
    }
}

impl FromStr for Bandwidth {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Bandwidth, NotAQuantity> {
        let wrong = |why| NotAQuantity { text: text.to_owned(), why };
        let scale = |letter| SCALES.iter().find(|(known, _)| *known == letter).map(|(_, scale)| *scale);
        let Some((at, letter)) = text.char_indices().next_back() else {
            return Err(wrong("a bandwidth is a number and a unit: write 100k, 10M or 2.5G"));
        };
        let Some(scale) = scale(letter) else {
            return Err(wrong(
                "the unit is missing: write k, M, G or T behind the number, as in 10M or 2.5G",
            ));
        };
        let bps = scaled(&text[..at], scale).map_err(wrong)?;
        match Bandwidth(bps) {
            less if less < BANDWIDTH_MIN => Err(wrong("too little: the least bandwidth is 1k")),
            more if more > BANDWIDTH_MAX => Err(wrong("too much: the greatest bandwidth is 10T")),
            bandwidth => Ok(bandwidth),
        }
    }
}

/// A decimal number times a power of ten.
fn scaled(number: &str, scale: u64) -> Result<u64, &'static str> {
    const NO_NUMBER: &str = "the number is not a decimal: write digits and at most one point, as in 2.5G";
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) {
        return Err(NO_NUMBER);
    }
    let too_much = "too much: the greatest bandwidth is 10T";
    let mut bps = whole.parse::<u64>().ok().and_then(|it| it.checked_mul(scale)).ok_or(too_much)?;
    let mut place = scale;
    for digit in fraction.bytes().map(|it| u64::from(it - b'0')) {
        place /= 10;
        if place == 0 && digit > 0 {
            return Err("too fine: the smallest unit is 1 bit/s");
        }
        bps = bps.checked_add(digit * place).ok_or(too_much)?;
    }
    Ok(bps)
}

/// How coarse the labels of a slice are, in percent of a link's capacity. Text: `10%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step(u8);

impl Step {
    /// The step in percent of the capacity, 1 to 100.
    pub const fn percent(self) -> u8 {
        self.0
    }
}

impl FromStr for Step {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Step, NotAQuantity> {
        let number = text.strip_suffix('%').and_then(|number| number.parse().ok());
        match number {
            Some(percent @ 1..=100) => Ok(Step(percent)),
            _ => Err(NotAQuantity {
                text: text.to_owned(),
                why: "a step is a whole percentage of the capacity, 1% to 100%: write 10%",
            }),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, bps: u64, printed: &str) {
        let bandwidth: Bandwidth = text.parse().unwrap();
        assert_eq!((bandwidth.bps(), bandwidth.to_string().as_str()), (bps, printed), "{text}");
        assert_eq!(format!("{bandwidth:#}").parse(), Ok(bandwidth), "{text} and back");
    }

    #[test]
    fn a_bandwidth_is_a_decimal_and_a_unit() {
        check("10M", 10_000_000, "10.0M");
        check("2.5G", 2_500_000_000, "2.5G");
        check("100k", 100_000, "100.0k");
        check("1k", 1_000, "1.0k");
        check("10T", 10_000_000_000_000, "10.0T");
        check("0.5M", 500_000, "500.0k");
        check("1.250000001G", 1_250_000_001, "1.2G");
        check("1000k", 1_000_000, "1.0M");
        check("999.999k", 999_999, "999.9k");
    }

    #[test]
    fn bandwidths_below_a_kilobit_print_too() {
        assert_eq!(Bandwidth::from_bps(0).to_string(), "0");
        assert_eq!(Bandwidth::from_bps(999).to_string(), "0.9k");
        assert_eq!(format!("{:>7}|", Bandwidth::from_kbps(2_000)), "   2.0M|");
    }

    fn refused(text: &str, expected: &str) {
        let error = text.parse::<Bandwidth>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }

    #[test]
    fn what_is_no_bandwidth_is_refused_with_a_reason() {
        refused("", "write 100k, 10M or 2.5G");
        refused("10", "`10`: the unit is missing");
        refused("10Mbit", "the unit is missing");
        refused("10m", "the unit is missing");
        refused("M", "not a decimal");
        refused("1.2.3M", "not a decimal");
        refused("-1M", "not a decimal");
        refused("1.M", "not a decimal");
        refused("1e3M", "not a decimal");
        refused("٣M", "not a decimal");
        refused("0M", "the least bandwidth is 1k");
        refused("0.999k", "the least bandwidth is 1k");
        refused("10.1T", "the greatest bandwidth is 10T");
        refused("99999999999999999999T", "the greatest bandwidth is 10T");
        refused("1.0001k", "the smallest unit is 1 bit/s");
        refused(&"9".repeat(90), &"9".repeat(32));
        refused("1\u{1b}[2J", "\\u{1b}");
    }

    #[test]
    fn a_step_is_a_percentage() {
        for (text, percent) in [("1%", Some(1)), ("10%", Some(10)), ("100%", Some(100))] {
            assert_eq!(text.parse::<Step>().ok().map(Step::percent), percent);
        }
        for text in ["", "%", "0%", "101%", "10", "2.5%", "-1%"] {
            let error = text.parse::<Step>().unwrap_err().to_string();
            assert!(error.contains("1% to 100%"), "{error}");
        }
    }
}
