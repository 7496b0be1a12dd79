//! A proxy between a real Open vSwitch and its controller, which makes the switch behave as another model of switch.
//!
//! ```text
//!             taps: frames with their times
//!                │
//!   switch ──message──> ┌───────┐ ──message──> controller
//!                       │ Proxy │
//!   switch <──message── └───────┘ <──message── controller
//!                           │
//!                    profile::Model: when, where, which error
//! ```
//!
//! [`Proxy`] is pure: messages, frames and the time go in, bytes come out. A message that the model does not change passes as it is.
//! [`run::ProxyRun`] adds sockets, taps and the clock.
//!
//! It never decides about the network: the controller does. It never forwards a packet: the switch does. See `docs/concepts/proxy.md`.

mod commands;
mod held;
mod own;
mod proxy;
pub mod run;
mod settings;
mod shadow;
mod sightings;
mod wire;

pub use commands::{Commands, Counters, Event, Passage, Release, Rubbish, Side, Way};
pub use proxy::Proxy;
pub use settings::{Method, Settings, Shortfall};
