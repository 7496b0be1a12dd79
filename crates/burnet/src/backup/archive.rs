//! The file of a backup: a tar archive that ends with the checksums of all that is before them.
//!
//! ```text
//!   about.toml · FILE · FILE · … · checksums ("SHA-256  PATH" for each) · the end of a tar archive
//! ```
//!
//! In: files one after the other, or an untrusted archive. Out: the other form. It keeps the checksums in memory, but never the content of a
//! file. It decides nothing about paths. `sha256sum -c checksums` checks an unpacked backup.

use package::archive::{BLOCK, Head, header, read_header};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, Read, Write};

/// The last file.
pub const CHECKSUMS: &str = "checksums";

/// The maximum number of files in a backup: 100 packages of the largest number of files, and more than a node keeps. A backup with more is refused.
pub const FILES_MAX: usize = 400_000;

/// The maximum size of the checksums in bytes: a line of 66 bytes and a path for each file.
const CHECKSUMS_BYTES_MAX: usize = FILES_MAX * 330;

/// How many bytes are copied at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Why a backup cannot be used, as a phrase.
#[derive(Debug, PartialEq, Eq)]
pub struct BadBackup(pub String);

impl fmt::Display for BadBackup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for BadBackup {
    fn from(error: io::Error) -> BadBackup {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => BadBackup("it is cut short".to_owned()),
            _ => BadBackup(format!("it cannot be read: {error}")),
        }
    }
}

/// Writes files one after the other.
pub struct Writer<W> {
    to: W,
    checksums: String,
    files: usize,
}

impl<W: Write> Writer<W> {
    /// Begins a backup.
    pub fn new(to: W) -> Writer<W> {
        Writer { to, checksums: String::new(), files: 0 }
    }

    /// How many files it has.
    pub fn files(&self) -> usize {
        self.files
    }

    /// Adds a file of this size.
    ///
    /// # Errors
    /// It cannot be read or written, has another size, or there are too many.
    pub fn add(&mut self, path: &str, executable: bool, size: u64, mut content: impl Read) -> io::Result<()> {
        let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {why}"));
        if self.files == FILES_MAX {
            return Err(refused("there are too many files"));
        }
        let head = usize::try_from(size).ok().and_then(|size| header(path, size, executable));
        self.to.write_all(&head.ok_or_else(|| refused("its path or its content is too long"))?)?;
        let mut hashing = Hashing::new(&mut content);
        let copied = io::copy(&mut (&mut hashing).take(size), &mut self.to)?;
        if copied != size {
            return Err(refused("it became shorter while it was read"));
        }
        self.to.write_all(&[0; BLOCK][..padding(size)])?;
        self.checksums += &format!("{}  {path}\n", hashing.digest());
        self.files += 1;
        Ok(())
    }

    /// Adds the checksums, and the end.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(mut self) -> io::Result<W> {
        let checksums = std::mem::take(&mut self.checksums);
        self.add(CHECKSUMS, false, checksums.len() as u64, checksums.as_bytes())?;
        self.to.write_all(&[0; 2 * BLOCK])?;
        Ok(self.to)
    }
}

/// Reads a backup. `take` gets each file but the checksums. What it does may last only if this returns without an error.
///
/// # Errors
/// The first fault of the archive, or of `take`.
pub fn read(
    mut from: impl Read,
    mut take: impl FnMut(&Head, &mut dyn Read) -> Result<(), BadBackup>,
) -> Result<usize, BadBackup> {
    let (mut checksums, mut files) = (String::new(), 0);
    loop {
        let mut block = [0; BLOCK];
        from.read_exact(&mut block)?;
        let head = read_header(&block).map_err(|fault| BadBackup(fault.to_string()))?;
        if head.path == CHECKSUMS {
            check_end(from, &head, &checksums)?;
            return Ok(files);
        }
        if files == FILES_MAX {
            return Err(BadBackup(format!("it has more than {FILES_MAX} files")));
        }
        let size = head.size as u64;
        let mut content = Hashing::new((&mut from).take(size));
        take(&head, &mut content)?;
        io::copy(&mut content, &mut io::sink())?;
        if content.bytes != size {
            return Err(BadBackup(format!("it is cut short in {:?}", head.path)));
        }
        checksums += &format!("{}  {}\n", content.digest(), head.path);
        files += 1;
        skip_padding(&mut from, &head.path, size)?;
    }
}

