//! SHA-256 digests, and the list of a package's files by digest.
//!
//! ```text
//!   burnet package 1
//!   1f0a…9c 1024 - app.toml
//!   77b2…01 52428 x bin/x86_64/my-app
//! ```
//!
//! In: the bytes of files, or the text of a list. Out: digests and lists. A list has exactly one form, so the same
//! files have the same digest. It reads no file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::path::{PATH_BYTES_MAX, PackagePath};

/// The maximum number of files of a package.
pub const FILES_MAX: usize = 4096;

/// The maximum size of a package, and so of a file in it, in bytes.
pub const PACKAGE_BYTES_MAX: usize = 128 << 20;

/// The maximum size of a list in bytes: each line at its longest.
pub const LIST_BYTES_MAX: usize = FILES_MAX * (64 + 20 + PATH_BYTES_MAX);

const HEADING: &str = "burnet package 1";

/// A SHA-256 digest; prints as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Its first 12 digits, for display.
    pub fn prefix(&self) -> String {
        hex(&self.0[..6])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Digest, String> {
        from_hex(text)
            .map(Digest)
            .ok_or_else(|| "a digest has 64 hexadecimal digits, in lower case".to_owned())
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Digest, String> {
        text.parse()
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses exactly `N` bytes of lower-case hexadecimal digits.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let small = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(small) {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

/// One file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its path.
    pub path: PackagePath,
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: usize,
    /// Whether it can be executed.
    pub executable: bool,
}

impl FileEntry {
    /// The entry for this file.
    pub fn of(path: PackagePath, bytes: &[u8], executable: bool) -> FileEntry {
        FileEntry { path, digest: Digest::of(bytes), size: bytes.len(), executable }
    }
}

/// All files of a package, by path, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileList(Vec<FileEntry>);

impl FileList {
    /// Makes a sorted list.
    ///
    /// # Errors
    /// A file twice, a file where another has a folder, or more than [`FILES_MAX`].
    pub fn new(mut files: Vec<FileEntry>) -> Result<FileList, String> {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let list = FileList(files);
        list.check().map(|()| list)
    }

    /// The files, by path.
    pub fn files(&self) -> &[FileEntry] {
        &self.0
    }

    /// The digest of the package: of the list as text.
    pub fn digest(&self) -> Digest {
        Digest::of(self.to_string().as_bytes())
    }

    fn check(&self) -> Result<(), String> {
        if self.0.len() > FILES_MAX {
            return Err(format!("{} files are more than the limit of {FILES_MAX}", self.0.len()));
        }
        for pair in self.0.windows(2) {
            let (one, next) = (pair[0].path.as_str(), pair[1].path.as_str());
            if one == next {
                return Err(format!("{one} is in it twice"));
            }
            if one > next {
                return Err(format!("{next} comes after {one}: the list must be sorted by path"));
            }
        }
        self.check_folders()
    }

    /// Refuses a list with a file `a` and a file `a/b`.
    fn check_folders(&self) -> Result<(), String> {
        let is_file = |path: &str| self.0.binary_search_by(|file| file.path.as_str().cmp(path)).is_ok();
        for file in &self.0 {
            let path = file.path.as_str();
            let folders = path.match_indices('/').map(|(slash, _)| &path[..slash]);
            if let Some(both) = folders.into_iter().find(|folder| is_file(folder)) {
                return Err(format!("{both} is in it as a file and as a folder"));
            }
        }
        Ok(())
    }
}

impl fmt::Display for FileList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADING}")?;
        for FileEntry { path, digest, size, executable } in &self.0 {
            writeln!(f, "{digest} {size} {} {path}", if *executable { 'x' } else { '-' })?;
        }
        Ok(())
    }
}

impl FromStr for FileList {
    type Err = String;

