//! Little-endian numbers, texts and byte strings, written to and read from a buffer.
//!
//! In: values or bytes. Out: the other of the two. A reader never panics: what is missing is an error with its place.

/// Reads from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    length: usize,
}

/// What a damaged question says: what is missing, and where.
pub(crate) fn short(at: usize, what: &str) -> String {
    format!("the question ends at byte {at}, within {what}")
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, length: bytes.len() }
    }

    /// How many bytes were read.
    pub(crate) fn at(&self) -> usize {
        self.length - self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], String> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| short(self.length, what))?;
        self.rest = rest;
        Ok(*array)
    }

    pub(crate) fn u8(&mut self, what: &str) -> Result<u8, String> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self, what: &str) -> Result<u16, String> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, String> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, String> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self, length: usize, what: &str) -> Result<&'a [u8], String> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(|| short(self.length, what))?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self, length: usize, what: &str) -> Result<&'a str, String> {
        let at = self.at();
        let bytes = self.bytes(length, what)?;
        std::str::from_utf8(bytes).map_err(|_| format!("{what} at byte {at} is not UTF-8"))
    }
}
