//! The loop of a running network: sockets, clock and requests in; sockets, events and answers out.
//!
//! It never decides anything about packets: the network does.

use mio::{Events, Poll, Token, Waker};
use openflow::{Body, Message};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use super::capture::{Sink, Sinks};
use super::connection::Received;
use super::connections::Connections;
use super::counters::Counters;
use super::event::NetworkEvent;
use super::interfaces::{Bridge, Interfaces};
use super::jump::{Clock, Goals, VirtualTime};
use super::observers::Observers;
use super::ping_all::{PingAll, PingReport};
use super::ping_rounds::PingRounds;
use super::quiescence::QUESTION;
use super::readiness::Readiness;
use super::request::Request;
use crate::network::{CannotChange, Channel, Network, NetworkEffects};
use crate::timing::{Alarm, MonotonicClock};
use crate::topology::Topology;
use crate::validity::{Meter, Release, Verdict};
use software_switch::{Parting, Switch, SwitchOptions};

/// How often it checks whether a caller's condition is met.
const TICK: Duration = Duration::from_millis(20);
/// The longest sleep of the loop. Due events wake it anyway.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How many frames are processed before the sockets' turn.
const FRAMES_AT_ONCE: usize = 4096;
/// How many events of a poll are taken at once. The next poll returns the others.
const POLL_EVENTS: usize = 1024;
/// The token of the timer. Those of connections and interfaces count up from zero.
const TIMER: Token = Token(usize::MAX);

/// The connections that were read in this turn, and must not be read again in it.
struct Served {
    interfaces: BTreeSet<usize>,
    connections: BTreeSet<usize>,
}

/// The loop and its state.
pub(crate) struct Reactor {
    poll: Poll,
    waker: Arc<Waker>,
    clock: MonotonicClock,
    alarm: Alarm,
    network: Network,
    effects: NetworkEffects,
    connections: Connections,
    /// The interfaces of this machine that are bound to ports, if any.
    interfaces: Option<Interfaces>,
    inbox: Receiver<Request>,
    waiting_for_all: Vec<Sender<()>>,
    rounds: PingRounds,
    observers: Observers,
    sinks: Sinks,
    next_tick: Duration,
    /// Callers that wait for a time in the network.
    goals: Goals,
    virtual_time: Option<VirtualTime>,
    meter: Meter,
    /// How many times slower than the clock the profiles of switches are.
    slow_motion: u32,
}

impl Reactor {
    /// A loop that has not started.
    pub(crate) fn new(
        topology: &Topology,
        controllers: &[SocketAddr],
        options: &SwitchOptions,
        time: Clock,
        inbox: Receiver<Request>,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let connections = Connections::new(topology.switches.len(), controllers);
        let waker = Waker::new(poll.registry(), Token(connections.len()))?;
        let clock = MonotonicClock::begin();
        Ok(Reactor {
            waker: Arc::new(waker),
            clock,
            alarm: Alarm::new(clock, poll.registry(), TIMER)?,
            poll,
            network: Network::new(topology, options, Duration::ZERO),
            effects: NetworkEffects::default(),
            connections,
            interfaces: None,
            inbox,
            waiting_for_all: Vec::new(),
            rounds: PingRounds::default(),
            observers: Observers::new(counters),
            sinks: Sinks::default(),
            next_tick: Duration::ZERO,
            goals: Goals::default(),
            virtual_time: (time == Clock::Virtual).then(VirtualTime::default),
            meter: Meter::default().in_slow_motion(options.slow_motion),
            slow_motion: options.slow_motion,
        })
    }

    /// Sends captures to these sinks.
    pub(crate) fn copy_to(&mut self, sinks: Vec<Sink>) {
        self.sinks = Sinks::new(sinks);
        self.sinks.places().for_each(|place| self.network.set_tap(place, true));
    }