    /// Accepts only the form that [`FileList`] prints.
    fn from_str(text: &str) -> Result<FileList, String> {
        let mut lines = text.lines();
        match lines.next() {
            Some(HEADING) => {}
            Some(other) if other.starts_with("burnet package ") => {
                return Err("it was made by a newer Burnet: this one reads version 1".to_owned());
            }
            _ => return Err(format!("it does not begin with `{HEADING}`")),
        }
        // One more than the limit is enough to refuse it.
        let files = lines.take(FILES_MAX + 1).map(listed).collect::<Result<Vec<_>, _>>()?;
        let list = FileList(files);
        list.check()?;
        if list.to_string() != text {
            return Err("it is not in the format of a package list".to_owned());
        }
        Ok(list)
    }
}

fn listed(line: &str) -> Result<FileEntry, String> {
    let shown =
        || format!("{:?} is not a valid line of the list", line.chars().take(100).collect::<String>());
    let mut words = line.splitn(4, ' ');
    let mut word = || words.next().ok_or_else(shown);
    let digest = word()?.parse().map_err(|_| shown())?;
    let size: usize = word()?.parse().map_err(|_| shown())?;
    let executable = match word()? {
        "x" => true,
        "-" => false,
        _ => return Err(shown()),
    };
    let path = PackagePath::try_from(word()?.to_owned())?;
    if size > PACKAGE_BYTES_MAX {
        return Err(format!("{path} has {size} bytes, more than the {PACKAGE_BYTES_MAX} of a package"));
    }
    Ok(FileEntry { path, digest, size, executable })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> FileEntry {
        FileEntry::of(
            PackagePath::try_from(path.to_owned()).unwrap(),
            path.as_bytes(),
            path.starts_with("bin"),
        )
    }

    fn text() -> String {
        FileList::new(vec![file("bin/a"), file("app.toml")]).unwrap().to_string()
    }

    fn refused(text: &str, expected: &str) {
        let why = text.parse::<FileList>().unwrap_err();
        assert!(why.contains(expected), "{why}");
    }

    #[test]
    fn a_list_that_was_tampered_with_is_refused() {
        let whole = text();
        refused("", "does not begin with `burnet package 1`");
        refused("burnet package 2\n", "made by a newer Burnet");
        refused(whole.trim_end(), "not in the format");
        refused(&whole.replace('\n', "\r\n"), "not in the format");
        refused(&whole.replace(" - ", " + "), "is not a valid line of the list");
        refused(&whole.replace(" 8 ", " 08 "), "not in the format");
        refused(&whole.replace(" 8 ", " 134217729 "), "more than the 134217728");
        refused(&whole.replace(" 8 ", " -8 "), "is not a valid line of the list");
        refused(&whole.replace(" 8 ", " 99999999999999999999 "), "is not a valid line of the list");
        refused(&whole.replace("app.toml", "../app.toml"), "leaves the package");
        refused(&whole.replace("app.toml", "zzz"), "the list must be sorted by path");
        refused(&whole.replace("bin/a", "app.toml"), "app.toml is in it twice");
        refused(&whole.replace("bin/a", "app.toml/a"), "as a file and as a folder");
        refused(&whole.to_uppercase(), "does not begin");
        refused(&format!("{whole}\n"), "is not a valid line of the list");
        let many: String = (0..=FILES_MAX).map(|n| format!("{} 0 - {n:05}\n", Digest::of(b""))).collect();
        refused(&format!("{HEADING}\n{many}"), "4097 files are more than the limit of 4096");
    }

    #[test]
    fn a_list_prints_as_it_reads_whatever_the_order_was() {
        let list: FileList = text().parse().unwrap();
        assert_eq!(list.to_string(), text());
        assert_eq!(FileList::new(vec![file("app.toml"), file("bin/a")]).unwrap().digest(), list.digest());
        assert!(FileList::new(vec![file("a"), file("a")]).is_err());
    }

    #[test]
    fn a_digest_is_that_of_the_standard() {
        // FIPS 180-4's example "abc".
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), expected);
        assert_eq!(expected.parse(), Ok(Digest::of(b"abc")));
        assert_eq!(Digest::of(b"abc").prefix(), "ba7816bf8f01");
        assert!(expected.to_uppercase().parse::<Digest>().is_err());
        assert!(expected[1..].parse::<Digest>().is_err());
    }
}
