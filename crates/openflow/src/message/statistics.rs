//! Statistics and features that switches report.

use flow::{Instruction, Match, PortNo};
use serde::{Deserialize, Serialize};

/// OFPMP_DESC (1.3.5, 7.3.5.1). Each text up to its first NUL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchDesc {
    /// Manufacturer.
    pub mfr_desc: String,
    /// Hardware.
    pub hw_desc: String,
    /// Software.
    pub sw_desc: String,
    /// Serial number.
    pub serial_num: String,
    /// The datapath's description by its operator.
    pub dp_desc: String,
}

/// One flow entry of OFPMP_FLOW (1.3.5, 7.3.5.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowStats {
    /// Its table.
    pub table_id: u8,
    /// The time since its creation: whole seconds.
    #[serde(rename = "duration_sec")]
    pub duration_s: u32,
    /// The rest of this time in nanoseconds.
    #[serde(rename = "duration_nsec")]
    pub duration_ns: u32,
    /// Its priority.
    pub priority: u16,
    /// Its idle time-out.
    #[serde(rename = "idle_timeout")]
    pub idle_timeout_s: u16,
    /// Its hard time-out.
    #[serde(rename = "hard_timeout")]
    pub hard_timeout_s: u16,
    /// 1.3: its flags. 1.0: 0.
    pub flags: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
    pub byte_count: u64,
    /// Its match.
    #[serde(rename = "match")]
    pub matching: Match,
    /// Its instructions. An entry of 1.0 is one `ApplyActions`, or empty if it has no actions.
    pub instructions: Vec<Instruction>,
}

/// OFPMP_AGGREGATE (1.3.5, 7.3.5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AggregateStats {
    /// Packets.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
    /// Entries.
    pub flow_count: u32,
}

/// One table of OFPMP_TABLE (1.3.5, 7.3.5.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableStats {
    /// The table.
    pub table_id: u8,
    /// 1.0: its name. 1.3: empty.
    pub name: String,
    /// 1.0: bits of `ofp_flow_wildcards` that it supports. 1.3: 0.
    pub wildcards: u32,
    /// 1.0: its size in entries. 1.3: 0.
    pub max_entries: u32,
    /// Entries now.
    pub active_count: u32,
    /// Packets looked up.
    pub lookup_count: u64,
    /// Packets that matched an entry.
    pub matched_count: u64,
}

/// One port of OFPMP_PORT_STATS (1.3.5, 7.3.5.6). All ones: not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the counters are the specification's own names")]
pub struct PortStats {
    pub port_no: PortNo,
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_frame_err: u64,
    pub rx_over_err: u64,
    pub rx_crc_err: u64,
    pub collisions: u64,
    /// 1.3: the time since the port exists, whole seconds. 1.0: 0.
    #[serde(rename = "duration_sec")]
    pub duration_s: u32,
    /// 1.3: the rest of this time in nanoseconds.
    #[serde(rename = "duration_nsec")]
    pub duration_ns: u32,
}

/// One queue of OFPMP_QUEUE (1.3.5, 7.3.5.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the counters are the specification's own names")]
pub struct QueueStats {
    pub port_no: PortNo,
    pub queue_id: u32,
    pub tx_bytes: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    /// 1.3: the time since the queue exists, whole seconds. 1.0: 0.
    #[serde(rename = "duration_sec")]
    pub duration_s: u32,
    /// 1.3: the rest of this time in nanoseconds.
    #[serde(rename = "duration_nsec")]
    pub duration_ns: u32,
}

/// 1.3: one group of OFPMP_GROUP (1.3.5, 7.3.5.9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupStats {
    /// The group.
    pub group_id: u32,
    /// How many rules or groups refer to it.
    pub ref_count: u32,
    /// Packets.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
    /// The time since its creation: whole seconds.
    #[serde(rename = "duration_sec")]
    pub duration_s: u32,
    /// The rest of this time in nanoseconds.
    #[serde(rename = "duration_nsec")]
    pub duration_ns: u32,
    /// Packets and bytes of each bucket.
    #[serde(with = "crate::counts")]
    pub buckets: Vec<(u64, u64)>,
}

