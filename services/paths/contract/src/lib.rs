//! The contract of the service `paths`: questions, answers, statuses, and the grant of a caller.
//!
//! ```text
//!   caller: Question ──to_bytes──> payload of a query ──from_bytes──> Question :service
//!   caller: Record, Page, Ways <──JSON── answer :service
//!   caller: view::Key, view::Record <──stream── the tables of intents and paths :service
//!   caller: LinkId, Reserved <──stream── what intents reserve on links :service
//!   slice: LinkState <──stream── the links of slices :service
//! ```
//!
//! In: typed questions and answers, or bytes. Out: the other form. It sends nothing, and does not depend on the SDK.

mod answer;
mod declaration;
mod follow;
mod grant;
mod question;
mod reserved;
mod slice_links;
mod wanted;

pub use answer::{AddResult, Added, Counts, Page, Way, Ways};
pub use declaration::{DECLARATION, READ, SLICE_LINKS, WRITE};
pub use follow::Follow;
pub use grant::{Grant, Region};
pub use question::{
    ADDED_AT_ONCE_MAX, Addition, Choice, Filter, NAME_BYTES_MAX, PAGE_DEFAULT, PAGE_MAX, QUESTION_BYTES_MAX,
    Question, WAYS_MAX,
};
pub use reserved::{RESERVED_STATE_KEY, Reserved, ReservedState};
pub use slice_links::{ALL_SLICES, FollowLinks, Lack, LinkState, SliceLinks, link_key, read_link_key};
pub use wanted::{ENDS_MAX, LINKS_MAX, LISTED_MAX, check_wanted};

/// The name of the service.
pub const SERVICE: &str = "paths";

/// The statuses of answers, in addition to those common to all services. The payload of a refusal is a sentence. It begins with the
/// field, if a field is wrong.
pub mod status {
    /// Success. A change is in the store.
    pub const DONE: u16 = 0;
    /// There is no such intent, or no such slice.
    pub const NOT_FOUND: u16 = 1;
    /// The owner has another intent of this name, or the intent has another owner.
    pub const CONFLICT: u16 = 2;
    /// The service keeps as many intents as it can. Nothing has changed.
    pub const FULL: u16 = 3;
    /// The store did not take the change, for the reason in the sentence. Nothing has changed.
    pub const NOT_STORED: u16 = 4;
    /// Of a question for ways: there is none. The sentence says what is missing.
    pub const NO_WAY: u16 = 5;
    /// The service reads its intents from the store, or an earlier change of this intent. The caller asks again later.
    pub const NOT_READY: u16 = 6;
    /// The store did not say whether it has the change. The service finds it out as soon as the store answers, and acts accordingly. The
    /// caller lists the intents later, or asks again.
    pub const MAYBE_STORED: u16 = 7;
    /// The app has no grant for this question (`abi::event::NOT_GRANTED`).
    pub const NOT_GRANTED: u16 = 0xff80;
    /// The question is wrong (`abi::event::BAD_QUESTION`). Nothing has changed.
    pub const BAD_QUESTION: u16 = 0xff82;
}
