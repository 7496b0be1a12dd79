//! The monitor's questions about the packages of its apps, and its own verification while the service `security` does
//! not run.
//!
//! In: apps. Out: a question, with the present trust store and records, and the verification results for one. The
//! service uses the same code ([`package::verification`]). It starts and ends no app.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use monitor::{AppCheck, PackageChecks};
use package::manifest::AppName;
use package::moment::Moment;
use package::state::{FolderCache, State};
use package::trust::Require;
use package::verification::{self, Question};

use super::launches::Launches;
use config::Config;
use node::now_unix_ms;

/// For a node with a state folder. Without one it has no packages.
pub(super) fn package_checks(config: &Config, launches: &Launches) -> Option<PackageChecks> {
    let folder = config.packages.state.clone().or_else(|| config.node.state.clone())?;
    let (launches, require) = (launches.clone(), config.packages.require);
    let cache = Mutex::new(FolderCache::default());
    Some(PackageChecks {
        collect: Arc::new(move |subjects| collect(&folder, require, &launches, subjects)),
        verify: Arc::new(move |question| {
            verify(question, &mut cache.lock().unwrap_or_else(PoisonError::into_inner))
        }),
    })
}

/// An app whose package the node does not know is left out, so it is not approved.
fn collect(folder: &Path, require: Require, launches: &Launches, subjects: &[AppCheck]) -> String {
    let state = State::at(folder.to_owned());
    let about = |subject: &AppCheck| {
        let installed = launches.of_app(&subject.app).package?;
        let name = AppName::try_from(subject.app.clone()).ok()?;
        Some(verification::Subject {
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
fn verify(question: &str, cache: &mut FolderCache) -> Vec<monitor::PackageVerdict> {
    let Ok(question) = serde_json::from_str::<Question>(question) else { return Vec::new() };
    verification::verify(&question, |folder, digest| cache.check(folder, digest, question.now))
}
