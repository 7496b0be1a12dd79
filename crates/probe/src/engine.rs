//! The engine of a probe: one switch, from its connection to its profile.
//!
//! ```text
//!   Event ──> Handshake ──> clean ──> phase ──> clean ──> phase … ──> clean ──> Profile
//!                                       │ ▲
//!                               Script  ▼ │ Record
//!                                      Run ──> Command
//! ```
//!
//! In: events with their time. Out: commands. It does no I/O and reads no clock. With the same events it sends the same commands.

use crate::compose;
use crate::event::{Command, Event, Finished};
use crate::findings::{BarrierFound, Findings};
use crate::flows::Width;
use crate::handshake::{Handshake, Progress, XIDS};
use crate::journal::{self, Journal, Kept};
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::phases;
use crate::predict;
use crate::report;
use crate::rules::{self, RuleForm};
use crate::run::{Numbers, Run, Setting};
use crate::script::{Frames, Record, SECOND_NS, STEPS_MAX, Script, Step, When};
use flow::PortNo;
use openflow::{Body, Message};
use profile::Fit;
use std::collections::VecDeque;

/// How long the switch has for each step of the handshake.
const HANDSHAKE_NS: u64 = 10 * SECOND_NS;
/// How long it has for the removal of all rules. The largest published table takes 10 minutes at 40 rules a second, but no switch is
/// known that deletes as slowly as it adds.
const CLEAN_NS: u64 = 180 * SECOND_NS;
/// What an early stop leaves to the removal of rules.
const STOP_NS: u64 = 20 * SECOND_NS;

/// What a probe does now.
#[derive(Debug)]
enum State {
    Waiting,
    Handshake(Handshake, u64),
    /// A script runs for the present phase.
    Phase(Box<Run>),
    /// Rules are removed. Then the next phase comes, or the end.
    Cleaning(Box<Run>),
    Over,
}

/// A probe of one switch.
#[derive(Debug)]
pub struct Probe {
    options: Options,
    state: State,
    plan: VecDeque<Box<dyn Phase>>,
    phase: Option<Box<dyn Phase>>,
    found: Findings,
    numbers: Numbers,
    began_ns: u64,
    refused: Option<String>,
    journal: Journal,
    /// What an earlier probe left, until the switch has said who it is.
    kept: Option<Kept>,
}

impl Probe {
    /// A probe that waits for its switch.
    pub fn new(options: Options) -> Self {
        let (plan, _) = phases::plan(&options.parts);
        let version = options.versions.iter().copied().max().unwrap_or(openflow::Version::V1_3);
        Probe {
            options,
            state: State::Waiting,
            plan,
            phase: None,
            found: Findings::new(version),
            numbers: Numbers { xid: XIDS, sequence: 0 },
            began_ns: 0,
            refused: None,
            journal: Journal::default(),
            kept: None,
        }
    }

    /// A probe that goes on where an earlier one of the same switch ended.
    pub fn resuming(options: Options, kept: Kept) -> Self {
        Probe { kept: Some(kept), ..Probe::new(options) }
    }

    /// Only these phases, for tests.
    pub fn with_phases(self, plan: Vec<Box<dyn Phase>>) -> Self {
        Probe { plan: plan.into(), ..self }
    }

    /// What it has found so far.
    pub fn findings(&self) -> &Findings {
        &self.found
    }

    /// Something happened. Commands are appended.
    pub fn on_event(&mut self, now_ns: u64, event: Event<'_>, out: &mut Vec<Command>) {
        match event {
            Event::Connected if matches!(self.state, State::Waiting) => {
                let (handshake, hello) = Handshake::new(&self.options.versions);
                out.extend(hello.into_iter().map(Command::Send));
                self.began_ns = now_ns;
                self.state = State::Handshake(handshake, now_ns.saturating_add(HANDSHAKE_NS));
            }
            Event::Connected => {}
            Event::Left => self.on_left(out),
            Event::Message(message) => self.on_message(message, now_ns, out),
            Event::Frame { port, frame, at_ns } => {
                if let State::Phase(run) | State::Cleaning(run) = &mut self.state {
                    run.on_frame(port, frame, at_ns, now_ns);
                }
            }
            Event::PortDown { port, why } => {
                let why = format!("{} is down: {why}", self.interface_of(port));
                self.stop(&why, now_ns, out);
            }
            Event::Time => {}
            Event::Stop => self.stop("the operator stopped the probe", now_ns, out),
        }
        self.go_on(now_ns, out);
    }

