//! Switches that leave their profiles: the log line and the incident of each.
//!
//! In: departures that sessions found, and the time. Out: a message for the monitor. A switch that reconnects again and again can cause no
//! more than one incident a minute on a worker; further ones are only in the log. It decides nothing about the switch.

use flow::DatapathId;
use monitor_channel::protocol::{FromKernel, ReplyDelay};
use southbound::{Departure, PERCENT};

/// The shortest time between two incidents of one worker's switches, in milliseconds.
const INTERVAL_MS: u64 = 60_000;

/// A switch that has left its profile.
pub struct SwitchLeft {
    datapath: DatapathId,
    reason: String,
    departure: Departure,
}

/// The departures of one worker's switches.
#[derive(Default)]
pub struct Departures {
    next_ms: u64,
    waiting: Option<SwitchLeft>,
}

impl Departures {
    /// A switch has left its profile.
    pub fn on_departure(&mut self, datapath: DatapathId, profile: &str, departure: &Departure, now_ms: u64) {
        let reason = in_words(profile, departure);
        tracing::warn!(%datapath, "the switch has left its profile: {reason}");
        if now_ms >= self.next_ms && self.waiting.is_none() {
            self.next_ms = now_ms + INTERVAL_MS;
            self.waiting = Some(SwitchLeft { datapath, reason, departure: *departure });
        }
    }

    /// The departure to report.
    pub fn take(&mut self) -> Option<SwitchLeft> {
        self.waiting.take()
    }
}

fn in_words(profile: &str, departure: &Departure) -> String {
    let Departure { is_later, outside, of, bound_us, .. } = *departure;
    let (than, percent) = if is_later { ("later", 95) } else { ("sooner", 5) };
    format!(
        "{outside} of {of} barrier replies came {than} than {} ms; by the profile {profile}, 1 in 20 should at most: the limit is its {percent} % quantile and a margin",
        bound_us / 1_000
    )
}

impl SwitchLeft {
    /// For the monitor.
    pub fn into_message(self) -> FromKernel {
        let Departure { expected, observed_us, .. } = self.departure;
        let delays = (0..PERCENT.len()).map(|place| ReplyDelay {
            percent: PERCENT[place],
            earliest_us: expected.earliest_us[place],
            latest_us: expected.latest_us[place],
            observed_us: observed_us[place],
        });
        let (switch, delays) = (self.datapath.to_string(), delays.collect());
        FromKernel::SwitchLeftProfile { switch, reason: self.reason, delays }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Departure = Departure {
        is_later: true,
        outside: 57,
        of: 128,
        bound_us: 33_800,
        expected: southbound::ReplyDelay { earliest_us: [1, 2, 3, 4, 5], latest_us: [6, 7, 8, 9, 10] },
        observed_us: [11, 12, 13, 14, 15],
    };

    #[test]
    fn a_departure_is_one_incident_with_both_curves_and_a_flood_is_not_one_for_each() {
        let mut departures = Departures::default();
        for now_ms in 0..INTERVAL_MS {
            departures.on_departure(DatapathId(1), "hp", &LATER, now_ms);
        }
        let FromKernel::SwitchLeftProfile { switch, reason, delays } =
            departures.take().unwrap().into_message()
        else {
            panic!("another message")
        };
        assert_eq!(switch, "of:0000000000000001");
        assert!(
            reason.starts_with("57 of 128 barrier replies came later than 33 ms; by the profile hp"),
            "{reason}"
        );
        let second = ReplyDelay { percent: 25, earliest_us: 2, latest_us: 7, observed_us: 12 };
        assert_eq!((delays.len(), delays[1]), (5, second));
        assert!(departures.take().is_none());
        departures.on_departure(DatapathId(1), "hp", &LATER, INTERVAL_MS);
        assert!(departures.take().is_some());
    }
}
