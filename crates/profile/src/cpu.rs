//! The management CPU: one server with a queue, which every message of the control path passes.
//!
//! Plain numbers. How they are used is said at each of them; using them is the model's part.

use crate::quantiles::Quantiles;

/// The types of messages that the CPU tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MessageType {
    /// A packet without a rule, on its way to the controller.
    PacketIn,
    /// A packet that the controller sends.
    PacketOut,
    /// A flow mod that adds.
    Add,
    /// A flow mod that modifies.
    Modify,
    /// A flow mod that deletes.
    Delete,
    /// A request for statistics.
    Statistics,
    /// A barrier request.
    Barrier,
    /// An echo request.
    Echo,
    /// Every other message.
    Other,
}

impl MessageType {
    /// All of them.
    pub const ALL: [MessageType; 9] = [
        MessageType::PacketIn,
        MessageType::PacketOut,
        MessageType::Add,
        MessageType::Modify,
        MessageType::Delete,
        MessageType::Statistics,
        MessageType::Barrier,
        MessageType::Echo,
        MessageType::Other,
    ];

    /// Its key in the table `[cpu]` of a profile.
    pub const fn key(self) -> &'static str {
        match self {
            MessageType::PacketIn => "packet_in",
            MessageType::PacketOut => "packet_out",
            MessageType::Add => "add",
            MessageType::Modify => "modify",
            MessageType::Delete => "delete",
            MessageType::Statistics => "statistics",
            MessageType::Barrier => "barrier",
            MessageType::Echo => "echo",
            MessageType::Other => "other",
        }
    }
}

/// How one type of message is served.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    /// Which message the free CPU takes first: the lowest rank, and within a rank the oldest.
    pub rank: u8,
    /// How long the CPU works on one message.
    pub service_us: Quantiles,
}

/// What happens to a message that finds the queue full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueFull {
    /// A packet-in is lost. Messages of the controller wait in the connection, since TCP loses nothing.
    #[default]
    LosePacketIns,
    /// The message is lost, of whatever type.
    LoseAny,
}

/// The management CPU. It serves one message at a time, and does not interrupt it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cpu {
    /// How many messages wait at most; without the one in service. None: no bound was seen.
    pub queue_messages: Option<u32>,
    /// What happens at that bound.
    pub queue_full: QueueFull,
    /// A packet without a rule.
    pub packet_in: Service,
    /// A packet that the controller sends.
    pub packet_out: Service,
    /// A flow mod that adds. [`crate::Hardware::add`] comes on top of it.
    pub add: Service,
    /// A flow mod that modifies. The cost of the hardware comes on top of it.
    pub modify: Service,
    /// A flow mod that deletes. The cost of the hardware comes on top of it.
    pub delete: Service,
    /// A request for statistics, without its entries.
    pub statistics: Service,
    /// What each entry of an answer with statistics costs on top.
    pub statistics_entry_us: f64,
    /// A barrier request.
    pub barrier: Service,
    /// An echo request.
    pub echo: Service,
    /// Every other message.
    pub other: Service,
}

impl Cpu {
    /// How messages of this type are served.
    pub fn service(&self, message: MessageType) -> &Service {
        match message {
            MessageType::PacketIn => &self.packet_in,
            MessageType::PacketOut => &self.packet_out,
            MessageType::Add => &self.add,
            MessageType::Modify => &self.modify,
            MessageType::Delete => &self.delete,
            MessageType::Statistics => &self.statistics,
            MessageType::Barrier => &self.barrier,
            MessageType::Echo => &self.echo,
            MessageType::Other => &self.other,
        }
    }

    /// The same, to change it.
    pub fn service_mut(&mut self, message: MessageType) -> &mut Service {
        match message {
            MessageType::PacketIn => &mut self.packet_in,
            MessageType::PacketOut => &mut self.packet_out,
            MessageType::Add => &mut self.add,
            MessageType::Modify => &mut self.modify,
            MessageType::Delete => &mut self.delete,
            MessageType::Statistics => &mut self.statistics,
            MessageType::Barrier => &mut self.barrier,
            MessageType::Echo => &mut self.echo,
            MessageType::Other => &mut self.other,
        }
    }
}
