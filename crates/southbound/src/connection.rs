//! One socket with its session. The bytes that are read go to the session. The session's messages go into the output
//! buffer and are sent by a flush.
//!
//! It does not interpret messages, and never blocks.

use crate::binding::Bound;
use crate::certificate::{Certificate, Fingerprint};
use crate::config::{Plain, SouthboundConfig};
use crate::fault::{Fault, SessionEnd};
use crate::inbox::{Inbox, ReadBuffer};
use crate::outbox::{Flushed, Outbox};
use crate::pace::Pace;
use crate::roster::{Claim, Roster, SwitchRecord};
use crate::session::{Session, State, Step};
use crate::switch_pace::SwitchPaces;
use crate::transport::Transport;
use crate::turn::{SessionOutput, Turn};
use mio::net::TcpStream;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// With TLS configured, the first byte of a peer tells TLS from plain OpenFlow. A TLS client sends at once. After
/// this time without a byte, the controller sends its hello in plain, because the peer may wait for it.
const UNDECIDED_MS: u64 = 2_000;

/// How long an ended connection is kept so that its last messages arrive. If a socket is closed with unread bytes,
/// Linux discards what it still has to send.
const LINGER_MS: u64 = 1_000;

/// The worker's resources that a connection uses during a turn.
pub struct TurnResources<'a> {
    pub config: &'a SouthboundConfig,
    pub roster: &'a Roster,
    pub worker: usize,
    pub buffer: &'a mut ReadBuffer,
    pub frame: &'a mut Vec<u8>,
    pub now_ms: u64,
    pub sink: &'a mut dyn FnMut(SessionOutput<'_>),
}

/// Whether more data may be available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadTurn {
    /// All data was read.
    Drained,
    /// The turn ended before all data was read.
    More,
}

/// One accepted connection.
#[derive(Debug)]
pub struct Connection {
    pub stream: TcpStream,
    pub peer: SocketAddr,
    pub session: Session,
    pub outbox: Outbox,
    transport: Transport,
    inbox: Inbox,
    accepted_ms: u64,
    /// When the peer last accepted bytes, or when no bytes waited.
    took_ms: u64,
    /// Whether our hello was sent.
    opened: bool,
    /// Whether it is in the worker's list of connections to flush.
    pub dirty: bool,
    /// Whether it is in one of the worker's lists of connections with unread data: those that wait for their turn, or
    /// those that are held back.
    pub backlogged: bool,
    /// How fast it is read.
    pub pace: Pace,
    /// Whether a poll reported that the peer sends no more.
    pub peer_closed: bool,
    /// Why the session must end, if that was decided outside of a turn.
    pub ending: Option<SessionEnd>,
    /// Since when it claims a datapath id that another session has. It waits until the other session has ended or has
    /// proved to be alive.
    pub claimed_ms: Option<u64>,
    /// The certificate that the switch showed. The outer `None`: not requested yet.
    shown: Option<Option<Certificate>>,
    /// What binds its datapath id, once the switch is up.
    pub bound: Option<Bound>,
    /// Whether it is in the worker's list of connections that wait for their id.
    pub is_claiming: bool,
    /// Whether it is in the worker's list of connections that wait for a time.
    pub is_timed: bool,
    /// Whether the profile of its switch is to be looked up again.
    pub is_to_pace: bool,
    /// Set once the session has ended. Until then the peer may receive its last messages.
    pub lingers_until_ms: Option<u64>,
}

impl Connection {
    pub fn new(stream: TcpStream, peer: SocketAddr, config: &SouthboundConfig, now_ms: u64) -> Self {
        Connection {
            stream,
            peer,
            session: Session::new(config, now_ms),
            outbox: Outbox::default(),
            transport: if config.tls.is_some() { Transport::Undecided } else { Transport::Plain },
            inbox: Inbox::default(),
            accepted_ms: now_ms,
            took_ms: now_ms,
            opened: false,
            dirty: false,
            backlogged: false,
            pace: Pace::default(),
            peer_closed: false,
            ending: None,
            claimed_ms: None,
            shown: None,
            bound: None,
            is_claiming: false,
            is_timed: false,
            is_to_pace: false,
            lingers_until_ms: None,
        }
    }

