//! Messages about the connection: hello, error, echo, experimenter, roles, asynchronous configuration. Also packet-in
//! and packet-out.

use flow::{Action, Match, PortNo};
use serde::{Deserialize, Serialize};

/// No buffer: the whole packet is in the message (OFP_NO_BUFFER).
pub const NO_BUFFER: u32 = 0xffff_ffff;

/// OFPT_HELLO (1.3.5, 7.5.1). In 1.0 it has no elements; what follows the header is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// What the peer declares about itself.
    pub elements: Vec<HelloElement>,
}

/// An element of a hello.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HelloElement {
    /// OFPHET_VERSIONBITMAP: bit n is set if wire version n is supported; the first word holds versions 0–31.
    VersionBitmap(Vec<u32>),
    /// Any other element, kept unchanged.
    Unknown {
        /// Its type.
        #[serde(rename = "type")]
        kind: u16,
        /// Its payload.
        #[serde(with = "crate::hex")]
        body: Vec<u8>,
    },
}

/// OFPT_ERROR_MSG (1.3.5, 7.5.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorMessage {
    /// `ofp_error_type` in the numbers of the message's own version.
    #[serde(rename = "error_type")]
    pub kind: u16,
    /// The code within the type; for OFPET_EXPERIMENTER (0xffff) the experimenter's own type.
    #[serde(rename = "error_code")]
    pub code: u16,
    /// The experimenter's number, for OFPET_EXPERIMENTER.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimenter: Option<u32>,
    /// Normally the beginning of the faulty message; for OFPET_HELLO_FAILED a sentence.
    #[serde(with = "crate::hex")]
    pub data: Vec<u8>,
}

/// OFPT_EXPERIMENTER (1.3.5, 7.5.5), or OFPT_VENDOR of 1.0, kept unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experimenter {
    /// The experimenter's number: an OUI, or a number from the ONF.
    pub experimenter: u32,
    /// The experimenter's own message type. In 1.0 the specification has none, and this is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp_type: Option<u32>,
    /// The experimenter's data.
    #[serde(with = "crate::hex")]
    pub data: Vec<u8>,
}

/// OFPT_ROLE_REQUEST and OFPT_ROLE_REPLY (1.3.5, 7.3.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// One of the `ROLE_` numbers.
    pub role: u32,
    /// The generation id. The switch refuses an older one.
    pub generation_id: u64,
}

/// OFPCR_ROLE_NOCHANGE: query the role.
pub const ROLE_NOCHANGE: u32 = 0;
/// OFPCR_ROLE_EQUAL.
pub const ROLE_EQUAL: u32 = 1;
/// OFPCR_ROLE_MASTER.
pub const ROLE_MASTER: u32 = 2;
/// OFPCR_ROLE_SLAVE.
pub const ROLE_SLAVE: u32 = 3;

/// OFPT_SET_ASYNC and OFPT_GET_ASYNC_REPLY (1.3.5, 7.3.10): bit n of a mask enables messages with reason n. Index 0 is
/// for the roles master and equal, index 1 for slave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AsyncConfig {
    /// Reasons of packet-ins.
    pub packet_in_mask: [u32; 2],
    /// Reasons of port statuses.
    pub port_status_mask: [u32; 2],
    /// Reasons of flow removeds.
    pub flow_removed_mask: [u32; 2],
}

/// OFPT_PACKET_IN (1.3.5, 7.4.1). 1.0's `in_port` is the field `in_port` of the match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketIn {
    /// The packet's buffer in the switch, or [`NO_BUFFER`].
    pub buffer_id: u32,
    /// The packet's length on the wire; `data` may be shorter.
    pub total_len: u16,
    /// The reason: 0 no match (1.3: table-miss entry), 1 action, 2 invalid time-to-live.
    pub reason: u8,
    /// The table of the rule. Always 0 in 1.0.
    pub table_id: u8,
    /// The cookie of that rule. All ones in 1.0.
    pub cookie: u64,
    /// The packet's metadata: always `in_port`, others if they are not zero.
    #[serde(rename = "match")]
    pub matching: Match,
    /// The frame, or its beginning.
    #[serde(with = "crate::hex")]
    pub data: Vec<u8>,
}

/// OFPT_PACKET_OUT (1.3.5, 7.3.7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketOut {
    /// The packet's buffer in the switch, or [`NO_BUFFER`].
    pub buffer_id: u32,
    /// The input port of the packet.
    pub in_port: PortNo,
    /// The actions.
    pub actions: Vec<Action>,
    /// The frame, if there is no buffer.
    #[serde(with = "crate::hex")]
    pub data: Vec<u8>,
}
