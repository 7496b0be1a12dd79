//! What a tenant's controller could try: a server to which the virtual switches of its slice connect.
//!
//! ```text
//!   virtual switches ──connect──> listener ─┬─> handshake, the attack's words, answers
//!                                           └─> one session for each switch, until the trial's end ──> Tried
//! ```
//!
//! What is said comes from [`super::tenant_words`]. It judges nothing.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use openflow::Version;
use openflow::message::NO_BUFFER;

use super::tenant_words::{self, FIRST_XID, Ground, TenantAttack, Words};

/// How long a busy machine may take to start the slice's process, to connect, and to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a busy machine may take to close a connection.
const CLOSES_WITHIN: Duration = Duration::from_secs(8);

/// How long a read or a write waits.
const TURN: Duration = Duration::from_millis(100);

/// How often the words of a flood are written at once.
const BATCH: usize = 4;

/// The types of messages that are read (1.3.5, A.1).
const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const FEATURES_REPLY: u8 = 6;
const PACKET_IN: u8 = 10;

/// Its transaction id is none of the attack's.
const ECHO_XID: u32 = 7;

/// What came of an attack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Whether the slice closed each connection.
    pub cut_off: bool,
    /// How many messages were refused, and whether the sessions live.
    pub said: String,
    /// Whether a session was open, and did not answer in time.
    pub is_silent: bool,
}

/// One session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ended {
    is_closed: bool,
    sent: usize,
    refused: usize,
    /// Those that were not refused, by their place.
    missed: Vec<u32>,
    lives: bool,
}

/// Tries it for so long, in this version.
///
/// # Errors
/// Not all virtual switches connect, or a handshake fails.
pub fn act(
    attack: TenantAttack,
    (version, ground): (Version, &Ground),
    listener: &TcpListener,
    time: Duration,
) -> io::Result<Tried> {
    let words = tenant_words::words(attack, version, ground);
    let mut streams = Vec::new();
    while streams.len() < ground.switches(attack) {
        streams.push(accept(listener, Instant::now() + PATIENCE)?);
    }
    let until = Instant::now() + time;
    if words == Words::Hangup {
        drop(streams);
        while accept(listener, until).is_ok() {}
        return Ok(Tried::default());
    }
    let ended: io::Result<Vec<Ended>> = std::thread::scope(|scope| {
        let session = |stream| scope.spawn(|| session(&words, version, listener, stream, until));
        let sessions: Vec<_> = streams.into_iter().map(session).collect();
        let ended = sessions.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended
            .map(|ended| ended.map_err(|_| io::Error::other("a session of the attacker panicked"))?)
            .collect()
    });
    Ok(tried(&ended?))
}

fn tried(ended: &[Ended]) -> Tried {
    let (sent, refused) =
        ended.iter().fold((0, 0), |(sent, refused), one| (sent + one.sent, refused + one.refused));
    let live = ended.iter().filter(|one| one.lives).count();
    let all = if sent == refused && live == ended.len() { "all refused: " } else { "" };
    let missed: BTreeSet<u32> = ended.iter().flat_map(|one| one.missed.iter().copied()).collect();
    let missed = if missed.is_empty() { String::new() } else { format!(", not the messages {missed:?}") };
    Tried {
        cut_off: ended.iter().all(|one| one.is_closed),
        is_silent: ended.iter().any(|one| !one.is_closed && !one.lives),
        said: format!(
            "{all}{refused} of {sent} messages refused{missed}, {live} of {} sessions live",
            ended.len()
        ),
    }
}

fn accept(listener: &TcpListener, until: Instant) -> io::Result<TcpStream> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TURN))?;
                stream.set_write_timeout(Some(TURN))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                std::thread::sleep(TURN / 10);
            }
            Err(error) => return Err(error),
        }
    }
}

