//! Repeated pings between emulated hosts, while other things happen.
//!
//! In: which hosts ping which, and how often. Out: each ping, with its time and whether it was answered in time.

use emulator::{Handle, PingReport};
use serde::Serialize;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

/// A ping.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ping {
    /// The index of the pair.
    pub pair: usize,
    /// When it was sent, in seconds.
    pub at_s: f64,
    /// Whether it was answered in time.
    pub answered: bool,
}

/// Pings that go on.
pub struct Pinging<'n> {
    network: &'n Handle,
    pairs: Vec<(&'n str, &'n str)>,
    every: Duration,
    patience: Duration,
    began: Instant,
    next: Duration,
    under_way: Vec<(usize, f64, Receiver<PingReport>)>,
    done: Vec<Ping>,
}

impl<'n> Pinging<'n> {
    /// Each pair pings at this interval. A ping without an answer within the patience is lost. Times count from
    /// `began`.
    pub fn new(
        network: &'n Handle,
        pairs: &[(&'n str, &'n str)],
        every: Duration,
        patience: Duration,
        began: Instant,
    ) -> Pinging<'n> {
        let (pairs, next) = (pairs.to_vec(), began.elapsed());
        Pinging { network, pairs, every, patience, began, next, under_way: Vec::new(), done: Vec::new() }
    }

    /// Sends due pings and collects replies. Must be called often.
    pub fn go_on(&mut self) {
        let now = self.began.elapsed();
        if now >= self.next {
            // A ping that is late is skipped: a burst would measure something else.
            self.next = now + self.every;
            for (place, (from, to)) in self.pairs.iter().enumerate() {
                if let Ok(report) = self.network.begin_ping(from, to, self.patience) {
                    self.under_way.push((place, now.as_secs_f64(), report));
                }
            }
        }
        self.take();
    }

    fn take(&mut self) {
        let done = &mut self.done;
        self.under_way.retain(|(pair, at_s, report)| {
            let answered = match report.try_recv() {
                Err(TryRecvError::Empty) => return true,
                Ok(report) => report.is_complete(),
                Err(TryRecvError::Disconnected) => false,
            };
            done.push(Ping { pair: *pair, at_s: *at_s, answered });
            false
        });
    }

    /// Waits for unanswered pings. Returns all, in the order in which they were sent.
    pub fn finish(mut self) -> Vec<Ping> {
        let end = Instant::now() + self.patience + Duration::from_secs(1);
        while !self.under_way.is_empty() && Instant::now() < end {
            self.take();
            std::thread::sleep(Duration::from_millis(1));
        }
        self.done.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        self.done
    }
}

/// How many pings a pair sent from a time on, and how many were answered.
pub fn count(pings: &[Ping], pair: usize, from_s: f64) -> (usize, usize) {
    let those = pings.iter().filter(|ping| ping.pair == pair && ping.at_s >= from_s);
    those.fold((0, 0), |(sent, answered), ping| (sent + 1, answered + usize::from(ping.answered)))
}
