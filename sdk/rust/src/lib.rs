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

mod app;
mod commands;
mod instance;
mod overtaken;
mod process;
mod settings;
pub mod testing;

pub use abi::command::{Ask, GroupMod, MeterMod, PacketOut, PortMod, StatsRequest, What};
pub use abi::event::{
    Audit, FlowRemoved, Observed, Packages, PacketIn, PortFacts, PortRecord, PortStatus, Query, QueryReply,
    SoftLimit, StatsReply, SwitchError, SwitchUp, Topic, quota,
};
pub use abi::store::{self, Asked as StoreAsked};
pub use abi::table::AppTable;
pub use abi::{Outcome, Receipt, ZoneId};
pub use app::{App, Interests, MOST_AHEAD};
pub use commands::{Commands, FlowBuilder, Level, PacketOutBuilder, Ticket};
pub use flow::canonical::{ActionWriter, InstructionWriter, MatchWriter};
pub use flow::{self, DatapathId, Field, MacAddr, PortNo};
pub use instance::table;
pub use process::{Asleep, GaveUp, run, run_guest, serve_guest};
pub use settings::Settings;
#[doc(hidden)]
pub use zone::export_app;
/// For the service of the node that judges what zones use.
#[doc(hidden)]
pub use zone::judge;

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
