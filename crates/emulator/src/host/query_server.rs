//! One query as its server sees it: accepts the connection, waits for the request, and sends the reply.
//!
//! In: segments, the time. Out: segments. It closes the connection after the reply.

use std::time::Duration;

use super::tcp::{ACK, RST, SYN, Segment};
use super::tcp_sender::{Plan, State as Sending, TcpSender};

/// How long a connection without a request is kept: longer than a client tries to open it.
const PATIENCE: Duration = Duration::from_secs(150);
/// The window in a SYN is not scaled, so it has 16 bits.
const FIRST_WINDOW_BYTES: u32 = 65_535;

/// The server's end of one query.
#[derive(Debug)]
pub(super) struct QueryServer {
    /// The parameters of the reply.
    plan: Plan,
    /// The sequence number of the request's first byte.
    first: u32,
    began_at: Duration,
    /// The client has given up before it sent a request.
    is_reset: bool,
    reply: Option<Box<TcpSender>>,
}

impl QueryServer {
    /// Answers a client's SYN.
    pub(super) fn accept(plan: Plan, syn: &Segment, now: Duration, out: &mut Vec<Segment>) -> Self {
        let first = syn.sequence.wrapping_add(1);
        let server = QueryServer { plan, first, began_at: now, is_reset: false, reply: None };
        out.push(server.syn_ack());
        server
    }

    /// Whether nothing more will happen on this connection.
    pub(super) fn is_over(&self, now: Duration) -> bool {
        match &self.reply {
            Some(reply) => !matches!(reply.state, Sending::Opening | Sending::Open),
            None => self.is_reset || now >= self.began_at + PATIENCE,
        }
    }

    /// When it must act although no segment arrives.
    pub(super) fn due(&self) -> Option<Duration> {
        match &self.reply {
            Some(reply) => reply.due(),
            None => Some(self.began_at + PATIENCE),
        }
    }

    /// Processes a segment.
    pub(super) fn on_segment(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        match &mut self.reply {
            // The request was sent again.
            Some(reply) if segment.payload_bytes > 0 => reply.acknowledge(out),
            Some(reply) => reply.on_segment(segment, now, out),
            None if segment.has(RST) => self.is_reset = true,
            None if segment.has(SYN) => out.push(self.syn_ack()),
            None if segment.payload_bytes > 0 && segment.sequence == self.first => {
                let next = self.first.wrapping_add(segment.payload_bytes as u32);
                let reply = TcpSender::accepted(self.plan, next, segment.window_bytes, now, out);
                self.reply = Some(Box::new(reply));
            }
            None => {}
        }
    }

    /// Time has passed.
    pub(super) fn on_tick(&mut self, now: Duration, out: &mut Vec<Segment>) {
        if let Some(reply) = &mut self.reply {
            reply.on_tick(now, out);
        }
    }

    fn syn_ack(&self) -> Segment {
        Segment {
            sequence: self.plan.isn,
            acknowledgement: self.first,
            flags: SYN | ACK,
            window_bytes: FIRST_WINDOW_BYTES,
            payload_bytes: 0,
        }
    }
}
