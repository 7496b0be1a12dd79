//! Flow mods of one shape: the constant part, which the kernel checks once, and the values that differ.
//!
//! ```text
//!   flow mod that passed ──> RuleShape::of ──> RuleShape
//!   next flow mod ──> RuleShape::values ──> the values, if every other byte is that of the shape
//! ```
//!
//! The shape is the usual rule of a forwarding app: an add with in_port, eth_dst and eth_src, and one applied output. The
//! positions of the values are fixed here. All other bytes are compared, so a frame cannot imitate a shape.
//!
//! In: whole frames. Out: numbers. It never decides whether a command is allowed.

use crate::Frame;
use crate::command::{Command, What, kind};
use crate::header::FLAG_RECEIPT;
use flow::canonical::{RuleValues, field_header};
use flow::{DatapathId, Field, PortNo};

/// Bytes of a frame of this shape: header, fixed part, a match of three fields, and one applied output.
pub const RULE_LEN: usize = 24 + 40 + MATCH_LEN + OUTPUT_LEN;
const MATCH_LEN: usize = 28;
const OUTPUT_LEN: usize = 24;

/// The number of eight-byte words of the frame; the last has four bytes.
const WORDS: usize = RULE_LEN.div_ceil(8);

/// The bits that belong to the shape. The others are values: datapath (1), ticket without its highest bit, which the kernel uses (2), buffer (5),
/// port (8), destination (9 and 10), source (10 and 11), output (13).
const OF_SHAPE: [u64; WORDS] = [
    u64::MAX,
    0,
    1 << 63,
    u64::MAX,
    u64::MAX,
    0xffff_ffff_0000_0000,
    u64::MAX,
    u64::MAX,
    0x0000_0000_ffff_ffff,
    0x0000_0000_ffff_ffff,
    0x0000_ffff_ffff_0000,
    0xffff_ffff_0000_0000,
    u64::MAX,
    0xffff_ffff_0000_0000,
    u64::MAX,
];

const IN_PORT_AT: usize = 68;
const ETH_DST_AT: usize = 76;
const ETH_SRC_AT: usize = 86;
const OUTPUT_AT: usize = 104;

/// The two headers of an applied output, without padding.
const APPLY_ACTIONS: [u8; 4] = [0, 4, 0, 24];
const OUTPUT: [u8; 4] = [0, 0, 0, 16];

/// The constant part of all flow mods of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleShape {
    words: [u64; WORDS],
}

/// The values of one flow mod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleUse {
    /// The switch.
    pub datapath: DatapathId,
    /// The app's ticket; less than 2^63.
    pub ticket: u64,
    /// The buffer id of a packet to send through the new rule; 0xffffffff: none.
    pub buffer_id: u32,
    /// Its match and its output.
    pub values: RuleValues,
}

/// A flow mod that is allowed because its shape was checked.
#[derive(Clone, Copy, Debug)]
pub struct PreparedRule<'a> {
    /// The number of its shape, unique within one kernel.
    pub shape: u64,
    /// Its cookie on the switch, with the owner.
    pub cookie: u64,
    /// Whether the app requests a receipt.
    pub wants_receipt: bool,
    /// Its values.
    pub of_use: RuleUse,
    /// The whole frame.
    pub bytes: &'a [u8; RULE_LEN],
}

impl<'a> PreparedRule<'a> {
    /// Creates it from a frame whose shape is known.
    #[inline(always)]
    pub fn of(bytes: &'a [u8; RULE_LEN], shape: u64, cookie: u64) -> PreparedRule<'a> {
        // The flags are the second word of a header.
        let wants_receipt = word(bytes, 0) >> 16 & u64::from(FLAG_RECEIPT) != 0;
        PreparedRule { shape, cookie, wants_receipt, of_use: RuleUse::read(bytes), bytes }
    }

    /// Its frame.
    pub fn frame(&self) -> Option<Frame<'a>> {
        Frame::read(self.bytes).ok()
    }

    /// The command, with its owner's cookie. It is never `None` for a frame whose shape is known.
    pub fn command(&self) -> Option<Command<'a>> {
        let command = Command::read(&self.frame()?).ok()?;
        let What::FlowMod(mut flow_mod) = command.what else { return None };
        (flow_mod.cookie, flow_mod.cookie_mask) = (self.cookie, 0);
        Some(Command { what: What::FlowMod(flow_mod), ..command })
    }
}

