//! How late a loop acts that has 1,000 due times a second: with a poll's time-outs, and with an alarm.
//!
//! `cargo bench -p emulator --bench lateness`. Both take turns of a second, with the same due times, so that whatever else
//! runs on the machine disturbs both. It prints the figures and judges nothing.

#![allow(clippy::unwrap_used, reason = "a bench ends where something is not as it should be")]

use emulator::Random;
use emulator::timing::{Alarm, MonotonicClock};
use mio::{Events, Poll, Token};
use std::time::Duration;

/// How many turns each has.
const TURNS: u64 = 10;
const RELEASES: u32 = 1000;
/// The time between two due times, in microseconds: 1 ms on average.
const GAP_US: std::ops::Range<u32> = 500..1500;

/// Waits until a time, and returns when it woke.
trait Waiter {
    fn wait(&mut self, due: Duration) -> Duration;
}

/// What the turns of a waiter have shown: how late each release was, and the processor time.
#[derive(Default)]
struct Shown {
    lateness: Vec<Duration>,
    cpu: Duration,
}

struct TimeOuts {
    poll: Poll,
    events: Events,
    clock: MonotonicClock,
}

struct Alarms {
    poll: Poll,
    events: Events,
    alarm: Alarm,
}

impl Waiter for TimeOuts {
    fn wait(&mut self, due: Duration) -> Duration {
        loop {
            let now = self.clock.elapsed();
            if now >= due {
                return now;
            }
            self.poll.poll(&mut self.events, Some(due - now)).unwrap();
        }
    }
}

impl Waiter for Alarms {
    fn wait(&mut self, due: Duration) -> Duration {
        while self.alarm.clock().elapsed() < due {
            self.alarm.wait(&mut self.poll, &mut self.events, Some(due), Duration::from_secs(1)).unwrap();
        }
        self.alarm.clock().elapsed()
    }
}

/// One turn. A due time that is over when its turn comes is as late as the loop was.
fn take_turn(waiter: &mut dyn Waiter, clock: MonotonicClock, seed: u64, shown: &mut Shown) {
    let before = cpu_time();
    let mut random = Random::new(seed);
    let mut due = clock.elapsed();
    for _ in 0..RELEASES {
        due += Duration::from_micros(u64::from(GAP_US.start + random.below(GAP_US.end - GAP_US.start)));
        shown.lateness.push(waiter.wait(due) - due);
    }
    shown.cpu += cpu_time() - before;
}

fn cpu_time() -> Duration {
    let clock = rustix::time::ClockId::ThreadCPUTime;
    rustix::time::clock_gettime(clock).try_into().unwrap()
}

fn quantile(sorted: &[Duration], per_mille: usize) -> Duration {
    sorted[(sorted.len() * per_mille / 1000).min(sorted.len() - 1)]
}

fn main() {
    let clock = MonotonicClock::begin();
    let poll = Poll::new().unwrap();
    let alarm = Alarm::new(clock, poll.registry(), Token(0)).unwrap();
    let mut alarms = Alarms { poll, events: Events::with_capacity(8), alarm };
    let mut time_outs = TimeOuts { poll: Poll::new().unwrap(), events: Events::with_capacity(8), clock };
    let (mut of_time_outs, mut of_alarms) = (Shown::default(), Shown::default());
    for seed in 0..TURNS {
        take_turn(&mut time_outs, clock, seed, &mut of_time_outs);
        take_turn(&mut alarms, clock, seed, &mut of_alarms);
    }
    println!("{} releases each, 1,000 a second; lateness", u64::from(RELEASES) * TURNS);
    for (name, Shown { lateness, cpu }) in [("time-outs", &mut of_time_outs), ("alarm", &mut of_alarms)] {
        lateness.sort_unstable();
        let [median, p90, p99] = [500, 900, 990].map(|per_mille| quantile(lateness, per_mille));
        let share = cpu.as_secs_f64() * 100.0 / TURNS as f64;
        println!(
            "{name:10}  median {median:9.1?}  p90 {p90:9.1?}  p99 {p99:9.1?}  processor {share:4.1} % of a core"
        );
    }
    let ratio = |per_mille| {
        let of = |lateness: &[Duration]| quantile(lateness, per_mille).as_secs_f64();
        of(&of_alarms.lateness) / of(&of_time_outs.lateness)
    };
    println!("alarm / time-outs: median {:.3}, p99 {:.3}", ratio(500), ratio(990));
}
