//! Bundles: messages that a switch applies together. In OpenFlow 1.3 they are the ONF's extension 230, whose messages
//! are those of OpenFlow 1.4 (1.4.0, 7.3.9) behind an experimenter header.
//!
//! Never holds a length or padding, and never knows whether a switch has the bundle.

use serde::{Deserialize, Serialize};

use super::Message;

/// The ONF's number as an experimenter.
pub const ONF_EXPERIMENTER: u32 = 0x4f4e_4600;
/// The ONF's type of a bundle control message in OpenFlow 1.3.
pub const ONF_BUNDLE_CONTROL: u32 = 2300;
/// The ONF's type of a message that adds one to a bundle in OpenFlow 1.3.
pub const ONF_BUNDLE_ADD: u32 = 2301;

/// OFPBF_ATOMIC: the switch applies all messages of the bundle, or none.
pub const BUNDLE_ATOMIC: u16 = 1;
/// OFPBF_ORDERED: the switch applies the messages in the order in which they were added.
pub const BUNDLE_ORDERED: u16 = 2;

/// OFPBCT_OPEN_REQUEST: a new bundle. The reply to each request has the next number.
pub const BUNDLE_OPEN_REQUEST: u16 = 0;
/// OFPBCT_OPEN_REPLY.
pub const BUNDLE_OPEN_REPLY: u16 = 1;
/// OFPBCT_CLOSE_REQUEST: nothing more is added.
pub const BUNDLE_CLOSE_REQUEST: u16 = 2;
/// OFPBCT_CLOSE_REPLY: the switch has checked all messages as far as it does before the commit.
pub const BUNDLE_CLOSE_REPLY: u16 = 3;
/// OFPBCT_COMMIT_REQUEST: apply the messages.
pub const BUNDLE_COMMIT_REQUEST: u16 = 4;
/// OFPBCT_COMMIT_REPLY: the messages are applied.
pub const BUNDLE_COMMIT_REPLY: u16 = 5;
/// OFPBCT_DISCARD_REQUEST: forget the bundle.
pub const BUNDLE_DISCARD_REQUEST: u16 = 6;
/// OFPBCT_DISCARD_REPLY.
pub const BUNDLE_DISCARD_REPLY: u16 = 7;

/// 1.3: OFPT_BUNDLE_CONTROL of the ONF's extension (1.4.0, 7.3.9.1), both ways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleControl {
    /// The bundle. The controller chooses the number, which holds on its connection.
    pub bundle_id: u32,
    /// One of the numbers from [`BUNDLE_OPEN_REQUEST`] to [`BUNDLE_DISCARD_REPLY`].
    #[serde(rename = "control_type")]
    pub control: u16,
    /// [`BUNDLE_ATOMIC`] and [`BUNDLE_ORDERED`]; the same in all messages about one bundle.
    pub flags: u16,
    /// Its properties, in order.
    pub properties: Vec<BundleProperty>,
}

/// 1.3: OFPT_BUNDLE_ADD_MESSAGE of the ONF's extension (1.4.0, 7.3.9.6), to the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleAdd {
    /// The bundle.
    pub bundle_id: u32,
    /// As in [`BundleControl`].
    pub flags: u16,
    /// The message to add. Its version and its transaction id are those of the message that adds it.
    pub message: Box<Message>,
    /// Its properties, in order.
    pub properties: Vec<BundleProperty>,
}

/// A property of a bundle (1.4.0, 7.3.9.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BundleProperty {
    /// OFPBPT_EXPERIMENTER.
    Experimenter {
        /// The experimenter's number.
        experimenter: u32,
        /// The experimenter's own type.
        exp_type: u32,
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
