//! The service `security`: verifies whether packages may start, and may continue to run.
//!
//! ```text
//!   monitor ──question: trust store, records, time──> this service ──verdicts──> monitor: starts, refuses, stops
//!                               folders of packages ──┘
//! ```
//!
//! In: questions, and the files of the packages. A package can be hostile. Out: one verdict for each package. If there is
//! no answer, the monitor verifies the packages itself, with the same code ([`package::verification`]). This service
//! starts and stops nothing. It can read neither keys nor the file of the trust store.

use burnet_sdk::{App, Commands, Interests, Level, Settings, read_monitor};
use package::Digest;
use package::state::FolderCache;
use package::verification::{FolderState, Question, verify};
use security_contract::{PackageVerdict, Packages, READY, Verified};
use std::path::Path;
use std::process::ExitCode;

/// The service, with its cache of verified packages.
#[derive(Debug, Default)]
pub struct Security {
    cache: FolderCache,
    /// An unreadable question has been logged.
    complained: bool,
}

/// Runs the service until its zone ends. It is in this crate so that it is compiled with the options of the service.
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
        out.tell_monitor(&Verified { round: READY, verdicts: Vec::new() });
    }

    fn on_monitor(&mut self, message: &[u8], out: &mut Commands) -> Result<(), String> {
        let Packages { round, question } = read_monitor(message)?;
        let verdicts = self.verify(&question).unwrap_or_else(|why| {
            self.complain(&why, out);
            // The monitor then verifies the packages itself.
            Vec::new()
        });
        out.tell_monitor(&Verified { round, verdicts });
        Ok(())
    }
}

impl Security {
    /// Verifies the packages of a question, which is JSON.
    fn verify(&mut self, question: &str) -> Result<Vec<PackageVerdict>, String> {
        let question: Question = serde_json::from_str(question).map_err(|error| error.to_string())?;
        let look = |folder: &Path, digest: &Digest| match self.cache.check(folder, digest, question.now) {
            // The folder may exist and be invisible to this zone: the packages folder may have moved since the zone was made.
            FolderState::Gone => {
                FolderState::Unreadable(format!("the service security cannot see {}", folder.display()))
            }
            look => look,
        };
        Ok(verify(&question, look))
    }

    /// Logs an unreadable question, once.
    fn complain(&mut self, why: &str, out: &mut Commands) {
        if !std::mem::replace(&mut self.complained, true) {
            let text = format!(
                "the question of the monitor about packages cannot be read, so the monitor verifies them itself: {why}"
            );
            out.log(Level::Error, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(question: &str, expected: Result<&str, &str>) {
        match (Security::default().verify(question), expected) {
            (Ok(verdicts), Ok(expected)) => {
                let verdicts = serde_json::to_string(&verdicts).unwrap();
                assert!(verdicts.starts_with(expected), "{verdicts}");
            }
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
    fn an_unreadable_question_has_no_verdict() {
        check("", Err("EOF"));
        check("{}", Err("missing field"));
        check(&asked("").replace("2026", "when"), Err("is not a time"));
        check(&asked(&package("{}")), Err("expected"));
    }

    #[test]
    fn each_package_has_its_verdict() {
        check(&asked(""), Ok("[]"));
        let gone = r#"[{"zone":3,"check":9,"validity":{"refused":"is no longer installed"}}]"#;
        check(&asked(&package(r#"{"Ok":null}"#)), Ok(gone));
        let unseen =
            r#"[{"zone":3,"check":9,"validity":{"unknown":"the service security cannot see /nowhere"}}]"#;
        check(&asked(&package(r#"{"Ok":{"version":"1.0.0","digest":"D"}}"#)), Ok(unseen));
        let unknown = r#"[{"zone":3,"check":9,"validity":{"unknown":"no disk"}}]"#;
        check(&asked(&package(r#"{"Err":"no disk"}"#)), Ok(unknown));
    }
}
