//! Waits for events of a poll, or until a due time, to a few microseconds.
//!
//! In: a poll, and the due time. Out: the poll's events. It acts on the decisions of [`SpinBudget`]: it sets a timerfd
//! to an absolute time of CLOCK_MONOTONIC, polls, and spins. It never decides what is due.

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use rustix::fd::AsRawFd;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::time::Duration;

use super::clock::MonotonicClock;
use super::spin::{SpinBudget, Wait};

/// A timer in a poll.
#[derive(Debug)]
pub struct Alarm {
    clock: MonotonicClock,
    timer: OwnedFd,
    token: Token,
    budget: SpinBudget,
    /// The time to which the timer was set last, if it may still be ahead.
    set_to: Option<Duration>,
}

impl Alarm {
    /// A timer that is registered under this token. Times are those of the clock.
    ///
    /// # Errors
    ///
    /// The operating system gives no descriptor.
    pub fn new(clock: MonotonicClock, registry: &Registry, token: Token) -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // The poll reports each expiry once (it is edge-triggered), and setting the timer clears the last one. So
        // nobody reads the descriptor.
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Alarm { clock, timer, token, budget: SpinBudget::default(), set_to: None })
    }

    /// The clock of its times.
    pub fn clock(&self) -> MonotonicClock {
        self.clock
    }

    /// Polls until something happens, until the due time, or for the patience. Without a due time, the wait is as
    /// inexact as a time-out of the poll. The events may contain the timer's own token, which means nothing. What
    /// arrives while it spins is seen at the due time, at most [`SPIN`](super::SPIN) later.
    ///
    /// # Errors
    ///
    /// The poll or the timer fails. A signal is no error: there are no events then.
    pub fn wait(
        &mut self,
        poll: &mut Poll,
        events: &mut Events,
        due: Option<Duration>,
        patience: Duration,
    ) -> io::Result<()> {
        let Some(due) = due.filter(|_| !patience.is_zero()) else {
            return interruptible(poll, events, patience);
        };
        let until = self.clock.elapsed().saturating_add(patience);
        loop {
            let now = self.clock.elapsed();
            match self.budget.next_wait(now, due) {
                Wait::Over => return interruptible(poll, events, Duration::ZERO),
                Wait::Sleep { until: at } if at >= until => {
                    return interruptible(poll, events, until.saturating_sub(now));
                }
                Wait::Sleep { until: at } => {
                    self.set(at)?;
                    interruptible(poll, events, until.saturating_sub(now))?;
                    if !self.is_alone(events) {
                        return Ok(());
                    }
                }
                Wait::Spin { until } => {
                    self.spin(now, until);
                    return interruptible(poll, events, Duration::ZERO);
                }
            }
        }
    }

    /// Sets the timer, unless it is set to this time already.
    fn set(&mut self, time: Duration) -> io::Result<()> {
        if self.set_to == Some(time) {
            return Ok(());
        }
        let reading = self.clock.reading_at(time);
        let never_again = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec::try_from(reading).map_err(io::Error::other)?;
        let timer = Itimerspec { it_interval: never_again, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &timer)?;
        self.set_to = Some(time);
        Ok(())
    }

    /// Whether the timer has gone off and nothing else has happened.
    fn is_alone(&mut self, events: &Events) -> bool {
        let mut rang = false;
        let alone = events.iter().all(|event| {
            rang |= event.token() == self.token;
            event.token() == self.token
        });
        if rang {
            self.set_to = None;
        }
        rang && alone
    }

    fn spin(&mut self, from: Duration, until: Duration) {
        let mut now = from;
        while now < until {
            std::hint::spin_loop();
            now = self.clock.elapsed();
        }
        // The thread may have been suspended meanwhile, which is not its use of the core.
        self.budget.spent(from, until);
    }
}

/// Polls. If a signal interrupts it, there are no events.
fn interruptible(poll: &mut Poll, events: &mut Events, patience: Duration) -> io::Result<()> {
    match poll.poll(events, Some(patience)) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::Waker;

    const TIMER: Token = Token(7);
    const WAKER: Token = Token(8);
    /// Long enough that a test that waits for it is seen to hang.
    const LONG: Duration = Duration::from_secs(600);

    fn parts() -> (Poll, Events, Alarm) {
        let poll = Poll::new().unwrap();
        let alarm = Alarm::new(MonotonicClock::begin(), poll.registry(), TIMER).unwrap();
        (poll, Events::with_capacity(8), alarm)
    }

    #[test]
    fn it_never_ends_before_the_due_time() {
        let (mut poll, mut events, mut alarm) = parts();
        for step_us in [1, 30, 49, 50, 51, 70, 300, 1000, 2500, 7000] {
            let due = alarm.clock().elapsed() + Duration::from_micros(step_us);
            alarm.wait(&mut poll, &mut events, Some(due), LONG).unwrap();
            assert!(alarm.clock().elapsed() >= due, "{step_us}");
        }
    }

    #[test]
    fn something_else_ends_it_early() {
        let (mut poll, mut events, mut alarm) = parts();
        let waker = Waker::new(poll.registry(), WAKER).unwrap();
        waker.wake().unwrap();
        alarm.wait(&mut poll, &mut events, Some(LONG), LONG).unwrap();
        assert!(events.iter().any(|event| event.token() == WAKER));
        assert!(alarm.clock().elapsed() < LONG);
    }

    #[test]
    fn an_earlier_due_time_replaces_a_later_one() {
        let (mut poll, mut events, mut alarm) = parts();
        let waker = Waker::new(poll.registry(), WAKER).unwrap();
        waker.wake().unwrap();
        alarm.wait(&mut poll, &mut events, Some(LONG), LONG).unwrap();
        let due = alarm.clock().elapsed() + Duration::from_millis(2);
        alarm.wait(&mut poll, &mut events, Some(due), LONG).unwrap();
        assert!((due..LONG).contains(&alarm.clock().elapsed()));
    }

    #[test]
    fn without_a_due_time_the_patience_counts() {
        let (mut poll, mut events, mut alarm) = parts();
        let patience = Duration::from_millis(3);
        alarm.wait(&mut poll, &mut events, None, patience).unwrap();
        let waited = alarm.clock().elapsed();
        alarm.wait(&mut poll, &mut events, Some(LONG), patience).unwrap();
        assert!(waited >= patience && alarm.clock().elapsed() >= 2 * patience);
        alarm.wait(&mut poll, &mut events, Some(LONG), Duration::ZERO).unwrap();
        assert!(events.is_empty());
    }
}
