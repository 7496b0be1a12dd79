//! A switch's TCP connection to one controller: bytes in, bytes out, and reconnecting.
//!
//! It never decodes a message. It only splits the stream into messages.

use crate::random::Random;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use openflow::{Message, stream};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// The wait after the first failed attempt. It doubles with each failure, up to the longest one. The real wait is
/// random, between half of it and all of it.
const RETRY_SHORTEST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(5);
/// After this time without a message, the switch sends the controller an echo request (as long as Open vSwitch's
/// inactivity probe). After the same time again, the switch ends the connection.
const SILENCE: Duration = Duration::from_secs(5);
/// The switch ends a connection without a features request after this time, whatever else the controller sends.
const HANDSHAKE_MAX: Duration = Duration::from_secs(15);
/// How often a connection without a fixed deadline is checked.
const LOOK: Duration = Duration::from_millis(250);
/// How many reads one connection gets before the others' turn.
const READS_AT_ONCE: usize = 4;
/// If more bytes than this are unsent, packet-ins are dropped. Answers to the controller are still sent.
const OUTBOUND_FOR_PACKET_INS_BYTES: usize = 1024 * 1024;
/// If more bytes than this are unsent, the controller is considered dead, and the connection ends.
const OUTBOUND_MAX_BYTES: usize = 16 * 1024 * 1024;

/// The state of the connection.
#[derive(Debug)]
enum State {
    /// The next attempt is at `until`.
    Waiting { until: Duration },
    /// The operating system has not reported yet whether the connection succeeds.
    Connecting(TcpStream),
    /// The connection is open.
    Open(TcpStream),
}

/// What a connection needs at a moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// Time to connect.
    Connect,
    /// No message for a long time: send an echo request.
    Probe,
    /// No message for too long: end the connection.
    GiveUp,
    /// Messages, but no features request: end the connection.
    GiveUpGreeting,
}

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// All bytes were read.
    All,
    /// There may be more bytes.
    SomeMore,
}

/// A switch's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    state: State,
    failures: u32,
    /// Makes the waits differ. All switches lose a controller at the same moment. Without random waits they would all
    /// reconnect at the same moment too.
    random: Random,
    opened_at: Duration,
    /// Since when the controller knows the switch.
    pub(crate) known_since: Option<Duration>,
    heard_at: Duration,
    probed: bool,
    /// The controller has closed its side, perhaps behind bytes that were not read yet.
    pub(crate) is_ending: bool,
    inbound: Vec<u8>,
    outbound: Vec<u8>,
    /// The last event, which explains why it is not connected.
    pub(crate) last_words: String,
}

impl Connection {
    /// A connection that is opened at once. `seed` makes its waits differ from others'.
    pub(crate) fn new(seed: u64) -> Self {
        Connection {
            state: State::Waiting { until: Duration::ZERO },
            failures: 0,
            random: Random::new(seed),
            opened_at: Duration::ZERO,
            known_since: None,
            heard_at: Duration::ZERO,
            probed: false,
            is_ending: false,
            inbound: Vec::new(),
            outbound: Vec::new(),
            last_words: "not tried yet".to_owned(),
        }
    }

    /// Whether it is open.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// What it needs now.
    pub(crate) fn due(&self, now: Duration) -> Due {
        let silence = now.saturating_sub(self.heard_at);
        match self.state {
            State::Waiting { until } if now >= until => Due::Connect,
            State::Waiting { .. } => Due::Nothing,
            _ if silence >= 2 * SILENCE => Due::GiveUp,
            _ if self.known_since.is_none() && now.saturating_sub(self.opened_at) >= HANDSHAKE_MAX => {
                Due::GiveUpGreeting
            }
            State::Open(_) if silence >= SILENCE && !self.probed => Due::Probe,
            _ => Due::Nothing,
        }
    }

    /// When to call [`Connection::due`] again. It returns nothing new before, within [`LOOK`].
    pub(crate) fn next_look(&self, now: Duration) -> Duration {
        match self.state {
            State::Waiting { until } if until > now => until,
            _ => now + LOOK,
        }
    }

    /// A whole message has arrived. Bytes alone do not count: a message that never ends is silence.
    pub(crate) fn heard(&mut self, now: Duration) {
        (self.heard_at, self.probed) = (now, false);
    }

    /// The connection is not read now. What waits in it was said since the last message, and counts as a message: only the switch knows it not
    /// yet. Without that, the controller is as silent as it is to others. Returns whether anything may wait. If not, the poll tells of the next bytes.
    pub(crate) fn look_unread(&mut self, now: Duration) -> bool {
        if now.saturating_sub(self.heard_at) < LOOK {
            return true;
        }
        let State::Open(stream) = &self.state else { return false };
        let has_message = stream::cut(&self.inbound, |_| false).is_ok_and(|bytes| bytes > 0);
        let waits = has_message || stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
        if waits {
            self.heard(now);
        }
        waits
    }

