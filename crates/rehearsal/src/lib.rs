//! Slices in virtual time: tenants with controllers, the label service, and agents on servers, on a network of fluid traffic.
//!
//! ```text
//!   Tenant (multipath) ──rules──> Service (hose) ──notices──> Tenant
//!        │ paths                     ↑ meters' reports │ caps
//!        └─────────> Fluid: links and servers with Agents (edge) <┘
//! ```
//!
//! In: a fabric, tenants, flows, and how long to run. Out: paths, rates, labels, notices and moves. All decisions are those of the crates that a node and
//! a server run; only the traffic and the delays are a model. It has no clock, does no I/O, and draws no random numbers: the same calls
//! give the same result on any machine.
//!
//! It does not model packets, TCP or OpenFlow messages. The crate `virtual-node` rehearses with those.

mod cloud;
mod fabric;
mod fluid;
mod rig;
mod service;
mod tenant;

pub use cloud::{Cloud, Got, Meter, Move, Sends};
pub use fabric::{Fabric, Link, ServerNo};
pub use fluid::{Demand, Fluid, NoFluid};
pub use hose::{LinkNo, Notice, Pair, SliceNo, Step, VnicNo};
pub use multipath::{Choose, STAY_MS};
pub use rig::Rig;
pub use service::{Service, Telling, fair_rates};
pub use tenant::{Plan, Tenant, Vnic, number_of};
