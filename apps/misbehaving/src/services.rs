//! Attacks by calls: of a service on its callers, and of a caller on its service.
//!
//! ```text
//!   the app as a caller ──query──> kernel ──query──> the same app as a service, which answers late, twice, too much, or never
//! ```
//!
//! The app calls itself, so that both ends of the call tell what they hear. In: queries, answers, ticks. Out: calls and answers that break the rules. It has a bound on
//! all that it sends.

use crate::Attack;
use burnet_sdk::query_status::STATUS_OF_KERNEL;
use burnet_sdk::{Ask, Commands, Query, QueryAnswer, QueryReply, Ticket, What};

/// Its own name as a service.
const OWN: &str = "misbehaving";

/// A service that answers nobody.
const SILENT: &str = "learning-switch";

/// Tickets of strangers that it guesses.
const GUESSES: u64 = 1_000;

/// Calls that it opens: more than the kernel's bound for an app.
const CALLS: usize = 300;

/// Two of these are more than the credit of a call.
static PART: [u8; 60_000] = [0x55; 60_000];

/// More credit than a call may have.
const CREDIT_BYTES: u32 = 2 << 20;

/// How long its calls wait, in milliseconds.
const DEADLINE_MS: u32 = 300;

/// What it remembers of its calls.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    /// Queries that are answered at the next tick.
    late: Vec<Ticket>,
    replies: u32,
    ends: bool,
}

/// Whether an attack is one of these.
pub(crate) fn is_by_calls(attack: Attack) -> bool {
    use Attack::*;
    matches!(
        attack,
        ServiceLate
            | ServiceTwice
            | ServiceTooMuch
            | ServiceStranger
            | ServiceNever
            | CallUnknown
            | CallCredit
            | CallVanish
    )
}

/// The first tick.
pub(crate) fn begin(attack: Attack, calls: &mut CallState, out: &mut Commands) {
    let own = Ask { deadline_ms: DEADLINE_MS, ..Ask::query(OWN, b"?") };
    match attack {
        Attack::ServiceStranger => {
            (1..=GUESSES).for_each(|number| out.answer(Ticket(number), 0, false, b"!"))
        }
        Attack::ServiceNever => {
            for _ in 0..CALLS {
                out.ask(&own);
            }
        }
        Attack::CallUnknown => {
            out.query("nobody", b"?");
        }
        Attack::CallCredit => {
            let query = out.ask(&own);
            out.command_as(query, What::QueryCredit(CREDIT_BYTES));
        }
        Attack::CallVanish => {
            for _ in 0..CALLS {
                out.follow(SILENT, b"?");
            }
            calls.ends = true;
        }
        _ => {
            out.ask(&own);
        }
    }
}

/// A query of its own has come back to it.
pub(crate) fn on_query(attack: Attack, query: &Query, calls: &mut CallState, out: &mut Commands) {
    let ticket = Ticket(query.ticket);
    match attack {
        Attack::ServiceLate => calls.late.push(ticket),
        Attack::ServiceTwice => (0..2).for_each(|_| out.answer(ticket, 0, false, b"!")),
        Attack::ServiceTooMuch => (0..2).for_each(|_| {
            out.command_as(ticket, What::QueryAnswer(QueryAnswer { status: 0, more: true, payload: &PART }));
        }),
        _ => {}
    }
}

/// Whether an answer shows a refusal; `None` if it is as it should be.
pub(crate) fn is_refused(attack: Attack, reply: &QueryReply, calls: &mut CallState) -> Option<bool> {
    calls.replies += 1;
    let is_first_of_two = attack == Attack::ServiceTwice && calls.replies == 1;
    let is_refused = reply.status >= STATUS_OF_KERNEL;
    (is_refused || !is_first_of_two).then_some(is_refused)
}

/// Each tick after the first: late answers, or the end of the process.
pub(crate) fn on_tick(calls: &mut CallState, out: &mut Commands) {
    if calls.ends {
        std::process::exit(7);
    }
    std::mem::take(&mut calls.late).into_iter().for_each(|query| out.answer(query, 0, false, b"!"));
}
