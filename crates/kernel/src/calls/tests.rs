//! The life of calls: who may answer, when calls end, and that memory stays bounded.

use super::*;
use abi::service::DEADLINE_MS_DEFAULT;
use proptest::prelude::*;

const CALLER: ZoneId = ZoneId(1);
const SERVICE: ZoneId = ZoneId(2);
const STRANGER: ZoneId = ZoneId(3);
const DEADLINE_MS: u64 = DEADLINE_MS_DEFAULT as u64;

fn end(ticket: u64) -> End {
    End { zone: CALLER, ticket }
}

fn part(bytes: &'static [u8], more: bool) -> QueryAnswer<'static> {
    QueryAnswer { status: 0, more, payload: bytes }
}

fn open(calls: &mut Calls, ticket: u64) -> u64 {
    calls.open(end(ticket), SERVICE, &Ask::query("s", b""), 0).unwrap()
}

fn stream(calls: &mut Calls, ticket: u64, credit_bytes: u32) -> u64 {
    let ask = Ask { form: Form::Stream, credit_bytes, ..Ask::query("s", b"") };
    calls.open(end(ticket), SERVICE, &ask, 0).unwrap()
}

const fn unasked(why: Unasked) -> Result<End, Wrong> {
    Err(Wrong::Unasked(why))
}

#[test]
fn only_the_service_that_was_asked_answers_and_it_answers_once() {
    let mut calls = Calls::at(3);
    let ticket = open(&mut calls, 7);
    assert_eq!(home_of(ticket), 3);
    assert_eq!(calls.answer(STRANGER, ticket, &part(b"", false), 0), unasked(Unasked::Never));
    assert_eq!(calls.answer(SERVICE, ticket + 1, &part(b"", false), 0), unasked(Unasked::Never));
    assert_eq!(calls.answer(SERVICE, at_home(4, ticket), &part(b"", false), 0), unasked(Unasked::Never));
    assert_eq!(calls.answer(SERVICE, ticket, &part(b"", true), 0), Ok(end(7)));
    assert_eq!(calls.answer(SERVICE, ticket, &part(b"", false), 0), Ok(end(7)));
    assert_eq!(calls.answer(SERVICE, ticket, &part(b"", false), 0), unasked(Unasked::Answered));
    open(&mut calls, 8);
    assert_eq!(calls.answer(SERVICE, ticket, &part(b"", false), 0), unasked(Unasked::Answered));
}

#[test]
fn open_calls_are_bounded_for_each_zone() {
    let mut calls = Calls::default();
    let tickets: Vec<u64> = (0..OPEN_CALLS_PER_ZONE.into()).map(|ticket| open(&mut calls, ticket)).collect();
    assert_eq!(calls.open(end(999), SERVICE, &Ask::query("s", b""), 0), None);
    let other = End { zone: STRANGER, ticket: 1 };
    assert!(calls.open(other, SERVICE, &Ask::query("s", b""), 0).is_some());
    calls.close(tickets[0]);
    assert_eq!(calls.answer(SERVICE, tickets[0], &part(b"", false), 0), unasked(Unasked::Answered));
    open(&mut calls, 999);
}

#[test]
fn a_late_answer_hears_that_it_is_late_and_the_place_is_free_again() {
    let mut calls = Calls::default();
    let tickets: Vec<u64> = (0..3).map(|ticket| open(&mut calls, ticket)).collect();
    assert_eq!(calls.answer(SERVICE, tickets[1], &part(b"", true), 5_000), Ok(end(1)));
    assert_eq!(calls.earliest_ms(), Some(DEADLINE_MS));
    assert!(calls.expire(DEADLINE_MS - 1).is_empty());
    let late = calls.expire(DEADLINE_MS);
    let over = |caller: u64, ticket| Over {
        caller: Some(end(caller)),
        service: Some(End { zone: SERVICE, ticket }),
        status: NO_ANSWER_IN_TIME,
    };
    assert_eq!(late, [over(0, tickets[0]), over(2, tickets[2])], "each part gives the service time again");
    let too_late = unasked(Unasked::Over(NO_ANSWER_IN_TIME));
    assert_eq!(calls.answer(SERVICE, tickets[0], &part(b"", false), DEADLINE_MS), too_late);
    assert_eq!(calls.expire(5_000 + DEADLINE_MS), [over(1, tickets[1])]);
    assert_eq!(calls.earliest_ms(), None);
}

#[test]
fn a_deadline_of_the_callers_own_holds_and_a_stream_has_none_once_it_has_begun() {
    let mut calls = Calls::default();
    let ask = Ask { deadline_ms: 50, ..Ask::query("s", b"") };
    calls.open(end(1), SERVICE, &ask, 0).unwrap();
    let ticket = stream(&mut calls, 2, 0);
    assert_eq!(calls.expire(50).len(), 1);
    assert_eq!(calls.answer(SERVICE, ticket, &part(b"x", true), 60), Ok(end(2)));
    assert!(calls.expire(u64::MAX - 1).is_empty());
    assert_eq!(calls.earliest_ms(), None);
    assert_eq!(
        calls.answer(SERVICE, ticket, &part(b"", false), 60),
        Ok(end(2)),
        "it ends when the service says so"
    );
}

#[test]
fn more_than_the_credit_ends_the_call_for_both() {
    let mut calls = Calls::default();
    let ticket = stream(&mut calls, 7, 200);
    assert_eq!(calls.answer(SERVICE, ticket, &part(&[0; 100], true), 0), Ok(end(7)));
    let service = End { zone: SERVICE, ticket };
    assert_eq!(calls.credit(end(7), 30), Ok((service, 30)));
    assert_eq!(calls.answer(SERVICE, ticket, &part(&[], true), 0), Ok(end(7)), "it had 66 bytes left");
    let over = Over { caller: Some(end(7)), service: None, status: TOO_MUCH };
    assert_eq!(calls.answer(SERVICE, ticket, &part(&[0; 3], false), 0), Err(Wrong::BeyondCredit(over)));
    assert_eq!(calls.answer(SERVICE, ticket, &part(&[], false), 0), unasked(Unasked::Over(TOO_MUCH)));
}

#[test]
fn a_caller_grants_no_more_than_a_call_may_have_and_only_to_calls_of_its_own() {
    let mut calls = Calls::default();
    stream(&mut calls, 7, CREDIT_BYTES_MAX - 5);
    assert_eq!(calls.credit(end(7), 6), Err(NoCall::TooMuchCredit));
    assert_eq!(calls.credit(end(7), u32::MAX), Err(NoCall::TooMuchCredit));
    assert_eq!(calls.credit(end(8), 1), Err(NoCall::NotOpen));
    assert_eq!(calls.credit(End { zone: STRANGER, ticket: 7 }, 1), Err(NoCall::NotOpen));
    assert!(calls.credit(end(7), 5).is_ok());
}

#[test]
fn credit_that_the_service_was_not_told_of_is_told_later_and_once() {
    let mut calls = Calls::default();
    let ticket = stream(&mut calls, 7, 10);
    let service = End { zone: SERVICE, ticket };
    assert_eq!(calls.untold(), []);
    calls.keep_credit(ticket, 5);
    calls.keep_credit(ticket, 6);
    assert_eq!(calls.untold(), [(CALLER, service, 11)]);
    assert_eq!(calls.untold(), []);
    calls.keep_credit(ticket, 5);
    assert_eq!(calls.credit(end(7), 1), Ok((service, 6)));
    assert_eq!(calls.untold(), []);
    calls.keep_credit(ticket, 5);
    calls.cancel(end(7));
    assert_eq!(calls.untold(), []);
}

#[test]
fn whoever_goes_the_other_end_hears_of_it() {
    let mut calls = Calls::default();
    let first = open(&mut calls, 7);
    let over = calls.forget(SERVICE);
    assert_eq!(over, [Over { caller: Some(end(7)), service: None, status: SERVICE_GONE }]);
    assert!(calls.forget(SERVICE).is_empty());
    let second = open(&mut calls, 8);
    assert_ne!(first, second);
    let service = |ticket| Some(End { zone: SERVICE, ticket });
    assert_eq!(calls.forget(CALLER), [Over { caller: None, service: service(second), status: CALLER_GONE }]);
    let third = open(&mut calls, 9);
    let over = Over { caller: None, service: service(third), status: CANCELLED };
    assert_eq!((calls.cancel(end(9)), calls.cancel(end(9))), (Some(over), None));
}

#[test]
fn a_zone_that_asks_itself_and_goes_is_told_nothing() {
    let mut calls = Calls::default();
    let own = End { zone: SERVICE, ticket: 1 };
    calls.open(own, SERVICE, &Ask::query("s", b""), 0).unwrap();
    assert_eq!(calls.forget(SERVICE), [Over { caller: None, service: None, status: SERVICE_GONE }]);
}

proptest! {
    /// In any order of messages, there are no more places than calls that were open at once, and the counts stay right.
    #[test]
    fn nothing_grows_and_no_count_is_wrong(steps in proptest::collection::vec((0u8..7, 0u64..8, 0u32..200), 0..300)) {
        let mut calls = Calls::default();
        let mut tickets = Vec::new();
        let (mut now_ms, mut most) = (0, 0);
        for (step, ticket, bytes) in steps {
            let at = tickets.get(ticket as usize * 7 % tickets.len().max(1)).copied().unwrap_or(1);
            match step {
                0 | 1 => tickets.extend(calls.open(end(ticket), SERVICE, &Ask::query("s", b""), now_ms)),
                2 => drop(calls.answer(SERVICE, at, &part(b"x", bytes % 2 == 0), now_ms)),
                3 => drop(calls.credit(end(ticket), bytes)),
                4 => drop(calls.cancel(end(ticket))),
                5 => calls.keep_credit(at, bytes),
                _ => {
                    now_ms += u64::from(bytes) * 100;
                    calls.expire(now_ms);
                }
            }
            let open = calls.places.iter().filter(|it| matches!(it.state, State::Open(_))).count();
            most = most.max(open);
            prop_assert_eq!(usize::from(calls.open_of.get(&CALLER).copied().unwrap_or_default()), open);
            prop_assert!(calls.by_caller.len() <= open);
            prop_assert!(calls.places.len() <= most && calls.free.len() + open == calls.places.len());
        }
        calls.forget(SERVICE);
        prop_assert_eq!(calls.free.len(), calls.places.len());
        prop_assert!(calls.untold().is_empty());
    }
}
