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
use package::manifest::Ask;
use std::fmt::Write;
use zone::Sandbox;
use zone::sandbox::Network;

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
    let sandbox = config.apps.iter().find(|app| app.name == name).map(|app| app.sandbox.clone());
    Ok(explained(&name, &granted?, &sandbox.unwrap_or_default()))
}

/// What the app of this name can do, and how it stands to the others.
fn explained(name: &str, apps: &[(String, AppGrant)], sandbox: &Sandbox) -> String {
    let Some((_, grant)) = apps.iter().find(|(other, _)| other == name) else { return String::new() };
    let mut text = format!("{name} may:\n");
    let mut asks = grant.capabilities.asks();
    asks.extend(of_machine(sandbox));
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

/// What the app may use of the machine, in the words of a manifest.
fn of_machine(sandbox: &Sandbox) -> Vec<Ask> {
    fn ask(name: &str, verb: &str, all: &[impl ToString], danger: Option<&str>) -> Option<Ask> {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        let words = format!("{verb} {}", all.join(", "));
        (!all.is_empty()).then(|| Ask { name: name.to_owned(), words, danger: danger.map(str::to_owned) })
    }
    let Network { connect, listen } = &sandbox.net;
    // The name of a socket file is a path by now, so it says nothing.
    let danger =
        listen.iter().filter(|address| address.is_tcp()).find_map(|address| address.needs_operator());
    let [read, write] = [&sandbox.fs.read, &sandbox.fs.write]
        .map(|paths| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>());
    let spawn = if sandbox.spawn { &["other programs"][..] } else { &[] };
    let all = [
        ask("net.connect", "connect to", connect, None),
        ask("net.listen", "accept connections on", listen, danger),
        ask("fs.read", "read on this machine", &read, None),
        ask("fs.write", "write on this machine", &write, None),
        ask("spawn", "start", spawn, None),
    ];
    all.into_iter().flatten().collect()
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
        let text = explained(name, apps, &Sandbox::default());
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
    fn what_of_the_machine_is_granted_is_said_too() {
        let listen = ["127.0.0.1:8181", "0.0.0.0:80"].map(|text| text.parse().unwrap()).to_vec();
        let net = Network { listen, ..Network::default() };
        let text = explained("web", &[app("web", 0, "")], &Sandbox { net, ..Sandbox::default() });
        let line = "net.listen  accept connections on 127.0.0.1:8181, 0.0.0.0:80 (DANGEROUS: other machines can reach it)";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn an_app_without_a_grant_may_do_nothing() {
        check(&[app("none", 0, "")], "none", &["none may:\n  nothing\n", "It may not: packet.in"]);
    }
}
