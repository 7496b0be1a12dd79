//! All switch connections of one worker.
//!
//! ```text
//!   accepted stream ──adopt──> ┌────────────┐ ──sink──> switch up, packet-in, receipts …  (on_ready, resume, on_tick, flush)
//!   readiness ──────on_ready─> │ Southbound │
//!   commands ───────send─────> └────────────┘ ──flush──> one write for many messages
//! ```
//!
//! Only this part of the crate acts: it reads and writes sockets, updates the roster, and writes the log. It starts
//! no thread, never blocks, and never reads the clock.

mod timed;

use crate::config::SouthboundConfig;
use crate::connection::{Connection, ReadTurn, TurnResources, check_output, is_half_open};
use crate::connections::Connections;
use crate::contested::{Contested, Liveness, Probed};
use crate::fault::{Fault, NotAdopted, Refused, SessionEnd};
use crate::inbox::ReadBuffer;
use crate::line_limit::LineLimit;
use crate::reading_order::{ReadingOrder, pausable};
use crate::receipts::Tag;
use crate::report::{self, EndLimits};
use crate::roster::Roster;
use crate::session::{Session, State};
use crate::snapshot::SessionSnapshot;
use crate::turn::{SessionOutput, SouthboundEvent, Turn};
use abi::Command;
use abi::prepared::PreparedRule;
use flow::DatapathId;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use openflow::message::Role;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Receives the events of a call.
pub type Sink<'a> = dyn FnMut(SouthboundEvent<'_>) + 'a;

/// The switch connections of one worker.
#[derive(Debug)]
pub struct Southbound {
    config: SouthboundConfig,
    roster: Arc<Roster>,
    worker: usize,
    registry: Registry,
    token_base: usize,
    connections: Connections,
    order: ReadingOrder,
    /// How many bytes are read from the next connection in its turn.
    read_bytes: usize,
    /// The connection that was read last.
    last_read: usize,
    ending: Vec<usize>,
    /// Connections that wait for a time. Each once.
    timed: Vec<usize>,
    /// Empty: the memory of the last list, for the next one.
    spare: Vec<usize>,
    contested: Contested,
    buffer: ReadBuffer,
    frame: Vec<u8>,
    /// Empty memory for the output of the connection that is read. It is the same for all connections, so it stays in the processor's cache.
    output: Vec<u8>,
    /// Whether the connection that was read last has this memory.
    is_output_lent: bool,
    limit: LineLimit,
    limit_of_refusals: LineLimit,
    limits_of_ends: EndLimits,
    /// The time in the last call that had it as an argument.
    now_ms: u64,
}

/// The result of a poll for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Data, an end or an error can be read.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The peer sends no more. The end of the stream follows the remaining data.
    pub closed: bool,
}

impl From<&mio::event::Event> for Ready {
    fn from(event: &mio::event::Event) -> Self {
        let (closed, error) = (event.is_read_closed(), event.is_error());
        Ready {
            readable: event.is_readable() || closed || error,
            writable: event.is_writable(),
            closed: closed || error,
        }
    }
}

impl Southbound {
    /// Starts without connections. Tokens from `token_base` on are for its connections. The worker's poll must use
    /// none of them for anything else.
    pub fn new(
        config: SouthboundConfig,
        roster: Arc<Roster>,
        worker: usize,
        registry: Registry,
        token_base: usize,
    ) -> Self {
        config.apply_to(&roster);
        let config_read_bytes = config.read_bytes_per_turn;
        Southbound {
            config,
            roster,
            worker,
            registry,
            token_base,
            connections: Connections::new(),
            order: ReadingOrder::default(),
            read_bytes: config_read_bytes,
            last_read: 0,
            ending: Vec::new(),
            timed: Vec::new(),
            spare: Vec::new(),
            contested: Contested::default(),
            buffer: ReadBuffer::new(),
            frame: Vec::new(),
            output: Vec::new(),
            is_output_lent: false,
            limit: LineLimit::default(),
            limit_of_refusals: LineLimit::of_refusals(),
            limits_of_ends: EndLimits::default(),
            now_ms: 0,
        }
    }

    /// How many bytes of a packet a switch is to send in a packet-in, if it keeps the packet.
    pub fn miss_send_len(&self) -> u16 {
        self.config.miss_send_len
    }

