//! The grant of a caller of `hosts`.
//!
//! In: the bytes that the kernel hands to the service. Out: whether a question is within the grant.

use crate::declaration::{READ, WRITE};
use crate::question::Question;
use contract::Part;

/// The part of an app's grant that concerns the hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant(Part);

impl Grant {
    /// Reads the bytes that come with a call. No bytes grant nothing.
    ///
    /// # Errors
    /// A sentence for the log: the node and the service have different versions.
    pub fn from_bytes(bytes: &[u8]) -> Result<Grant, String> {
        Part::from_bytes(bytes).map(Grant)
    }

    /// Whether the app may read and follow.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check_follow(&self) -> Result<(), String> {
        self.0.require(READ).map(drop)
    }

    /// Whether the app may ask this. [`WRITE`] permits to configure, annotate and remove hosts.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check(&self, question: &Question) -> Result<(), String> {
        self.0.require(if question.writes() { WRITE } else { READ }).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_permits_its_own_questions_only() {
        let check = |part: &str, question: &str, expected: Option<&str>| {
            let grant = Grant::from_bytes(part.as_bytes()).unwrap();
            let question = Question::from_bytes(question.as_bytes()).unwrap();
            let refused = grant.check(&question).err();
            let why = expected.map(|name| format!("{name}: the app does not hold this capability"));
            assert_eq!(refused, why, "{part}");
        };
        let remove = r#"{"op":"remove","id":"00:00:00:00:00:01"}"#;
        check("", r#"{"op":"list"}"#, Some(READ));
        check("", remove, Some(WRITE));
        check(r#"{"capabilities":{"host.read":true}}"#, r#"{"op":"list"}"#, None);
        check(r#"{"capabilities":{"host.read":true}}"#, remove, Some(WRITE));
        check(r#"{"capabilities":{"host.write":true}}"#, remove, None);
        check(r#"{"capabilities":{"host.write":true}}"#, r#"{"op":"incidents"}"#, Some(READ));
        assert!(Grant::from_bytes(b"{").is_err());
        assert!(Grant::default().check_follow().is_err());
    }
}
