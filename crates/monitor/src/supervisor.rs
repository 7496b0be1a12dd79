//! Who runs, who is ended and who is started again. Pure: no clock, no process, no socket.
//!
//! In: an [`Event`] and the time. Out: [`Command`]s for `run`, which acts.
//! It never starts a second generation of something whose first may be alive, and never restarts without end.
//!
//! What is done about what (Rosemary, section 3.2 and table 1):
//!
//! | what | what happens |
//! |---|---|
//! | an app's process ends, unasked | restarted with back-off; quarantined when that happens too often |
//! | a service's process ends, unasked | as an app's, but with less delay, and it is given up later |
//! | a zone breaks the rules of its port | killed, then as above |
//! | a trusted app panics | caught by the kernel; the app runs in a process zone from then on |
//! | the kernel ends, unasked, or its workers stand still | restarted; every zone too, with fresh ports; all trusted apps run in process zones from then on |
//! | the kernel says at its first start that it cannot run | the node ends with the kernel's exit code and sentence |
//! | the kernel ends too often | the node gives up with exit code 1 |

use crate::app::{AppRole, AppSpec, AppStatus, KernelStatus, PlanError, Verb, check_specs};
use crate::app_life::{AppLife, Past, Situation};
use crate::backoff::{Backoff, Patience, Verdict};
use crate::protocol::ToKernel;
use zone::NotEnforced;

/// The monitor polls at least this often while a kernel runs, in milliseconds.
const LONGEST_SLEEP_MS: u64 = 500;

/// If so much time passed between two events, it was the monitor itself that did not run (stopped, or the machine
/// was), and the silence of the kernel proves nothing.
const OWN_PAUSE_MS: u64 = 2 * LONGEST_SLEEP_MS;

/// After KILL a process is gone at once unless the machine holds it (a dead disk); the node waits for it no longer
/// than this.
const AFTER_KILL_MS: u64 = 2_000;

/// The monitor's patience, all in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// Restarts of an app.
    pub app: Patience,
    /// Restarts of a service.
    pub service: Patience,
    /// Restarts of the kernel.
    pub kernel: Patience,
    /// From the start of the kernel process to its `Ready`; it only has to open its ports.
    pub kernel_start_ms: u64,
    /// A kernel whose workers stood still for so long hangs: thirty missed heartbeats.
    pub kernel_silence_ms: u64,
    /// From the request to end to the kill.
    pub end_grace_ms: u64,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            app: Patience::APP,
            service: Patience::SERVICE,
            kernel: Patience::KERNEL,
            kernel_start_ms: 10_000,
            kernel_silence_ms: 3_000,
            end_grace_ms: 2_000,
        }
    }
}

/// One life of one child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    /// The kernel process.
    Kernel {
        /// Counts its starts.
        generation: u64,
    },
    /// The process of an app.
    Zone {
        /// The zone's id.
        zone: u16,
        /// Counts the app's starts.
        generation: u64,
    },
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        number: i32,
        /// It left a core dump.
        core_dumped: bool,
    },
}

/// How a process is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Asked: SIGTERM.
    Term,
    /// Killed: SIGKILL, to its process group.
    Kill,
}

/// How loud a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The course of things.
    Info,
    /// Something failed and is being put right.
    Warn,
    /// Something stays broken or changed until the operator acts.
    Error,
}

