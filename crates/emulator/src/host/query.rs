//! The parameters of a series of queries between two hosts, and its result.
//!
//! In: an operator's request. Out: plain data. It never sends anything.
//!
//! A query is what a client of a key-value store does: it opens a TCP connection from a new port, sends a request, and
//! is done when the whole reply has arrived. Its completion time shows what a switch takes to set up a flow.

use std::fmt;
use std::time::Duration;

use super::flow::IpVersion;
use super::tcp::LARGEST_SEGMENT_BYTES;

/// The default port: that of Redis.
const PORT: u16 = 6379;
/// The default request: `GET` of a key of nine bytes in Redis's protocol.
const REQUEST_BYTES: u16 = 28;
/// The default value, as in Huang, Yocom and Snoeren (HotSDN'13), figure 2, with what Redis puts around it.
const REPLY_BYTES: u64 = 64 + 7;
/// After this time, a query counts as lost by default.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How many queries of a series may be open at once. Further ones are skipped and counted.
pub const OPEN_MAX: u32 = 4096;
/// How many queries of a series have a record. Further ones are only counted: ten hours of the default pace have fewer.
pub const RECORDS_MAX: usize = 1 << 20;
/// How many queries of all series of a network have a record: 128 MiB of records. A series takes its part when it begins, as many as it may
/// have queries. One that finds too little left records the first of its queries.
pub const RECORDS_OF_ALL_MAX: usize = 1 << 22;
/// The shortest interval.
const EVERY_MIN: Duration = Duration::from_micros(100);
/// The most queries of a burst.
pub const BURST_MAX: u32 = OPEN_MAX;

/// When queries of a series begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// One after each interval.
    #[default]
    Even,
    /// One after a random time, exponentially distributed; the interval is its mean.
    Poisson,
    /// This many at once after each interval.
    Bursts(u32),
}

/// The parameters of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuerySpec {
    /// Name of the host that asks.
    pub from: String,
    /// Name of the host that answers.
    pub to: String,
    /// The version of IP.
    pub ip: IpVersion,
    /// The port of the host that answers.
    pub port: u16,
    /// Payload bytes of the request. It fits into one segment.
    pub request_bytes: u16,
    /// Payload bytes of the reply.
    pub reply_bytes: u64,
    /// When queries begin.
    pub arrivals: Arrivals,
    /// The interval.
    pub every: Duration,
    /// For how long new queries begin.
    pub duration: Duration,
    /// After this time, a query without its whole reply is lost.
    pub timeout: Duration,
    /// How many queries may be open at once, up to [`OPEN_MAX`]. One that would be more is skipped.
    pub open_max: u32,
}

impl QuerySpec {
    /// Queries for a small value, one every 50 ms for two minutes.
    pub fn new(from: impl Into<String>, to: impl Into<String>) -> Self {
        QuerySpec {
            from: from.into(),
            to: to.into(),
            ip: IpVersion::V4,
            port: PORT,
            request_bytes: REQUEST_BYTES,
            reply_bytes: REPLY_BYTES,
            arrivals: Arrivals::Even,
            every: Duration::from_millis(50),
            duration: Duration::from_secs(120),
            timeout: TIMEOUT,
            open_max: OPEN_MAX,
        }
    }

    /// How many queries it may begin, up to [`RECORDS_MAX`].
    pub(crate) fn queries_max(&self) -> usize {
        let intervals = self.duration.as_secs_f64() / self.every.max(EVERY_MIN).as_secs_f64();
        let many = match self.arrivals {
            Arrivals::Even => intervals,
            Arrivals::Bursts(size) => intervals.ceil() * f64::from(size),
            // A Poisson process is above its mean by more than six standard deviations once in a thousand million runs.
            Arrivals::Poisson => intervals + 6.0 * intervals.sqrt() + 20.0,
        };
        // Converting saturates.
        (many.ceil() as usize).min(RECORDS_MAX)
    }

    /// What is wrong with its numbers, if anything.
    pub(crate) fn fault(&self) -> Option<QueriesRefused> {
        let request_max = LARGEST_SEGMENT_BYTES - 20;
        let burst = if let Arrivals::Bursts(size) = self.arrivals { size } else { 1 };
        match self {
            spec if !(1..=request_max).contains(&spec.request_bytes) => {
                Some(QueriesRefused::Request { most: request_max })
            }
            spec if spec.reply_bytes == 0 => Some(QueriesRefused::NoReply),
            spec if spec.every < EVERY_MIN || spec.timeout.is_zero() => Some(QueriesRefused::NoTime),
            spec if !(1..=OPEN_MAX).contains(&spec.open_max) => Some(QueriesRefused::Open),
            _ if !(1..=BURST_MAX).contains(&burst) => Some(QueriesRefused::Burst),
            _ => None,
        }
    }
}

/// Why a series is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueriesRefused {
    /// A host does not exist.
    Host(crate::network::CannotChange),
    /// Both hosts are the same.
    ToItself,
    /// The request is empty, or does not fit into a segment.
    Request {
        /// The largest request, in bytes.
        most: u16,
    },
    /// The reply is empty.
    NoReply,
    /// The interval is too short, or the time-out is zero.
    NoTime,
    /// No query or too many may be open.
    Open,
    /// A burst is empty or too large.
    Burst,
    /// The host answers at this port already, with other sizes.
    Port(u16),
    /// The number of series is at its bound.
    TooMany,
    /// The emulation has ended.
    Ended,
}

