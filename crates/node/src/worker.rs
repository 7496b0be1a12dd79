//! A worker: one thread that serves some of the switches, with all zones.
//!
//! ```text
//!   switch ──bytes──> Southbound ──event──> Dispatch::hear ──> Kernel::on_event ──> ZoneEnd::deliver… ──> app
//!   switch <──bytes── Southbound <─command─ Worker::execute <── Kernel::on_command <── ZoneEnd::take_commands <── app
//! ```
//!
//! Each turn of the loop reads the waiting data, delivers events to the zones, executes their commands, and writes. One
//! system call reads or writes many messages. A worker never waits for a zone, a switch, the operator or the monitor.
//! It shares only one lock with other workers: the roster of switches. The lock is used when a switch connects or
//! disconnects, and when a command is for a switch of another worker.

mod asking;
mod attaching;
mod bundling;
mod counting;
mod pausing;
mod precedence;
mod punting;
mod sending;
mod services;
mod sizes;
mod telling;
mod topics;
mod withdrawing;

use super::call_tracker::CallTracker;
use super::dispatch::Dispatch;
use super::log_lines::LogLines;
use super::messages::{ControlSender, FromWorker, ToWorker, WorkerReceiver, WorkerSender};
use super::past_refusals::PastRefusals;
use super::refusals::Refusals;
use super::routes::{Route, Routes};
use super::unsent::Unsent;
use super::yield_policy::YieldPolicy;
use super::zones::{Fault, ZoneEnd};
use abi::event::{CANCELLED, SoftLimit, kind, write};
use abi::prepared::RULE_LEN;
use abi::{Frame, ZoneId};
use config::NodeLimits;
use flow::{DatapathId, ErrorCode};
use kernel::calls::End;
use kernel::{COMMANDS_AHEAD, Claims, Decision, Effect, Kernel, QuotaKind, Refusal, ZoneSet};
use mio::{Events, Poll, Token};
use monitor_channel::LINES_PER_S_MAX;
use southbound::{NotAdopted, Roster, Southbound, SouthboundConfig};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The token of the worker's waker. Zones have the tokens of their numbers above it; connections start at
/// [`FIRST_CONNECTION`].
const WAKER: Token = Token(0);
const FIRST_CONNECTION: usize = 1024;

/// Readiness events of one poll. The next poll follows at once, and returns more.
const EVENTS_PER_POLL: usize = 1024;

/// Connections that are read in one turn. A thousand busy switches in one turn once kept a worker so long that the
/// monitor considered it hung. Commands, writes and the operator wait as long.
const READS_PER_TURN: usize = 64;

/// After this many events, no further connection is read in a turn: one read has up to 800 packet-ins. With sixteen
/// reads, an app's ring was full before the app started to read. The app lost three packet-ins of four, although it was
/// fast enough for all of them.
const EVENTS_PER_TURN: usize = 1024;

/// Messages that are read in one turn. The next turn follows at once, and reads more. Other workers' apps write as fast
/// as this one reads.
const LETTERS_PER_TURN: usize = 256;

/// The cost limit for the decisions on a zone's commands in one turn, in compared matches: some ten milliseconds. The
/// last command may exceed it. The rest waits for the next turn. One command is bounded to five times the limit; see
/// [`kernel::Kernel::take_compared`].
const COMPARED_PER_TURN: u64 = 50_000;

/// Memory for the commands of one turn that is kept for the next turn.
const COMMANDS_KEPT_BYTES: usize = 2 << 20;

/// An idle worker still makes a turn after this time, so that the monitor sees that it is alive.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// While switches wait for apps, the worker checks this often whether the apps have space. Meanwhile an app can read
/// half a ring, and need not wake the worker.
const PAUSED_SLEEP: Duration = Duration::from_millis(1);

/// The sleep while a switch claims the datapath id of another session, or is probed. This takes at most one second,
/// mostly the time for the answer.
const CLAIMS_SLEEP: Duration = Duration::from_millis(10);

/// How often the worker checks timeouts and the apps' clock ticks.
const TICK_MS: u64 = 1_000;

