//! The sending end of a TCP connection. It opens the connection, sends as much as application, windows and link
//! allow, retransmits losses, and closes the connection.
//!
//! In: segments, the time. Out: segments. The bytes of the stream are zero, so none are stored. Offsets count them
//! from 0.

use std::collections::VecDeque;
use std::time::Duration;

use super::congestion::Congestion;
use super::pace::{FlowRate, Line};
use super::round_trip::RoundTrip;
use super::tcp::{ACK, FIN, PSH, RST, SYN, Segment, WINDOW_BYTES};

/// How often a SYN, and how often any other segment, is retransmitted before the connection is given up (Linux:
/// `tcp_syn_retries`, `tcp_retries2`).
const SYN_RETRIES: u32 = 6;
const RETRIES: u32 = 15;
/// Bytes of a frame around a segment's payload, over IPv4. The few more of IPv6 are ignored.
const HEADERS_BYTES: usize = 54;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No answer yet.
    Opening,
    Open,
    /// Everything is acknowledged, including the FIN.
    Ended,
    /// The peer does not know the connection.
    Refused,
    /// The peer has stopped answering.
    NoAnswer,
}

/// The parameters of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) rate: FlowRate,
    pub(super) payload_bytes: usize,
    /// How many bytes it sends in all. `None`: until it is stopped.
    pub(super) limit_bytes: Option<u64>,
    pub(super) ends_at: Option<Duration>,
    pub(super) line_bits_per_s: u64,
    /// The first sequence number.
    pub(super) isn: u32,
}

/// The sending end of a connection.
#[derive(Debug)]
pub(super) struct TcpSender {
    plan: Plan,
    pub(super) state: State,
    began_at: Duration,
    opened_at: Duration,
    /// The sequence number that it acknowledges to the peer.
    peer_next: u32,
    peer_window: u64,
    /// The offsets up to which everything is acknowledged, of the next segment, and of the highest byte sent.
    acknowledged: u64,
    next: u64,
    highest: u64,
    /// Where the stream ends, once known. The FIN takes one more number.
    end: Option<u64>,
    congestion: Congestion,
    pub(super) round_trip: RoundTrip,
    /// Segments that were sent once: their end offset and send time.
    timed: VecDeque<(u64, Duration)>,
    retries: u32,
    /// When the retransmission timer runs out.
    timer: Option<Duration>,
    /// When there is more to send, or the link is free.
    wakes_at: Option<Duration>,
    line: Line,
    pub(super) segments_sent: u64,
    pub(super) segments_again: u64,
    pub(super) timeouts: u64,
}

impl TcpSender {
    /// Starts a connection: sends a SYN.
    pub(super) fn start(plan: Plan, now: Duration, out: &mut Vec<Segment>) -> Self {
        let mut sender = TcpSender::new(plan, now);
        sender.send_syn(now, out);
        sender
    }

    /// Sends over a connection that the peer has opened. The peer's next byte has this number.
    pub(super) fn accepted(
        plan: Plan,
        peer_next: u32,
        peer_window_bytes: u32,
        now: Duration,
        out: &mut Vec<Segment>,
    ) -> Self {
        let peer_window = u64::from(peer_window_bytes);
        let mut sender =
            TcpSender { state: State::Open, peer_next, peer_window, ..TcpSender::new(plan, now) };
        sender.pump(now, out);
        sender
    }

    fn new(plan: Plan, now: Duration) -> Self {
        TcpSender {
            plan,
            state: State::Opening,
            began_at: now,
            opened_at: now,
            peer_next: 0,
            peer_window: 0,
            acknowledged: 0,
            next: 0,
            highest: 0,
            end: plan.limit_bytes,
            congestion: Congestion::new(plan.payload_bytes as u64),
            round_trip: RoundTrip::default(),
            timed: VecDeque::new(),
            retries: 0,
            timer: None,
            wakes_at: None,
            line: Line::new(plan.line_bits_per_s),
            segments_sent: 0,
            segments_again: 0,
            timeouts: 0,
        }
    }

    /// Sets the rate of its link.
    pub(super) fn set_line_rate(&mut self, bits_per_s: u64) {
        self.line.set_rate(bits_per_s);
    }