impl fmt::Display for QueriesRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueriesRefused::Host(unknown) => unknown.fmt(f),
            QueriesRefused::ToItself => f.write_str("queries go from one host to another, not to itself"),
            QueriesRefused::Request { most } => write!(f, "a request has 1 to {most} bytes"),
            QueriesRefused::NoReply => f.write_str("a reply has at least 1 byte"),
            QueriesRefused::NoTime => {
                f.write_str("queries begin at least 0.1 ms apart, and their time-out is more than 0")
            }
            QueriesRefused::Open => write!(f, "1 to {OPEN_MAX} queries may be open at once"),
            QueriesRefused::Burst => write!(f, "a burst has 1 to {BURST_MAX} queries"),
            QueriesRefused::Port(port) => {
                write!(f, "port {port} already answers queries of other sizes: give another port")
            }
            QueriesRefused::TooMany => f.write_str("there are as many series of queries as there may be"),
            QueriesRefused::Ended => f.write_str("the emulation has ended"),
        }
    }
}

impl std::error::Error for QueriesRefused {}

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The whole reply has arrived, after this time.
    Completed(Duration),
    /// The other host does not know the connection.
    Refused,
    /// It took too long, or a host was switched off.
    Lost,
}

/// A query that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryRecord {
    /// When it began, since the emulation began.
    pub began_at: Duration,
    /// How it ended.
    pub outcome: Outcome,
}

/// The result of a series up to a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueriesReport {
    /// Its parameters.
    pub spec: QuerySpec,
    /// When it began.
    pub began_at: Duration,
    /// The moment of this report.
    pub at: Duration,
    /// The queries that have begun.
    pub begun: u64,
    /// The queries that are still open.
    pub open: u64,
    /// The queries that were skipped because too many were open.
    pub skipped: u64,
    /// Ended queries without a record, because there were too many.
    pub unrecorded: u64,
    /// The queries that have ended, in that order.
    pub records: Vec<QueryRecord>,
}

impl QueriesReport {
    /// The completion times, shortest first, of queries that began at least so long after the series did.
    pub fn completion_times(&self, after: Duration) -> Vec<Duration> {
        let mut times: Vec<Duration> = self.since(after).filter_map(|record| record.took()).collect();
        times.sort_unstable();
        times
    }

    /// How many queries have ended otherwise, of those that began at least so long after the series did.
    pub fn failed(&self, after: Duration) -> usize {
        self.since(after).filter(|record| record.took().is_none()).count()
    }

    fn since(&self, after: Duration) -> impl Iterator<Item = &QueryRecord> {
        let from = self.began_at.saturating_add(after);
        self.records.iter().filter(move |record| record.began_at >= from)
    }

    /// The payload bits a second that a client with this completion time got.
    pub fn rate_bits_per_s(&self, took: Duration) -> f64 {
        self.spec.reply_bytes as f64 * 8.0 / took.as_secs_f64().max(1e-9)
    }
}

impl QueryRecord {
    /// How long it took, if it is completed.
    pub fn took(&self) -> Option<Duration> {
        if let Outcome::Completed(took) = self.outcome { Some(took) } else { None }
    }
}

/// The value at a share (0 to 1) of sorted times: the smallest one that at least this share does not exceed.
pub fn quantile(sorted: &[Duration], share: f64) -> Option<Duration> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_make_no_query_are_refused() {
        let fault = |change: fn(&mut QuerySpec)| {
            let mut spec = QuerySpec::new("h1", "h2");
            change(&mut spec);
            spec.fault()
        };
        assert_eq!(fault(|_| ()), None);
        assert_eq!(fault(|spec| spec.request_bytes = 0), Some(QueriesRefused::Request { most: 1440 }));
        assert_eq!(fault(|spec| spec.request_bytes = 1441), Some(QueriesRefused::Request { most: 1440 }));
        assert_eq!(fault(|spec| spec.reply_bytes = 0), Some(QueriesRefused::NoReply));
        assert_eq!(fault(|spec| spec.every = Duration::ZERO), Some(QueriesRefused::NoTime));
        assert_eq!(fault(|spec| spec.open_max = OPEN_MAX + 1), Some(QueriesRefused::Open));
        assert_eq!(fault(|spec| spec.arrivals = Arrivals::Bursts(0)), Some(QueriesRefused::Burst));
    }

    #[test]
    fn a_quantile_is_the_smallest_time_that_this_share_does_not_exceed() {
        let times: Vec<Duration> = (1..=4).map(Duration::from_secs).collect();
        let at = |share| quantile(&times, share).map(|time| time.as_secs());
        let expected = [Some(1), Some(1), Some(2), Some(3), Some(4), Some(4)];
        assert_eq!([0.0, 0.25, 0.5, 0.51, 0.99, 1.0].map(at), expected);
        assert_eq!(quantile(&[], 0.5), None);
    }
}