/// No error, in a receipt that has none.
const NO_ERROR: ErrorCode = ErrorCode { kind: 0, code: 0 };

/// The reason in a receipt if the command is for a switch of a worker with a full queue. The node is at fault, not the app.
const QUEUE_IS_FULL: &str = "the node's worker for this switch is overloaded; try again";

/// The parts of a new worker.
pub struct WorkerSetup {
    /// Its number, from 0.
    pub number: usize,
    /// Its poll, with its waker registered as [`WAKER_TOKEN`].
    pub poll: Poll,
    /// The settings of its sessions.
    pub southbound: SouthboundConfig,
    /// The roster of all workers' switches.
    pub roster: Arc<Roster>,
    /// Its messages.
    pub inbox: WorkerReceiver,
    /// Its sender to the control thread.
    pub control: ControlSender,
    /// The senders to all workers, including itself, by number.
    pub peers: Vec<WorkerSender>,
    /// The start of its clock.
    pub epoch: Instant,
    /// The kernel's limits for switches and apps.
    pub limits: NodeLimits,
    /// The record of the trusted app that it calls.
    pub calls: CallTracker,
    /// A random number for the kernel's rule hashes.
    pub seed: u64,
    /// Services that this node does not run, by name, with the reason for callers.
    pub missing_services: Vec<(String, String)>,
    /// The owners of groups and meters, for all workers.
    pub claims: Arc<Claims>,
}

/// The token with which the waker is registered.
pub const WAKER_TOKEN: Token = WAKER;

/// A running worker.
pub struct Worker {
    number: usize,
    poll: Poll,
    southbound: Southbound,
    dispatch: Dispatch,
    routes: Routes,
    inbox: WorkerReceiver,
    control: ControlSender,
    unsent: Unsent,
    epoch: Instant,
    now_ms: u64,
    /// How much is read from a connection before the others get their turn.
    read_bytes: usize,
    next_tick_ms: u64,
    sequence: u64,
    commands: Vec<u8>,
    scratch: Vec<u8>,
    past_refusals: PastRefusals,
    calls: CallTracker,
    log_lines: LogLines,
    /// Commands of zones beyond the cost limit of a turn, for the next turn: of each zone at most what one turn takes
    /// from it.
    left: BTreeMap<ZoneId, Vec<u8>>,
    /// Zones whose commands wait, or have waited, for a switch's table sizes, and until when at most.
    waiting_for_sizes: BTreeMap<ZoneId, (DatapathId, u64)>,
    /// Whether messages wait for the next turn.
    has_messages: bool,
    /// Refusals that are not recorded yet.
    to_record: Refusals,
    late_subscribers: topics::LateSubscribers,
    yielding: YieldPolicy,
    claims: Arc<Claims>,
    /// Memory for effects, empty.
    spare_effects: Vec<Effect>,
    /// The last switch whose buffered packet-ins were passed on.
    handed_on_last: DatapathId,
    ending: bool,
}

impl Worker {
    /// Creates a worker. It fails if the system has no descriptors left.
    pub fn new(setup: WorkerSetup) -> io::Result<Self> {
        let WorkerSetup {
            number, poll, southbound, roster, inbox, control, peers, epoch, limits, calls, ..
        } = setup;
        let WorkerSetup { seed, missing_services, claims, .. } = setup;
        // There are few workers: `monitor_channel::protocol::WORKERS_MAX`.
        let mut kernel = Kernel::new(seed).at_worker(number as u8);
        limit(&mut kernel, &limits);
        kernel.share_claims(claims.clone());
        missing_services.iter().for_each(|(name, why)| kernel.services().explain_missing(name, why));
        let registry = poll.registry().try_clone()?;
        let read_bytes = southbound.read_bytes_per_turn;
        let southbound = Southbound::new(southbound, roster.clone(), number, registry, FIRST_CONNECTION);
        let dispatch = Dispatch::new(kernel);
        Ok(Worker {
            number,
            poll,
            southbound,
            dispatch,
            routes: Routes::new(number, peers, roster),
            inbox,
            control,
            unsent: Unsent::default(),
            epoch,
            now_ms: 0,
            read_bytes,
            next_tick_ms: 0,
            sequence: 0,
            commands: Vec::new(),
            scratch: Vec::new(),
            past_refusals: PastRefusals::default(),
            calls,
            log_lines: LogLines::default(),
            left: BTreeMap::new(),
            waiting_for_sizes: BTreeMap::new(),
            has_messages: false,
            to_record: Refusals::default(),
            late_subscribers: BTreeMap::new(),
            yielding: YieldPolicy::default(),
            claims,
            spare_effects: Vec::new(),
            handed_on_last: DatapathId(0),
            ending: false,
        })
    }

