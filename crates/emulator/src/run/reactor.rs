//! The loop of a running network: sockets, clock and requests in; sockets, events and answers out.
//!
//! It never decides anything about packets: the network does.

use flow::{DatapathId, Field, PortNo};
use mio::{Events, Poll, Token, Waker};
use openflow::message::NO_BUFFER;
use openflow::{Body, Message, Version};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use super::capture::{Sink, Sinks};
use super::connection::{Connection, Due, Received};
use super::event::{Audience, Event};
use super::interfaces::{Bridge, Interfaces};
use super::jump::VirtualTime;
use super::ping_all::{PingAll, PingReport};
use super::quiescence::QUESTION;
use super::{Clock, Command, Counters};
use crate::network::{CannotChange, Channel, Network, NetworkEffects};
use crate::topology::Topology;
use software_switch::{ControllerId, Parting, Switch, SwitchOptions};

/// How often it checks whether a caller's condition is met.
const TICK: Duration = Duration::from_millis(20);
/// How many connections to one controller may be in their handshake. Thousands at once would look like an attack, and
/// be refused. The others wait. A controller counts a connection a little longer than the switch does. A Burnet node
/// allows 256.
const GREETINGS_AT_ONCE: usize = 128;
/// The longest sleep of the loop. Due events wake it anyway.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How often interfaces of the machine are checked for existence and link.
const LOOK: Duration = Duration::from_secs(1);
/// After this time without a first rule, a 1.3 switch is assumed to need none.
const FIRST_RULE_PATIENCE: Duration = Duration::from_millis(500);
/// How many frames are processed before the sockets' turn.
const FRAMES_AT_ONCE: usize = 4096;
/// How many bytes are read at once.
const READ_BYTES: usize = 64 * 1024;
/// How many events of a poll are taken at once. The next poll returns the others.
const POLL_EVENTS: usize = 1024;

/// The connections that were read in this turn, and must not be read again in it.
struct Served {
    interfaces: BTreeSet<usize>,
    connections: BTreeSet<usize>,
}

/// The loop and its state.
pub(crate) struct Reactor {
    poll: Poll,
    waker: Arc<Waker>,
    began: Instant,
    controllers: Vec<SocketAddr>,
    network: Network,
    effects: NetworkEffects,
    /// The connections of the first switch to all controllers, then those of the second, and so on.
    connections: Vec<Connection>,
    /// The read buffer of all connections, so that idle ones need none.
    scratch: Vec<u8>,
    /// The interfaces of this machine that are bound to ports, if any.
    interfaces: Option<Interfaces>,
    /// Interfaces with more frames than were read at once. Each is in it once, even if the poll reports it again.
    crowded: BTreeSet<usize>,
    next_look: Duration,
    /// Connections with more bytes than were read at once, in the same way.
    unread: BTreeSet<usize>,
    /// Connections with unsent bytes.
    unsent: Vec<usize>,
    /// Connections to close, with the reason, once their bytes are sent.
    closing: Vec<(usize, String)>,
    inbox: Receiver<Command>,
    waiting_for_all: Vec<Sender<()>>,
    rounds: Vec<(PingAll, Sender<PingReport>)>,
    /// The first sequence number of the next round of pings.
    next_sequence: u16,
    audience: Vec<Audience>,
    sinks: Sinks,
    counters: Arc<Counters>,
    next_tick: Duration,
    /// When to check each connection next. Each is in it once.
    looks: BTreeSet<(Duration, usize)>,
    look_at: Vec<Duration>,
    /// For each controller: connections in their handshake, and connections that wait to begin it.
    greeting: Vec<BTreeSet<usize>>,
    in_line: Vec<BTreeSet<usize>>,
    /// Callers that wait for a time in the network.
    pub(super) goals: Vec<(Duration, Sender<()>)>,
    pub(super) virtual_time: Option<VirtualTime>,
}

