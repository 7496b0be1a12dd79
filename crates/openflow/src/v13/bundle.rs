//! Bundles as the ONF's extension 230 (1.4.0, 7.3.9): the messages behind the experimenter header, and their
//! properties.
//!
//! In: the bytes behind experimenter and type, or a message to write. Out: the message, or the bytes. Never decides
//! which messages a switch accepts in a bundle: only a message of a bundle within another is refused.

use flow::BadInput;

use crate::envelope::{TYPE_ERROR, write_message};
use crate::error::{BUNDLED_BAD_LEN, BUNDLED_BAD_XID, BUNDLED_UNSUPPORTED, Unwritable, bad};
use crate::header::{HEADER_LEN, Header};
use crate::message::{
    Body, BundleAdd, BundleControl, BundleProperty, Message, ONF_BUNDLE_ADD, ONF_BUNDLE_CONTROL,
    ONF_EXPERIMENTER,
};
use crate::version::Version;
use crate::wire::{Reader, Writer};

/// OFPBPT_EXPERIMENTER.
const EXPERIMENTER: u16 = 0xffff;
/// The length of a property's type and length.
const PROPERTY_HEADER_LEN: usize = 4;

/// Whether an experimenter's message is one of these, by its experimenter and its type.
pub(crate) const fn is_one(experimenter: u32, exp_type: u32) -> bool {
    experimenter == ONF_EXPERIMENTER && matches!(exp_type, ONF_BUNDLE_CONTROL | ONF_BUNDLE_ADD)
}

pub(super) fn read_control(mut body: Reader<'_>) -> Result<BundleControl, BadInput> {
    Ok(BundleControl {
        bundle_id: body.u32("bundle_id")?,
        control: body.u16("type")?,
        flags: body.u16("flags")?,
        properties: body.list(read_property)?,
    })
}

/// Reads the body of a message that adds one with the transaction id `xid`. `read` reads the body of that one.
pub(super) fn read_add(
    mut body: Reader<'_>,
    xid: u32,
    read: impl FnOnce(u8, Reader<'_>) -> Result<Body, BadInput>,
) -> Result<BundleAdd, BadInput> {
    let bundle_id = body.u32("bundle_id")?;
    body.skip(2)?;
    let flags = body.u16("flags")?;
    let (header, content) = split_message(&mut body, xid)?;
    let message = Message { version: header.version, xid, body: read(header.kind, content)? };
    let length = usize::from(header.length);
    // Only properties need the padding (1.4.0, 7.3.9.6). Without them, a shorter one is harmless.
    body.skip((length.next_multiple_of(8) - length).min(body.left()))?;
    Ok(BundleAdd { bundle_id, flags, message: Box::new(message), properties: body.list(read_property)? })
}

/// Takes the bundled message: its header, and a reader of its body.
fn split_message<'a>(body: &mut Reader<'a>, xid: u32) -> Result<(Header, Reader<'a>), BadInput> {
    let start = body.offset();
    let mut all = body.clone().with_short(BUNDLED_BAD_LEN);
    let header = all.array::<HEADER_LEN>("message")?;
    let header = Header::read(&header)
        .map_err(|refused| BadInput { error: BUNDLED_BAD_LEN, ..refused.shifted(start) })?;
    let length = usize::from(header.length);
    if length > body.left() {
        let message = format!("a message of {length} bytes, and {} are left", body.left());
        return Err(bad(start + 2, "length", BUNDLED_BAD_LEN, message));
    }
    if header.version != Version::V1_3 {
        let message = format!("a message of OpenFlow {} in one of 1.3", header.version);
        return Err(bad(start, "version", BUNDLED_UNSUPPORTED, message));
    }
    if header.xid != xid {
        let message = format!("0x{:x} in a message with the transaction id 0x{xid:x}", header.xid);
        return Err(bad(start + 4, "xid", BUNDLED_BAD_XID, message));
    }
    let mut whole = body.part(length, "message")?;
    let is_of_bundle = header.kind == super::kind::EXPERIMENTER && is_of_bundle(whole.clone());
    if is_of_bundle || header.kind <= TYPE_ERROR {
        return Err(bad(
            start + 1,
            "type",
            BUNDLED_UNSUPPORTED,
            "a message of this type cannot be in a bundle",
        ));
    }
    whole.skip(HEADER_LEN)?;
    Ok((header, whole))
}