    /// Binds the ports of switches to interfaces of this machine.
    pub(crate) fn bind(&mut self, bridges: &[Bridge]) -> io::Result<()> {
        if bridges.is_empty() {
            return Ok(());
        }
        // The waker's token follows those of the connections.
        let first_token = self.connections.len() + 1;
        let (interfaces, ports) = Interfaces::bind(bridges, first_token, self.poll.registry())?;
        for bound in ports {
            let at = (bound.switch, bound.port);
            self.network.add_outside_port(at.0, at.1, bound.hw_addr, bound.name, &mut self.effects);
            self.network.set_outside_link(at.0, at.1, bound.up, &mut self.effects);
        }
        self.interfaces = Some(interfaces);
        Ok(())
    }

    /// The waker for requests to the loop.
    pub(crate) fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    /// Runs until it is told to stop, or until no handle is left.
    pub(crate) fn run(&mut self) {
        let mut events = Events::with_capacity(POLL_EVENTS);
        // In the first turn, every connection is due.
        let mut more = true;
        loop {
            let (due, patience) = if more { (None, Duration::ZERO) } else { (self.due(), self.patience()) };
            if self.alarm.wait(&mut self.poll, &mut events, due, patience).is_err() {
                return;
            }
            let now = self.clock.elapsed();
            let served = self.take_rest(now);
            for event in &events {
                if event.is_read_closed() || event.is_error() {
                    self.connections.on_ending(event.token().0);
                }
                self.on_event(event.token().0, event.is_writable(), &served, now);
            }
            if !self.obey(now) {
                return;
            }
            self.look_at_connections(now);
            self.look_at_interfaces(now);
            if now >= self.next_tick {
                self.next_tick = now + TICK;
                self.answer_if_all_are_ready(now);
            }
            let meant = self.release_due(now);
            let time = self.time_in_network(now);
            let frames_left = self.network.carry(FRAMES_AT_ONCE, time, &mut self.effects);
            self.observers.counters.frames_lost.store(self.network.frames_lost(), Ordering::Relaxed);
            self.resume(now);
            self.go_on_pinging(time);
            self.send_outside();
            self.note_release(meant);
            self.deliver(now);
            more = frames_left || self.connections.has_unread();
            more |= self.interfaces.as_ref().is_some_and(Interfaces::is_crowded);
            more |= self.pass_time(frames_left, more, now);
        }
    }

    /// The network's time: real or virtual.
    fn time_in_network(&self, now: Duration) -> Duration {
        self.virtual_time.as_ref().map_or(now, |time| time.now)
    }

    /// The time of the next event in a network in real time, at which the loop must act exactly.
    fn due(&self) -> Option<Duration> {
        if self.virtual_time.is_some() { None } else { self.next_in_network() }
    }

    /// How long the loop may sleep if nothing arrives and nothing is due.
    fn patience(&self) -> Duration {
        let now = self.clock.elapsed();
        let look = self.connections.next_look().map_or(LONGEST_SLEEP, |at| at.saturating_sub(now));
        let is_asked = !self.waiting_for_all.is_empty() || !self.rounds.is_empty();
        let tick = if is_asked { TICK } else { LONGEST_SLEEP };
        let quiet = self.virtual_time.as_ref().and_then(|time| time.patience(now));
        quiet.unwrap_or(LONGEST_SLEEP).min(look).min(tick)
    }

    /// The time of the network's earliest event, if it has come.
    fn release_due(&self, now: Duration) -> Option<Duration> {
        let due = if self.virtual_time.is_some() { None } else { self.network.next_timed() };
        due.filter(|due| *due <= now)
    }

    /// Tells the meter how late the earliest event was, now that it is carried out. Each turn of the loop counts as one release: others
    /// that were due are later by less.
    fn note_release(&mut self, meant: Option<Duration>) {
        if let Some(meant) = meant {
            let actual = self.clock.elapsed();
            self.meter.on_release(Release { meant, actual, delay: None, base_was_slower: false });
        }
    }

