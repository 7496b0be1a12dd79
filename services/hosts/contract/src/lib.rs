//! The contract of the service `hosts`: questions, answers, statuses, and the grant of a caller.
//!
//! ```text
//!   caller: Question ──to_bytes──> payload of a query ──from_bytes──> Question :service
//!   caller: Page, Record, Incident <──JSON── answer :service
//!   caller: view::Key, view::Record <──stream── the table of hosts :service
//! ```
//!
//! In: typed questions and answers, or bytes. Out: the other form. It sends nothing, and does not depend on the SDK.

mod answer;
mod declaration;
mod grant;
pub mod question;

pub use answer::{Counts, Incident, IncidentKind, Page};
pub use declaration::{DECLARATION, READ, WRITE};
pub use grant::Grant;
pub use question::{Filter, Question};

/// The name of the service.
pub const SERVICE: &str = "hosts";

/// The topic on which the service publishes each [`Incident`] as JSON.
pub const INCIDENT_TOPIC: &str = "hosts.incident";

/// The statuses of answers, in addition to those common to all services. A payload of a refusal is a sentence.
pub mod status {
    /// Success. A change is in the store.
    pub const DONE: u16 = 0;
    /// There is no such host.
    pub const NOT_FOUND: u16 = 1;
    /// The change contradicts what is there: the sentence names the field.
    pub const CONFLICT: u16 = 2;
    /// As many hosts are configured or annotated as can be. Nothing has changed.
    pub const FULL: u16 = 3;
    /// The store did not take the change, for the reason in the sentence. Nothing has changed.
    pub const NOT_STORED: u16 = 4;
    /// The app has no grant for this question (`abi::event::NOT_GRANTED`).
    pub const NOT_GRANTED: u16 = 0xff80;
    /// The question is wrong (`abi::event::BAD_QUESTION`).
    pub const BAD_QUESTION: u16 = 0xff82;
}
