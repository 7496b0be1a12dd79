//! What is wrong with a profile's file: where, and what was expected.

use super::place::{Files, Place};
use std::fmt;

/// How many problems one reading reports. Behind a first mistake, most others are its consequences.
pub const PROBLEMS_MAX: usize = 20;

/// Something wrong in a file that is still being read.
#[derive(Clone, Debug, Default)]
pub(super) struct Fault {
    pub(super) at: Place,
    /// The key, as a path.
    pub(super) key: String,
    /// The rest of the sentence.
    pub(super) what: String,
}

impl Fault {
    pub(super) fn new(at: Place, key: &str, what: String) -> Self {
        Fault { at, key: key.to_owned(), what }
    }
}

/// The faults so far. Beyond [`KEPT_MAX`], no more are kept.
#[derive(Debug, Default)]
pub(super) struct Faults {
    faults: Vec<Fault>,
}

/// More than are shown, so that the message can say how many are left out.
const KEPT_MAX: usize = 1000;

impl Faults {
    pub(super) fn push(&mut self, fault: Fault) {
        if !self.is_full() {
            self.faults.push(fault);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.faults.len() >= KEPT_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn into_vec(self) -> Vec<Fault> {
        self.faults
    }
}

/// Something wrong in a profile's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named when it was read.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The key, as a path: `cpu.add.service_us`. Empty for the text as a whole.
    pub key: String,
    /// What is wrong with it, and what was expected.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{} ", self.key)?;
        }
        f.write_str(&self.what)
    }
}

/// Why a text is no profile: one line for each problem, the first first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadProfile {
    /// At least one.
    pub problems: Vec<Problem>,
    /// How many more there are.
    pub left_out: usize,
}

impl BadProfile {
    pub(super) fn new(files: &Files, faults: Vec<Fault>, left_out: usize) -> Self {
        let problem = |fault: Fault| Problem {
            file: files.name(fault.at.file).to_owned(),
            line: fault.at.line,
            key: fault.key,
            what: fault.what,
        };
        BadProfile { problems: faults.into_iter().map(problem).collect(), left_out }
    }
}

impl fmt::Display for BadProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        if self.left_out > 0 {
            write!(f, "\n{} more problems", self.left_out)?;
        }
        Ok(())
    }
}

impl std::error::Error for BadProfile {}
