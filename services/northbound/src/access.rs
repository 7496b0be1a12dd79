//! Who may do what: tokens and roles.
//!
//! ```text
//!   header Authorization ──> Access::role ──> Role, or the problem
//! ```
//!
//! In: the hashes of the configuration, and a header. Out: a role, or a problem. It keeps no token, and compares hashes in constant time.

use crate::http::Problem;
use northbound_contract::{Role, Settings};
use sha2::{Digest, Sha256};

/// The tokens of the configuration, as hashes.
#[derive(Debug)]
pub struct Access {
    tokens: Vec<([u8; 32], Role)>,
    without_token: Option<Role>,
}

impl Access {
    /// The access that these settings give. `is_open`: other machines can connect. A wrong hash is left out; `Settings::flaw` has reported it.
    pub fn new(settings: &Settings, is_open: bool) -> Access {
        let tokens = settings.tokens.values().filter_map(|token| Some((token.hash()?, token.role))).collect();
        Access { tokens, without_token: settings.without_token(is_open).role() }
    }

    /// The role of a request with this header, or without one.
    ///
    /// # Errors
    /// 401: the token is missing or unknown.
    pub fn role(&self, authorization: Option<&str>) -> Result<Role, Problem> {
        let Some(header) = authorization else {
            return self.without_token.ok_or_else(|| {
                unauthorized("no-token", "A token is missing", "send the header Authorization: Bearer TOKEN")
            });
        };
        let token = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let role = token.and_then(|(_, token)| self.role_of(token.trim()));
        role.ok_or_else(|| {
            unauthorized(
                "wrong-token",
                "The token is unknown",
                "no token in [network.northbound.tokens] has this SHA-256: check the token, and whether it was revoked",
            )
        })
    }

    /// The role of a token. All hashes are compared, so the time tells nothing about them.
    fn role_of(&self, token: &str) -> Option<Role> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let found = |role: Option<Role>, (known, of): &([u8; 32], Role)| {
            if same(&hash, known) { Some(*of) } else { role }
        };
        self.tokens.iter().fold(None, found)
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
        let got = access.role(header);
        assert_eq!(got.map_err(|problem| problem.name), expected, "{header:?}");
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
        let roles = [Role::Viewer, Role::Operator, Role::Admin];
        for (at, role) in roles.into_iter().enumerate() {
            for (needed_at, needed) in roles.into_iter().enumerate() {
                assert_eq!(permits(role, needed).is_ok(), at >= needed_at, "{role} {needed}");
            }
        }
    }
}
