//! The bundles that are under way to one switch, and whether the switch has bundles at all (OpenFlow 1.4.0, 7.3.9; in 1.3
//! the ONF's extension 230).
//!
//! ```text
//!            the switch may have bundles                       no error       the switch has applied all
//!   Opening ────────────────────────────> Filled ──close reply──────────> Committing ──commit reply──> (programmed)
//!      └── no bundles: refused               └── an error: discarded, failed   └── an error: failed
//! ```
//!
//! A switch that was not asked for a bundle in this session first gets only the request to open one. So a switch without
//! bundles gets one unknown message, and only if an app wants a bundle.
//!
//! In: what was sent, replies, errors, the time. Out: what to send next, and the outcomes. It writes no message.

use crate::receipts::Tag;
use abi::ZoneId;
use openflow::message::{
    BUNDLE_CLOSE_REPLY, BUNDLE_COMMIT_REPLY, BUNDLE_OPEN_REPLY, BundleControl, ErrorMessage,
};

/// How many bundles may be under way to one switch. Each zone has one at most. A further one is refused.
pub const BUNDLES_MAX: usize = 4;

/// If a switch does not answer the first request to open a bundle for this long, it has no bundles, in milliseconds. It
/// is far longer than a round trip, and short for an app that then sends its flow mods alone.
pub const FIRST_ANSWER_MS: u64 = 2_000;

/// When bundles have been under way for so long without a break, no further one begins before all are over, in milliseconds.
/// The kernel's evictions and its questions to the switch wait for that.
const BUSY_MAX_MS: u64 = 1_000;

/// Whether a switch has bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Support {
    /// It was not asked.
    #[default]
    Unknown,
    /// It has opened one.
    Has,
    /// It has none, with the reason.
    None(String),
}

/// The stage of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Only the request to open it was sent.
    Opening,
    /// Its flow mods were sent, and the request to close it.
    Filled,
    /// The request to commit it was sent, with this transaction id.
    Committing(u32),
}

/// A bundle under way.
#[derive(Clone, Debug)]
struct Bundle {
    id: u32,
    tag: Tag,
    wants_receipt: bool,
    /// The transaction id of the request to open it. Those of its flow mods and of the request to close it follow.
    first_xid: u32,
    count: u32,
    stage: Stage,
    /// The messages after the first, until the switch has opened the bundle.
    held: Vec<u8>,
    /// The first error for one of its flow mods: its number from 1 on, and the error.
    failure: Option<(u32, ErrorMessage)>,
    since_ms: u64,
}

/// A bundle to begin.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// Its number at the switch.
    pub id: u32,
    /// Its app, and the app's number for it.
    pub tag: Tag,
    /// Whether the app wants a receipt.
    pub wants_receipt: bool,
    /// The transaction id of the request to open it.
    pub first_xid: u32,
    /// How many flow mods it has.
    pub count: u32,
}

/// How a bundle ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The switch has applied all of it.
    Programmed,
    /// The switch has no bundles, with the reason. It has applied nothing.
    NoBundles(String),
    /// The switch has applied nothing, because of this error. For an error about one flow mod: its number from 1 on.
    Failed(Option<u32>, ErrorMessage),
    /// It is not known.
    Unknown(&'static str),
}

/// The outcome of a bundle, which is under way no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its app, and the app's number for it.
    pub tag: Tag,
    /// Whether the app wants a receipt.
    pub wants_receipt: bool,
    /// How many flow mods it had.
    pub count: u32,
    /// How it ended.
    pub end: End,
    /// Whether the switch may still apply it later.
    pub may_come: bool,
}

/// What follows from a reply or an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// Send these messages.
    Send(Vec<u8>),
    /// Commit this bundle. [`Bundles::committed`] gets the transaction id of the request.
    Commit(u32),
    /// Report this, and discard the bundle of this number, if any.
    Over(Outcome, Option<u32>),
    /// A bundle is over whose outcome was reported as unknown.
    Late,
}

/// The bundles of one session.
#[derive(Debug, Default)]
pub struct Bundles {
    support: Support,
    under_way: Vec<Bundle>,
    /// Commits that the switch did not answer in time: the bundle, and the transaction id. They count as bundles under way.
    late: Vec<(u32, u32)>,
    /// How many wait because their switch is slow. Nothing of them is sent yet.
    held: usize,
    /// Since when there has always been a bundle under way or waiting.
    busy_since_ms: u64,
    last_id: u32,
}

impl Bundles {
    /// Whether the switch has bundles, as far as it is known.
    pub fn support(&self) -> &Support {
        &self.support
    }

