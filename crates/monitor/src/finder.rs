//! Looks up, beside the monitor's loop, an app that the operator wants to run and that was installed while the node runs.
//!
//! ```text
//!   monitor ──name──> a thread ──> Find (the caller's: reads a disk, checks signatures) ──Found, or why not──> monitor
//! ```
//!
//! It has a thread of its own, because a disk may hold whoever reads it and the monitor waits for nobody. At most [`ASKED_MAX`] names
//! wait; one more is refused. It starts no app and decides nothing.

use std::fmt;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::Value;

use crate::app::AppSpec;

/// Names that may wait: an operator asks for one at a time.
const ASKED_MAX: usize = 16;

/// An app that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What to run.
    pub spec: AppSpec,
    /// What the kernel process is to know of it beside; the monitor does not look into it.
    pub about: Value,
}

/// What looks up a name.
type LookUp = dyn Fn(&str) -> Result<Found, String> + Send + Sync;

/// Finds what is installed under a name, or says why it may not start. It may take its time, and is called by one thread.
#[derive(Clone)]
pub struct Find(pub Arc<LookUp>);

impl fmt::Debug for Find {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Find").finish_non_exhaustive()
    }
}

/// What was found under a name.
pub(crate) type Answer = (String, Result<Found, String>);

struct Thread {
    names: SyncSender<String>,
    answers: Receiver<Answer>,
    /// A byte for each answer.
    wake: PipeReader,
}

/// The monitor's end. The thread begins with the first name and ends with this.
pub(crate) struct Finder {
    find: Option<Find>,
    thread: Option<Thread>,
}

impl Finder {
    pub(crate) fn new(find: Option<Find>) -> Finder {
        Finder { find, thread: None }
    }

    /// Has a name looked up.
    ///
    /// # Errors
    /// A sentence on why it is not.
    pub(crate) fn ask(&mut self, name: String) -> Result<(), String> {
        let Some(find) = &self.find else { return Err("this node takes no further apps".to_owned()) };
        if self.thread.is_none() {
            let thread = start(find.clone()).map_err(|error| format!("nobody can look it up: {error}"))?;
            self.thread = Some(thread);
        }
        let asked = self.thread.as_ref().map(|thread| thread.names.try_send(name));
        if matches!(asked, Some(Ok(()))) {
            Ok(())
        } else {
            Err("too many apps are being looked up; try again".to_owned())
        }
    }

    /// Readable when there is an answer.
    pub(crate) fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.thread.as_ref().map(|thread| thread.wake.as_fd())
    }

    /// What was found since last asked.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        let Some(thread) = &mut self.thread else { return Vec::new() };
        match thread.wake.read(&mut [0; ASKED_MAX]) {
            // The thread is over, which it is only after a panic of what it calls; the next name gets another.
            Ok(0) => self.thread = None,
            _ => return thread.answers.try_iter().collect(),
        }
        Vec::new()
    }
}

fn start(find: Find) -> io::Result<Thread> {
    let (names, asked) = sync_channel::<String>(ASKED_MAX);
    let (answer, answers) = sync_channel(2 * ASKED_MAX);
    let (wake, mut bell) = io::pipe()?;
    rustix::io::ioctl_fionbio(&wake, true)?;
    let body = move || {
        for name in asked {
            let found = (find.0)(&name);
            if answer.send((name, found)).is_err() || bell.write_all(&[1]).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("finder".to_owned()).spawn(body)?;
    Ok(Thread { names, answers, wake })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags};

    fn answer(finder: &mut Finder) -> Vec<Answer> {
        let wake = finder.wake().unwrap();
        rustix::event::poll(&mut [PollFd::from_borrowed_fd(wake, PollFlags::IN)], None).unwrap();
        finder.answers()
    }

    #[test]
    fn a_node_without_somewhere_to_look_refuses_and_one_that_finds_nothing_says_why() {
        assert!(Finder::new(None).ask("hub".into()).is_err());
        let mut finder = Finder::new(Some(Find(Arc::new(|name| Err(format!("no {name}"))))));
        finder.ask("hub".into()).unwrap();
        assert_eq!(answer(&mut finder), [("hub".to_owned(), Err("no hub".to_owned()))]);
    }

    #[test]
    fn a_look_up_that_panics_costs_only_itself() {
        let mut finder = Finder::new(Some(Find(Arc::new(|name| match name {
            "bad" => panic!("as asked"),
            _ => Err("no".to_owned()),
        }))));
        finder.ask("bad".into()).unwrap();
        assert_eq!(answer(&mut finder), []);
        finder.ask("good".into()).unwrap();
        assert_eq!(answer(&mut finder).len(), 1);
    }
}
