//! The meter: judges a run by its releases and the readings of the machine.
//!
//! In: each release, lost frames, and readings. Out: a verdict, at any time. It never reads a clock or the machine.

use std::time::Duration;

use super::delays::{DelayPair, Delays};
use super::second::{Seconds, Value};
use super::thresholds::{self, Limits};
use super::verdict::{Cause, Finding, Validity, Verdict};

/// Something left the emulation: a packet, or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// When it was to leave.
    pub meant: Duration,
    /// When it left.
    pub actual: Duration,
    /// Its delay, if a model gave it one.
    pub delay: Option<DelayPair>,
    /// Whether the base (Open vSwitch) took longer than the target would have.
    pub base_was_slower: bool,
}

/// What the machine did since the reading before, as shares of that time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineReading {
    /// The time since the reading before: about a second, and less at the end of a run.
    pub time: Duration,
    /// The use of all cores: 1 if all were busy.
    pub processor: f64,
    /// The part of all cores' time that the host took away.
    pub steal: f64,
    /// For how much of the time the thread of ours that waited most was ready to run but had no core.
    pub run_queue: f64,
}

/// The sums of one second, or of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    releases: u64,
    late: u64,
    base_slower: u64,
    lost: u64,
    delays: u64,
    shift_s: f64,
    meant_s: f64,
}

/// The meter of one run.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// When the run began. All times of a verdict count from here.
    began: Duration,
    delays: Delays,
    all: Sums,
    /// The second that is not over.
    current: Sums,
    second: u64,
    /// The sum of the times of the readings.
    read: Duration,
    seconds: SecondsByCause,
    /// 0 counts as 1.
    slow_motion: u32,
}

/// For each cause, in which seconds it was present.
#[derive(Clone, Debug, Default)]
struct SecondsByCause {
    mean_shift: Seconds,
    base_slower: Seconds,
    late: Seconds,
    lost: Seconds,
    steal: Seconds,
    run_queue: Seconds,
    processor: Seconds,
}

impl Limits {
    fn judge(self, value: f64) -> Validity {
        match value {
            value if value > self.invalid => Validity::Invalid,
            value if value > self.doubtful => Validity::Doubtful,
            _ => Validity::Valid,
        }
    }
}

impl Meter {
    /// A meter of a run that begins now.
    pub fn beginning_at(now: Duration) -> Self {
        Meter { began: now, ..Meter::default() }
    }

    /// The same for a run in slow motion: a model that is `factor` times slower than the clock. What is late by a millisecond there is late by
    /// less in the time of the model, which the limits are about. So is a wait for a core, or the time that the host took: the model loses the
    /// `factor`th part of it. Seconds stay those of the clock.
    pub fn in_slow_motion(self, factor: u32) -> Self {
        Meter { slow_motion: factor, ..self }
    }

    /// Something was released. A release of an earlier second counts in the current one.
    pub fn on_release(&mut self, release: Release) {
        self.pass_to(release.actual);
        let slow_motion = self.slow_motion.max(1);
        let late = release.actual.saturating_sub(release.meant) / slow_motion > thresholds::LATE;
        let of_model = |pair: DelayPair| DelayPair {
            meant: pair.meant / slow_motion,
            actual: pair.actual / slow_motion,
        };
        let release = Release { delay: release.delay.map(of_model), ..release };
        for sums in [&mut self.all, &mut self.current] {
            sums.releases += 1;
            sums.late += u64::from(late);
            sums.base_slower += u64::from(release.base_was_slower);
            if let Some(delay) = release.delay {
                sums.delays += 1;
                sums.shift_s += delay.actual.as_secs_f64() - delay.meant.as_secs_f64();
                sums.meant_s += delay.meant.as_secs_f64();
            }
        }
        if let Some(delay) = release.delay {
            self.delays.add(delay);
        }
    }

    /// The machine has lost frames that the emulation meant to carry: a full socket or interface.
    pub fn on_lost(&mut self, frames: u64, now: Duration) {
        self.pass_to(now);
        self.all.lost += frames;
        self.current.lost += frames;
    }

    /// What the machine did until now, since the last reading. Readings are about a second apart. One that began before the run does not count.
    pub fn on_reading(&mut self, reading: MachineReading, now: Duration) {
        self.pass_to(now);
        let Some(begins) = now.checked_sub(reading.time).filter(|begins| *begins >= self.began) else {
            return;
        };
        self.read += reading.time;
        // Of two seconds, it is of the one in which the larger part of it is.
        let second = self.since_it_began(begins + reading.time / 2).as_secs();
        let slow_motion = f64::from(self.slow_motion.max(1));
        let SecondsByCause { steal, run_queue, processor, .. } = &mut self.seconds;
        let of = |value| Value { second, value, time: reading.time };
        note(steal, thresholds::STEAL, of(reading.steal / slow_motion));
        note(run_queue, thresholds::RUN_QUEUE, of(reading.run_queue / slow_motion));
        note(processor, thresholds::PROCESSOR, of(reading.processor));
    }

    /// What it says of the run until now.
    pub fn verdict(&self, now: Duration) -> Verdict {
        let mut whole = self.clone();
        whole.close_second();
        let now = self.since_it_began(now);
        let mut findings = whole.of_delays();
        findings.extend(whole.of_releases());
        findings.extend(whole.of_the_machine(now));
        findings.sort_by(|a, b| b.validity.cmp(&a.validity).then(a.cause.cmp(&b.cause)));
        Verdict {
            validity: findings.first().map(|worst| worst.validity).unwrap_or_default(),
            findings,
            seconds: now.as_secs(),
            releases: self.all.releases,
        }
    }

