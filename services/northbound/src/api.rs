//! The answers, without sockets: a request and the state go in, a response comes out.
//!
//! ```text
//!   Request, Role, State ──answer──> a response, a call of another service, or a stream
//! ```
//!
//! In: whole requests. Out: what to do. Each resource is one line of the table in `routes`, from which the description for code generators
//! is made too. It never waits.

mod annotations;
mod app_metrics;
mod apps;
#[cfg(test)]
mod call_tests;
mod context;
mod explain;
#[cfg(test)]
mod explain_tests;
mod exposition;
mod filters;
mod incidents;
mod index;
mod metrics;
mod network_files;
mod objects;
mod ofctl;
mod onos;
mod openapi;
#[cfg(test)]
mod operations_tests;
mod page;
mod parameters;
mod refusal;
pub mod routes;
mod ryu;
mod slice_metrics;
mod slice_vnics;
mod slices;
#[cfg(test)]
mod slices_tests;
mod streams;
mod switch_metrics;
#[cfg(test)]
mod tests;
mod topology;
mod writes;

pub use apps::answered;
pub use context::{Answer, Call, First, SwitchQuestion};
pub use incidents::evidence_shown;
pub use objects::AT_HAND;
#[cfg(test)]
use openapi::document;
pub use routes::{answer, methods};
