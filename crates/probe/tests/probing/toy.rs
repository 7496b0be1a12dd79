//! A toy switch: one queue with fixed service times, and a table with a bound and a policy. It is an oracle that shares no code with
//! the models of the project.
//!
//! In: messages, frames and time. Out: the same, and nothing else. It knows as much OpenFlow as a probe sends.

use flow::frame::FrameFields;
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use probe::virtual_time::{Effects, Subject};
use std::collections::{BTreeMap, HashMap, VecDeque};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;

/// What the toy does with a rule when its table is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Full {
    Refuse,
    Ignore,
    Spill,
    /// By age; or by the last packet.
    EvictOldest,
    EvictLeastRecentlyUsed,
    EvictLeastUsed,
    EvictLowestPriority,
    EvictNewest,
}

#[derive(Clone, Debug)]
pub struct Toy {
    pub version: Version,
    pub packet_in_ns: u64,
    pub packet_out_ns: u64,
    pub add_ns: u64,
    /// What each rule in the table adds to that.
    pub add_per_rule_ns: u64,
    /// What each rule below or above costs on top.
    pub per_lower_ns: u64,
    pub per_higher_ns: u64,
    pub modify_ns: u64,
    pub delete_ns: u64,
    pub echo_ns: u64,
    pub barrier_ns: u64,
    pub statistics_ns: u64,
    pub entry_ns: u64,
    pub ingress_ns: u64,
    pub egress_ns: u64,
    pub entries: usize,
    pub full: Full,
    /// Adds in hardware a second and burst; the others go to software.
    pub above: Option<(f64, f64)>,
    pub software_ns: u64,
    /// How much later than its barrier a rule is there.
    pub late_ns: u64,
    pub echo_first: bool,
    pub barrier_first: bool,
    pub gap_in_modify: bool,
    pub refuses_ipv6: bool,
    pub scan_ns: u64,
    pub buffers: u32,
    pub limit: Option<(f64, f64)>,
    pub promotion: Option<(u64, usize, bool)>,
    pub foreign_rules: usize,
    pub crossed: bool,
    pub cut: bool,
    pub leaves_at_ns: Option<u64>,
    pub datapath_id: u64,
    /// It stands still at the start of each period: (period, how long).
    pub stands_still: Option<(u64, u64)>,
    pub state: State,
}

#[derive(Clone, Debug)]
struct Rule {
    number: u64,
    matching: Match,
    priority: u16,
    cookie: u64,
    out: Vec<PortNo>,
    is_software: bool,
    visible_ns: u64,
    hidden: (u64, u64),
    used_ns: u64,
    packets: u64,
    hard_s: u16,
    added_ns: u64,
}

#[derive(Clone, Debug)]
enum Happens {
    Message(Message),
    Frame(PortNo, Vec<u8>),
    Expire(u64),
    Promote,
    Leave,
}

#[derive(Clone, Debug, Default)]
pub struct State {
    now: u64,
    queue: VecDeque<Job>,
    serving: Option<(u64, Job)>,
    rules: BTreeMap<u64, Rule>,
    index: HashMap<(Field, u128), Vec<u64>>,
    wild: Vec<u64>,
    numbered: u64,
    later: BTreeMap<(u64, u64), Happens>,
    sequence: u64,
    tokens: (f64, u64),
    limit: (f64, u64),
    software_free: u64,
    buffered: u32,
    promotes: bool,
    has_sent_hello: bool,
}

#[derive(Clone, Debug)]
enum Job {
    PacketIn(PortNo, Vec<u8>),
    Message(Message),
}

impl Toy {
    pub fn new() -> Self {
        Toy {
            version: Version::V1_3,
            packet_in_ns: 5 * MS,
            packet_out_ns: 2 * MS,
            add_ns: 10 * MS,
            add_per_rule_ns: 0,
            per_lower_ns: 0,
            per_higher_ns: 0,
            modify_ns: 8 * MS,
            delete_ns: 4 * MS,
            echo_ns: 300 * US,
            barrier_ns: 200 * US,
            statistics_ns: MS,
            entry_ns: 50 * US,
            ingress_ns: 3 * MS,
            egress_ns: 7 * MS,
            entries: 300,
            full: Full::Refuse,
            above: None,
            software_ns: 2 * MS,
            late_ns: 0,
            echo_first: false,
            barrier_first: false,
            gap_in_modify: false,
            refuses_ipv6: false,
            scan_ns: 0,
            buffers: 0,
            limit: None,
            promotion: None,
            foreign_rules: 0,
            crossed: false,
            cut: false,
            leaves_at_ns: None,
            datapath_id: 1,
            stands_still: None,
            state: State::default(),
        }
    }