    /// Payload bytes that were sent, each counted once.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.highest.min(self.end.unwrap_or(u64::MAX))
    }

    /// Sends no new data. Data already sent is still delivered; then the connection ends.
    pub(super) fn stop(&mut self, now: Duration, out: &mut Vec<Segment>) {
        self.end = Some(self.sent_bytes());
        self.pump(now, out);
    }

    /// The host was switched off.
    pub(super) fn abandon(&mut self, why: State) {
        (self.state, self.timer, self.wakes_at) = (why, None, None);
    }

    /// When it must act although no segment arrives.
    pub(super) fn due(&self) -> Option<Duration> {
        self.timer.into_iter().chain(self.wakes_at).min()
    }

    /// Processes a segment.
    pub(super) fn on_segment(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        if segment.has(RST) {
            if matches!(self.state, State::Opening | State::Open) {
                self.abandon(State::Refused);
            }
            return;
        }
        match self.state {
            State::Opening if segment.has(SYN | ACK) => self.open(segment, now, out),
            State::Open => self.on_answer(segment, now, out),
            // The last acknowledgement was lost.
            State::Ended if segment.has(FIN) => self.acknowledge(out),
            _ => {}
        }
    }

    fn open(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        if segment.acknowledgement != self.plan.isn.wrapping_add(1) {
            return;
        }
        if self.retries == 0 {
            self.round_trip.measured(now.saturating_sub(self.began_at));
        }
        (self.state, self.opened_at) = (State::Open, now);
        (self.retries, self.timer) = (0, None);
        self.peer_next = segment.sequence.wrapping_add(1);
        self.peer_window = u64::from(segment.window_bytes);
        self.acknowledge(out);
        self.pump(now, out);
    }

    fn on_answer(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        let first = self.plan.isn.wrapping_add(1).wrapping_add(self.acknowledged as u32);
        let ahead = u64::from(segment.acknowledgement.wrapping_sub(first));
        let in_flight = self.highest - self.acknowledged;
        // An offset behind wraps to a number near the maximum.
        if ahead > in_flight {
            return;
        }
        let same_window = self.peer_window == u64::from(segment.window_bytes);
        self.peer_window = u64::from(segment.window_bytes);
        if ahead > 0 {
            self.on_new_acknowledgement(ahead, now, out);
        } else if in_flight > 0 && same_window && segment.payload_bytes == 0 && !segment.has(FIN) {
            let in_flight = self.next - self.acknowledged;
            if self.congestion.on_duplicate(self.acknowledged, self.highest, in_flight) {
                self.send_first_again(now, out);
            }
        }
        if segment.has(FIN) && self.is_all_acknowledged() {
            self.peer_next = segment.sequence.wrapping_add(1);
            self.acknowledge(out);
            return self.abandon(State::Ended);
        }
        self.pump(now, out);
    }

    /// Whether the FIN is acknowledged too.
    fn is_all_acknowledged(&self) -> bool {
        self.end.is_some_and(|end| self.acknowledged > end)
    }

    fn on_new_acknowledgement(&mut self, bytes: u64, now: Duration, out: &mut Vec<Segment>) {
        self.acknowledged += bytes;
        self.next = self.next.max(self.acknowledged);
        self.retries = 0;
        let mut sent_at = None;
        while let Some((_, at)) = self.timed.front().filter(|(end, _)| *end <= self.acknowledged) {
            sent_at = Some(*at);
            self.timed.pop_front();
        }
        if let Some(sample) = sent_at.map(|at| now.saturating_sub(at)) {
            self.round_trip.measured(sample);
            self.congestion.on_round_trip(sample, self.round_trip.shortest.unwrap_or(sample));
        }
        let is_hole = self.congestion.on_acknowledged(bytes, self.acknowledged);
        self.timer = (self.acknowledged < self.highest).then(|| now + self.round_trip.patience());
        if is_hole && self.acknowledged < self.highest {
            self.send_first_again(now, out);
        }
    }

    /// How many bytes the application has produced.
    fn given(&mut self, now: Duration) -> u64 {
        let given = self.plan.rate.bytes_after(now.saturating_sub(self.opened_at));
        if self.plan.ends_at.is_some_and(|end| now >= end) {
            self.plan.ends_at = None;
            let whole = self.plan.payload_bytes as u64;
            let until_now = if self.plan.rate == FlowRate::Greedy { 0 } else { given / whole * whole };
            // Bytes that were sent stay part of the stream.
            self.end = Some(until_now.max(self.highest).min(self.end.unwrap_or(u64::MAX)));
        }
        given.min(self.end.unwrap_or(u64::MAX))
    }

    /// Sends what may be sent now.
    fn pump(&mut self, now: Duration, out: &mut Vec<Segment>) {
        self.wakes_at = self.plan.ends_at.filter(|end| *end > now);
        while self.state == State::Open {
            if let Some(free) = self.line.busy_until(now) {
                self.wake_at(free);
                return;
            }
            let given = self.given(now);
            let (whole, end) = (self.plan.payload_bytes as u64, self.end);
            let bytes = given.saturating_sub(self.next).min(whole);
            if bytes == 0 || (bytes < whole && end != Some(given)) {
                if end.is_some_and(|end| self.next == end) {
                    self.send_end(now, out);
                } else if end.is_none_or(|end| self.next < end) {
                    let wanted = (self.next + whole).min(end.unwrap_or(u64::MAX));
                    self.wake_at(self.opened_at + self.plan.rate.time_of(wanted));
                }
                return;
            }
            let allowed = self.acknowledged + self.congestion.window_bytes.min(self.peer_window);
            if self.next + bytes > allowed {
                return;
            }
            self.send_data(self.next, bytes, now, out);
            self.next += bytes;
            self.highest = self.highest.max(self.next);
        }
    }

    fn wake_at(&mut self, time: Duration) {
        self.wakes_at = Some(self.wakes_at.map_or(time, |already| already.min(time)));
    }

    fn send_data(&mut self, offset: u64, bytes: u64, now: Duration, out: &mut Vec<Segment>) {
        let flags = if Some(offset + bytes) == self.end { ACK | PSH } else { ACK };
        if offset < self.highest {
            self.segments_again += 1;
        } else {
            self.timed.push_back((offset + bytes, now));
        }
        // A segment's payload was checked to fit into a frame.
        self.send(offset, flags, bytes as usize, now, out);
    }

    /// The FIN takes a sequence number like a byte.
    fn send_end(&mut self, now: Duration, out: &mut Vec<Segment>) {
        self.segments_again += u64::from(self.next < self.highest);
        self.send(self.next, FIN | ACK, 0, now, out);
        self.next += 1;
        self.highest = self.highest.max(self.next);
    }

    /// Retransmits the first unacknowledged segment. Its round trip must not be measured any more.
    fn send_first_again(&mut self, now: Duration, out: &mut Vec<Segment>) {
        self.timed.clear();
        let end = self.end.unwrap_or(u64::MAX);
        let bytes =
            self.highest.min(end).saturating_sub(self.acknowledged).min(self.plan.payload_bytes as u64);
        if bytes > 0 {
            self.send_data(self.acknowledged, bytes, now, out);
        } else {
            self.segments_again += 1;
            self.send(self.acknowledged, FIN | ACK, 0, now, out);
        }
    }

    fn send(&mut self, offset: u64, flags: u8, payload_bytes: usize, now: Duration, out: &mut Vec<Segment>) {
        self.segments_sent += 1;
        self.line.take(HEADERS_BYTES + payload_bytes, now);
        self.timer.get_or_insert(now + self.round_trip.patience());
        out.push(self.segment(offset, flags, payload_bytes));
    }

    pub(super) fn acknowledge(&mut self, out: &mut Vec<Segment>) {
        out.push(self.segment(self.next, ACK, 0));
    }

    fn segment(&self, offset: u64, flags: u8, payload_bytes: usize) -> Segment {
        Segment {
            sequence: self.plan.isn.wrapping_add(1).wrapping_add(offset as u32),
            acknowledgement: self.peer_next,
            flags,
            window_bytes: WINDOW_BYTES,
            payload_bytes,
        }
    }

    fn send_syn(&mut self, now: Duration, out: &mut Vec<Segment>) {
        self.timer = Some(now + self.round_trip.patience());
        out.push(Segment {
            sequence: self.plan.isn,
            acknowledgement: 0,
            flags: SYN,
            window_bytes: u32::from(u16::MAX),
            payload_bytes: 0,
        });
    }

    /// Time has passed.
    pub(super) fn on_tick(&mut self, now: Duration, out: &mut Vec<Segment>) {
        if self.timer.is_some_and(|timer| timer <= now) {
            self.timer = None;
            self.on_timeout(now, out);
        }
        if self.wakes_at.is_some_and(|time| time <= now) {
            self.pump(now, out);
        }
    }

    fn on_timeout(&mut self, now: Duration, out: &mut Vec<Segment>) {
        self.timeouts += 1;
        self.retries += 1;
        self.round_trip.timed_out();
        match self.state {
            State::Opening if self.retries <= SYN_RETRIES => self.send_syn(now, out),
            State::Open if self.retries <= RETRIES => {
                self.congestion.on_timeout(self.highest, self.next - self.acknowledged);
                self.timed.clear();
                self.next = self.acknowledged;
                self.pump(now, out);
            }
            _ => self.abandon(State::NoAnswer),
        }
    }
}
