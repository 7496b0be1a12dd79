//! The zone number of each app, which outlives the node.
//!
//! ```text
//!   names of the node's apps, the stored numbers ──> ZoneNumbers ──> a number for each, and what to store
//! ```
//!
//! A rule in a switch carries its owner's number and outlives the node. If numbers followed the order of the apps, a
//! new first app would own the rules of the next. There are [`APPS_MAX`] numbers. None passes from one app to another
//! automatically, because a disconnected switch may have rules, groups or meters of the first app. When all are
//! assigned, a new app gets none, and the operator removes a line. This module reads and writes no file.

use monitor::APPS_MAX;

/// The longest text of all numbers in bytes: a line of at most 70 bytes for each.
pub const TEXT_BYTES_MAX: usize = 80 << 10;

/// The assigned numbers, in the order in which they were assigned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneNumbers {
    given: Vec<Given>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    number: u16,
    name: String,
}

impl ZoneNumbers {
    /// Reads the output of [`Self::to_text`].
    ///
    /// # Errors
    /// The invalid line, and why it is invalid.
    pub fn parse(text: &str) -> Result<ZoneNumbers, String> {
        let mut given: Vec<Given> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |why: &str| Err(format!("line {}: {why}", index + 1));
            let Some((number, name)) = line.split_once(' ') else { return wrong("no number and name") };
            let Some(number) = number.parse().ok().filter(|number| is_a_zones(*number)) else {
                return wrong("no number of a zone");
            };
            if monitor::check_app_name(name).is_err() {
                return wrong("not the name of an app");
            }
            if given.iter().any(|other| other.number == number || other.name == name) {
                return wrong("the number or the name appears twice");
            }
            given.push(Given { number, name: name.to_owned() });
        }
        Ok(ZoneNumbers { given })
    }

    /// The text to store.
    pub fn to_text(&self) -> String {
        self.given.iter().map(|Given { number, name }| format!("{number} {name}\n")).collect()
    }

    /// Gives each of the node's apps its number: the earlier one, or one that was never assigned. Returns the apps
    /// for which no number was left.
    pub fn give<'n>(&mut self, names: &[&'n str]) -> Vec<&'n str> {
        let mut left_out = Vec::new();
        for name in names {
            match (self.number_of(name), self.free()) {
                (Some(_), _) => {}
                (None, Some(number)) => self.given.push(Given { number, name: (*name).to_owned() }),
                (None, None) => left_out.push(*name),
            }
        }
        left_out
    }

    /// An app's number.
    pub fn number_of(&self, name: &str) -> Option<u16> {
        self.given.iter().find(|given| given.name == name).map(|given| given.number)
    }

    /// Whether an app has this number.
    pub fn is_given(&self, number: u16) -> bool {
        self.given.iter().any(|given| given.number == number)
    }

    fn free(&self) -> Option<u16> {
        (1..).take(APPS_MAX).find(|number| self.given.iter().all(|given| given.number != *number))
    }
}

fn is_a_zones(number: u16) -> bool {
    (1..=APPS_MAX).contains(&usize::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> ZoneNumbers {
        ZoneNumbers::parse(text).unwrap()
    }

    #[test]
    fn what_is_damaged_is_refused_with_its_line() {
        let check = |text: &str, expected: &str| {
            assert_eq!(ZoneNumbers::parse(text), Err(expected.to_owned()), "{text}");
        };
        check("1 a\nb", "line 2: no number and name");
        check("0 a", "line 1: no number of a zone");
        check("1024 a", "line 1: no number of a zone");
        check("-1 a", "line 1: no number of a zone");
        check("1 a b", "line 1: not the name of an app");
        check("1 a\n1 b", "line 2: the number or the name appears twice");
        check("1 a\n2 a", "line 2: the number or the name appears twice");
        assert_eq!(numbers("7 a\n3 b\n").to_text(), "7 a\n3 b\n");
    }

    #[test]
    fn an_app_keeps_its_number_whatever_stands_before_it() {
        let mut numbers = ZoneNumbers::default();
        numbers.give(&["firewall", "hub"]);
        assert_eq!((numbers.number_of("firewall"), numbers.number_of("hub")), (Some(1), Some(2)));
        let mut later = ZoneNumbers::parse(&numbers.to_text()).unwrap();
        assert!(later.give(&["attacker", "hub"]).is_empty());
        assert_eq!((later.number_of("attacker"), later.number_of("hub")), (Some(3), Some(2)));
        assert_eq!(later.number_of("firewall"), Some(1), "nobody else gets it");
        assert_eq!(later.to_text(), "1 firewall\n2 hub\n3 attacker\n");
    }

    #[test]
    fn no_app_gets_the_number_of_another_however_long_that_one_was_not_run() {
        let names: Vec<String> = (1..=APPS_MAX).map(|number| format!("a{number}")).collect();
        let mut numbers = ZoneNumbers::default();
        assert!(numbers.give(&names.iter().map(String::as_str).collect::<Vec<_>>()).is_empty());
        let before = numbers.clone();
        assert_eq!(numbers.give(&["a4", "new", "newer"]), ["new", "newer"]);
        assert_eq!(numbers, before);
        assert!(numbers.to_text().len() < TEXT_BYTES_MAX);
        // The operator has removed a line.
        let mut numbers = ZoneNumbers::parse(&numbers.to_text().replace("7 a7\n", "")).unwrap();
        assert_eq!((numbers.give(&["new", "newer"]), numbers.number_of("new")), (vec!["newer"], Some(7)));
    }
}
