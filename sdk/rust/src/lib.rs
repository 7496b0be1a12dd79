//! What authors of Burnet apps install.
//!
//! ```text
//!   events ──> your App's handlers ──> Commands
//! ```
//!
//! An app is a type that implements [`App`]. The same source runs in a process of its own ([`main!`]) and inside the kernel as a
//! trusted app ([`table`]); it never knows in which, nor which version of OpenFlow a switch speaks. Handlers are called one at a
//! time, and what they command is sent when they return. In a process zone one instance hears all switches, unless the app says that it
//! serves them apart ([`App::serves_switches_apart`]); then, and as a trusted app, there is an instance for each worker thread, and each hears that
//! worker's switches.
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
//! This crate never talks OpenFlow and never opens a socket of its own.

mod app_loop;
mod monitor_line;
mod process;
mod stale_packet_ins;

pub use burnet_sdk_core::{
    ActionWriter, App, AppTable, Ask, Caller, Commands, DatapathId, Field, FlowBuilder, FlowRemoved, Form,
    GroupMod, InstructionWriter, Interests, Level, MOST_AHEAD, MacAddr, MatchWriter, MeterMod, Outcome,
    PacketIn, PacketOut, PacketOutBuilder, PortFacts, PortMod, PortNo, PortRecord, PortStatus, Query,
    QueryOver, QueryReply, Receipt, Settings, SoftLimit, StatsReply, StatsRequest, SwitchError, SwitchUp,
    Ticket, Topic, What, ZoneId, flow, query_status, quota, store, stream, table, testing,
};
#[doc(hidden)]
pub use burnet_sdk_core::{calls, export_app, judge};
/// For the services of the node that serve the monitor.
#[doc(hidden)]
pub use monitor_channel::{
    protocol::{FromService, ToService},
    record::Record as NodeRecord,
    verdict as node_verdict,
};
/// For the services of the node that serve the monitor: what it says, as its socket carries it.
///
/// # Errors
/// A sentence: it cannot be read, or is for no service.
#[doc(hidden)]
pub fn read_monitor(message: &[u8]) -> Result<ToService, String> {
    use monitor_channel::protocol::ToZone;
    match serde_json::from_slice(message) {
        Ok(ToZone::Told(told)) => Ok(told),
        Ok(ToZone::Welcome { .. }) => Err("the monitor welcomed it a second time".to_owned()),
        Err(error) => Err(format!("the monitor said what cannot be read: {error}")),
    }
}
pub use app_loop::{AppLoop, State, Waker};
pub use process::{ProcessError, SleepHook, run, run_guest, serve_guest};

/// Makes a shared object (`crate-type = ["cdylib"]`) of an app, to be run with `burnet run --app PATH.so=trusted`.
#[macro_export]
macro_rules! shared_object {
    ($app:ty) => {
        $crate::export_app!($crate::table::<$app>());
    };
}

/// The `main` of an app in a process of its own.
#[macro_export]
macro_rules! main {
    ($app:ty) => {
        fn main() -> std::process::ExitCode {
            $crate::run::<$app>()
        }
    };
}
