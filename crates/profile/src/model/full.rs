//! The whole model of a switch: one CPU for all messages, the tables behind it, and residual delays after it.
//!
//! In: inputs and the time. Out: outputs whose time has come, in the order in which they happen. Events of one moment have a fixed order,
//! so that the same inputs and the same seed have the same outputs. It never looks at a clock.

use super::bucket::TokenBucket;
use super::buffers::Buffers;
use super::draw::{Draw, nanoseconds};
use super::input::{Input, Message, MessageId, Miss, Packet, Rule};
use super::leaving::{Lane, Leaving};
use super::output::{Loss, Output, Refusal};
use super::quantile_match::QuantileMatch;
use super::random::{Random, Stream};
use super::scan::ScanTimes;
use super::software_path::SoftwarePath;
use super::tables::{Due, NotAdded, Tables};
use super::waiting::{Waiting, WaitingRoom};
use crate::barrier::BarrierKind;
use crate::cpu::MessageType;
use crate::whole::Profile;

/// What the CPU does.
#[derive(Clone, Copy, Debug)]
enum CpuState {
    Idle,
    Serving {
        until_ns: u64,
        job: Waiting,
    },
    /// It has processed a flow mod. It waits for the caller's answers, and for the hardware if the profile says so.
    Finishing {
        job: Waiting,
        ended_ns: u64,
        has_waited: bool,
    },
}

/// The parts of the model that have a time at which something is due. At one moment, the first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Tables(Due),
    Leaving,
    Cpu,
    SoftwarePath,
}

/// The whole model.
#[derive(Clone, Debug)]
pub(super) struct FullModel {
    room: WaitingRoom,
    services: [Draw; MessageType::ALL.len()],
    entry_us: f64,
    cpu: CpuState,
    /// When the CPU has ended its last work.
    free_ns: u64,
    /// Whether the free CPU waits, since too much is on its way behind it.
    is_held_up: bool,
    limit: Option<TokenBucket>,
    buffers: Buffers,
    data_bytes: u16,
    ingress: Draw,
    egress: Draw,
    base: Option<QuantileMatch>,
    uniform: Random,
    leaving: Leaving,
    is_honest: bool,
    /// An honest barrier that the CPU has processed, and that is not answered yet.
    answering: Option<MessageId>,
    tables: Tables,
    software_path: Option<SoftwarePath>,
    /// The latest time that it was given or has reached.
    clock_ns: u64,
    /// Whether something may happen now that has no time of its own.
    has_more: bool,
}

impl FullModel {
    pub(super) fn new(profile: &Profile, seed: u64) -> Self {
        let service =
            |kind| Draw::new(&profile.cpu.service(kind).service_us, seed, Stream::Service(kind as u8));
        let packet_in = &profile.packet_in;
        let kind = &profile.barrier.kind;
        FullModel {
            room: WaitingRoom::new(&profile.cpu, !matches!(kind, BarrierKind::NotOrdering(_))),
            services: MessageType::ALL.map(service),
            entry_us: profile.cpu.statistics_entry_us,
            cpu: CpuState::Idle,
            free_ns: 0,
            is_held_up: false,
            limit: packet_in.limit.map(|limit| TokenBucket::new(limit.rate_per_s, limit.burst_packets)),
            buffers: Buffers::new(
                packet_in.buffers_packets.unwrap_or(0),
                nanoseconds(packet_in.buffer_life_us),
            ),
            data_bytes: packet_in.miss_send_bytes,
            ingress: Draw::new(&profile.delay.ingress_us, seed, Stream::Ingress),
            egress: Draw::new(&profile.delay.egress_us, seed, Stream::Egress),
            base: None,
            uniform: Random::new(seed, Stream::Base),
            leaving: Leaving::default(),
            is_honest: *kind == BarrierKind::Honest,
            answering: None,
            tables: Tables::new(profile, seed),
            software_path: profile.software.as_ref().map(|software| SoftwarePath::new(software, seed)),
            clock_ns: 0,
            has_more: false,
        }
    }

