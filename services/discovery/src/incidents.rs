//! Refused probes: counted, and told at a bounded rate for each port and reason.
//!
//! In: refusals with their place and time. Out: incidents. It judges no frame.

use crate::time::Now;
use discovery_contract::{Incident, Refusal};
use std::collections::{BTreeMap, VecDeque};
use view::ConnectPoint;

/// After an incident, further refusals at the same port for the same reason are only counted for so long.
const INTERVAL_US: u64 = 1_000_000;

/// Incidents that can be read. The oldest is forgotten first.
const KEPT_MAX: usize = 256;

/// Ports and reasons whose last incident is known: more than the ports of any attack that an operator looks at one by one. Beyond it,
/// a refusal is counted and not told.
const PLACES_MAX: usize = 4_096;

/// The last incidents.
#[derive(Debug, Default)]
pub struct Incidents {
    last: VecDeque<Incident>,
    places: BTreeMap<(ConnectPoint, Refusal), Place>,
}

#[derive(Debug)]
struct Place {
    told_us: u64,
    repeated: u64,
}

impl Incidents {
    /// A refusal. Returns the incident, if it is to be told now.
    pub fn add(
        &mut self,
        refusal: Refusal,
        at: ConnectPoint,
        claimed: Option<ConnectPoint>,
        now: Now,
    ) -> Option<Incident> {
        if self.places.len() >= PLACES_MAX && !self.places.contains_key(&(at, refusal)) {
            self.places.retain(|_, place| now.us < place.told_us + INTERVAL_US);
        }
        let is_full = self.places.len() >= PLACES_MAX;
        let repeated = match self.places.get_mut(&(at, refusal)) {
            Some(place) if now.us < place.told_us + INTERVAL_US => {
                place.repeated += 1;
                return None;
            }
            Some(place) => std::mem::replace(place, Place { told_us: now.us, repeated: 0 }).repeated,
            None if is_full => return None,
            None => {
                self.places.insert((at, refusal), Place { told_us: now.us, repeated: 0 });
                0
            }
        };
        let incident = Incident { refusal, at, claimed, repeated, time_ms: now.unix_ms };
        if self.last.len() >= KEPT_MAX {
            self.last.pop_front();
        }
        self.last.push_back(incident.clone());
        Some(incident)
    }

    /// The last incidents, the oldest first.
    pub fn last(&self) -> impl Iterator<Item = &Incident> {
        self.last.iter()
    }

    /// A port is gone.
    pub fn forget(&mut self, port: ConnectPoint) {
        self.places.retain(|(at, _), _| *at != port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_forged_probes_is_told_once_a_second() {
        let mut incidents = Incidents::default();
        let at = "of:0000000000000001/1".parse().unwrap();
        let mut told = Vec::new();
        for ms in 0..2_500 {
            let now = Now { us: ms * 1_000, unix_ms: ms };
            told.extend(incidents.add(Refusal::Forged, at, None, now).map(|it| (it.time_ms, it.repeated)));
        }
        assert_eq!(told, [(0, 0), (1_000, 999), (2_000, 999)]);
        assert!(incidents.add(Refusal::Replayed, at, None, Now { us: 0, unix_ms: 0 }).is_some());
    }
}
