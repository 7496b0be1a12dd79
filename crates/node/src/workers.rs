//! The workers, as the control thread sees them: a sender and a thread for each.
//!
//! In: the configuration, then messages for workers. Out: started threads, delivered messages, whether each worker makes progress, and how
//! a thread ended. It never waits for a worker that has not ended.

use super::call_tracker::CallTracker;
use super::fatal::Fatal;
use super::messages::{ControlSender, ToWorker, WorkerSender};
use super::pending_messages::PendingMessages;
use super::worker::{WAKER_TOKEN, Worker, WorkerSetup};
use config::Config;
use kernel::Claims;
use mio::net::TcpStream;
use mio::{Poll, Waker};
use ring::Board;
use southbound::{Roster, SouthboundConfig};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long workers may take to end their sessions.
const GOODBYE: Duration = Duration::from_secs(2);

/// What all workers use.
pub struct SharedByWorkers {
    pub roster: Arc<Roster>,
    pub control: ControlSender,
    pub epoch: Instant,
    pub board: Option<Arc<Board>>,
    pub claims: Arc<Claims>,
}

/// The workers, by number.
pub struct Workers {
    senders: Vec<WorkerSender>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    pending: PendingMessages<ToWorker>,
    /// The worker that gets the next connection.
    next: usize,
    turns_seen: Vec<u64>,
    ended: usize,
    /// Since when they are to end.
    ending: Option<Instant>,
}

impl Workers {
    /// Starts a thread for each worker, on its own core if there are enough.
    pub fn start(
        config: &Config,
        southbound: &SouthboundConfig,
        shared: &SharedByWorkers,
    ) -> Result<Workers, Fatal> {
        Self::threads(config, southbound, shared).map_err(Fatal::of_system)
    }

    fn threads(
        config: &Config,
        southbound: &SouthboundConfig,
        shared: &SharedByWorkers,
    ) -> io::Result<Workers> {
        let mut polls = Vec::new();
        let mut senders = Vec::new();
        for _ in 0..config.southbound.workers {
            let poll = Poll::new()?;
            let (sender, inbox) = WorkerSender::new(Arc::new(Waker::new(poll.registry(), WAKER_TOKEN)?));
            polls.push((poll, inbox));
            senders.push(sender);
        }
        let mut threads = Vec::new();
        for (number, (poll, inbox)) in polls.into_iter().enumerate() {
            let setup = WorkerSetup {
                number,
                poll,
                southbound: southbound.clone(),
                roster: shared.roster.clone(),
                inbox,
                control: shared.control.clone(),
                peers: senders.clone(),
                epoch: shared.epoch,
                limits: config.limits,
                calls: CallTracker::of_worker(shared.board.clone(), number),
                seed: drawn_seed()?,
                missing_services: config.missing_services(),
                claims: shared.claims.clone(),
            };
            let body = move || {
                pin(number);
                Worker::new(setup)?.run()
            };
            threads.push(std::thread::Builder::new().name(format!("worker-{number}")).spawn(body)?);
        }
        let workers = senders.len();
        let (pending, turns_seen) = (PendingMessages::new(workers), vec![0; workers]);
        Ok(Workers { senders, threads, pending, next: 0, turns_seen, ended: 0, ending: None })
    }

    pub fn len(&self) -> usize {
        self.senders.len()
    }

    /// Gives a connection to the next worker.
    pub fn adopt(&mut self, stream: TcpStream, peer: SocketAddr) {
        let sender = &self.senders[self.next % self.senders.len()];
        self.next += 1;
        if sender.send(ToWorker::Adopt(stream, peer)).is_err() {
            tracing::warn!(%peer, "connection closed: the worker is overloaded");
        }
    }

    /// Sends a message to one worker now. `false` if its queue is full.
    pub fn tell_now(&self, worker: usize, message: ToWorker) -> bool {
        self.senders.get(worker).is_some_and(|sender| sender.send(message).is_ok())
    }

    /// Sends a message to one worker, in a later turn if its queue is full. `false` if the message is lost.
    pub fn tell(&mut self, worker: usize, message: ToWorker) -> bool {
        let is_kept = self.pending.push(worker, message);
        self.send_pending();
        is_kept
    }

    pub fn tell_all(&mut self, message: impl Fn() -> ToWorker) {
        for worker in 0..self.senders.len() {
            if !self.pending.push(worker, message()) {
                tracing::error!(worker, "a message to a worker is lost: its queue is full");
            }
        }
        self.send_pending();
    }

    /// Sends messages that did not fit into a worker's queue before.
    pub fn send_pending(&mut self) {
        let Workers { pending, senders, .. } = self;
        pending.send(|worker, message| senders[worker].send(message));
    }

    /// Whether each worker has made a turn since this last returned `true`.
    pub fn have_all_moved(&mut self) -> bool {
        let turns: Vec<_> = self.senders.iter().map(WorkerSender::turns).collect();
        let moved = turns.iter().zip(&self.turns_seen).all(|(now, before)| now != before);
        if moved {
            self.turns_seen = turns;
        }
        moved
    }

    /// If a worker ends unexpectedly, its switch sessions are lost, so the node restarts.
    ///
    /// # Errors
    /// How it ended.
    pub fn check(&mut self) -> io::Result<()> {
        if self.ending.is_some() {
            return Ok(());
        }
        let Some(number) = self.threads.iter().position(JoinHandle::is_finished) else {
            return Ok(());
        };
        let why = how_it_ended(self.threads.swap_remove(number).join());
        Err(io::Error::other(format!("a worker ended unexpectedly: {why}")))
    }

    /// Lets the workers end.
    pub fn end(&mut self) {
        if self.ending.is_none() {
            self.ending = Some(Instant::now());
            self.tell_all(|| ToWorker::Shutdown);
        }
    }

    /// A worker has ended as requested.
    pub fn on_ended(&mut self) {
        self.ended += 1;
    }

    /// Whether all workers have ended, or have had time for it.
    pub fn are_over(&self) -> bool {
        let overdue = self.ending.is_some_and(|since| since.elapsed() > GOODBYE);
        self.ended == self.senders.len() || overdue
    }

    /// Joins the threads. A worker that has not ended in time ends with the process.
    pub fn join(self) {
        let (workers, ended) = (self.senders.len(), self.ended);
        if ended < workers {
            let overdue = workers - ended;
            let patience_s = GOODBYE.as_secs();
            tracing::error!(
                "{overdue} of {workers} workers did not end within {patience_s} s; their switch connections are cut"
            );
        }
        let over = |thread: &JoinHandle<_>| ended == workers || thread.is_finished();
        for thread in self.threads.into_iter().filter(over) {
            match thread.join() {
                Ok(Ok(())) => {}
                other => tracing::error!("a worker panicked: {}", how_it_ended(other)),
            }
        }
    }
}

/// The reason for the end of a worker's thread.
fn how_it_ended(ended: std::thread::Result<io::Result<()>>) -> String {
    match ended {
        Ok(Ok(())) => "no end was requested".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(said), _) => format!("it panicked: {said}"),
            (_, Some(said)) => format!("it panicked: {said}"),
            _ => "it panicked".to_owned(),
        },
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_worker_ended_is_told_in_its_own_words() {
        let check = |ended, expected: &str| assert_eq!(how_it_ended(ended), expected);
        check(Ok(Err(io::Error::other("no poll"))), "no poll");
        check(Err(Box::new("a bug")), "it panicked: a bug");
        check(Err(Box::new("another".to_owned())), "it panicked: another");
        check(Err(Box::new(7)), "it panicked");
        check(Ok(Ok(())), "no end was requested");
    }
}
