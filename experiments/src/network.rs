//! The emulated network of an experiment: switches that speak OpenFlow 1.3, all connected.
//!
//! In: a topology, the node's address, options. Out: the running network. It measures nothing.

use emulator::{Emulation, Handle, SwitchOptions, Versions};
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
    let options = SwitchOptions { versions: Versions::Only13, ..options };
    let topology = topology.parse().map_err(|error| format!("{error}"))?;
    let network =
        Emulation::start(&topology, controller, &options).map_err(|error| format!("no network: {error}"))?;
    network.wait_connected(PATIENCE).map_err(|error| error.to_string())?;
    Ok(network)
}
