//! `burnet app verify` and `install`: shows a package, its signatures and its requests, and installs it.
//!
//! ```text
//!   FILE ──> whole? ──> signed by whom is trusted? ──> fits, and is no older? ──> granted? ──> state folder
//! ```
//!
//! Each step that says no ends it, and nothing was changed.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use package::install::{Candidate, Confirmed, Installed, Plan, Record, Signers, granted_after, plan};
use package::manifest::{AppName, Ask, RuleWrite};
use package::state::{State, read_package_file};
use package::trust::{Require, SignatureCheck, SignatureStatus, require};
use package::{Manifest, Package};
use serde::Serialize;

use super::{asks_in_lines, now, policy, this_node};
use crate::apps;
use crate::cli::package::{AppInstallArgs, AppVerifyArgs};
use crate::cli::{CommandError, NodeArgs};
use crate::commands::audit;
use crate::commands::{ask, json, unexpected};
use config::files;
use monitor::AppState;
use operator::contract::{Answer, AppView, Question};
use operator::visible::visible;
use zone::sandbox::Files;

/// A package that may be used here, and what its signatures are worth.
fn vouched<'a>(
    path: &Path,
    bytes: &'a [u8],
    state: &State,
    policy: Require,
) -> Result<(Package<'a>, Vec<SignatureCheck>), CommandError> {
    let refused = |why: String| CommandError::DidNotWork(format!("{} {why}", path.display()));
    let package =
        Package::read(bytes).map_err(|damage| refused(format!("is not a valid package: {damage}")))?;
    let checks = state.trust()?.checks(&package.digest(), package.signatures(), now());
    require(&checks, policy).map_err(refused)?;
    Ok((package, checks))
}

/// What `burnet app verify` prints.
pub fn verify(args: &AppVerifyArgs) -> Result<String, CommandError> {
    #[derive(Serialize)]
    struct Verified<'a> {
        name: &'a str,
        version: String,
        digest: String,
        signatures: Vec<String>,
        asks: Vec<(String, String)>,
    }
    let (state, policy) = policy(&args.policy)?;
    let bytes = read_package_file(&args.file)?;
    let (package, checks) = vouched(&args.file, &bytes, &state, policy)?;
    let mut resolved = package.manifest().clone();
    // Without the service, the text names it.
    let _ = resolved.resolve(&state.services());
    let manifest = &resolved;
    let signers = signers(&checks, |standing| standing == SignatureStatus::Counts);
    plan(
        Candidate { manifest, digest: package.digest(), signers: &signers },
        None,
        this_node(),
        Confirmed::default(),
    )
    .map_err(|why| CommandError::DidNotWork(format!("{}: {why}", args.file.display())))?;
    if args.json {
        return json(&Verified {
            name: manifest.name.as_str(),
            version: manifest.version.to_string(),
            digest: package.digest().to_string(),
            signatures: checks.iter().map(ToString::to_string).collect(),
            asks: manifest.asks().into_iter().map(|ask| (ask.name, ask.words)).collect(),
        });
    }
    let asks = manifest.asks();
    let asking = if asks.is_empty() {
        "It requests nothing.\n".to_owned()
    } else {
        format!("It asks to:\n{}", asks_in_lines(&asks, std::io::stdout().is_terminal()))
    };
    Ok(format!("{}{asking}", heading(&package, &checks)))
}

/// What a package is and who signed it, in lines.
fn heading(package: &Package<'_>, checks: &[SignatureCheck]) -> String {
    let Manifest { name, version, description, .. } = package.manifest();
    let signed: String = checks.iter().map(|check| format!("  signed: {check}\n")).collect();
    let signed = if signed.is_empty() { "  unsigned\n".to_owned() } else { signed };
    format!("{name} {version}: {description}\n  digest {}\n{signed}", package.digest())
}

