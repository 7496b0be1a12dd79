//! The service `hosts`: which hosts are in the network, where, and with which addresses.

pub mod bounds;
mod claims;
mod edges;
pub mod engine;
pub mod frame;
mod incidents;
pub mod kept;
pub mod probe;
mod table;
