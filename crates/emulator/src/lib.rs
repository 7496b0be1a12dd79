//! Switches, links and hosts in user space: a network to try a controller on, without privileges.
//!
//! ```text
//!   controller ──bytes──> run ──messages──> Switch ──frames──> Network ──frames──> Host
//!       ^                  │                  │                  ^  │                │
//!       └──────bytes───────┴────messages──────┘                  │  └──> Switch      │ "this reply, this round trip"
//!                                                                └────frames─────────┘
//! ```
//!
//! A [`Switch`] (the crate `software-switch`) speaks OpenFlow 1.0 and 1.3; a [`Host`] has addresses, answers and sends pings, and sends and receives flows; a
//! [`Network`] has them wired as a [`Topology`] says, by links that delay, queue and lose as their [`LinkQuality`] says. All
//! three are pure: a message, a frame or the time goes in, what is to be sent comes out, and time is a `Duration` since the
//! emulation began. Two things turn the clock: an [`Emulation`] holds the TCP connections of all switches of a network in one loop
//! on one thread, in real time; a [`Simulation`] jumps from event to event, with a controller that is a function or none, does
//! no I/O, and repeats to the byte.
//!
//! ```no_run
//! use emulator::{Emulation, SwitchOptions};
//! use std::time::Duration;
//!
//! let network = Emulation::start(&"tree,2".parse()?, "127.0.0.1:6653".parse()?, &SwitchOptions::default())?;
//! network.wait_connected(Duration::from_secs(10))?;
//! println!("{}", network.ping_all(Duration::from_secs(5)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A topology is named by a shape, or read from a file: the Topology Zoo's, topohub's, or Mininet's `--custom` in Python, which is run.
//!
//! Of the machine's own network this crate touches TCP to the controller and no more, and needs no privilege for it. The one exception is
//! [`Emulation::bind`], which is told of interfaces and opens packet sockets on them: that takes CAP_NET_RAW. It never decides anything
//! about the network that it emulates: that is the controller's part.

mod digest;
pub mod host;
pub mod link;
pub mod network;
pub mod pcap;
mod random;
pub mod run;
pub mod scenario;
pub mod simulation;
pub mod topology;

pub use host::flow::{
    FlowKind, FlowRate, FlowRefused, FlowReport, FlowSpec, FlowState, IpVersion, jain_index,
};
pub use host::{Host, HostCounters, HostEffects, PingReply};
pub use link::{LinkQuality, NotALinkQuality};
pub use network::{CannotChange, Change, Channel, FlowId, LinkCounters, Network, NetworkEffects};
pub use run::{
    Bridge, Clock, Emulation, EmulationCounters, Event, Handle, NotConnected, Observer, PingOutcome,
    PingReport, TooLarge, check_this_machine,
};
pub use simulation::Simulation;
pub use software_switch::{
    ControllerId, Effects, FailMode, Parting, Switch, SwitchCounters, SwitchOptions, Versions,
};
pub use topology::Topology;