/// What the supervisor hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The node begins; said once and first.
    Begin,
    /// A child has been started.
    Started {
        /// Which.
        who: Who,
        /// Its process id.
        pid: u32,
    },
    /// A child could not be started.
    StartFailed {
        /// Which.
        who: Who,
        /// What the system said.
        reason: String,
    },
    /// A child ended and has been reaped.
    Exited {
        /// Which.
        who: Who,
        /// How.
        end: ProcessEnd,
        /// The last line of its output.
        last_line: Option<String>,
    },
    /// The launcher of a zone says what it cannot enforce.
    NotEnforced {
        /// Which.
        who: Who,
        /// What, and why.
        gap: NotEnforced,
    },
    /// The kernel listens.
    KernelReady,
    /// The kernel's workers move.
    KernelAlive,
    /// The kernel is about to exit and says why.
    KernelFatal {
        /// The code it will exit with.
        exit_code: u8,
        /// The sentence for the operator.
        message: String,
    },
    /// The kernel process does not keep to the protocol, or does not read what it is told.
    KernelFault {
        /// What it did.
        reason: String,
    },
    /// The kernel says that a zone broke the rules of its port.
    ZoneFault {
        /// The app's name.
        app: String,
        /// The generation it was attached with.
        generation: u64,
        /// What it did.
        reason: String,
    },
    /// The kernel says that a trusted app failed.
    TrustedFault {
        /// The app's name.
        app: String,
        /// What it did.
        reason: String,
    },
    /// The operator asks something for an app.
    Operator {
        /// The app's name.
        app: String,
        /// What is asked.
        verb: Verb,
    },
    /// Time has passed.
    Tick,
    /// The operator or the system wants the node to end; a second one wants it now.
    ShutdownAsked,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Start the kernel process and send it its configuration.
    StartKernel {
        /// Counts its starts.
        generation: u64,
    },
    /// Start the app's process with fresh ports, send it its `Welcome` and the kernel its `AttachZone`.
    StartZone {
        /// The zone's id.
        zone: u16,
        /// Counts the app's starts.
        generation: u64,
    },
    /// End this process.
    End {
        /// Which.
        who: Who,
        /// How.
        how: How,
    },
    /// Send this to the kernel process.
    TellKernel(ToKernel),
    /// The apps' statuses changed: send them to the kernel process.
    PublishApps,
    /// Write this to the log.
    Log {
        /// How loud.
        severity: Severity,
        /// What.
        line: String,
    },
    /// End the monitor. The last command of all.
    Exit {
        /// The exit code.
        code: u8,
        /// The sentence for the operator if the node did not end as asked.
        message: Option<String>,
    },
}

#[derive(Debug, Clone)]
enum KernelPhase {
    Starting {
        give_up_ms: u64,
    },
    Running {
        alive_ms: u64,
    },
    Ending {
        reason: String,
        kill_at_ms: Option<u64>,
    },
    BackingOff {
        until_ms: u64,
    },
    /// Not begun yet, or over for good.
    Gone,
}

#[derive(Debug, Clone)]
enum Course {
    Running,
    Closing {
        code: u8,
        message: Option<String>,
        /// When the node ends even if a child does not.
        leave_at_ms: u64,
        hurried: bool,
    },
    Left,
}

/// The state of a node's processes.
#[derive(Debug)]
pub struct Supervisor {
    timing: Timing,
    apps: Vec<AppLife>,
    kernel: KernelPhase,
    kernel_generation: u64,
    kernel_pid: Option<u32>,
    kernel_since_ms: u64,
    kernel_last_end: Option<Past>,
    kernel_backoff: Backoff,
    /// A kernel of this node was ready once, so that its ports and its configuration are good.
    ever_ready: bool,
    /// What the kernel said before exiting.
    fatal: Option<(u8, String)>,
    course: Course,
    last_event_ms: u64,
}

impl Supervisor {
    /// A node with these apps; nothing runs before [`Event::Begin`]. Zone ids are given in the order of the list,
    /// from 1.
    ///
    /// # Errors
    /// [`PlanError`] if the list cannot be run.
    pub fn new(specs: Vec<AppSpec>, timing: Timing) -> Result<Supervisor, PlanError> {
        check_specs(&specs)?;
        let patience = |spec: &AppSpec| match spec.role {
            AppRole::App => timing.app.clone(),
            AppRole::Service => timing.service.clone(),
        };
        let life = |(zone, spec)| {
            let patience = patience(&spec);
            AppLife::new(zone, spec, patience)
        };
        let apps = (1u16..).zip(specs).map(life).collect();
        Ok(Supervisor {
            kernel_backoff: Backoff::new(timing.kernel.clone()),
            timing,
            apps,
            kernel: KernelPhase::Gone,
            kernel_generation: 0,
            kernel_pid: None,
            kernel_since_ms: 0,
            kernel_last_end: None,
            ever_ready: false,
            fatal: None,
            course: Course::Running,
            last_event_ms: 0,
        })
    }

    /// What an app was told to run as.
    #[must_use]
    pub fn spec(&self, zone: u16) -> Option<&AppSpec> {
        self.apps.iter().find(|app| app.zone == zone).map(|app| &app.spec)
    }

