//! The app `bench-caller`: calls `bench-service` in three ways, one after the other, and logs one line with the figures.
//!
//! ```text
//!   tick ──> one query at a time ──> many at once ──> one stream ──> a line in the log: services {"p50_ns": …}
//! ```
//!
//! Only for `burnet bench services`. It judges nothing.

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

/// What the line begins with.
pub const MARK: &str = "services {";

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
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
}

/// The app.
pub struct BenchCaller {
    settings: BenchCallerSettings,
    step: Step,
    began: Instant,
    nanoseconds: Vec<u64>,
    answered: u64,
    asked: u64,
    figures: Figures,
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
            answered: 0,
            asked: 0,
            figures: Figures::default(),
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
        self.figures.failed += u64::from(reply.status != 0 || reply.payload != PAYLOAD);
        match self.step {
            Step::Alone => self.on_answer_alone(out),
            Step::Many => self.on_answer_of_many(out),
            _ => {}
        }
    }

    fn on_stream(&mut self, _: Ticket, update: &Update, out: &mut Commands) {
        match update {
            Update::Entry { .. } => self.figures.entries += 1,
            Update::Complete { .. } => {
                self.figures.stream_ns = nanoseconds(self.began);
                self.report(out);
            }
            Update::Ended { .. } => {
                self.figures.failed += 1;
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
        self.nanoseconds.push(nanoseconds(self.began));
        if (self.nanoseconds.len() as u64) < self.settings.alone {
            return self.ask(out);
        }
        self.nanoseconds.sort_unstable();
        let at = |percent: usize| self.nanoseconds[(self.nanoseconds.len() - 1) * percent / 100];
        (self.figures.p50_ns, self.figures.p99_ns) = (at(50), at(99));
        self.step = Step::Many;
        self.began = Instant::now();
        while self.asked < AT_ONCE.min(self.settings.many) {
            out.query(SERVICE, &PAYLOAD);
            self.asked += 1;
        }
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
        self.figures.queries_per_s = self.answered * 1_000_000_000 / nanoseconds(self.began).max(1);
        self.step = Step::Stream;
        self.began = Instant::now();
        let payload = &self.settings.entries.to_be_bytes();
        let credit_bytes = CREDIT_BYTES;
        out.ask(&Ask { form: Form::Stream, credit_bytes, ..Ask::query(SERVICE, payload) });
    }

    fn report(&mut self, out: &mut Commands) {
        if let Step::Stream = self.step {
            self.step = Step::Done;
            let figures = serde_json::to_string(&self.figures).unwrap_or_default();
            out.log(Level::Information, &format!("services {figures}"));
        }
    }
}

/// Since then; 584 years fit.
fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
