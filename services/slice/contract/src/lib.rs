//! What a slice tells the other parts of the node about itself: its name as an app, a summary of its state, and its network.
//!
//! ```text
//!   zone slice.blue ──Summary, on the topic slice.state────> service northbound ──> REST, metrics
//!                   ──Network, on the topic slice.network──>
//! ```
//!
//! In: a summary or a network, or bytes. Out: the other form. It sends nothing. The details of a slice are on its socket file, for operators only.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The topic on which each slice publishes its [`Summary`]. The last one is retained.
pub const STATE_TOPIC: &str = "slice.state";

/// The topic on which each slice publishes its [`Network`]. The last one is retained.
pub const NETWORK_TOPIC: &str = "slice.network";

/// The longest network in bytes. A slice leaves out ports, then other parts, until its network is that short.
pub const NETWORK_BYTES_MAX: usize = 48 << 10;

/// The beginning of the name of each slice's app.
pub const APP_PREFIX: &str = "slice.";

/// The longest summary in bytes. A longer one is not read.
pub const SUMMARY_BYTES_MAX: usize = 48 << 10;

/// The most VNICs in a summary, in the order of their names. Of further ones, `burnet slice show` says how they are shaped, and REST does not.
pub const VNICS_MAX: usize = 256;

/// The longest phrase about a VNIC in bytes. A longer one is cut.
pub const SHAPED_BYTES_MAX: usize = 96;

/// The name of a slice's app.
pub fn app_name(slice: &str) -> String {
    format!("{APP_PREFIX}{slice}")
}

/// The slice of an app, if it is one.
pub fn slice_of(app: &str) -> Option<&str> {
    app.strip_prefix(APP_PREFIX)
}

/// The state of a slice in numbers. Those that end in `_total` count since its process started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Its name.
    pub slice: String,
    /// Its virtual switches.
    pub switches: u64,
    /// Those of which the physical switch is connected.
    pub switches_up: u64,
    /// Its connections, if all were up: one for each switch and controller.
    pub connections: u64,
    /// Those that stand, with a version that both sides speak.
    pub connections_up: u64,
    /// The tenant's rules.
    pub rules: u64,
    /// How many rules they are in the physical switches while all ports are open.
    pub pieces: u64,
    /// Flow mods that were carried out.
    pub flow_mods_total: u64,
    /// Messages that got an error.
    pub refused_total: u64,
    /// Packet-ins of which a controller heard.
    pub packet_ins_total: u64,
    /// Packet-ins above the limit.
    pub packet_ins_dropped_total: u64,
    /// Packet-ins that a controller did not get, because it had not read its earlier messages.
    pub packet_ins_unread_total: u64,
    /// Packet-outs that were sent.
    pub packet_outs_total: u64,
    /// Its links that are up on ways which do not carry what the VNICs of all slices may send.
    pub links_unfit: u64,
    /// What holds VNICs to their rates, as `shaped by agent 2`, by their names. At most [`VNICS_MAX`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shaped: BTreeMap<String, String>,
}

impl Summary {
    /// The payload of the topic.
    pub fn to_bytes(&self) -> Vec<u8> {
        contract::to_json(self)
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// A sentence: the slice has made a mistake.
    pub fn from_bytes(payload: &[u8]) -> Result<Summary, String> {
        contract::from_json(payload, SUMMARY_BYTES_MAX)
    }
}

/// The network that the tenant of a slice sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The slice.
    pub slice: String,
    /// Its switches.
    pub switches: Vec<NetworkSwitch>,
    /// Its links.
    pub links: Vec<NetworkLink>,
    /// The port of each VNIC, as `of:0000000000000003/1`.
    pub vnics: BTreeMap<String, String>,
    /// Whether parts are left out, because all of them would be too long.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut: bool,
}

/// A switch of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSwitch {
    /// The physical switch, as `of:0000000000000003`.
    pub id: String,
    /// The datapath id that the tenant sees, likewise.
    pub shown_as: String,
    /// Whether the physical switch is connected.
    pub up: bool,
    /// The ports of the slice.
    pub ports: Vec<NetworkPort>,
}

/// A port of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPort {
    /// The number in the physical switch.
    pub port: u32,
    /// The number that the tenant sees.
    pub shown_as: u32,
}