    fn later(&mut self, at: u64, what: Happens) {
        self.state.sequence += 1;
        let key = (at.max(self.state.now), self.state.sequence);
        self.state.later.insert(key, what);
    }

    fn send(&mut self, at: u64, xid: u32, body: Body) {
        self.later(at, Happens::Message(Message { version: self.version, xid, body }));
    }

    fn refuse(&mut self, xid: u32, kind: u16, code: u16) {
        let error = ErrorMessage { kind, code, experimenter: None, data: Vec::new() };
        self.send(self.state.now, xid, Body::Error(error));
    }

    fn service_ns(&self, job: &Job) -> u64 {
        let Job::Message(message) = job else { return self.packet_in_ns };
        match &message.body {
            Body::PacketOut(_) => self.packet_out_ns,
            Body::EchoRequest(_) => self.echo_ns,
            Body::BarrierRequest => self.barrier_ns,
            Body::MultipartRequest(request) => match &request.body {
                RequestBody::Flow(_) => self.statistics_ns + self.entry_ns * self.state.rules.len() as u64,
                _ => self.statistics_ns,
            },
            Body::FlowMod(change) => match change.command {
                FLOW_ADD => self.add_service_ns(change.priority),
                FLOW_MODIFY | FLOW_MODIFY_STRICT => self.modify_ns,
                FLOW_DELETE => self.delete_ns * self.state.rules.len() as u64,
                _ => self.delete_ns,
            },
            _ => self.echo_ns,
        }
    }

    fn add_service_ns(&self, priority: u16) -> u64 {
        let rules = self.state.rules.values().filter(|rule| !rule.is_software);
        let (mut lower, mut higher, mut all) = (0, 0, 0);
        for rule in rules {
            all += 1;
            lower += u64::from(rule.priority < priority);
            higher += u64::from(rule.priority > priority);
        }
        self.add_ns + all * self.add_per_rule_ns + lower * self.per_lower_ns + higher * self.per_higher_ns
    }

    fn push(&mut self, job: Job) {
        let jumps = match &job {
            Job::Message(message) => {
                (self.echo_first && matches!(message.body, Body::EchoRequest(_)))
                    || (self.barrier_first && matches!(message.body, Body::BarrierRequest))
            }
            Job::PacketIn(..) => false,
        };
        if jumps {
            self.state.queue.push_front(job)
        } else {
            self.state.queue.push_back(job)
        }
        self.begin();
    }

    fn begin(&mut self) {
        if self.state.serving.is_none()
            && let Some(job) = self.state.queue.pop_front()
        {
            let until = self.state.now + self.service_ns(&job);
            if self.gap_in_modify
                && let Job::Message(Message { body: Body::FlowMod(change), .. }) = &job
                && matches!(change.command, FLOW_MODIFY | FLOW_MODIFY_STRICT)
            {
                let hidden = (until - self.modify_ns / 2, until);
                let same = self.state.rules.values_mut().filter(|rule| rule.matching == change.matching);
                same.for_each(|rule| rule.hidden = hidden);
            }
            self.state.serving = Some((until, job));
        }
    }

    fn serve(&mut self, job: Job) {
        match job {
            Job::PacketIn(port, frame) => {
                let buffer_id =
                    if self.state.buffered < self.buffers { self.state.buffered } else { NO_BUFFER };
                self.state.buffered += 1;
                let bytes = if buffer_id == NO_BUFFER { frame.len() } else { frame.len().min(128) };
                let packet = PacketIn {
                    buffer_id,
                    total_len: frame.len() as u16,
                    reason: 0,
                    table_id: 0,
                    cookie: 0,
                    matching: Match::any().with(Field::InPort, port),
                    data: frame[..bytes].to_vec(),
                };
                self.send(self.state.now + self.ingress_ns, 0, Body::PacketIn(packet));
            }
            Job::Message(message) => self.carry_out(message),
        }
    }

