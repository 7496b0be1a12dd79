//! Reads and writes instructions as bytes.
//!
//! Never checks whether a table or a meter exists.

use super::action_bytes::{RawActions, actions_raw, read_actions};
use super::action_writer::{ActionWriter, write_actions};
use super::{InstructionFault, Unwritable, bad, u16_at, u32_at, u64_at};
use crate::action::Action;
use crate::error::BadInput;
use crate::instruction::Instruction;

/// `OFPIT_*` (1.3.5, 7.2.4).
pub(super) mod kind {
    pub const GOTO_TABLE: u16 = 1;
    pub const WRITE_METADATA: u16 = 2;
    pub const WRITE_ACTIONS: u16 = 3;
    pub const APPLY_ACTIONS: u16 = 4;
    pub const CLEAR_ACTIONS: u16 = 5;
    pub const METER: u16 = 6;
    pub const EXPERIMENTER: u16 = 0xffff;
}

/// One instruction in place. Its length is a multiple of eight and within the input. Nothing else has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawInstruction<'a> {
    /// `ofp_instruction_type`.
    pub kind: u16,
    /// The whole instruction, its header included; at least eight bytes.
    pub bytes: &'a [u8],
    /// Bytes from the start of the list to the instruction.
    pub offset: usize,
}

/// Iterates over the instructions of a list. Ends after the first that exceeds the input.
#[derive(Clone, Debug)]
pub struct RawInstructions<'a> {
    rest: &'a [u8],
    offset: usize,
}

/// Walks a list of instructions in place.
///
/// ```
/// use flow::canonical::instructions_raw;
/// let go_to_7 = [0, 1, 0, 8, 7, 0, 0, 0];
/// assert_eq!(instructions_raw(&go_to_7).count(), 1);
/// ```
#[inline]
pub fn instructions_raw(bytes: &[u8]) -> RawInstructions<'_> {
    RawInstructions { rest: bytes, offset: 0 }
}

/// Reads a list of instructions.
///
/// # Errors
/// OFPET_BAD_INSTRUCTION with one of these codes. OFPBIC_BAD_LEN: the length exceeds the input, is not that of the
/// type, or is not a multiple of eight. OFPBIC_UNKNOWN_INST: 1.3 does not define the type. OFPBIC_UNSUP_INST: a type
/// appears twice, which only experimenters' instructions may; 1.3 has no code for that. For the actions inside, the
/// errors of [`read_actions`].
///
/// ```
/// use flow::{Instruction, canonical::read_instructions};
/// assert_eq!(read_instructions(&[0, 1, 0, 8, 7, 0, 0, 0]), Ok(vec![Instruction::GotoTable(7)]));
/// ```
pub fn read_instructions(bytes: &[u8]) -> Result<Vec<Instruction>, BadInput> {
    let mut instructions = Vec::new();
    let mut seen = 0u8;
    for raw in instructions_raw(bytes) {
        let raw = raw?;
        let instruction = raw.read()?;
        // Only types 1 to 6 must be unique. A list may have several experimenter instructions.
        let bit = 1u8.checked_shl(u32::from(raw.kind)).unwrap_or(0);
        if seen & bit != 0 {
            let message = "an instruction of this type appears twice";
            return Err(bad(InstructionFault::UnsupInst, raw.offset, "type", message));
        }
        seen |= bit;
        instructions.push(instruction);
    }
    Ok(instructions)
}

impl<'a> Iterator for RawInstructions<'a> {
    type Item = Result<RawInstruction<'a>, BadInput>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let length = usize::from(u16_at(self.rest, 2));
        if self.rest.len() < 8 || length < 8 || length % 8 != 0 || length > self.rest.len() {
            let left = std::mem::take(&mut self.rest).len();
            let message = format!(
                "length {length} must be a multiple of 8, at least 8, and at most the {left} bytes that are left"
            );
            return Some(Err(bad(InstructionFault::BadLen, self.offset + 2, "len", message)));
        }
        let (bytes, rest) = self.rest.split_at(length);
        let instruction = RawInstruction { kind: u16_at(bytes, 0), bytes, offset: self.offset };
        self.rest = rest;
        self.offset += length;
        Some(Ok(instruction))
    }
}

