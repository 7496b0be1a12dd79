//! The network view: what the services know of the network, as typed tables with stamped changes.
//!
//! ```text
//!   services ──Change { stamp, key, object }──> [ Tables ] ──> immutable snapshots, changes by kind
//! ```
//!
//! In: changes, in any order and any number of times. Out: the same tables on every replica. It never reads a clock, sends
//! a message, or shows a link without both of its ports.

pub mod batch;
pub mod change;
pub mod id;
mod integrity;
pub mod intent;
pub mod kinds;
pub mod object;
pub mod rule;
mod snapshot;
mod tables;
mod tombstones;
mod tree;

pub use batch::{Batch, Notice, Refusal, Refused};
pub use change::{Change, Record, Stamp};
pub use id::{ConnectPoint, HostId, IntentId, LinkId, NotAKey};
pub use intent::{
    Constraints, Ends, INTENT_PRIORITY, Intent, IntentState, Path, PathId, Protection, Wanted, Weight,
};
pub use kinds::{Key, Kind, Object};
pub use object::{Annotations, Host, Link, LinkKind, LinkState, Port, Switch, SwitchState};
pub use rule::{EntryState, Group, GroupId, Meter, MeterId, Rule, RuleId};
pub use snapshot::Snapshot;
pub use tables::{OBJECTS_MAX, Tables};
pub use tombstones::TOMBSTONES_MAX;
