//! What the monitor remembers of the last minutes, and what it makes of it when something has gone wrong. Pure.
//!
//! ```text
//!   lines for the log, ends of apps ──> Witness ──> facts before an incident; who did it, and why one thinks so
//! ```
//!
//! It remembers at most [`FACTS_MAX`] lines and [`TROUBLES_MAX`] ends, the newest, and never decides what is done.

use std::collections::VecDeque;

use crate::app::legible;
use crate::incident::{FACT_BYTES_MAX, FACTS_MAX, Fact, Finding, Incident, What};
use crate::supervisor::{Command, ProcessEnd};

/// Most ends of apps that are remembered; enough for several apps that crash in turn.
const TROUBLES_MAX: usize = 64;

/// So long before the node fails an app's own trouble counts against it, in milliseconds.
const BEFORE_MS: u64 = 10_000;

/// Most ends of the kernel process of which the culprits are remembered: as many as lead to safe mode, and some.
const KERNEL_ENDS_MAX: usize = 16;

/// SIGKILL.
const KILLED: i32 = 9;

/// An end or a fault of an app.
#[derive(Debug, Clone)]
struct Trouble {
    at_ms: u64,
    app: String,
    reason: String,
}

/// How the kernel process ended.
#[derive(Debug)]
pub(crate) struct KernelEnd<'a> {
    pub(crate) end: Option<ProcessEnd>,
    /// It said itself why.
    pub(crate) said: bool,
    /// The monitor killed it, since it hung or spoke garbage.
    pub(crate) killed_by_us: bool,
    /// The trusted apps that it was calling.
    pub(crate) called: &'a [String],
    /// All that it ran trusted.
    pub(crate) trusted: &'a [String],
}

/// What is remembered.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    facts: VecDeque<Fact>,
    troubles: VecDeque<Trouble>,
    kernel_ends: VecDeque<Option<String>>,
}

impl Witness {
    /// Goes through what was decided: remembers the lines, and gives each incident the facts from before it.
    pub(crate) fn attend(&mut self, commands: &mut [Command], now_ms: u64) {
        for command in commands {
            match command {
                Command::Log { line, .. } => self.remember(line, now_ms),
                Command::Incident(incident) => {
                    self.blame(incident);
                    incident.evidence.facts = self.facts.iter().cloned().collect();
                }
                _ => {}
            }
        }
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
                incident.finding.sentence = of_app(&app, incident);
            }
            if self.troubles.len() >= TROUBLES_MAX {
                self.troubles.pop_front();
            }
            let (at_ms, reason) = (incident.unix_ms, incident.reason.clone());
            self.troubles.push_back(Trouble { at_ms, app, reason });
        }
    }

    /// Who ended the kernel process. It is remembered.
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
            _ if kernel.said => {
                nobody("the kernel process said itself why it ended, so that no app is blamed")
            }
            [app] if kernel.killed_by_us => by(
                app,
                format!("the kernel process was in a call of the trusted app {app} when it was killed"),
            ),
            [app] => by(app, format!("the kernel process ended while it was calling the trusted app {app}")),
            [_, _, ..] => nobody(&format!(
                "the workers of the kernel process were calling several trusted apps ({names}); it was one of them"
            )),
            [] => self.of_kernel_alone(kernel, now_ms),
        }
    }

    fn of_kernel_alone(&self, kernel: &KernelEnd<'_>, now_ms: u64) -> Finding {
        if let Some((app, words)) = self.suspect(now_ms, |_| true) {
            return by(&app, format!("no trusted app was being called; {words}, which is all that is known"));
        }
        match (kernel.trusted, kernel.end) {
            (_, Some(ProcessEnd::Signal { number: KILLED, .. })) if !kernel.killed_by_us => nobody(
                "no app was being called, and SIGKILL comes from outside of the node: from somebody on this machine, or from \
                 Linux when memory ran out",
            ),
            ([], _) => {
                nobody("no app runs inside the kernel process, so that this is a fault of Burnet's own")
            }
            (trusted, _) => nobody(&format!(
                "no trusted app was being called; one of them ({}) may have done harm before, or it is a fault of Burnet's own",
                trusted.join(", ")
            )),
        }
    }

    /// Who made several services fail; `failed` are the services.
    pub(crate) fn of_services(&self, failed: &[String], now_ms: u64) -> Finding {
        match self.suspect(now_ms, |app| !failed.iter().any(|service| service == app)) {
            Some((app, words)) => by(&app, format!("{words}, just before the services failed")),
            None => nobody("no app was in trouble just before the services failed"),
        }
    }

    /// Who brought the node into safe mode.
    pub(crate) fn of_safe_mode(&self, now_ms: u64) -> Finding {
        let named: Vec<&String> = self.kernel_ends.iter().flatten().collect();
        let most = named.iter().max_by_key(|app| named.iter().filter(|other| other == app).count());
        let Some(app) = most else {
            return match self.suspect(now_ms, |_| true) {
                Some((app, words)) => by(&app, format!("{words} before")),
                None => nobody("nobody can be named; the incidents before this one tell more"),
            };
        };
        let count = named.iter().filter(|other| other == &app).count();
        let all = self.kernel_ends.len();
        by(app, format!("{count} of the last {all} ends of the kernel process were in {app}'s account"))
    }

    /// The node is as new.
    pub(crate) fn forget_kernel_ends(&mut self) {
        self.kernel_ends.clear();
    }

    /// The one app that was in trouble shortly before, or far more than all the others.
    fn suspect(&self, now_ms: u64, counts: impl Fn(&str) -> bool) -> Option<(String, String)> {
        let recent =
            |trouble: &&Trouble| now_ms.saturating_sub(trouble.at_ms) <= BEFORE_MS && counts(&trouble.app);
        let recent: Vec<&Trouble> = self.troubles.iter().filter(recent).collect();
        let times = |app: &str| recent.iter().filter(|trouble| trouble.app == app).count();
        let last = recent.iter().max_by_key(|trouble| (times(&trouble.app), trouble.at_ms))?;
        let mine = times(&last.app);
        // One of several that are all in trouble would be a guess.
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
        (What::ZoneFault, _) => format!("{app} itself: the kernel checked what it wrote into its port"),
        (What::Demoted, _) => format!("{app} itself: the kernel process knows which app it calls"),
        (_, Some(KILLED)) => format!(
            "{app}'s process was killed with SIGKILL: by its memory limit, or by somebody on this machine; no other app can reach it"
        ),
        _ => format!("{app} itself: its process is its own, and no other app can reach it"),
    }
}
