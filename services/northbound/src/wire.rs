//! Numbers in the bodies of statistics replies: big-endian, at an offset.
//!
//! In: bytes of a switch. Out: numbers, or `None` beyond the end. It never panics.

/// One byte.
pub fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Two bytes.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|number| u16::from_be_bytes(*number))
}

/// Four bytes.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|number| u32::from_be_bytes(*number))
}

/// Eight bytes.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|number| u64::from_be_bytes(*number))
}

/// A text that fills its field with zeros.
pub fn text_at(bytes: &[u8], at: usize, len: usize) -> Option<String> {
    let field = bytes.get(at..at + len)?;
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Entries of this length each. A rest that is shorter is left out.
pub fn fixed(body: &[u8], len: usize) -> impl Iterator<Item = &[u8]> {
    body.chunks_exact(len)
}

/// Entries that carry their length at this offset, at least `least` bytes long. It ends at the first damaged one.
pub fn counted(mut body: &[u8], length_at: usize, least: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(body, length_at)?);
        let (entry, rest) = body.split_at_checked(length).filter(|_| length >= least.max(1))?;
        body = rest;
        Some(entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_end_is_nothing() {
        let bytes = [1, 2, 3, 4];
        assert_eq!(
            (u16_at(&bytes, 3), u32_at(&bytes, 1), u64_at(&bytes, 0), u8_at(&bytes, 4)),
            (None, None, None, None)
        );
        assert_eq!(
            (u16_at(&bytes, 2), u32_at(&bytes, 0), text_at(&bytes, 2, 3)),
            (Some(0x0304), Some(0x0102_0304), None)
        );
        assert_eq!(text_at(b"ab\0c", 0, 4).as_deref(), Some("ab"));
    }

    #[test]
    fn entries_end_at_the_first_damaged_one() {
        let lengths = |body: &[u8]| counted(body, 0, 4).map(<[u8]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[0, 4, 0, 0, 0, 5, 0, 0, 0]), [4, 5]);
        assert_eq!(lengths(&[0, 4, 0, 0, 0, 9, 0, 0]), [4]);
        assert!(
            lengths(&[0, 0, 0, 0]).is_empty() && lengths(&[0, 3, 0, 0]).is_empty() && lengths(&[]).is_empty()
        );
        assert_eq!(fixed(&[0; 9], 4).count(), 2);
    }
}
