//! The execution of one script: starts steps at their time, sends test frames, and attributes what comes back.
//!
//! ```text
//!   Script ──> Run ──> messages and frames, with numbers of its own
//!   replies by xid, frames by sequence number ──> Run ──> Record
//! ```
//!
//! In: the time, messages and frames. Out: commands, and the record when all steps are over. It draws no conclusion.

use crate::event::Command;
use crate::flows;
use crate::rules::{self, RuleForm};
use crate::script::{
    AnswerWith, FrameSeen, Frames, Outcome, PacketInSeen, Record, Refusal, Reply, Script, Step, Until, When,
};
use flow::PortNo;
use openflow::message::{MULTIPART_MORE, NO_BUFFER, PacketIn, ReplyBody};
use openflow::{Body, Message, Version};
use std::collections::{HashMap, VecDeque};

/// How many sent frames are remembered. An older one that still arrives is counted with its step, but its transit is unknown.
const SENT_MAX: usize = 1 << 18;

/// A watched rule whose frames are slow is in software after so many.
const SLOW_FRAMES: u32 = 6;

/// Numbers that are unique in a whole probe.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// The next transaction id.
    pub xid: u32,
    /// The next sequence number of a frame.
    pub sequence: u32,
}

/// What a script needs of the session.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The version of OpenFlow.
    pub version: Version,
    /// From one watched frame to the next.
    pub watch_tick_ns: u64,
    /// Where test frames enter.
    pub into: PortNo,
    /// The longest transit through hardware.
    pub fast_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct SentFrame {
    step: usize,
    at_ns: u64,
    /// The sequence number of the frame of the same step before this one.
    before: Option<u32>,
}

/// A script on its way.
#[derive(Debug)]
pub struct Run {
    setting: Setting,
    steps: Vec<Step>,
    window: usize,
    patience_ns: u64,
    settle_ns: u64,
    failures_left: Option<usize>,
    record: Record,
    next: usize,
    open: usize,
    /// When the last step ended or started.
    last_ns: u64,
    waiting: VecDeque<(u64, usize)>,
    watched: VecDeque<usize>,
    watch_due_ns: Option<u64>,
    first_xid: u32,
    first_sequence: u32,
    sent: VecDeque<SentFrame>,
    forgotten: u32,
    /// The sequence number of the last frame of each step.
    last_frame: Vec<Option<u32>>,
    /// The steps of flows whose removal may be reported.
    by_flow: HashMap<u32, usize>,
    /// Entries and packets in earlier parts of replies.
    partial: HashMap<usize, (u32, u64)>,
}

impl Run {
    /// Starts a script.
    pub fn new(script: Script, setting: Setting, numbers: Numbers, now_ns: u64) -> Self {
        let outcomes = vec![Outcome::default(); script.steps.len()];
        let by_flow = script.steps.iter().enumerate().filter_map(|(index, step)| {
            step.message.as_ref().and(step.flow).map(|flow| (flow.number, index))
        });
        Run {
            setting,
            by_flow: by_flow.collect(),
            last_frame: vec![None; script.steps.len()],
            steps: script.steps,
            window: script.window.max(1),
            patience_ns: script.patience_ns,
            settle_ns: script.settle_ns,
            failures_left: script.failures_max,
            record: Record { started_ns: now_ns, ended_ns: now_ns, outcomes },
            next: 0,
            open: 0,
            last_ns: now_ns,
            waiting: VecDeque::new(),
            watched: VecDeque::new(),
            watch_due_ns: None,
            first_xid: numbers.xid,
            first_sequence: numbers.sequence,
            sent: VecDeque::new(),
            forgotten: 0,
            partial: HashMap::new(),
        }
    }

    /// The numbers that it has not used.
    pub fn numbers(&self) -> Numbers {
        // At most STEPS_MAX steps.
        let xid = self.first_xid.wrapping_add(self.steps.len() as u32);
        Numbers { xid, sequence: self.next_sequence() }
    }

    fn next_sequence(&self) -> u32 {
        // At most SENT_MAX.
        self.first_sequence.wrapping_add(self.forgotten).wrapping_add(self.sent.len() as u32)
    }

