//! The VLAN tag of a frame as bytes: pushed, stripped, read.
//!
//! In: a frame. Out: the frame with or without its outermost tag. It never touches another header.

/// Bytes of a tag: its type, and two bytes with priority and id.
pub(crate) const TAG_LEN: usize = 4;
/// The shortest frame: two addresses and a type.
pub(crate) const FRAME_MIN: usize = 14;
/// The offset of the type.
const TYPE_AT: usize = 12;
/// The EtherType of a customer's tag.
const CUSTOMER: [u8; 2] = [0x81, 0x00];
/// The EtherType of a provider's tag. A switch counts it as a tag, too.
const PROVIDER: [u8; 2] = [0x88, 0xa8];

/// The VLAN id of the outermost tag, or `None` if the frame has no tag.
pub(crate) fn outer_tag(frame: &[u8]) -> Option<u16> {
    let kind = frame.get(TYPE_AT..TYPE_AT + 2)?;
    if kind != CUSTOMER && kind != PROVIDER {
        return None;
    }
    let tci = frame.get(TYPE_AT + 2..)?.first_chunk().map_or(0, |tci| u16::from_be_bytes(*tci));
    Some(tci & 0x0fff)
}

/// The frame with a tag of priority 0 in front of the others.
pub(crate) fn tagged(frame: &[u8], tag: u16) -> Vec<u8> {
    let at = TYPE_AT.min(frame.len());
    let mut with_tag = Vec::with_capacity(frame.len() + TAG_LEN);
    with_tag.extend_from_slice(&frame[..at]);
    with_tag.extend_from_slice(&CUSTOMER);
    with_tag.extend_from_slice(&tag.to_be_bytes());
    with_tag.extend_from_slice(&frame[at..]);
    with_tag
}

/// The frame without its outermost tag. A frame that ends within the tag loses what there is.
pub(crate) fn stripped(frame: &[u8]) -> Vec<u8> {
    let before = frame.get(..TYPE_AT).unwrap_or(frame);
    let behind = frame.get(TYPE_AT + TAG_LEN..).unwrap_or_default();
    [before, behind].concat()
}

/// The EtherType behind all tags.
pub(crate) fn inner_type(frame: &[u8]) -> Option<u16> {
    let mut rest = frame.get(TYPE_AT..)?;
    loop {
        let kind = *rest.first_chunk()?;
        if kind != CUSTOMER && kind != PROVIDER {
            return Some(u16::from_be_bytes(kind));
        }
        rest = rest.get(TAG_LEN..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 16] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0, 5, 6];

    #[test]
    fn a_frame_that_ends_early_is_no_fault() {
        for length in 0..FRAME.len() + TAG_LEN {
            let frame = tagged(&FRAME, 7);
            let cut = &frame[..length];
            let _ = (outer_tag(cut), stripped(cut), inner_type(cut), tagged(cut, 3));
        }
    }

    #[test]
    fn a_tag_that_was_pushed_is_read_and_stripped() {
        let frame = tagged(&FRAME, 7);
        assert_eq!((outer_tag(&frame), outer_tag(&FRAME)), (Some(7), None));
        assert_eq!(stripped(&frame), FRAME);
        assert_eq!(inner_type(&FRAME), Some(0x0800));
        assert_eq!(inner_type(&tagged(&frame, 8)), Some(0x0800));
    }
}
