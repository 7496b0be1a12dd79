//! The message of a prepared rule. The other rules of its shape are copies of it with their own values.
//!
//! In: a prepared rule and the message that was written for the first one. Out: the message of another rule of that shape. It knows no
//! offset of the message: [`openflow::prepared`] does.

use abi::prepared::PreparedRule;
use openflow::prepared::{RuleTemplate, RuleWords};

/// The longest message of a prepared rule.
pub(super) const RULE_MAX_BYTES: usize = 104;

/// The message of the first rule of a shape.
#[derive(Debug)]
pub(super) struct Template {
    shape: u64,
    rule: RuleTemplate,
}

impl Template {
    /// `None` if the message cannot be copied.
    pub(super) fn of(rule: &PreparedRule<'_>, message: &[u8]) -> Option<Self> {
        let xid =
            message.get(4..8).and_then(|xid| xid.first_chunk()).map_or(0, |xid| u32::from_be_bytes(*xid));
        Some(Template { shape: rule.shape, rule: RuleTemplate::of(message, &words_of(rule, xid))? })
    }

    #[inline(always)]
    pub(super) fn is_of(&self, rule: &PreparedRule<'_>) -> bool {
        self.shape == rule.shape
    }

    /// Appends the message of a rule. `false` if its values do not fit, and then nothing was appended.
    #[inline(always)]
    pub(super) fn write(&self, rule: &PreparedRule<'_>, xid: u32, out: &mut Vec<u8>) -> bool {
        self.rule.write(&words_of(rule, xid), out)
    }
}

#[inline(always)]
fn words_of(rule: &PreparedRule<'_>, xid: u32) -> RuleWords {
    RuleWords { xid, buffer_id: rule.of_use.buffer_id, values: rule.of_use.values }
}
