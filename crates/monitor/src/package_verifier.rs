//! The thread of the monitor that collects facts about packages, and verifies them if the service `security` does not.
//!
//! ```text
//!   monitor ──Task──> thread ──> PackageChecks (from the caller: reads the state folder and the packages) ──Done──> monitor
//! ```
//!
//! A slow disk can block the thread, but never the monitor. At most [`TASKS_MAX`] tasks wait, more than the monitor has
//! open at a time. The thread starts and stops no app.

use std::fmt;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::verification::{AppCheck, PackageVerdict, Task};

/// The maximum number of waiting tasks. A further task fails, as if the thread had ended.
const TASKS_MAX: usize = 16;

/// Collects the facts about some apps as a question.
type Collect = dyn Fn(&[AppCheck]) -> String + Send + Sync;

/// Verifies the packages of a question.
type Verify = dyn Fn(&str) -> Vec<PackageVerdict> + Send + Sync;

/// Reads and verifies the packages of a node's apps. One thread calls both functions. They may block.
#[derive(Clone)]
pub struct PackageChecks {
    /// Collects the facts about these apps as a question. The caller defines its format.
    pub collect: Arc<Collect>,
    /// Verifies the packages of a question, and returns one verdict for each app.
    pub verify: Arc<Verify>,
}

impl fmt::Debug for PackageChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackageChecks").finish_non_exhaustive()
    }
}

/// The result of a task.
#[derive(Debug, PartialEq)]
pub(crate) enum Done {
    Collected { round: u64, question: String },
    Verified { round: u64, verdicts: Vec<PackageVerdict> },
}

struct Thread {
    tasks: SyncSender<Task>,
    done: Receiver<Done>,
    /// Has one byte for each result.
    wake: PipeReader,
}

/// The monitor's handle of the thread. The first task starts the thread. Dropping the handle ends it.
pub(crate) struct PackageVerifier {
    packages: Option<PackageChecks>,
    thread: Option<Thread>,
}

impl PackageVerifier {
    pub(crate) fn new(packages: Option<PackageChecks>) -> PackageVerifier {
        PackageVerifier { packages, thread: None }
    }

    /// Sends a task to the thread. Returns `false` if the thread cannot take it.
    pub(crate) fn send(&mut self, task: Task) -> bool {
        let Some(packages) = &self.packages else { return false };
        if self.thread.is_none() {
            match start(packages.clone()) {
                Ok(thread) => self.thread = Some(thread),
                Err(error) => {
                    tracing::error!(
                        "packages cannot be verified: the thread for it cannot be started: {error}"
                    );
                    return false;
                }
            }
        }
        self.thread.as_ref().is_some_and(|thread| thread.tasks.try_send(task).is_ok())
    }

    /// Readable when there is a result.
    pub(crate) fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.thread.as_ref().map(|thread| thread.wake.as_fd())
    }

    /// The results since the last call. `None` if the thread ended; its open tasks are lost.
    pub(crate) fn take_done(&mut self) -> Option<Vec<Done>> {
        let Some(thread) = &mut self.thread else { return Some(Vec::new()) };
        match thread.wake.read(&mut [0; TASKS_MAX]) {
            // The thread ends only if a check panics. The next task starts a new one.
            Ok(0) => {
                self.thread = None;
                None
            }
            _ => Some(thread.done.try_iter().collect()),
        }
    }
}

fn start(packages: PackageChecks) -> io::Result<Thread> {
    let (tasks, asked) = sync_channel::<Task>(TASKS_MAX);
    let (say, done) = sync_channel(2 * TASKS_MAX);
    let (wake, mut bell) = io::pipe()?;
    rustix::io::ioctl_fionbio(&wake, true)?;
    let body = move || {
        for task in asked {
            let said = match task {
                Task::Collect { round, subjects } => {
                    Done::Collected { round, question: (packages.collect)(&subjects) }
                }
                Task::VerifyHere { round, question } | Task::AskService { round, question } => {
                    Done::Verified { round, verdicts: (packages.verify)(&question) }
                }
            };
            if say.send(said).is_err() || bell.write_all(&[1]).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("verifier".to_owned()).spawn(body)?;
    Ok(Thread { tasks, done, wake })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verification::Validity;
    use rustix::event::{PollFd, PollFlags};

    fn take_done(verifier: &mut PackageVerifier) -> Option<Vec<Done>> {
        let wake = verifier.wake().unwrap();
        rustix::event::poll(&mut [PollFd::from_borrowed_fd(wake, PollFlags::IN)], None).unwrap();
        verifier.take_done()
    }

    fn verify(question: &str) -> Task {
        Task::VerifyHere { round: 3, question: question.to_owned() }
    }

    #[test]
    fn a_node_without_packages_has_no_verifier_and_a_panic_loses_only_its_task() {
        assert!(!PackageVerifier::new(None).send(verify("?")));
        let packages = PackageChecks {
            collect: Arc::new(|subjects| format!("{} apps", subjects.len())),
            verify: Arc::new(|question| match question {
                "bad" => panic!("as asked"),
                _ => vec![PackageVerdict { zone: 1, check: 2, validity: Validity::Good }],
            }),
        };
        let mut verifier = PackageVerifier::new(Some(packages));
        assert!(verifier.send(verify("bad")));
        assert_eq!(take_done(&mut verifier), None);
        assert!(verifier.send(Task::Collect { round: 4, subjects: Vec::new() }));
        let collect = Done::Collected { round: 4, question: "0 apps".to_owned() };
        assert_eq!(take_done(&mut verifier), Some(vec![collect]));
    }
}
