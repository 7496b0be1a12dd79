//! Passes the calls of apps to services, and the answers back.
//!
//! In: the kernel's decisions on calls, parts of answers, and ends of calls. Out: frames in the rings of callers and
//! services. Data from another app never waits for space: without space the call ends, and both ends learn of it.

use super::Worker;
use abi::command::{Ask, QueryAnswer};
use abi::event::{
    ANSWER_LOST, Caller, Credit, NO_SUCH_SERVICE, NOT_GRANTED, OVER_QUOTA, Query, QueryOver, QueryReply,
    SERVICE_BUSY, write,
};
use abi::{Frame, ZoneId};
use kernel::calls::{End, Over};

/// How late a deadline can be reported to its caller, in addition to the length of a turn.
const DEADLINE_SLEEP_MS: u64 = 10;

impl Worker {
    /// Passes a call to its service, with the caller and the part of its grant for the service.
    pub(super) fn ask_service(
        &mut self,
        zone: ZoneId,
        frame: &Frame<'_>,
        to: ZoneId,
        ticket: u64,
        ask: &Ask<'_>,
    ) {
        self.sequence += 1;
        self.scratch.clear();
        let caller = self.dispatch.kernel.zone(zone);
        let (name, grant) = caller.map_or(("", &[][..]), |it| {
            (it.name.as_str(), it.grant.service(ask.service).unwrap_or_default())
        });
        let query = Query {
            ticket,
            caller: Caller { number: zone.0.into(), name, grant },
            service: ask.service,
            form: ask.form,
            deadline_ms: ask.deadline_ms(),
            credit_bytes: ask.credit_bytes(),
            payload: ask.payload,
        };
        let is_written = write::query(&mut self.scratch, self.sequence, &query);
        let Worker { dispatch, scratch, .. } = self;
        let has_it =
            is_written && dispatch.zones.get(to).is_some_and(|end| end.deliver_from_app(zone, scratch));
        if has_it {
            dispatch.zones.note_called(to);
        } else {
            self.dispatch.kernel.services().calls.close(ticket);
            self.answer(zone, frame.header.sequence.get(), SERVICE_BUSY, false, &[]);
        }
    }

    pub(super) fn answer_no_such_service(&mut self, zone: ZoneId, ticket: u64, service: &str) {
        let why = self.dispatch.kernel.services().why_missing(service).to_owned();
        self.answer(zone, ticket, NO_SUCH_SERVICE, false, why.as_bytes());
    }

    /// Passes a part of an answer to its caller. Refusals of the service are recorded.
    pub(super) fn pass_answer(
        &mut self,
        service: ZoneId,
        frame: &Frame<'_>,
        to: End,
        answer: &QueryAnswer<'_>,
    ) {
        let QueryAnswer { status, more, payload } = *answer;
        if matches!(status, NOT_GRANTED | OVER_QUOTA) {
            let words = String::from_utf8_lossy(payload);
            self.to_record.count_of_service(to.zone, status == OVER_QUOTA, &words);
        }
        let reply = QueryReply { ticket: to.ticket, status, more, payload };
        let only = [to.zone];
        if self.pass(service, only, |out, sequence| write::query_reply(out, sequence, &reply)) > 0 {
            self.dispatch.kernel.services().calls.lose(frame.header.sequence.get());
            self.answer(to.zone, to.ticket, ANSWER_LOST, false, &[]);
            self.refuse(service, frame, "the caller is too slow; the query is over");
        }
    }

    /// Tells a service its caller's additional credit, now or when there is space.
    pub(super) fn grant_credit(&mut self, caller: ZoneId, to: End, bytes: u32) {
        let credit = Credit { ticket: to.ticket, bytes };
        let only = [to.zone];
        if self.pass(caller, only, |out, sequence| write::query_credit(out, sequence, credit)) > 0 {
            self.dispatch.kernel.services().calls.keep_credit(to.ticket, bytes);
        }
    }

    pub(super) fn tell_untold_credit(&mut self) {
        for (caller, to, bytes) in self.dispatch.kernel.services().calls.untold() {
            self.grant_credit(caller, to, bytes);
        }
    }

    /// Tells a service that a call is over. Each reported call was in its ring, so these messages are bounded too.
    pub(super) fn tell_over(&mut self, to: End, status: u16) {
        let over = QueryOver { ticket: to.ticket, status };
        self.tell([to.zone], |out, sequence| write::query_over(out, sequence, over));
    }

    /// Tells both ends of a call that it is over.
    pub(super) fn end_call(&mut self, over: &Over) {
        if let Some(caller) = over.caller {
            self.answer(caller.zone, caller.ticket, over.status, false, &[]);
        }
        if let Some(service) = over.service {
            self.tell_over(service, over.status);
        }
    }

    pub(super) fn expire_calls(&mut self) {
        for over in self.dispatch.kernel.services().calls.expire(self.now_ms) {
            self.end_call(&over);
        }
    }

    /// Whether a deadline is so near that the worker must not sleep for the longest time.
    pub(super) fn has_deadline_soon(&mut self) -> bool {
        let soon_ms = self.now_ms + super::LONGEST_SLEEP.as_millis() as u64;
        self.dispatch.kernel.services().calls.earliest_ms().is_some_and(|at_ms| at_ms <= soon_ms)
    }
}

/// The longest sleep of a worker while a deadline is near.
pub(super) const DEADLINE_SLEEP: std::time::Duration = std::time::Duration::from_millis(DEADLINE_SLEEP_MS);
