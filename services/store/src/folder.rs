//! Creates the folder of the store, before the service starts.
//!
//! In: a path, a user. Out: a folder that only this user can access, with its content. It opens no file and follows no link.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, lchown};
use std::path::Path;

/// The path of the store's folder within a state folder.
pub const NAME: &str = "store";

/// Creates the folder if it does not exist. Only its owner can access it.
///
/// # Errors
/// The folder cannot be created.
pub fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(folder)
}

/// Gives the folder and its content to this user.
///
/// # Errors
/// The owner cannot be changed.
pub fn give_to(folder: &Path, user: u32) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        lchown(entry?.path(), Some(user), Some(user))?;
    }
    lchown(folder, Some(user), Some(user))
}
