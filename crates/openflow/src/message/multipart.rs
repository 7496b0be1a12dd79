//! Multipart messages (1.0: statistics): a request, and a reply in one or more parts.
//!
//! The session joins the parts of a reply.

use flow::{Match, PortNo};
use serde::{Deserialize, Serialize};

use super::port::Port;
use super::rule::{Bucket, MeterBand};
use super::statistics::*;

/// OFPMPF_REQ_MORE and OFPMPF_REPLY_MORE: another part follows.
pub const MULTIPART_MORE: u16 = 1;

/// OFPT_MULTIPART_REQUEST (1.3.5, 7.3.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartRequest {
    /// [`MULTIPART_MORE`] or 0.
    pub flags: u16,
    /// The request.
    pub body: RequestBody,
}

/// OFPT_MULTIPART_REPLY, or one part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartReply {
    /// [`MULTIPART_MORE`] or 0.
    pub flags: u16,
    /// The reply.
    pub body: ReplyBody,
}

/// The kind and contents of a request (`ofp_multipart_type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// OFPMP_DESC.
    Desc,
    /// OFPMP_FLOW.
    Flow(FlowStatsRequest),
    /// OFPMP_AGGREGATE.
    Aggregate(FlowStatsRequest),
    /// OFPMP_TABLE.
    Table,
    /// OFPMP_PORT_STATS of one port, or ANY.
    PortStats(PortNo),
    /// OFPMP_QUEUE.
    Queue {
        /// One port, or ANY.
        port: PortNo,
        /// One queue, or 0xffffffff.
        queue_id: u32,
    },
    /// 1.3: OFPMP_GROUP of one group, or all.
    Group(u32),
    /// 1.3: OFPMP_GROUP_DESC.
    GroupDesc,
    /// 1.3: OFPMP_GROUP_FEATURES.
    GroupFeatures,
    /// 1.3: OFPMP_METER of one meter, or all.
    Meter(u32),
    /// 1.3: OFPMP_METER_CONFIG of one meter, or all.
    MeterConfig(u32),
    /// 1.3: OFPMP_METER_FEATURES.
    MeterFeatures,
    /// 1.3: OFPMP_TABLE_FEATURES. If it has tables, it sets their features.
    TableFeatures(Vec<TableFeatures>),
    /// 1.3: OFPMP_PORT_DESC.
    PortDesc,
    /// OFPMP_EXPERIMENTER (1.0: OFPST_VENDOR), kept unchanged.
    Experimenter(ExperimenterStats),
}

/// The kind and contents of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyBody {
    /// OFPMP_DESC.
    Desc(SwitchDesc),
    /// OFPMP_FLOW.
    Flow(Vec<FlowStats>),
    /// OFPMP_AGGREGATE.
    Aggregate(AggregateStats),
    /// OFPMP_TABLE.
    Table(Vec<TableStats>),
    /// OFPMP_PORT_STATS.
    PortStats(Vec<PortStats>),
    /// OFPMP_QUEUE.
    Queue(Vec<QueueStats>),
    /// 1.3: OFPMP_GROUP.
    Group(Vec<GroupStats>),
    /// 1.3: OFPMP_GROUP_DESC.
    GroupDesc(Vec<GroupDesc>),
    /// 1.3: OFPMP_GROUP_FEATURES.
    GroupFeatures(GroupFeatures),
    /// 1.3: OFPMP_METER.
    Meter(Vec<MeterStats>),
    /// 1.3: OFPMP_METER_CONFIG.
    MeterConfig(Vec<MeterConfig>),
    /// 1.3: OFPMP_METER_FEATURES.
    MeterFeatures(MeterFeatures),
    /// 1.3: OFPMP_TABLE_FEATURES.
    TableFeatures(Vec<TableFeatures>),
    /// 1.3: OFPMP_PORT_DESC.
    PortDesc(Vec<Port>),
    /// OFPMP_EXPERIMENTER (1.0: OFPST_VENDOR), kept unchanged.
    Experimenter(ExperimenterStats),
}

/// The selection of flow entries in OFPMP_FLOW and OFPMP_AGGREGATE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowStatsRequest {
    /// One table, or [`super::TABLE_ALL`].
    pub table_id: u8,
    /// Only entries that output to this port; ANY: no restriction.
    pub out_port: PortNo,
    /// 1.3: only entries that refer to this group; [`super::GROUP_ANY`]: no restriction.
    pub out_group: u32,
    /// 1.3: the required bits of the cookie. 1.0: 0.
    pub cookie: u64,
    /// 1.3: the mask of these bits; 0: no restriction.
    pub cookie_mask: u64,
    /// Only entries within this match.
    #[serde(rename = "match")]
    pub matching: Match,
}

/// All entries of all tables.
impl Default for FlowStatsRequest {
    fn default() -> Self {
        FlowStatsRequest {
            table_id: super::TABLE_ALL,
            out_port: PortNo::ANY,
            out_group: super::GROUP_ANY,
            cookie: 0,
            cookie_mask: 0,
            matching: Match::any(),
        }
    }
}

/// The body of OFPMP_EXPERIMENTER.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimenterStats {
    /// The experimenter's number.
    pub experimenter: u32,
    /// The experimenter's own type. In 1.0 the specification has none, and this is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp_type: Option<u32>,
    /// The experimenter's data.
    #[serde(with = "crate::hex")]
    pub data: Vec<u8>,
}

/// A group's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupDesc {
    /// One of the `GROUP_TYPE_` numbers.
    pub group_type: u8,
    /// The group.
    pub group_id: u32,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

/// A meter's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterConfig {
    /// Bits of `ofp_meter_flags`.
    pub flags: u16,
    /// The meter.
    pub meter_id: u32,
    /// Its bands.
    pub bands: Vec<MeterBand>,
}