    /// The driver sends this test frame now, which may be later than when it was told to.
    pub fn on_frame_sent(&mut self, frame: &[u8], at_ns: u64) {
        if let State::Phase(run) | State::Cleaning(run) = &mut self.state {
            run.on_frame_sent(frame, at_ns);
        }
    }

    fn on_left(&mut self, out: &mut Vec<Command>) {
        match &self.state {
            State::Waiting | State::Over => {}
            State::Handshake(handshake, _) => {
                let why = format!("the switch left before it answered the {}", handshake.waits_for());
                self.end(Finished::Refused(why), out);
            }
            State::Phase(_) | State::Cleaning(_) => {
                self.leave_out_the_rest("the switch left");
                self.finish(out);
            }
        }
    }

    fn interface_of(&self, port: PortNo) -> &str {
        let found = self.options.ports.iter().find(|it| it.port == port);
        found.map_or("a test interface", |it| it.interface.as_str())
    }

    /// Removes its rules, and ends with what it has found.
    fn stop(&mut self, why: &str, now_ns: u64, out: &mut Vec<Command>) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Waiting | State::Handshake(..) => self.end(Finished::Refused(why.to_owned()), out),
            State::Phase(run) | State::Cleaning(run) => {
                self.numbers = run.numbers();
                self.leave_out_the_rest(why);
                self.clean(now_ns, STOP_NS);
            }
            State::Over => {}
        }
    }

    /// Notes all that is left of the plan as not measured.
    fn leave_out_the_rest(&mut self, why: &str) {
        self.journal.forget_open();
        let left = self.phase.take().into_iter().chain(self.plan.drain(..));
        let parts: Vec<&str> = left.flat_map(|phase| phase.measures().iter().copied()).collect();
        if !parts.is_empty() {
            self.found.incomplete = Some(why.to_owned());
        }
        parts.into_iter().for_each(|part| self.found.leave_out(part, why));
    }

    fn on_message(&mut self, message: &Message, now_ns: u64, out: &mut Vec<Command>) {
        if let Body::EchoRequest(payload) = &message.body {
            let body = Body::EchoReply(payload.clone());
            return out.push(Command::Send(Message { body, ..message.clone() }));
        }
        match &mut self.state {
            State::Handshake(handshake, until) => match handshake.on_message(message) {
                Progress::Ask(messages) => {
                    if !messages.is_empty() {
                        *until = now_ns.saturating_add(HANDSHAKE_NS);
                    }
                    out.extend(messages.into_iter().map(Command::Send));
                }
                Progress::Refused(why) => self.end(Finished::Refused(why), out),
                Progress::Ready => self.on_ready(now_ns, out),
            },
            State::Phase(run) | State::Cleaning(run) => run.on_message(message, now_ns, out),
            State::Waiting | State::Over => {}
        }
    }

    fn on_ready(&mut self, now_ns: u64, out: &mut Vec<Command>) {
        let State::Handshake(handshake, _) = &self.state else { return };
        let (foreign, left_over) = (handshake.foreign, handshake.left_over);
        let description = handshake.description.clone();
        self.found = Findings::new(handshake.version);
        self.found.description = description;
        if foreign > 0 && !self.options.clear {
            let rules = if foreign == 1 { "1 rule".to_owned() } else { format!("{foreign} rules") };
            let why = format!("the switch has {rules} that no probe added: remove them, or use --clear");
            return self.end(Finished::Refused(why), out);
        }
        if let Err(why) = self.begin() {
            return self.end(Finished::Refused(why), out);
        }
        let text = match foreign + left_over {
            0 => format!("the switch speaks OpenFlow {}", self.found.version),
            count => format!("the switch speaks OpenFlow {}; removing {count} rules", self.found.version),
        };
        out.push(Command::Progress(text));
        self.clean(now_ns, CLEAN_NS);
    }

    /// Notes what nobody asked for, and goes through the phases that an earlier probe finished.
    fn begin(&mut self) -> Result<(), String> {
        let (_, left_out) = phases::plan(&self.options.parts);
        left_out.into_iter().for_each(|part| self.found.leave_out(part, "nobody asked for it"));
        let settings = self.options.settings();
        let subject = journal::subject(&self.found.description, self.found.version, &settings);
        self.journal = Journal::new(&subject);
        let Some(kept) = self.kept.take() else { return Ok(()) };
        if kept.subject != subject {
            return Err(format!(
                "the records are of another probe ({}), this one is: {subject}",
                kept.subject
            ));
        }
        kept.phases.iter().try_for_each(|records| self.repeat(records))?;
        if !kept.phases.is_empty() {
            // Somebody may have moved them meanwhile.
            self.plan.push_front(Box::new(phases::Cabling::again()));
        }
        Ok(())
    }

    /// The next phase concludes from the records of an earlier probe.
    fn repeat(&mut self, records: &[Record]) -> Result<(), String> {
        let unlike =
            || "the records are not those of this version of the probe: start without them".to_owned();
        let mut phase = self.plan.pop_front().ok_or_else(unlike)?;
        let mut next = phase.next(None, &self.options, &mut self.found);
        for record in records {
            let Next::Run(script) = &next else { return Err(unlike()) };
            // A phase reads as many outcomes as it has asked for steps. The records come from a file, which may be cut short.
            if record.outcomes.len() != script.steps.len().min(STEPS_MAX) {
                return Err(unlike());
            }
            next = phase.next(Some(record), &self.options, &mut self.found);
            self.journal.note(record);
        }
        self.journal.close();
        if matches!(next, Next::Done) { Ok(()) } else { Err(unlike()) }
    }

    /// Removes all rules, and waits until the data plane follows.
    fn clean(&mut self, now_ns: u64, patience_ns: u64) {
        // After the handshake, all rules are the probe's, unless the operator gave up the others.
        let only_ours = !self.options.clear && self.found.version != openflow::Version::V1_0;
        let mut steps = vec![Step::send(When::At(0), rules::delete_all(only_ours))];
        if self.found.version == openflow::Version::V1_0 && !(self.plan.is_empty() && self.phase.is_none()) {
            // Otherwise each test frame without a rule would cost the CPU a packet-in.
            steps.push(Step::send(When::After(0), rules::add_drop()));
        }
        steps.push(Step::barrier(When::After(0)));
        if self.found.barrier.is_some_and(|barrier| barrier != BarrierFound::Honest) {
            // The hardware may still be removing rules. It takes them in order, so this one comes after them.
            let flow = self.found.take_flows(Width::Ethernet, 1)[0];
            let rule = RuleForm::to(self.options.ports[1].port);
            let frames = watch(&self.options, phases::FRAME_BYTES);
            steps.push(Step::watched(When::After(0), rule.add_for(flow), flow, frames));
            steps.push(Step::send(When::After(0), rule.delete_for(flow)));
            steps.push(Step::barrier(When::After(0)));
        }
        let settle_ns = crate::samples::ns(self.found.latest_us());
        let script = Script::new(steps, patience_ns).with_settle(settle_ns);
        let run = Run::new(script, self.setting(), self.numbers, now_ns);
        self.state = State::Cleaning(Box::new(run));
    }

    fn setting(&self) -> Setting {
        Setting {
            version: self.found.version,
            watch_tick_ns: self.options.watch_tick_ns,
            into: self.options.ports[0].port,
            fast_ns: crate::samples::ns(self.found.software_above_us.min(1e9)),
        }
    }

    /// Goes on as far as it can now, and says when it must be called again.
    fn go_on(&mut self, now_ns: u64, out: &mut Vec<Command>) {
        if let State::Handshake(handshake, until) = &self.state
            && *until <= now_ns
        {
            let why = format!("the switch did not answer the {} in 10 s", handshake.waits_for());
            self.end(Finished::Refused(why), out);
        }
        loop {
            let is_phase = matches!(self.state, State::Phase(_));
            let (State::Phase(run) | State::Cleaning(run)) = &mut self.state else { break };
            let Some(record) = run.on_time(now_ns, out) else { break };
            self.numbers = run.numbers();
            if is_phase { self.on_record(&record, now_ns) } else { self.on_clean(&record, now_ns, out) }
        }
        match &self.state {
            State::Phase(run) | State::Cleaning(run) => out.push(Command::WakeAt(run.next_due_ns())),
            State::Handshake(_, until) => out.push(Command::WakeAt(*until)),
            State::Waiting | State::Over => {}
        }
    }

    fn on_record(&mut self, record: &Record, now_ns: u64) {
        let Some(mut phase) = self.phase.take() else { return self.clean(now_ns, CLEAN_NS) };
        if phase.is_kept() {
            self.journal.note(record);
        }
        let next = phase.next(Some(record), &self.options, &mut self.found);
        self.phase = Some(phase);
        self.on_next(next, now_ns);
    }

    fn on_next(&mut self, next: Next, now_ns: u64) {
        match next {
            Next::Run(mut script) => {
                if script.steps.len() > STEPS_MAX {
                    script.steps.truncate(STEPS_MAX);
                    let part = self.phase.as_ref().and_then(|phase| phase.measures().first());
                    self.found.leave_out(
                        part.copied().unwrap_or("a phase"),
                        format!("the probe does {STEPS_MAX} steps at once and no more"),
                    );
                }
                let run = Run::new(script, self.setting(), self.numbers, now_ns);
                self.state = State::Phase(Box::new(run));
            }
            Next::Done => {
                if self.phase.take().is_some_and(|phase| phase.is_kept()) {
                    self.journal.close();
                }
                self.clean(now_ns, CLEAN_NS);
            }
            Next::Refuse(why) => {
                self.refused = Some(why);
                self.phase = None;
                self.plan.clear();
                self.clean(now_ns, CLEAN_NS);
            }
        }
    }

    fn on_clean(&mut self, record: &Record, now_ns: u64, out: &mut Vec<Command>) {
        if record.outcomes.last().is_some_and(|barrier| barrier.reply.is_none()) && self.refused.is_none() {
            self.found.incomplete.get_or_insert_with(|| "the switch no longer answers barriers".to_owned());
            self.leave_out_the_rest("the switch no longer answers barriers");
        }
        let Some(mut phase) = self.next_in_time(now_ns) else {
            return match self.refused.take() {
                Some(why) => self.end(Finished::Refused(why), out),
                None => self.finish(out),
            };
        };
        out.push(Command::Progress(phase.title()));
        let next = phase.next(None, &self.options, &mut self.found);
        self.phase = Some(phase);
        self.on_next(next, now_ns);
    }

    /// The next phase for which there is time. Others are noted as not measured.
    fn next_in_time(&mut self, now_ns: u64) -> Option<Box<dyn Phase>> {
        let most_ns = self.options.time_max_ns.max(self.found.filling_ns.saturating_mul(4));
        let left_ns = most_ns.saturating_sub(now_ns.saturating_sub(self.began_ns));
        let minutes = most_ns.div_ceil(60 * SECOND_NS);
        while let Some(phase) = self.plan.pop_front() {
            self.found.left_ns = left_ns;
            if phase.takes_ns(&self.found) < left_ns {
                return Some(phase);
            }
            self.journal.stop();
            for part in phase.measures() {
                self.found.leave_out(part, format!("the probe takes {minutes} minutes at most"));
            }
        }
        None
    }

    fn finish(&mut self, out: &mut Vec<Command>) {
        if self.found.incomplete.is_some() {
            out.push(Command::Keep(self.journal.text().to_owned()));
        }
        let mut profile = compose::profile(&mut self.found, &self.options);
        let setting = self.setting();
        let fits = self.found.loads.iter().filter_map(|load| predict::judge(&profile, setting, load));
        let fits: Vec<Fit> = fits.collect();
        profile.measurement.fits.extend(fits);
        out.push(Command::Report(report::table(&profile, &self.found)));
        self.end(Finished::Profile(Box::new(profile)), out);
    }

    fn end(&mut self, finished: Finished, out: &mut Vec<Command>) {
        self.state = State::Over;
        out.push(Command::Finished(Box::new(finished)));
    }
}

/// The watched frames of a phase: into the first test port.
pub(crate) fn watch(options: &Options, bytes: usize) -> Frames {
    Frames::Watch { into: options.ports[0].port, bytes }
}
