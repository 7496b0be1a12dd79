//! Recent log lines and app failures, and the probable cause of an incident. Pure.
//!
//! ```text
//!   log lines, failures of apps ──> RecentFacts ──> the facts before an incident, and its probable cause
//! ```
//!
//! It keeps the newest [`FACTS_MAX`] lines and [`FAILURES_MAX`] failures. It never decides what happens next.

use std::collections::VecDeque;

use crate::app::legible;
use crate::incident::{FACT_BYTES_MAX, FACTS_MAX, Fact, Finding, Incident, IncidentKind};
use crate::protocol::FaultCause;
use crate::supervisor::{ProcessEnd, Reaction};

/// The maximum number of kept failures of apps. Enough for several apps that crash in turn.
const FAILURES_MAX: usize = 64;

/// A failure of an app this long before a failure of the node, in milliseconds, counts as a possible cause.
const BEFORE_MS: u64 = 10_000;

/// The maximum number of kept kernel process ends: more than lead to safe mode.
const KERNEL_ENDS_MAX: usize = 16;

/// SIGKILL.
const KILLED: i32 = 9;

/// A failure of an app.
#[derive(Debug, Clone)]
struct AppFailure {
    at_ms: u64,
    app: String,
    reason: String,
}

/// How the kernel process ended.
#[derive(Debug)]
pub(crate) struct KernelEnd<'a> {
    pub(crate) end: Option<ProcessEnd>,
    /// It reported the reason itself.
    pub(crate) said: bool,
    /// The monitor killed it, because it hung or sent garbage.
    pub(crate) killed_by_us: bool,
    /// The trusted apps that its workers were calling.
    pub(crate) called: &'a [String],
    /// All trusted apps that it ran.
    pub(crate) trusted: &'a [String],
}

/// The stored facts.
#[derive(Debug, Default)]
pub(crate) struct RecentFacts {
    facts: VecDeque<Fact>,
    failures: VecDeque<AppFailure>,
    /// Why zones had to end: the app, its generation, the cause. At most [`FAILURES_MAX`].
    faults: VecDeque<(String, u64, FaultCause)>,
    kernel_ends: VecDeque<Option<String>>,
}

impl RecentFacts {
    /// Stores the log lines of these reactions, and adds the earlier facts to each incident.
    pub(crate) fn on_reactions(&mut self, reactions: &mut [Reaction], now_ms: u64) {
        for reaction in reactions {
            match reaction {
                Reaction::Log { line, .. } => self.remember(line, now_ms),
                Reaction::Incident(incident) => {
                    self.blame(incident);
                    incident.evidence.facts = self.facts.iter().cloned().collect();
                }
                _ => {}
            }
        }
    }

    /// A zone of an app has to end. The incident comes when its process has ended.
    pub(crate) fn on_fault(&mut self, app: &str, generation: u64, cause: FaultCause) {
        if self.faults.len() >= FAILURES_MAX {
            self.faults.pop_front();
        }
        self.faults.push_back((app.to_owned(), generation, cause));
    }

    /// Why the zone of this incident had to end, if that is what the incident is.
    fn fault_of(&self, app: &str, incident: &Incident) -> Option<FaultCause> {
        let is_fault = incident.what == IncidentKind::ZoneFault
            || incident.what == IncidentKind::Quarantined && incident.finding.culprit.is_some();
        let is_it = |(name, generation, _): &&(String, u64, FaultCause)| {
            is_fault && name == app && *generation == incident.generation
        };
        self.faults.iter().rev().find(is_it).map(|(_, _, cause)| *cause)
    }

    fn remember(&mut self, line: &str, now_ms: u64) {
        if self.facts.len() >= FACTS_MAX {
            self.facts.pop_front();
        }
        self.facts.push_back(Fact { unix_ms: now_ms, line: legible(line, FACT_BYTES_MAX) });
    }

    fn blame(&mut self, incident: &mut Incident) {
        if let Some(app) = incident.app.clone() {
            if incident.finding.sentence.is_empty() {
                match self.fault_of(&app, incident) {
                    Some(cause) => incident.finding = Finding::of_fault(&app, cause),
                    None => incident.finding.sentence = of_app(&app, incident),
                }
            }
            if self.failures.len() >= FAILURES_MAX {
                self.failures.pop_front();
            }
            let (at_ms, reason) = (incident.unix_ms, incident.reason.clone());
            self.failures.push_back(AppFailure { at_ms, app, reason });
        }
    }

    /// The probable cause of the end of the kernel process. It is kept.
    pub(crate) fn of_kernel(&mut self, kernel: &KernelEnd<'_>, now_ms: u64) -> Finding {
        let finding = self.judge(kernel, now_ms);
        if self.kernel_ends.len() >= KERNEL_ENDS_MAX {
            self.kernel_ends.pop_front();
        }
        self.kernel_ends.push_back(finding.culprit.clone());
        finding
    }

