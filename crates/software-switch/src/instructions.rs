//! The instructions of one rule, in the order in which they are carried out.
//!
//! In: checked instructions. Out: the same, and how they change what a later look-up sees. It never carries one out.

use flow::{Action, Field, Instruction};
use std::ops::Deref;
use std::sync::Arc;

/// How instructions change the fields that later tables see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FieldChange {
    /// Not at all.
    Unchanged,
    /// The fields change, and the new values follow from the old ones.
    Derived,
    /// New fields are read from bytes that were no fields before: behind a popped tag, or in a header that now has
    /// another type.
    Revealed,
}

/// The instructions of a rule. All rules of one flow mod share them.
#[derive(Clone, Debug)]
pub(crate) struct Instructions {
    in_order: Arc<[Instruction]>,
    field_change: FieldChange,
}

impl Instructions {
    /// Takes instructions that are already in order.
    pub(crate) fn new(in_order: Vec<Instruction>) -> Self {
        let field_change = in_order.iter().map(of_instruction).max().unwrap_or(FieldChange::Unchanged);
        Instructions { in_order: in_order.into(), field_change }
    }

    /// How they change the fields that later tables see.
    pub(crate) fn field_change(&self) -> FieldChange {
        self.field_change
    }
}

impl Deref for Instructions {
    type Target = [Instruction];

    fn deref(&self) -> &[Instruction] {
        &self.in_order
    }
}

fn of_instruction(instruction: &Instruction) -> FieldChange {
    match instruction {
        Instruction::ApplyActions(actions) => {
            actions.iter().map(of_action).max().unwrap_or(FieldChange::Unchanged)
        }
        Instruction::WriteMetadata { .. } => FieldChange::Derived,
        // A meter may change the DSCP. That depends on the time and not on a field.
        Instruction::Meter(_) => FieldChange::Revealed,
        _ => FieldChange::Unchanged,
    }
}

fn of_action(action: &Action) -> FieldChange {
    use Action::*;
    match action {
        PopVlan | StripVlan | PopMpls(_) | PopPbb => FieldChange::Revealed,
        SetField {
            field: Field::EthType | Field::IpProto | Field::Icmpv6Type | Field::Icmpv6Code, ..
        } => FieldChange::Revealed,
        // No field holds a time-to-live. A packet that leaves the pipeline is a copy.
        Output { .. } | Enqueue { .. } | Group(_) | SetQueue(_) => FieldChange::Unchanged,
        CopyTtlOut | CopyTtlIn | SetMplsTtl(_) | DecMplsTtl | SetNwTtl(_) | DecNwTtl => {
            FieldChange::Unchanged
        }
        _ => FieldChange::Derived,
    }
}
