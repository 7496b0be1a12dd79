//! Decides which processes run, stop and restart. Pure: no clock, no process, no socket.
//!
//! In: a [`SupervisorEvent`] and the time. Out: [`Reaction`]s for `run`, which acts.
//! It never starts a second generation of a child while the first may be alive, and restarts a bounded number of times.
//!
//! The reactions (Rosemary, section 3.2 and table 1):
//!
//! | what | what happens |
//! |---|---|
//! | an app's process ends, unasked | restarted with back-off; quarantined when that happens too often |
//! | a service's process ends, unasked | as an app's, but with less delay, and it is given up later |
//! | an address of a service is in use | it runs without that address, and restarts when the address is free |
//! | a zone breaks the rules of its port | killed, then as above |
//! | a trusted app panics | caught by the kernel; the app runs in a process zone from then on |
//! | the verification of an app's package fails | it is not started, or is stopped, until the operator restarts it |
//! | the kernel ends, unasked, or its workers stand still | restarted; every zone too, with fresh ports; the trusted apps that it was calling run in process zones from then on, or all of them if it was calling none |
//! | the kernel says at its first start that it cannot run | the node ends with the kernel's exit code and sentence |
//! | several services fail within a short time, or one is given up | the kernel process and all zones restart; if it happens again, in safe mode |
//! | the kernel ends too often | the kernel process and all zones restart in safe mode; if it ends too often then, the node gives up with exit code 1 |
//!
//! Each of these is an incident: what happened, the probable cause, and the evidence.

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::app::{APPS_MAX, AppRole, AppSpec, AppStatus, Duty, Ending, KernelStatus, PlanError, check_specs};
use crate::app_life::{AfterEnd, AppLife, Situation};
use crate::backoff::{RestartDecision, RestartPolicy};
use crate::difference::{Difference, place_of};
use crate::incident::{Evidence, Incident, IncidentKind};
use crate::kernel_life::{KernelFailure, KernelLife};
use crate::recent_facts::{KernelEnd, RecentFacts};
use crate::safe_mode::{Consequence, SafeMode, SafeModePlan};
use crate::timing::Timing;
use crate::verification::AppCheck;
use zone::NotEnforced;

pub use crate::event::{ChildId, Reaction, Severity, StopSignal, SupervisorEvent};
pub use crate::process_end::{ProcessEnd, describe};

/// The monitor polls at least this often while a kernel runs, in milliseconds.
const LONGEST_SLEEP_MS: u64 = 500;

/// If this much time passed between two events, the monitor itself was stopped, or the machine was. Then the kernel's
/// silence proves nothing.
const OWN_PAUSE_MS: u64 = 2 * LONGEST_SLEEP_MS;

/// After KILL a process ends at once, unless it hangs in Linux (a dead disk). The node waits at most this long for it.
const AFTER_KILL_MS: u64 = 2_000;

#[derive(Debug, Clone)]
enum Course {
    Running,
    Closing {
        code: u8,
        message: Option<String>,
        /// The time when the node ends even if a child does not.
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
    kernel: KernelLife,
    safe_mode: SafeMode,
    recent: RecentFacts,
    /// Zone ids of removed apps, the longest unused first; at most [`APPS_MAX`].
    freed: VecDeque<u16>,
    /// The highest generation of a removed app.
    last_generation: u64,
    course: Course,
    last_event_ms: u64,
}

impl Supervisor {
    /// Creates a node with these apps; nothing runs before [`SupervisorEvent::Begin`]. An app without a number gets the
    /// lowest free one, in the order of the list.
    ///
    /// # Errors
    /// [`PlanError`] if the list cannot be run.
    pub fn new(specs: Vec<AppSpec>, timing: Timing) -> Result<Supervisor, PlanError> {
        check_specs(&specs)?;
        let policy = |spec: &AppSpec| match spec.role {
            AppRole::App => timing.app.clone(),
            AppRole::Service => timing.service.clone(),
        };
        let life = |(zone, spec)| {
            let policy = policy(&spec);
            AppLife::new(zone, spec, policy, 0)
        };
        let apps = numbers(&specs).into_iter().zip(specs).map(life).collect();
        Ok(Supervisor {
            kernel: KernelLife::new(&timing),
            safe_mode: SafeMode::new(SafeModePlan::default(), timing.node.clone()),
            recent: RecentFacts::default(),
            freed: VecDeque::new(),
            last_generation: 0,
            timing,
            apps,
            course: Course::Running,
            last_event_ms: 0,
        })
    }

