//! Answers to multipart requests (1.0: statistics).
//!
//! In: a request. Out: one reply, or as many as the answer needs. It never counts anything.

use flow::PortNo;
use openflow::message::*;
use openflow::{Body, Version};
use std::time::Duration;

use super::{Effects, Switch};
use crate::refusal::Refusal;
use crate::reply_parts::{actions_length, flow_length, in_parts};
use crate::session::Asker;
use crate::supported::action_bits;
use crate::table::{FlowEntry, FlowTable, Selection};
use crate::{group, meter};

impl Switch {
    /// Answers a multipart request.
    pub(super) fn multipart(
        &mut self,
        asker: Asker,
        request: &MultipartRequest,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        if let RequestBody::TableFeatures(wanted) = &request.body {
            let more = request.flags & MULTIPART_MORE != 0;
            let Some(whole) = self.put_together(asker, wanted, more)? else { return Ok(()) };
            self.set_table_features(&whole, now, effects)?;
        } else if request.flags & MULTIPART_MORE != 0 {
            // No other request needs more than one part.
            return Err(Refusal::MultipartOverflow);
        }
        let version = asker.version;
        let mut reply = |bodies: Vec<ReplyBody>| {
            let last = bodies.len().saturating_sub(1);
            for (index, body) in bodies.into_iter().enumerate() {
                let flags = if index < last { MULTIPART_MORE } else { 0 };
                let reply = Body::MultipartReply(MultipartReply { flags, body });
                effects.messages.push(asker.answer(reply));
            }
        };
        match &request.body {
            RequestBody::Flow(wanted) => reply(self.flow_statistics(wanted, version, now)?),
            RequestBody::TableFeatures(_) => reply(self.table_features()),
            RequestBody::Group(id) => {
                let groups = self.groups.statistics(*id, now, |group| self.rules_for(group));
                reply(in_parts(groups, |group| 40 + 16 * group.buckets.len(), ReplyBody::Group));
            }
            RequestBody::GroupDesc => {
                let length = |group: &GroupDesc| {
                    8 + group.buckets.iter().map(|bucket| 16 + actions_length(&bucket.actions)).sum::<usize>()
                };
                reply(in_parts(self.groups.descriptions(), length, ReplyBody::GroupDesc));
            }
            RequestBody::Meter(id) => {
                let meters = self.meters.statistics(*id, now, |meter| self.rules_measured_by(meter))?;
                reply(in_parts(meters, |meter| 40 + 16 * meter.bands.len(), ReplyBody::Meter));
            }
            RequestBody::MeterConfig(id) => {
                let meters = self.meters.configurations(*id)?;
                reply(in_parts(meters, |meter| 8 + 16 * meter.bands.len(), ReplyBody::MeterConfig));
            }
            RequestBody::PortDesc => {
                reply(in_parts(self.describe_ports(version), |_| 64, ReplyBody::PortDesc))
            }
            RequestBody::PortStats(port) => {
                reply(in_parts(self.port_statistics(*port, version, now)?, |_| 112, ReplyBody::PortStats));
            }
            other => reply(vec![self.short_answer(other, version)?]),
        }
        Ok(())
    }

    /// The answers that fit into one reply, for any state of the switch.
    fn short_answer(&self, request: &RequestBody, version: Version) -> Result<ReplyBody, Refusal> {
        Ok(match request {
            RequestBody::Desc => ReplyBody::Desc(self.describe()),
            RequestBody::Aggregate(wanted) => ReplyBody::Aggregate(self.aggregate(wanted, version)?),
            RequestBody::Table => ReplyBody::Table(self.table_statistics(version)),
            RequestBody::Queue { port, queue_id } => self.queue_statistics(*port, *queue_id)?,
            RequestBody::GroupFeatures => ReplyBody::GroupFeatures(group_features()),
            RequestBody::MeterFeatures => ReplyBody::MeterFeatures(meter::features()),
            RequestBody::Experimenter(_) => return Err(Refusal::BadExperimenter),
            _ => return Err(Refusal::BadMultipart),
        })
    }

    /// No port has queues, so only a request for all of them is valid.
    fn queue_statistics(&self, port: PortNo, queue_id: u32) -> Result<ReplyBody, Refusal> {
        /// OFPQ_ALL.
        const ALL_QUEUES: u32 = 0xffff_ffff;
        match port == PortNo::ANY || self.ports.contains_key(&port) {
            false => Err(Refusal::QueuePort),
            true if queue_id == ALL_QUEUES => Ok(ReplyBody::Queue(Vec::new())),
            true => Err(Refusal::QueueUnknown),
        }
    }

    fn describe(&self) -> SwitchDesc {
        SwitchDesc {
            mfr_desc: "Burnet".into(),
            hw_desc: "emulated".into(),
            sw_desc: env!("CARGO_PKG_VERSION").into(),
            serial_num: "none".into(),
            dp_desc: self.name.clone(),
        }
    }

