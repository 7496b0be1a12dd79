//! A package as a folder: unpacks it from the file, and reads it back with a check of every file.
//!
//! In: an intact package, or an untrusted folder. Out: the folder, or what in it differs from what was signed. It
//! follows no link.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{StateError, make_app_folder, names_in, read_bounded, refused, sync_folder, write_new};
use crate::digest::{Digest, FILES_MAX, FileEntry, FileList, LIST_BYTES_MAX};
use crate::file::{LIST_PATH, Package, SIGNATURES_PATH, compare, manifest_of};
use crate::manifest::{MANIFEST_PATH, Manifest};
use crate::signature::{SIGNATURES_BYTES_MAX, Signatures};

/// The maximum depth of a package's folders: a path of 160 bytes has no more parts.
pub(super) const DEPTH_MAX: usize = 80;

/// An unpacked package on disk that was verified to be as signed.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpacked {
    /// Its folder.
    pub folder: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its signatures.
    pub signatures: Signatures,
}

/// Writes all files of a package into a new folder, and syncs them to disk.
pub(super) fn unpack(package: &Package<'_>, folder: &Path) -> Result<(), StateError> {
    make_app_folder(folder)?;
    let put = |path: &str, bytes: &[u8], executable: bool| {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            make_app_folder(parent)?;
        }
        let mode = if executable { 0o755 } else { 0o644 };
        write_new(&path, bytes, mode).map_err(refused(&path, "written"))
    };
    put(LIST_PATH, package.list().to_string().as_bytes(), false)?;
    put(SIGNATURES_PATH, package.signatures().to_text().as_bytes(), false)?;
    for (file, bytes) in package.files() {
        put(file.path.as_str(), bytes, file.executable)?;
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // Set the mode explicitly, so that the umask does not decide what an app's user can read.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))
            .map_err(refused(&folder, "opened up"))?;
        sync_folder(&folder)?;
        folders.extend(
            names_in(&folder)?.into_iter().map(|name| folder.join(name)).filter(|path| path.is_dir()),
        );
    }
    Ok(())
}

/// Reads an unpacked package, every file of it.
///
/// # Errors
/// The part that differs from what was signed: a phrase.
pub fn read_unpacked(folder: &Path, digest: &Digest) -> Result<Unpacked, String> {
    let altered = |what: String| format!("was altered on disk: {what}; install it again");
    let list = text(&folder.join(LIST_PATH), LIST_BYTES_MAX).map_err(altered)?;
    let list: FileList = list.parse().map_err(|why| altered(format!("{LIST_PATH}: {why}")))?;
    if list.digest() != *digest {
        return Err(altered(format!("{LIST_PATH} is not the installed one")));
    }
    let mut there = Vec::new();
    walk(folder, "", 0, &mut there).map_err(altered)?;
    there.retain(|path| path != LIST_PATH && path != SIGNATURES_PATH);
    let stranger = there.iter().find(|path| !list.files().iter().any(|file| file.path.as_str() == *path));
    if let Some(stranger) = stranger {
        return Err(altered(format!("{stranger} was not installed")));
    }
    let mut manifest = None;
    for file in list.files() {
        let bytes = checked(folder, file).map_err(altered)?;
        if file.path.as_str() == MANIFEST_PATH {
            manifest = Some(manifest_of(&bytes).map_err(|damage| altered(damage.to_string()))?);
        }
    }
    let signatures = text(&folder.join(SIGNATURES_PATH), SIGNATURES_BYTES_MAX).map_err(altered)?;
    let signatures =
        Signatures::parse(&signatures).map_err(|fault| altered(format!("{SIGNATURES_PATH}, {fault}")))?;
    let manifest = manifest.ok_or_else(|| altered(format!("{MANIFEST_PATH} is missing")))?;
    Ok(Unpacked { folder: folder.to_owned(), manifest, signatures })
}

/// The names of all files below a folder; anything that is neither file nor folder is refused.
fn walk(root: &Path, below: &str, depth: usize, found: &mut Vec<String>) -> Result<(), String> {
    let folder = root.join(below);
    for name in names_in(&folder).map_err(|error| error.to_string())? {
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let metadata = root.join(&path).symlink_metadata().map_err(|error| format!("{path}: {error}"))?;
        if metadata.is_dir() && depth < DEPTH_MAX {
            walk(root, &path, depth + 1, found)?;
        } else if metadata.is_file() && found.len() < FILES_MAX + 2 {
            found.push(path);
        } else {
            return Err(format!("{path} is not a plain file, or there are too many files"));
        }
    }
    Ok(())
}

/// A file's bytes, if they are as signed and only the owner can change them.
fn checked(folder: &Path, file: &FileEntry) -> Result<Vec<u8>, String> {
    let path = folder.join(file.path.as_str());
    let metadata = path.symlink_metadata().map_err(|_| format!("{} is missing", file.path))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(format!("{} can be changed by others (mode {mode:04o})", file.path));
    }
    let bytes =
        read_bounded(&path, file.size).map_err(|error| format!("{} cannot be read ({error})", file.path))?;
    let bytes = bytes.ok_or_else(|| format!("{} has other content than in its list", file.path))?;
    compare(file, mode & 0o111 != 0, &bytes)?;
    Ok(bytes)
}

fn text(path: &Path, bytes_max: usize) -> Result<String, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = read_bounded(path, bytes_max).map_err(|error| format!("{name} cannot be read ({error})"))?;
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| format!("{name} has changed since it was installed"))
}