/// The last file, and nothing behind it.
fn check_end(mut from: impl Read, head: &Head, computed: &str) -> Result<(), BadBackup> {
    if head.size > CHECKSUMS_BYTES_MAX {
        return Err(BadBackup("its checksums are too long".to_owned()));
    }
    let mut noted = Vec::new();
    (&mut from).take(head.size as u64).read_to_end(&mut noted)?;
    if noted.len() != head.size {
        return Err(BadBackup("it is cut short in its checksums".to_owned()));
    }
    if noted != computed.as_bytes() {
        return Err(BadBackup(first_difference(&String::from_utf8_lossy(&noted), computed)));
    }
    skip_padding(&mut from, CHECKSUMS, head.size as u64)?;
    let mut rest = Vec::new();
    from.take(2 * BLOCK as u64 + 1).read_to_end(&mut rest)?;
    match rest.len() == 2 * BLOCK && rest.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => Err(BadBackup("it does not end as a backup does".to_owned())),
    }
}

fn first_difference(noted: &str, computed: &str) -> String {
    let differs = computed.lines().zip(noted.lines()).find(|(computed, noted)| computed != noted);
    match differs.and_then(|(computed, _)| computed.split_once("  ")) {
        Some((_, path)) => format!("{path:?} in it is damaged: its content does not match its checksum"),
        None => "its checksums do not match its files".to_owned(),
    }
}

fn padding(size: u64) -> usize {
    // Less than a block.
    (size.next_multiple_of(BLOCK as u64) - size) as usize
}

fn skip_padding(mut from: impl Read, path: &str, size: u64) -> Result<(), BadBackup> {
    let mut block = [0; BLOCK];
    let padding = &mut block[..padding(size)];
    from.read_exact(padding)?;
    match padding.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => Err(BadBackup(format!("there is hidden data after {path:?} in it"))),
    }
}

/// Computes the checksum of what is read through it.
struct Hashing<R> {
    from: R,
    sum: Sha256,
    bytes: u64,
}

impl<R: Read> Hashing<R> {
    fn new(from: R) -> Hashing<R> {
        Hashing { from, sum: Sha256::new(), bytes: 0 }
    }

    fn digest(self) -> String {
        self.sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(CHUNK_BYTES);
        let count = self.from.read(&mut buffer[..most])?;
        self.sum.update(&buffer[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        writer.add("about.toml", false, 10, &b"format = 1"[..]).unwrap();
        writer.add("state/apps/a/x", true, 600, &[7; 700][..]).unwrap();
        writer.end().unwrap()
    }

    fn read_all(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, BadBackup> {
        let mut found = Vec::new();
        read(bytes, |head, content| {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            found.push((head.path.clone(), bytes));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn each_bit_that_is_another_is_noticed() {
        let sound = sound();
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << (at % 8);
            assert!(read_all(&bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn what_is_cut_or_goes_on_is_refused() {
        let sound = sound();
        for length in 0..sound.len() {
            assert!(read_all(&sound[..length]).is_err(), "cut to {length}");
        }
        let longer = [&sound[..], &[0]].concat();
        assert_eq!(read_all(&longer), Err(BadBackup("it does not end as a backup does".to_owned())));
    }

    #[test]
    fn a_damaged_file_is_named() {
        let mut bytes = sound();
        bytes[3 * BLOCK + 5] ^= 1;
        let why = read_all(&bytes).unwrap_err().to_string();
        assert_eq!(why, "\"state/apps/a/x\" in it is damaged: its content does not match its checksum");
    }

    #[test]
    fn a_file_that_shrinks_while_it_is_read_ends_the_backup() {
        let mut writer = Writer::new(Vec::new());
        let why = writer.add("x", false, 10, &b"short"[..]).unwrap_err().to_string();
        assert_eq!(why, "x: it became shorter while it was read");
    }

    #[test]
    fn what_is_not_taken_is_checked_too() {
        assert_eq!(read(&sound()[..], |_, _| Ok(())), Ok(2));
        let found = read_all(&sound()).unwrap();
        assert_eq!(found[1], ("state/apps/a/x".to_owned(), vec![7; 600]));
    }
}
