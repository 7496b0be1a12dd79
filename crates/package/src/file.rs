//! Reads and checks a package file, or makes one.
//!
//! ```text
//!   bytes ──> Package::read ──> manifest, files, signatures, digest      (or PackageFault: what is wrong, by name)
//!   manifest and files ──> Package::make ──> Package ──> to_bytes
//! ```
//!
//! In: untrusted bytes. Out: a package whose files all match its list. `trust` decides whether its signatures count. It
//! touches no file system.

use std::borrow::Cow;
use std::fmt;

use crate::archive::{self, BadArchive, Entry};
use crate::digest::{Digest, FILES_MAX, FileEntry, FileList, LIST_BYTES_MAX, PACKAGE_BYTES_MAX};
use crate::manifest::{Kind, MANIFEST_PATH, Manifest};
use crate::path::{PackagePath, RESERVED};
use crate::signature::{SIGNATURES_BYTES_MAX, Signatures};
use crate::toml_text::Fault;

/// The list of files, as an entry.
pub const LIST_PATH: &str = RESERVED[0];

/// The signatures, as an entry.
pub const SIGNATURES_PATH: &str = RESERVED[1];

/// An intact package.
#[derive(Clone, Debug, PartialEq)]
pub struct Package<'a> {
    manifest: Manifest,
    list: FileList,
    /// In the list's order.
    contents: Vec<Cow<'a, [u8]>>,
    signatures: Signatures,
}

/// A file for a new package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Its path in the package.
    pub path: PackagePath,
    /// Whether it can be executed.
    pub executable: bool,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// The fault of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageFault {
    /// It exceeds the maximum size.
    TooLarge(usize),
    /// A fault of the archive.
    Archive(BadArchive),
    /// An entry of the package format is missing or out of order.
    Lacks(&'static str),
    /// A fault of the list of files.
    List(String),
    /// A fault of the signatures.
    Signatures(Fault),
    /// A fault of the manifest.
    Manifest(Fault),
    /// Files differ from the list. The text says which.
    Altered(String),
    /// A file that the manifest names is missing in the package. The text says which.
    Entry(String),
}

impl fmt::Display for PackageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackageFault::TooLarge(bytes) => {
                write!(f, "it has {bytes} bytes, more than the {PACKAGE_BYTES_MAX} that a package may have")
            }
            PackageFault::Archive(error) => error.fmt(f),
            PackageFault::Lacks(name) => write!(f, "it has no {name} where a package has it"),
            PackageFault::List(why) => write!(f, "{LIST_PATH} in it cannot be read: {why}"),
            PackageFault::Signatures(fault) => write!(f, "{SIGNATURES_PATH} in it, {fault}"),
            PackageFault::Manifest(fault) => write!(f, "{MANIFEST_PATH} in it, {fault}"),
            PackageFault::Altered(sentence) => write!(f, "it was altered: {sentence}"),
            PackageFault::Entry(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for PackageFault {}

impl From<BadArchive> for PackageFault {
    fn from(error: BadArchive) -> PackageFault {
        PackageFault::Archive(error)
    }
}

impl<'a> Package<'a> {
    /// Reads a package file, and checks everything except the signatures.
    ///
    /// # Errors
    /// The first fault.
    pub fn read(bytes: &'a [u8]) -> Result<Package<'a>, PackageFault> {
        if bytes.len() > PACKAGE_BYTES_MAX {
            return Err(PackageFault::TooLarge(bytes.len()));
        }
        let mut entries = archive::read(bytes, FILES_MAX + RESERVED.len())?.into_iter();
        let list: FileList =
            text_of(entries.next(), LIST_PATH, LIST_BYTES_MAX)?.parse().map_err(PackageFault::List)?;
        let signatures = text_of(entries.next(), SIGNATURES_PATH, SIGNATURES_BYTES_MAX)?;
        let signatures = Signatures::parse(signatures).map_err(PackageFault::Signatures)?;
        let contents = matched(&list, entries)?;
        Package::assemble(list, contents, signatures)
    }

    /// Makes a package, without signatures.
    ///
    /// # Errors
    /// The manifest is missing or invalid, a file appears twice, or there are too many or too large files.
    pub fn make(mut files: Vec<NewFile>) -> Result<Package<'static>, PackageFault> {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let listed = files.iter().map(|file| FileEntry::of(file.path.clone(), &file.bytes, file.executable));
        let list = FileList::new(listed.collect()).map_err(PackageFault::List)?;
        let contents = files.into_iter().map(|file| Cow::Owned(file.bytes)).collect();
        let made = Package::assemble(list, contents, Signatures::default())?;
        match made.to_bytes().len() {
            bytes if bytes > PACKAGE_BYTES_MAX => Err(PackageFault::TooLarge(bytes)),
            _ => Ok(made),
        }
    }

    fn assemble<'b>(
        list: FileList,
        contents: Vec<Cow<'b, [u8]>>,
        signatures: Signatures,
    ) -> Result<Package<'b>, PackageFault> {
        let place = list.files().iter().position(|file| file.path.as_str() == MANIFEST_PATH);
        let text = place.and_then(|place| contents.get(place)).ok_or(PackageFault::Lacks(MANIFEST_PATH))?;
        let manifest = manifest_of(text)?;
        check_entries(&manifest, &list)?;
        Ok(Package { manifest, list, contents, signatures })
    }

    /// The package file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (list, signatures) = (self.list.to_string(), self.signatures.to_text());
        let own = |path: &'static str, text| Entry { path: path.into(), executable: false, bytes: text };
        let entries = [own(LIST_PATH, list.as_bytes()), own(SIGNATURES_PATH, signatures.as_bytes())];
        let files = self.files().map(|(file, bytes)| Entry {
            path: file.path.as_str().into(),
            executable: file.executable,
            bytes,
        });
        archive::write(entries.into_iter().chain(files))
    }

    /// Its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its files, by path.
    pub fn list(&self) -> &FileList {
        &self.list
    }

    /// Its files with their contents.
    pub fn files(&self) -> impl Iterator<Item = (&FileEntry, &[u8])> {
        self.list.files().iter().zip(self.contents.iter().map(|bytes| bytes.as_ref()))
    }

    /// Its digest, which covers everything except the signatures and identifies the package.
    pub fn digest(&self) -> Digest {
        self.list.digest()
    }

    /// Its signatures.
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// Its signatures, to add one.
    pub fn signatures_mut(&mut self) -> &mut Signatures {
        &mut self.signatures
    }

    /// The name of its file: `NAME-VERSION.burnet`.
    pub fn file_name(&self) -> String {
        format!("{}-{}.burnet", self.manifest.name, self.manifest.version)
    }
}

