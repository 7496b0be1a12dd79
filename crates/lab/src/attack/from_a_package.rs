//! Attacks with packages: an old one, an altered one, or one that requests more. They use the operator's commands.
//!
//! ```text
//!   prepare: keys, packages, and one of them installed, before the node starts ──> act: the try, while it runs ──> what was said to it
//! ```
//!
//! All files are in the folder of the trial's own node. It judges nothing.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use monitor::{AppState, AppStatus, Verb};

use operator::client;
use operator::contract::{Answer, Question};

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageAttack {
    /// Install an old package of an app that has a newer one.
    Replay,
    /// Change a byte of an installed program.
    Tamper,
    /// Change a byte of a running app's program.
    TamperRunning,
    /// Revoke the key of a running app, which must then stop.
    OutliveKey,
    /// Install an update that requests more than was granted, without the operator's approval.
    AskForMore,
    /// Install an update that another trusted key has signed, without the operator's approval.
    OtherSigner,
    /// Install other contents under the installed version.
    SameVersion,
    /// Install a package with an untrusted key.
    UntrustedSigner,
}

/// The installed app.
pub const APP: &str = "misbehaving-package";

/// The key that signs it.
const KEY: &str = "visitor";

/// Another key, which some trials trust too.
const OTHER_KEY: &str = "guest";

/// Its program, which only waits for a line that never comes.
const PROGRAM: &str = "#!/bin/sh\nread never\n";

/// How long a refused start may take to show. The time only bounds the wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the state is checked.
const LOOK: Duration = Duration::from_millis(50);

/// The state folder of a node in this folder.
pub fn state(folder: &Path) -> PathBuf {
    folder.join("state")
}

/// Makes the key and the packages, and installs the one to attack.
///
/// # Errors
///
/// A command failed, with its message.
pub fn prepare(attack: PackageAttack, folder: &Path) -> io::Result<()> {
    let public = state(folder).join("keys").join(format!("{KEY}.pub"));
    done(folder, &["key", "new", KEY])?;
    done(folder, &["key", "new", OTHER_KEY])?;
    done(folder, &["key", "trust", &public.to_string_lossy(), "--role", "developer"])?;
    let installed = if attack == PackageAttack::Replay { "2.0.0" } else { "1.0.0" };
    let asks_more = if attack == PackageAttack::OtherSigner { "" } else { "'rule.write' = true\n" };
    for (version, asks) in [("1.0.0", ""), ("2.0.0", asks_more)] {
        build(folder, version, asks, key_of(attack, version))?;
    }
    if attack == PackageAttack::OtherSigner {
        let public = state(folder).join("keys").join(format!("{OTHER_KEY}.pub"));
        done(folder, &["key", "trust", &public.to_string_lossy(), "--role", "developer"])?;
    }
    done(folder, &["app", "install", &file(installed), "--grant-all"]).map(drop)
}

/// Tries the attack. Returns the answer of the command.
///
/// # Errors
///
/// It could not be tried.
pub fn act(attack: PackageAttack, folder: &Path, socket: &Path) -> io::Result<String> {
    match attack {
        PackageAttack::Replay => burnet(folder, &["app", "install", &file("1.0.0"), "--grant-all"]),
        // Standard input is not a terminal, so nothing can be confirmed.
        PackageAttack::AskForMore => burnet(folder, &["app", "install", &file("2.0.0")]),
        // All its requests were granted before. Only its signer is new.
        PackageAttack::OtherSigner => burnet(folder, &["app", "install", &file("2.0.0")]),
        PackageAttack::UntrustedSigner => burnet(folder, &["app", "install", &file("2.0.0"), "--grant-all"]),
        PackageAttack::SameVersion => {
            build_with(folder, "1.0.0", "", KEY, "#!/bin/sh\nread ever\n")?;
            burnet(folder, &["app", "install", &file("1.0.0"), "--grant-all"])
        }
        PackageAttack::Tamper => {
            alter(&program(folder)?)?;
            ask(socket, Verb::Restart)?;
            refused(socket)
        }
        PackageAttack::TamperRunning => {
            runs(socket)?;
            alter(&program(folder)?)?;
            refused(socket)
        }
        PackageAttack::OutliveKey => {
            runs(socket)?;
            done(folder, &["key", "distrust", KEY])?;
            refused(socket)
        }
    }
    .map(|(_, said)| said)
}

fn file(version: &str) -> String {
    format!("{APP}-{version}.burnet")
}