    /// Whether this machine enforces a part of what an app was told to run as, by its name: nobody said that it does not.
    #[must_use]
    pub fn enforces(&self, zone: u16, limit: &str) -> bool {
        self.apps.iter().any(|app| app.zone == zone && app.enforces(limit))
    }

    /// How all apps are, in the operator's order. `unix_ms_at_zero` is the wall clock at zero of the clock whose times
    /// the events carry.
    #[must_use]
    pub fn statuses(&self, unix_ms_at_zero: u64) -> Vec<AppStatus> {
        self.apps.iter().map(|app| app.status(unix_ms_at_zero)).collect()
    }

    /// How the kernel process is; the clock as in [`Supervisor::statuses`].
    #[must_use]
    pub fn kernel_status(&self, unix_ms_at_zero: u64) -> KernelStatus {
        KernelStatus {
            pid: self.kernel_pid,
            since_unix_ms: unix_ms_at_zero.saturating_add(self.kernel_since_ms),
            restarts: self.kernel_generation.saturating_sub(1),
            last_end: self.kernel_last_end.as_ref().map(|past| past.ending(unix_ms_at_zero)),
        }
    }

    /// When [`Event::Tick`] is due at the latest.
    #[must_use]
    pub fn next_wake_ms(&self, now_ms: u64) -> u64 {
        let kernel = match self.kernel {
            KernelPhase::Starting { give_up_ms } => Some(give_up_ms),
            KernelPhase::Running { alive_ms } => Some(alive_ms.saturating_add(self.timing.kernel_silence_ms)),
            KernelPhase::Ending { kill_at_ms, .. } => kill_at_ms,
            KernelPhase::BackingOff { until_ms } => Some(until_ms),
            KernelPhase::Gone => None,
        };
        let leave = match self.course {
            Course::Closing { leave_at_ms, .. } => Some(leave_at_ms),
            _ => None,
        };
        let apps = self.apps.iter().filter_map(AppLife::next_wake_ms);
        apps.chain(kernel).chain(leave).fold(now_ms.saturating_add(LONGEST_SLEEP_MS), u64::min)
    }

    /// Takes what happened at `now_ms` (milliseconds of any clock that does not go back) and says what to do, in this
    /// order.
    pub fn on_event(&mut self, event: Event, now_ms: u64) -> Vec<Command> {
        let mut out = Vec::new();
        if matches!(self.course, Course::Left) {
            return out;
        }
        self.forgive_own_pause(now_ms);
        let quiet = matches!(event, Event::KernelAlive | Event::Tick);
        self.dispatch(event, now_ms, &mut out);
        self.leave_when_empty(now_ms, &mut out);
        let kernel_hears = matches!(self.kernel, KernelPhase::Running { .. });
        if kernel_hears && !(quiet && out.is_empty()) && !matches!(self.course, Course::Left) {
            out.push(Command::PublishApps);
        }
        out
    }

    fn dispatch(&mut self, event: Event, now_ms: u64, out: &mut Vec<Command>) {
        match event {
            Event::Begin => self.begin(now_ms, out),
            Event::Started { who, pid } => self.started(who, pid, now_ms, out),
            Event::StartFailed { who, reason } => self.ended(who, &reason, None, None, now_ms, out),
            Event::Exited { who, end, last_line } => {
                self.ended(who, &describe(end), Some(end), last_line, now_ms, out);
            }
            Event::NotEnforced { who, gap } => self.not_enforced(who, gap, out),
            Event::KernelReady => self.kernel_ready(now_ms, out),
            Event::KernelAlive => {
                if let KernelPhase::Running { alive_ms } = &mut self.kernel {
                    *alive_ms = now_ms;
                }
            }
            Event::KernelFatal { exit_code, message } => self.fatal = Some((exit_code, message)),
            Event::KernelFault { reason } => self.kill_kernel(&reason, out),
            Event::ZoneFault { app, generation, reason } => {
                let at = self.situation(now_ms);
                if let Some(app) = self.app(&app).filter(|app| app.is_current(generation)) {
                    app.zone_fault(&reason, at, out);
                }
            }
            Event::TrustedFault { app, reason } => {
                let at = self.situation(now_ms);
                if let Some(app) = self.app(&app) {
                    app.trusted_fault(&reason, at, out);
                }
            }
            Event::Operator { app, verb } => {
                let at = self.situation(now_ms);
                if let Some(app) = self.app(&app) {
                    app.operator(verb, at, out);
                }
            }
            Event::Tick => self.tick(now_ms, out),
            Event::ShutdownAsked => self.shutdown_asked(now_ms, out),
        }
    }

