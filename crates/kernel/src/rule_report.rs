//! What a switch has said of the rules that it had when it came up.
//!
//! Data alone: `sessions` asks, and reads the answers.

/// What a switch has said of the rules that it had when it came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleReport {
    /// Nothing yet, or not all.
    Waiting,
    /// It has answered: so many are an app's.
    Answered(u32),
    /// It did not answer, or not to the end. So many were an app's until then.
    Unanswered(u32),
}

/// The question to one switch, from its coming up on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inquiry {
    pub stage: Stage,
    /// Rules of its answer that are an app's.
    pub rules: u32,
    /// Whether it is to be asked once more when this answer is whole.
    pub is_due_again: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is to be asked at this time.
    Due(u64),
    /// It has been asked.
    Open,
    /// A part of its answer is there.
    Begun,
    /// It has passed the question over, and has until this time.
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
