//! The app `bench-caller`: calls `bench-service` in three ways, one after the other, and logs one line with the figures.
//!
//! ```text
//!   tick ──> one query at a time, in rounds with bare wake-ups in turn ──> many at once ──> one stream
//!        ──> a line in the log: services {"p50_ns": …}
//! ```
//!
//! Only for `burnet bench services`. It judges nothing.

use super::wake_ups;
use burnet_sdk::stream::Update;
use burnet_sdk::{App, Ask, Commands, Form, Interests, Level, QueryReply, Settings, Ticket};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The service that it calls.
const SERVICE: &str = "bench-service";

/// Queries under way when many are: below the kernel's bound of open calls.
const AT_ONCE: u64 = 128;

/// A query and its answer carry so much.
const PAYLOAD: [u8; 64] = [7; 64];

/// Credit of the stream: what the rings have room for.
const CREDIT_BYTES: u32 = 64 << 10;

/// Rounds of single queries. Each is followed by as many rounds of bare wake-ups as it has queries.
const ROUNDS: u64 = 20;

/// How the line with the figures begins.
pub const LINE_START: &str = "services {";

/// The app's settings.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchCallerSettings {
    /// Queries one at a time.
    alone: u64,
    /// Queries many at once.
    many: u64,
    /// Entries of the stream.
    entries: u64,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// From a query to its answer, if nothing else is under way: half took no longer.
    pub p50_ns: u64,
    /// And 99 of 100.
    pub p99_ns: u64,
    /// Queries that were answered in a second, with many under way.
    pub queries_per_s: u64,
    /// How long the stream took, from the call to the end of the snapshot.
    pub stream_ns: u64,
    /// Its entries.
    pub entries: u64,
    /// Queries and streams that failed.
    pub failed: u64,
    /// Of each round of single queries: the median of a query, and that of four bare wake-ups right after it, in nanoseconds.
    pub rounds: Vec<(u64, u64)>,
}

/// The app.
pub struct BenchCaller {
    settings: BenchCallerSettings,
    step: Step,
    began: Instant,
    nanoseconds: Vec<u64>,
    /// Of the round that is under way.
    round: Vec<u64>,
    answered: u64,
    asked: u64,
    calls: Calls,
}

enum Step {
    Waiting,
    Alone,
    Many,
    Stream,
    Done,
}

impl App for BenchCaller {
    fn new(settings: &Settings) -> Result<Self, String> {
        Ok(BenchCaller {
            settings: settings.read()?,
            step: Step::Waiting,
            began: Instant::now(),
            nanoseconds: Vec::new(),
            round: Vec::new(),
            answered: 0,
            asked: 0,
            calls: Calls::default(),
        })
    }

    fn interests(&self) -> Interests {
        Interests::none().ticks()
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        if let Step::Waiting = self.step {
            self.step = Step::Alone;
            self.ask(out);
        }
    }

    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        if reply.status == burnet_sdk::query_status::NO_SUCH_SERVICE {
            // It has not started yet.
            self.step = Step::Waiting;
            return;
        }
        self.calls.failed += u64::from(reply.status != 0 || reply.payload != PAYLOAD);
        match self.step {
            Step::Alone => self.on_answer_alone(out),
            Step::Many => self.on_answer_of_many(out),
            _ => {}
        }
    }

    fn on_stream(&mut self, _: Ticket, update: &Update, out: &mut Commands) {
        match update {
            Update::Entry { .. } => self.calls.entries += 1,
            Update::Complete { .. } => {
                self.calls.stream_ns = nanoseconds(self.began);
                self.report(out);
            }
            Update::Ended { .. } => {
                self.calls.failed += 1;
                self.report(out);
            }
            _ => {}
        }
    }
}

impl BenchCaller {
    fn ask(&mut self, out: &mut Commands) {
        self.began = Instant::now();
        out.query(SERVICE, &PAYLOAD);
    }

    fn on_answer_alone(&mut self, out: &mut Commands) {
        self.round.push(nanoseconds(self.began));
        if (self.round.len() as u64) < self.settings.alone / ROUNDS {
            return self.ask(out);
        }
        self.end_round();
        if (self.calls.rounds.len() as u64) < ROUNDS {
            return self.ask(out);
        }
        (self.calls.p50_ns, self.calls.p99_ns) =
            (percentile(&mut self.nanoseconds, 50), percentile(&mut self.nanoseconds, 99));
        self.step = Step::Many;
        self.began = Instant::now();
        while self.asked < AT_ONCE.min(self.settings.many) {
            out.query(SERVICE, &PAYLOAD);
            self.asked += 1;
        }
    }

    /// Measures as many bare wake-ups as the round had queries. If that fails, the round has none.
    fn end_round(&mut self) {
        let mut bare = wake_ups::rounds(self.round.len()).unwrap_or_default();
        self.nanoseconds.extend_from_slice(&self.round);
        self.calls.rounds.push((percentile(&mut self.round, 50), percentile(&mut bare, 50)));
        self.round.clear();
    }

    fn on_answer_of_many(&mut self, out: &mut Commands) {
        self.answered += 1;
        if self.asked < self.settings.many {
            out.query(SERVICE, &PAYLOAD);
            self.asked += 1;
        }
        if self.answered < self.settings.many {
            return;
        }
        self.calls.queries_per_s = self.answered * 1_000_000_000 / nanoseconds(self.began).max(1);
        self.step = Step::Stream;
        self.began = Instant::now();
        let payload = &self.settings.entries.to_be_bytes();
        let credit_bytes = CREDIT_BYTES;
        out.ask(&Ask { form: Form::Stream, credit_bytes, ..Ask::query(SERVICE, payload) });
    }

    fn report(&mut self, out: &mut Commands) {
        if let Step::Stream = self.step {
            self.step = Step::Done;
            let calls = serde_json::to_string(&self.calls).unwrap_or_default();
            out.log(Level::Information, &format!("services {calls}"));
        }
    }
}

/// The value that so many percent do not exceed; 0 if there is none.
fn percentile(nanoseconds: &mut [u64], percent: usize) -> u64 {
    nanoseconds.sort_unstable();
    nanoseconds.get(nanoseconds.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
}

/// Since then; 584 years fit.
fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
