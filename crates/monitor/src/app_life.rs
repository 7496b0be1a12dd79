//! The life of one app: started, running, ended, started again or not. Pure.
//!
//! In: events of the app, and the state of the node ([`Situation`]).
//! Out: reactions, appended to the passed list.
//! It never decides about the kernel or about another app.
//!
//! ```text
//!            kernel ready              started
//!  Waiting ──▶ (Checking) ──▶ Starting ───────▶ Running ──▶ Ending ──┐
//!     ▲                        ▲                   │ it ended        │ it ended
//!     │ kernel lost            │ delay over        ▼                 │
//!     │                     BackingOff ◀───── a failure ◀────────────┤
//!     │                                            │ too many        │ operator
//!     └──────── operator: restart ◀─── Quarantined ◀                 ▼
//!                                                                 Stopped
//! ```
//!
//! In safe mode, an app that must not run is Held instead of started. An app from a package is
//! Checking before each start, until its package is verified. It is Refused if a verification fails, then or later.

mod listening;
mod noting;
mod reconfiguring;

use crate::app::{AppRole, AppSpec, AppStatus, Verb, ZoneKind};
use crate::app_phase::{AfterStop, Phase, rests};
use crate::backoff::{Backoff, RestartDecision, RestartPolicy};
use crate::enforcement::Enforcement;
use crate::incident::{Evidence, Incident, IncidentKind};
use crate::process_end::{PastEnd, ProcessEnd};
use crate::protocol::ToKernel;
use crate::retry::Retry;
use crate::supervisor::{ChildId, Reaction, Severity, StopSignal};
use crate::verification::{AppCheck, Validity};
use zone::NotEnforced;

/// The exit code for a usage or configuration error, of Burnet's programs and of apps that refuse their settings.
const EXIT_USAGE: i32 = 2;

/// The state of the node that an app depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation {
    pub(crate) now_ms: u64,
    /// A kernel process is ready for attachments.
    pub(crate) kernel_ready: bool,
    /// The node is stopping, so nothing is started.
    pub(crate) closing: bool,
    /// The time between SIGTERM and SIGKILL.
    pub(crate) end_grace_ms: u64,
    /// Only services and essential apps are started, and nothing trusted.
    pub(crate) safe_mode: bool,
}

/// What happens after the process of an app ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterEnd {
    /// It failed, and restarts.
    Restarted,
    /// It failed, and does not restart.
    GivenUp,
    /// It was stopped.
    Asked,
}

#[derive(Debug)]
pub(crate) struct AppLife {
    pub(crate) spec: AppSpec,
    pub(crate) zone: u16,
    kind: ZoneKind,
    demoted: Option<PastEnd>,
    /// It also runs in safe mode.
    essential: bool,
    phase: Phase,
    since_ms: u64,
    generation: u64,
    /// The start of its generation numbers: an earlier app of this name may have left objects with smaller numbers.
    first_generation: u64,
    pid: Option<u32>,
    /// The kernel holds this generation's ports.
    attached: bool,
    backoff: Backoff,
    last_end: Option<PastEnd>,
    /// What the operator should know about it now.
    note: Option<String>,
    /// The next try to have all of its addresses, if one is missing.
    retry: Option<Retry>,
    /// What this generation's zone does not enforce.
    enforcement: Enforcement,
    /// The number of the last verification.
    check: u64,
    /// A failed verification attempt has been logged, while it runs.
    wondered: bool,
}

impl AppLife {
    pub(crate) fn new(zone: u16, spec: AppSpec, policy: RestartPolicy, first_generation: u64) -> AppLife {
        AppLife {
            kind: spec.kind,
            spec,
            zone,
            demoted: None,
            essential: false,
            phase: Phase::Waiting,
            since_ms: 0,
            generation: first_generation,
            first_generation,
            pid: None,
            attached: false,
            backoff: Backoff::new(policy),
            last_end: None,
            note: None,
            retry: None,
            enforcement: Enforcement::default(),
            check: 0,
            wondered: false,
        }
    }

