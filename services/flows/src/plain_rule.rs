//! The rule that tests put into sets: it matches every packet, and drops it.
//!
//! In: a switch and a priority. Out: the rule. Only tests use it.

use flow::DatapathId;
use flows_contract::Rule;

/// A rule of table 0 and stage 0, without a match, instructions or time-outs.
pub fn plain_rule(switch: u64, priority: u16) -> Rule<'static> {
    Rule {
        switch: DatapathId(switch),
        table_id: 0,
        stage: 0,
        priority,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        matching: &[],
        instructions: &[],
    }
}