    /// Sets the safe mode of the configuration. Call it before [`SupervisorEvent::Begin`].
    #[must_use]
    pub fn with_safe_mode(mut self, plan: SafeModePlan) -> Supervisor {
        self.safe_mode = SafeMode::new(plan, self.timing.node.clone());
        self
    }

    /// Why and since when the node is in safe mode, if it is; the clock as in [`Supervisor::statuses`].
    #[must_use]
    pub fn safe_mode_status(&self, unix_ms_at_zero: u64) -> Option<Ending> {
        self.safe_mode.status(unix_ms_at_zero)
    }

    /// The present specification of an app.
    #[must_use]
    pub fn spec(&self, zone: u16) -> Option<&AppSpec> {
        self.apps.iter().find(|app| app.zone == zone).map(|app| &app.spec)
    }

    /// The folders that other apps may write.
    #[must_use]
    pub fn others_write(&self, zone: u16) -> Vec<PathBuf> {
        let others = self.apps.iter().filter(|app| app.zone != zone);
        others.flat_map(|app| app.spec.sandbox.fs.write.iter().cloned()).collect()
    }

    /// Whether this machine enforces the named part of an app's sandbox: true if no report says otherwise.
    #[must_use]
    pub fn enforces(&self, zone: u16, limit: &str) -> bool {
        self.apps.iter().any(|app| app.zone == zone && app.enforces(limit))
    }

    /// The zones of the apps that run inside the kernel process, with the number of each one's start.
    #[must_use]
    pub fn trusted(&self) -> Vec<(u16, u64)> {
        let loaded = self.apps.iter().filter(|app| app.is_loaded());
        loaded.map(|app| (app.zone, app.generation())).collect()
    }

    /// The running apps whose packages are verified.
    #[must_use]
    pub fn to_verify(&self) -> Vec<AppCheck> {
        self.apps.iter().filter_map(AppLife::to_verify).collect()
    }

    /// The service with this duty: its zone.
    pub(crate) fn zone_on(&self, duty: Duty) -> Option<u16> {
        self.on_duty(duty).map(|app| app.zone)
    }

    /// The generation of the service with this duty, if it runs.
    pub(crate) fn runs(&self, duty: Duty) -> Option<u64> {
        self.on_duty(duty).filter(|app| app.has_process()).map(AppLife::generation)
    }

    fn on_duty(&self, duty: Duty) -> Option<&AppLife> {
        self.apps.iter().find(|app| app.spec.duty == Some(duty))
    }

    /// The statuses of all apps, in the operator's order. `unix_ms_at_zero` is the wall clock at zero of the clock of
    /// the events.
    #[must_use]
    pub fn statuses(&self, unix_ms_at_zero: u64) -> Vec<AppStatus> {
        self.apps.iter().map(|app| app.status(unix_ms_at_zero)).collect()
    }

    /// The status of the kernel process; the clock as in [`Supervisor::statuses`].
    #[must_use]
    pub fn kernel_status(&self, unix_ms_at_zero: u64) -> KernelStatus {
        self.kernel.status(unix_ms_at_zero)
    }

