//! The one place that acts: starts processes, passes messages on, reads output, waits.
//!
//! In: a [`Plan`], the stop signals, and what children do. Out: child processes, messages to them, the log, and in the
//! end an [`Outcome`]. It decides nothing (`supervisor` does), blocks only in its poll, and has no network socket.

mod owning;
mod reloading;
pub(crate) mod serving;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use std::{fmt, io};

use ring::{Board, Port, Sizes};
use rustix::event::{PollFd, PollFlags};
use serde_json::Value;
use zone::cgroup::{NodeGroups, ZoneGroups};
use zone::judge::{Ruling, Verdict};
use zone::{Denied, NotEnforced, Resource, Sample};

use crate::app::{AppRole, AppSpec, AppStatus, KernelStatus, check_app_name};
use crate::audit::{self, Batch, Record};
use crate::channel::{Channel, ChannelError, encode};
use crate::children::Child;
use crate::clock::{now_ms, timespec, unix_ms_at_zero};
use crate::finder::{Find, Finder, ReloadRequest};
use crate::incident::Incident;
use crate::kernel_messages::{KernelMessage, event};
use crate::output::Output;
use crate::owners::Owners;
use crate::package_verifier::{Done, PackageChecks, PackageVerifier};
use crate::plan::check_plan;
use crate::protocol::{FromKernel, PORT_FDS, ToKernel, ToService, ToZone};
use crate::record_writer::RecordWriter;
use crate::recording::Recording;
use crate::reload::Reload;
use crate::resources::{Measured, Moment, Resources, SAMPLE_INTERVAL_MS, ZoneCounts};
use crate::run_error::RunError;
use crate::safe_mode::SafeModePlan;
use crate::sampling;
use crate::supervisor::{ChildId, Command, Event, Severity, StopSignal, Supervisor, Timing};
use crate::verification::{PackageVerdict, Task, Verification};
use crate::zone_process::{
    LastLines, OUTPUT_BYTES_PER_TURN_MAX, Reported, ZoneProcess, log_zone, print, read_pipe, read_report,
};

/// Most messages that wait for the kernel process to read. More than all apps' attachments at once; a kernel that
/// lets them pile up hangs.
const OUTBOX_MESSAGES_MAX: usize = 4_096;

/// Most messages of the kernel process in one turn, so that it cannot keep the monitor from everything else.
const MESSAGES_PER_TURN_MAX: usize = 64;

/// The service that judges packages.
const SECURITY: &str = "security";

/// What is read of the kernel process after its end: more than its socket holds.
const MESSAGES_AFTER_END_MAX: usize = 4_096;

/// What is read of an app's output after its end: all that a pipe holds.
const OUTPUT_BYTES_AFTER_END_MAX: usize = 64 << 10;

/// Most bytes of a launcher's report in one turn; what an app can bring about in it is little.
const REPORT_BYTES_PER_TURN_MAX: usize = 4 << 10;

/// What to execute for an app: a path and its arguments.
pub type ZoneProgram = dyn Fn(&AppSpec, &ZoneSetup) -> Vec<OsString>;

/// What the monitor has made ready for a zone.
#[derive(Debug, Default)]
pub struct ZoneSetup {
    /// The folders of its control groups, for its launcher to join.
    pub cgroups: Vec<PathBuf>,
    /// What they do not keep.
    pub gaps: Vec<NotEnforced>,
    /// Folders that other apps may write.
    pub others_write: Vec<PathBuf>,
}