/// `burnet app install`. The question goes to standard error, so that standard output has only the result.
pub fn install(args: &AppInstallArgs) -> Result<String, CommandError> {
    let (state, policy) = policy(&args.policy)?;
    let bytes = read_package_file(&args.file)?;
    let (package, checks) = vouched(&args.file, &bytes, &state, policy)?;
    let mut resolved = package.manifest().clone();
    let services = state.services();
    resolved
        .resolve(&services)
        .map_err(|why| CommandError::DidNotWork(format!("{}: {why}", resolved.name)))?;
    let manifest = &resolved;
    let name = &manifest.name;
    monitor::check_app_name(name.as_str()).map_err(|error| CommandError::Usage(error.to_string()))?;
    let lock = state.lock()?;
    let old = state.record(name)?;
    // The installed files may be damaged. Then their manifest is ignored, and all requests must be granted again. Its
    // version counts all the same.
    let before = old.as_ref().map(|record| {
        let contents = state.installed(name, record).ok();
        let contents = contents.map(|mut found| {
            // For the text only.
            let _ = found.manifest.resolve(&services);
            (found.manifest, found.signatures)
        });
        (record, contents)
    });
    let counting = signers(&checks, |standing| standing == SignatureStatus::Counts);
    let signed_before = match &before {
        Some((record, Some((_, signatures)))) => state.trust()?.checks(&record.digest, signatures, now()),
        _ => Vec::new(),
    };
    // Whatever has become of the key since.
    let good = signers(&signed_before, |standing| {
        !matches!(standing, SignatureStatus::Unknown | SignatureStatus::Altered)
    });
    let installed = before.as_ref().map(|(record, contents)| Installed {
        record,
        contents: contents.as_ref().map(|(manifest, _)| (manifest, &good)),
    });
    let offered = Candidate { manifest, digest: package.digest(), signers: &counting };
    let confirmed = Confirmed { downgrade: args.allow_downgrade, same_version: args.force };
    let plan = plan(offered, installed, this_node(), confirmed).map_err(CommandError::DidNotWork)?;
    let is_others = matches!(plan, Plan::OtherSigner(_));
    let asked = match &plan {
        Plan::New(asks) | Plan::More(asks) | Plan::OtherSigner(asks) => asks.as_slice(),
        Plan::Update | Plan::Same => &[],
    };
    if !asked.is_empty() || is_others {
        let colours = std::io::stderr().is_terminal();
        let more = match &plan {
            Plan::More(_) => "It requests more than before:".to_owned(),
            Plan::OtherSigner(_) => {
                in_red(&anothers(name, &signed_before, &checks), colours) + "\nIt asks to:"
            }
            _ => "It asks to:".to_owned(),
        };
        let others = others(&state, name);
        let shared =
            shared_folders(&others, manifest).into_iter().chain(shared_priorities(&others, manifest));
        let shared: String =
            shared.map(|line| in_red(&format!("  DANGEROUS: {line}"), colours) + "\n").collect();
        let question =
            format!("{}{more}\n{}{shared}", heading(&package, &checks), asks_in_lines(asked, colours));
        let stdin = std::io::stdin();
        let terminal = stdin.is_terminal();
        granted(&question, args.grant_all, terminal, &mut stdin.lock(), &mut std::io::stderr())?;
    }
    let readable = before.as_ref().filter(|(_, contents)| contents.is_some() && !is_others);
    let granted_before = readable.map(|(record, _)| record.granted.clone()).unwrap_or_default();
    let record = Record {
        version: manifest.version.clone(),
        digest: package.digest(),
        granted: granted_after(manifest, &granted_before, asked),
        trusted: old.as_ref().and_then(|record| record.trusted),
        fall: old.as_ref().and_then(|record| record.fall.clone()),
    };
    state.install(&package, &record, &lock)?;
    let names: Vec<&str> = record.granted.iter().map(String::as_str).collect();
    let text = format!("version {}, digest {}, granted: {}", record.version, record.digest, names.join(", "));
    audit::keep(&state, "app_installed", Some(name), text);
    // The node that is asked to start it reads what was installed.
    drop(lock);
    let done = done(manifest, &plan, asked);
    if args.start {
        return start(manifest, &record.digest.to_string(), args).map(|started| done + &started);
    }
    Ok(format!("{done}It runs when the node is started with: burnet run --app {name}\n"))
}

fn signers(checks: &[SignatureCheck], counts: impl Fn(SignatureStatus) -> bool) -> Signers {
    checks.iter().filter(|check| counts(check.standing)).map(|check| check.key).collect()
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
                "its rules may have priorities up to {}, and those of {name} have {low} to {high}: [apps] order in burnet.toml says whose come first",
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

/// How long the node may take to look at the package and start it.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How often it is asked meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// Starts it on the running node. It is installed whatever comes of that.
fn start(manifest: &Manifest, digest: &str, args: &AppInstallArgs) -> Result<String, CommandError> {
    let name = manifest.name.to_string();
    let asking = NodeArgs { json: false, socket: args.socket.clone() };
    let installed =
        |why: String| CommandError::DidNotWork(format!("{name} is installed, and not started: {why}"));
    let answer = ask(&asking, &Question::Apps).map_err(|error| installed(error.to_string()))?;
    let Answer::Apps(before) = answer else { return Err(unexpected()) };
    let before = before.iter().find(|app| app.status.app == name).map(|app| app.status.generation);
    ask(&asking, &Question::AddApp { app: name.clone() }).map_err(|error| installed(error.to_string()))?;
    let began = Instant::now();
    while began.elapsed() < START_PATIENCE {
        if let Ok(Answer::Apps(apps)) = ask(&asking, &Question::Apps)
            && apps.iter().any(|app| app.status.app == name && runs_since(app, before, digest))
        {
            return Ok("It runs on the running node; burnet app list shows its state\n".to_owned());
        }
        std::thread::sleep(LOOK);
    }
    let seconds = START_PATIENCE.as_secs();
    Err(installed(format!("the node did not start it within {seconds} s; see the log of the node")))
}

/// Whether this package runs, and not what ran before it was asked for.
fn runs_since(app: &AppView, before: Option<u64>, digest: &str) -> bool {
    app.status.state == AppState::Running
        && before.is_none_or(|before| app.status.generation > before)
        && app.package.as_ref().is_some_and(|package| package.digest == digest)
}

fn done(manifest: &Manifest, plan: &Plan, asked: &[Ask]) -> String {
    let Manifest { name, version, .. } = manifest;
    let how = match plan {
        Plan::Same => "was already installed; its files are restored",
        Plan::Update => "is installed; it requests no more than before, and keeps its grants",
        Plan::New(_) | Plan::More(_) | Plan::OtherSigner(_) if asked.is_empty() => {
            "is installed; it requests nothing"
        }
        Plan::New(_) | Plan::More(_) | Plan::OtherSigner(_) => "is installed, with all its requests granted",
    };
    format!("{name} {version} {how}\n")
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
        check("'rule.write' = true", &[learning, firewall]);
        check("'rule.write' = { priority = [10000, 49999] }", &[learning]);
        check("'rule.write' = { priority = [5, 50000] }", &[learning, firewall]);
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
