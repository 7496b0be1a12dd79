//! The polls of a session: when the switch is asked for counters, and which rules wait for the answer.
//!
//! In: the time, and rules that may have been idle for long. Out: when to ask, and the rules that an answer decides. It sends nothing.

/// How often the switch is asked while rules have idle time-outs. Open vSwitch itself reads its datapath's counters as often.
const PERIOD_NS: u64 = 500_000_000;

/// The polls of a session. There is one request at a time.
#[derive(Debug, Default)]
pub(super) struct Polls {
    due_ns: Option<u64>,
    is_asking: bool,
    /// Rules that may have ended, and the last use that the model knows. Those of the request on its way, and those of the next one.
    asked_for: Vec<(u64, u64)>,
    waiting: Vec<(u64, u64)>,
}

impl Polls {
    /// When to ask next.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.due_ns.filter(|_| !self.is_asking)
    }

    /// The switch is asked from now on.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.due_ns.get_or_insert(now_ns + PERIOD_NS);
    }

    /// This rule ends unless packets have met it since then. Returns whether the switch can be asked at once.
    pub(super) fn ask_for(&mut self, rule: u64, unused_since_ns: u64) -> bool {
        self.waiting.push((rule, unused_since_ns));
        !self.is_asking
    }

    /// The switch is asked.
    pub(super) fn on_asked(&mut self) {
        self.is_asking = true;
        self.asked_for.append(&mut self.waiting);
    }

    /// The whole answer has come. Returns the rules that it decides.
    pub(super) fn on_answered(&mut self, goes_on: bool, now_ns: u64) -> Vec<(u64, u64)> {
        self.is_asking = false;
        self.due_ns = goes_on.then_some(now_ns + PERIOD_NS);
        std::mem::take(&mut self.asked_for)
    }

    /// The switch has refused to answer. The same rules wait for the next answer.
    pub(super) fn on_refused(&mut self, now_ns: u64) {
        self.is_asking = false;
        self.due_ns = Some(now_ns + PERIOD_NS);
        self.asked_for.append(&mut self.waiting);
        self.waiting = std::mem::take(&mut self.asked_for);
    }

    /// Whether rules wait for the next answer.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}
