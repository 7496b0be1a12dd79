//! Requests and responses as plain values.
//!
//! In: what a connection has read. Out: what it writes. These types read no socket and decide nothing.

pub mod problem;
pub mod request;
pub mod response;

pub use problem::Problem;
pub use request::{Method, Request};
pub use response::Response;
