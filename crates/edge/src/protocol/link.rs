//! A link of two agents: it signs what goes out, and refuses what is forged, replayed, of an earlier run, or for somebody else.
//!
//! In: messages to send, and datagrams. Out: datagrams, and messages that the peer wrote in its present session for this one.
//! It never answers by itself, and asks no clock: the caller greets.
//!
//! Both sides begin with a random session number. A hello asks for the other's number, and a welcome answers. Every other
//! message has both numbers under its signature. So it proves that the peer knows this run, and was written after it began. A hello
//! proves nothing: anybody can send an old one again. Therefore it is only answered, and changes nothing.

use super::{Header, Key, Malformed, Message, read, write};
use crate::vnic::{AgentId, Flow};
use std::collections::VecDeque;
use std::fmt;

/// How many earlier sessions of the peer are remembered, in order to refuse what was recorded in them. An attacker would have to
/// see so many restarts of the peer within one run of this agent.
const RETIRED_MAX: usize = 8;

/// How far datagrams may overtake each other.
const WINDOW: u64 = 64;

/// Why a datagram or a part of it is ignored. Except for [`Refusal::is_innocent`], each is an incident: somebody lies or is misconfigured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no message.
    Malformed(Malformed),
    /// The agent that it is from is in no list.
    Stranger(AgentId),
    /// It is for another agent.
    Misdirected(AgentId, AgentId),
    /// The signature is wrong.
    Forged(AgentId),
    /// It came a second time, as a network may deliver it.
    Doubled(AgentId, u64),
    /// It came more than twice, or is older than the window.
    Replayed(AgentId, u64),
    /// It is of an earlier session of the peer.
    Retired(AgentId),
    /// It is for an earlier session of this agent, which the peer does not know to be over.
    Outdated(AgentId),
    /// The agent says something about a VNIC that is not on its server, or asks about one that is not on this.
    Foreign(AgentId, Flow),
    /// Only the label service may say this.
    NotTheService(AgentId),
}

impl Refusal {
    /// Whether this happens without anybody's fault: after a restart, or when the network delivers a datagram twice.
    pub fn is_innocent(&self) -> bool {
        matches!(self, Refusal::Outdated(_) | Refusal::Doubled(..))
    }

