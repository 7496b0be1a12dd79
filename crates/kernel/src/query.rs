//! Queries that are on their way: who asked what of whom.
//!
//! Never holds what was asked, only whose answer it will be.

use abi::ZoneId;
use std::collections::HashMap;

/// How many queries of one zone may be open. One more is refused: a service that does not answer must not make the kernel grow.
pub const MAX_OPEN_PER_ZONE: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Open {
    asker: ZoneId,
    askers_ticket: u64,
    service: ZoneId,
}

/// The open queries of one kernel.
#[derive(Clone, Debug, Default)]
pub struct Queries {
    open: HashMap<u64, Open>,
    last_ticket: u64,
}

impl Queries {
    /// Opens one, and gives the kernel's ticket for it; `None` if the asker has too many.
    pub fn open(&mut self, asker: ZoneId, askers_ticket: u64, service: ZoneId) -> Option<u64> {
        let of_this_zone = self.open.values().filter(|open| open.asker == asker).count();
        if of_this_zone >= MAX_OPEN_PER_ZONE {
            return None;
        }
        self.last_ticket += 1;
        self.open.insert(self.last_ticket, Open { asker, askers_ticket, service });
        Some(self.last_ticket)
    }

    /// Who asked, if this service may answer this ticket. The last part closes it.
    pub fn answer(&mut self, service: ZoneId, ticket: u64, more: bool) -> Option<(ZoneId, u64)> {
        let open = *self.open.get(&ticket).filter(|open| open.service == service)?;
        if !more {
            self.open.remove(&ticket);
        }
        Some((open.asker, open.askers_ticket))
    }

    /// The query of this ticket is over, if it is open.
    pub fn close(&mut self, ticket: u64) {
        self.open.remove(&ticket);
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
        let ticket = queries.open(ASKER, 7, SERVICE).unwrap();
        assert_eq!(queries.answer(STRANGER, ticket, false), None);
        assert_eq!(queries.answer(SERVICE, ticket, true), Some((ASKER, 7)));
        assert_eq!(queries.answer(SERVICE, ticket, false), Some((ASKER, 7)));
        assert_eq!(queries.answer(SERVICE, ticket, false), None);
    }

    #[test]
    fn open_queries_are_bounded_for_each_zone() {
        let mut queries = Queries::default();
        for ticket in 0..MAX_OPEN_PER_ZONE as u64 {
            assert!(queries.open(ASKER, ticket, SERVICE).is_some());
        }
        assert_eq!(queries.open(ASKER, 999, SERVICE), None);
        assert!(queries.open(STRANGER, 1, SERVICE).is_some());
    }

    #[test]
    fn what_is_closed_is_answered_no_more_and_makes_room() {
        let mut queries = Queries::default();
        let tickets: Vec<u64> =
            (0..MAX_OPEN_PER_ZONE as u64).filter_map(|ticket| queries.open(ASKER, ticket, SERVICE)).collect();
        queries.close(tickets[0]);
        assert_eq!(queries.answer(SERVICE, tickets[0], false), None);
        assert!(queries.open(ASKER, 999, SERVICE).is_some());
    }

    #[test]
    fn a_service_that_is_gone_leaves_its_askers_an_answer() {
        let mut queries = Queries::default();
        queries.open(ASKER, 7, SERVICE).unwrap();
        assert_eq!(queries.forget(SERVICE), [(ASKER, 7)]);
        assert!(queries.forget(SERVICE).is_empty());
    }
}
