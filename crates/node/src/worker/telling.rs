//! A worker's messages to zones about their commands, and its records of them.
//!
//! In: decisions, and data from other apps. Out: frames in the rings of zones, log lines, messages to the control
//! thread. It never waits for a zone. The node's own messages may wait for a ring; data from another app is dropped if
//! there is no space.

use super::{NO_ERROR, Worker, now_unix_ms};
use crate::messages::FromWorker;
use abi::event::{QueryReply, write};
use abi::header::{FLAG_RECEIPT, FLAG_REFUSAL};
use abi::{Frame, NO_ROOM, Outcome, Receipt, ZoneId};
use audit_contract::Record;
use kernel::Refusal;
use southbound::Refused;

/// The prefix of a line in the app's own log, by its level. Usual levels have none, like the app's own output.
const WORDS: [&str; 3] = ["error: ", "warning: ", ""];

impl Worker {
    /// Tells a zone that the kernel refused its command.
    pub(super) fn refuse_for(&mut self, zone: ZoneId, frame: &Frame<'_>, refusal: &Refusal) {
        let words = self.dispatch.kernel.in_words(refusal).to_string();
        self.to_record.count(zone, refusal, || words.clone());
        self.refuse_with(zone, frame, refusal.as_error().unwrap_or(NO_ERROR), &words);
    }

    /// Records the refusals since the last call.
    pub(super) fn tell_refusals(&mut self) {
        if self.to_record.is_empty() {
            return;
        }
        let kernel = &self.dispatch.kernel;
        let app = |zone: ZoneId| kernel.zone(zone).map_or("?", |zone| zone.name.as_str());
        let records = self.to_record.take(now_unix_ms(), app);
        self.tell_records(records);
    }

    pub(super) fn tell_records(&mut self, records: Vec<Record>) {
        if !records.is_empty() {
            self.unsent.push(FromWorker::Audit(records));
        }
    }

    pub(super) fn refuse(&mut self, zone: ZoneId, frame: &Frame<'_>, reason: &str) {
        self.refuse_with(zone, frame, NO_ERROR, reason);
    }

    /// The command is sound, but the session cannot send it.
    pub(super) fn refuse_unsent(&mut self, zone: ZoneId, frame: &Frame<'_>, refused: &Refused) {
        let error = refused.as_error().unwrap_or(NO_ERROR);
        self.refuse_with(zone, frame, error, &refused.to_string());
    }

    /// The worker that has the switch takes no more commands now.
    pub(super) fn refuse_for_now(&mut self, zone: ZoneId, frame: &Frame<'_>, reason: &str) {
        self.refuse_with(zone, frame, NO_ROOM, reason);
    }

    pub(super) fn refuse_with(
        &mut self,
        zone: ZoneId,
        frame: &Frame<'_>,
        error: flow::ErrorCode,
        reason: &str,
    ) {
        let app = self.dispatch.zones.get(zone).map(|end| end.app()).unwrap_or("?");
        tracing::debug!(app, datapath = %frame.datapath(), "command refused: {reason}");
        if frame.header.flags.get() & (FLAG_RECEIPT | FLAG_REFUSAL) == 0 {
            return;
        }
        let receipt =
            Receipt { ticket: frame.header.sequence.get(), outcome: Outcome::Refused, error, reason };
        let datapath = frame.datapath();
        self.tell([zone], |out, sequence| write::receipt(out, sequence, datapath, &receipt));
    }

    pub(super) fn answer(&mut self, to: ZoneId, ticket: u64, status: u16, more: bool, payload: &[u8]) {
        let reply = QueryReply { ticket, status, more, payload };
        self.tell([to], |out, sequence| write::query_reply(out, sequence, &reply));
    }

    pub(super) fn log(&mut self, zone: ZoneId, level: u8, text: &str) {
        let Some(text) = self.log_lines.line(zone, text, self.now_ms) else { return };
        let Some(end) = self.dispatch.zones.get(zone) else { return };
        let (app, generation) = (end.app(), end.generation());
        let line = format!("{}{text}", WORDS.get(usize::from(level)).unwrap_or(&"debug: "));
        // If the queue is full, the line is still in the node's log.
        let _ = self.control.send(FromWorker::Line { app: app.to_owned(), generation, line });
        match level {
            0 => tracing::error!(target: "app", "{app}: {text}"),
            1 => tracing::warn!(target: "app", "{app}: {text}"),
            2 => tracing::info!(target: "app", "{app}: {text}"),
            _ => tracing::debug!(target: "app", "{app}: {text}"),
        }
    }

    /// Writes an event once, and sends it to some zones.
    pub(super) fn tell(
        &mut self,
        to: impl IntoIterator<Item = ZoneId>,
        event: impl FnOnce(&mut Vec<u8>, u64) -> bool,
    ) {
        self.sequence += 1;
        self.scratch.clear();
        if event(&mut self.scratch, self.sequence) {
            to.into_iter().for_each(|zone| self.dispatch.deliver_control(zone, &self.scratch));
        }
    }

    /// Sends another app's data to zones, as far as they keep up. Returns how many had no space and did not get it.
    pub(super) fn pass(
        &mut self,
        from: ZoneId,
        to: impl IntoIterator<Item = ZoneId>,
        event: impl FnOnce(&mut Vec<u8>, u64) -> bool,
    ) -> usize {
        self.sequence += 1;
        self.scratch.clear();
        if !event(&mut self.scratch, self.sequence) {
            // If the data fits no frame, no zone gets it.
            return to.into_iter().count();
        }
        let Worker { dispatch, scratch, .. } = self;
        to.into_iter()
            .filter(|zone| dispatch.zones.get(*zone).is_some_and(|end| !end.deliver_from_app(from, scratch)))
            .count()
    }
}
