//! Switches and links under dense numbers, with what is reserved on each link.
//!
//! ```text
//!   LinkId <──> LinkNo(17) { from: SwitchNo(3), to: SwitchNo(5), … }        SwitchNo(3) ──> its links, in the order of their ids
//! ```
//!
//! In: links of the view, reservations. Out: numbers and facts. A number stays with its id for ever. It computes no path.

use flow::DatapathId;
use std::collections::HashMap;
use view::{Annotations, Link, LinkId, LinkState};

/// The maximum number of switches: the sum of the greatest costs along any path fits into 32 bits. A link of a further switch is
/// refused.
pub const SWITCHES_MAX: usize = 4_000;

/// The maximum number of links that were ever known, each direction by itself: 64 for each switch. A further one is refused.
pub const LINKS_MAX: usize = SWITCHES_MAX * 64;

/// The number of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SwitchNo(pub u32);

/// The number of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkNo(pub u32);

impl SwitchNo {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkNo {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A link as seen from one of its switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arc {
    pub(crate) link: LinkNo,
    /// The switch at the other end.
    pub(crate) peer: SwitchNo,
}

/// What is known of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSlot {
    /// Its id.
    pub id: LinkId,
    /// Where it begins.
    pub from: SwitchNo,
    /// Where it ends.
    pub to: SwitchNo,
    /// Whether it carries frames.
    pub is_up: bool,
    /// Its capacity; 0 if unknown.
    pub capacity_kbps: u64,
    /// Its latency, if known.
    pub latency_us: Option<u64>,
    /// What intents have reserved on it.
    pub reserved_kbps: u64,
    pub(crate) annotations: Annotations,
}

impl LinkSlot {
    /// What can still be reserved. `None`: the capacity is unknown.
    pub fn free_kbps(&self) -> Option<u64> {
        (self.capacity_kbps > 0).then(|| self.capacity_kbps.saturating_sub(self.reserved_kbps))
    }
}

#[derive(Clone, Debug)]
struct SwitchSlot {
    id: DatapathId,
    /// In the order of the links' ids, so that a choice among them does not depend on the order in which they became known.
    out: Vec<Arc>,
    into: Vec<Arc>,
}

/// What a change of a link means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The link.
    pub link: LinkNo,
    /// It carried frames before.
    pub was_up: bool,
    /// It carries frames now.
    pub is_up: bool,
}

/// Why a link was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There are [`SWITCHES_MAX`] switches already.
    TooManySwitches,
    /// There are [`LINKS_MAX`] links already.
    TooManyLinks,
}

/// The switches and links.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    switches: Vec<SwitchSlot>,
    links: Vec<LinkSlot>,
    switch_numbers: HashMap<DatapathId, SwitchNo, foldhash::fast::FixedState>,
    link_numbers: HashMap<LinkId, LinkNo, foldhash::fast::FixedState>,
}

impl Topology {
    /// How many switches have a number.
    pub fn switches(&self) -> usize {
        self.switches.len()
    }

    /// How many links have a number.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// The number of a switch.
    pub fn switch(&self, id: DatapathId) -> Option<SwitchNo> {
        self.switch_numbers.get(&id).copied()
    }

    /// The id of a switch.
    pub fn switch_id(&self, switch: SwitchNo) -> DatapathId {
        self.switches[switch.index()].id
    }

    /// The number of a link, up or not.
    pub fn link(&self, id: LinkId) -> Option<LinkNo> {
        self.link_numbers.get(&id).copied()
    }

    /// What is known of a link.
    pub fn slot(&self, link: LinkNo) -> &LinkSlot {
        &self.links[link.index()]
    }

    /// All links that have a number.
    pub fn all_links(&self) -> impl Iterator<Item = (LinkNo, &LinkSlot)> {
        (0..).map(LinkNo).zip(&self.links)
    }

    pub(crate) fn out(&self, switch: SwitchNo) -> &[Arc] {
        &self.switches[switch.index()].out
    }

    pub(crate) fn into(&self, switch: SwitchNo) -> &[Arc] {
        &self.switches[switch.index()].into
    }

    /// Gives a switch its number.
    ///
    /// # Errors
    /// There are too many.
    pub fn put_switch(&mut self, id: DatapathId) -> Result<SwitchNo, Refusal> {
        if let Some(switch) = self.switch(id) {
            return Ok(switch);
        }
        let number = u32::try_from(self.switches.len()).unwrap_or(u32::MAX);
        if self.switches.len() >= SWITCHES_MAX {
            return Err(Refusal::TooManySwitches);
        }
        self.switches.push(SwitchSlot { id, out: Vec::new(), into: Vec::new() });
        self.switch_numbers.insert(id, SwitchNo(number));
        Ok(SwitchNo(number))
    }

    /// A link is known, or changed.
    pub(crate) fn put_link(&mut self, link: &Link) -> Result<Change, Refusal> {
        let (number, was_up) = match self.link(link.id) {
            Some(number) => (number, self.slot(number).is_up),
            None => (self.new_link(link.id)?, false),
        };
        let is_up = link.state == LinkState::Up;
        let slot = &mut self.links[number.index()];
        slot.is_up = is_up;
        slot.capacity_kbps = link.capacity_kbps;
        slot.latency_us = link.latency_us;
        if slot.annotations != link.annotations {
            slot.annotations.clone_from(&link.annotations);
        }
        Ok(Change { link: number, was_up, is_up })
    }

    /// A link is gone. It keeps its number.
    pub(crate) fn remove_link(&mut self, id: LinkId) -> Option<Change> {
        let link = self.link(id)?;
        let was_up = std::mem::replace(&mut self.links[link.index()].is_up, false);
        Some(Change { link, was_up, is_up: false })
    }

    fn new_link(&mut self, id: LinkId) -> Result<LinkNo, Refusal> {
        if self.links.len() >= LINKS_MAX {
            return Err(Refusal::TooManyLinks);
        }
        let (from, to) = (self.put_switch(id.from.switch)?, self.put_switch(id.to.switch)?);
        // At most LINKS_MAX.
        let link = LinkNo(self.links.len() as u32);
        let (capacity_kbps, latency_us, reserved_kbps, annotations) = Default::default();
        let is_up = false;
        let slot = LinkSlot { id, from, to, is_up, capacity_kbps, latency_us, reserved_kbps, annotations };
        self.links.push(slot);
        self.link_numbers.insert(id, link);
        let Topology { switches, links, .. } = self;
        let place = |arcs: &[Arc]| arcs.partition_point(|arc| links[arc.link.index()].id < id);
        let out = &mut switches[from.index()].out;
        out.insert(place(out), Arc { link, peer: to });
        let into = &mut switches[to.index()].into;
        into.insert(place(into), Arc { link, peer: from });
        Ok(link)
    }

    /// Reserves on a link. What is free is checked by the search before.
    pub fn reserve(&mut self, link: LinkNo, kbps: u64) {
        let slot = &mut self.links[link.index()];
        slot.reserved_kbps = slot.reserved_kbps.saturating_add(kbps);
    }

    /// Gives back what was reserved.
    pub fn release(&mut self, link: LinkNo, kbps: u64) {
        let slot = &mut self.links[link.index()];
        slot.reserved_kbps = slot.reserved_kbps.saturating_sub(kbps);
    }
}
