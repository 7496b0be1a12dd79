//! What is measured of a run: whether the machine kept up, and the delays each way.
//!
//! In: releases, readings of the machine, frames that no tap could read. Out: a verdict and distributions of delays. The run that is judged
//! begins with the first session, since a switch that is set up beside the proxy takes the machine's time. Delays are in the time of the target:
//! in slow motion, they are scaled back. It reads no clock.

use emulator::validity::{DelayPair, Delays, MachineReading, Meter, Release as Released, Verdict};
use std::time::Duration;

use crate::commands::{Release, Way};

/// What is measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// `None`: no session has begun yet.
    meter: Option<Meter>,
    /// When the present session began.
    session_since: Option<Duration>,
    ingress: Delays,
    egress: Delays,
    /// The own delays of the switch, in the time of the clock.
    base: Delays,
    slow_motion: u32,
}

impl Measured {
    pub(super) fn new(slow_motion: u32) -> Self {
        Measured { slow_motion, ..Measured::default() }
    }

    /// A session is open or not.
    pub(super) fn set_session(&mut self, is_open: bool, now: Duration) {
        if !is_open {
            self.session_since = None;
        } else if self.session_since.is_none() {
            self.session_since = Some(now);
            self.meter.get_or_insert_with(|| Meter::beginning_at(now).in_slow_motion(self.slow_motion));
        }
    }

    /// A packet-in, or a packet on its way out, has left.
    pub(super) fn on_release(&mut self, release: Release, actual: Duration) {
        let Release { way, since_ns, meant_ns, base_ns, base_was_slower } = release;
        let (since, meant) = (Duration::from_nanos(since_ns), Duration::from_nanos(meant_ns));
        let delay = DelayPair { meant: meant.saturating_sub(since), actual: actual.saturating_sub(since) };
        if let Some(meter) = &mut self.meter {
            meter.on_release(Released { meant, actual, delay: Some(delay), base_was_slower });
        }
        if let Some(own) = base_ns.map(Duration::from_nanos) {
            self.base.add(DelayPair { meant: own, actual: own });
        }
        let slow_motion = self.slow_motion.max(1);
        let of_target = DelayPair { meant: delay.meant / slow_motion, actual: delay.actual / slow_motion };
        match way {
            Way::Ingress => self.ingress.add(of_target),
            Way::Egress => self.egress.add(of_target),
        }
    }

    /// The machine was read. What it does without a session does not count.
    pub(super) fn on_reading(&mut self, reading: MachineReading, now: Duration) {
        let is_within = self.session_since.is_some_and(|since| since + reading.time <= now);
        if let Some(meter) = self.meter.as_mut().filter(|_| is_within) {
            meter.on_reading(reading, now);
        }
    }

    /// The kernel has dropped frames at a tap.
    pub(super) fn on_dropped(&mut self, frames: u64, now: Duration) {
        if let Some(meter) = self.meter.as_mut().filter(|_| frames > 0 && self.session_since.is_some()) {
            meter.on_lost(frames, now);
        }
    }

    /// `None`: there was no session that could be judged.
    pub(super) fn verdict(&self, now: Duration) -> Option<Verdict> {
        self.meter.as_ref().map(|meter| meter.verdict(now))
    }

    pub(super) fn is_in_session(&self) -> bool {
        self.session_since.is_some()
    }

    pub(super) fn base(&self) -> &Delays {
        &self.base
    }

    pub(super) fn delays(&self, way: Way) -> &Delays {
        match way {
            Way::Ingress => &self.ingress,
            Way::Egress => &self.egress,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::validity::Validity;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn busy() -> MachineReading {
        MachineReading { time: s(1), processor: 1.0, steal: 0.0, run_queue: 0.5 }
    }

    #[test]
    fn what_the_machine_does_without_a_session_does_not_count() {
        let mut measured = Measured::new(1);
        measured.on_reading(busy(), s(1));
        measured.on_dropped(9, s(1));
        measured.set_session(true, s(2));
        measured.on_reading(busy(), Duration::from_millis(2900));
        measured.on_reading(MachineReading { processor: 0.1, run_queue: 0.0, ..busy() }, s(3));
        measured.set_session(false, s(4));
        measured.on_reading(busy(), s(5));
        let verdict = measured.verdict(s(5)).unwrap();
        assert_eq!((verdict.validity, verdict.seconds), (Validity::Valid, 3), "{verdict}");
        measured.set_session(true, s(6));
        measured.on_reading(busy(), s(7));
        assert_eq!(measured.verdict(s(7)).unwrap().validity, Validity::Invalid);
    }

    #[test]
    fn delays_are_those_of_the_target() {
        let mut measured = Measured::new(10);
        measured.set_session(true, s(0));
        let release = Release {
            way: Way::Egress,
            since_ns: 1_000_000_000,
            meant_ns: 3_000_000_000,
            base_ns: Some(7_000_000),
            base_was_slower: false,
        };
        measured.on_release(release, s(4));
        let pair = measured.delays(Way::Egress).quantile(0.5).unwrap();
        let near =
            |found: Duration, ms: u64| found.abs_diff(Duration::from_millis(ms)) < Duration::from_millis(5);
        assert!(near(pair.meant, 200) && near(pair.actual, 300), "{pair:?}");
        assert_eq!((measured.delays(Way::Ingress).count(), measured.base().count()), (0, 1));
        assert!(near(measured.base().quantile(0.5).unwrap().actual, 7), "that of the switch is not slowed");
    }
}
