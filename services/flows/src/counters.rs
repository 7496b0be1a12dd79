//! Counters of rules, which are read from a switch when a caller asks for them.
//!
//! In: questions, parts of reports. Out: one answer each. Nothing is kept after the answer.

use crate::engine::Engine;
use crate::report::rules;
use crate::slot::State;
use burnet_sdk::{Commands, Ticket};
use flow::DatapathId;
use flows_contract::{Counters, status};
use std::collections::HashMap;
use view::RuleId;

/// The most counters in one answer: some 10 MiB. An answer that would be longer is cut; ask for one table.
const COUNTERS_MAX: usize = 100_000;

/// The most readings at once, with those that wait. Each reads a switch. Beyond it, a question is answered as busy.
pub const READINGS_MAX: usize = 16;

/// The readings that are under way, by the ticket of the request: at most [`READINGS_MAX`]. A reading without a query has no
/// caller any more. It counts until the switch has answered, so that callers that leave early cannot exceed the bound.
#[derive(Debug, Default)]
pub struct Readings(HashMap<u64, (Option<u64>, Vec<Counters>)>);

impl Readings {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A caller's question has become this request.
    pub fn begin(&mut self, ticket: u64, query: u64) {
        self.0.insert(ticket, (Some(query), Vec::new()));
    }

    /// A part of a reply.
    pub fn on_report(
        &mut self,
        engine: &Engine,
        switch: DatapathId,
        (ticket, more): (u64, bool),
        body: &[u8],
        out: &mut Commands,
    ) {
        let Some((query, counters)) = self.0.get_mut(&ticket) else { return };
        let room = if query.is_some() { COUNTERS_MAX - counters.len() } else { 0 };
        let slots = engine.switch(switch).map(|switch| &switch.slots);
        counters.extend(rules(body).take(room).map(|rule| {
            let key = rule.key();
            let slot = slots.and_then(|slots| slots.get(&key));
            Counters {
                id: RuleId { switch, number: key.number() },
                wanted: slot.is_some_and(|slot| slot.state != State::Orphan),
                packets: rule.packets,
                bytes: rule.bytes,
                duration_s: rule.duration_s,
            }
        }));
        if !more {
            if let Some(query) = *query {
                // Plain data can always be written as JSON.
                let payload = serde_json::to_vec(counters).unwrap_or_default();
                out.answer(Ticket(query), status::DONE, false, &payload);
            }
            self.0.remove(&ticket);
        }
    }

    /// The request was refused, or the switch did not answer it.
    pub fn on_refused(&mut self, ticket: u64, reason: &str, out: &mut Commands) {
        if let Some((Some(query), _)) = self.0.remove(&ticket) {
            out.answer(Ticket(query), status::NO_ANSWER_OF_SWITCH, false, reason.as_bytes());
        }
    }

    /// The caller waits no more.
    pub fn on_over(&mut self, query: u64) {
        for reading in self.0.values_mut() {
            if reading.0 == Some(query) {
                *reading = (None, Vec::new());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_counts_until_the_switch_has_answered() {
        let (mut readings, mut out) = (Readings::default(), Commands::new());
        (0..4).for_each(|number| readings.begin(number, 100 + number));
        readings.on_over(100);
        assert_eq!(readings.len(), 4, "the caller has left, and the switch still answers");
        readings.on_refused(0, "away", &mut out);
        assert_eq!(readings.len(), 3);
    }
}