/// Whether an experimenter's message is about a bundle: nesting has no end otherwise.
fn is_of_bundle(mut message: Reader<'_>) -> bool {
    let Ok(()) = message.skip(HEADER_LEN) else { return false };
    let numbers = message.u32("experimenter").and_then(|it| Ok((it, message.u32("exp_type")?)));
    numbers.is_ok_and(|(experimenter, exp_type)| is_one(experimenter, exp_type))
}

fn read_property(body: &mut Reader<'_>) -> Result<BundleProperty, BadInput> {
    let mut property = body.item(2, PROPERTY_HEADER_LEN)?;
    let length = property.left();
    body.skip(length.next_multiple_of(8) - length)?;
    let kind = property.u16("type")?;
    property.skip(2)?;
    Ok(match kind {
        EXPERIMENTER => BundleProperty::Experimenter {
            experimenter: property.u32("experimenter")?,
            exp_type: property.u32("exp_type")?,
            data: property.rest().to_vec(),
        },
        kind => BundleProperty::Unknown { kind, data: property.rest().to_vec() },
    })
}

pub(super) fn write_control(control: &BundleControl, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u32(ONF_EXPERIMENTER).u32(ONF_BUNDLE_CONTROL);
    out.u32(control.bundle_id).u16(control.control).u16(control.flags);
    control.properties.iter().try_for_each(|property| write_property(property, out))
}

/// Writes the body of a message that adds one and has the transaction id `xid`. `write` writes the body of that one.
pub(super) fn write_add(
    add: &BundleAdd,
    xid: u32,
    out: &mut Writer<'_>,
    write: impl FnOnce(&Body, &mut Writer<'_>) -> Result<(), Unwritable>,
) -> Result<(), Unwritable> {
    let message = &*add.message;
    check_bundled(message, xid)?;
    out.u32(ONF_EXPERIMENTER).u32(ONF_BUNDLE_ADD);
    out.u32(add.bundle_id).zeros(2).u16(add.flags);
    let start = out.length_after(2);
    let kind = super::type_number(&message.body);
    write_message(message.version, kind, xid, out.out, |out| write(&message.body, out))?;
    if !add.properties.is_empty() {
        out.pad_to_eight(start);
    }
    add.properties.iter().try_for_each(|property| write_property(property, out))
}

fn check_bundled(message: &Message, xid: u32) -> Result<(), Unwritable> {
    let refused = |what, why: String| Err(Unwritable::new(what, why));
    match &message.body {
        _ if message.version != Version::V1_3 => {
            refused("version", format!("a bundle of 1.3 has no message of {}", message.version))
        }
        _ if message.xid != xid => {
            refused("xid", format!("0x{:x} in a message with the transaction id 0x{xid:x}", message.xid))
        }
        Body::Hello(_) | Body::Error(_) | Body::BundleControl(_) | Body::BundleAdd(_) => {
            refused("type", "a message of this type cannot be in a bundle".to_owned())
        }
        _ => Ok(()),
    }
}

fn write_property(property: &BundleProperty, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let length = out.length_after(2);
    match property {
        BundleProperty::Experimenter { experimenter, exp_type, data } => {
            out.u16(EXPERIMENTER).zeros(2).u32(*experimenter).u32(*exp_type).bytes(data);
        }
        BundleProperty::Unknown { kind: EXPERIMENTER, .. } => {
            return Err(Unwritable::new(
                "type",
                "65535 is an experimenter's property and would be read as one",
            ));
        }
        BundleProperty::Unknown { kind, data } => {
            out.u16(*kind).zeros(2).bytes(data);
        }
    }
    out.fill_length(length)?;
    out.pad_to_eight(length);
    Ok(())
}
