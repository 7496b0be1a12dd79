//! `[apps]`: which apps come before which, and what becomes of a rule that would shadow one of an app before it.
//!
//! Apps that `order` does not name come behind those that it names. Of these, an app whose lowest granted priority is higher comes first: the
//! operator gave it priorities above the others' for that. An app whose priorities are not bounded comes last. Equal ones stand as they are named.
//!
//! In: what was written, and the apps with their grants. Out: the rank of each. It decides about no rule: the kernel does.

use super::{AppGrant, ConfigError, contradiction};
use monitor_channel::AppSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Reverse;

/// `[apps]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AppsTable {
    /// Names of apps; the first comes before all others. Those that are not named come behind, in the order in which they are named elsewhere.
    pub order: Vec<String>,
    /// What becomes of a rule that would shadow one of an app before its own.
    pub on_overlap: RuleOverlap,
}

/// What becomes of a rule that would shadow one of an app before its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleOverlap {
    /// It is refused, or deleted if it is in the switch already.
    #[default]
    Refuse,
    /// It passes, and the audit log says so.
    Report,
}

impl RuleOverlap {
    /// In the kernel's terms.
    pub fn to_kernel(self) -> kernel::OnOverlap {
        match self {
            RuleOverlap::Refuse => kernel::OnOverlap::Refuse,
            RuleOverlap::Report => kernel::OnOverlap::Report,
        }
    }
}

/// Writes each app's rank into its grant. A name in the order may be of an app that is not here: it can be installed later.
pub(super) fn rank(order: &[String], specs: &mut [AppSpec]) -> Result<(), ConfigError> {
    for (index, name) in order.iter().enumerate() {
        monitor_channel::check_app_name(name)
            .or_else(|error| contradiction(format!("apps.order: {error}")))?;
        if order[..index].contains(name) {
            return contradiction(format!("apps.order names {name} twice: leave one out"));
        }
    }
    let place = |name: &str| order.iter().position(|other| other == name).unwrap_or(usize::MAX);
    let mut places: Vec<usize> = (0..specs.len()).collect();
    places.sort_by_key(|index| specs.get(*index).map(|it| (place(&it.name), Reverse(lowest_priority(it)))));
    for (rank, index) in places.into_iter().enumerate() {
        // A node has far fewer apps.
        let rank = u16::try_from(rank).unwrap_or(u16::MAX);
        if let Some(Value::Object(grant)) = specs.get_mut(index).map(|spec| &mut spec.grant) {
            grant.insert("rank".to_owned(), rank.into());
        }
    }
    Ok(())
}

/// The lowest priority that its rules may have; 0 if nobody bounds them, or it writes none.
fn lowest_priority(spec: &AppSpec) -> u16 {
    // What cannot be read here is refused by whoever needs it.
    let grant = AppGrant::read(spec.grant.clone()).unwrap_or_default();
    grant.capabilities.rule_write.and_then(|rules| rules.priority).map_or(0, |range| range.low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use package::manifest::Capabilities;
    use std::path::Path;

    /// The names of the apps of a file, the first in the order first.
    fn in_order(text: &str) -> Result<Vec<String>, String> {
        let file =
            super::super::ConfigFile::parse(text, Path::new("t")).map_err(|error| error.to_string())?;
        let order = file.order.order.clone();
        let mut specs: Vec<AppSpec> =
            file.apps().into_iter().map(|(name, table)| spec(name, table.capabilities)).collect();
        rank(&order, &mut specs).map_err(|error| error.to_string())?;
        let rank_of = |spec: &AppSpec| AppGrant::read(spec.grant.clone()).unwrap().to_kernel().rank();
        specs.sort_by_key(rank_of);
        Ok(specs.into_iter().map(|spec| spec.name).collect())
    }

    fn spec(name: String, capabilities: Option<Capabilities>) -> AppSpec {
        let capabilities = capabilities.unwrap_or_default();
        let grant = AppGrant { capabilities, ..AppGrant::default() }.to_json();
        let spec = serde_json::json!({ "name": name, "kind": "process", "source": { "built_in": name }, "grant": grant });
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn an_order_that_cannot_be_is_refused() {
        let twice = in_order("[apps]\norder = ['a', 'b', 'a']").unwrap_err();
        assert!(twice.contains("apps.order names a twice"), "{twice}");
        assert!(in_order("[apps]\norder = ['a b']").unwrap_err().contains("apps.order"));
        assert!(in_order("[apps]\non_overlap = 'ask'").unwrap_err().contains("unknown variant"));
    }

    #[test]
    fn apps_stand_as_the_order_says_and_behind_it_as_they_are_named() {
        let check = |text: &str, expected: &[&str]| assert_eq!(in_order(text).unwrap(), expected, "{text}");
        check("[app.b]\n[app.a]\n[app.c]", &["b", "a", "c"]);
        check("[app.b]\n[app.a]\n[app.c]\n[apps]\norder = ['c', 'gone', 'a']", &["c", "a", "b"]);
        let rules = |name: &str, low: u16| {
            format!("[app.{name}.capabilities]\n'rule.write' = {{ priority = [{low}, 65535] }}\n")
        };
        let apps =
            format!("[app.any.capabilities]\n'rule.write' = true\n{}{}", rules("low", 1), rules("high", 9));
        check(&apps, &["high", "low", "any"]);
        check(&format!("{apps}[apps]\norder = ['any']"), &["any", "high", "low"]);
    }
}