    /// Serves until the control thread ends it.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_PER_POLL);
        while !self.ending {
            let timeout = self.how_long_to_sleep();
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            self.now_ms = self.epoch.elapsed().as_millis() as u64;
            self.dispatch.now_ms = self.now_ms;
            self.turn(&events);
        }
        // If the control thread is gone, no thread receives this, and the process ends anyway.
        let _ = self.control.send_last(FromWorker::Ended);
        Ok(())
    }

    fn how_long_to_sleep(&mut self) -> Duration {
        let is_to_ask = self.dispatch.kernel.asks_next_ms().is_some_and(|at_ms| at_ms <= self.now_ms);
        let mut asleep =
            !is_to_ask && !self.southbound.has_backlog() && self.left.is_empty() && !self.has_messages;
        for (_, zone) in self.dispatch.zones.iter() {
            asleep &= zone.about_to_sleep();
        }
        match asleep {
            true if self.southbound.has_paused() || self.has_to_hand_on() => PAUSED_SLEEP,
            true if self.southbound.has_claims() => CLAIMS_SLEEP,
            true if self.has_deadline_soon() => services::DEADLINE_SLEEP,
            true => self.until_due(),
            false => Duration::ZERO,
        }
    }

    /// Until commands for a slow switch are due.
    fn until_due(&self) -> Duration {
        let due_ms = self.southbound.due_ms().map(|due_ms| due_ms.saturating_sub(self.now_ms));
        due_ms.map_or(LONGEST_SLEEP, |due_ms| LONGEST_SLEEP.min(Duration::from_millis(due_ms)))
    }

    fn turn(&mut self, events: &Events) {
        self.inbox.turn();
        self.southbound.release(self.now_ms);
        self.unpause();
        self.dispatch.zones.iter().for_each(|(_, zone)| zone.begin_turn());
        self.read_ready(events);
        self.hand_on_held();
        self.read_messages();
        self.serve_zones();
        self.give_retained();
        self.expire_calls();
        self.tick();
        self.settle_claims();
        self.ask_for_owners();
        self.send_due();
        self.write();
        // Switches that flood come last, after the apps have received the others' events and the switches have received
        // the apps' commands.
        if self.southbound.has_backlog() {
            self.read_waiting();
            self.write();
        }
        self.report();
        if let Some(storm) = self.dispatch.storm.on_time(self.now_ms) {
            tracing::warn!("{storm}");
        }
        self.give_way();
    }

    /// Yields the core to apps that lose packet-ins, so that the packet-ins of the next read are not dropped too.
    fn give_way(&mut self) {
        let mut has_dropped = false;
        for (_, zone) in self.dispatch.zones.iter() {
            has_dropped |= zone.has_dropped();
        }
        if self.yielding.on_turn(has_dropped, self.now_ms) {
            std::thread::yield_now();
        }
    }

    /// Passes on the data of newly ready switches. A switch beyond half of [`READS_PER_TURN`] or of [`EVENTS_PER_TURN`]
    /// waits.
    fn read_ready(&mut self, events: &Events) {
        let mut reads = 0;
        self.dispatch.heard = 0;
        for event in events.iter().filter(|event| southbound_owns(event.token())) {
            if reads >= READS_PER_TURN / 2 || self.dispatch.heard >= EVENTS_PER_TURN / 2 {
                self.southbound.postpone(event.token(), event.into());
            } else {
                reads += usize::from(self.read_if_room(event.token(), event.into()));
            }
        }
    }

    /// Reads the connections that waited because they sent much, in their order: at least one, and as many as the turn
    /// has space for. A connection that starts to wait meanwhile waits for the next turn.
    fn read_waiting(&mut self) {
        let mut reads = 0;
        for _ in 0..self.southbound.waiting() {
            if reads >= READS_PER_TURN / 2 || reads > 0 && self.dispatch.heard >= EVENTS_PER_TURN {
                return;
            }
            reads += usize::from(self.read_next_if_room());
        }
    }

    /// Passes the events of one connection's turn to the trusted apps and executes their commands, while the data is in
    /// the processor's cache. With sixteen busy switches, the packets of a whole turn are ten times as much.
    fn serve_trusted(&mut self) {
        while let Some(zone) = self.dispatch.trusted_that_heard.pop() {
            self.serve(zone);
        }
    }

    /// Passes waiting events to the zones, and executes their commands.
    fn serve_zones(&mut self) {
        self.carry_out_effects();
        self.dispatch.zones.numbers().for_each(|zone| self.serve(zone));
    }

    fn serve(&mut self, zone: ZoneId) {
        let waits = self.waits_for_sizes(zone);
        let Some(end) = self.dispatch.zones.get(zone) else { return };
        let heard = end.run();
        if waits {
            return self.dispatch.faults.extend(heard.err().map(|fault| (zone, fault)));
        }
        let mut commands = std::mem::take(&mut self.commands);
        let taken = match self.left.remove(&zone) {
            Some(left) => {
                commands.clear();
                commands.extend_from_slice(&left);
                Ok(())
            }
            None => end.take_commands(&mut commands, &mut self.scratch),
        };
        let (left, _) = self.execute_all(zone, &commands);
        if !left.is_empty() && self.dispatch.zones.get(zone).is_some() {
            self.left.insert(zone, left.to_vec());
        }
        if commands.capacity() > COMMANDS_KEPT_BYTES {
            commands.clear();
            commands.shrink_to(COMMANDS_KEPT_BYTES);
        }
        self.commands = commands;
        if let Err(fault) = heard.and(taken) {
            self.dispatch.faults.push((zone, fault));
        }
    }

    /// Executes commands until this zone has reached the cost limit. Returns the remaining commands and the cost.
    fn execute_all<'c>(&mut self, zone: ZoneId, mut commands: &'c [u8]) -> (&'c [u8], u64) {
        let (mut compared, mut number) = (0, 0);
        while !commands.is_empty() && compared < COMPARED_PER_TURN {
            if number % COMMANDS_AHEAD == 0 {
                commands = self.execute_ahead(zone, commands);
                if commands.is_empty() {
                    break;
                }
            }
            number += 1;
            // A trusted app's frames are checked only here; a process zone's were checked when they were read.
            let Ok((frame, rest)) = Frame::split(commands) else {
                tracing::warn!(%zone, "the app sent malformed commands; the rest of its commands is dropped");
                return (&[], compared);
            };
            self.execute(zone, &frame);
            compared += self.dispatch.kernel.take_compared();
            commands = rest;
            if self.waits_for_sizes(zone) {
                break;
            }
        }
        (commands, compared)
    }

    /// Executes the next rules whose shape the kernel knows, and whose places it has read in advance. Returns the commands behind them.
    fn execute_ahead<'c>(&mut self, zone: ZoneId, mut commands: &'c [u8]) -> &'c [u8] {
        while let Some(ahead) = self.dispatch.kernel.look_ahead(zone, commands) {
            for number in 0..ahead.len() {
                let Dispatch { kernel, effects, .. } = &mut self.dispatch;
                let Some(rule) = kernel.on_ahead(&ahead, number, self.now_ms, effects) else {
                    return commands;
                };
                self.send_rule(zone, rule);
                commands = commands.get(RULE_LEN..).unwrap_or_default();
                if self.waits_for_sizes(zone) {
                    return commands;
                }
            }
            if ahead.is_empty() {
                break;
            }
        }
        commands
    }

    /// Executes one command by the kernel's decision, or passes it to the worker that has the switch.
    fn execute(&mut self, zone: ZoneId, frame: &Frame<'_>) {
        let Dispatch { kernel, effects, .. } = &mut self.dispatch;
        if let Some(rule) = kernel.on_prepared(zone, frame, self.now_ms, effects) {
            return self.send_rule(zone, rule);
        }
        let Worker { routes, dispatch, .. } = self;
        if let Route::Worker(worker) = routes.find(frame, |datapath| dispatch.kernel.is_up(datapath)) {
            return self.forward(worker, zone, frame);
        }
        match self.dispatch.kernel.on_command(zone, frame, self.now_ms, &mut self.dispatch.effects) {
            Decision::Send(command) => self.send(zone, &command, frame),
            Decision::Bundle { ticket, wants_receipt, bundle } => {
                self.send_bundle(zone, frame, (ticket, wants_receipt), bundle);
            }
            Decision::Subscribed => {}
            Decision::Publish(topic) => self.publish(zone, frame, &topic),
            Decision::Ask { to, ticket, ask } => self.ask_service(zone, frame, to, ticket, &ask),
            Decision::Credit { to, bytes } => self.grant_credit(zone, to, bytes),
            Decision::Cancelled { to } => self.tell_over(to, CANCELLED),
            Decision::Nothing => {}
            Decision::NoSuchService { ticket, service } => self.answer_no_such_service(zone, ticket, service),
            Decision::Answer { to, ticket, answer } => {
                self.pass_answer(zone, frame, End { zone: to, ticket }, &answer);
            }
            Decision::Log(log) => self.log(zone, log.level, log.text),
            Decision::Refuse(refusal) => self.refuse_for(zone, frame, &refusal),
        }
        self.carry_out_effects();
    }

    /// The worker that has the switch decides on the command. If its queue is full, the command is refused and counted here.
    fn forward(&mut self, worker: usize, zone: ZoneId, frame: &Frame<'_>) {
        if self.routes.forward(worker, zone, frame) {
            return;
        }
        let Dispatch { kernel, effects, .. } = &mut self.dispatch;
        match kernel.on_undelivered(zone, self.now_ms, effects) {
            Ok(()) => self.refuse_for_now(zone, frame, QUEUE_IS_FULL),
            Err(refusal) => self.refuse_for(zone, frame, &refusal),
        }
        self.carry_out_effects();
    }

    fn carry_out_effects(&mut self) {
        while !self.dispatch.effects.is_empty() {
            // In the order in which they were added; their own effects are appended. The memory is reused.
            let spare = std::mem::take(&mut self.spare_effects);
            let mut effects = std::mem::replace(&mut self.dispatch.effects, spare);
            effects.drain(..).for_each(|effect| self.carry_out(effect));
            self.spare_effects = effects;
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Punt(datapath) => self.punt(datapath),
            Effect::PuntFrom { datapath, table_id } => self.punt_from(datapath, table_id),
            Effect::EndPuntFrom { datapath, table_id } => self.end_punt_from(datapath, table_id),
            Effect::Meter { datapath, step } => self.take_meter_step(datapath, step),
            Effect::MeterSettled(datapath) => self.tell_of_meter(datapath),
            Effect::Replay(zone) => {
                self.replay(zone);
                self.begin_retained(zone);
            }
            Effect::Evict => self.evict(),
            Effect::Withdraw(datapath) => self.withdraw(datapath),
            Effect::Shadowed { zone, of, datapath, its, priority } => {
                self.tell_of_shadow(zone, of, datapath, [its, priority]);
            }
            Effect::Ask { datapath, asked } => self.ask_for_kernel(datapath, asked),
            Effect::WaitForSizes { zone, datapath } => self.wait_for_sizes(zone, datapath),
            Effect::SizesUnknown { datapath, entries_if_unknown } => {
                sizes::tell_of_unknown_sizes(datapath, entries_if_unknown)
            }
            Effect::CallOver(over) => self.end_call(&over),
            Effect::RefusedByQuota { zone, kind, hard } => {
                let refusal = Refusal::Quota { kind, hard };
                self.to_record.count(zone, &refusal, || refusal.to_string());
            }
            Effect::SoftLimit { zone, datapath, kind, used, soft, hard } => {
                let quota = kind as u16;
                self.warn_of_limit(zone, kind, &SoftLimit { datapath, quota, used, soft, hard });
            }
        }
    }

    /// Tells an app, and the operator, that it uses more than a soft limit.
    fn warn_of_limit(&mut self, zone: ZoneId, kind: QuotaKind, limit: &SoftLimit) {
        let app = self.dispatch.zones.get(zone).map(|end| end.app()).unwrap_or("?");
        let SoftLimit { datapath, soft, hard, .. } = *limit;
        if datapath == DatapathId(0) {
            tracing::warn!(
                app,
                "quota {kind}: the soft limit {soft} is exceeded; above {hard}, commands are refused"
            );
        } else {
            tracing::warn!(app, %datapath, "quota {kind}: {} of {hard} used; above {hard}, commands are refused", limit.used);
        }
        self.tell([zone], |out, sequence| write::soft_limit(out, sequence, limit));
    }

    fn tick(&mut self) {
        if self.now_ms < self.next_tick_ms {
            return;
        }
        self.next_tick_ms = self.now_ms + TICK_MS;
        self.dispatch.kernel.check_meters(self.now_ms, &mut self.dispatch.effects);
        self.tell_refusals();
        self.tell_untold_credit();
        let Worker { southbound, dispatch, now_ms, .. } = self;
        southbound.on_tick(*now_ms, &mut |event| dispatch.hear(event));
        let faults = self.dispatch.switch_faults.take(self.now_ms, now_unix_ms());
        self.tell_records(faults);
        let (subscribers, now_ms) = (self.dispatch.kernel.receivers_of(kind::TICK).clone(), self.now_ms);
        self.tell(&subscribers, |out, sequence| write::tick(out, sequence, now_ms));
        for (zone, left_out) in self.log_lines.take_left_out() {
            let app = self.dispatch.zones.get(zone).map(|end| end.app()).unwrap_or("?");
            tracing::warn!(
                app,
                "{left_out} more lines were dropped; the limit is {LINES_PER_S_MAX} per second"
            );
        }
        for (zone, end) in self.dispatch.zones.iter() {
            if let Err(fault) = end.tell_dropped(&mut self.scratch) {
                self.dispatch.faults.push((zone, fault));
            }
        }
    }

    /// Two sessions that claim one datapath id: one of them yields.
    fn settle_claims(&mut self) {
        let Worker { southbound, dispatch, now_ms, .. } = self;
        southbound.settle(*now_ms, &mut |event| dispatch.hear(event));
    }

    /// Sends the commands that have waited for slow switches, and whose time has come.
    fn send_due(&mut self) {
        let Worker { southbound, dispatch, now_ms, .. } = self;
        southbound.on_time(*now_ms, &mut |event| dispatch.hear(event));
    }

    /// Sends the messages of this turn.
    fn write(&mut self) {
        self.flush_zones();
        let Worker { southbound, dispatch, now_ms, .. } = self;
        let mut has_heard = false;
        southbound.flush(*now_ms, &mut |event| {
            has_heard = true;
            dispatch.hear(event);
        });
        if has_heard {
            self.flush_zones();
        }
    }

    /// Wakes the apps that have events. A write to a socket takes ten times as long, so apps are woken before it.
    fn flush_zones(&mut self) {
        let Dispatch { zones, faults, .. } = &mut self.dispatch;
        zones.flush(faults);
    }

    /// Sends the control thread its messages. It retries the ones that do not fit in the next turn.
    fn report(&mut self) {
        let mut ended = ZoneSet::EMPTY;
        for (zone, fault) in std::mem::take(&mut self.dispatch.faults) {
            // The first fault is the cause; the zone's further faults in this turn do not matter.
            if !ended.contains(zone) {
                ended.insert(zone);
                self.end_zone(zone, fault);
            }
        }
        self.dispatch.to_node.drain(..).for_each(|frame| self.unsent.push_frame(frame));
        let left = self.dispatch.departures.take();
        left.into_iter().for_each(|left| self.unsent.push(FromWorker::SwitchLeftProfile(left)));
        self.tell_withdrawn();
        self.unsent.send(&self.control);
        if self.claims.has_changes() {
            self.control.wake();
        }
    }

    fn read_messages(&mut self) {
        let (mut read, mut compared) = (0, 0);
        self.has_messages = false;
        loop {
            if read >= LETTERS_PER_TURN || compared >= COMPARED_PER_TURN {
                self.has_messages = true;
                return;
            }
            let Some(message) = self.inbox.next() else { return };
            read += 1;
            match message {
                ToWorker::Adopt(stream, peer) => {
                    // The log already has the reason.
                    if let Err(NotAdopted::NoRoom(why)) = self.southbound.adopt(stream, peer, self.now_ms) {
                        self.dispatch.switch_faults.on_refused(peer, &why, self.now_ms);
                    }
                }
                ToWorker::AttachZone { zone, app, generation, port, grant, rates } => {
                    self.attach(zone, app, generation, port, (grant, rates))
                }
                ToWorker::LoadTrusted { zone, app, code, settings, grant, rates } => {
                    let (started, in_calls) = self.calls.timing(zone, || code.start(&settings));
                    match started {
                        Ok(instance) => {
                            let (name, calls) = (app.clone(), self.calls.clone());
                            let end = ZoneEnd::of_trusted(app, instance, zone, calls, in_calls);
                            self.put(zone, &name, end, (grant, rates));
                        }
                        Err(fault) => self.dispatch.faults.push((zone, Fault::Trusted { app, fault })),
                    }
                }
                ToWorker::Regrant { zone, generation, grant, rates } => {
                    self.regrant(zone, generation, *grant, &rates)
                }
                ToWorker::Reconfigure { southbound, limits } => {
                    self.southbound.reconfigure(*southbound);
                    limit(&mut self.dispatch.kernel, &limits);
                }
                ToWorker::Withdraw(wanted) => self.dispatch.kernel.withdraw(&wanted, self.now_ms),
                ToWorker::DetachZone { zone, generation } => {
                    let there = self.dispatch.zones.get(zone).map(|end| end.generation());
                    if there == Some(generation) {
                        self.detach(zone);
                    }
                }
                ToWorker::Forward { zone, frame } => compared += self.execute_all(zone, &frame).1,
                ToWorker::AskFlows { datapath, ticket } => self.ask_flows(datapath, ticket),
                ToWorker::AskCounts { ticket } => self.count(ticket),
                ToWorker::CountZones => {
                    let zones = self.count_zones();
                    // If the queue is full, the sample is not needed.
                    let _ = self.control.send(FromWorker::ZonesCounted { worker: self.number, zones });
                }
                ToWorker::TellSoftLimit { zone, generation, limit } => {
                    self.tell_soft_limit(zone, generation, &limit)
                }
                ToWorker::Shutdown => self.end(),
            }
        }
    }

    /// A message for an ended process is not for its successor.
    fn tell_soft_limit(&mut self, zone: ZoneId, generation: u64, limit: &SoftLimit) {
        let there = self.dispatch.zones.get(zone).map(|end| end.generation());
        if there == Some(generation) {
            self.tell([zone], |out, sequence| write::soft_limit(out, sequence, limit));
        }
    }

    fn end(&mut self) {
        self.ending = true;
        let everybody: Vec<ZoneId> = self.dispatch.zones.all().map(|(zone, _)| zone).collect();
        self.tell(everybody, write::shutdown);
        self.serve_zones();
        self.tell_refusals();
        let faults = self.dispatch.switch_faults.take_all(self.now_ms, now_unix_ms());
        self.tell_records(faults);
        self.southbound.close_all("the node shuts down");
    }
}

/// Sets the kernel's limits for switches and apps.
fn limit(kernel: &mut Kernel, limits: &NodeLimits) {
    kernel.fill_tables_to(limits.table_room());
    kernel.know_rules_up_to(limits.rules_per_switch);
    kernel.limit_punts(limits.punts());
    kernel.on_overlap(limits.on_overlap.to_kernel());
    kernel.meter_punts(limits.packet_in_meter_per_s);
}

/// The wall clock, for records.
pub fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a token belongs to a connection.
fn southbound_owns(token: Token) -> bool {
    token.0 >= FIRST_CONNECTION
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
