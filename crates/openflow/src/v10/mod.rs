//! The bytes of OpenFlow 1.0 (wire 0x01), read into and written from the words of 1.3.
//!
//! Never reads a header, a hello or an error: those are alike in every version and read before.
use crate::error::Unwritable;
use crate::message::Body;
use crate::wire::{Reader, Writer};
use flow::BadInput;
pub(crate) const fn type_number(_body: &Body) -> Option<u8> {
    None
}
pub(crate) fn read(kind: u8, _body: Reader<'_>) -> Result<Body, BadInput> {
    Err(crate::decode::unknown_type(crate::Version::V1_0, kind))
}
pub(crate) fn write(_body: &Body, _out: &mut Writer<'_>) -> Result<(), Unwritable> {
    Ok(())
}