    /// The tables that a request names, and its entries in them.
    fn selected<'a>(
        &'a self,
        wanted: &'a FlowStatsRequest,
        selection: &'a Selection<'_>,
        version: Version,
    ) -> Result<impl Iterator<Item = (usize, &'a FlowEntry)>, Refusal> {
        /// 1.0's emergency table, which is always empty here.
        const EMERGENCY_TABLE: u8 = 0xfe;
        let v10 = version == Version::V1_0;
        let tables = match wanted.table_id {
            TABLE_ALL if v10 => 0..1,
            TABLE_ALL => 0..self.tables.len(),
            EMERGENCY_TABLE if v10 => 0..0,
            1.. if v10 => return Err(Refusal::BadTableId),
            one if self.pipeline.has(one) => usize::from(one)..usize::from(one) + 1,
            _ => return Err(Refusal::BadTableId),
        };
        Ok(tables.flat_map(|id| self.tables[id].select(selection).map(move |entry| (id, entry))))
    }

    fn flow_statistics(
        &self,
        wanted: &FlowStatsRequest,
        version: Version,
        now: Duration,
    ) -> Result<Vec<ReplyBody>, Refusal> {
        let selection = Selection::of_request(wanted);
        let v10 = version == Version::V1_0;
        let describe = |(table_id, entry): (usize, &FlowEntry)| {
            let age = now.saturating_sub(entry.added_at);
            FlowStats {
                table_id: table_id as u8,
                duration_s: crate::whole_seconds(age),
                duration_ns: age.subsec_nanos(),
                priority: entry.priority,
                idle_timeout_s: entry.idle_timeout_s,
                hard_timeout_s: entry.hard_timeout_s,
                flags: if v10 { 0 } else { entry.flags },
                cookie: entry.cookie,
                packet_count: entry.packet_count,
                byte_count: entry.byte_count,
                matching: entry.matching.clone(),
                instructions: entry.instructions.to_vec(),
            }
        };
        let can_be_said = |flow: &FlowStats| self.can_be_said(version, || one_flow(flow));
        let flows = self.selected(wanted, &selection, version)?.map(describe).filter(can_be_said).collect();
        Ok(in_parts(flows, flow_length, ReplyBody::Flow))
    }

    fn aggregate(&self, wanted: &FlowStatsRequest, version: Version) -> Result<AggregateStats, Refusal> {
        let selection = Selection::of_request(wanted);
        let add = |sum: AggregateStats, (_, entry): (usize, &FlowEntry)| AggregateStats {
            packet_count: sum.packet_count + entry.packet_count,
            byte_count: sum.byte_count + entry.byte_count,
            flow_count: sum.flow_count + 1,
        };
        Ok(self.selected(wanted, &selection, version)?.fold(AggregateStats::default(), add))
    }

    fn table_statistics(&self, version: Version) -> Vec<TableStats> {
        /// OFPFW_ALL: every field of 1.0 can be left open.
        const WILDCARDS_V10: u32 = (1 << 22) - 1;
        let v10 = version == Version::V1_0;
        let shown = if v10 { 1 } else { self.tables.len() };
        let describe = |(id, table): (usize, &FlowTable)| TableStats {
            table_id: id as u8,
            name: if v10 { self.pipeline.name(id as u8) } else { String::new() },
            wildcards: if v10 { WILDCARDS_V10 } else { 0 },
            max_entries: if v10 { self.pipeline.max_entries(id as u8) } else { 0 },
            active_count: u32::try_from(table.len()).unwrap_or(u32::MAX),
            lookup_count: table.lookup_count,
            matched_count: table.matched_count,
        };
        let in_use = |(id, _): &(usize, &FlowTable)| self.pipeline.has(*id as u8);
        self.tables.iter().enumerate().take(shown).filter(in_use).map(describe).collect()
    }

    fn port_statistics(
        &self,
        wanted: PortNo,
        version: Version,
        now: Duration,
    ) -> Result<Vec<PortStats>, Refusal> {
        // 1.0 has no error for an unknown port: the reply then is empty.
        if version != Version::V1_0 && wanted != PortNo::ANY && !self.ports.contains_key(&wanted) {
            return Err(Refusal::BadPort);
        }
        let meant = |port: &&crate::port::SwitchPort| wanted == PortNo::ANY || port.number == wanted;
        Ok(self.ports.values().filter(meant).map(|port| port.statistics(version, now)).collect())
    }

    fn rules_measured_by(&self, meter: u32) -> usize {
        let entries = self.tables.iter().flat_map(|table| table.entries());
        entries.filter(|entry| entry.refers_to_meter(meter)).count()
    }

    fn rules_for(&self, group: u32) -> usize {
        let entries = self.tables.iter().flat_map(|table| table.entries());
        entries.filter(|entry| entry.refers_to_group(group)).count()
    }
}

fn one_flow(flow: &FlowStats) -> Body {
    Body::MultipartReply(MultipartReply { flags: 0, body: ReplyBody::Flow(vec![flow.clone()]) })
}

fn group_features() -> GroupFeatures {
    /// OFPGFC_SELECT_WEIGHT, OFPGFC_SELECT_LIVENESS, OFPGFC_CHAINING; loops are checked (OFPGFC_CHAINING_CHECKS).
    const CAPABILITIES: u32 = 0b1111;
    GroupFeatures {
        types: 0b1111,
        capabilities: CAPABILITIES,
        max_groups: [group::GROUPS_MAX; 4],
        actions: [action_bits(); 4],
    }
}
