//! The grant of a caller of `discovery`.
//!
//! In: the bytes that the kernel hands to the service. Out: whether a question is within the grant.

use crate::declaration::{ANNOTATE, READ};
use crate::question::Question;
use contract::Part;

/// The part of an app's grant that concerns switches, ports and links.
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

    /// Whether the app may ask this. [`ANNOTATE`] permits to annotate objects, and remove those that are down.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check(&self, question: &Question) -> Result<(), String> {
        self.0.require(if question.writes() { ANNOTATE } else { READ }).map(drop)
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
            let why = expected.map(|name| format!("{name}: the app does not hold this capability"));
            assert_eq!(grant.check(&question).err(), why, "{part}");
        };
        let (list, remove) = (r#"{"op":"list"}"#, r#"{"op":"remove","key":"switch/1"}"#);
        check("", list, Some(READ));
        check("", remove, Some(ANNOTATE));
        check(r#"{"capabilities":{"view.read":true}}"#, list, None);
        check(r#"{"capabilities":{"view.read":true}}"#, remove, Some(ANNOTATE));
        check(r#"{"capabilities":{"view.annotate":true}}"#, remove, None);
        check(r#"{"capabilities":{"view.annotate":true}}"#, r#"{"op":"counts"}"#, Some(READ));
        assert!(Grant::from_bytes(b"{").is_err());
        assert!(Grant::default().check_follow().is_err());
    }
}
