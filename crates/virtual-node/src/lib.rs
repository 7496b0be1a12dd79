//! A node with slices, their tenants' controllers and the agents on servers, in virtual time on an emulated network.
//!
//! ```text
//!   emulator::Simulation ══ OpenFlow ══ Conduct: Node (sessions, kernel, slices, labels) ══ OpenFlow ══ tenants' controllers
//!     │ bytes that hosts received                     ↑ reports │ caps
//!     └──────────────────────────────> agents on servers (edge) ──> how fast hosts send
//! ```
//!
//! In: a network, slices with their grants, tenants, flows. Out: rates, paths, labels, errors, packet-ins. The parts are those of a real node, a
//! real server and a real tenant. They have no process, no socket and no clock here, and all that follows from an event happens at its moment.
//! The same input and seed give the same result to the byte.

mod circles;
mod learning;
mod line;
mod multipath;
mod node;
mod own_work;
mod plan;
mod probe;
mod seen;
pub mod servers;
mod service;
mod slice_zone;
mod stage;
mod tenant;

pub use learning::Learning;
pub use multipath::{Multipath, Surroundings};
pub use node::Node;
pub use plan::{NodePlan, SlicePart};
pub use probe::Place;
pub use seen::Rules;
pub use service::SERVICE;
pub use stage::{FRAMES_MAX, Stage, StagePlan};
pub use tenant::{Controller, HeardLabel, Observer, Outgoing, TenantError};
