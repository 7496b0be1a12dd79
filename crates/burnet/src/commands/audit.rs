//! `burnet audit` and `burnet audit verify`: show and check the audit log. Also adds the records of the operator's
//! own commands.
//!
//! In: arguments, the log's files. Out: lines. It changes no existing line, and needs no running node.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use audit::line::{self, Line};
use audit::log::{Bounds, Log};
use audit::read::{Reader, Unsound, verify as look};
use audit_contract::Record;
use package::manifest::AppName;
use package::moment::Moment;
use package::state::State;
use serde_json::json;

use crate::cli::CommandError;
use crate::cli::audit::{AuditArgs, AuditCommand, AuditShowArgs, AuditVerifyArgs};
use crate::commands::package::state_folder;
use config::AUDIT_FOLDER;
use monitor::legible;
use node::now_unix_ms;

/// How often `--follow` checks for new lines.
const FOLLOW: Duration = Duration::from_millis(200);

/// The kinds of record that report a refusal.
const REFUSALS: [&str; 4] = ["refused", "denied", "switch_refused", "switch_cut_off"];

/// Runs `burnet audit`, with or without a subcommand.
pub fn audit(args: &AuditArgs) -> Result<ExitCode, CommandError> {
    match &args.command {
        Some(AuditCommand::Verify(args)) => verify(args),
        None => show(&args.shown),
    }
}

fn unreadable(folder: &std::path::Path, error: &std::io::Error) -> CommandError {
    let shown = folder.display();
    match error.kind() {
        ErrorKind::NotFound => CommandError::DidNotWork(format!(
            "there is no audit log in {shown}: a node with a state folder writes one; give that folder with --state DIR"
        )),
        _ => CommandError::DidNotWork(format!(
            "the audit log in {shown} cannot be read ({error}); only its owner and root can read it"
        )),
    }
}

fn show(args: &AuditShowArgs) -> Result<ExitCode, CommandError> {
    let folder = state_folder(args.state.state.as_deref())?.join(AUDIT_FOLDER);
    let since_ms = args.since.map_or(0, |since| since.unix_ms(now_unix_ms()));
    let mut reader = Reader::at(folder.clone());
    loop {
        let mut text = String::new();
        let mut printed = Ok(());
        let read = reader.lines(|_, spelt| {
            if let Some(shown) = shown(args, since_ms, spelt) {
                text += &shown;
                text.push('\n');
            }
            if text.len() > 1 << 16 {
                printed = print(&mut text);
            }
            printed.is_ok()
        });
        // Lines that were read before the error are shown too.
        match printed.and_then(|()| print(&mut text)) {
            // If the reader has closed the pipe, that is no error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            printed => printed?,
        }
        match read {
            // A node that starts may be about to create the file, so wait for it.
            Err(error) if args.follow && error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&folder, &error)),
            Ok(()) => {}
        }
        if !args.follow {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(FOLLOW);
    }
}

fn print(text: &mut String) -> std::io::Result<()> {
    let text = std::mem::take(text);
    std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush())
}

/// A line in the form in which it is shown. `None` if a filter excludes it.
fn shown(args: &AuditShowArgs, since_ms: u64, spelt: &str) -> Option<String> {
    match line::read(spelt) {
        // A filter never hides a damaged line, because its content is unknown.
        Err(why) => Some(format!("(an invalid line: {why}; `burnet audit verify` shows which)")),
        Ok(line) if !passes(args, since_ms, &line.record) => None,
        Ok(_) if args.json => Some(spelt.to_owned()),
        Ok(line) => Some(in_words(&line)),
    }
}

fn passes(args: &AuditShowArgs, since_ms: u64, record: &Record) -> bool {
    let app = args.app.as_ref().is_none_or(|app| record.app.as_ref() == Some(app));
    let what = args.what.as_ref().is_none_or(|what| *what == record.what || *what == record.who);
    let refused = !args.refused || REFUSALS.contains(&record.what.as_str());
    app && what && refused && record.unix_ms >= since_ms
}

/// `2026-11-22T08:00:00Z refused app hub rule.write (12 times): …`.
fn in_words(line: &Line) -> String {
    let Record { unix_ms, what, who, app, switch, capability, count, text } = &line.record;
    let time = Moment::from_unix_s(unix_ms / 1_000);
    let word = |word: &Option<String>| word.as_ref().map(|word| format!(" {word}")).unwrap_or_default();
    let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
    let about = [word(app), word(switch), word(capability), times].concat();
    // Records contain text from apps, which must not control the terminal. Its length was limited before.
    format!("{time} {what} by {who}{about}: {}", legible(text, usize::MAX))
}