impl<'a> RawInstruction<'a> {
    /// The actions inside, if this is write-actions or apply-actions. Their offsets count from the first action, which is
    /// eight bytes behind the instruction's own.
    #[inline]
    pub fn actions(&self) -> Option<RawActions<'a>> {
        self.action_bytes().map(actions_raw)
    }

    /// The same as canonical bytes.
    #[inline]
    pub fn action_bytes(&self) -> Option<&'a [u8]> {
        let has_actions = matches!(self.kind, kind::WRITE_ACTIONS | kind::APPLY_ACTIONS);
        has_actions.then(|| self.bytes.get(8..).unwrap_or_default())
    }

    /// Whether its actions are executed at once (`OFPIT_APPLY_ACTIONS`).
    #[inline]
    pub const fn is_apply(&self) -> bool {
        self.kind == kind::APPLY_ACTIONS
    }

    /// The table in which the packet goes on, if this is goto-table.
    #[inline]
    pub fn goto_table(&self) -> Option<u8> {
        (self.kind == kind::GOTO_TABLE).then(|| self.bytes.get(4).copied().unwrap_or(0))
    }

    /// The meter, if this is one.
    #[inline]
    pub fn meter(&self) -> Option<u32> {
        (self.kind == kind::METER).then(|| u32_at(self.bytes, 4))
    }

    /// Metadata and mask, if this is write-metadata.
    #[inline]
    pub fn write_metadata(&self) -> Option<(u64, u64)> {
        (self.kind == kind::WRITE_METADATA).then(|| (u64_at(self.bytes, 8), u64_at(self.bytes, 16)))
    }

    /// Whether it is an experimenter instruction, whose meaning is unknown.
    #[inline]
    pub const fn is_experimenter(&self) -> bool {
        self.kind == kind::EXPERIMENTER
    }

    /// The typed instruction.
    ///
    /// # Errors
    /// As [`read_instructions`].
    pub fn read(&self) -> Result<Instruction, BadInput> {
        let short = u32_at(self.bytes, 4);
        let whole = self.bytes.len();
        let (length, instruction) = match self.kind {
            kind::GOTO_TABLE => (8, Instruction::GotoTable((short >> 24) as u8)),
            kind::WRITE_METADATA => (
                24,
                Instruction::WriteMetadata { metadata: u64_at(self.bytes, 8), mask: u64_at(self.bytes, 16) },
            ),
            kind::WRITE_ACTIONS => (whole, Instruction::WriteActions(self.read_actions()?)),
            kind::APPLY_ACTIONS => (whole, Instruction::ApplyActions(self.read_actions()?)),
            kind::CLEAR_ACTIONS => (8, Instruction::ClearActions),
            kind::METER => (8, Instruction::Meter(short)),
            kind::EXPERIMENTER => {
                let body = self.bytes.get(8..).unwrap_or_default().to_vec();
                (whole, Instruction::Experimenter { experimenter: short, body })
            }
            unknown => {
                let message = format!("OpenFlow 1.3 has no instruction of type {unknown}");
                return Err(bad(InstructionFault::UnknownInst, self.offset, "type", message));
            }
        };
        if length != whole {
            let message = format!("this instruction has {length} bytes, not {whole}");
            return Err(bad(InstructionFault::BadLen, self.offset + 2, "len", message));
        }
        Ok(instruction)
    }

    fn read_actions(&self) -> Result<Vec<Action>, BadInput> {
        read_actions(self.bytes.get(8..).unwrap_or_default()).map_err(|fault| fault.shifted(self.offset + 8))
    }
}