    /// The latest time for the next [`SupervisorEvent::Tick`].
    #[must_use]
    pub fn next_wake_ms(&self, now_ms: u64) -> u64 {
        let leave = match self.course {
            Course::Closing { leave_at_ms, .. } => Some(leave_at_ms),
            _ => None,
        };
        let apps = self.apps.iter().filter_map(AppLife::next_wake_ms);
        apps.chain(self.kernel.next_wake_ms())
            .chain(leave)
            .fold(now_ms.saturating_add(LONGEST_SLEEP_MS), u64::min)
    }

    /// Handles an event at `now_ms` (milliseconds of a monotonic clock), and returns the reactions in their order of
    /// execution.
    pub fn on_event(&mut self, event: SupervisorEvent, now_ms: u64) -> Vec<Reaction> {
        let mut out = Vec::new();
        if matches!(self.course, Course::Left) {
            return out;
        }
        self.forgive_own_pause(now_ms);
        let quiet = matches!(event, SupervisorEvent::KernelAlive | SupervisorEvent::Tick);
        self.dispatch(event, now_ms, &mut out);
        self.forget_the_gone();
        self.leave_when_empty(now_ms, &mut out);
        self.recent.on_reactions(&mut out, now_ms);
        if self.kernel.is_running() && !(quiet && out.is_empty()) && !matches!(self.course, Course::Left) {
            out.push(Reaction::PublishApps);
        }
        out
    }

    fn dispatch(&mut self, event: SupervisorEvent, now_ms: u64, out: &mut Vec<Reaction>) {
        match event {
            SupervisorEvent::Begin => self.begin(now_ms, out),
            SupervisorEvent::Started { who, pid } => self.started(who, pid, now_ms, out),
            SupervisorEvent::StartFailed { who, reason } => self.ended(who, &reason, None, None, now_ms, out),
            SupervisorEvent::Exited { who, end, last_line } => {
                self.ended(who, &describe(end), Some(end), last_line, now_ms, out);
            }
            SupervisorEvent::NotEnforced { who, gap } => self.not_enforced(who, gap, out),
            SupervisorEvent::KernelReady => self.kernel_ready(now_ms, out),
            SupervisorEvent::KernelAlive => self.kernel.alive(now_ms),
            SupervisorEvent::KernelFatal { exit_code, message } => self.kernel.fatal(exit_code, message),
            SupervisorEvent::KernelFault { reason } => self.kernel.kill(&reason, out),
            SupervisorEvent::ZoneFault { app, generation, cause, reason } => {
                let at = self.situation(now_ms);
                self.recent.on_fault(&app, generation, cause);
                if let Some(app) = self.app(&app).filter(|app| app.is_current(generation)) {
                    app.zone_fault(&reason, at, out);
                }
            }
            SupervisorEvent::TrustedFault { app, reason } => {
                let at = self.situation(now_ms);
                if let Some(app) = self.app(&app) {
                    app.trusted_fault(&reason, at, out);
                }
            }
            SupervisorEvent::Operator { app, verb, why } => {
                let at = self.situation(now_ms);
                if let Some(app) = self.app(&app) {
                    app.operator(verb, why.as_deref(), at, out);
                }
            }
            SupervisorEvent::AppAdded { spec } => self.app_added(*spec, now_ms, out),
            SupervisorEvent::Reloaded { apps, removed } => self.reloaded(apps, &removed, now_ms, out),
            event @ (SupervisorEvent::Listens { .. }
            | SupervisorEvent::Noted { .. }
            | SupervisorEvent::Verified { .. }
            | SupervisorEvent::NotFound { .. }) => self.of_app(event, now_ms, out),
            SupervisorEvent::LeaveSafeMode => self.leave_safe_mode(now_ms, out),
            SupervisorEvent::SwitchLeftProfile { reason, delays } => {
                out.push(Incident::of_switch(&reason, delays, now_ms).into());
            }
            SupervisorEvent::KernelCalled { zones } => {
                self.kernel.called(self.loaded(|zone| zones.contains(&zone)))
            }
            SupervisorEvent::Tick => self.tick(now_ms, out),
            SupervisorEvent::ShutdownAsked => self.shutdown_asked(now_ms, out),
        }
    }

