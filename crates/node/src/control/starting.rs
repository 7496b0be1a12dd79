//! Starts the workers of a kernel process. Each is a thread, on its own core if there are enough.
//!
//! In: the configuration and what workers share. Out: the sender and the thread of each worker.

use super::super::call_tracker::CallTracker;
use super::super::messages::{ControlSender, WorkerSender};
use super::super::worker::{WAKER_TOKEN, Worker, WorkerSetup};
use super::Threads;
use config::Config;
use kernel::Claims;
use mio::{Poll, Waker};
use ring::Board;
use southbound::{Roster, SouthboundConfig};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// A line to each worker, and its thread, by number.
pub(super) fn start_workers(
    config: &Config,
    southbound: &SouthboundConfig,
    roster: &Arc<Roster>,
    control: &ControlSender,
    epoch: Instant,
    board: &Option<Arc<Board>>,
    claims: &Arc<Claims>,
) -> io::Result<(Vec<WorkerSender>, Threads)> {
    let mut polls = Vec::new();
    let mut lines = Vec::new();
    for _ in 0..config.southbound.workers {
        let poll = Poll::new()?;
        let (line, inbox) = WorkerSender::new(Arc::new(Waker::new(poll.registry(), WAKER_TOKEN)?));
        polls.push((poll, inbox));
        lines.push(line);
    }
    let mut threads = Vec::new();
    for (number, (poll, inbox)) in polls.into_iter().enumerate() {
        let (southbound, roster, control, peers) =
            (southbound.clone(), roster.clone(), control.clone(), lines.clone());
        let (limits, claims) = (config.limits, claims.clone());
        let missing_services = config.missing_services();
        let calls = CallTracker::of_worker(board.clone(), number);
        let seed = drawn_seed()?;
        let body = move || {
            pin(number);
            let setup = WorkerSetup {
                number,
                poll,
                southbound,
                roster,
                inbox,
                control,
                peers,
                epoch,
                limits,
                calls,
                seed,
                missing_services,
                claims,
            };
            Worker::new(setup)?.run()
        };
        threads.push(std::thread::Builder::new().name(format!("worker-{number}")).spawn(body)?);
    }
    Ok((lines, threads))
}

/// A number that no app can know, of the system's randomness.
fn drawn_seed() -> io::Result<u64> {
    let mut random = [0; 8];
    let drawn = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    if drawn < random.len() {
        return Err(io::Error::other("the system provides no random numbers"));
    }
    Ok(u64::from_ne_bytes(random))
}

/// Keeps a worker on one core, so that its sessions stay in that core's caches. A machine with fewer cores than workers shares them out.
fn pin(number: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let cores: Vec<_> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    // With one core there is nothing to choose.
    if cores.len() < 2 {
        return;
    }
    let mut own = CpuSet::new();
    own.set(cores[number % cores.len()]);
    if let Err(error) = sched_setaffinity(None, &own) {
        tracing::debug!(worker = number, "the worker is not pinned to a core: {error}");
    }
}
