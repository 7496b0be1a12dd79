//! The monitor's side channel: the socket between the monitor and its child processes, and the messages on it.
//!
//! ```text
//!   monitor ──ToKernel, ToZone + descriptors──▶ Channel ──▶ kernel process, zone
//!           ◀──FromKernel────────────────────── Channel ◀── kernel process
//!           ◀──bytes of a contract, each way──▶ Channel ◀─▶ service with a Duty
//! ```
//!
//! In: messages and file descriptors. Out: the same at the other end, one JSON object in one datagram or memory file. Both ends live here, so that an app links
//! this crate and not the supervisor. It never decides, starts or ends anything.

pub mod app;
pub mod channel;
pub mod child;
mod long;
pub mod owners;
pub mod protocol;
pub mod slices;
pub mod usage;

pub use app::{
    APP_NAME_BYTES_MAX, APPS_MAX, AppRole, AppSource, AppSpec, AppState, AppStatus, Duty, Ending,
    KernelStatus, NOT_ENFORCED_BYTES_MAX, NOT_ENFORCED_MAX, NOTE_BYTES_MAX, PlanError, REASON_BYTES_MAX,
    Regions, SETTINGS_BYTES_MAX, Verb, WAITS, ZoneKind, check_app_name, check_specs, legible, steers,
};
pub use slices::{SlicesChange, SlicesWanted};
pub use usage::{LINE_BYTES_MAX, LINES_PER_S_MAX, NodeUsage, SAMPLE_INTERVAL_MS, ZoneCounts, ZoneUsage};
