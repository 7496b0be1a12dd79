//! A port as the `abi` records it.

use abi::event::{PortFacts, PortRecord};
use openflow::message::{PORT_CONFIG_DOWN, Port};

/// The record of a port.
pub fn record(port: &Port) -> PortRecord {
    PortRecord::new(PortFacts {
        port_no: port.port_no,
        hw_addr: port.hw_addr,
        live: port.is_live(),
        administratively_up: port.config & PORT_CONFIG_DOWN == 0,
        curr_speed_kbps: speed_kbps(port),
        name: &port.name,
    })
}

/// 1.3 says it; of 1.0 the highest rate among the features in use (5.2.1, bits 0 to 6, alike in 1.3).
fn speed_kbps(port: &Port) -> u32 {
    const RATES_KBPS: [(u32, u32); 4] =
        [(1 << 6, 10_000_000), (0b11 << 4, 1_000_000), (0b11 << 2, 100_000), (0b11, 10_000)];
    if port.curr_speed_kbps != 0 {
        return port.curr_speed_kbps;
    }
    RATES_KBPS.iter().find(|(bits, _)| port.curr & bits != 0).map_or(0, |(_, rate)| *rate)
}
