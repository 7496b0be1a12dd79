//! Changes of a node's slices by the operator: which slices the node shall have.
//!
//! In: nothing. Out: types, which pass from the operator to the monitor. They read no file.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlicesChange {
    /// Which slices.
    pub wanted: SlicesWanted,
    /// Whether it is only checked, and nothing changes.
    pub dry_run: bool,
    /// Whether slices are applied that do not fit into the network.
    #[serde(default)]
    pub force: bool,
}

/// The slices that a node shall have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SlicesWanted {
    /// Those of this file, and no others.
    OfFile(PathBuf),
    /// All that it has, without this one.
    Without(String),
    /// Those of its configuration again.
    OfConfiguration,
    /// The same, with this one paused. Nothing is read again.
    Paused(String),
    /// The same, with this one resumed.
    Resumed(String),
    /// The same, judged by the network as it is now. Nothing is read again.
    Judged,
}

impl fmt::Display for SlicesChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dry_run {
            f.write_str("check: ")?;
        }
        match &self.wanted {
            SlicesWanted::OfFile(file) => write!(f, "the slices of {:?}", file.display().to_string()),
            SlicesWanted::Without(slice) => write!(f, "all slices without {slice:?}"),
            SlicesWanted::OfConfiguration => f.write_str("the slices of the configuration"),
            SlicesWanted::Paused(slice) => write!(f, "pause the slice {slice:?}"),
            SlicesWanted::Resumed(slice) => write!(f, "resume the slice {slice:?}"),
            SlicesWanted::Judged => f.write_str("judge the slices"),
        }
    }
}