    pub(super) fn set_base(&mut self, base: QuantileMatch) {
        self.base = Some(base);
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(super) fn leaving(&self) -> &Leaving {
        &self.leaving
    }

    pub(super) fn room(&self) -> &WaitingRoom {
        &self.room
    }

    pub(super) fn scan_times(&self) -> ScanTimes {
        self.tables.expiry().times()
    }

    /// `observed_ns`: how long a real switch has worked on a packet, in the machine's time.
    pub(super) fn on_input(&mut self, input: Input, observed_ns: u64, now_ns: u64, out: &mut Vec<Output>) {
        self.clock_ns = self.clock_ns.max(now_ns);
        self.has_more = true;
        let now_ns = self.clock_ns;
        match input {
            Input::Miss(miss) => self.on_miss(&miss, observed_ns, out),
            Input::Message(message) => self.on_message(&message, out),
            Input::InSoftware { id, rule, length_bytes } => {
                self.tables.on_used(rule, now_ns, 1);
                let path = self.software_path.as_mut();
                match path.map(|path| path.push(id, length_bytes, now_ns)) {
                    Some(true) => {}
                    Some(false) => out.push(Output::Lost { id, why: Loss::SoftwareFull }),
                    None => out.push(Output::Forward { id }),
                }
            }
            Input::Added { id, rule } => {
                if !self.add(id, rule, out) {
                    self.release_nothing(id);
                }
            }
            Input::Refused(id) => self.release_nothing(id),
            Input::Restored(rule) => self.tables.restore(rule),
            Input::Modified(rule) => self.tables.modify(rule, now_ns, out),
            Input::Deleted(rule) => self.tables.delete(rule, now_ns, out),
            Input::Used { rule, at_ns, packets } => self.tables.on_used(rule, at_ns, packets),
        }
    }

    fn on_miss(&mut self, miss: &Miss, observed_ns: u64, out: &mut Vec<Output>) {
        let (id, now_ns) = (miss.id, self.clock_ns);
        if self.limit.as_mut().is_some_and(|limit| !limit.take(now_ns)) {
            return out.push(Output::Lost { id, why: Loss::PacketInLimit });
        }
        let quantile = match &mut self.base {
            Some(base) => Some(base.quantile(observed_ns, self.uniform.share())),
            None => None,
        };
        let waiting = Waiting {
            id,
            kind: MessageType::PacketIn,
            ready_ns: miss.arrived_ns.min(now_ns),
            quantile,
            rule: None,
            packet: Packet::None,
            amount: miss.length_bytes,
        };
        if !self.room.has_place(self.is_idle()) {
            return out.push(Output::Lost { id, why: Loss::QueueFull });
        }
        let buffer = if miss.may_be_buffered { self.buffers.keep(now_ns) } else { None };
        let wanted_bytes = u32::from(miss.wanted_bytes.unwrap_or(self.data_bytes));
        let amount = buffer.map_or(miss.length_bytes, |_| miss.length_bytes.min(wanted_bytes));
        let packet = buffer.map_or(Packet::None, Packet::Buffered);
        self.room.push(Waiting { packet, amount, ..waiting }, self.is_idle());
        self.begin_if_idle();
    }

    fn on_message(&mut self, message: &Message, out: &mut Vec<Output>) {
        let Message { id, kind, rule, packet, entries } = *message;
        let (ready_ns, quantile) = (self.clock_ns, None);
        let waiting = Waiting { id, kind, ready_ns, quantile, rule, packet, amount: entries };
        if !self.room.push(waiting, self.is_idle()) {
            out.push(Output::Lost { id, why: Loss::QueueFull });
        }
        self.begin_if_idle();
    }

    fn is_idle(&self) -> bool {
        matches!(self.cpu, CpuState::Idle)
    }

    /// When it has something to say, or something happens in it.
    #[inline]
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        if self.has_more { Some(self.clock_ns) } else { self.next_part().map(|(due, _)| due) }
    }