    fn situation(&self, now_ms: u64) -> Situation {
        Situation {
            now_ms,
            kernel_ready: matches!(self.kernel, KernelPhase::Running { .. }),
            closing: !matches!(self.course, Course::Running),
            end_grace_ms: self.timing.end_grace_ms,
        }
    }

    fn app(&mut self, name: &str) -> Option<&mut AppLife> {
        self.apps.iter_mut().find(|app| app.spec.name == name)
    }

    fn begin(&mut self, now_ms: u64, out: &mut Vec<Command>) {
        if self.kernel_generation == 0 && matches!(self.course, Course::Running) {
            self.start_kernel(now_ms, out);
        }
    }

    fn start_kernel(&mut self, now_ms: u64, out: &mut Vec<Command>) {
        self.kernel_generation += 1;
        self.kernel_since_ms = now_ms;
        self.kernel_backoff.started(now_ms);
        self.fatal = None;
        let give_up_ms = now_ms.saturating_add(self.timing.kernel_start_ms);
        self.kernel = KernelPhase::Starting { give_up_ms };
        out.push(Command::StartKernel { generation: self.kernel_generation });
    }

    fn started(&mut self, who: Who, pid: u32, now_ms: u64, out: &mut Vec<Command>) {
        let at = self.situation(now_ms);
        match who {
            Who::Kernel { generation } if generation == self.kernel_generation => {
                self.kernel_pid = Some(pid);
                out.push(Command::Log {
                    severity: Severity::Info,
                    line: format!("the kernel process is {pid}"),
                });
            }
            Who::Kernel { .. } => {}
            Who::Zone { zone, generation } => {
                let app = self.apps.iter_mut().find(|app| app.zone == zone && app.is_current(generation));
                if let Some(app) = app {
                    app.started(pid, at);
                    let line = format!("app {}: its process is {pid}", app.spec.name);
                    out.push(Command::Log { severity: Severity::Info, line });
                }
            }
        }
    }

    fn ended(
        &mut self,
        who: Who,
        how: &str,
        end: Option<ProcessEnd>,
        last_line: Option<String>,
        now_ms: u64,
        out: &mut Vec<Command>,
    ) {
        let at = self.situation(now_ms);
        match who {
            Who::Kernel { generation } if generation == self.kernel_generation => {
                self.kernel_ended(how, end, now_ms, out);
            }
            Who::Kernel { .. } => {}
            Who::Zone { zone, generation } => {
                let app = self.apps.iter_mut().find(|app| app.zone == zone && app.is_current(generation));
                if let Some(app) = app {
                    app.exited(how, last_line, at, out);
                }
            }
        }
    }

    fn not_enforced(&mut self, who: Who, gap: NotEnforced, out: &mut Vec<Command>) {
        let Who::Zone { zone, generation } = who else { return };
        if let Some(app) = self.apps.iter_mut().find(|app| app.zone == zone && app.is_current(generation)) {
            app.not_enforced(gap, out);
        }
    }

    fn kernel_ready(&mut self, now_ms: u64, out: &mut Vec<Command>) {
        if !matches!(self.kernel, KernelPhase::Starting { .. }) {
            return;
        }
        self.ever_ready = true;
        self.kernel = KernelPhase::Running { alive_ms: now_ms };
        let at = self.situation(now_ms);
        // Services first: what they are there for begins with the apps.
        for role in [AppRole::Service, AppRole::App] {
            self.apps
                .iter_mut()
                .filter(|app| app.spec.role == role)
                .for_each(|app| app.kernel_ready(at, out));
        }
    }