    fn carry_out(&mut self, message: Message) {
        let (now, xid) = (self.state.now, message.xid);
        match message.body {
            Body::EchoRequest(payload) => self.send(now, xid, Body::EchoReply(payload)),
            Body::BarrierRequest => self.send(now, xid, Body::BarrierReply),
            Body::FeaturesRequest => {
                let reply = FeaturesReply {
                    datapath_id: flow::DatapathId(self.datapath_id),
                    n_buffers: self.buffers,
                    n_tables: 1,
                    auxiliary_id: 0,
                    capabilities: 0,
                    actions: 0,
                    ports: Vec::new(),
                };
                self.send(now, xid, Body::FeaturesReply(reply));
            }
            Body::MultipartRequest(request) => {
                let body = match request.body {
                    RequestBody::Desc => ReplyBody::Desc(SwitchDesc {
                        mfr_desc: "Toys".to_owned(),
                        hw_desc: "Toy".to_owned(),
                        sw_desc: "1.0".to_owned(),
                        ..SwitchDesc::default()
                    }),
                    _ => ReplyBody::Flow(self.entries_of()),
                };
                self.send(now, xid, Body::MultipartReply(MultipartReply { flags: 0, body }));
            }
            Body::PacketOut(packet) => {
                let ports = ports_of(&[Instruction::ApplyActions(packet.actions)]);
                for port in ports {
                    self.later(now + self.egress_ns, Happens::Frame(port, packet.data.clone()));
                }
            }
            Body::FlowMod(change) => self.change(change, xid),
            _ => {}
        }
    }

    fn entries_of(&self) -> Vec<FlowStats> {
        let foreign = (0..self.foreign_rules).map(|_| entry_of(&Match::any(), 0, 5));
        foreign
            .chain(self.state.rules.values().map(|rule| entry_of(&rule.matching, rule.cookie, rule.packets)))
            .collect()
    }

    fn change(&mut self, change: FlowMod, xid: u32) {
        match change.command {
            FLOW_ADD => self.add(change, xid),
            FLOW_MODIFY | FLOW_MODIFY_STRICT => {
                let out = ports_of(&change.instructions);
                let same = self.state.rules.values_mut().filter(|rule| rule.matching == change.matching);
                same.for_each(|rule| rule.out = out.clone());
            }
            FLOW_DELETE => {
                self.foreign_rules = 0;
                let all: Vec<u64> = self.state.rules.keys().copied().collect();
                all.into_iter().for_each(|number| self.remove(number));
            }
            _ => {
                let same =
                    |rule: &&Rule| rule.matching == change.matching && rule.priority == change.priority;
                let number = self.state.rules.values().find(same).map(|rule| rule.number);
                number.into_iter().for_each(|number| self.remove(number));
            }
        }
    }

    fn add(&mut self, change: FlowMod, xid: u32) {
        if self.refuses_ipv6 && change.matching.get(Field::EthType).is_some_and(|(value, _)| value == 0x86dd)
        {
            return self.refuse(xid, 4, 6);
        }
        let now = self.state.now;
        let hardware = self.state.rules.values().filter(|rule| !rule.is_software).count();
        let mut is_software = false;
        if let Some((rate, burst)) = self.above {
            let (tokens, at) = self.state.tokens;
            let tokens = if at == 0 { burst } else { (tokens + (now - at) as f64 / 1e9 * rate).min(burst) };
            is_software = tokens < 1.0;
            self.state.tokens = (if is_software { tokens } else { tokens - 1.0 }, now);
        }
        if !is_software && hardware >= self.entries {
            let by = |key: fn(&Rule) -> (u64, u64)| {
                self.state
                    .rules
                    .values()
                    .filter(|rule| !rule.is_software)
                    .min_by_key(|rule| key(rule))
                    .map(|r| r.number)
            };
            let victim = match self.full {
                Full::Refuse => return self.refuse(xid, 5, 1),
                Full::Ignore => return,
                Full::Spill => None,
                Full::EvictOldest => by(|rule| (rule.number, 0)),
                Full::EvictNewest => by(|rule| (u64::MAX - rule.number, 0)),
                Full::EvictLeastRecentlyUsed => by(|rule| (rule.used_ns, rule.number)),
                Full::EvictLeastUsed => by(|rule| (rule.packets, rule.number)),
                Full::EvictLowestPriority => by(|rule| (u64::from(rule.priority), rule.number)),
            };
            is_software = victim.is_none();
            victim.into_iter().for_each(|victim| self.remove(victim));
        }
        self.insert(change, is_software);
    }