    /// When it must be called again.
    pub fn next_due_ns(&self) -> u64 {
        let patience = self.waiting.front().map(|(until, _)| *until);
        let parts = [self.start_due_ns(), patience, self.watch_due_ns];
        parts.into_iter().flatten().min().unwrap_or(self.last_ns.saturating_add(self.settle_ns))
    }

    /// When the next step starts, if that depends on the time only.
    fn start_due_ns(&self) -> Option<u64> {
        if self.failures_left == Some(0) {
            return None;
        }
        match self.steps.get(self.next)?.when {
            When::At(offset) => Some(self.record.started_ns.saturating_add(offset)),
            When::After(_) if self.open >= self.window => None,
            When::After(gap) => Some(self.last_ns.saturating_add(gap)),
        }
    }

    /// The time has come for something. Returns the record when the script is over.
    pub fn on_time(&mut self, now_ns: u64, out: &mut Vec<Command>) -> Option<Record> {
        self.give_up(now_ns);
        while self.start_due_ns().is_some_and(|due| due <= now_ns) {
            self.start(now_ns, out);
        }
        if self.watch_due_ns.is_some_and(|due| due <= now_ns) {
            self.watch(now_ns, out);
        }
        let is_over = (self.next == self.steps.len() || self.failures_left == Some(0))
            && self.open == 0
            && self.last_ns.saturating_add(self.settle_ns) <= now_ns;
        is_over.then(|| {
            self.record.ended_ns = now_ns;
            std::mem::take(&mut self.record)
        })
    }

    /// The record so far, for a script that is ended early.
    pub fn give_up_all(&mut self, now_ns: u64) -> Record {
        self.record.ended_ns = now_ns;
        std::mem::take(&mut self.record)
    }

    fn give_up(&mut self, now_ns: u64) {
        while let Some((_, index)) = self.waiting.front().copied().filter(|(until, _)| *until <= now_ns) {
            self.waiting.pop_front();
            self.end(index, now_ns);
        }
    }

    fn end(&mut self, index: usize, now_ns: u64) {
        let Some(outcome) = self.record.outcomes.get_mut(index) else { return };
        if !outcome.has_ended {
            outcome.has_ended = true;
            self.open -= 1;
            self.last_ns = now_ns;
            if self.steps[index].until == Until::Frame && outcome.frame.is_none() {
                self.failures_left = self.failures_left.map(|left| left.saturating_sub(1));
            }
        }
        while let Some((_, first)) = self.waiting.front().copied()
            && self.record.outcomes.get(first).is_some_and(|outcome| outcome.has_ended)
        {
            self.waiting.pop_front();
        }
    }

    fn start(&mut self, now_ns: u64, out: &mut Vec<Command>) {
        let index = self.next;
        self.next += 1;
        self.open += 1;
        self.record.outcomes[index].sent_ns = Some(now_ns);
        let step = &self.steps[index];
        let (until, frames, flow) = (step.until, step.frames, step.flow);
        if let Some(body) = step.message.clone() {
            out.push(self.message(index, body));
        }
        match (frames, flow) {
            (Frames::One { into, bytes }, Some(flow)) => {
                let frame = flow.frame(self.count_frame(index, now_ns), bytes);
                out.push(Command::Frame { port: into, frame });
            }
            (Frames::InMessage { bytes, out: port }, Some(flow)) => {
                let frame = flow.frame(self.count_frame(index, now_ns), bytes);
                out.push(self.message(index, rules::packet_out(frame, port)));
            }
            (Frames::Watch { .. }, Some(_)) => {
                self.watched.push_back(index);
                self.watch_due_ns.get_or_insert(now_ns);
            }
            _ => {}
        }
        self.last_ns = now_ns;
        if until == Until::Sent {
            self.end(index, now_ns);
        } else {
            self.waiting.push_back((now_ns.saturating_add(self.patience_ns), index));
        }
    }

    fn message(&self, index: usize, body: Body) -> Command {
        let xid = self.first_xid.wrapping_add(index as u32);
        Command::Send(Message { version: self.setting.version, xid, body })
    }

