//! The service that judges whether packages may start, and go on running.
//!
//! ```text
//!   monitor: trust store, records, the time ──question──> [ this service ] ──words──> monitor: starts, refuses, ends
//!                                       packages' folders ──┘
//! ```
//!
//! In: questions, each with what the monitor read of the state folder, and the files of the packages, which somebody may have made to harm
//! whoever reads them. Out: for each question the words on its packages, so that the monitor knows that somebody judges: while nobody does, it does so
//! itself, by the same code ([`package::vouch`]). It starts and ends nobody, and sees neither keys nor the trust store's file.

use burnet_sdk::{
    App, Commands, FromService, Interests, Level, Settings, ToService, node_verdict, read_monitor,
};
use package::Digest;
use package::state::Looks;
use package::vouch::{Look, Question, judge};
use std::path::Path;
use std::process::ExitCode;

/// The service.
#[derive(Debug, Default)]
pub struct Security {
    looks: Looks,
    /// The operator was told that something cannot be read.
    complained: bool,
}

/// The round of the word that it is there.
const HERE: u64 = 0;

/// Serves a zone until that ends. It is here and not in the node so that its code is built as the service's is.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Security>()
}

impl App for Security {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Security::default())
    }

    fn interests(&self) -> Interests {
        Interests::none()
    }

    fn serves_monitor(&self) -> bool {
        true
    }

    fn on_start(&mut self, out: &mut Commands) {
        out.tell_monitor(&FromService::Vouched { round: HERE, words: Vec::new() });
    }

    fn on_monitor(&mut self, message: &[u8], out: &mut Commands) -> Result<(), String> {
        let ToService::Packages { round, question } = read_monitor(message)? else { return Ok(()) };
        let words = self.judge(&question).and_then(|words| as_words(&words)).unwrap_or_else(|why| {
            self.complain(&why, out);
            // Without a word of it the monitor judges, which is right for whatever this is.
            Vec::new()
        });
        out.tell_monitor(&FromService::Vouched { round, words });
        Ok(())
    }
}

/// In the terms of the monitor, which are spelt the same.
fn as_words(words: &str) -> Result<Vec<node_verdict::Word>, String> {
    serde_json::from_str(words).map_err(|error| error.to_string())
}

impl Security {
    /// From JSON to JSON.
    fn judge(&mut self, question: &str) -> Result<String, String> {
        let question: Question = serde_json::from_str(question).map_err(|error| error.to_string())?;
        let look = |folder: &Path, digest: &Digest| match self.looks.look(folder, digest, question.now) {
            // What is not in its sight may be there: the folder of all packages may be another one than when its zone was made.
            Look::Gone => Look::Unseen(format!("the service security does not see {}", folder.display())),
            look => look,
        };
        let words = judge(&question, look);
        serde_json::to_string(&words).map_err(|error| error.to_string())
    }

    /// Once: it would be the same again and again.
    fn complain(&mut self, why: &str, out: &mut Commands) {
        if !std::mem::replace(&mut self.complained, true) {
            let text =
                format!("what is asked about packages cannot be read, so the monitor judges them: {why}");
            out.log(Level::Error, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(question: &str, expected: Result<&str, &str>) {
        match (Security::default().judge(question), expected) {
            (Ok(words), Ok(expected)) => assert!(words.starts_with(expected), "{words}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (got, expected) => panic!("{question}: {got:?} and not {expected:?}"),
        }
    }

    fn asked(packages: &str) -> String {
        format!(
            r#"{{"now":"2026-11-22T00:00:00Z","require":"developer","trust":{{"Ok":""}},"packages":[{packages}]}}"#
        )
    }

    const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn package(record: &str) -> String {
        let record = record.replace('D', DIGEST);
        format!(
            r#"{{"zone":3,"check":9,"folder":"/nowhere","digest":"{DIGEST}","granted":[],"trusted":false,"record":{record}}}"#
        )
    }

    #[test]
    fn what_cannot_be_read_has_no_word() {
        check("", Err("EOF"));
        check("{}", Err("missing field"));
        check(&asked("").replace("2026", "when"), Err("is no time"));
        check(&asked(&package("{}")), Err("expected"));
    }

    #[test]
    fn each_package_has_its_word() {
        check(&asked(""), Ok("[]"));
        let gone = r#"[{"zone":3,"check":9,"says":{"refused":"is not installed any more"}}]"#;
        check(&asked(&package(r#"{"Ok":null}"#)), Ok(gone));
        let unseen =
            r#"[{"zone":3,"check":9,"says":{"unknown":"the service security does not see /nowhere"}}]"#;
        check(&asked(&package(r#"{"Ok":{"version":"1.0.0","digest":"D"}}"#)), Ok(unseen));
        let unknown = r#"[{"zone":3,"check":9,"says":{"unknown":"no disk"}}]"#;
        check(&asked(&package(r#"{"Err":"no disk"}"#)), Ok(unknown));
    }
}
