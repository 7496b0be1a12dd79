//! The words of agents: which flows their meters see.
//!
//! In: which VNICs agents have, and what agents say. Out: which flows live. It knows no rate and no path.
//!
//! An agent tells when a flow begins and when it ends, and nothing between. So a word holds until the next one, or until the agent is gone.
//!
//! A new flow counts when its sender's agent has confirmed the shaper: this is the order of the paper's Fig. 3. If there is no such agent, or it says
//! nothing for [`HOLD_MS`], the flow counts all the same.

use edge::protocol::{Entry, What};
use hose::{Pair, SliceNo, VnicNo};
use labels_contract::Hose;
use std::collections::{BTreeMap, BTreeSet};

/// The most flows of one agent that live at the same time: what its meter can have. Words about further ones are ignored, so that they do not count.
pub const LIVE_MAX: usize = 65_536;

/// How long a new flow waits for its shaper. A receiver tells the sender at once, and again after 100 ms if that was lost.
pub const HOLD_MS: u64 = 200;

/// What an agent says. VNICs have their numbers among agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// All that it has said before is void.
    Reset,
    /// Its meter sees packets from the first VNIC to the second.
    Lives(u32, u32),
    /// Its meter sees none any more.
    Silent(u32, u32),
    /// Its shaper has a class for packets from the first VNIC, which is on its server, to the second.
    Shaped(u32, u32),
}

impl Word {
    /// What an entry of a report says. A flow without a shaper waits for none.
    pub fn of(entry: &Entry) -> Word {
        let (from, to) = (entry.flow.sender.0, entry.flow.receiver.0);
        match entry.what {
            What::Reset => Word::Reset,
            What::Began | What::Rate | What::Unshaped => Word::Lives(from, to),
            What::Ended => Word::Silent(from, to),
            What::Shaped => Word::Shaped(from, to),
        }
    }
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
    /// The numbers among agents.
    numbers: BTreeMap<(SliceNo, VnicNo), u32>,
    /// The agents that are there, with the flows that their meters see.
    agents: BTreeMap<u32, Saw>,
    /// Flows that live and wait for their shapers, and until when, in milliseconds.
    held: BTreeMap<Pair, u64>,
}

/// What one agent has said.
#[derive(Clone, Debug, Default)]
struct Saw {
    /// The flows that its meter sees.
    live: BTreeSet<Pair>,
    /// The flows for which its shaper has had a class.
    shaped: BTreeSet<Pair>,
}

impl Words {
    /// A slice has these VNICs. A number that another slice has already is ignored.
    pub fn put(&mut self, slice: SliceNo, hose: &Hose, number_of: impl Fn(&str) -> Option<VnicNo>) {
        self.remove(slice);
        for (name, vnic) in &hose.vnics {
            if let (Some(number), Some(at)) = (vnic.number, number_of(name)) {
                let known = Known { slice, vnic: at, agent: vnic.agent };
                if self.vnics.entry(number).or_insert(known).slice == slice {
                    self.numbers.insert((slice, at), number);
                }
            }
        }
    }

    /// A slice is gone, or gets other VNICs.
    pub fn remove(&mut self, slice: SliceNo) {
        self.vnics.retain(|_, known| known.slice != slice);
        self.numbers.retain(|(of, _), _| *of != slice);
    }

    /// A slice is gone with all its flows.
    pub fn forget(&mut self, slice: SliceNo) {
        self.remove(slice);
        for saw in self.agents.values_mut() {
            saw.live.retain(|pair| pair.slice != slice);
            saw.shaped.retain(|pair| pair.slice != slice);
        }
        self.held.retain(|pair, _| pair.slice != slice);
    }

