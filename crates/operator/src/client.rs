//! Sends one question to a running node over its Unix socket, and returns the answer.
//!
//! It never starts a node. If no node is running, the error says so and what to do.

use crate::contract::{Answer, Question};
use crate::place::{check_folder, shared_folder};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long to wait for an answer. It is longer than the node waits for its switches.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same for a reload: slices delete rules from their switches first, and slow switches take long for many.
const PATIENCE_FOR_RELOAD: Duration = Duration::from_secs(60);

/// Asks, and waits for the answer. An error is a sentence for the operator.
pub fn ask(socket: &Path, question: &Question) -> Result<Answer, String> {
    check_place(socket)?;
    let stream = UnixStream::connect(socket).map_err(|error| {
        format!(
            "no node answers at {} ({error}): start one with `burnet run`, or name its socket with --socket PATH",
            socket.display()
        )
    })?;
    let trouble = |error: std::io::Error| format!("the node at {} did not answer: {error}", socket.display());
    let patience = if matches!(question, Question::Reload { .. }) { PATIENCE_FOR_RELOAD } else { PATIENCE };
    stream.set_read_timeout(Some(patience)).map_err(trouble)?;
    let mut line = serde_json::to_string(question).map_err(|error| error.to_string())?;
    line.push('\n');
    (&stream).write_all(line.as_bytes()).map_err(trouble)?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).map_err(trouble)?;
    if answer.is_empty() {
        return Err(format!("the node at {} ended before it answered", socket.display()));
    }
    serde_json::from_str(&answer).map_err(|error| {
        format!("the node at {} has another version than this program: {error}", socket.display())
    })
}

/// The shared folder of a user without a runtime directory can be made by another user, who would then answer in the
/// node's place. A missing folder is harmless. All other folders are the operator's explicit choice.
fn check_place(path: &Path) -> Result<(), String> {
    let shared = shared_folder(rustix::process::geteuid().as_raw());
    match path.parent() {
        Some(folder) if folder == shared && folder.exists() => check_folder(folder),
        _ => Ok(()),
    }
}
