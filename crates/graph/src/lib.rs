//! Shortest, disjoint and constrained paths through a network that changes.
//!
//! ```text
//!   links that come, change and go ──> [ Topology ──> Trees: distances to each switch, repaired ] ──> paths by a flow hash
//!                                          └──> searches with constraints, disjoint paths
//! ```
//!
//! In: links of the view, reservations, questions. Out: paths as numbers of links. The same links give the same paths, in whatever
//! order they became known. A path of a known tree is found without an allocation. It reads no clock, and knows no intents.

mod bounded;
mod disjoint;
mod graph;
mod heap;
mod search;
mod topology;
mod trees;

pub use bounded::LABELS_MAX;
pub use disjoint::Disjoint;
pub use graph::{Found, Graph, METRICS_MAX, MetricNo};
pub use search::Search;
pub use topology::{Change, LINKS_MAX, LinkNo, LinkSlot, Refusal, SWITCHES_MAX, SwitchNo, Topology};
pub use trees::{COST_MAX, NONE};
