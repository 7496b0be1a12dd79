//! `[apps]`: the app order, and what happens to a rule that would shadow a rule of an app earlier in the order.
//!
//! Apps that `order` does not name come after those that it names. Among them, the app whose lowest granted priority
//! is higher comes first, because the operator placed its priorities above the others'. An app without a bound on
//! priorities comes last. Equal apps keep the order in which they are named. A service that keeps rules for others comes
//! behind the apps that block, and before the apps that forward.
//!
//! In: what was written, and the apps with their grants. Out: the rank of each. It decides about no rule: the kernel
//! does.

use super::{AppGrant, ConfigError, contradiction};
use monitor_channel::{AppRole, AppSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Reverse;

/// The table `[apps]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AppsTable {
    /// Names of apps. The first has precedence over all others. Apps that are not listed follow, in the order in
    /// which they are named elsewhere.
    pub order: Vec<String>,
    /// What happens to a rule that would shadow a rule of an app earlier in the order.
    pub on_overlap: RuleOverlap,
}

/// What happens to a rule that would shadow a rule of an app earlier in the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleOverlap {
    /// It is refused, or deleted if it is already in the switch.
    #[default]
    Refuse,
    /// It is allowed, and the audit log records it.
    Report,
}

impl RuleOverlap {
    /// The same in the kernel's types.
    pub fn to_kernel(self) -> kernel::OnOverlap {
        match self {
            RuleOverlap::Refuse => kernel::OnOverlap::Refuse,
            RuleOverlap::Report => kernel::OnOverlap::Report,
        }
    }
}

/// Writes each app's rank into its grant. The order may name apps that do not exist yet: they can be installed later.
pub(super) fn rank(order: &[String], specs: &mut [AppSpec]) -> Result<(), ConfigError> {
    for (index, name) in order.iter().enumerate() {
        crate::services::check_app_name(name)
            .or_else(|error| contradiction(format!("apps.order: {error}")))?;
        if order[..index].contains(name) {
            return contradiction(format!("apps.order names {name} twice: leave one out"));
        }
    }
    let place = |name: &str| order.iter().position(|other| other == name).unwrap_or(usize::MAX);
    let mut places: Vec<usize> = (0..specs.len()).collect();
    places.sort_by_key(|index| specs.get(*index).map(|it| (place(&it.name), Reverse(lowest_priority(it)))));
    for (rank, index) in places.into_iter().enumerate() {
        // A node has far fewer apps than this number can count.
        let rank = u16::try_from(rank).unwrap_or(u16::MAX);
        if let Some(Value::Object(grant)) = specs.get_mut(index).map(|spec| &mut spec.grant) {
            grant.insert("rank".to_owned(), rank.into());
        }
    }
    Ok(())
}

/// Where a service without a bound on priorities stands: it keeps the rules of intents and routes. These are for particular packets, so
/// they come before apps that forward all packets, and behind services and apps that take packets from 40,000 on.
const OF_SERVICE: u16 = 39_999;

/// The lowest priority that its rules may have. If it is not bounded: 0, and [`OF_SERVICE`] for a service.
fn lowest_priority(spec: &AppSpec) -> u16 {
    // If it cannot be read here, the code that needs it reports the error.
    let grant = AppGrant::read(spec.grant.clone()).unwrap_or_default();
    let unbounded = if spec.role == AppRole::Service { OF_SERVICE } else { 0 };
    grant.capabilities.rule_write.map_or(0, |rules| rules.priority.map_or(unbounded, |range| range.low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use package::manifest::Capabilities;
    use std::path::Path;

    /// The names of the apps of a file, in the app order.
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

    #[test]
    fn a_service_that_keeps_rules_for_others_stands_between_apps_that_block_and_apps_that_forward() {
        let rules = |text: &str| toml::from_str::<Capabilities>(text).unwrap();
        let of = |name: &str, capabilities: &str| spec(name.to_owned(), Some(rules(capabilities)));
        let low = of("forwarding", "'rule.write' = { priority = [10000, 19999] }");
        let mut service = of("flows", "'rule.write' = true");
        service.role = AppRole::Service;
        let high = of("acl", "'rule.write' = { priority = [50000, 52000] }");
        let mut specs = [low, of("any", "'rule.write' = true"), service, high];
        rank(&[], &mut specs).unwrap();
        specs.sort_by_key(|spec| AppGrant::read(spec.grant.clone()).unwrap().to_kernel().rank());
        assert_eq!(specs.map(|spec| spec.name), ["acl", "flows", "forwarding", "any"]);
    }
}
