//! Which number each app has as a zone, for longer than the node lives.
//!
//! ```text
//!   names of the node's apps, what was given before ──> ZoneNumbers ──> a number for each, and what is to be kept
//! ```
//!
//! A rule in a switch carries its owner's number and outlives the node. Were numbers given by the order of the apps, an app that is put in
//! front would own the rules of the next. There are [`APPS_MAX`] numbers. Once all were given, a new app gets the one whose app was not
//! run for longest, and the operator is told: rules of that one may still be in switches. It reads and writes no file.

use monitor::{APPS_MAX, SERVICES};

/// Largest text of all numbers: a line of 64 bytes and a bit for each.
pub const TEXT_BYTES_MAX: usize = 8 << 10;

/// The numbers that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneNumbers {
    /// Those that were run last stand last.
    given: Vec<Given>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    number: u16,
    name: String,
}

/// A number that went from one app to another, as there was no other left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOn {
    /// The number.
    pub number: u16,
    /// Whose it was.
    pub from: String,
    /// Whose it is.
    pub to: String,
}

impl ZoneNumbers {
    /// Reads what [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// The line that is wrong, and why.
    pub fn parse(text: &str) -> Result<ZoneNumbers, String> {
        let mut given: Vec<Given> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |why: &str| Err(format!("line {}: {why}", index + 1));
            let Some((number, name)) = line.split_once(' ') else { return wrong("no number and name") };
            let Some(number) = number.parse().ok().filter(|number| is_a_zones(*number)) else {
                return wrong("no number of a zone");
            };
            // The names of services are no app's, and they have numbers as well.
            if !SERVICES.contains(&name) && monitor::check_app_name(name).is_err() {
                return wrong("no name of an app");
            }
            if given.iter().any(|other| other.number == number || other.name == name) {
                return wrong("the number or the name stands there twice");
            }
            given.push(Given { number, name: name.to_owned() });
        }
        Ok(ZoneNumbers { given })
    }

    /// The text that is kept.
    pub fn to_text(&self) -> String {
        self.given.iter().map(|Given { number, name }| format!("{number} {name}\n")).collect()
    }

    /// Gives each of the node's apps its number: the one that it had, or one that nobody had, or at last that of the app that was not run for
    /// longest. Names beyond [`APPS_MAX`] get none.
    pub fn give(&mut self, names: &[&str]) -> Vec<PassedOn> {
        let (before, new): (Vec<&str>, Vec<&str>) =
            names.iter().take(APPS_MAX).partition(|name| self.number_of(name).is_some());
        for name in before {
            if let Some(place) = self.given.iter().position(|given| given.name == name) {
                let given = self.given.remove(place);
                self.given.push(given);
            }
        }
        let mut passed_on = Vec::new();
        for name in new {
            if let Some(number) = self.free() {
                self.given.push(Given { number, name: name.to_owned() });
            } else if let Some(place) =
                self.given.iter().position(|given| !names.contains(&given.name.as_str()))
            {
                let Given { number, name: from } = self.given.remove(place);
                self.given.push(Given { number, name: name.to_owned() });
                passed_on.push(PassedOn { number, from, to: name.to_owned() });
            }
        }
        passed_on
    }

    /// An app's number.
    pub fn number_of(&self, name: &str) -> Option<u16> {
        self.given.iter().find(|given| given.name == name).map(|given| given.number)
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
        check("64 a", "line 1: no number of a zone");
        check("-1 a", "line 1: no number of a zone");
        check("1 a b", "line 1: no name of an app");
        check("1 a\n1 b", "line 2: the number or the name stands there twice");
        check("1 a\n2 a", "line 2: the number or the name stands there twice");
        assert_eq!(numbers("7 a\n3 b\n").to_text(), "7 a\n3 b\n");
    }

    #[test]
    fn an_app_keeps_its_number_whatever_stands_before_it() {
        let mut numbers = ZoneNumbers::default();
        numbers.give(&["firewall", "hub"]);
        assert_eq!((numbers.number_of("firewall"), numbers.number_of("hub")), (Some(1), Some(2)));
        let mut later = ZoneNumbers::parse(&numbers.to_text()).unwrap();
        assert_eq!(later.give(&["attacker", "hub"]), []);
        assert_eq!((later.number_of("attacker"), later.number_of("hub")), (Some(3), Some(2)));
        assert_eq!(later.number_of("firewall"), Some(1), "nobody else gets it");
        assert_eq!(later.to_text(), "1 firewall\n2 hub\n3 attacker\n");
    }

    #[test]
    fn services_have_numbers_too_and_they_are_read_again() {
        let mut numbers = ZoneNumbers::default();
        numbers.give(&[&["hub"], SERVICES.as_slice()].concat());
        assert_eq!(ZoneNumbers::parse(&numbers.to_text()), Ok(numbers));
    }

    #[test]
    fn the_number_of_the_app_that_was_not_run_for_longest_is_passed_on_at_last() {
        let names: Vec<String> = (1..=APPS_MAX).map(|number| format!("a{number}")).collect();
        let mut numbers = ZoneNumbers::default();
        numbers.give(&names.iter().map(String::as_str).collect::<Vec<_>>());
        numbers.give(&["a1", "a3"]);
        let passed_on = numbers.give(&["a4", "new", "newer"]);
        let on = |number, from: &str, to: &str| PassedOn { number, from: from.to_owned(), to: to.to_owned() };
        assert_eq!(passed_on, [on(2, "a2", "new"), on(5, "a5", "newer")]);
        assert!(numbers.to_text().len() < TEXT_BYTES_MAX);
    }
}
