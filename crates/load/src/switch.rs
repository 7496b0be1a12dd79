//! One switch of the generator: its connection, its state, and the number of its answered packet-ins.
//!
//! In: readiness and the time. Out: bytes and received messages. It never decides how much to send: the generator
//! does.

use flow::DatapathId;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use openflow::Version;
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use crate::answers::{Counting, Said};
use crate::greeting::Greeting;
use crate::punts::Punts;
use crate::stream::{Inbound, Outbound, Room, write_once};
use crate::template::Batch;
use crate::traffic::TrafficPlan;

/// The wait after the first failed connection. It doubles with each failure, up to the longest one.
const RETRY_SHORTEST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(5);
/// How long connecting may take, and then how long the controller may take to request the features.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
enum Link {
    /// The next attempt is at `until`.
    Waiting { until: Duration },
    /// The operating system has not reported yet whether the connection succeeds.
    Connecting { stream: TcpStream, since: Duration },
    /// The connection is open.
    Open { stream: TcpStream, since: Duration },
}

/// A switch of the generator.
#[derive(Debug)]
pub(crate) struct LoadSwitch {
    version: Version,
    datapath_id: DatapathId,
    pub(crate) plan: TrafficPlan,
    link: Link,
    greeting: Greeting,
    pub(crate) punts: Punts,
    inbound: Inbound,
    pub(crate) outbound: Outbound,
    readable: bool,
    writable: bool,
    failures: u32,
    known: bool,
    /// The size of the socket's send buffer in bytes.
    send_buffer_bytes: usize,
    /// Whether it is in the generator's queue.
    pub(crate) queued: bool,
    /// The number of the next packet-in, over all rounds.
    pub(crate) next: u64,
    /// The number of the first one of this round.
    pub(crate) first_of_round: u64,
    /// Answers of this round.
    pub(crate) answered: u64,
    /// In latency mode: the buffer id of the unanswered packet-in, and when it was sent.
    pub(crate) outstanding: Option<(u32, Duration)>,
}

impl LoadSwitch {
    /// A switch that connects as soon as it may.
    pub(crate) fn new(
        version: Version,
        datapath_id: DatapathId,
        plan: TrafficPlan,
        send_buffer_bytes: usize,
    ) -> Self {
        LoadSwitch {
            version,
            datapath_id,
            plan,
            link: Link::Waiting { until: Duration::ZERO },
            greeting: Greeting::new(version, datapath_id),
            punts: Punts::default(),
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            readable: false,
            writable: false,
            failures: 0,
            known: false,
            send_buffer_bytes,
            queued: false,
            next: 0,
            first_of_round: 0,
            answered: 0,
            outstanding: None,
        }
    }

    /// Whether the controller knows the switch, so that packet-ins can be sent.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// Whether it is in its handshake: the controller works on it, but does not know it yet.
    pub(crate) fn is_half_open(&self) -> bool {
        !self.known && !matches!(self.link, Link::Waiting { .. })
    }

    /// Whether a packet-in can be written now: nothing waits to be sent before it.
    pub(crate) fn can_send(&self) -> bool {
        self.known && self.writable && self.outbound.len() == 0
    }

    /// Whether it can read more without another readiness event.
    pub(crate) fn has_more_to_read(&self) -> bool {
        self.readable
    }

    /// Begins to connect if it is time and `may_begin` allows it. Gives up a handshake that takes too long.
    pub(crate) fn connect_if_due(
        &mut self,
        may_begin: bool,
        to: SocketAddr,
        token: Token,
        registry: &Registry,
        now: Duration,
    ) -> io::Result<()> {
        match self.link {
            Link::Waiting { until } if may_begin && now >= until => {
                let mut stream = TcpStream::connect(to)?;
                set_socket_send_buffer_size(&stream, self.send_buffer_bytes)?;
                registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
                self.link = Link::Connecting { stream, since: now };
                Ok(())
            }
            Link::Connecting { since, .. } | Link::Open { since, .. }
                if !self.known && now.saturating_sub(since) > GREETING_PATIENCE =>
            {
                Err(io::Error::new(ErrorKind::TimedOut, "the controller does not ask what the switch is"))
            }
            _ => Ok(()),
        }
    }

