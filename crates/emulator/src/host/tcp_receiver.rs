//! The receiving end of a TCP connection. It takes segments in order, notes those that arrive early, and
//! acknowledges.
//!
//! In: segments, the time. Out: segments, and how many bytes were delivered. It does not keep the bytes themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use super::tcp::{ACK, FIN, RST, SYN, Segment, WINDOW_BYTES};

/// How long an acknowledgement waits for a second segment (Linux's shortest delay).
const ACK_PATIENCE: Duration = Duration::from_millis(40);
/// How long the last FIN waits for its acknowledgement, and how often it is sent.
const FIN_PATIENCE: Duration = Duration::from_secs(1);
const FIN_ATTEMPTS: u32 = 5;
/// How many separate early pieces are noted. Further ones are not acknowledged, so the sender sends them again.
const PIECES_MAX: usize = 4096;
/// The window in a SYN is not scaled, so it has 16 bits.
const FIRST_WINDOW_BYTES: u32 = 65_535;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listens,
    Open,
    /// Both sides have sent their FIN.
    Closing {
        attempts: u32,
    },
    Closed,
}

/// The receiving end of a connection.
#[derive(Debug)]
pub(super) struct TcpReceiver {
    state: State,
    own_isn: u32,
    /// The sequence number of the stream's first byte.
    first: u32,
    /// How many bytes have arrived in order.
    pub(super) delivered_bytes: u64,
    pub(super) delivered_segments: u64,
    /// The early pieces: start and end offsets.
    pieces: BTreeMap<u64, u64>,
    /// How many segments are not acknowledged yet.
    unacknowledged: u32,
    due: Option<Duration>,
}

impl TcpReceiver {
    /// A receiver that waits for its sender.
    pub(super) fn new(own_isn: u32) -> Self {
        TcpReceiver {
            state: State::Listens,
            own_isn,
            first: 0,
            delivered_bytes: 0,
            delivered_segments: 0,
            pieces: BTreeMap::new(),
            unacknowledged: 0,
            due: None,
        }
    }

    /// A receiver of a connection that this end has opened. Its next own segment has the number after `own_isn`, and the
    /// peer's first byte has the number `first`.
    pub(super) fn opened(own_isn: u32, first: u32) -> Self {
        TcpReceiver { state: State::Open, first, ..TcpReceiver::new(own_isn) }
    }

    /// Whether both ends have closed the connection.
    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Forgets the connection, because the host was switched off.
    pub(super) fn forget(&mut self) {
        self.state = State::Closed;
        self.pieces.clear();
        self.due = None;
    }

    /// When it must act although no segment arrives.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }

    /// Processes a segment.
    pub(super) fn on_segment(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        match self.state {
            _ if segment.has(RST) => self.forget(),
            State::Listens | State::Open if segment.has(SYN) && self.delivered_bytes == 0 => {
                (self.state, self.first) = (State::Open, segment.sequence.wrapping_add(1));
                out.push(self.segment(SYN | ACK));
            }
            State::Listens => out.push(segment.reset()),
            State::Closed if segment.payload_bytes > 0 || segment.has(SYN) => out.push(segment.reset()),
            State::Closed => {}
            State::Open => self.take(segment, now, out),
            State::Closing { .. } if segment.acknowledgement == self.own_isn.wrapping_add(2) => {
                (self.state, self.due) = (State::Closed, None);
            }
            State::Closing { .. } => out.push(self.segment(FIN | ACK)),
        }
    }

    fn take(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        let expected = self.first.wrapping_add(self.delivered_bytes as u32);
        // Half of all sequence numbers count as ahead, and half as behind.
        let ahead = segment.sequence.wrapping_sub(expected) as i32;
        let bytes = segment.payload_bytes as u64;
        let is_end = segment.has(FIN);
        if bytes == 0 && !is_end {
            return;
        }
        let begins = self.delivered_bytes.checked_add_signed(i64::from(ahead));
        let had_pieces = !self.pieces.is_empty();
        match begins {
            Some(begins) if begins > self.delivered_bytes => self.note(begins, begins + bytes),
            Some(begins) if begins + bytes > self.delivered_bytes => self.deliver(begins + bytes),
            _ => {}
        }
        let is_in_order = ahead == 0;
        if is_end
            && begins.is_some_and(|begins| begins + bytes == self.delivered_bytes)
            && self.pieces.is_empty()
        {
            self.state = State::Closing { attempts: 1 };
            self.due = Some(now + FIN_PATIENCE);
            return out.push(self.segment(FIN | ACK));
        }
        self.unacknowledged += 1;
        if self.unacknowledged >= 2 || !is_in_order || had_pieces {
            self.acknowledge(out);
        } else {
            self.due.get_or_insert(now + ACK_PATIENCE);
        }
    }

    fn note(&mut self, from: u64, to: u64) {
        if self.pieces.len() < PIECES_MAX && to > from {
            let end = self.pieces.entry(from).or_insert(to);
            *end = to.max(*end);
        }
    }

    /// Everything up to this offset has arrived. Also delivers early pieces after it.
    fn deliver(&mut self, up_to: u64) {
        self.delivered_bytes = up_to;
        self.delivered_segments += 1;
        while let Some(piece) = self.pieces.first_entry().filter(|piece| *piece.key() <= self.delivered_bytes)
        {
            let end = piece.remove();
            self.delivered_segments += u64::from(end > self.delivered_bytes);
            self.delivered_bytes = self.delivered_bytes.max(end);
        }
    }

