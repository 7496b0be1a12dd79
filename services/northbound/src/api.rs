//! The answers, without sockets: a request and the state go in, a response comes out.
//!
//! ```text
//!   Request, Role, State ──answer──> a response, a call of another service, or a stream
//! ```
//!
//! In: whole requests. Out: what to do. Each resource is one line of the table in `routes`, from which the description for code generators
//! is made too. It never waits.

mod apps;
#[cfg(test)]
mod call_tests;
mod context;
mod explain;
#[cfg(test)]
mod explain_tests;
mod filters;
mod index;
mod metrics;
mod network_files;
mod objects;
mod onos;
mod openapi;
mod page;
mod refusal;
pub mod routes;
mod ryu;
mod streams;
#[cfg(test)]
mod tests;
mod topology;
mod writes;

pub use context::{Answer, Call};
pub use objects::AT_HAND;
#[cfg(test)]
use openapi::document;
pub use routes::answer;
