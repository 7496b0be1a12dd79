//! Measures an OpenFlow switch as a black box, and writes its profile.
//!
//! ```text
//!   the switch's messages ─┐                                          ┌─> messages to the switch
//!   frames that leave it ──┼──> Probe: handshake, phases, profile ──> ┼─> frames into the switch
//!   time ──────────────────┘         │          ▲                     └─> progress, and at the end a profile
//!                                    └─ Script ─┘ Record
//! ```
//!
//! A [`Probe`] is pure: events and their time go in, commands come out. A driver connects it with a switch: sockets and packet sockets
//! in real time ([`sockets`]), or a simulated switch in virtual time ([`virtual_time`]). Each [`phase::Phase`] asks for [`script::Script`]s and draws
//! conclusions from [`script::Record`]s. So an estimator is a function of times.
//!
//! Only `sockets` does I/O and reads a clock. Nothing draws a random number. A probe believes the data plane and not the switch's claims: where a rule is
//! follows from test frames.

mod compose;
mod deconvolve;
pub mod engine;
pub mod event;
pub mod findings;
pub mod flows;
pub mod handshake;
mod held;
pub mod journal;
pub mod modelled;
pub mod options;
pub mod phase;
pub mod phases;
pub mod predict;
pub mod recovery;
pub mod report;
pub mod rules;
pub mod run;
mod samples;
pub mod script;
pub mod sockets;
pub mod subject;
mod token_bucket;
pub mod virtual_time;

pub use engine::Probe;
pub use event::{Command, Event, Finished};
pub use options::{Options, Part, TestPort};
