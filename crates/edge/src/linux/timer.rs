//! The clock and the timer of the loop: CLOCK_MONOTONIC in nanoseconds, and a timerfd.
//!
//! In: a due time. Out: the time now, and a descriptor that is readable when the time has come. It decides nothing.

use super::program::{Trouble, io_trouble};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

const SECOND_NS: u64 = 1_000_000_000;

/// The time now.
pub(super) fn now_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    // The monotonic clock begins at 0.
    let (seconds, ns) = (u64::try_from(tv_sec).unwrap_or(0), u64::try_from(tv_nsec).unwrap_or(0));
    seconds.saturating_mul(SECOND_NS).saturating_add(ns)
}

/// A timerfd.
#[derive(Debug)]
pub(super) struct Timer {
    timer: OwnedFd,
}

impl Timer {
    pub(super) fn new() -> Result<Self, Trouble> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(io_trouble("making a timer"))?;
        Ok(Timer { timer })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Sets it to a time. Setting it clears the last expiry, so that nobody reads it.
    pub(super) fn set(&self, due_ns: u64) -> Result<(), Trouble> {
        let seconds = i64::try_from(due_ns / SECOND_NS).unwrap_or(i64::MAX);
        let at = Timespec { tv_sec: seconds, tv_nsec: (due_ns % SECOND_NS) as _ };
        let never_again = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Itimerspec { it_interval: never_again, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value)
            .map(drop)
            .map_err(io_trouble("setting a timer"))
    }
}
