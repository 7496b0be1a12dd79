//! The emulated network of an experiment: switches that speak OpenFlow 1.3, all connected.
//!
//! In: a topology, the node's address, options. Out: the running network. It measures nothing.

use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use std::net::SocketAddr;
use std::time::Duration;

/// How long the switches may take until they are connected.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a network with the usual options.
///
/// # Errors
///
/// It does not start, or the switches do not connect in time: a message.
pub fn start(topology: &str, controller: SocketAddr) -> Result<Handle, String> {
    start_with(topology, controller, SwitchOptions::default())
}

/// The same, with other options.
///
/// # Errors
///
/// As [`start`].
pub fn start_with(topology: &str, controller: SocketAddr, options: SwitchOptions) -> Result<Handle, String> {
    let topology = topology.parse().map_err(|error| format!("{error}"))?;
    let network = begin(&topology, controller, options)?;
    network.wait_connected(PATIENCE).map_err(|error| error.to_string())?;
    Ok(network)
}

/// Starts a network, and does not wait until its switches are connected.
///
/// # Errors
///
/// It does not start: a message.
pub fn begin(topology: &Topology, controller: SocketAddr, options: SwitchOptions) -> Result<Handle, String> {
    let options = SwitchOptions { versions: Versions::Only13, ..options };
    Emulation::start(topology, controller, &options).map_err(|error| format!("no network: {error}"))
}
