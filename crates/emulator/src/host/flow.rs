//! What a flow between two hosts is to be, and what became of it.
//!
//! In: an operator's wish. Out: plain data. Never sends anything.

use std::fmt;
use std::time::Duration;

pub use super::pace::FlowRate;
use super::packet::MTU_BYTES;
use super::udp::PAYLOAD_MIN_BYTES;

/// The payload of a datagram that is given none, as iperf has it: it fits into a frame in either version of IP.
const UDP_PAYLOAD_BYTES: usize = 1448;
/// The payload of a segment that is given none, which fits in either version too.
const TCP_PAYLOAD_BYTES: usize = 1440;
/// The port that is sent to if none is given: iperf's.
const PORT: u16 = 5001;

/// How a flow is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowKind {
    /// Datagrams, without regard to what is lost.
    Udp,
    /// A TCP connection: what is lost is sent again, and the rate follows what the network takes (NewReno).
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

/// A flow to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Name of the host that sends.
    pub from: String,
    /// Name of the host that receives.
    pub to: String,
    /// How it is carried.
    pub kind: FlowKind,
    /// Over which version of IP.
    pub ip: IpVersion,
    /// How fast its application sends. A greedy UDP flow sends as fast as the host's link.
    pub rate: FlowRate,
    /// Payload bytes of a packet.
    pub payload_bytes: usize,
    /// How much payload it sends altogether; `None`: until its time is over or it is stopped.
    pub limit_bytes: Option<u64>,
    /// How long it sends; `None`: until it has sent its bytes or is stopped.
    pub duration: Option<Duration>,
    /// The receiver's port.
    pub port: u16,
}

impl FlowSpec {
    /// A greedy TCP flow that ends when it is stopped.
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

    /// A UDP flow of so many bits of payload a second that ends when it is stopped.
    pub fn udp(from: impl Into<String>, to: impl Into<String>, bits_per_s: u64) -> Self {
        FlowSpec {
            kind: FlowKind::Udp,
            rate: FlowRate::BitsPerSecond(bits_per_s),
            payload_bytes: UDP_PAYLOAD_BYTES,
            ..FlowSpec::tcp(from, to)
        }
    }

    /// What is wrong with its numbers, if anything is.
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

/// Why a flow cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowRefused {
    /// A host is not there.
    Host(crate::network::CannotChange),
    /// Sender and receiver are one host.
    ToItself,
    /// A packet would hold too little or too much.
    Payload {
        /// The least, in bytes.
        least: usize,
        /// The most, in bytes.
        most: usize,
    },
    /// It would send nothing.
    NoRate,
    /// There are as many flows as there may be, and none of them has ended.
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

/// How far a flow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// Its TCP connection is not open yet.
    Opening,
    /// It sends.
    Running,
    /// It has sent what it was to send; all of it is delivered, if it is TCP.
    Ended,
    /// The receiver did not know its connection (any more).
    Refused,
    /// The receiver did not answer for long.
    NoAnswer,
}

/// What became of a flow until a moment. All are totals since its beginning.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReport {
    /// What it was to be.
    pub spec: FlowSpec,
    /// How far it has come.
    pub state: FlowState,
    /// When it began.
    pub began_at: Duration,
    /// When this was written.
    pub at: Duration,
    /// Payload bytes that were sent, each counted once.
    pub sent_bytes: u64,
    /// Payload bytes that were delivered, in order if it is TCP.
    pub delivered_bytes: u64,
    /// Packets with payload that were sent, those sent again included.
    pub sent_packets: u64,
    /// Packets with payload that were delivered.
    pub delivered_packets: u64,
    /// TCP: segments that were sent again.
    pub retransmissions: u64,
    /// TCP: how often nothing was answered in time.
    pub timeouts: u64,
    /// UDP: datagrams that did not come though a later one did.
    pub lost_packets: u64,
    /// TCP: the round trip, smoothed; UDP: the way there.
    pub round_trip: Option<Duration>,
    /// TCP: the shortest round trip.
    pub shortest_round_trip: Option<Duration>,
}

impl FlowReport {
    /// Payload bits that were delivered in a second, from its beginning on.
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

/// How equally rates are shared: 1 if all are the same, one part of their number if one has all (Jain, Chiu and Hawe, 1984). No rates,
/// or all zero: 0.
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
