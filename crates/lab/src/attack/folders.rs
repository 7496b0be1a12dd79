//! Folders that the attacker may write and another app may read. The attacker plants a link there; the other app must
//! not follow it.
//!
//! ```text
//!   FOLDER/shared ────────── granted to the attacker, to write
//!     in/ or in.txt ──────── granted to the reader, to read; the attacker puts a link to FOLDER/secret in its place
//!   the reader is started anew, and prints what it reads
//! ```
//!
//! All files are in the folder of the trial's own node. It judges nothing.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use monitor::{AppState, Verb};

use super::case::{Case, Family};
use super::looks::{log_of, says};
use super::verdict::{ATTACKER, Evidence};
use crate::own_node::OwnNode;
use operator::client;
use operator::contract::{Answer, Question};

/// The app that reads what it was granted.
const READER: &str = "reader";

/// The content that must not be read.
const SECRET: &str = "the-secret-of-the-operator";

/// The attacker's log line once the link is planted.
const PLANTED: &str = "misbehaving: planted";

fn concerns(case: &Case) -> bool {
    case.family == Family::Folders
}

/// The path that the reader is granted, in the shared folder.
fn granted(case: &Case) -> &'static str {
    if case.name == "planted-file-link" { "in.txt" } else { "in" }
}

/// Makes the folders and the reader.
///
/// # Errors
/// They cannot be made.
pub fn prepare(case: &Case, folder: &Path) -> io::Result<()> {
    if !concerns(case) {
        return Ok(());
    }
    let (shared, secret) = (folder.join("shared"), folder.join("secret"));
    fs::create_dir_all(shared.join("in"))?;
    fs::create_dir_all(&secret)?;
    // The user id of the attacker is not known here.
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777))?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    fs::write(shared.join("in/text.txt"), "nothing secret\n")?;
    fs::write(shared.join("in.txt"), "nothing secret\n")?;
    fs::write(secret.join("text.txt"), format!("{SECRET}\n"))?;
    let file = if granted(case) == "in" { shared.join("in/text.txt") } else { shared.join("in.txt") };
    let program = folder.join("reader.sh");
    let file = file.display();
    fs::write(&program, format!("#!/bin/sh\nread line < {file} && echo \"read: $line\" >&2\nread never\n"))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
}

/// The attacker's folder, and the reader.
pub fn configuration(case: &Case, folder: &Path) -> String {
    if !concerns(case) {
        return String::new();
    }
    let shared = folder.join("shared");
    format!(
        "[app.{ATTACKER}.sandbox]\nfs.write = [\"{0}\"]\n[app.{READER}]\npath = \"{1}\"\n[app.{READER}.capabilities]\n[app.{READER}.sandbox]\nfs.read = [\"{0}/{2}\"]\n",
        shared.display(),
        folder.join("reader.sh").display(),
        granted(case)
    )
}

/// The attacker's settings: the path to replace, and the target of the link.
pub fn settings(case: &Case, folder: &Path) -> String {
    if !concerns(case) {
        return String::new();
    }
    let target = if granted(case) == "in" { folder.join("secret") } else { folder.join("secret/text.txt") };
    let place = folder.join("shared").join(granted(case));
    format!("plant = [\"{}\", \"{}\"]\n", place.display(), target.display())
}

/// Whether the reader has restarted since the link was planted. Also requests the restart.
pub fn has_come(case: &Case, node: &OwnNode) -> bool {
    if !concerns(case) {
        return true;
    }
    if !says(node, PLANTED) {
        return says(node, "misbehaving: not planted");
    }
    let Ok(Answer::Apps(apps)) = client::ask(node.socket(), &Question::Apps) else { return false };
    let Some(reader) = apps.into_iter().find(|app| app.status.app == READER) else { return false };
    if reader.status.last_end.is_some() {
        // It has read again, or it was not started, or it found nothing.
        let reads = log_of(node).matches("reader: read: ").count();
        return reads > 1 || reader.status.state != AppState::Running || reader.status.restarts > 1;
    }
    let _ =
        client::ask(node.socket(), &Question::App { app: READER.to_owned(), verb: Verb::Restart, why: None });
    false
}

/// What the log shows about it.
pub fn look_back(case: &Case, log: &str, seen: &mut Evidence) {
    if concerns(case) {
        seen.planted = log.contains(PLANTED);
        seen.read_outside = log.contains(SECRET);
    }
}