    #[inline]
    fn next_part(&self) -> Option<(u64, Part)> {
        let mut first = self.tables.next_due().map(|(due, what)| (due, Part::Tables(what)));
        let mut consider = |due: Option<u64>, part: Part| {
            if let Some(due) = due
                && first.is_none_or(|(earliest, _)| due < earliest)
            {
                first = Some((due, part));
            }
        };
        consider(self.leaving.next_due_ns(), Part::Leaving);
        if let CpuState::Serving { until_ns, .. } = self.cpu {
            consider(Some(until_ns), Part::Cpu);
        }
        consider(self.software_path.as_ref().and_then(SoftwarePath::next_due_ns), Part::SoftwarePath);
        first
    }

    /// Goes on until `now_ns`, or until an output that the caller answers.
    pub(super) fn on_time(&mut self, now_ns: u64, out: &mut Vec<Output>) {
        self.has_more = false;
        self.settle(out);
        while let Some((due, part)) = self.next_part().filter(|(due, _)| *due <= now_ns) {
            self.clock_ns = self.clock_ns.max(due);
            if self.on_due(part, out) {
                self.has_more = true;
                return;
            }
            self.settle(out);
        }
        self.clock_ns = self.clock_ns.max(now_ns);
    }

    /// The time of a part has come. Returns whether the caller must answer before anything else happens.
    fn on_due(&mut self, part: Part, out: &mut Vec<Output>) -> bool {
        match part {
            Part::Tables(what) => {
                self.tables.on_due(what, self.clock_ns, out);
                what == Due::Expiry
            }
            Part::Cpu => self.on_served(out),
            Part::Leaving => {
                out.extend(self.leaving.pop(self.clock_ns));
                false
            }
            Part::SoftwarePath => {
                let left = self.software_path.as_mut().and_then(SoftwarePath::pop);
                out.extend(left.map(|id| Output::Forward { id }));
                false
            }
        }
    }

    /// Does what has become possible: the CPU goes on, and a barrier is answered.
    fn settle(&mut self, out: &mut Vec<Output>) {
        if let CpuState::Finishing { job, ended_ns, has_waited } = self.cpu {
            if self.tables.cpu_waits() {
                self.cpu = CpuState::Finishing { job, ended_ns, has_waited: true };
            } else {
                let ended_ns = if has_waited { self.clock_ns } else { ended_ns };
                self.finish(&job, ended_ns, out);
            }
        }
        if let Some(id) = self.answering
            && self.leaving.has_no_message()
            && self.tables.is_settled()
        {
            self.answering = None;
            self.answer_barrier(id, out);
        }
        self.begin_if_idle();
    }

    #[inline]
    fn begin_if_idle(&mut self) {
        if !self.is_idle() || self.room.is_empty() {
            return;
        }
        if self.leaving.has_many_messages() || self.tables.has_many_changes() {
            self.is_held_up = true;
            return;
        }
        if std::mem::take(&mut self.is_held_up) {
            self.free_ns = self.free_ns.max(self.clock_ns);
        }
        self.begin();
    }

    /// The caller forgets messages that have not begun. They end without an output. Nothing begins by that: a free CPU waits for
    /// something else.
    pub(super) fn forget(&mut self, is_forgotten: impl Fn(MessageId) -> bool) {
        self.room.forget(is_forgotten);
    }

    fn begin(&mut self) {
        let Some(job) = self.room.take() else { return };
        let mut service = self.services[job.kind as usize].next_ns();
        if job.kind == MessageType::Statistics {
            service = service.saturating_add(nanoseconds(self.entry_us * f64::from(job.amount)));
        }
        let until_ns = self.free_ns.max(job.ready_ns).saturating_add(service);
        self.cpu = CpuState::Serving { until_ns, job };
    }

