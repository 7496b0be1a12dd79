//! The instructions of one rule, in the order in which they are carried out.
//!
//! In: instructions that have been checked. Out: the same, and what a look-up behind them has to know.
//! Never carries one out.

use flow::{Action, Field, Instruction};
use std::ops::Deref;
use std::sync::Arc;

/// What instructions do to the fields that later tables see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FieldChange {
    /// Nothing.
    Unchanged,
    /// They are others then, but follow from what they were.
    Derived,
    /// They are read from bytes that were no fields before: what a popped tag covered, what another type makes of a header.
    Revealed,
}

/// The instructions of a rule. Rules that were made of one flow mod share them.
#[derive(Clone, Debug)]
pub(crate) struct Instructions {
    in_order: Arc<[Instruction]>,
    field_change: FieldChange,
}

impl Instructions {
    /// Instructions that already stand in their order.
    pub(crate) fn new(in_order: Vec<Instruction>) -> Self {
        let field_change = in_order.iter().map(of_instruction).max().unwrap_or(FieldChange::Unchanged);
        Instructions { in_order: in_order.into(), field_change }
    }

    /// What they do to the fields that later tables see.
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
        // It may change the DSCP, as the time and no field decides.
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
        // No field holds a time-to-live, and what goes out of the pipeline is a copy.
        Output { .. } | Enqueue { .. } | Group(_) | SetQueue(_) => FieldChange::Unchanged,
        CopyTtlOut | CopyTtlIn | SetMplsTtl(_) | DecMplsTtl | SetNwTtl(_) | DecNwTtl => {
            FieldChange::Unchanged
        }
        _ => FieldChange::Derived,
    }
}
