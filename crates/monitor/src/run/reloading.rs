//! Changes while a node runs: added apps, and a reloaded configuration.
//!
//! In: the results of the lookup thread. Out: messages to the kernel process, an event for the supervisor, and the answer
//! to the operator. If the input is unreadable or invalid, nothing changes.

use std::os::fd::OwnedFd;

use crate::app::{REASON_BYTES_MAX, check_specs, legible};
use crate::finder::{Answer, FoundApp, Note, ReloadRequest, Reloaded};
use crate::plan::check_open_files;
use crate::protocol::ToKernel;
use crate::signals::hung_up;
use crate::supervisor::SupervisorEvent;
use monitor_channel::{SlicesChange, SlicesWanted};

use super::Monitor;

/// The longest reason for a refused configuration, in bytes.
const REFUSAL_BYTES_MAX: usize = 1_000;

impl Monitor {
    /// From now on, each byte in `reload_requests` requests a reload of the configuration ([`crate::node_signals`]).
    pub fn reload_on(&mut self, reload_requests: OwnedFd) {
        self.reload_requests = Some(reload_requests);
    }

    pub(super) fn read_reload_requests(&mut self) {
        let mut bytes = [0; 16];
        match self
            .reload_requests
            .as_ref()
            .map(|reload_requests| rustix::io::read(reload_requests, &mut bytes))
        {
            Some(Ok(0)) => self.reload_requests = None,
            // The terminal is closed, so its user can no longer stop the node.
            Some(Ok(_)) if hung_up() => self.heard.push_back(SupervisorEvent::ShutdownAsked),
            Some(Ok(_)) => self.request_reload(ReloadRequest { app: None, slices: None, answer_to: None }),
            _ => {}
        }
    }

    /// The network has changed. However often it has since the last turn, slices are judged once.
    pub(super) fn read_network_changes(&mut self) {
        let read = self.network_changes.as_ref().map(|changes| rustix::io::read(changes, &mut [0; 64]));
        match read {
            Some(Ok(0)) => self.network_changes = None,
            Some(Ok(_)) => {
                let change = SlicesChange { wanted: SlicesWanted::Judged, dry_run: false, force: false };
                // If too much waits for the thread, the next change asks again.
                let _ =
                    self.finder.reload(ReloadRequest { app: None, slices: Some(change), answer_to: None });
            }
            _ => {}
        }
    }

    /// Requests a reload of the configuration from the lookup thread.
    pub(super) fn request_reload(&mut self, request: ReloadRequest) {
        if let Err(why) = self.finder.reload(request.clone()) {
            self.answer(&request, Err(why));
        }
    }

    pub(super) fn take_found(&mut self) {
        for answer in self.finder.answers() {
            match answer {
                Answer::App(app, found) => self.found(app, found.map(|found| *found)),
                Answer::Reloaded(request, reloaded) => {
                    self.reloaded(&request, reloaded.map(|reloaded| *reloaded))
                }
            }
        }
    }

    fn found(&mut self, app: String, found: Result<FoundApp, String>) {
        let checked = found.and_then(|found| {
            check_specs(std::slice::from_ref(&found.spec)).map_err(|why| why.to_string())?;
            check_open_files(&found.spec, self.workers).map_err(|why| why.to_string())?;
            Ok(found)
        });
        match checked {
            Ok(found) => self.add(found),
            Err(reason) => {
                tracing::error!("app {app}: it is not started: {reason}");
                self.heard.push_back(SupervisorEvent::NotFound { app, reason });
            }
        }
    }

    fn reloaded(&mut self, request: &ReloadRequest, reloaded: Result<Reloaded, String>) {
        let reloaded = reloaded.and_then(|reloaded| match &request.app {
            Some(app) if !self.statuses().iter().any(|status| status.app == *app) => {
                Err(format!("this node does not run {app}"))
            }
            _ => Ok(reloaded),
        });
        let reloaded = match reloaded {
            Ok(reloaded) => reloaded,
            Err(why) => return self.answer(request, Err(why)),
        };
        if reloaded.is_dry_run {
            return self.reply(request, None, reloaded.changed, Vec::new());
        }
        let Reloaded { apps, removed, config, changed, left, notes, .. } = reloaded;
        let lines = self.supervisor.changes(apps.iter().map(|found| &found.spec), &removed);
        if let Some(config) = config {
            self.config = config.clone();
            self.tell_kernel(&ToKernel::Reconfigure { config }, Vec::new());
        }
        self.forget_removed();
        for found in &apps {
            self.make_known(found);
        }
        let apps = apps.into_iter().map(|found| found.spec).collect();
        self.heard.push_back(SupervisorEvent::Reloaded { apps, removed });
        let noted = |Note { app, text: note, severity }| SupervisorEvent::Noted { app, note, severity };
        self.heard.extend(notes.into_iter().map(noted));
        // The kernel process receives the changes of apps before the answer.
        self.decide();
        let done: Vec<String> = changed.into_iter().chain(lines).collect();
        let is_judgement = request.slices.as_ref().is_some_and(|it| it.wanted == SlicesWanted::Judged);
        if is_judgement && done.is_empty() && left.is_empty() {
            // Nobody has asked, and nothing has changed.
            return self.reply(request, None, done, left);
        }
        self.answer(request, Ok((done, left)));
    }

    /// The changes, or the reason why there are none: for the log and for the operator.
    fn answer(&mut self, request: &ReloadRequest, outcome: Result<(Vec<String>, Vec<String>), String>) {
        let cut = |lines: Vec<String>| -> Vec<String> {
            lines.iter().map(|line| legible(line, REASON_BYTES_MAX)).collect()
        };
        let (refused, done, left) = match outcome {
            Ok((done, left)) => (None, cut(done), cut(left)),
            Err(why) => (Some(legible(&why, REFUSAL_BYTES_MAX)), Vec::new(), Vec::new()),
        };
        match &refused {
            Some(why) => {
                tracing::error!("the configuration was not reloaded, and nothing has changed: {why}")
            }
            None => tracing::info!("the configuration was reloaded: {} changes", done.len()),
        }
        done.iter().for_each(|line| tracing::info!("{line}"));
        left.iter().for_each(|line| tracing::warn!("{line}"));
        self.reply(request, refused, done, left);
    }

    /// The answer to the operator who asked, if one did.
    fn reply(
        &mut self,
        request: &ReloadRequest,
        refused: Option<String>,
        done: Vec<String>,
        left: Vec<String>,
    ) {
        let Some((generation, ticket)) = request.answer_to else { return };
        // A kernel process that started later did not ask.
        if self.kernel.as_ref().is_some_and(|kernel| kernel.generation == generation) {
            self.tell_kernel(&ToKernel::Reloaded { ticket, refused, done, left }, Vec::new());
        }
    }

    fn add(&mut self, found: FoundApp) {
        self.forget_removed();
        // Before the app itself is sent.
        self.make_known(&found);
        self.heard.push_back(SupervisorEvent::AppAdded { spec: Box::new(found.spec) });
    }

    /// Sends an app's data to the kernel process, and keeps it for the next one.
    fn make_known(&mut self, FoundApp { spec, about }: &FoundApp) {
        let (app, limits, about) = (spec.name.clone(), spec.limits.clone(), about.clone());
        let message = ToKernel::AppAdded { app: app.clone(), limits, about };
        self.tell_kernel(&message, Vec::new());
        self.added.insert(app, message);
    }

    /// Forgets the data of removed apps.
    fn forget_removed(&mut self) {
        let statuses = self.statuses();
        self.added.retain(|name, _| statuses.iter().any(|status| status.app == *name));
    }
}
