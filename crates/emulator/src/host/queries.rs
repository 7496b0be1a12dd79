//! The queries that a host asks and answers: when each begins, which segment belongs to which, and what came of them.
//!
//! In: series to begin, segments, the time. Out: segments, each with its connection, and reports. It never makes a
//! frame.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use super::flow::FlowKind;
use super::flows::FlowKey;
use super::pace::FlowRate;
use super::query::{Arrivals, Outcome, QueriesRefused, QueriesReport, QueryRecord, QuerySpec};
use super::query_client::{Progress, QueryClient};
use super::query_server::QueryServer;
use super::tcp::{SYN, Segment};
use super::tcp_sender::Plan;
use crate::random::Random;

/// How many connections one host answers at once. More are refused by a reset.
const ACCEPTED_MAX: usize = 16_384;
/// Payload bytes of the segments of a reply: they fit over IPv4 and IPv6.
const PAYLOAD_BYTES: usize = 1440;
/// The range of source ports, as in Linux (`ip_local_port_range`).
const FIRST_PORT: u16 = 32_768;
const PORTS: u32 = 28_232;

/// What a host answers at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answers {
    pub(crate) reply_bytes: u64,
}

/// What a series gets from its network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeriesPlace {
    /// Its number.
    pub(crate) id: u64,
    /// The address that asks, and the one that answers.
    pub(crate) ends: (IpAddr, IpAddr),
    pub(crate) seed: u64,
    /// How many of its queries have a record. Further ones are only counted.
    pub(crate) records_max: usize,
}

/// A series of queries from this host.
#[derive(Debug)]
struct Series {
    spec: QuerySpec,
    local: IpAddr,
    remote: IpAddr,
    random: Random,
    began_at: Duration,
    /// When the next query begins. `None`: the series is over.
    next_at: Option<Duration>,
    begun: u64,
    open: u32,
    skipped: u64,
    unrecorded: u64,
    records: Vec<QueryRecord>,
    records_max: usize,
}

/// One end of a query.
#[derive(Debug)]
enum End {
    /// Kept until this time at most. A query that is not complete by then is lost.
    Client {
        series: u64,
        client: Box<QueryClient>,
        until: Duration,
        is_recorded: bool,
    },
    Server(Box<QueryServer>),
}

/// All queries of a host.
#[derive(Debug, Default)]
pub(super) struct Queries {
    series: BTreeMap<u64, Series>,
    answers: BTreeMap<u16, Answers>,
    ends: BTreeMap<FlowKey, End>,
    accepted: usize,
    /// When each end must act. An end is in it at most once.
    due: BTreeSet<(Duration, FlowKey)>,
    next_port: u32,
    /// For the first sequence numbers of connections that it answers.
    random: Option<Random>,
    line_bits_per_s: u64,
    segments: Vec<Segment>,
    outgoing: Vec<(FlowKey, Segment)>,
}

impl Queries {
    /// From now on, answers queries at a port.
    ///
    /// # Errors
    ///
    /// It answers there already, with other sizes.
    pub(super) fn answer_at(
        &mut self,
        port: u16,
        answers: Answers,
        line_bits_per_s: u64,
        seed: u64,
    ) -> Result<(), QueriesRefused> {
        if self.answers.get(&port).is_some_and(|known| *known != answers) {
            return Err(QueriesRefused::Port(port));
        }
        self.line_bits_per_s = line_bits_per_s;
        self.random.get_or_insert_with(|| Random::new(seed));
        self.answers.insert(port, answers);
        Ok(())
    }

    /// Begins a series.
    pub(super) fn begin(&mut self, spec: &QuerySpec, place: SeriesPlace, now: Duration) {
        let SeriesPlace { id, ends, seed, records_max } = place;
        let series = Series {
            spec: spec.clone(),
            local: ends.0,
            remote: ends.1,
            random: Random::new(seed),
            began_at: now,
            next_at: Some(now),
            begun: 0,
            open: 0,
            skipped: 0,
            unrecorded: 0,
            records: Vec::new(),
            records_max,
        };
        self.series.insert(id, series);
        self.on_tick(now);
    }

