//! Receipts: the outcome of a command. A rule counts as programmed only after the switch confirmed it.
//!
//! If the session ends first, the outcome is `unknown`, not `failed`.

use std::fmt;

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Outcome {
    /// The switch answered the barrier and sent no error.
    Programmed = 0,
    /// The kernel refused it. The reason names the capability, the quota, or the error.
    Refused = 1,
    /// The switch answered with an error.
    Failed = 2,
    /// The session ended before the answer.
    Unknown = 3,
}

impl Outcome {
    /// The outcome with this number.
    pub const fn from_number(number: u8) -> Option<Outcome> {
        match number {
            0 => Some(Outcome::Programmed),
            1 => Some(Outcome::Refused),
            2 => Some(Outcome::Failed),
            3 => Some(Outcome::Unknown),
            _ => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Programmed => "programmed",
            Outcome::Refused => "refused",
            Outcome::Failed => "failed",
            Outcome::Unknown => "unknown",
        })
    }
}

/// The error of a refused command for which the session has no room now. Send it again later: nothing is wrong with it. The type is
/// OFPET_EXPERIMENTER, which no refusal has otherwise.
pub const NO_ROOM: flow::ErrorCode = flow::ErrorCode { kind: 0xffff, code: 1 };

/// The answer to a command that requested a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt<'a> {
    /// The command's ticket.
    pub ticket: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// For `Failed`: the switch's error, in the numbers of OpenFlow 1.3. For `Refused`: OFPFMFC_TABLE_FULL if the table has as many rules as the
    /// operator allows, and [`NO_ROOM`] if the session has no room now. Otherwise zeros.
    pub error: flow::ErrorCode,
    /// The reason as text for people. Empty for `Programmed`.
    pub reason: &'a str,
}
