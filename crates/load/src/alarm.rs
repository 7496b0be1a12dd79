//! A timer that ends a poll at a time of fewer than a whole millisecond.
//!
//! In: how long. Out: an event at the poll. A poll alone waits whole milliseconds, and a loop that waits for less takes a processor away from
//! the programs that are measured.

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// The token of its events. No switch has it.
pub(crate) const ALARM: Token = Token(usize::MAX);

/// The timer.
#[derive(Debug)]
pub(crate) struct Alarm(OwnedFd);

impl Alarm {
    /// A timer that is not set.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub(crate) fn new(registry: &Registry) -> io::Result<Alarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&fd.as_raw_fd()), ALARM, Interest::READABLE)?;
        Ok(Alarm(fd))
    }

    /// Sets it, in place of the time before.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn set(&self, after: Duration) -> io::Result<()> {
        let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
        // 0 would turn it off.
        let it_value = Timespec::try_from(after.max(Duration::from_nanos(1))).unwrap_or(no_time);
        let once = Itimerspec { it_interval: no_time, it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll};
    use std::time::Instant;

    #[test]
    fn it_ends_a_poll_each_time_that_it_is_set() {
        let mut poll = Poll::new().unwrap();
        let alarm = Alarm::new(poll.registry()).unwrap();
        let mut events = Events::with_capacity(4);
        for after_us in [300, 0, 700] {
            let (set, after) = (Instant::now(), Duration::from_micros(after_us));
            alarm.set(after).unwrap();
            poll.poll(&mut events, Some(Duration::from_secs(60))).unwrap();
            assert!(events.iter().all(|event| event.token() == ALARM) && !events.is_empty());
            assert!(set.elapsed() >= after);
            poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
            assert!(events.is_empty(), "once");
        }
    }
}