    /// The launcher of its zone reports this. It is logged once for each start.
    pub(crate) fn not_enforced(&mut self, gap: &NotEnforced, out: &mut Vec<Reaction>) {
        let gap = self.enforcement.note(gap);
        self.say(Severity::Warn, &gap.to_string(), out);
    }

    pub(crate) fn enforces(&self, limit: &str) -> bool {
        self.enforcement.enforces(limit)
    }

    /// Whether a process of this app may be alive.
    pub(crate) fn has_process(&self) -> bool {
        self.kind == ZoneKind::Process
            && matches!(self.phase, Phase::Starting | Phase::Running | Phase::Ending { .. })
    }

    pub(crate) fn is_current(&self, generation: u64) -> bool {
        self.generation == generation
    }

    /// The time of the next `tick` with work.
    pub(crate) fn next_wake_ms(&self) -> Option<u64> {
        let retry = self.retry.filter(|_| self.phase.is_up()).map(|retry| retry.at_ms);
        self.phase.next_wake_ms().into_iter().chain(retry).min()
    }

    pub(crate) fn kernel_ready(&mut self, at: Situation, out: &mut Vec<Reaction>) {
        if matches!(self.phase, Phase::Waiting) {
            self.start(at, out);
        }
    }

    /// The kernel process ended, and its ports with it. `demote` is the reason why a trusted app loses its trust.
    pub(crate) fn kernel_lost(&mut self, reason: &str, demote: bool, at: Situation, out: &mut Vec<Reaction>) {
        if matches!(self.phase, Phase::Ending { .. }) {
            // Its planned state stays: an app that the operator stopped does not restart with the kernel.
            return self.detach(reason, at, out);
        }
        if self.has_process() {
            return self.end(AfterStop::Again, StopSignal::Term, reason, at, out);
        }
        if matches!(self.phase, Phase::Running) {
            self.remember_end(reason, None, at.now_ms);
            if demote {
                self.demote(reason, at.now_ms, out);
            }
            self.enter(Phase::Waiting, at.now_ms);
        }
        if matches!(self.phase, Phase::Checking) {
            self.enter(Phase::Waiting, at.now_ms);
        }
    }

    pub(crate) fn started(&mut self, pid: u32, at: Situation) {
        self.pid = Some(pid);
        self.attached = true;
        if matches!(self.phase, Phase::Starting) {
            self.enter(Phase::Running, at.now_ms);
        }
    }

    /// Its process ended, or could not be started.
    pub(crate) fn exited(
        &mut self,
        how: &str,
        end: Option<ProcessEnd>,
        last_line: Option<String>,
        at: Situation,
        out: &mut Vec<Reaction>,
    ) -> AfterEnd {
        if !self.has_process() {
            return AfterEnd::Asked;
        }
        self.pid = None;
        let (reason, then, what) = match &self.phase {
            Phase::Ending { reason, then, .. } => (reason.clone(), *then, IncidentKind::ZoneFault),
            _ => (how.to_owned(), AfterStop::Fail, IncidentKind::AppEnded),
        };
        self.detach(&reason, at, out);
        self.remember_end(&reason, last_line, at.now_ms);
        match then {
            AfterStop::Fail if self.will_not_run(end) && !at.closing => {
                return self.give_up(Evidence::of(end), at, out);
            }
            AfterStop::Fail => return self.fail(what, &reason, Evidence::of(end), at, out),
            AfterStop::Again => self.start(at, out),
            AfterStop::Stop => self.enter(Phase::Stopped, at.now_ms),
            AfterStop::Quarantine => self.enter(Phase::Quarantined, at.now_ms),
            AfterStop::Refuse => self.enter(Phase::Refused, at.now_ms),
            AfterStop::Remove => self.enter(Phase::Gone, at.now_ms),
        }
        AfterEnd::Asked
    }

