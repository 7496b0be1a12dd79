//! Verifies installed packages: whether their apps may start, and may continue to run. The service `security` uses it,
//! and the monitor while the service does not answer. Pure.
//!
//! ```text
//!   Question (trust store, records, the time) ──┐
//!   a look at each package's folder ────────────┴──> verify ──> a verdict for each
//! ```
//!
//! In: what the caller read from the state folder, and the state of the packages' folders. Out: a result for each
//! package. It reads no file and no clock, and starts and stops nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use security_contract::{PackageVerdict, Validity};

use crate::digest::Digest;
use crate::install::Record;
use crate::moment::Moment;
use crate::signature::Signatures;
use crate::trust::{Require, TrustStore, require};

/// The maximum length of a reason in bytes. A longer one is cut.
const REASON_BYTES_MAX: usize = 400;

/// The maximum length of the list of lost grants, in bytes.
const NAMES_BYTES_MAX: usize = 60;

/// A request to verify some packages at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The time of the verification.
    pub now: Moment,
    /// The signature that a package needs.
    pub require: Require,
    /// The text of `trust.toml`, or the reason why it cannot be read.
    pub trust: Result<String, String>,
    /// The packages.
    pub packages: Vec<Subject>,
}

/// The package of an app that will start, or runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The number of its app's zone.
    pub zone: u16,
    /// The number of this check. A later check of the same zone makes it obsolete.
    pub check: u64,
    /// The folder of its files.
    pub folder: PathBuf,
    /// Its digest.
    pub digest: Digest,
    /// The names of the requests that the node granted.
    pub granted: BTreeSet<String>,
    /// Whether the app runs inside the kernel's process.
    pub trusted: bool,
    /// The present install record, `None` if the app is not installed, or the reason why it cannot be read.
    pub record: Result<Option<Record>, String>,
}

/// The result of a check of a package's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderState {
    /// It is as signed, with these signatures.
    Intact(Signatures),
    /// It does not exist.
    Gone,
    /// It differs from what was signed: a phrase.
    Altered(String),
    /// The process may not read it: a phrase.
    Unreadable(String),
}

/// Verifies each package of a question. `look` is called once for each folder, with its digest.
pub fn verify(
    question: &Question,
    mut look: impl FnMut(&Path, &Digest) -> FolderState,
) -> Vec<PackageVerdict> {
    let trust = question.trust.as_ref().map_err(Clone::clone).and_then(|text| {
        TrustStore::parse(text).map_err(|fault| format!("trust.toml cannot be read: {fault}"))
    });
    let word = |subject: &Subject| {
        let said = says(subject, question, &trust, &mut look);
        PackageVerdict { zone: subject.zone, check: subject.check, validity: cut(said) }
    };
    question.packages.iter().map(word).collect()
}

fn says(
    subject: &Subject,
    question: &Question,
    trust: &Result<TrustStore, String>,
    look: &mut impl FnMut(&Path, &Digest) -> FolderState,
) -> Validity {
    let record = match &subject.record {
        Ok(Some(record)) => record,
        Ok(None) => return Validity::Refused("is no longer installed".to_owned()),
        Err(why) => return Validity::Unknown(why.clone()),
    };
    let signatures = match look(&subject.folder, &subject.digest) {
        FolderState::Intact(signatures) => signatures,
        FolderState::Gone if record.digest != subject.digest => {
            return Validity::Refused("was updated more than once, and its files were deleted".to_owned());
        }
        FolderState::Gone => return Validity::Refused("has no files: install it again".to_owned()),
        FolderState::Altered(why) => return Validity::Refused(why),
        FolderState::Unreadable(why) => return Validity::Unknown(why),
    };
    let trust = match trust {
        Ok(trust) => trust,
        Err(why) => return Validity::Unknown(why.clone()),
    };
    let checks = trust.checks(&subject.digest, &signatures, question.now);
    if let Err(why) = require(&checks, question.require) {
        return Validity::Refused(why);
    }
    if let Some(lost) = lost(subject, record) {
        return Validity::Refused(format!("is no longer granted {lost}, which it was started with"));
    }
    match record.trusted {
        _ if !subject.trusted => Validity::Good,
        Some(word) if word.digest == subject.digest => Validity::Good,
        _ => Validity::NotTrusted("is no longer trusted by you to run inside the kernel process".to_owned()),
    }
}