fn verify(args: &AuditVerifyArgs) -> Result<ExitCode, CommandError> {
    let folder = state_folder(args.state.state.as_deref())?.join(AUDIT_FOLDER);
    let (said, whole) = match look(&folder, args.head) {
        Err(Unsound::Unreadable(error)) => return Err(unreadable(&folder, &error)),
        Err(Unsound::Damaged(damage)) => {
            let spelt =
                json!({ "sound": false, "file": damage.file, "line": damage.line, "what": damage.what });
            (if args.json { spelt.to_string() } else { damage.to_string() }, false)
        }
        Ok(sound) if args.json => {
            let (first, last, head) = (sound.first, sound.head.line, sound.head.hash.to_string());
            (
                json!({ "sound": true, "files": sound.files, "first": first, "last": last, "head": head })
                    .to_string(),
                true,
            )
        }
        Ok(sound) if sound.head.line == 0 => ("the log is empty".to_owned(), true),
        Ok(sound) => {
            let remembered =
                sound.remembered.map(|line| format!("the given hash is the hash of line {line}\n"));
            let unknown = "to detect lines that were removed at the end, give a hash that you stored elsewhere: burnet audit verify --head HASH\n";
            let (first, last, head) = (sound.first, sound.head.line, sound.head.hash);
            let ending = remembered.as_deref().unwrap_or(unknown);
            (format!("lines {first} to {last} are unchanged\n{ending}head: {head}"), true)
        }
    };
    writeln!(std::io::stdout(), "{said}")?;
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Records what a command of the operator has done. If that fails, the effect of the command stays, and the operator
/// gets a message.
pub fn keep(state: &State, what: &str, app: Option<&AppName>, text: impl Into<String>) {
    let uid = rustix::process::getuid().as_raw();
    let now_ms = now_unix_ms();
    let record = Record::new(now_ms, what, "operator", format!("{} (user {uid})", text.into()));
    let record = Record { app: app.map(AppName::to_string), ..record };
    let mut log = Log::at(state.root().join(AUDIT_FOLDER), Bounds::default());
    if let Err(error) = log.append(vec![record], now_ms) {
        eprintln!(
            "burnet: the command was successful, but it could not be written to the audit log: {error}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelt(record: Record) -> String {
        let mut text = String::new();
        line::write(&mut text, 1, None, record, &Default::default());
        text.trim_end().to_owned()
    }

    fn refusal() -> Record {
        let record = Record::new(5_000, "refused", "app", "no\u{1b}[2J").of_app("hub");
        Record { capability: Some("rule.write".into()), count: 12, ..record }
    }

    #[test]
    fn a_record_is_one_line_that_cannot_steer_a_terminal() {
        let shown = shown(&AuditShowArgs::default(), 0, &spelt(refusal())).unwrap();
        assert_eq!(shown, "1970-01-01T00:00:05Z refused by app hub rule.write (12 times): no\\u{1b}[2J");
    }

    fn check(args: AuditShowArgs, since_ms: u64, expected: bool) {
        assert_eq!(shown(&args, since_ms, &spelt(refusal())).is_some(), expected, "{args:?}");
    }

    #[test]
    fn filters_are_taken_together() {
        let args = AuditShowArgs::default;
        check(AuditShowArgs { app: Some("other".into()), ..args() }, 0, false);
        check(AuditShowArgs { app: Some("hub".into()), refused: true, ..args() }, 5_000, true);
        check(AuditShowArgs { app: Some("hub".into()), ..args() }, 5_001, false);
        check(AuditShowArgs { what: Some("ended".into()), ..args() }, 0, false);
        check(AuditShowArgs { what: Some("app".into()), ..args() }, 0, true);
    }

    #[test]
    fn a_line_that_was_tampered_with_passes_every_filter() {
        let args = AuditShowArgs { app: Some("other".into()), ..AuditShowArgs::default() };
        let tampered = spelt(refusal()).replace("hub", "bub");
        assert!(shown(&args, 0, &tampered).unwrap().contains("an invalid line"));
    }
}
