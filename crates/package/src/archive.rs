//! The tar archive of a package file: exactly one valid form, byte by byte.
//!
//! ```text
//!   entries ──> write ──> bytes        header (512) · content · zeros up to 512 … · 1024 zeros   (POSIX.1-1988 ustar)
//!   bytes ──> read ──> entries, or what is not as `write` would have made it
//! ```
//!
//! Two readers of general tar can read one archive differently. This one accepts one form only. It takes a path and a
//! size from a header, makes the header for such a file, and compares.
//!
//! In: untrusted bytes. Out: slices of them. It opens no file and writes none.

use std::borrow::Cow;
use std::fmt;

/// The unit of a tar archive, in bytes.
pub const BLOCK: usize = 512;

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its path, unchecked.
    pub path: Cow<'a, str>,
    /// Whether it can be executed.
    pub executable: bool,
    /// Its content.
    pub bytes: &'a [u8],
}

/// The fault of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadArchive {
    /// It ends within this entry.
    CutShort(String),
    /// Data follows its end.
    GoesOn,
    /// It does not begin like a tar archive.
    NoTar,
    /// An entry that is not a plain file: its type, and its name.
    NotAFile(&'static str, String),
    /// A header that differs from the one written here.
    OddHeader(String),
    /// The rest of an entry's last block is not zero.
    OddPadding(String),
    /// Too many entries.
    TooMany(usize),
}

impl fmt::Display for BadArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadArchive::CutShort(path) => write!(f, "it is cut short in {path:?}"),
            BadArchive::GoesOn => f.write_str("it has data after its end"),
            BadArchive::NoTar => f.write_str("it is no tar archive"),
            BadArchive::NotAFile(what, path) => {
                write!(f, "{path:?} in it is a {what}; only plain files are allowed")
            }
            BadArchive::OddHeader(path) => {
                write!(f, "the header of {path:?} in it is not as Burnet writes it")
            }
            BadArchive::OddPadding(path) => write!(f, "there is hidden data after {path:?} in it"),
            BadArchive::TooMany(max) => write!(f, "it has more than {max} entries"),
        }
    }
}

impl std::error::Error for BadArchive {}

/// Makes an archive. Paths come from [`crate::PackagePath`], so each fits into a header.
pub fn write<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> Vec<u8> {
    let mut archive = Vec::new();
    for entry in entries {
        // A checked path and the size of a package always have a header.
        archive.extend(header(&entry.path, entry.bytes.len(), entry.executable).unwrap_or([0; BLOCK]));
        archive.extend(entry.bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

/// Reads an archive.
///
/// # Errors
/// The first part that [`write()`] would not have made.
pub fn read(archive: &[u8], entries_max: usize) -> Result<Vec<Entry<'_>>, BadArchive> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut rest = archive;
    loop {
        let last = || entries.last().map(|entry| entry.path.to_string());
        let Some((block, behind)) = rest.split_first_chunk::<BLOCK>() else {
            return Err(last().map_or(BadArchive::NoTar, BadArchive::CutShort));
        };
        if block.iter().all(|byte| *byte == 0) {
            return match behind {
                _ if entries.is_empty() => Err(BadArchive::NoTar),
                end if end.len() < BLOCK => Err(BadArchive::CutShort(last().unwrap_or_default())),
                end if end.len() > BLOCK || end.iter().any(|byte| *byte != 0) => Err(BadArchive::GoesOn),
                _ => Ok(entries),
            };
        }
        if entries.len() == entries_max {
            return Err(BadArchive::TooMany(entries_max));
        }
        let (entry, next) = read_entry(block, behind)?;
        entries.push(entry);
        rest = next;
    }
}

/// What a header says about its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its path, unchecked.
    pub path: String,
    /// The size of its content in bytes.
    pub size: usize,
    /// Whether it can be executed.
    pub executable: bool,
}

/// Reads a header.
///
/// # Errors
/// It is not as [`header`] would have made it.
pub fn read_header(block: &[u8; BLOCK]) -> Result<Head, BadArchive> {
    if block[257..265] != *MAGIC {
        return Err(BadArchive::NoTar);
    }
    let path = path(block);
    if let Some(what) = not_a_file(block[156]) {
        return Err(BadArchive::NotAFile(what, path));
    }
    let size = str::from_utf8(&block[124..135]).ok().and_then(|digits| usize::from_str_radix(digits, 8).ok());
    let executable = block[100..108] == *MODES[1];
    // Any other content of the header, also in unused fields, makes it differ from ours.
    match size.filter(|size| header(&path, *size, executable).is_some_and(|ours| ours == *block)) {
        Some(size) => Ok(Head { path, size, executable }),
        None => Err(BadArchive::OddHeader(path)),
    }
}

fn read_entry<'a>(block: &[u8; BLOCK], behind: &'a [u8]) -> Result<(Entry<'a>, &'a [u8]), BadArchive> {
    let Head { path, size, executable } = read_header(block)?;
    let padding = size.next_multiple_of(BLOCK) - size;
    let parts = behind
        .split_at_checked(size)
        .and_then(|(bytes, after)| Some((bytes, after.split_at_checked(padding)?)));
    let Some((bytes, (padding, next))) = parts else { return Err(BadArchive::CutShort(path)) };
    if padding.iter().any(|byte| *byte != 0) {
        return Err(BadArchive::OddPadding(path));
    }
    Ok((Entry { path: path.into(), executable, bytes }, next))
}

