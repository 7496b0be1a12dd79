//! The parameters of a flow between two hosts, and its result.
//!
//! In: an operator's request. Out: plain data. It never sends anything.

use std::fmt;
use std::time::Duration;

pub use super::pace::FlowRate;
use super::packet::MTU_BYTES;
use super::udp::PAYLOAD_MIN_BYTES;

/// The default payload of a datagram, as in iperf. It fits into a frame over IPv4 and IPv6.
const UDP_PAYLOAD_BYTES: usize = 1448;
/// The default payload of a segment. It also fits over both.
const TCP_PAYLOAD_BYTES: usize = 1440;
/// The default destination port: iperf's.
const PORT: u16 = 5001;

/// The transport protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowKind {
    /// Datagrams. Losses are ignored.
    Udp,
    /// A TCP connection. Losses are sent again, and the rate adapts to the network (NewReno).
    Tcp,
}

/// The version of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6, between global addresses.
    V6,
}

/// The parameters of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Name of the host that sends.
    pub from: String,
    /// Name of the host that receives.
    pub to: String,
    /// The transport protocol.
    pub kind: FlowKind,
    /// The version of IP.
    pub ip: IpVersion,
    /// How fast its application sends. A greedy UDP flow sends as fast as the host's link.
    pub rate: FlowRate,
    /// Payload bytes of a packet.
    pub payload_bytes: usize,
    /// How many payload bytes it sends in all. `None`: until its duration is over or it is stopped.
    pub limit_bytes: Option<u64>,
    /// How long it sends. `None`: until all bytes are sent or it is stopped.
    pub duration: Option<Duration>,
    /// The receiver's port.
    pub port: u16,
}

impl FlowSpec {
    /// A greedy TCP flow that runs until it is stopped.
    pub fn tcp(from: impl Into<String>, to: impl Into<String>) -> Self {
        FlowSpec {
            from: from.into(),
            to: to.into(),
            kind: FlowKind::Tcp,
            ip: IpVersion::V4,
            rate: FlowRate::Greedy,
            payload_bytes: TCP_PAYLOAD_BYTES,
            limit_bytes: None,
            duration: None,
            port: PORT,
        }
    }

    /// A UDP flow with this rate in payload bits a second, which runs until it is stopped.
    pub fn udp(from: impl Into<String>, to: impl Into<String>, bits_per_s: u64) -> Self {
        FlowSpec {
            kind: FlowKind::Udp,
            rate: FlowRate::BitsPerSecond(bits_per_s),
            payload_bytes: UDP_PAYLOAD_BYTES,
            ..FlowSpec::tcp(from, to)
        }
    }

    /// What is wrong with its numbers, if anything.
    pub(crate) fn fault(&self) -> Option<FlowRefused> {
        let headers = match (self.ip, self.kind) {
            (IpVersion::V4, FlowKind::Udp) => 28,
            (IpVersion::V4, FlowKind::Tcp) => 40,
            (IpVersion::V6, FlowKind::Udp) => 48,
            (IpVersion::V6, FlowKind::Tcp) => 60,
        };
        let range = PAYLOAD_MIN_BYTES..=MTU_BYTES - headers;
        if !range.contains(&self.payload_bytes) {
            return Some(FlowRefused::Payload { least: *range.start(), most: *range.end() });
        }
        (self.rate == FlowRate::BitsPerSecond(0)).then_some(FlowRefused::NoRate)
    }
}

/// Why a flow is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowRefused {
    /// A host does not exist.
    Host(crate::network::CannotChange),
    /// Sender and receiver are the same host.
    ToItself,
    /// The payload of a packet is too small or too large.
    Payload {
        /// The smallest payload, in bytes.
        least: usize,
        /// The largest payload, in bytes.
        most: usize,
    },
    /// The rate is zero.
    NoRate,
    /// The number of flows is at its bound, and none of them has ended.
    TooMany,
    /// The emulation has ended.
    Ended,
}