impl Reactor {
    /// A loop that has not started.
    pub(crate) fn new(
        topology: &Topology,
        controllers: &[SocketAddr],
        options: &SwitchOptions,
        clock: Clock,
        inbox: Receiver<Command>,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let connections = topology.switches.len() * controllers.len();
        let waker = Waker::new(poll.registry(), Token(connections))?;
        Ok(Reactor {
            waker: Arc::new(waker),
            poll,
            began: Instant::now(),
            controllers: controllers.to_vec(),
            network: Network::new(topology, options, Duration::ZERO),
            effects: NetworkEffects::default(),
            connections: (0..connections as u64).map(Connection::new).collect(),
            scratch: vec![0; READ_BYTES],
            interfaces: None,
            crowded: BTreeSet::new(),
            next_look: LOOK,
            unread: BTreeSet::new(),
            unsent: Vec::new(),
            closing: Vec::new(),
            inbox,
            waiting_for_all: Vec::new(),
            rounds: Vec::new(),
            next_sequence: 0,
            audience: Vec::new(),
            sinks: Sinks::default(),
            counters,
            next_tick: Duration::ZERO,
            looks: (0..connections).map(|index| (Duration::ZERO, index)).collect(),
            look_at: vec![Duration::ZERO; connections],
            greeting: vec![BTreeSet::new(); controllers.len()],
            in_line: vec![BTreeSet::new(); controllers.len()],
            goals: Vec::new(),
            virtual_time: (clock == Clock::Virtual).then(VirtualTime::default),
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

    /// Passes received frames of an interface to its switch.
    fn take_frames(&mut self, place: usize, now: Duration) {
        let Reactor { interfaces: Some(interfaces), network, effects, .. } = self else { return };
        let more = interfaces.receive(place, |switch, port, frame| {
            network.on_frame_from_outside(switch, port, frame, now, effects);
        });
        if more {
            self.crowded.insert(place);
        }
    }

    /// Sends frames that leave by interfaces.
    fn send_outside(&mut self) {
        let Reactor { interfaces: Some(interfaces), effects, .. } = self else { return };
        for (switch, port, frame) in effects.outside.drain(..) {
            interfaces.send(switch, port, &frame);
        }
    }

    fn look_at_interfaces(&mut self, now: Duration) {
        let Some(interfaces) = &mut self.interfaces else { return };
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK;
        self.counters.frames_not_sent.store(interfaces.frames_not_sent, Ordering::Relaxed);
        for (switch, port, up) in interfaces.look(self.poll.registry()) {
            self.network.set_outside_link(switch, port, up, &mut self.effects);
        }
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
            let patience = if more { Duration::ZERO } else { self.patience() };
            match self.poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                _ => {}
            }
            let now = self.began.elapsed();
            let served = self.take_rest(now);
            for event in &events {
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
            let time = self.time_in_network(now);
            let frames_left = self.network.carry(FRAMES_AT_ONCE, time, &mut self.effects);
            self.counters.frames_lost.store(self.network.frames_lost(), Ordering::Relaxed);
            self.go_on_pinging(time);
            self.send_outside();
            self.deliver(now);
            more = frames_left || !self.unread.is_empty() || !self.crowded.is_empty();
            more |= self.pass_time(frames_left, more, now);
        }
    }

    /// The network's time: real or virtual.
    pub(super) fn time_in_network(&self, now: Duration) -> Duration {
        self.virtual_time.as_ref().map_or(now, |time| time.now)
    }

    /// How long the loop may sleep if nothing arrives.
    fn patience(&self) -> Duration {
        let now = self.began.elapsed();
        let look = self.looks.first().map_or(LONGEST_SLEEP, |(at, _)| at.saturating_sub(now));
        let somebody_waits = !self.waiting_for_all.is_empty() || !self.rounds.is_empty();
        let tick = if somebody_waits { TICK } else { LONGEST_SLEEP };
        let due = match &self.virtual_time {
            Some(time) => time.patience(now),
            None => self.next_in_network().map(|due| due.saturating_sub(now)),
        };
        due.unwrap_or(LONGEST_SLEEP).min(look).min(tick)
    }

    /// The time of the next event that a caller waits for, in the network's time.
    pub(super) fn next_in_network(&self) -> Option<Duration> {
        let round = self.rounds.iter().filter_map(|(round, _)| round.next_due()).min();
        let goal = self.goals.iter().map(|(time, _)| *time).min();
        [self.network.next_due(), round, goal].into_iter().flatten().min()
    }

    /// Whether a caller waits for time to pass in the network.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.rounds.is_empty() || !self.goals.is_empty()
    }

    /// Whether a connection is open and has a version.
    pub(super) fn can_be_asked(&self, index: usize) -> bool {
        let at = self.channel(index);
        self.connections[index].is_open()
            && self.network.switches()[at.switch].version(at.controller).is_some()
    }

    /// Sends an echo request, which a controller answers after it has read everything before.
    pub(super) fn ask_whether_quiet(&mut self, index: usize) {
        self.send_echo(index, QUESTION);
    }

    fn on_event(&mut self, token: usize, writable: bool, served: &Served, now: Duration) {
        match self.interfaces.as_ref().and_then(|interfaces| interfaces.place(token)) {
            Some(place) if served.interfaces.contains(&place) => {}
            Some(place) => self.take_frames(place, now),
            None => {
                self.on_socket(token, writable, now);
                if token < self.connections.len() && !served.connections.contains(&token) {
                    self.receive(token, now);
                }
            }
        }
    }

    /// Reads connections that had more bytes than were read at once, before those that the poll reports. Returns
    /// which it read.
    fn take_rest(&mut self, now: Duration) -> Served {
        let served = Served {
            interfaces: std::mem::take(&mut self.crowded),
            connections: std::mem::take(&mut self.unread),
        };
        served.interfaces.iter().for_each(|place| self.take_frames(*place, now));
        served.connections.iter().for_each(|index| self.receive(*index, now));
        served
    }

    fn on_socket(&mut self, index: usize, writable: bool, now: Duration) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        if writable {
            match connection.on_writable() {
                Ok(true) => {
                    let at = self.channel(index);
                    self.sinks.on_open(at, self.controllers[at.controller.0], now);
                    self.network.on_connected(at, &mut self.effects);
                }
                Ok(false) => {}
                Err(error) => return self.closing.push((index, error.to_string())),
            }
            self.unsent.push(index);
        }
    }

