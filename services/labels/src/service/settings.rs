//! The settings of the service: `[network.labels]` of `burnet.toml`, as the node passes them on.
//!
//! In: JSON. Out: values, or the first key that is wrong. It reads no file: the node has read that with the keys.

use crate::agents::AGENTS_MAX;
use edge::protocol::Key;
use edge::vnic::AgentId;
use hose::{BANDWIDTH_MAX, Bandwidth};
use labels_contract::Hose;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabelsSettings {
    /// What slices are promised, by name. More can come and go while the service runs.
    pub slices: BTreeMap<String, Hose>,
    /// What a link carries at most, such as `10M`. None: what its ports say.
    pub link_rate: Option<String>,
    /// The node runs the service `paths`, whose intents reserve bandwidth.
    pub intents: bool,
    /// The node lays virtual links of slices: the service books flows on their hops.
    pub follows_links: bool,
    /// The number of the service among agents.
    pub number: u32,
    /// The keys of agents, by their numbers, in hexadecimal digits.
    pub agents: BTreeMap<u32, String>,
}

impl LabelsSettings {
    /// Whether slices can be promised this, and agents be known by these keys.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn check(&self) -> Result<(), String> {
        self.link_rate()?;
        self.keys()?;
        self.slices
            .iter()
            .try_for_each(|(name, hose)| hose.check().map_err(|why| format!("slices.{name}.{why}")))
    }

    pub(super) fn link_rate(&self) -> Result<Bandwidth, String> {
        let Some(text) = &self.link_rate else { return Ok(BANDWIDTH_MAX) };
        text.parse().map_err(|why| format!("link_rate: {why}"))
    }

    pub(super) fn keys(&self) -> Result<Vec<(AgentId, Key)>, String> {
        if self.agents.len() > AGENTS_MAX {
            return Err(format!("keys: {} agents are more than {AGENTS_MAX}", self.agents.len()));
        }
        if self.agents.contains_key(&self.number) {
            return Err(format!(
                "keys: {} is the number of the service itself: write another number",
                self.number
            ));
        }
        let key = |(agent, key): (&u32, &String)| {
            let key = key.parse().map_err(|why| format!("keys: agent {agent}: {why}"))?;
            Ok((AgentId(*agent), key))
        };
        self.agents.iter().map(key).collect()
    }
}
