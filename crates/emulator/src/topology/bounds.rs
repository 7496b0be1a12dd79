//! What is refused as a topology: a text that names none, and a network that is empty or too large.
//!
//! In: a text, or the size of a network. Out: an error for the operator, or nothing. It builds no network.

use std::fmt;

use super::{HOSTS_MAX, LINKS_MAX, SWITCHES_MAX};

/// The error for a text that names no known topology. The operator must correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotATopology {
    text: String,
    why: String,
}

impl NotATopology {
    pub(super) fn new(text: &str, why: impl Into<String>) -> Self {
        NotATopology { text: text.to_owned(), why: why.into() }
    }
}

impl fmt::Display for NotATopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a topology: {}", self.text, self.why)
    }
}

impl std::error::Error for NotATopology {}

/// The size of a topology; `None` if it overflows.
pub(super) struct Size {
    pub(super) switches: Option<usize>,
    pub(super) hosts: Option<usize>,
    pub(super) links: Option<usize>,
}

impl Size {
    /// Refuses an empty network and one that is too large.
    pub(super) fn check(&self, text: &str) -> Result<(), NotATopology> {
        self.why_not().map_or(Ok(()), |why| Err(NotATopology::new(text, why)))
    }

    /// Why the size is refused, if it is.
    pub(super) fn why_not(&self) -> Option<String> {
        if self.switches == Some(0) || self.hosts == Some(0) {
            return Some("it has no switch or no host".into());
        }
        let bounds = [
            (self.switches, SWITCHES_MAX, "switches"),
            (self.hosts, HOSTS_MAX, "hosts"),
            (self.links, LINKS_MAX, "links"),
        ];
        let beyond = bounds.iter().find_map(|(count, bound, what)| {
            let count = (*count)?;
            (count > *bound).then(|| format!("it has {count} {what}, and the limit is {bound}"))
        });
        let uncounted = bounds.iter().any(|(count, ..)| count.is_none());
        beyond.or_else(|| uncounted.then(|| "it is too large to be counted".into()))
    }
}
