//! The one place that acts: starts processes, passes on messages, reads output, waits.
//!
//! In: a [`Plan`], the stop signals, and what children do. Out: child processes, messages to them, the log, and in the
//! end a [`NodeEnd`]. It decides nothing (`supervisor` does), blocks only in its poll, and accepts no network connection.

mod listening;
mod owning;
mod reloading;
pub(crate) mod serving;
mod showing;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use std::io;

use resource_contract::{Ruling, Verdict};
use ring::Sizes;
use rustix::event::{PollFd, PollFlags};
use security_contract::Packages;
use serde_json::Value;
use zone::{Denied, Resource, Sample};

use crate::app::{AppRole, AppSpec, AppStatus, Duty, KernelStatus, check_app_name};
use crate::audit::{Batch, Record};
use crate::clock::{now_ms, timespec, unix_ms_at_zero};
use crate::finder::{Finder, ReloadRequest};
use crate::incident::Incident;
use crate::incident_list::IncidentList;
use crate::kernel_messages::{KernelMessage, event};
use crate::kernel_process::KernelProcess;
use crate::owners::Owners;
use crate::package_verifier::{Done, PackageVerifier};
use crate::plan::{Plan, Programs, check_plan};
use crate::protocol::{FaultCause, ToKernel};
use crate::record_writer::RecordWriter;
use crate::recording::Recording;
use crate::resources::{Measured, Moment, Resources, ZoneCounts};
use crate::run_error::RunError;
use crate::sampling;
use crate::sampling_turns::Turns;
use crate::supervisor::{ChildId, Reaction, Severity, StopSignal, Supervisor, SupervisorEvent};
use crate::verification::{PackageVerdict, Task, Verification};
use crate::zone_process::{Reported, ZoneProcess};
use crate::zones::{Begun, Reaped, ZoneStart, Zones};

/// How many messages of the kernel process are read in one turn, so that it cannot delay the monitor's other work.
const MESSAGES_PER_TURN_MAX: usize = 64;

/// How many messages of the kernel process are read after its end: more than its socket holds.
const MESSAGES_AFTER_END_MAX: usize = 4_096;

/// How the node ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEnd {
    /// The exit code: 0 after a normal stop, 2 if the operator must change something first, 1 for everything else.
    pub code: u8,
    /// The error to print, unless the node was stopped normally.
    pub message: Option<String>,
}

/// Runs a node until it ends, with the stop signals of this process. Afterwards `unkept` has the records that no
/// service has stored.
///
/// # Errors
/// [`RunError::Plan`] before anything was started; [`RunError::Io`] if the system fails an operation of the monitor
/// itself.
pub fn run(plan: Plan, unkept: &mut Batch) -> Result<NodeEnd, RunError> {
    let (stop, reload_requests) = crate::signals::node_signals()?;
    let mut monitor = Monitor::start(plan, stop)?;
    monitor.reload_on(reload_requests);
    loop {
        let turned = monitor.turn();
        if !matches!(turned, Ok(None)) {
            *unkept = monitor.take_unkept();
        }
        if let Some(outcome) = turned? {
            return Ok(outcome);
        }
    }
}

/// The sources that a poll waits for.
#[derive(Debug, Clone, Copy)]
enum Source {
    Stop,
    Reload,
    Network,
    Found,
    Verified,
    KernelChannel,
    KernelEnd,
    ZoneChannel(u16),
    ZoneOutput(u16),
    ZoneReport(u16),
    ZoneEnd(u16),
}

/// A running node, turn by turn.
pub struct Monitor {
    workers: u16,
    port: Sizes,
    config: Value,
    programs: Programs,
    supervisor: Supervisor,
    stop: Option<OwnedFd>,
    /// Each byte in it requests a reload of the configuration.
    reload_requests: Option<OwnedFd>,
    /// Each byte in it requests that slices are judged again.
    network_changes: Option<OwnedFd>,
    kernel: Option<KernelProcess>,
    zones: Zones,
    writer: RecordWriter,
    finder: Finder,
    verifier: PackageVerifier,
    verification: Verification,
    /// Messages for every kernel process in addition to its configuration, by app; at most one for each app.
    added: BTreeMap<String, ToKernel>,
    heard: VecDeque<SupervisorEvent>,
    resources: Resources,
    sampling_turns: Turns,
    owners: Owners,
    /// The time of the next write of the owners, if they have changed.
    next_owners_ms: Option<u64>,
    statuses_changed: bool,
    /// The kernel process and its ticket that wait for a copy of the store. A later request replaces it.
    saving: Option<(u64, u64)>,
    /// `None` if the node has no service that stores records: then the monitor collects none.
    recording: Option<Recording>,
    incidents: IncidentList,
    outcome: Option<NodeEnd>,
}

