//! The sessions with switches: OpenFlow bytes become events, and commands become OpenFlow bytes.
//!
//! ```text
//!              Listeners ──accept──> adopt
//!                                      │            ┌─> SouthboundEvent: frames of the abi, for the kernel
//!   switch ══TCP or TLS══> Connection ─┴─> Session ─┤
//!   switch <═════════════  (bytes)  <── (decides) ──┴── Command, cookie, tag: from the kernel
//!                                           │
//!                                        Roster: which switch is up, on which worker
//! ```
//!
//! Each worker thread has one [`Southbound`], which the worker's loop drives: `on_ready`, `resume`, `on_tick`,
//! `send`, `flush`. A session's decisions are pure ([`session::Session`]). [`Southbound`] alone acts on them.
//!
//! In: any bytes from switches, and commands. Out: events, receipts, statistics, and OpenFlow 1.0 or 1.3. A packet-in
//! or a flow mod costs no allocation, no lock and no system call of its own.
//!
//! This crate starts no thread and never reads the clock. It does not decide who receives an event or whether a
//! command is allowed. A session can cost another nothing but waiting time until its turn. Auxiliary connections
//! (1.3.5, 6.3.5) are refused, because one session keeps one order of messages.

mod binding;
mod bundles;
mod certificate;
mod config;
mod connection;
mod connections;
mod contested;
mod counters;
mod fault;
mod hello;
mod inbox;
mod line_limit;
mod listen;
mod occupancy;
mod origin;
mod outbox;
mod pace;
mod pacer;
mod probe;
mod reading_order;
mod receipts;
mod reply_watch;
mod report;
mod requests;
mod roles;
mod roster;
pub mod session;
mod snapshot;
mod southbound;
mod switch_pace;
pub mod tls;
mod translate;
mod transport;
mod turn;

pub use binding::{Binding, Bound, NotBound, PINS_MAX, PINS_OF_ONE_MAX};
pub use certificate::{Certificate, Fingerprint, NotAFingerprint};
pub use config::{Plain, RoleWanted, SouthboundConfig, Versions};
pub use counters::Counters;
pub use fault::{Fault, NotAdopted, Refused, SessionEnd};
pub use listen::{BindError, ListenSpec, Listeners, NotAListenSpec, OLD_PORT, PORT};
pub use occupancy::{ConnectionCaps, NoRoom};
pub use origin::Origin;
pub use pacer::{CommandRate, PriorityOrder, QueueFull, RuleChange};
pub use receipts::Tag;
pub use reply_watch::{Curve, Departure, PERCENT, ReplyDelay};
pub use roles::{ControllerRole, MAX_ROLE_REQUESTS};
pub use roster::{Claim, Roster, SwitchRecord, Taken};
pub use snapshot::SessionSnapshot;
pub use southbound::{Ready, Sink, Southbound};
pub use switch_pace::{PaceSnapshot, SwitchPace, SwitchPaces};
pub use turn::{Line, SessionOutput, SouthboundEvent, Turn};