    /// What the meter says. In virtual time, nothing can be late.
    fn judge(&self, now: Duration) -> Verdict {
        match &self.virtual_time {
            Some(time) => Verdict { seconds: time.now.as_secs(), ..Verdict::default() },
            None => self.meter.verdict(now),
        }
    }

    /// The time of the next event that a caller waits for, in the network's time.
    fn next_in_network(&self) -> Option<Duration> {
        [self.network.next_due(), self.rounds.next_due(), self.goals.next()].into_iter().flatten().min()
    }

    /// Answers callers whose time has come. Lets virtual time jump if nothing else must be done now. Returns whether
    /// that causes work.
    fn pass_time(&mut self, frames_left: bool, is_busy: bool, now: Duration) -> bool {
        let Some(virtual_time) = &mut self.virtual_time else {
            self.goals.answer(now);
            return false;
        };
        virtual_time.on_round(frames_left);
        !is_busy && self.is_waited_for() && (self.ask_all() || self.jump(now))
    }

    /// Whether a caller waits for time to pass in the network.
    fn is_waited_for(&self) -> bool {
        !self.rounds.is_empty() || self.goals.next().is_some()
    }

    /// Asks each active controller whether it has anything to send: it answers an echo request after it has read
    /// everything before. Returns whether there are any.
    fn ask_all(&mut self) -> bool {
        let Reactor { virtual_time: Some(virtual_time), connections, network, .. } = self else {
            return false;
        };
        let can_be_asked = |index| {
            let at = connections.channel(index);
            connections.is_open(index) && network.switches()[at.switch].version(at.controller).is_some()
        };
        let asked = virtual_time.ask_next(can_be_asked);
        asked.iter().for_each(|index| self.send_echo(*index, QUESTION));
        !asked.is_empty()
    }

    /// Jumps to the next event, if all controllers are quiet.
    fn jump(&mut self, now: Duration) -> bool {
        let Some(time) = self.virtual_time.as_ref().filter(|time| time.is_quiet(now)) else { return false };
        // Everything up to this time has happened.
        self.goals.answer(time.now);
        let next = if self.is_waited_for() { self.next_in_network() } else { None };
        let (Some(next), Some(virtual_time)) = (next, &mut self.virtual_time) else { return false };
        virtual_time.jump_to(next);
        true
    }

    fn on_event(&mut self, token: usize, writable: bool, served: &Served, now: Duration) {
        match self.interfaces.as_ref().and_then(|interfaces| interfaces.place(token)) {
            Some(place) if served.interfaces.contains(&place) => {}
            Some(place) => self.take_frames(place, now),
            None => {
                if writable && self.connections.on_writable(token) {
                    let at = self.connections.channel(token);
                    self.sinks.on_open(at, self.connections.address(at), now);
                    self.network.on_connected(at, &mut self.effects);
                }
                if token < self.connections.len() && !served.connections.contains(&token) {
                    self.receive(token, now);
                }
            }
        }
    }

    /// Reads connections that had more bytes than were read at once, before those that the poll reports. Returns
    /// which it read.
    fn take_rest(&mut self, now: Duration) -> Served {
        let crowded = self.interfaces.as_mut().map(Interfaces::take_crowded);
        let served =
            Served { interfaces: crowded.unwrap_or_default(), connections: self.connections.take_unread() };
        served.interfaces.iter().for_each(|place| self.take_frames(*place, now));
        served.connections.iter().for_each(|index| self.receive(*index, now));
        served
    }

    /// Passes received frames of an interface to its switch.
    fn take_frames(&mut self, place: usize, now: Duration) {
        let Reactor { interfaces: Some(interfaces), network, effects, .. } = self else { return };
        interfaces.receive(place, |switch, port, frame| {
            network.on_frame_from_outside(switch, port, frame, now, effects);
        });
    }

