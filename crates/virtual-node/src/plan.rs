//! What a node in virtual time is made of.
//!
//! Plain values. They are checked by those who use them.

use crate::tenant::Controller;
use config::NodeLimits;
use edge::protocol::Key;
use edge::vnic::AgentId;
use flow::DatapathId;
use hose::Bandwidth;
use kernel::Grant;
use labels_contract::Hose;
use openflow::Version;
use slice::SliceSettings;
use southbound::SouthboundConfig;
use view::LinkId;

/// A slice with its tenant.
pub struct SlicePart {
    /// What the zone of the slice gets.
    pub settings: SliceSettings,
    /// What the kernel lets the zone do.
    pub grant: Grant,
    /// What the slice is promised. The numbers of its VNICs are those of [`crate::servers::Server`].
    pub hose: Hose,
    /// The version that its controller speaks.
    pub version: Version,
    /// What its controller decides.
    pub controller: Box<dyn Controller>,
}

/// A node.
pub struct NodePlan {
    /// The switches that connect, in the order of the network.
    pub switches: Vec<DatapathId>,
    /// The settings of their sessions.
    pub southbound: SouthboundConfig,
    /// The kernel's limits for switches and apps.
    pub limits: NodeLimits,
    /// The links, each direction by itself, with their rates.
    pub links: Vec<(LinkId, Bandwidth)>,
    /// What intents reserve of links.
    pub reserved: Vec<(LinkId, Bandwidth)>,
    /// The slices.
    pub slices: Vec<SlicePart>,
    /// The keys that the service of labels shares with agents.
    pub keys: Vec<(AgentId, Key)>,
    /// What decides all that is left to chance.
    pub seed: u64,
}