/// The manifest in these bytes.
pub(crate) fn manifest_of(bytes: &[u8]) -> Result<Manifest, PackageFault> {
    let text = str::from_utf8(bytes)
        .map_err(|_| PackageFault::Manifest(Fault { line: 1, reason: "it is not UTF-8".to_owned() }))?;
    Manifest::parse(text).map_err(PackageFault::Manifest)
}

/// The text of an entry of the package format.
fn text_of<'a>(
    entry: Option<Entry<'a>>,
    name: &'static str,
    bytes_max: usize,
) -> Result<&'a str, PackageFault> {
    let entry =
        entry.filter(|entry| entry.path == name && !entry.executable && entry.bytes.len() <= bytes_max);
    entry.and_then(|entry| str::from_utf8(entry.bytes).ok()).ok_or(PackageFault::Lacks(name))
}

/// The contents of exactly the files in the list, each checked.
fn matched<'a>(
    list: &FileList,
    mut entries: impl Iterator<Item = Entry<'a>>,
) -> Result<Vec<Cow<'a, [u8]>>, PackageFault> {
    let altered = |sentence: String| Err(PackageFault::Altered(sentence));
    let mut contents = Vec::new();
    for file in list.files() {
        let Some(entry) = entries.next() else {
            return altered(format!("{} is in its list but missing", file.path));
        };
        if entry.path != file.path.as_str() {
            let (path, expected) = (entry.path, &file.path);
            return altered(format!("{path:?} is at the place of {expected} in its list"));
        }
        compare(file, entry.executable, entry.bytes).map_err(PackageFault::Altered)?;
        contents.push(Cow::Borrowed(entry.bytes));
    }
    match entries.next() {
        Some(more) => altered(format!("{:?} is in it but not in its list", more.path)),
        None => Ok(contents),
    }
}

/// Checks a file against its entry in the list. The error is a sentence.
pub(crate) fn compare(file: &FileEntry, executable: bool, bytes: &[u8]) -> Result<(), String> {
    if executable != file.executable {
        return Err(format!("{} has another mode than in its list", file.path));
    }
    if bytes.len() != file.size || Digest::of(bytes) != file.digest {
        return Err(format!("{} has other content than in its list", file.path));
    }
    Ok(())
}

fn check_entries(manifest: &Manifest, list: &FileList) -> Result<(), PackageFault> {
    for (architecture, path) in &manifest.entry {
        let Some(file) = list.files().iter().find(|file| file.path == *path) else {
            return Err(PackageFault::Entry(format!("its program for {architecture}, {path}, is not in it")));
        };
        if manifest.kind != Kind::SharedObject && !file.executable {
            let sentence = format!(
                "its program for {architecture}, {path}, cannot be executed: chmod +x before building"
            );
            return Err(PackageFault::Entry(sentence));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
