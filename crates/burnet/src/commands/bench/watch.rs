//! What is shown while it lasts: a line a second on standard error. And Ctrl-C, which ends it with what it has.
//!
//! It never writes to standard output, and decides nothing about what is measured.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use emulator::load::Progress;

use crate::cli::CommandError;

/// Between lines.
const EACH: Duration = Duration::from_secs(1);

/// The loads that are watched, with their names.
type Watched = Arc<Mutex<Vec<(String, Arc<Progress>)>>>;

/// Shows how loads go until it is dropped, and ends them when a signal asks for it.
pub struct Watch {
    watched: Watched,
    // The thread ends when this is gone.
    _until: Sender<()>,
}

impl Watch {
    /// Begins. Lines are shown if `shown`, or if standard error is a terminal.
    ///
    /// # Errors
    /// That signals cannot be listened to.
    pub fn start(shown: bool) -> Result<Watch, CommandError> {
        let signals = monitor::shutdown_signals()
            .map_err(|error| CommandError::DidNotWork(format!("signals cannot be listened to: {error}")))?;
        let watched = Watched::default();
        let (until, ended) = channel();
        let stopping = watched.clone();
        std::thread::spawn(move || {
            // The first signal ends what is measured in order, and a second one at once.
            while File::from(signals.try_clone()?).read(&mut [0])? > 0 {
                let already = each(&stopping, |(_, progress)| {
                    let before = progress.is_stopped();
                    progress.stop();
                    before
                });
                if already.into_iter().all(|before| before) {
                    std::process::exit(1);
                }
            }
            std::io::Result::Ok(())
        });
        if shown || std::io::stderr().is_terminal() {
            let showing = watched.clone();
            std::thread::spawn(move || {
                let mut before = (Instant::now(), Vec::new());
                while ended.recv_timeout(EACH) == Err(RecvTimeoutError::Timeout) {
                    show(&showing, &mut before);
                }
            });
        }
        Ok(Watch { watched, _until: until })
    }

    /// One more load.
    pub fn add(&self, name: &str, progress: Arc<Progress>) {
        if let Ok(mut watched) = self.watched.lock() {
            watched.push((name.to_owned(), progress));
        }
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
            // Whoever closed it does not want to see it.
            let _ = writeln!(err, "{name}: {known} switches, {rate:.0} answers/s");
        }
        *before = answered;
    }
}
