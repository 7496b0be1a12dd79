//! What slices lost and the kernel process deletes for them: one entry for each slice and switch.
//!
//! In: what the node found out about its slices, as JSON. Out: the same in the kernel's types. No operator writes it.

use abi::ZoneId;
use flow::{DatapathId, PortNo};
use kernel::LostParts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The file in the folder of the node's records with the numbers of the withdrawals that the kernel process has done.
pub const WITHDRAWN_FILE: &str = "withdrawn";

/// The numbers in that file. A damaged line is left out: that withdrawal is done again.
pub fn read_withdrawn(text: &str) -> BTreeSet<u64> {
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The text of that file.
pub fn write_withdrawn(done: &BTreeSet<u64>) -> String {
    done.iter().map(|id| format!("{id}\n")).collect()
}

/// What a slice lost at a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdrawal {
    /// Its number. No other withdrawal of this node has had it.
    pub id: u64,
    /// The zone of the slice.
    pub zone: u16,
    /// The switch.
    pub datapath: DatapathId,
    /// The ports that the slice had there.
    pub ports: Vec<PortNo>,
    /// What it lost. `None`: all.
    pub parts: Option<WithdrawnParts>,
}

/// The parts that a slice lost at a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithdrawnParts {
    /// Ports.
    pub ports: Vec<PortNo>,
    /// Addresses of hosts, those that the tenant sees and those between switches.
    pub addresses: Vec<Ipv4Addr>,
}

impl Withdrawal {
    /// The same in the kernel's types.
    pub fn to_kernel(&self) -> kernel::Withdrawal {
        let lost = match &self.parts {
            None => LostParts::All,
            Some(WithdrawnParts { ports, addresses }) => LostParts::Parts {
                ports: ports.iter().copied().collect(),
                addresses: addresses.iter().copied().collect(),
            },
        };
        kernel::Withdrawal {
            id: self.id,
            zone: ZoneId(self.zone),
            datapath: self.datapath,
            ports: self.ports.iter().copied().collect(),
            lost,
        }
    }
}
