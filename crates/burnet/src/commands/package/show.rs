//! `burnet app show`: the installed package, whether its files are unchanged, and its grants.
//!
//! In: the state folder. Out: text or JSON. It changes nothing.

use package::install::Record;
use package::manifest::{AppName, Ask, Manifest};
use package::state::State;
use package::trust::{Require, SignatureCheck, require};
use serde::Serialize;

use super::{now, policy};
use crate::cli::CommandError;
use crate::cli::package::AppShowArgs;
use crate::commands::{json, table::columns};

/// An installed app, after verification.
#[derive(Debug, Serialize)]
struct View {
    name: String,
    version: String,
    digest: String,
    /// Why it may not start. `None`: it may.
    trouble: Option<String>,
    signatures: Vec<String>,
    asks: Vec<AskView>,
    /// Whether it may run inside the kernel process. The error says why not.
    trusted: Result<(), String>,
    #[serde(skip)]
    description: String,
}

#[derive(Debug, Serialize)]
struct AskView {
    name: String,
    words: String,
    granted: bool,
}

/// The output of `burnet app show`.
pub fn show(args: &AppShowArgs) -> Result<String, CommandError> {
    let (state, policy) = policy(&args.policy)?;
    let names = match &args.name {
        Some(name) => vec![AppName::try_from(name.clone()).map_err(CommandError::Usage)?],
        None => state.apps()?,
    };
    let mut views = Vec::new();
    for name in &names {
        let Some(record) = state.record(name)? else {
            return Err(CommandError::Usage(format!("{name} is not installed")));
        };
        views.push(look(&state, name, &record, policy)?);
    }
    match views.as_slice() {
        views if args.json => json(&views),
        [only] if args.name.is_some() => Ok(text(only)),
        [] => Ok("no app is installed; burnet app install FILE installs one\n".to_owned()),
        views => {
            Ok(columns(["APP", "VERSION", "DIGEST", "STANDING"], &views.iter().map(row).collect::<Vec<_>>()))
        }
    }
}

fn look(state: &State, name: &AppName, record: &Record, policy: Require) -> Result<View, CommandError> {
    let installed = state.installed(name, record);
    let checks: Vec<SignatureCheck> = match &installed {
        Ok(unpacked) => state.trust()?.checks(&record.digest, &unpacked.signatures, now()),
        Err(_) => Vec::new(),
    };
    let trouble = match &installed {
        Ok(_) => require(&checks, policy).err(),
        Err(error) => Some(error.to_string()),
    };
    let manifest = installed.ok().map(|unpacked| {
        let mut manifest = unpacked.manifest;
        // Without the service, the text names it.
        let _ = manifest.resolve(&state.services());
        manifest
    });
    let asks = manifest.as_ref().map(Manifest::asks).unwrap_or_default();
    let ask = |Ask { name, words, .. }| AskView { granted: record.granted.contains(&name), name, words };
    Ok(View {
        name: name.to_string(),
        version: record.version.to_string(),
        digest: record.digest.to_string(),
        trouble,
        signatures: checks.iter().map(ToString::to_string).collect(),
        asks: asks.into_iter().map(ask).collect(),
        trusted: record.may_run_trusted(),
        description: manifest.map(|manifest| manifest.description).unwrap_or_default(),
    })
}

fn row(view: &View) -> [String; 4] {
    let standing = view.trouble.clone().unwrap_or_else(|| "as it was signed".to_owned());
    [view.name.clone(), view.version.clone(), view.digest[..12].to_owned(), standing]
}

fn text(view: &View) -> String {
    let View { name, version, digest, trouble, signatures, asks, trusted, description } = view;
    let mut lines = vec![format!("{name} {version}: {description}"), format!("  digest {digest}")];
    lines.extend(signatures.iter().map(|signature| format!("  signed: {signature}")));
    lines.extend(trouble.iter().map(|trouble| format!("  does not start: it {trouble}")));
    lines.push(match trusted {
        Ok(()) => "  may run inside the kernel's process".to_owned(),
        Err(why) => format!("  {why}"),
    });
    let width = asks.iter().map(|ask| ask.name.len()).max().unwrap_or_default();
    let ask = |ask: &AskView| {
        let granted = if ask.granted { "granted" } else { "refused" };
        format!("  {granted}  {:width$}  {}", ask.name, ask.words)
    };
    lines.extend(asks.iter().map(ask));
    lines.join("\n") + "\n"
}
