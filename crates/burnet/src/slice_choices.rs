//! The links that a node has chosen for slices which name VNICs only: a file in the state folder.
//!
//! ```text
//!   chosen links ──keep──> slice-links.json ──read──> judge_keeping: a choice that is still valid stays
//!                                                └──> enter: slices with their links, of which nobody knows yet whether they fit
//! ```
//!
//! In: choices, or the file. Out: the other. A file that is missing or damaged has no choices: then links are chosen again. It judges no bandwidth.

use crate::slice_plan::judge::{cables, may_have, own_ports};
use burnet_sdk::view::LinkId;
use config::slices::Slice;
use flow::DatapathId;
use std::collections::{BTreeMap, BTreeSet};
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

/// The slices, with the links that were chosen for those that name none. A choice that can never serve its slice is left out.
pub fn enter(slices: &[Slice], choices: &Choices) -> Vec<Slice> {
    let own = own_ports(slices);
    let with_choice = |slice: &Slice| {
        let links = choices.get(&slice.name).filter(|_| slice.needs_links())?;
        let may = links.iter().all(|link| may_have(slice, &own, *link));
        (may && joins(slice, links)).then(|| slice.with_links(&cables(links)))
    };
    slices.iter().map(|slice| with_choice(slice).unwrap_or_else(|| slice.clone())).collect()
}

/// Whether links join the switches of all VNICs.
fn joins(slice: &Slice, links: &[LinkId]) -> bool {
    let Some(first) = slice.vnics.first() else { return true };
    let mut reached: BTreeSet<DatapathId> = [first.at.switch].into();
    // Each round reaches one more switch, or is the last.
    for _ in links {
        for link in links {
            let ends = [link.from.switch, link.to.switch];
            if ends.iter().any(|end| reached.contains(end)) {
                reached.extend(ends);
            }
        }
    }
    slice.vnics.iter().all(|vnic| reached.contains(&vnic.at.switch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::ConfigFile;
    use config::slices::parse_link;

    #[test]
    fn a_choice_is_used_if_it_can_serve_the_slice() {
        let entered = |links: &[&str], more: &str| {
            let vnics = "vnics = { A = { port = 's1:1', rate = '1M' }, B = { port = 's3:1', rate = '1M' } }";
            let text = format!(
                "[slice.blue]\ncontrollers = ['127.0.0.1:1']\nisolation = 'vlan'\ntag = 7\n{vnics}\n{more}"
            );
            let slices = ConfigFile::parse(&text, Path::new("t")).unwrap().slices;
            let links = links.iter().map(|link| parse_link(link).unwrap()).collect();
            enter(&slices, &[("blue".to_owned(), links)].into())
        };
        let check = |links: &[&str], more: &str, expected: bool| {
            assert_eq!(!entered(links, more)[0].needs_links(), expected, "{links:?} {more}");
        };
        // In the order in which the far one comes first.
        check(&["s2:4-s3:3", "s1:3-s2:3"], "", true);
        check(&["s1:3-s2:3"], "", false);
        check(&[], "", false);
        check(&["s1:1-s3:3"], "", false);
        // The file has both directions, and the slice one.
        let both = ["s1:3-s2:3", "s2:3-s1:3", "s2:4-s3:3"];
        assert_eq!(entered(&both, "")[0].links.as_ref().unwrap().len(), 2);
        check(&["s1:3-s2:3", "s2:4-s3:3"], "switches = ['s1', 's3']", false);
        check(&["s1:3-s2:3"], "links = ['s1:4-s3:4']", true);
    }
}