/// One connection from its start to the end of the trial. It stays open until then, unless the slice closes it.
fn session(
    words: &Words,
    version: Version,
    listener: &TcpListener,
    stream: TcpStream,
    until: Instant,
) -> io::Result<Ended> {
    let mut peer = Peer { version, stream, read: Vec::new(), is_closed: false };
    let mut ended = Ended::default();
    match words {
        Words::Nothing | Words::Hangup => {}
        // What the slice closes early is what these attacks are about: a write that fails is no error of the trial.
        Words::First(bytes) => drop(peer.write(bytes)),
        _ => peer.shake_hands()?,
    }
    match words {
        Words::Last(bytes) | Words::Once(bytes) => drop(peer.write(bytes)),
        Words::Refused(messages) => peer.offer(messages, &mut ended)?,
        Words::RefusedAfter(bytes, messages) => {
            peer.write(bytes)?;
            peer.offer(messages, &mut ended)?;
        }
        Words::Replay(bytes) => peer = replay(peer, bytes, listener, &mut ended)?,
        Words::Flood(bytes) => peer.flood(bytes, until, true),
        Words::FloodUnread(bytes) => peer.flood(bytes, until, false),
        Words::Nothing | Words::First(_) | Words::Hangup => {}
    }
    match words {
        Words::First(_) | Words::Last(_) => peer.read_until(until.max(Instant::now() + CLOSES_WITHIN)),
        Words::Once(_) => peer.read_until(until),
        _ => {}
    }
    std::thread::sleep(until.saturating_duration_since(Instant::now()));
    ended.is_closed = peer.is_closed;
    Ok(ended)
}

/// Has a packet put into a buffer, connects again, and takes it twice. The second time must be refused.
fn replay(mut peer: Peer, bytes: &[u8], listener: &TcpListener, ended: &mut Ended) -> io::Result<Peer> {
    let until = Instant::now() + PATIENCE / 3;
    let mut buffer_id = None;
    while buffer_id.is_none() && !peer.is_closed && Instant::now() < until {
        // The first packet can be there before its rule.
        peer.write(bytes)?;
        let packet_in = peer.messages().into_iter().find(|message| message.get(1) == Some(&PACKET_IN));
        buffer_id = packet_in.and_then(|message| Some(u32::from_be_bytes(*message.get(8..)?.first_chunk()?)));
        buffer_id = buffer_id.filter(|buffer_id| *buffer_id != NO_BUFFER);
    }
    let buffer_id =
        buffer_id.ok_or_else(|| io::Error::other("no packet in a buffer came up from the virtual switch"))?;
    let version = peer.version;
    drop(peer);
    let stream = accept(listener, Instant::now() + PATIENCE)?;
    let mut peer = Peer { version, stream, read: Vec::new(), is_closed: false };
    peer.shake_hands()?;
    peer.write(&tenant_words::from_buffer(version, 1, buffer_id))?;
    peer.offer(&[tenant_words::from_buffer(version, FIRST_XID, buffer_id)], ended)?;
    Ok(peer)
}

/// The other end of a connection.
struct Peer {
    version: Version,
    stream: TcpStream,
    read: Vec<u8>,
    is_closed: bool,
}