    /// Closes the seconds that are over.
    fn pass_to(&mut self, now: Duration) {
        let second = self.since_it_began(now).as_secs();
        if second > self.second {
            self.close_second();
            self.second = second;
        }
    }

    fn since_it_began(&self, now: Duration) -> Duration {
        now.saturating_sub(self.began)
    }

    fn close_second(&mut self) {
        let sums = std::mem::take(&mut self.current);
        let SecondsByCause { mean_shift, base_slower, late, lost, .. } = &mut self.seconds;
        let of = |value| Value { second: self.second, value, time: Duration::from_secs(1) };
        if sums.delays > 0 {
            note(mean_shift, thresholds::MEAN_SHIFT, of(sums.relative_shift().abs()));
        }
        if sums.releases > 0 || sums.lost > 0 {
            note(base_slower, thresholds::BASE_SLOWER, of(sums.share(sums.base_slower)));
            note(late, thresholds::LATE_SHARE, of(sums.share(sums.late)));
            note(lost, thresholds::LOST, of(sums.share(sums.lost)));
        }
    }

    fn of_delays(&self) -> Vec<Finding> {
        if self.delays.count() < thresholds::DELAYS_MIN {
            return Vec::new();
        }
        let (shift, mean) = self.delays.mean_shift_s();
        let relative = relative_shift(shift, mean);
        let shift =
            Finding { value: relative, ..finding(Cause::MeanShift, relative.abs(), thresholds::MEAN_SHIFT) };
        let distance = finding(Cause::Distance, self.delays.distance(), thresholds::DISTANCE);
        // Where the mean is off, so is the distribution.
        let when = &self.seconds.mean_shift;
        [shift, distance].into_iter().map(|found| found.at(when)).filter(is_bad).collect()
    }

    fn of_releases(&self) -> Vec<Finding> {
        let (all, seconds) = (&self.all, &self.seconds);
        let share = |cause, count, limits| finding(cause, all.share(count), limits);
        [
            share(Cause::BaseSlower, all.base_slower, thresholds::BASE_SLOWER).at(&seconds.base_slower),
            share(Cause::Late, all.late, thresholds::LATE_SHARE).at(&seconds.late),
            share(Cause::Lost, all.lost, thresholds::LOST).at(&seconds.lost),
        ]
        .into_iter()
        .filter(is_bad)
        .collect()
    }

    fn of_the_machine(&self, now: Duration) -> Vec<Finding> {
        if self.read.is_zero() {
            let unread =
                Finding { validity: Validity::Doubtful, ..finding(Cause::Unread, 0.0, thresholds::STEAL) };
            return if now >= thresholds::UNREAD { vec![unread] } else { Vec::new() };
        }
        let seconds = &self.seconds;
        [
            (Cause::Steal, &seconds.steal, thresholds::STEAL),
            (Cause::RunQueue, &seconds.run_queue, thresholds::RUN_QUEUE),
            (Cause::Processor, &seconds.processor, thresholds::PROCESSOR),
        ]
        .into_iter()
        .map(|(cause, seconds, limits)| self.of_seconds(cause, seconds, limits))
        .filter(is_bad)
        .collect()
    }

    /// A run is as bad as those of its seconds that are more than a tenth of it. Fewer make it doubtful.
    fn of_seconds(&self, cause: Cause, seconds: &Seconds, limits: Limits) -> Finding {
        let many = self.read.mul_f64(thresholds::BAD_SECONDS);
        let validity = match seconds {
            seconds if seconds.invalid > many => Validity::Invalid,
            seconds if seconds.doubtful > 0 => Validity::Doubtful,
            _ => Validity::Valid,
        };
        Finding { validity, ..finding(cause, seconds.worst, limits) }.at(seconds)
    }
}

impl Sums {
    /// A count as a share of the releases.
    fn share(&self, count: u64) -> f64 {
        count as f64 / self.releases.max(1) as f64
    }

    fn relative_shift(&self) -> f64 {
        let delays = self.delays.max(1) as f64;
        relative_shift(self.shift_s / delays, self.meant_s / delays)
    }
}

/// A difference of means as a share of the meant one. Differences that a loop cannot avoid are none.
fn relative_shift(shift_s: f64, mean_s: f64) -> f64 {
    if shift_s.abs() <= thresholds::MEAN_SHIFT_FLOOR.as_secs_f64() {
        return 0.0;
    }
    // Without any meant delay, each delay is infinitely wrong, but a number must be printed.
    shift_s / mean_s.max(thresholds::MEAN_SHIFT_FLOOR.as_secs_f64())
}

fn note(seconds: &mut Seconds, limits: Limits, of: Value) {
    let validity = limits.judge(of.value);
    seconds.note(of, validity >= Validity::Doubtful, validity == Validity::Invalid);
}

fn finding(cause: Cause, value: f64, limits: Limits) -> Finding {
    let validity = limits.judge(value);
    Finding { cause, validity, value, limit: limits.doubtful, when: Vec::new(), seconds: 0 }
}

fn is_bad(found: &Finding) -> bool {
    found.validity > Validity::Valid
}

impl Finding {
    fn at(self, seconds: &Seconds) -> Finding {
        Finding { when: seconds.spans(), seconds: seconds.doubtful, ..self }
    }
}

#[cfg(test)]
mod tests;
