//! When the first compilation may begin after a start.
//!
//! In: what is known yet. Out: a time. After a restart the switches still have the rules of all intents. An intent compiled with half of the
//! network would get other rules, and would move twice.

/// The longest time that a start waits for the network to be known.
const SETTLE_MAX_MS: u64 = 10_000;

/// What is known since the start.
#[derive(Debug)]
pub(crate) struct Settle {
    /// How long the network must not change before it counts as known.
    quiet_ms: u64,
    started_ms: u64,
    changed_ms: u64,
    is_view_complete: bool,
    is_loaded: bool,
    is_over: bool,
}

impl Settle {
    pub(crate) fn new(quiet_ms: u64, now_ms: u64) -> Settle {
        Settle {
            quiet_ms,
            started_ms: now_ms,
            changed_ms: now_ms,
            is_view_complete: false,
            is_loaded: false,
            is_over: quiet_ms == 0,
        }
    }

    pub(crate) fn on_view(&mut self, is_complete: bool, now_ms: u64) {
        if is_complete && !self.is_view_complete {
            self.changed_ms = now_ms;
        }
        self.is_view_complete = is_complete;
    }

    pub(crate) fn on_change(&mut self, now_ms: u64) {
        self.changed_ms = now_ms;
    }

    /// The intents of the store are known. Without any, there are no rules of theirs either.
    pub(crate) fn on_loaded(&mut self, has_intents: bool) {
        self.is_loaded = true;
        self.is_over |= !has_intents;
    }

    pub(crate) fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// The time from which on intents are compiled. It is in the past once the start is over.
    pub(crate) fn ready_at_ms(&self) -> u64 {
        let latest_ms = self.started_ms + SETTLE_MAX_MS;
        if self.is_over {
            return 0;
        }
        match self.is_view_complete && self.is_loaded {
            true => (self.changed_ms + self.quiet_ms).min(latest_ms),
            false => latest_ms,
        }
    }

    /// Remembers that the start is over.
    pub(crate) fn finish(&mut self) {
        self.is_over = true;
    }
}
