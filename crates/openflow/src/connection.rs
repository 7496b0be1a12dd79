//! The bytes of messages with the same layout in both versions: hello, error, configuration.
//!
//! Never negotiates a version.

use flow::BadInput;

use crate::error::Unwritable;
use crate::message::{ErrorMessage, Hello, HelloElement, SwitchConfig};
use crate::version::Version;
use crate::wire::{Reader, Writer};

/// OFPHET_VERSIONBITMAP (1.3.5, 7.5.1).
const VERSION_BITMAP: u16 = 1;
/// OFPET_EXPERIMENTER (1.3.5, 7.5.4.16).
const ERROR_EXPERIMENTER: u16 = 0xffff;

/// Whether hellos of this version have elements. Older versions require to ignore what follows the header.
const fn has_elements(version: Version) -> bool {
    version.0 >= Version::V1_3.0
}

pub(crate) fn read_hello(version: Version, mut body: Reader<'_>) -> Result<Hello, BadInput> {
    if !has_elements(version) {
        return Ok(Hello::default());
    }
    let mut elements = Vec::new();
    // An unreadable element, and everything after it, is ignored. Without elements, the header's version counts.
    while body.left() > 0
        && let Ok(element) = read_element(&mut body)
    {
        elements.extend(element);
    }
    Ok(Hello { elements })
}

/// An element; `None` for a bitmap that does not consist of whole words.
fn read_element(body: &mut Reader<'_>) -> Result<Option<HelloElement>, BadInput> {
    let mut element = body.item(2, 4)?;
    let length = element.left();
    let padding = length.next_multiple_of(8) - length;
    // Some switches leave out the padding of the last element.
    body.skip(padding.min(body.left()))?;
    let kind = element.u16("type")?;
    element.skip(2)?;
    if kind != VERSION_BITMAP {
        return Ok(Some(HelloElement::Unknown { kind, body: element.rest().to_vec() }));
    }
    if element.left() % 4 != 0 {
        return Ok(None);
    }
    Ok(Some(HelloElement::VersionBitmap(element.list(|words| words.u32("bitmaps"))?)))
}

pub(crate) fn write_hello(version: Version, hello: &Hello, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if !has_elements(version) && !hello.elements.is_empty() {
        return Err(Unwritable::new("elements", format!("a hello of OpenFlow {version} has none")));
    }
    hello.elements.iter().try_for_each(|element| write_element(element, out))
}

fn write_element(element: &HelloElement, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let length = out.length_after(2);
    match element {
        HelloElement::VersionBitmap(words) => {
            out.u16(VERSION_BITMAP).zeros(2);
            words.iter().for_each(|word| {
                out.u32(*word);
            });
        }
        HelloElement::Unknown { kind: VERSION_BITMAP, .. } => {
            return Err(Unwritable::new("type", "1 is a version bitmap and would be read as one"));
        }
        HelloElement::Unknown { kind, body } => {
            out.u16(*kind).zeros(2).bytes(body);
        }
    }
    out.fill_length(length)?;
    out.pad_to_eight(length);
    Ok(())
}

pub(crate) fn read_error(version: Version, mut body: Reader<'_>) -> Result<ErrorMessage, BadInput> {
    let (kind, code) = (body.u16("type")?, body.u16("code")?);
    let has_experimenter = kind == ERROR_EXPERIMENTER && version != Version::V1_0;
    let experimenter = if has_experimenter { Some(body.u32("experimenter")?) } else { None };
    Ok(ErrorMessage { kind, code, experimenter, data: body.rest().to_vec() })
}

pub(crate) fn write_error(
    version: Version,
    error: &ErrorMessage,
    out: &mut Writer<'_>,
) -> Result<(), Unwritable> {
    let has_experimenter = error.kind == ERROR_EXPERIMENTER && version != Version::V1_0;
    out.u16(error.kind).u16(error.code);
    match error.experimenter {
        Some(experimenter) if has_experimenter => {
            out.u32(experimenter);
        }
        None if !has_experimenter => {}
        Some(_) => return Err(Unwritable::new("experimenter", "only 1.3's OFPET_EXPERIMENTER has one")),
        None => return Err(Unwritable::new("experimenter", "OFPET_EXPERIMENTER must say whose error it is")),
    }
    out.bytes(&error.data);
    Ok(())
}

pub(crate) fn read_config(mut body: Reader<'_>) -> Result<SwitchConfig, BadInput> {
    let config = SwitchConfig { flags: body.u16("flags")?, miss_send_len: body.u16("miss_send_len")? };
    body.end()?;
    Ok(config)
}

pub(crate) fn write_config(config: &SwitchConfig, out: &mut Writer<'_>) {
    out.u16(config.flags).u16(config.miss_send_len);
}
