//! The Rust SDK for Burnet apps.
//!
//! ```text
//!   events ──> your App's handlers ──> Commands
//! ```
//!
//! An app is a type that implements [`App`]. The same source runs in a process zone ([`main!`]) and inside the kernel process as a
//! trusted app ([`table`]). It need not know in which zone it runs, or which OpenFlow version a switch has. Handlers are called one
//! at a time. Their commands are sent when they return. In a process zone, one instance serves all switches. If the app serves
//! switches independently ([`App::serves_switches_apart`]), or runs as a trusted app, each worker thread has its own instance. Each
//! instance then serves the switches of its worker.
//!
//! ```
//! use burnet_sdk::{App, Commands, Interests, PacketIn, PortNo, Settings};
//!
//! struct Hub;
//!
//! impl App for Hub {
//!     fn new(_: &Settings) -> Result<Self, String> {
//!         Ok(Hub)
//!     }
//!     fn interests(&self) -> Interests {
//!         Interests::none().packets()
//!     }
//!     fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
//!         out.packet_out(packet.datapath).packet(packet).output(PortNo::FLOOD).send();
//!     }
//! }
//! ```
//!
//! This crate never uses OpenFlow and never opens a socket. If an app may listen, the node opens the sockets ([`Listener`]).

mod app_loop;
mod listener;
mod monitor_line;
mod process;
mod regions;
mod sockets;
mod stale_packet_ins;

pub use burnet_sdk_core::{
    ActionWriter, App, AppTable, Ask, BUNDLE_MAX, BundleBuilder, Caller, Commands, DatapathId, Experimenter,
    Field, FlowBuilder, FlowRemoved, Form, GroupMod, InstructionWriter, Interests, LABELS_EXPERIMENTER,
    Label, Labels, Level, Loaded, MOST_AHEAD, MacAddr, MatchWriter, MeterMod, NO_BUNDLES, NO_ROOM, NotShared,
    OpenFlowVersion, Outcome, PacketIn, PacketOut, PacketOutBuilder, PortFacts, PortMod, PortNo, PortRecord,
    PortStatus, QUEUE_CONFIG, Query, QueryAnswer, QueryOver, QueryReply, ROLE, Receipt, Settings, SharedView,
    SoftLimit, StatsReply, StatsRequest, StoreLoader, SwitchError, SwitchUp, Ticket, Topic, Version,
    WAKE_AFTER_MAX, What, ZoneId, flow, prefetch, query_status, quota, store, store_failure, stream, table,
    testing, view,
};
#[doc(hidden)]
pub use burnet_sdk_core::{calls, export_app, view_follower};
/// Parses a message of the monitor: a type of the service's contract. For services of the node with a duty for the monitor.
///
/// # Errors
/// A sentence: the message is malformed.
#[doc(hidden)]
pub fn read_monitor<M: serde::de::DeserializeOwned>(message: &[u8]) -> Result<M, String> {
    let read = serde_json::from_slice(message);
    read.map_err(|error| format!("the monitor sent an unreadable message: {error}"))
}
pub use app_loop::{AppLoop, State, Waker};
pub use listener::Listener;
pub use process::{ProcessError, SleepHook, run, run_guest, serve_guest};
#[doc(hidden)]
pub use regions::{told as region_told, written as region_written};
pub use sockets::{Ready, SOCKETS_MAX, SocketApp, Sockets, Wait, run_with_sockets};

/// Makes an app a shared object (`crate-type = ["cdylib"]`), to run with `burnet run --app PATH.so=trusted`.
#[macro_export]
macro_rules! shared_object {
    ($app:ty) => {
        $crate::export_app!($crate::table::<$app>());
    };
}

/// The `main` function of an app in a process zone.
#[macro_export]
macro_rules! main {
    ($app:ty) => {
        fn main() -> std::process::ExitCode {
            $crate::run::<$app>()
        }
    };
}
