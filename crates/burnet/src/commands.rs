//! What the commands do: each takes what was asked and gives an exit code, or a sentence on why not.
//!
//! Never parses arguments (that is `cli`), and never does what a part of a node does.

pub mod app;
pub mod audit;
pub mod explain_grant;
pub mod flows;
pub mod incidents;
pub mod key;
pub mod logs;
pub mod package;
pub mod reload;
pub mod run;
pub mod safe_mode;
pub mod stop_signal;
pub mod switches;
pub mod table;
pub mod tls;
pub mod top;

use crate::cli::{Asking, CommandError};
use config::Surroundings;
use operator::client;
use operator::contract::{Answer, Question};
use serde::Serialize;

/// Asks the node that is meant. A refusal of the node is that command's failure.
fn ask(asking: &Asking, question: &Question) -> Result<Answer, CommandError> {
    let socket = Surroundings::of_this_process()?.socket(asking.socket.as_deref(), None)?;
    match client::ask(&socket, question).map_err(CommandError::DidNotWork)? {
        Answer::Refused(why) => Err(CommandError::DidNotWork(why)),
        answer => Ok(answer),
    }
}

/// An answer to another question than was asked: the node is of another version.
fn unexpected() -> CommandError {
    CommandError::DidNotWork(
        "the node answered something else than was asked: it is of another version".to_owned(),
    )
}

/// A value as JSON for people, with a line break at its end.
///
/// # Errors
/// It cannot be printed.
pub fn json<T: Serialize>(value: &T) -> Result<String, CommandError> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| CommandError::DidNotWork(format!("the answer cannot be printed: {error}")))
}

/// How long ago, in the coarsest unit that says it.
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
