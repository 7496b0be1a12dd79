//! The words of agents: which flows their meters see.
//!
//! In: which VNICs agents have, and what agents say. Out: which flows live. It knows no rate and no path.
//!
//! An agent tells when a flow begins and when it ends, and nothing between. So a word holds until the next one, or until the agent is gone.

use hose::{Pair, SliceNo, VnicNo};
use labels_contract::Hose;
use std::collections::{BTreeMap, BTreeSet};

/// The most flows of one agent that live at the same time: what its meter can have. Words about further ones are ignored, so that they do not count.
pub const LIVE_MAX: usize = 65_536;

/// What an agent says. VNICs have their numbers among agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// All that it has said before is void.
    Reset,
    /// Its meter sees packets from the first VNIC to the second.
    Lives(u32, u32),
    /// Its meter sees none any more.
    Silent(u32, u32),
}

/// A VNIC that agents know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    slice: SliceNo,
    vnic: VnicNo,
    agent: Option<u32>,
}

/// What agents have said.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// By the number among agents.
    vnics: BTreeMap<u32, Known>,
    /// The agents that are there, with the flows that their meters see.
    agents: BTreeMap<u32, BTreeSet<Pair>>,
}

impl Words {
    /// A slice has these VNICs. A number that another slice has already is ignored.
    pub fn put(&mut self, slice: SliceNo, hose: &Hose, number_of: impl Fn(&str) -> Option<VnicNo>) {
        self.remove(slice);
        for (name, vnic) in &hose.vnics {
            if let (Some(number), Some(at)) = (vnic.number, number_of(name)) {
                self.vnics.entry(number).or_insert(Known { slice, vnic: at, agent: vnic.agent });
            }
        }
    }

    /// A slice is gone, or gets other VNICs.
    pub fn remove(&mut self, slice: SliceNo) {
        self.vnics.retain(|_, known| known.slice != slice);
    }

    /// A slice is gone with all its flows.
    pub fn forget(&mut self, slice: SliceNo) {
        self.remove(slice);
        self.agents.values_mut().for_each(|live| live.retain(|pair| pair.slice != slice));
    }

    /// An agent is there, or is gone. Returns the VNICs whose meter it is.
    pub fn set_agent(&mut self, agent: u32, is_there: bool) -> Vec<(SliceNo, VnicNo)> {
        match is_there {
            true => drop(self.agents.entry(agent).or_default()),
            false => drop(self.agents.remove(&agent)),
        }
        let of_agent = self.vnics.values().filter(|known| known.agent == Some(agent));
        of_agent.map(|known| (known.slice, known.vnic)).collect()
    }

    /// The VNICs of a slice that have a meter.
    pub fn metered(&self, slice: SliceNo) -> BTreeSet<VnicNo> {
        let is_metered = |known: &&Known| {
            known.slice == slice && known.agent.is_some_and(|agent| self.agents.contains_key(&agent))
        };
        self.vnics.values().filter(is_metered).map(|known| known.vnic).collect()
    }

    /// The flow that a word is about. None: the agent is not there or not that of the receiver, or the VNICs are not of one slice.
    pub fn pair(&self, agent: u32, from: u32, to: u32) -> Option<Pair> {
        let (source, destination) = (self.vnics.get(&from)?, self.vnics.get(&to)?);
        let is_right = self.agents.contains_key(&agent)
            && destination.agent == Some(agent)
            && source.slice == destination.slice
            && source.vnic != destination.vnic;
        let pair = Pair { slice: source.slice, source: source.vnic, destination: destination.vnic };
        is_right.then_some(pair)
    }

    /// A flow lives, or does not. Returns whether that is so now.
    pub fn set(&mut self, agent: u32, pair: Pair, lives: bool) -> bool {
        let Some(live) = self.agents.get_mut(&agent) else { return false };
        match lives {
            true if live.len() >= LIVE_MAX && !live.contains(&pair) => return false,
            true => drop(live.insert(pair)),
            false => drop(live.remove(&pair)),
        }
        lives
    }

    /// All flows of an agent are void. Returns them.
    pub fn reset(&mut self, agent: u32) -> Vec<Pair> {
        self.agents.get_mut(&agent).map(std::mem::take).into_iter().flatten().collect()
    }

    /// Whether the meter of a flow's receiver sees packets.
    pub fn lives(&self, pair: Pair) -> bool {
        self.agents.values().any(|live| live.contains(&pair))
    }
}
