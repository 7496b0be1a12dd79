//! The errors of the monitor: an operator's mistake, or a failure of the system.
//!
//! In: a plan that cannot be run, or an error of the system. Out: a sentence.

use std::{fmt, io};

use crate::app::PlanError;

/// An error of the monitor.
#[derive(Debug)]
pub enum RunError {
    /// The plan cannot be run. The operator must change it; exit code 2.
    Plan(PlanError),
    /// A necessary operation of the system failed.
    Io(io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Plan(error) => error.fmt(f),
            RunError::Io(error) => write!(f, "the monitor cannot continue: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<PlanError> for RunError {
    fn from(error: PlanError) -> RunError {
        RunError::Plan(error)
    }
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> RunError {
        RunError::Io(error)
    }
}
