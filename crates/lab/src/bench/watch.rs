//! What is shown while it lasts: a line a second on standard error. And Ctrl-C, which ends it with what it has.
//!
//! It never writes to standard output, and decides nothing about what is measured.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use load::Progress;

use burnet::cli::CommandError;

/// Between lines.
const EACH: Duration = Duration::from_secs(1);

/// The loads that are watched, with their names.
type Watched = Arc<Mutex<Vec<(String, Arc<Progress>)>>>;

/// What signals end: the loads that there are, and those that come.
#[derive(Clone, Default)]
struct Ending {
    watched: Watched,
    stopped: Arc<AtomicBool>,
}

/// Shows how loads go until it is dropped, and ends them when a signal asks for it.
pub struct Watch {
    ending: Ending,
    // The thread ends when this is gone.
    _until: Sender<()>,
}

impl Watch {
    /// Begins. Lines are shown if `shown`, or if standard error is a terminal.
    ///
    /// # Errors
    /// That signals cannot be received.
    pub fn start(shown: bool) -> Result<Watch, CommandError> {
        let signals = monitor::shutdown_signals()
            .map_err(|error| CommandError::DidNotWork(format!("signals cannot be received: {error}")))?;
        let ending = Ending::default();
        let (until, ended) = channel();
        let stopping = ending.clone();
        std::thread::spawn(move || {
            // The first signal ends what is measured in order, and a second one at once.
            while File::from(signals.try_clone()?).read(&mut [0])? > 0 {
                if stopping.on_signal() {
                    std::process::exit(1);
                }
            }
            std::io::Result::Ok(())
        });
        if shown || std::io::stderr().is_terminal() {
            let showing = ending.watched.clone();
            std::thread::spawn(move || {
                let mut before = (Instant::now(), Vec::new());
                while ended.recv_timeout(EACH) == Err(RecvTimeoutError::Timeout) {
                    show(&showing, &mut before);
                }
            });
        }
        Ok(Watch { ending, _until: until })
    }

    /// One more load. It is stopped at once if a signal has come.
    pub fn add(&self, name: &str, progress: Arc<Progress>) {
        self.ending.add(name, progress);
    }

    /// Whether a signal has come: nothing more is to be begun.
    pub fn is_stopped(&self) -> bool {
        self.ending.stopped.load(Ordering::SeqCst)
    }
}

impl Ending {
    fn add(&self, name: &str, progress: Arc<Progress>) {
        if let Ok(mut watched) = self.watched.lock() {
            watched.push((name.to_owned(), progress.clone()));
        }
        if self.stopped.load(Ordering::SeqCst) {
            progress.stop();
        }
    }

    /// Stops everything. Says whether it was to be stopped already.
    fn on_signal(&self) -> bool {
        let already = self.stopped.swap(true, Ordering::SeqCst);
        each(&self.watched, |(_, progress)| progress.stop());
        already
    }
}

fn each<T>(watched: &Watched, what: impl FnMut(&(String, Arc<Progress>)) -> T) -> Vec<T> {
    watched.lock().map(|watched| watched.iter().map(what).collect()).unwrap_or_default()
}

/// A line for each load that was answered since the last look, or that has no switch yet.
fn show(watched: &Watched, before: &mut (Instant, Vec<u64>)) {
    let seconds = before.0.elapsed().as_secs_f64();
    let now = each(watched, |(name, progress)| (name.clone(), progress.known(), progress.answered()));
    before.0 = Instant::now();
    before.1.resize(now.len(), 0);
    let mut err = std::io::stderr().lock();
    for ((name, known, answered), before) in now.into_iter().zip(&mut before.1) {
        let rate = (answered - *before) as f64 / seconds;
        if answered > *before || known == 0 {
            // If the reader has closed standard error, that is not an error.
            let _ = writeln!(err, "{name}: {known} switches, {rate:.0} answers/s");
        }
        *before = answered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_what_comes_after_it_too_and_a_second_one_ends_at_once() {
        let ending = Ending::default();
        let [first, second] = [(); 2].map(|()| Arc::new(Progress::default()));
        ending.add("first", first.clone());
        assert!(!ending.on_signal() && first.is_stopped());
        ending.add("second", second.clone());
        assert!(second.is_stopped());
        assert!(ending.on_signal(), "also where another load has begun meanwhile");
    }
}
