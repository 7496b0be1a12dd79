//! All switch connections of one worker.
//!
//! ```text
//!   accepted stream ──adopt──> ┌────────────┐ ──sink──> switch up, packet-in, receipts …  (on_ready, resume, on_tick, flush)
//!   readiness ──────on_ready─> │ Southbound │
//!   commands ───────send─────> └────────────┘ ──flush──> one write for many messages
//! ```
//!
//! The one place of this crate that acts: it reads and writes sockets, tells the roster, writes the log. It never starts a thread, never
//! waits, and never asks for the time.

use crate::config::SouthboundConfig;
use crate::connection::{Connection, Lent, ReadTurn, check_output, is_half_open};
use crate::fault::{Fault, Refused, SessionEnd};
use crate::inbox::ReadBuffer;
use crate::line_limit::LineLimit;
use crate::occupancy::NoRoom;
use crate::receipts::Tag;
use crate::report::{self, EndLimits};
use crate::roster::Roster;
use crate::session::{Session, State};
use crate::snapshot::SessionSnapshot;
use crate::turn::{Effect, SouthboundEvent, Turn};
use abi::Command;
use abi::prepared::PreparedRule;
use flow::DatapathId;
use foldhash::{HashMap, HashMapExt};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use openflow::message::Role;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

mod settling;

use settling::Probed;

/// Where events go while a call lasts.
pub type Sink<'a> = dyn FnMut(SouthboundEvent<'_>) + 'a;

/// The switch connections of one worker.
#[derive(Debug)]
pub struct Southbound {
    config: SouthboundConfig,
    roster: Arc<Roster>,
    worker: usize,
    registry: Registry,
    token_base: usize,
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    by_datapath: HashMap<DatapathId, usize>,
    /// The switch that was last commanded, and its slot: commands come in runs for one switch.
    last_commanded: Option<(DatapathId, usize)>,
    dirty: Vec<usize>,
    backlog: VecDeque<usize>,
    /// Connections with more to read that are not read now.
    held: Vec<usize>,
    /// Connections that wait for apps, in the order in which they came to wait.
    paused: VecDeque<usize>,
    /// How much is read from the next connection before others get their turn.
    read_bytes: usize,
    /// Which connection was read last.
    last_read: usize,
    ending: Vec<usize>,
    /// Connections that claim a datapath id which another session has.
    claiming: Vec<usize>,
    /// Switches that were asked whether they live, since another claims their id. Each once.
    probed: Vec<Probed>,
    /// What the roster's claims were last looked at for.
    stirred: u64,
    /// When claims were last looked at.
    claims_seen_ms: u64,
    buffer: ReadBuffer,
    frame: Vec<u8>,
    limit: LineLimit,
    limit_of_refusals: LineLimit,
    limits_of_ends: EndLimits,
    /// The time of the last call that told it.
    now_ms: u64,
}

/// What a poll says of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// There is something to read, an end or an error among it.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The peer sends no more: behind what is left comes the end.
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

/// Why a stream was not adopted; it is closed.
#[derive(Debug)]
pub enum NotAdopted {
    /// There is no room.
    NoRoom(NoRoom),
    /// The system said so.
    Io(io::Error),
}

