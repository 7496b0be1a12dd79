//! The store's folder, as the node makes it before the service is there.
//!
//! In: a path, a user. Out: a folder that is the user's alone, with what is in it. It opens no file and follows no link.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, lchown};
use std::path::Path;

/// The store's folder within a state folder.
pub const NAME: &str = "store";

/// Makes the folder, if it is not there: its owner's alone.
///
/// # Errors
/// It cannot be made.
pub fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(folder)
}

/// Gives the folder, and what an earlier service left in it, to the user who goes on with it.
///
/// # Errors
/// Something cannot be given away.
pub fn give_to(folder: &Path, user: u32) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        lchown(entry?.path(), Some(user), Some(user))?;
    }
    lchown(folder, Some(user), Some(user))
}
