//! The parts of an app's sandbox and limits that this machine does not enforce. Pure.
//!
//! In: reports of the zone's launcher. Out: a bounded list with printable text. It decides nothing.

use crate::app::{NOT_ENFORCED_BYTES_MAX, NOT_ENFORCED_MAX, legible};
use zone::NotEnforced;

/// The maximum length of the name of a limit. Burnet defines the names.
const LIMIT_BYTES_MAX: usize = 32;

/// The gaps of one start of an app, in the order of the reports.
#[derive(Debug, Default)]
pub(crate) struct Enforcement {
    gaps: Vec<NotEnforced>,
}

impl Enforcement {
    /// Adds a report while there is room. Returns it with printable text.
    pub(crate) fn note(&mut self, gap: &NotEnforced) -> NotEnforced {
        let limit = legible(&gap.limit, LIMIT_BYTES_MAX);
        let noted: usize = self.gaps.iter().map(|gap| gap.limit.len() + gap.why.len()).sum();
        let room = NOT_ENFORCED_BYTES_MAX.saturating_sub(noted + limit.len());
        let gap = NotEnforced::new(&limit, legible(&gap.why, room));
        if self.gaps.len() < NOT_ENFORCED_MAX && room > 0 {
            self.gaps.push(gap.clone());
        }
        gap
    }

    pub(crate) fn gaps(&self) -> &[NotEnforced] {
        &self.gaps
    }

    /// Whether no report says that this limit is not enforced.
    pub(crate) fn enforces(&self, limit: &str) -> bool {
        !self.gaps.iter().any(|gap| gap.limit == limit)
    }
}