impl Southbound {
    /// No connection yet. Tokens from `token_base` on are this worker's connections: nothing else in its poll may have one of them.
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
            slots: Vec::new(),
            free: Vec::new(),
            by_datapath: HashMap::new(),
            last_commanded: None,
            dirty: Vec::new(),
            backlog: VecDeque::new(),
            held: Vec::new(),
            paused: VecDeque::new(),
            read_bytes: config_read_bytes,
            last_read: 0,
            ending: Vec::new(),
            claiming: Vec::new(),
            probed: Vec::new(),
            stirred: 0,
            claims_seen_ms: 0,
            buffer: ReadBuffer::new(),
            frame: Vec::new(),
            limit: LineLimit::default(),
            limit_of_refusals: LineLimit::of_refusals(),
            limits_of_ends: EndLimits::default(),
            now_ms: 0,
        }
    }

    /// Holds sessions so from now on. Those that are there keep their version, their role and their TLS; time-outs and bounds of output are the new ones.
    pub fn reconfigure(&mut self, config: SouthboundConfig) {
        for connection in self.slots.iter_mut().flatten() {
            connection.session.reconfigure(&config);
        }
        config.apply_to(&self.roster);
        self.config = config;
    }

    /// Takes an accepted stream over, and says hello at the next flush.
    ///
    /// # Errors
    /// That there is no room for it, or the system's; the stream is closed and the log says so.
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
        // Messages are gathered here; holding them back again would only cost time.
        stream.set_nodelay(true)?;
        let slot = self.free.last().copied().unwrap_or(self.slots.len());
        let token = Token(self.token_base + slot);
        self.registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        let mut connection = Box::new(Connection::new(stream, peer, &self.config, self.now_ms));
        let Southbound { config, roster, worker, buffer, frame, now_ms, .. } = self;
        let mut lent =
            Lent { config, roster, worker: *worker, buffer, frame, now_ms: *now_ms, sink: &mut |_| {} };
        connection.open(&mut lent);
        if self.free.pop().is_none() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(connection);
        self.mark_dirty(slot);
        Ok(())
    }

    /// Whether a token is one of this worker's connections'.
    pub fn owns(&self, token: Token) -> bool {
        token.0 >= self.token_base
    }

    /// A connection is ready. Reads at most a turn's worth; if more is there, [`Southbound::has_backlog`] says so.
    pub fn on_ready(&mut self, token: Token, ready: Ready, now_ms: u64, sink: &mut Sink<'_>) {
        self.now_ms = now_ms;
        let Some(slot) = self.note(token, ready) else { return };
        let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return };
        // Who has more to read already waits for its next turn, and gets no other.
        if !ready.readable || connection.backlogged {
            return;
        }
        if connection.pace.is_held(now_ms) {
            connection.backlogged = true;
            self.held.push(slot);
        } else {
            self.read(slot, sink);
        }
    }

    /// Of the events of the connection that was read last, so many had to wait since an app did not take them at once. If these are many, what
    /// it sends from now on waits in its socket for a moment. Events that may be dropped do not count.
    pub fn on_waited(&mut self, waited: usize) {
        let others = self.held.len();
        let Some(connection) = self.slots.get_mut(self.last_read).and_then(Option::as_mut) else { return };
        connection.pace.on_waited(waited, others, self.now_ms);
        if connection.pace.is_held(self.now_ms) {
            report::held(&mut self.limit, self.now_ms, connection);
        }
    }

    /// Connections that were held, and are no more, have something to read again. At the beginning of each turn.
    pub fn release(&mut self, now_ms: u64) {
        let Southbound { slots, held, backlog, .. } = self;
        held.retain(|slot| {
            let connection = slots.get(*slot).and_then(Option::as_ref);
            let stays = connection.is_some_and(|it| it.pace.is_held(now_ms));
            if !stays {
                backlog.push_back(*slot);
            }
            stays
        });
    }

    /// Takes note of what a poll said of a connection; its slot, if the token is a connection's.
    fn note(&mut self, token: Token, ready: Ready) -> Option<usize> {
        let slot = token.0.checked_sub(self.token_base)?;
        if ready.writable {
            self.mark_dirty(slot);
        }
        if let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut) {
            connection.peer_closed |= ready.closed;
            if ready.closed {
                connection.session.on_peer_closed();
            }
        }
        Some(slot)
    }

    /// A connection is ready, and there is no time for it in this turn: it waits with those that have more to read.
    pub fn postpone(&mut self, token: Token, ready: Ready) {
        let Some(slot) = self.note(token, ready) else { return };
        if let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut)
            && ready.readable
            && !connection.backlogged
        {
            connection.backlogged = true;
            self.backlog.push_back(slot);
        }
    }

    /// The switch whose connection this is, if it is up. Of one that is not, and of one that will send no more, nothing can wait for apps.
    pub fn switch_of(&self, token: Token) -> Option<DatapathId> {
        self.pausable(token.0.checked_sub(self.token_base)?)
    }

    /// The same for the connection whose turn [`Southbound::resume`] gives next.
    pub fn next_switch(&self) -> Option<DatapathId> {
        self.pausable(*self.backlog.front()?)
    }

    fn pausable(&self, slot: usize) -> Option<DatapathId> {
        let it = self.slots.get(slot)?.as_ref()?;
        let may_wait = !is_half_open(&it.session)
            && !it.peer_closed
            && it.ending.is_none()
            && it.lingers_until_ms.is_none();
        may_wait.then(|| it.session.identity().datapath)
    }

    /// No more than so many bytes are read from the connection that is read next. After it, as many as the configuration says.
    pub fn read_at_most(&mut self, bytes: usize) {
        self.read_bytes = bytes.min(self.config.read_bytes_per_turn);
    }

    /// A connection is ready and is not read now, since the apps that hear it have no room: what it sends waits in its socket, and then TCP
    /// slows the switch down. [`Southbound::unpause`] ends that.
    pub fn pause(&mut self, token: Token, ready: Ready) {
        let Some(slot) = self.note(token, ready) else { return };
        if let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut)
            && ready.readable
            && !connection.backlogged
        {
            connection.backlogged = true;
            self.paused.push_back(slot);
        }
    }

    /// The same for the connection whose turn would be next.
    pub fn pause_next(&mut self) {
        self.paused.extend(self.backlog.pop_front());
    }

    /// Whether connections wait for apps.
    pub fn has_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// Those of which this says that there is room for them wait for their turn again, in their order, as do those that cannot wait any
    /// more. At the beginning of each turn.
    pub fn unpause(&mut self, mut has_room: impl FnMut(DatapathId) -> bool) {
        for _ in 0..self.paused.len() {
            let Some(slot) = self.paused.pop_front() else { return };
            let goes_on = self.pausable(slot).is_none_or(&mut has_room);
            if goes_on { self.backlog.push_back(slot) } else { self.paused.push_back(slot) }
        }
    }

    /// How many connections wait for their turn.
    pub fn waiting(&self) -> usize {
        self.backlog.len()
    }

    /// Whether connections have more to read than their turn allowed: call [`Southbound::resume`], and poll without waiting.
    pub fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Gives one connection that has more to read another turn, in the order in which they wait. Says how many waited; a caller that
    /// gives each its turn calls it as often as the first call said.
    pub fn resume(&mut self, now_ms: u64, sink: &mut Sink<'_>) -> usize {
        self.now_ms = now_ms;
        let waiting = self.backlog.len();
        let Some(slot) = self.backlog.pop_front() else { return 0 };
        if let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut) {
            if connection.pace.is_held(now_ms) {
                self.held.push(slot);
            } else {
                connection.backlogged = false;
                self.read(slot, sink);
            }
        }
        waiting
    }

    /// Time went by: call it about once a second. Echo requests, and the end of what did not come in time.
    pub fn on_tick(&mut self, now_ms: u64, sink: &mut Sink<'_>) {
        self.now_ms = now_ms;
        for slot in 0..self.slots.len() {
            self.with(slot, sink, |connection, lent| match connection.lingers_until_ms {
                Some(until_ms) if lent.now_ms >= until_ms => Next::Drop,
                Some(_) => Next::Keep,
                None => connection.tick(lent).map_or_else(Next::End, |()| Next::Flush),
            });
        }
    }

    /// Appends a command for a switch to what leaves at the next [`Southbound::flush`]. `cookie` is a flow mod's, owner included.
    ///
    /// # Errors
    /// Why it does not go out. A command that is accepted and wants a receipt gets one in any case.
    pub fn send(
        &mut self,
        datapath: DatapathId,
        command: &Command<'_>,
        cookie: u64,
        tag: Tag,
    ) -> Result<(), Refused> {
        self.append(datapath, |session, waiting, turn| session.send(command, cookie, tag, waiting, turn))
    }

    /// The same for a rule that was prepared.
    ///
    /// # Errors
    /// As [`Self::send`].
    #[inline]
    pub fn send_rule(&mut self, rule: PreparedRule<'_>, tag: Tag) -> Result<(), Refused> {
        self.append(rule.of_use.datapath, |session, waiting, turn| {
            session.send_rule(rule, tag, waiting, turn)
        })
    }

    /// Asks a switch for a role, at the next [`Southbound::flush`] (1.3.5, 6.3.4 and 7.3.9). The tag's zone gets a receipt: `programmed`
    /// once the switch says that the role holds, `failed` with its error, `unknown` if no answer comes.
    ///
    /// # Errors
    /// Why it does not go out: among others that the switch speaks 1.0, which has no roles, or that [`crate::MAX_ROLE_REQUESTS`] wait.
    pub fn request_role(&mut self, datapath: DatapathId, role: Role, tag: Tag) -> Result<(), Refused> {
        self.append(datapath, |session, _, turn| session.request_role(role, tag, turn))
    }

    fn slot_of(&mut self, datapath: DatapathId) -> Option<usize> {
        if let Some((last, slot)) = self.last_commanded
            && last == datapath
        {
            return Some(slot);
        }
        let slot = *self.by_datapath.get(&datapath)?;
        self.last_commanded = Some((datapath, slot));
        Some(slot)
    }

    /// Lets a switch's session append to its output, of which so many bytes wait already.
    fn append(
        &mut self,
        datapath: DatapathId,
        act: impl FnOnce(&mut Session, usize, &mut Turn<'_>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let slot = self.slot_of(datapath).ok_or(Refused::NoSuchSwitch(datapath))?;
        let connection = self.slots[slot].as_mut().filter(|connection| connection.ending.is_none());
        let Some(connection) = connection else { return Err(Refused::NoSuchSwitch(datapath)) };
        let Connection { session, outbox, .. } = &mut **connection;
        let waiting = outbox.len();
        let mut turn =
            Turn { now_ms: self.now_ms, out: outbox.end(), frame: &mut self.frame, sink: &mut |_| {} };
        act(session, waiting, &mut turn)?;
        if let Err(end) = check_output(outbox.len(), &self.config) {
            connection.ending = Some(end);
            self.ending.push(slot);
        }
        self.mark_dirty(slot);
        Ok(())
    }

    /// Sends what waits, and acts on ends that were asked for. Call it at the end of every turn of the worker.
    pub fn flush(&mut self, now_ms: u64, sink: &mut Sink<'_>) {
        self.now_ms = now_ms;
        while let Some(slot) = self.ending.pop() {
            self.with(slot, sink, |connection, _| connection.ending.take().map_or(Next::Keep, Next::End));
        }
        while let Some(slot) = self.dirty.pop() {
            self.with(slot, sink, |connection, lent| {
                connection.dirty = false;
                match connection.flush(lent) {
                    Ok(_) => Next::Keep,
                    Err(_) if connection.lingers_until_ms.is_some() => Next::Drop,
                    Err(end) => Next::End(end),
                }
            });
        }
    }

    /// Ends a switch's session, at the next flush. `false` if it has none here.
    pub fn end(&mut self, datapath: DatapathId, reason: &str) -> bool {
        let Some(slot) = self.by_datapath.get(&datapath).copied() else { return false };
        self.end_slot(slot, reason);
        true
    }

    /// Ends every connection, at the next flush.
    pub fn close_all(&mut self, reason: &str) {
        (0..self.slots.len()).for_each(|slot| self.end_slot(slot, reason));
    }

    fn end_slot(&mut self, slot: usize, reason: &str) {
        if let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut)
            && connection.ending.is_none()
            && connection.lingers_until_ms.is_none()
        {
            connection.ending = Some(SessionEnd::new(Fault::Operator, reason.to_owned()));
            self.ending.push(slot);
        }
    }

    /// Every connection, as the operator is shown it.
    pub fn sessions(&self) -> impl Iterator<Item = SessionSnapshot> {
        let connections = self.slots.iter().flatten();
        connections
            .filter(|connection| connection.lingers_until_ms.is_none())
            .map(|connection| SessionSnapshot::of(connection))
    }

    fn read(&mut self, slot: usize, sink: &mut Sink<'_>) {
        self.last_read = slot;
        let bytes = std::mem::replace(&mut self.read_bytes, self.config.read_bytes_per_turn);
        self.with(slot, sink, |connection, lent| {
            if connection.lingers_until_ms.is_some() {
                return if connection.drain(lent) { Next::Keep } else { Next::Drop };
            }
            match connection.read(bytes, lent) {
                Ok(ReadTurn::Drained) => Next::Flush,
                Ok(ReadTurn::More) => Next::ReadOn,
                Err(end) => Next::End(end),
            }
        });
    }

    /// Takes a connection out of its slot, lets it act, and does what follows.
    fn with(
        &mut self,
        slot: usize,
        sink: &mut Sink<'_>,
        act: impl FnOnce(&mut Connection, &mut Lent<'_>) -> Next,
    ) {
        let Some(mut connection) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        let (peer, was_up) = (connection.peer, !is_half_open(&connection.session));
        let Southbound { config, roster, worker, buffer, frame, limit, now_ms, .. } = self;
        let mut effect = |effect: Effect<'_>| match effect {
            Effect::Out(event) => sink(event),
            Effect::Line(line) => report::line(limit, *now_ms, peer, &line),
        };
        let mut lent =
            Lent { config, roster, worker: *worker, buffer, frame, now_ms: *now_ms, sink: &mut effect };
        let next = act(&mut connection, &mut lent);
        self.look_at(slot, &mut connection, was_up);
        if connection.is_to_wait_for_its_id() {
            connection.is_claiming = true;
            self.claiming.push(slot);
        }
        match next {
            Next::Keep => self.slots[slot] = Some(connection),
            Next::Flush => {
                self.slots[slot] = Some(connection);
                self.mark_dirty(slot);
            }
            Next::ReadOn => {
                connection.backlogged = true;
                self.backlog.push_back(slot);
                self.slots[slot] = Some(connection);
                self.mark_dirty(slot);
            }
            Next::Drop => self.discard(slot, connection),
            Next::End(end) => self.finish(slot, connection, &end, sink),
        }
    }

    /// Notes what became of the session during the call.
    fn look_at(&mut self, slot: usize, connection: &mut Connection, was_up: bool) {
        let session = &mut connection.session;
        if session.state() != State::Up {
            return;
        }
        let datapath = session.identity().datapath;
        let changed = session.take_facts_changed();
        if !was_up {
            self.last_commanded = None;
            self.by_datapath.insert(datapath, slot);
            report::up(&mut self.limit, self.now_ms, connection);
        } else if changed {
            let (ports, desc) = (session.ports().copied().collect(), session.desc().cloned());
            self.roster.update(datapath, ports, desc);
        }
    }

    /// Ends a session: tells the kernel and the roster, writes the log, and lets the peer take its last words.
    fn finish(
        &mut self,
        slot: usize,
        mut connection: Box<Connection>,
        end: &SessionEnd,
        sink: &mut Sink<'_>,
    ) {
        if connection.is_claiming {
            connection.is_claiming = false;
            self.claiming.retain(|other| *other != slot);
        }
        connection.claimed_ms = None;
        report::end(&mut self.limit, &mut self.limits_of_ends, self.now_ms, &connection, end);
        let session = &mut connection.session;
        let is_identified = matches!(session.state(), State::Identified | State::Up);
        let datapath = is_identified.then(|| session.identity().datapath);
        sink(SouthboundEvent::Ended { peer: connection.peer, datapath, end });
        let mut out = |effect: Effect<'_>| {
            if let Effect::Out(event) = effect {
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
            self.last_commanded = None;
            self.by_datapath.remove(&datapath);
            self.forget_probe(datapath);
            self.roster.leave(datapath);
        } else {
            // What is left of it are its last words: they keep no switch from shaking hands.
            self.roster.finish_handshake(connection.peer.ip());
        }
        let Southbound { config, roster, worker, buffer, frame, now_ms, .. } = self;
        let mut lent =
            Lent { config, roster, worker: *worker, buffer, frame, now_ms: *now_ms, sink: &mut |_| {} };
        if connection.linger(end, &mut lent) {
            self.slots[slot] = Some(connection);
        } else {
            self.discard(slot, connection);
        }
    }

    /// Closes a connection whose session has ended.
    fn discard(&mut self, slot: usize, mut connection: Box<Connection>) {
        // It is closed in any case, and a closed socket leaves the poll by itself.
        drop(self.registry.deregister(&mut connection.stream));
        self.roster.disconnect(connection.peer.ip());
        self.free.push(slot);
    }

    fn mark_dirty(&mut self, slot: usize) {
        if let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut)
            && !connection.dirty
        {
            connection.dirty = true;
            self.dirty.push(slot);
        }
    }
}

/// What is to be done with a connection that has acted.
enum Next {
    /// Nothing.
    Keep,
    /// What it has to say is sent at the end of the turn.
    Flush,
    /// The same, and it has more to read.
    ReadOn,
    /// Its session has ended.
    End(SessionEnd),
    /// Its last words are said.
    Drop,
}

impl fmt::Display for NotAdopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAdopted::NoRoom(no_room) => no_room.fmt(f),
            NotAdopted::Io(error) => write!(f, "the system refused the socket: {error}"),
        }
    }
}

impl std::error::Error for NotAdopted {}