    /// Sends frames that leave by interfaces.
    fn send_outside(&mut self) {
        let Reactor { interfaces: Some(interfaces), effects, .. } = self else { return };
        for (switch, port, frame) in effects.outside.drain(..) {
            interfaces.send(switch, port, &frame);
        }
        let counted = &self.observers.counters.frames_not_sent;
        let before = counted.swap(interfaces.frames_not_sent, Ordering::Relaxed);
        if interfaces.frames_not_sent > before {
            self.meter.on_lost(interfaces.frames_not_sent - before, self.clock.elapsed());
        }
    }

    /// Tells the meter of frames that came to interfaces and that this process never saw.
    fn note_dropped(&mut self, now: Duration) {
        let dropped = self.interfaces.as_mut().map_or(0, Interfaces::take_dropped);
        if dropped > 0 {
            self.meter.on_lost(dropped, now);
        }
    }

    fn look_at_interfaces(&mut self, now: Duration) {
        let Some(interfaces) = &mut self.interfaces else { return };
        for (switch, port, up) in interfaces.look(self.poll.registry(), now) {
            self.network.set_outside_link(switch, port, up, &mut self.effects);
        }
    }

    /// Whether a switch reads its connections. In virtual time it always does: time stands still until all that the controllers have sent
    /// has been read.
    fn reads(&self, index: usize) -> bool {
        let switch = self.connections.channel(index).switch;
        self.virtual_time.is_some() || self.network.switches()[switch].takes_messages()
    }

    /// Reads the connections of switches that take messages again.
    fn resume(&mut self, now: Duration) {
        for index in self.connections.take_paused() {
            if self.reads(index) {
                self.connections.note_resumed(index);
                self.receive(index, now);
            } else {
                self.connections.stay_paused(index, now);
            }
        }
    }

    /// Reads a controller's messages to a switch, and lets the switch process them.
    fn receive(&mut self, index: usize, now: Duration) {
        if !self.reads(index) {
            return self.connections.pause(index);
        }
        let received = self.connections.read(index);
        let result = self.hand_over(index, now);
        match (received, result) {
            (Ok(_), Ok(())) if !self.reads(index) => self.connections.pause(index),
            (Ok(Received::SomeMore), Ok(())) => self.connections.read_on(index),
            (Ok(Received::All), Ok(())) => {}
            (Err(error), _) => self.connections.close_later(index, error.to_string()),
            (_, Err(why)) => self.connections.close_later(index, why),
        }
    }

    fn hand_over(&mut self, index: usize, now: Duration) -> Result<(), String> {
        let at = self.connections.channel(index);
        let address = self.connections.address(at);
        let time = self.time_in_network(now);
        let Reactor { connections, network, effects, observers, virtual_time, sinks, .. } = self;
        let (mut whole, is_virtual) = (false, virtual_time.is_some());
        let cut = connections.cut(index, |bytes| {
            whole = true;
            sinks.on_bytes(at, false, bytes, now);
            match Message::decode(bytes) {
                Ok(message) => {
                    let before = network.switches()[at.switch].version(at.controller);
                    if let Some(virtual_time) = virtual_time {
                        virtual_time.note_heard(index, &message.body, now);
                    }
                    network.on_received(at, &message, bytes, time, effects);
                    let switch = &network.switches()[at.switch];
                    if before.is_none() {
                        observers.on_version(switch, at.controller, address);
                    }
                    observers.on_received(switch.datapath_id(), &message);
                }
                Err(bad) => {
                    observers.on_bad_input();
                    network.on_bad_input(at, xid_of(bytes), bad.error, bytes, effects);
                }
            }
            let reads = is_virtual || network.switches()[at.switch].takes_messages();
            reads && !effects.close.iter().any(|(closed, _)| *closed == at)
        });
        if whole {
            self.connections.heard(index, now);
        }
        if let Err(bad) = cut {
            self.observers.on_bad_input();
            self.network.on_bad_input(at, 0, bad.error, &[], &mut self.effects);
            return Err(format!("the controller's messages cannot be told apart: {bad}"));
        }
        if self.network.switches()[at.switch].is_known(at.controller) {
            self.connections.known(index, now);
        }
        Ok(())
    }

