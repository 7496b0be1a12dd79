//! The parent of kernel and zones: starts, watches, restarts.
//!
//! ```text
//!                 Plan (apps, programs, limits)         SIGTERM, Ctrl-C
//!                        │                                   │
//!                        ▼                                   ▼
//!   kernel process ◀─────────────── run::Monitor ──────────────────▶ one process per app
//!    ToKernel, FromKernel       │  ▲                                  ToZone; its output comes back as log lines
//!              SupervisorEvent  ▼  │ Reaction
//!                           supervisor (pure)
//! ```
//!
//! The monitor is outside of all processes that it watches (Rosemary, section 3.2, item 5). It has one thread that
//! decides and acts. This thread reads no network input, and nothing of an app but its output. It never waits, so it
//! outlives all other processes. Three other threads may block on the disk: `record_writer` writes records, `finder`
//! looks up apps, and `package_verifier` checks packages. A trusted app that takes the kernel down is started again in
//! a process zone.
//!
//! The socket to its children and the messages on it are in `monitor_channel`.
//!
//! It never decides about a packet, a rule or a switch, and holds no state of the network.

mod app_command;
mod app_life;
mod app_phase;
mod app_report;
mod audit;
mod backoff;
mod children;
mod clock;
mod difference;
mod enforcement;
mod event;
mod evidence;
mod finder;
pub mod incident;
mod incident_list;
mod kernel_life;
mod kernel_messages;
mod kernel_process;
mod listeners;
mod output;
pub mod owners;
mod package_verifier;
mod plan;
mod process_end;
mod recent_facts;
mod record_writer;
mod recording;
pub mod records;
mod regions;
mod resources;
mod retry;
mod run;
mod run_error;
mod safe_mode;
mod sampling;
mod sampling_turns;
mod signals;
pub mod supervisor;
mod timing;
mod verification;
mod zone_channel;
mod zone_process;
mod zones;

pub use backoff::RestartPolicy;
pub use finder::{Find, FoundApp, Note, Reload, Reloaded};
pub use monitor_channel::app::{
    APP_NAME_BYTES_MAX, APPS_MAX, AppRole, AppSource, AppSpec, AppState, AppStatus, Duty, Ending,
    KernelStatus, NOT_ENFORCED_BYTES_MAX, NOT_ENFORCED_MAX, NOTE_BYTES_MAX, PAUSED, PlanError,
    REASON_BYTES_MAX, Regions, SETTINGS_BYTES_MAX, Verb, WAITS, ZoneKind, check_app_name, check_specs,
    legible, steers,
};
pub use monitor_channel::{SlicesChange, SlicesWanted, app, channel, child, protocol};
pub use output::{LINE_BYTES_MAX, LINES_PER_S_MAX, ZONE_REMARK};
pub use package_verifier::PackageChecks;
pub use plan::{Plan, Programs, ZoneProgram, ZoneSetup, check_reload};
pub use resources::{NodeUsage, SAMPLE_INTERVAL_MS, ZoneCounts, ZoneUsage};
pub use run::{Monitor, NodeEnd, run};
pub use run_error::RunError;
pub use safe_mode::{Intensity, SafeModePlan};
pub use signals::{node_signals, shutdown_signals};
pub use timing::Timing;
pub use verification::{AppCheck, LOOK_INTERVAL_MS, PackageVerdict, QUESTION_BYTES_MAX, Validity};