    /// The agent that said it, by its own account.
    pub fn agent(&self) -> Option<AgentId> {
        match self {
            Refusal::Malformed(_) => None,
            Refusal::Stranger(agent)
            | Refusal::Misdirected(agent, _)
            | Refusal::Forged(agent)
            | Refusal::Doubled(agent, _)
            | Refusal::Replayed(agent, _)
            | Refusal::Retired(agent)
            | Refusal::Outdated(agent)
            | Refusal::Foreign(agent, _)
            | Refusal::NotTheService(agent) => Some(*agent),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Malformed(why) => write!(f, "a malformed datagram was ignored: {why}"),
            Refusal::Stranger(agent) => write!(f, "{agent} is in no list of peers; its datagram was ignored"),
            Refusal::Misdirected(agent, to) => write!(f, "{agent} sent a datagram that is for {to}; ignored"),
            Refusal::Forged(agent) => {
                write!(
                    f,
                    "a datagram in the name of {agent} has a wrong signature; ignored: compare the keys"
                )
            }
            Refusal::Doubled(agent, sequence) => {
                write!(f, "datagram {sequence} of {agent} came a second time; ignored")
            }
            Refusal::Replayed(agent, sequence) => {
                write!(f, "datagram {sequence} of {agent} came again and again, or far too late; ignored")
            }
            Refusal::Retired(agent) => write!(f, "a datagram of {agent} is from before its restart; ignored"),
            Refusal::Outdated(agent) => write!(f, "{agent} does not know yet that this agent was restarted"),
            Refusal::Foreign(agent, flow) => {
                write!(f, "{agent} speaks for a VNIC that is not its own: {flow}; ignored")
            }
            Refusal::NotTheService(agent) => {
                write!(f, "{agent} says what only the label service may say; ignored")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// What a datagram was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The peer asks for this agent's session: answer with [`Link::welcome`].
    Hello {
        /// The session that the peer says it has.
        session: u64,
    },
    /// A message of the peer's present session.
    Message {
        /// What it says.
        message: Message,
        /// Whether it is the first of a session: what the peer said earlier is void.
        is_new_session: bool,
    },
}

/// One end of a link.
#[derive(Clone, Debug)]
pub struct Link {
    me: AgentId,
    peer: AgentId,
    key: Key,
    session: u64,
    peer_session: Option<u64>,
    retired: VecDeque<u64>,
    sequence: u64,
    window: Window,
}

impl Link {
    /// A link with a peer. The session is random and not 0 (a 0 is made 1).
    pub fn new(me: AgentId, peer: AgentId, key: Key, session: u64) -> Self {
        Link {
            me,
            peer,
            key,
            session: session.max(1),
            peer_session: None,
            retired: VecDeque::new(),
            sequence: 0,
            window: Window::default(),
        }
    }

    /// The other end.
    pub fn peer(&self) -> AgentId {
        self.peer
    }

    /// Whether the peer's session is known, so that messages can be sent.
    pub fn is_up(&self) -> bool {
        self.peer_session.is_some()
    }

    /// A datagram that asks for the peer's session.
    pub fn hello(&self) -> Vec<u8> {
        self.datagram(0, 0, &Message::Hello)
    }

    /// The answer to a hello.
    pub fn welcome(&self, to_session: u64) -> Vec<u8> {
        self.datagram(to_session, 0, &Message::Welcome)
    }

    /// The datagram of a message. None: the peer's session is not known yet.
    pub fn seal(&mut self, message: &Message) -> Option<Vec<u8>> {
        let session = self.peer_session?;
        self.sequence += 1;
        Some(self.datagram(session, self.sequence, message))
    }

    fn datagram(&self, to_session: u64, sequence: u64, message: &Message) -> Vec<u8> {
        let (from, to, from_session) = (self.me, self.peer, self.session);
        write(&Header { from, to, from_session, to_session, sequence }, message, &self.key)
    }

    /// Checks a datagram.
    ///
    /// # Errors
    ///
    /// It is ignored, and this is why.
    pub fn open(&mut self, bytes: &[u8]) -> Result<Opened, Refusal> {
        let envelope = read(bytes).map_err(Refusal::Malformed)?;
        let header = envelope.header;
        if header.from != self.peer {
            return Err(Refusal::Stranger(header.from));
        }
        if header.to != self.me {
            return Err(Refusal::Misdirected(self.peer, header.to));
        }
        if !envelope.is_signed_with(&self.key) {
            return Err(Refusal::Forged(self.peer));
        }
        if envelope.message == Message::Hello {
            return Ok(Opened::Hello { session: header.from_session });
        }
        if header.to_session != self.session {
            return Err(Refusal::Outdated(self.peer));
        }
        let is_new_session = self.enter(header.from_session)?;
        // A welcome has no number. A second one says nothing new.
        let arrival = match envelope.message {
            Message::Welcome => Arrival::First,
            _ => self.window.accept(header.sequence),
        };
        match arrival {
            Arrival::First => Ok(Opened::Message { message: envelope.message, is_new_session }),
            Arrival::Second => Err(Refusal::Doubled(self.peer, header.sequence)),
            Arrival::Further => Err(Refusal::Replayed(self.peer, header.sequence)),
        }
    }

    /// The peer has this session, proven. Returns whether it is a new one.
    fn enter(&mut self, session: u64) -> Result<bool, Refusal> {
        if self.peer_session == Some(session) {
            return Ok(false);
        }
        if self.retired.contains(&session) {
            return Err(Refusal::Retired(self.peer));
        }
        if let Some(old) = self.peer_session.replace(session) {
            self.retired.push_back(old);
            if self.retired.len() > RETIRED_MAX {
                self.retired.pop_front();
            }
        }
        self.window = Window::default();
        self.sequence = 0;
        Ok(true)
    }
}

/// How often a sequence number has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    First,
    Second,
    /// Or nobody knows: the number is too far behind the highest.
    Further,
}

/// Which sequence numbers were there.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    highest: u64,
    /// Bit n: whether the number n below the highest was there.
    seen: u64,
    /// Bit n: whether it was there twice.
    doubled: u64,
}

impl Window {
    fn accept(&mut self, number: u64) -> Arrival {
        if number > self.highest {
            let by = number - self.highest;
            let shift = |bits: u64| if by < WINDOW { bits << by } else { 0 };
            (self.seen, self.doubled) = (shift(self.seen) | 1, shift(self.doubled));
            self.highest = number;
            return Arrival::First;
        }
        let below = self.highest - number;
        let bit = if below < WINDOW { 1 << below } else { 0 };
        if bit == 0 || self.doubled & bit != 0 {
            return Arrival::Further;
        }
        if self.seen & bit != 0 {
            self.doubled |= bit;
            return Arrival::Second;
        }
        self.seen |= bit;
        Arrival::First
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: AgentId = AgentId(1);
    const B: AgentId = AgentId(2);

    fn key() -> Key {
        Key([7; 32])
    }

    fn pair() -> (Link, Link) {
        (Link::new(A, B, key(), 0xa), Link::new(B, A, key(), 0xb))
    }

    /// Both know each other's session: hello, welcome, and the first message.
    fn greeted() -> (Link, Link) {
        let (mut a, mut b) = pair();
        let Ok(Opened::Hello { session }) = b.open(&a.hello()) else { panic!("no hello") };
        assert!(a.open(&b.welcome(session)).is_ok());
        let first = a.seal(&Message::Beat { newest: 1 }).unwrap();
        assert!(matches!(b.open(&first), Ok(Opened::Message { is_new_session: true, .. })));
        (a, b)
    }

    #[test]
    fn what_is_forged_or_for_another_is_refused() {
        let (mut a, mut b) = greeted();
        let bytes = a.seal(&Message::Beat { newest: 1 }).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(b.open(&damaged).is_err(), "byte {at}");
        }
        let mut other_key = Link::new(B, A, Key([8; 32]), 0xb);
        assert_eq!(other_key.open(&bytes), Err(Refusal::Forged(A)));
        let mut third = Link::new(AgentId(3), A, key(), 0xb);
        assert_eq!(third.open(&bytes), Err(Refusal::Misdirected(A, B)));
        let mut elsewhere = Link::new(B, AgentId(3), key(), 0xb);
        assert_eq!(elsewhere.open(&bytes), Err(Refusal::Stranger(A)));
        assert!(b.open(&bytes).is_ok());
    }

