//! Stores the pins of datapath ids to certificates in a file.
//!
//! ```text
//!   file ──open──> Roster ──keep──> writer thread ──> file, replaced atomically
//! ```
//!
//! Each line is `DATAPATH FINGERPRINT`. Only the owner can read the file. It waits for the disk only when the node ends.
//! southbound decides which pins exist.

use flow::DatapathId;
use package::state::write_file;
use southbound::{Fingerprint, PINS_MAX, Roster};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The file, within the folder of the node's records.
const FILE: &str = "pins";

/// Longest file: a line is an id of 19 bytes, a fingerprint of 95 and two more.
const TEXT_BYTES_MAX: usize = PINS_MAX * 117;

/// Stores the pins of a node.
pub struct PinFile {
    writer: Option<(SyncSender<String>, JoinHandle<()>)>,
    /// The version of the pins that the writer has received.
    seen: u64,
}

impl PinFile {
    /// Reads the stored pins into the roster. Without a folder, no pins are stored.
    ///
    /// # Errors
    /// They cannot be read: without them, any certificate could claim a switch's id.
    pub fn open(folder: Option<&Path>, roster: &Roster) -> Result<PinFile, String> {
        let Some(folder) = folder else { return Ok(PinFile { writer: None, seen: 0 }) };
        let path = folder.join(FILE);
        let text = read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        let pins = parse(&text).map_err(|why| {
            format!(
                "{}, {why}: this file assigns certificates to datapath ids; correct or remove the line",
                path.display()
            )
        })?;
        roster.restore_pins(&pins);
        // One version waits while another is written. Later changes are in the next version.
        let (sender, texts) = sync_channel(1);
        let thread = std::thread::Builder::new().name("pins".to_owned());
        let thread = thread
            .spawn(move || write_all(&path, &texts))
            .map_err(|error| format!("the pins of datapath ids cannot be stored: {error}"))?;
        Ok(PinFile { writer: Some((sender, thread)), seen: roster.pinned() })
    }

    /// Sends the pins to the writer if they have changed. If the disk is slow, it sends them again in a later turn.
    pub fn keep(&mut self, roster: &Roster) {
        let pinned = roster.pinned();
        let Some((writer, _)) = &self.writer else { return };
        if pinned != self.seen && writer.try_send(to_text(&roster.pins())).is_ok() {
            self.seen = pinned;
        }
    }

    /// The node ends: waits until all pins are written.
    pub fn finish(&mut self, roster: &Roster) {
        let Some((writer, thread)) = self.writer.take() else { return };
        if roster.pinned() != self.seen {
            // A writer that has ended has logged the reason.
            let _ = writer.send(to_text(&roster.pins()));
        }
        drop(writer);
        if thread.join().is_err() {
            tracing::error!("the pins of datapath ids are not stored: the writer thread panicked");
        }
    }
}

fn write_all(path: &Path, texts: &Receiver<String>) {
    while let Ok(text) = texts.recv() {
        if let Err(error) = write_file(path, text.as_bytes(), 0o600) {
            tracing::error!(
                "the pins of datapath ids cannot be stored and will be lost when the node ends: {error}"
            );
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        file => file?,
    };
    let mut text = String::new();
    // One more byte shows that the file is longer.
    file.take(TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {TEXT_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn parse(text: &str) -> Result<Vec<(DatapathId, Fingerprint)>, String> {
    let mut pins = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |why: String| format!("line {}: {why}", index + 1);
        let (id, print) = line
            .split_once(' ')
            .ok_or_else(|| wrong("expected a datapath id and a fingerprint".to_owned()))?;
        let id: DatapathId = id.parse().map_err(|bad| wrong(format!("{bad}")))?;
        let print: Fingerprint = print.parse().map_err(|bad| wrong(format!("{bad}")))?;
        if pins.insert(id, print).is_some() {
            return Err(wrong(format!("{id} is listed twice")));
        }
    }
    Ok(pins.into_iter().collect())
}

fn to_text(pins: &[(DatapathId, Fingerprint)]) -> String {
    pins.iter().map(|(id, print)| format!("{id} {print}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use southbound::SouthboundConfig;
    use std::os::unix::fs::PermissionsExt;

    fn print(text: &str) -> Fingerprint {
        Fingerprint::of(text.as_bytes())
    }

    fn roster() -> Roster {
        Roster::new(SouthboundConfig::default().caps())
    }

    #[test]
    fn what_is_damaged_is_refused_with_its_line() {
        let good = format!("of:0000000000000001 {}\n", print("a"));
        let check = |text: String, expected: &str| {
            let refused = parse(&text).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        };
        check(format!("{good}x"), "line 2: expected a datapath id and a fingerprint");
        check(format!("{good}{good}"), "line 2: of:0000000000000001 is listed twice");
        check("x y".to_owned(), "line 1: 'x' is not a datapath id");
        check("1 AB".to_owned(), "line 1: 'AB' is not a SHA-256 fingerprint");
        assert_eq!(to_text(&parse(&good).unwrap()), good);
        let longest = to_text(&[(DatapathId(u64::MAX), print("a"))]).len();
        assert!(longest * PINS_MAX <= TEXT_BYTES_MAX);
    }

    #[test]
    fn pins_outlive_the_node_and_nobody_else_can_read_them() {
        let folder = std::env::temp_dir().join(format!("burnet-pins-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let first = roster();
        let mut pins = PinFile::open(Some(&folder), &first).unwrap();
        first.restore_pins(&[(DatapathId(1), print("a")), (DatapathId(2), print("b"))]);
        // A change, so that all pins are written.
        first.forget_pin(DatapathId(2));
        pins.keep(&first);
        pins.finish(&first);
        let mode = std::fs::metadata(folder.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = roster();
        drop(PinFile::open(Some(&folder), &second).unwrap());
        assert_eq!(second.pins(), [(DatapathId(1), print("a"))]);
        std::fs::write(folder.join(FILE), "rubbish").unwrap();
        let refused = PinFile::open(Some(&folder), &roster()).err().unwrap();
        assert!(refused.contains("pins, line 1: expected a datapath id"), "{refused}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
