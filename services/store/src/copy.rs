//! The copy of a store for backups: all keys, their apps and their values, as bytes that depend on no database.
//!
//! ```text
//!   "burnet store 1\n"
//!   length of the app's name u16 · length of the key u16 · length of the value u32 · app · key · value     for each key
//!   0xffff u16 · 0 u16 · number of keys u32                                                                 at the end
//! ```
//!
//! All numbers are little-endian. In: keys, or bytes. Out: the other form. It opens no file.

use burnet_sdk::store::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use std::io::{self, Write};

/// The first line. The number is the version of this form.
const HEADING: &[u8] = b"burnet store 1\n";

/// The bytes before each name.
const HEAD_BYTES: usize = 8;

/// The length of an app's name that marks the end. No name is as long.
const END: u16 = u16::MAX;

/// One key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The app that wrote it last.
    pub app: &'a str,
    /// The key.
    pub key: &'a str,
    /// Its value.
    pub value: &'a [u8],
}

/// Writes keys one after the other.
pub struct Writer<W> {
    to: W,
    keys: u32,
}

impl<W: Write> Writer<W> {
    /// Begins a copy.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(mut to: W) -> io::Result<Writer<W>> {
        to.write_all(HEADING)?;
        Ok(Writer { to, keys: 0 })
    }

    /// Adds a key.
    ///
    /// # Errors
    /// It cannot be written, or is longer than a key of the store can be.
    pub fn add(&mut self, Entry { app, key, value }: &Entry<'_>) -> io::Result<()> {
        let too_long = |_| io::Error::new(io::ErrorKind::InvalidData, "a key is longer than the store keeps");
        let [app_bytes, key_bytes] = [app, key].map(|text| u16::try_from(text.len()).map_err(too_long));
        self.to.write_all(&app_bytes?.to_le_bytes())?;
        self.to.write_all(&key_bytes?.to_le_bytes())?;
        self.to.write_all(&u32::try_from(value.len()).map_err(too_long)?.to_le_bytes())?;
        [app.as_bytes(), key.as_bytes(), value].iter().try_for_each(|bytes| self.to.write_all(bytes))?;
        self.keys = self.keys.saturating_add(1);
        Ok(())
    }

    /// Ends the copy.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(mut self) -> io::Result<W> {
        self.to.write_all(&[END.to_le_bytes(), [0; 2]].concat())?;
        self.to.write_all(&self.keys.to_le_bytes())?;
        Ok(self.to)
    }
}

/// Reads a copy.
///
/// # Errors
/// What is wrong with it, as a phrase.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry<'_>>, String> {
    let mut rest =
        bytes.strip_prefix(HEADING).ok_or("it is no copy of a store that this version can read")?;
    let mut entries = Vec::new();
    loop {
        let (head, behind) = rest.split_first_chunk::<HEAD_BYTES>().ok_or("it is cut short")?;
        let [a, b, c, d, value @ ..] = *head;
        let (app, key) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let value = u32::from_le_bytes(value);
        if app == END {
            return match (behind.is_empty(), usize::try_from(value) == Ok(entries.len())) {
                (true, true) => Ok(entries),
                (false, _) => Err("it has data after its end".to_owned()),
                (true, false) => Err(format!("it has {} keys instead of {value}", entries.len())),
            };
        }
        let (entry, behind) = read_entry(app, key, value, behind)?;
        entries.push(entry);
        rest = behind;
    }
}

fn read_entry(app: u16, key: u16, value: u32, bytes: &[u8]) -> Result<(Entry<'_>, &[u8]), String> {
    let value = usize::try_from(value).unwrap_or(usize::MAX);
    if usize::from(key) > KEY_BYTES_MAX || key == 0 || value > VALUE_BYTES_MAX {
        return Err("it has a key or a value with a length that the store does not keep".to_owned());
    }
    let parts = bytes.split_at_checked(app.into()).and_then(|(app, rest)| {
        let (key, rest) = rest.split_at_checked(key.into())?;
        let (value, rest) = rest.split_at_checked(value)?;
        Some((std::str::from_utf8(app).ok()?, std::str::from_utf8(key).ok()?, value, rest))
    });
    let (app, key, value, rest) = parts.ok_or("it is cut short, or a name in it is not UTF-8")?;
    Ok((Entry { app, key, value }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: [Entry<'static>; 3] = [
        Entry { app: "a", key: "a/1", value: b"one" },
        Entry { app: "a", key: "a/2", value: b"" },
        Entry { app: "other", key: "é", value: &[0xff; 300] },
    ];

    fn copy(entries: &[Entry<'_>]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        entries.iter().for_each(|entry| writer.add(entry).unwrap());
        writer.end().unwrap()
    }

    #[test]
    fn a_copy_that_is_cut_or_goes_on_is_refused() {
        let whole = copy(&ENTRIES);
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "cut to {length}");
        }
        assert_eq!(read(&[&whole[..], b"x"].concat()), Err("it has data after its end".to_owned()));
        let short = copy(&ENTRIES[..1]);
        let too_few = [&short[..short.len() - HEAD_BYTES], &whole[whole.len() - HEAD_BYTES..]].concat();
        assert_eq!(read(&too_few), Err("it has 1 keys instead of 3".to_owned()));
        assert!(read(b"burnet store 2\n").is_err());
    }

    #[test]
    fn what_is_copied_reads_the_same() {
        assert_eq!(read(&copy(&[])), Ok(Vec::new()));
        assert_eq!(read(&copy(&ENTRIES)), Ok(ENTRIES.to_vec()));
    }
}