/// 1.3: OFPMP_GROUP_FEATURES (1.3.5, 7.3.5.11). Each array is indexed by group type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupFeatures {
    /// Bit n: group type n is supported.
    pub types: u32,
    /// Bits of `ofp_group_capabilities`.
    pub capabilities: u32,
    /// The maximum number of groups.
    pub max_groups: [u32; 4],
    /// Bit n: the action of type n is supported in it.
    pub actions: [u32; 4],
}

/// 1.3: one meter of OFPMP_METER (1.3.5, 7.3.5.12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterStats {
    /// The meter.
    pub meter_id: u32,
    /// How many rules refer to it.
    pub flow_count: u32,
    /// Packets in.
    pub packet_in_count: u64,
    /// Bytes in.
    pub byte_in_count: u64,
    /// The time since its creation: whole seconds.
    #[serde(rename = "duration_sec")]
    pub duration_s: u32,
    /// The rest of this time in nanoseconds.
    #[serde(rename = "duration_nsec")]
    pub duration_ns: u32,
    /// Packets and bytes in each band.
    #[serde(with = "crate::counts")]
    pub bands: Vec<(u64, u64)>,
}

/// 1.3: OFPMP_METER_FEATURES (1.3.5, 7.3.5.14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterFeatures {
    /// The maximum number of meters.
    pub max_meter: u32,
    /// Bit n: band type n is supported.
    pub band_types: u32,
    /// Bits of `ofp_meter_flags`.
    pub capabilities: u32,
    /// The maximum number of bands of a meter.
    pub max_bands: u8,
    /// The maximum number of colours.
    pub max_color: u8,
}

/// 1.3: one table of OFPMP_TABLE_FEATURES (1.3.5, 7.3.5.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableFeatures {
    /// The table.
    pub table_id: u8,
    /// Its name.
    pub name: String,
    /// Bits of the metadata that it can match.
    pub metadata_match: u64,
    /// Bits of the metadata that it can write.
    pub metadata_write: u64,
    /// Bits of `ofp_table_config`.
    pub config: u32,
    /// Its size in entries.
    pub max_entries: u32,
    /// Its properties, in order.
    pub properties: Vec<TableProperty>,
}

/// A property of a table. The `u16` is its type. The next odd number is the same property for the table-miss entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TableProperty {
    /// OFPTFPT_INSTRUCTIONS(_MISS): types of instructions, with an experimenter's number if the type is 0xffff.
    Instructions {
        /// The property's type, 0 or 1.
        #[serde(rename = "type")]
        kind: u16,
        /// The types.
        ids: Vec<FeatureId>,
    },
    /// OFPTFPT_NEXT_TABLES(_MISS).
    NextTables {
        /// The property's type, 2 or 3.
        #[serde(rename = "type")]
        kind: u16,
        /// Possible targets of goto-table.
        tables: Vec<u8>,
    },
    /// OFPTFPT_WRITE_ACTIONS(_MISS), OFPTFPT_APPLY_ACTIONS(_MISS): types of actions.
    Actions {
        /// The property's type, 4 to 7.
        #[serde(rename = "type")]
        kind: u16,
        /// The types.
        ids: Vec<FeatureId>,
    },
    /// OFPTFPT_MATCH, OFPTFPT_WILDCARDS, OFPTFPT_WRITE_SETFIELD(_MISS), OFPTFPT_APPLY_SETFIELD(_MISS): OXM headers; one of the
    /// experimenter class is followed by the experimenter's number.
    Oxm {
        /// The property's type: 8, 10, 12 to 15.
        #[serde(rename = "type")]
        kind: u16,
        /// The words, unchanged.
        oxm_ids: Vec<u32>,
    },
    /// OFPTFPT_EXPERIMENTER(_MISS).
    Experimenter {
        /// The property's type, 0xfffe or 0xffff.
        #[serde(rename = "type")]
        kind: u16,
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
        /// The property's type.
        #[serde(rename = "type")]
        kind: u16,
        /// The bytes after its header.
        #[serde(with = "crate::hex")]
        data: Vec<u8>,
    },
}

/// The type of an instruction or action in a table's features.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureId {
    /// The type.
    #[serde(rename = "type")]
    pub kind: u16,
    /// The experimenter's number, if the type is 0xffff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimenter: Option<u32>,
}