/// Appends a list of instructions, in its order.
///
/// # Errors
/// As [`write_actions`], and for a list of actions or an experimenter's body that does not fit an instruction's 16-bit length.
/// Nothing is appended then.
///
/// ```
/// use flow::{Action, Instruction, PortNo, canonical::{read_instructions, write_instructions}};
/// let flood = vec![Instruction::ApplyActions(vec![Action::output(PortNo::FLOOD)])];
/// let mut bytes = Vec::new();
/// write_instructions(&flood, &mut bytes).unwrap();
/// assert_eq!(read_instructions(&bytes), Ok(flood));
/// ```
pub fn write_instructions(instructions: &[Instruction], out: &mut Vec<u8>) -> Result<(), Unwritable> {
    let start = out.len();
    let mut writer = InstructionWriter::new(out);
    let written = instructions.iter().try_for_each(|instruction| writer.instruction(instruction).map(|_| ()));
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Appends instructions one by one, with no allocation but the buffer's own growth.
///
/// ```
/// use flow::{PortNo, canonical::{InstructionWriter, read_instructions}};
/// let mut bytes = Vec::new();
/// InstructionWriter::new(&mut bytes)
///     .apply_actions(|actions| { actions.output(PortNo(2), 0); })
///     .goto_table(3);
/// assert_eq!(read_instructions(&bytes).unwrap().len(), 2);
/// ```
#[derive(Debug)]
pub struct InstructionWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> InstructionWriter<'a> {
    /// A writer that appends to `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        InstructionWriter { out }
    }

    /// Appends goto-table.
    pub fn goto_table(&mut self, table_id: u8) -> &mut Self {
        self.short(kind::GOTO_TABLE, u32::from(table_id) << 24)
    }

    /// Appends a meter.
    pub fn meter(&mut self, meter_id: u32) -> &mut Self {
        self.short(kind::METER, meter_id)
    }

    /// Appends clear-actions.
    pub fn clear_actions(&mut self) -> &mut Self {
        self.short(kind::CLEAR_ACTIONS, 0)
    }

    /// Appends write-metadata.
    pub fn write_metadata(&mut self, metadata: u64, mask: u64) -> &mut Self {
        self.header(kind::WRITE_METADATA, 24, 0);
        self.out.extend_from_slice(&metadata.to_be_bytes());
        self.out.extend_from_slice(&mask.to_be_bytes());
        self
    }

    /// Appends apply-actions with what `write` appends. More than 65527 bytes of actions do not fit: none of them is
    /// written then.
    #[inline]
    pub fn apply_actions(&mut self, write: impl FnOnce(&mut ActionWriter<'_>)) -> &mut Self {
        self.actions(kind::APPLY_ACTIONS, write)
    }

    /// Appends write-actions, under the same conditions.
    pub fn write_actions(&mut self, write: impl FnOnce(&mut ActionWriter<'_>)) -> &mut Self {
        self.actions(kind::WRITE_ACTIONS, write)
    }

    /// Appends any instruction.
    ///
    /// # Errors
    /// As [`write_instructions`]. Nothing is appended then.
    pub fn instruction(&mut self, instruction: &Instruction) -> Result<&mut Self, Unwritable> {
        Ok(match instruction {
            Instruction::GotoTable(table_id) => self.goto_table(*table_id),
            Instruction::WriteMetadata { metadata, mask } => self.write_metadata(*metadata, *mask),
            Instruction::WriteActions(list) => return self.typed_actions(kind::WRITE_ACTIONS, list),
            Instruction::ApplyActions(list) => return self.typed_actions(kind::APPLY_ACTIONS, list),
            Instruction::ClearActions => self.clear_actions(),
            Instruction::Meter(meter_id) => self.meter(*meter_id),
            Instruction::Experimenter { experimenter, body } => {
                return self.experimenter(*experimenter, body);
            }
        })
    }

    #[inline]
    fn header(&mut self, kind: u16, length: u16, short: u32) {
        let ([k0, k1], [l0, l1]) = (kind.to_be_bytes(), length.to_be_bytes());
        let [s0, s1, s2, s3] = short.to_be_bytes();
        self.out.extend_from_slice(&[k0, k1, l0, l1, s0, s1, s2, s3]);
    }

    #[inline]
    fn short(&mut self, kind: u16, body: u32) -> &mut Self {
        self.header(kind, 8, body);
        self
    }

    #[inline]
    fn actions(&mut self, kind: u16, write: impl FnOnce(&mut ActionWriter<'_>)) -> &mut Self {
        let start = self.out.len();
        self.header(kind, 8, 0);
        write(&mut ActionWriter::new(self.out));
        if !self.end(start) {
            self.out.truncate(start + 8);
        }
        self
    }

    fn typed_actions(&mut self, kind: u16, list: &[Action]) -> Result<&mut Self, Unwritable> {
        let start = self.out.len();
        self.header(kind, 8, 0);
        let written = write_actions(list, self.out);
        if let Err(unwritable) = written {
            self.out.truncate(start);
            return Err(unwritable);
        }
        if !self.end(start) {
            self.out.truncate(start);
            return Err(Unwritable::new("actions", "they are longer than an instruction's 65535 bytes"));
        }
        Ok(self)
    }

    fn experimenter(&mut self, experimenter: u32, body: &[u8]) -> Result<&mut Self, Unwritable> {
        let length = u16::try_from(8 + body.len()).ok().filter(|length| length % 8 == 0);
        let Some(length) = length else {
            let reason = format!("{} bytes are not a multiple of 8 below 65528", body.len());
            return Err(Unwritable::new("experimenter", reason));
        };
        self.header(kind::EXPERIMENTER, length, experimenter);
        self.out.extend_from_slice(body);
        Ok(self)
    }

    /// Writes the length of the instruction that began at `start`, if it has room for it.
    #[inline]
    fn end(&mut self, start: usize) -> bool {
        let Ok(length) = u16::try_from(self.out.len() - start) else { return false };
        self.out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::PortNo;

    fn check(bytes: &[u8], kind: u16, code: u16, offset: usize) {
        let refused = read_instructions(bytes).unwrap_err();
        assert_eq!(
            (refused.error.kind, refused.error.code, refused.offset),
            (kind, code, offset),
            "{refused}"
        );
    }

    #[test]
    fn lengths_that_lie_are_bad_len() {
        check(&[0], 3, 7, 2);
        check(&[0, 1, 0, 0, 0, 0, 0, 0], 3, 7, 2);
        check(&[0, 1, 0, 16, 0, 0, 0, 0], 3, 7, 2);
        check(&[0, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 3, 7, 2);
        check(&[0, 2, 0, 8, 0, 0, 0, 0], 3, 7, 2);
    }

    #[test]
    fn an_unknown_type_is_unknown_inst() {
        check(&[0, 7, 0, 8, 0, 0, 0, 0], 3, 0, 0);
        check(&[0, 5, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0], 3, 0, 8);
    }

    #[test]
    fn a_type_that_is_there_twice_is_refused() {
        check(&[0, 5, 0, 8, 0, 0, 0, 0, 0, 5, 0, 8, 0, 0, 0, 0], 3, 1, 8);
        let two_experimenters = [0xff, 0xff, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0, 8, 0, 0, 0, 1];
        assert_eq!(read_instructions(&two_experimenters).unwrap().len(), 2);
    }

    #[test]
    fn faults_inside_actions_keep_their_place() {
        check(&[0, 5, 0, 8, 0, 0, 0, 0, 0, 4, 0, 16, 0, 0, 0, 0, 0, 99, 0, 8, 0, 0, 0, 0], 2, 0, 16);
    }

    #[test]
    fn actions_that_do_not_fit_are_refused_whole() {
        let many = vec![Action::output(PortNo(1)); 4096];
        let mut bytes = vec![7];
        assert!(
            write_instructions(&[Instruction::GotoTable(1), Instruction::ApplyActions(many)], &mut bytes)
                .is_err()
        );
        assert_eq!(bytes, [7]);
        let mut writer = InstructionWriter::new(&mut bytes);
        writer.apply_actions(|actions| {
            for _ in 0..4096 {
                actions.output(PortNo(1), 0);
            }
        });
        assert_eq!(bytes, [7, 0, 4, 0, 8, 0, 0, 0, 0]);
    }
}