    /// An echo request was sent.
    pub(crate) fn probed(&mut self) {
        self.probed = true;
    }

    /// Begins to connect.
    pub(crate) fn connect(
        &mut self,
        to: SocketAddr,
        token: Token,
        registry: &Registry,
        now: Duration,
    ) -> io::Result<()> {
        let mut stream = TcpStream::connect(to)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        self.state = State::Connecting(stream);
        (self.heard_at, self.opened_at) = (now, now);
        Ok(())
    }

    /// The socket is writable. Returns whether this has opened the connection.
    pub(crate) fn on_writable(&mut self) -> io::Result<bool> {
        let State::Connecting(stream) = &self.state else { return Ok(false) };
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
            Err(error) => return Err(error),
        }
        stream.set_nodelay(true)?;
        let before = std::mem::replace(&mut self.state, State::Waiting { until: Duration::ZERO });
        if let State::Connecting(stream) = before {
            self.state = State::Open(stream);
        }
        Ok(true)
    }

    /// Closes it. Returns when the next attempt is.
    pub(crate) fn close(&mut self, why: String, registry: &Registry, now: Duration) -> Duration {
        let longest = RETRY_SHORTEST.saturating_mul(1 << self.failures.min(16)).min(RETRY_LONGEST);
        let wait = longest / 2 + (longest / 2).mul_f64(self.random.share());
        let before = std::mem::replace(&mut self.state, State::Waiting { until: now + wait });
        if let State::Connecting(mut stream) | State::Open(mut stream) = before {
            // Closing a socket removes it from the poll.
            let _ = registry.deregister(&mut stream);
        }
        *self = Connection {
            state: State::Waiting { until: now + wait },
            failures: self.failures.saturating_add(1),
            random: self.random.clone(),
            ..Connection::new(0)
        };
        self.last_words = why;
        wait
    }

    /// A features request has arrived. The next failure counts as the first.
    pub(crate) fn known(&mut self, now: Duration) {
        self.failures = 0;
        self.known_since.get_or_insert(now);
    }

    /// Reads available bytes, up to a bound, into `scratch`. If a whole message may wait already, it reads nothing: a connection that is
    /// paused again and again would otherwise gather more each time. The end of the stream is an error.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> io::Result<Received> {
        let State::Open(stream) = &mut self.state else { return Ok(Received::All) };
        for _ in 0..READS_AT_ONCE {
            if self.inbound.len() >= openflow::MAX_MESSAGE_LEN {
                return Ok(Received::SomeMore);
            }
            match stream.read(scratch) {
                Ok(0) => {
                    return Err(io::Error::new(
                        ErrorKind::UnexpectedEof,
                        "the controller closed the connection",
                    ));
                }
                Ok(count) => {
                    self.inbound.extend_from_slice(&scratch[..count]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Received::All),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Received::SomeMore)
    }

    /// Passes each whole message to `take`, until it returns that it wants no more. The rest waits for further bytes.
    ///
    /// # Errors
    ///
    /// A malformed length: the stream cannot be split from there on.
    pub(crate) fn cut(&mut self, take: impl FnMut(&[u8]) -> bool) -> Result<(), flow::BadInput> {
        let gone = stream::cut(&self.inbound, take)?;
        self.inbound.drain(..gone);
        Ok(())
    }

    /// Whether a packet-in may be queued.
    pub(crate) fn has_room_for_packet_ins(&self) -> bool {
        self.outbound.len() < OUTBOUND_FOR_PACKET_INS_BYTES
    }

    /// Queues a message.
    pub(crate) fn push(&mut self, message: &Message) -> Result<(), String> {
        if self.outbound.len() > OUTBOUND_MAX_BYTES {
            return Err("the controller does not read its messages".to_owned());
        }
        message.encode(&mut self.outbound).map_err(|unwritable| unwritable.to_string())
    }

    /// Sends as many bytes as the socket takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let State::Open(stream) = &mut self.state else { return Ok(()) };
        let mut sent = 0;
        let result = loop {
            let unsent = &self.outbound[sent..];
            if unsent.is_empty() {
                break Ok(());
            }
            match stream.write(unsent) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.outbound.drain(..sent);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_to_a_bound_and_begins_anew_after_a_success() {
        let poll = mio::Poll::new().unwrap();
        let mut connection = Connection::new(7);
        let check = |connection: &mut Connection, longest_ms: u64| {
            let wait = connection.close(String::new(), poll.registry(), Duration::ZERO);
            let longest = Duration::from_millis(longest_ms);
            assert!(longest / 2 <= wait && wait <= longest, "{wait:?}, at most {longest:?}");
            assert_eq!(connection.due(wait - Duration::from_nanos(1)), Due::Nothing);
            assert_eq!(connection.due(wait), Due::Connect);
        };
        for longest_ms in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            check(&mut connection, longest_ms);
        }
        connection.known(Duration::ZERO);
        check(&mut connection, 100);
    }

    #[test]
    fn waits_differ_by_seed_and_repeat_with_it() {
        let poll = mio::Poll::new().unwrap();
        let waits = |seed| -> Vec<Duration> {
            let mut connection = Connection::new(seed);
            (0..8).map(|_| connection.close(String::new(), poll.registry(), Duration::ZERO)).collect()
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }

    #[test]
    fn a_controller_that_talks_but_never_asks_is_left() {
        let (mut connection, _far) = open();
        for second in 1..15 {
            connection.heard(Duration::from_secs(second));
            assert_eq!(connection.due(Duration::from_secs(second)), Due::Nothing);
        }
        assert_eq!(connection.due(HANDSHAKE_MAX), Due::GiveUpGreeting);
        connection.known(Duration::from_secs(14));
        assert_eq!(connection.due(HANDSHAKE_MAX), Due::Nothing);
    }

    #[test]
    fn what_is_not_whole_stays() {
        let mut connection = Connection::new(0);
        connection.inbound = [&[4, 0, 0, 8, 0, 0, 0, 1][..], &[4, 2, 0, 9, 0]].concat();
        connection.cut(|_| true).unwrap();
        assert_eq!(connection.inbound, [4, 2, 0, 9, 0]);
    }

    /// A connection between two local sockets, and the peer's end.
    fn open() -> (Connection, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        let mut connection = Connection::new(0);
        connection.state = State::Open(TcpStream::from_std(near));
        (connection, listener.accept().unwrap().0)
    }

    #[test]
    fn a_silent_controller_is_asked_once_and_then_left() {
        let (mut connection, mut far) = open();
        connection.known(Duration::ZERO);
        assert_eq!(connection.due(SILENCE / 2), Due::Nothing);
        assert_eq!(connection.due(SILENCE), Due::Probe);
        connection.probed();
        assert_eq!(connection.due(SILENCE), Due::Nothing);
        assert_eq!(connection.due(2 * SILENCE), Due::GiveUp);
        far.write_all(&[4]).unwrap();
        let mut scratch = [0; 16];
        while connection.inbound.is_empty() {
            connection.read(&mut scratch).unwrap();
        }
        assert_eq!(connection.due(2 * SILENCE), Due::GiveUp, "a byte is no message");
        connection.heard(2 * SILENCE);
        assert_eq!(connection.due(2 * SILENCE), Due::Nothing, "it was heard");
        assert_eq!(connection.due(3 * SILENCE), Due::Probe, "and is silent again");
    }

    #[test]
    fn a_connection_that_is_not_read_is_silent_if_nothing_waits_in_it() {
        let (mut connection, mut far) = open();
        connection.known(Duration::ZERO);
        assert!(connection.look_unread(LOOK / 2), "it was heard just now");
        assert!(!connection.look_unread(SILENCE));
        assert_eq!(connection.due(SILENCE), Due::Probe);
        far.write_all(&[4, 3, 0, 8, 0, 0, 0, 1]).unwrap();
        while !connection.look_unread(SILENCE) {
            std::thread::yield_now();
        }
        assert_eq!(connection.due(2 * SILENCE - LOOK), Due::Nothing, "its answer waits to be read");
        let mut scratch = [0; 16];
        while connection.inbound.len() < 8 {
            connection.read(&mut scratch).unwrap();
        }
        assert!(connection.look_unread(2 * SILENCE), "and to be handled");
        connection.cut(|_| true).unwrap();
        assert!(!connection.look_unread(4 * SILENCE));
        assert_eq!(connection.due(4 * SILENCE), Due::GiveUp);
    }

    #[test]
    fn a_controller_that_does_not_read_gets_no_more_packet_ins_and_is_left_at_last() {
        let (mut connection, _far) = open();
        let version = openflow::Version::V1_3;
        let echo = Message { version, xid: 1, body: openflow::Body::EchoRequest(vec![0; 60_000]) };
        let mut had_room = true;
        let refused = (0..1000).find_map(|_| {
            connection.flush().unwrap();
            had_room &= connection.has_room_for_packet_ins();
            connection.push(&echo).err()
        });
        assert_eq!(refused.unwrap(), "the controller does not read its messages");
        assert!(!had_room);
    }
}
