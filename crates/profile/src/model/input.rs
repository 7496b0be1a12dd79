//! What goes into a model: packets that miss, messages of the controller, and what the caller did with the model's outputs.
//!
//! Plain values. The caller chooses the numbers of messages and of rules.

use crate::cpu::MessageType;

/// The caller's number of a message or packet. The model never compares two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub u64);

/// The caller's number of a rule. Flow mods of the same table, priority and match have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u64);

/// A packet for the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Its number.
    pub id: MessageId,
    /// When the packet arrived at the switch: now, or earlier if a real switch has already worked on it.
    pub arrived_ns: u64,
    /// The packet's length.
    pub length_bytes: u32,
    /// How many bytes of it the controller asked for. None: as many as the profile says.
    pub wanted_bytes: Option<u16>,
    /// Whether the packet may be buffered. A rule may ask for the whole packet (OFPCML_NO_BUFFER).
    pub may_be_buffered: bool,
}

/// The packet that a message sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packet {
    /// The message sends none.
    #[default]
    None,
    /// The message carries it, or the caller keeps it.
    Given,
    /// It is in this buffer of the model.
    Buffered(u32),
}

/// The rule of a flow mod that adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its number.
    pub id: RuleId,
    /// Its priority.
    pub priority: u16,
    /// Its class in the hardware table ([`crate::Hardware::class_of`]). None: it cannot be in hardware.
    pub class: Option<u8>,
    /// The idle time-out in seconds. 0: none, or the caller watches it.
    pub idle_timeout_s: u16,
    /// The hard time-out in seconds. 0: none, or the caller watches it.
    pub hard_timeout_s: u16,
}

/// A message of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number.
    pub id: MessageId,
    /// Its type.
    pub kind: MessageType,
    /// The rule of an add. Without one, the caller says which rule it adds when it carries the message out ([`Input::Added`]).
    pub rule: Option<Rule>,
    /// The packet that it sends.
    pub packet: Packet,
    /// How many entries the answer of a request for statistics has.
    pub entries: u32,
}

impl Message {
    /// A message that has no rule, no packet and no entries.
    pub fn new(id: MessageId, kind: MessageType) -> Self {
        Message { id, kind, rule: None, packet: Packet::None, entries: 0 }
    }
}

/// What happens to a switch, or what the caller answers to an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A packet goes to the controller.
    Miss(Miss),
    /// A message of the controller came.
    Message(Message),
    /// A packet meets a rule that is in software.
    InSoftware {
        /// The packet's number.
        id: MessageId,
        /// The rule.
        rule: RuleId,
        /// The packet's length.
        length_bytes: u32,
    },
    /// A message that is carried out adds a rule: an add without a rule of its own, or a modify that found none (OpenFlow 1.0, 4.6). The
    /// model says at once if there is no place: by `Refuse` or `Lost` of this message. Then nothing has changed.
    Added {
        /// The message.
        id: MessageId,
        /// The rule.
        rule: Rule,
    },
    /// The caller refused a message that it was to carry out, by a check of its own. The packet that waits for it stays where it is.
    Refused(MessageId),
    /// A real switch refused an add that was carried out and that had replaced a rule: the rule is as it was, with these time-outs. A hard
    /// time-out goes on from the refused add. It causes no output.
    Restored(Rule),
    /// A message that was carried out changed this rule.
    Modified(RuleId),
    /// A message that was carried out, a time-out, or the switch itself removed this rule.
    Deleted(RuleId),
    /// Packets met this rule, the last one then.
    Used {
        /// The rule.
        rule: RuleId,
        /// When the last packet met it.
        at_ns: u64,
        /// How many packets since the last time.
        packets: u64,
    },
}
