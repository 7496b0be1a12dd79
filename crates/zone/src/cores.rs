//! The cores of the machine on which an app runs, as the operator writes them: `"1"`, `"0,2"`, `"2-5"`.
//!
//! In: text. Out: [`Cores`], which is never empty, or a sentence that says what is wrong. It does not check which
//! cores the machine has.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The number of cores in the CPU mask that every Linux accepts.
pub const CORES_MAX: usize = 1024;

/// A set of cores, by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cores(BTreeSet<usize>);

impl Cores {
    /// Each core once, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }
}

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Cores, String> {
        let mut cores = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
                (Ok(first), Ok(last)) if first <= last && last < CORES_MAX => cores.extend(first..=last),
                _ => {
                    return Err(format!(
                        "`{text}` is no list of cores: write numbers below {CORES_MAX}, as in \"1\", \"0,2\" or \"2-5\""
                    ));
                }
            }
        }
        Ok(Cores(cores))
    }
}

impl TryFrom<String> for Cores {
    type Error = String;

    fn try_from(text: String) -> Result<Cores, String> {
        text.parse()
    }
}

impl From<Cores> for String {
    fn from(cores: Cores) -> String {
        cores.to_string()
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, core) in self.0.iter().enumerate() {
            write!(f, "{}{core}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        match (text.parse::<Cores>(), expected) {
            (Ok(cores), Ok(expected)) => assert_eq!(cores.to_string(), expected),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (got, expected) => panic!("{text}: {got:?}, but expected {expected:?}"),
        }
    }

    #[test]
    fn what_is_no_list_of_cores_is_refused() {
        for text in ["", ",", "-", "1-", "3-2", "one", "-1", "1024", "0-4294967296"] {
            check(text, Err("is no list of cores"));
        }
    }

    #[test]
    fn numbers_and_ranges_are_cores() {
        check("1", Ok("1"));
        check("2, 0,2", Ok("0,2"));
        check("2-5,4-6", Ok("2,3,4,5,6"));
    }
}
