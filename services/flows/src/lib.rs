//! The service `flows`: which rules, groups and meters are wanted in which switches, and whether they are there.
//!
//! ```text
//!   apps ──sets──> [ grant ] ──> [ engine: wanted against known, per switch ] ──commands with receipts──> switches
//!        <──states of sets, tables of entries──┘        ^──receipts, reports of tables──┘
//! ```
//!
//! In: sets of apps, sessions and reports of switches. Out: commands, states, tables. It never removes a rule from a switch whose rules it
//! has not read, and never reports a rule as installed that its switch has not confirmed.

mod bundling;
pub mod change;
mod counters;
pub mod engine;
mod json_set;
mod kept;
pub mod key;
mod listing;
mod looks;
pub mod numbers;
pub mod outgoing;
mod permitted;
#[cfg(test)]
mod plain_rule;
pub mod policy;
pub mod progress;
mod reading;
mod reading_line;
pub mod report;
mod service;
pub mod sets;
pub mod slot;
mod streams;
pub mod switch;
pub mod together;
mod waiting;
pub mod wanted;
pub mod window;

pub use service::{Flows, NEEDS, run};

/// The same, if the operator wants rules of other controllers removed.
pub fn needs_to_remove_foreign_rules() -> String {
    NEEDS.replacen("[capabilities]", "[capabilities]\n\"rule.delete.foreign\" = true", 1)
}
