//! The contract of the service `flows`: named sets of wanted rules, groups and meters, their states, and the grant of a caller.
//!
//! ```text
//!   caller: Batch ──bytes──> payload of a query ──read_batch──> Change :service          (the frequent way)
//!   caller: Question ──JSON──> payload of a query ──from_bytes──> Question :service      (lists; sets of operators)
//!   caller: SetState <──stream "states"── :service        caller: view::Record <──stream of rules, groups, meters── :service
//! ```
//!
//! In: typed values, or bytes. Out: the other form. It sends nothing, and does not depend on the SDK.
//!
//! A set belongs to the app that puts it. Its name is unique for that app. If the app puts a set again, the set is replaced: the service adds
//! what is new, waits until the switches have confirmed it, and then removes what is gone.

mod answer;
mod batch;
mod bytes;
mod declaration;
mod follow;
mod grant;
mod item;
mod look;
mod question;
mod read;
mod state;

pub use answer::{
    Counters, EntryPage, Refusal, SetPage, SetSummary, SwitchSummary, Tables, read_refusals, write_refusals,
};
pub use batch::{Batch, Items, SetOptions};
pub use declaration::{DECLARATION, READ, WRITE};
pub use follow::Follow;
pub use grant::{Grant, Region};
pub use item::{Group, Hop, Hops, Item, Meter, Path, Rule, hop_bytes};
pub use look::{Claim, LOOK_RULES_MAX, Look, SeenGroup, SeenRule};
pub use question::{
    Filter, GroupType, MeterUnit, PAGE_DEFAULT, PAGE_MAX, Question, WantedBand, WantedBucket, WantedGroup,
    WantedMeter, WantedRule, WantedSet,
};
pub use read::{Change, ItemIter, is_batch, items, read_batch};
pub use state::{Failure, FailureKind, Phase, SetState};

/// The name of the service.
pub const SERVICE: &str = "flows";

/// The longest name of a set in bytes.
pub const SET_NAME_BYTES_MAX: usize = 64;

/// The longest batch in bytes. It fits into one query with room for the frame around it. A set is part of one batch, so a set has
/// at most so many bytes too: some thousand rules. An app that wants more uses several sets.
pub const BATCH_BYTES_MAX: usize = 96 << 10;

/// The statuses of answers, in addition to those common to all services. A payload of a refusal is a sentence.
pub mod status {
    /// Success: the whole batch was taken. The sets are wanted from now on; their states say when they are installed.
    pub const DONE: u16 = 0;
    /// Some changes of the batch were refused. The payload is read with [`crate::read_refusals`]. The others were taken.
    pub const SOME_REFUSED: u16 = 1;
    /// There is no such set, rule or switch.
    pub const NOT_FOUND: u16 = 2;
    /// The set has a newer version already.
    pub const STALE: u16 = 3;
    /// The service keeps as many sets or rules as it can. Nothing has changed.
    pub const FULL: u16 = 4;
    /// The store did not take a permanent set, for the reason in the sentence. Nothing has changed.
    pub const NOT_STORED: u16 = 5;
    /// The switch is not connected, or did not answer.
    pub const NO_ANSWER_OF_SWITCH: u16 = 6;
    /// Another set wants an entry with the same switch, table, priority and match, or the same id. Nothing of the set has changed.
    pub const CONFLICT: u16 = 7;
    /// The app has no grant for this question (`abi::event::NOT_GRANTED`).
    pub const NOT_GRANTED: u16 = 0xff80;
    /// The question is wrong (`abi::event::BAD_QUESTION`). Nothing has changed.
    pub const BAD_QUESTION: u16 = 0xff82;
}