/// "ustar", a zero, and the version "00".
const MAGIC: &[u8; 8] = b"ustar\x0000";

/// The modes of a plain file and of an executable file.
const MODES: [&[u8; 8]; 2] = [b"0000644\0", b"0000755\0"];

/// The name of an entry type; `None` for a plain file.
fn not_a_file(kind: u8) -> Option<&'static str> {
    Some(match kind {
        b'0' => return None,
        b'1' => "hard link",
        b'2' => "symbolic link",
        b'3' | b'4' => "device",
        b'5' => "folder",
        b'6' => "named pipe",
        b'x' | b'g' | b'L' | b'K' => "header of an extended tar archive",
        _ => "thing of an unknown type",
    })
}

/// The path in a header: its prefix and its name.
fn path(block: &[u8]) -> String {
    let text = |field: &[u8]| {
        let bytes = field.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    let (prefix, name) = (text(&block[345..500]), text(&block[..NAME]));
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

/// Longest name and longest prefix of a header.
const NAME: usize = 100;
const PREFIX: usize = 155;

/// The header of a file, without owner and time. `None` if the path does not fit, or the size has more than eleven
/// digits.
pub fn header(path: &str, size: usize, executable: bool) -> Option<[u8; BLOCK]> {
    let (prefix, name) = if path.len() <= NAME { ("", path) } else { cut(path)? };
    let size = format!("{size:011o}");
    if size.len() > 11 {
        return None;
    }
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, MODES[usize::from(executable)]);
    for number in [108, 116, 329, 337] {
        put(number, b"0000000\0");
    }
    put(124, size.as_bytes());
    put(136, b"00000000000\0");
    // The checksum is computed with blanks in its place.
    put(148, b"        ");
    put(156, b"0");
    put(257, MAGIC);
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(block)
}

/// Cuts a long path at the first slash after which the rest is short enough.
fn cut(path: &str) -> Option<(&str, &str)> {
    let (slash, _) = path.match_indices('/').find(|(slash, _)| path.len() - slash - 1 <= NAME)?;
    (slash <= PREFIX).then(|| (&path[..slash], &path[slash + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(path: &'a str, bytes: &'a [u8]) -> Entry<'a> {
        Entry { path: path.into(), executable: path.starts_with("bin"), bytes }
    }

    fn sound() -> Vec<u8> {
        write([entry("app.toml", b"name"), entry("bin/x", &[7; 600])])
    }

    /// `change` damages the archive.
    fn refused(change: impl FnOnce(&mut Vec<u8>), expected: &str) {
        let mut archive = sound();
        change(&mut archive);
        let error = read(&archive, 10).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    /// Writes the checksum as another program would after a change.
    fn sum_again(archive: &mut [u8]) {
        archive[148..156].fill(b' ');
        let sum: u32 = archive[..BLOCK].iter().map(|byte| u32::from(*byte)).sum();
        archive[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }

    #[test]
    fn what_is_no_archive_or_half_of_one_is_refused() {
        refused(|archive| archive.clear(), "no tar archive");
        refused(|archive| archive.truncate(100), "no tar archive");
        refused(|archive| archive.splice(.., [0; 1024]).for_each(drop), "no tar archive");
        refused(|archive| archive[257] = b'x', "no tar archive");
        refused(|archive| archive.truncate(515), "cut short in \"app.toml\"");
        refused(|archive| archive.truncate(2000), "cut short in \"bin/x\"");
        let end = sound().len();
        refused(|archive| archive.truncate(end - 512), "cut short in \"bin/x\"");
        refused(|archive| archive.truncate(end - 1024), "cut short in \"bin/x\"");
        refused(|archive| archive.push(0), "has data after its end");
        refused(|archive| archive.extend([0; 512]), "has data after its end");
        refused(|archive| archive[end - 1] = 1, "has data after its end");
    }

    #[test]
    fn what_is_no_plain_file_is_refused_by_what_it_is() {
        for (kind, what) in [
            (b'1', "hard link"),
            (b'2', "symbolic link"),
            (b'3', "device"),
            (b'5', "folder"),
            (b'6', "named pipe"),
            (b'x', "extended tar"),
            (b'L', "extended tar"),
            (0, "unknown type"),
        ] {
            refused(
                |archive| {
                    archive[156] = kind;
                    sum_again(archive);
                },
                what,
            );
        }
    }

    #[test]
    fn any_bit_of_a_header_that_is_another_is_seen() {
        for at in 0..BLOCK {
            let mut archive = sound();
            archive[at] ^= 1;
            let read = read(&archive, 10);
            assert_ne!(read.ok(), read_sound(), "byte {at}");
        }
        // A time, an owner, a mode and another form of the size, each with the right checksum.
        for (at, byte) in
            [(146, b'1'), (108, b'1'), (265, b'r'), (106, b'5'), (124, b' '), (157, b'x'), (500, 1)]
        {
            refused(
                |archive| {
                    archive[at] = byte;
                    sum_again(archive);
                },
                "the header of \"app.toml\" in it is not as Burnet writes it",
            );
        }
        refused(|archive| archive[600] = 1, "hidden data after \"app.toml\"");
    }

    fn read_sound() -> Option<Vec<Entry<'static>>> {
        const X: [u8; 600] = [7; 600];
        Some(vec![entry("app.toml", b"name"), entry("bin/x", const { &X })])
    }

    #[test]
    fn a_size_beyond_the_archive_or_the_machine_is_refused() {
        refused(
            |archive| {
                archive[124..135].copy_from_slice(b"77777777777");
                sum_again(archive);
            },
            "cut short in \"app.toml\"",
        );
        // The binary form of large sizes in GNU tar.
        refused(
            |archive| {
                archive[124] = 0x80;
                sum_again(archive);
            },
            "not as Burnet writes it",
        );
    }

    #[test]
    fn more_entries_than_may_be_are_refused() {
        assert_eq!(read(&sound(), 1), Err(BadArchive::TooMany(1)));
    }

    #[test]
    fn what_is_written_reads_the_same_however_long_its_paths_are() {
        for first in 1..=90 {
            for second in [1, 50, 68, 90] {
                let path = format!("{}/{}", "a".repeat(first), "b".repeat(second));
                let path = format!("{path}/{}", "c".repeat((158 - path.len().min(157)).clamp(1, 90)));
                let path = &path[..path.len().min(160)];
                let archive = write([entry(path, b"x")]);
                assert_eq!(read(&archive, 1).unwrap(), [entry(path, b"x")], "{path}");
            }
        }
        assert_eq!(read(&sound(), 2).ok(), read_sound());
    }

    #[test]
    fn tar_lists_it() {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let tar = Command::new("tar").arg("-tvf-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut tar) = tar else { return eprintln!("left out: there is no tar on this machine") };
        let long = format!("{}/{}", "a".repeat(80), "b".repeat(79));
        let archive = write([entry("app.toml", b"name"), entry("bin/x", &[7; 600]), entry(&long, b"")]);
        tar.stdin.take().unwrap().write_all(&archive).unwrap();
        let listed = String::from_utf8(tar.wait_with_output().unwrap().stdout).unwrap();
        let names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next_back()).collect();
        assert_eq!(names, ["app.toml", "bin/x", &long], "{listed}");
        assert!(listed.contains("-rwxr-xr-x 0/0             600 1970-01-01"), "{listed}");
    }
}
