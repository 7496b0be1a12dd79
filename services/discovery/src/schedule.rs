//! When each port is probed.
//!
//! ```text
//!   port comes up ──> at once, after a tenth and after a third of the interval ──> once an interval, each port at a time of its own
//!   probe of a known link ──> a quarter of the interval later: did it arrive? if not, again
//! ```
//!
//! In: ports that come and go, and the time. Out: which ports are due. A switch gets a bounded number of probes in each window. The
//! others have their turn later, in the order in which they were due. It sends nothing.

use flow::DatapathId;
use std::collections::{BTreeMap, BTreeSet};
use view::ConnectPoint;

/// Turns that the ports of a switch get at once, at most, and in each window on average. A turn is one probe, or two with the
/// broadcast. Repetitions of missing probes come on top.
pub const PROBES_PER_WINDOW: u32 = 64;

/// The length of a window.
pub const WINDOW_US: u64 = 100_000;

/// What is due at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A probe. `is_regular`: in its own time of the interval.
    Probe {
        /// Once an interval.
        is_regular: bool,
    },
    /// Did the last probe arrive?
    Check,
}

/// The times of all ports.
#[derive(Debug)]
pub struct Schedule {
    interval_us: u64,
    due: BTreeSet<(u64, ConnectPoint)>,
    ports: BTreeMap<ConnectPoint, Times>,
    rates: BTreeMap<DatapathId, Rate>,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    /// The entry in `due`.
    due_us: u64,
    /// When the port came up, and which of its first probes comes next.
    began_us: u64,
    first: usize,
    /// The next regular probe.
    slot_us: u64,
    check_us: Option<u64>,
    /// It waited for its turn, and has it at `due_us`.
    has_turn: bool,
}

/// The rate of one switch, as a theoretical arrival time (GCRA, ITU-T I.371): when the probes that were granted are paid for.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    paid_us: u64,
}

impl Rate {
    /// Grants a probe. It may be sent at the returned time.
    fn grant(&mut self, now_us: u64) -> u64 {
        let paid_us = self.paid_us.max(now_us);
        self.paid_us = paid_us + WINDOW_US / u64::from(PROBES_PER_WINDOW);
        now_us.max(self.paid_us.saturating_sub(WINDOW_US))
    }

    fn is_free(&self, now_us: u64) -> bool {
        self.paid_us < now_us + WINDOW_US
    }
}

impl Schedule {
    /// An empty schedule.
    pub fn new(interval_us: u64) -> Schedule {
        let (due, ports, rates) = Default::default();
        Schedule { interval_us, due, ports, rates }
    }

    /// When the next port is due.
    pub fn next_us(&self) -> Option<u64> {
        self.due.first().map(|(due_us, _)| *due_us)
    }

    /// The first probes of a port come at once and soon after.
    pub fn begin(&mut self, port: ConnectPoint, now_us: u64) {
        self.end(port);
        let slot_us = self.slot_behind(port, now_us);
        self.ports.insert(
            port,
            Times { due_us: now_us, began_us: now_us, first: 0, slot_us, check_us: None, has_turn: false },
        );
        self.due.insert((now_us, port));
    }

    /// The port is not probed any more.
    pub fn end(&mut self, port: ConnectPoint) {
        if let Some(times) = self.ports.remove(&port) {
            self.due.remove(&(times.due_us, port));
        }
    }

    /// Nothing of this switch is due any more.
    pub fn forget(&mut self, switch: DatapathId) {
        self.rates.remove(&switch);
    }

    /// A port that is due now. What it is due for has then been taken.
    pub fn take(&mut self, now_us: u64) -> Option<(ConnectPoint, Due)> {
        loop {
            let (due_us, port) = self.due.first().copied().filter(|(due_us, _)| *due_us <= now_us)?;
            self.due.remove(&(due_us, port));
            let Some(mut times) = self.ports.get(&port).copied() else { continue };
            if times.check_us.is_some_and(|check_us| check_us <= now_us) {
                times.check_us = None;
                self.put(port, times);
                return Some((port, Due::Check));
            }
            if !std::mem::take(&mut times.has_turn) {
                let turn_us = self.rates.entry(port.switch).or_default().grant(now_us);
                if turn_us > now_us {
                    times.has_turn = true;
                    self.put_at(port, times, turn_us);
                    continue;
                }
            }
            let is_regular = times.slot_us <= now_us;
            if is_regular {
                times.slot_us = self.slot_behind(port, now_us);
            }
            while self.first_us(&times).is_some_and(|first_us| first_us <= now_us) {
                times.first += 1;
            }
            self.put(port, times);
            return Some((port, Due::Probe { is_regular }));
        }
    }

