//! The monitor's side channel: the socket between the monitor and its child processes, and what is said over it.
//!
//! ```text
//!   monitor ──ToKernel, ToZone + descriptors──▶ Channel ──▶ kernel process, zone
//!           ◀──FromKernel────────────────────── Channel ◀── kernel process
//! ```
//!
//! In: messages and file descriptors. Out: the same at the other end, one JSON object in one datagram. Both ends live here, so that an app links
//! this crate and not the supervisor. It never decides, starts or ends anything.

pub mod app;
pub mod channel;
pub mod child;
pub mod owners;
pub mod protocol;
pub mod record;
pub mod usage;
pub mod verdict;
