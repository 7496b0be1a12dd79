//! Runs the commands. Each takes parsed arguments and returns an exit code, or a sentence that says why it failed.
//!
//! It does not parse arguments (that is `cli`), and does none of the work of a node's parts.

pub mod app;
pub mod audit;
pub mod backup;
pub mod edge;
pub mod explain_grant;
pub mod flows;
pub mod incidents;
pub mod key;
pub mod logs;
pub mod network;
pub mod package;
pub mod reload;
pub mod restore;
pub mod run;
pub mod safe_mode;
pub mod slice;
pub mod slice_apply;
pub mod slice_explain;
pub mod slice_flows;
pub mod slice_life;
pub mod slice_rehearse;
mod slice_zones;
pub mod slices;
pub mod stop_signal;
pub mod switches;
pub mod table;
pub mod tls;
pub mod top;

use crate::cli::{CommandError, NodeArgs};
use config::Environment;
use operator::client;
use operator::contract::{Answer, Question};
use serde::Serialize;

/// Asks the node at this socket. If the node refuses, the command fails.
fn ask(asking: &NodeArgs, question: &Question) -> Result<Answer, CommandError> {
    let socket = Environment::of_this_process()?.socket(asking.socket.as_deref(), None)?;
    match client::ask(&socket, question).map_err(CommandError::DidNotWork)? {
        Answer::Refused(why) => Err(CommandError::DidNotWork(why)),
        answer => Ok(answer),
    }
}

/// The error for an answer that does not fit the question: the node has another version.
fn unexpected() -> CommandError {
    CommandError::DidNotWork(
        "the node sent an unexpected answer: it has another version than this program".to_owned(),
    )
}

/// A value as JSON for people, with a line break at its end.
///
/// # Errors
/// The value cannot be represented as JSON.
pub fn json<T: Serialize>(value: &T) -> Result<String, CommandError> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| CommandError::DidNotWork(format!("the answer cannot be printed: {error}")))
}

/// A time span in the largest unit that fits, for example how long ago an event was.
fn ago(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..=119 => format!("{seconds}s"),
        seconds @ 120..=7199 => format!("{}m", seconds / 60),
        seconds @ 7200..=172_799 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_the_coarsest_unit() {
        for (ms, expected) in
            [(0, "0s"), (119_999, "119s"), (120_000, "2m"), (7_200_000, "2h"), (172_800_000, "2d")]
        {
            assert_eq!(ago(ms), expected);
        }
    }
}
