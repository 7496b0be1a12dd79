//! A thread of the monitor that looks up apps which the operator adds while the node runs, and reloads the configuration.
//!
//! ```text
//!   monitor ──request──> thread ──> Find, Reload (from the caller: read the disk, check signatures) ──result──> monitor
//! ```
//!
//! A slow disk can block the thread, but never the monitor. At most [`ASKED_MAX`] requests wait; further ones are refused.
//! It starts no app and decides nothing.

use std::fmt;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::Value;

use crate::app::AppSpec;
use crate::supervisor::Severity;
use monitor_channel::SlicesChange;

/// The largest number of waiting requests: an operator sends one at a time.
const ASKED_MAX: usize = 16;

/// An app that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundApp {
    /// What to run.
    pub spec: AppSpec,
    /// Data about it for the kernel process; the monitor does not read it.
    pub about: Value,
}

/// The function that looks up a name.
type LookUp = dyn Fn(&str) -> Result<FoundApp, String> + Send + Sync;

/// Finds the app that is installed under a name, or the reason why it may not start. It may block, and one thread calls
/// it.
#[derive(Clone)]
pub struct Find(pub Arc<LookUp>);

impl fmt::Debug for Find {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Find").finish_non_exhaustive()
    }
}

/// What the operator should know about an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The app's name.
    pub app: String,
    /// A phrase, or `None`: nothing any more.
    pub text: Option<String>,
    /// How important it is, if it is new.
    pub severity: Severity,
}

/// A valid configuration after a reload.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reloaded {
    /// Apps with their new settings. Other apps stay unchanged.
    pub apps: Vec<FoundApp>,
    /// Apps that were removed from the configuration.
    pub removed: Vec<String>,
    /// The kernel process's new configuration; `None` if it is unchanged.
    pub config: Option<Value>,
    /// Other changes, one phrase each.
    pub changed: Vec<String>,
    /// The differences that need a restart of the node, one sentence each.
    pub left: Vec<String>,
    /// What the operator should know about apps now.
    pub notes: Vec<Note>,
    /// Nothing is to change: the operator wanted to know whether it could, and what would.
    pub is_dry_run: bool,
}

/// Reloads the configuration of one app or of all, with other slices if the operator wants that. It may block, and one thread calls it.
#[derive(Clone)]
pub struct Reload(pub Arc<ReadAnew>);

/// See [`Reload`].
pub type ReadAnew = dyn Fn(Option<&str>, Option<&SlicesChange>) -> Result<Reloaded, String> + Send + Sync;

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}

/// A request to reload the configuration, of all apps or of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReloadRequest {
    pub(crate) app: Option<String>,
    /// The slices that the operator wants.
    pub(crate) slices: Option<SlicesChange>,
    /// The kernel process, by its generation, and the ticket of its request.
    pub(crate) answer_to: Option<(u64, u64)>,
}

#[derive(Debug)]
enum Asked {
    App(String),
    Reload(ReloadRequest),
}

/// A result of the thread.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// The result for a name.
    App(String, Result<Box<FoundApp>, String>),
    /// The result for the configuration.
    Reloaded(ReloadRequest, Result<Box<Reloaded>, String>),
}

struct Thread {
    asked: SyncSender<Asked>,
    answers: Receiver<Answer>,
    /// A byte for each answer.
    wake: PipeReader,
}

/// The monitor's handle of the thread. The thread starts with the first request, and ends with the handle.
pub(crate) struct Finder {
    find: Option<Find>,
    reload: Option<Reload>,
    thread: Option<Thread>,
}

impl Finder {
    pub(crate) fn new(find: Option<Find>, reload: Option<Reload>) -> Finder {
        Finder { find, reload, thread: None }
    }

    /// Requests the lookup of a name.
    ///
    /// # Errors
    /// A sentence with the reason.
    pub(crate) fn ask(&mut self, name: String) -> Result<(), String> {
        if self.find.is_none() {
            return Err("apps cannot be added to this node while it runs".to_owned());
        }
        self.send(Asked::App(name))
    }

    /// Requests a reload of the configuration.
    ///
    /// # Errors
    /// A sentence with the reason.
    pub(crate) fn reload(&mut self, request: ReloadRequest) -> Result<(), String> {
        if self.reload.is_none() {
            return Err("this node cannot reload its configuration".to_owned());
        }
        self.send(Asked::Reload(request))
    }

    fn send(&mut self, asked: Asked) -> Result<(), String> {
        if self.thread.is_none() {
            let thread = start(self.find.clone(), self.reload.clone());
            self.thread =
                Some(thread.map_err(|error| format!("the thread for it cannot be started: {error}"))?);
        }
        let sent = self.thread.as_ref().map(|thread| thread.asked.try_send(asked));
        if matches!(sent, Some(Ok(()))) {
            Ok(())
        } else {
            Err("too many such requests are waiting; try again".to_owned())
        }
    }

    /// Readable when there is an answer.
    pub(crate) fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.thread.as_ref().map(|thread| thread.wake.as_fd())
    }

    /// The results since the last call.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        let Some(thread) = &mut self.thread else { return Vec::new() };
        match thread.wake.read(&mut [0; ASKED_MAX]) {
            // The thread has ended, which happens only after a panic in a called function. The next request starts a
            // new one.
            Ok(0) => self.thread = None,
            _ => return thread.answers.try_iter().collect(),
        }
        Vec::new()
    }
}

fn start(find: Option<Find>, reload: Option<Reload>) -> io::Result<Thread> {
    let (asked, questions) = sync_channel::<Asked>(ASKED_MAX);
    let (answer, answers) = sync_channel(2 * ASKED_MAX);
    let (wake, mut bell) = io::pipe()?;
    rustix::io::ioctl_fionbio(&wake, true)?;
    let answer_to = move |question| match question {
        Asked::App(name) => {
            let found = find.as_ref().map_or_else(|| Err(String::new()), |find| (find.0)(&name));
            Answer::App(name, found.map(Box::new))
        }
        Asked::Reload(request) => {
            let read = |reload: &Reload| (reload.0)(request.app.as_deref(), request.slices.as_ref());
            let reloaded = reload.as_ref().map_or_else(|| Err(String::new()), read);
            Answer::Reloaded(request, reloaded.map(Box::new))
        }
    };
    let body = move || {
        for question in questions {
            if answer.send(answer_to(question)).is_err() || bell.write_all(&[1]).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("finder".to_owned()).spawn(body)?;
    Ok(Thread { asked, answers, wake })
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
        assert!(Finder::new(None, None).ask("hub".into()).is_err());
        assert!(
            Finder::new(None, None)
                .reload(ReloadRequest { app: None, slices: None, answer_to: None })
                .is_err()
        );
        let mut finder = Finder::new(Some(Find(Arc::new(|name| Err(format!("no {name}"))))), None);
        finder.ask("hub".into()).unwrap();
        assert_eq!(answer(&mut finder), [Answer::App("hub".to_owned(), Err("no hub".to_owned()))]);
    }

    #[test]
    fn a_look_up_that_panics_costs_only_itself() {
        let mut finder = Finder::new(
            Some(Find(Arc::new(|name| match name {
                "bad" => panic!("as asked"),
                _ => Err("no".to_owned()),
            }))),
            None,
        );
        finder.ask("bad".into()).unwrap();
        assert_eq!(answer(&mut finder), []);
        finder.ask("good".into()).unwrap();
        assert_eq!(answer(&mut finder).len(), 1);
    }
}
