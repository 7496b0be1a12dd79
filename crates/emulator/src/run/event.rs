//! The events of a running network, for observers.
//!
//! The channel is bounded. A slow observer misses events, gets their number, and delays nothing.

use flow::{DatapathId, PortNo};
use openflow::Version;
use openflow::message::FlowMod;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

/// An event in a running network.
#[derive(Clone, Debug)]
pub enum NetworkEvent {
    /// A switch and a controller have agreed on a version.
    SwitchConnected {
        /// The switch.
        datapath_id: DatapathId,
        /// The controller.
        controller: SocketAddr,
        /// The version.
        version: Version,
    },
    /// A switch lost a controller, or failed to connect to it.
    SwitchDisconnected {
        /// The switch.
        datapath_id: DatapathId,
        /// The controller.
        controller: SocketAddr,
        /// The reason.
        why: String,
        /// The time until the next attempt.
        retry_in: Duration,
    },
    /// A switch sent a packet-in.
    PacketIn {
        /// The switch.
        datapath_id: DatapathId,
        /// The port that received the packet.
        in_port: PortNo,
        /// Why (OFPR_): 0 no match, 1 action, 2 invalid time-to-live.
        reason: u8,
        /// The packet's length in bytes.
        total_len: u16,
        /// Whether the switch has buffered it.
        buffered: bool,
    },
    /// A controller sent a packet-out.
    PacketOut {
        /// The switch.
        datapath_id: DatapathId,
    },
    /// A controller changed a switch's rules.
    FlowMod {
        /// The switch.
        datapath_id: DatapathId,
        /// The flow mod.
        flow_mod: Arc<FlowMod>,
    },
    /// A switch sent an error.
    ErrorSent {
        /// The switch.
        datapath_id: DatapathId,
        /// `ofp_error_type` in the numbers of the connection's version.
        kind: u16,
        /// The code within it.
        code: u16,
    },
    /// A ping was answered.
    PingOk {
        /// The name of the host that pinged.
        from: String,
        /// The name of the host that answered.
        to: String,
        /// The round trip, including address resolution.
        round_trip: Duration,
    },
    /// A ping was not answered in time.
    PingLost {
        /// The name of the host that pinged.
        from: String,
        /// The name of the host that did not answer.
        to: String,
    },
}

/// The receiving end.
#[derive(Debug)]
pub struct Observer {
    events: Receiver<NetworkEvent>,
    dropped: Arc<AtomicU64>,
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Audience {
    events: SyncSender<NetworkEvent>,
    dropped: Arc<AtomicU64>,
}

/// A channel with room for this many events.
pub(crate) fn channel(room: usize) -> (Audience, Observer) {
    let (sender, events) = sync_channel(room);
    let dropped = Arc::new(AtomicU64::new(0));
    (Audience { events: sender, dropped: dropped.clone() }, Observer { events, dropped })
}

impl Observer {
    /// Waits for the next event.
    ///
    /// # Errors
    ///
    /// None arrived in time, or the network has ended.
    pub fn next_within(&self, timeout: Duration) -> Result<NetworkEvent, RecvTimeoutError> {
        self.events.recv_timeout(timeout)
    }

    /// The next event, without waiting.
    ///
    /// # Errors
    ///
    /// There is none, or the network has ended.
    pub fn try_next(&self) -> Result<NetworkEvent, TryRecvError> {
        self.events.try_recv()
    }

    /// How many events this observer missed because it was too slow.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Audience {
    /// Sends an event, if there is room. Returns whether the observer still exists.
    pub(crate) fn tell(&self, event: NetworkEvent) -> bool {
        match self.events.try_send(event) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_observer_misses_events_and_knows_how_many() {
        let (audience, observer) = channel(2);
        for datapath_id in 0..5 {
            assert!(audience.tell(NetworkEvent::PacketOut { datapath_id: DatapathId(datapath_id) }));
        }
        assert_eq!(observer.dropped(), 3);
        assert!(matches!(observer.try_next(), Ok(NetworkEvent::PacketOut { datapath_id: DatapathId(0) })));
        drop(observer);
        assert!(!audience.tell(NetworkEvent::PacketOut { datapath_id: DatapathId(9) }));
    }
}