    fn kernel_ended(&mut self, how: &str, end: Option<ProcessEnd>, now_ms: u64, out: &mut Vec<Command>) {
        let before = std::mem::replace(&mut self.kernel, KernelPhase::Gone);
        let fatal = self.fatal.take();
        self.kernel_pid = None;
        if !matches!(self.course, Course::Running) {
            return;
        }
        let why = match (&before, &fatal) {
            (KernelPhase::Gone | KernelPhase::BackingOff { .. }, _) => {
                self.kernel = before;
                return;
            }
            (KernelPhase::Ending { reason, .. }, _) => reason.clone(),
            (_, Some((_, message))) => message.clone(),
            _ => how.to_owned(),
        };
        if !self.ever_ready
            && let Some((code, message)) = cannot_run(fatal.as_ref(), end)
        {
            return self.close(code, Some(message), now_ms, out);
        }
        self.kernel_last_end = Some(Past::new(&why, None, now_ms));
        let reason = format!("the kernel process ended: {why}");
        // Whoever runs inside the kernel may have done this, unless the kernel gave a reason of its own.
        let demote = fatal.is_none();
        let at = self.situation(now_ms);
        for app in &mut self.apps {
            app.kernel_lost(&reason, demote, at, out);
        }
        self.restart_kernel(&reason, now_ms, out);
    }

    fn restart_kernel(&mut self, reason: &str, now_ms: u64, out: &mut Vec<Command>) {
        match self.kernel_backoff.failed(now_ms) {
            Verdict::Exhausted => {
                let Patience { restarts_max, window_ms, .. } = self.timing.kernel;
                let message = format!(
                    "{reason}; that was after {restarts_max} restarts within {} s, so the node gives up",
                    window_ms / 1_000
                );
                self.close(1, Some(message), now_ms, out);
            }
            Verdict::RestartAfter(0) => {
                let line = format!("{reason}; it is started again now");
                out.push(Command::Log { severity: Severity::Error, line });
                self.start_kernel(now_ms, out);
            }
            Verdict::RestartAfter(delay_ms) => {
                let line = format!("{reason}; it is started again in {delay_ms} ms");
                out.push(Command::Log { severity: Severity::Error, line });
                self.kernel = KernelPhase::BackingOff { until_ms: now_ms.saturating_add(delay_ms) };
            }
        }
    }

    fn kill_kernel(&mut self, reason: &str, out: &mut Vec<Command>) {
        if matches!(self.kernel, KernelPhase::Starting { .. } | KernelPhase::Running { .. }) {
            let line = format!("the kernel process is killed: {reason}");
            out.push(Command::Log { severity: Severity::Error, line });
            self.kernel = KernelPhase::Ending { reason: reason.to_owned(), kill_at_ms: None };
            self.end_kernel(How::Kill, out);
        }
    }

    fn end_kernel(&self, how: How, out: &mut Vec<Command>) {
        out.push(Command::End { who: Who::Kernel { generation: self.kernel_generation }, how });
    }

    fn tick(&mut self, now_ms: u64, out: &mut Vec<Command>) {
        let at = self.situation(now_ms);
        for app in &mut self.apps {
            app.tick(at, out);
        }
        match &mut self.kernel {
            KernelPhase::Starting { give_up_ms } if *give_up_ms <= now_ms => {
                let reason = format!("it was not ready within {} ms", self.timing.kernel_start_ms);
                self.kill_kernel(&reason, out);
            }
            KernelPhase::Running { alive_ms }
                if now_ms.saturating_sub(*alive_ms) >= self.timing.kernel_silence_ms =>
            {
                let reason = format!("a worker stood still for {} ms", self.timing.kernel_silence_ms);
                self.kill_kernel(&reason, out);
            }
            KernelPhase::Ending { kill_at_ms, .. } if kill_at_ms.is_some_and(|at_ms| at_ms <= now_ms) => {
                *kill_at_ms = None;
                let line = "the kernel process does not end when asked to; it is killed".to_owned();
                out.push(Command::Log { severity: Severity::Warn, line });
                self.end_kernel(How::Kill, out);
            }
            KernelPhase::BackingOff { until_ms } if *until_ms <= now_ms => self.start_kernel(now_ms, out),
            _ => {}
        }
    }

    fn shutdown_asked(&mut self, now_ms: u64, out: &mut Vec<Command>) {
        match &mut self.course {
            Course::Running => self.close(0, None, now_ms, out),
            Course::Closing { hurried, leave_at_ms, .. } if !*hurried => {
                *hurried = true;
                *leave_at_ms = now_ms.saturating_add(AFTER_KILL_MS);
                self.kill_all(out);
            }
            _ => {}
        }
    }