    /// A probe outside of the schedule. Says whether the switch may have it now.
    pub fn take_extra(&mut self, switch: DatapathId, now_us: u64) -> bool {
        let rate = self.rates.entry(switch).or_default();
        rate.is_free(now_us) && rate.grant(now_us) <= now_us
    }

    /// A quarter of an interval from now, it is checked whether a probe has arrived.
    pub fn check_later(&mut self, port: ConnectPoint, now_us: u64) {
        let Some(mut times) = self.ports.get(&port).copied() else { return };
        self.due.remove(&(times.due_us, port));
        times.check_us = Some(now_us + self.interval_us / 4);
        self.put(port, times);
    }

    fn put(&mut self, port: ConnectPoint, times: Times) {
        let next = [self.first_us(&times), times.check_us, Some(times.slot_us)].into_iter().flatten().min();
        self.put_at(port, times, next.unwrap_or(times.slot_us));
    }

    fn put_at(&mut self, port: ConnectPoint, times: Times, due_us: u64) {
        self.due.insert((due_us, port));
        self.ports.insert(port, Times { due_us, ..times });
    }

    fn first_us(&self, times: &Times) -> Option<u64> {
        let after = [0, self.interval_us / 10, self.interval_us / 3];
        after.get(times.first).map(|after| times.began_us + after)
    }

    /// The next time of this port, behind now. Ports are spread over the interval by a hash of their names.
    fn slot_behind(&self, port: ConnectPoint, now_us: u64) -> u64 {
        // Two odd constants (of the golden ratio, and of FNV) mix the bits of neighbouring numbers.
        let mixed = port.switch.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ u64::from(port.port.0).wrapping_mul(0x0100_0000_01b3_9e37);
        let offset = (mixed >> 16) % self.interval_us;
        let began = now_us - now_us % self.interval_us + offset;
        if began > now_us { began } else { began + self.interval_us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;

    const INTERVAL_US: u64 = 3_000_000;

    fn port(switch: u64, number: u32) -> ConnectPoint {
        ConnectPoint { switch: DatapathId(switch), port: PortNo(number) }
    }

    /// All probes until a time, as (port, time).
    fn probes(schedule: &mut Schedule, until_us: u64) -> Vec<(ConnectPoint, u64)> {
        let mut sent = Vec::new();
        while let Some(now_us) = schedule.next_us().filter(|next_us| *next_us <= until_us) {
            while let Some((port, due)) = schedule.take(now_us) {
                if matches!(due, Due::Probe { .. }) {
                    sent.push((port, now_us));
                }
            }
        }
        sent
    }

    #[test]
    fn a_new_port_is_probed_three_times_soon_and_then_once_an_interval() {
        let mut schedule = Schedule::new(INTERVAL_US);
        schedule.begin(port(1, 1), 50);
        let times: Vec<u64> = probes(&mut schedule, 30_000_000).into_iter().map(|(_, us)| us).collect();
        assert_eq!(times[0], 50);
        assert!(times.contains(&300_050) && times.contains(&1_000_050), "{times:?}");
        let regular: Vec<u64> = times.iter().copied().filter(|us| *us > 3_000_050).collect();
        assert!(regular.windows(2).all(|two| two[1] - two[0] == INTERVAL_US), "{regular:?}");
    }

    #[test]
    fn a_switch_with_many_ports_is_not_flooded_and_no_port_starves() {
        let mut schedule = Schedule::new(INTERVAL_US);
        (1..=500).for_each(|number| schedule.begin(port(1, number), 0));
        let sent = probes(&mut schedule, 20_000_000);
        for window in 0..200 {
            let within = sent.iter().filter(|(_, us)| us / WINDOW_US == window).count();
            assert!(within <= 2 * PROBES_PER_WINDOW as usize, "{within} in window {window}");
        }
        for number in 1..=500 {
            let times: Vec<u64> =
                sent.iter().filter(|(it, _)| *it == port(1, number)).map(|(_, us)| *us).collect();
            assert!(times.first().is_some_and(|us| *us < 1_000_000), "port {number}");
            assert!(
                times.windows(2).all(|two| two[1] - two[0] <= INTERVAL_US + 2 * WINDOW_US),
                "port {number}"
            );
        }
    }

    #[test]
    fn regular_probes_are_spread_over_the_interval() {
        let mut schedule = Schedule::new(INTERVAL_US);
        for switch in 1..=205 {
            (1..=4).for_each(|number| schedule.begin(port(switch, number), 0));
        }
        let sent = probes(&mut schedule, 2 * INTERVAL_US);
        for tenth in 10..20 {
            let within = sent.iter().filter(|(_, us)| us / (INTERVAL_US / 10) == tenth).count();
            assert!((41..=164).contains(&within), "{within} of 820 in tenth {tenth}");
        }
    }
}
