//! What a barrier reply of the switch means.

use crate::quantiles::Quantiles;

/// What a barrier reply means.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BarrierKind {
    /// All earlier rules are in the data plane.
    #[default]
    Honest,
    /// The CPU has served all earlier messages. Each rule is in the data plane later, by a sample of this table for each rule.
    Early(Quantiles),
    /// Nothing: the switch answers when the barrier's turn comes by its rank. Rules are in the data plane later by a sample, too.
    NotOrdering(Quantiles),
}

/// Barriers.
#[derive(Clone, Debug, PartialEq)]
pub struct Barrier {
    /// What a reply means.
    pub kind: BarrierKind,
    /// Whether rules come into the data plane in the order of their flow mods, though each has its own delay.
    pub rules_in_order: bool,
}

impl Default for Barrier {
    /// As the specification demands.
    fn default() -> Self {
        Barrier { kind: BarrierKind::Honest, rules_in_order: true }
    }
}

impl Barrier {
    /// How much later than the CPU and the hardware say a rule is in the data plane. None: not at all.
    pub fn late_us(&self) -> Option<&Quantiles> {
        match &self.kind {
            BarrierKind::Honest => None,
            BarrierKind::Early(late) | BarrierKind::NotOrdering(late) => Some(late),
        }
    }
}