impl Monitor {
    /// Starts the kernel process. Every byte that can be read from `stop` asks for the end
    /// ([`crate::shutdown_signals`]).
    ///
    /// # Errors
    /// [`RunError::Plan`] if the plan cannot be run; nothing has been started then. [`RunError::Io`] if the system has no threads left.
    pub fn start(plan: Plan, stop: OwnedFd) -> Result<Monitor, RunError> {
        check_plan(&plan)?;
        let Plan {
            apps, workers, port, config, programs, timing, safe_mode, records, network_changes, ..
        } = plan;
        let (find, reload, packages, owners) = (plan.find, plan.reload, plan.packages, plan.owners);
        let records_service =
            apps.iter().find(|app| app.duty == Some(Duty::KeepRecords)).map(|app| app.name.clone());
        let supervisor = Supervisor::new(apps, timing)?.with_safe_mode(safe_mode);
        let mut monitor = Monitor {
            workers,
            port,
            config,
            programs,
            supervisor,
            stop: Some(stop),
            reload_requests: None,
            network_changes,
            kernel: None,
            zones: Zones::new(),
            writer: RecordWriter::new(records)?,
            finder: Finder::new(find, reload),
            verifier: PackageVerifier::new(packages),
            verification: Verification::default(),
            added: BTreeMap::new(),
            heard: VecDeque::new(),
            resources: Resources::new(port_bytes(port) * u64::from(workers)),
            sampling_turns: Turns::default(),
            owners,
            next_owners_ms: None,
            statuses_changed: false,
            saving: None,
            recording: None,
            incidents: IncidentList::default(),
            outcome: None,
        };
        monitor.recording = records_service
            .map(|service| Recording::new(service, monitor.statuses(), monitor.kernel_status()));
        monitor.record(|now| {
            Record::new(now, "node_started", "monitor", format!("version {}", env!("CARGO_PKG_VERSION")))
        });
        monitor.heard.push_back(SupervisorEvent::Begin);
        monitor.decide();
        Ok(monitor)
    }

    /// The statuses of all apps.
    #[must_use]
    pub fn statuses(&self) -> Vec<AppStatus> {
        self.supervisor.statuses(unix_ms_at_zero())
    }

    /// The status of the kernel process.
    #[must_use]
    pub fn kernel_status(&self) -> KernelStatus {
        self.supervisor.kernel_status(unix_ms_at_zero())
    }

    /// The recent usage of a zone, oldest first: at most [`zone::usage::HISTORY_SAMPLES_MAX`] samples, including those
    /// of ended processes.
    #[must_use]
    pub fn samples(&self, zone: u16) -> Vec<Sample> {
        self.resources.history(zone)
    }

    /// Waits at most half a second for events, and handles all of them. Returns the outcome when the node has ended.
    ///
    /// # Errors
    /// The system's poll failed. No child can cause this.
    pub fn turn(&mut self) -> io::Result<Option<NodeEnd>> {
        for source in self.wait()? {
            self.on_ready(source);
        }
        self.zones.tick(now_ms(), &mut self.writer);
        let supervisor = &self.supervisor;
        self.zones.share_regions(|zone| supervisor.spec(zone));
        self.measure();
        let supervisor = &self.supervisor;
        self.resources.keep_only(|zone| supervisor.spec(zone).is_some());
        self.heard.push_back(SupervisorEvent::Tick);
        self.decide();
        self.see_to_packages();
        self.flush();
        self.keep_owners(now_ms());
        Ok(self.outcome.clone())
    }

