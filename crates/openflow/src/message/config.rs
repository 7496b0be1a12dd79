//! Features and configuration of a switch: features, configuration, tables, queues.

use flow::{DatapathId, PortNo};
use serde::{Deserialize, Serialize};

use super::port::Port;

/// OFPT_FEATURES_REPLY (1.3.5, 7.3.1; 1.0, 5.3.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeaturesReply {
    /// The switch.
    pub datapath_id: DatapathId,
    /// How many packets it can hold for the controller.
    pub n_buffers: u32,
    /// How many flow tables it has.
    pub n_tables: u8,
    /// 1.3: the number of this connection of the switch; 0 is the main one.
    pub auxiliary_id: u8,
    /// Bits of `ofp_capabilities`, in the numbers of the message's version.
    pub capabilities: u32,
    /// 1.0: bit n is set if the action of type n is supported. 1.3: reserved.
    pub actions: u32,
    /// 1.0: the ports. 1.3 has them in the multipart OFPMP_PORT_DESC.
    pub ports: Vec<Port>,
}

/// OFPT_SET_CONFIG and OFPT_GET_CONFIG_REPLY (1.3.5, 7.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// Handling of fragments: 0 normal, 1 drop, 2 reassemble.
    pub flags: u16,
    /// The number of bytes of a buffered packet that go to the controller; 0xffff: the whole packet, not buffered.
    pub miss_send_len: u16,
}

/// 1.3: OFPT_TABLE_MOD (1.3.5, 7.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableMod {
    /// The table, 0xff for all.
    pub table_id: u8,
    /// Deprecated in 1.3; kept unchanged.
    pub config: u32,
}

/// OFPT_QUEUE_GET_CONFIG_REQUEST (1.3.5, 7.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueGetConfigRequest {
    /// The port, or ANY for all.
    pub port: PortNo,
}

/// OFPT_QUEUE_GET_CONFIG_REPLY.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueGetConfigReply {
    /// The requested port.
    pub port: PortNo,
    /// Its queues.
    pub queues: Vec<PacketQueue>,
}

/// A queue and its guaranteed rates (1.3.5, 7.2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketQueue {
    /// Its id on the port.
    pub queue_id: u32,
    /// The port. In 1.0 it is the requested port.
    pub port: PortNo,
    /// Its properties, in order.
    pub properties: Vec<QueueProperty>,
}

/// A property of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueProperty {
    /// OFPQT_MIN_RATE in tenths of a per cent; above 1000: not configured.
    MinRate(u16),
    /// 1.3: OFPQT_MAX_RATE in tenths of a per cent; above 1000: not configured.
    MaxRate(u16),
    /// 1.3: OFPQT_EXPERIMENTER.
    Experimenter {
        /// The experimenter's number.
        experimenter: u32,
        /// The experimenter's data.
        #[serde(with = "crate::hex")]
        data: Vec<u8>,
    },
    /// Any other property, kept unchanged.
    Unknown {
        /// Its type.
        #[serde(rename = "type")]
        kind: u16,
        /// The bytes after its header.
        #[serde(with = "crate::hex")]
        data: Vec<u8>,
    },
}
