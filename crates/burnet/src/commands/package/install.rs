//! `burnet app verify` and `install`: shows a package, its signatures and its requests, and installs it.
//!
//! ```text
//!   FILE ──> whole? ──> signed by whom is trusted? ──> fits, and is no older? ──> granted? ──> state folder
//! ```
//!
//! Each step that says no ends it, and nothing was changed.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use package::install::{Candidate, Confirmed, Installed, Plan, Record, Signers, granted_after, plan};
use package::manifest::{AppName, Ask};
use package::state::{State, read_package_file};
use package::trust::{Require, SignatureCheck, SignatureStatus, require};
use package::{Manifest, Package};
use serde::Serialize;

use super::consent::Consent;
use super::{asks_in_lines, now, policy, this_node};
use crate::cli::package::{AppInstallArgs, AppVerifyArgs};
use crate::cli::{CommandError, NodeArgs};
use crate::commands::audit;
use crate::commands::{ask, json, unexpected};
use monitor::AppState;
use operator::contract::{Answer, AppView, Question};

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
    resolved
        .resolve(&state.services())
        .map_err(|why| CommandError::DidNotWork(format!("{}: {why}", resolved.name)))?;
    let manifest = &resolved;
    let name = &manifest.name;
    config::check_app_name(name.as_str()).map_err(|error| CommandError::Usage(error.to_string()))?;
    let lock = state.lock()?;
    let before = Before::read(&state, name)?;
    let counting = signers(&checks, |standing| standing == SignatureStatus::Counts);
    let offered = Candidate { manifest, digest: package.digest(), signers: &counting };
    let confirmed = Confirmed { downgrade: args.allow_downgrade, same_version: args.force };
    let installed = before.as_ref().map(Before::installed);
    let plan = plan(offered, installed, this_node(), confirmed).map_err(CommandError::DidNotWork)?;
    let asked = asked_by(&plan);
    let is_others = matches!(plan, Plan::OtherSigner(_));
    if !asked.is_empty() || is_others {
        let head = heading(&package, &checks);
        let signed_before = before.as_ref().map_or(&[][..], |before| &before.checks);
        let change = (signed_before, checks.as_slice());
        Consent { state: &state, manifest, plan: &plan, asked, change }.ask(&head, args.grant_all)?;
    }
    let readable = before.as_ref().filter(|before| before.manifest.is_some() && !is_others);
    let granted_before = readable.map(|before| before.record.granted.clone()).unwrap_or_default();
    let record = Record {
        version: manifest.version.clone(),
        digest: package.digest(),
        granted: granted_after(manifest, &granted_before, asked),
        trusted: before.as_ref().and_then(|before| before.record.trusted),
        fall: before.as_ref().and_then(|before| before.record.fall.clone()),
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

/// The installation that the package replaces.
struct Before {
    record: Record,
    /// `None` if the installed files are damaged. Then all requests must be granted again. The version counts all the
    /// same.
    manifest: Option<Manifest>,
    checks: Vec<SignatureCheck>,
    /// All who signed it, even if a key is revoked or expired today.
    signers: Signers,
}

impl Before {
    fn read(state: &State, name: &AppName) -> Result<Option<Before>, CommandError> {
        let Some(record) = state.record(name)? else { return Ok(None) };
        let Ok(mut contents) = state.installed(name, &record) else {
            return Ok(Some(Before {
                record,
                manifest: None,
                checks: Vec::new(),
                signers: Signers::default(),
            }));
        };
        // For the text only.
        let _ = contents.manifest.resolve(&state.services());
        let checks = state.trust()?.checks(&record.digest, &contents.signatures, now());
        let signers = signers(&checks, |standing| {
            !matches!(standing, SignatureStatus::Unknown | SignatureStatus::Altered)
        });
        Ok(Some(Before { record, manifest: Some(contents.manifest), checks, signers }))
    }

    fn installed(&self) -> Installed<'_> {
        let contents = self.manifest.as_ref().map(|manifest| (manifest, &self.signers));
        Installed { record: &self.record, contents }
    }
}

/// The requests that the operator must grant.
fn asked_by(plan: &Plan) -> &[Ask] {
    match plan {
        Plan::New(asks) | Plan::More(asks) | Plan::OtherSigner(asks) => asks,
        Plan::Update | Plan::Same => &[],
    }
}

fn signers(checks: &[SignatureCheck], counts: impl Fn(SignatureStatus) -> bool) -> Signers {
    checks.iter().filter(|check| counts(check.standing)).map(|check| check.key).collect()
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
        |why: String| CommandError::DidNotWork(format!("{name} is installed, but was not started: {why}"));
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
