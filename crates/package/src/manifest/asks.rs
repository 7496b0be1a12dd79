//! The requests of an app as text, and the requests of one version beyond another.
//!
//! In: the tables of two manifests, visited in parallel. Out: [`Ask`]s. Never decides whether something is granted.

/// One request of an app. An operator grants it as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its name for `burnet app grant` and `revoke`.
    pub name: String,
    /// What it allows, including bounds.
    pub words: String,
    /// The reason why it is dangerous, if it is.
    pub danger: Option<String>,
}

/// Something that an app can request.
pub(super) trait Requestable: PartialEq {
    /// What it allows, as text. `name` tells types with several names which one it is.
    fn words(&self, name: &str) -> String;
    /// Whether it allows nothing that `wider` does not allow.
    fn lies_within(&self, wider: &Self) -> bool;
    /// The reason why granting it is dangerous, if it is.
    fn danger(&self, _name: &str) -> Option<&str> {
        None
    }
    /// For a limit: what an app may do if it no longer requests it, because the node's default may be wider. `None` for
    /// capabilities.
    fn without(&self) -> Option<String> {
        None
    }
}

/// Visits every possible request: the present one and the earlier one.
pub(super) trait Visit {
    /// Visits one request.
    fn visit<T: Requestable>(&mut self, name: &str, now: &Option<T>, before: &Option<T>);
}

fn ask<T: Requestable>(name: &str, asked: &T, words: String) -> Ask {
    Ask { name: name.to_owned(), words, danger: asked.danger(name).map(str::to_owned) }
}

/// Collects all present requests.
#[derive(Default)]
pub(super) struct All(pub Vec<Ask>);

impl Visit for All {
    fn visit<T: Requestable>(&mut self, name: &str, now: &Option<T>, _: &Option<T>) {
        self.0.extend(now.as_ref().map(|asked| ask(name, asked, asked.words(name))));
    }
}

/// Collects the requests that are new or have wider bounds.
#[derive(Default)]
pub(super) struct WiderRequests(pub Vec<Ask>);

impl Visit for WiderRequests {
    fn visit<T: Requestable>(&mut self, name: &str, now: &Option<T>, before: &Option<T>) {
        let was = |before: &T| format!(" (before: {})", before.words(name));
        self.0.extend(match (now, before) {
            (None, None) => None,
            (None, Some(before)) => {
                let none =
                    |words: String| Ask { name: name.to_owned(), words: words + &was(before), danger: None };
                before.without().map(none)
            }
            (Some(now), Some(before)) if now.lies_within(before) => None,
            (Some(now), Some(before)) => Some(ask(name, now, now.words(name) + &was(before))),
            (Some(now), None) => Some(ask(name, now, now.words(name))),
        });
    }
}
