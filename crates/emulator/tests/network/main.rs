//! Tests of links, hosts and changes through the public interface of a network, without a clock.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod bench;
mod changes;
mod flows;
mod links;
mod profiles;
mod queries;
mod virtual_time;