    /// Whether a bundle of this zone may begin now, or wait for its slow switch.
    pub fn has_room(&self, zone: ZoneId, now_ms: u64) -> bool {
        let is_busy = self.count() > 0 && now_ms.saturating_sub(self.busy_since_ms) >= BUSY_MAX_MS;
        self.count() < BUNDLES_MAX && !is_busy && self.may_send(zone)
    }

    /// Whether a bundle of this zone may be sent now, if it has waited.
    pub fn may_send(&self, zone: ZoneId) -> bool {
        let is_first = self.support == Support::Unknown;
        let most = if is_first { 1 } else { BUNDLES_MAX };
        let sent = self.under_way.len() + self.late.len();
        sent < most && self.under_way.iter().all(|bundle| bundle.tag.zone != zone)
    }

    /// How many are under way or wait.
    fn count(&self) -> usize {
        self.under_way.len() + self.late.len() + self.held
    }

    /// A bundle waits. [`Self::begin`] follows, and then [`Self::held_went`].
    pub fn hold(&mut self, now_ms: u64) {
        if self.count() == 0 {
            self.busy_since_ms = now_ms;
        }
        self.held += 1;
    }

    /// A bundle that has waited was sent.
    pub fn held_went(&mut self) {
        self.held = self.held.saturating_sub(1);
    }

    /// Whether none is under way.
    pub fn are_over(&self) -> bool {
        self.under_way.is_empty() && self.late.is_empty()
    }

    /// The number of the next bundle.
    pub fn next_id(&mut self) -> u32 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// A bundle begins: the request to open it is sent. `others` are its other messages. Returns those to send now.
    pub fn begin(&mut self, begun: Begun, others: Vec<u8>, now_ms: u64) -> Vec<u8> {
        let Begun { id, tag, wants_receipt, first_xid, count } = begun;
        let is_held = self.support == Support::Unknown;
        let (stage, held, now) = match is_held {
            true => (Stage::Opening, others, Vec::new()),
            false => (Stage::Filled, Vec::new(), others),
        };
        if self.count() == 0 {
            self.busy_since_ms = now_ms;
        }
        self.under_way.push(Bundle {
            id,
            tag,
            wants_receipt,
            first_xid,
            count,
            stage,
            held,
            failure: None,
            since_ms: now_ms,
        });
        now
    }

    /// The switch answers a request about a bundle. `None`: there is no such request.
    pub fn on_reply(&mut self, reply: &BundleControl) -> Option<Step> {
        if reply.control == BUNDLE_COMMIT_REPLY && self.end_late(|(id, _)| id == reply.bundle_id) {
            return Some(Step::Late);
        }
        let index = self.under_way.iter().position(|bundle| bundle.id == reply.bundle_id)?;
        let bundle = &mut self.under_way[index];
        match (reply.control, bundle.stage) {
            (BUNDLE_OPEN_REPLY, Stage::Opening) => {
                bundle.stage = Stage::Filled;
                let held = std::mem::take(&mut bundle.held);
                self.support = Support::Has;
                Some(Step::Send(held))
            }
            (BUNDLE_OPEN_REPLY, Stage::Filled) => Some(Step::Nothing),
            (BUNDLE_CLOSE_REPLY, Stage::Filled) => match bundle.failure.take() {
                None => Some(Step::Commit(bundle.id)),
                Some((number, error)) => {
                    let id = bundle.id;
                    Some(Step::Over(self.end(index, End::Failed(Some(number), error)), Some(id)))
                }
            },
            (BUNDLE_COMMIT_REPLY, Stage::Committing(_)) => {
                let end = match bundle.failure.take() {
                    None => End::Programmed,
                    Some((number, error)) => End::Failed(Some(number), error),
                };
                Some(Step::Over(self.end(index, end), None))
            }
            _ => None,
        }
    }

    /// The request to commit a bundle was sent.
    pub fn committed(&mut self, id: u32, xid: u32) {
        if let Some(bundle) = self.under_way.iter_mut().find(|bundle| bundle.id == id) {
            bundle.stage = Stage::Committing(xid);
        }
    }

