//! A path within a package.
//!
//! In: text from a manifest or an archive. Out: a path that, joined to a folder, stays in it. It reads no file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The maximum length of a path in bytes. A ustar header has two fields of 155 and 100 bytes, split at a slash. With
/// this limit and [`PART_BYTES_MAX`] there is always a slash to split at.
pub const PATH_BYTES_MAX: usize = 160;

/// The maximum length of a part between slashes, in bytes.
pub const PART_BYTES_MAX: usize = 90;

/// Names that the package format uses.
pub const RESERVED: [&str; 2] = ["package.digests", "package.signatures"];

/// A relative path of plain parts, with `/` between them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PackagePath(String);

impl PackagePath {
    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A path below this one.
    ///
    /// # Errors
    /// The reason why the result is not a valid path.
    pub fn join(&self, below: &str) -> Result<PackagePath, String> {
        PackagePath::try_from(format!("{}/{below}", self.0))
    }
}

impl TryFrom<String> for PackagePath {
    type Error = String;

    fn try_from(text: String) -> Result<PackagePath, String> {
        let why = if text.is_empty() {
            "it is empty"
        } else if text.len() > PATH_BYTES_MAX {
            "it is longer than 160 bytes"
        } else if text.starts_with('/') {
            "it is absolute"
        } else if text.contains('\\') || text.chars().any(char::is_control) {
            "it holds a backslash or a control character"
        } else if text.split('/').any(|part| part == "..") {
            "it leaves the package with .."
        } else if text.split('/').any(|part| part.is_empty() || part == ".") {
            "it has an empty part, or one that is ."
        } else if text.split('/').any(|part| part.len() > PART_BYTES_MAX) {
            "a part of it is longer than 90 bytes"
        } else if RESERVED.contains(&text.as_str()) {
            "the package itself has a file of that name"
        } else {
            return Ok(PackagePath(text));
        };
        let shown: String = text.chars().take(PATH_BYTES_MAX).collect();
        Err(format!("{shown:?} cannot be a path in a package: {why}"))
    }
}

impl From<PackagePath> for String {
    fn from(path: PackagePath) -> String {
        path.0
    }
}

impl fmt::Display for PackagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(), &str>) {
        match (PackagePath::try_from(text.to_owned()), expected) {
            (Ok(path), Ok(())) => assert_eq!(path.as_str(), text),
            (Err(why), Err(words)) => assert!(why.contains(words), "{why}"),
            (got, expected) => panic!("{text}: {got:?}, but expected {expected:?}"),
        }
    }

    #[test]
    fn what_could_leave_a_folder_is_no_path() {
        check("", Err("empty"));
        check("/etc/passwd", Err("absolute"));
        check("../x", Err("leaves the package"));
        check("bin/../../x", Err("leaves the package"));
        check("bin/..", Err("leaves the package"));
        check("./x", Err("one that is ."));
        check("bin//x", Err("empty part"));
        check("bin/", Err("empty part"));
        check("bin\\x", Err("backslash"));
        check("bin/x\0", Err("control"));
        check("bin/x\n", Err("control"));
        check("package.digests", Err("the package itself"));
        check(&"x/".repeat(120), Err("longer than 160"));
        check(&"x".repeat(91), Err("longer than 90"));
    }

    #[test]
    fn what_stays_in_it_is_one() {
        check("app.toml", Ok(()));
        check("bin/x86_64/my-app", Ok(()));
        check("..hidden/a..b", Ok(()));
        check("lib/package.digests", Ok(()));
    }
}
