//! Both ends of a UDP flow: numbered datagrams at a rate, and the count of those that arrive.
//!
//! In: the time, datagrams. Out: when to send which number; how many arrived, how many did not, how long they took. A
//! datagram begins with its number and its send time, eight bytes each.

use std::time::Duration;

use super::pace::{FlowRate, Line};
use super::tcp_sender::Plan;

/// Header bytes of UDP.
pub(super) const HEADER_BYTES: usize = 8;
/// The number and the time.
pub(crate) const PAYLOAD_MIN_BYTES: usize = 16;
/// Bytes of a frame around the payload, over IPv4.
const HEADERS_BYTES: usize = 42;
/// A sender that is called later than this skips the datagrams in between. Catching up would only make an overloaded
/// machine slower.
const LATE_MAX: Duration = Duration::from_millis(50);

/// The sending end.
#[derive(Debug)]
pub(super) struct UdpSender {
    plan: Plan,
    began_at: Duration,
    /// Datagrams of the schedule whose time is over, sent or skipped.
    scheduled: u64,
    pub(super) sent: u64,
    line: Line,
    pub(super) is_over: bool,
}

impl UdpSender {
    /// A sender that begins now.
    pub(super) fn new(plan: Plan, now: Duration) -> Self {
        let line = Line::new(plan.line_bits_per_s);
        UdpSender { plan, began_at: now, scheduled: 0, sent: 0, line, is_over: false }
    }

    /// Sets the rate of its link.
    pub(super) fn set_line_rate(&mut self, bits_per_s: u64) {
        self.line.set_rate(bits_per_s);
    }

    /// How long a datagram's payload is.
    pub(super) fn payload_bytes(&self) -> usize {
        self.plan.payload_bytes
    }

    /// When the next datagram is due, if there is one.
    pub(super) fn due(&self, now: Duration) -> Option<Duration> {
        if self.is_over {
            return None;
        }
        let scheduled = match self.plan.rate {
            FlowRate::Greedy => now,
            rate => {
                self.began_at + rate.time_of(self.scheduled.saturating_mul(self.plan.payload_bytes as u64))
            }
        };
        // Whatever the rate, no more goes than the line takes: what is sent is in memory until it has left.
        let scheduled = self.line.busy_until(now).map_or(scheduled, |free| scheduled.max(free));
        Some(self.plan.ends_at.map_or(scheduled, |end| scheduled.min(end)))
    }

    /// The number of the datagram to send now, if one is due.
    pub(super) fn next(&mut self, now: Duration) -> Option<u64> {
        let payload = self.plan.payload_bytes as u64;
        let over = self.plan.limit_bytes.is_some_and(|limit| self.sent * payload >= limit)
            || self.plan.ends_at.is_some_and(|end| now >= end);
        self.is_over |= over;
        let due = self.due(now).filter(|due| *due <= now)?;
        if now.saturating_sub(due) > LATE_MAX && self.plan.rate != FlowRate::Greedy {
            self.scheduled = self.plan.rate.bytes_after(now.saturating_sub(self.began_at)) / payload;
        }
        self.scheduled += 1;
        self.line.take(HEADERS_BYTES + self.plan.payload_bytes, now);
        self.sent += 1;
        Some(self.sent - 1)
    }
}

/// The receiving end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UdpReceiver {
    pub(super) delivered: u64,
    pub(super) delivered_bytes: u64,
    /// The highest received number plus one.
    expected: u64,
    /// A moving average over sixteen datagrams.
    pub(super) transit: Option<Duration>,
}

impl UdpReceiver {
    /// Takes the payload of a datagram.
    pub(super) fn on_datagram(&mut self, payload: &[u8], now: Duration) {
        let word = |at: usize| payload.get(at..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let (Some(number), Some(sent_at)) = (word(0), word(8)) else { return };
        self.delivered += 1;
        self.delivered_bytes += payload.len() as u64;
        self.expected = self.expected.max(number.saturating_add(1));
        let sample = now.saturating_sub(Duration::from_nanos(sent_at));
        self.transit = Some(self.transit.map_or(sample, |transit| (transit * 15 + sample) / 16));
    }

    /// How many did not arrive although a later one did.
    pub(super) fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.delivered)
    }
}