/// The bytes at a constant offset within the frame.
#[inline(always)]
fn bytes_at<const N: usize>(frame: &[u8; RULE_LEN], at: usize) -> [u8; N] {
    frame.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// The words of a frame, for comparison.
#[inline(always)]
fn word(frame: &[u8; RULE_LEN], number: usize) -> u64 {
    let at = number * 8;
    if at + 8 <= RULE_LEN {
        u64::from_le_bytes(bytes_at(frame, at))
    } else {
        u64::from(u32::from_le_bytes(bytes_at(frame, at)))
    }
}

#[inline(always)]
fn number_at(frame: &[u8; RULE_LEN], at: usize) -> u32 {
    u32::from_be_bytes(bytes_at(frame, at))
}

/// Six bytes as a number, read as the end of eight bytes.
#[inline(always)]
fn address_at(frame: &[u8; RULE_LEN], at: usize) -> u64 {
    u64::from_be_bytes(bytes_at(frame, at - 2)) & 0xffff_ffff_ffff
}

impl RuleShape {
    /// The shape of a flow mod; `None` if it has another form.
    pub fn of(frame: &Frame<'_>) -> Option<RuleShape> {
        let bytes: &[u8; RULE_LEN] = frame.bytes.try_into().ok()?;
        let What::FlowMod(it) = Command::read(frame).ok()?.what else { return None };
        let header = |field| field_header(field, false);
        let is_match = it.matching.len() == MATCH_LEN
            && number_at(bytes, IN_PORT_AT - 4) == header(Field::InPort)
            && number_at(bytes, ETH_DST_AT - 4) == header(Field::EthDst)
            && number_at(bytes, ETH_SRC_AT - 4) == header(Field::EthSrc);
        let is_output = it.instructions.starts_with(&APPLY_ACTIONS)
            && it.instructions.get(8..).is_some_and(|actions| actions.starts_with(&OUTPUT));
        let is_add = frame.header.kind.get() == kind::FLOW_MOD && it.command == 0;
        let is_apps = frame.header.sequence.get() >> 63 == 0;
        (is_match && is_output && is_add && is_apps).then(|| RuleShape {
            words: std::array::from_fn(|number| word(bytes, number) & OF_SHAPE[number]),
        })
    }

    /// The values of a flow mod, if it has this shape.
    #[inline(always)]
    pub fn values(&self, frame: &[u8; RULE_LEN]) -> Option<RuleUse> {
        let mut differs = 0;
        for (number, (of_shape, wanted)) in OF_SHAPE.iter().zip(&self.words).enumerate() {
            differs |= (word(frame, number) ^ wanted) & of_shape;
        }
        (differs == 0).then(|| RuleUse::read(frame))
    }
}

impl RuleUse {
    /// The values of a frame whose shape is known.
    #[inline(always)]
    pub fn read(frame: &[u8; RULE_LEN]) -> RuleUse {
        RuleUse {
            datapath: DatapathId(word(frame, 1)),
            ticket: word(frame, 2),
            buffer_id: word(frame, 5) as u32,
            values: RuleValues {
                in_port: PortNo(number_at(frame, IN_PORT_AT)),
                eth_dst: address_at(frame, ETH_DST_AT),
                eth_src: address_at(frame, ETH_SRC_AT),
                output: PortNo(number_at(frame, OUTPUT_AT)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{FlowMod, write};
    use flow::canonical::{InstructionWriter, MatchWriter};

    fn frame(ticket: u64, fields: &[(Field, u64)], output: u32, of: &FlowMod<'_>) -> Vec<u8> {
        let (mut matching, mut instructions, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        let mut writer = MatchWriter::new(&mut matching);
        for (field, value) in fields {
            match field {
                Field::InPort => writer.field(*field, PortNo(*value as u32)),
                _ => writer.field(*field, *value),
            };
        }
        InstructionWriter::new(&mut instructions).apply_actions(|actions| {
            actions.output(PortNo(output), 0);
        });
        let what = What::FlowMod(FlowMod { matching: &matching, instructions: &instructions, ..*of });
        let command = Command { datapath: DatapathId(7), ticket, wants_receipt: false, what };
        assert!(write::command(&mut bytes, &command));
        bytes
    }

    const SWITCHED: [(Field, u64); 3] =
        [(Field::InPort, 3), (Field::EthDst, 0x0200_0000_0001), (Field::EthSrc, 0x0600_0000_0002)];

    fn usual() -> Vec<u8> {
        frame(5, &SWITCHED, 9, &FlowMod { buffer_id: Some(77), priority: 100, ..FlowMod::ADD })
    }

    fn shape(bytes: &[u8]) -> Option<RuleShape> {
        RuleShape::of(&Frame::read(bytes).unwrap())
    }

    #[test]
    fn the_values_are_those_of_the_flow_mod() {
        let bytes = usual();
        let of_use = shape(&bytes).unwrap().values(bytes.as_slice().try_into().unwrap()).unwrap();
        let values = RuleValues {
            in_port: PortNo(3),
            eth_dst: 0x0200_0000_0001,
            eth_src: 0x0600_0000_0002,
            output: PortNo(9),
        };
        assert_eq!(of_use, RuleUse { datapath: DatapathId(7), ticket: 5, buffer_id: 77, values });
    }

    /// Changing one byte gives another shape, or another value of the same rule.
    #[test]
    fn each_byte_is_the_shapes_or_a_values() {
        let bytes = usual();
        let shape = shape(&bytes).unwrap();
        let values = [8..23, 40..44, 68..72, 76..82, 86..92, 104..108];
        for at in 0..RULE_LEN {
            for bit in 0..8 {
                let mut other: [u8; RULE_LEN] = bytes.as_slice().try_into().unwrap();
                other[at] ^= 1 << bit;
                // The kernel uses the highest bit of the ticket.
                let is_value = values.iter().any(|value| value.contains(&at)) || at == 23 && bit < 7;
                assert_eq!(shape.values(&other).is_some(), is_value, "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn other_flow_mods_have_no_shape() {
        let add = FlowMod::ADD;
        assert!(shape(&frame(1, &SWITCHED, 1, &add)).is_some());
        assert!(shape(&frame(1 << 63, &SWITCHED, 1, &add)).is_none());
        assert!(shape(&frame(1, &SWITCHED, 1, &FlowMod { command: 1, ..add })).is_none());
        let [port, destination, source] = SWITCHED;
        assert!(shape(&frame(1, &[destination, port, source], 1, &add)).is_none());
        assert!(shape(&frame(1, &[port, source, destination], 1, &add)).is_none());
        assert!(shape(&frame(1, &[port, destination], 1, &add)).is_none());
    }
}