    /// What is found of one app.
    fn of_app(&mut self, event: SupervisorEvent, now_ms: u64, out: &mut Vec<Reaction>) {
        let at = self.situation(now_ms);
        match event {
            SupervisorEvent::Listens { who: ChildId::Zone { zone, generation }, is_new, missing } => {
                let same = |app: &&mut AppLife| app.zone == zone && app.is_current(generation);
                if let Some(app) = self.apps.iter_mut().find(same) {
                    app.listens(is_new, missing.as_deref(), at, out);
                }
            }
            SupervisorEvent::Noted { app, note, severity } => {
                if let Some(app) = self.app(&app) {
                    app.noted(note.as_deref(), severity, out);
                }
            }
            SupervisorEvent::Verified { zone, check, validity } => {
                if let Some(app) = self.apps.iter_mut().find(|app| app.zone == zone) {
                    app.on_verdict(check, validity, at, out);
                }
            }
            SupervisorEvent::NotFound { app, reason } => {
                if let Some(app) = self.app(&app) {
                    app.not_found(&reason, at, out);
                }
            }
            // `dispatch` hands over these alone.
            _ => {}
        }
    }

    /// The changes that [`SupervisorEvent::Reloaded`] will make, one line each.
    #[must_use]
    pub fn changes<'a>(
        &self,
        apps: impl IntoIterator<Item = &'a AppSpec>,
        removed: &[String],
    ) -> Vec<String> {
        let there = |name: &str| self.apps.iter().find(|app| app.spec.name == name);
        let apps: Vec<&AppSpec> = apps.into_iter().collect();
        let stay: Vec<(&AppSpec, &AppSpec)> =
            apps.iter().filter_map(|spec| Some((&there(&spec.name)?.spec, *spec))).collect();
        let has_other_order = has_other_order(&stay);
        let change = |spec: &AppSpec| match there(&spec.name) {
            None => Some("is added".to_owned()),
            Some(app) => {
                let difference = Difference::of(&app.spec, spec);
                let moves = difference.only_place && has_other_order;
                let place = moves.then(|| "gets another place in the order of apps, immediately".to_owned());
                difference.in_words().or(place)
            }
        };
        let changed = apps.into_iter().filter_map(|spec| Some((spec.name.as_str(), change(spec)?)));
        let gone = removed.iter().filter(|name| there(name).is_some());
        let gone = gone.map(|name| (name.as_str(), "ends, and is removed from this node".to_owned()));
        changed.chain(gone).map(|(name, words)| format!("app {name} {words}")).collect()
    }

    fn reloaded(&mut self, apps: Vec<AppSpec>, removed: &[String], now_ms: u64, out: &mut Vec<Reaction>) {
        let at = self.situation(now_ms);
        if at.closing {
            return;
        }
        for name in removed {
            if let Some(app) = self.app(name).filter(|app| app.spec.role == AppRole::App) {
                app.taken_out(at, out);
            }
        }
        for spec in apps {
            match self.app(&spec.name) {
                Some(app) if app.spec.role == spec.role => app.reconfigure(spec, at, out),
                Some(_) => {}
                None => self.app_added(spec, now_ms, out),
            }
        }
    }

    /// The same name again means another version of the same app.
    fn app_added(&mut self, spec: AppSpec, now_ms: u64, out: &mut Vec<Reaction>) {
        let at = self.situation(now_ms);
        if at.closing {
            return;
        }
        if let Some(app) = self.app(&spec.name) {
            return app.replace(spec, at, out);
        }
        let Some(zone) = self.free_zone(spec.zone) else {
            let line = format!("app {}: it is not started: a node runs at most {APPS_MAX} apps", spec.name);
            return out.push(Reaction::Log { severity: Severity::Error, line });
        };
        let mut app = AppLife::new(zone, spec, self.timing.app.clone(), self.last_generation);
        app.begin(at, out);
        self.apps.push(app);
    }

