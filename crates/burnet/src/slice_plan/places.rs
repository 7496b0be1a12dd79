//! Whether the switches, ports and links of slices exist in the network.
//!
//! In: slices, a substrate. Out: nothing, or the first name that is unknown, with its line. It judges no bandwidth.

use super::substrate::{Behind, Substrate};
use burnet_sdk::view::ConnectPoint;
use config::slices::{Line, Slice, port_name, switch_name};
use flow::DatapathId;
use std::fmt;

/// The most ports that a message lists.
const LISTED_MAX: usize = 12;

/// A name that the network does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The line of the slices file.
    pub line: Line,
    /// What is unknown, and what there is.
    pub why: String,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.why)
    }
}

/// Checks all slices.
///
/// # Errors
/// The first unknown name.
pub fn check(substrate: &Substrate, slices: &[Slice]) -> Result<(), Unknown> {
    slices.iter().try_for_each(|slice| check_slice(substrate, slice))
}

/// Checks one slice.
///
/// # Errors
/// Its first unknown name.
pub fn check_slice(substrate: &Substrate, slice: &Slice) -> Result<(), Unknown> {
    let unknown = |line, why: String| Err(Unknown { line, why: format!("slice {}: {why}", slice.name) });
    for switch in slice.switches.iter().flatten() {
        if substrate.switch(switch.datapath).is_none() {
            return unknown(switch.line, no_switch(switch.datapath));
        }
    }
    for vnic in &slice.vnics {
        let why = match substrate.behind(vnic.at) {
            Some(Behind::Nic(_)) => continue,
            Some(Behind::Link) => {
                format!("port {} leads to another switch: write the port of a server", port_name(vnic.at))
            }
            None => no_port(substrate, vnic.at),
        };
        return unknown(vnic.line, format!("VNIC {}: {why}", vnic.name));
    }
    for link in slice.links.iter().flatten() {
        for end in [link.id.from, link.id.to] {
            let why = match substrate.behind(end) {
                Some(Behind::Link) => continue,
                Some(Behind::Nic(_)) => {
                    format!("port {} leads to a server: write the port of a link", port_name(end))
                }
                None => no_port(substrate, end),
            };
            return unknown(link.line, why);
        }
    }
    match slice.ports.iter().find(|port| substrate.behind(port.at).is_none()) {
        None => Ok(()),
        Some(port) => unknown(port.line, no_port(substrate, port.at)),
    }
}

fn no_switch(datapath: DatapathId) -> String {
    format!(
        "switch {} is not in the network: correct its name, or describe its links or NICs",
        switch_name(datapath)
    )
}

/// Says that the port is unknown, and lists the ports of its switch.
fn no_port(substrate: &Substrate, at: ConnectPoint) -> String {
    if substrate.switch(at.switch).is_none() {
        return no_switch(at.switch);
    }
    let ports = substrate.ports_of(at.switch);
    let more = if ports.len() > LISTED_MAX { ", …" } else { "" };
    let names: Vec<String> = ports.iter().take(LISTED_MAX).map(|port| port_name(*port)).collect();
    let (port, switch) = (port_name(at), switch_name(at.switch));
    format!("port {port} is not in the network: switch {switch} has {}{more}", names.join(", "))
}
