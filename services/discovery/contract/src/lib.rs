//! The contract of the service `discovery`: questions, answers, statuses, and the grant of a caller.
//!
//! ```text
//!   caller: Question ──to_bytes──> payload of a query ──from_bytes──> Question :service
//!   caller: Page, Counts <──JSON── answer :service
//!   caller: view::Key, view::Record <──stream── switches, ports, links :service
//! ```
//!
//! The payload of a request to follow is a [`Follow`]. In: typed values, or bytes. Out: the other of the two. It sends nothing.

mod answer;
mod declaration;
mod follow;
mod grant;
mod question;

pub use answer::{Counts, Incident, Page, Refusal};
pub use declaration::{ANNOTATE, DECLARATION, READ};
pub use follow::Follow;
pub use grant::Grant;
pub use question::{Filter, Question};

/// The name of the service.
pub const SERVICE: &str = "discovery";

/// The topic on which the service publishes each [`Incident`] as JSON.
pub const INCIDENT_TOPIC: &str = "discovery.incident";

/// The objects in one answer if the question names no limit.
pub const PAGE_DEFAULT: usize = 100;

/// The most objects in one answer. A greater limit is cut to it.
pub const PAGE_MAX: usize = 1_000;

/// The most annotations of one object. A change that would give it more is refused.
pub const ANNOTATIONS_MAX: usize = 32;

/// The longest name of an annotation in bytes.
pub const ANNOTATION_NAME_BYTES_MAX: usize = 128;

/// All annotations of one object together, in bytes. With them a record fits into an entry of a stream.
pub const ANNOTATION_BYTES_MAX: usize = 4 << 10;

/// The statuses of answers, in addition to those common to all services. The payload of a refusal is a sentence.
pub mod status {
    /// Success. A changed annotation is in the store.
    pub const DONE: u16 = 0;
    /// There is no such object.
    pub const NOT_FOUND: u16 = 1;
    /// The change contradicts what is there, such as the removal of a connected switch. Nothing has changed.
    pub const CONFLICT: u16 = 2;
    /// The object has as many annotations as it can have. Nothing has changed.
    pub const FULL: u16 = 3;
    /// The store did not take the change, for the reason in the sentence. Nothing has changed.
    pub const NOT_STORED: u16 = 4;
    /// The app has no grant for this question (`abi::event::NOT_GRANTED`).
    pub const NOT_GRANTED: u16 = 0xff80;
    /// The question is wrong (`abi::event::BAD_QUESTION`).
    pub const BAD_QUESTION: u16 = 0xff82;
}
