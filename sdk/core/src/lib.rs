//! The part of the Rust SDK that every kind of zone shares: the trait [`App`], its commands and its C table.
//!
//! ```text
//!   event frames ──> instance ──> your App's handlers ──> Commands ──> command frames
//! ```
//!
//! App authors use `burnet-sdk`, which re-exports all of this and adds the loop of a process zone. This crate builds for wasm32: it never
//! touches shared memory, sockets, threads or processes.

mod app;
#[doc(hidden)]
pub mod calls;
mod commands;
pub mod instance;
mod labels;
mod part;
mod settings;
mod shared_view;
mod store_loader;
pub mod stream;
pub mod testing;
#[doc(hidden)]
pub mod view_follower;

pub use abi::command::{
    Ask, GroupMod, MeterMod, PacketOut, PortMod, QUEUE_CONFIG, QueryAnswer, ROLE, StatsRequest, What,
};
pub use abi::event::{
    Caller, Experimenter, FlowRemoved, PacketIn, PortFacts, PortRecord, PortStatus, Query, QueryOver,
    QueryReply, SoftLimit, StatsReply, SwitchError, SwitchUp, Topic, quota,
};
/// The statuses of answers that are common to all services.
pub mod query_status {
    pub use abi::event::{
        ANSWER_LOST, ANSWER_TOO_LONG, BAD_ANSWER, BAD_QUESTION, CALLER_GONE, CANCELLED, NO_ANSWER_IN_TIME,
        NO_SUCH_SERVICE, NOT_GRANTED, OVER_QUOTA, SERVICE_BUSY, SERVICE_GONE, STATUS_OF_KERNEL, TOO_MUCH,
    };
}
pub use abi::service::Form;
pub use abi::table::AppTable;
pub use abi::{NO_ROOM, OpenFlowVersion, Outcome, Receipt, ZoneId};
pub use app::{App, Interests, MOST_AHEAD};
pub use commands::{
    BUNDLE_MAX, BundleBuilder, Commands, FlowBuilder, Level, NO_BUNDLES, PacketOutBuilder, Ticket,
    WAKE_AFTER_MAX,
};
pub use flow::canonical::{ActionWriter, InstructionWriter, MatchWriter};
pub use flow::{self, DatapathId, Field, MacAddr, PortNo};
pub use instance::table;
pub use labels::{LABELS_EXPERIMENTER, Label, Labels};
pub use settings::Settings;
pub use shared_view::{NotShared, SharedView, Version};
pub use store_contract as store;
pub use store_loader::{Loaded, StoreLoader, failure as store_failure};
pub use view;
#[doc(hidden)]
pub use zone::export_app;
pub use zone::prefetch::prefetch;
