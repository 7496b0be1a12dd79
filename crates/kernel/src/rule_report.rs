//! The state of a switch's report of the rules that it had when it connected.
//!
//! Only data: `sessions` asks the switch and reads the answers.

/// The state of a switch's report of the rules that it had when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleReport {
    /// No complete answer yet.
    Waiting,
    /// The switch has answered: this many rules belong to apps.
    Answered(u32),
    /// The switch did not answer completely. Until then, it reported this many rules of apps.
    Unanswered(u32),
}

/// The question to one switch, starting when it connects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inquiry {
    pub stage: Stage,
    /// Rules of apps in its answer.
    pub rules: u32,
    /// When to ask the switch once more after this answer.
    pub due_again_ms: Option<u64>,
    /// When it was last asked.
    pub asked_ms: u64,
    /// Whether it has answered completely in this session.
    pub has_answered: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The kernel asks at this time.
    Due(u64),
    /// The kernel has asked.
    Open,
    /// A part of the answer has arrived.
    Begun,
    /// The switch has ignored the question. The kernel waits until this time.
    Passed(u64),
    Answered,
    #[default]
    Unanswered,
}

impl Inquiry {
    pub fn report(self) -> RuleReport {
        match self.stage {
            Stage::Due(_) | Stage::Open | Stage::Begun | Stage::Passed(_) => RuleReport::Waiting,
            Stage::Answered => RuleReport::Answered(self.rules),
            Stage::Unanswered => RuleReport::Unanswered(self.rules),
        }
    }
}
