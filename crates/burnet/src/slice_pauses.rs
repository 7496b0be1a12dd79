//! The slices that the operator has paused: a file in the state folder, so that they stay paused when the node starts again.
//!
//! In: names of slices. Out: the file `paused-slices.json`, or what it says. A file that is missing or damaged pauses no slice. It stops nothing.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

fn place(state: &Path) -> PathBuf {
    state.join("paused-slices.json")
}

/// The paused slices of the node with this state folder.
pub fn read(state: Option<&Path>) -> BTreeSet<String> {
    let text = state.and_then(|state| std::fs::read(place(state)).ok());
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Pauses or resumes a slice.
///
/// # Errors
/// The state folder cannot be written. Then nothing has changed.
pub fn set(state: &Path, slice: &str, is_paused: bool) -> io::Result<()> {
    let mut paused = read(Some(state));
    if is_paused {
        paused.insert(slice.to_owned());
    } else {
        paused.remove(slice);
    }
    write(state, &paused)
}

/// Forgets all slices that the node does not have any more.
///
/// # Errors
/// As [`set`].
pub fn forget_others(state: &Path, is_known: impl Fn(&str) -> bool) -> io::Result<()> {
    let before = read(Some(state));
    let paused: BTreeSet<String> = before.iter().filter(|slice| is_known(slice)).cloned().collect();
    if paused == before { Ok(()) } else { write(state, &paused) }
}

fn write(state: &Path, paused: &BTreeSet<String>) -> io::Result<()> {
    let new = place(state).with_extension("json.new");
    std::fs::write(&new, serde_json::to_vec(paused)?)?;
    std::fs::rename(new, place(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_slice_is_remembered_until_it_is_resumed_or_gone() {
        let folder = std::env::temp_dir().join(format!("burnet-pauses-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let paused = || read(Some(&folder)).into_iter().collect::<Vec<_>>();
        assert!(paused().is_empty() && read(None).is_empty());
        for slice in ["red", "blue", "blue"] {
            set(&folder, slice, true).unwrap();
        }
        assert_eq!(paused(), ["blue", "red"]);
        set(&folder, "red", false).unwrap();
        assert_eq!(paused(), ["blue"]);
        forget_others(&folder, |slice| slice == "red").unwrap();
        assert!(paused().is_empty());
        std::fs::write(place(&folder), "[1").unwrap();
        assert!(paused().is_empty(), "a damaged file pauses nothing");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