    /// The wanted number, if no app has it. Otherwise a number that no app ever had, if there is one, because rules in
    /// switches contain the number of their app. Otherwise the longest unused number.
    fn free_zone(&mut self, wanted: Option<u16>) -> Option<u16> {
        let taken = |zone: &u16| self.apps.iter().any(|app| app.zone == *zone);
        if let Some(wanted) = wanted.filter(|zone| !taken(zone)) {
            self.freed.retain(|zone| *zone != wanted);
            return Some(wanted);
        }
        let most = u16::try_from(APPS_MAX).unwrap_or(u16::MAX);
        let unused = (1..=most)
            .find(|zone| !self.freed.contains(zone) && !self.apps.iter().any(|app| app.zone == *zone));
        unused.or_else(|| self.freed.pop_front())
    }

    /// Removes apps that were taken out and have no process any more.
    fn forget_the_gone(&mut self) {
        for app in self.apps.extract_if(.., |app| app.is_gone()) {
            self.last_generation = self.last_generation.max(app.generation());
            self.freed.push_back(app.zone);
        }
    }

    fn situation(&self, now_ms: u64) -> Situation {
        Situation {
            now_ms,
            kernel_ready: self.kernel.is_running(),
            closing: !matches!(self.course, Course::Running),
            end_grace_ms: self.timing.end_grace_ms,
            safe_mode: self.safe_mode.is_on(),
        }
    }

    /// The names of the apps inside the kernel process whose zones count.
    fn loaded(&self, counts: impl Fn(u16) -> bool) -> Vec<String> {
        let loaded = self.apps.iter().filter(|app| app.is_loaded() && counts(app.zone));
        loaded.map(|app| app.spec.name.clone()).collect()
    }

    fn app(&mut self, name: &str) -> Option<&mut AppLife> {
        self.apps.iter_mut().find(|app| app.spec.name == name)
    }

    fn begin(&mut self, now_ms: u64, out: &mut Vec<Reaction>) {
        if !self.kernel.has_begun() && matches!(self.course, Course::Running) {
            if self.safe_mode.is_wanted_from_start() {
                self.safe_mode_begins("the operator asked for it", now_ms, out);
            }
            self.kernel.start(now_ms, out);
        }
    }

    fn started(&mut self, who: ChildId, pid: u32, now_ms: u64, out: &mut Vec<Reaction>) {
        let at = self.situation(now_ms);
        match who {
            ChildId::Kernel { generation } if self.kernel.is_current(generation) => {
                self.kernel.started(pid, out)
            }
            ChildId::Kernel { .. } => {}
            ChildId::Zone { zone, generation } => {
                let app = self.apps.iter_mut().find(|app| app.zone == zone && app.is_current(generation));
                if let Some(app) = app {
                    app.started(pid, at);
                    let line = format!("app {}: its process is {pid}", app.spec.name);
                    out.push(Reaction::Log { severity: Severity::Info, line });
                }
            }
        }
    }

    fn ended(
        &mut self,
        who: ChildId,
        how: &str,
        end: Option<ProcessEnd>,
        last_line: Option<String>,
        now_ms: u64,
        out: &mut Vec<Reaction>,
    ) {
        let at = self.situation(now_ms);
        match who {
            ChildId::Kernel { generation } if self.kernel.is_current(generation) => {
                self.kernel_ended(how, end, now_ms, out);
            }
            ChildId::Kernel { .. } => {}
            ChildId::Zone { zone, generation } => {
                let app = self.apps.iter_mut().find(|app| app.zone == zone && app.is_current(generation));
                let Some(app) = app else { return };
                let became = app.exited(how, end, last_line, at, out);
                if app.spec.role == AppRole::Service && became != AfterEnd::Asked {
                    let service = app.spec.name.clone();
                    self.service_failed(&service, became == AfterEnd::GivenUp, now_ms, out);
                }
            }
        }
    }

