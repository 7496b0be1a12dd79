//! Statistics of a virtual switch.
//!
//! Rules are answered from the tenant's own table, with the sums of the counters of their pieces. Counters that the physical switch does
//! not keep for each slice are all ones, which means "not counted": those of ports between switches, and lookups of tables.
//!
//! In: requests of controllers, and the physical switch's answers. Out: requests, and replies in parts that fit into a message.

use crate::asking::{Asking, Counted, Question};
use crate::controller::Asker;
use crate::meters::BANDS_MAX;
use crate::output::Command;
use crate::pending::{Asked, Sender};
use crate::plan::count;
use crate::refusal::*;
use crate::rule_table::{Group, Meter, Rule, Selection};
use crate::rules::lived;
use crate::table_features;
use crate::virtual_switch::{Obeyed, Turn, VirtualSwitch};
use flow::{Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use std::cmp::Reverse;

/// A counter that is not kept.
const NOT_COUNTED: u64 = u64::MAX;
/// The tenant's part of a cookie; the kernel's is above it.
const COOKIE_MASK: u64 = (1 << 48) - 1;
/// The bytes of entries in one part of a reply. A part is at most a message, and one entry more is at most a few hundred bytes.
const PART_LEN: usize = 48 << 10;
/// 1.0: every bit of `ofp_flow_wildcards`.
const ALL_WILDCARDS: u32 = (1 << 22) - 1;

impl VirtualSwitch {
    /// A controller asks.
    pub(crate) fn on_statistics_request(
        &mut self,
        asker: Asker,
        request: MultipartRequest,
        bytes: &[u8],
        turn: &mut Turn<'_>,
    ) -> Obeyed {
        if request.flags & MULTIPART_MORE != 0 {
            return Err(Refusal::new(MULTIPART_OVERFLOW, "a slice takes requests in one part"));
        }
        if self.answer_list(asker, &request.body, turn) {
            return Ok(());
        }
        let (question, command) = match request.body {
            RequestBody::Flow(wanted) => (self.question_of(wanted, Question::Flows)?, all_flows()),
            RequestBody::Aggregate(wanted) => (self.question_of(wanted, Question::Aggregate)?, all_flows()),
            RequestBody::PortStats(port) => {
                (Question::Ports(port), RequestBody::PortStats(self.asked_port(port, BAD_PORT)?))
            }
            RequestBody::Queue { port, queue_id } => {
                let physical = self.asked_port(port, QUEUE_PORT)?;
                (Question::Queues { port }, RequestBody::Queue { port: physical, queue_id })
            }
            // A slice without any has no need to ask.
            RequestBody::Group(id) if !self.groups.is_empty() => {
                (Question::Groups(id), RequestBody::Group(GROUP_ALL))
            }
            RequestBody::Meter(id) | RequestBody::MeterConfig(id)
                if id != METER_ALL && !self.meters.contains_key(&id) =>
            {
                return Err(Refusal::new(METER_UNKNOWN, format!("there is no meter {id}")));
            }
            RequestBody::Meter(id) if !self.meters.is_empty() => {
                (Question::Meters(id), RequestBody::Meter(METER_ALL))
            }
            other => {
                let reply = self.own_reply(asker.version, other)?;
                self.answer(asker, Body::MultipartReply(MultipartReply { flags: 0, body: reply }), turn);
                return Ok(());
            }
        };
        if !self.pending.has_room() {
            return Err(Refusal::new(
                REQUEST_EPERM,
                "too many barriers and statistics requests are on their way",
            ));
        }
        let asked =
            Asked::Statistics { sender: Sender::new(asker, bytes), asking: Box::new(Asking::new(question)) };
        self.order(Command::Statistics(command), Some(asked), turn);
        Ok(())
    }

    /// Answers a request for a list that the virtual switch knows itself. Returns whether it was one.
    fn answer_list(&self, asker: Asker, request: &RequestBody, turn: &mut Turn<'_>) -> bool {
        match request {
            // 1.0 has no error for a port that is not there.
            RequestBody::PortStats(port)
                if asker.version == Version::V1_0 && self.asked_port(*port, BAD_PORT).is_err() =>
            {
                self.reply(asker, Vec::new(), ReplyBody::PortStats, turn);
            }
            RequestBody::GroupDesc => {
                self.reply(asker, self.group_descriptions(), ReplyBody::GroupDesc, turn);
            }
            RequestBody::MeterConfig(id) if *id == METER_ALL || self.meters.contains_key(id) => {
                self.reply(asker, self.meter_configs(*id), ReplyBody::MeterConfig, turn);
            }
            _ => return false,
        }
        true
    }

    fn question_of(
        &self,
        wanted: FlowStatsRequest,
        question: impl FnOnce(FlowStatsRequest) -> Question,
    ) -> Result<Question, Refusal> {
        /// 1.0: the table for emergencies, which is empty.
        const EMERGENCY: u8 = 0xfe;
        if !matches!(wanted.table_id, 0 | TABLE_ALL | EMERGENCY) {
            let why = format!("the switch of a slice has no table {}", wanted.table_id);
            return Err(Refusal::new(BAD_TABLE_ID, why));
        }
        flow::canonical::check_prerequisites(&wanted.matching)?;
        Ok(question(wanted))
    }

    /// The physical port of a request; ANY stays.
    fn asked_port(&self, port: PortNo, error: flow::ErrorCode) -> Result<PortNo, Refusal> {
        if port == PortNo::ANY {
            return Ok(port);
        }
        let there = self.space.port(port).filter(|port| port.facts.is_some());
        let physical = there.map(|port| port.plan.port);
        physical.ok_or_else(|| Refusal::new(error, format!("port {port} is not in the slice")))
    }

    /// The reply to what the virtual switch knows itself.
    fn own_reply(&self, version: Version, request: RequestBody) -> Result<ReplyBody, Refusal> {
        Ok(match request {
            RequestBody::Desc => ReplyBody::Desc(self.description()),
            RequestBody::Table => ReplyBody::Table(vec![self.table(version)]),
            RequestBody::PortDesc => ReplyBody::PortDesc(self.describe_ports(version)),
            RequestBody::TableFeatures(wanted) if wanted.is_empty() => {
                ReplyBody::TableFeatures(vec![table_features::describe(self.allowance.rules_max())])
            }
            RequestBody::TableFeatures(_) => {
                return Err(Refusal::new(TABLE_FEATURES_EPERM, "the table of a slice cannot be changed"));
            }
            RequestBody::Group(_) => ReplyBody::Group(Vec::new()),
            RequestBody::GroupFeatures => ReplyBody::GroupFeatures(self.group_features()),
            RequestBody::Meter(_) => ReplyBody::Meter(Vec::new()),
            RequestBody::MeterFeatures => ReplyBody::MeterFeatures(self.meter_features()),
            RequestBody::Experimenter(_) => {
                return Err(Refusal::new(BAD_EXPERIMENTER, "a slice knows no experimenter's statistics"));
            }
            _ => return Err(Refusal::new(BAD_MULTIPART, "a slice has no such statistics")),
        })
    }

    fn group_descriptions(&self) -> Vec<GroupDesc> {
        let describe = |(id, group): (&u32, &Group)| GroupDesc {
            group_type: group.group_type,
            group_id: *id,
            buckets: group.buckets.clone(),
        };
        self.groups.iter().map(describe).collect()
    }

    fn group_features(&self) -> GroupFeatures {
        /// All four types.
        const TYPES: u32 = 0b1111;
        /// OFPGFC_SELECT_WEIGHT and OFPGFC_SELECT_LIVENESS.
        const CAPABILITIES: u32 = 0b11;
        let most = count(&self.numbers.groups);
        let actions = table_features::bucket_actions();
        GroupFeatures {
            types: TYPES,
            capabilities: CAPABILITIES,
            max_groups: [most; 4],
            actions: [actions; 4],
        }
    }

    fn meter_configs(&self, wanted: u32) -> Vec<MeterConfig> {
        let is_meant = |(id, _): &(&u32, &Meter)| wanted == METER_ALL || **id == wanted;
        let config = |(id, meter): (&u32, &Meter)| MeterConfig {
            flags: meter.flags,
            meter_id: *id,
            bands: meter.bands.clone(),
        };
        self.meters.iter().filter(is_meant).map(config).collect()
    }

    fn meter_features(&self) -> MeterFeatures {
        /// Drop and remark.
        const BANDS: u32 = 0b110;
        /// kbit/s, packets/s, bursts, statistics.
        const CAPABILITIES: u32 = 0b1111;
        let most = count(&self.numbers.meters);
        MeterFeatures {
            max_meter: most,
            band_types: BANDS,
            capabilities: CAPABILITIES,
            max_bands: BANDS_MAX as u8,
            max_color: 0,
        }
    }

    fn description(&self) -> SwitchDesc {
        /// The text of `dp_desc` has 256 bytes with its NUL.
        const DESCRIPTION_MAX: usize = 255;
        let mut dp_desc: String = format!("{} of slice {}", self.shown_as, self.slice);
        dp_desc.retain(|it| it != '\0');
        dp_desc.truncate(dp_desc.floor_char_boundary(DESCRIPTION_MAX));
        SwitchDesc {
            mfr_desc: "Burnet".to_owned(),
            hw_desc: "a switch of a slice".to_owned(),
            sw_desc: env!("CARGO_PKG_VERSION").to_owned(),
            serial_num: "None".to_owned(),
            dp_desc,
        }
    }

    fn table(&self, version: Version) -> TableStats {
        let is_v10 = version == Version::V1_0;
        TableStats {
            table_id: 0,
            name: if is_v10 { "slice".to_owned() } else { String::new() },
            wildcards: if is_v10 { ALL_WILDCARDS } else { 0 },
            max_entries: if is_v10 { self.allowance.rules_max() } else { 0 },
            active_count: u32::try_from(self.rules.len()).unwrap_or(u32::MAX),
            lookup_count: NOT_COUNTED,
            matched_count: NOT_COUNTED,
        }
    }

    /// A part of the physical switch's answer.
    pub(crate) fn on_statistics(&mut self, ticket: u64, more: bool, body: ReplyBody, turn: &mut Turn<'_>) {
        if self.pending.is_leftovers(ticket) {
            return self.on_leftovers(ticket, more, &body, turn);
        }
        let Some(asking) = self.pending.asking_mut(ticket) else { return };
        let own = &self.rules;
        match body {
            ReplyBody::Flow(entries) => entries.iter().for_each(|entry| {
                let number = entry.cookie & COOKIE_MASK;
                // As many sums as the slice has rules, however long the answer is.
                if own.get(number).is_some() {
                    asking.rules.entry(number).or_default().add(entry);
                }
            }),
            ReplyBody::PortStats(ports) => {
                let mine = ports.into_iter().filter(|port| self.space.shown(port.port_no).is_some());
                asking.ports.extend(mine);
            }
            ReplyBody::Queue(queues) => {
                let mine = queues.into_iter().filter(|queue| self.space.shown(queue.port_no).is_some());
                asking.queues.extend(mine);
            }
            ReplyBody::Group(counted) => asking.groups.extend(counted.into_iter().filter_map(|it| {
                let (id, group) = self.groups.iter().find(|(_, group)| group.physical == it.group_id)?;
                let refers = |rule: &&Rule| rule.refers_to(*id);
                let ref_count = u32::try_from(own.iter().filter(refers).count()).unwrap_or(u32::MAX);
                Some(GroupStats {
                    group_id: *id,
                    ref_count,
                    buckets: gathered(&it.buckets, &group.spread),
                    ..it
                })
            })),
            ReplyBody::Meter(counted) => asking.meters.extend(counted.into_iter().filter_map(|it| {
                let (id, _) = self.meters.iter().find(|(_, meter)| meter.physical == it.meter_id)?;
                let uses = |rule: &&Rule| rule.instructions.contains(&Instruction::Meter(*id));
                let flow_count = u32::try_from(own.iter().filter(uses).count()).unwrap_or(u32::MAX);
                Some(MeterStats { meter_id: *id, flow_count, ..it })
            })),
            _ => {}
        }
        let is_too_long = asking.ports.len() > PARTS_ENTRIES_MAX || asking.queues.len() > PARTS_ENTRIES_MAX;
        if (!more || is_too_long)
            && let Some(Asked::Statistics { sender, asking }) = self.pending.take(ticket)
        {
            self.answer_asking(sender.asker, &asking, turn);
        }
    }

    fn answer_asking(&self, asker: Asker, asking: &Asking, turn: &mut Turn<'_>) {
        let now_ms = turn.now_ms;
        let entry = |rule: &Rule| FlowStats {
            // 1.0 has no flags here.
            flags: if asker.version == Version::V1_0 { 0 } else { rule.flags },
            ..entry(rule, asking, now_ms)
        };
        match &asking.question {
            Question::Flows(wanted) => {
                let entries = self.meant(wanted).map(entry).collect();
                self.reply(asker, entries, ReplyBody::Flow, turn);
            }
            Question::Aggregate(wanted) => {
                let mut sum = AggregateStats::default();
                for entry in self.meant(wanted).map(entry) {
                    sum.packet_count = sum.packet_count.saturating_add(entry.packet_count);
                    sum.byte_count = sum.byte_count.saturating_add(entry.byte_count);
                    sum.flow_count = sum.flow_count.saturating_add(1);
                }
                let reply = MultipartReply { flags: 0, body: ReplyBody::Aggregate(sum) };
                self.answer(asker, Body::MultipartReply(reply), turn);
            }
            Question::Ports(port) => {
                let shown = asking.ports.iter().filter_map(|it| self.shown_counters(it));
                let entries = shown.filter(|it| *port == PortNo::ANY || it.port_no == *port).collect();
                self.reply(asker, entries, ReplyBody::PortStats, turn);
            }
            Question::Groups(id) => {
                let mine = asking.groups.iter().filter(|it| *id == GROUP_ALL || it.group_id == *id);
                self.reply(asker, mine.cloned().collect(), ReplyBody::Group, turn);
            }
            Question::Meters(id) => {
                let mine = asking.meters.iter().filter(|it| *id == METER_ALL || it.meter_id == *id);
                self.reply(asker, mine.cloned().collect(), ReplyBody::Meter, turn);
            }
            Question::Queues { port } => {
                let shown = asking.queues.iter().filter_map(|it| self.shown_queue(it));
                let entries = shown.filter(|it| *port == PortNo::ANY || it.port_no == *port).collect();
                self.reply(asker, entries, ReplyBody::Queue, turn);
            }
        }
    }

    fn meant(&self, wanted: &FlowStatsRequest) -> impl Iterator<Item = &Rule> {
        let selection = Selection {
            matching: &wanted.matching,
            strict: None,
            cookie: wanted.cookie,
            cookie_mask: wanted.cookie_mask,
            out_port: wanted.out_port,
            out_group: wanted.out_group,
        };
        let is_there = matches!(wanted.table_id, 0 | TABLE_ALL);
        let numbers = if is_there { self.rules.select(&selection) } else { Vec::new() };
        let mut rules: Vec<&Rule> = numbers.into_iter().filter_map(|number| self.rules.get(number)).collect();
        rules.sort_by_key(|rule| Reverse(rule.priority));
        rules.into_iter()
    }

    /// The counters of a port that no other slice has. Those of others cannot be split.
    fn shown_counters(&self, counted: &PortStats) -> Option<PortStats> {
        let port = self.space.port(self.space.shown(counted.port_no)?)?;
        let port_no = port.plan.shown_as;
        if port.plan.is_edge {
            return Some(PortStats { port_no, ..*counted });
        }
        let PortStats { duration_s, duration_ns, .. } = *counted;
        let none = NOT_COUNTED;
        Some(PortStats {
            port_no,
            rx_packets: none,
            tx_packets: none,
            rx_bytes: none,
            tx_bytes: none,
            rx_dropped: none,
            tx_dropped: none,
            rx_errors: none,
            tx_errors: none,
            rx_frame_err: none,
            rx_over_err: none,
            rx_crc_err: none,
            collisions: none,
            duration_s,
            duration_ns,
        })
    }

    fn shown_queue(&self, counted: &QueueStats) -> Option<QueueStats> {
        let port = self.space.port(self.space.shown(counted.port_no)?)?;
        port.plan.is_edge.then_some(QueueStats { port_no: port.plan.shown_as, ..*counted })
    }

    /// Replies in parts that fit into a message. An entry that the controller's version cannot express is left out.
    fn reply<T: Clone>(
        &self,
        asker: Asker,
        entries: Vec<T>,
        body: impl Fn(Vec<T>) -> ReplyBody,
        turn: &mut Turn<'_>,
    ) {
        let mut parts = vec![(0, Vec::new())];
        for entry in entries {
            let reply = MultipartReply { flags: 0, body: body(vec![entry.clone()]) };
            let message = Message { version: asker.version, xid: 0, body: Body::MultipartReply(reply) };
            let mut bytes = Vec::new();
            if message.encode(&mut bytes).is_err() {
                continue;
            }
            match parts.last_mut() {
                Some((length, part)) if *length + bytes.len() <= PART_LEN || part.is_empty() => {
                    *length += bytes.len();
                    part.push(entry);
                }
                _ => parts.push((bytes.len(), vec![entry])),
            }
        }
        let last = parts.len() - 1;
        for (number, (_, part)) in parts.into_iter().enumerate() {
            let flags = if number < last { MULTIPART_MORE } else { 0 };
            self.answer(asker, Body::MultipartReply(MultipartReply { flags, body: body(part) }), turn);
        }
    }
}

/// The entry of a rule.
fn entry(rule: &Rule, asking: &Asking, now_ms: u64) -> FlowStats {
    let counted = asking.rules.get(&rule.number).copied().unwrap_or_default();
    let lived = counted.lived.max(lived(now_ms.saturating_sub(rule.at_ms)));
    FlowStats {
        table_id: 0,
        duration_s: lived.0,
        duration_ns: lived.1,
        priority: rule.priority,
        idle_timeout_s: rule.idle_timeout_s,
        hard_timeout_s: rule.hard_timeout_s,
        flags: rule.flags,
        cookie: rule.cookie,
        packet_count: counted.packets.saturating_add(rule.gone.0),
        byte_count: counted.bytes.saturating_add(rule.gone.1),
        matching: rule.matching.clone(),
        instructions: rule.instructions.clone(),
    }
}

/// The counters of a tenant's buckets: each is the sum of those that it became in the physical switch.
fn gathered(counted: &[(u64, u64)], spread: &[usize]) -> Vec<(u64, u64)> {
    let mut rest = counted;
    let sum = |part: &[(u64, u64)]| {
        part.iter().fold((0_u64, 0_u64), |sum, it| (sum.0.saturating_add(it.0), sum.1.saturating_add(it.1)))
    };
    let of_bucket = |count: &usize| {
        let (part, behind) = rest.split_at((*count).min(rest.len()));
        rest = behind;
        sum(part)
    };
    spread.iter().map(of_bucket).collect()
}

/// The most ports or queues of an answer. A longer one is cut here: no switch has so many.
const PARTS_ENTRIES_MAX: usize = 16_384;

impl Counted {
    fn add(&mut self, entry: &FlowStats) {
        self.packets = self.packets.saturating_add(entry.packet_count);
        self.bytes = self.bytes.saturating_add(entry.byte_count);
        self.lived = self.lived.max((entry.duration_s, entry.duration_ns));
    }
}

/// The request for all rules. The kernel gives the slice only its own.
pub(crate) fn all_flows() -> RequestBody {
    RequestBody::Flow(FlowStatsRequest {
        table_id: 0,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        cookie: 0,
        cookie_mask: 0,
        matching: Match::any(),
    })
}