    fn insert(&mut self, change: FlowMod, is_software: bool) {
        let now = self.state.now;
        self.state.numbered += 1;
        let number = self.state.numbered;
        match key_of_match(&change.matching) {
            Some(key) => self.state.index.entry(key).or_default().push(number),
            None => self.state.wild.push(number),
        }
        if change.hard_timeout_s > 0 {
            let end = now + u64::from(change.hard_timeout_s) * 1000 * MS;
            let scan = self.scan_ns.max(1);
            // Scans begin at an odd time.
            let seen = end.saturating_sub(3_333_333).div_ceil(scan) * scan + 3_333_333;
            self.later(if self.scan_ns == 0 { end } else { seen }, Happens::Expire(number));
        }
        if is_software
            && let Some((period, ..)) = self.promotion
            && !std::mem::replace(&mut self.state.promotes, true)
        {
            let next = now.div_ceil(period) * period;
            self.later(next, Happens::Promote);
        }
        let rule = Rule {
            number,
            out: ports_of(&change.instructions),
            priority: change.priority,
            cookie: change.cookie,
            matching: change.matching,
            is_software,
            visible_ns: now + self.late_ns,
            hidden: (0, 0),
            used_ns: now,
            packets: 0,
            hard_s: change.hard_timeout_s,
            added_ns: now,
        };
        self.state.rules.insert(number, rule);
    }

    fn remove(&mut self, number: u64) {
        let Some(rule) = self.state.rules.remove(&number) else { return };
        match key_of_match(&rule.matching) {
            Some(key) => {
                if let Some(there) = self.state.index.get_mut(&key) {
                    there.retain(|other| *other != number);
                }
            }
            None => self.state.wild.retain(|other| *other != number),
        }
    }

    fn promote(&mut self) {
        let Some((period, batch, newest)) = self.promotion else { return };
        let room =
            self.entries.saturating_sub(self.state.rules.values().filter(|rule| !rule.is_software).count());
        let mut waiting: Vec<u64> =
            self.state.rules.values().filter(|rule| rule.is_software).map(|rule| rule.number).collect();
        if newest {
            waiting.reverse();
        }
        for number in waiting.iter().take(batch.min(room)) {
            if let Some(rule) = self.state.rules.get_mut(number) {
                rule.is_software = false;
            }
        }
        self.state.promotes = !waiting.is_empty();
        if self.state.promotes {
            self.later(self.state.now + period, Happens::Promote);
        }
    }

    fn expire(&mut self, number: u64) {
        let Some(rule) = self.state.rules.get(&number).cloned() else { return };
        self.remove(number);
        let removed = FlowRemoved {
            matching: rule.matching,
            cookie: rule.cookie,
            priority: rule.priority,
            reason: 1,
            table_id: 0,
            duration_s: ((self.state.now - rule.added_ns) / (1000 * MS)) as u32,
            duration_ns: 0,
            idle_timeout_s: 0,
            hard_timeout_s: rule.hard_s,
            packet_count: rule.packets,
            byte_count: 0,
        };
        self.send(self.state.now, 0, Body::FlowRemoved(removed));
    }

    fn rule_for(&self, frame: &[u8]) -> Option<u64> {
        let fields = FrameFields::read(frame).from_port(PortNo(1));
        let now = self.state.now;
        let keys = [Field::EthDst, Field::Ipv4Dst, Field::Ipv6Dst];
        let keyed = keys.iter().filter_map(|field| self.state.index.get(&(*field, fields.get(*field)?)));
        let all = keyed.flatten().chain(&self.state.wild).filter_map(|number| self.state.rules.get(number));
        let sees = |rule: &&Rule| {
            rule.visible_ns <= now
                && !(rule.hidden.0..rule.hidden.1).contains(&now)
                && rule.matching.matches(&fields)
        };
        all.filter(sees).max_by_key(|rule| rule.priority).map(|rule| rule.number)
    }
}

fn ports_of(instructions: &[Instruction]) -> Vec<PortNo> {
    let actions = instructions.iter().flat_map(|instruction| match instruction {
        Instruction::ApplyActions(actions) => actions.clone(),
        _ => Vec::new(),
    });
    actions
        .filter_map(|action| if let Action::Output { port, .. } = action { Some(port) } else { None })
        .collect()
}

