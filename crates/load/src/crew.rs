//! The threads of a load. All of them get the same orders, and their reports are added up.
//!
//! It never touches a socket.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::generator::Generator;
use crate::progress::Progress;
use crate::report::{Faults, Learned, RoundReport};
use crate::{LoadOptions, Mode, NotBegun};

/// How often an idle thread checks whether it has an order.
const IDLE: Duration = Duration::from_millis(5);

/// An order to a thread.
#[derive(Clone, Copy, Debug)]
enum Order {
    Connect(Duration),
    Learn(Duration),
    Round(Mode, Duration),
    TellFaults,
}

/// A thread's report after an order.
#[derive(Debug)]
enum Report {
    Connected(usize),
    Learned(Learned),
    Round(Box<RoundReport>),
    Faults(Faults),
}

/// The result of connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// How many switches the controller knows. It knows a switch after the handshake.
    pub switches: usize,
    /// The time until it knew the last one, or until the patience ended.
    pub took: Duration,
}

/// A load on a controller. Dropping it ends its connections.
#[derive(Debug)]
pub struct Load {
    // Dropped before the threads are joined, so that they end.
    orders: Vec<Sender<Order>>,
    reports: Vec<Receiver<Report>>,
    threads: Vec<JoinHandle<()>>,
    progress: Arc<Progress>,
}

impl Load {
    /// Starts the threads. They connect nothing yet.
    ///
    /// # Errors
    ///
    /// The system has no descriptors or threads left, or the version is not supported.
    pub fn start(options: &LoadOptions) -> Result<Load, NotBegun> {
        let progress = Arc::new(Progress::default());
        let mut load = Load { orders: vec![], reports: vec![], threads: vec![], progress };
        let options = LoadOptions { threads: options.threads.max(1), ..options.clone() };
        for thread in 0..options.threads {
            let generator = Generator::new(&options, thread, load.progress.clone())?;
            let (order, orders) = channel();
            let (report, reports) = channel();
            let spawned = std::thread::Builder::new()
                .name(format!("load-{thread}"))
                .spawn(move || obey(generator, &orders, &report))
                .map_err(|error| NotBegun(error.to_string()))?;
            load.orders.push(order);
            load.reports.push(reports);
            load.threads.push(spawned);
        }
        Ok(load)
    }

    /// The counters that can be read while the load runs.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Connects the switches and waits until the controller knows them all, or until the patience ends.
    pub fn connect(&mut self, patience: Duration) -> Connected {
        let began = Instant::now();
        let switches = self.ask(Order::Connect(patience)).into_iter().map(|report| match report {
            Report::Connected(count) => count,
            _ => 0,
        });
        Connected { switches: switches.sum(), took: began.elapsed() }
    }

    /// Announces the hosts to the controller.
    pub fn learn(&mut self, patience: Duration) -> Learned {
        let mut learned = Learned::default();
        for report in self.ask(Order::Learn(patience)) {
            if let Report::Learned(part) = report {
                learned.announced += part.announced;
                learned.answered += part.answered;
                learned.took = learned.took.max(part.took);
            }
        }
        learned
    }

    /// Runs a round of this length.
    pub fn round(&mut self, mode: Mode, length: Duration) -> RoundReport {
        let mut round = RoundReport::default();
        for report in self.ask(Order::Round(mode, length)) {
            if let Report::Round(part) = report {
                round.add(&part);
            }
        }
        round
    }

    /// The faults since the last call.
    pub fn take_faults(&mut self) -> Faults {
        let told = self.ask(Order::TellFaults);
        let mut faults = Faults { ended_threads: self.reports.len() - told.len(), ..Faults::default() };
        for report in told {
            if let Report::Faults(part) = report {
                faults.add(part);
            }
        }
        faults
    }

    /// Gives all threads the same order and collects their reports. A thread that has ended reports nothing, and
    /// counts as a fault.
    fn ask(&mut self, order: Order) -> Vec<Report> {
        for orders in &self.orders {
            // A thread that has ended does not report either.
            let _ = orders.send(order);
        }
        self.reports.iter().filter_map(|reports| reports.recv().ok()).collect()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.progress.stop();
        self.orders.clear();
        for thread in self.threads.drain(..) {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

fn obey(mut generator: Generator, orders: &Receiver<Order>, reports: &Sender<Report>) {
    loop {
        let report = match orders.try_recv() {
            Ok(Order::Connect(patience)) => Report::Connected(generator.connect(patience)),
            Ok(Order::Learn(patience)) => Report::Learned(generator.learn(patience)),
            Ok(Order::Round(mode, length)) => Report::Round(Box::new(generator.round(mode, length))),
            Ok(Order::TellFaults) => Report::Faults(generator.take_faults()),
            Err(TryRecvError::Empty) => {
                generator.idle(IDLE);
                continue;
            }
            Err(TryRecvError::Disconnected) => return,
        };
        if reports.send(report).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_gone_is_a_fault() {
        let ((order, _orders), (report, reports)) = (channel(), channel());
        let mut load =
            Load { orders: vec![order], reports: vec![reports], threads: vec![], progress: Arc::default() };
        drop(report);
        let faults = load.take_faults();
        assert_eq!(faults.ended_threads, 1);
        assert!(!faults.is_empty());
    }
}
