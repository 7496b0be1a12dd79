//! Flow mods, flow removeds, groups and meters.

use flow::{Action, Instruction, Match, PortNo};
use serde::{Deserialize, Serialize};

/// OFPT_FLOW_MOD (1.3.5, 7.3.4.1; 1.0, 5.3.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowMod {
    /// The cookie: a number that the sender chooses.
    pub cookie: u64,
    /// 1.3: the bits of the cookie that restrict a modify or delete; 0: no restriction. 0 in 1.0.
    pub cookie_mask: u64,
    /// The table; [`TABLE_ALL`] in a delete for all tables. In 1.0: 0, or all in a delete.
    pub table_id: u8,
    /// One of the `FLOW_` commands.
    pub command: u8,
    /// The rule is removed after this many seconds without a packet; 0: never.
    #[serde(rename = "idle_timeout")]
    pub idle_timeout_s: u16,
    /// The rule is removed after this many seconds in any case; 0: never.
    #[serde(rename = "hard_timeout")]
    pub hard_timeout_s: u16,
    /// The priority. The higher one wins.
    pub priority: u16,
    /// A packet in the switch to send through the new rule, or [`super::NO_BUFFER`].
    pub buffer_id: u32,
    /// A delete applies only to rules that output to this port; ANY: no restriction.
    pub out_port: PortNo,
    /// 1.3: a delete applies only to rules that refer to this group; [`GROUP_ANY`]: no restriction.
    pub out_group: u32,
    /// Bits `FLOW_MOD_…`.
    pub flags: u16,
    /// The match.
    #[serde(rename = "match")]
    pub matching: Match,
    /// The instructions. A rule of 1.0 is one `ApplyActions`, or empty if it has no actions.
    pub instructions: Vec<Instruction>,
}

/// A flow mod without its match and instructions. The fields are those of [`FlowMod`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is said at FlowMod's of the same name")]
pub struct FlowModFields {
    pub cookie: u64,
    pub cookie_mask: u64,
    pub table_id: u8,
    pub command: u8,
    pub idle_timeout_s: u16,
    pub hard_timeout_s: u16,
    pub priority: u16,
    pub buffer_id: u32,
    pub out_port: PortNo,
    pub out_group: u32,
    pub flags: u16,
}

impl Default for FlowModFields {
    /// An add to table 0 with priority 0x8000, without time-outs, buffer or restrictions.
    fn default() -> Self {
        FlowModFields {
            cookie: 0,
            cookie_mask: 0,
            table_id: 0,
            command: FLOW_ADD,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            priority: 0x8000,
            buffer_id: super::NO_BUFFER,
            out_port: PortNo::ANY,
            out_group: GROUP_ANY,
            flags: 0,
        }
    }
}

impl FlowModFields {
    /// Makes the whole flow mod.
    pub fn with(self, matching: Match, instructions: Vec<Instruction>) -> FlowMod {
        FlowMod {
            cookie: self.cookie,
            cookie_mask: self.cookie_mask,
            table_id: self.table_id,
            command: self.command,
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
            priority: self.priority,
            buffer_id: self.buffer_id,
            out_port: self.out_port,
            out_group: self.out_group,
            flags: self.flags,
            matching,
            instructions,
        }
    }
}

impl FlowMod {
    /// The fields without the match and the instructions.
    pub const fn fields(&self) -> FlowModFields {
        FlowModFields {
            cookie: self.cookie,
            cookie_mask: self.cookie_mask,
            table_id: self.table_id,
            command: self.command,
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
            priority: self.priority,
            buffer_id: self.buffer_id,
            out_port: self.out_port,
            out_group: self.out_group,
            flags: self.flags,
        }
    }
}

/// OFPFC_ADD.
pub const FLOW_ADD: u8 = 0;
/// OFPFC_MODIFY.
pub const FLOW_MODIFY: u8 = 1;
/// OFPFC_MODIFY_STRICT.
pub const FLOW_MODIFY_STRICT: u8 = 2;
/// OFPFC_DELETE.
pub const FLOW_DELETE: u8 = 3;
/// OFPFC_DELETE_STRICT.
pub const FLOW_DELETE_STRICT: u8 = 4;

