//! The question before a package is installed: what the app requests, what is dangerous about it, and the operator's
//! answer.
//!
//! In: the plan, the signatures before and now, the other apps. Out: the question on standard error, and whether all of
//! it is granted. It installs nothing.

use std::io::{BufRead, IsTerminal, Write};

use package::install::Plan;
use package::manifest::{AppName, Ask, Manifest, RuleWrite};
use package::state::State;
use package::trust::SignatureCheck;

use super::asks_in_lines;
use crate::apps;
use crate::cli::CommandError;
use config::files;
use operator::visible::visible;
use zone::sandbox::Files;

/// What the operator is asked about.
pub(super) struct Consent<'a> {
    pub(super) state: &'a State,
    pub(super) manifest: &'a Manifest,
    pub(super) plan: &'a Plan,
    pub(super) asked: &'a [Ask],
    /// The signatures of the installed package, and of the new one.
    pub(super) change: (&'a [SignatureCheck], &'a [SignatureCheck]),
}

impl Consent<'_> {
    /// Asks on the terminal, below these lines about the package.
    pub(super) fn ask(&self, heading: &str, grant_all: bool) -> Result<(), CommandError> {
        let question = self.question(heading, std::io::stderr().is_terminal());
        let stdin = std::io::stdin();
        let terminal = stdin.is_terminal();
        granted(&question, grant_all, terminal, &mut stdin.lock(), &mut std::io::stderr())
    }

    fn question(&self, heading: &str, colours: bool) -> String {
        let Consent { state, manifest, plan, asked, change: (before, now) } = self;
        let name = &manifest.name;
        let more = match plan {
            Plan::More(_) => "It requests more than before:".to_owned(),
            Plan::OtherSigner(_) => in_red(&anothers(name, before, now), colours) + "\nIt asks to:",
            _ => "It asks to:".to_owned(),
        };
        let others = others(state, name);
        let dangers =
            shared_folders(&others, manifest).into_iter().chain(shared_priorities(&others, manifest));
        let dangers: String =
            dangers.map(|line| in_red(&format!("  DANGEROUS: {line}"), colours) + "\n").collect();
        format!("{heading}{more}\n{}{dangers}", asks_in_lines(asked, colours))
    }
}

/// Who signed what is there, and who signed what is to take its place.
fn anothers(name: &AppName, before: &[SignatureCheck], now: &[SignatureCheck]) -> String {
    let who = |checks: &[SignatureCheck]| {
        let all: Vec<String> = checks.iter().map(ToString::to_string).collect();
        if all.is_empty() { "nobody".to_owned() } else { all.join(", ") }
    };
    format!(
        "DANGEROUS: the installed app {name} was signed by {}; this package was signed by {}. All earlier grants are removed.",
        who(before),
        who(now)
    )
}

fn in_red(line: &str, colours: bool) -> String {
    if colours { format!("\x1b[31m{line}\x1b[0m") } else { line.to_owned() }
}

/// What another app has, as far as it concerns a new one.
struct Other {
    name: String,
    files: Files,
    rules: Option<RuleWrite>,
}

/// The installed apps but this one, with what they were granted, and those that the binary offers.
fn others(state: &State, but: &AppName) -> Vec<Other> {
    let names = state.apps().unwrap_or_default();
    let installed = names.iter().filter(|other| *other != but).filter_map(|other| {
        let record = state.record(other).ok()??;
        let Manifest { capabilities, system, .. } = state.installed(other, &record).ok()?.manifest;
        let files = files(&system.only(|ask| record.granted.contains(ask)));
        let rules = capabilities.rule_write.filter(|_| record.granted.contains("rule.write"));
        Some(Other { name: other.to_string(), files, rules })
    });
    let offered = apps::ALL.iter().filter_map(|app| {
        let rules = Manifest::parse(app.manifest).ok()?.capabilities.rule_write;
        Some(Other { name: app.name.to_owned(), files: Files::default(), rules })
    });
    installed.chain(offered).collect()
}

/// Files that it may change and another app reads or changes, or the other way round: a line each.
fn shared_folders(others: &[Other], manifest: &Manifest) -> Vec<String> {
    let own = (manifest.name.to_string(), files(&manifest.system));
    others.iter().flat_map(|other| own_and(&own, &(other.name.clone(), other.files.clone()))).collect()
}

