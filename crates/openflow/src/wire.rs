//! A cursor for reading untrusted bytes, and one for writing bytes.
//!
//! Reading returns an error at the first missing byte. Writing never fails, since the length of a message is checked
//! once at its end. Neither knows about messages.

use flow::{BadInput, ErrorCode};

use crate::error::{BAD_LEN, Unwritable, bad};

/// Reads numbers in network byte order and knows its offset in the message.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
    /// The error for missing bytes.
    short: ErrorCode,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`, which begin `offset` bytes from the start of the message.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], offset: usize) -> Self {
        Reader { rest: bytes, offset, short: BAD_LEN }
    }

    /// The same, with another error for missing bytes.
    pub(crate) fn with_short(mut self, short: ErrorCode) -> Self {
        self.short = short;
        self
    }

    /// Bytes from the start of the message to the next one.
    #[inline]
    pub(crate) const fn offset(&self) -> usize {
        self.offset
    }

    #[inline]
    pub(crate) const fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[cold]
    fn missing(&self, wanted: usize, field: &'static str) -> BadInput {
        let message = format!("{wanted} bytes are needed and {} are left", self.rest.len());
        bad(self.offset, field, self.short, message)
    }

    /// The next `wanted` bytes.
    #[inline]
    pub(crate) fn take(&mut self, wanted: usize, field: &'static str) -> Result<&'a [u8], BadInput> {
        match self.rest.split_at_checked(wanted) {
            Some((taken, rest)) => {
                self.rest = rest;
                self.offset += wanted;
                Ok(taken)
            }
            None => Err(self.missing(wanted, field)),
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], BadInput> {
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                self.offset += N;
                Ok(*taken)
            }
            None => Err(self.missing(N, field)),
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, BadInput> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, BadInput> {
        self.array(field).map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, BadInput> {
        self.array(field).map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, BadInput> {
        self.array(field).map(u64::from_be_bytes)
    }

    /// Skips padding, whatever its content.
    #[inline]
    pub(crate) fn skip(&mut self, bytes: usize) -> Result<(), BadInput> {
        self.take(bytes, "pad").map(|_| ())
    }

    /// A text in a field of fixed size, up to its first NUL. A byte that is not UTF-8 becomes `?`, so that the text
    /// still fits the field when it is written.
    pub(crate) fn text(&mut self, size: usize, field: &'static str) -> Result<String, BadInput> {
        let bytes = self.take(size, field)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(size);
        let mut text = String::with_capacity(end);
        for chunk in bytes[..end].utf8_chunks() {
            text.push_str(chunk.valid());
            text.extend(chunk.invalid().iter().map(|_| '?'));
        }
        Ok(text)
    }

    /// All remaining bytes.
    #[inline]
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.offset += self.rest.len();
        std::mem::take(&mut self.rest)
    }

    /// A reader of only the next `length` bytes.
    pub(crate) fn part(&mut self, length: usize, field: &'static str) -> Result<Reader<'a>, BadInput> {
        let (offset, short) = (self.offset, self.short);
        Ok(Reader { rest: self.take(length, field)?, offset, short })
    }

    /// A reader of one item of a list. The item has `header` bytes with its 16-bit length at `length_at`. The length
    /// must be at least `header`, so that a list always ends.
    pub(crate) fn item(&mut self, length_at: usize, header: usize) -> Result<Reader<'a>, BadInput> {
        let stated = self.rest.get(length_at..length_at + 2).and_then(|bytes| bytes.try_into().ok());
        let length = usize::from(u16::from_be_bytes(stated.ok_or_else(|| self.missing(header, "length"))?));
        if length < header || length > self.rest.len() {
            let message = format!(
                "length {length} is not from {header} to the {} bytes that are left",
                self.rest.len()
            );
            return Err(bad(self.offset + length_at, "length", self.short, message));
        }
        self.part(length, "length")
    }

    /// Checks that everything has been read; otherwise the length is wrong.
    pub(crate) fn end(self) -> Result<(), BadInput> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let message = format!("{} bytes are left over", self.rest.len());
        Err(bad(self.offset, "length", self.short, message))
    }

    /// Reads items until nothing is left. Each must use at least one byte, as every reader of this crate does.
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Reader<'a>) -> Result<T, BadInput>,
    ) -> Result<Vec<T>, BadInput> {
        let mut items = Vec::new();
        while !self.is_empty() {
            items.push(read(self)?);
        }
        Ok(items)
    }
}

/// Appends numbers in network order.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) out: &'a mut Vec<u8>,
}

/// The place of a 16-bit length that is written later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LengthAt {
    start: usize,
    at: usize,
}

impl Writer<'_> {
    #[inline]
    pub(crate) fn u8(&mut self, number: u8) -> &mut Self {
        self.out.push(number);
        self
    }

    #[inline]
    pub(crate) fn u16(&mut self, number: u16) -> &mut Self {
        self.bytes(&number.to_be_bytes())
    }

    #[inline]
    pub(crate) fn u32(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_be_bytes())
    }

    #[inline]
    pub(crate) fn u64(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_be_bytes())
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    #[inline]
    pub(crate) fn zeros(&mut self, count: usize) -> &mut Self {
        self.out.resize(self.out.len() + count, 0);
        self
    }

    /// Writes a text into a field of `size` bytes, padded with NULs.
    pub(crate) fn text(
        &mut self,
        text: &str,
        size: usize,
        what: &'static str,
    ) -> Result<&mut Self, Unwritable> {
        if text.len() > size {
            return Err(Unwritable::new(what, format!("{} bytes do not fit its {size}", text.len())));
        }
        if text.as_bytes().contains(&0) {
            return Err(Unwritable::new(what, "a NUL would end it early"));
        }
        Ok(self.bytes(text.as_bytes()).zeros(size - text.len()))
    }

    /// Begins a structure with a 16-bit length `before` bytes after its start. The caller writes these bytes next.
    pub(crate) fn length_after(&mut self, before: usize) -> LengthAt {
        LengthAt { start: self.out.len(), at: self.out.len() + before }
    }

    /// Writes zeros up to a multiple of eight from the start of the structure.
    pub(crate) fn pad_to_eight(&mut self, from: LengthAt) -> &mut Self {
        let length = self.out.len() - from.start;
        self.zeros(length.next_multiple_of(8) - length)
    }

    /// Leaves room for the 16-bit length of the data that follows it and `padding` more bytes.
    pub(crate) fn length_of_rest(&mut self, padding: usize) -> LengthAt {
        let at = self.out.len();
        self.zeros(2 + padding);
        LengthAt { start: self.out.len(), at }
    }

    /// Writes the length: all bytes since the start of the structure.
    pub(crate) fn fill_length(&mut self, length: LengthAt) -> Result<(), Unwritable> {
        let bytes = self.out.len() - length.start;
        let Ok(number) = u16::try_from(bytes) else {
            return Err(Unwritable::new("length", format!("{bytes} bytes do not fit a 16-bit length")));
        };
        self.out[length.at..length.at + 2].copy_from_slice(&number.to_be_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_bytes_are_named_with_their_place() {
        let refused = Reader::new(&[1, 2, 3], 8).u32("xid").unwrap_err();
        assert_eq!((refused.offset, refused.field, refused.error), (8, "xid", BAD_LEN));
    }

    #[test]
    fn an_item_of_no_length_is_refused() {
        let mut reader = Reader::new(&[0, 9, 0, 0], 0);
        let refused = reader.item(2, 4).unwrap_err();
        assert_eq!((refused.offset, refused.field), (2, "length"));
        assert!(Reader::new(&[0, 9, 0, 5], 0).item(2, 4).is_err());
        assert!(Reader::new(&[0, 9, 0], 0).item(2, 4).is_err());
    }

    #[test]
    fn a_text_that_is_not_utf_8_still_fits_its_field() {
        let text = Reader::new(&[b'a', 0xff, 0xc3, 0xa9, 0xc3, 0, b'x'], 0).text(7, "name").unwrap();
        assert_eq!(text, "a?é?");
        let mut out = Vec::new();
        Writer { out: &mut out }.text(&text, 7, "name").unwrap();
        assert_eq!(out.len(), 7);
    }

    #[test]
    fn a_text_that_does_not_fit_is_refused() {
        let mut out = Vec::new();
        assert!(Writer { out: &mut out }.text("four", 3, "name").is_err());
        assert!(Writer { out: &mut out }.text("a\0", 3, "name").is_err());
        assert!(out.is_empty());
    }
}
