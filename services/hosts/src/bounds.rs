//! The bounds of the service, its times, and what the operator may set of them.
//!
//! In: settings. Out: checked values. It decides nothing.

use serde::{Deserialize, Serialize};
use view::ConnectPoint;

/// The most hosts. One more is not learned, and is an incident.
pub const HOSTS_MAX: usize = 200_000;

/// The most hosts at one port, if the operator says nothing: a large wireless network behind one port. One more is not learned, and is an
/// incident. So an attacker who invents addresses fills only the share of its own port.
pub const HOSTS_PER_PORT_DEFAULT: usize = 1_024;

/// The most claims of a place or of an address that are examined at one time. Further ones are counted and ignored: a host that has
/// really moved speaks again.
pub const CLAIMS_MAX: usize = 4_096;

/// The most of these claims from one port, so that one port cannot take all of them.
pub const CLAIMS_PER_PORT_MAX: usize = 64;

/// How many addresses of a host are asked at once when it claims another place. Hosts have few, and one answer is enough.
pub const ADDRESSES_PROBED: usize = 4;

/// How often a host is asked before it expires.
pub const PROBES_BEFORE_EXPIRY: u8 = 3;

/// The most probes before expiry in one second. Further ones wait, and their hosts stay until then. With 300 seconds until expiry it is enough
/// for 200,000 silent hosts.
pub const PROBES_PER_S_MAX: u32 = 2_000;

/// The most hosts that are kept in the store: configured ones, and those with notes. A further change is refused.
pub const KEPT_MAX: usize = 10_000;

/// How many incidents are remembered. The oldest is forgotten first; each was also logged and published.
pub const INCIDENTS_MAX: usize = 256;

/// The time in which incidents of one kind at one port are reported once. The next report says how many there were.
pub const INCIDENT_INTERVAL_MS: u64 = 10_000;

/// The most pairs of kind and port whose last report is remembered. Beyond it, incidents are counted and not reported until the interval
/// of another pair is over.
pub const INCIDENT_PORTS_MAX: usize = 4_096;

/// How long after a port came up a link can be expected to be found there. Until then, a host that seems to be at two ports is no incident:
/// one of the ports may be the end of a link.
pub const PORT_SETTLES_MS: u64 = 5_000;

/// How long links, ports and switches are remembered that are missing after the service `discovery` has started again: twice as long as it
/// takes to find links.
pub const VANISHED_GRACE_MS: u64 = 30_000;

/// What the operator may set, under `[network.hosts]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostsSettings {
    /// A host that has been silent for so many seconds, and does not answer probes, is removed. 0: hosts stay until their port fails.
    pub expiry_s: u64,
    /// How long the old place of a host may answer after the host was seen elsewhere, in milliseconds.
    pub move_wait_ms: u64,
    /// The most hosts at one port.
    pub hosts_per_port: usize,
    /// Where DHCP servers may answer. Empty: everywhere.
    pub dhcp_servers: Vec<ConnectPoint>,
    /// Whether the switches send ARP, neighbour discovery and DHCP to the controller by rules of this service. Without these rules, only frames
    /// that no other rule matches tell of hosts. With them, other apps do not receive these frames, unless they hold
    /// `rule.write.others`: the kernel gives a packet-in to the owner of its rule. So it is off unless the operator wants it.
    pub punt: bool,
}

impl Default for HostsSettings {
    /// 300 seconds is the ageing time of bridges (IEEE 802.1Q, table 8-7). A host answers ARP within milliseconds; a second also covers a
    /// switch that is busy.
    fn default() -> Self {
        HostsSettings {
            expiry_s: 300,
            move_wait_ms: 1_000,
            hosts_per_port: HOSTS_PER_PORT_DEFAULT,
            dhcp_servers: Vec::new(),
            punt: false,
        }
    }
}

impl HostsSettings {
    /// Checks the values.
    ///
    /// # Errors
    /// A sentence that names the setting.
    pub fn check(&self) -> Result<(), String> {
        if self.expiry_s != 0 && !(10..=86_400 * 365).contains(&self.expiry_s) {
            return Err(format!("expiry_s = {}: write 0, or 10 seconds to a year", self.expiry_s));
        }
        if !(50..=60_000).contains(&self.move_wait_ms) {
            return Err(format!("move_wait_ms = {}: write 50 to 60000", self.move_wait_ms));
        }
        if !(1..=HOSTS_MAX).contains(&self.hosts_per_port) {
            return Err(format!("hosts_per_port = {}: write 1 to {HOSTS_MAX}", self.hosts_per_port));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_is_refused_by_its_name() {
        let check = |json: &str, expected: &str| {
            let read = serde_json::from_str::<HostsSettings>(json).map_err(|why| why.to_string());
            let why = read.and_then(|settings| settings.check()).err().unwrap_or_default();
            assert!(why.contains(expected) && why.is_empty() == expected.is_empty(), "{json}: {why}");
        };
        check("{\"expiry_s\": 9}", "expiry_s = 9");
        check("{\"move_wait_ms\": 0}", "move_wait_ms = 0");
        check("{\"hosts_per_port\": 0}", "hosts_per_port = 0");
        check("{\"hosts_per_port\": 200001}", "hosts_per_port = 200001");
        check("{\"dhcp_servers\": [\"1\"]}", "is no connect point");
        check("{\"expiry\": 1}", "unknown field `expiry`");
        check("{\"expiry_s\": 0, \"dhcp_servers\": [\"of:1/3\"]}", "");
    }
}
