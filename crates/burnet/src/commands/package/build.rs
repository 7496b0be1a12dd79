//! `burnet app build` and `sign`: make a package from a folder, and sign it.
//!
//! In: the folder with `app.toml`, or a package. Out: the package file. It compiles nothing and runs nothing of the
//! app.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use package::file::NewFile;
use package::manifest::{MANIFEST_BYTES_MAX, MANIFEST_PATH};
use package::path::PackagePath;
use package::signature::Signature;
use package::state::{read_package_file, write_file};
use package::{Manifest, Package, digest};

use super::{asks_in_lines, now, state};
use crate::cli::CommandError;
use crate::cli::package::{AppBuildArgs, AppSignArgs};

fn cannot_be<T>(sentence: String) -> Result<T, CommandError> {
    Err(CommandError::Usage(sentence))
}

/// The output of `burnet app build`.
pub fn build(args: &AppBuildArgs) -> Result<String, CommandError> {
    let path = args.folder.join(MANIFEST_PATH);
    let shown = path.display();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            return cannot_be(format!(
                "{shown} cannot be read ({error}): a package begins with its manifest"
            ));
        }
    };
    if text.len() > MANIFEST_BYTES_MAX {
        return cannot_be(format!("{shown} has more than the {MANIFEST_BYTES_MAX} bytes of a manifest"));
    }
    let manifest = Manifest::parse(&text).or_else(|fault| cannot_be(format!("{shown}, {fault}")))?;
    let package = Package::make(collect(&args.folder, &manifest, text)?)
        .or_else(|damage| cannot_be(format!("{shown}: no package can be built from it: {damage}")))?;
    let out = args.out.clone().unwrap_or_default().join(package.file_name());
    let bytes = package.to_bytes();
    write_file(&absolute(&out)?, &bytes, 0o644)?;
    let asks = manifest.asks();
    let asking = if asks.is_empty() {
        "It requests nothing.\n".to_owned()
    } else {
        format!("It asks to:\n{}", asks_in_lines(&asks, false))
    };
    Ok(format!(
        "{} ({} files, {} bytes, digest {})\n{asking}Sign it: burnet app sign {} --key NAME\n",
        out.display(),
        package.list().files().len(),
        bytes.len(),
        package.digest().prefix(),
        out.display()
    ))
}

fn absolute(path: &Path) -> Result<PathBuf, CommandError> {
    std::path::absolute(path).map_err(|error| CommandError::Usage(format!("{}: {error}", path.display())))
}

/// The files that the manifest names, and the manifest itself.
fn collect(folder: &Path, manifest: &Manifest, text: String) -> Result<Vec<NewFile>, CommandError> {
    let own = PackagePath::try_from(MANIFEST_PATH.to_owned()).map_err(CommandError::Usage)?;
    let mut files = vec![NewFile { path: own, executable: false, bytes: text.into_bytes() }];
    for (path, source) in &manifest.files {
        put(path, &folder.join(source), &mut files)?;
    }
    for path in manifest.entry.values() {
        if !files.iter().any(|file| file.path == *path) {
            put(path, &folder.join(path.as_str()), &mut files)?;
        }
    }
    Ok(files)
}

/// A file, or a folder with its whole content. A path in the manifest may be a link. A link inside a folder is
/// refused, because the manifest does not name it.
fn put(path: &PackagePath, source: &Path, files: &mut Vec<NewFile>) -> Result<(), CommandError> {
    let shown = source.display();
    let unreadable = |error: std::io::Error| {
        CommandError::Usage(format!(
            "{shown} cannot be read ({error}): the package needs it as {path}; build it first"
        ))
    };
    let metadata = fs::metadata(source).map_err(unreadable)?;
    if metadata.is_file() {
        if files.len() > digest::FILES_MAX || metadata.len() > digest::PACKAGE_BYTES_MAX as u64 {
            return cannot_be(format!(
                "{shown} is too much: a package has at most {} files and {} bytes",
                digest::FILES_MAX,
                digest::PACKAGE_BYTES_MAX
            ));
        }
        let executable = metadata.permissions().mode() & 0o111 != 0;
        let bytes = fs::read(source).map_err(unreadable)?;
        files.push(NewFile { path: path.clone(), executable, bytes });
        return Ok(());
    }
    if !metadata.is_dir() {
        return cannot_be(format!("{shown} is neither a file nor a folder, so it cannot be in a package"));
    }
    for entry in fs::read_dir(source).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        let name = entry.file_name().into_string().unwrap_or_default();
        if !kind.is_file() && !kind.is_dir() {
            return cannot_be(format!(
                "{} is not a plain file: packages hold only plain files and folders",
                entry.path().display()
            ));
        }
        let below = path
            .join(&name)
            .map_err(|why| CommandError::Usage(format!("{}: {why}", entry.path().display())))?;
        put(&below, &entry.path(), files)?;
    }
    Ok(())
}

/// The output of `burnet app sign`.
pub fn sign(args: &AppSignArgs) -> Result<String, CommandError> {
    let bytes = read_package_file(&args.file)?;
    let refused =
        |why: String| CommandError::DidNotWork(format!("{} is not signed: {why}", args.file.display()));
    let mut package = Package::read(&bytes).map_err(|damage| refused(damage.to_string()))?;
    let key = state(&args.state)?.private_key(&args.key)?;
    let now = now();
    let expires = args.expires.map(|until| until.from(now));
    if expires.is_some_and(|expires| expires <= now) {
        return cannot_be(format!("the signature would already be expired: choose a time after {now}"));
    }
    let digest = package.digest();
    let signature = Signature::make(&digest, &key, args.role, now, expires);
    package.signatures_mut().add(signature).map_err(refused)?;
    write_file(&absolute(&args.file)?, &package.to_bytes(), 0o644)?;
    let id = key.public().public.id();
    Ok(format!(
        "{} (digest {}) is signed by {} (key {id}) as {}\n",
        args.file.display(),
        digest.prefix(),
        args.key,
        args.role
    ))
}