    /// The zone violated the protocol of its port, or exceeds a hard limit. A trusted app is removed from the kernel
    /// process permanently.
    pub(crate) fn zone_fault(&mut self, reason: &str, at: Situation, out: &mut Vec<Reaction>) {
        if self.is_loaded() {
            return self.trusted_fault(reason, at, out);
        }
        if self.has_process() {
            self.end(AfterStop::Fail, StopSignal::Kill, reason, at, out);
        }
    }

    /// The kernel caught a panic of the trusted app, or could not load it, or the app exceeds its limit of processor
    /// time.
    pub(crate) fn trusted_fault(&mut self, reason: &str, at: Situation, out: &mut Vec<Reaction>) {
        if self.kind != ZoneKind::Trusted || !matches!(self.phase, Phase::Running) {
            return;
        }
        self.unload(reason, at, out);
        self.remember_end(reason, None, at.now_ms);
        self.demote(reason, at.now_ms, out);
        self.fail(IncidentKind::Demoted, reason, Evidence::default(), at, out);
    }

    /// `why` is the operator's reason, if there is one.
    pub(crate) fn operator(&mut self, verb: Verb, why: Option<&str>, at: Situation, out: &mut Vec<Reaction>) {
        if matches!(self.phase, Phase::Ending { then: AfterStop::Remove, .. }) {
            return;
        }
        // An app that the operator starts in safe mode runs in safe mode.
        self.essential |= matches!(verb, Verb::Restart | Verb::Start);
        match verb {
            Verb::Stop | Verb::Quarantine | Verb::Remove if self.spec.role == AppRole::Service => {
                self.say(Severity::Warn, "is a service of the node and cannot be stopped", out);
            }
            Verb::Restart | Verb::Start if self.spec.paused => {
                self.say(Severity::Warn, "is paused, and does not start until it is resumed", out);
            }
            Verb::Restart | Verb::Start if self.spec.waits => {
                self.say(
                    Severity::Warn,
                    "starts as soon as the network has what it needs, and not before",
                    out,
                );
            }
            // The package of a refused app may have changed.
            Verb::Restart | Verb::Start if self.is_refused() => {
                out.push(Reaction::LookUp { app: self.spec.name.clone() });
            }
            Verb::Restart => self.restart(at, out),
            Verb::Stop => self.stop("the operator stopped it", at, out),
            Verb::Quarantine => self.quarantine(why, at, out),
            Verb::Remove => self.stop_for(AfterStop::Remove, Phase::Gone, "the operator removed it", at, out),
            Verb::Start => match self.phase {
                Phase::Waiting | Phase::Checking | Phase::Starting | Phase::Running => {}
                Phase::Ending { then: AfterStop::Again | AfterStop::Fail, .. } => {}
                _ => self.restart(at, out),
            },
        }
    }

    pub(crate) fn stop(&mut self, reason: &str, at: Situation, out: &mut Vec<Reaction>) {
        self.stop_for(AfterStop::Stop, Phase::Stopped, reason, at, out);
    }

    fn quarantine(&mut self, why: Option<&str>, at: Situation, out: &mut Vec<Reaction>) {
        if matches!(self.phase, Phase::Quarantined | Phase::Ending { then: AfterStop::Quarantine, .. }) {
            return;
        }
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let reason = format!("the operator quarantined it{why}");
        let then = format!("it stays stopped until you run: burnet app restart {}", self.spec.name);
        self.say(Severity::Warn, &format!("is quarantined ({reason}); {then}"), out);
        let incident = self.incident(IncidentKind::Quarantined, &reason, at);
        out.push(incident.without_culprit("no app: the operator decided it", then).into());
        self.stop_for(AfterStop::Quarantine, Phase::Quarantined, &reason, at, out);
    }

    fn stop_for(
        &mut self,
        then: AfterStop,
        rest: Phase,
        reason: &str,
        at: Situation,
        out: &mut Vec<Reaction>,
    ) {
        if self.has_process() {
            return self.end(then, StopSignal::Term, reason, at, out);
        }
        let runs = matches!(self.phase, Phase::Running);
        if runs {
            self.unload(reason, at, out);
        }
        if runs || then == AfterStop::Quarantine {
            self.remember_end(reason, None, at.now_ms);
        }
        self.enter(rest, at.now_ms);
    }