impl fmt::Display for FlowRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlowRefused::Host(unknown) => unknown.fmt(f),
            FlowRefused::ToItself => f.write_str("a flow goes from one host to another, not to itself"),
            FlowRefused::Payload { least, most } => {
                write!(f, "a packet of this flow holds {least} to {most} bytes of payload")
            }
            FlowRefused::NoRate => f.write_str("a flow of rate 0 would send nothing; leave it out instead"),
            FlowRefused::TooMany => f.write_str("there are as many flows as there may be; stop one first"),
            FlowRefused::Ended => f.write_str("the emulation has ended"),
        }
    }
}

impl std::error::Error for FlowRefused {}

/// The state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// Its TCP connection is not open yet.
    Opening,
    /// It sends.
    Running,
    /// It has sent all its data. If it is TCP, all of it is delivered.
    Ended,
    /// The receiver does not know its connection (any more).
    Refused,
    /// The receiver has not answered for a long time.
    NoAnswer,
}

/// The result of a flow up to a moment. All numbers are totals since its start.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReport {
    /// Its parameters.
    pub spec: FlowSpec,
    /// Its state.
    pub state: FlowState,
    /// When it began.
    pub began_at: Duration,
    /// The moment of this report.
    pub at: Duration,
    /// Payload bytes that were sent, each counted once.
    pub sent_bytes: u64,
    /// Payload bytes that were delivered, in order if it is TCP.
    pub delivered_bytes: u64,
    /// Packets with payload that were sent, including retransmissions.
    pub sent_packets: u64,
    /// Packets with payload that were delivered.
    pub delivered_packets: u64,
    /// TCP: segments that were retransmitted.
    pub retransmissions: u64,
    /// TCP: how often the retransmission timer ran out.
    pub timeouts: u64,
    /// UDP: datagrams that did not arrive although a later one did.
    pub lost_packets: u64,
    /// TCP: the smoothed round trip. UDP: the one-way delay.
    pub round_trip: Option<Duration>,
    /// TCP: the shortest round trip.
    pub shortest_round_trip: Option<Duration>,
}

impl FlowReport {
    /// Delivered payload bits a second since its start.
    pub fn rate_bits_per_s(&self) -> f64 {
        rate(self.delivered_bytes, self.at.saturating_sub(self.began_at))
    }

    /// The same, since an earlier report of the same flow.
    pub fn rate_since(&self, earlier: &FlowReport) -> f64 {
        let bytes = self.delivered_bytes.saturating_sub(earlier.delivered_bytes);
        rate(bytes, self.at.saturating_sub(earlier.at))
    }
}

fn rate(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() }
}

/// How equally rates are shared: 1 if all are the same, 1/n if one of n has everything (Jain, Chiu and Hawe, 1984). 0
/// if there are no rates or all are zero.
pub fn jain_index(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_fit_into_no_frame_is_refused() {
        let check = |kind, ip, payload_bytes, expected: &str| {
            let spec = FlowSpec { kind, ip, payload_bytes, ..FlowSpec::tcp("h1", "h2") };
            assert_eq!(spec.fault().map(|fault| fault.to_string()).unwrap_or_default(), expected);
        };
        check(FlowKind::Udp, IpVersion::V4, 15, "a packet of this flow holds 16 to 1472 bytes of payload");
        check(FlowKind::Udp, IpVersion::V4, 1472, "");
        check(FlowKind::Tcp, IpVersion::V6, 1441, "a packet of this flow holds 16 to 1440 bytes of payload");
        assert_eq!(FlowSpec::udp("h1", "h2", 0).fault(), Some(FlowRefused::NoRate));
        for ip in [IpVersion::V4, IpVersion::V6] {
            assert_eq!(FlowSpec { ip, ..FlowSpec::udp("h1", "h2", 1) }.fault(), None);
            assert_eq!(FlowSpec { ip, ..FlowSpec::tcp("h1", "h2") }.fault(), None);
        }
    }

    #[test]
    fn the_index_says_how_equally_rates_are_shared() {
        assert_eq!(jain_index(&[5.0, 5.0]), 1.0);
        assert_eq!(jain_index(&[5.0, 0.0]), 0.5);
        assert_eq!((jain_index(&[]), jain_index(&[0.0])), (0.0, 0.0));
    }
}
