//! The life of the kernel process: started, ready, running, ended, started again or not. Pure.
//!
//! In: events of the kernel process, and the time. Out: reactions, appended to the passed list, and the meaning of the
//! process's end. It decides nothing about apps.
//!
//! ```text
//!              Ready                    killed, or the node ends
//!   Starting ────────▶ Running ──────────────────────────────▶ Ending ──┐
//!      ▲  │               │ it ended                                    │ it ended
//!      │  └───────────────┴──────────▶ BackingOff ◀─────────────────────┤
//!      └──────────── delay over ───────────┘                            ▼
//!                                                                     Gone
//! ```

use crate::app::KernelStatus;
use crate::backoff::{Backoff, RestartDecision};
use crate::event::{ChildId, Reaction, Severity, StopSignal};
use crate::process_end::{PastEnd, ProcessEnd};
use crate::protocol::ToKernel;
use crate::timing::Timing;

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
        /// No app in it can have caused this.
        blameless: bool,
    },
    BackingOff {
        until_ms: u64,
    },
    /// Not begun yet, or over for good.
    Gone,
}

/// An end of the kernel process that the node did not ask for.
#[derive(Debug)]
pub(crate) struct KernelFailure {
    /// The reason as a phrase.
    pub(crate) why: String,
    /// The kernel process reported this reason itself.
    pub(crate) said: bool,
    /// The monitor ended it.
    pub(crate) killed_by_us: bool,
    /// The monitor ended it to restart the node.
    pub(crate) is_restart: bool,
    /// The trusted apps that it was calling.
    pub(crate) called: Vec<String>,
    /// The exit code and the sentence, if it would end in the same way at each start.
    pub(crate) cannot_run: Option<(u8, String)>,
}

impl KernelFailure {
    /// No trusted app can have caused this.
    pub(crate) fn is_blameless(&self) -> bool {
        self.is_restart || self.said
    }
}

/// The state of the kernel process.
#[derive(Debug)]
pub(crate) struct KernelLife {
    phase: KernelPhase,
    /// [`Timing::kernel_start_ms`].
    start_ms: u64,
    /// [`Timing::kernel_silence_ms`].
    silence_ms: u64,
    generation: u64,
    pid: Option<u32>,
    since_ms: u64,
    last_end: Option<PastEnd>,
    backoff: Backoff,
    /// A kernel process of this node was ready once, so its ports and its configuration are valid.
    ever_ready: bool,
    /// The kernel process's error before it exited.
    fatal: Option<(u8, String)>,
    /// The trusted apps that it was calling when it ended.
    called: Vec<String>,
}

impl KernelLife {
    pub(crate) fn new(timing: &Timing) -> KernelLife {
        KernelLife {
            phase: KernelPhase::Gone,
            start_ms: timing.kernel_start_ms,
            silence_ms: timing.kernel_silence_ms,
            generation: 0,
            pid: None,
            since_ms: 0,
            last_end: None,
            backoff: Backoff::new(timing.kernel.clone()),
            ever_ready: false,
            fatal: None,
            called: Vec::new(),
        }
    }

    /// `unix_ms_at_zero` is the wall clock when the monitor's clock was zero.
    pub(crate) fn status(&self, unix_ms_at_zero: u64) -> KernelStatus {
        KernelStatus {
            pid: self.pid,
            since_unix_ms: unix_ms_at_zero.saturating_add(self.since_ms),
            restarts: self.generation.saturating_sub(1),
            last_end: self.last_end.as_ref().map(|past| past.ending(unix_ms_at_zero)),
        }
    }

    /// The time of the next `tick` with work.
    pub(crate) fn next_wake_ms(&self) -> Option<u64> {
        match self.phase {
            KernelPhase::Starting { give_up_ms } => Some(give_up_ms),
            KernelPhase::Running { alive_ms } => Some(alive_ms.saturating_add(self.silence_ms)),
            KernelPhase::Ending { kill_at_ms, .. } => kill_at_ms,
            KernelPhase::BackingOff { until_ms } => Some(until_ms),
            KernelPhase::Gone => None,
        }
    }