    fn not_enforced(&mut self, who: ChildId, gap: NotEnforced, out: &mut Vec<Reaction>) {
        let ChildId::Zone { zone, generation } = who else { return };
        if let Some(app) = self.apps.iter_mut().find(|app| app.zone == zone && app.is_current(generation)) {
            app.not_enforced(&gap, out);
        }
    }

    fn kernel_ready(&mut self, now_ms: u64, out: &mut Vec<Reaction>) {
        if !self.kernel.ready(now_ms) {
            return;
        }
        let at = self.situation(now_ms);
        for index in self.order_of_start() {
            self.apps[index].kernel_ready(at, out);
        }
    }

    /// Services first, because apps need them. Then the apps in the operator's order, and in safe mode in the order of
    /// its list.
    fn order_of_start(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.apps.len()).collect();
        order.sort_by_key(|index| {
            let AppSpec { name, role, .. } = &self.apps[*index].spec;
            // Apps that are not on the list are held, whatever their position.
            let place = self.safe_mode.is_on().then(|| self.safe_mode.place_of(name).unwrap_or(usize::MAX));
            (*role == AppRole::App, place)
        });
        order
    }

    fn kernel_ended(&mut self, how: &str, end: Option<ProcessEnd>, now_ms: u64, out: &mut Vec<Reaction>) {
        let closing = !matches!(self.course, Course::Running);
        let Some(failure) = self.kernel.ended(how, end, closing, now_ms) else { return };
        if let Some((code, message)) = failure.cannot_run {
            return self.close(code, Some(message), now_ms, out);
        }
        let reason = format!("the kernel process ended: {}", failure.why);
        let (called, blameless) = (&failure.called, failure.is_blameless());
        // A trusted app may have caused this, unless the kernel process reported its own reason.
        let demoted = |app: &String| !blameless && (called.is_empty() || called.contains(app));
        if !failure.is_restart {
            let trusted = self.loaded(|_| true);
            let KernelFailure { said, killed_by_us, .. } = failure;
            let kernel = KernelEnd { end, said, killed_by_us, called, trusted: &trusted };
            let mut incident = Incident::of_node(IncidentKind::KernelEnded, &failure.why, now_ms);
            incident.finding = self.recent.of_kernel(&kernel, now_ms);
            incident.evidence = Evidence { called: called.clone(), ..Evidence::of(end) };
            incident.then = after_kernel(&trusted.into_iter().filter(demoted).collect::<Vec<_>>());
            out.push(incident.into());
        }
        let at = self.situation(now_ms);
        for app in &mut self.apps {
            let demote = demoted(&app.spec.name);
            app.kernel_lost(&reason, demote, at, out);
        }
        self.restart_kernel(&reason, now_ms, out);
    }

    fn restart_kernel(&mut self, reason: &str, now_ms: u64, out: &mut Vec<Reaction>) {
        match self.kernel.failed(now_ms) {
            // A monitor that restarts nothing cannot enter safe mode.
            RestartDecision::Exhausted if !self.safe_mode.is_on() && self.timing.kernel.restarts_max > 0 => {
                let RestartPolicy { restarts_max, window_ms, .. } = self.timing.kernel;
                let seconds = window_ms / 1_000;
                let why = format!("{reason}; this was after {restarts_max} restarts within {seconds} s");
                self.enter_safe_mode(&why, now_ms, out);
                self.kernel.start(now_ms, out);
            }
            RestartDecision::Exhausted => {
                let RestartPolicy { restarts_max, window_ms, .. } = self.timing.kernel;
                let mode = if self.safe_mode.is_on() { " in safe mode" } else { "" };
                let message = format!(
                    "{reason}; that was after {restarts_max} restarts within {} s{mode}, so the node gives up; \
                     burnet incidents shows the cause",
                    window_ms / 1_000
                );
                let mut incident = Incident::of_node(IncidentKind::ProcessError, reason, now_ms);
                incident.finding = self.recent.of_safe_mode(now_ms);
                incident.then = "the node ended with exit code 1".to_owned();
                out.push(incident.into());
                self.close(1, Some(message), now_ms, out);
            }
            RestartDecision::RestartAfter(0) => {
                let line = format!("{reason}; it restarts now");
                out.push(Reaction::Log { severity: Severity::Error, line });
                self.kernel.start(now_ms, out);
            }
            RestartDecision::RestartAfter(delay_ms) => {
                let line = format!("{reason}; it restarts in {delay_ms} ms");
                out.push(Reaction::Log { severity: Severity::Error, line });
                self.kernel.back_off(now_ms.saturating_add(delay_ms));
            }
        }
    }

    /// Enters safe mode after a failure.
    fn enter_safe_mode(&mut self, reason: &str, now_ms: u64, out: &mut Vec<Reaction>) {
        self.safe_mode_begins(reason, now_ms, out);
        let mut incident = Incident::of_node(IncidentKind::SafeMode, reason, now_ms);
        incident.finding = self.recent.of_safe_mode(now_ms);
        incident.then =
            "only the services and the apps of safe_mode.apps run, all in process zones, until you say: \
                         burnet safe-mode leave"
                .to_owned();
        out.push(incident.into());
    }

    fn safe_mode_begins(&mut self, reason: &str, now_ms: u64, out: &mut Vec<Reaction>) {
        self.safe_mode.enter(reason, now_ms);
        self.kernel.forget_failures();
        for app in &mut self.apps {
            let listed = self.safe_mode.place_of(&app.spec.name).is_some();
            app.safe_mode_begins(listed || app.spec.role == AppRole::Service, now_ms);
        }
        let line = format!("the node is in safe mode ({reason}) until you run: burnet safe-mode leave");
        out.push(Reaction::Log { severity: Severity::Error, line });
    }

    /// Handles a service's failure, in addition to its restart, which is already decided.
    fn service_failed(&mut self, service: &str, given_up: bool, now_ms: u64, out: &mut Vec<Reaction>) {
        let (failed, safe_mode) = match self.safe_mode.service_failed(service, given_up, now_ms) {
            Consequence::Nothing => return,
            Consequence::RestartNode(failed) => (failed, false),
            Consequence::Enter(failed) => (failed, true),
        };
        let names = failed.join(", ");
        let reason = match failed.as_slice() {
            [_] => format!("the service {names} ended too often"),
            _ => format!("several services failed within a short time: {names}"),
        };
        let mut incident = Incident::of_node(IncidentKind::NodeRestarted, &reason, now_ms);
        incident.finding = self.recent.of_services(&failed, now_ms);
        incident.then = "the kernel process and all zones restart".to_owned();
        out.push(incident.into());
        for app in self.apps.iter_mut().filter(|app| app.spec.role == AppRole::Service) {
            app.another_chance(now_ms);
        }
        if safe_mode {
            self.enter_safe_mode(&format!("{reason}, and again after a restart of the node"), now_ms, out);
        }
        self.restart_node(&reason, out);
    }

    /// The end of the kernel process restarts everything.
    fn restart_node(&mut self, reason: &str, out: &mut Vec<Reaction>) {
        let line = format!("the kernel process and all zones restart: {reason}");
        out.push(Reaction::Log { severity: Severity::Error, line });
        self.kernel.kill_for_restart(reason, out);
    }

    fn leave_safe_mode(&mut self, now_ms: u64, out: &mut Vec<Reaction>) {
        if !self.safe_mode.is_on() || !matches!(self.course, Course::Running) {
            return;
        }
        self.safe_mode.leave();
        self.kernel.forget_failures();
        self.recent.forget_kernel_ends();
        let line = "the node leaves safe mode: the operator requested it".to_owned();
        out.push(Reaction::Log { severity: Severity::Info, line });
        let at = self.situation(now_ms);
        for app in &mut self.apps {
            app.safe_mode_ends(at, out);
        }
    }

    fn tick(&mut self, now_ms: u64, out: &mut Vec<Reaction>) {
        let at = self.situation(now_ms);
        for app in &mut self.apps {
            app.tick(at, out);
        }
        self.kernel.tick(now_ms, out);
    }

    fn shutdown_asked(&mut self, now_ms: u64, out: &mut Vec<Reaction>) {
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

    /// Ends everything in order; the node exits with `code` at the end.
    fn close(&mut self, code: u8, message: Option<String>, now_ms: u64, out: &mut Vec<Reaction>) {
        let reason = "the node ends";
        let kill_at_ms = now_ms.saturating_add(self.timing.end_grace_ms);
        let leave_at_ms = kill_at_ms.saturating_add(AFTER_KILL_MS);
        self.course = Course::Closing { code, message, leave_at_ms, hurried: false };
        // The kernel process first: its sessions' last messages are sent before the apps' rings end.
        self.kernel.shut_down(reason, kill_at_ms, out);
        let at = self.situation(now_ms);
        for app in &mut self.apps {
            app.stop(reason, at, out);
        }
    }

    fn kill_all(&mut self, out: &mut Vec<Reaction>) {
        for app in &mut self.apps {
            app.kill(out);
        }
        self.kernel.hurry(out);
    }

    fn leave_when_empty(&mut self, now_ms: u64, out: &mut Vec<Reaction>) {
        let Course::Closing { code, message, leave_at_ms, .. } = &self.course else { return };
        let empty = self.kernel.is_gone() && !self.apps.iter().any(AppLife::has_process);
        if empty {
            out.push(Reaction::Exit { code: *code, message: message.clone() });
        } else if *leave_at_ms <= now_ms {
            let message = "the node ends although a child process did not end after SIGKILL".to_owned();
            out.push(Reaction::Exit { code: (*code).max(1), message: Some(message) });
        } else {
            return;
        }
        self.course = Course::Left;
    }

    fn forgive_own_pause(&mut self, now_ms: u64) {
        let pause_ms = now_ms.saturating_sub(self.last_event_ms);
        self.last_event_ms = self.last_event_ms.max(now_ms);
        if pause_ms >= OWN_PAUSE_MS {
            self.kernel.forgive_pause(pause_ms, now_ms);
        }
    }
}

