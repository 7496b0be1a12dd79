//! The signal with which an operator ends a command that keeps running.
//!
//! In: SIGINT, SIGTERM, SIGHUP. Out: whether one arrived. It ends nothing by itself.

use std::fs::File;
use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::cli::CommandError;

/// Why a task was not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// The signal came first.
    ToldToStop,
    /// The task panicked.
    Panicked,
}

/// The operator's request to end the command.
pub struct StopSignal {
    stopped: Receiver<()>,
}

impl StopSignal {
    /// From now on SIGINT (Ctrl-C), SIGTERM and SIGHUP are received here and do not end the process.
    pub fn listen() -> Result<StopSignal, CommandError> {
        let unheard = |error| CommandError::DidNotWork(format!("signals cannot be received: {error}"));
        let mut signals = File::from(monitor::shutdown_signals().map_err(unheard)?);
        let (sender, stopped) = channel();
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                let _ = signals.read(&mut [0]);
                // If the receiver is gone, the command has already ended.
                let _ = sender.send(());
            })
            .map_err(unheard)?;
        Ok(StopSignal { stopped })
    }

    /// Runs a long task in a thread, and waits for it until the signal arrives. `meanwhile` is called again and
    /// again, so it must be short.
    pub fn unless_it_comes<T: Send + 'static>(
        &self,
        long: impl FnOnce() -> T + Send + 'static,
        mut meanwhile: impl FnMut(),
    ) -> Result<T, NotDone> {
        let working = std::thread::spawn(long);
        while !working.is_finished() {
            if self.came_within(Duration::ZERO) {
                return Err(NotDone::ToldToStop);
            }
            meanwhile();
        }
        working.join().map_err(|_| NotDone::Panicked)
    }

    /// Whether the signal has arrived, or arrives within this time. Once true, it stays true.
    pub fn came_within(&self, patience: Duration) -> bool {
        // The thread that receives the signal drops its sender, so later calls see it too.
        !matches!(self.stopped.recv_timeout(patience), Err(RecvTimeoutError::Timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_for_ever_is_not_waited_for_when_the_signal_comes() {
        let (signal, stopped) = channel();
        let stop = StopSignal { stopped };
        let (_never, for_ever) = channel::<()>();
        let mut looks = 0;
        let ended = stop.unless_it_comes(
            move || for_ever.recv().is_ok(),
            || {
                looks += 1;
                if looks == 3 {
                    signal.send(()).unwrap();
                }
            },
        );
        assert_eq!((ended, looks), (Err(NotDone::ToldToStop), 3));
    }
}
