//! What a slice reports: the paths that its rules make, and the links that it shows to its tenant.
//!
//! In: nothing. Out: types, and whether a report can be right.

use serde::{Deserialize, Serialize};
use view::LinkId;

/// The most entries of a report. More are refused; a slice sends several reports.
pub const ENTRIES_MAX: usize = 512;

/// Changes of a slice, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The name of the slice.
    pub slice: String,
    /// The process of the slice: later ones have greater numbers, such as the time of the start.
    pub session: u64,
    /// From 1 in each session, one more with each report.
    pub number: u64,
    /// Whether the slice begins to report all that it has. What it does not report again until the end of this is void.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
    /// Whether more reports of the same beginning follow. Without it, this is the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// What has changed. It may be empty: then the report asks whether the service has all.
    pub entries: Vec<Entry>,
}

/// A change of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase", deny_unknown_fields)]
pub enum Entry {
    /// The rules of the slice bring packets from one VNIC to another over these links.
    Path {
        /// The VNIC that sends.
        from: String,
        /// The VNIC that receives.
        to: String,
        /// Links in the direction of the packets, first to last. None if both VNICs are at one switch.
        links: Vec<LinkId>,
        /// How many rules make the path.
        rules: u32,
    },
    /// No rules bring packets from one VNIC to another any more.
    NoPath {
        /// The VNIC that sends.
        from: String,
        /// The VNIC that receives.
        to: String,
    },
    /// The slice shows this direction of a link to its tenant, and wants its labels.
    Link {
        /// The link.
        link: LinkId,
    },
    /// The slice no longer shows it.
    NoLink {
        /// The link.
        link: LinkId,
    },
}

impl Report {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.number == 0 {
            return Err("number: 0 is not possible; the first report has 1".to_owned());
        }
        if self.session == 0 {
            return Err("session: 0 is not possible; take the time of the start".to_owned());
        }
        match self.entries.len() {
            0..=ENTRIES_MAX => Ok(()),
            more => Err(format!("entries: {more} are too many, a report has at most {ENTRIES_MAX}")),
        }
    }
}
