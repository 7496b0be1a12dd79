//! What must hold for any slices file. The fuzz target calls it with what it finds, and a test of the config crate with what was kept
//! (`corpus/slices_file`).
//!
//! In: any bytes. Out: nothing, or a panic that says what does not hold.

use config::slices::{parse_port, port_name};
use config::{ConfigError, ConfigFile};
use std::path::Path;

/// A file that is refused has a line of its own text. Slices that are read have plans, and names that are read again.
pub fn slices_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match ConfigFile::parse(text, Path::new("fuzz")) {
        Ok(file) => {
            for slice in &file.slices {
                assert!(slice.plan().is_ok(), "{slice:?}");
                for port in &slice.ports {
                    assert_eq!(parse_port(&port_name(port.at)), Ok(port.at));
                }
            }
        }
        Err(ConfigError::InFile { line, reason, .. }) => {
            assert!((1..=text.lines().count() + 1).contains(&line), "line {line}: {reason}");
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason:?}");
        }
        Err(other) => panic!("{other}"),
    }
}
