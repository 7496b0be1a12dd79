//! A meter's bands, in place (`ofp_meter_band_header`, 1.3.5, 7.3.4.3).
//!
//! In: the bytes of a list of bands. Out: each band with its type, or what is wrong with it. It never checks a vendor's band.

use super::{ActionFault, bad, u16_at};
use crate::error::BadInput;
use crate::vendor::{VendorPart, part_of_band};

/// The length of a band that OpenFlow defines. Only a vendor's band is longer.
const BAND_LEN: usize = 16;

/// `ofp_meter_band_type`.
const DROP: u16 = 1;
const DSCP_REMARK: u16 = 2;

/// One band in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawBand {
    /// Drops the packets above its rate.
    Drop,
    /// Raises the drop precedence in the DSCP field of the packets above its rate.
    RemarkDscp,
    /// A vendor defines what it does.
    Vendor(VendorPart),
}

/// Iterates over the bands of a meter. Ends after the first that cannot be read.
#[derive(Clone, Debug)]
pub struct RawBands<'a> {
    rest: &'a [u8],
    offset: usize,
}

/// Walks a list of bands in place.
///
/// ```
/// use flow::canonical::{RawBand, bands_raw};
/// let drop = [0, 1, 0, 16, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 0];
/// assert_eq!(bands_raw(&drop).next(), Some(Ok(RawBand::Drop)));
/// assert_eq!(bands_raw(&drop[..15]).next().unwrap().unwrap_err().field, "len");
/// ```
pub fn bands_raw(bytes: &[u8]) -> RawBands<'_> {
    RawBands { rest: bytes, offset: 0 }
}

impl Iterator for RawBands<'_> {
    type Item = Result<RawBand, BadInput>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.rest);
        if bytes.len() < 4 {
            return Some(Err(bad(
                ActionFault::BadLen,
                self.offset,
                "len",
                "the header of a band has 4 bytes",
            )));
        }
        let (kind, length) = (u16_at(bytes, 0), usize::from(u16_at(bytes, 2)));
        if length < BAND_LEN || length % 8 != 0 || length > bytes.len() {
            let message = format!(
                "length {length} is not a multiple of 8 from {BAND_LEN} to the {} bytes left",
                bytes.len()
            );
            return Some(Err(bad(ActionFault::BadLen, self.offset + 2, "len", message)));
        }
        let (band, rest) = bytes.split_at(length);
        let read = match (part_of_band(band), kind) {
            (Some(part), _) => RawBand::Vendor(part),
            (None, DROP) if length == BAND_LEN => RawBand::Drop,
            (None, DSCP_REMARK) if length == BAND_LEN => RawBand::RemarkDscp,
            _ => {
                let message = format!("OpenFlow 1.3 has no band of type {kind} and length {length}");
                return Some(Err(bad(ActionFault::BadType, self.offset, "type", message)));
            }
        };
        self.rest = rest;
        self.offset += length;
        Some(Ok(read))
    }
}
