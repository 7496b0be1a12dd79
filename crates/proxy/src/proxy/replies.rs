//! Replies to requests for statistics: the target's description, sizes and rules in place of those of the switch.
//!
//! In: decoded replies of the switch. Out: replies of the target. Counters stay the switch's.

use openflow::message::*;
use openflow::{Body, Message, Version};
use std::time::Duration;

use super::Proxy;
use crate::commands::Commands;
use crate::wire;

/// `ofp_multipart_type` (1.0: `ofp_stats_types`) of the replies that are changed. The first four are the same in 1.0.
const DESC: u16 = 0;
const FLOW: u16 = 1;
const TABLE: u16 = 3;
const METER: u16 = 9;
const METER_CONFIG: u16 = 10;
const METER_FEATURES: u16 = 11;
const TABLE_FEATURES: u16 = 12;

impl Proxy {
    /// Whether a reply of the switch would not be the target's.
    pub(super) fn changes_reply(&self, message: &[u8]) -> bool {
        matches!(
            wire::statistics_type(message),
            Some(DESC | FLOW | TABLE | METER | METER_CONFIG | METER_FEATURES | TABLE_FEATURES)
        )
    }

    /// Sends the target's reply.
    pub(super) fn send_reply(
        &mut self,
        version: Version,
        xid: u32,
        reply: MultipartReply,
        out: &mut Commands,
    ) {
        let MultipartReply { flags, body } = reply;
        let body = match body {
            ReplyBody::Desc(desc) => ReplyBody::Desc(self.describe(desc)),
            ReplyBody::Flow(rules) => ReplyBody::Flow(self.as_wanted(rules, version)),
            ReplyBody::Table(tables) => ReplyBody::Table(self.sized(tables, version)),
            ReplyBody::TableFeatures(tables) => ReplyBody::TableFeatures(self.sized_features(tables)),
            ReplyBody::Meter(meters) => {
                let others = meters.into_iter().filter(|meter| Some(meter.meter_id) != self.own_meter());
                ReplyBody::Meter(others.collect())
            }
            ReplyBody::MeterConfig(meters) => {
                let others = meters.into_iter().filter(|meter| Some(meter.meter_id) != self.own_meter());
                ReplyBody::MeterConfig(others.collect())
            }
            ReplyBody::MeterFeatures(features) => ReplyBody::MeterFeatures(self.without_own_meter(features)),
            other => other,
        };
        let body = Body::MultipartReply(MultipartReply { flags, body });
        if (Message { version, xid, body }).encode(&mut out.to_controller).is_err() {
            self.counters.own_errors += 1;
        }
    }

    /// The target's description. Texts that a profile recognises switches by come before its names.
    fn describe(&self, desc: SwitchDesc) -> SwitchDesc {
        let switch = &self.settings.profile.switch;
        let pattern = switch.recognised_by.first().cloned().unwrap_or_default();
        let text = |pattern: &str, name: &str, of_switch: String| {
            let text = if pattern.is_empty() { name } else { pattern.trim_end_matches('*') };
            // DESC_STR_LEN with its NUL.
            let end = text.floor_char_boundary(255);
            if text.is_empty() { of_switch } else { text[..end].replace('\0', "") }
        };
        SwitchDesc {
            mfr_desc: text(&pattern.manufacturer, &switch.vendor, desc.mfr_desc),
            hw_desc: text(&pattern.hardware, &switch.hardware, desc.hw_desc),
            sw_desc: text(&pattern.software, &switch.firmware, desc.sw_desc),
            ..desc
        }
    }

    /// The rules as the controller wanted them: with their time-outs, flags and instructions. Rules that the target has deleted are left
    /// out.
    fn as_wanted(&self, rules: Vec<FlowStats>, version: Version) -> Vec<FlowStats> {
        let wanted = rules.into_iter().filter_map(|of| match self.booked(&of) {
            Some(booked) => {
                let (duration_s, duration_ns) = self.of_target(of.duration_s, of.duration_ns);
                Some(FlowStats {
                    duration_s,
                    duration_ns,
                    idle_timeout_s: booked.idle_timeout_s,
                    hard_timeout_s: booked.hard_timeout_s,
                    flags: if version == Version::V1_0 { 0 } else { booked.flags },
                    instructions: booked.instructions,
                    ..of
                })
            }
            None => self.shadow.has_others.then_some(of),
        });
        wanted.collect()
    }

    /// A duration in the time of the target, which is slower in slow motion.
    pub(super) fn of_target(&self, duration_s: u32, duration_ns: u32) -> (u32, u32) {
        let duration = Duration::from_secs(duration_s.into()) + Duration::from_nanos(duration_ns.into());
        let of_target = duration / self.settings.slow_motion.max(1);
        // It is no longer than before.
        (u32::try_from(of_target.as_secs()).unwrap_or(u32::MAX), of_target.subsec_nanos())
    }

    fn sized(&self, tables: Vec<TableStats>, version: Version) -> Vec<TableStats> {
        let size = self.settings.profile.table_size();
        let of_target = |table: TableStats| {
            let rules = self.shadow.book.len_of_table(table.table_id);
            TableStats {
                active_count: u32::try_from(rules).unwrap_or(u32::MAX),
                max_entries: match size {
                    Some(size) if version == Version::V1_0 => size,
                    _ => table.max_entries,
                },
                ..table
            }
        };
        tables.into_iter().map(of_target).collect()
    }

    fn sized_features(&self, tables: Vec<TableFeatures>) -> Vec<TableFeatures> {
        let size = self.settings.profile.table_size();
        let of_target =
            |table: TableFeatures| TableFeatures { max_entries: size.unwrap_or(table.max_entries), ..table };
        tables.into_iter().map(of_target).collect()
    }
}