    /// A number for the next frame, which belongs to a step.
    fn count_frame(&mut self, step: usize, at_ns: u64) -> u32 {
        let sequence = self.next_sequence();
        self.record.outcomes[step].frames.0 += 1;
        let before = self.last_frame[step].replace(sequence);
        self.sent.push_back(SentFrame { step, at_ns, before });
        if self.sent.len() > SENT_MAX {
            self.sent.pop_front();
            self.forgotten += 1;
        }
        sequence
    }

    /// Sends a frame of the watched flow whose turn it is.
    fn watch(&mut self, now_ns: u64, out: &mut Vec<Command>) {
        self.watch_due_ns = None;
        while let Some(index) = self.watched.pop_front() {
            if self.record.outcomes[index].has_ended {
                continue;
            }
            self.watched.push_back(index);
            if let (Frames::Watch { into, bytes }, Some(flow)) =
                (self.steps[index].frames, self.steps[index].flow)
            {
                let frame = flow.frame(self.count_frame(index, now_ns), bytes);
                out.push(Command::Frame { port: into, frame });
            }
            self.watch_due_ns = Some(now_ns.saturating_add(self.setting.watch_tick_ns));
            return;
        }
    }

    /// Where a frame is in `sent`.
    fn offset_of(&self, sequence: u32) -> Option<usize> {
        let offset = sequence.wrapping_sub(self.first_sequence).checked_sub(self.forgotten)?;
        usize::try_from(offset).ok().filter(|offset| *offset < self.sent.len())
    }

    fn step_of_sequence(&self, sequence: u32) -> Option<SentFrame> {
        self.sent.get(self.offset_of(sequence)?).copied()
    }

    /// When the frame of the same step before this one was sent.
    fn sent_before(&self, sequence: u32) -> Option<u64> {
        let before = self.step_of_sequence(sequence)?.before?;
        Some(self.step_of_sequence(before)?.at_ns)
    }

    fn step_of_xid(&self, xid: u32) -> Option<usize> {
        let index = usize::try_from(xid.wrapping_sub(self.first_xid)).ok()?;
        (index < self.next).then_some(index)
    }

    /// The driver sends this frame now, and not when it was told to.
    pub fn on_frame_sent(&mut self, frame: &[u8], at_ns: u64) {
        let Some(offset) = flows::read(frame).and_then(|mark| self.offset_of(mark.sequence)) else { return };
        let Some(sent) = self.sent.get_mut(offset) else { return };
        sent.at_ns = sent.at_ns.max(at_ns);
        // Without a message, the frame is the start of its step.
        if let (Frames::One { .. }, None) = (self.steps[sent.step].frames, &self.steps[sent.step].message) {
            self.record.outcomes[sent.step].sent_ns = Some(sent.at_ns);
        }
    }

    /// A frame left the switch.
    pub fn on_frame(&mut self, port: PortNo, frame: &[u8], at_ns: u64, now_ns: u64) {
        let Some(mark) = flows::read(frame) else { return };
        let Some(sent) = self.step_of_sequence(mark.sequence) else { return };
        let is_watched = matches!(self.steps[sent.step].frames, Frames::Watch { .. });
        let is_first = is_watched && self.record.outcomes[sent.step].frame.is_none();
        let lost_ns = if is_first { self.sent_before(mark.sequence) } else { None };
        let Some(outcome) = self.record.outcomes.get_mut(sent.step) else { return };
        outcome.frames.1 += 1;
        outcome.lost_ns = outcome.lost_ns.or(lost_ns);
        outcome.frame.get_or_insert(FrameSeen { sent_ns: sent.at_ns, at_ns, port });
        let transit = at_ns.saturating_sub(sent.at_ns);
        let fastest = outcome.fastest_ns.map_or(transit, |fastest| fastest.min(transit));
        outcome.fastest_ns = Some(fastest);
        let is_clear = !is_watched || fastest <= self.setting.fast_ns || outcome.frames.1 >= SLOW_FRAMES;
        if self.steps[sent.step].until == Until::Frame && is_clear {
            self.end(sent.step, now_ns);
        }
    }