    /// Ends everything in order; the node exits with `code` when all is over.
    fn close(&mut self, code: u8, message: Option<String>, now_ms: u64, out: &mut Vec<Command>) {
        let reason = "the node ends";
        let kill_at_ms = now_ms.saturating_add(self.timing.end_grace_ms);
        let leave_at_ms = kill_at_ms.saturating_add(AFTER_KILL_MS);
        self.course = Course::Closing { code, message, leave_at_ms, hurried: false };
        // The kernel first: what its sessions have to say goes out before the apps' rings end.
        match self.kernel {
            KernelPhase::Starting { .. } | KernelPhase::Running { .. } => {
                out.push(Command::TellKernel(ToKernel::Shutdown));
                self.kernel = KernelPhase::Ending { reason: reason.to_owned(), kill_at_ms: Some(kill_at_ms) };
            }
            KernelPhase::BackingOff { .. } => self.kernel = KernelPhase::Gone,
            KernelPhase::Ending { .. } | KernelPhase::Gone => {}
        }
        let at = self.situation(now_ms);
        for app in &mut self.apps {
            app.stop(reason, at, out);
        }
    }

    fn kill_all(&mut self, out: &mut Vec<Command>) {
        for app in &mut self.apps {
            app.kill(out);
        }
        if let KernelPhase::Ending { kill_at_ms, .. } = &mut self.kernel {
            *kill_at_ms = None;
            self.end_kernel(How::Kill, out);
        }
    }

    fn leave_when_empty(&mut self, now_ms: u64, out: &mut Vec<Command>) {
        let Course::Closing { code, message, leave_at_ms, .. } = &self.course else { return };
        let empty = matches!(self.kernel, KernelPhase::Gone) && !self.apps.iter().any(AppLife::has_process);
        if empty {
            out.push(Command::Exit { code: *code, message: message.clone() });
        } else if *leave_at_ms <= now_ms {
            let message = "the node ends although a child did not, even when killed".to_owned();
            out.push(Command::Exit { code: (*code).max(1), message: Some(message) });
        } else {
            return;
        }
        self.course = Course::Left;
    }

    fn forgive_own_pause(&mut self, now_ms: u64) {
        let pause_ms = now_ms.saturating_sub(self.last_event_ms);
        self.last_event_ms = self.last_event_ms.max(now_ms);
        if pause_ms < OWN_PAUSE_MS {
            return;
        }
        match &mut self.kernel {
            KernelPhase::Running { alive_ms } => *alive_ms = now_ms,
            KernelPhase::Starting { give_up_ms } => *give_up_ms = give_up_ms.saturating_add(pause_ms),
            _ => {}
        }
    }
}

/// The exit code and the sentence of a kernel that will not run however often it is started.
fn cannot_run(fatal: Option<&(u8, String)>, end: Option<ProcessEnd>) -> Option<(u8, String)> {
    match (fatal, end) {
        // A failure must not end the node with a code that means success.
        (Some((code, message)), _) => Some(((*code).max(1), message.clone())),
        (None, Some(ProcessEnd::Code(2))) => {
            let message = "the kernel process refused to start (exit code 2); what it printed says why";
            Some((2, message.to_owned()))
        }
        _ => None,
    }
}

/// A process's end as a phrase: `exit code 3`, `killed by SIGSEGV (core dumped)`.
#[must_use]
pub fn describe(end: ProcessEnd) -> String {
    match end {
        ProcessEnd::Code(0) => "exit code 0, unasked".to_owned(),
        // What the Rust runtime exits with.
        ProcessEnd::Code(101) => "exit code 101 (a panic)".to_owned(),
        ProcessEnd::Code(code) => format!("exit code {code}"),
        ProcessEnd::Signal { number, core_dumped } => {
            let core = match (number, core_dumped) {
                // seccomp(2), SECCOMP_RET_KILL_PROCESS.
                (SIGSYS, _) => " (it made a system call that no app may make)",
                (_, true) => " (core dumped)",
                _ => "",
            };
            format!("killed by {}{core}", signal_name(number))
        }
    }
}

/// The signal of whom the filter of system calls kills.
const SIGSYS: i32 = 31;

fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        SIGSYS => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
