//! The links that a node has chosen for slices which name VNICs only: a file in the state folder.
//!
//! ```text
//!   chosen links ──keep──> slice-links.json ──read──> judge_keeping: a choice that is still valid stays
//! ```
//!
//! In: choices, or the file. Out: the other. A file that is missing or damaged has no choices: then links are chosen again.

use burnet_sdk::view::LinkId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The chosen links of slices by name.
pub type Choices = BTreeMap<String, Vec<LinkId>>;

fn place(state: &Path) -> PathBuf {
    state.join("slice-links.json")
}

/// The choices of the node with this state folder.
pub fn read(state: Option<&Path>) -> Choices {
    let text = state.and_then(|state| std::fs::read(place(state)).ok());
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Keeps these choices.
///
/// # Errors
/// The state folder cannot be written.
pub fn keep(state: &Path, choices: &Choices) -> std::io::Result<()> {
    if *choices == read(Some(state)) {
        return Ok(());
    }
    let new = place(state).with_extension("json.new");
    std::fs::write(&new, serde_json::to_vec_pretty(choices)?)?;
    std::fs::rename(new, place(state))
}
