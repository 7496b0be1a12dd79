//! Queries that are on their way: who asked what of whom.
//!
//! Never holds what was asked, only whose answer it will be, and until when. A service that says nothing for [`ANSWER_WITHIN_MS`] is not waited for
//! any more: its place is free again.

use abi::ZoneId;
use std::collections::HashMap;

/// How many queries of one zone may be open. One more is refused: a service that does not answer must not make the kernel grow.
pub const MAX_OPEN_PER_ZONE: usize = 256;

/// A service has so long for its answer, and for each further part of it.
pub const ANSWER_WITHIN_MS: u64 = 10_000;

#[derive(Clone, Copy, Debug)]
struct Open {
    asker: ZoneId,
    askers_ticket: u64,
    service: ZoneId,
    until_ms: u64,
}

/// The open queries of one kernel.
#[derive(Clone, Debug, Default)]
pub struct Queries {
    open: HashMap<u64, Open>,
    last_ticket: u64,
}

impl Queries {
    /// Opens one, and gives the kernel's ticket for it; `None` if the asker has too many.
    pub fn open(&mut self, asker: ZoneId, askers_ticket: u64, service: ZoneId, now_ms: u64) -> Option<u64> {
        let of_this_zone = self.open.values().filter(|open| open.asker == asker).count();
        if of_this_zone >= MAX_OPEN_PER_ZONE {
            return None;
        }
        self.last_ticket += 1;
        let until_ms = now_ms.saturating_add(ANSWER_WITHIN_MS);
        self.open.insert(self.last_ticket, Open { asker, askers_ticket, service, until_ms });
        Some(self.last_ticket)
    }

    /// Who asked, if this service may answer this ticket. The last part closes it.
    pub fn answer(&mut self, service: ZoneId, ticket: u64, more: bool, now_ms: u64) -> Option<(ZoneId, u64)> {
        let place = self.open.get_mut(&ticket).filter(|open| open.service == service)?;
        place.until_ms = now_ms.saturating_add(ANSWER_WITHIN_MS);
        let open = *place;
        if !more {
            self.open.remove(&ticket);
        }
        Some((open.asker, open.askers_ticket))
    }

    /// The query of this ticket is over, if it is open.
    pub fn close(&mut self, ticket: u64) {
        self.open.remove(&ticket);
    }

    /// Closes those whose service has said nothing in time: the askers with their tickets.
    pub fn expire(&mut self, now_ms: u64) -> Vec<(ZoneId, u64)> {
        let late = self.open.extract_if(|_, open| open.until_ms <= now_ms);
        late.map(|(_, open)| (open.asker, open.askers_ticket)).collect()
    }

    /// A zone is gone: what it asked is forgotten, and what it was asked comes back as the askers with their tickets.
    pub fn forget(&mut self, zone: ZoneId) -> Vec<(ZoneId, u64)> {
        let unanswered = self.open.values().filter(|open| open.service == zone && open.asker != zone);
        let unanswered = unanswered.map(|open| (open.asker, open.askers_ticket)).collect();
        self.open.retain(|_, open| open.service != zone && open.asker != zone);
        unanswered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKER: ZoneId = ZoneId(1);
    const SERVICE: ZoneId = ZoneId(2);
    const STRANGER: ZoneId = ZoneId(3);

    #[test]
    fn only_the_service_that_was_asked_can_answer() {
        let mut queries = Queries::default();
        let ticket = queries.open(ASKER, 7, SERVICE, 0).unwrap();
        assert_eq!(queries.answer(STRANGER, ticket, false, 0), None);
        assert_eq!(queries.answer(SERVICE, ticket, true, 0), Some((ASKER, 7)));
        assert_eq!(queries.answer(SERVICE, ticket, false, 0), Some((ASKER, 7)));
        assert_eq!(queries.answer(SERVICE, ticket, false, 0), None);
    }

    #[test]
    fn open_queries_are_bounded_for_each_zone() {
        let mut queries = Queries::default();
        for ticket in 0..MAX_OPEN_PER_ZONE as u64 {
            assert!(queries.open(ASKER, ticket, SERVICE, 0).is_some());
        }
        assert_eq!(queries.open(ASKER, 999, SERVICE, 0), None);
        assert!(queries.open(STRANGER, 1, SERVICE, 0).is_some());
    }

    #[test]
    fn what_is_closed_is_answered_no_more_and_makes_room() {
        let mut queries = Queries::default();
        let tickets: Vec<u64> = (0..MAX_OPEN_PER_ZONE as u64)
            .filter_map(|ticket| queries.open(ASKER, ticket, SERVICE, 0))
            .collect();
        queries.close(tickets[0]);
        assert_eq!(queries.answer(SERVICE, tickets[0], false, 0), None);
        assert!(queries.open(ASKER, 999, SERVICE, 0).is_some());
    }

    #[test]
    fn a_service_that_says_nothing_is_not_waited_for_and_its_place_is_free_again() {
        let mut queries = Queries::default();
        let tickets: Vec<u64> = (0..MAX_OPEN_PER_ZONE as u64)
            .filter_map(|ticket| queries.open(ASKER, ticket, SERVICE, 0))
            .collect();
        assert_eq!(queries.answer(SERVICE, tickets[7], true, 5_000), Some((ASKER, 7)));
        assert!(queries.expire(ANSWER_WITHIN_MS - 1).is_empty());
        let mut expired = queries.expire(ANSWER_WITHIN_MS);
        expired.sort();
        let all_but_one: Vec<_> =
            (0..MAX_OPEN_PER_ZONE as u64).filter(|it| *it != 7).map(|it| (ASKER, it)).collect();
        assert_eq!(expired, all_but_one, "each part gives it time again");
        assert_eq!(queries.answer(SERVICE, tickets[0], false, ANSWER_WITHIN_MS), None, "it is too late");
        assert!(queries.open(ASKER, 999, SERVICE, ANSWER_WITHIN_MS).is_some());
        assert_eq!(queries.expire(5_000 + ANSWER_WITHIN_MS), [(ASKER, 7)]);
    }

    #[test]
    fn a_service_that_is_gone_leaves_its_askers_an_answer() {
        let mut queries = Queries::default();
        queries.open(ASKER, 7, SERVICE, 0).unwrap();
        assert_eq!(queries.forget(SERVICE), [(ASKER, 7)]);
        assert!(queries.forget(SERVICE).is_empty());
    }
}
