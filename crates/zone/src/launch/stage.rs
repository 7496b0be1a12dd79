//! The stage of a launch that failed, and why.
//!
//! In: an error of the system. Out: [`LaunchError`], one sentence for the operator.

use std::{fmt, io};

/// A required stage failed, so the app is not started.
#[derive(Debug)]
pub struct LaunchError {
    /// The stage that failed.
    pub stage: &'static str,
    /// The error that the system returned.
    pub cause: io::Error,
}

impl LaunchError {
    /// The same error with the name of another stage.
    pub(super) fn of(self, stage: &'static str) -> LaunchError {
        LaunchError { stage, ..self }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the sandbox of the zone is not complete ({}): {}; the app is not started",
            self.stage, self.cause
        )
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

pub(super) fn failed<E: Into<io::Error>>(stage: &'static str) -> impl Fn(E) -> LaunchError {
    move |error| LaunchError { stage, cause: error.into() }
}

pub(super) fn other<E: fmt::Display>(stage: &'static str) -> impl Fn(E) -> LaunchError {
    move |error| LaunchError { stage, cause: io::Error::other(error.to_string()) }
}
