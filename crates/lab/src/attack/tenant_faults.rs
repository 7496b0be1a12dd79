//! What an attack of a tenant left wrong, and whether only a machine that stands still can be the reason.
//!
//! ```text
//!   Pulse: how long this process did not run ──┐
//!   Fault: what is wrong, and how it was seen ──┴──> is it tried again?
//! ```
//!
//! In: faults. Out: their sentences, and whether the attack may be tried again. A fault that time does not explain is never tried again: then a rare fault of
//! the node would be taken for one of the machine.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A machine that did not run this process for so long stood still. Sessions and pings of a node can end in such a time.
const STOOD_STILL: Duration = Duration::from_secs(2);

/// How often the pulse beats.
const BEAT: Duration = Duration::from_millis(50);

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The node did what it must not do.
    Verdict(String),
    /// Something took longer than it may. So nothing is known of the node.
    Late(String),
    /// A packet or a session was lost. That is a fault of the node, unless the machine stood still.
    Lost(String),
}

impl Fault {
    /// Whether a machine that did not run for so long explains it.
    fn is_of_machine(&self, pause: Duration) -> bool {
        match self {
            Fault::Verdict(_) => false,
            Fault::Late(_) => true,
            Fault::Lost(_) => pause >= STOOD_STILL,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fault::Verdict(what) | Fault::Late(what) | Fault::Lost(what)) = self;
        f.write_str(what)
    }
}

/// Whether the attack says nothing of the node, so that it is tried again. `pause`: how long this process did not run meanwhile.
pub(super) fn is_tried_again(faults: &[Fault], pause: Duration) -> bool {
    !faults.is_empty() && faults.iter().all(|fault| fault.is_of_machine(pause))
}

/// A thread that notes how long this process did not run. It ends with its owner.
pub(super) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Begins. Without a thread, no pause is seen, and no fault is excused by one.
    pub fn begin() -> Pulse {
        let longest = Arc::new(AtomicU64::new(0));
        let noted = Arc::downgrade(&longest);
        let beat = move || {
            let mut last = Instant::now();
            loop {
                std::thread::sleep(BEAT);
                let Some(longest) = noted.upgrade() else { return };
                let pause = last.elapsed().saturating_sub(BEAT);
                longest.fetch_max(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
                last = Instant::now();
            }
        };
        let _without = std::thread::Builder::new().name("pulse".to_owned()).spawn(beat);
        Pulse(longest)
    }

    /// The longest pause since the last call.
    pub fn take(&self) -> Duration {
        Duration::from_millis(self.0.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_time_explains_is_tried_again() {
        let check = |faults: &[fn(String) -> Fault], pause_s: u64, expected: bool| {
            let faults: Vec<Fault> = faults.iter().map(|of| of(String::new())).collect();
            assert_eq!(is_tried_again(&faults, Duration::from_secs(pause_s)), expected, "{faults:?}");
        };
        check(&[], 9, false);
        check(&[Fault::Late], 0, true);
        check(&[Fault::Late, Fault::Lost], 0, false);
        check(&[Fault::Late, Fault::Lost], 2, true);
        check(&[Fault::Verdict], 9, false);
        check(&[Fault::Late, Fault::Verdict], 9, false);
    }
}
