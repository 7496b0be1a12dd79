//! Bare wake-ups: what four of them cost by eventfd and poll, between three threads.
//!
//! ```text
//!   thread A ──> thread K ──> thread S ──> thread K ──> thread A
//! ```
//!
//! In: how many rounds. Out: the time of each. It calls no service.

use std::os::fd::OwnedFd;
use std::thread::scope;
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

/// Nanoseconds of each round of four wake-ups.
///
/// # Errors
/// The system has no descriptors or threads left.
pub fn rounds(count: usize) -> std::io::Result<Vec<u64>> {
    let bells: Vec<OwnedFd> = (0..3).map(|_| eventfd(0, EventfdFlags::empty())).collect::<Result<_, _>>()?;
    let [caller, kernel, service] = &bells[..] else { return Ok(Vec::new()) };
    scope(|scope| {
        scope.spawn(|| relay(count, kernel, &[service, caller]));
        scope.spawn(|| relay(count, service, &[kernel]));
        let mut nanoseconds = Vec::with_capacity(count);
        for _ in 0..count {
            let began = Instant::now();
            ring(kernel)?;
            wait(caller)?;
            nanoseconds.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        Ok(nanoseconds)
    })
}

/// Waits for its own bell and rings the next of these, until all rounds are over.
fn relay(count: usize, own: &OwnedFd, next: &[&OwnedFd]) {
    for turn in 0..count * next.len() {
        if wait(own).and_then(|()| ring(next[turn % next.len()])).is_err() {
            return;
        }
    }
}

fn ring(bell: &OwnedFd) -> std::io::Result<()> {
    Ok(rustix::io::write(bell, &1_u64.to_ne_bytes()).map(drop)?)
}

/// As an app does: poll, then read.
fn wait(bell: &OwnedFd) -> std::io::Result<()> {
    poll(&mut [PollFd::new(bell, PollFlags::IN)], None)?;
    Ok(rustix::io::read(bell, &mut [0_u8; 8]).map(drop)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_wake_ups_come_back_each_round() {
        assert_eq!(rounds(500).unwrap().len(), 500);
    }
}
