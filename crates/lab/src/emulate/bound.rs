//! `burnet emulate --bind`: one switch whose ports are interfaces of this machine.
//!
//! In: the interfaces and the switch's number as text. Out: the plan of the switch, or a message with the error. It
//! never touches an interface.

use std::str::FromStr;

use clap::Args;
use emulator::topology::{FromFile, SwitchPlan};
use emulator::{Bridge, Topology};
use flow::{DatapathId, PortNo};

use burnet::cli::CommandError;

/// The switch in the place of a topology.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct BoundArgs {
    /// One switch whose ports are interfaces of this machine, in the place of a topology: IF, or IF=PORT with the port's number
    /// (needs root)
    #[arg(long, value_name = "IF[=PORT]", value_delimiter = ',', conflicts_with_all = ["topo", "custom", "propagation", "scenario", "ping_all", "pcaps"])]
    pub bind: Vec<BoundInterface>,
    /// The datapath id of the switch of --bind
    #[arg(long, value_name = "DPID", default_value = "1", requires = "bind")]
    pub dpid: DatapathId,
}

impl BoundArgs {
    /// The text for the operator: the interfaces. `None` if there are none.
    pub(super) fn name(&self) -> Option<String> {
        let names: Vec<&str> = self.bind.iter().map(|bound| bound.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(","))
    }

    /// The switch, if one is requested.
    pub(super) fn bridge(&self) -> Result<Option<Bridge>, CommandError> {
        if self.bind.is_empty() {
            return Ok(None);
        }
        let mut ports: Vec<(PortNo, String)> = Vec::new();
        for (number, bound) in (1..).zip(&self.bind) {
            let port = bound.port.unwrap_or(PortNo(number));
            if let Some((_, other)) = ports.iter().find(|(taken, _)| *taken == port) {
                return Err(CommandError::Usage(format!(
                    "--bind gives the port {port} to {other} and to {}: give each another number",
                    bound.name
                )));
            }
            ports.push((port, bound.name.clone()));
        }
        let name = format!("s{}", self.dpid.0);
        Ok(Some(Bridge { datapath_id: self.dpid, name, ports }))
    }
}

/// A topology of this switch without emulated links or hosts.
pub(super) fn topology_of(bridge: &Bridge) -> FromFile {
    let plan = SwitchPlan {
        name: bridge.name.clone(),
        label: String::new(),
        datapath_id: bridge.datapath_id,
        place: None,
    };
    let topology = Topology { switches: vec![plan], hosts: Vec::new(), links: Vec::new() };
    FromFile { topology, notes: Vec::new() }
}

/// An interface of this machine that becomes a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundInterface {
    /// Its name.
    pub name: String,
    /// The port's number, if given. Otherwise it is its place in the list.
    pub port: Option<PortNo>,
}

/// `IF` or `IF=PORT`.
impl FromStr for BoundInterface {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, number) = text.rsplit_once('=').map_or((text, None), |(name, port)| (name, Some(port)));
        if name.is_empty() {
            return Err(format!("'{text}' names no interface: write IF or IF=PORT, for example s1-eth1=1"));
        }
        let is_port = |port: &u32| (1..=PortNo::MAX.0).contains(port);
        let port = match number.map(|number| number.parse().ok().filter(is_port)) {
            None => None,
            Some(Some(port)) => Some(PortNo(port)),
            Some(None) => return Err(format!("'{text}' has no port's number behind '=': write 1 or more")),
        };
        Ok(BoundInterface { name: name.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(texts: &[&str]) -> BoundArgs {
        let bind = texts.iter().map(|text| text.parse().unwrap()).collect();
        BoundArgs { bind, dpid: DatapathId(7) }
    }

    #[test]
    fn what_is_no_interface_is_refused() {
        for text in ["", "=1", "eth0=", "eth0=0", "eth0=x", "eth0=4294967295"] {
            assert!(text.parse::<BoundInterface>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_port_twice_is_refused() {
        assert!(bound(&["a=2", "b"]).bridge().is_err(), "b is the second");
    }

    #[test]
    fn ports_are_numbered_by_place_unless_it_is_said() {
        assert_eq!(bound(&[]).bridge().unwrap(), None);
        let bridge = bound(&["s1-eth1", "s1-eth2=9"]).bridge().unwrap().unwrap();
        let expected = [(PortNo(1), "s1-eth1".to_owned()), (PortNo(9), "s1-eth2".to_owned())];
        assert_eq!((bridge.name.as_str(), bridge.ports.as_slice()), ("s7", &expected[..]));
    }
}
