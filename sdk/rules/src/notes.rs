//! What an app tells its operator: each line once, and few lines a second.
//!
//! In: lines. Out: log lines. It remembers a bounded number of lines. At the bound it
//! forgets them, so a line may come again. It never reads the network view.

use burnet_sdk::{Commands, Level};
use std::collections::BTreeSet;

/// The most lines that one call of [`Notes::log`] logs. An app calls it once a second. Further lines are left out.
const LINES_MAX: usize = 10;

/// The most lines that are remembered. Most lines name a switch, and a network has some hundreds. At the bound, all are forgotten.
const TOLD_MAX: usize = 4_096;

/// Lines for the operator.
#[derive(Debug, Default)]
pub struct Notes {
    told: BTreeSet<String>,
    waiting: Vec<String>,
}

impl Notes {
    /// Notes a line, unless it was told before.
    pub fn tell(&mut self, line: String) {
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        if self.told.insert(line.clone()) && self.waiting.len() < LINES_MAX {
            self.waiting.push(line);
        }
    }

    /// The lines that are noted and not logged.
    pub fn waiting(&self) -> &[String] {
        &self.waiting
    }

    /// Logs the noted lines, and then these.
    pub fn log(&mut self, further: impl IntoIterator<Item = String>, level: Level, out: &mut Commands) {
        let lines = std::mem::take(&mut self.waiting).into_iter().chain(further);
        lines.take(LINES_MAX).for_each(|line| out.log(level, &line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_once_and_the_lines_of_a_second_are_bounded() {
        let mut notes = Notes::default();
        notes.tell("a".to_owned());
        notes.tell("a".to_owned());
        assert_eq!(notes.waiting(), ["a"]);
        notes.log([], Level::Warning, &mut Commands::new());
        notes.tell("a".to_owned());
        assert!(notes.waiting().is_empty());
        (0..2 * TOLD_MAX).for_each(|number| notes.tell(number.to_string()));
        assert_eq!(notes.waiting().len(), LINES_MAX);
        assert!(notes.told.len() <= TOLD_MAX);
    }
}