    fn judge(&self, kernel: &KernelEnd<'_>, now_ms: u64) -> Finding {
        let names = kernel.called.join(", ");
        match kernel.called {
            _ if kernel.said => nobody("the kernel process reported why it ended; no app is the cause"),
            [app] if kernel.killed_by_us => {
                by(app, format!("the kernel process was calling the trusted app {app} when it was killed"))
            }
            [app] => by(app, format!("the kernel process ended while it was calling the trusted app {app}")),
            [_, _, ..] => nobody(&format!(
                "the workers of the kernel process were calling several trusted apps ({names}); it was one of them"
            )),
            [] => self.of_kernel_alone(kernel, now_ms),
        }
    }

    fn of_kernel_alone(&self, kernel: &KernelEnd<'_>, now_ms: u64) -> Finding {
        if let Some((app, words)) = self.suspect(now_ms, |_| true) {
            return by(&app, format!("no trusted app was being called; {words}; nothing else is known"));
        }
        match (kernel.trusted, kernel.end) {
            (_, Some(ProcessEnd::Signal { number: KILLED, .. })) if !kernel.killed_by_us => nobody(
                "no app was being called, and SIGKILL came from outside the node: from a user of this machine, or from Linux when memory ran out",
            ),
            ([], _) => nobody("no app runs inside the kernel process, so this is a fault of Burnet"),
            (trusted, _) => nobody(&format!(
                "no trusted app was being called; one of them ({}) may have damaged the process earlier, or it is a fault of Burnet",
                trusted.join(", ")
            )),
        }
    }

    /// The probable cause of the failure of several services; `failed` are the services.
    pub(crate) fn of_services(&self, failed: &[String], now_ms: u64) -> Finding {
        match self.suspect(now_ms, |app| !failed.iter().any(|service| service == app)) {
            Some((app, words)) => by(&app, format!("{words}, just before the services failed")),
            None => nobody("no app failed just before the services failed"),
        }
    }

    /// The probable cause of safe mode.
    pub(crate) fn of_safe_mode(&self, now_ms: u64) -> Finding {
        let named: Vec<&String> = self.kernel_ends.iter().flatten().collect();
        let most = named.iter().max_by_key(|app| named.iter().filter(|other| other == app).count());
        let Some(app) = most else {
            return match self.suspect(now_ms, |_| true) {
                Some((app, words)) => by(&app, format!("{words} before")),
                None => nobody("the cause is unknown; see the earlier incidents"),
            };
        };
        let count = named.iter().filter(|other| other == &app).count();
        let all = self.kernel_ends.len();
        by(app, format!("{count} of the last {all} ends of the kernel process were caused by {app}"))
    }

    /// Forgets the ends of the kernel process.
    pub(crate) fn forget_kernel_ends(&mut self) {
        self.kernel_ends.clear();
    }

    /// The one app that failed shortly before, or far more often than all others.
    fn suspect(&self, now_ms: u64, counts: impl Fn(&str) -> bool) -> Option<(String, String)> {
        let recent =
            |failure: &&AppFailure| now_ms.saturating_sub(failure.at_ms) <= BEFORE_MS && counts(&failure.app);
        let recent: Vec<&AppFailure> = self.failures.iter().filter(recent).collect();
        let times = |app: &str| recent.iter().filter(|failure| failure.app == app).count();
        let last = recent.iter().max_by_key(|failure| (times(&failure.app), failure.at_ms))?;
        let mine = times(&last.app);
        // If several apps failed equally often, naming one would be a guess.
        if 2 * mine <= recent.len() {
            return None;
        }
        let seconds = now_ms.saturating_sub(last.at_ms).div_ceil(1_000);
        let often = if mine == 1 { "once".to_owned() } else { format!("{mine} times") };
        let words = format!(
            "the app {} failed {often} in the {} s before, the last time {seconds} s before ({})",
            last.app,
            BEFORE_MS / 1_000,
            last.reason
        );
        Some((last.app.clone(), words))
    }
}

fn by(app: &str, sentence: String) -> Finding {
    Finding { culprit: Some(app.to_owned()), sentence }
}

fn nobody(sentence: &str) -> Finding {
    Finding { culprit: None, sentence: sentence.to_owned() }
}

fn of_app(app: &str, incident: &Incident) -> String {
    match (incident.what, incident.evidence.signal) {
        (IncidentKind::Demoted, _) => format!("{app} itself: the kernel process knows which app it calls"),
        (_, Some(KILLED)) => format!(
            "{app}'s process was killed with SIGKILL: by its memory limit, or by a user of this machine; no other app can do that"
        ),
        _ => format!("{app} itself: its process is its own, and no other app can reach it"),
    }
}