/// The grants that the app has but that are not granted now. A record of another version does not count.
fn lost(subject: &Subject, record: &Record) -> Option<String> {
    if record.digest != subject.digest {
        return None;
    }
    let lost: Vec<&str> = subject.granted.difference(&record.granted).map(String::as_str).collect();
    let mut names = lost.join(", ");
    if names.len() > NAMES_BYTES_MAX {
        names.truncate(names.floor_char_boundary(NAMES_BYTES_MAX));
        names.push('…');
    }
    (!lost.is_empty()).then_some(names)
}

fn cut(validity: Validity) -> Validity {
    let cut = |mut why: String| {
        why.truncate(why.floor_char_boundary(REASON_BYTES_MAX));
        why
    };
    match validity {
        Validity::Good => Validity::Good,
        Validity::NotTrusted(why) => Validity::NotTrusted(cut(why)),
        Validity::Refused(why) => Validity::Refused(cut(why)),
        Validity::Unknown(why) => Validity::Unknown(cut(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::TrustDecision;
    use crate::key::PrivateKey;
    use crate::signature::{Role, Signature};

    fn at(seconds: u64) -> Moment {
        Moment::from_unix_s(seconds)
    }

    fn key() -> PrivateKey {
        PrivateKey::from_random("alice".parse().unwrap(), &[7; 32])
    }

    fn digest() -> Digest {
        Digest::of(b"list")
    }

    fn signed(expires: Option<u64>) -> Signatures {
        let mut all = Signatures::default();
        all.add(Signature::make(&digest(), &key(), Role::Developer, at(1), expires.map(at))).unwrap();
        all
    }

    fn record() -> Record {
        Record {
            version: "1.0.0".parse().unwrap(),
            digest: digest(),
            granted: BTreeSet::from(["packet.in".to_owned(), "packet.out".to_owned()]),
            trusted: Some(TrustDecision { digest: digest(), time: at(2) }),
            fall: None,
        }
    }

    /// Alice is trusted until 500 and signed it; what is granted is what it has.
    fn sound() -> Question {
        let mut store = TrustStore::default();
        store.trust(key().public(), Role::Developer, at(1), Some(at(500))).unwrap();
        let subject = Subject {
            zone: 3,
            check: 9,
            folder: PathBuf::from("/f"),
            digest: digest(),
            granted: record().granted,
            trusted: true,
            record: Ok(Some(record())),
        };
        Question {
            now: at(100),
            require: Require::Developer,
            trust: Ok(store.to_text()),
            packages: vec![subject],
        }
    }

    fn said(question: &Question, look: FolderState) -> Validity {
        let words = verify(question, |folder, of| {
            assert_eq!((folder, of), (Path::new("/f"), &digest()));
            look.clone()
        });
        let [verdict] = words.as_slice() else { panic!("{words:?}") };
        assert_eq!((verdict.zone, verdict.check), (3, 9));
        verdict.validity.clone()
    }

    fn check(change: impl FnOnce(&mut Question, &mut FolderState), expected: &str) {
        let (mut question, mut look) = (sound(), FolderState::Intact(signed(None)));
        change(&mut question, &mut look);
        let said = format!("{:?}", said(&question, look));
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn what_cannot_be_read_is_neither_a_yes_nor_a_no() {
        check(|question, _| question.trust = Err("no disk".into()), "Unknown(\"no disk");
        check(
            |question, _| question.trust = Ok("[[key]".into()),
            "Unknown(\"trust.toml cannot be read: line 1",
        );
        check(|question, _| question.packages[0].record = Err("damaged".into()), "Unknown(\"damaged");
        check(|_, look| *look = FolderState::Unreadable("may not".into()), "Unknown(\"may not");
    }

    #[test]
    fn an_altered_package_is_refused_for_every_signer() {
        check(|_, look| *look = FolderState::Altered("was altered".into()), "Refused(\"was altered");
        check(|_, look| *look = FolderState::Gone, "Refused(\"has no files");
        check(
            |question, look| {
                question.trust = Ok("[[key]".into());
                *look = FolderState::Altered("was altered".into());
            },
            "Refused(\"was altered",
        );
        check(|_, look| *look = FolderState::Altered("ä".repeat(1_000)), "Refused(\"ää");
        let Validity::Refused(why) = said(&sound(), FolderState::Altered("ä".repeat(1_000))) else {
            panic!()
        };
        assert_eq!(why.len(), REASON_BYTES_MAX);
    }

    #[test]
    fn who_signed_it_must_be_trusted_now() {
        check(|_, look| *look = FolderState::Intact(Signatures::default()), "Refused(\"is unsigned");
        check(|_, look| *look = FolderState::Intact(signed(Some(100))), "Refused(\"has an expired signature");
        check(|question, _| question.now = at(500), "Refused(\"is signed with an expired key");
        check(
            |question, _| question.trust = Ok(String::new()),
            "Refused(\"has no signature of a trusted key",
        );
        check(
            |question, _| {
                let mut store = TrustStore::parse(question.trust.as_ref().unwrap()).unwrap();
                store.distrust("alice", at(50)).unwrap();
                question.trust = Ok(store.to_text());
            },
            "Refused(\"is signed with a revoked key",
        );
        check(
            |question, _| question.require = Require::Operator,
            "Refused(\"is signed only by its developer",
        );
    }

    #[test]
    fn what_was_taken_away_refuses_the_version_that_it_was_taken_from() {
        let take = |question: &mut Question| {
            let mut record = record();
            record.granted.remove("packet.out");
            question.packages[0].record = Ok(Some(record));
        };
        check(|question, _| take(question), "Refused(\"is no longer granted packet.out,");
        check(
            |question, _| {
                take(question);
                if let Ok(Some(record)) = &mut question.packages[0].record {
                    record.digest = Digest::of(b"newer");
                }
                question.packages[0].trusted = false;
            },
            "Good",
        );
        check(|question, _| question.packages[0].record = Ok(None), "Refused(\"is no longer installed");
        check(|question, _| question.packages[0].granted.clear(), "Good");
    }

    #[test]
    fn a_version_of_before_may_go_on_until_its_files_are_gone() {
        let update = |question: &mut Question| {
            let record = Record { digest: Digest::of(b"newer"), ..record() };
            question.packages[0].record = Ok(Some(record));
        };
        check(|question, _| update(question), "Good");
        check(
            |question, look| {
                update(question);
                *look = FolderState::Gone;
            },
            "Refused(\"was updated more than once",
        );
    }

    #[test]
    fn trusted_is_only_who_has_a_word_for_this_digest() {
        let word = |word: Option<TrustDecision>| {
            move |question: &mut Question, _: &mut FolderState| {
                question.packages[0].record = Ok(Some(Record { trusted: word, ..record() }));
            }
        };
        check(word(None), "NotTrusted(");
        check(word(Some(TrustDecision { digest: Digest::of(b"other"), time: at(2) })), "NotTrusted(");
        check(word(record().trusted), "Good");
        check(
            |question, _| {
                question.packages[0].record = Ok(Some(Record { trusted: None, ..record() }));
                question.packages[0].trusted = false;
            },
            "Good",
        );
    }

    #[test]
    fn a_question_is_read_as_it_was_written() {
        let mut question = sound();
        question.packages[0].record = Err("no".into());
        let text = serde_json::to_string(&question).unwrap();
        assert_eq!(serde_json::from_str::<Question>(&text).unwrap(), question);
    }
}
