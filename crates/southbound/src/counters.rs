//! The counts of one session. Plain numbers, because a session belongs to one thread.
//!
//! They are never reset. For a rate, take two snapshots.

/// Counts since the connection was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages received.
    pub messages_in: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Packet-ins that became events.
    pub packet_ins: u64,
    /// Packet-ins that arrived before the switch was up. They were dropped.
    pub early_packet_ins: u64,
    /// Packet-ins of a switch that had already closed its side. They were dropped, because the switch would not
    /// receive an answer.
    pub late_packet_ins: u64,
    /// Port status messages received.
    pub port_statuses: u64,
    /// Flow removed messages received.
    pub flow_removeds: u64,
    /// Errors that the switch sent.
    pub errors_in: u64,
    /// Parts of statistics replies received.
    pub stats_replies: u64,
    /// Messages that are malformed or that a switch may not send. They were dropped.
    pub damaged: u64,
    /// Replies without a request. They were dropped.
    pub unasked: u64,
    /// Messages written.
    pub messages_out: u64,
    /// Bytes written, before TLS.
    pub bytes_out: u64,
    /// Packet-outs written.
    pub packet_outs: u64,
    /// Flow mods written.
    pub flow_mods: u64,
    /// Errors that we sent.
    pub errors_out: u64,
    /// Commands that were refused here: no room, or the OpenFlow version cannot express them.
    pub refused: u64,
}
