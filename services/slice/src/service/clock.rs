//! The time of a slice. It is read once for many events: four readings for each took a tenth of the processor time of a busy slice.
//!
//! In: that time may have passed, or that an event of the node is served. Out: the time. It never steps back while the process runs.

use std::time::Instant;

/// Events of the node, each some microseconds, for which the time is read once.
const EVENTS_PER_READING: u32 = 32;

/// The time as it was read last.
pub(super) struct Clock {
    began: Instant,
    /// The wall clock at that time, in milliseconds since 1970. Rules keep their times over a restart.
    began_ms: u64,
    /// The time, in milliseconds since 1970.
    pub(super) now_ms: u64,
    /// How many events have been served since. 0: the time is read before the next one.
    events: u32,
}

impl Clock {
    /// A clock that begins at this wall clock, in milliseconds since 1970.
    pub(super) fn new(began_ms: u64) -> Clock {
        Clock { began: Instant::now(), began_ms, now_ms: began_ms, events: 0 }
    }

    /// Reads the time, because some may have passed.
    pub(super) fn read(&mut self) {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.now_ms = self.began_ms.saturating_add(passed);
        self.events = 0;
    }

    /// Reads the time before the first event after [`Clock::read`], which follows each batch of events, and then now and then.
    pub(super) fn read_for_event(&mut self) {
        if self.events == 0 {
            self.read();
        }
        self.events = (self.events + 1) % EVENTS_PER_READING;
    }
}
