//! One query as its client sees it: opens the connection, sends the request, and waits for the whole reply.
//!
//! In: segments, the time. Out: segments, and the moment at which the reply was complete. It does not decide when it is
//! too late.

use std::time::Duration;

use super::round_trip::RoundTrip;
use super::tcp::{ACK, PSH, RST, SYN, Segment, WINDOW_BYTES};
use super::tcp_receiver::TcpReceiver;

/// How often a SYN, and how often the request, is sent again (Linux: `tcp_syn_retries`, `tcp_retries2`).
const SYN_RETRIES: u32 = 6;
const RETRIES: u32 = 15;

#[derive(Debug)]
enum State {
    /// No answer to the SYN yet.
    Opening,
    /// The request is sent. The receiver takes the reply.
    Asked { peer_next: u32, reply: Box<TcpReceiver> },
    /// Nothing more happens on this connection.
    Over,
}

/// What has become of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Open,
    /// The reply is complete since this moment. The connection may still have to be closed.
    Completed(Duration),
    Refused,
    NoAnswer,
}

/// The client's end of one query.
#[derive(Debug)]
pub(super) struct QueryClient {
    state: State,
    isn: u32,
    request_bytes: u16,
    reply_bytes: u64,
    pub(super) began_at: Duration,
    pub(super) progress: Progress,
    round_trip: RoundTrip,
    retries: u32,
    /// When the SYN or the request is sent again.
    timer: Option<Duration>,
}

impl QueryClient {
    /// Begins: sends a SYN.
    pub(super) fn begin(
        isn: u32,
        request_bytes: u16,
        reply_bytes: u64,
        now: Duration,
        out: &mut Vec<Segment>,
    ) -> Self {
        let round_trip = RoundTrip::default();
        let client = QueryClient {
            state: State::Opening,
            isn,
            request_bytes,
            reply_bytes,
            began_at: now,
            progress: Progress::Open,
            round_trip,
            retries: 0,
            timer: Some(now + round_trip.patience()),
        };
        out.push(client.syn());
        client
    }

    /// Whether the connection is closed.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// When it must act although no segment arrives.
    pub(super) fn due(&self) -> Option<Duration> {
        let reply = if let State::Asked { reply, .. } = &self.state { reply.due() } else { None };
        self.timer.into_iter().chain(reply).min()
    }

    /// Processes a segment.
    pub(super) fn on_segment(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        if segment.has(RST) {
            return self.end(Progress::Refused);
        }
        match &self.state {
            State::Opening if segment.has(SYN | ACK) => self.ask(segment, now, out),
            State::Asked { peer_next, .. } if segment.has(SYN) => out.push(self.acknowledge(*peer_next)),
            State::Asked { .. } => self.take(segment, now, out),
            State::Opening | State::Over => {}
        }
    }

    /// The connection is open. As Linux does, it acknowledges and then sends the request.
    fn ask(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        if segment.acknowledgement != self.isn.wrapping_add(1) {
            return;
        }
        if self.retries == 0 {
            self.round_trip.measured(now.saturating_sub(self.began_at));
        }
        let peer_next = segment.sequence.wrapping_add(1);
        // The receiver's own first number is that before its next segment, so that its acknowledgements follow the request.
        let own = self.isn.wrapping_add(u32::from(self.request_bytes));
        let reply = Box::new(TcpReceiver::opened(own, peer_next));
        self.state = State::Asked { peer_next, reply };
        (self.retries, self.timer) = (0, Some(now + self.round_trip.patience()));
        out.push(self.acknowledge(peer_next));
        out.push(self.request(peer_next));
    }

    fn take(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        let State::Asked { reply, .. } = &mut self.state else { return };
        let after_the_request = self.isn.wrapping_add(1).wrapping_add(u32::from(self.request_bytes));
        if segment.acknowledgement == after_the_request || segment.payload_bytes > 0 {
            self.timer = None;
        }
        reply.on_segment(segment, now, out);
        if self.progress == Progress::Open && reply.delivered_bytes >= self.reply_bytes {
            self.progress = Progress::Completed(now);
        }
        if reply.is_closed() {
            self.end(Progress::NoAnswer);
        }
    }

    /// Time has passed.
    pub(super) fn on_tick(&mut self, now: Duration, out: &mut Vec<Segment>) {
        if self.timer.is_some_and(|timer| timer <= now) {
            self.timer = None;
            self.send_again(now, out);
        }
        if let State::Asked { reply, .. } = &mut self.state {
            reply.on_tick(now, out);
            if reply.is_closed() {
                self.end(Progress::NoAnswer);
            }
        }
    }

    fn send_again(&mut self, now: Duration, out: &mut Vec<Segment>) {
        self.retries += 1;
        self.round_trip.timed_out();
        match &self.state {
            State::Opening if self.retries <= SYN_RETRIES => out.push(self.syn()),
            State::Asked { peer_next, .. } if self.retries <= RETRIES => out.push(self.request(*peer_next)),
            _ => return self.end(Progress::NoAnswer),
        }
        self.timer = Some(now + self.round_trip.patience());
    }

    /// The connection has ended. A query that is complete stays so.
    fn end(&mut self, why: Progress) {
        if self.progress == Progress::Open {
            self.progress = why;
        }
        (self.state, self.timer) = (State::Over, None);
    }

    fn syn(&self) -> Segment {
        let window_bytes = u32::from(u16::MAX);
        Segment { sequence: self.isn, acknowledgement: 0, flags: SYN, window_bytes, payload_bytes: 0 }
    }

    fn acknowledge(&self, acknowledgement: u32) -> Segment {
        let sequence = self.isn.wrapping_add(1);
        Segment { sequence, acknowledgement, flags: ACK, window_bytes: WINDOW_BYTES, payload_bytes: 0 }
    }

    fn request(&self, peer_next: u32) -> Segment {
        let payload_bytes = usize::from(self.request_bytes);
        Segment { flags: ACK | PSH, payload_bytes, ..self.acknowledge(peer_next) }
    }
}
