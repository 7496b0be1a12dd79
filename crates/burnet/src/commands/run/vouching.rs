//! The monitor's questions about the packages of its apps, and its own verification while the service `security` does
//! not run.
//!
//! In: apps. Out: a question, with the present trust store and records, and the verification results for one. The
//! service uses the same code ([`package::vouch`]). It starts and ends no app.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use monitor::{Subject, Vouch};
use package::manifest::AppName;
use package::moment::Moment;
use package::state::{Looks, State};
use package::trust::Require;
use package::vouch::{self, Question};

use super::launches::Launches;
use crate::services;
use config::Config;
use node::now_unix_ms;

/// For a node with a state folder. Without one it has no packages.
pub(super) fn vouch(config: &Config, launches: &Launches) -> Option<Vouch> {
    let folder = config.packages.state.clone().or_else(|| config.node.state.clone())?;
    let (launches, require) = (launches.clone(), config.packages.require);
    let looks = Mutex::new(Looks::default());
    Some(Vouch {
        papers: Arc::new(move |subjects| papers(&folder, require, &launches, subjects)),
        judge: Arc::new(move |question| {
            judge(question, &mut looks.lock().unwrap_or_else(PoisonError::into_inner))
        }),
    })
}

/// An app whose package the node does not know is left out, so it is not approved.
fn papers(folder: &Path, require: Require, launches: &Launches, subjects: &[Subject]) -> String {
    let state = State::at(folder.to_owned());
    let about = |subject: &Subject| {
        let installed = launches.of_app(&subject.app).package?;
        let name = AppName::try_from(subject.app.clone()).ok()?;
        Some(vouch::Subject {
            zone: subject.zone,
            check: subject.check,
            folder: installed.folder,
            digest: installed.digest,
            granted: installed.granted,
            trusted: subject.trusted,
            record: state.record(&name).map_err(|error| error.to_string()),
        })
    };
    let question = Question {
        now: Moment::from_unix_s(now_unix_ms() / 1_000),
        require,
        trust: state.trust_text().map_err(|error| error.to_string()),
        packages: subjects.iter().filter_map(about).collect(),
    };
    // It holds text, numbers and lists, which can always be written.
    serde_json::to_string(&question).unwrap_or_default()
}

/// Our own question can be read. An app that is not in it is not approved.
fn judge(question: &str, looks: &mut Looks) -> Vec<monitor::Word> {
    let Ok(question) = serde_json::from_str::<Question>(question) else { return Vec::new() };
    let words = vouch::judge(&question, |folder, digest| looks.look(folder, digest, question.now));
    words.into_iter().map(services::to_say).collect()
}
