//! Ports: their description, port status and port mod.

use flow::{MacAddr, PortNo};
use serde::{Deserialize, Serialize};

/// A port of a switch (`ofp_port`, 1.3.5, 7.2.1; `ofp_phy_port`, 1.0, 5.2.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Its number.
    pub port_no: PortNo,
    /// Its Ethernet address.
    pub hw_addr: MacAddr,
    /// Its name, up to the first NUL of 16 bytes.
    pub name: String,
    /// The configuration: bits of `ofp_port_config` in the numbers of the message's version (bit 0 is down in both).
    pub config: u32,
    /// The state: bits of `ofp_port_state` (bit 0: no link in both).
    pub state: u32,
    /// Features in use, in the numbers of the message's version.
    pub curr: u32,
    /// Features advertised.
    pub advertised: u32,
    /// Features supported.
    pub supported: u32,
    /// Features that the other side advertises.
    pub peer: u32,
    /// 1.3: the current rate in kbit/s. 0 in 1.0.
    #[serde(rename = "curr_speed")]
    pub curr_speed_kbps: u32,
    /// 1.3: the highest rate in kbit/s. 0 in 1.0.
    #[serde(rename = "max_speed")]
    pub max_speed_kbps: u32,
}

/// OFPPC_PORT_DOWN: taken down by the operator.
pub const PORT_CONFIG_DOWN: u32 = 1;
/// OFPPS_LINK_DOWN: no link.
pub const PORT_STATE_LINK_DOWN: u32 = 1;

impl Port {
    /// Whether packets can pass: the port is not configured down and has a link.
    pub const fn is_live(&self) -> bool {
        self.config & PORT_CONFIG_DOWN == 0 && self.state & PORT_STATE_LINK_DOWN == 0
    }
}

/// OFPT_PORT_STATUS (1.3.5, 7.4.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortStatus {
    /// 0 added, 1 deleted, 2 modified.
    pub reason: u8,
    /// The port as it is now (or was, if deleted).
    pub port: Port,
}

/// OFPPR_ADD.
pub const PORT_ADDED: u8 = 0;
/// OFPPR_DELETE.
pub const PORT_DELETED: u8 = 1;
/// OFPPR_MODIFY.
pub const PORT_MODIFIED: u8 = 2;

/// OFPT_PORT_MOD (1.3.5, 7.3.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortMod {
    /// The port.
    pub port_no: PortNo,
    /// Its address, which the switch compares as a check.
    pub hw_addr: MacAddr,
    /// The new configuration bits.
    pub config: u32,
    /// The bits to change.
    pub mask: u32,
    /// Features to advertise; 0 changes nothing.
    pub advertise: u32,
}