    #[test]
    fn a_replay_is_refused() {
        let (mut a, mut b) = greeted();
        let bytes: Vec<_> = (0..3).map(|newest| a.seal(&Message::Beat { newest }).unwrap()).collect();
        assert!(b.open(&bytes[2]).is_ok() && b.open(&bytes[0]).is_ok());
        assert_eq!(b.open(&bytes[0]), Err(Refusal::Doubled(A, 2)), "a network may do this");
        assert_eq!(b.open(&bytes[0]), Err(Refusal::Replayed(A, 2)));
        assert_eq!(b.open(&bytes[2]), Err(Refusal::Doubled(A, 4)));
        assert!(b.open(&bytes[1]).is_ok(), "late, but new");
        assert!(Refusal::Doubled(A, 2).is_innocent() && !Refusal::Replayed(A, 2).is_innocent());
    }

    #[test]
    fn what_was_recorded_before_a_restart_is_refused() {
        let (mut a, mut b) = greeted();
        let recorded = a.seal(&Message::Beat { newest: 1 }).unwrap();
        let old_hello = a.hello();
        // B was restarted: the record is for its earlier session, and an old hello changes nothing.
        let mut restarted = Link::new(B, A, key(), 0xbb);
        assert_eq!(restarted.open(&recorded), Err(Refusal::Outdated(A)));
        assert!(matches!(restarted.open(&old_hello), Ok(Opened::Hello { .. })) && !restarted.is_up());
        // A was restarted: its new session retires the old one.
        let mut again = Link::new(A, B, key(), 0xaa);
        again.open(&b.welcome(0xaa)).unwrap();
        let first = again.seal(&Message::Beat { newest: 1 }).unwrap();
        assert!(matches!(b.open(&first), Ok(Opened::Message { is_new_session: true, .. })));
        assert_eq!(b.open(&recorded), Err(Refusal::Retired(A)));
    }

    #[test]
    fn nothing_is_sent_before_the_session_is_known() {
        let (mut a, _) = pair();
        assert!(!a.is_up() && a.seal(&Message::Beat { newest: 1 }).is_none());
    }

    proptest! {
        /// Any order of numbers, against a count: accepted once and forgiven once, unless the number is too far behind the highest.
        #[test]
        fn the_window_accepts_each_number_once(numbers in prop::collection::vec(1..200u64, 1..300)) {
            let (mut window, mut seen, mut highest) = (Window::default(), std::collections::BTreeMap::new(), 0);
            for number in numbers {
                let count = seen.entry(number).or_insert(0);
                let expected = match (number + WINDOW > highest, *count) {
                    (true, 0) => Arrival::First,
                    (true, 1) => Arrival::Second,
                    _ => Arrival::Further,
                };
                *count += 1;
                prop_assert_eq!(window.accept(number), expected, "{}", number);
                highest = highest.max(number);
            }
        }
    }
}
