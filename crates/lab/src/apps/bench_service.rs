//! The app `bench-service`: answers queries with their own payload, and streams with as many entries as they ask for. It measures the path of a call.
//!
//! ```text
//!   query P ──> answer P
//!   stream N (8 bytes, big-endian) ──> snapshot of N entries of 100 bytes
//! ```
//!
//! Only for `burnet bench services`. It keeps nothing but how far each stream is.

use burnet_sdk::stream::{Page, Source};
use burnet_sdk::{App, Commands, Form, Interests, Query, Settings, Ticket};

/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;

/// The most entries of a stream.
const ENTRIES_MAX: u64 = 100_000_000;

/// The app.
pub struct BenchService {
    entries: u64,
    source: Source,
}

impl App for BenchService {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(BenchService { entries: 0, source: Source::default() })
    }

    fn interests(&self) -> Interests {
        Interests::none()
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        match query.form {
            Form::Query => out.answer(Ticket(query.ticket), 0, false, query.payload),
            Form::Stream => {
                let entries = query.payload.first_chunk().map_or(0, |count| u64::from_be_bytes(*count));
                self.entries = entries.min(ENTRIES_MAX);
                self.source.follow(query, out);
                self.send(out);
            }
        }
    }

    fn on_credit(&mut self, _: Ticket, out: &mut Commands) {
        self.send(out);
    }
}

impl BenchService {
    fn send(&mut self, out: &mut Commands) {
        let entries = self.entries;
        self.source.send(out, |after, page| fill(entries, after, page));
    }
}

/// Keys are numbers, so that their order is that of the bytes.
fn fill(entries: u64, after: Option<&[u8]>, page: &mut Page<'_>) {
    let last = after.and_then(|key| Some(u64::from_be_bytes(*key.first_chunk()?)));
    for number in last.map_or(0, |last| last + 1)..entries {
        if !page.entry(&number.to_be_bytes(), &[0; VALUE_BYTES]) {
            return;
        }
    }
}
