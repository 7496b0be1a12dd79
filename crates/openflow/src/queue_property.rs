//! The properties of a queue (1.3.5, 7.2.2; 1.0, 5.2.2), with the same layout in both versions; 1.3 has more of them.
//!
//! Never checks whether a switch can provide a rate.

use flow::BadInput;

use crate::error::Unwritable;
use crate::message::QueueProperty;
use crate::version::Version;
use crate::wire::{Reader, Writer};

/// Type, length and padding.
const HEADER_LEN: usize = 8;

/// `ofp_queue_properties`.
mod kind {
    pub const MIN_RATE: u16 = 1;
    pub const MAX_RATE: u16 = 2;
    pub const EXPERIMENTER: u16 = 0xffff;
}

/// Whether this version defines this type of property. Other types are kept unchanged.
fn is_known(kind: u16, version: Version) -> bool {
    kind == kind::MIN_RATE || version != Version::V1_0 && matches!(kind, kind::MAX_RATE | kind::EXPERIMENTER)
}

pub(crate) fn read_property(body: &mut Reader<'_>, version: Version) -> Result<QueueProperty, BadInput> {
    let mut property = body.item(2, HEADER_LEN)?;
    let kind = property.u16("property")?;
    property.skip(6)?;
    if !is_known(kind, version) {
        return Ok(QueueProperty::Unknown { kind, data: property.rest().to_vec() });
    }
    if kind == kind::EXPERIMENTER {
        let experimenter = property.u32("experimenter")?;
        property.skip(4)?;
        return Ok(QueueProperty::Experimenter { experimenter, data: property.rest().to_vec() });
    }
    let rate = property.u16("rate")?;
    property.skip(6)?;
    property.end()?;
    Ok(if kind == kind::MIN_RATE { QueueProperty::MinRate(rate) } else { QueueProperty::MaxRate(rate) })
}

pub(crate) fn write_property(
    property: &QueueProperty,
    version: Version,
    out: &mut Writer<'_>,
) -> Result<(), Unwritable> {
    let kind = match property {
        QueueProperty::MinRate(_) => kind::MIN_RATE,
        QueueProperty::MaxRate(_) => kind::MAX_RATE,
        QueueProperty::Experimenter { .. } => kind::EXPERIMENTER,
        QueueProperty::Unknown { kind, .. } => *kind,
    };
    let is_unknown = matches!(property, QueueProperty::Unknown { .. });
    if is_known(kind, version) == is_unknown {
        let why = if is_unknown { "is a property that is known" } else { "is no property" };
        return Err(Unwritable::new("property", format!("{kind} {why} in OpenFlow {version}")));
    }
    let length = out.length_after(2);
    out.u16(kind).zeros(6);
    match property {
        QueueProperty::MinRate(rate) | QueueProperty::MaxRate(rate) => out.u16(*rate).zeros(6),
        QueueProperty::Experimenter { experimenter, data } => out.u32(*experimenter).zeros(4).bytes(data),
        QueueProperty::Unknown { data, .. } => out.bytes(data),
    };
    out.fill_length(length)
}
