//! Checks matches, actions and instructions of 1.3 in place.
//!
//! The results equal those of the readers in [`flow::canonical`]. For valid bytes it allocates nothing, except for a
//! set-field of a field that 1.3 does not define.

use flow::canonical::{
    MAX_UNKNOWN_FIELDS, RawActions, Tlv, actions_raw, instructions_raw, match_tlvs, read_instructions,
    read_match,
};
use flow::field::CLASS_BASIC;
use flow::{BadInput, Field};

/// OFPXMC_EXPERIMENTER: the payload begins with the experimenter's number.
const CLASS_EXPERIMENTER: u16 = 0xffff;
/// The type of an experimenter action or instruction, which is kept unchanged.
const EXPERIMENTER: u16 = 0xffff;

/// Checks a sequence of TLVs that begins `offset` bytes into the message. Returns the value of one field in it.
pub(crate) fn check_match(tlvs: &[u8], offset: usize, wanted: Field) -> Result<Option<u128>, BadInput> {
    match find_in_well_formed(tlvs, wanted) {
        Some(value) => Ok(value),
        // The reader makes the error.
        None => {
            let matching = read_match(tlvs).map_err(|refused| refused.shifted(offset))?;
            Ok(matching.get(wanted).map(|(value, _)| value))
        }
    }
}

/// The value of a field, if it is present, in a valid sequence; `None` if the sequence is invalid.
fn find_in_well_formed(tlvs: &[u8], wanted: Field) -> Option<Option<u128>> {
    let (mut found, mut known, mut unknown) = (None, 0u64, 0);
    for tlv in match_tlvs(tlvs) {
        let tlv = tlv.ok()?;
        if tlv.class() != CLASS_BASIC {
            unknown += 1;
            let is_whole = tlv.class() != CLASS_EXPERIMENTER || tlv.payload.len() >= 4;
            if unknown > MAX_UNKNOWN_FIELDS || !is_whole || is_there_before(tlvs, &tlv) {
                return None;
            }
            continue;
        }
        let (field, value) = (tlv.field()?, well_formed_value(&tlv)?);
        let bit = 1u64 << field.number();
        if known & bit != 0 {
            return None;
        }
        known |= bit;
        if field == wanted {
            found = Some(value);
        }
    }
    Some(found)
}

/// The value of a field of OPENFLOW_BASIC, if its length, its mask and its width are right.
fn well_formed_value(tlv: &Tlv<'_>) -> Option<u128> {
    let (field, value) = (tlv.field()?, tlv.value()?);
    let mask = if tlv.has_mask() { tlv.mask().filter(|_| field.maskable())? } else { field.full_mask() };
    let fits = mask & !field.full_mask() == 0 && value & !mask == 0;
    fits.then_some(value)
}

/// Whether the same field outside OPENFLOW_BASIC also appears earlier in the sequence.
fn is_there_before(tlvs: &[u8], tlv: &Tlv<'_>) -> bool {
    let is_experimenter = tlv.class() == CLASS_EXPERIMENTER;
    let before = match_tlvs(tlvs).map_while(Result::ok).take_while(|other| other.offset < tlv.offset);
    before.filter(|other| other.header >> 9 == tlv.header >> 9).any(|other| {
        // Two experimenters may use the same number.
        !is_experimenter || other.payload.get(..4) == tlv.payload.get(..4)
    })
}

/// Checks a list of actions that begins `offset` bytes into the message.
pub(crate) fn check_actions(actions: &[u8], offset: usize) -> Result<(), BadInput> {
    check_each_action(actions_raw(actions)).map_err(|refused| refused.shifted(offset))
}

fn check_each_action(mut actions: RawActions<'_>) -> Result<(), BadInput> {
    actions.try_for_each(|action| {
        let action = action?;
        if action.kind == EXPERIMENTER { Ok(()) } else { action.read().map(|_| ()) }
    })
}

/// Checks a list of instructions that begins `offset` bytes into the message.
pub(crate) fn check_instructions(instructions: &[u8], offset: usize) -> Result<(), BadInput> {
    let mut seen = 0u8;
    for raw in instructions_raw(instructions) {
        let raw = raw.map_err(|refused| refused.shifted(offset))?;
        if let Some(actions) = raw.actions() {
            check_each_action(actions).map_err(|refused| refused.shifted(offset + raw.offset + 8))?;
        } else if raw.kind != EXPERIMENTER {
            raw.read().map_err(|refused| refused.shifted(offset))?;
        }
        // Types 1 to 6 may appear once; experimenter instructions may repeat.
        let bit = 1u8.checked_shl(raw.kind.into()).unwrap_or(0);
        if seen & bit != 0 {
            return read_instructions(instructions).map(|_| ()).map_err(|refused| refused.shifted(offset));
        }
        seen |= bit;
    }
    Ok(())
}
