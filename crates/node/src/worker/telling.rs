//! What a worker tells zones of their commands, and what it notes of them.
//!
//! In: what was decided, or what another app made. Out: frames in the rings of zones, lines of the log, messages to the control thread. Never waits
//! for a zone: what the node itself says may wait beside a ring, what another app made is dropped where there is no room.

use super::{NO_ERROR, Worker, now_unix_ms};
use crate::messages::FromWorker;
use abi::event::{QueryReply, write};
use abi::header::FLAG_RECEIPT;
use abi::{Frame, Outcome, Receipt, ZoneId};
use audit_contract::Record;
use kernel::Refusal;

/// What stands before a line in the app's own log, by its level; nothing before the usual ones, which look like what the app prints.
const WORDS: [&str; 3] = ["error: ", "warning: ", ""];

impl Worker {
    /// The kernel does not let it pass.
    pub(super) fn refuse_for(&mut self, zone: ZoneId, frame: &Frame<'_>, refusal: &Refusal) {
        let words = self.dispatch.kernel.in_words(refusal).to_string();
        self.to_record.count(zone, refusal, || words.clone());
        self.refuse(zone, frame, &words);
    }

    /// What was refused since this was last called goes into the records.
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
        let app = self.dispatch.zones.get(zone).map(|end| end.app()).unwrap_or("?");
        tracing::debug!(app, datapath = %frame.datapath(), "command refused: {reason}");
        if frame.header.flags.get() & FLAG_RECEIPT == 0 {
            return;
        }
        let receipt = Receipt {
            ticket: frame.header.sequence.get(),
            outcome: Outcome::Refused,
            error: NO_ERROR,
            reason,
        };
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
        // One that finds no room is in the node's log all the same.
        let _ = self.control.send(FromWorker::Line { app: app.to_owned(), generation, line });
        match level {
            0 => tracing::error!(target: "app", "{app}: {text}"),
            1 => tracing::warn!(target: "app", "{app}: {text}"),
            2 => tracing::info!(target: "app", "{app}: {text}"),
            _ => tracing::debug!(target: "app", "{app}: {text}"),
        }
    }

    /// Puts an event together and hands it to some zones.
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

    /// Hands what an app made to other zones, as far as they keep up: how many do not, and so do not get it.
    pub(super) fn pass(
        &mut self,
        from: ZoneId,
        to: impl IntoIterator<Item = ZoneId>,
        event: impl FnOnce(&mut Vec<u8>, u64) -> bool,
    ) -> usize {
        self.sequence += 1;
        self.scratch.clear();
        if !event(&mut self.scratch, self.sequence) {
            // What fits into no frame nobody gets.
            return to.into_iter().count();
        }
        let Worker { dispatch, scratch, .. } = self;
        to.into_iter()
            .filter(|zone| dispatch.zones.get(*zone).is_some_and(|end| !end.deliver_from_app(from, scratch)))
            .count()
    }
}
