//! `burnet app grant`, `revoke`, `trust`, `untrust`, `remove`: the operator's decisions about an installed app.
//!
//! In: the app's name. Out: its changed record, and what to print. A running node checks every second whether
//! anything was revoked. These commands tell it what was granted.

use package::install::Record;
use package::manifest::{AppName, Manifest};
use package::state::{Lock, State};

use super::{asks_in_lines, now, state};
use crate::cli::package::{AppRemoveArgs, GrantArgs, InstalledArgs, RevokeArgs, StateArgs};
use crate::cli::{CommandError, NodeArgs};
use crate::commands::ask;
use crate::commands::audit;
use crate::commands::reload;
use monitor::Verb;
use operator::contract::{Answer, Question};

const FROM_THEN: &str = "a running node applies this after burnet reload, or after a restart";

/// The effect of a revocation on a running app, for a message.
const ENDED: &str = "a node that runs it stops it within two seconds";

/// An installed app that a command changes.
struct Held {
    state: State,
    lock: Lock,
    name: AppName,
    record: Record,
    manifest: Manifest,
}

impl Held {
    fn of(name: &str, args: &StateArgs) -> Result<Held, CommandError> {
        let state = state(args)?;
        let name = app_name(name)?;
        let lock = state.lock()?;
        let Some(record) = state.record(&name)? else { return Err(not_installed(&name)) };
        let mut manifest = state.installed(&name, &record)?.manifest;
        // Without the service, the text names it.
        let _ = manifest.resolve(&state.services());
        Ok(Held { state, lock, name, record, manifest })
    }

    /// Stores its record, and writes the change and its author to the audit log.
    fn keep(&self, what: &str, how: impl Into<String>) -> Result<(), CommandError> {
        self.state.keep_record(&self.name, &self.record, &self.lock)?;
        audit::keep(&self.state, what, Some(&self.name), how);
        Ok(())
    }

    /// The names on the command line. Each must be a request of the app.
    fn check(&self, asks: &[String]) -> Result<(), CommandError> {
        let all = self.manifest.asks();
        let stranger = asks.iter().find(|ask| !all.iter().any(|one| one.name == **ask));
        let Some(stranger) = stranger else { return Ok(()) };
        let names: Vec<&str> = all.iter().map(|ask| ask.name.as_str()).collect();
        let there = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        Err(CommandError::Usage(format!("{} does not request {stranger}; it requests {there}", self.name)))
    }
}

fn app_name(text: &str) -> Result<AppName, CommandError> {
    AppName::try_from(text.to_owned()).map_err(CommandError::Usage)
}

fn not_installed(name: &AppName) -> CommandError {
    CommandError::Usage(format!("{name} is not installed: burnet app show lists the apps that are"))
}

/// The output of `burnet app grant`.
pub fn grant(args: &GrantArgs) -> Result<String, CommandError> {
    let mut held = Held::of(&args.name, &args.state)?;
    held.check(&args.asks)?;
    let selected = |name: &str| args.asks.is_empty() || args.asks.iter().any(|ask| ask == name);
    let asks: Vec<_> = held.manifest.asks().into_iter().filter(|ask| selected(&ask.name)).collect();
    held.record.granted.extend(asks.iter().map(|ask| ask.name.clone()));
    let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
    held.keep("app_granted", names.join(", "))?;
    let said = format!("{} may:\n{}", held.name, asks_in_lines(&asks, false));
    let name = held.name.to_string();
    // The node reads the new grant.
    drop(held);
    let asking = NodeArgs { json: false, socket: args.socket.clone() };
    Ok(match reload::asked(&asking, Some(name), None) {
        Ok(view) if view.done.is_empty() => format!("{said}nothing changes for the running node\n"),
        Ok(view) => view.done.iter().chain(&view.left).fold(said, |said, line| format!("{said}{line}\n")),
        Err(why) => format!("{said}no running node was informed ({why}); {FROM_THEN}\n"),
    })
}

/// The output of `burnet app revoke`.
pub fn revoke(args: &RevokeArgs) -> Result<String, CommandError> {
    if args.asks.is_empty() {
        return Err(CommandError::Usage(format!(
            "name what {0} may no longer do; burnet app show {0} lists the names",
            args.name
        )));
    }
    let mut held = Held::of(&args.name, &args.state)?;
    held.check(&args.asks)?;
    held.record.granted.retain(|name| !args.asks.contains(name));
    held.keep("app_revoked", args.asks.join(", "))?;
    let (name, asks) = (&held.name, args.asks.join(", "));
    Ok(format!(
        "{name} may no longer: {asks}; {ENDED}, and burnet app restart {name} starts it with the remaining grants\n"
    ))
}

/// The output of `burnet app trust`.
pub fn trust(args: &InstalledArgs) -> Result<String, CommandError> {
    let mut held = Held::of(&args.name, &args.state)?;
    let fell = held.record.fall.clone();
    held.record.trust(&held.manifest, now()).map_err(CommandError::Usage)?;
    held.keep("app_trusted", format!("digest {}", held.record.digest))?;
    let Held { name, record, .. } = held;
    let before = fell.map(|fall| format!(" It lost your trust at {} ({}).", fall.time, fall.reason));
    Ok(format!(
        "{name} {} (digest {}) may run inside the kernel's process, where it can do all that the kernel can.{}\n\
         It does with --app {name}=trusted, or app.{name}.zone = \"trusted\".\n",
        record.version,
        record.digest.prefix(),
        before.unwrap_or_default()
    ))
}

/// The output of `burnet app untrust`.
pub fn untrust(args: &InstalledArgs) -> Result<String, CommandError> {
    let mut held = Held::of(&args.name, &args.state)?;
    held.record.untrust();
    held.keep("app_untrusted", format!("digest {}", held.record.digest))?;
    let name = &held.name;
    Ok(format!(
        "{name} may no longer run inside the kernel's process; a running node moves it to a process zone within two seconds\n"
    ))
}

/// The output of `burnet app remove`.
pub fn remove(args: &AppRemoveArgs) -> Result<String, CommandError> {
    let (state, name) = (state(&args.state)?, app_name(&args.name)?);
    let lock = state.lock()?;
    if state.remove(&name, &lock)? {
        audit::keep(&state, "app_removed", Some(&name), "with its files and its record");
        let asking = NodeArgs { json: false, socket: args.socket.clone() };
        let question = Question::App { app: name.to_string(), verb: Verb::Remove, why: None };
        return Ok(match ask(&asking, &question) {
            Ok(Answer::Done) => format!("{name} is removed, and the running node stops it\n"),
            // No node is running, or it does not run this app.
            _ => format!("{name} is removed\n"),
        });
    }
    Err(not_installed(&name))
}
