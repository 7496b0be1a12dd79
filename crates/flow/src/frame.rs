//! The fields of a frame, as a switch sees them, and whether a match matches it.
//!
//! ```text
//!   a frame's bytes ──> FrameFields ──> Match::matches ──> "does this rule speak of this packet?"
//!   in_port, metadata, tunnel_id ─┘ (set by the caller: they are not in the bytes)
//! ```
//!
//! The rules are those of OpenFlow 1.3.5 (5.3) and Open vSwitch. They use the outermost VLAN tag, the EtherType behind
//! all tags, the outermost MPLS label, and the protocol behind IPv6's extension headers. Later fragments have no ports.
//! Any bytes are accepted: a damaged frame has the fields before the damage. Nothing is allocated, and checksums are
//! ignored.
//!
//! No library is used, because the result is OpenFlow's fields and not a packet's structure. The fields of a damaged
//! frame are needed too: a fault in one layer must not hide the layers before it.

mod ethernet;
mod ipv4;
mod ipv6;
mod transport;

use crate::field::Field;
use crate::matching::{FieldValue, Match, MatchEntry};
use crate::port::PortNo;

/// The fields of a frame with their values. `Copy`, 656 bytes, no heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameFields {
    values: [u128; 40],
    /// Bit n is set if the field with number n is present.
    present: u64,
}

impl FrameFields {
    /// Reads the fields of an Ethernet frame (without preamble and check sequence).
    ///
    /// `metadata` and `tunnel_id` are present and zero, as for a packet that enters the first table through an ordinary
    /// port. `in_port` is missing until the caller sets it.
    ///
    /// ```
    /// use flow::{Field, frame::FrameFields};
    /// let mut frame = vec![0xff; 6];
    /// frame.extend([0, 0, 0, 0, 0, 1, 0x81, 0x00, 0x60, 0x05, 0x08, 0x06]);
    /// let fields = FrameFields::read(&frame);
    /// assert_eq!(fields.get(Field::VlanVid), Some(0x1005));
    /// assert_eq!(fields.get(Field::VlanPcp), Some(3));
    /// assert_eq!(fields.get(Field::EthType), Some(0x0806));
    /// assert_eq!(fields.get(Field::ArpOp), None);
    /// ```
    pub fn read(frame: &[u8]) -> FrameFields {
        let mut fields = FrameFields { values: [0; 40], present: 0 };
        fields.set(Field::Metadata, 0u8);
        fields.set(Field::TunnelId, 0u8);
        // Damage is ignored here: all fields that could be read have been set.
        let _ = ethernet::read(frame, &mut fields);
        fields
    }

    /// The same fields with this input port.
    pub fn from_port(mut self, in_port: PortNo) -> FrameFields {
        self.set(Field::InPort, in_port);
        self
    }

    /// The value of a field, or `None` if the frame does not have it.
    pub fn get(&self, field: Field) -> Option<u128> {
        self.has(field).then(|| self.values[usize::from(field.number())])
    }

    /// Whether the frame has the field.
    pub fn has(&self, field: Field) -> bool {
        self.present >> field.number() & 1 == 1
    }

    /// Sets a field, whether it was present or not. Bits that the field does not have are dropped.
    pub fn set(&mut self, field: Field, value: impl Into<FieldValue>) {
        self.values[usize::from(field.number())] = value.into().0 & field.full_mask();
        self.present |= 1 << field.number();
    }

    /// Removes a field.
    pub fn remove(&mut self, field: Field) {
        self.present &= !(1 << field.number());
        self.values[usize::from(field.number())] = 0;
    }

    /// The present fields with their values, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Field, u128)> + '_ {
        let mut left = self.present;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let number = left.trailing_zeros() as u8;
            left &= left - 1;
            Some((Field::from_number(number)?, self.values[usize::from(number)]))
        })
    }

    /// The match of exactly this packet's fields.
    ///
    /// ```
    /// use flow::{PortNo, frame::FrameFields};
    /// let fields = FrameFields::read(&[0xff; 14]).from_port(PortNo(1));
    /// assert!(fields.to_match().matches(&fields));
    /// ```
    pub fn to_match(&self) -> Match {
        let mut rule = Match::any();
        self.iter().for_each(|(field, value)| rule.set(field, value));
        rule
    }
}

impl Match {
    /// Whether this match matches the packet with these fields.
    ///
    /// A field that the packet lacks does not match, unless its mask is zero. Fields of other classes are unknown, so a
    /// match with one of them matches nothing here.
    ///
    /// ```
    /// use flow::{PortNo, frame::FrameFields, text::parse_match};
    /// let fields = FrameFields::read(&[0xff; 14]).from_port(PortNo(1));
    /// assert!(parse_match("in_port=1,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00").unwrap().matches(&fields));
    /// assert!(!parse_match("in_port=1,ip").unwrap().matches(&fields));
    /// ```
    pub fn matches(&self, fields: &FrameFields) -> bool {
        self.entries().iter().all(|entry| match entry {
            MatchEntry::Field { mask: Some(0), .. } => true,
            MatchEntry::Field { field, value, mask } => fields
                .get(*field)
                .is_some_and(|there| (there ^ value) & mask.unwrap_or(field.full_mask()) == 0),
            MatchEntry::Unknown { .. } => false,
        })
    }
}

/// The bytes of a frame, read from the front. A read beyond the end is damage and ends the parsing.
struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    fn take_u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn take_u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn take_u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn take_u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_be_bytes)
    }

    fn take_address(&mut self) -> Option<crate::mac::MacAddr> {
        self.take().map(crate::mac::MacAddr)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests;
