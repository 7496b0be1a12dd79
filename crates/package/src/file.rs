//! A whole package file: read and checked, or made.
//!
//! ```text
//!   bytes ──> Package::read ──> manifest, files, signatures, digest      (or Damage: what is wrong, by name)
//!   manifest and files ──> Package::make ──> Package ──> to_bytes
//! ```
//!
//! In: bytes that nobody vouches for. Out: a package whose every file is as its list says. Whether its signatures count is `trust`'s
//! to say. It touches no file system.

use std::borrow::Cow;
use std::fmt;

use crate::archive::{self, BadArchive, Entry};
use crate::digest::{Digest, FILES_MAX, FileList, LIST_BYTES_MAX, Listed, PACKAGE_BYTES_MAX};
use crate::manifest::{Kind, MANIFEST_PATH, Manifest};
use crate::path::{PackagePath, RESERVED};
use crate::signature::{SIGNATURES_BYTES_MAX, Signatures};
use crate::toml_text::Fault;

/// The list of files, as an entry.
pub const LIST_PATH: &str = RESERVED[0];

/// The signatures, as an entry.
pub const SIGNATURES_PATH: &str = RESERVED[1];

/// A package that is whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Package<'a> {
    manifest: Manifest,
    list: FileList,
    /// In the list's order.
    contents: Vec<Cow<'a, [u8]>>,
    signatures: Signatures,
}

/// A file that is to go into a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Where in the package.
    pub path: PackagePath,
    /// Whether it can be executed.
    pub executable: bool,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// What is wrong with a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It is larger than a package may be.
    TooLarge(usize),
    /// The archive.
    Archive(BadArchive),
    /// An entry of the package itself is missing, or in another place than it must be.
    Lacks(&'static str),
    /// The list of files.
    List(String),
    /// The signatures.
    Signatures(Fault),
    /// The manifest.
    Manifest(Fault),
    /// Files that differ from the list: the sentence.
    Altered(String),
    /// What the manifest names and the package does not hold: the sentence.
    Entry(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::TooLarge(bytes) => {
                write!(f, "it has {bytes} bytes, more than the {PACKAGE_BYTES_MAX} that a package may have")
            }
            Damage::Archive(error) => error.fmt(f),
            Damage::Lacks(name) => write!(f, "it has no {name} where a package has it"),
            Damage::List(why) => write!(f, "{LIST_PATH} in it cannot be read: {why}"),
            Damage::Signatures(fault) => write!(f, "{SIGNATURES_PATH} in it, {fault}"),
            Damage::Manifest(fault) => write!(f, "{MANIFEST_PATH} in it, {fault}"),
            Damage::Altered(sentence) => write!(f, "it was altered: {sentence}"),
            Damage::Entry(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for Damage {}

impl From<BadArchive> for Damage {
    fn from(error: BadArchive) -> Damage {
        Damage::Archive(error)
    }
}

impl<'a> Package<'a> {
    /// Reads a package file, and checks all of it but the signatures.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(bytes: &'a [u8]) -> Result<Package<'a>, Damage> {
        if bytes.len() > PACKAGE_BYTES_MAX {
            return Err(Damage::TooLarge(bytes.len()));
        }
        let mut entries = archive::read(bytes, FILES_MAX + RESERVED.len())?.into_iter();
        let list: FileList =
            text_of(entries.next(), LIST_PATH, LIST_BYTES_MAX)?.parse().map_err(Damage::List)?;
        let signatures = text_of(entries.next(), SIGNATURES_PATH, SIGNATURES_BYTES_MAX)?;
        let signatures = Signatures::parse(signatures).map_err(Damage::Signatures)?;
        let contents = matched(&list, entries)?;
        Package::assemble(list, contents, signatures)
    }

    /// Makes a package, without signatures.
    ///
    /// # Errors
    /// No manifest among the files, or not a sound one; a file twice; more or larger ones than may be.
    pub fn make(mut files: Vec<NewFile>) -> Result<Package<'static>, Damage> {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let listed = files.iter().map(|file| Listed::of(file.path.clone(), &file.bytes, file.executable));
        let list = FileList::new(listed.collect()).map_err(Damage::List)?;
        let contents = files.into_iter().map(|file| Cow::Owned(file.bytes)).collect();
        let made = Package::assemble(list, contents, Signatures::default())?;
        match made.to_bytes().len() {
            bytes if bytes > PACKAGE_BYTES_MAX => Err(Damage::TooLarge(bytes)),
            _ => Ok(made),
        }
    }

    fn assemble<'b>(
        list: FileList,
        contents: Vec<Cow<'b, [u8]>>,
        signatures: Signatures,
    ) -> Result<Package<'b>, Damage> {
        let place = list.files().iter().position(|file| file.path.as_str() == MANIFEST_PATH);
        let text = place.and_then(|place| contents.get(place)).ok_or(Damage::Lacks(MANIFEST_PATH))?;
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

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its files, by path.
    pub fn list(&self) -> &FileList {
        &self.list
    }

    /// Its files with what is in them.
    pub fn files(&self) -> impl Iterator<Item = (&Listed, &[u8])> {
        self.list.files().iter().zip(self.contents.iter().map(|bytes| bytes.as_ref()))
    }

    /// What names it: the digest of all that is in it but the signatures.
    pub fn digest(&self) -> Digest {
        self.list.digest()
    }

    /// Who signed it.
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// Who signed it, for adding one.
    pub fn signatures_mut(&mut self) -> &mut Signatures {
        &mut self.signatures
    }

    /// What its file is called: `NAME-VERSION.burnet`.
    pub fn file_name(&self) -> String {
        format!("{}-{}.burnet", self.manifest.name, self.manifest.version)
    }
}