    /// The result of a series so far.
    pub(super) fn report(&self, id: u64, now: Duration) -> Option<QueriesReport> {
        let series = self.series.get(&id)?;
        Some(QueriesReport {
            spec: series.spec.clone(),
            began_at: series.began_at,
            at: now,
            begun: series.begun,
            open: u64::from(series.open),
            skipped: series.skipped,
            unrecorded: series.unrecorded,
            records: series.records.clone(),
        })
    }

    /// The rate of the host's link has changed. Replies that begin from now on send no faster.
    pub(super) fn set_line_rate(&mut self, bits_per_s: u64) {
        self.line_bits_per_s = bits_per_s;
    }

    /// The host is switched off: its open queries are lost, and its series are over.
    pub(super) fn fail(&mut self) {
        for (_, end) in std::mem::take(&mut self.ends) {
            if let End::Client { series, client, is_recorded: false, .. } = end {
                record(&mut self.series, series, client.began_at, Outcome::Lost);
            }
        }
        self.series.values_mut().for_each(|series| series.next_at = None);
        self.due.clear();
        self.accepted = 0;
    }

    /// When something must happen although no segment arrives.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let begins = self.series.values().filter_map(|series| series.next_at);
        self.due.first().map(|(due, _)| *due).into_iter().chain(begins).min()
    }

    /// Processes a segment. Returns whether it belongs to a query.
    pub(super) fn on_segment(&mut self, key: &FlowKey, segment: &Segment, now: Duration) -> bool {
        if self.ends.contains_key(key) {
            self.at(*key, now, |end, out| match end {
                End::Client { client, .. } => client.on_segment(segment, now, out),
                End::Server(server) => server.on_segment(segment, now, out),
            });
            return true;
        }
        let Some(answers) = self.answers.get(&key.local_port).filter(|_| segment.flags == SYN) else {
            return false;
        };
        let Some(random) = self.random.as_mut().filter(|_| self.accepted < ACCEPTED_MAX) else {
            return false;
        };
        let plan = Plan {
            rate: FlowRate::Greedy,
            payload_bytes: PAYLOAD_BYTES,
            limit_bytes: Some(answers.reply_bytes),
            ends_at: None,
            line_bits_per_s: self.line_bits_per_s,
            isn: random.below(u32::MAX),
        };
        let server = QueryServer::accept(plan, segment, now, &mut self.segments);
        self.accepted += 1;
        self.add(*key, End::Server(Box::new(server)));
        true
    }

    /// Time has passed.
    pub(super) fn on_tick(&mut self, now: Duration) {
        while let Some((_, key)) = self.due.first().filter(|(due, _)| *due <= now).copied() {
            self.at(key, now, |end, out| match end {
                End::Client { client, .. } => client.on_tick(now, out),
                End::Server(server) => server.on_tick(now, out),
            });
        }
        let begins = |series: &Series| series.next_at.is_some_and(|next| next <= now);
        let ids: Vec<u64> = self.series.iter().filter(|(_, one)| begins(one)).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.begin_queries(id, now));
    }

    /// Takes the segments to send. The caller returns the buffer.
    pub(super) fn take_outgoing(&mut self) -> Vec<(FlowKey, Segment)> {
        std::mem::take(&mut self.outgoing)
    }

    /// Returns the buffer of segments that were sent.
    pub(super) fn give_back(&mut self, mut outgoing: Vec<(FlowKey, Segment)>) {
        outgoing.clear();
        self.outgoing = outgoing;
    }

    /// Begins the queries of a series whose time has come.
    fn begin_queries(&mut self, id: u64, now: Duration) {
        let Some(series) = self.series.get_mut(&id) else { return };
        let mut wanted = 0;
        while let Some(at) = series.next_at.filter(|at| *at <= now) {
            let (many, gap) = series.next_arrivals();
            wanted += many;
            let next = at.saturating_add(gap);
            series.next_at =
                Some(next).filter(|next| *next < series.began_at.saturating_add(series.spec.duration));
        }
        for _ in 0..wanted {
            self.begin_query(id, now);
        }
    }

    fn begin_query(&mut self, id: u64, now: Duration) {
        let Some(series) = self.series.get_mut(&id) else { return };
        if series.open >= series.spec.open_max {
            series.skipped += 1;
            return;
        }
        let (local, remote, remote_port) = (series.local, series.remote, series.spec.port);
        let mut key = FlowKey { kind: FlowKind::Tcp, local, remote, local_port: 0, remote_port };
        // A port is skipped while its last connection is still open. Connections that are closing keep theirs too.
        let is_free = (0..PORTS).any(|_| {
            key.local_port = FIRST_PORT + (self.next_port % PORTS) as u16;
            self.next_port = self.next_port.wrapping_add(1);
            !self.ends.contains_key(&key)
        });
        if !is_free {
            series.skipped += 1;
            return;
        }
        series.open += 1;
        series.begun += 1;
        let isn = series.random.below(u32::MAX);
        let spec = &series.spec;
        let until = now.saturating_add(spec.timeout);
        let client = QueryClient::begin(isn, spec.request_bytes, spec.reply_bytes, now, &mut self.segments);
        self.add(key, End::Client { series: id, client: Box::new(client), until, is_recorded: false });
    }

    fn add(&mut self, key: FlowKey, end: End) {
        self.due.extend(end.due().map(|due| (due, key)));
        self.ends.insert(key, end);
        self.outgoing.extend(self.segments.drain(..).map(|segment| (key, segment)));
    }

    /// Runs code on an end, and takes note of what came of it.
    fn at(&mut self, key: FlowKey, now: Duration, happens: impl FnOnce(&mut End, &mut Vec<Segment>)) {
        let Some(mut end) = self.ends.remove(&key) else { return };
        if let Some(due) = end.due() {
            self.due.remove(&(due, key));
        }
        happens(&mut end, &mut self.segments);
        let over = match &mut end {
            End::Server(server) => server.is_over(now),
            End::Client { series, client, until, is_recorded } => {
                let is_late = now >= *until;
                if let Some(outcome) = outcome(client, is_late).filter(|_| !*is_recorded) {
                    *is_recorded = true;
                    record(&mut self.series, *series, client.began_at, outcome);
                }
                client.is_over() || is_late
            }
        };
        match (over, end) {
            (true, End::Server(_)) => self.accepted -= 1,
            (true, End::Client { .. }) => {}
            (false, end) => {
                self.due.extend(end.due().map(|due| (due, key)));
                self.ends.insert(key, end);
            }
        }
        self.outgoing.extend(self.segments.drain(..).map(|segment| (key, segment)));
    }
}

