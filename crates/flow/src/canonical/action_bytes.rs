//! Reads actions from bytes: in place, or as typed values.
//!
//! Never checks whether an action makes sense: whether the port exists, or the EtherType is that of a tag.

use super::match_bytes::read_entry;
use super::plain_field::each_plain_field;
use super::tlv::{Tlv, match_tlvs};
use super::{ActionFault, MatchFault, bad, number, u16_at, u32_at};
use crate::action::Action;
use crate::error::BadInput;
use crate::matching::MatchEntry;
use crate::port::PortNo;

/// `OFPAT_*` (1.3.5, 7.2.5).
pub(super) mod kind {
    pub const OUTPUT: u16 = 0;
    pub const COPY_TTL_OUT: u16 = 11;
    pub const COPY_TTL_IN: u16 = 12;
    pub const SET_MPLS_TTL: u16 = 15;
    pub const DEC_MPLS_TTL: u16 = 16;
    pub const PUSH_VLAN: u16 = 17;
    pub const POP_VLAN: u16 = 18;
    pub const PUSH_MPLS: u16 = 19;
    pub const POP_MPLS: u16 = 20;
    pub const SET_QUEUE: u16 = 21;
    pub const GROUP: u16 = 22;
    pub const SET_NW_TTL: u16 = 23;
    pub const DEC_NW_TTL: u16 = 24;
    pub const SET_FIELD: u16 = 25;
    pub const PUSH_PBB: u16 = 26;
    pub const POP_PBB: u16 = 27;
    pub const EXPERIMENTER: u16 = 0xffff;
}

/// One action in place. Its length is a multiple of eight and within the input. Nothing else has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawAction<'a> {
    /// `ofp_action_type`.
    pub kind: u16,
    /// The whole action, its header and its padding included; at least eight bytes.
    pub bytes: &'a [u8],
    /// Bytes from the start of the list to the action.
    pub offset: usize,
}

/// Iterates over the actions of a list. Ends after the first that exceeds the input.
#[derive(Clone, Debug)]
pub struct RawActions<'a> {
    rest: &'a [u8],
    offset: usize,
}

/// Walks a list of actions in place.
///
/// ```
/// use flow::{PortNo, canonical::actions_raw};
/// let flood = [0, 0, 0, 16, 0xff, 0xff, 0xff, 0xfb, 0, 0, 0, 0, 0, 0, 0, 0];
/// let action = actions_raw(&flood).next().unwrap().unwrap();
/// assert_eq!(action.output(), Some((PortNo::FLOOD, 0)));
/// ```
#[inline]
pub fn actions_raw(bytes: &[u8]) -> RawActions<'_> {
    RawActions { rest: bytes, offset: 0 }
}

/// Reads a list of actions.
///
/// # Errors
/// OFPET_BAD_ACTION with one of these codes. OFPBAC_BAD_LEN: the length exceeds the input, is not that of the type, or
/// is not a multiple of eight. OFPBAC_BAD_TYPE: 1.3 does not define the type. OFPBAC_BAD_SET_TYPE: a set-field of an
/// unknown field. OFPBAC_BAD_SET_LEN: a set-field with the wrong length. OFPBAC_BAD_SET_ARGUMENT: a set-field with a
/// mask, or with a value wider than the field.
///
/// ```
/// use flow::{Action, canonical::read_actions};
/// let pop = [0, 18, 0, 8, 0, 0, 0, 0];
/// assert_eq!(read_actions(&pop), Ok(vec![Action::PopVlan]));
/// assert_eq!(read_actions(&pop[..7]).unwrap_err().error.code, 1);
/// ```
pub fn read_actions(bytes: &[u8]) -> Result<Vec<Action>, BadInput> {
    // Counting first gives the list its exact size. Damaged input cannot make it grow.
    let count = actions_raw(bytes).map_while(Result::ok).count();
    let mut actions = Vec::with_capacity(count);
    for action in actions_raw(bytes) {
        actions.push(action?.read()?);
    }
    Ok(actions)
}