/// A text about the reaction to the end of a kernel process.
fn after_kernel(demoted: &[String]) -> String {
    match demoted {
        [] => "it and all zones restart".to_owned(),
        demoted => {
            let names = demoted.join(", ");
            format!(
                "it and all zones restart; these apps are no longer trusted and run in process zones: {names}"
            )
        }
    }
}

/// Each app's number: its own, or the lowest free one.
fn numbers(specs: &[AppSpec]) -> Vec<u16> {
    let mut free = (1..).filter(|number| specs.iter().all(|spec| spec.zone != Some(*number)));
    // There are more numbers of 16 bits than apps.
    specs.iter().map(|spec| spec.zone.or_else(|| free.next()).unwrap_or_default()).collect()
}

/// Whether apps come in another order. When one is removed, those behind it move up, which changes nothing for them.
fn has_other_order(stay: &[(&AppSpec, &AppSpec)]) -> bool {
    let names = |place: fn(&(&AppSpec, &AppSpec)) -> Option<u64>| {
        let mut names: Vec<(Option<u64>, &str)> =
            stay.iter().map(|both| (place(both), both.1.name.as_str())).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name.to_owned()).collect::<Vec<_>>()
    };
    names(|(before, _)| place_of(before)) != names(|(_, after)| place_of(after))
}
