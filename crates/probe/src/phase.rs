//! A phase of a probe: a small state machine that asks for scripts, and concludes from their records.
//!
//! In: the record of its last script, and the findings of earlier phases. Out: the next script, or the end. It sends nothing itself, and
//! never sees a message.

use crate::findings::Findings;
use crate::options::Options;
use crate::script::{Record, Script};

/// What a phase does next.
#[derive(Debug)]
pub enum Next {
    /// It needs this to be done.
    Run(Script),
    /// It has found what it could.
    Done,
    /// The probe cannot go on, for this reason.
    Refuse(String),
}

/// A phase.
pub trait Phase: std::fmt::Debug + Send {
    /// What it does, for the operator.
    fn title(&self) -> String;
    /// Goes on. `last` is the record of its last script; None at the start.
    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next;
    /// How long it takes, if it would be long. A phase for which the probe has no time left does not begin.
    fn takes_ns(&self, _found: &Findings) -> u64 {
        0
    }
    /// Whether a later probe goes on from its records. Otherwise it is no part of the plan.
    fn is_kept(&self) -> bool {
        true
    }
    /// What is not measured if it does not run.
    fn measures(&self) -> &'static [&'static str];
}