    /// Applies a new configuration. Existing sessions keep their version, role and TLS. They get the new timeouts and
    /// output bounds.
    pub fn reconfigure(&mut self, config: SouthboundConfig) {
        for connection in self.connections.iter_mut() {
            connection.session.reconfigure(&config);
        }
        config.apply_to(&self.roster);
        self.config = config;
        self.pace_anew();
    }

    /// Takes over an accepted stream, and sends the hello at the next flush.
    ///
    /// # Errors
    /// A limit on connections is reached, or the system's error. The stream is closed, and the log has a line about
    /// it.
    pub fn adopt(&mut self, stream: TcpStream, peer: SocketAddr, now_ms: u64) -> Result<(), NotAdopted> {
        self.now_ms = now_ms;
        let adopted = self.roster.connect(peer.ip()).map_err(NotAdopted::NoRoom).and_then(|()| {
            self.insert(stream, peer).map_err(|error| {
                self.roster.finish_handshake(peer.ip());
                self.roster.disconnect(peer.ip());
                NotAdopted::Io(error)
            })
        });
        if let Err(refused) = &adopted {
            report::not_adopted(&mut self.limit_of_refusals, now_ms, peer, refused);
        }
        adopted
    }

    fn insert(&mut self, mut stream: TcpStream, peer: SocketAddr) -> io::Result<()> {
        // Messages are collected here. A second delay in the socket would only cost time.
        stream.set_nodelay(true)?;
        if self.config.receive_buffer_bytes > 0 {
            set_socket_recv_buffer_size(&stream, self.config.receive_buffer_bytes)?;
        }
        let token = Token(self.token_base + self.connections.next_slot());
        self.registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        let mut connection = Box::new(Connection::new(stream, peer, &self.config, self.now_ms));
        let Southbound { config, roster, worker, buffer, frame, now_ms, .. } = self;
        let mut resources = TurnResources {
            config,
            roster,
            worker: *worker,
            buffer,
            frame,
            now_ms: *now_ms,
            sink: &mut |_| {},
        };
        connection.open(&mut resources);
        self.connections.add(connection);
        Ok(())
    }

    /// Whether a token is one of this worker's connections'.
    pub fn owns(&self, token: Token) -> bool {
        token.0 >= self.token_base
    }

    /// A connection is ready. Reads at most a turn's worth. If more is available, [`Southbound::has_backlog`] returns
    /// true.
    pub fn on_ready(&mut self, token: Token, ready: Ready, now_ms: u64, sink: &mut Sink<'_>) {
        self.now_ms = now_ms;
        let Some(slot) = self.note(token, ready) else { return };
        let Southbound { connections, order, .. } = self;
        let Some(connection) = connections.get_mut(slot) else { return };
        // A connection with unread data already waits for its turn, and gets no extra one.
        if ready.readable && !connection.backlogged && !order.hold(slot, connection, now_ms) {
            self.read(slot, sink);
        }
    }

    /// `waited` events of the last connection had to wait for an app. If there are many, the connection is not read
    /// for a moment. Events that may be dropped do not count.
    pub fn on_waited(&mut self, waited: usize) {
        let others = self.order.held();
        let Some(connection) = self.connections.get_mut(self.last_read) else { return };
        connection.pace.on_waited(waited, others, self.now_ms);
        if connection.pace.is_held(self.now_ms) {
            report::held(&mut self.limit, self.now_ms, connection);
        }
    }

    /// Connections that are no longer held can be read again. Call it at the beginning of each turn.
    pub fn release(&mut self, now_ms: u64) {
        self.order.release(&self.connections, now_ms);
    }