impl End {
    fn due(&self) -> Option<Duration> {
        match self {
            End::Client { client, until, .. } => Some(client.due().map_or(*until, |due| due.min(*until))),
            End::Server(server) => server.due(),
        }
    }
}

impl Series {
    /// How many queries begin now, and after how long the next ones do.
    fn next_arrivals(&mut self) -> (u32, Duration) {
        let every = self.spec.every;
        match self.spec.arrivals {
            Arrivals::Even => (1, every),
            Arrivals::Bursts(size) => (size, every),
            // The inverse of the exponential distribution; the argument is above zero.
            Arrivals::Poisson => {
                let times = -(1.0 - self.random.share()).ln();
                (1, Duration::try_from_secs_f64(every.as_secs_f64() * times).unwrap_or(Duration::MAX))
            }
        }
    }
}

/// What has become of a query, if it is decided.
fn outcome(client: &QueryClient, is_late: bool) -> Option<Outcome> {
    match client.progress {
        Progress::Completed(at) => Some(Outcome::Completed(at.saturating_sub(client.began_at))),
        Progress::Refused => Some(Outcome::Refused),
        Progress::NoAnswer => Some(Outcome::Lost),
        Progress::Open => is_late.then_some(Outcome::Lost),
    }
}

fn record(all: &mut BTreeMap<u64, Series>, id: u64, began_at: Duration, outcome: Outcome) {
    let Some(series) = all.get_mut(&id) else { return };
    series.open = series.open.saturating_sub(1);
    if series.records.len() < series.records_max {
        series.records.push(QueryRecord { began_at, outcome });
    } else {
        series.unrecorded += 1;
    }
}

#[cfg(test)]
mod tests;