/// The programs that the monitor starts, each as its path and arguments.
pub struct Programs {
    /// The kernel process. It finds its socket on standard input.
    pub kernel: Vec<OsString>,
    /// The process of an app, which finds its socket on standard input too.
    pub zone: Box<ZoneProgram>,
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

/// What a node runs.
#[derive(Debug)]
pub struct Plan {
    /// The apps, in the order in which they are started.
    pub apps: Vec<AppSpec>,
    /// Workers of the kernel process, so ports of each zone: 1 to [`WORKERS_MAX`](crate::protocol::WORKERS_MAX).
    pub workers: u16,
    /// The sizes of each port.
    pub port: Sizes,
    /// What the kernel process is configured with; the monitor does not look into it.
    pub config: Value,
    /// What to start.
    pub programs: Programs,
    /// The monitor's policy.
    pub timing: Timing,
    /// What the operator wants of safe mode.
    pub safe_mode: SafeModePlan,
    /// The folder in which incidents and what apps print are kept ([`crate::records`]); without it they are not.
    pub records: Option<PathBuf>,
    /// Where an app is looked up that the operator adds while the node runs; without it none is added.
    pub find: Option<Find>,
    /// Reloads the configuration. Without it, the node keeps its first configuration.
    pub reload: Option<Reload>,
    /// Whose the groups and meters of switches were when the node ended; kept in the folder of records from now on.
    pub owners: Owners,
    /// What knows the packages of apps; without it no app that comes from one is started.
    pub packages: Option<PackageChecks>,
}

/// How the node ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code: 0 as asked, 2 if the operator must change something first, 1 for everything else.
    pub code: u8,
    /// The sentence to print, if it did not end as asked.
    pub message: Option<String>,
}

