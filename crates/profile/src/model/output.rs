//! What comes out of a model. Each output says what happens at the moment at which it comes.

use super::input::{MessageId, RuleId};
use std::fmt;

/// Where packets meet a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The hardware, at the rate of the links.
    Hardware,
    /// The software, slowly.
    Software,
}

/// Why a switch refuses a message with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// OFPFMFC_TABLE_FULL (OpenFlow 1.0: OFPFMFC_ALL_TABLES_FULL).
    TableFull,
    /// OFPBRC_BUFFER_UNKNOWN: the id was never given, or its packet was kept too long.
    BufferUnknown,
    /// OFPBRC_BUFFER_EMPTY: the packet was already sent.
    BufferEmpty,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::TableFull => "the flow table is full",
            Refusal::BufferUnknown => "no packet was buffered under this id",
            Refusal::BufferEmpty => "the buffered packet was already sent",
        })
    }
}

/// Why a packet or message is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// More packet-ins than the switch's limit.
    PacketInLimit,
    /// The queue of the CPU is full.
    QueueFull,
    /// Too many packet-ins are on their way out.
    TooManyLeaving,
    /// The hardware table is full, and the switch says nothing about it.
    Ignored,
    /// More packets meet rules in software than the CPU forwards.
    SoftwareFull,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loss::PacketInLimit => "above the limit on packet-ins",
            Loss::QueueFull => "the queue of the switch's CPU was full",
            Loss::TooManyLeaving => "too many packet-ins were on their way out",
            Loss::Ignored => "the flow table was full, and the switch does not say so",
            Loss::SoftwareFull => "above the rate of the software table",
        })
    }
}

/// What happens now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The packet-in leaves.
    PacketIn {
        /// The packet's number.
        id: MessageId,
        /// How many bytes of the packet it carries.
        data_bytes: u32,
        /// The buffer with the packet. None: it is not buffered.
        buffer: Option<u32>,
    },
    /// The switch carries the message out, and sends its replies. A packet-out sends its packet. After a flow mod, the caller names the
    /// rules ([`super::Input::Added`], [`super::Input::Modified`], [`super::Input::Deleted`]) before it asks for the next output.
    CarryOut {
        /// The message.
        id: MessageId,
    },
    /// The packet that waited for this flow mod leaves.
    Release {
        /// The flow mod.
        id: MessageId,
    },
    /// The flow mod was carried out, but no packet waited for it under the buffer id that it names.
    NoBuffer {
        /// The flow mod.
        id: MessageId,
        /// The error for the controller.
        why: Refusal,
    },
    /// The barrier reply leaves.
    AnswerBarrier {
        /// The barrier request.
        id: MessageId,
    },
    /// The switch sends an error. It does not carry the message out.
    Refuse {
        /// The message.
        id: MessageId,
        /// The error.
        why: Refusal,
    },
    /// The packet or message is gone.
    Lost {
        /// Its number.
        id: MessageId,
        /// Why.
        why: Loss,
    },
    /// From now on, packets meet the rule in its latest form there. None: no longer.
    InDataPlane {
        /// The rule.
        rule: RuleId,
        /// Where.
        place: Option<Place>,
    },
    /// The switch removes the rule to make place.
    Evict {
        /// The rule.
        rule: RuleId,
    },
    /// The rule's idle time-out ends now if no packet met it since then. The caller looks. It answers [`super::Input::Deleted`] if
    /// the rule ended, or [`super::Input::Used`] if it did not.
    ExpireIfIdle {
        /// The rule.
        rule: RuleId,
        /// The last use that the model knows.
        unused_since_ns: u64,
    },
    /// The rule's hard time-out ends. The caller answers [`super::Input::Deleted`].
    Expire {
        /// The rule.
        rule: RuleId,
    },
    /// A packet that met a rule in software leaves.
    Forward {
        /// The packet's number.
        id: MessageId,
    },
}
