//! The Linux half: nftables counts what comes in, HTB shapes what goes out, and a loop ties both to the agent.
//!
//! ```text
//!  nftables sets ──netlink──> counters ──┐              ┌──> lines ──> tc -batch ──> HTB
//!  UDP socket ───────────────────────────┼──> Agent ────┼──> UDP socket
//!  label service, by TCP ────────────────┤              └──> label service
//!  timerfd ──────────────────────────────┘
//! ```
//!
//! In: a [`Config`](run::Config) and a socket. Out: a table of nftables and a queueing discipline on one interface, both with the mark of this
//! program. They are removed at its end and at its next start. It never touches what another program made.

mod agents;
mod classes;
mod counters;
mod device;
mod filters;
mod line;
mod program;
mod readings;
mod ruleset;
pub mod run;
mod tc;
mod timer;

pub use counters::{Counter, parse as parse_counters};
pub use device::{BadDevice, Device};
pub use program::Trouble;
