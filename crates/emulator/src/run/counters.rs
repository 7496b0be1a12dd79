//! What a running network has counted since its start.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters since the start. All are totals over all switches.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) connections_lost: AtomicU64,
    pub(super) connections_refused: AtomicU64,
    pub(super) attempts: AtomicU64,
    pub(super) silences: AtomicU64,
    pub(super) bad_messages: AtomicU64,
    pub(super) packet_ins_dropped: AtomicU64,
    pub(super) packet_ins: AtomicU64,
    pub(super) packet_outs: AtomicU64,
    pub(super) flow_mods: AtomicU64,
    pub(super) barriers: AtomicU64,
    pub(super) errors: AtomicU64,
    pub(super) frames_lost: AtomicU64,
    pub(super) frames_not_sent: AtomicU64,
}

/// The counters at one moment; totals over all switches since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmulationCounters {
    /// Attempts to connect to a controller.
    pub attempts: u64,
    /// Connections on which a version was agreed.
    pub connections: u64,
    /// Connections that ended after that, closed by either side.
    pub connections_lost: u64,
    /// Attempts that failed: refused, or closed before a version was agreed.
    pub connections_refused: u64,
    /// Connections of the two kinds above that the switch ended, because the controller sent nothing for too long or
    /// no features request.
    pub silences: u64,
    /// Messages of controllers that could not be decoded.
    pub bad_messages: u64,
    /// Packet-ins that were sent.
    pub packet_ins: u64,
    /// Packet-ins that were not sent because the controller did not read earlier messages.
    pub packet_ins_dropped: u64,
    /// Packet-outs that were received.
    pub packet_outs: u64,
    /// Flow mods that were received.
    pub flow_mods: u64,
    /// Barriers that switches answered.
    pub barriers: u64,
    /// Errors that switches sent.
    pub errors: u64,
    /// Frames that were lost on links that are down, or in a storm.
    pub frames_lost: u64,
    /// Frames for which an interface had no room, or that were longer than its MTU.
    pub frames_not_sent: u64,
}

impl Counters {
    /// The counters at this moment.
    pub(super) fn now(&self) -> EmulationCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EmulationCounters {
            connections: read(&self.connections),
            connections_lost: read(&self.connections_lost),
            connections_refused: read(&self.connections_refused),
            attempts: read(&self.attempts),
            silences: read(&self.silences),
            bad_messages: read(&self.bad_messages),
            packet_ins: read(&self.packet_ins),
            packet_ins_dropped: read(&self.packet_ins_dropped),
            packet_outs: read(&self.packet_outs),
            flow_mods: read(&self.flow_mods),
            barriers: read(&self.barriers),
            errors: read(&self.errors),
            frames_lost: read(&self.frames_lost),
            frames_not_sent: read(&self.frames_not_sent),
        }
    }
}
