//! `ofp_match` (1.3.5, 7.2.3): the header and the padding around a sequence of OXM TLVs.
//!
//! [`flow::canonical`] reads and writes the TLVs.

use flow::canonical::{self, read_match};
use flow::{BadInput, Match};

use crate::error::{BAD_MATCH_LEN, BAD_MATCH_TYPE, Unwritable, bad};
use crate::wire::{Reader, Writer};

/// OFPMT_OXM, the only type of match that 1.3 still has.
const OXM: u16 = 1;
/// The length of the type and length fields before the first TLV.
const MATCH_HEADER_LEN: usize = 4;

/// Reads a match with header and padding. Returns its TLVs and their offset in the message.
pub(crate) fn take_tlvs<'a>(body: &mut Reader<'a>) -> Result<(&'a [u8], usize), BadInput> {
    let start = body.offset();
    let mut part = body.clone().with_short(BAD_MATCH_LEN);
    let kind = part.u16("match_type")?;
    if kind != OXM {
        let message = format!("a match of type {kind}; 1.3 has only OFPMT_OXM, {OXM}");
        return Err(bad(start, "match_type", BAD_MATCH_TYPE, message));
    }
    let length = usize::from(part.u16("match_length")?);
    if length < MATCH_HEADER_LEN || length.next_multiple_of(8) > body.left() {
        let message = format!(
            "length {length} is less than {MATCH_HEADER_LEN}, or with its padding more than the {} bytes that are left",
            body.left()
        );
        return Err(bad(start + 2, "match_length", BAD_MATCH_LEN, message));
    }
    let tlvs = part.take(length - MATCH_HEADER_LEN, "oxm_fields")?;
    body.skip(length.next_multiple_of(8))?;
    Ok((tlvs, start + MATCH_HEADER_LEN))
}

pub(crate) fn read(body: &mut Reader<'_>) -> Result<Match, BadInput> {
    let (tlvs, offset) = take_tlvs(body)?;
    read_match(tlvs).map_err(|refused| refused.shifted(offset))
}

pub(crate) fn write(matching: &Match, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    write_with(out, |bytes| canonical::write_match(matching, bytes))
}

/// Writes a match from its TLVs, unchanged.
pub(crate) fn write_tlvs(tlvs: &[u8], out: &mut Writer<'_>) -> Result<(), Unwritable> {
    write_with(out, |bytes| bytes.extend_from_slice(tlvs))
}

fn write_with(out: &mut Writer<'_>, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Unwritable> {
    let length = out.length_after(2);
    out.u16(OXM).zeros(2);
    write(out.out);
    out.fill_length(length)?;
    out.pad_to_eight(length);
    Ok(())
}
