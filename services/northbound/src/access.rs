//! Who may do what: tokens and roles.
//!
//! ```text
//!   header Authorization ──> Access::sender ──> Sender with its role, or the problem
//! ```
//!
//! In: the hashes of the configuration, and a header. Out: a sender, or a problem. It keeps no token, and compares hashes in constant time.

use crate::http::Problem;
use northbound_contract::{Role, Settings, Token};
use sha2::{Digest, Sha256};

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// What it may do.
    pub role: Role,
    /// Its name for the audit log.
    pub name: String,
    /// The only slice that it sees, if it is a tenant.
    pub slice: Option<String>,
}

impl Sender {
    /// The operator, who may open the socket file.
    pub fn operator() -> Sender {
        Sender { role: Role::Admin, name: "the operator's socket".to_owned(), slice: None }
    }
}

/// The tokens of the configuration, as hashes.
#[derive(Debug)]
pub struct Access {
    tokens: Vec<([u8; 32], Sender)>,
    without_token: Option<Role>,
}

impl Access {
    /// The access that these settings give. `is_open`: other machines can connect. A wrong hash is left out; `Settings::flaw` has reported it.
    pub fn new(settings: &Settings, is_open: bool) -> Access {
        let sender = |name: &str, token: &Token| Sender {
            role: token.role,
            name: format!("token {name}"),
            slice: token.slice.clone(),
        };
        let tokens = settings.tokens.iter();
        let tokens = tokens.filter_map(|(name, token)| Some((token.hash()?, sender(name, token)))).collect();
        Access { tokens, without_token: settings.without_token(is_open).role() }
    }

    /// The sender of a request with this header, or without one.
    ///
    /// # Errors
    /// 401: the token is missing or unknown.
    pub fn sender(&self, authorization: Option<&str>) -> Result<Sender, Problem> {
        let Some(header) = authorization else {
            let nobody = |role| Sender { role, name: "no token".to_owned(), slice: None };
            return self.without_token.map(nobody).ok_or_else(|| {
                unauthorized("no-token", "A token is missing", "send the header Authorization: Bearer TOKEN")
            });
        };
        let token = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let sender = token.and_then(|(_, token)| self.owner_of(token.trim()));
        sender.cloned().ok_or_else(|| {
            unauthorized(
                "wrong-token",
                "The token is unknown",
                "no token in [network.northbound.tokens] has this SHA-256: check the token, and whether it was revoked",
            )
        })
    }

    /// The sender with a token. All hashes are compared, so the time tells nothing about them.
    fn owner_of(&self, token: &str) -> Option<&Sender> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        self.tokens.iter().fold(None, |found, (known, of)| if same(&hash, known) { Some(of) } else { found })
    }
}

/// Checks that this role permits what needs the other.
///
/// # Errors
/// 403.
pub fn permits(role: Role, needed: Role) -> Result<(), Problem> {
    if role >= needed {
        return Ok(());
    }
    let detail = format!("this needs the role {needed}, and the request has the role {role}");
    Err(Problem::new(403, "role-too-low", "The role does not permit this", detail))
}

fn unauthorized(name: &'static str, title: &'static str, detail: &str) -> Problem {
    let problem = Problem::new(401, name, title, detail);
    Problem { headers: vec![("www-authenticate", "Bearer".to_owned())], ..problem }
}

fn same(one: &[u8; 32], two: &[u8; 32]) -> bool {
    let difference = one.iter().zip(two).fold(0, |sum, (one, two)| std::hint::black_box(sum | (one ^ two)));
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(json: &str) -> Access {
        let settings: Settings = serde_json::from_str(json).unwrap();
        assert_eq!(settings.flaw(), None);
        Access::new(&settings, false)
    }

    /// The hash of `secret`.
    const ONE: &str = r#"{"tokens":{"a":{"role":"viewer","sha256":"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"}}}"#;

    fn check(access: &Access, header: Option<&str>, expected: Result<Role, &str>) {
        let got = access.sender(header);
        let role = got.map(|sender| sender.role).map_err(|problem| problem.name);
        assert_eq!(role, expected, "{header:?}");
    }

    #[test]
    fn a_sender_has_the_name_of_its_token() {
        let shut = access(ONE);
        assert_eq!(shut.sender(Some("Bearer secret")).unwrap().name, "token a");
        assert_eq!(access("{}").sender(None).unwrap().name, "no token");
    }

    #[test]
    fn a_wrong_token_is_refused_also_where_none_is_needed() {
        let open = access("{}");
        check(&open, None, Ok(Role::Operator));
        check(&open, Some("Bearer x"), Err("wrong-token"));
        let shut = access(ONE);
        check(&shut, None, Err("no-token"));
        for header in ["", "Bearer", "Bearer ", "Bearer secre", "Bearer secret2", "Basic secret", "secret"] {
            check(&shut, Some(header), Err("wrong-token"));
        }
        check(&shut, Some("Bearer secret"), Ok(Role::Viewer));
        check(&shut, Some("bearer secret "), Ok(Role::Viewer));
    }

    #[test]
    fn a_role_includes_the_earlier_ones() {
        let roles = [Role::Tenant, Role::Viewer, Role::Operator, Role::Admin];
        for (at, role) in roles.into_iter().enumerate() {
            for (needed_at, needed) in roles.into_iter().enumerate() {
                assert_eq!(permits(role, needed).is_ok(), at >= needed_at, "{role} {needed}");
            }
        }
    }
}