    /// It was started at least once.
    pub(crate) fn has_begun(&self) -> bool {
        self.generation > 0
    }

    /// It is ready for attachments.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, KernelPhase::Running { .. })
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.phase, KernelPhase::Gone)
    }

    pub(crate) fn is_current(&self, generation: u64) -> bool {
        self.generation == generation
    }

    pub(crate) fn start(&mut self, now_ms: u64, out: &mut Vec<Reaction>) {
        self.generation += 1;
        self.since_ms = now_ms;
        self.backoff.started(now_ms);
        self.fatal = None;
        self.phase = KernelPhase::Starting { give_up_ms: now_ms.saturating_add(self.start_ms) };
        out.push(Reaction::StartKernel { generation: self.generation });
    }

    pub(crate) fn started(&mut self, pid: u32, out: &mut Vec<Reaction>) {
        self.pid = Some(pid);
        out.push(Reaction::Log { severity: Severity::Info, line: format!("the kernel process is {pid}") });
    }

    /// It listens for switches. Returns whether it was starting.
    pub(crate) fn ready(&mut self, now_ms: u64) -> bool {
        let was_starting = matches!(self.phase, KernelPhase::Starting { .. });
        if was_starting {
            self.ever_ready = true;
            self.phase = KernelPhase::Running { alive_ms: now_ms };
        }
        was_starting
    }

    /// Its workers make progress.
    pub(crate) fn alive(&mut self, now_ms: u64) {
        if let KernelPhase::Running { alive_ms } = &mut self.phase {
            *alive_ms = now_ms;
        }
    }

    /// It will exit, and reports the reason.
    pub(crate) fn fatal(&mut self, exit_code: u8, message: String) {
        self.fatal = Some((exit_code, message));
    }

    /// The trusted apps that it was calling when it ended.
    pub(crate) fn called(&mut self, apps: Vec<String>) {
        self.called = apps;
    }

    /// Its process ended. Returns what failed, unless the node is `closing`.
    pub(crate) fn ended(
        &mut self,
        how: &str,
        end: Option<ProcessEnd>,
        closing: bool,
        now_ms: u64,
    ) -> Option<KernelFailure> {
        self.pid = None;
        let fatal = self.fatal.take();
        if matches!(self.phase, KernelPhase::BackingOff { .. }) && !closing {
            return None;
        }
        let before = std::mem::replace(&mut self.phase, KernelPhase::Gone);
        if closing || matches!(before, KernelPhase::Gone) {
            return None;
        }
        let cannot_run = cannot_run(fatal.as_ref(), end).filter(|_| !self.ever_ready);
        let said = fatal.is_some();
        let (killed_by_us, is_restart, why) = match (before, fatal) {
            (KernelPhase::Ending { reason, blameless, .. }, _) => (true, blameless, reason),
            (_, Some((_, message))) => (false, false, message),
            _ => (false, false, how.to_owned()),
        };
        self.last_end = Some(PastEnd::new(&why, None, now_ms));
        let called = std::mem::take(&mut self.called);
        Some(KernelFailure { why, said, killed_by_us, is_restart, called, cannot_run })
    }

    /// Counts a failure.
    pub(crate) fn failed(&mut self, now_ms: u64) -> RestartDecision {
        self.backoff.failed(now_ms)
    }

    /// Its failures count no more.
    pub(crate) fn forget_failures(&mut self) {
        self.backoff.forget();
    }

    pub(crate) fn back_off(&mut self, until_ms: u64) {
        self.phase = KernelPhase::BackingOff { until_ms };
    }

    /// Kills it because of a fault.
    pub(crate) fn kill(&mut self, reason: &str, out: &mut Vec<Reaction>) {
        if self.is_up() {
            let line = format!("the kernel process is killed: {reason}");
            out.push(Reaction::Log { severity: Severity::Error, line });
            self.end_at_once(reason.to_owned(), false, out);
        }
    }

    /// Kills it to restart the node.
    pub(crate) fn kill_for_restart(&mut self, reason: &str, out: &mut Vec<Reaction>) {
        if self.is_up() {
            self.end_at_once(format!("the node restarts: {reason}"), true, out);
        }
    }

    fn is_up(&self) -> bool {
        matches!(self.phase, KernelPhase::Starting { .. } | KernelPhase::Running { .. })
    }

    fn end_at_once(&mut self, reason: String, blameless: bool, out: &mut Vec<Reaction>) {
        self.phase = KernelPhase::Ending { reason, kill_at_ms: None, blameless };
        self.send_kill(out);
    }

    fn send_kill(&self, out: &mut Vec<Reaction>) {
        let who = ChildId::Kernel { generation: self.generation };
        out.push(Reaction::End { who, how: StopSignal::Kill });
    }

    /// The node ends: it closes its sessions and exits until then.
    pub(crate) fn shut_down(&mut self, reason: &str, kill_at_ms: u64, out: &mut Vec<Reaction>) {
        if self.is_up() {
            out.push(Reaction::TellKernel(ToKernel::Shutdown));
            let reason = reason.to_owned();
            self.phase = KernelPhase::Ending { reason, kill_at_ms: Some(kill_at_ms), blameless: true };
        } else if matches!(self.phase, KernelPhase::BackingOff { .. }) {
            self.phase = KernelPhase::Gone;
        }
    }

    /// The node ends now: it has no more time.
    pub(crate) fn hurry(&mut self, out: &mut Vec<Reaction>) {
        if let KernelPhase::Ending { kill_at_ms, .. } = &mut self.phase {
            *kill_at_ms = None;
            self.send_kill(out);
        }
    }

    pub(crate) fn tick(&mut self, now_ms: u64, out: &mut Vec<Reaction>) {
        match &mut self.phase {
            KernelPhase::Starting { give_up_ms } if *give_up_ms <= now_ms => {
                let reason = format!("it was not ready within {} ms", self.start_ms);
                self.kill(&reason, out);
            }
            KernelPhase::Running { alive_ms } if now_ms.saturating_sub(*alive_ms) >= self.silence_ms => {
                let reason = format!("a worker made no progress for {} ms", self.silence_ms);
                self.kill(&reason, out);
            }
            KernelPhase::Ending { kill_at_ms, .. } if kill_at_ms.is_some_and(|at_ms| at_ms <= now_ms) => {
                *kill_at_ms = None;
                let line = "the kernel process did not end after SIGTERM; it is killed".to_owned();
                out.push(Reaction::Log { severity: Severity::Warn, line });
                self.send_kill(out);
            }
            KernelPhase::BackingOff { until_ms } if *until_ms <= now_ms => self.start(now_ms, out),
            _ => {}
        }
    }

    /// The monitor itself did not run for `pause_ms`, so silence proves nothing.
    pub(crate) fn forgive_pause(&mut self, pause_ms: u64, now_ms: u64) {
        match &mut self.phase {
            KernelPhase::Running { alive_ms } => *alive_ms = now_ms,
            KernelPhase::Starting { give_up_ms } => *give_up_ms = give_up_ms.saturating_add(pause_ms),
            _ => {}
        }
    }
}

/// The exit code and the sentence, if every start of the kernel process would fail.
fn cannot_run(fatal: Option<&(u8, String)>, end: Option<ProcessEnd>) -> Option<(u8, String)> {
    match (fatal, end) {
        // A failure must not end the node with a code that means success.
        (Some((code, message)), _) => Some(((*code).max(1), message.clone())),
        (None, Some(ProcessEnd::Code(2))) => {
            let message = "the kernel process refused to start (exit code 2); see its output";
            Some((2, message.to_owned()))
        }
        _ => None,
    }
}
