//! The grant of a caller of `labels`.
//!
//! In: the bytes that the kernel hands to the service. Out: whether a question is within the grant.

use crate::declaration::{OWN, READ, WRITE};
use crate::question::{Follow, Question};
use contract::{Part, not_held};

/// The part of an app's grant that concerns labels.
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

    /// Whether the app may follow the labels of this slice: its own, or any with [`READ`].
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check_follow(&self, follow: &Follow) -> Result<(), String> {
        self.check_read(&follow.slice)
    }

    /// Whether the app may ask this.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check(&self, question: &Question) -> Result<(), String> {
        match question {
            Question::Report(report) => self.check_own(&report.slice),
            Question::Labels { slice }
            | Question::Flows { slice }
            | Question::Past { slice, .. }
            | Question::Promise { slice } => self.check_read(slice),
            Question::Slices | Question::Counts | Question::Agents => self.0.require(READ).map(drop),
            Question::Put { .. } | Question::Remove { .. } => self.0.require(WRITE).map(drop),
        }
    }

    fn check_read(&self, slice: &str) -> Result<(), String> {
        match self.0.permitted(READ) {
            Some(_) => Ok(()),
            None => self.check_own(slice),
        }
    }

    fn check_own(&self, slice: &str) -> Result<(), String> {
        let permitted = self.0.permitted(OWN).ok_or_else(|| not_held(OWN))?;
        match permitted.names(slice) {
            true => Ok(()),
            false => Err(format!("{OWN}: slice {slice} is not the app's own")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_reports_and_reads_its_own_only() {
        let check = |part: &str, question: &str, expected: Option<&str>| {
            let grant = Grant::from_bytes(part.as_bytes()).unwrap();
            let question = Question::from_bytes(question.as_bytes()).unwrap();
            assert_eq!(grant.check(&question).err().as_deref(), expected, "{part}");
        };
        let own = r#"{"capabilities":{"labels.own":["blue"]}}"#;
        let read = r#"{"capabilities":{"labels.read":true}}"#;
        let write = r#"{"capabilities":{"labels.write":true}}"#;
        let report = r#"{"op":"report","slice":"blue","session":1,"number":1,"entries":[]}"#;
        let foreign = "labels.own: slice red is not the app's own";
        check("", report, Some("labels.own: the app does not hold this capability"));
        check(own, report, None);
        check(own, &report.replace("blue", "red"), Some(foreign));
        check(own, r#"{"op":"labels","slice":"blue"}"#, None);
        check(own, r#"{"op":"flows","slice":"red"}"#, Some(foreign));
        check(own, r#"{"op":"promise","slice":"red"}"#, Some(foreign));
        check(own, r#"{"op":"past","slice":"red","since_s":60}"#, Some(foreign));
        check(own, r#"{"op":"past","slice":"blue","since_s":60}"#, None);
        check(read, r#"{"op":"flows","slice":"red"}"#, None);
        check(read, report, Some("labels.own: the app does not hold this capability"));
        check(own, r#"{"op":"slices"}"#, Some("labels.read: the app does not hold this capability"));
        check(
            read,
            r#"{"op":"remove","slice":"a"}"#,
            Some("labels.write: the app does not hold this capability"),
        );
        check(write, r#"{"op":"remove","slice":"a"}"#, None);
        let follow = Follow { slice: "red".to_owned() };
        assert_eq!(Grant::from_bytes(own.as_bytes()).unwrap().check_follow(&follow), Err(foreign.to_owned()));
    }
}
