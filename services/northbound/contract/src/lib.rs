//! The contract of the service `northbound`: its name, and the settings that the operator writes into `[network.northbound]`.
//!
//! ```text
//!   burnet.toml ──Settings──> check ──> settings of the service
//!   monitor ──FromMonitor──> service: apps each half second, incidents, evidence, and the results of commands
//!           <──ToMonitor──── service: commands for apps, questions for evidence
//! ```
//!
//! In: the table of the configuration, and messages as JSON. Out: the same as types, or a sentence that names the wrong key. It declares no
//! capability: apps do not call this service.

mod messages;

pub use messages::{
    AppCommand, AppReport, CommandRefused, DELAYS_MAX, EvidenceReport, FromMonitor, IncidentReport, Limit,
    LogLine, NodeReport, ReplyDelay, SENDER_BYTES_MAX, ToMonitor, Verb, WHY_BYTES_MAX,
};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

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

/// The most pairs of switches in one `POST /api/v1/routes`. A request with more is refused.
pub const ROUTE_PAIRS_MAX: usize = 256;

/// What a request may do. A later role includes the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It reads what concerns one slice: its state, its flows, its labels.
    Tenant,
    /// It reads all that is no secret.
    Viewer,
    /// It also changes the network: intents, flows, hosts, annotations.
    Operator,
    /// It also starts and stops apps, as far as the node permits it. It is the role of the command line.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Tenant => "tenant",
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
    /// The slice that a tenant's token shows. Other roles have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
}

impl Token {
    /// What is wrong with its slice, if something is.
    fn slice_flaw(&self) -> Option<&'static str> {
        match (self.role, &self.slice) {
            (Role::Tenant, None) => {
                Some("it is missing: a token with the role tenant shows one slice, so write its name")
            }
            (Role::Tenant, Some(_)) | (_, None) => None,
            (_, Some(_)) => {
                Some("only a token with the role tenant has it: leave it out, or write role = \"tenant\"")
            }
        }
    }

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
    /// Whether requests with the role `admin` may start, stop, restart and quarantine apps. The monitor checks it: without it, a fault in the
    /// service cannot stop an app.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_change_apps: bool,
    /// TLS, if the service uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// What is in the files of `tls`. The node fills it in, because the sandbox of the service has no files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The tokens, by the operator's name for each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, Token>,
}

/// The table `[network.northbound.tls]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// A PEM file with the certificate, followed by those of the authorities between it and one that clients trust.
    pub certificate: PathBuf,
    /// A PEM file with the private key of the certificate.
    pub private_key: PathBuf,
    /// Whether addresses that only this machine can reach also use TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
}

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The certificates in PEM.
    pub certificate: String,
    /// The private key in PEM.
    pub private_key: String,
}

impl fmt::Debug for Identity {
    /// Without the key, which no log must have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
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
        let with_flaw = |(name, token): (&String, &Token)| Some((name.clone(), token.slice_flaw()?));
        if let Some((name, flaw)) = self.tokens.iter().find_map(with_flaw) {
            return Some(format!("tokens.{name}.slice: {flaw}"));
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
        if let Some(wrong) = self.names.iter().find(|name| !is_host_name(name)) {
            return Some(format!("names: {wrong:?} is no host name: write it without scheme and port"));
        }
        let Tls { certificate, private_key, .. } = self.tls.as_ref()?;
        let files = [("certificate", certificate), ("private_key", private_key)];
        let (key, path) = files.into_iter().find(|(_, path)| !path.is_absolute())?;
        Some(format!("tls.{key}: {:?} is no absolute path", path.display().to_string()))
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
        let token = |rest: &str| format!(r#"{{"tokens":{{"a":{{"sha256":"{}",{rest}}}}}}}"#, "0".repeat(64));
        check(&token(r#""role":"tenant""#), false, Err("tokens.a.slice: it is missing"));
        check(&token(r#""role":"viewer","slice":"blue""#), false, Err("tokens.a.slice: only a token with"));
        check(&token(r#""role":"tenant","slice":"blue""#), false, Ok(WithoutToken::Nothing));
        check(r#"{"names":["http://x"]}"#, false, Err("names: "));
        check(r#"{"tls":{"certificate":"c.pem","private_key":"/k"}}"#, false, Err("tls.certificate: "));
        check(r#"{"tls":{"certificate":"/c","private_key":"k"}}"#, false, Err("tls.private_key: "));
        for wrong in [r#"{"token":{}}"#, r#"{"tokens":{"a":{"role":"root","sha256":""}}}"#] {
            assert!(serde_json::from_str::<Settings>(wrong).is_err(), "{wrong}");
        }
    }
}
