//! The way of a packet through the tables of switches.
//!
//! ```text
//!   rules, groups, ports of switches ─┐
//!   links                            ─┼─> trace ──> Way: for each switch, what matched, what changed, where the packet left, or why not
//!   a packet at a port               ─┘
//! ```
//!
//! In: what is in the switches, as data. Out: the way, or the switch whose tables are needed next. It asks no switch, reads no clock, and
//! sends no packet. It does not know who owns a rule: the caller finds that by the number of the rule.

mod action_set;
mod packet;
mod packet_text;
mod pipeline;
mod tables;
mod trace;
mod verdict;

pub use packet::{Effect, Packet};
pub use packet_text::read_packet;
pub use pipeline::{COPIES_MAX, Choice, Event, Fate, Output, Passage, pass};
pub use tables::{Bucket, GROUP_NONE, Group, GroupKind, Rule, Tables};
pub use trace::{Need, Network, STOPS_MAX, Stop, StopEnd, Way, trace};
pub use verdict::{Exit, Verdict, exits, verdict};
