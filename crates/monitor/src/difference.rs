//! What a new configuration changes for the running apps. Pure.
//!
//! In: an app as it runs, and as it should run. Out: what changes immediately, what needs a restart of the app, and text for
//! the operator. It starts and stops nothing.

use serde_json::Value;
use zone::Limits;

use crate::app::AppSpec;

/// The differences between the present and the new settings of an app.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Its grant, which changes immediately.
    pub(crate) grant: bool,
    /// Whether of its grant only the place in the order of apps is different.
    pub(crate) only_place: bool,
    /// Limits that the monitor watches, which change immediately.
    pub(crate) watched: bool,
    /// Settings that its process got at its start, by their names in the configuration.
    pub(crate) restart: Vec<&'static str>,
    /// Whether its code or its kind of zone is different.
    pub(crate) code: bool,
}

impl Difference {
    pub(crate) fn of(before: &AppSpec, after: &AppSpec) -> Difference {
        let code = before.source != after.source || before.packaged != after.packaged;
        let parts = [
            ("program", code),
            ("zone", before.kind != after.kind),
            ("limits", built_in(&before.limits) != built_in(&after.limits)),
            ("sandbox", before.sandbox != after.sandbox),
            ("settings", before.settings != after.settings),
            // What is mapped cannot be taken back from a process. More of it comes while the app runs.
            ("shared view", !after.regions.includes(&before.regions)),
        ];
        Difference {
            grant: before.grant != after.grant,
            only_place: before.grant != after.grant
                && without_place(&before.grant) == without_place(&after.grant),
            watched: before.limits != after.limits,
            restart: parts.into_iter().filter(|(_, differs)| *differs).map(|(part, _)| part).collect(),
            code: code || before.kind != after.kind,
        }
    }

    /// The differences as text, if there are any. The place in the order is told by the one who knows all apps.
    pub(crate) fn in_words(&self) -> Option<String> {
        if !self.restart.is_empty() {
            return Some(format!("restarts ({} changed)", self.restart.join(", ")));
        }
        match (self.grant && !self.only_place, self.watched) {
            (true, false) => Some("gets other capabilities or quotas, immediately".to_owned()),
            (true, true) => {
                Some("gets other capabilities or quotas, and other limits, immediately".to_owned())
            }
            (false, true) => Some("gets other limits, immediately".to_owned()),
            (false, false) => None,
        }
    }
}

/// The place of an app in the order of all apps.
pub(crate) fn place_of(spec: &AppSpec) -> Option<u64> {
    spec.grant.get(PLACE)?.as_u64()
}

/// The key in a grant.
const PLACE: &str = "rank";

fn without_place(grant: &Value) -> Value {
    let mut grant = grant.clone();
    if let Value::Object(all) = &mut grant {
        all.remove(PLACE);
    }
    grant
}

/// The limits that a process gets when it starts; the monitor watches the others.
fn built_in(limits: &Limits) -> Limits {
    Limits { soft: Limits::default().soft, lag_ms: None, store_bytes: None, ..limits.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{AppRole, AppSource, Regions, ZoneKind};
    use zone::Sandbox;

    fn spec() -> AppSpec {
        AppSpec {
            zone: None,
            name: "x".to_owned(),
            role: AppRole::App,
            duty: None,
            kind: ZoneKind::Process,
            source: AppSource::BuiltIn("hub".to_owned()),
            limits: Limits::default(),
            sandbox: Sandbox::default(),
            settings: Default::default(),
            grant: Value::Null,
            regions: Default::default(),
            packaged: false,
            paused: false,
            waits: false,
        }
    }

    fn check(change: impl FnOnce(&mut AppSpec), expected: Option<&str>) {
        let (before, mut after) = (spec(), spec());
        change(&mut after);
        assert_eq!(Difference::of(&before, &after).in_words().as_deref(), expected);
    }

    #[test]
    fn what_its_process_was_started_with_needs_a_restart_and_nothing_else_does() {
        check(|_| {}, None);
        check(|after| after.zone = Some(7), None);
        check(|after| after.grant = true.into(), Some("gets other capabilities or quotas, immediately"));
        check(|after| after.limits.lag_ms = Some(1), Some("gets other limits, immediately"));
        check(|after| after.limits.soft.memory_bytes = Some(1), Some("gets other limits, immediately"));
        check(|after| after.limits.memory_bytes = 1, Some("restarts (limits changed)"));
        check(|after| after.sandbox.spawn = true, Some("restarts (sandbox changed)"));
        check(|after| after.regions.reads.push("x".to_owned()), None);
        check(|after| after.regions.writes_bytes = 7, Some("restarts (shared view changed)"));
        check(|after| after.kind = ZoneKind::Trusted, Some("restarts (zone changed)"));
        let other = |after: &mut AppSpec| {
            after.settings.insert("a".to_owned(), 1.into());
            after.source = AppSource::BuiltIn("firewall".to_owned());
        };
        check(other, Some("restarts (program, settings changed)"));
        let before = AppSpec { regions: Regions { writes_bytes: 0, reads: vec!["x".to_owned()] }, ..spec() };
        let withdrawn = Difference::of(&before, &spec()).in_words();
        assert_eq!(withdrawn.as_deref(), Some("restarts (shared view changed)"));
    }
}
