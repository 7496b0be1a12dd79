//! The contract of the service `labels`: what slices report to it, what it tells them, and the grant of a caller.
//!
//! ```text
//!   slice: Reporter ──Question::Report──> query ──> Heard: which report is next, or begin again :service
//!   slice: Label, State <──stream of one slice── :service
//!   operator: Question ──> Flows, Labels, Standing :service
//! ```
//!
//! In: typed questions and answers, or bytes. Out: the other form. It sends nothing, and does not depend on the SDK.
//!
//! Messages between apps may be lost. So a slice numbers its reports and has one on its way at a time ([`Reporter`]). The service answers with
//! the number that it wants next. What was lost is sent again. After a restart of either side, the slice reports all that it has.

mod answer;
mod declaration;
mod grant;
mod question;
mod report;
mod reporter;
mod share;

pub use answer::{
    AgentStanding, Counts, Flow, Heard, Incident, Label, RefusedEntry, Standing, State, TimedLabel,
};
pub use declaration::{DECLARATION, OWN, READ, WRITE};
pub use grant::Grant;
pub use question::{Follow, Hose, NAME_BYTES_MAX, QUESTION_BYTES_MAX, Question, VNICS_MAX, Vnic};
pub use report::{ENTRIES_MAX, Entry, Report};
pub use reporter::{Next, Reporter, WAITING_MAX};
pub use share::{Past, PastShare, Reason, Share, shares};

/// The name of the service.
pub const SERVICE: &str = "labels";

/// The topic on which the service publishes each [`Incident`] as JSON.
pub const INCIDENT_TOPIC: &str = "labels.incident";

/// The key of the entry of a stream that has the [`State`]. All other keys are links, and their values [`TimedLabel`]s.
pub const STATE_KEY: &str = "state";

/// The statuses of answers, in addition to those common to all services. A payload of a refusal is a sentence.
pub mod status {
    /// Success.
    pub const DONE: u16 = 0;
    /// There is no such slice.
    pub const NOT_FOUND: u16 = 1;
    /// A later process of the slice reports. This one is of the past.
    pub const OUTDATED: u16 = 2;
    /// There are as many slices as can be.
    pub const FULL: u16 = 3;
    /// The app has no grant for this question (`abi::event::NOT_GRANTED`).
    pub const NOT_GRANTED: u16 = 0xff80;
    /// The question is wrong (`abi::event::BAD_QUESTION`).
    pub const BAD_QUESTION: u16 = 0xff82;
}
