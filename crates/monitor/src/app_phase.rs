//! The phase of an app's life, and what follows after its process has ended. Pure.
//!
//! In: nothing. Out: the state for the operator, and when the phase needs attention. `app_life` decides which phase
//! comes next.

use crate::app::{AppSpec, AppState, PAUSED, WAITS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterStop {
    /// The end counts as a failure.
    Fail,
    /// It restarts with a new generation, and no failure is counted.
    Again,
    Stop,
    /// The operator quarantines it; it stays stopped.
    Quarantine,
    /// The verification of its package failed.
    Refuse,
    Remove,
}

#[derive(Debug, Clone)]
pub(crate) enum Phase {
    Waiting,
    /// Its package is being verified.
    Checking,
    Starting,
    Running,
    Ending {
        reason: String,
        then: AfterStop,
        /// `None` after SIGKILL was sent.
        kill_at_ms: Option<u64>,
    },
    BackingOff {
        until_ms: u64,
    },
    Quarantined,
    Stopped,
    /// It does not run because of safe mode.
    Held,
    /// The verification of its package failed. It stays stopped until the operator restarts it.
    Refused,
    /// It was removed from this node.
    Gone,
}

impl Phase {
    /// The time of the next tick with work.
    pub(crate) fn next_wake_ms(&self) -> Option<u64> {
        match self {
            Phase::Ending { kill_at_ms, .. } => *kill_at_ms,
            Phase::BackingOff { until_ms } => Some(*until_ms),
            _ => None,
        }
    }

    /// It is starting or running.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self, Phase::Starting | Phase::Running)
    }

    /// The state for the operator. `unix_ms_at_zero` is the wall clock when the monitor's clock was zero.
    pub(crate) fn state(&self, unix_ms_at_zero: u64) -> AppState {
        match self {
            Phase::Waiting | Phase::Checking | Phase::Starting => AppState::Starting,
            Phase::Running => AppState::Running,
            Phase::Ending { .. } => AppState::Ending,
            Phase::BackingOff { until_ms } => {
                AppState::BackingOff { until_unix_ms: unix_ms_at_zero.saturating_add(*until_ms) }
            }
            Phase::Quarantined => AppState::Quarantined,
            // A removed app is in no list any more.
            Phase::Stopped | Phase::Gone => AppState::Stopped,
            Phase::Held => AppState::Held,
            Phase::Refused => AppState::Refused,
        }
    }
}

/// Why an app does not run, although it is in the configuration.
pub(crate) fn rests(spec: &AppSpec) -> Option<&'static str> {
    if spec.paused {
        return Some(PAUSED);
    }
    spec.waits.then_some(WAITS)
}