fn key_of_match(matching: &Match) -> Option<(Field, u128)> {
    let keys = [Field::EthDst, Field::Ipv4Dst, Field::Ipv6Dst];
    keys.iter().find_map(|field| matching.get(*field).map(|(value, _)| (*field, value)))
}

fn entry_of(matching: &Match, cookie: u64, packets: u64) -> FlowStats {
    FlowStats {
        table_id: 0,
        duration_s: 0,
        duration_ns: 0,
        priority: 1,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: 0,
        cookie,
        packet_count: packets,
        byte_count: 0,
        matching: matching.clone(),
        instructions: Vec::new(),
    }
}

impl Subject for Toy {
    fn on_connected(&mut self, now_ns: u64, out: &mut Effects) {
        self.state.now = now_ns;
        out.messages.push(Message { version: self.version, xid: 0, body: Body::Hello(Hello::default()) });
        if let Some(at) = self.leaves_at_ns {
            self.later(at, Happens::Leave);
        }
    }

    fn on_message(&mut self, message: &Message, now_ns: u64, _: &mut Effects) {
        self.state.now = now_ns;
        if matches!(message.body, Body::Hello(_)) {
            self.state.has_sent_hello = true;
        } else {
            self.push(Job::Message(message.clone()));
        }
    }

    fn on_frame(&mut self, port: PortNo, frame: Vec<u8>, now_ns: u64, out: &mut Effects) {
        self.state.now = now_ns;
        let Some(number) = self.rule_for(&frame) else {
            if self.version == Version::V1_0 {
                self.punt(port, frame);
            }
            return;
        };
        let Some(rule) = self.state.rules.get_mut(&number) else { return };
        (rule.used_ns, rule.packets) = (now_ns, rule.packets + 1);
        let (is_software, ports) = (rule.is_software, rule.out.clone());
        for to in ports {
            if to == PortNo::CONTROLLER {
                self.punt(port, frame.clone());
            } else if is_software {
                let leaves = self.state.software_free.max(now_ns) + self.software_ns;
                if leaves < now_ns + 100 * MS {
                    self.state.software_free = leaves;
                    self.later(leaves, Happens::Frame(to, frame.clone()));
                }
            } else if let Some((period, length)) = self.stands_still
                && now_ns % period < length
            {
                self.later(now_ns / period * period + length, Happens::Frame(to, frame.clone()));
            } else {
                out.frames.push((self.out_of(to), frame.clone()));
            }
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        let serving = self.state.serving.as_ref().map(|(until, _)| *until);
        let later = self.state.later.first_key_value().map(|((at, _), _)| *at);
        [serving, later].into_iter().flatten().min()
    }

    fn on_time(&mut self, now_ns: u64, out: &mut Effects) {
        self.state.now = now_ns;
        if let Some((_, job)) = self.state.serving.take_if(|(until, _)| *until <= now_ns) {
            self.serve(job);
            self.begin();
        }
        while let Some(first) = self.state.later.first_entry().filter(|first| first.key().0 <= now_ns) {
            match first.remove() {
                Happens::Message(message) => out.messages.push(message),
                Happens::Frame(port, frame) => out.frames.push((self.out_of(port), frame)),
                Happens::Expire(number) => self.expire(number),
                Happens::Promote => self.promote(),
                Happens::Leave => out.leaves = true,
            }
        }
        if self.cut {
            out.frames.retain(|(port, _)| *port != PortNo(2));
        }
    }
}

impl Toy {
    fn out_of(&self, port: PortNo) -> PortNo {
        if self.crossed { PortNo(3 - port.0) } else { port }
    }

    fn punt(&mut self, port: PortNo, frame: Vec<u8>) {
        if let Some((rate, burst)) = self.limit {
            let (tokens, at) = self.state.limit;
            let now = self.state.now;
            let tokens = if at == 0 { burst } else { (tokens + (now - at) as f64 / 1e9 * rate).min(burst) };
            self.state.limit = (if tokens < 1.0 { tokens } else { tokens - 1.0 }, now);
            if tokens < 1.0 {
                return;
            }
        }
        self.push(Job::PacketIn(port, frame));
    }
}
