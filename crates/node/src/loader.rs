//! Loads the shared objects of trusted apps in a thread, so that the control thread can still report that the node is alive.
//!
//! ```text
//!   control ──path──> thread: dlopen, which runs the object's constructors ──code, or an error──> control
//! ```
//!
//! In: the path, the settings and the grant of an app. Out: its code. Objects are loaded one at a time. If one takes longer
//! than [`PATIENCE_MS`], the load fails and its code stays mapped. It never calls the app's table.

use super::call_tracker::CallTracker;
use super::messages::{ControlSender, FromWorker};
use abi::ZoneId;
use kernel::Grant;
use monitor_channel::AppSource;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use zone::trusted::TrustedCode;

/// Loads the code of an app that will run in the kernel's process. An error is a sentence for the operator.
pub type LoadCode = fn(&AppSource) -> Result<TrustedCode, String>;

/// The time limit for loading an object: reading a large one from a slow disk takes a second.
pub const PATIENCE_MS: u64 = 10_000;

/// The maximum number of waiting objects: one for each app.
const JOBS_MAX: usize = monitor_channel::APPS_MAX;

/// An app that starts when its code is loaded.
#[derive(Debug)]
pub struct Awaited {
    /// Its name.
    pub app: String,
    /// Its settings, a JSON object.
    pub settings: Vec<u8>,
    /// Its grant.
    pub grant: Box<Grant>,
}

struct Job {
    zone: u16,
    number: u64,
    source: AppSource,
}

/// The control thread's end.
pub struct Loader {
    load_code: LoadCode,
    calls: CallTracker,
    control: ControlSender,
    jobs: Option<SyncSender<Job>>,
    /// By zone: the number of the load, its deadline, and the app.
    awaited: BTreeMap<u16, (u64, u64, Awaited)>,
    last: u64,
}

impl Loader {
    /// Creates the loader. Its thread starts with the first object; `control` takes the results.
    pub fn new(calls: CallTracker, control: ControlSender, load_code: LoadCode) -> Loader {
        Loader { load_code, calls, control, jobs: None, awaited: BTreeMap::new(), last: 0 }
    }

    /// Starts to load the code of an app.
    ///
    /// # Errors
    /// The system cannot create the thread.
    pub fn load(&mut self, zone: u16, source: AppSource, awaited: Awaited, now_ms: u64) -> io::Result<()> {
        self.last += 1;
        let job = Job { zone, number: self.last, source };
        let jobs = match self.jobs.take() {
            Some(jobs) => jobs,
            None => start(self.calls.clone(), self.control.clone(), self.load_code)?,
        };
        jobs.try_send(job).map_err(|_| io::Error::other("the program does not load it"))?;
        self.jobs = Some(jobs);
        self.awaited.insert(zone, (self.last, now_ms + PATIENCE_MS, awaited));
        Ok(())
    }

    /// The app gets this grant when its code is loaded.
    pub fn regrant(&mut self, zone: u16, grant: &Grant) {
        if let Some((.., awaited)) = self.awaited.get_mut(&zone) {
            *awaited.grant = grant.clone();
        }
    }

    /// The app is no longer to be started.
    pub fn forget(&mut self, zone: u16) {
        self.awaited.remove(&zone);
    }

    /// The app whose code was loaded or could not be loaded; `None` if the load was cancelled.
    pub fn on_loaded(
        &mut self,
        zone: u16,
        number: u64,
        loaded: Result<TrustedCode, String>,
    ) -> Option<(Awaited, Result<TrustedCode, String>)> {
        if self.awaited.get(&zone).is_none_or(|(awaited, ..)| *awaited != number) {
            // Unmapping the object would run its destructors here.
            std::mem::forget(loaded);
            return None;
        }
        self.awaited.remove(&zone).map(|(.., awaited)| (awaited, loaded))
    }

    /// The apps whose code did not load in time. The next load gets a new thread.
    pub fn take_overdue(&mut self, now_ms: u64) -> Vec<String> {
        let overdue = |(_, until_ms, _): &(u64, u64, Awaited)| *until_ms <= now_ms;
        if !self.awaited.values().any(overdue) {
            return Vec::new();
        }
        self.jobs = None;
        let gone = self.awaited.extract_if(.., |_, awaited| overdue(awaited));
        gone.map(|(_, (.., awaited))| awaited.app).collect()
    }
}

fn start(calls: CallTracker, control: ControlSender, load_code: LoadCode) -> io::Result<SyncSender<Job>> {
    let (jobs, waiting) = sync_channel::<Job>(JOBS_MAX);
    let body = move || {
        for Job { zone, number, source } in waiting {
            let loaded = calls.calling(ZoneId(zone), || load_code(&source));
            if control.send_last(FromWorker::Loaded { zone, number, loaded }).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("loader".to_owned()).spawn(body)?;
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn awaited() -> Awaited {
        Awaited { app: "x".to_owned(), settings: Vec::new(), grant: Box::new(Grant::nothing()) }
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_not_started() {
        let poll = mio::Poll::new().unwrap();
        let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap());
        let (control, messages) = ControlSender::new(waker);
        let mut loader =
            Loader::new(
                CallTracker::default(),
                control,
                |_| Err("/nowhere/x.so cannot be loaded".to_owned()),
            );
        let nowhere = || AppSource::SharedObject("/nowhere/x.so".into());
        loader.load(1, nowhere(), awaited(), 0).unwrap();
        loader.load(2, nowhere(), awaited(), 0).unwrap();
        loader.forget(1);
        let loaded = || match messages.recv().unwrap() {
            FromWorker::Loaded { zone, number, loaded } => (zone, number, loaded),
            _ => panic!("another message"),
        };
        let (zone, number, code) = loaded();
        assert!(loader.on_loaded(zone, number, code).is_none());
        let (zone, number, code) = loaded();
        assert!(loader.take_overdue(PATIENCE_MS - 1).is_empty());
        let (_, why) = loader.on_loaded(zone, number, code).unwrap();
        assert!(why.is_err_and(|why| why.contains("/nowhere/x.so")));
        loader.load(3, nowhere(), awaited(), 0).unwrap();
        assert_eq!(loader.take_overdue(PATIENCE_MS), ["x"]);
        let (zone, number, code) = loaded();
        assert!(loader.on_loaded(zone, number, code).is_none());
    }
}
