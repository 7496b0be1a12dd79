//! The slices of a node that has no description of its network, judged by its network view.
//!
//! ```text
//!   the view: links, ports, what is reserved ──┐
//!   slices, links that were chosen before ─────┴──> Finding for each slice: its links, and whether it fits
//! ```
//!
//! In: a network as it is known now, slices as they are written, and choices. Out: findings. It asks no node, starts nothing, and keeps nothing.
//!
//! A slice whose links are known runs, whatever is found of it. So a switch that is away or a link that is down takes nothing from a tenant.

use crate::slice_choices::{self, Choices};
use crate::slice_plan::judge::{Judged, judge_known, own_ports};
use crate::slice_plan::places;
use crate::slice_plan::substrate::{Description, Substrate};
use burnet_sdk::view::{ConnectPoint, LinkState};
use config::slices::{Slice, switch_name};
use flow::DatapathId;
use std::collections::{BTreeMap, BTreeSet};

/// The most switches that a note names.
const NAMED_MAX: usize = 8;

/// What is found of a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The slice, with the links that were chosen for it, now or before. If it still needs links, it cannot run.
    pub slice: Slice,
    /// How it stands.
    pub standing: Standing,
}

/// How a slice stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The network has all that it is promised.
    Fits,
    /// The network lacks something. The sentence is that of `burnet slice plan`, without the slice's name.
    Lacks(String),
    /// The network is not known well enough, for this reason.
    Unknown(String),
}

impl Finding {
    /// A phrase for the operator and the tenant, if there is something to say. It names no other slice.
    pub fn note(&self) -> Option<String> {
        match &self.standing {
            Standing::Fits => None,
            Standing::Lacks(why) => Some(format!("does not fit: {why}")),
            Standing::Unknown(why) if self.slice.needs_links() => {
                Some(format!("waits for the network: {why}"))
            }
            Standing::Unknown(why) => Some(format!("not judged yet: {why}")),
        }
    }
}

/// Judges all slices, those first whose links are known. `may_choose`: links are chosen for the others. A choice stays, also if it does not fit.
///
/// # Errors
/// The network is too large to be computed with.
pub fn look(
    mut network: Description,
    slices: &[Slice],
    choices: &Choices,
    may_choose: bool,
) -> Result<Vec<Finding>, String> {
    let slices = slice_choices::enter(slices, choices);
    let closed: BTreeSet<ConnectPoint> =
        own_ports(&slices).into_iter().chain(open_links(&mut network)).collect();
    let mut substrate = Substrate::new(network)?;
    let mut unknown: BTreeMap<String, String> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| !slice.vnics.is_empty()) {
        if let Some(why) = unknown_of(&substrate, slice) {
            unknown.insert(slice.name.clone(), why);
        } else if slice.needs_links() && !may_choose {
            unknown.insert(slice.name.clone(), "its links are being found".to_owned());
        }
    }
    let is_judged = |slice: &&Slice| !slice.vnics.is_empty() && !unknown.contains_key(&slice.name);
    let mut judged: Vec<Slice> = slices.iter().filter(is_judged).cloned().collect();
    // A slice that runs is not moved for one that waits.
    judged.sort_by_key(Slice::needs_links);
    let results = judge_known(&mut substrate, &judged, false, &BTreeMap::new(), &closed);
    let mut results: BTreeMap<String, Judged> =
        results.into_iter().map(|judged| (judged.slice.name.clone(), judged)).collect();
    let finding = |slice: Slice| {
        if let Some(why) = unknown.get(&slice.name) {
            return Finding { standing: Standing::Unknown(why.clone()), slice };
        }
        match results.remove(&slice.name) {
            None => Finding { slice, standing: Standing::Fits },
            Some(Judged { slice, result: Ok(_), .. }) => Finding { slice, standing: Standing::Fits },
            Some(Judged { result: Err(refused), .. }) => {
                let why = without_name(&refused.why, &slice.name).to_owned();
                Finding { slice, standing: Standing::Lacks(why) }
            }
        }
    };
    Ok(slices.into_iter().map(finding).collect())
}

/// The same, but a choice that does not fit is replaced if another one does. For an operator who asks.
///
/// # Errors
/// As [`look`].
pub fn look_again(
    network: &Description,
    slices: &[Slice],
    choices: &Choices,
) -> Result<Vec<Finding>, String> {
    let first = look(network.clone(), slices, choices, true)?;
    let lacks = |finding: &Finding| matches!(finding.standing, Standing::Lacks(_));
    let mut kept = choices.clone();
    kept.retain(|name, _| !first.iter().any(|finding| finding.slice.name == *name && lacks(finding)));
    if kept == *choices {
        return Ok(first);
    }
    let second = look(network.clone(), slices, &kept, true)?;
    // A slice that fits nowhere keeps the links over which it runs.
    let better =
        |(first, second): (Finding, Finding)| if second.slice.needs_links() { first } else { second };
    Ok(first.into_iter().zip(second).map(better).collect())
}

/// Takes all links for up, and returns the ends of those that are down. A failure takes no bandwidth from a slice, but such a link is chosen for none.
fn open_links(network: &mut Description) -> Vec<ConnectPoint> {
    let down = network.links.iter_mut().filter(|link| link.state == LinkState::Down);
    down.flat_map(|link| {
        link.state = LinkState::Up;
        [link.id.from, link.id.to]
    })
    .collect()
}

/// Why a slice cannot be judged: what it names is not in the network.
fn unknown_of(substrate: &Substrate, slice: &Slice) -> Option<String> {
    let unknown = places::check_slice(substrate, slice).err()?;
    let missing = |switch: &DatapathId| substrate.switch(*switch).is_none();
    let named = slice.switches.iter().flatten().map(|switch| switch.datapath);
    let switches: BTreeSet<DatapathId> =
        named.chain(slice.ports.iter().map(|port| port.at.switch)).filter(missing).collect();
    let names: Vec<String> = switches.iter().take(NAMED_MAX).map(|switch| switch_name(*switch)).collect();
    let more = if switches.len() > NAMED_MAX { ", …" } else { "" };
    Some(match switches.len() {
        0 => without_name(&unknown.why, &slice.name).to_owned(),
        1 => format!("{} is not connected", names.join(", ")),
        _ => format!("{}{more} are not connected", names.join(", ")),
    })
}

/// A sentence of the judgement without the slice's name, for where the name is said anyway.
fn without_name<'s>(sentence: &'s str, slice: &str) -> &'s str {
    let rest = sentence.strip_prefix("slice ").and_then(|rest| rest.strip_prefix(slice));
    rest.and_then(|rest| rest.strip_prefix(": ")).unwrap_or(sentence)
}

#[cfg(test)]
mod tests;
