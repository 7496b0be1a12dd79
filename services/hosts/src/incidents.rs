//! Incidents: the last ones, and how often one is reported.
//!
//! In: what happened, where, when. Out: whether it is to be reported now, with the number of those since the last report. It logs nothing.

use crate::bounds::{INCIDENT_INTERVAL_MS, INCIDENT_PORTS_MAX, INCIDENTS_MAX};
use hosts_contract::{Incident, IncidentKind};
use std::collections::{HashMap, VecDeque};
use view::ConnectPoint;

/// The last incidents, and when each kind was last reported at each port.
#[derive(Debug, Default)]
pub struct Incidents {
    last: VecDeque<Incident>,
    reported: HashMap<(IncidentKind, ConnectPoint), Reported>,
}

#[derive(Clone, Copy, Debug)]
struct Reported {
    time_ms: u64,
    unreported: u64,
}

impl Incidents {
    /// The last ones, the oldest first.
    pub fn last(&self) -> impl Iterator<Item = &Incident> {
        self.last.iter()
    }

    /// Takes an incident. Returns it if it is to be reported now.
    pub fn add(&mut self, incident: Incident) -> Option<Incident> {
        let now_ms = incident.time_ms;
        let key = (incident.kind, incident.at);
        let is_over = |it: &Reported| now_ms.saturating_sub(it.time_ms) >= INCIDENT_INTERVAL_MS;
        let repeated = match self.reported.get_mut(&key) {
            Some(it) if !is_over(it) => {
                it.unreported += 1;
                return None;
            }
            Some(it) => it.unreported,
            None => 0,
        };
        if self.reported.len() >= INCIDENT_PORTS_MAX && !self.reported.contains_key(&key) {
            self.reported.retain(|_, it| !is_over(it));
            if self.reported.len() >= INCIDENT_PORTS_MAX {
                return None;
            }
        }
        self.reported.insert(key, Reported { time_ms: now_ms, unreported: 0 });
        let incident = Incident { repeated, ..incident };
        if self.last.len() >= INCIDENTS_MAX {
            self.last.pop_front();
        }
        self.last.push_back(incident.clone());
        Some(incident)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incident(port: u32, time_ms: u64) -> Incident {
        Incident {
            kind: IncidentKind::HostAtTwoPorts,
            host: "00:00:00:00:00:01".parse().unwrap(),
            at: format!("1/{port}").parse().unwrap(),
            address: None,
            holder: None,
            stays_at: None,
            repeated: 0,
            time_ms,
        }
    }

    #[test]
    fn repetitions_are_counted_in_the_next_report() {
        let mut incidents = Incidents::default();
        let mut check = |port, time_ms, expected| {
            let reported = incidents.add(incident(port, time_ms));
            assert_eq!(reported.map(|it| it.repeated), expected, "{port} {time_ms}");
        };
        check(1, 0, Some(0));
        check(1, 1, None);
        check(1, INCIDENT_INTERVAL_MS - 1, None);
        check(2, 5, Some(0));
        check(1, INCIDENT_INTERVAL_MS, Some(2));
        check(1, 3 * INCIDENT_INTERVAL_MS, Some(0));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut incidents = Incidents::default();
        for port in 1..=INCIDENT_PORTS_MAX as u32 {
            assert!(incidents.add(incident(port, 0)).is_some());
        }
        assert!(incidents.add(incident(100_000, 1)).is_none());
        assert_eq!((incidents.last.len(), incidents.reported.len()), (INCIDENTS_MAX, INCIDENT_PORTS_MAX));
        assert!(incidents.add(incident(100_000, INCIDENT_INTERVAL_MS)).is_some());
        assert_eq!(incidents.reported.len(), 1);
    }
}
