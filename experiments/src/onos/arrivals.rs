//! When flow mods reach the emulated switches: the first and the last one of a burst, and the last barrier that a switch answers.
//!
//! ```text
//!   counters of the emulation, read again and again ──> first change, last change, number
//! ```
//!
//! In: a running network. Out: times and a number. A time is late by at most [`LOOK`] and what the machine's scheduler adds.

use super::clock::{between_ms, now_ns};
use emulator::Handle;
use serde::Serialize;
use std::time::Duration;

/// Between two looks at the counter.
const LOOK: Duration = Duration::from_micros(50);

/// A burst is over if nothing has arrived for so long.
const QUIET_MS: f64 = 60.0;

/// How long the first flow mod may take.
const PATIENCE_MS: f64 = 20_000.0;

/// A burst of flow mods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Burst {
    /// From the begin to the first one.
    pub first_ms: f64,
    /// From the begin to the last one.
    pub last_ms: f64,
    /// From the begin to the last answer to a barrier.
    pub confirmed_ms: f64,
    /// How many there were.
    pub flow_mods: u64,
}

/// When flow mods arrived, by the clock of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The first one.
    pub first_ns: u64,
    /// The last one.
    pub last_ns: u64,
    /// The last answer to a barrier.
    pub confirmed_ns: u64,
    /// How many there were.
    pub flow_mods: u64,
}

/// Looks at the flow mods that arrive after a begin.
#[derive(Debug)]
pub struct Arrivals<'n> {
    network: &'n Handle,
    before: u64,
    last: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    barriers: u64,
    confirmed_ns: u64,
}

impl<'n> Arrivals<'n> {
    /// Counts from now on.
    pub fn begin(network: &'n Handle) -> Arrivals<'n> {
        let counters = network.counters();
        let (before, barriers) = (counters.flow_mods, counters.barriers);
        Arrivals { network, before, last: before, first_ns: None, last_ns: 0, barriers, confirmed_ns: 0 }
    }

    /// Looks once.
    fn look(&mut self, now_ns: u64) {
        let counters = self.network.counters();
        if counters.flow_mods != self.last {
            (self.last, self.last_ns) = (counters.flow_mods, now_ns);
            self.first_ns.get_or_insert(now_ns);
        }
        if counters.barriers != self.barriers {
            (self.barriers, self.confirmed_ns) = (counters.barriers, now_ns);
        }
    }

    /// Waits until a first one has come.
    ///
    /// # Errors
    /// None came.
    pub fn wait_for_first(&mut self) -> Result<(), String> {
        let began_ns = now_ns();
        while self.first_ns.is_none() {
            let now_ns = now_ns();
            self.look(now_ns);
            if between_ms(began_ns, now_ns) > PATIENCE_MS {
                return Err(format!("no flow mod arrived within {PATIENCE_MS} ms"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Waits until so many have arrived, and no more come.
    ///
    /// # Errors
    /// Fewer came in time.
    pub fn wait_for(&mut self, flow_mods: u64) -> Result<Times, String> {
        let began_ns = now_ns();
        loop {
            let times = self.wait()?;
            if times.flow_mods >= flow_mods {
                return Ok(times);
            }
            if between_ms(began_ns, now_ns()) > PATIENCE_MS {
                return Err(format!(
                    "{} flow mods arrived in {PATIENCE_MS} ms, not {flow_mods}",
                    times.flow_mods
                ));
            }
        }
    }

    /// Waits until nothing arrives any more. It can be called again, for what comes later.
    ///
    /// # Errors
    /// None came.
    pub fn wait(&mut self) -> Result<Times, String> {
        self.wait_for_first()?;
        loop {
            let now_ns = now_ns();
            self.look(now_ns);
            if between_ms(self.last_ns.max(self.confirmed_ns), now_ns) > QUIET_MS {
                break;
            }
            std::thread::sleep(LOOK);
        }
        let first_ns = self.first_ns.unwrap_or(self.last_ns);
        let Arrivals { last_ns, confirmed_ns, .. } = *self;
        Ok(Times { first_ns, last_ns, confirmed_ns, flow_mods: self.last - self.before })
    }
}

impl Times {
    /// The burst, with times that count from a begin.
    pub fn since(&self, began_ns: u64) -> Burst {
        let after = |at_ns| between_ms(began_ns, at_ns);
        Burst {
            first_ms: after(self.first_ns),
            last_ms: after(self.last_ns),
            confirmed_ms: after(self.confirmed_ns),
            flow_mods: self.flow_mods,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_counts_from_its_begin() {
        let times = Times { first_ns: 3_000_000, last_ns: 9_000_000, confirmed_ns: 11_000_000, flow_mods: 4 };
        let burst = Burst { first_ms: 2.0, last_ms: 8.0, confirmed_ms: 10.0, flow_mods: 4 };
        assert_eq!(times.since(1_000_000), burst);
    }
}