    /// The poll has reported readiness of the socket.
    pub(crate) fn on_ready(&mut self, readable: bool, writable: bool, now: Duration) -> io::Result<()> {
        self.readable |= readable;
        self.writable |= writable;
        let Link::Connecting { stream, .. } = &self.link else { return Ok(()) };
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
            other => other?,
        };
        stream.set_nodelay(true)?;
        let before = std::mem::replace(&mut self.link, Link::Waiting { until: now });
        if let Link::Connecting { stream, .. } = before {
            self.link = Link::Open { stream, since: now };
            self.greeting.hello(self.outbound.end());
        }
        Ok(())
    }

    /// Closes the connection. The next attempt is after a wait.
    pub(crate) fn close(&mut self, registry: &Registry, now: Duration) {
        let wait = RETRY_SHORTEST.saturating_mul(1 << self.failures.min(16)).min(RETRY_LONGEST);
        let before = std::mem::replace(&mut self.link, Link::Waiting { until: now + wait });
        if let Link::Connecting { mut stream, .. } | Link::Open { mut stream, .. } = before {
            // Closing a socket removes it from the poll.
            let _ = registry.deregister(&mut stream);
        }
        (self.greeting, self.punts) = (Greeting::new(self.version, self.datapath_id), Punts::default());
        (self.inbound, self.outbound) = (Inbound::default(), Outbound::default());
        (self.readable, self.writable, self.known) = (false, false, false);
        self.outstanding = None;
        self.failures += 1;
    }

    /// Checks whether the controller knows the switch. Returns whether that is new.
    pub(crate) fn look_if_known(&mut self, now: Duration) -> bool {
        let is_new = !self.known && self.greeting.is_known(now);
        if is_new {
            (self.known, self.failures) = (true, 0);
        }
        is_new
    }

    /// Sends what waits to be sent.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Link::Open { stream, .. } = &mut self.link else { return Ok(()) };
        if self.writable && self.outbound.len() > 0 {
            self.writable = self.outbound.flush(stream)?;
        }
        Ok(())
    }

    /// Reads once, passes on the answers, and replies to other messages. If `notes_rules` is set, it also looks for rules that send packets up.
    ///
    /// # Errors
    ///
    /// The reason why the connection cannot be used any more.
    #[inline]
    pub(crate) fn read(
        &mut self,
        room: &mut Room,
        (counting, notes_rules): (Counting, bool),
        now: Duration,
        mut told: impl FnMut(Said),
    ) -> io::Result<()> {
        let Link::Open { stream, .. } = &mut self.link else { return Ok(()) };
        if !self.readable {
            return Ok(());
        }
        let taken = self.inbound.read(stream, room)?;
        self.readable = !taken.drained;
        let LoadSwitch { version, greeting, outbound, punts, .. } = self;
        let mut broken = None;
        let cut = self.inbound.cut(room, taken.filled, Some(*version), |message| {
            match counting.look_at(*version, message) {
                Said::Other => {
                    let replied = greeting.on_message(message, now, outbound.end());
                    broken = broken.take().or(replied.err());
                }
                said => {
                    if notes_rules && matches!(said, Said::FlowMod(_)) {
                        punts.on_flow_mod(message);
                    }
                    told(said);
                }
            }
        });
        match (broken, cut) {
            (Some(why), _) => Err(io::Error::new(ErrorKind::InvalidData, why)),
            (None, Err(nonsense)) => Err(io::Error::new(ErrorKind::InvalidData, nonsense.to_string())),
            (None, Ok(())) => Ok(()),
        }
    }

    /// Writes up to `count` packet-ins and returns how many. The last one may be written in part; its rest is sent
    /// before anything else.
    pub(crate) fn send(&mut self, batch: &mut Batch, sources: u32, count: usize) -> io::Result<u64> {
        let Link::Open { stream, .. } = &mut self.link else { return Ok(0) };
        let length = batch.message_len();
        let bytes = batch.fill((&self.plan, &self.punts), sources, self.next, count);
        let written = write_once(stream, bytes)?;
        let begun = written.div_ceil(length);
        self.outbound.end().extend_from_slice(&bytes[written..begun * length]);
        // A short write has filled the socket. The poll reports when there is room again.
        self.writable = written == bytes.len();
        self.next += begun as u64;
        Ok(begun as u64)
    }

    /// Sends an announcement, or keeps the part that the socket does not take.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Link::Open { stream, .. } = &mut self.link else { return Ok(()) };
        self.writable = self.outbound.write_or_keep(stream, bytes)?;
        Ok(())
    }
}