    /// An agent is there, or is gone. Returns the VNICs whose meter it is.
    pub fn set_agent(&mut self, agent: u32, is_there: bool) -> Vec<(SliceNo, VnicNo)> {
        match is_there {
            true => drop(self.agents.entry(agent).or_default()),
            false => {
                let saw = self.agents.remove(&agent).unwrap_or_default();
                self.held.retain(|pair, _| !saw.live.contains(pair));
            }
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

    /// The agents that are there, for each slice that has VNICs of them.
    pub fn agents(&self) -> BTreeMap<SliceNo, BTreeSet<u32>> {
        let mut agents: BTreeMap<SliceNo, BTreeSet<u32>> = BTreeMap::new();
        for known in self.vnics.values() {
            if let Some(agent) = known.agent.filter(|agent| self.agents.contains_key(agent)) {
                agents.entry(known.slice).or_default().insert(agent);
            }
        }
        agents
    }

    /// The agents that are there.
    pub fn there(&self) -> impl Iterator<Item = u32> {
        self.agents.keys().copied()
    }

    /// Whether any agent is there.
    pub fn has_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    /// Whether each agent that has VNICs is there.
    pub fn are_all_there(&self) -> bool {
        self.vnics.values().filter_map(|known| known.agent).all(|agent| self.agents.contains_key(&agent))
    }

    /// The flow that a word is about. None: the agent is not there, it is not that of the VNIC for which it speaks, or the VNICs are not of one
    /// slice.
    pub fn pair(&self, agent: u32, from: u32, to: u32, is_of_sender: bool) -> Option<Pair> {
        let (source, destination) = (self.vnics.get(&from)?, self.vnics.get(&to)?);
        let speaks_for = if is_of_sender { source } else { destination };
        let is_right = self.agents.contains_key(&agent)
            && speaks_for.agent == Some(agent)
            && source.slice == destination.slice
            && source.vnic != destination.vnic;
        let pair = Pair { slice: source.slice, source: source.vnic, destination: destination.vnic };
        is_right.then_some(pair)
    }

    /// The agent of a flow's sender, and the numbers of sender and receiver among agents. None: agents do not know them.
    pub fn numbers(&self, pair: Pair) -> Option<(u32, u32, u32)> {
        let number = |vnic| self.numbers.get(&(pair.slice, vnic)).copied();
        let (from, to) = (number(pair.source)?, number(pair.destination)?);
        Some((self.agent_of(from)?, from, to))
    }

    /// The agent of a VNIC.
    pub fn agent_of(&self, vnic: u32) -> Option<u32> {
        self.vnics.get(&vnic)?.agent
    }

    /// The meter sees a flow, whose first VNIC has this number. Returns whether the flow counts now.
    pub fn set_live(&mut self, agent: u32, pair: Pair, from: u32, now_ms: u64) -> bool {
        let is_new = !self.lives(pair) && !self.held.contains_key(&pair);
        let shaper = self.agent_of(from).and_then(|agent| self.agents.get(&agent));
        let is_held = is_new && shaper.is_some_and(|saw| !saw.shaped.contains(&pair));
        let Some(Saw { live, .. }) = self.agents.get_mut(&agent) else { return false };
        if live.len() >= LIVE_MAX && !live.contains(&pair) {
            return false;
        }
        live.insert(pair);
        if is_held {
            self.held.insert(pair, now_ms.saturating_add(HOLD_MS));
        }
        !self.held.contains_key(&pair)
    }

    /// The meter sees a flow no more.
    pub fn set_silent(&mut self, agent: u32, pair: Pair) {
        self.held.remove(&pair);
        if let Some(saw) = self.agents.get_mut(&agent) {
            saw.live.remove(&pair);
        }
    }

    /// The shaper has a class for a flow. Returns whether the flow counts from now on.
    pub fn set_shaped(&mut self, agent: u32, pair: Pair) -> bool {
        let Some(Saw { shaped, .. }) = self.agents.get_mut(&agent) else { return false };
        if shaped.len() >= LIVE_MAX {
            // Flows wait once more for what was forgotten.
            shaped.clear();
        }
        shaped.insert(pair);
        self.held.remove(&pair).is_some()
    }

    /// The flows that have waited long enough for their shapers, and count from now on.
    pub fn unhold(&mut self, now_ms: u64) -> Vec<Pair> {
        let due: Vec<Pair> =
            self.held.iter().filter(|(_, until_ms)| **until_ms <= now_ms).map(|(pair, _)| *pair).collect();
        self.held.retain(|_, until_ms| *until_ms > now_ms);
        due
    }

    /// When [`Words::unhold`] has something next.
    pub fn next_ms(&self) -> Option<u64> {
        self.held.values().copied().min()
    }

    /// All that an agent has said is void. Returns the flows that its meter saw.
    pub fn reset(&mut self, agent: u32) -> Vec<Pair> {
        let saw = self.agents.get_mut(&agent).map(std::mem::take).unwrap_or_default();
        self.held.retain(|pair, _| !saw.live.contains(pair));
        saw.live.into_iter().collect()
    }

    /// Whether the meter of a flow's receiver sees packets, and the flow does not wait for its shaper.
    pub fn lives(&self, pair: Pair) -> bool {
        !self.held.contains_key(&pair) && self.agents.values().any(|saw| saw.live.contains(&pair))
    }
}
