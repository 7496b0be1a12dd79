//! The contract of the service `northbound`: its name, and the settings that the operator writes into `[network.northbound]`.
//!
//! ```text
//!   burnet.toml ──Settings──> check ──> settings of the service
//!   monitor ──NodeReport──> service, each half second
//! ```
//!
//! In: the table of the configuration. Out: the same as types, or a sentence that names the wrong key. It declares no capability: apps do
//! not call this service.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The name of the service.
pub const SERVICE: &str = "northbound";

/// It has no capabilities: its callers are people and programs outside the node.
pub const DECLARATION: contract::Service = contract::Service::without_capabilities(SERVICE);

/// The socket file beside the operator's socket, for the command line. Only users who may operate the node can open it.
pub const SOCKET: &str = "unix:northbound";

/// The most tokens of one node. Each request is compared with all of them.
pub const TOKENS_MAX: usize = 64;

/// The most names of this machine that a request may address.
pub const NAMES_MAX: usize = 64;

/// From the monitor, twice a second: the apps and services of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeReport {
    /// In the operator's order; services last.
    pub apps: Vec<AppReport>,
}

/// An app or service, as its object in the REST interface shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppReport {
    /// Its name.
    pub id: String,
    /// `app` or `service`.
    pub role: String,
    /// `starting`, `running`, `ending`, `backing_off`, `quarantined`, `stopped`, `held` or `refused`.
    pub state: String,
    /// The number of its zone.
    pub zone: u16,
    /// `process` or `trusted`.
    pub zone_kind: String,
    /// Its process, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How often it was restarted.
    pub restarts: u64,
    /// When its state began, in milliseconds since 1970.
    pub since_ms: u64,
    /// Why it ended last, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<String>,
    /// Its limits: the resource, and the soft and the hard limit.
    pub limits: Vec<Limit>,
    /// What it used in the last half second, by resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<BTreeMap<String, u64>>,
}

/// The limits of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The resource.
    pub resource: String,
    /// Above it, the app and the operator are told.
    pub soft: u64,
    /// Above it, an operation fails or the app is ended.
    pub hard: u64,
}

/// What a request may do. A later role includes the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It reads.
    Viewer,
    /// It also changes the network: intents, flows, hosts, annotations.
    Operator,
    /// The role of the command line. It permits nothing more yet.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        })
    }
}

/// What a request without a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WithoutToken {
    /// Nothing.
    Nothing,
    /// What a viewer may.
    Viewer,
    /// What an operator may.
    Operator,
}

impl WithoutToken {
    /// The role of such a request.
    pub fn role(self) -> Option<Role> {
        match self {
            WithoutToken::Nothing => None,
            WithoutToken::Viewer => Some(Role::Viewer),
            WithoutToken::Operator => Some(Role::Operator),
        }
    }
}

/// A token that requests may carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// What it permits.
    pub role: Role,
    /// The SHA-256 of the token, as 64 hexadecimal digits. The token itself is in no file of the node.
    pub sha256: String,
}

impl Token {
    /// The hash as bytes, or `None` if it is no SHA-256.
    pub fn hash(&self) -> Option<[u8; 32]> {
        if self.sha256.len() != 64 || !self.sha256.is_ascii() {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, digits) in hash.iter_mut().zip(self.sha256.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(hash)
    }
}

/// The table `[network.northbound]`, without the keys `listen` and `limits`, which are the node's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Further names of this machine that a request may address in its header `Host`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// What a request without a token may do. The default is `operator` if only this machine can connect and there is no token, otherwise
    /// `nothing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_token: Option<WithoutToken>,
    /// The tokens, by the operator's name for each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, Token>,
}

impl Settings {
    /// What a request without a token may do. `is_open`: other machines can connect.
    pub fn without_token(&self, is_open: bool) -> WithoutToken {
        let is_private = self.tokens.is_empty() && !is_open;
        let default = if is_private { WithoutToken::Operator } else { WithoutToken::Nothing };
        self.without_token.unwrap_or(default)
    }

    /// The first thing that is wrong, as a sentence that begins with the key.
    pub fn flaw(&self) -> Option<String> {
        if let Some((name, _)) = self.tokens.iter().find(|(_, token)| token.hash().is_none()) {
            return Some(format!(
                "tokens.{name}.sha256: it is no SHA-256: write 64 hexadecimal digits, from `printf %s TOKEN | sha256sum`"
            ));
        }
        if self.tokens.len() > TOKENS_MAX {
            return Some(format!(
                "tokens: {} tokens are more than the limit of {TOKENS_MAX}",
                self.tokens.len()
            ));
        }
        if self.names.len() > NAMES_MAX {
            return Some(format!("names: {} names are more than the limit of {NAMES_MAX}", self.names.len()));
        }
        let wrong = self.names.iter().find(|name| !is_host_name(name))?;
        Some(format!("names: {wrong:?} is no host name: write it without scheme and port"))
    }

    /// What is wrong if other machines can connect.
    pub fn flaw_if_open(&self) -> Option<&'static str> {
        if self.tokens.is_empty() {
            return Some(
                "listen: other machines can reach this address, and there is no token: add one to [network.northbound.tokens]",
            );
        }
        (self.without_token(true) != WithoutToken::Nothing).then_some(
            "without_token: other machines can connect, so a request without a token may do nothing: write \"nothing\"",
        )
    }
}

fn is_host_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !name.is_empty() && name.len() <= 253 && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, is_open: bool, expected: Result<WithoutToken, &str>) {
        let settings: Settings = serde_json::from_str(json).unwrap();
        let flaw_if_open = || settings.flaw_if_open().filter(|_| is_open).map(str::to_owned);
        match (settings.flaw().or_else(flaw_if_open), expected) {
            (None, Ok(expected)) => assert_eq!(settings.without_token(is_open), expected, "{json}"),
            (Some(flaw), Err(part)) => assert!(flaw.starts_with(part), "{flaw}"),
            (flaw, expected) => panic!("{json}: {flaw:?}, but expected {expected:?}"),
        }
    }

    const TOKEN: &str = r#""tokens":{"a":{"role":"viewer","sha256":"00000000000000000000000000000000000000000000000000000000000000ff"}}"#;

    #[test]
    fn what_opens_the_node_to_others_needs_tokens() {
        check("{}", false, Ok(WithoutToken::Operator));
        check("{}", true, Err("listen: "));
        check(r#"{"without_token":"viewer"}"#, false, Ok(WithoutToken::Viewer));
        check(&format!("{{{TOKEN}}}"), false, Ok(WithoutToken::Nothing));
        check(&format!("{{{TOKEN}}}"), true, Ok(WithoutToken::Nothing));
        let named = format!(r#"{{{TOKEN},"without_token":"operator"}}"#);
        check(&named, false, Ok(WithoutToken::Operator));
        check(&named, true, Err("without_token: "));
    }

    #[test]
    fn a_wrong_value_is_named_by_its_key() {
        check(r#"{"tokens":{"a":{"role":"admin","sha256":"secret"}}}"#, false, Err("tokens.a.sha256: "));
        check(r#"{"names":["http://x"]}"#, false, Err("names: "));
        for wrong in [r#"{"token":{}}"#, r#"{"tokens":{"a":{"role":"root","sha256":""}}}"#] {
            assert!(serde_json::from_str::<Settings>(wrong).is_err(), "{wrong}");
        }
    }
}
