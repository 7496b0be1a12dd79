//! `burnet safe-mode`: shows whether the running node is in safe mode, and ends safe mode.
//!
//! In: the node's answer. Out: text or JSON. The monitor decides what runs.

use super::{ask, json, unexpected};
use crate::cli::CommandError;
use crate::cli::incidents::SafeModeCommand;
use monitor::records::time_text;
use operator::contract::{Answer, NodeView, Question};

/// The output of `burnet safe-mode`.
pub fn safe_mode(command: &SafeModeCommand) -> Result<String, CommandError> {
    match command {
        SafeModeCommand::Show { asking } => {
            let Answer::Node(node) = ask(asking, &Question::Node)? else { return Err(unexpected()) };
            if asking.json { json(&node.safe_mode) } else { Ok(text(&node)) }
        }
        SafeModeCommand::Leave { asking } => {
            let Answer::Done = ask(asking, &Question::LeaveSafeMode)? else { return Err(unexpected()) };
            if asking.json {
                return json(&serde_json::json!({ "asked": "leave_safe_mode" }));
            }
            Ok("the node leaves safe mode; `burnet app list` shows the state of the apps\n".to_owned())
        }
    }
}

/// A sentence about safe mode, and what to do.
pub fn text(node: &NodeView) -> String {
    match &node.safe_mode {
        None => "the node is not in safe mode\n".to_owned(),
        Some(why) => format!(
            "the node is in safe mode since {}: {}; burnet incidents shows the cause, burnet safe-mode leave ends it\n",
            time_text(why.unix_ms),
            why.reason
        ),
    }
}
