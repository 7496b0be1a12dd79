//! What a flow entry says is done with the packets that it matches.
//!
//! Never says in which order a switch carries them out; that is the specification's and the emulator's.

use crate::action::Action;

/// One instruction (OpenFlow 1.3.5, 7.2.4). A rule of 1.0 is one `ApplyActions`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// Go on in a later table.
    GotoTable(u8),
    /// Change the bits of the metadata that the mask names.
    WriteMetadata {
        /// The new bits.
        metadata: u64,
        /// Which bits.
        mask: u64,
    },
    /// Add to the action set.
    WriteActions(Vec<Action>),
    /// Do now, in order.
    ApplyActions(Vec<Action>),
    /// Empty the action set.
    ClearActions,
    /// Let a meter see it first.
    Meter(u32),
    /// An experimenter's instruction, kept whole.
    Experimenter {
        /// Whose.
        experimenter: u32,
        /// What follows that number.
        body: Vec<u8>,
    },
}
