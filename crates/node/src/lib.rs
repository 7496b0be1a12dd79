//! The kernel process: what the monitor starts to hold the switches and to serve the zones.
//!
//! ```text
//!   monitor ──socket on standard input──> control ──inbox──> worker 0 … n ──> switches, zones
//!   operator ─────────Unix socket───────>    │   <──outbox──
//!   switches ──────────accept───────────────>│
//! ```
//!
//! A worker is a thread that owns its switch sessions, a kernel of its own and its end of each zone. The control thread accepts
//! connections, talks with the monitor and the operator, and touches no packet. Neither ever waits for the other.
//!
//! The code of trusted apps comes from the caller ([`LoadCode`]). The operator's questions and answers are those of the crate `operator`.

mod accepting;
mod call_tracker;
mod control;
pub mod descriptors;
mod dispatch;
mod fatal;
mod held;
mod loader;
mod log_lines;
pub mod logging;
mod messages;
mod monitor_queue;
mod operator_line;
mod operator_queries;
mod operators;
mod past_refusals;
mod pauses;
mod pending_messages;
mod pins;
mod refusals;
mod routes;
mod running_packages;
mod shortfalls;
mod socket;
mod storm;
mod switch_faults;
mod switch_requests;
mod unsent;
mod usage;
mod worker;
mod workers;
mod yield_policy;
mod zones;

pub use control::run;
pub use loader::LoadCode;
pub use worker::now_unix_ms;