/// A link of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkLink {
    /// One direction, by physical ports: `of:0000000000000003/1-of:0000000000000001/1`.
    pub id: String,
    /// Whether the tenant is told that it is up.
    pub up: bool,
    /// What its way lacks, if it does not carry what the VNICs of all slices may send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub does_not_fit: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Network {
    /// The payload of the topic: at most [`NETWORK_BYTES_MAX`]. Ports are left out first, then VNICs, links and switches.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = contract::to_json(self);
        let mut shorter = self.clone();
        while bytes.len() > NETWORK_BYTES_MAX {
            shorter.cut = true;
            shorter.leave_out();
            bytes = contract::to_json(&shorter);
        }
        bytes
    }

    fn leave_out(&mut self) {
        if self.switches.iter().any(|switch| !switch.ports.is_empty()) {
            self.switches.iter_mut().for_each(|switch| switch.ports.clear());
        } else if !self.vnics.is_empty() {
            self.vnics.clear();
        } else if !self.links.is_empty() {
            self.links.truncate(self.links.len() / 2);
        } else {
            self.switches.truncate(self.switches.len() / 2);
        }
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// A sentence: the slice has made a mistake.
    pub fn from_bytes(payload: &[u8]) -> Result<Network, String> {
        contract::from_json(payload, NETWORK_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_the_same_behind_its_bytes_and_anything_else_is_refused() {
        let most = u64::MAX;
        let summary = Summary {
            slice: "x".repeat(26),
            switches: most,
            switches_up: most,
            connections: most,
            connections_up: most,
            rules: most,
            pieces: most,
            flow_mods_total: most,
            refused_total: most,
            packet_ins_total: most,
            packet_ins_dropped_total: most,
            packet_ins_unread_total: most,
            packet_outs_total: most,
            links_unfit: most,
            shaped: (0..VNICS_MAX)
                .map(|number| (format!("{number:026}"), "x".repeat(SHAPED_BYTES_MAX)))
                .collect(),
        };
        assert_eq!(Summary::from_bytes(&summary.to_bytes()), Ok(summary));
        for wrong in ["", "{}", "[]", r#"{"slice":7}"#] {
            assert!(Summary::from_bytes(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Summary::from_bytes(&vec![b' '; SUMMARY_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn a_network_is_the_same_behind_its_bytes_and_one_that_is_too_long_loses_ports_first() {
        let switch = |number: usize| NetworkSwitch {
            id: format!("of:{number:016x}"),
            shown_as: format!("of:{number:016x}"),
            up: true,
            ports: (1..=48).map(|port| NetworkPort { port, shown_as: port }).collect(),
        };
        let link = |number: usize| NetworkLink {
            id: format!("of:{number:016x}/1-of:{number:016x}/2"),
            up: false,
            does_not_fit: (number == 0).then(|| "hop of:1/1-of:2/1 lacks 1.0M".to_owned()),
        };
        let network = |switches: usize, links: usize| Network {
            slice: "blue".to_owned(),
            switches: (0..switches).map(switch).collect(),
            links: (0..links).map(link).collect(),
            vnics: [("E".to_owned(), "of:0000000000000003/1".to_owned())].into(),
            cut: false,
        };
        let read = |network: &Network| Network::from_bytes(&network.to_bytes()).unwrap();
        assert_eq!(read(&network(3, 3)), network(3, 3));
        let long = read(&network(100, 200));
        assert_eq!((long.cut, long.switches.len(), long.links.len(), long.vnics.len()), (true, 100, 200, 1));
        assert!(long.switches.iter().all(|switch| switch.ports.is_empty()));
        let longest = read(&network(200, 2_000));
        assert!(longest.cut && longest.switches.len() == 200 && longest.links.len() < 2_000);
        for wrong in ["", "{}", "[]", r#"{"slice":7}"#] {
            assert!(Network::from_bytes(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_app_of_a_slice_has_its_name_behind_a_prefix() {
        let check = |app: &str, slice: Option<&str>| assert_eq!(slice_of(app), slice, "{app}");
        check("blue", None);
        check(&app_name("blue"), Some("blue"));
        check("slice.a.b", Some("a.b"));
    }
}