    fn wait(&self) -> io::Result<Vec<Source>> {
        let (sources, mut fds): (Vec<Source>, Vec<PollFd<'_>>) = self.sources().into_iter().unzip();
        let now = now_ms();
        let outputs = self.zones.next_wake_ms().unwrap_or(u64::MAX);
        let wake = outputs
            .min(self.supervisor.next_wake_ms(now))
            .min(self.sampling_turns.next_ms())
            .min(self.next_owners_ms.unwrap_or(u64::MAX))
            .min(self.verification.next_wake_ms());
        match rustix::event::poll(&mut fds, Some(&timespec(wake.saturating_sub(now)))) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(errno) => return Err(errno.into()),
        }
        let ready = sources.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(source, _)| source).collect())
    }

    /// The sources in the order in which they are handled: a child's messages come before its end.
    fn sources(&self) -> Vec<(Source, PollFd<'_>)> {
        let mut sources = Vec::new();
        let mut wait_for = |source, fd, flags| sources.push((source, PollFd::from_borrowed_fd(fd, flags)));
        if let Some(stop) = &self.stop {
            wait_for(Source::Stop, stop.as_fd(), PollFlags::IN);
        }
        if let Some(reload_requests) = &self.reload_requests {
            wait_for(Source::Reload, reload_requests.as_fd(), PollFlags::IN);
        }
        if let Some(changes) = &self.network_changes {
            wait_for(Source::Network, changes.as_fd(), PollFlags::IN);
        }
        if let Some(wake) = self.finder.wake() {
            wait_for(Source::Found, wake, PollFlags::IN);
        }
        if let Some(wake) = self.verifier.wake() {
            wait_for(Source::Verified, wake, PollFlags::IN);
        }
        if let Some(kernel) = &self.kernel {
            if let Some((socket, is_waiting)) = kernel.socket() {
                wait_for(Source::KernelChannel, socket, in_and_out(is_waiting));
            }
            wait_for(Source::KernelEnd, kernel.child.as_fd(), PollFlags::IN);
        }
        for zone in self.zones.iter() {
            let is_service =
                self.supervisor.spec(zone.zone).is_some_and(|spec| spec.role == AppRole::Service);
            if let Some((socket, is_waiting)) = zone.channel.socket().filter(|_| is_service) {
                wait_for(Source::ZoneChannel(zone.zone), socket, in_and_out(is_waiting));
            }
            if let Some(pipe) = zone.pipe.as_ref().filter(|_| !zone.output.is_exhausted()) {
                wait_for(Source::ZoneOutput(zone.zone), pipe.as_fd(), PollFlags::IN);
            }
            if let Some(pipe) = zone.report_pipe.as_ref().filter(|_| !zone.report.is_exhausted()) {
                wait_for(Source::ZoneReport(zone.zone), pipe.as_fd(), PollFlags::IN);
            }
            wait_for(Source::ZoneEnd(zone.zone), zone.child.as_fd(), PollFlags::IN);
        }
        sources
    }

    fn on_ready(&mut self, source: Source) {
        match source {
            Source::Stop => self.read_stop(),
            Source::Reload => self.read_reload_requests(),
            Source::Network => self.read_network_changes(),
            Source::Found => self.take_found(),
            Source::Verified => self.take_done(),
            Source::KernelChannel => self.read_kernel(MESSAGES_PER_TURN_MAX),
            Source::KernelEnd => self.reap_kernel(),
            Source::ZoneChannel(zone) => self.attend_service(zone),
            Source::ZoneOutput(zone) => self.zones.read_output(zone, now_ms(), &mut self.writer),
            Source::ZoneReport(zone) => {
                let reported = self.zones.read_report(zone, now_ms());
                self.take_report(reported);
            }
            Source::ZoneEnd(zone) => self.reap_zone(zone),
        }
        self.decide();
    }

    /// Passes all events to the supervisor, and executes its reactions, until there are no more events.
    fn decide(&mut self) {
        while let Some(event) = self.heard.pop_front() {
            if let SupervisorEvent::NotEnforced { who: ChildId::Zone { zone, .. }, gap } = &event
                && let Some(app) = self.supervisor.spec(*zone).map(|spec| spec.name.clone())
            {
                self.record(|now| Record::new(now, "not_enforced", "monitor", gap.to_string()).of_app(&app));
            }
            let reactions = self.supervisor.on_event(event, now_ms());
            let something = !reactions.is_empty();
            for reaction in reactions {
                self.act(reaction);
            }
            if something {
                self.record_changes();
            }
        }
    }

    fn record(&mut self, record: impl FnOnce(u64) -> Record) {
        if let Some(records) = &mut self.recording {
            records.push(record(unix_ms_at_zero().saturating_add(now_ms())));
        }
    }

    /// The changes of apps and kernel since the last call.
    fn record_changes(&mut self) {
        if self.recording.is_some() {
            let (apps, kernel) = (self.statuses(), self.kernel_status());
            let now_unix_ms = unix_ms_at_zero().saturating_add(now_ms());
            if let Some(records) = &mut self.recording {
                records.observe(apps, kernel, now_unix_ms);
            }
        }
    }

    /// Removes and returns the node's records that no service has stored.
    pub fn take_unkept(&mut self) -> Batch {
        self.recording.as_mut().map(Recording::take_unkept).unwrap_or_default()
    }

    fn act(&mut self, reaction: Reaction) {
        match reaction {
            Reaction::StartKernel { generation } => {
                let started = self.start_kernel(generation);
                self.report_start(ChildId::Kernel { generation }, started);
            }
            Reaction::StartZone { zone, generation } => {
                let started = self.start_zone(zone, generation);
                self.report_start(ChildId::Zone { zone, generation }, started);
            }
            Reaction::Verify(subject) => self.verification.on_start(subject),
            Reaction::LookUp { app } => {
                if let Err(reason) = self.finder.ask(app.clone()) {
                    self.heard.push_back(SupervisorEvent::NotFound { app, reason });
                }
            }
            Reaction::Listen { zone, generation } => self.listen(zone, generation),
            Reaction::End { who, how } => self.end(who, how),
            Reaction::TellKernel(message) => self.tell_kernel(&message, Vec::new()),
            Reaction::PublishApps => {
                self.statuses_changed = true;
                self.close_unused_listeners();
            }
            Reaction::Incident(incident) => self.keep_incident(incident),
            Reaction::Log { severity: Severity::Info, line } => tracing::info!("{line}"),
            Reaction::Log { severity: Severity::Warn, line } => tracing::warn!("{line}"),
            Reaction::Log { severity: Severity::Error, line } => tracing::error!("{line}"),
            Reaction::Exit { code, message } => self.outcome = Some(NodeEnd { code, message }),
        }
    }

    /// Adds the facts that only this file knows, and passes the incident to the writer.
    fn keep_incident(&mut self, mut incident: Box<Incident>) {
        incident.on_the_wall(unix_ms_at_zero());
        if let Some(app) = &incident.app {
            let zone = self.statuses().iter().find(|status| status.app == *app).map(|status| status.zone);
            incident.evidence.samples = zone.map(|zone| self.resources.history(zone)).unwrap_or_default();
            incident.evidence.last_lines = self.zones.last_lines(app, incident.generation);
        }
        self.writer.incident(incident);
    }

    fn report_start(&mut self, who: ChildId, started: io::Result<u32>) {
        self.heard.push_back(match started {
            Ok(pid) => SupervisorEvent::Started { who, pid },
            Err(error) => {
                SupervisorEvent::StartFailed { who, reason: format!("it could not be started: {error}") }
            }
        });
    }

    fn start_kernel(&mut self, generation: u64) -> io::Result<u32> {
        let (kernel, board_fd) = KernelProcess::start(&self.programs.kernel, generation)?;
        let pid = kernel.child.pid();
        self.kernel = Some(kernel);
        let (config, owners_follow) = (self.config.clone(), self.owners_messages());
        self.tell_kernel(&ToKernel::Configure { config, owners_follow }, vec![board_fd]);
        self.tell_owners();
        for message in self.added.clone().into_values() {
            self.tell_kernel(&message, Vec::new());
        }
        Ok(pid)
    }

    fn start_zone(&mut self, zone: u16, generation: u64) -> io::Result<u32> {
        let spec = self.supervisor.spec(zone).ok_or_else(|| io::Error::other("no such zone"))?;
        let (workers, port) = (self.workers, self.port);
        let others_write = self.supervisor.others_write(zone);
        let start = ZoneStart { zone, generation, spec, others_write, workers, port };
        let Begun { pid, for_kernel, missing } = self.zones.start(start, &self.programs.zone)?;
        let who = ChildId::Zone { zone, generation };
        let is_service = spec.role == AppRole::Service;
        let missing = missing.map(|why| why.to_string());
        self.heard.extend(is_service.then_some(SupervisorEvent::Listens { who, is_new: false, missing }));
        let app = spec.name.clone();
        let grant = spec.grant.clone();
        let attach = ToKernel::AttachZone { zone, app, generation, ports: workers, grant };
        self.tell_kernel(&attach, for_kernel);
        Ok(pid)
    }

    fn end(&mut self, who: ChildId, how: StopSignal) {
        let child = match who {
            ChildId::Kernel { generation } => {
                let same = self.kernel.as_ref().filter(|kernel| kernel.generation == generation);
                same.map(|kernel| &kernel.child)
            }
            ChildId::Zone { zone, generation } => {
                let process = self.zones.of(zone).filter(|process| process.generation == generation);
                process.map(|process| &process.child)
            }
        };
        if let Some(child) = child {
            child.end(how);
        }
    }

    /// Queues the message; `flush` sends it.
    fn tell_kernel(&mut self, message: &ToKernel, fds: Vec<OwnedFd>) {
        let queued = self.kernel.as_mut().map(|kernel| kernel.tell(message, fds));
        self.heard.extend(queued.and_then(Result::err).map(|reason| SupervisorEvent::KernelFault { reason }));
    }

    fn flush(&mut self) {
        if self.statuses_changed && self.kernel.as_ref().is_some_and(KernelProcess::is_idle) {
            self.statuses_changed = false;
            let safe_mode = self.supervisor.safe_mode_status(unix_ms_at_zero());
            let (apps, kernel) = (self.statuses(), self.kernel_status());
            self.tell_kernel(&ToKernel::Apps { apps, kernel, safe_mode }, Vec::new());
        }
        self.tell_records();
        let sent = self.kernel.as_mut().map(KernelProcess::flush);
        self.heard.extend(sent.and_then(Result::err).map(|reason| SupervisorEvent::KernelFault { reason }));
    }

    fn read_stop(&mut self) {
        let mut bytes = [0; 16];
        match self.stop.as_ref().map(|stop| rustix::io::read(stop, &mut bytes)) {
            Some(Ok(0)) => self.stop = None,
            Some(Ok(count)) => self.heard.extend((0..count).map(|_| SupervisorEvent::ShutdownAsked)),
            _ => {}
        }
    }

    fn read_kernel(&mut self, messages_max: usize) {
        for _ in 0..messages_max {
            let Some(kernel) = &mut self.kernel else { return };
            let generation = kernel.generation;
            match kernel.receive() {
                Some(Ok(message)) => self.hear_kernel(event(message), generation),
                Some(Err(reason)) => self.heard.push_back(SupervisorEvent::KernelFault { reason }),
                None => return,
            }
        }
    }

    fn hear_kernel(&mut self, message: KernelMessage, generation: u64) {
        match message {
            KernelMessage::Event(event) => self.heard.push_back(event),
            KernelMessage::Counts(counts) => self.on_counts(&counts),
            KernelMessage::AddApp(app) => match self.finder.ask(app.clone()) {
                Ok(()) => tracing::info!("app {app}: the operator adds it"),
                Err(why) => tracing::error!("app {app}: it is not started: {why}"),
            },
            KernelMessage::Reload { ticket, app, slices } => {
                self.request_reload(ReloadRequest { app, slices, answer_to: Some((generation, ticket)) });
            }
            KernelMessage::SaveStore { ticket } => self.save_store(generation, ticket),
            KernelMessage::Owned(changes) => self.on_owned(&changes, now_ms()),
            KernelMessage::Line { app, generation, line } => self.on_line(&app, generation, &line),
            KernelMessage::Records(told) => {
                if let Some(records) = &mut self.recording {
                    records.hear(told);
                }
            }
        }
    }

    /// Takes the counters of the kernel process. For the apps inside it, they are the measure of usage.
    fn on_counts(&mut self, counts: &[ZoneCounts]) {
        self.resources.on_counts(counts);
        let now_ms = now_ms();
        let at = Moment { now_ms, unix_ms: unix_ms_at_zero() + now_ms };
        for (zone, generation) in self.supervisor.trusted() {
            let Some(spec) = self.supervisor.spec(zone) else { continue };
            for verdict in self.resources.on_counted(zone, generation, &spec.limits, at) {
                self.carry_out(&Ruling { zone, generation, verdict });
            }
        }
    }

    /// Executes the rulings of the service.
    fn on_rulings(&mut self, rulings: &[Ruling]) {
        self.resources.on_rulings(now_ms());
        rulings.iter().for_each(|ruling| self.carry_out(ruling));
    }

    /// Writes a line that an app sent to the node's log to the app's own log. Its name becomes a file name.
    fn on_line(&mut self, app: &str, generation: u64, line: &str) {
        if check_app_name(app).is_err() {
            return;
        }
        if let Some(zone) = self.zones.of_app(app, generation) {
            zone.last_lines.push(line);
        }
        self.writer.line(app, generation, unix_ms_at_zero().saturating_add(now_ms()), line);
    }

    /// Requests verification of the apps that start, and regularly of the running ones.
    fn see_to_packages(&mut self) {
        let supervisor = &self.supervisor;
        self.verification.on_running(supervisor.runs(Duty::VerifyPackages));
        self.verification.on_time(|| supervisor.to_verify(), now_ms());
        while let Some(task) = self.verification.next_task() {
            match task {
                Task::AskService { round, question } => {
                    // If the service gets no message, it does not answer, and the verifier is used.
                    self.tell_service(Duty::VerifyPackages, &Packages { round, question });
                }
                task => {
                    if !self.verifier.send(task) {
                        let verdicts = self.verification.on_verifier_ended();
                        self.on_verdicts(verdicts);
                    }
                }
            }
        }
        self.decide();
    }

    /// Takes the results of the verifier.
    fn take_done(&mut self) {
        let Some(done) = self.verifier.take_done() else {
            let verdicts = self.verification.on_verifier_ended();
            return self.on_verdicts(verdicts);
        };
        for done in done {
            match done {
                Done::Collected { round, question } => {
                    self.verification.on_collected(round, question, now_ms())
                }
                Done::Verified { round, verdicts } => {
                    let verdicts = self.verification.on_verifier(round, verdicts);
                    self.on_verdicts(verdicts);
                }
            }
        }
    }

    fn on_verdicts(&mut self, verdicts: Vec<PackageVerdict>) {
        let heard =
            |PackageVerdict { zone, check, validity }| SupervisorEvent::Verified { zone, check, validity };
        self.heard.extend(verdicts.into_iter().map(heard));
    }

    fn reap_kernel(&mut self) {
        let Some(kernel) = &mut self.kernel else { return };
        let ended = kernel.child.ended();
        let generation = kernel.generation;
        let who = ChildId::Kernel { generation };
        match ended {
            Ok(None) => return,
            Ok(Some(end)) => {
                // Its last messages explain its end.
                self.read_kernel(MESSAGES_AFTER_END_MAX);
                if let Some(kernel) = &self.kernel {
                    self.heard.push_back(SupervisorEvent::KernelCalled { zones: kernel.called() });
                }
                self.heard.push_back(SupervisorEvent::Exited { who, end, last_line: None });
            }
            Err(error) => self
                .heard
                .push_back(SupervisorEvent::StartFailed { who, reason: format!("it was lost: {error}") }),
        }
        self.kernel = None;
    }

    fn take_report(&mut self, reported: Reported) {
        self.heard.extend(reported.gaps);
        for (app, Denied { denied, count }) in reported.denied {
            self.record(|now| Record { count, ..Record::new(now, "denied", "app", denied).of_app(&app) });
        }
    }

    fn reap_zone(&mut self, zone: u16) {
        let Some(reaped) = self.zones.reap(zone, now_ms(), &mut self.writer) else { return };
        let Reaped { generation, end, last_line, reported } = reaped;
        self.take_report(reported);
        self.resources.on_end(zone);
        let who = ChildId::Zone { zone, generation };
        self.heard.push_back(match end {
            Ok(end) => SupervisorEvent::Exited { who, end, last_line },
            Err(error) => SupervisorEvent::StartFailed { who, reason: format!("it was lost: {error}") },
        });
    }

    /// Measures the usage of the processes whose turn it is. When all have had theirs, it tells all that is known.
    fn measure(&mut self) {
        let now_ms = now_ms();
        let Some(turn) = self.sampling_turns.due(now_ms, self.zones.iter().count()) else { return };
        let at = Moment { now_ms, unix_ms: unix_ms_at_zero() + now_ms };
        let pids = |it: &ZoneProcess| (it.zone, it.generation, it.child.pid());
        let due = self.zones.iter().filter(|it| turn.is_of(it.zone)).map(pids);
        for (zone, generation, pid) in due.collect::<Vec<_>>() {
            self.measure_zone(zone, generation, pid, at);
        }
        if turn.is_last() {
            self.tell_usage(at);
        }
    }

    fn tell_usage(&mut self, at: Moment) {
        let trusted = self.supervisor.trusted();
        self.resources.end_unloaded(|zone| trusted.iter().any(|(loaded, _)| *loaded == zone));
        let read = |pid| sampling::process(Path::new("/proc"), pid).unwrap_or_default();
        let kernel = self.kernel.as_ref().map(|kernel| read(kernel.child.pid())).unwrap_or_default();
        let node = self.resources.on_node(kernel, read(std::process::id()), at);
        self.tell_observations();
        self.tell_state();
        // Waiting messages would be older: send only if the kernel process reads.
        if self.kernel.as_ref().is_some_and(KernelProcess::is_idle) {
            self.tell_kernel(&ToKernel::Resources { zones: self.resources.usages(), node }, Vec::new());
        }
    }

    fn measure_zone(&mut self, zone: u16, generation: u64, pid: u32, at: Moment) {
        let Some(mut reading) = sampling::zone(Path::new("/proc"), pid) else { return };
        let Some(spec) = self.supervisor.spec(zone) else { return };
        // The node made it. Its full size is subtracted, although the process counts only the pages that it has touched: up to this much is
        // not counted.
        reading.shared_bytes = reading.shared_bytes.saturating_sub(self.zones.region_bytes(spec));
        let keeps_cpu = self.supervisor.enforces(zone, Resource::CpuPercent.key());
        let measured = Measured { zone, generation, reading, limits: &spec.limits, keeps_cpu };
        for verdict in self.resources.on_reading(&measured, at) {
            self.carry_out(&Ruling { zone, generation, verdict });
        }
    }

    /// Executes a ruling of the service or of the monitor itself.
    fn carry_out(&mut self, ruling: &Ruling) {
        if !self.resources.takes(ruling) {
            return;
        }
        let Ruling { zone, generation, verdict } = *ruling;
        let Some(AppSpec { name: app, role, .. }) = self.supervisor.spec(zone) else { return };
        let what = if *role == AppRole::Service { "service" } else { "app" };
        let excess = match verdict {
            Verdict::End(excess) => {
                let (app, cause, reason) = (app.clone(), FaultCause::PassedLimit, excess.reason());
                return self.heard.push_back(SupervisorEvent::ZoneFault { app, generation, cause, reason });
            }
            Verdict::Passed(excess) => {
                tracing::warn!("{what} {app} uses more than a soft limit: {excess}");
                excess
            }
            Verdict::Within(excess) => {
                tracing::info!("{what} {app} is within its soft limit again: {excess}");
                excess
            }
        };
        self.tell_kernel(&ToKernel::SoftLimit { zone, generation, excess }, Vec::new());
    }
}

/// The events that a poll waits for on a socket.
fn in_and_out(is_waiting: bool) -> PollFlags {
    if is_waiting { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
}

/// The memory of one port: its rings, and a few pages of indices.
fn port_bytes(sizes: Sizes) -> u64 {
    const INDICES: u64 = 64 << 10;
    // The rings exist, so their sizes fit the address space and the sum cannot overflow.
    [sizes.packets_bytes(), sizes.control_bytes(), sizes.from_app_bytes()]
        .iter()
        .fold(INDICES, |sum, bytes| sum.saturating_add(*bytes as u64))
}