    /// The switch sent a message.
    pub fn on_message(&mut self, message: &Message, now_ns: u64, out: &mut Vec<Command>) {
        match &message.body {
            Body::PacketIn(packet) => self.on_packet_in(packet, now_ns, out),
            Body::Error(error) => {
                let Some(index) = self.step_of_xid(message.xid) else { return };
                let refusal = Refusal { at_ns: now_ns, kind: error.kind, code: error.code };
                self.record.outcomes[index].error.get_or_insert(refusal);
                // A wait for a packet-in of the same step goes on: the error is about its message.
                if self.steps[index].until != Until::PacketIn {
                    self.end(index, now_ns);
                }
            }
            Body::BarrierReply | Body::EchoReply(_) => self.on_reply(message.xid, (0, 0), now_ns),
            Body::MultipartReply(reply) => {
                let counts = match &reply.body {
                    ReplyBody::Flow(entries) => {
                        let packets =
                            entries.iter().fold(0u64, |sum, entry| sum.wrapping_add(entry.packet_count));
                        (u32::try_from(entries.len()).unwrap_or(u32::MAX), packets)
                    }
                    _ => (0, 0),
                };
                let is_last = reply.flags & MULTIPART_MORE == 0;
                self.on_part(message.xid, counts, is_last, now_ns);
            }
            Body::FlowRemoved(removed) if rules::is_ours(removed.cookie) => {
                let number = (removed.cookie & u64::from(u32::MAX)) as u32;
                let index = self.by_flow.get(&number).copied();
                if let Some(outcome) = index.and_then(|index| self.record.outcomes.get_mut(index)) {
                    outcome.removed_ns.get_or_insert(now_ns);
                }
            }
            _ => {}
        }
    }

    fn on_part(&mut self, xid: u32, (entries, packets): (u32, u64), is_last: bool, now_ns: u64) {
        let Some(index) = self.step_of_xid(xid) else { return };
        let sum = self.partial.entry(index).or_default();
        *sum = (sum.0.saturating_add(entries), sum.1.wrapping_add(packets));
        let sum = *sum;
        if is_last {
            self.on_reply(xid, sum, now_ns);
        }
    }

    fn on_reply(&mut self, xid: u32, (entries, packets): (u32, u64), now_ns: u64) {
        let Some(index) = self.step_of_xid(xid) else { return };
        self.record.outcomes[index].reply.get_or_insert(Reply { at_ns: now_ns, entries, packets });
        if self.steps[index].until == Until::Reply {
            self.end(index, now_ns);
        }
    }

    fn on_packet_in(&mut self, packet: &PacketIn, now_ns: u64, out: &mut Vec<Command>) {
        let Some(sent) = flows::read(&packet.data).and_then(|mark| self.step_of_sequence(mark.sequence))
        else {
            return;
        };
        let index = sent.step;
        let outcome = &mut self.record.outcomes[index];
        let seen = PacketInSeen { at_ns: now_ns, bytes: packet.data.len(), buffer_id: packet.buffer_id };
        if outcome.packet_in.is_some() {
            return;
        }
        outcome.packet_in = Some(seen);
        if let Some(answer) = self.steps[index].answer {
            outcome.answered_ns = Some(now_ns);
            self.answer(index, answer, packet, out);
        }
        if self.steps[index].until == Until::PacketIn {
            self.end(index, now_ns);
        }
    }

    fn answer(&self, index: usize, answer: AnswerWith, packet: &PacketIn, out: &mut Vec<Command>) {
        let Some(flow) = self.steps[index].flow else { return };
        let is_buffered = packet.buffer_id != NO_BUFFER;
        let release = |port| {
            let data = if is_buffered { Vec::new() } else { packet.data.clone() };
            rules::release(packet.buffer_id, data, self.setting.into, port)
        };
        match answer {
            AnswerWith::Rule(form) => {
                out.push(self.message(index, RuleForm { buffer_id: packet.buffer_id, ..form }.add_for(flow)));
                if !is_buffered {
                    out.push(self.message(index, release(form.out)));
                }
            }
            AnswerWith::PacketOut(port) => out.push(self.message(index, release(port))),
        }
    }
}