    /// The node goes into safe mode; `essential` if the app runs then.
    pub(crate) fn safe_mode_begins(&mut self, essential: bool, now_ms: u64) {
        self.essential = essential;
        if !essential && matches!(self.phase, Phase::Waiting | Phase::Checking | Phase::BackingOff { .. }) {
            self.enter(Phase::Held, now_ms);
        }
    }

    /// The node leaves safe mode: held apps start. Apps that lost their trust only for safe mode are trusted again.
    pub(crate) fn safe_mode_ends(&mut self, at: Situation, out: &mut Vec<Reaction>) {
        self.essential = false;
        // An open check was requested for safe mode, without trust, so it is requested again.
        if matches!(self.phase, Phase::Held | Phase::Checking) {
            return self.start(at, out);
        }
        let kept_down = self.kind != self.wanted_kind(at);
        if kept_down && self.phase.is_up() {
            self.end(
                AfterStop::Again,
                StopSignal::Term,
                "safe mode is over, and it runs trusted again",
                at,
                out,
            );
        }
    }

    /// The node restarts with all its services, including those that were given up.
    pub(crate) fn another_chance(&mut self, now_ms: u64) {
        self.backoff.forget();
        if matches!(self.phase, Phase::Quarantined | Phase::BackingOff { .. }) {
            self.enter(Phase::Waiting, now_ms);
        }
    }

    /// The operator installed another version. It runs from the next start, which is now.
    pub(crate) fn replace(&mut self, spec: AppSpec, at: Situation, out: &mut Vec<Reaction>) {
        self.spec = spec;
        self.demoted = None;
        self.essential = true;
        self.restart(at, out);
    }

    /// It was removed from the configuration.
    pub(crate) fn taken_out(&mut self, at: Situation, out: &mut Vec<Reaction>) {
        self.stop_for(AfterStop::Remove, Phase::Gone, "it is no longer in the configuration", at, out);
    }

    /// It was added to a running node.
    pub(crate) fn begin(&mut self, at: Situation, out: &mut Vec<Reaction>) {
        // An app that the operator starts in safe mode runs in safe mode.
        self.essential = true;
        self.start(at, out);
    }

    /// It was removed, and nothing of it runs.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.phase, Phase::Gone)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether it runs inside the kernel process now.
    pub(crate) fn is_loaded(&self) -> bool {
        self.kind == ZoneKind::Trusted && matches!(self.phase, Phase::Running)
    }

    fn wanted_kind(&self, at: Situation) -> ZoneKind {
        if at.safe_mode || self.demoted.is_some() { ZoneKind::Process } else { self.spec.kind }
    }

    /// Kills the process immediately, if there is one.
    pub(crate) fn kill(&mut self, out: &mut Vec<Reaction>) {
        if !self.has_process() {
            return;
        }
        if let Phase::Ending { kill_at_ms, .. } = &mut self.phase {
            *kill_at_ms = None;
        }
        out.push(Reaction::End { who: self.who(), how: StopSignal::Kill });
    }

    pub(crate) fn tick(&mut self, at: Situation, out: &mut Vec<Reaction>) {
        self.try_to_listen(at, out);
        match self.phase {
            Phase::BackingOff { until_ms } if until_ms <= at.now_ms => self.start(at, out),
            Phase::Ending { kill_at_ms: Some(kill_at_ms), .. } if kill_at_ms <= at.now_ms => {
                self.say(Severity::Warn, "did not end after SIGTERM; it is killed", out);
                self.kill(out);
            }
            _ => {}
        }
    }

