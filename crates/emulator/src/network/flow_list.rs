//! The stored flows of a network, with their ends.
//!
//! It holds them. `flows` starts and stops them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::host::FlowKey;
use crate::host::flow::FlowSpec;

/// How many flows are stored, including ended ones. At the bound, the ended flow that began first is forgotten.
pub const FLOWS_MAX: usize = 4096;
/// The number of a flow. It is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow {}", self.0)
    }
}

/// A flow and its ends.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) spec: FlowSpec,
    pub(super) from: usize,
    pub(super) to: usize,
    /// The key as the sender sees it.
    pub(super) key: FlowKey,
    pub(super) began_at: Duration,
}

/// The flows of a network.
#[derive(Debug, Default)]
pub(super) struct FlowList {
    pub(super) flows: BTreeMap<FlowId, Flow>,
    pub(super) begun: u64,
}
