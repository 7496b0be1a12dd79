//! Counts the attacker's frames that arrived at hosts: how many it may send, and how many it may not.
//!
//! ```text
//!   emulator's taps ─┐
//!                    ├──frames──> misbehaving::marks ──> Arrivals ──> Arrived
//!   Hosts of an OVS ─┘
//! ```
//!
//! A flood that is not read in time is counted only in part: the count is never too large. It judges nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use emulator::run::Captured;
use misbehaving::frames::{FrameKind, kind_of_frame};

/// How long a tap is waited for at once. A network that ends ends the wait.
const LOOK: Duration = Duration::from_secs(1);

/// The frames that have arrived so far.
#[derive(Debug, Default)]
pub struct Arrivals {
    within: AtomicU64,
    beyond: AtomicU64,
}

/// The same as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Frames that the attacker may send.
    pub within: u64,
    /// Frames that it may not send.
    pub beyond: u64,
}

impl Arrivals {
    /// A frame has come to a host.
    pub fn note(&self, frame: &[u8]) {
        match kind_of_frame(frame) {
            Some(FrameKind::Granted) => self.within.fetch_add(1, Ordering::Relaxed),
            Some(FrameKind::NotGranted) => self.beyond.fetch_add(1, Ordering::Relaxed),
            None => return,
        };
    }

    /// Their number.
    pub fn so_far(&self) -> Arrived {
        let now = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Arrived { within: now(&self.within), beyond: now(&self.beyond) }
    }

    /// Notes what comes to taps, on a thread for each, until their network ends.
    ///
    /// # Errors
    /// There is no thread.
    pub fn listen(self: &Arc<Self>, taps: Vec<Captured>) -> std::io::Result<()> {
        for tap in taps {
            let arrivals = Arc::clone(self);
            std::thread::Builder::new().name("tap".into()).spawn(move || arrivals.note_all(&tap))?;
        }
        Ok(())
    }

    fn note_all(&self, tap: &Captured) {
        loop {
            match tap.next_within(LOOK) {
                Ok((_, frame)) => self.note(&frame),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use misbehaving::frames::{BEYOND, FRAME};

    #[test]
    fn the_attackers_frames_are_counted_and_others_are_not() {
        let arrivals = Arrivals::default();
        [&FRAME[..], &FRAME, &BEYOND, &[0; 60], &[]].into_iter().for_each(|frame| arrivals.note(frame));
        assert_eq!(arrivals.so_far(), Arrived { within: 2, beyond: 1 });
    }
}
