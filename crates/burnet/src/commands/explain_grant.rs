//! `burnet explain-grant`: what an app can do to whom, in plain words.
//!
//! ```text
//!   what burnet run would read ──> Config ──> the app's grant, the grants and ranks of the others ──> text
//! ```
//!
//! In: the configuration, manifests, installed packages. Out: text. It asks no node and changes nothing.

use crate::apps;
use crate::cli::{CommandError, ExplainGrantArgs, RunArgs};
use config::{AppGrant, Config, Environment};
use kernel::{Bounds, Capability, Grant};
use monitor::AppRole;
use std::fmt::Write;

/// What `burnet explain-grant` prints.
pub fn explain_grant(args: &ExplainGrantArgs) -> Result<String, CommandError> {
    let name = args.app.which.name();
    let run = |apps| RunArgs {
        apps,
        config: args.config.clone(),
        state: args.state.clone(),
        grant_all: args.grant_all,
        ..RunArgs::default()
    };
    let mut named = args.others.clone();
    if !named.iter().any(|other| other.which.name() == name) {
        named.push(args.app.clone());
    }
    let config = Config::load(&run(named), &Environment::of_this_process()?, &apps::WITHIN)?;
    let granted = config.apps.iter().filter(|app| app.role == AppRole::App).map(|app| {
        let mut grant = AppGrant::read(app.grant.clone()).map_err(CommandError::DidNotWork)?;
        package::manifest::resolve(&mut grant.capabilities, &mut grant.quotas, &config.declared)
            .map_err(CommandError::DidNotWork)?;
        Ok((app.name.clone(), grant))
    });
    let granted: Result<Vec<_>, CommandError> = granted.collect();
    Ok(explained(&name, &granted?))
}

/// What the app of this name can do, and how it stands to the others.
fn explained(name: &str, apps: &[(String, AppGrant)]) -> String {
    let Some((_, grant)) = apps.iter().find(|(other, _)| other == name) else { return String::new() };
    let mut text = format!("{name} may:\n");
    let asks = grant.capabilities.asks();
    let width = asks.iter().map(|ask| ask.name.len()).max().unwrap_or_default();
    for ask in &asks {
        let danger = ask.danger.as_ref().map(|why| format!(" (DANGEROUS: {why})")).unwrap_or_default();
        // Writing into a string cannot fail.
        let _ = writeln!(text, "  {:width$}  {}{danger}", ask.name, ask.words);
    }
    if asks.is_empty() {
        text.push_str("  nothing\n");
    }
    let kernel = grant.to_kernel();
    let lacks: Vec<&str> =
        Capability::all().filter(|one| !kernel.holds(*one)).map(Capability::name).collect();
    if !lacks.is_empty() {
        let _ = writeln!(text, "It may not: {}.", lacks.join(", "));
    }
    for (other, theirs) in apps.iter().filter(|(other, _)| other != name) {
        let _ = writeln!(text, "{other}: {}", standing(&kernel, &theirs.to_kernel()));
    }
    text
}

/// How an app's rules stand to another's.
fn standing(ours: &Grant, theirs: &Grant) -> String {
    let writes = |grant: &Grant| grant.holds(Capability::RuleWrite);
    if ours.holds(Capability::RuleWriteOthers) {
        return "it may change and delete that app's rules".to_owned();
    }
    if theirs.holds(Capability::RuleWriteOthers) {
        return "that app may change and delete its rules".to_owned();
    }
    match (writes(ours), writes(theirs)) {
        (false, _) => "it writes no rules, so it takes no packets from that app".to_owned(),
        (true, false) => {
            "that app writes no rules; it does not receive packets that match rules of this one".to_owned()
        }
        (true, true) if ours.rank() < theirs.rank() => format!(
            "comes behind it: that app's rules may not shadow its rules{}",
            apart(ours.rules(), theirs.rules())
        ),
        (true, true) => format!(
            "comes before it: its rules may not shadow that app's rules{}",
            apart(theirs.rules(), ours.rules())
        ),
    }
}

/// Whether their priorities keep the two apart.
fn apart(first: &Bounds, second: &Bounds) -> String {
    let (low, high) = (first.priorities.start(), second.priorities.end());
    if low > high {
        format!(", whose priorities begin at {low}, above {high}")
    } else {
        format!("; they share the priorities {low} to {high}, so rules for the same packets are compared")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use package::manifest::Capabilities;

    fn app(name: &str, rank: u16, capabilities: &str) -> (String, AppGrant) {
        let capabilities: Capabilities = toml::from_str(capabilities).unwrap();
        (name.to_owned(), AppGrant { capabilities, rank: Some(rank), ..AppGrant::default() })
    }

    fn check(apps: &[(String, AppGrant)], name: &str, expected: &[&str]) {
        let text = explained(name, apps);
        expected.iter().for_each(|line| assert!(text.contains(line), "{line}\n---\n{text}"));
    }

    #[test]
    fn an_app_is_explained_by_what_it_may_do_and_to_whom() {
        let apps = [
            app("firewall", 0, "'rule.write' = { priority = [50000, 65535] }"),
            app("forwarder", 1, "'rule.write' = { priority = [1, 9999] }\n'packet.in' = true"),
            app("any", 2, "'rule.write' = true\nvendor = ['nicira']"),
            app("watcher", 3, "'packet.in' = true"),
            app("admin", 4, "'rule.write' = true\n'rule.write.others' = true"),
        ];
        check(
            &apps,
            "firewall",
            &[
                "write rules into switches, with priorities 50000 to 65535",
                "forwarder: comes behind it",
                "above 9999",
            ],
        );
        check(
            &apps,
            "forwarder",
            &[
                "firewall: comes before it",
                "any: comes behind it",
                "share the priorities 1 to 65535",
                "watcher: that app writes no rules",
            ],
        );
        check(&apps, "any", &["DANGEROUS", "admin: that app may change and delete its rules"]);
        check(&apps, "watcher", &["firewall: it writes no rules", "It may not: packet.out"]);
        check(&apps, "admin", &["firewall: it may change and delete that app's rules"]);
    }

    #[test]
    fn an_app_without_a_grant_may_do_nothing() {
        check(&[app("none", 0, "")], "none", &["none may:\n  nothing\n", "It may not: packet.in"]);
    }
}