impl<'a> Iterator for RawActions<'a> {
    type Item = Result<RawAction<'a>, BadInput>;

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
            return Some(Err(bad(ActionFault::BadLen, self.offset + 2, "len", message)));
        }
        let (bytes, rest) = self.rest.split_at(length);
        let action = RawAction { kind: u16_at(bytes, 0), bytes, offset: self.offset };
        self.rest = rest;
        self.offset += length;
        Some(Ok(action))
    }
}

impl RawAction<'_> {
    /// The port and `max_len`, if this is an output.
    #[inline]
    pub fn output(&self) -> Option<(PortNo, u16)> {
        let is_output = self.kind == kind::OUTPUT && self.bytes.len() == 16;
        is_output.then(|| (PortNo(u32_at(self.bytes, 4)), u16_at(self.bytes, 8)))
    }

    /// The field's TLV, if this is a set-field whose TLV lies inside it.
    pub fn set_field(&self) -> Option<Tlv<'_>> {
        let body = self.bytes.get(4..).filter(|_| self.kind == kind::SET_FIELD)?;
        match_tlvs(body).next()?.ok()
    }

    /// Whether this is one of OpenFlow's actions that change a packet and send it nowhere.
    #[inline]
    pub fn sends_nothing(&self) -> bool {
        matches!(self.kind, kind::COPY_TTL_OUT | kind::COPY_TTL_IN | kind::SET_MPLS_TTL..=kind::SET_QUEUE)
            || matches!(self.kind, kind::SET_NW_TTL..=kind::POP_PBB)
    }

    /// The typed action.
    ///
    /// # Errors
    /// As [`read_actions`].
    pub fn read(&self) -> Result<Action, BadInput> {
        let short = u32_at(self.bytes, 4);
        // The protocol's table: the length of each type, and the meaning of its four bytes.
        let (length, action) = match self.kind {
            kind::OUTPUT => {
                (16, Action::Output { port: PortNo(u32_at(self.bytes, 4)), max_len: u16_at(self.bytes, 8) })
            }
            kind::COPY_TTL_OUT => (8, Action::CopyTtlOut),
            kind::COPY_TTL_IN => (8, Action::CopyTtlIn),
            kind::SET_MPLS_TTL => (8, Action::SetMplsTtl((short >> 24) as u8)),
            kind::DEC_MPLS_TTL => (8, Action::DecMplsTtl),
            kind::PUSH_VLAN => (8, Action::PushVlan((short >> 16) as u16)),
            kind::POP_VLAN => (8, Action::PopVlan),
            kind::PUSH_MPLS => (8, Action::PushMpls((short >> 16) as u16)),
            kind::POP_MPLS => (8, Action::PopMpls((short >> 16) as u16)),
            kind::SET_QUEUE => (8, Action::SetQueue(short)),
            kind::GROUP => (8, Action::Group(short)),
            kind::SET_NW_TTL => (8, Action::SetNwTtl((short >> 24) as u8)),
            kind::DEC_NW_TTL => (8, Action::DecNwTtl),
            kind::SET_FIELD => return self.read_set_field(),
            kind::PUSH_PBB => (8, Action::PushPbb((short >> 16) as u16)),
            kind::POP_PBB => (8, Action::PopPbb),
            kind::EXPERIMENTER => {
                let body = self.bytes.get(8..).unwrap_or_default().to_vec();
                (self.bytes.len(), Action::Experimenter { experimenter: short, body })
            }
            unknown => {
                let message = format!("OpenFlow 1.3 has no action of type {unknown}");
                return Err(bad(ActionFault::BadType, self.offset, "type", message));
            }
        };
        if length == self.bytes.len() { Ok(action) } else { Err(self.bad_length(length)) }
    }

    fn bad_length(&self, expected: usize) -> BadInput {
        let message = format!("this action has {expected} bytes, not {}", self.bytes.len());
        bad(ActionFault::BadLen, self.offset + 2, "len", message)
    }

    /// A sound set-field of OpenFlow's, as most are. `None`: read it step by step.
    fn read_plain_set_field(&self) -> Option<Action> {
        let body = self.bytes.get(4..)?;
        let tlv = body.get(..4 + usize::from(*body.get(3)?))?;
        let mut read = None;
        let is_plain = self.bytes.len() == (4 + tlv.len()).next_multiple_of(8)
            && each_plain_field(tlv, |field, value, mask| {
                read = mask.is_none().then(|| Action::SetField { field, value: number(value) });
            });
        read.filter(|_| is_plain)
    }

    fn read_set_field(&self) -> Result<Action, BadInput> {
        if let Some(action) = self.read_plain_set_field() {
            return Ok(action);
        }
        let Some(tlv) = self.set_field() else {
            let message = "the field's length goes beyond the action";
            return Err(bad(ActionFault::BadSetLen, self.offset + 7, "oxm_length", message));
        };
        let expected = (4 + 4 + tlv.payload.len()).next_multiple_of(8);
        if self.bytes.len() != expected {
            return Err(self.bad_length(expected));
        }
        match read_entry(&tlv).map_err(|fault| as_set_field(fault).shifted(self.offset + 4))? {
            MatchEntry::Field { field, value, mask: None } => Ok(Action::SetField { field, value }),
            MatchEntry::Field { .. } => {
                let message = "set_field takes no mask in OpenFlow 1.3";
                Err(bad(ActionFault::BadSetArgument, self.offset + 4, "oxm_hasmask", message))
            }
            MatchEntry::Unknown { header, body } => Ok(Action::SetUnknownField { header, body }),
        }
    }
}

