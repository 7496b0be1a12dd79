//! The instructions of a flow entry: what happens to the packets that it matches.
//!
//! Never defines the order of execution. The specification does, and the emulator implements it.

use crate::action::Action;

/// One instruction (OpenFlow 1.3.5, 7.2.4). A rule of 1.0 is one `ApplyActions`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// Continue in a later table.
    GotoTable(u8),
    /// Change the bits of the metadata that the mask names.
    WriteMetadata {
        /// The new bits.
        metadata: u64,
        /// The bits to change.
        mask: u64,
    },
    /// Add to the action set.
    WriteActions(Vec<Action>),
    /// Execute now, in order.
    ApplyActions(Vec<Action>),
    /// Empty the action set.
    ClearActions,
    /// Apply a meter first.
    Meter(u32),
    /// An experimenter instruction, kept unchanged.
    Experimenter {
        /// The experimenter's number.
        experimenter: u32,
        /// The bytes after that number.
        body: Vec<u8>,
    },
}
