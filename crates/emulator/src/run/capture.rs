//! Captures the traffic of a port or a control channel of a running network, for a file.
//!
//! The channel is bounded. A slow reader misses frames, gets their number, and delays nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::network::{Capture, Channel};
use crate::pcap::Conversation;
use crate::topology::Endpoint;

/// How many frames may wait for the reader. More are dropped and counted. At full length they take 50 MB.
const FRAMES_MAX: usize = 32_768;

/// Where frames are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// Frames that leave or enter this end of a link.
    Port(Endpoint),
    /// Only frames that enter this end of a link: what a host receives.
    Arrivals(Endpoint),
    /// The messages between switches and controllers, as TCP: of one switch, by its index, or of all.
    Control(Option<usize>),
}

/// The receiving end of a tap.
#[derive(Debug)]
pub struct Captured {
    frames: Receiver<(Duration, Vec<u8>)>,
    dropped: Arc<AtomicU64>,
}

impl Captured {
    /// The next frame, with the time since the emulation began.
    ///
    /// # Errors
    ///
    /// No frame arrived in time, or the network has ended and sends no more.
    pub fn next_within(&self, timeout: Duration) -> Result<(Duration, Vec<u8>), RecvTimeoutError> {
        self.frames.recv_timeout(timeout)
    }

    /// How many frames were not captured because too many waited for the reader.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
pub(crate) struct Sink {
    tap: Tap,
    frames: SyncSender<(Duration, Vec<u8>)>,
    dropped: Arc<AtomicU64>,
}

/// A tap's two ends.
pub(crate) fn channel(tap: Tap) -> (Sink, Captured) {
    let (sender, frames) = sync_channel(FRAMES_MAX);
    let dropped = Arc::new(AtomicU64::new(0));
    (Sink { tap, frames: sender, dropped: dropped.clone() }, Captured { frames, dropped })
}

impl Sink {
    fn put(&self, at: Duration, frame: &[u8]) {
        if self.frames.try_send((at, frame.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// All taps of a network.
#[derive(Debug, Default)]
pub(crate) struct Sinks {
    sinks: Vec<Sink>,
    conversations: BTreeMap<Channel, Conversation>,
    /// The number of connections so far, from which new ones get their ports.
    connections: u16,
}

impl Sinks {
    /// With these taps from the start.
    pub(crate) fn new(sinks: Vec<Sink>) -> Self {
        Sinks { sinks, ..Sinks::default() }
    }

    /// The ends of links with a tap.
    pub(crate) fn places(&self) -> impl Iterator<Item = Endpoint> {
        self.sinks.iter().filter_map(|sink| match sink.tap {
            Tap::Port(place) | Tap::Arrivals(place) => Some(place),
            Tap::Control(_) => None,
        })
    }

    /// Frames have passed taps.
    pub(crate) fn on_frames(&self, captured: &mut Vec<Capture>) {
        for Capture { at, place, outgoing, frame } in captured.drain(..) {
            let is_heard = |tap: Tap| tap == Tap::Port(place) || !outgoing && tap == Tap::Arrivals(place);
            self.sinks.iter().filter(|sink| is_heard(sink.tap)).for_each(|sink| sink.put(at, &frame));
        }
    }

    fn hears(&self, switch: usize) -> bool {
        self.sinks.iter().any(|sink| sink.hears(switch))
    }

    /// A connection was opened.
    pub(crate) fn on_open(&mut self, at: Channel, controller: SocketAddr, now: Duration) {
        if self.hears(at.switch) {
            // The switches use half of all ports. After so many connections they are reused.
            self.connections = (self.connections + 1) & 0x7fff;
            let mut conversation = Conversation::new(at.switch, controller, self.connections);
            let frames = conversation.open();
            self.conversations.insert(at, conversation);
            self.tell(at.switch, now, &frames);
        }
    }

    /// Bytes were sent on a connection.
    pub(crate) fn on_bytes(&mut self, at: Channel, of_switch: bool, bytes: &[u8], now: Duration) {
        if let Some(conversation) = self.conversations.get_mut(&at) {
            let frames = conversation.send(of_switch, bytes);
            self.tell(at.switch, now, &frames);
        }
    }

    /// A connection has ended.
    pub(crate) fn on_close(&mut self, at: Channel, now: Duration) {
        if let Some(mut conversation) = self.conversations.remove(&at) {
            let frames = conversation.close();
            self.tell(at.switch, now, &frames);
        }
    }

    /// Whether a tap captures this connection.
    pub(crate) fn is_heard(&self, at: Channel) -> bool {
        self.conversations.contains_key(&at)
    }

    fn tell(&self, switch: usize, now: Duration, frames: &[Vec<u8>]) {
        for sink in self.sinks.iter().filter(|sink| sink.hears(switch)) {
            frames.iter().for_each(|frame| sink.put(now, frame));
        }
    }
}

impl Sink {
    fn hears(&self, switch: usize) -> bool {
        matches!(self.tap, Tap::Control(of)if of.is_none_or(|of| of == switch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_slow_misses_frames_and_knows_how_many() {
        let place = Endpoint::Host { index: 0 };
        let (sink, captured) = channel(Tap::Port(place));
        let sinks = Sinks::new(vec![sink]);
        let one = || Capture { at: Duration::ZERO, place, outgoing: true, frame: vec![1] };
        let mut frames: Vec<Capture> = (0..FRAMES_MAX + 3).map(|_| one()).collect();
        sinks.on_frames(&mut frames);
        assert_eq!((captured.dropped(), frames.len()), (3, 0));
        assert_eq!(captured.next_within(Duration::ZERO).unwrap().1, [1]);
    }

    #[test]
    fn arrivals_are_heard_without_what_is_sent_there() {
        let place = Endpoint::Host { index: 0 };
        let (sink, captured) = channel(Tap::Arrivals(place));
        let one = |outgoing, frame| Capture { at: Duration::ZERO, place, outgoing, frame: vec![frame] };
        Sinks::new(vec![sink]).on_frames(&mut vec![one(true, 1), one(false, 2)]);
        assert_eq!(captured.next_within(Duration::ZERO).unwrap().1, [2]);
        assert!(captured.next_within(Duration::ZERO).is_err());
    }
}