    /// Records the result of a poll for a connection. Returns its slot, if the token is one of a connection.
    fn note(&mut self, token: Token, ready: Ready) -> Option<usize> {
        let slot = token.0.checked_sub(self.token_base)?;
        if ready.writable {
            self.connections.mark_dirty(slot);
        }
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.peer_closed |= ready.closed;
            if ready.closed {
                connection.session.on_peer_closed();
            }
        }
        Some(slot)
    }

    /// A connection is ready, but this turn has no time for it. It waits with the connections that have unread data.
    pub fn postpone(&mut self, token: Token, ready: Ready) {
        let Some(slot) = self.note(token, ready) else { return };
        if let Some(connection) = self.connections.get_mut(slot)
            && ready.readable
        {
            self.order.wait(slot, connection);
        }
    }

    /// The datapath id of this connection, if its switch is up and still sends. Otherwise none of its events can wait
    /// for apps.
    pub fn switch_of(&self, token: Token) -> Option<DatapathId> {
        self.pausable(token.0.checked_sub(self.token_base)?)
    }

    /// The same for the connection whose turn [`Southbound::resume`] gives next.
    pub fn next_switch(&self) -> Option<DatapathId> {
        self.pausable(self.order.first()?)
    }

    fn pausable(&self, slot: usize) -> Option<DatapathId> {
        pausable(self.connections.get(slot)?)
    }

    /// Limits the bytes that are read from the next connection. Later connections have the configured limit again.
    pub fn read_at_most(&mut self, bytes: usize) {
        self.read_bytes = bytes.min(self.config.read_bytes_per_turn);
    }

    /// A connection is ready but is not read, because the apps that receive its events have no room. Its data waits
    /// in its socket, so TCP slows the switch down. [`Southbound::unpause`] ends that.
    pub fn pause(&mut self, token: Token, ready: Ready) {
        let Some(slot) = self.note(token, ready) else { return };
        if let Some(connection) = self.connections.get_mut(slot)
            && ready.readable
        {
            self.order.pause(slot, connection);
        }
    }

    /// The same for the connection whose turn is next.
    pub fn pause_next(&mut self) {
        self.order.pause_next();
    }

    /// Whether connections wait for apps.
    pub fn has_paused(&self) -> bool {
        self.order.has_paused()
    }

    /// Connections for which `has_room` returns true wait for their turn again, in their order. So do those that
    /// cannot wait any longer. Call it at the beginning of each turn.
    pub fn unpause(&mut self, mut has_room: impl FnMut(DatapathId) -> bool) {
        let Southbound { order, connections, .. } = self;
        order.unpause(|slot| connections.get(slot).and_then(pausable).is_none_or(&mut has_room));
    }

    /// How many connections wait for their turn.
    pub fn waiting(&self) -> usize {
        self.order.waiting()
    }

    /// Whether connections have more data than their turn allowed. Then call [`Southbound::resume`], and poll without
    /// waiting.
    pub fn has_backlog(&self) -> bool {
        self.order.waiting() > 0
    }

    /// Gives the next connection with unread data another turn, in order. Returns how many waited. To give each its
    /// turn, call it as often as the first call returned.
    pub fn resume(&mut self, now_ms: u64, sink: &mut Sink<'_>) -> usize {
        self.now_ms = now_ms;
        let Southbound { order, connections, .. } = self;
        let waiting = order.waiting();
        let Some(slot) = order.next() else { return 0 };
        if let Some(connection) = connections.get_mut(slot)
            && !order.hold(slot, connection, now_ms)
        {
            self.read(slot, sink);
        }
        waiting
    }

    /// Handles timeouts and echo requests. Call it about once a second.
    pub fn on_tick(&mut self, now_ms: u64, sink: &mut Sink<'_>) {
        self.now_ms = now_ms;
        for slot in 0..self.connections.slots() {
            self.with(slot, sink, |connection, resources| match connection.lingers_until_ms {
                Some(until_ms) if resources.now_ms >= until_ms => Next::Drop,
                Some(_) => Next::Keep,
                None => connection.tick(resources).map_or_else(Next::End, |()| Next::Flush),
            });
        }
    }

    /// Appends a command for a switch to the next [`Southbound::flush`]. `cookie` is the cookie of a flow mod,
    /// including its owner.
    ///
    /// # Errors
    /// Why it is not sent. An accepted command that requests a receipt always gets one.
    pub fn send(
        &mut self,
        datapath: DatapathId,
        command: &Command<'_>,
        cookie: u64,
        tag: Tag,
    ) -> Result<(), Refused> {
        self.append(datapath, |session, waiting, turn| session.send(command, cookie, tag, waiting, turn))
    }

    /// The same for a prepared rule.
    ///
    /// # Errors
    /// As [`Self::send`].
    #[inline]
    pub fn send_rule(&mut self, rule: PreparedRule<'_>, tag: Tag) -> Result<(), Refused> {
        self.append(rule.of_use.datapath, |session, waiting, turn| {
            session.send_rule(rule, tag, waiting, turn)
        })
    }

    /// Sends flow mods that the switch applies all together, or not at all. The tag's zone gets one receipt for all of them, and
    /// [`SouthboundEvent::BundleOver`] follows. The flow mods have their cookies.
    ///
    /// # Errors
    /// Why they are not sent, such as a switch without bundles. Then nothing of them is sent.
    pub fn send_bundle(
        &mut self,
        datapath: DatapathId,
        flow_mods: &[Command<'_>],
        tag: Tag,
        wants_receipt: bool,
    ) -> Result<(), Refused> {
        self.append(datapath, |session, waiting, turn| {
            session.send_bundle(flow_mods, tag, wants_receipt, waiting, turn)
        })
    }

    /// Whether a bundle for this switch may begin now.
    ///
    /// # Errors
    /// As [`Self::send_bundle`].
    pub fn check_bundle(&mut self, datapath: DatapathId, tag: Tag) -> Result<(), Refused> {
        self.append(datapath, |session, _, turn| session.check_bundle(tag, turn.now_ms))
    }

    /// Requests a role from a switch at the next [`Southbound::flush`] (1.3.5, 6.3.4 and 7.3.9). The tag's zone gets
    /// a receipt: `programmed` after the switch confirms the role, `failed` with its error, `unknown` without an
    /// answer.
    ///
    /// # Errors
    /// Why it is not sent. For example, OpenFlow 1.0 has no roles, or [`crate::MAX_ROLE_REQUESTS`] requests already
    /// wait.
    pub fn request_role(&mut self, datapath: DatapathId, role: Role, tag: Tag) -> Result<(), Refused> {
        self.append(datapath, |session, _, turn| session.request_role(role, tag, turn))
    }

    /// Lets a switch's session append to its output. The callback gets the number of bytes that already wait.
    fn append(
        &mut self,
        datapath: DatapathId,
        act: impl FnOnce(&mut Session, usize, &mut Turn<'_>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let slot = self.connections.slot_for_command(datapath).ok_or(Refused::NoSuchSwitch(datapath))?;
        let connection = self.connections.get_mut(slot).filter(|connection| connection.ending.is_none());
        let Some(connection) = connection else { return Err(Refused::NoSuchSwitch(datapath)) };
        let Connection { session, outbox, .. } = connection;
        let waiting = outbox.len();
        let mut turn =
            Turn { now_ms: self.now_ms, out: outbox.end(), frame: &mut self.frame, sink: &mut |_| {} };
        act(session, waiting, &mut turn)?;
        if let Err(end) = check_output(outbox.len(), &self.config) {
            connection.ending = Some(end);
            self.ending.push(slot);
        }
        self.connections.mark_dirty(slot);
        Ok(())
    }

    /// Sends the waiting bytes, and ends the sessions that must end. Call it at the end of each turn of the worker.
    pub fn flush(&mut self, now_ms: u64, sink: &mut Sink<'_>) {
        self.now_ms = now_ms;
        while let Some(slot) = self.ending.pop() {
            self.with(slot, sink, |connection, _| connection.ending.take().map_or(Next::Keep, Next::End));
        }
        while let Some(slot) = self.connections.next_dirty() {
            self.flush_slot(slot, sink);
        }
    }

    /// Sends the output of the connection that was read last. Call it after the commands that its data caused. So a
    /// switch has its answers while the next one is read, and not only at the end of the turn.
    pub fn flush_last_read(&mut self, now_ms: u64, sink: &mut Sink<'_>) {
        self.now_ms = now_ms;
        if !std::mem::take(&mut self.is_output_lent) {
            return;
        }
        let slot = self.last_read;
        let has_output = self.connections.get(slot).is_some_and(|it| !it.outbox.is_empty());
        if has_output && self.connections.take_if_last_dirty(slot) {
            self.flush_slot(slot, sink);
        }
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.outbox.exchange(&mut self.output);
        }
    }

    fn flush_slot(&mut self, slot: usize, sink: &mut Sink<'_>) {
        self.with(slot, sink, |connection, resources| {
            connection.dirty = false;
            match connection.flush(resources) {
                Ok(_) => Next::Keep,
                Err(_) if connection.lingers_until_ms.is_some() => Next::Drop,
                Err(end) => Next::End(end),
            }
        });
    }

    /// Ends a switch's session, at the next flush. `false` if it has none here.
    pub fn end(&mut self, datapath: DatapathId, reason: &str) -> bool {
        let Some(slot) = self.connections.slot_of(datapath) else { return false };
        self.end_slot(slot, reason);
        true
    }

    /// Ends every connection, at the next flush.
    pub fn close_all(&mut self, reason: &str) {
        (0..self.connections.slots()).for_each(|slot| self.end_slot(slot, reason));
    }

    fn end_slot(&mut self, slot: usize, reason: &str) {
        if let Some(connection) = self.connections.get_mut(slot)
            && connection.ending.is_none()
            && connection.lingers_until_ms.is_none()
        {
            connection.ending = Some(SessionEnd::new(Fault::Operator, reason.to_owned()));
            self.ending.push(slot);
        }
    }

    /// Every connection, as the operator sees it.
    pub fn sessions(&self) -> impl Iterator<Item = SessionSnapshot> {
        self.connections
            .iter()
            .filter(|connection| connection.lingers_until_ms.is_none())
            .map(SessionSnapshot::of)
    }

    /// Probes switches whose ids other sessions claim, ends those that do not answer, and admits those whose ids are free. Call it
    /// once in each turn, after the reads. Unless two sessions claim an id, it costs one comparison.
    pub fn settle(&mut self, now_ms: u64, sink: &mut Sink<'_>) {
        self.now_ms = now_ms;
        self.contested.take_probed().into_iter().for_each(|probed| self.judge(probed, sink));
        let Some(challenged) = self.contested.challenged(&self.roster, self.worker, now_ms) else { return };
        challenged.into_iter().for_each(|datapath| self.probe(datapath, sink));
        self.contested.take_claims(now_ms).into_iter().for_each(|slot| self.claim_again(slot, sink));
    }

    /// Whether connections claim ids of other sessions. Then call [`Southbound::settle`] at least every ten milliseconds:
    /// `probe::CLAIM_MS` leaves no more time.
    pub fn has_claims(&self) -> bool {
        !self.contested.is_empty()
    }

    fn probe(&mut self, datapath: DatapathId, sink: &mut Sink<'_>) {
        let Some(slot) = self.connections.slot_of(datapath) else { return };
        self.contested.probe(datapath);
        self.with(slot, sink, |connection, resources| {
            connection.with_turn(resources, |session, turn| session.probe(turn));
            Next::Flush
        });
    }

    fn judge(&mut self, mut probed: Probed, sink: &mut Sink<'_>) {
        let Some(slot) = self.connections.slot_of(probed.datapath) else { return };
        match probed.liveness(self.connections.get(slot), self.now_ms) {
            Liveness::Alive => self.roster.prove(probed.datapath, self.now_ms),
            Liveness::Dead(end) => self.with(slot, sink, |_, _| Next::End(end)),
            Liveness::Unknown => self.contested.keep(probed),
        }
    }

    fn claim_again(&mut self, slot: usize, sink: &mut Sink<'_>) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        connection.is_claiming = false;
        self.with(slot, sink, |connection, resources| {
            connection.claim_again(resources).map_or_else(Next::End, |()| Next::Flush)
        });
    }

    fn read(&mut self, slot: usize, sink: &mut Sink<'_>) {
        self.last_read = slot;
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.outbox.exchange(&mut self.output);
            self.is_output_lent = true;
        }
        let bytes = std::mem::replace(&mut self.read_bytes, self.config.read_bytes_per_turn);
        self.with(slot, sink, |connection, resources| {
            if connection.lingers_until_ms.is_some() {
                return if connection.drain(resources) { Next::Keep } else { Next::Drop };
            }
            match connection.read(bytes, resources) {
                Ok(ReadTurn::Drained) => Next::Flush,
                Ok(ReadTurn::More) => Next::ReadOn,
                Err(end) => Next::End(end),
            }
        });
    }

    /// Takes a connection out of its slot, lets it act, and handles the result.
    fn with(
        &mut self,
        slot: usize,
        sink: &mut Sink<'_>,
        act: impl FnOnce(&mut Connection, &mut TurnResources<'_>) -> Next,
    ) {
        let Some(mut connection) = self.connections.take(slot) else { return };
        let (peer, was_up) = (connection.peer, !is_half_open(&connection.session));
        let Southbound { config, roster, worker, buffer, frame, limit, now_ms, .. } = self;
        let mut effect = |effect: SessionOutput<'_>| match effect {
            SessionOutput::Out(event) => sink(event),
            SessionOutput::Line(line) => report::line(limit, *now_ms, peer, &line),
        };
        let mut resources = TurnResources {
            config,
            roster,
            worker: *worker,
            buffer,
            frame,
            now_ms: *now_ms,
            sink: &mut effect,
        };
        let next = act(&mut connection, &mut resources);
        self.look_at(slot, &mut connection, was_up, sink);
        if connection.is_to_wait_for_its_id() {
            connection.is_claiming = true;
            self.contested.claim(slot);
        }
        match next {
            Next::Keep => self.connections.put_back(slot, connection),
            Next::Flush => {
                self.connections.put_back(slot, connection);
                self.connections.mark_dirty(slot);
            }
            Next::ReadOn => {
                self.order.wait(slot, &mut connection);
                self.connections.put_back(slot, connection);
                self.connections.mark_dirty(slot);
            }
            Next::Drop => self.discard(slot, connection),
            Next::End(end) => self.finish(slot, connection, &end, sink),
        }
    }

    /// Records how the call changed the session.
    fn look_at(&mut self, slot: usize, connection: &mut Connection, was_up: bool, sink: &mut Sink<'_>) {
        let session = &mut connection.session;
        if session.state() != State::Up {
            return;
        }
        let datapath = session.identity().datapath;
        let changed = session.take_facts_changed();
        if !was_up {
            self.connections.switch_up(datapath, slot);
            report::up(&mut self.limit, self.now_ms, connection);
        } else if changed {
            let (ports, desc) = (session.ports().copied().collect(), session.desc().cloned());
            self.roster.update(datapath, ports, desc);
        }
        if !was_up || changed || connection.is_to_pace {
            self.settle_pace(connection, sink);
        }
        if !connection.is_timed && connection.session.due_ms().is_some() {
            connection.is_timed = true;
            self.timed.push(slot);
        }
    }

    /// Ends a session: notifies the kernel and the roster, writes the log, and lets the peer receive its last
    /// messages.
    fn finish(
        &mut self,
        slot: usize,
        mut connection: Box<Connection>,
        end: &SessionEnd,
        sink: &mut Sink<'_>,
    ) {
        if connection.is_claiming {
            connection.is_claiming = false;
            self.contested.withdraw(slot);
        }
        connection.claimed_ms = None;
        report::end(&mut self.limit, &mut self.limits_of_ends, self.now_ms, &connection, end);
        let session = &mut connection.session;
        let is_identified = matches!(session.state(), State::Identified | State::Up);
        let datapath = is_identified.then(|| session.identity().datapath);
        sink(SouthboundEvent::Ended { peer: connection.peer, datapath, end });
        let mut out = |effect: SessionOutput<'_>| {
            if let SessionOutput::Out(event) = effect {
                sink(event);
            }
        };
        let mut turn = Turn {
            now_ms: self.now_ms,
            out: connection.outbox.end(),
            frame: &mut self.frame,
            sink: &mut out,
        };
        session.on_end(&end.reason, &mut turn);
        if session.state() == State::Up {
            let datapath = session.identity().datapath;
            self.connections.switch_down(datapath);
            self.contested.forget(datapath);
            self.roster.leave(datapath);
        } else {
            // Only its last messages are left. They do not count as an unfinished handshake.
            self.roster.finish_handshake(connection.peer.ip());
        }
        let Southbound { config, roster, worker, buffer, frame, now_ms, .. } = self;
        let mut resources = TurnResources {
            config,
            roster,
            worker: *worker,
            buffer,
            frame,
            now_ms: *now_ms,
            sink: &mut |_| {},
        };
        if connection.linger(end, &mut resources) {
            self.connections.put_back(slot, connection);
        } else {
            self.discard(slot, connection);
        }
    }

    /// Closes a connection whose session has ended.
    fn discard(&mut self, slot: usize, mut connection: Box<Connection>) {
        // It is closed in any case, and a closed socket leaves the poll automatically.
        drop(self.registry.deregister(&mut connection.stream));
        self.roster.disconnect(connection.peer.ip());
        self.connections.release(slot);
    }
}

/// What to do with a connection after it acted.
enum Next {
    /// Do nothing.
    Keep,
    /// Send its output at the end of the turn.
    Flush,
    /// Send its output, and read it again.
    ReadOn,
    /// Its session has ended.
    End(SessionEnd),
    /// Its last messages were sent.
    Drop,
}
