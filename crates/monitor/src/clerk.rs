//! Collects, beside the monitor's loop, what there is to know of packages, and judges them where the service `security` does not.
//!
//! ```text
//!   monitor ──errand──> a thread ──> Vouch (the caller's: reads the state folder, looks at packages) ──question or words──> monitor
//! ```
//!
//! It has a thread of its own, because a disk may hold whoever reads it and the monitor waits for nobody. At most [`ERRANDS_MAX`] wait, more than the
//! monitor has under way. It starts no app, ends none, and decides nothing: the words are the caller's.

use std::fmt;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::vouching::{Errand, Subject, Word};

/// Errands that may wait; one that is beyond is as if the clerk were gone.
const ERRANDS_MAX: usize = 16;

/// Makes a question of what there is to know about some apps.
type Papers = dyn Fn(&[Subject]) -> String + Send + Sync;

/// Answers a question by itself.
type Judge = dyn Fn(&str) -> Vec<Word> + Send + Sync;

/// Knows the packages of a node's apps. Both may take their time, and are called by one thread.
#[derive(Clone)]
pub struct Vouch {
    /// What there is to know about these apps, as the question to whoever judges; its form is the caller's.
    pub papers: Arc<Papers>,
    /// The words on such a question, one for each app.
    pub judge: Arc<Judge>,
}

impl fmt::Debug for Vouch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vouch").finish_non_exhaustive()
    }
}

/// What came of an errand.
#[derive(Debug, PartialEq)]
pub(crate) enum Done {
    Papers { round: u64, question: String },
    Words { round: u64, words: Vec<Word> },
}

struct Thread {
    errands: SyncSender<Errand>,
    done: Receiver<Done>,
    /// A byte for each thing that is done.
    wake: PipeReader,
}

/// The monitor's end. The thread begins with the first errand and ends with this.
pub(crate) struct Clerk {
    vouch: Option<Vouch>,
    thread: Option<Thread>,
}

impl Clerk {
    pub(crate) fn new(vouch: Option<Vouch>) -> Clerk {
        Clerk { vouch, thread: None }
    }

    /// Whether the errand is being run.
    pub(crate) fn send(&mut self, errand: Errand) -> bool {
        let Some(vouch) = &self.vouch else { return false };
        if self.thread.is_none() {
            match start(vouch.clone()) {
                Ok(thread) => self.thread = Some(thread),
                Err(error) => {
                    tracing::error!("nobody can look at packages: {error}");
                    return false;
                }
            }
        }
        self.thread.as_ref().is_some_and(|thread| thread.errands.try_send(errand).is_ok())
    }

    /// Readable when something is done.
    pub(crate) fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.thread.as_ref().map(|thread| thread.wake.as_fd())
    }

    /// What was done since last asked; `None` if the thread is over, and everything with it that was not done.
    pub(crate) fn take_done(&mut self) -> Option<Vec<Done>> {
        let Some(thread) = &mut self.thread else { return Some(Vec::new()) };
        match thread.wake.read(&mut [0; ERRANDS_MAX]) {
            // It is over only after a panic of what it calls; the next errand gets another.
            Ok(0) => {
                self.thread = None;
                None
            }
            _ => Some(thread.done.try_iter().collect()),
        }
    }
}

fn start(vouch: Vouch) -> io::Result<Thread> {
    let (errands, asked) = sync_channel::<Errand>(ERRANDS_MAX);
    let (say, done) = sync_channel(2 * ERRANDS_MAX);
    let (wake, mut bell) = io::pipe()?;
    rustix::io::ioctl_fionbio(&wake, true)?;
    let body = move || {
        for errand in asked {
            let said = match errand {
                Errand::Papers { round, subjects } => {
                    Done::Papers { round, question: (vouch.papers)(&subjects) }
                }
                Errand::AskClerk { round, question } | Errand::AskService { round, question } => {
                    Done::Words { round, words: (vouch.judge)(&question) }
                }
            };
            if say.send(said).is_err() || bell.write_all(&[1]).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("clerk".to_owned()).spawn(body)?;
    Ok(Thread { errands, done, wake })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vouching::Says;
    use rustix::event::{PollFd, PollFlags};

    fn take_done(clerk: &mut Clerk) -> Option<Vec<Done>> {
        let wake = clerk.wake().unwrap();
        rustix::event::poll(&mut [PollFd::from_borrowed_fd(wake, PollFlags::IN)], None).unwrap();
        clerk.take_done()
    }

    fn judge(question: &str) -> Errand {
        Errand::AskClerk { round: 3, question: question.to_owned() }
    }

    #[test]
    fn a_node_without_packages_has_no_clerk_and_one_that_panics_costs_only_itself() {
        assert!(!Clerk::new(None).send(judge("?")));
        let vouch = Vouch {
            papers: Arc::new(|subjects| format!("{} apps", subjects.len())),
            judge: Arc::new(|question| match question {
                "bad" => panic!("as asked"),
                _ => vec![Word { zone: 1, check: 2, says: Says::Good }],
            }),
        };
        let mut clerk = Clerk::new(Some(vouch));
        assert!(clerk.send(judge("bad")));
        assert_eq!(take_done(&mut clerk), None);
        assert!(clerk.send(Errand::Papers { round: 4, subjects: Vec::new() }));
        let papers = Done::Papers { round: 4, question: "0 apps".to_owned() };
        assert_eq!(take_done(&mut clerk), Some(vec![papers]));
    }
}