    /// The switch answers with an error. `None`: it is not about a bundle.
    pub fn on_error(&mut self, xid: u32, error: &ErrorMessage) -> Option<Step> {
        if self.end_late(|(_, commit)| commit == xid) {
            return Some(Step::Late);
        }
        let index = self.under_way.iter().position(|bundle| bundle.part(xid).is_some())?;
        let bundle = &mut self.under_way[index];
        match bundle.part(xid)? {
            Part::Open if bundle.stage == Stage::Opening => {
                let end = match lacks_bundles(error) {
                    true => {
                        let why = crate::translate::error::describe(openflow::Version::V1_3, error);
                        self.support = Support::None(why.clone());
                        End::NoBundles(why)
                    }
                    false => End::Failed(None, error.clone()),
                };
                Some(Step::Over(self.end(index, end), None))
            }
            Part::FlowMod(number) => {
                bundle.failure.get_or_insert((number, error.clone()));
                Some(Step::Nothing)
            }
            // The flow mods behind it may have opened another bundle with the same number.
            Part::Open | Part::Close => {
                let id = bundle.id;
                let end = bundle.failed(error);
                Some(Step::Over(self.end(index, end), Some(id)))
            }
            Part::Commit => {
                let end = bundle.failed(error);
                Some(Step::Over(self.end(index, end), None))
            }
        }
    }

    /// Time has passed: returns a bundle that the switch did not answer in time, and the number of the one to discard.
    pub fn on_tick(&mut self, now_ms: u64, timeout_ms: u64) -> Option<(Outcome, Option<u32>)> {
        let is_late = |bundle: &Bundle| {
            let most_ms = if bundle.stage == Stage::Opening { FIRST_ANSWER_MS } else { timeout_ms };
            now_ms.saturating_sub(bundle.since_ms) >= most_ms
        };
        let index = self.under_way.iter().position(is_late)?;
        let (id, stage) = (self.under_way[index].id, self.under_way[index].stage);
        Some(match stage {
            Stage::Opening => {
                let why = "it did not answer the request to open one".to_owned();
                self.support = Support::None(why.clone());
                // If it opens the bundle after all, that ends by itself.
                (self.end(index, End::NoBundles(why)), None)
            }
            Stage::Filled => {
                (self.end(index, End::Unknown("the switch did not answer the bundle in time")), Some(id))
            }
            Stage::Committing(xid) => {
                self.late.push((id, xid));
                let end = End::Unknown("the switch did not answer the commit of the bundle in time");
                (Outcome { may_come: true, ..self.end(index, end) }, None)
            }
        })
    }

    /// The session has ended. Returns the bundles under way whose apps want a receipt.
    pub fn on_end(&mut self) -> Vec<Tag> {
        self.late.clear();
        self.held = 0;
        self.under_way.drain(..).filter(|bundle| bundle.wants_receipt).map(|bundle| bundle.tag).collect()
    }

    /// Forgets a late commit. Returns whether there is such a one.
    fn end_late(&mut self, is_it: impl Fn((u32, u32)) -> bool) -> bool {
        let index = self.late.iter().position(|late| is_it(*late));
        index.map(|index| self.late.swap_remove(index)).is_some()
    }

    fn end(&mut self, index: usize, end: End) -> Outcome {
        let Bundle { tag, wants_receipt, count, .. } = self.under_way.swap_remove(index);
        Outcome { tag, wants_receipt, count, end, may_come: false }
    }
}

/// The part of a bundle that a transaction id belongs to.
enum Part {
    Open,
    /// A flow mod, by its number from 1 on.
    FlowMod(u32),
    Close,
    Commit,
}

impl Bundle {
    fn part(&self, xid: u32) -> Option<Part> {
        if self.stage == Stage::Committing(xid) {
            return Some(Part::Commit);
        }
        match xid.wrapping_sub(self.first_xid) {
            0 => Some(Part::Open),
            number if number <= self.count => Some(Part::FlowMod(number)),
            number if number == self.count + 1 => Some(Part::Close),
            _ => None,
        }
    }

    /// It failed as a whole. An error about one of its flow mods tells more.
    fn failed(&mut self, error: &ErrorMessage) -> End {
        match self.failure.take() {
            Some((number, why)) => End::Failed(Some(number), why),
            None => End::Failed(None, error.clone()),
        }
    }
}

/// Whether a switch that answers the request to open a bundle with this error has no such bundles: it does not know the
/// message, or cannot apply all or nothing (OFPBFC_BAD_FLAGS).
fn lacks_bundles(error: &ErrorMessage) -> bool {
    const BAD_REQUEST: u16 = 1;
    const BAD_TYPE: u16 = 1;
    const BAD_EXPERIMENTER: u16 = 3;
    const BAD_EXP_TYPE: u16 = 4;
    let bad_flags = openflow::error::bundle_failed(7);
    let is_unknown =
        error.kind == BAD_REQUEST && matches!(error.code, BAD_TYPE | BAD_EXPERIMENTER | BAD_EXP_TYPE);
    is_unknown || error.experimenter.is_some() && (error.kind, error.code) == (bad_flags.kind, bad_flags.code)
}