    pub fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }

    /// Sends the hello, as soon as the transport is known.
    pub fn open(&mut self, resources: &mut TurnResources<'_>) {
        if self.opened || matches!(self.transport, Transport::Undecided) {
            return;
        }
        self.opened = true;
        self.with_turn(resources, |session, turn| session.open(turn));
    }

    /// Calls the session with this connection's output.
    pub fn with_turn<T>(
        &mut self,
        resources: &mut TurnResources<'_>,
        act: impl FnOnce(&mut Session, &mut Turn<'_>) -> T,
    ) -> T {
        let TurnResources { now_ms, frame, sink, .. } = resources;
        act(&mut self.session, &mut Turn { now_ms: *now_ms, out: self.outbox.end(), frame, sink: *sink })
    }

    /// Reads and handles data until no more is available, or until `bytes` bytes were read.
    ///
    /// # Errors
    /// Why the session ends.
    pub fn read(&mut self, bytes: usize, resources: &mut TurnResources<'_>) -> Result<ReadTurn, SessionEnd> {
        self.decide(resources)?;
        let mut left = bytes;
        loop {
            let room = self.inbox.room(resources.buffer);
            let most = room.len().min(left);
            let room = &mut room[..most];
            let asked = room.len();
            match self.transport.read(&mut self.stream, room) {
                Ok(0) => return Err(SessionEnd::new(Fault::Network, "the switch closed the connection")),
                Ok(count) => {
                    self.take(count, resources)?;
                    if count < asked && self.is_drained_by_a_short_read() {
                        return Ok(ReadTurn::Drained);
                    }
                    left = left.saturating_sub(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(ReadTurn::Drained),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&error)),
            }
            if left == 0 {
                return Ok(ReadTurn::More);
            }
        }
    }

    /// A stream socket that returned less than requested has no more data, and the edge-triggered poll reports later
    /// data (epoll(7)). Another read would waste a system call. With one packet-in at a time that is every second
    /// call. This does not hold after the end of the stream was reported, nor for TLS, which may hold more data than
    /// the socket.
    fn is_drained_by_a_short_read(&self) -> bool {
        matches!(self.transport, Transport::Plain) && !self.peer_closed
    }

    fn decide(&mut self, resources: &mut TurnResources<'_>) -> Result<(), SessionEnd> {
        if let (Transport::Undecided, Some(tls)) = (&self.transport, &resources.config.tls) {
            self.transport.decide(&self.stream, tls).map_err(|error| broken(&error))?;
            if matches!(self.transport, Transport::Plain) && !self.may_be_plain(resources) {
                return Err(SessionEnd::refusal(Fault::Operator, why_not_plain(resources.config.plain)));
            }
            self.open(resources);
        }
        Ok(())
    }

    fn may_be_plain(&self, resources: &TurnResources<'_>) -> bool {
        resources.config.plain.is_let_in(self.peer.ip())
    }

    /// Handles the bytes that were just read.
    fn take(&mut self, count: usize, resources: &mut TurnResources<'_>) -> Result<(), SessionEnd> {
        self.session.heard(count, resources.now_ms);
        let Connection { session, inbox, outbox, transport, peer, claimed_ms, shown, bound, .. } = self;
        let TurnResources { config, roster, worker, buffer, frame, now_ms, sink } = resources;
        let mut turn = Turn { now_ms: *now_ms, out: outbox.end(), frame, sink: *sink };
        let paces = &config.paces;
        let at = Place { peer: *peer, tls: transport.is_tls(), roster, worker: *worker, paces };
        inbox.cut(buffer, count, |message| match session.on_message(message, &mut turn)? {
            Step::On => Ok(()),
            Step::Identified => {
                let shown = shown.get_or_insert_with(|| transport.certificate()).as_ref();
                *bound = admit(session, claimed_ms, shown, &at, &mut turn)?;
                Ok(())
            }
        })?;
        session.on_partial(inbox.partial(), &mut turn)?;
        check_output(outbox.len(), config)
    }

    /// Claims its datapath id again, if it waits for one.
    ///
    /// # Errors
    /// Why the session ends: another session has the id and is alive.
    pub fn claim_again(&mut self, resources: &mut TurnResources<'_>) -> Result<(), SessionEnd> {
        if self.session.state() != State::Identified {
            return Ok(());
        }
        let Connection { session, outbox, transport, peer, claimed_ms, shown, .. } = self;
        let TurnResources { config, roster, worker, frame, now_ms, sink, .. } = resources;
        let paces = &config.paces;
        let at = Place { peer: *peer, tls: transport.is_tls(), roster, worker: *worker, paces };
        let mut turn = Turn { now_ms: *now_ms, out: outbox.end(), frame, sink: *sink };
        let shown = shown.as_ref().and_then(Option::as_ref);
        self.bound = admit(session, claimed_ms, shown, &at, &mut turn)?;
        Ok(())
    }

    /// The fingerprint of its certificate, if it was read.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.shown.as_ref()?.as_ref().map(|shown| shown.fingerprint)
    }

    /// Whether it must be added to the worker's list of connections that wait for their id.
    pub fn is_to_wait_for_its_id(&self) -> bool {
        let claims = self.claimed_ms.is_some() && self.session.state() == State::Identified;
        claims && !self.is_claiming && self.lingers_until_ms.is_none()
    }

    /// Whether the switch has sent data that was not read yet, because the connection waited for its turn.
    pub fn has_unread(&self) -> bool {
        self.backlogged && !self.peer_closed
    }

    /// Sends the waiting bytes, with a barrier after commands that need receipts.
    ///
    /// # Errors
    /// Why the session ends.
    pub fn flush(&mut self, resources: &mut TurnResources<'_>) -> Result<Flushed, SessionEnd> {
        if self.lingers_until_ms.is_none() {
            self.with_turn(resources, |session, turn| session.on_turn_end(turn));
        }
        let Connection { transport, stream, outbox, .. } = self;
        let waiting = outbox.len();
        let flushed = transport
            .push(stream)
            .and_then(|()| outbox.flush(|bytes| transport.write(stream, bytes)))
            .map_err(|error| broken(&error));
        if outbox.len() < waiting {
            self.took_ms = resources.now_ms;
        }
        flushed
    }

    /// Handles the timeouts.
    ///
    /// # Errors
    /// Why the session ends.
    pub fn tick(&mut self, resources: &mut TurnResources<'_>) -> Result<(), SessionEnd> {
        let waited_ms = resources.now_ms.saturating_sub(self.accepted_ms);
        if matches!(self.transport, Transport::Undecided)
            && self.may_be_plain(resources)
            && waited_ms >= UNDECIDED_MS
        {
            self.transport = Transport::Plain;
            self.open(resources);
        }
        self.with_turn(resources, |session, turn| session.on_tick(turn))?;
        if self.claimed_ms.is_none() {
            // It has waited for its description, perhaps long enough.
            self.claim_again(resources)?;
        }
        self.check_that_it_takes(resources)?;
        check_output(self.outbox.len(), resources.config)
    }

    /// Ends the session of a switch that accepts no bytes. Apps' commands are refused long before the output is full,
    /// and what the switch sends keeps the session alive. So neither of the two would detect it.
    fn check_that_it_takes(&mut self, resources: &TurnResources<'_>) -> Result<(), SessionEnd> {
        if self.outbox.is_empty() {
            self.took_ms = resources.now_ms;
        }
        let waited_ms = resources.now_ms.saturating_sub(self.took_ms);
        if waited_ms < resources.config.echo_timeout_ms {
            return Ok(());
        }
        let waiting = self.outbox.len();
        let reason = format!("the switch read none of the {waiting} waiting bytes for {waited_ms} ms");
        Err(SessionEnd::new(Fault::Switch, reason))
    }

    /// The session has ended: sends the last messages. Returns whether to keep the connection for a while so that
    /// they arrive.
    pub fn linger(&mut self, end: &SessionEnd, resources: &mut TurnResources<'_>) -> bool {
        self.lingers_until_ms = Some(resources.now_ms + LINGER_MS);
        let said = self.flush(resources) == Ok(Flushed::Empty);
        self.transport.close(&mut self.stream);
        said && end.fault != Fault::Network
    }

    /// Reads and discards what the peer of an ended session still sends. Returns `false` if the peer has closed too.
    pub fn drain(&mut self, resources: &mut TurnResources<'_>) -> bool {
        let mut left = resources.config.read_bytes_per_turn;
        while left > 0 {
            match io::Read::read(&mut self.stream, self.inbox.room(resources.buffer)) {
                Ok(0) => return false,
                Ok(count) => left = left.saturating_sub(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        // A peer that continues to send this much does not read our messages.
        false
    }
}

/// The circumstances of a session that claims its datapath id.
struct Place<'a> {
    peer: SocketAddr,
    tls: bool,
    roster: &'a Roster,
    worker: usize,
    paces: &'a SwitchPaces,
}

/// The handshake is over. The switch goes up, unless its datapath id is taken or bound to another certificate.
/// Returns what binds the id. While the node probes the session that has the id, this one waits. It also waits for its description if
/// that decides how the switch is paced.
fn admit(
    session: &mut Session,
    claimed_ms: &mut Option<u64>,
    shown: Option<&Certificate>,
    at: &Place<'_>,
    turn: &mut Turn<'_>,
) -> Result<Option<Bound>, SessionEnd> {
    let datapath = session.identity().datapath;
    if at.paces.needs_description(datapath) && session.awaits_description(turn.now_ms) {
        return Ok(None);
    }
    let since_ms = *claimed_ms.get_or_insert(turn.now_ms);
    match at.roster.claim(datapath, shown, since_ms, turn.now_ms) {
        Claim::Waits => Ok(None),
        Claim::NotBound(why) => Err(session.refuse(Fault::Operator, why.to_string(), turn)),
        Claim::Taken(taken) => {
            let reason = format!(
                "datapath id {datapath} is in use by the session with {}, which is alive; give one of the two switches another",
                taken.by
            );
            Err(session.refuse(Fault::Operator, reason, turn))
        }
        Claim::Free => {
            let bound = at.roster.join(record(session, at, turn.now_ms), shown);
            // If another session was faster, it claims again.
            if bound.is_some() {
                *claimed_ms = None;
                session.admit(turn);
            }
            Ok(bound)
        }
    }
}

fn record(session: &Session, at: &Place<'_>, now_ms: u64) -> SwitchRecord {
    let identity = session.identity();
    SwitchRecord {
        datapath: identity.datapath,
        worker: at.worker,
        peer: at.peer,
        tls: at.tls,
        version: session.version(),
        n_tables: identity.n_tables,
        n_buffers: identity.n_buffers,
        desc: session.desc().cloned(),
        ports: session.ports().copied().collect(),
        since_ms: now_ms,
    }
}

/// The message to the operator about a peer that may not connect without TLS.
const fn why_not_plain(plain: Plain) -> &'static str {
    match plain {
        Plain::Nobody => {
            "it connects without TLS, and southbound.tls.required is set. Give the switch a certificate \
             (ovs-vsctl set-ssl, and ssl: instead of tcp: in its controller's address), or set required = false"
        }
        _ => {
            "it connects without TLS, which is allowed only from this machine if TLS is configured. Give the switch a \
             certificate (ovs-vsctl set-ssl, and ssl: instead of tcp: in its controller's address), or set \
             southbound.tls.allow_plain = true"
        }
    }
}

/// Whether the peer accepts its bytes fast enough.
pub fn check_output(waiting: usize, config: &SouthboundConfig) -> Result<(), SessionEnd> {
    if waiting <= config.max_output_bytes {
        return Ok(());
    }
    let reason =
        format!("the switch reads too slowly: {waiting} bytes are waiting, more than max_output_bytes");
    Err(SessionEnd::new(Fault::Switch, reason))
}

fn broken(error: &io::Error) -> SessionEnd {
    match error.kind() {
        ErrorKind::InvalidData => SessionEnd::new(Fault::Switch, format!("TLS failed: {error}")),
        ErrorKind::UnexpectedEof => SessionEnd::new(Fault::Network, "the switch closed the connection"),
        _ => SessionEnd::new(Fault::Network, format!("the connection broke: {error}")),
    }
}

/// Whether the handshake of a session is not finished.
pub fn is_half_open(session: &Session) -> bool {
    session.state() != State::Up
}
