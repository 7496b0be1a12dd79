//! Decides which zones receive an event, and whether the kernel accepts a command.
//!
//! ```text
//!   event of a switch ──> Kernel::on_event   ──> the zones that receive it, and effects
//!   command of a zone ──> Kernel::on_command ──> send it to the switch, pass it to a zone, or refuse it with the reason
//! ```
//!
//! Each worker thread has its own kernel for the switches that it serves. The kernels share almost nothing, so they
//! need no locks for packets and rules. This crate decides subscriptions, capabilities and their bounds, quotas, and
//! the owners of rules, groups and meters. The worker executes the decisions.
//!
//! This crate never does I/O and never reads a clock. It knows neither a wire protocol nor how a zone is built.

mod blinding;
pub mod bounds;
pub mod budget;
mod budgets;
mod buffers;
mod bundle;
pub mod calls;
pub mod capability;
mod charge;
mod claims;
mod contests;
pub mod datapath;
mod datapaths;
pub mod decision;
mod dispatch;
pub mod entries;
pub mod excess;
pub mod fanout;
pub mod grant;
mod group_effects;
mod group_or_meter;
mod indirect_effects;
mod later_punts;
pub mod metering;
mod overlap;
pub mod own_messages;
mod own_rules;
mod owned;
mod owned_check;
mod ownership;
mod packet_index;
mod passage;
pub mod precedence;
mod prepared;
pub mod punt;
pub mod quota;
mod receivers;
pub mod record;
mod regrant;
mod reported_rules;
mod rule_key;
pub mod rule_report;
mod rules;
pub mod services;
mod sessions;
mod shapes;
pub mod subscription;
pub mod topics;
mod upkeep;
mod visible;
mod wellformed;
mod wide;
mod wishes;
pub mod withdrawals;
pub mod zone_set;
pub mod zones;

pub use capability::{Capabilities, Capability};
pub use claims::{Claims, OwnerChange};
pub use datapath::OfSwitch;
pub use decision::{Decision, Effect, InWords, Refusal};
pub use dispatch::Kernel;
pub use excess::Excess;
pub use grant::{Bounds, Grant, Names, SwitchBounds, TableSet, VendorParts, Vendors};
pub use group_or_meter::GroupOrMeter;
pub use metering::Metering;
pub use overlap::COMPARED_MAX;
pub use own_messages::{Asked, Unanswered};
pub use precedence::{Eviction, OnOverlap};
pub use prepared::{COMMANDS_AHEAD, RulesAhead};
pub use punt::{PuntCounters, PuntLimits};
pub use quota::{NodeRates, Quota, QuotaKind, Quotas};
pub use record::{RULES_PER_SWITCH, Wanted};
pub use rule_report::RuleReport;
pub use rules::OWN_COOKIE;
pub use withdrawals::{LostParts, Removal, Withdrawal};
pub use zone_set::ZoneSet;