/// The key that signs a version.
fn key_of(attack: PackageAttack, version: &str) -> &'static str {
    let by_another = matches!(attack, PackageAttack::OtherSigner | PackageAttack::UntrustedSigner);
    if by_another && version == "2.0.0" { OTHER_KEY } else { KEY }
}

fn build(folder: &Path, version: &str, asks: &str, key: &str) -> io::Result<()> {
    build_with(folder, version, asks, key, PROGRAM)
}

fn build_with(folder: &Path, version: &str, asks: &str, key: &str, program: &str) -> io::Result<()> {
    let source = folder.join("app");
    fs::create_dir_all(source.join("bin"))?;
    let manifest = format!(
        "name = '{APP}'\nversion = '{version}'\ndescription = 'It visits.'\nkind = 'native'\nabi = 2\nentry.any = 'bin/visit'\n\
         [capabilities]\n'view.read' = true\n{asks}"
    );
    fs::write(source.join("app.toml"), manifest)?;
    fs::write(source.join("bin/visit"), program)?;
    fs::set_permissions(source.join("bin/visit"), fs::Permissions::from_mode(0o755))?;
    done(folder, &["app", "build", &source.to_string_lossy()])?;
    done(folder, &["app", "sign", &file(version), "--key", key]).map(drop)
}

/// The installed program.
fn program(folder: &Path) -> io::Result<PathBuf> {
    let versions = fs::read_dir(state(folder).join("apps").join(APP))?;
    let installed = versions.flatten().map(|entry| entry.path()).find(|path| path.is_dir());
    installed.map(|path| path.join("bin/visit")).ok_or_else(|| io::Error::other("nothing is installed"))
}

/// Flips one bit.
fn alter(program: &Path) -> io::Result<()> {
    let mut bytes = fs::read(program)?;
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    fs::remove_file(program)?;
    fs::write(program, bytes)?;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
}

/// Sends the operator's command for the app.
fn ask(socket: &Path, verb: Verb) -> io::Result<()> {
    let question = Question::App { app: APP.to_owned(), verb, why: None };
    client::ask(socket, &question).map(drop).map_err(|error| io::Error::other(error.to_string()))
}

/// The app's state, once it is as expected, or its last state if that never happens.
fn wait(socket: &Path, until: impl Fn(&AppStatus) -> bool) -> Option<AppStatus> {
    let began = Instant::now();
    loop {
        let seen = match client::ask(socket, &Question::Apps) {
            Ok(Answer::Apps(apps)) => apps.into_iter().map(|app| app.status).find(|app| app.app == APP),
            _ => None,
        };
        if seen.as_ref().is_some_and(&until) || began.elapsed() > PATIENCE {
            return seen;
        }
        std::thread::sleep(LOOK);
    }
}

/// Waits until the app runs.
fn runs(socket: &Path) -> io::Result<()> {
    match wait(socket, |app| app.state == AppState::Running) {
        Some(app) if app.state == AppState::Running => Ok(()),
        seen => Err(io::Error::other(format!("the app does not run: {seen:?}"))),
    }
}

/// Waits until the package is not approved any more. Returns whether the app goes on, and the reason.
fn refused(socket: &Path) -> io::Result<(bool, String)> {
    let Some(app) = wait(socket, |app| app.state == AppState::Refused) else {
        return Err(io::Error::other("the node does not say how the app is"));
    };
    let reason = app.last_end.map(|end| end.reason).unwrap_or_default();
    match (app.state, app.pid) {
        (AppState::Refused, None) => Ok((false, reason)),
        (state, _) => Ok((true, format!("it goes on: it is {state:?}"))),
    }
}

/// Runs a burnet command in the folder. Returns whether it succeeded, and its last line.
fn burnet(folder: &Path, arguments: &[&str]) -> io::Result<(bool, String)> {
    let program = crate::own_node::burnet().map_err(io::Error::other)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .env("BURNET_STATE", state(folder))
        .env_remove("BURNET_SOCKET");
    let output = command.stdin(Stdio::null()).output()?;
    let said = if output.status.success() { output.stdout } else { output.stderr };
    let said = String::from_utf8_lossy(&said).lines().next_back().unwrap_or_default().to_owned();
    let worked = output.status.success();
    Ok((worked, if worked { format!("it worked: {said}") } else { said }))
}

fn done(folder: &Path, arguments: &[&str]) -> io::Result<String> {
    match burnet(folder, arguments)? {
        (true, said) => Ok(said),
        (false, said) => Err(io::Error::other(format!("burnet {}: {said}", arguments.join(" ")))),
    }
}