    /// The CPU has processed a message. Returns whether the caller must answer.
    fn on_served(&mut self, out: &mut Vec<Output>) -> bool {
        let CpuState::Serving { until_ns, job } = self.cpu else { return false };
        self.cpu = CpuState::Idle;
        self.free_ns = until_ns;
        let id = job.id;
        match job.kind {
            MessageType::PacketIn => self.send_packet_in(&job, until_ns, out),
            MessageType::PacketOut => match self.take_packet(job.packet) {
                Ok(()) => {
                    let leaves = until_ns.saturating_add(self.egress.next_ns()).max(self.clock_ns);
                    self.leaving.push(Lane::PacketOut, leaves, Output::CarryOut { id });
                }
                Err(why) => out.push(Output::Refuse { id, why }),
            },
            MessageType::Add if job.rule.is_some() => {
                if job.rule.is_some_and(|rule| self.carry_out_add(id, rule, out)) {
                    self.cpu = CpuState::Finishing { job, ended_ns: until_ns, has_waited: false };
                }
            }
            MessageType::Add | MessageType::Modify | MessageType::Delete => {
                out.push(Output::CarryOut { id });
                self.cpu = CpuState::Finishing { job, ended_ns: until_ns, has_waited: false };
                return true;
            }
            MessageType::Barrier if self.is_honest => self.answering = Some(id),
            MessageType::Barrier => self.answer_barrier(id, out),
            MessageType::Statistics | MessageType::Echo | MessageType::Other => {
                out.push(Output::CarryOut { id });
            }
        }
        false
    }

    fn send_packet_in(&mut self, job: &Waiting, served_ns: u64, out: &mut Vec<Output>) {
        if !self.leaving.has_place(Lane::PacketIn) {
            // Its buffer is free again.
            let _ = self.take_packet(job.packet);
            return out.push(Output::Lost { id: job.id, why: Loss::TooManyLeaving });
        }
        let residual = match job.quantile {
            Some(quantile) => self.ingress.at_ns(quantile),
            None => self.ingress.next_ns(),
        };
        let buffer = match job.packet {
            Packet::Buffered(buffer) => Some(buffer),
            Packet::None | Packet::Given => None,
        };
        let leaves = served_ns.saturating_add(residual).max(self.clock_ns);
        let output = Output::PacketIn { id: job.id, data_bytes: job.amount, buffer };
        self.leaving.push(Lane::PacketIn, leaves, output);
    }

    /// Returns whether the switch carries the add out.
    fn carry_out_add(&mut self, id: MessageId, rule: Rule, out: &mut Vec<Output>) -> bool {
        // The message is carried out before the data plane has its rule.
        let before = out.len();
        out.push(Output::CarryOut { id });
        let is_added = self.add(id, rule, out);
        if !is_added {
            out.remove(before);
        }
        is_added
    }

    fn add(&mut self, id: MessageId, rule: Rule, out: &mut Vec<Output>) -> bool {
        match self.tables.add(rule, self.clock_ns, out) {
            Ok(()) => return true,
            Err(NotAdded::Refused) => out.push(Output::Refuse { id, why: Refusal::TableFull }),
            Err(NotAdded::Ignored) => out.push(Output::Lost { id, why: Loss::Ignored }),
        }
        false
    }

    /// The flow mod that the CPU works on is refused, so that the packet that waits for it stays in its buffer.
    fn release_nothing(&mut self, id: MessageId) {
        if let CpuState::Finishing { job, .. } = &mut self.cpu
            && job.id == id
        {
            job.packet = Packet::None;
        }
    }

    fn take_packet(&mut self, packet: Packet) -> Result<(), Refusal> {
        match packet {
            Packet::None | Packet::Given => Ok(()),
            Packet::Buffered(buffer) => self.buffers.take(buffer, self.clock_ns),
        }
    }

    /// A flow mod is done, and the CPU is free. The packet that waited for it leaves after its residual delay.
    fn finish(&mut self, job: &Waiting, ended_ns: u64, out: &mut Vec<Output>) {
        self.cpu = CpuState::Idle;
        self.free_ns = self.free_ns.max(ended_ns);
        if job.packet == Packet::None {
            return;
        }
        match self.take_packet(job.packet) {
            Ok(()) => {
                let leaves = ended_ns.saturating_add(self.egress.next_ns()).max(self.clock_ns);
                self.leaving.push(Lane::FlowMod, leaves, Output::Release { id: job.id });
            }
            Err(why) => out.push(Output::NoBuffer { id: job.id, why }),
        }
    }

    /// The messages behind the barrier come in. The CPU has not begun with them before.
    fn answer_barrier(&mut self, id: MessageId, out: &mut Vec<Output>) {
        out.push(Output::AnswerBarrier { id });
        self.free_ns = self.free_ns.max(self.clock_ns);
        self.room.on_answered();
    }
}
