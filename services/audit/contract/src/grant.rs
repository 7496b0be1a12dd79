//! The grant of a caller of `audit`.
//!
//! In: the bytes that the kernel hands to the service. Out: whether the caller may read the log.

use crate::declaration::READ;
use contract::Part;

/// The part of an app's grant that concerns the audit log.
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

    /// Whether the app may read the log.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check_read(&self) -> Result<(), String> {
        self.0.require(READ).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_capability_permits_it() {
        let check = |part: &str, expected: bool| {
            let grant = Grant::from_bytes(part.as_bytes()).unwrap();
            assert_eq!(grant.check_read().is_ok(), expected, "{part}");
        };
        check("", false);
        check(r#"{"capabilities":{"view.read":true}}"#, false);
        check(r#"{"capabilities":{"audit.read":true}}"#, true);
        assert!(Grant::from_bytes(b"{").is_err());
    }
}