/// OFPFF_SEND_FLOW_REM: send a flow removed when the rule is removed.
pub const FLOW_MOD_SEND_FLOW_REMOVED: u16 = 1;
/// OFPFF_CHECK_OVERLAP: refuse it if it overlaps another rule of the same priority.
pub const FLOW_MOD_CHECK_OVERLAP: u16 = 2;
/// OFPFF_RESET_COUNTS in 1.3, OFPFF_EMERG in 1.0.
pub const FLOW_MOD_RESET_COUNTS: u16 = 4;

/// OFPTT_ALL: every table.
pub const TABLE_ALL: u8 = 0xff;
/// OFPG_ANY: no restriction by group.
pub const GROUP_ANY: u32 = 0xffff_ffff;
/// OFPG_ALL: every group.
pub const GROUP_ALL: u32 = 0xffff_fffc;
/// OFPM_ALL: every meter.
pub const METER_ALL: u32 = 0xffff_ffff;

/// OFPT_FLOW_REMOVED (1.3.5, 7.4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowRemoved {
    /// The match of the rule.
    #[serde(rename = "match")]
    pub matching: Match,
    /// Its cookie.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// 0 idle time-out, 1 hard time-out, 2 delete, 3 group delete.
    pub reason: u8,
    /// Its table. 0 in 1.0.
    pub table_id: u8,
    /// The rule's lifetime: whole seconds.
    #[serde(rename = "duration_sec")]
    pub duration_s: u32,
    /// The rest of the lifetime in nanoseconds.
    #[serde(rename = "duration_nsec")]
    pub duration_ns: u32,
    /// Its idle time-out.
    #[serde(rename = "idle_timeout")]
    pub idle_timeout_s: u16,
    /// Its hard time-out. 0 in 1.0.
    #[serde(rename = "hard_timeout")]
    pub hard_timeout_s: u16,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
    pub byte_count: u64,
}

/// 1.3: OFPT_GROUP_MOD (1.3.5, 7.3.4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupMod {
    /// 0 add, 1 modify, 2 delete.
    pub command: u16,
    /// One of the `GROUP_TYPE_` numbers.
    pub group_type: u8,
    /// The group, or [`GROUP_ALL`] in a delete.
    pub group_id: u32,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

/// OFPGT_ALL: every bucket.
pub const GROUP_TYPE_ALL: u8 = 0;
/// OFPGT_SELECT: one bucket, which the switch selects.
pub const GROUP_TYPE_SELECT: u8 = 1;
/// OFPGT_INDIRECT: the one bucket.
pub const GROUP_TYPE_INDIRECT: u8 = 2;
/// OFPGT_FF: the first live bucket.
pub const GROUP_TYPE_FAST_FAILOVER: u8 = 3;

/// A bucket of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// Its weight, for select groups.
    pub weight: u16,
    /// The port whose liveness counts, for fast failover; ANY otherwise.
    pub watch_port: PortNo,
    /// The group whose liveness counts; [`GROUP_ANY`] otherwise.
    pub watch_group: u32,
    /// Its actions.
    pub actions: Vec<Action>,
}

/// 1.3: OFPT_METER_MOD (1.3.5, 7.3.4.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterMod {
    /// 0 add, 1 modify, 2 delete.
    pub command: u16,
    /// Bits of `ofp_meter_flags`: 1 kbit/s, 2 packets/s, 4 burst, 8 statistics.
    pub flags: u16,
    /// The meter, or [`METER_ALL`] in a delete.
    pub meter_id: u32,
    /// Its bands.
    pub bands: Vec<MeterBand>,
}

/// A band of a meter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterBand {
    /// The rate above which it applies, in the meter's unit.
    pub rate: u32,
    /// The allowed burst, in kbit or packets.
    pub burst_size: u32,
    /// Its effect.
    #[serde(rename = "type")]
    pub kind: MeterBandKind,
}

/// The effect of a band.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MeterBandKind {
    /// OFPMBT_DROP.
    Drop,
    /// OFPMBT_DSCP_REMARK: raise the drop precedence by this number.
    DscpRemark(u8),
    /// OFPMBT_EXPERIMENTER.
    Experimenter {
        /// The experimenter's number.
        experimenter: u32,
        /// The experimenter's data.
        #[serde(with = "crate::hex")]
        data: Vec<u8>,
    },
}