/// Priorities that its rules and another app's may have, or that lie above another's: a line each.
fn shared_priorities(others: &[Other], manifest: &Manifest) -> Vec<String> {
    let Some(own) = manifest.capabilities.rule_write.as_ref().map(priorities) else { return Vec::new() };
    let theirs = others.iter().filter_map(|other| Some((&other.name, priorities(other.rules.as_ref()?))));
    let reached = theirs.filter(|(_, (low, _))| own.1 >= *low);
    reached
        .map(|(name, (low, high))| {
            format!(
                "its rules may have priorities up to {}, and those of {name} have {low} to {high}: [apps] order in burnet.toml decides which come first",
                own.1
            )
        })
        .collect()
}

fn priorities(rules: &RuleWrite) -> (u16, u16) {
    rules.priority.map_or((0, u16::MAX), |range| (range.low, range.high))
}

fn own_and(own: &(String, Files), other: &(String, Files)) -> Vec<String> {
    [(own, other), (other, own)]
        .into_iter()
        .filter_map(|((reads, files), (writes, others))| {
            let (path, folder) = files.changed_by(others)?;
            Some(format!("{reads} may use {}, and {writes} may change {}", path.display(), folder.display()))
        })
        .collect()
}

/// Takes the operator's yes.
fn granted(
    question: &str,
    grant_all: bool,
    terminal: bool,
    answer: &mut impl BufRead,
    out: &mut impl Write,
) -> Result<(), CommandError> {
    write!(out, "{}", visible(question))?;
    if grant_all {
        return Ok(());
    }
    if !terminal {
        return Err(CommandError::Usage(
            "its requests must be granted, and there is no terminal to ask on: add --grant-all".to_owned(),
        ));
    }
    write!(out, "Grant all of this? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    answer.read_line(&mut line)?;
    if ["y", "yes"].contains(&line.trim().to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(CommandError::DidNotWork("the requests were not granted; nothing has changed".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(grant_all: bool, terminal: bool, answer: &str) -> (Result<(), CommandError>, String) {
        let mut out = Vec::new();
        let result = granted("It asks to:\n", grant_all, terminal, &mut answer.as_bytes(), &mut out);
        (result, String::from_utf8(out).unwrap())
    }

    fn manifest(rules: &str) -> Manifest {
        let text = format!(
            "name = \"new\"\nversion = \"1.0.0\"\ndescription = \"d\"\nkind = \"native\"\nabi = 2\n[entry]\nx86_64 = \"bin/new\"\n\
             [files]\n\"bin/new\" = \"new\"\n[capabilities]\n{rules}\n"
        );
        Manifest::parse(&text).unwrap_or_else(|fault| panic!("{fault}"))
    }

    #[test]
    fn whose_priorities_it_reaches_is_said_before_the_yes() {
        let state = State::at("/nonexistent".into());
        let check = |rules: &str, expected: &[&str]| {
            let manifest = manifest(rules);
            let lines = shared_priorities(&others(&state, &manifest.name), &manifest);
            assert_eq!(lines.len(), expected.len(), "{rules}: {lines:?}");
            expected.iter().for_each(|part| assert!(lines.concat().contains(part), "{lines:?}"));
        };
        let (learning, firewall) = ("learning-switch have 1 to 9999", "firewall have 50000 to 65535");
        let forwarding = "forwarding have 10000 to 19999";
        check("'rule.write' = true", &[learning, forwarding, firewall]);
        check("'rule.write' = { priority = [10000, 49999] }", &[learning, forwarding]);
        check("'rule.write' = { priority = [5, 50000] }", &[learning, forwarding, firewall]);
        check("'packet.in' = true", &[]);
    }

    #[test]
    fn only_a_yes_grants() {
        for answer in ["", "\n", "n\n", "yep\n", "yy\n", "no yes\n"] {
            assert!(matches!(asked(false, true, answer).0, Err(CommandError::DidNotWork(_))), "{answer:?}");
        }
        for answer in ["y\n", "Y", " yes \n", "YES\n"] {
            assert_eq!(asked(false, true, answer).0, Ok(()), "{answer:?}");
        }
    }

    #[test]
    fn nobody_can_say_yes_where_there_is_no_terminal() {
        let (result, out) = asked(false, false, "y\n");
        assert!(matches!(result, Err(CommandError::Usage(why)) if why.contains("add --grant-all")));
        assert_eq!(out, "It asks to:\n");
        assert_eq!(asked(true, false, "").0, Ok(()));
    }
}