    /// `unix_ms_at_zero` is the wall clock when the monitor's clock was zero.
    pub(crate) fn status(&self, unix_ms_at_zero: u64) -> AppStatus {
        let ending = |past: &PastEnd| past.ending(unix_ms_at_zero);
        AppStatus {
            app: self.spec.name.clone(),
            role: self.spec.role,
            zone: self.zone,
            kind: self.kind,
            demoted: self.demoted.as_ref().map(ending),
            state: self.phase.state(unix_ms_at_zero),
            since_unix_ms: unix_ms_at_zero.saturating_add(self.since_ms),
            restarts: self.generation.saturating_sub(self.first_generation + 1),
            generation: self.generation,
            pid: self.pid,
            last_end: self.last_end.as_ref().map(ending),
            note: self.note.clone(),
            not_enforced: self.enforcement.gaps().to_vec(),
            listens: self.spec.sandbox.net.listen.iter().map(ToString::to_string).collect(),
        }
    }

    fn who(&self) -> ChildId {
        ChildId::Zone { zone: self.zone, generation: self.generation }
    }

    fn enter(&mut self, phase: Phase, now_ms: u64) {
        self.phase = phase;
        self.since_ms = now_ms;
    }

    fn start(&mut self, at: Situation, out: &mut Vec<Reaction>) {
        if at.closing {
            return self.enter(Phase::Stopped, at.now_ms);
        }
        if let Some(why) = rests(&self.spec) {
            self.remember_end(why, None, at.now_ms);
            return self.enter(Phase::Stopped, at.now_ms);
        }
        if at.safe_mode && !self.essential {
            return self.enter(Phase::Held, at.now_ms);
        }
        if !at.kernel_ready {
            return self.enter(Phase::Waiting, at.now_ms);
        }
        if self.spec.packaged {
            self.check += 1;
            let trusted = self.wanted_kind(at) == ZoneKind::Trusted;
            out.push(Reaction::Verify(self.subject(trusted)));
            return self.enter(Phase::Checking, at.now_ms);
        }
        self.start_verified(at, out);
    }

    fn start_verified(&mut self, at: Situation, out: &mut Vec<Reaction>) {
        self.generation += 1;
        self.kind = self.wanted_kind(at);
        self.wondered = false;
        self.enforcement = Enforcement::default();
        self.backoff.started(at.now_ms);
        match self.kind {
            ZoneKind::Process => {
                out.push(Reaction::StartZone { zone: self.zone, generation: self.generation });
                self.enter(Phase::Starting, at.now_ms);
            }
            ZoneKind::Trusted => {
                out.push(Reaction::TellKernel(ToKernel::LoadTrusted {
                    zone: self.zone,
                    app: self.spec.name.clone(),
                    source: self.spec.source.clone(),
                    settings: self.spec.settings.clone(),
                    grant: self.spec.grant.clone(),
                }));
                self.enter(Phase::Running, at.now_ms);
            }
        }
    }

    /// The package to verify while it runs.
    pub(crate) fn to_verify(&self) -> Option<AppCheck> {
        let runs = self.phase.is_up();
        (runs && self.spec.packaged).then(|| self.subject(self.is_loaded()))
    }

    fn subject(&self, trusted: bool) -> AppCheck {
        AppCheck { zone: self.zone, check: self.check, app: self.spec.name.clone(), trusted }
    }

    /// The verification result of its package.
    pub(crate) fn on_verdict(
        &mut self,
        check: u64,
        validity: Validity,
        at: Situation,
        out: &mut Vec<Reaction>,
    ) {
        if check != self.check {
            return;
        }
        let runs = self.phase.is_up();
        match (&self.phase, validity) {
            (Phase::Checking, Validity::Good) => self.start_verified(at, out),
            (Phase::Checking, Validity::NotTrusted(why)) => {
                if self.wanted_kind(at) == ZoneKind::Trusted {
                    self.demote(&why, at.now_ms, out);
                }
                self.start_verified(at, out);
            }
            (Phase::Checking, Validity::Refused(why) | Validity::Unknown(why)) => self.refuse(&why, at, out),
            (_, Validity::Good) => self.wondered = false,
            (_, Validity::NotTrusted(why)) if self.is_loaded() => {
                self.unload(&why, at, out);
                self.remember_end(&why, None, at.now_ms);
                self.demote(&why, at.now_ms, out);
                self.start(at, out);
            }
            (_, Validity::Refused(why)) if runs => self.refuse(&why, at, out),
            // It was valid when it started, and an unreadable file is not the app's fault.
            (_, Validity::Unknown(why)) if runs && !self.wondered => {
                self.wondered = true;
                let line = format!("continues to run, but its package could not be verified: {why}");
                self.say(Severity::Error, &line, out);
            }
            _ => {}
        }
    }