    /// The switch and controller of a connection.
    fn channel(&self, index: usize) -> Channel {
        channel_of(index, self.controllers.len())
    }

    fn datapath_id(&self, switch: usize) -> DatapathId {
        self.network.switches()[switch].datapath_id()
    }

    /// Reads a controller's messages to a switch, and lets the switch process them.
    fn receive(&mut self, index: usize, now: Duration) {
        let received = self.connections[index].read(&mut self.scratch);
        let result = self.hand_over(index, now);
        match (received, result) {
            (Ok(Received::SomeMore), Ok(())) => {
                self.unread.insert(index);
            }
            (Ok(Received::All), Ok(())) => {}
            (Err(error), _) => self.closing.push((index, error.to_string())),
            (_, Err(why)) => self.closing.push((index, why)),
        }
    }

    fn hand_over(&mut self, index: usize, now: Duration) -> Result<(), String> {
        let at = self.channel(index);
        let time = self.time_in_network(now);
        let Reactor {
            connections,
            controllers,
            network,
            effects,
            counters,
            audience,
            virtual_time,
            sinks,
            ..
        } = self;
        let mut whole = false;
        let cut = connections[index].cut(|bytes| {
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
                        note_connected(switch, at.controller, controllers, counters, audience);
                    }
                    note_received(switch.datapath_id(), &message, counters, audience);
                }
                Err(bad) => {
                    counters.bad_messages.fetch_add(1, Ordering::Relaxed);
                    network.on_bad_input(at, xid_of(bytes), bad.error, bytes, effects);
                }
            }
            !effects.close.iter().any(|(closed, _)| *closed == at)
        });
        if whole {
            self.connections[index].heard(now);
        }
        if let Err(bad) = cut {
            self.counters.bad_messages.fetch_add(1, Ordering::Relaxed);
            self.network.on_bad_input(at, 0, bad.error, &[], &mut self.effects);
            return Err(format!("the controller's messages cannot be told apart: {bad}"));
        }
        if self.network.switches()[at.switch].is_known(at.controller) {
            self.connections[index].known(now);
            self.greeting[at.controller.0].remove(&index);
        }
        Ok(())
    }

    /// Whether a switch is ready for traffic. A 1.3 switch without rules drops everything, so it gets a moment for
    /// its first rule. A switch that is off counts as ready.
    fn is_ready(&self, switch: usize, now: Duration) -> bool {
        if !self.network.is_switch_up(switch) {
            return true;
        }
        let this = &self.network.switches()[switch];
        (0..self.controllers.len()).any(|controller| {
            let connection = &self.connections[switch * self.controllers.len() + controller];
            connection.known_since.is_some_and(|since| {
                this.version(ControllerId(controller)) == Some(Version::V1_0)
                    || this.flow_count() > 0
                    || now.saturating_sub(since) >= FIRST_RULE_PATIENCE
            })
        })
    }

    fn answer_if_all_are_ready(&mut self, now: Duration) {
        if !self.waiting_for_all.is_empty()
            && (0..self.network.switches().len()).all(|switch| self.is_ready(switch, now))
        {
            for waiting in self.waiting_for_all.drain(..) {
                // The caller may have stopped waiting.
                let _ = waiting.send(());
            }
        }
    }

    fn close(&mut self, index: usize, why: String, now: Duration) {
        let at = self.channel(index);
        // A switch that was switched off has forgotten its session, but the connection has not.
        let was_connected = self.connections[index].known_since.is_some()
            || self.network.switches()[at.switch].version(at.controller).is_some();
        let counter =
            if was_connected { &self.counters.connections_lost } else { &self.counters.connections_refused };
        counter.fetch_add(1, Ordering::Relaxed);
        let retry_in = self.connections[index].close(why.clone(), self.poll.registry(), now);
        self.network.on_disconnected(at);
        self.sinks.on_close(at, now);
        self.look(index, now + retry_in);
        self.greeting[at.controller.0].remove(&index);
        if let Some(time) = &mut self.virtual_time {
            time.note_gone(index);
        }
        let (datapath_id, controller) = (self.datapath_id(at.switch), self.controllers[at.controller.0]);
        self.tell(Event::SwitchDisconnected { datapath_id, controller, why, retry_in });
    }

    /// Sets when a connection is checked next.
    fn look(&mut self, index: usize, at: Duration) {
        self.looks.remove(&(self.look_at[index], index));
        self.look_at[index] = at;
        self.looks.insert((at, index));
    }

    fn look_at_connections(&mut self, now: Duration) {
        while let Some((_, index)) = self.looks.first().copied().filter(|(at, _)| *at <= now) {
            match self.connections[index].due(now) {
                Due::Nothing => {}
                Due::Connect if !self.network.is_switch_up(self.channel(index).switch) => {}
                Due::Connect => {
                    let controller = self.channel(index).controller.0;
                    self.in_line[controller].insert(index);
                }
                Due::Probe => self.probe(index),
                Due::GiveUp => self.leave(index, "the controller says nothing"),
                Due::GiveUpGreeting => self.leave(index, "the controller never asks what the switch is"),
            }
            self.look(index, self.connections[index].next_look(now));
        }
        for controller in 0..self.controllers.len() {
            while self.greeting[controller].len() < GREETINGS_AT_ONCE
                && let Some(index) = self.in_line[controller].pop_first()
            {
                self.greeting[controller].insert(index);
                self.connect(index, now);
            }
        }
    }

    fn connect(&mut self, index: usize, now: Duration) {
        self.counters.attempts.fetch_add(1, Ordering::Relaxed);
        let to = self.controllers[self.channel(index).controller.0];
        let registry = self.poll.registry();
        if let Err(error) = self.connections[index].connect(to, Token(index), registry, now) {
            self.closing.push((index, error.to_string()));
        }
    }

    fn leave(&mut self, index: usize, why: &str) {
        self.counters.silences.fetch_add(1, Ordering::Relaxed);
        self.closing.push((index, why.to_owned()));
    }

    fn probe(&mut self, index: usize) {
        self.connections[index].probed();
        self.send_echo(index, &[]);
    }

    fn send_echo(&mut self, index: usize, payload: &[u8]) {
        let at = self.channel(index);
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
                Err(TryRecvError::Disconnected) | Ok(Command::Stop) => return false,
                Ok(Command::WaitConnected(answer)) => {
                    self.waiting_for_all.push(answer);
                    self.answer_if_all_are_ready(now);
                }
                Ok(Command::ListMissing(answer)) => reply(&answer, self.missing(now)),
                Ok(Command::PingAll { ip, timeout, answer }) => {
                    let hosts = self.network.hosts().len();
                    self.begin_round(PingAll::new(hosts, timeout, self.next_sequence).over(ip), answer, time);
                }
                Ok(Command::Ping { from, to, timeout, answer, begun }) => {
                    let done = self.begin_ping((&from, &to), timeout, answer, time);
                    reply(&begun, done);
                }
                Ok(Command::ViewSwitches(answer)) => {
                    reply(&answer, self.network.switches().iter().map(Switch::view).collect())
                }
                Ok(Command::SetLink { link, up }) => self.network.set_link(link, up, &mut self.effects),
                Ok(Command::Change { change, answer }) => {
                    reply(&answer, self.network.change(&change, time, &mut self.effects))
                }
                Ok(Command::PassTo { time, answer }) => self.goals.push((time, answer)),
                Ok(Command::StartFlow { spec, answer }) => {
                    reply(&answer, self.network.start_flow(&spec, time, &mut self.effects))
                }
                Ok(Command::StopFlow { id, answer }) => {
                    reply(&answer, self.network.stop_flow(id, time, &mut self.effects))
                }
                Ok(Command::ReportFlow { id, answer }) => reply(&answer, self.network.flow_report(id)),
                Ok(Command::CountHosts(answer)) => reply(&answer, self.network.counters_of_hosts()),
                Ok(Command::CountLinks(answer)) => reply(&answer, self.network.counters_of_links()),
                Ok(Command::KeepSpanningTree) => self.network.keep_spanning_tree(&mut self.effects),
                Ok(Command::Observe { audience, listening }) => {
                    self.audience.push(audience);
                    // If this fails, the caller is gone, and its observer too.
                    let _ = listening.send(());
                }
            }
        }
    }

    fn missing(&self, now: Duration) -> Vec<(DatapathId, String)> {
        let unready = (0..self.network.switches().len()).filter(|switch| !self.is_ready(*switch, now));
        unready.map(|switch| (self.datapath_id(switch), self.why_not_ready(switch))).collect()
    }

    /// Why a switch is not ready, for the controller that is nearest to it.
    fn why_not_ready(&self, switch: usize) -> String {
        let first = switch * self.controllers.len();
        let connections = &self.connections[first..first + self.controllers.len()];
        let furthest = connections
            .iter()
            .max_by_key(|connection| (connection.known_since.is_some(), connection.is_open()));
        match furthest.map(|connection| (connection, connection.known_since, connection.is_open())) {
            None => "it has no controller".to_owned(),
            Some((_, Some(_), _)) => "the controller has not given the switch a rule yet".to_owned(),
            Some((_, None, true)) => "the controller has not asked what the switch is".to_owned(),
            Some((connection, None, false)) => connection.last_words.clone(),
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
        self.begin_round(PingAll::of_pairs([pair], timeout, self.next_sequence), answer, now);
        Ok(())
    }

    fn begin_round(&mut self, round: PingAll, answer: Sender<PingReport>, now: Duration) {
        self.next_sequence = round.next_sequence();
        self.rounds.push((round, answer));
        self.go_on_pinging(now);
    }

    /// Processes replies, gives up pings, sends the next ones, and answers when a round is over.
    fn go_on_pinging(&mut self, now: Duration) {
        let replies = std::mem::take(&mut self.effects.replies);
        let mut told = Vec::new();
        for (round, _) in &mut self.rounds {
            for (host, reply) in &replies {
                if let Some((from, to)) = round.on_reply(*host, reply) {
                    told.push((from, to, Some(reply.round_trip)));
                }
            }
            let lost = round.give_up(&mut self.network, now);
            told.extend(lost.into_iter().map(|(from, to)| (from, to, None)));
            round.send(&mut self.network, now, &mut self.effects);
        }
        for (from, to, round_trip) in told {
            let name = |host: usize| self.network.hosts()[host].name().to_owned();
            let (from, to) = (name(from), name(to));
            self.tell(match round_trip {
                Some(round_trip) => Event::PingOk { from, to, round_trip },
                None => Event::PingLost { from, to },
            });
        }
        let network = &self.network;
        self.rounds.retain(|(round, answer)| {
            if round.is_done() {
                reply(answer, round.report(network));
            }
            !round.is_done()
        });
    }

    /// Sends the switches' messages, and closes connections.
    fn deliver(&mut self, now: Duration) {
        self.sinks.on_frames(&mut self.effects.captured);
        let mut messages = std::mem::take(&mut self.effects.messages);
        for (at, message) in messages.drain(..) {
            self.push(at, &message);
        }
        self.effects.messages = messages;
        let mut unsent = std::mem::take(&mut self.unsent);
        unsent.sort_unstable();
        unsent.dedup();
        for index in unsent.drain(..) {
            if let Err(error) = self.connections[index].flush() {
                self.closing.push((index, error.to_string()));
            }
        }
        self.unsent = unsent;
        self.close_all(now);
    }

    /// Closes each connection once, even if there are several reasons. The switch's own reason comes first.
    fn close_all(&mut self, now: Duration) {
        let controllers = self.controllers.len();
        let parted =
            |(at, why): (Channel, Parting)| (at.switch * controllers + at.controller.0, why.to_string());
        let mut closing: Vec<_> = self.effects.close.drain(..).map(parted).collect();
        closing.append(&mut self.closing);
        closing.sort_by_key(|(index, _)| *index);
        closing.dedup_by_key(|(index, _)| *index);
        for (index, why) in closing {
            self.close(index, why, now);
        }
    }

    fn push(&mut self, at: Channel, message: &Message) {
        let index = at.switch * self.controllers.len() + at.controller.0;
        let connection = &mut self.connections[index];
        if !connection.is_open() {
            return;
        }
        let is_packet_in = matches!(message.body, Body::PacketIn(_));
        if is_packet_in && !connection.has_room_for_packet_ins() {
            self.counters.packet_ins_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        match connection.push(message) {
            Ok(()) => self.unsent.push(index),
            Err(why) => return self.closing.push((index, why)),
        }
        if let Some(time) = &mut self.virtual_time {
            time.note_said(index, &message.body, self.began.elapsed());
        }
        if self.sinks.is_heard(at) {
            let mut bytes = Vec::new();
            // It was decoded a moment ago, so it can be encoded.
            let _ = message.encode(&mut bytes);
            self.sinks.on_bytes(at, true, &bytes, self.began.elapsed());
        }
        self.tell_sent(at.switch, message);
    }

    fn tell_sent(&mut self, switch: usize, message: &Message) {
        let datapath_id = self.datapath_id(switch);
        match &message.body {
            Body::PacketIn(packet_in) => {
                self.counters.packet_ins.fetch_add(1, Ordering::Relaxed);
                let in_port = packet_in.matching.get(Field::InPort).map_or(0, |(port, _)| port as u32);
                self.tell(Event::PacketIn {
                    datapath_id,
                    in_port: PortNo(in_port),
                    reason: packet_in.reason,
                    total_len: packet_in.total_len,
                    buffered: packet_in.buffer_id != NO_BUFFER,
                });
            }
            Body::Error(error) => {
                self.counters.errors.fetch_add(1, Ordering::Relaxed);
                self.tell(Event::ErrorSent { datapath_id, kind: error.kind, code: error.code });
            }
            _ => {}
        }
    }

    fn tell(&mut self, event: Event) {
        tell(&mut self.audience, || event);
    }
}

/// Answers a caller, which may be gone.
fn reply<T>(to: &Sender<T>, answer: T) {
    let _ = to.send(answer);
}

/// Sends an event to all observers. Makes the event only if there are any.
fn tell(audience: &mut Vec<Audience>, event: impl FnOnce() -> Event) {
    if !audience.is_empty() {
        let event = event();
        audience.retain(|observer| observer.tell(event.clone()));
    }
}

/// The switch and the controller of a connection.
fn channel_of(index: usize, controllers: usize) -> Channel {
    Channel { switch: index / controllers, controller: ControllerId(index % controllers) }
}

/// Counts and reports that a switch has agreed on a version, if it has.
fn note_connected(
    switch: &Switch,
    controller: ControllerId,
    controllers: &[SocketAddr],
    counters: &Counters,
    audience: &mut Vec<Audience>,
) {
    if let Some(version) = switch.version(controller) {
        counters.connections.fetch_add(1, Ordering::Relaxed);
        let (datapath_id, controller) = (switch.datapath_id(), controllers[controller.0]);
        tell(audience, || Event::SwitchConnected { datapath_id, controller, version });
    }
}

/// Counts and reports what a controller has sent.
fn note_received(
    datapath_id: DatapathId,
    message: &Message,
    counters: &Counters,
    audience: &mut Vec<Audience>,
) {
    match &message.body {
        Body::FlowMod(flow_mod) => {
            counters.flow_mods.fetch_add(1, Ordering::Relaxed);
            tell(audience, || Event::FlowMod { datapath_id, flow_mod: Arc::new(flow_mod.clone()) });
        }
        Body::PacketOut(_) => {
            counters.packet_outs.fetch_add(1, Ordering::Relaxed);
            tell(audience, || Event::PacketOut { datapath_id });
        }
        _ => {}
    }
}

/// The transaction id of a message that has at least its header.
fn xid_of(bytes: &[u8]) -> u32 {
    openflow::Header::read(bytes).map_or(0, |header| header.xid)
}