    fn acknowledge(&mut self, out: &mut Vec<Segment>) {
        (self.unacknowledged, self.due) = (0, None);
        out.push(self.segment(ACK));
    }

    /// Time has passed.
    pub(super) fn on_tick(&mut self, now: Duration, out: &mut Vec<Segment>) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.due = None;
        match self.state {
            State::Open => self.acknowledge(out),
            State::Closing { attempts } if attempts < FIN_ATTEMPTS => {
                self.state = State::Closing { attempts: attempts + 1 };
                self.due = Some(now + FIN_PATIENCE);
                out.push(self.segment(FIN | ACK));
            }
            _ => self.state = State::Closed,
        }
    }

    fn segment(&self, flags: u8) -> Segment {
        let is_syn = flags & SYN != 0;
        let took_end = matches!(self.state, State::Closing { .. });
        let acknowledgement =
            self.first.wrapping_add(self.delivered_bytes as u32).wrapping_add(u32::from(took_end));
        Segment {
            sequence: self.own_isn.wrapping_add(u32::from(!is_syn)),
            acknowledgement,
            flags,
            window_bytes: if is_syn { FIRST_WINDOW_BYTES } else { WINDOW_BYTES },
            payload_bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(3);

    /// A receiver after a SYN with a sequence number near the maximum.
    fn open() -> TcpReceiver {
        let mut receiver = TcpReceiver::new(100);
        let mut out = Vec::new();
        receiver.on_segment(&segment(SYN, 0, 0), NOW, &mut out);
        assert_eq!((out[0].flags, out[0].sequence, out[0].acknowledgement), (SYN | ACK, 100, BASE + 1));
        receiver
    }

    const BASE: u32 = u32::MAX - 1500;

    /// A segment of the stream at an offset.
    fn segment(flags: u8, offset: u32, payload_bytes: usize) -> Segment {
        let sequence = BASE.wrapping_add(offset).wrapping_add(u32::from(flags & SYN == 0));
        Segment { sequence, acknowledgement: 101, flags, window_bytes: 1, payload_bytes }
    }

    /// Passes segments to the receiver and checks the acknowledged offsets.
    fn check(receiver: &mut TcpReceiver, segments: &[(u32, usize)], expected: &[u32]) {
        let mut out = Vec::new();
        for (offset, bytes) in segments {
            receiver.on_segment(&segment(ACK, *offset, *bytes), NOW, &mut out);
        }
        let offsets: Vec<u32> = out.iter().map(|ack| ack.acknowledgement.wrapping_sub(BASE + 1)).collect();
        assert_eq!(offsets, expected);
    }

    #[test]
    fn every_second_segment_is_acknowledged_and_one_alone_after_a_while() {
        let mut receiver = open();
        check(&mut receiver, &[(0, 1000), (1000, 1000), (2000, 1000)], &[2000]);
        assert_eq!(receiver.due(), Some(NOW + ACK_PATIENCE));
        let mut out = Vec::new();
        receiver.on_tick(NOW, &mut out);
        assert!(out.is_empty());
        receiver.on_tick(NOW + ACK_PATIENCE, &mut out);
        assert_eq!((out.len(), receiver.due()), (1, None));
    }

    #[test]
    fn what_comes_before_its_turn_is_said_at_once_and_kept() {
        let mut receiver = open();
        check(&mut receiver, &[(1000, 1000), (3000, 1000)], &[0, 0]);
        check(&mut receiver, &[(0, 1000)], &[2000]);
        check(&mut receiver, &[(0, 1000), (500, 1000)], &[2000, 2000]);
        check(&mut receiver, &[(1500, 1500)], &[4000]);
        assert_eq!((receiver.delivered_bytes, receiver.pieces.len()), (4000, 0));
    }

    #[test]
    fn the_end_is_acknowledged_and_answered_with_an_end_until_that_is_acknowledged() {
        let mut receiver = open();
        let mut out = Vec::new();
        receiver.on_segment(&segment(FIN | ACK, 1000, 0), NOW, &mut out);
        assert_eq!((out.len(), out[0].flags), (1, ACK), "a byte is missing before the end");
        out.clear();
        receiver.on_segment(&segment(ACK, 0, 1000), NOW, &mut out);
        receiver.on_segment(&segment(FIN | ACK, 1000, 0), NOW, &mut out);
        let end = out.last().unwrap();
        assert_eq!((end.flags, end.acknowledgement), (FIN | ACK, BASE.wrapping_add(1002)));
        receiver.on_tick(NOW + FIN_PATIENCE, &mut out);
        assert_eq!(out.last().unwrap().flags, FIN | ACK, "again");
        let last = Segment { acknowledgement: 102, ..segment(ACK, 1001, 0) };
        receiver.on_segment(&last, NOW, &mut out);
        assert_eq!((receiver.state, receiver.due()), (State::Closed, None));
    }

    #[test]
    fn who_does_not_know_a_connection_resets_it() {
        for mut receiver in [TcpReceiver::new(1), {
            let mut it = open();
            it.forget();
            it
        }] {
            let mut out = Vec::new();
            receiver.on_segment(&segment(ACK, 0, 10), NOW, &mut out);
            assert!(out.len() == 1 && out[0].has(RST));
        }
    }
}
