//! What agents and the label service say to each other, to the byte.
//!
//! In: messages or bytes. Out: the other, or what is wrong with the bytes. It knows no socket and no clock.
//!
//! Between agents, each message is one UDP datagram. With the label service, the same datagrams follow each other in a TCP connection
//! ([`crate::stream`]). A datagram has at most [`DATAGRAM_MAX`] bytes. All numbers are big-endian. Reserved bytes are zero.
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | `BEDG` |
//! | 4 | version: 1 |
//! | 5 | kind of message |
//! | 6–7 | length of the datagram |
//! | 8–11 | agent that sent it |
//! | 12–15 | agent that it is for |
//! | 16–23 | session of the sender: a random number of each start, not 0 |
//! | 24–31 | session of the agent that it is for; 0 in a hello |
//! | 32–39 | sequence number, from 1 in each session and direction; 0 in a hello or welcome |
//! | 40–(n−17) | body |
//! | (n−16)–(n−1) | HMAC with SHA-256 of all earlier bytes, cut to 16 bytes, with the key of these two agents |
//!
//! | kind | message | body |
//! |---|---|---|
//! | 1 | hello: what is your session? | – |
//! | 2 | welcome: this is my session | – |
//! | 3 | feedback: the sender may send a flow at this rate | rates |
//! | 4 | report of a meter or shaper | number of the report (8 bytes), entries |
//! | 5 | again: send these reports again | first and last number (8 bytes each) |
//! | 6 | beat: this is the newest report | its number (8 bytes) |
//! | 7 | caps: what flows get of overbooked links | rates, or none; all ones: no cap |
//!
//! A rate has 16 bytes: VNIC of the sender (4), VNIC of the receiver (4), bits a second (8). An entry has 20 bytes: what happened (1: see
//! [`What`]), reserved (3), and a rate. A body has no count: the length says it.
//!
//! The signature covers both sessions. So a datagram of an earlier run of either agent is refused, and a datagram cannot be sent to
//! another agent. Sequence numbers refuse a replay within a session ([`link`]).

pub mod link;
mod read;
pub mod reports;
mod sign;
mod text;
mod write;

pub use read::{Envelope, Malformed, length, read};
pub use sign::{BadKey, KEY_BYTES, Key};
pub use write::write;

use crate::vnic::{AgentId, Flow};

/// The most bytes of a datagram: what IPv6 carries in any case without fragments.
pub const DATAGRAM_MAX: usize = 1232;

/// The version of this format.
pub const VERSION: u8 = 1;

/// How a datagram begins.
const MAGIC: [u8; 4] = *b"BEDG";

/// Bytes before the body.
const HEADER_BYTES: usize = 40;

/// Bytes behind the body.
const SIGNATURE_BYTES: usize = 16;

/// Bytes of a rate.
const RATE_BYTES: usize = 16;

/// Bytes of an entry of a report.
const ENTRY_BYTES: usize = 20;

/// The most rates in a message.
pub const RATES_MAX: usize = (DATAGRAM_MAX - HEADER_BYTES - SIGNATURE_BYTES) / RATE_BYTES;

/// The most entries in a report.
pub const ENTRIES_MAX: usize = (DATAGRAM_MAX - HEADER_BYTES - SIGNATURE_BYTES - 8) / ENTRY_BYTES;

/// The rate of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateOf {
    /// The flow.
    pub flow: Flow,
    /// Bits a second, at most [`RATE_MAX_BPS`](crate::vnic::RATE_MAX_BPS), or [`NO_CAP`].
    pub rate_bps: u64,
}

/// In caps: the flow has none.
pub const NO_CAP: u64 = u64::MAX;

/// What an entry of a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// 0: all earlier reports of this agent are void. Flow and rate are 0.
    Reset,
    /// 1: the meter saw the first packets.
    Began,
    /// 2: the flow has this rate now.
    Rate,
    /// 3: the flow is idle.
    Ended,
    /// 4: the shaper limits the flow to this rate, confirmed.
    Shaped,
    /// 5: no agent shapes the flow.
    Unshaped,
}

/// An entry of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What happened.
    pub what: What,
    /// The flow.
    pub flow: Flow,
    /// Its rate, as the kind of entry says.
    pub rate_bps: u64,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// What is your session?
    Hello,
    /// This is my session.
    Welcome,
    /// A receiver's agent to a sender's: the flow may have this rate.
    Feedback(Vec<RateOf>),
    /// An agent to the label service.
    Report {
        /// From 1 in each session.
        number: u64,
        /// At most [`ENTRIES_MAX`].
        entries: Vec<Entry>,
    },
    /// The label service to an agent: these reports did not arrive.
    Again {
        /// The first one.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// An agent to the label service: there are reports up to this number.
    Beat {
        /// The number of the newest report, 0 if there is none.
        newest: u64,
    },
    /// The label service to a sender's agent: what flows get of overbooked links. Without rates, it says that it knows all flows, and that the agent has
    /// no caps.
    Caps(Vec<RateOf>),
}

/// Who sends a message to whom, in which sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The agent that sends it.
    pub from: AgentId,
    /// The agent that it is for.
    pub to: AgentId,
    /// The session of the one that sends it.
    pub from_session: u64,
    /// The session of the other.
    pub to_session: u64,
    /// Its number.
    pub sequence: u64,
}

impl Message {
    fn kind(&self) -> u8 {
        match self {
            Message::Hello => 1,
            Message::Welcome => 2,
            Message::Feedback(_) => 3,
            Message::Report { .. } => 4,
            Message::Again { .. } => 5,
            Message::Beat { .. } => 6,
            Message::Caps(_) => 7,
        }
    }
}

impl What {
    /// In the order of their numbers.
    const ALL: [What; 6] = [What::Reset, What::Began, What::Rate, What::Ended, What::Shaped, What::Unshaped];

    fn number(self) -> u8 {
        self as u8
    }
}
