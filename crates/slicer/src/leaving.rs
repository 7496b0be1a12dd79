//! Rules that the tenant deleted, or that expired, until the switch has reported the counters of all their pieces.
//!
//! In: rules, and counters of pieces. Out: rules whose counters are complete. It tells nobody.

use crate::rule_table::Rule;
use std::collections::BTreeMap;

/// The most rules that leave at once: a slice reads on while as many strict deletes are on their way. Beyond it the oldest is told with the
/// counters that are known.
const LEAVING_MAX: usize = 4_096;

/// A rule on its way out.
#[derive(Clone, Debug)]
pub(crate) struct Leaver {
    /// The rule; `gone` has the counters so far.
    pub(crate) rule: Rule,
    /// Why it leaves (`ofp_flow_removed_reason`).
    pub(crate) reason: u8,
    /// Pieces of which the switch has not reported the end.
    pub(crate) pieces_left: usize,
    /// The lifetime: seconds and nanoseconds, of the piece that lived longest.
    pub(crate) lived: (u32, u32),
}

/// The rules on their way out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaving {
    rules: BTreeMap<u64, Leaver>,
}

impl Leaving {
    /// One more rule leaves. Returns the one that has to be told early to make room.
    pub(crate) fn add(&mut self, leaver: Leaver) -> Option<Leaver> {
        self.rules.insert(leaver.rule.number, leaver);
        if self.rules.len() <= LEAVING_MAX { None } else { self.rules.pop_first().map(|(_, oldest)| oldest) }
    }

    /// A piece of a leaving rule is gone. Returns the rule after its last piece; `Err` if this rule is not leaving.
    pub(crate) fn on_piece(
        &mut self,
        number: u64,
        counted: (u64, u64),
        lived: (u32, u32),
    ) -> Result<Option<Leaver>, ()> {
        let leaver = self.rules.get_mut(&number).ok_or(())?;
        leaver.rule.gone.0 = leaver.rule.gone.0.saturating_add(counted.0);
        leaver.rule.gone.1 = leaver.rule.gone.1.saturating_add(counted.1);
        leaver.lived = leaver.lived.max(lived);
        leaver.pieces_left = leaver.pieces_left.saturating_sub(1);
        Ok(if leaver.pieces_left == 0 { self.rules.remove(&number) } else { None })
    }

    /// Forgets everything: the session of the physical switch ended.
    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }
}
