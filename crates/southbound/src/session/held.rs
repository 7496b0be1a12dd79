//! What a session keeps because of the profile of its switch.
//!
//! It decides nothing: [`super::paced`] does.

use crate::pacer::Pacer;
use crate::receipts::Tag;
use crate::reply_watch::Watch;
use crate::switch_pace::SwitchPace;
use std::sync::Arc;

/// How a session treats its switch by a profile.
#[derive(Debug)]
pub(super) struct Paced {
    /// `None`: no profile applies any more, and the rest of the commands goes.
    pub of: Option<Arc<SwitchPace>>,
    /// The commands that wait. `None`: the profile sets no pace.
    pub pacer: Option<Pacer<Held>>,
    /// Whether the switch is as its profile says. `None`: the profile does not say when a barrier is answered.
    pub watch: Option<Watch>,
}

/// A command that waits: messages without transaction ids.
#[derive(Debug)]
pub(super) struct Held {
    pub messages: Vec<Vec<u8>>,
    pub tag: Tag,
    pub wants_receipt: bool,
    pub kind: HeldKind,
}

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldKind {
    FlowMod,
    PacketOut,
    /// A question, with its type.
    Statistics(u16),
    Barrier,
    Other,
    Bundle,
}