/// The manifest in these bytes.
pub(crate) fn manifest_of(bytes: &[u8]) -> Result<Manifest, Damage> {
    let text = str::from_utf8(bytes)
        .map_err(|_| Damage::Manifest(Fault { line: 1, reason: "it is not UTF-8".to_owned() }))?;
    Manifest::parse(text).map_err(Damage::Manifest)
}

/// The text of an entry of the package itself.
fn text_of<'a>(entry: Option<Entry<'a>>, name: &'static str, bytes_max: usize) -> Result<&'a str, Damage> {
    let entry =
        entry.filter(|entry| entry.path == name && !entry.executable && entry.bytes.len() <= bytes_max);
    entry.and_then(|entry| str::from_utf8(entry.bytes).ok()).ok_or(Damage::Lacks(name))
}

/// The files' contents, each of which is as the list says, and no other.
fn matched<'a>(
    list: &FileList,
    mut entries: impl Iterator<Item = Entry<'a>>,
) -> Result<Vec<Cow<'a, [u8]>>, Damage> {
    let altered = |sentence: String| Err(Damage::Altered(sentence));
    let mut contents = Vec::new();
    for file in list.files() {
        let Some(entry) = entries.next() else {
            return altered(format!("{} is in its list and not in it", file.path));
        };
        if entry.path != file.path.as_str() {
            let (path, expected) = (entry.path, &file.path);
            return altered(format!("{path:?} stands where its list has {expected}"));
        }
        compare(file, entry.executable, entry.bytes).map_err(Damage::Altered)?;
        contents.push(Cow::Borrowed(entry.bytes));
    }
    match entries.next() {
        Some(more) => altered(format!("{:?} is in it and not in its list", more.path)),
        None => Ok(contents),
    }
}

/// Whether a file is as the list says; else a sentence.
pub(crate) fn compare(file: &Listed, executable: bool, bytes: &[u8]) -> Result<(), String> {
    if executable != file.executable {
        return Err(format!("{} has another mode than its list says", file.path));
    }
    if bytes.len() != file.size || Digest::of(bytes) != file.digest {
        return Err(format!("{} has another content than its list says", file.path));
    }
    Ok(())
}

fn check_entries(manifest: &Manifest, list: &FileList) -> Result<(), Damage> {
    for (architecture, path) in &manifest.entry {
        let Some(file) = list.files().iter().find(|file| file.path == *path) else {
            return Err(Damage::Entry(format!("its program for {architecture}, {path}, is not in it")));
        };
        if manifest.kind != Kind::SharedObject && !file.executable {
            let sentence = format!(
                "its program for {architecture}, {path}, cannot be executed: chmod +x before building"
            );
            return Err(Damage::Entry(sentence));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
