//! What one session has counted. Plain numbers: a session belongs to one thread.
//!
//! Never resets: who wants a rate takes two snapshots.

/// Counts since the connection was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that came.
    pub messages_in: u64,
    /// Bytes that came.
    pub bytes_in: u64,
    /// Packet-ins that became events.
    pub packet_ins: u64,
    /// Packet-ins that came before the switch was up, and were dropped.
    pub early_packet_ins: u64,
    /// Packet-ins of a switch that had closed its end already; they were dropped: nobody can answer them.
    pub late_packet_ins: u64,
    /// Port statuses.
    pub port_statuses: u64,
    /// Flow removeds.
    pub flow_removeds: u64,
    /// Errors that the switch sent.
    pub errors_in: u64,
    /// Parts of statistics replies.
    pub stats_replies: u64,
    /// Messages that could not be read or that a switch may not send; they were dropped.
    pub damaged: u64,
    /// Answers that nobody had asked for; they were dropped.
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
    /// Commands refused here, for want of room or because the version cannot say them.
    pub refused: u64,
}
