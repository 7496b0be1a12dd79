//! The file with the keys of agents: a line for each, with its number and its key.
//!
//! In: a path. Out: keys by agent, in hexadecimal digits, or the line that is wrong. It never shows a key.

use edge::protocol::Key;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The longest file in bytes: many more agents than there can be.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads the file of this path, which is a text of the configuration.
///
/// # Errors
/// A sentence that names the file.
pub fn read_value(path: &serde_json::Value) -> Result<BTreeMap<u32, String>, String> {
    read(Path::new(path.as_str().ok_or("keys: write the path of a file")?))
}

/// Reads the file.
///
/// # Errors
/// A sentence that names the file, and the line.
pub fn read(path: &Path) -> Result<BTreeMap<u32, String>, String> {
    let of_file = |why: String| format!("keys: {}: {why}", path.display());
    let about = std::fs::metadata(path).map_err(|error| of_file(format!("it cannot be read: {error}")))?;
    if about.permissions().mode() & 0o007 != 0 {
        return Err(of_file("all users of this machine can read or change it: chmod 600".to_owned()));
    }
    if about.len() > FILE_BYTES_MAX {
        return Err(of_file(format!("it is longer than {FILE_BYTES_MAX} bytes")));
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| of_file(format!("it cannot be read: {error}")))?;
    parse(&text).map_err(of_file)
}

/// Reads the text: `NUMBER KEY` in each line. A line that begins with `#` is a comment.
fn parse(text: &str) -> Result<BTreeMap<u32, String>, String> {
    let mut keys = BTreeMap::new();
    for (at, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (number, key) = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [number, key] => (number, key),
            _ => return Err(format!("line {at}: write the number of an agent and its key")),
        };
        let number: u32 =
            number.parse().map_err(|_| format!("line {at}: `{number}` is no number of an agent"))?;
        key.parse::<Key>().map_err(|why| format!("line {at}: {why}"))?;
        if keys.insert(number, key.to_owned()).is_some() {
            return Err(format!("line {at}: agent {number} is there twice"));
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_is_named_without_its_key() {
        let key = "0f".repeat(32);
        let check = |text: &str, expected: &str| assert_eq!(parse(text).unwrap_err(), expected);
        check("1", "line 1: write the number of an agent and its key");
        check(&format!("# agents\n1 {key} x"), "line 2: write the number of an agent and its key");
        check(&format!("one {key}"), "line 1: `one` is no number of an agent");
        check(&format!("\n1 {key}0"), "line 2: a key has 64 hexadecimal digits");
        check(&format!("1 {key}\n1 {key}"), "line 2: agent 1 is there twice");
        let keys = parse(&format!("# agents\n\n 1 {key}\n2\t{key}\n")).unwrap();
        assert_eq!(keys.keys().copied().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_file_that_all_can_read_is_refused() {
        let path = std::env::temp_dir().join(format!("burnet-keys-{}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            read(&path)
        };
        assert!(with_mode(0o644).unwrap_err().ends_with("chmod 600"));
        assert_eq!(with_mode(0o600), Ok(BTreeMap::new()));
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).unwrap_err().contains("it cannot be read"));
    }
}