    fn is_refused(&self) -> bool {
        matches!(self.phase, Phase::Refused | Phase::Ending { then: AfterStop::Refuse, .. })
    }

    fn stays_stopped(&self) -> String {
        format!("it stays stopped; fix the cause, then run: burnet app restart {}", self.spec.name)
    }

    /// Its package failed verification: it does not start, or is stopped.
    fn refuse(&mut self, reason: &str, at: Situation, out: &mut Vec<Reaction>) {
        let then = self.stays_stopped();
        self.say(Severity::Error, &format!("is refused ({reason}); {then}"), out);
        let incident = self.incident(IncidentKind::Refused, reason, at);
        let culprit = "no app: its package or the trust store has changed";
        out.push(incident.without_culprit(culprit, then).into());
        if self.has_process() {
            // At once: its files may have been replaced.
            return self.end(AfterStop::Refuse, StopSignal::Kill, reason, at, out);
        }
        if matches!(self.phase, Phase::Running) {
            self.unload(reason, at, out);
        }
        self.remember_end(reason, None, at.now_ms);
        self.enter(Phase::Refused, at.now_ms);
    }

    /// The operator wants it to run again, and it cannot.
    pub(crate) fn not_found(&mut self, reason: &str, at: Situation, out: &mut Vec<Reaction>) {
        if matches!(self.phase, Phase::Refused) {
            self.say(Severity::Error, &format!("is still refused: {reason}"), out);
            self.remember_end(reason, None, at.now_ms);
        }
    }

    fn restart(&mut self, at: Situation, out: &mut Vec<Reaction>) {
        let reason = "the operator restarted it";
        self.backoff.forget();
        if self.has_process() {
            return self.end(AfterStop::Again, StopSignal::Term, reason, at, out);
        }
        match self.phase {
            Phase::Waiting => {}
            Phase::Running => {
                self.unload(reason, at, out);
                self.remember_end(reason, None, at.now_ms);
                self.start(at, out);
            }
            _ => self.start(at, out),
        }
    }

    /// Ends the process. If it is already ending, its time limit stays, and the last request decides what follows.
    fn end(
        &mut self,
        then: AfterStop,
        how: StopSignal,
        reason: &str,
        at: Situation,
        out: &mut Vec<Reaction>,
    ) {
        self.detach(reason, at, out);
        if let Phase::Ending { reason: first, then: first_then, kill_at_ms } = &mut self.phase {
            // A failure stays a failure: a restart of the kernel meanwhile must not clear it.
            if !(*first_then == AfterStop::Fail && then == AfterStop::Again && !at.closing) {
                *first_then = then;
                *first = reason.to_owned();
            }
            if how == StopSignal::Kill && kill_at_ms.take().is_some() {
                out.push(Reaction::End { who: self.who(), how });
            }
            return;
        }
        out.push(Reaction::End { who: self.who(), how });
        let kill_at_ms = (how == StopSignal::Term).then_some(at.now_ms.saturating_add(at.end_grace_ms));
        self.enter(Phase::Ending { reason: reason.to_owned(), then, kill_at_ms }, at.now_ms);
    }