/// Appends header and payload. The checksum is zero.
pub(super) fn write(ports: [u16; 2], number: u64, now: Duration, payload_bytes: usize, frame: &mut Vec<u8>) {
    let length = u16::try_from(HEADER_BYTES + payload_bytes).unwrap_or(u16::MAX);
    let end = frame.len() + HEADER_BYTES + payload_bytes;
    for word in [ports[0], ports[1], length, 0] {
        frame.extend_from_slice(&word.to_be_bytes());
    }
    frame.extend_from_slice(&number.to_be_bytes());
    frame.extend_from_slice(&u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).to_be_bytes());
    frame.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(5);

    fn sender(rate: FlowRate, limit_bytes: Option<u64>) -> UdpSender {
        let plan = Plan {
            rate,
            payload_bytes: 1000,
            limit_bytes,
            ends_at: Some(NOW + Duration::from_secs(2)),
            line_bits_per_s: 1_042_000 * 8,
            isn: 0,
        };
        UdpSender::new(plan, NOW)
    }

    /// How many datagrams go out in these milliseconds, looked at as often as it asks for.
    fn sent_within(sender: &mut UdpSender, milliseconds: u64) -> u64 {
        let end = NOW + Duration::from_millis(milliseconds);
        let (mut now, before) = (NOW, sender.sent);
        while now < end {
            while sender.next(now).is_some() {}
            now = sender.due(now).unwrap_or(end);
        }
        sender.sent - before
    }

    #[test]
    fn as_many_go_out_as_the_rate_or_the_line_allows() {
        assert_eq!(sent_within(&mut sender(FlowRate::BitsPerSecond(800_000), None), 1000), 100);
        assert_eq!(sent_within(&mut sender(FlowRate::Greedy, None), 1000), 1001);
        assert_eq!(sent_within(&mut sender(FlowRate::BitsPerSecond(800_000), Some(5000)), 1000), 5);
        assert_eq!(
            sent_within(&mut sender(FlowRate::BitsPerSecond(800_000), None), 5000),
            200,
            "for two seconds"
        );
    }

    #[test]
    fn a_rate_that_the_line_does_not_take_is_the_lines() {
        let fast = || sender(FlowRate::BitsPerSecond(u64::MAX), None);
        assert_eq!(sent_within(&mut fast(), 1000), 1001);
        let mut late = fast();
        let at_once = (0..1000).take_while(|_| late.next(NOW + LATE_MAX).is_some()).count();
        assert_eq!(at_once, 1, "what was due meanwhile does not leave in one moment");
    }

    #[test]
    fn what_could_not_be_sent_in_time_is_left_out() {
        let mut sender = sender(FlowRate::BitsPerSecond(800_000), None);
        let late = NOW + Duration::from_secs(1);
        let at_once = (0..1000).take_while(|_| sender.next(late).is_some()).count();
        assert!(at_once <= 2, "{at_once}");
    }

    #[test]
    fn what_did_not_come_is_lost_once_a_later_one_came() {
        let mut receiver = UdpReceiver::default();
        for number in [0u64, 1, 4, 2] {
            let mut payload = Vec::new();
            write([1, 2], number, NOW, 100, &mut payload);
            receiver.on_datagram(&payload[HEADER_BYTES..], NOW + Duration::from_millis(3));
        }
        receiver.on_datagram(&[0; 9], NOW);
        assert_eq!((receiver.delivered, receiver.delivered_bytes, receiver.lost()), (4, 400, 1));
        assert_eq!(receiver.transit, Some(Duration::from_millis(3)));
    }
}