impl Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        let hello = tenant_words::hello(self.version);
        self.write(&[hello, tenant_words::features_request(self.version)].concat())?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.is_closed {
            if self.receive().iter().any(|(kind, _)| *kind == FEATURES_REPLY) {
                return Ok(());
            }
        }
        Err(io::Error::other("a virtual switch does not answer the handshake"))
    }

    /// Says all messages, and waits until each is refused and the session is seen to live.
    fn offer(&mut self, messages: &[Vec<u8>], ended: &mut Ended) -> io::Result<()> {
        self.write(&messages.concat())?;
        self.write(&tenant_words::echo(self.version, ECHO_XID))?;
        let (mut refused, mut lives) = (BTreeSet::new(), false);
        let until = Instant::now() + PATIENCE / 3;
        while Instant::now() < until && !self.is_closed && !(lives && refused.len() == messages.len()) {
            for (kind, xid) in self.receive() {
                lives |= (kind, xid) == (ECHO_REPLY, ECHO_XID);
                if kind == ERROR && xid >= FIRST_XID {
                    refused.insert(xid);
                }
            }
        }
        let missed = (FIRST_XID..).take(messages.len()).filter(|xid| !refused.contains(xid));
        ended.missed.extend(missed.map(|xid| xid - FIRST_XID));
        (ended.sent, ended.refused) = (messages.len(), refused.len());
        ended.lives = lives && !self.is_closed;
        Ok(())
    }

    fn flood(&mut self, bytes: &[u8], until: Instant, reads: bool) {
        let (bytes, mut written) = (bytes.repeat(BATCH), 0);
        while Instant::now() < until && !self.is_closed {
            match self.stream.write(&bytes[written..]) {
                Ok(count) => written = (written + count) % bytes.len(),
                Err(error) if is_pause(&error) => {}
                Err(_) => self.is_closed = true,
            }
            if reads && written == 0 {
                self.drain();
            }
        }
    }

    /// Reads and answers until the slice closes the connection, or until this time.
    fn read_until(&mut self, until: Instant) {
        while !self.is_closed && Instant::now() < until {
            self.receive();
        }
    }

    /// Reads what is there without waiting.
    fn drain(&mut self) {
        if self.stream.set_nonblocking(true).is_ok() {
            while !self.receive().is_empty() {}
            self.is_closed |= self.stream.set_nonblocking(false).is_err();
        }
    }

    /// Reads once. The types and transaction ids of whole messages.
    fn receive(&mut self) -> Vec<(u8, u32)> {
        let of = |message: Vec<u8>| match message.first_chunk() {
            Some(&[_, kind, _, _, a, b, c, d]) => (kind, u32::from_be_bytes([a, b, c, d])),
            None => (0, 0),
        };
        self.messages().into_iter().map(of).collect()
    }

    /// Reads once. Whole messages. Questions for life are answered.
    fn messages(&mut self) -> Vec<Vec<u8>> {
        let mut room = [0; 64 << 10];
        match self.stream.read(&mut room) {
            Ok(0) => self.is_closed = true,
            Ok(count) => self.read.extend_from_slice(&room[..count]),
            Err(error) if is_pause(&error) => {}
            Err(_) => self.is_closed = true,
        }
        let mut whole = Vec::new();
        while let Some(&[version, kind, high, low]) = self.read.first_chunk() {
            let length = usize::from(u16::from_be_bytes([high, low])).max(8);
            let Some(message) = self.read.get(..length) else { break };
            if kind == ECHO_REQUEST {
                let answer = [&[version, ECHO_REPLY], &message[2..]].concat();
                // A connection that cannot be written to is seen to be closed by the next read.
                let _ = self.stream.write_all(&answer);
            }
            whole.push(self.read.drain(..length).collect());
        }
        whole
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ended: &[(usize, usize, bool)], expected: &str) {
        let one = |&(sent, refused, lives): &(usize, usize, bool)| Ended {
            sent,
            refused,
            lives,
            is_closed: !lives,
            missed: Vec::new(),
        };
        let ended: Vec<Ended> = ended.iter().map(one).collect();
        assert_eq!(tried(&ended).said, expected);
    }

    #[test]
    fn all_messages_are_refused_only_if_the_sessions_live() {
        check(&[(2, 2, true), (1, 1, true)], "all refused: 3 of 3 messages refused, 2 of 2 sessions live");
        check(&[(2, 2, true), (1, 0, true)], "2 of 3 messages refused, 2 of 2 sessions live");
        check(&[(1, 1, true), (1, 1, false)], "2 of 2 messages refused, 1 of 2 sessions live");
    }

    #[test]
    fn a_session_that_was_closed_is_not_silent() {
        let one = |lives, is_closed| Ended { lives, is_closed, ..Ended::default() };
        let is_silent = |ended: &[Ended]| tried(ended).is_silent;
        assert!(is_silent(&[one(true, false), one(false, false)]));
        assert!(!is_silent(&[one(true, false), one(false, true)]));
    }
}
