//! What happens in a running network, for whoever watches.
//!
//! The channel is bounded: an observer that is slow misses events, is told how many, and slows nobody down.

use flow::{DatapathId, PortNo};
use openflow::Version;
use openflow::message::FlowMod;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A switch and a controller have agreed on a version.
    SwitchConnected {
        /// The switch.
        datapath_id: DatapathId,
        /// The controller.
        controller: SocketAddr,
        /// The version.
        version: Version,
    },
    /// A switch lost a controller, or did not get through to it.
    SwitchDisconnected {
        /// The switch.
        datapath_id: DatapathId,
        /// The controller.
        controller: SocketAddr,
        /// What happened.
        why: String,
        /// When it will be tried again.
        retry_in: Duration,
    },
    /// A switch asked the controller what to do with a packet.
    PacketIn {
        /// The switch.
        datapath_id: DatapathId,
        /// The port by which the packet came in.
        in_port: PortNo,
        /// Why (OFPR_): 0 no match, 1 action, 2 invalid time-to-live.
        reason: u8,
        /// The packet's length in bytes.
        total_len: u16,
        /// Whether the switch keeps it.
        buffered: bool,
    },
    /// The controller told a switch to send a packet.
    PacketOut {
        /// The switch.
        datapath_id: DatapathId,
    },
    /// The controller changed a switch's rules.
    FlowMod {
        /// The switch.
        datapath_id: DatapathId,
        /// What it asked.
        flow_mod: Arc<FlowMod>,
    },
    /// A switch refused something.
    ErrorSent {
        /// The switch.
        datapath_id: DatapathId,
        /// `ofp_error_type` in the numbers of the connection's version.
        kind: u16,
        /// The code within it.
        code: u16,
    },
    /// A ping came back.
    PingOk {
        /// Name of the host that pinged.
        from: String,
        /// Name of the host that answered.
        to: String,
        /// How long it took, finding the address included.
        round_trip: Duration,
    },
    /// A ping did not come back in time.
    PingLost {
        /// Name of the host that pinged.
        from: String,
        /// Name of the host that did not answer.
        to: String,
    },
}

/// The receiving end.
#[derive(Debug)]
pub struct Observer {
    events: Receiver<Event>,
    dropped: Arc<AtomicU64>,
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Audience {
    events: SyncSender<Event>,
    dropped: Arc<AtomicU64>,
}

/// A channel with room for so many events.
pub(crate) fn channel(room: usize) -> (Audience, Observer) {
    let (sender, events) = sync_channel(room);
    let dropped = Arc::new(AtomicU64::new(0));
    (Audience { events: sender, dropped: dropped.clone() }, Observer { events, dropped })
}

impl Observer {
    /// The next event, if one comes in time.
    ///
    /// # Errors
    /// None came, or the network has ended and none will come any more.
    pub fn next_within(&self, timeout: Duration) -> Result<Event, RecvTimeoutError> {
        self.events.recv_timeout(timeout)
    }

    /// The next event, if one is there.
    ///
    /// # Errors
    /// None is there, or the network has ended and none will come any more.
    pub fn try_next(&self) -> Result<Event, TryRecvError> {
        self.events.try_recv()
    }

    /// How many events were not told because this observer did not keep up.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Audience {
    /// Tells an event, if there is room. Says whether anybody is still there.
    pub(crate) fn tell(&self, event: Event) -> bool {
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
            assert!(audience.tell(Event::PacketOut { datapath_id: DatapathId(datapath_id) }));
        }
        assert_eq!(observer.dropped(), 3);
        assert!(matches!(observer.try_next(), Ok(Event::PacketOut { datapath_id: DatapathId(0) })));
        drop(observer);
        assert!(!audience.tell(Event::PacketOut { datapath_id: DatapathId(9) }));
    }
}
