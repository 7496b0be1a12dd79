//! Switches, links and hosts in user space: a network to test a controller with, without privileges.
//!
//! ```text
//!   controller ──bytes──> run ──messages──> Switch ──frames──> Network ──frames──> Host
//!       ^                  │                  │                  ^  │                │
//!       └──────bytes───────┴────messages──────┘                  │  └──> Switch      │ "this reply, this round trip"
//!                                                                └────frames─────────┘
//! ```
//!
//! A [`Switch`] (from the crate `software-switch`) speaks OpenFlow 1.0 and 1.3. A [`Host`] has addresses, answers and
//! sends pings, and sends and receives flows. A [`Network`] connects them as a [`Topology`] says. Its links delay,
//! queue and lose frames as their [`LinkQuality`] says.
//!
//! All three are pure: a message, a frame or the time goes in, and messages and frames come out. Time is a `Duration`
//! since the emulation began.
//!
//! Two types advance the clock. An [`Emulation`] runs in real time: one loop in one thread holds the TCP connections
//! of all switches. A [`Simulation`] jumps from event to event. It does no I/O, and its controller is a function or
//! none. With the same input it repeats to the byte.
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
//! A topology is given by the name of a shape, or read from a file. Files are GraphML of the Topology Zoo, JSON of
//! topohub, or Python for Mininet's `--custom`, which is executed.
//!
//! This crate opens TCP connections to the controller, without any privilege. The one exception is
//! [`Emulation::bind`], which opens packet sockets on the given interfaces and needs CAP_NET_RAW. The crate never
//! decides anything about the emulated network: the controller does.

mod digest;
pub mod host;
pub mod learning;
pub mod link;
pub mod network;
pub mod pcap;
pub mod profiles;
mod random;
pub mod run;
pub mod scenario;
pub mod simulation;
pub mod timing;
pub mod topology;
pub mod validity;

pub use host::flow::{
    FlowKind, FlowRate, FlowRefused, FlowReport, FlowSpec, FlowState, IpVersion, jain_index,
};
pub use host::query::{Arrivals, Outcome, QueriesRefused, QueriesReport, QueryRecord, QuerySpec};
pub use host::{Host, HostCounters, HostEffects, PingReply};
pub use learning::{RuleTimeouts, learning_controller, learning_controller_with};
pub use link::{LinkQuality, NotALinkQuality};
pub use network::{
    CannotChange, Change, Channel, FlowId, LinkCounters, Network, NetworkEffects, QueriesId, SEED_DEFAULT,
};
pub use random::Random;
pub use run::{
    Bridge, Clock, Emulation, EmulationCounters, Handle, NetworkEvent, NotConnected, Observer, PingOutcome,
    PingReport, TooLarge, check_this_machine,
};
pub use simulation::Simulation;
pub use software_switch::{
    ControllerId, Effects, FailMode, Parting, Profiles, Switch, SwitchCounters, SwitchOptions, Versions,
};
pub use topology::Topology;
