//! A backup: one file with all of a node that is wanted and kept.
//!
//! ```text
//!   STATE, burnet.toml, a copy of the store ──content──> paths ──archive──> FILE
//!   FILE ──archive──> STATE/restore-MS.draft ──exchange──> STATE, and the state before in STATE/before-restore-MS
//! ```
//!
//! In: a state folder, or a backup. Out: the other of the two. It asks no node and starts none. docs/reference/backup.md describes the file.

pub mod archive;
pub mod content;
pub mod exchange;
pub mod unpack;

use serde::{Deserialize, Serialize};

/// The newest form of a backup. A change that an older `burnet restore` would misunderstand gets the next number.
pub const FORMAT: u32 = 1;

/// The maximum size of the first file of a backup, in bytes.
const ABOUT_BYTES_MAX: usize = 64 << 10;

/// The first file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The form of the backup.
    pub format: u32,
    /// The version of Burnet that made it.
    pub burnet: String,
    /// When it was made, in milliseconds since 1970.
    pub made_unix_ms: u64,
    /// Whether private keys are in it.
    pub private_keys: bool,
}

impl About {
    /// Reads the first file. Unknown keys are ignored, so that an added key needs no new format.
    ///
    /// # Errors
    /// A sentence: it is damaged, or its format is newer.
    pub fn parse(text: &str) -> Result<About, String> {
        #[derive(Deserialize)]
        struct OnlyFormat {
            format: u32,
        }
        let damaged = |error: toml::de::Error| format!("its first file cannot be read: {}", error.message());
        let OnlyFormat { format } = toml::from_str(text).map_err(damaged)?;
        if format == 0 || format > FORMAT {
            return Err(format!(
                "it has format {format}, and this version of Burnet reads up to {FORMAT}: restore it with the version that made it, or with a newer one"
            ));
        }
        toml::from_str(text).map_err(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_or_damaged_backup_is_refused_by_its_first_file() {
        let why = |text: &str| About::parse(text).unwrap_err();
        assert!(
            why("format = 2\nother = 1")
                .contains("it has format 2, and this version of Burnet reads up to 1")
        );
        assert!(why("format = 0").contains("format 0"));
        assert!(why("").contains("missing field `format`"));
        assert!(why("format = 1").contains("missing field `burnet`"));
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let about = About { format: 1, burnet: "0.1.0".to_owned(), made_unix_ms: 7, private_keys: false };
        let text = toml::to_string(&about).unwrap() + "node = 'a'\n";
        assert_eq!(About::parse(&text), Ok(about));
    }
}
