//! Datagrams of agents that meter and shape.
#![no_main]

#[path = "../checks/edge.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::edge_datagram(bytes));