    fn readiness(&self, now: Duration) -> Readiness<'_> {
        Readiness { network: &self.network, connections: &self.connections, now }
    }

    fn answer_if_all_are_ready(&mut self, now: Duration) {
        if !self.waiting_for_all.is_empty() && self.readiness(now).is_complete() {
            self.waiting_for_all.drain(..).for_each(|waiting| reply(&waiting, ()));
        }
    }

    fn close(&mut self, index: usize, why: String, now: Duration) {
        let at = self.connections.channel(index);
        let switch = &self.network.switches()[at.switch];
        let (datapath_id, controller) = (switch.datapath_id(), self.connections.address(at));
        // A switch that was switched off has forgotten its session, but the connection has not.
        let was_connected = self.connections.is_known(index) || switch.version(at.controller).is_some();
        let counters = &self.observers.counters;
        let counter = if was_connected { &counters.connections_lost } else { &counters.connections_refused };
        counter.fetch_add(1, Ordering::Relaxed);
        let retry_in = self.connections.close(index, why.clone(), self.poll.registry(), now);
        self.network.on_disconnected(at);
        self.sinks.on_close(at, now);
        if let Some(time) = &mut self.virtual_time {
            time.note_gone(index);
        }
        self.observers.tell(|| NetworkEvent::SwitchDisconnected { datapath_id, controller, why, retry_in });
    }

    fn look_at_connections(&mut self, now: Duration) {
        let Reactor { connections, network, observers, poll, .. } = self;
        let is_on = |switch| network.is_switch_up(switch);
        let to_probe = connections.check_due(now, poll.registry(), &observers.counters, is_on);
        to_probe.into_iter().for_each(|index| self.send_echo(index, &[]));
    }

    fn send_echo(&mut self, index: usize, payload: &[u8]) {
        let at = self.connections.channel(index);
        if let Some(version) = self.network.switches()[at.switch].version(at.controller) {
            let body = Body::EchoRequest(payload.to_vec());
            self.effects.messages.push((at, Message { version, xid: 0, body }));
        }
    }

    /// Processes requests from handles. Returns whether to go on.
    fn obey(&mut self, now: Duration) -> bool {
        let time = self.time_in_network(now);
        loop {
            match self.inbox.try_recv() {
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) | Ok(Request::Stop) => return false,
                Ok(request) => self.answer(request, time, now),
            }
        }
    }

    fn answer(&mut self, request: Request, time: Duration, now: Duration) {
        let Reactor { network, effects, .. } = self;
        match request {
            Request::WaitConnected(answer) => {
                self.waiting_for_all.push(answer);
                self.answer_if_all_are_ready(now);
            }
            Request::ListMissing(answer) => reply(&answer, self.readiness(now).missing()),
            Request::PingAll { ip, timeout, answer } => {
                let round = PingAll::new(network.hosts().len(), timeout, self.rounds.next_sequence);
                self.rounds.add(round.over(ip), answer);
                self.go_on_pinging(time);
            }
            Request::Ping { from, to, timeout, answer, begun } => {
                reply(&begun, self.begin_ping((&from, &to), timeout, answer, time));
            }
            Request::ViewSwitches(answer) => {
                reply(&answer, network.switches().iter().map(Switch::view).collect())
            }
            Request::CountSwitches(answer) => {
                reply(&answer, network.switches().iter().map(Switch::counters).sum());
            }
            Request::SetLink { link, up } => network.set_link(link, up, effects),
            Request::Change { change, answer } => reply(&answer, network.change(&change, time, effects)),
            Request::PassTo { time, answer } => self.goals.add(time, answer),
            Request::SendFrame { host, frame, answer } => {
                reply(&answer, network.send_frame(&host, frame, time, effects));
            }
            Request::StartFlow { spec, answer } => reply(&answer, network.start_flow(&spec, time, effects)),
            Request::StopFlow { id, answer } => reply(&answer, network.stop_flow(id, time, effects)),
            Request::ReportFlow { id, answer } => reply(&answer, network.flow_report(id)),
            Request::StartQueries { spec, answer } => {
                reply(&answer, network.start_queries(&spec, time, effects));
            }
            Request::ReportQueries { id, answer } => reply(&answer, network.queries_report(id)),
            Request::CountHosts(answer) => reply(&answer, network.counters_of_hosts()),
            Request::CountReceived(answer) => reply(&answer, network.received_by_hosts()),
            Request::CountLinks(answer) => reply(&answer, network.counters_of_links()),
            Request::KeepSpanningTree => network.keep_spanning_tree(effects),
            Request::Observe { audience, listening } => {
                self.observers.add(audience);
                reply(&listening, ());
            }
            Request::RestartMeter => {
                self.note_dropped(now);
                self.meter = Meter::beginning_at(now).in_slow_motion(self.slow_motion);
            }
            Request::NoteMachine(reading) => {
                self.note_dropped(now);
                self.meter.on_reading(reading, now);
            }
            Request::Judge(answer) => {
                self.note_dropped(now);
                reply(&answer, self.judge(now));
            }
            Request::Stop => {}
        }
    }

    fn begin_ping(
        &mut self,
        (from, to): (&str, &str),
        timeout: Duration,
        answer: Sender<PingReport>,
        now: Duration,
    ) -> Result<(), CannotChange> {
        let pair = (self.network.host_named(from)?, self.network.host_named(to)?);
        self.rounds.add(PingAll::of_pairs([pair], timeout, self.rounds.next_sequence), answer);
        self.go_on_pinging(now);
        Ok(())
    }

    fn go_on_pinging(&mut self, now: Duration) {
        self.rounds.go_on(&mut self.network, &mut self.effects, now, &mut self.observers);
    }

    /// Sends the switches' messages, and closes connections.
    fn deliver(&mut self, now: Duration) {
        self.sinks.on_frames(&mut self.effects.captured);
        let mut messages = std::mem::take(&mut self.effects.messages);
        for (at, message) in messages.drain(..) {
            self.push(at, &message);
        }
        self.effects.messages = messages;
        self.connections.flush();
        let index = |(at, why): (Channel, Parting)| (self.connections.index(at), why.to_string());
        let by_switch = self.effects.close.drain(..).map(index).collect();
        for (index, why) in self.connections.take_closing(by_switch) {
            self.close(index, why, now);
        }
    }

    fn push(&mut self, at: Channel, message: &Message) {
        let index = self.connections.index(at);
        let is_packet_in = matches!(message.body, Body::PacketIn(_));
        if !self.connections.push(index, message, is_packet_in, &self.observers.counters) {
            return;
        }
        if let Some(time) = &mut self.virtual_time {
            time.note_said(index, &message.body, self.clock.elapsed());
        }
        if self.sinks.is_heard(at) {
            let mut bytes = Vec::new();
            // It was encoded a moment ago, so it can be encoded again.
            let _ = message.encode(&mut bytes);
            self.sinks.on_bytes(at, true, &bytes, self.clock.elapsed());
        }
        self.observers.on_sent(self.network.switches()[at.switch].datapath_id(), message);
    }
}

/// Answers a caller, which may have stopped waiting.
fn reply<T>(to: &Sender<T>, answer: T) {
    let _ = to.send(answer);
}

/// The transaction id of a message that has at least its header.
fn xid_of(bytes: &[u8]) -> u32 {
    openflow::Header::read(bytes).map_or(0, |header| header.xid)
}