/// Runs a node until it ends, with the stop signals of this process. What of its records no service has kept is left in `unkept`.
///
/// # Errors
/// [`RunError::Plan`] before anything was started; [`RunError::Io`] if the system fails the monitor itself.
pub fn run(plan: Plan, unkept: &mut Batch) -> Result<Outcome, RunError> {
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

struct KernelProcess {
    generation: u64,
    child: Child,
    /// `None` once the kernel closed its end; its exit follows.
    channel: Option<Channel>,
    outbox: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    /// Where its workers write which trusted zone they call.
    board: Board,
}

/// What a poll waits for.
#[derive(Debug, Clone, Copy)]
enum Source {
    Stop,
    Reload,
    Found,
    Verified,
    KernelChannel,
    KernelEnd,
    ZoneLine(u16),
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
    kernel: Option<KernelProcess>,
    zones: Vec<ZoneProcess>,
    groups: NodeGroups,
    /// Groups of zones that are over, in which somebody was still ending. Each turn they are tried again; there are no more of them than
    /// processes that Linux is taking away.
    left_groups: Vec<ZoneGroups>,
    writer: RecordWriter,
    finder: Finder,
    verifier: PackageVerifier,
    verification: Verification,
    /// What every kernel process is to know beside its configuration, by app; at most one for each app.
    added: BTreeMap<String, ToKernel>,
    /// The zone that was reaped last, until its end is handled: its app, generation and last lines.
    reaped: Option<(String, u64, LastLines)>,
    heard: VecDeque<Event>,
    resources: Resources,
    next_sample_ms: u64,
    owners: Owners,
    /// When they are written down next, if they have changed.
    next_owners_ms: Option<u64>,
    statuses_changed: bool,
    /// None if the node has no service that keeps records: then nobody collects any.
    recording: Option<Recording>,
    outcome: Option<Outcome>,
}

impl Monitor {
    /// Starts the kernel process. Every byte that can be read from `stop` asks for the end
    /// ([`crate::shutdown_signals`]).
    ///
    /// # Errors
    /// [`RunError::Plan`] if the plan cannot be run; nothing has been started then. [`RunError::Io`] if the system has no threads left.
    pub fn start(plan: Plan, stop: OwnedFd) -> Result<Monitor, RunError> {
        check_plan(&plan)?;
        let Plan { apps, workers, port, config, programs, timing, safe_mode, records, .. } = plan;
        let (find, reload, packages, owners) = (plan.find, plan.reload, plan.packages, plan.owners);
        let keeps_records = apps.iter().any(|app| app.role == AppRole::Service && app.name == audit::SERVICE);
        let supervisor = Supervisor::new(apps, timing)?.with_safe_mode(safe_mode);
        let mut monitor = Monitor {
            workers,
            port,
            config,
            programs,
            supervisor,
            stop: Some(stop),
            reload_requests: None,
            kernel: None,
            zones: Vec::new(),
            groups: own_groups(),
            left_groups: Vec::new(),
            writer: RecordWriter::new(records)?,
            finder: Finder::new(find, reload),
            verifier: PackageVerifier::new(packages),
            verification: Verification::default(),
            added: BTreeMap::new(),
            reaped: None,
            heard: VecDeque::new(),
            resources: Resources::new(port_bytes(port) * u64::from(workers)),
            next_sample_ms: 0,
            owners,
            next_owners_ms: None,
            statuses_changed: false,
            recording: None,
            outcome: None,
        };
        monitor.recording =
            keeps_records.then(|| Recording::new(monitor.statuses(), monitor.kernel_status()));
        monitor.record(|now| {
            Record::new(now, "node_started", "monitor", format!("version {}", env!("CARGO_PKG_VERSION")))
        });
        monitor.heard.push_back(Event::Begin);
        monitor.decide();
        Ok(monitor)
    }

    /// How all apps are now.
    #[must_use]
    pub fn statuses(&self) -> Vec<AppStatus> {
        self.supervisor.statuses(unix_ms_at_zero())
    }

    /// How the kernel process is now.
    #[must_use]
    pub fn kernel_status(&self) -> KernelStatus {
        self.supervisor.kernel_status(unix_ms_at_zero())
    }

    /// What a zone used lately, oldest first: at most [`zone::usage::HISTORY_SAMPLES_MAX`] samples, those of processes that ended included.
    #[must_use]
    pub fn samples(&self, zone: u16) -> Vec<Sample> {
        self.resources.history(zone)
    }

    /// Waits until something happens, at most half a second, and deals with all of it. Returns the outcome when the
    /// node is over.
    ///
    /// # Errors
    /// When the system's poll fails, which no child can bring about.
    pub fn turn(&mut self) -> io::Result<Option<Outcome>> {
        for source in self.wait()? {
            self.on_commands(source);
        }
        self.log_left_out();
        self.measure();
        self.left_groups.retain_mut(|groups| !groups.remove());
        let supervisor = &self.supervisor;
        self.resources.keep_only(|zone| supervisor.spec(zone).is_some());
        self.heard.push_back(Event::Tick);
        self.decide();
        self.see_to_packages();
        self.flush();
        self.keep_owners(now_ms());
        Ok(self.outcome.clone())
    }

    fn wait(&self) -> io::Result<Vec<Source>> {
        let (sources, mut fds): (Vec<Source>, Vec<PollFd<'_>>) = self.sources().into_iter().unzip();
        let now = now_ms();
        let outputs = self.zones.iter().filter_map(|zone| zone.output.next_wake_ms());
        let wake = outputs
            .fold(self.supervisor.next_wake_ms(now), u64::min)
            .min(self.next_sample_ms)
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

    /// In the order in which they are attended to: what a child said before how it ended.
    fn sources(&self) -> Vec<(Source, PollFd<'_>)> {
        let mut sources = Vec::new();
        let mut wait_for = |source, fd, flags| sources.push((source, PollFd::from_borrowed_fd(fd, flags)));
        if let Some(stop) = &self.stop {
            wait_for(Source::Stop, stop.as_fd(), PollFlags::IN);
        }
        if let Some(reload_requests) = &self.reload_requests {
            wait_for(Source::Reload, reload_requests.as_fd(), PollFlags::IN);
        }
        if let Some(wake) = self.finder.wake() {
            wait_for(Source::Found, wake, PollFlags::IN);
        }
        if let Some(wake) = self.verifier.wake() {
            wait_for(Source::Verified, wake, PollFlags::IN);
        }
        if let Some(kernel) = &self.kernel {
            if let Some(channel) = &kernel.channel {
                let waiting = if kernel.outbox.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
                wait_for(Source::KernelChannel, channel.as_fd(), PollFlags::IN | waiting);
            }
            wait_for(Source::KernelEnd, kernel.child.as_fd(), PollFlags::IN);
        }
        for zone in &self.zones {
            let is_service =
                self.supervisor.spec(zone.zone).is_some_and(|spec| spec.role == AppRole::Service);
            if let Some(channel) = zone.line.channel().filter(|_| is_service) {
                let waiting = if zone.line.is_waiting() { PollFlags::OUT } else { PollFlags::empty() };
                wait_for(Source::ZoneLine(zone.zone), channel.as_fd(), PollFlags::IN | waiting);
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

    fn on_commands(&mut self, source: Source) {
        match source {
            Source::Stop => self.read_stop(),
            Source::Reload => self.read_wishes(),
            Source::Found => self.take_found(),
            Source::Verified => self.take_done(),
            Source::KernelChannel => self.read_kernel(MESSAGES_PER_TURN_MAX),
            Source::KernelEnd => self.reap_kernel(),
            Source::ZoneLine(zone) => self.attend_service(zone),
            Source::ZoneOutput(zone) => self.read_output(zone),
            Source::ZoneReport(zone) => self.read_report(zone),
            Source::ZoneEnd(zone) => self.reap_zone(zone),
        }
        self.decide();
    }

    /// Lets the supervisor decide on all that was heard, and acts on it, until there is nothing more to decide.
    fn decide(&mut self) {
        while let Some(event) = self.heard.pop_front() {
            if let Event::NotEnforced { who: ChildId::Zone { zone, .. }, gap } = &event
                && let Some(app) = self.supervisor.spec(*zone).map(|spec| spec.name.clone())
            {
                self.record(|now| Record::new(now, "not_enforced", "monitor", gap.to_string()).of_app(&app));
            }
            let commands = self.supervisor.on_event(event, now_ms());
            let something = !commands.is_empty();
            for command in commands {
                self.act(command);
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

    /// What of the node's records no service has kept. Nothing is left.
    pub fn take_unkept(&mut self) -> Batch {
        self.recording.as_mut().map(Recording::take_unkept).unwrap_or_default()
    }

    fn act(&mut self, command: Command) {
        match command {
            Command::StartKernel { generation } => {
                let started = self.start_kernel(generation);
                self.report_start(ChildId::Kernel { generation }, started);
            }
            Command::StartZone { zone, generation } => {
                let started = self.start_zone(zone, generation);
                self.report_start(ChildId::Zone { zone, generation }, started);
            }
            Command::Verify(subject) => self.verification.on_start(subject),
            Command::LookUp { app } => {
                if let Err(reason) = self.finder.ask(app.clone()) {
                    self.heard.push_back(Event::NotFound { app, reason });
                }
            }
            Command::End { who, how } => self.end(who, how),
            Command::TellKernel(message) => self.tell_kernel(&message, Vec::new()),
            Command::PublishApps => self.statuses_changed = true,
            Command::Incident(incident) => self.keep_incident(incident),
            Command::Log { severity: Severity::Info, line } => tracing::info!("{line}"),
            Command::Log { severity: Severity::Warn, line } => tracing::warn!("{line}"),
            Command::Log { severity: Severity::Error, line } => tracing::error!("{line}"),
            Command::Exit { code, message } => self.outcome = Some(Outcome { code, message }),
        }
    }

    /// Adds what is known here alone, and hands it to the writer.
    fn keep_incident(&mut self, mut incident: Box<Incident>) {
        incident.on_the_wall(unix_ms_at_zero());
        if let Some(app) = &incident.app {
            let same = |name: &str, generation| name == app && generation == incident.generation;
            let alive = self.zones.iter().find(|zone| same(&zone.app, zone.generation));
            let reaped = self.reaped.as_ref().filter(|(app, generation, _)| same(app, *generation));
            let lines = alive.map(|zone| &zone.last_lines).or(reaped.map(|(.., lines)| lines));
            let zone = self.statuses().iter().find(|status| status.app == *app).map(|status| status.zone);
            incident.evidence.samples = zone.map(|zone| self.resources.history(zone)).unwrap_or_default();
            incident.evidence.last_lines =
                lines.map(|lines| lines.0.iter().cloned().collect()).unwrap_or_default();
        }
        self.writer.incident(incident);
    }

    fn report_start(&mut self, who: ChildId, started: io::Result<u32>) {
        self.heard.push_back(match started {
            Ok(pid) => Event::Started { who, pid },
            Err(error) => Event::StartFailed { who, reason: format!("it could not be started: {error}") },
        });
    }

    fn start_kernel(&mut self, generation: u64) -> io::Result<u32> {
        let (channel, theirs) = Channel::pair()?;
        let (board, board_fd) = Board::create()?;
        let child = Child::start_kernel(&self.programs.kernel, theirs)?;
        let pid = child.pid();
        let (channel, outbox) = (Some(channel), VecDeque::new());
        self.kernel = Some(KernelProcess { generation, child, channel, outbox, board });
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
        let app = spec.name.clone();
        let ports: Vec<Port> =
            (0..self.workers).map(|_| Port::create(self.port)).collect::<io::Result<_>>()?;
        let (for_kernel, for_app): (Vec<_>, Vec<_>) =
            ports.into_iter().map(|port| (port.kernel.into_array(), port.app.into_array())).unzip();
        let (channel, theirs) = Channel::pair()?;
        // Sent before there is a process: it waits in the socket.
        welcome(&channel, zone, generation, spec, for_app.into_iter().flatten().collect())?;
        let (pipe, output) = io::pipe()?;
        let (report_pipe, report) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        rustix::io::ioctl_fionbio(&report_pipe, true)?;
        let (groups, gaps) = self.groups.zone(&format!("{app}.{generation}"), &spec.limits);
        let others_write = self.supervisor.others_write(zone);
        let setup = ZoneSetup { cgroups: groups.folders().to_vec(), gaps, others_write };
        let program = (self.programs.zone)(spec, &setup);
        let child = Child::start_zone(&program, theirs, output.into(), report.into())?;
        let pid = child.pid();
        self.zones.push(ZoneProcess {
            zone,
            generation,
            app: app.clone(),
            child,
            line: serving::ZoneLine::new(channel),
            pipe: Some(pipe),
            output: Output::default(),
            last_lines: LastLines::default(),
            report_pipe: Some(report_pipe),
            report: Output::default(),
            groups,
        });
        let grant = spec.grant.clone();
        let attach = ToKernel::AttachZone { zone, app, generation, ports: self.workers, grant };
        self.tell_kernel(&attach, for_kernel.into_iter().flatten().collect());
        Ok(pid)
    }

    fn end(&mut self, who: ChildId, how: StopSignal) {
        let child = match who {
            ChildId::Kernel { generation } => self
                .kernel
                .as_ref()
                .filter(|kernel| kernel.generation == generation)
                .map(|kernel| &kernel.child),
            ChildId::Zone { zone, generation } => {
                let same = |process: &&ZoneProcess| process.zone == zone && process.generation == generation;
                self.zones.iter().find(same).map(|process| &process.child)
            }
        };
        if let Some(child) = child {
            child.end(how);
        }
    }

    /// Queues the message; `flush` sends it.
    fn tell_kernel(&mut self, message: &ToKernel, fds: Vec<OwnedFd>) {
        let Some(kernel) = &mut self.kernel else { return };
        let queued = match encode(message) {
            Ok(_) if kernel.outbox.len() >= OUTBOX_MESSAGES_MAX => {
                Err("it does not read the messages of the monitor".to_owned())
            }
            Ok(bytes) => {
                kernel.outbox.push_back((bytes, fds));
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = queued {
            self.heard.push_back(Event::KernelFault { reason });
        }
    }

    fn flush(&mut self) {
        if self.statuses_changed && self.kernel.as_ref().is_some_and(|kernel| kernel.outbox.is_empty()) {
            self.statuses_changed = false;
            let safe_mode = self.supervisor.safe_mode_status(unix_ms_at_zero());
            let (apps, kernel) = (self.statuses(), self.kernel_status());
            self.tell_kernel(&ToKernel::Apps { apps, kernel, safe_mode }, Vec::new());
        }
        self.tell_records();
        let Some(kernel) = &mut self.kernel else { return };
        let Some(channel) = &kernel.channel else { return kernel.outbox.clear() };
        while let Some((bytes, fds)) = kernel.outbox.front() {
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            match channel.try_send_bytes(bytes, &fds) {
                Ok(()) => drop(kernel.outbox.pop_front()),
                Err(ChannelError::NotNow) => return,
                // Its exit is about to be seen.
                Err(ChannelError::Closed) => return kernel.outbox.clear(),
                Err(error) => {
                    kernel.outbox.clear();
                    self.heard.push_back(Event::KernelFault { reason: error.to_string() });
                    return;
                }
            }
        }
    }

    fn read_stop(&mut self) {
        let mut bytes = [0; 16];
        match self.stop.as_ref().map(|stop| rustix::io::read(stop, &mut bytes)) {
            Some(Ok(0)) => self.stop = None,
            Some(Ok(count)) => self.heard.extend((0..count).map(|_| Event::ShutdownAsked)),
            _ => {}
        }
    }

    fn read_kernel(&mut self, messages_max: usize) {
        for _ in 0..messages_max {
            let Some(kernel) = &mut self.kernel else { return };
            let Some(channel) = &kernel.channel else { return };
            match channel.try_receive::<FromKernel>() {
                Ok(received) => match event(received.message) {
                    KernelMessage::Event(event) => self.heard.push_back(event),
                    KernelMessage::Counts(counts) => self.on_counts(&counts),
                    KernelMessage::AddApp(app) => match self.finder.ask(app.clone()) {
                        Ok(()) => tracing::info!("app {app}: the operator adds it"),
                        Err(why) => tracing::error!("app {app}: it is not started: {why}"),
                    },
                    KernelMessage::Reload { ticket, app } => {
                        let answer_to = Some((kernel.generation, ticket));
                        self.wish_reload(ReloadRequest { app, answer_to });
                    }
                    KernelMessage::Owned(changes) => self.on_owned(&changes, now_ms()),
                    KernelMessage::Line { app, generation, line } => self.on_line(&app, generation, &line),
                    KernelMessage::Records(told) => {
                        if let Some(records) = &mut self.recording {
                            records.hear(told);
                        }
                    }
                },
                Err(ChannelError::NotNow) => return,
                Err(ChannelError::Closed) => kernel.channel = None,
                Err(error) => self.heard.push_back(Event::KernelFault { reason: error.to_string() }),
            }
        }
    }

    /// What the kernel process has counted: of the apps inside it this is the measure.
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

    /// The service that judges says so.
    fn on_rulings(&mut self, rulings: &[Ruling]) {
        self.resources.on_rulings(now_ms());
        rulings.iter().for_each(|ruling| self.carry_out(ruling));
    }

    /// A line that an app wrote into the node's log goes where what it prints goes. The name becomes that of a file.
    fn on_line(&mut self, app: &str, generation: u64, line: &str) {
        if check_app_name(app).is_err() {
            return;
        }
        if let Some(zone) = self.zones.iter_mut().find(|it| it.app == app && it.generation == generation) {
            zone.last_lines.push(line);
        }
        self.writer.line(app, generation, unix_ms_at_zero().saturating_add(now_ms()), line);
    }

    /// Requests verification of the apps that start, and regularly of the running ones.
    fn see_to_packages(&mut self) {
        let supervisor = &self.supervisor;
        self.verification.on_running(supervisor.runs(SECURITY));
        self.verification.on_time(|| supervisor.to_verify(), now_ms());
        while let Some(task) = self.verification.next_task() {
            match task {
                Task::AskService { round, question } => {
                    // If it does not hear, it is silent, and the verifier is asked.
                    self.tell_service(SECURITY, ToService::Packages { round, question });
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

    /// What the verifier has done.
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
        let heard = |PackageVerdict { zone, check, validity }| Event::Verified { zone, check, validity };
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
                // What it said last explains its end.
                self.read_kernel(MESSAGES_AFTER_END_MAX);
                if let Some(kernel) = &self.kernel {
                    self.heard.push_back(Event::KernelCalled { zones: called(&kernel.board) });
                }
                self.heard.push_back(Event::Exited { who, end, last_line: None });
            }
            Err(error) => {
                self.heard.push_back(Event::StartFailed { who, reason: format!("it was lost: {error}") })
            }
        }
        self.kernel = None;
    }

    fn read_output(&mut self, zone: u16) {
        let now = now_ms();
        let Some(process) = self.zones.iter_mut().find(|process| process.zone == zone) else { return };
        read_pipe(process, OUTPUT_BYTES_PER_TURN_MAX, now, &mut self.writer);
    }

    fn read_report(&mut self, zone: u16) {
        let now = now_ms();
        let Some(process) = self.zones.iter_mut().find(|process| process.zone == zone) else { return };
        let reported = read_report(process, REPORT_BYTES_PER_TURN_MAX, now);
        self.take_report(reported);
    }

    fn take_report(&mut self, reported: Reported) {
        self.heard.extend(reported.gaps);
        for (app, Denied { denied, count }) in reported.denied {
            self.record(|now| Record { count, ..Record::new(now, "denied", "app", denied).of_app(&app) });
        }
    }

    fn reap_zone(&mut self, zone: u16) {
        let now = now_ms();
        let Some(index) = self.zones.iter().position(|process| process.zone == zone) else { return };
        let ended = match self.zones[index].child.ended() {
            Ok(None) => return,
            ended => ended,
        };
        let mut process = self.zones.swap_remove(index);
        let reported = read_report(&mut process, OUTPUT_BYTES_AFTER_END_MAX, now);
        self.take_report(reported);
        read_pipe(&mut process, OUTPUT_BYTES_AFTER_END_MAX, now, &mut self.writer);
        let (lines, said) = std::mem::take(&mut process.output).finish();
        lines.iter().for_each(|line| print(&mut process, line, &mut self.writer));
        let (lines, reported) = std::mem::take(&mut process.report).finish();
        lines.iter().for_each(|line| log_zone(&process.app, line));
        // If there was no app to say anything, the launcher says why.
        let last_line = said.or(reported);
        self.resources.on_end(zone);
        if !process.groups.remove() {
            self.left_groups.push(std::mem::take(&mut process.groups));
        }
        let who = ChildId::Zone { zone, generation: process.generation };
        self.reaped = Some((process.app, process.generation, process.last_lines));
        self.heard.push_back(match ended {
            Ok(Some(end)) => Event::Exited { who, end, last_line },
            Ok(None) => return,
            Err(error) => Event::StartFailed { who, reason: format!("it was lost: {error}") },
        });
    }

    /// Looks at what every process uses, if it is time to.
    fn measure(&mut self) {
        let now_ms = now_ms();
        if now_ms < self.next_sample_ms {
            return;
        }
        self.next_sample_ms = now_ms + SAMPLE_INTERVAL_MS;
        let at = Moment { now_ms, unix_ms: unix_ms_at_zero() + now_ms };
        for index in 0..self.zones.len() {
            self.measure_zone(index, at);
        }
        let trusted = self.supervisor.trusted();
        self.resources.end_unloaded(|zone| trusted.iter().any(|(loaded, _)| *loaded == zone));
        let read = |pid| sampling::process(Path::new("/proc"), pid).unwrap_or_default();
        let kernel = self.kernel.as_ref().map(|kernel| read(kernel.child.pid())).unwrap_or_default();
        let node = self.resources.on_node(kernel, read(std::process::id()), at);
        self.tell_observations();
        // What waits is older: this is for a kernel that reads.
        if self.kernel.as_ref().is_some_and(|kernel| kernel.outbox.is_empty()) {
            self.tell_kernel(&ToKernel::Resources { zones: self.resources.usages(), node }, Vec::new());
        }
    }

    fn measure_zone(&mut self, index: usize, at: Moment) {
        let ZoneProcess { zone, generation, child, .. } = &self.zones[index];
        let (zone, generation) = (*zone, *generation);
        let Some(reading) = sampling::zone(Path::new("/proc"), child.pid()) else { return };
        let Some(spec) = self.supervisor.spec(zone) else { return };
        let keeps_cpu = self.supervisor.enforces(zone, Resource::CpuPercent.key());
        let measured = Measured { zone, generation, reading, limits: &spec.limits, keeps_cpu };
        for verdict in self.resources.on_reading(&measured, at) {
            self.carry_out(&Ruling { zone, generation, verdict });
        }
    }

    /// From the service or from the monitor itself.
    fn carry_out(&mut self, ruling: &Ruling) {
        if !self.resources.takes(ruling) {
            return;
        }
        let Ruling { zone, generation, verdict } = *ruling;
        let Some(AppSpec { name: app, role, .. }) = self.supervisor.spec(zone) else { return };
        let what = if *role == AppRole::Service { "service" } else { "app" };
        let excess = match verdict {
            Verdict::End(excess) => {
                let (app, reason) = (app.clone(), excess.reason());
                return self.heard.push_back(Event::ZoneFault { app, generation, reason });
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

    fn log_left_out(&mut self) {
        let now = now_ms();
        for process in &mut self.zones {
            if let Some(line) = process.output.tick(now) {
                print(process, &line, &mut self.writer);
            }
            if let Some(line) = process.report.tick(now) {
                log_zone(&process.app, &line);
            }
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.zones.iter_mut().map(|process| &mut process.groups).chain(&mut self.left_groups).for_each(
            |groups| {
                // A group with a process that is still ending stays; the next node removes it.
                let _ = groups.remove();
            },
        );
        self.groups.remove();
    }
}

fn welcome(
    channel: &Channel,
    zone: u16,
    generation: u64,
    spec: &AppSpec,
    fds: Vec<OwnedFd>,
) -> io::Result<()> {
    let welcome = ToZone::Welcome {
        zone,
        app: spec.name.clone(),
        generation,
        limits: spec.limits.clone(),
        settings: spec.settings.clone(),
        ports: u16::try_from(fds.len() / PORT_FDS).map_err(io::Error::other)?,
    };
    let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    channel.try_send(&welcome, &fds).map_err(io::Error::other)
}

/// The zones that the kernel process was calling when it ended. A slot that holds what cannot be a zone says nothing.
fn called(board: &Board) -> Vec<u16> {
    board.read().into_iter().filter_map(|word| u16::try_from(word).ok()).filter(|zone| *zone > 0).collect()
}

/// What one port takes of memory: its rings, and a few pages of indices.
fn port_bytes(sizes: Sizes) -> u64 {
    const INDICES: u64 = 64 << 10;
    // Sizes of memory that is there.
    [sizes.packets_bytes(), sizes.control_bytes(), sizes.from_app_bytes()]
        .iter()
        .fold(INDICES, |sum, bytes| sum.saturating_add(*bytes as u64))
}

/// The groups that this node may make; what cannot be read has none.
fn own_groups() -> NodeGroups {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    NodeGroups::find(&read("/proc/self/mounts"), &read("/proc/self/cgroup"), std::process::id()).make()
}
