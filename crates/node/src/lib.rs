//! The kernel process: the monitor starts it, and it holds the switches and serves the zones.
//!
//! ```text
//!   monitor ──socket on standard input──> control ──inbox──> worker 0 … n ──> switches, zones
//!   operator ─────────Unix socket───────>    │   <──outbox──
//!   switches ──────────accept───────────────>│
//! ```
//!
//! A worker is a thread with its own switch sessions, its own kernel and its end of each zone. The control thread
//! accepts connections, and communicates with the monitor and the operator. It handles no packet. Neither ever waits
//! for the other.
//!
//! The code of trusted apps comes from the caller ([`LoadCode`]). The crate `operator` defines the operator's requests
//! and answers.

mod accepting;
mod call_tracker;
mod control;
mod departures;
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
pub mod switch_requests;
mod switch_view;
mod unread_answers;
mod unsent;
mod usage;
mod worker;
mod workers;
mod yield_policy;
mod zones;

pub use control::run;
pub use loader::LoadCode;
pub use worker::now_unix_ms;