/// Translates an error of the TLV into the error codes of set-field.
fn as_set_field(fault: BadInput) -> BadInput {
    let same = |code: MatchFault| fault.error.code == code as u16;
    let error = if same(MatchFault::BadLen) {
        ActionFault::BadSetLen
    } else if same(MatchFault::BadField) {
        ActionFault::BadSetType
    } else {
        ActionFault::BadSetArgument
    };
    BadInput { error: error.into(), ..fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], code: u16, offset: usize) {
        let refused = read_actions(bytes).unwrap_err();
        assert_eq!((refused.error.kind, refused.error.code, refused.offset), (2, code, offset), "{refused}");
    }

    #[test]
    fn lengths_that_lie_are_bad_len() {
        check(&[0], 1, 2);
        check(&[0, 18, 0, 0, 0, 0, 0, 0], 1, 2);
        check(&[0, 18, 0, 7, 0, 0, 0, 0], 1, 2);
        check(&[0, 18, 0, 16, 0, 0, 0, 0], 1, 2);
        check(&[0, 18, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1, 2);
        check(&[0, 0, 0, 8, 0, 0, 0, 1], 1, 2);
        check(&[0, 18, 0, 8, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], 1, 10);
    }

    #[test]
    fn an_unknown_type_is_bad_type() {
        check(&[0, 1, 0, 8, 0, 0, 0, 0], 0, 0);
        check(&[0, 18, 0, 8, 0, 0, 0, 0, 0, 28, 0, 8, 0, 0, 0, 0], 0, 8);
    }

    #[test]
    fn set_field_says_what_is_wrong_with_its_field() {
        // A length beyond the action; a field that does not exist; a length that is not eth_type's; a mask; a value too wide.
        check(&[0, 25, 0, 8, 0x80, 0, 0, 4], 14, 7);
        check(&[0, 25, 0, 16, 0x80, 0, 99, 4, 0, 0, 0, 0, 0, 0, 0, 0], 13, 4);
        check(&[0, 25, 0, 16, 0x80, 0, 10, 1, 0, 0, 0, 0, 0, 0, 0, 0], 14, 7);
        check(&[0, 25, 0, 16, 0x80, 0, 23, 8, 10, 0, 0, 0, 255, 0, 0, 0], 15, 4);
        check(&[0, 25, 0, 16, 0x80, 0, 14, 1, 8, 0, 0, 0, 0, 0, 0, 0], 15, 8);
    }

    #[test]
    fn set_field_is_padded_to_eight_and_no_further() {
        let mut bytes = vec![0, 25, 0, 16, 0x80, 0, 14, 1, 7, 9, 9, 9, 9, 9, 9, 9];
        let set = Action::SetField { field: crate::Field::VlanPcp, value: 7 };
        assert_eq!(read_actions(&bytes), Ok(vec![set]));
        bytes[3] = 24;
        bytes.extend([0; 8]);
        check(&bytes, 1, 2);
    }
}
