//! `burnet key new`, `list`, `trust`, `distrust`: the keys that may sign packages.
//!
//! In: arguments, the state folder, the time. Out: what to print. It never prints a private key.

use package::key::PrivateKey;
use package::state::read_public_key;
use package::trust::TrustedKey;
use serde::Serialize;

use super::package::{now, state};
use super::{audit, json, table::columns};
use crate::cli::CommandError;
use crate::cli::package::{KeyDistrustArgs, KeyListArgs, KeyNewArgs, KeyTrustArgs};

/// The output of `burnet key new`.
pub fn new(args: &KeyNewArgs) -> Result<String, CommandError> {
    let state = state(&args.state)?;
    let lock = state.lock()?;
    let mut random = [0; 32];
    let drawn = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    if drawn != Ok(random.len()) {
        return Err(CommandError::DidNotWork(
            "the system provides no random numbers, so no key was created".to_owned(),
        ));
    }
    let key = PrivateKey::from_random(args.name.clone(), &random);
    let public = state.keep_key(&key, &lock)?;
    let id = key.public().public.id();
    Ok(format!(
        "{} (key {id}) was created. Keep the private key on this machine. Give the public key to operators:\n  {}\n",
        args.name,
        public.display()
    ))
}

/// The output of `burnet key list`.
pub fn list(args: &KeyListArgs) -> Result<String, CommandError> {
    #[derive(Serialize)]
    struct Keys<'a> {
        own: Vec<package::key::NamedKey>,
        trusted: &'a [TrustedKey],
    }
    let state = state(&args.state)?;
    let (own, store) = (state.own_keys()?, state.trust()?);
    if args.json {
        return json(&Keys { own, trusted: store.keys() });
    }
    let own: Vec<_> = own.iter().map(|key| [key.name.to_string(), key.public.id().to_string()]).collect();
    let trusted: Vec<_> = store.keys().iter().map(row).collect();
    let section = |heading: &str, none: &str, rows: String, empty: bool| {
        format!("{heading}\n{}", if empty { format!("  {none}\n") } else { rows })
    };
    let mine = columns(["NAME", "KEY"], &own);
    let theirs = columns(["NAME", "KEY", "ROLE", "SINCE", "STANDING"], &trusted);
    let first = section("Yours:", "none; burnet key new NAME makes one", mine, own.is_empty());
    let second = section(
        "Trusted by this node:",
        "none; burnet key trust FILE.pub --role developer",
        theirs,
        trusted.is_empty(),
    );
    Ok(format!("{first}\n{second}"))
}

fn row(key: &TrustedKey) -> [String; 5] {
    let standing = match (key.revoked, key.expires) {
        (Some(at), _) => format!("revoked at {at}"),
        (None, Some(at)) if at <= now() => format!("expired at {at}"),
        (None, Some(at)) => format!("until {at}"),
        (None, None) => "without an expiry date".to_owned(),
    };
    [key.name.to_string(), key.public.id().to_string(), key.role.to_string(), key.since.to_string(), standing]
}

/// The output of `burnet key trust`.
pub fn trust(args: &KeyTrustArgs) -> Result<String, CommandError> {
    let state = state(&args.state)?;
    let mut key = read_public_key(&args.file)?;
    if let Some(name) = &args.name {
        key.name = name.clone();
    }
    let lock = state.lock()?;
    let mut store = state.trust()?;
    let (now, name, id) = (now(), key.name.clone(), key.public.id());
    let expires = args.expires.map(|until| until.from(now));
    store.trust(key, args.role, now, expires).map_err(CommandError::Usage)?;
    state.keep_trust(&store, &lock)?;
    let until =
        expires.map_or_else(|| "without an expiry date".to_owned(), |expires| format!("until {expires}"));
    audit::keep(&state, "key_trusted", None, format!("{name} (key {id}) as {}, {until}", args.role));
    Ok(format!("{name} (key {id}) is trusted as {}, {until}\n", args.role))
}

/// The output of `burnet key distrust`.
pub fn distrust(args: &KeyDistrustArgs) -> Result<String, CommandError> {
    let state = state(&args.state)?;
    let lock = state.lock()?;
    let mut store = state.trust()?;
    let key = store.distrust(&args.which, now()).map_err(CommandError::Usage)?;
    let (name, id) = (key.name.clone(), key.public.id());
    state.keep_trust(&store, &lock)?;
    audit::keep(&state, "key_distrusted", None, format!("{name} (key {id})"));
    Ok(format!(
        "{name} (key {id}) is revoked; packages that only this key signed do not start any more,\n\
         and a running node stops their apps within two seconds\n"
    ))
}
