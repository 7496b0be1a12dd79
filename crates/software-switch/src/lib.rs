//! An OpenFlow switch in memory.
//!
//! ```text
//!   message of a controller ───┐              ┌─> messages, each with the controller that it is for
//!   frame that came in         ├──> Switch ───┤
//!   the time, a link's state  ─┘              └─> frames, each with the port that it leaves by
//! ```
//!
//! It speaks OpenFlow 1.0 and 1.3, and agrees on a version with each of its controllers. It has flow tables, groups,
//! meters, bundles, packet buffers, time-outs, roles and statistics. Without a controller it keeps using its rules, or acts as
//! a learning switch: its owner chooses ([`FailMode`]).
//!
//! With a [`profile::Profile`], it answers when a switch of that kind would, has its tables, and loses what it would lose
//! ([`SwitchOptions::profiles`]). Without one, everything happens at once.
//!
//! It models no queues: a packet for a queue leaves by the queue's port. It has no local port. NORMAL is a bridge
//! that learns addresses and has no spanning-tree protocol.
//!
//! A [`RuleBook`] has the same rules without packets, for a proxy before a real switch.
//!
//! It never does I/O and never reads a clock. `now` is the time since a start that the owner chooses.

mod action_set;
mod address_table;
mod buffer;
mod bundle;
mod classifier;
mod flow_key;
mod fragment;
pub mod frame;
mod group;
mod instructions;
mod meter;
mod options;
mod packet;
mod path_cache;
mod pipeline_tables;
mod port;
mod profiled;
mod refusal;
mod reply_parts;
mod rule_book;
mod session;
mod supported;
mod switch;
mod table;
mod tables;
mod versions;

pub use options::{FailMode, Profiles, SwitchOptions};
pub use rule_book::{BookChange, BookedRule, RuleBook, rule_number};
pub use session::{ControllerId, Parting};
pub use switch::{Effects, Switch, SwitchCounters, SwitchView};
pub use versions::Versions;

use std::time::Duration;

/// Whole seconds, limited to what the wire format can hold.
pub(crate) fn whole_seconds(age: Duration) -> u32 {
    u32::try_from(age.as_secs()).unwrap_or(u32::MAX)
}