    fn fail(
        &mut self,
        what: IncidentKind,
        reason: &str,
        evidence: Evidence,
        at: Situation,
        out: &mut Vec<Reaction>,
    ) -> AfterEnd {
        if at.closing {
            self.enter(Phase::Stopped, at.now_ms);
            return AfterEnd::Asked;
        }
        let mut incident = self.incident(what, reason, at);
        incident.evidence = evidence;
        let verdict = self.backoff.failed(at.now_ms);
        let (severity, became) = match verdict {
            RestartDecision::RestartAfter(_) => (Severity::Warn, AfterEnd::Restarted),
            RestartDecision::Exhausted => (Severity::Error, AfterEnd::GivenUp),
        };
        incident.then = match verdict {
            RestartDecision::RestartAfter(0) => "it restarts now".to_owned(),
            RestartDecision::RestartAfter(delay_ms) => format!("it restarts in {delay_ms} ms"),
            RestartDecision::Exhausted => {
                incident.what = IncidentKind::Quarantined;
                let name = &self.spec.name;
                format!("it is quarantined until you run: burnet app restart {name}")
            }
        };
        let ended = if became == AfterEnd::GivenUp { "ended too often" } else { "ended" };
        self.say(severity, &format!("{ended} ({reason}); {}", incident.then), out);
        out.push(incident.into());
        match verdict {
            RestartDecision::RestartAfter(0) => self.start(at, out),
            RestartDecision::RestartAfter(delay_ms) => {
                self.enter(Phase::BackingOff { until_ms: at.now_ms.saturating_add(delay_ms) }, at.now_ms);
            }
            RestartDecision::Exhausted => self.enter(Phase::Quarantined, at.now_ms),
        }
        became
    }

    /// Whether it reported that it cannot run, usually because of its settings. The next start would end in the same
    /// way.
    fn will_not_run(&self, end: Option<ProcessEnd>) -> bool {
        self.spec.role == AppRole::App && end == Some(ProcessEnd::Code(EXIT_USAGE))
    }

    /// It stays stopped, with its own error message, until the operator has changed something.
    fn give_up(&mut self, evidence: Evidence, at: Situation, out: &mut Vec<Reaction>) -> AfterEnd {
        let said = self.last_end.as_ref().and_then(|past| past.last_line()).map(str::to_owned);
        let reason = said.unwrap_or_else(|| "it did not say why".to_owned());
        let then = self.stays_stopped();
        self.say(Severity::Error, &format!("does not run: {reason} (exit code {EXIT_USAGE}); {then}"), out);
        let mut incident = self.incident(IncidentKind::Quarantined, &reason, at);
        incident.evidence = evidence;
        incident.then = then;
        out.push(incident.into());
        self.enter(Phase::Quarantined, at.now_ms);
        AfterEnd::GivenUp
    }

    fn incident(&self, what: IncidentKind, reason: &str, at: Situation) -> Incident {
        Incident::of_app(what, &self.spec.name, self.generation, reason, at.now_ms)
    }

    fn demote(&mut self, reason: &str, now_ms: u64, out: &mut Vec<Reaction>) {
        self.kind = ZoneKind::Process;
        self.demoted = Some(PastEnd::new(reason, None, now_ms));
        self.say(
            Severity::Error,
            &format!("ran as a trusted app, and runs in a process zone from now on: {reason}"),
            out,
        );
    }

    fn detach(&mut self, reason: &str, at: Situation, out: &mut Vec<Reaction>) {
        if std::mem::take(&mut self.attached) && at.kernel_ready {
            out.push(Reaction::TellKernel(ToKernel::DetachZone {
                zone: self.zone,
                app: self.spec.name.clone(),
                generation: self.generation,
                reason: reason.to_owned(),
            }));
        }
    }

    fn unload(&mut self, reason: &str, at: Situation, out: &mut Vec<Reaction>) {
        if at.kernel_ready {
            out.push(Reaction::TellKernel(ToKernel::UnloadTrusted {
                zone: self.zone,
                app: self.spec.name.clone(),
                reason: reason.to_owned(),
            }));
        }
    }

    fn remember_end(&mut self, reason: &str, last_line: Option<String>, at_ms: u64) {
        self.last_end = Some(PastEnd::new(reason, last_line, at_ms));
    }

    fn say(&self, severity: Severity, line: &str, out: &mut Vec<Reaction>) {
        let what = match self.spec.role {
            AppRole::App => "app",
            AppRole::Service => "service",
        };
        out.push(Reaction::Log { severity, line: format!("{what} {}: {line}", self.spec.name) });
    }
}
