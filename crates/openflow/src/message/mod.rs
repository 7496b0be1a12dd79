//! The messages as types: their contents, not their layout.
//!
//! Enumerations of the specification (reasons, commands, flags) stay numbers if a switch may send unknown ones. So
//! reading loses nothing. Constants give their names. Never holds a length or padding.

mod bundle;
mod config;
mod controller;
mod multipart;
mod port;
mod rule;
mod statistics;

pub use bundle::*;
pub use config::*;
pub use controller::*;
pub use multipart::*;
pub use port::*;
pub use rule::*;
pub use statistics::*;

use crate::version::Version;

/// A whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The version in its header.
    pub version: Version,
    /// The transaction id: a reply carries its request's.
    pub xid: u32,
    /// Its contents.
    pub body: Body,
}

/// The contents of a message (OpenFlow 1.3.5, 7.1, `ofp_type`; 1.0, 5.1). `1.0` or `1.3` marks what exists in only one
/// version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// OFPT_HELLO, both ways.
    Hello(Hello),
    /// OFPT_ERROR, both ways.
    Error(ErrorMessage),
    /// OFPT_ECHO_REQUEST with its payload, both ways.
    EchoRequest(Vec<u8>),
    /// OFPT_ECHO_REPLY with the request's payload, both ways.
    EchoReply(Vec<u8>),
    /// OFPT_EXPERIMENTER (1.0: OFPT_VENDOR), both ways, kept unchanged.
    Experimenter(Experimenter),
    /// OFPT_FEATURES_REQUEST, to the switch.
    FeaturesRequest,
    /// OFPT_FEATURES_REPLY.
    FeaturesReply(FeaturesReply),
    /// OFPT_GET_CONFIG_REQUEST, to the switch.
    GetConfigRequest,
    /// OFPT_GET_CONFIG_REPLY.
    GetConfigReply(SwitchConfig),
    /// OFPT_SET_CONFIG, to the switch.
    SetConfig(SwitchConfig),
    /// OFPT_PACKET_IN, from the switch.
    PacketIn(PacketIn),
    /// OFPT_FLOW_REMOVED, from the switch.
    FlowRemoved(FlowRemoved),
    /// OFPT_PORT_STATUS, from the switch.
    PortStatus(PortStatus),
    /// OFPT_PACKET_OUT, to the switch.
    PacketOut(PacketOut),
    /// OFPT_FLOW_MOD, to the switch.
    FlowMod(FlowMod),
    /// 1.3: OFPT_GROUP_MOD, to the switch.
    GroupMod(GroupMod),
    /// OFPT_PORT_MOD, to the switch.
    PortMod(PortMod),
    /// 1.3: OFPT_TABLE_MOD, to the switch.
    TableMod(TableMod),
    /// OFPT_MULTIPART_REQUEST (1.0: OFPT_STATS_REQUEST), to the switch.
    MultipartRequest(MultipartRequest),
    /// OFPT_MULTIPART_REPLY (1.0: OFPT_STATS_REPLY).
    MultipartReply(MultipartReply),
    /// OFPT_BARRIER_REQUEST, to the switch.
    BarrierRequest,
    /// OFPT_BARRIER_REPLY.
    BarrierReply,
    /// OFPT_QUEUE_GET_CONFIG_REQUEST, to the switch.
    QueueGetConfigRequest(QueueGetConfigRequest),
    /// OFPT_QUEUE_GET_CONFIG_REPLY.
    QueueGetConfigReply(QueueGetConfigReply),
    /// 1.3: OFPT_ROLE_REQUEST, to the switch.
    RoleRequest(Role),
    /// 1.3: OFPT_ROLE_REPLY.
    RoleReply(Role),
    /// 1.3: OFPT_GET_ASYNC_REQUEST, to the switch.
    GetAsyncRequest,
    /// 1.3: OFPT_GET_ASYNC_REPLY.
    GetAsyncReply(AsyncConfig),
    /// 1.3: OFPT_SET_ASYNC, to the switch.
    SetAsync(AsyncConfig),
    /// 1.3: OFPT_METER_MOD, to the switch.
    MeterMod(MeterMod),
    /// 1.3: OFPT_BUNDLE_CONTROL of the ONF's extension 230, both ways.
    BundleControl(BundleControl),
    /// 1.3: OFPT_BUNDLE_ADD_MESSAGE of the ONF's extension 230, to the switch.
    BundleAdd(BundleAdd),
}
